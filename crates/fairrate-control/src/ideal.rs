//! `ideal`: no algorithm, but what algorithms are measured against. Every flow has its exact weighted max-min fair rate
//! at every moment, as if an oracle that knows all flows, paths and demands told each sender at once. PERC (L. Jose et
//! al., HotNets 2015, section 4) normalises completion times by such a reference.
//!
//! There is nothing for a sender to decide. [`Needs::oracle`] asks the simulator to compute the rates itself, at every
//! arrival and departure, and to serve flows as fluids; this controller is never called there. Elsewhere it sends at
//! line rate, which is what it has alone.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, Needs};
use crate::port::NoPort;

algorithm_config! {
    /// `ideal` has no parameters.
    pub struct IdealConfig {}
}

impl AlgorithmSpec for IdealConfig {
    type Controller = Ideal;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { oracle: true, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Ideal {
        Ideal { line_rate: flow.line_rate.min(flow.demand) }
    }
}

/// A flow whose rate comes from elsewhere.
#[derive(Clone, Debug)]
pub struct Ideal {
    line_rate: Rate,
}

impl Ideal {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::MAX, rate: self.line_rate, timer: Time::MAX }
    }
}

impl Controller for Ideal {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, _: &Ack<'_>) -> Allowance {
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.allowance()
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
}
