use fairrate_units::{Bytes, Time};

use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, Trimmed};
use crate::forward_controller;
use crate::int::IntHop;
use crate::port::Notice;

/// The state of a subflow's path, as far as its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The path delivers; it is the state at the start.
    Alive,
    /// The path has delivered nothing for several timeouts.
    Dead,
}

/// The control of one connection of several subflows at its sender: an event on one subflow may change the allowance of
/// another.
///
/// Each decision returns the [`Allowance`] of `subflow`, in force from then on. Subflows are numbered from 0 in the
/// order of the contexts from which the connection was built. The times of calls never decrease.
pub trait CoupledController {
    /// Starts `subflow` and returns its initial window and rate.
    fn on_start(&mut self, now: Time, subflow: usize) -> Allowance;
    /// Handles an acknowledgment that has arrived on `subflow`; its numbers count the subflow's own bytes.
    fn on_ack(&mut self, subflow: usize, ack: &Ack<'_>) -> Allowance;
    /// Handles a loss on `subflow`; the transport retransmits by itself. A gap is reported once per window of data.
    fn on_loss(&mut self, subflow: usize, now: Time, loss: Loss) -> Allowance;
    /// Does the same as [`Controller::on_outstanding`], for a subflow.
    fn on_outstanding(&mut self, _subflow: usize, _in_flight: u64, _snd_nxt: u64) {}
    /// Handles the expiry of the [`Allowance::timer`] of `subflow`.
    fn on_timer(&mut self, subflow: usize, now: Time) -> Allowance;
    /// Does the same as [`Controller::on_cnp`], for a subflow. By default it calls [`CoupledController::on_timer`].
    fn on_cnp(&mut self, subflow: usize, now: Time) -> Allowance {
        self.on_timer(subflow, now)
    }
    /// Does the same as [`Controller::on_sent`], for a subflow.
    fn on_sent(&mut self, _subflow: usize, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        None
    }
    /// Does the same as [`Controller::on_trimmed`], for a subflow.
    fn on_trimmed(&mut self, subflow: usize, trimmed: &Trimmed) -> Allowance {
        self.on_loss(subflow, trimmed.now, Loss::Gap)
    }
    /// Does the same as [`Controller::on_idle`], for a subflow.
    fn on_idle(&mut self, _subflow: usize, _now: Time, _timeouts: u32) -> Option<Allowance> {
        None
    }
    /// Does the same as [`Controller::on_notice`], for a subflow.
    fn on_notice(&mut self, _subflow: usize, _now: Time, _notice: &Notice) -> Option<Allowance> {
        None
    }
    /// Does the same as [`Controller::on_control`], for a subflow.
    fn on_control(&mut self, _subflow: usize, _now: Time, _header: &[f64]) -> Option<Allowance> {
        None
    }
    /// Does the same as [`Controller::stamp`], for a subflow.
    fn stamp(&mut self, _subflow: usize, _now: Time, _header: &mut [f64]) {}
    /// Does the same as [`Controller::control_packet`], for a subflow.
    fn control_packet(&mut self, _subflow: usize, _now: Time, _unsent: u64, _header: &mut [f64]) -> bool {
        false
    }
    /// Does the same as [`Controller::timer_lead`], for a subflow.
    fn timer_lead(&self, _subflow: usize) -> Time {
        Time::MAX
    }
    /// Does the same as [`Controller::last_telemetry`], for a subflow.
    fn last_telemetry(&self, _subflow: usize) -> &[IntHop] {
        &[]
    }
    /// Records that the path of `subflow` is considered dead, or alive again. A dead subflow does not count in the
    /// allowances of the others.
    fn on_path(&mut self, _subflow: usize, _now: Time, _state: PathState) {}
}

/// The configuration of an algorithm that couples subflows: the constructor of a connection's controller.
pub trait CoupledSpec: AlgorithmSpec {
    /// The controller of a connection that this configures.
    type Connection: CoupledController;
    /// Builds the controller of a connection with one subflow for each context in `subflows`.
    fn build_connection(&self, subflows: &[FlowContext]) -> Self::Connection;
}

/// The controller of a flow that is a connection of a single subflow.
#[derive(Clone, Debug)]
pub struct Alone<C>(pub C);

impl<C: CoupledController> Controller for Alone<C> {
    forward_controller!(self => { Self(connection) => connection at 0 });
}
