//! `ideal`: not an algorithm but a reference for algorithms. Every flow has its exact weighted max-min fair rate
//! at every moment, as if an oracle with all flows, paths and demands set each sender's rate at once. PERC (L. Jose et
//! al., HotNets 2015, section 4) normalises completion times by such a reference.
//!
//! The sender decides nothing. [`FeedbackNeeds::oracle`] asks the simulator to compute the rates itself, at every
//! arrival and departure, and to serve flows as fluids; this controller is never called there. Elsewhere it sends at
//! line rate, the rate of a single flow.
//!
//! Flows can have the rates that they would have alone instead. Then a message takes a latency and its bytes over the
//! rate of its slowest link, whatever else there is: the alpha-beta model (R. Hockney, "The Communication Challenge for
//! MPP", 1994).

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::line_rate::LineRateConfig;
use crate::needs::{FeedbackNeeds, Needs, Oracle};
use crate::port::NoPort;

pub use crate::line_rate::LineRate as Ideal;

algorithm_config! {
    /// Parameters of `ideal`.
    pub struct IdealConfig {
        /// The rates of flows: their max-min optimum, or what each would have alone, as in an alpha-beta model.
        rates: Oracle = Oracle::MaxMin;
    }
}

impl AlgorithmSpec for IdealConfig {
    type Controller = Ideal;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let feedback = FeedbackNeeds { oracle: Some(self.rates), weights: true, ..FeedbackNeeds::NOTHING };
        Needs { feedback, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Ideal {
        LineRateConfig::default().build(&FlowContext { line_rate: flow.line_rate.min(flow.demand), ..*flow })
    }
}
