//! The state that switches and hosts share: the run, the clock, the network between them, and the observations.

use std::sync::Arc;

use super::agents::Agents;
use super::clock::Clock;
use super::network::Network;
use super::run::Run;
use super::told::{News, Told};
use crate::ids::{PacketIdx, PortIdx};
use crate::output::PfcEvent;

/// The surroundings of switches and hosts. Switches do not access hosts, nor hosts switches: they interact through the
/// network.
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

    /// Pauses or resumes a class of `port`, and reports it.
    pub(super) fn pause_class(&mut self, port: PortIdx, class: u8, pause: bool) {
        self.net.ports[port].set_paused(class, pause, self.clock.now_ps);
        self.told.push(News::Pfc(PfcEvent { t: self.clock.now(), port: self.net.links.id_of(port), class, pause }));
    }
}
