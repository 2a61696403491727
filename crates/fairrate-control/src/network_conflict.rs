//! The demands of two algorithms on one network, which they share: their union, or the demand in which they conflict.

use std::fmt::{self, Display, Formatter};

use crate::int::{IntCounter, IntFormat};
use crate::needs::{CircuitHelp, MarkedQueue, NetworkNeeds, Queueing, RedDefault, Telemetry};
use crate::port::PortScope;

impl NetworkNeeds {
    /// Returns what one network has to do for two algorithms that run in it together: all that `self` needs and all
    /// that `other` does. In the other order the result is the same, or the same conflict with its values exchanged.
    ///
    /// An algorithm with agents at ports, or with queues of its own, conflicts with itself too: needs do not say which
    /// agent or which queues these are, and two configurations of one algorithm have different ones.
    ///
    /// # Errors
    /// The two need different telemetry, default marking, queueing or circuits, or both have agents at ports.
    pub fn union(&self, other: &Self) -> Result<Self, NetworkConflict> {
        let queueing = match (self.queueing, other.queueing) {
            (Queueing::Any, one) | (one, Queueing::Any) => one,
            (Queueing::Priorities, Queueing::Priorities) => Queueing::Priorities,
            (a, b) => return Err(NetworkConflict::Queueing(a, b)),
        };
        let ports = match (self.ports, other.ports) {
            (PortScope::None, one) | (one, PortScope::None) => one,
            (a, b) => return Err(NetworkConflict::Ports(a, b)),
        };
        Ok(Self {
            telemetry: either(self.telemetry, other.telemetry, NetworkConflict::Telemetry)?,
            ecn: self.ecn || other.ecn,
            red: either(self.red, other.red, NetworkConflict::Marking)?,
            ports,
            queueing,
            circuits: either(self.circuits, other.circuits, NetworkConflict::Circuits)?,
        })
    }
}

/// Returns the need that `a` or `b` has, if any; returns their `conflict` if they differ.
fn either<T: Copy + PartialEq>(
    a: Option<T>,
    b: Option<T>,
    conflict: fn(T, T) -> NetworkConflict,
) -> Result<Option<T>, NetworkConflict> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => Err(conflict(a, b)),
        _ => Ok(a.or(b)),
    }
}

/// A support that two algorithms need from one network in different ways, with the need of the first and of the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NetworkConflict {
    /// The telemetry that each reads.
    Telemetry(Telemetry, Telemetry),
    /// The default marking of each.
    Marking(RedDefault, RedDefault),
    /// The ports at which each has agents.
    Ports(PortScope, PortScope),
    /// The queueing of data under each; both may have queues of their own.
    Queueing(Queueing, Queueing),
    /// The limits of VOQs that each needs.
    Circuits(CircuitHelp, CircuitHelp),
}

impl Display for NetworkConflict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Telemetry(a, b) => {
                let (a, b) = (telemetry(*a), telemetry(*b));
                write!(f, "the first reads telemetry of {a}, the second of {b}, and a switch stamps one kind")
            }
            Self::Marking(a, b) => {
                let (a, b) = (marking(a), marking(b));
                write!(f, "the first is made for ECN marking {a}, the second {b}, and the scenario gives none")
            }
            Self::Ports(a, b) => {
                let (a, b) = (ports(*a), ports(*b));
                write!(f, "the first has agents at {a}, the second at {b}, and a port runs one agent")
            }
            Self::Queueing(a, b) => {
                let (a, b) = (queueing(*a), queueing(*b));
                write!(f, "the first queues data {a}, the second {b}, and a port queues in one way")
            }
            Self::Circuits(a, b) => {
                let (a, b) = (circuits(a), circuits(b));
                write!(f, "the first needs VOQs of {a}, the second of {b}, and a ToR has one limit")
            }
        }
    }
}

impl std::error::Error for NetworkConflict {}

fn telemetry(Telemetry { counter, format }: Telemetry) -> &'static str {
    match (counter, format) {
        (IntCounter::Transmitted, IntFormat::Exact) => "transmitted bytes in exact records",
        (IntCounter::Transmitted, IntFormat::Packed) => "transmitted bytes in packed records",
        (IntCounter::Enqueued, IntFormat::Exact) => "enqueued bytes in exact records",
        (IntCounter::Enqueued, IntFormat::Packed) => "enqueued bytes in packed records",
    }
}

fn marking(RedDefault { kmin, kmax, pmax, per_rate, queue }: &RedDefault) -> String {
    let rate = per_rate.map_or_else(|| "any rate".to_owned(), |rate| rate.to_string());
    let queue = match queue {
        MarkedQueue::Joined => "the queue joined".to_owned(),
        MarkedQueue::Left => "the queue left".to_owned(),
        MarkedQueue::Phantom(percent) => format!("a phantom queue at {percent} %"),
    };
    let range = if kmin == kmax && 1.0 <= *pmax {
        format!("above {kmin}")
    } else {
        format!("from {kmin} to {kmax} with probability {pmax}")
    };
    format!("{range} of {queue} at {rate}")
}

fn ports(scope: PortScope) -> &'static str {
    match scope {
        PortScope::None => "no ports",
        PortScope::Switches => "the ports of switches",
        PortScope::All => "all ports",
    }
}

fn queueing(queueing: Queueing) -> &'static str {
    match queueing {
        Queueing::Any => "in any way",
        Queueing::Priorities => "by priorities",
        Queueing::Own => "in queues of its own",
    }
}

fn circuits(CircuitHelp { voq, enlarged, ahead }: &CircuitHelp) -> String {
    format!("{voq}, {enlarged} from {ahead} before a circuit")
}
