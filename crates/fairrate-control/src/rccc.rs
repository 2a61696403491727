//! `rccc`: receiver credit congestion control, the receiver's half of Ultra Ethernet's congestion control (Ultra Ethernet
//! Specification 1.0, 2025), which grew out of V. Olteanu et al., "An edge-queued datagram service for all datacenter traffic" (EQDS),
//! NSDI 2022. The rules are those of the Ultra Ethernet consortium's simulator (github.com/ultraethernet/uet-htsim at 40ccb05,
//! `uec.cpp`); the specification's own text was not read.
//!
//! RCCC is a part of the transport: a receiver grants what may be sent to it, at just less than the rate of its link. A sender's
//! controller decides nothing and sends at line rate what it has credit for. [`FeedbackNeeds::credit`] asks the simulator for credit;
//! this module has its parameters. `nscc` takes both with `credit = true`.
//!
//! Readings: the slow pull (credit that a receiver gives to idle messages when no other asks) ends with the message. Control of
//! the pacer's rate in oversubscribed fabrics and the model of the receiver's bus are left out.

use fairrate_units::Bytes;

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FeedbackNeeds, FlowContext, Needs, NetworkNeeds};
use crate::credits::{CreditRule, Credits, FirstWindow};
use crate::line_rate::LineRateConfig;
use crate::nscc::RED;
use crate::port::NoPort;

pub use crate::line_rate::LineRate as Rccc;

/// Credit as in uet-htsim.
pub const CREDITS: Credits = Credits {
    pacing: 0.99,
    window: FirstWindow::Bdp(WINDOW),
    rule: CreditRule::Wanted { quantum: Bytes::new(256), turn: 64 },
    patience: 10,
};

/// First window, in bandwidth-delay products.
const WINDOW: f64 = 1.5;

algorithm_config! {
    /// Parameters of RCCC. The defaults are those of uet-htsim.
    pub struct RcccConfig {
        /// Rate of grants as a share of the receiver's link.
        pacing: f64 = CREDITS.pacing, in 0.01..=1.0;
        /// Bytes that a sender may send unasked, and most that it may have granted and unused, in bandwidth-delay products.
        window: f64 = WINDOW, in 0.01..=1000.0;
    }
}

impl AlgorithmSpec for RcccConfig {
    type Controller = Rccc;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let credit = Some(Credits { pacing: self.pacing, window: FirstWindow::Bdp(self.window), ..CREDITS });
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
