//! The controller of a sender: its own, or the one of its connection.

use super::lasting::Lasting;
use crate::ids::FlowId;
use fairrate_control::{Algorithm, Controller, CoupledAlgorithm, CoupledController, forward_controller};

/// The controller of a sender.
#[allow(clippy::large_enum_variant)]
pub enum Controlled {
    /// A controller of its own.
    Own(Algorithm),
    /// A controller that the next flow of the same connection continues to use.
    Lasting(Box<Lasting>),
    /// The controller of its connection.
    Coupled {
        /// The connection, identified by the user's flow.
        connection: FlowId,
        /// The number of this subflow in the connection.
        subflow: u32,
    },
}

impl Controlled {
    /// Returns the telemetry that the sender's own controller keeps.
    pub(crate) fn last_telemetry(&self) -> &[fairrate_control::IntHop] {
        if let Self::Own(algorithm) = self { algorithm.last_telemetry() } else { &[] }
    }
}

/// The controller of a sender, for one call.
pub enum ControllerRef<'a> {
    /// Its own.
    Own(&'a mut Algorithm),
    /// A controller that outlives the flow.
    Lasting(&'a mut Lasting),
    /// The controller of its connection, with the number of this subflow.
    Coupled(&'a mut CoupledAlgorithm, usize),
}

impl Controller for ControllerRef<'_> {
    forward_controller!(self => {
        Self::Own(c) => c,
        Self::Lasting(c) => c,
        Self::Coupled(c, subflow) => c at *subflow,
    });
}

#[cfg(test)]
mod tests {
    use fairrate_control::forward::{Recorder, call_all};

    use super::*;

    /// Expects that every method of a controller reaches `recorder` once, and that its answers are returned.
    fn expect_all(mut controller: ControllerRef<'_>, recorder: &Recorder, subflow: Option<usize>) {
        recorder.take();
        let answers = call_all(&mut controller);
        let reached = recorder.take();
        assert_eq!(reached, answers.iter().map(|(method, _)| (*method, subflow)).collect::<Vec<_>>());
        assert_eq!(
            answers.iter().map(|(_, number)| *number).collect::<Vec<_>>(),
            (1..=answers.len() as u64).collect::<Vec<_>>()
        );
    }

    #[test]
    fn every_call_reaches_who_controls_a_sender() {
        let recorder = Recorder::default();
        let mut own = Algorithm::Custom(Box::new(recorder.clone()));
        expect_all(ControllerRef::Own(&mut own), &recorder, None);
        let mut lasting = Lasting::new(own);
        expect_all(ControllerRef::Lasting(&mut lasting), &recorder, None);
        let mut coupled = CoupledAlgorithm::Custom(Box::new(recorder.clone()));
        expect_all(ControllerRef::Coupled(&mut coupled, 5), &recorder, Some(5));
    }
}
