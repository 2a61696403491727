//! The queue of a link as RCP and XCP measure it. A switch has a real queue. A host has none, because data leaves its
//! flow only when the wire is free; its queue is the data that its flows were allowed to send and have not sent.

use fairrate_units::{Rate, Time};

/// The bytes that wait for a link: packets in its queues and, at a host, data that its flows hold back until the wire
/// is free.
#[derive(Clone, Debug)]
pub(crate) struct LinkQueue {
    bytes_per_sec: f64,
    /// Bytes in queues since the last packet joined or left.
    queued: f64,
    /// Bytes that the host's flows held back when the last packet left.
    held: f64,
    /// Size of that packet in bytes, and the time it left.
    last_wire: f64,
    last: Time,
}

impl LinkQueue {
    /// Returns the empty queue of a link of `rate`.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { bytes_per_sec: rate.as_bytes_per_sec(), queued: 0.0, held: 0.0, last_wire: 0.0, last: Time::ZERO }
    }

    /// Records that the queues hold `bytes` from now on.
    pub(crate) fn hold(&mut self, bytes: u64) {
        self.queued = bytes as f64;
    }

    /// Records that a packet of `wire` bytes leaves a host. Since its previous packet, the flow was allowed to send
    /// `beyond` bytes more than this packet.
    pub(crate) fn leave_host(&mut self, now: Time, wire: f64, beyond: f64) {
        self.held = (self.held_at(now) + beyond).max(0.0);
        (self.last_wire, self.last) = (wire, now);
    }

    /// Returns the bytes waiting at `t`, without the packet on the wire. `t` is not before the last packet.
    pub(crate) fn at(&self, t: Time) -> f64 {
        self.queued + self.held_at(t)
    }

    /// Returns `true` if the queue does not change after `t` before the next packet.
    pub(crate) fn is_still(&self, t: Time) -> bool {
        self.held_at(t) == 0.0
    }

    /// Returns the bytes held back at `t`: they drain at the link's rate once the last packet has been sent.
    fn held_at(&self, t: Time) -> f64 {
        let drained = self.bytes_per_sec * t.saturating_sub(self.last).as_secs_f64() - self.last_wire;
        (self.held - drained.max(0.0)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_holds_back_drains_at_the_rate_of_the_link() {
        // 8 Gb/s: a byte each nanosecond. Two flows at line rate take turns: in the time of two packets each flow sends
        // one of 1,000 bytes and could have sent 2,000, so 1,000 more are held back after each.
        let mut queue = LinkQueue::new(Rate::from_gbps(8));
        queue.leave_host(Time::ZERO, 1_000.0, 0.0);
        queue.leave_host(Time::from_us(1), 1_000.0, 1_000.0);
        queue.leave_host(Time::from_us(2), 1_000.0, 1_000.0);
        assert!((queue.at(Time::from_us(3)) - 2_000.0).abs() < 1e-6);
        assert!((queue.at(Time::from_ns(4_500)) - 500.0).abs() < 1e-6);
        assert!(queue.is_still(Time::from_us(5)) && !queue.is_still(Time::from_us(4)));
        queue.hold(60);
        assert!((queue.at(Time::from_us(9)) - 60.0).abs() < 1e-6);
    }
}
