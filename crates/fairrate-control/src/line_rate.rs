//! `line-rate`: no congestion control. Every flow sends at its NIC's rate; flow control (PFC) alone keeps the network
//! alive. It is the baseline that shows the benefit of congestion control.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::needs::Needs;
use crate::port::NoPort;

algorithm_config! {
    /// `line-rate` has no parameters.
    pub struct LineRateConfig {}
}

impl AlgorithmSpec for LineRateConfig {
    type Controller = LineRate;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs::NOTHING
    }
    fn build(&self, flow: &FlowContext) -> LineRate {
        LineRate { line_rate: flow.line_rate }
    }
}

/// A flow without congestion control.
#[derive(Clone, Debug)]
pub struct LineRate {
    line_rate: Rate,
}

impl LineRate {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::MAX, rate: self.line_rate, timer: Time::MAX }
    }
}

impl Controller for LineRate {
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
