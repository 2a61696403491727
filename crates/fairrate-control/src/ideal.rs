//! `ideal`: not an algorithm but a reference for algorithms. Every flow has its exact weighted max-min fair rate
//! at every moment, as if an oracle with all flows, paths and demands set each sender's rate at once. PERC (L. Jose et
//! al., HotNets 2015, section 4) normalises completion times by such a reference.
//!
//! The sender decides nothing. [`FeedbackNeeds::oracle`] asks the simulator to compute the rates itself, at every
//! arrival and departure, and to serve flows as fluids; this controller is never called there. Elsewhere it sends at
//! line rate, the rate of a single flow.

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FeedbackNeeds, FlowContext, Needs};
use crate::line_rate::LineRateConfig;
use crate::port::NoPort;

pub use crate::line_rate::LineRate as Ideal;

algorithm_config! {
    /// `ideal` has no parameters.
    pub struct IdealConfig {}
}

impl AlgorithmSpec for IdealConfig {
    type Controller = Ideal;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { feedback: FeedbackNeeds { oracle: true, weights: true, ..FeedbackNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Ideal {
        LineRateConfig::default().build(&FlowContext { line_rate: flow.line_rate.min(flow.demand), ..*flow })
    }
}
