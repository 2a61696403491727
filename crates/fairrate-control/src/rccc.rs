//! `rccc`: receiver credit congestion control, the receiver's half of Ultra Ethernet's congestion control (Ultra
//! Ethernet Specification 1.0, 2025), which grew out of V. Olteanu et al., "An edge-queued datagram service for all
//! datacenter traffic" (EQDS), NSDI 2022. The rules are those of the Ultra Ethernet consortium's simulator
//! (github.com/ultraethernet/uet-htsim at 40ccb05, `uec.cpp`); the specification's own text was not read.
//!
//! RCCC is a part of the transport: a receiver grants what may be sent to it, at just less than the rate of its link. A
//! sender's controller decides nothing and sends at line rate what it has credit for. [`FeedbackNeeds::credit`] asks
//! the simulator for credit; this module has its parameters. `nscc` takes both with `credit = true`.
//!
//! In an oversubscribed fabric receivers also give credit at a lower rate when marks and packets that were cut inside
//! the network say so (`oversubscribed_cc.cpp`; [`FabricControl`]).
//!
//! Readings: the slow pull (credit that a receiver gives to idle messages when no other asks) ends with the message.
//! The model of the receiver's bus is left out.

use fairrate_units::Bytes;

use crate::config::{algorithm_config, choice};
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::credits::{CreditRule, Credits, FabricControl, FirstWindow};
use crate::line_rate::LineRateConfig;
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds};
use crate::nscc::RED;
use crate::port::NoPort;

pub use crate::line_rate::LineRate as Rccc;

/// Credit as in uet-htsim.
pub const CREDITS: Credits = Credits {
    pacing: 0.99,
    window: FirstWindow::Bdp(WINDOW),
    rule: CreditRule::Wanted { quantum: Bytes::new(256), turn: 64 },
    patience: 10,
    fabric: None,
};

/// First window, in bandwidth-delay products.
const WINDOW: f64 = 1.5;

choice! {
    /// Networks in which receivers go by congestion inside the network.
    pub enum FabricControlUse {
        /// Oversubscribed networks, as in uet-htsim.
        Auto = "auto",
        /// All networks.
        On = "on",
        /// No network.
        Off = "off",
    }
}

algorithm_config! {
    /// Parameters of RCCC. The defaults are those of uet-htsim.
    pub struct RcccConfig {
        /// Rate of grants as a share of the receiver's link.
        pacing: f64 = CREDITS.pacing, in 0.01..=1.0;
        /// Bytes that a sender may send unasked, and most that it may have granted and unused, in bandwidth-delay
        /// products.
        window: f64 = WINDOW, in 0.01..=1000.0;
        /// Receivers grant less when packets were marked or cut inside the network: `"auto"` in oversubscribed
        /// networks, `"on"` in all, `"off"`.
        fabric_control: FabricControlUse = FabricControlUse::Auto;
        /// With `fabric_control`: least rate of grants as a share of `pacing`, divided by the network's
        /// oversubscription.
        fabric_floor: f64 = 0.9, in 0.01..=1.0;
        /// With `fabric_control`: least increase of that share, once in 1.5 base RTTs.
        fabric_increase: f64 = 0.01, in 0.0..=1.0, tune = Log(0.001, 0.1);
        /// With `fabric_control`: decrease of that share for each marked share of packets above `fabric_target`.
        fabric_decrease: f64 = 0.5, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// With `fabric_control`: marked share of packets above which receivers slow down.
        fabric_target: f64 = 0.3, in 0.0..=1.0, tune = Linear(0.05, 0.9);
        /// With `fabric_control`: gain of the average of that share.
        fabric_gain: f64 = 0.5, in 0.0..=1.0, tune = Linear(0.05, 1.0);
    }
}

impl RcccConfig {
    fn fabric(&self) -> Option<FabricControl> {
        (self.fabric_control != FabricControlUse::Off).then_some(FabricControl {
            only_oversubscribed: self.fabric_control == FabricControlUse::Auto,
            floor: self.fabric_floor,
            increase: self.fabric_increase,
            decrease: self.fabric_decrease,
            target: self.fabric_target,
            gain: self.fabric_gain,
        })
    }
}

impl AlgorithmSpec for RcccConfig {
    type Controller = Rccc;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let window = FirstWindow::Bdp(self.window);
        let credit = Some(Credits { pacing: self.pacing, window, fabric: self.fabric(), ..CREDITS });
        Needs {
            // Marks choose paths.
            network: NetworkNeeds { ecn: true, red: Some(RED), ..NetworkNeeds::NOTHING },
            feedback: FeedbackNeeds { uet: true, credit, ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Rccc {
        LineRateConfig::default().build(flow)
    }
}
