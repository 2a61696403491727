use fairrate_units::Time;

use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};

/// The control of one connection of several subflows at its sender: what one subflow learns may decide what another
/// may do.
///
/// Every method returns the allowance of the subflow it is about, in force from then on. Subflows are numbered from 0
/// in the order of the contexts the connection was built from. Calls come in non-decreasing time.
pub trait CoupledController {
    /// A subflow starts: its first window and rate.
    fn on_start(&mut self, now: Time, subflow: usize) -> Allowance;
    /// An acknowledgment arrived on a subflow; its numbers are those of the subflow's own bytes.
    fn on_ack(&mut self, subflow: usize, ack: &Ack<'_>) -> Allowance;
    /// A subflow has lost something; the transport retransmits by itself. A gap is told once for every window of data.
    fn on_loss(&mut self, subflow: usize, now: Time, loss: Loss) -> Allowance;
    /// The time of a subflow's [`Allowance::timer`] has come.
    fn on_timer(&mut self, subflow: usize, now: Time) -> Allowance;
    /// As [`Controller::on_idle`], for a subflow.
    fn on_idle(&mut self, _subflow: usize, _now: Time, _timeouts: u32) -> Option<Allowance> {
        None
    }
    /// A subflow is taken for dead, or alive again: a dead one does not count in what others are allowed.
    fn on_path(&mut self, _subflow: usize, _now: Time, _alive: bool) {}
}

/// How a connection's controller is made; for the algorithms that couple subflows.
pub trait CoupledSpec: AlgorithmSpec {
    /// The controller this configures.
    type Connection: CoupledController;
    /// A controller for a connection with one subflow for each context.
    fn build_connection(&self, subflows: &[FlowContext]) -> Self::Connection;
}

/// A connection of a single subflow, as the controller of a flow.
#[derive(Clone, Debug)]
pub struct Alone<C>(pub C);

impl<C: CoupledController> Controller for Alone<C> {
    fn on_start(&mut self, now: Time) -> Allowance {
        self.0.on_start(now, 0)
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.0.on_ack(0, ack)
    }
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance {
        self.0.on_loss(0, now, loss)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.0.on_timer(0, now)
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        self.0.on_timer(0, now)
    }
    fn on_idle(&mut self, now: Time, timeouts: u32) -> Option<Allowance> {
        self.0.on_idle(0, now, timeouts)
    }
}
