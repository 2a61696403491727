//! The kinds of [`EventKind::Allocate`] events, and the numbers that stand for them.

use super::Allocator;
use crate::core::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, HostId};

/// Cause of an event in the conversation with the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllocatorEvent {
    /// The optimiser iterates.
    Iterate,
    /// The allocator fails or restarts.
    Outage,
    /// Rates of this host may expire.
    Expiry(HostId),
    /// The flowlet gap of this flow ends.
    Gap(FlowId),
}

impl AllocatorEvent {
    /// Number of the first host; the numbers of flows follow those of hosts.
    const FIRST_HOST: u32 = 2;

    /// Returns the event's entity number in a network of `n_hosts` hosts. Simultaneous events are handled in its order.
    pub(super) fn entity(self, n_hosts: u32) -> u32 {
        match self {
            Self::Iterate => 0,
            Self::Outage => 1,
            Self::Expiry(host) => Self::FIRST_HOST + host.0,
            Self::Gap(flow) => Self::FIRST_HOST + n_hosts + flow.0,
        }
    }

    /// Returns the event with the number `entity` in a network of `n_hosts` hosts.
    pub(super) fn of(entity: u32, n_hosts: u32) -> Self {
        match entity {
            0 => Self::Iterate,
            1 => Self::Outage,
            host if host < Self::FIRST_HOST + n_hosts => Self::Expiry(HostId(host - Self::FIRST_HOST)),
            flow => Self::Gap(FlowId(flow - Self::FIRST_HOST - n_hosts)),
        }
    }
}

impl Allocator {
    /// Schedules an event of the conversation.
    pub(super) fn schedule(&self, w: &mut World, at_ps: u64, event: AllocatorEvent) {
        w.clock.schedule(at_ps, EventKind::Allocate, event.entity(self.endpoints.len() as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_from_their_numbers_in_the_order_of_kinds() {
        let hosts = (0..3).map(|host| AllocatorEvent::Expiry(HostId(host)));
        let flows = (0..3).map(|flow| AllocatorEvent::Gap(FlowId(flow)));
        let events = [AllocatorEvent::Iterate, AllocatorEvent::Outage].into_iter().chain(hosts).chain(flows);
        for (number, event) in (0..).zip(events) {
            assert_eq!(event.entity(3), number);
            assert_eq!(AllocatorEvent::of(number, 3), event);
        }
    }
}
