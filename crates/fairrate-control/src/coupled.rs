use fairrate_units::{Bytes, Time};

use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::forward_controller;
use crate::port::Notice;

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
    /// As [`Controller::on_cnp`], for a subflow. Unless an algorithm says otherwise, it is a chance to decide as a timer is.
    fn on_cnp(&mut self, subflow: usize, now: Time) -> Allowance {
        self.on_timer(subflow, now)
    }
    /// As [`Controller::on_sent`], for a subflow.
    fn on_sent(&mut self, _subflow: usize, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        None
    }
    /// As [`Controller::on_idle`], for a subflow.
    fn on_idle(&mut self, _subflow: usize, _now: Time, _timeouts: u32) -> Option<Allowance> {
        None
    }
    /// As [`Controller::on_notice`], for a subflow.
    fn on_notice(&mut self, _subflow: usize, _now: Time, _notice: &Notice) -> Option<Allowance> {
        None
    }
    /// As [`Controller::on_control`], for a subflow.
    fn on_control(&mut self, _subflow: usize, _now: Time, _header: &[f64]) -> Option<Allowance> {
        None
    }
    /// As [`Controller::stamp`], for a subflow.
    fn stamp(&mut self, _subflow: usize, _now: Time, _header: &mut [f64]) {}
    /// As [`Controller::control_packet`], for a subflow.
    fn control_packet(&mut self, _subflow: usize, _now: Time, _unsent: u64, _header: &mut [f64]) -> bool {
        false
    }
    /// As [`Controller::timer_lead`], for a subflow.
    fn timer_lead(&self, _subflow: usize) -> Time {
        Time::MAX
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
    forward_controller!(self => { Self(connection) => connection at 0 });
}
