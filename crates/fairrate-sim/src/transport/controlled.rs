//! Who controls a sender: a controller of its own, or that of its connection.

use super::lasting::Lasting;
use crate::ids::FlowId;
use fairrate_control::{Ack, Algorithm, Allowance, Controller, CoupledAlgorithm, CoupledController, Loss, Notice};
use fairrate_units::{Bytes, Time};

/// Who controls a sender.
#[allow(clippy::large_enum_variant)]
pub enum Controlled {
    /// A controller of its own.
    Own(Algorithm),
    /// One that the next flow of its connection goes on with.
    Lasting(Box<Lasting>),
    /// That of its connection.
    Coupled {
        /// The connection, by the user's flow.
        connection: FlowId,
        /// Which of its subflows this is.
        subflow: u32,
    },
}

/// The controller of a sender, for one call.
pub enum ControllerRef<'a> {
    /// Its own.
    Own(&'a mut Algorithm),
    /// One that outlives the flow.
    Lasting(&'a mut Lasting),
    /// That of its connection, where it is this subflow.
    Coupled(&'a mut CoupledAlgorithm, usize),
}

/// What a coupled controller does not know of does nothing.
impl Controller for ControllerRef<'_> {
    fn on_start(&mut self, now: Time) -> Allowance {
        match self {
            Self::Own(c) => c.on_start(now),
            Self::Lasting(c) => c.on_start(now),
            Self::Coupled(c, subflow) => c.on_start(now, *subflow),
        }
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        match self {
            Self::Own(c) => c.on_ack(ack),
            Self::Lasting(c) => c.on_ack(ack),
            Self::Coupled(c, subflow) => c.on_ack(*subflow, ack),
        }
    }
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance {
        match self {
            Self::Own(c) => c.on_loss(now, loss),
            Self::Lasting(c) => c.on_loss(now, loss),
            Self::Coupled(c, subflow) => c.on_loss(*subflow, now, loss),
        }
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        match self {
            Self::Own(c) => c.on_cnp(now),
            Self::Lasting(c) => c.on_cnp(now),
            Self::Coupled(c, subflow) => c.on_timer(*subflow, now),
        }
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        match self {
            Self::Own(c) => c.on_timer(now),
            Self::Lasting(c) => c.on_timer(now),
            Self::Coupled(c, subflow) => c.on_timer(*subflow, now),
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<Allowance> {
        match self {
            Self::Own(c) => c.on_sent(now, bytes),
            Self::Lasting(c) => c.on_sent(now, bytes),
            Self::Coupled(..) => None,
        }
    }
    fn on_idle(&mut self, now: Time, timeouts: u32) -> Option<Allowance> {
        match self {
            Self::Own(c) => c.on_idle(now, timeouts),
            Self::Lasting(c) => c.on_idle(now, timeouts),
            Self::Coupled(c, subflow) => c.on_idle(*subflow, now, timeouts),
        }
    }
    fn on_notice(&mut self, now: Time, notice: &Notice) -> Option<Allowance> {
        match self {
            Self::Own(c) => c.on_notice(now, notice),
            Self::Lasting(c) => c.on_notice(now, notice),
            Self::Coupled(..) => None,
        }
    }
    fn on_control(&mut self, now: Time, header: &[f64]) -> Option<Allowance> {
        if let Self::Own(c) = self { c.on_control(now, header) } else { None }
    }
    fn stamp(&mut self, now: Time, header: &mut [f64]) {
        if let Self::Own(c) = self {
            c.stamp(now, header);
        }
    }
    fn control_packet(&mut self, now: Time, unsent: u64, header: &mut [f64]) -> bool {
        if let Self::Own(c) = self { c.control_packet(now, unsent, header) } else { false }
    }
    fn timer_lead(&self) -> Time {
        match self {
            Self::Own(c) => c.timer_lead(),
            Self::Lasting(c) => c.timer_lead(),
            Self::Coupled(..) => Time::MAX,
        }
    }
}
