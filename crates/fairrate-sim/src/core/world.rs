//! What switches and hosts have in common: the run, the clock, the network between them, and what is told.

use std::sync::Arc;

use super::agents::Agents;
use super::clock::Clock;
use super::network::Network;
use super::run::Run;
use super::told::{News, Told};
use crate::ids::{PacketIdx, PortIdx};
use crate::output::PfcEvent;

/// The surroundings of switches and hosts. A switch knows no host, and a host no switch: what they do to each other goes by
/// the network.
pub(crate) struct World {
    pub(crate) run: Arc<Run>,
    pub(crate) clock: Clock,
    pub(crate) net: Network,
    /// The agents of ports.
    pub(crate) agents: Agents,
    pub(crate) told: Told,
}

impl World {
    /// Serialises a packet onto the wire of `port`, whose transmitter is free.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, port: PortIdx, packet: PacketIdx) {
        self.net.transmit(&mut self.clock, &mut self.told.totals, port, packet);
    }

    /// A class of `port` is paused, or resumes.
    pub(super) fn pause_class(&mut self, port: PortIdx, class: u8, pause: bool) {
        self.net.ports[port].set_paused(class, pause, self.clock.now_ps);
        self.told.push(News::Pfc(PfcEvent { t: self.clock.now(), port: self.net.links.id_of(port), class, pause }));
    }
}
