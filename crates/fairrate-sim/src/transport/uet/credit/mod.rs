//! Credit of receivers (RCCC, EQDS, NDP): what a message has been given at its sender ([`Purse`]), what it asks of its
//! receiver ([`Account`]), and the pacer of a receiving host ([`Pacer`]), which [`FabricShare`] slows down.

mod fabric;
mod feedback;
mod pacer;
mod purse;

use fairrate_control::credits::{CreditRule, Credits, FabricControl, FirstWindow};
use fairrate_units::{Bytes, Rate, Time};

pub(super) use self::fabric::{Arrival, FabricShare};
pub(super) use self::feedback::Fate;
pub(super) use self::pacer::{Account, Pacer};
pub(super) use self::purse::{Asker, Purse};

/// The rules of credit in a network, in bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    credits: Credits,
    /// Bytes of a full packet.
    packet: u64,
    base_rtt: Time,
}

impl Terms {
    /// Returns the terms of a network with full packets of `packet` bytes.
    pub(super) fn new(credits: Credits, packet: u64, base_rtt: Time) -> Self {
        Self { credits, packet, base_rtt }
    }

    /// Returns the control of receivers' rates, if there is one.
    pub(super) fn fabric(&self) -> Option<FabricControl> {
        self.credits.fabric
    }

    /// Returns the timeouts that a sender with nothing in flight waits for credit.
    pub(super) fn patience(&self) -> u64 {
        u64::from(self.credits.patience)
    }

    /// Returns `true` if each packet that arrives earns credit for one.
    pub(super) fn counts_arrivals(&self) -> bool {
        self.credits.rule == CreditRule::Arrivals
    }

    /// Returns `true` if a packet that was cut speaks against its path even where it was cut by the last switch, as in
    /// EQDS.
    pub(super) fn blames_paths(&self) -> bool {
        matches!(self.credits.rule, CreditRule::Whole { .. })
    }

    /// Returns the first window of a message at a link of `rate`.
    fn window(&self, rate: Rate) -> u64 {
        match self.credits.window {
            FirstWindow::Bdp(bdp) => (bdp * rate.bytes_in(self.base_rtt).as_f64()) as u64,
            FirstWindow::Packets(packets) => u64::from(packets) * self.packet,
        }
    }

    /// Returns the bytes of a unit of credit.
    fn quantum(&self) -> u64 {
        match self.credits.rule {
            CreditRule::Wanted { quantum, .. } | CreditRule::Whole { quantum, .. } => quantum.as_u64(),
            CreditRule::Arrivals => self.packet,
        }
    }

    /// Returns the units of a whole turn.
    fn turn(&self) -> u64 {
        match self.credits.rule {
            CreditRule::Wanted { turn, .. } | CreditRule::Whole { turn, .. } => turn,
            CreditRule::Arrivals => 1,
        }
    }

    /// Returns the units that are owed for a packet that was cut.
    pub(super) fn owed(&self) -> u64 {
        self.packet.div_ceil(self.quantum())
    }

    /// Returns the units that a message may be given unasked, at a receiver whose link has `rate`.
    fn ahead(&self, rate: Rate) -> u64 {
        if self.counts_arrivals() { 0 } else { self.window(rate) / self.quantum() }
    }

    /// Returns the picoseconds that a turn of `units` takes at a link of `rate`, of which receivers use `share`. One
    /// that gives nothing takes a while too.
    fn turn_ps(&self, units: u64, rate: Rate, share: f64) -> u64 {
        let pacing = self.credits.pacing;
        match self.credits.rule {
            CreditRule::Whole { frame: Some(frame), .. } => {
                (pacing * 8.0 * frame.as_f64() * 1e12 / rate.as_bps_f64()) as u64
            }
            CreditRule::Arrivals => (rate.tx_time(Bytes::new(self.packet)).as_ps() as f64 / pacing) as u64 * units,
            CreditRule::Wanted { .. } | CreditRule::Whole { frame: None, .. } => {
                let units = if units == 0 { self.turn().div_ceil(16) } else { units };
                let paced = Rate::from_bps_f64(pacing * rate.as_bps_f64());
                units * (paced.tx_time(Bytes::new(self.quantum())).as_ps() as f64 / share) as u64
            }
        }
    }
}
