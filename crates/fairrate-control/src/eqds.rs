//! `eqds`: an edge-queued datagram service. V. Olteanu et al., "An edge-queued datagram service for all datacenter
//! traffic", NSDI 2022. The rules and numbers are those of the authors' simulator (github.com/Broadcom/csg-htsim at
//! 841d9e7, `eqds.cpp` and `main_eqds.cpp`).
//!
//! | simulator                        | here                          | value |
//! |----------------------------------|-------------------------------|-------|
//! | `PULL_QUANTUM`                   | `QUANTUM`                     | 512 B |
//! | `_credit_per_pull`               | `TURN`                        | 8 quanta |
//! | `_maxwnd`, `_credit_spec` at first | `window`                    | 50 packets of 4,150 B |
//! | `_pktTime`                       | `pacing`, `pull_time`         | 0.99 x 8 x (4,160 + 38) B / R |
//! | `_bytes_unacked_threshold`       | `ack_every` of `[transport.uet]` | 16,384 B |
//! | `DEFAULT_EQDS_RTO_MIN`           | `rto`                         | 100 us |
//! | `DEFAULT_QUEUE_SIZE`             | `trim_limit` of `[switch]`    | 35 packets |
//! | `_no_of_paths`, `_max_penalty`   | `entropy = "bitmap-once"`, `entropy_values` | 64, 1 |
//!
//! EQDS is a part of the transport, as `rccc` is, which grew out of it. A sender's controller decides nothing and sends
//! at line rate what it has credit for:
//!
//! 1. A message begins with 50 packets of speculative credit. The first answer ends speculation. From then on each
//!    attempt to send on what is left of it takes a packet from it and sends none.
//! 2. Each new data packet asks for min(bytes never sent, 50 packets) - credit, rounded up to quanta, above the pulls
//!    so far.
//! 3. A receiver pulls 8 quanta a turn: first from messages that have had packets cut (9 quanta are owed for each),
//!    then from those that ask for more than they were given, then unasked from one that is under way, up to 50 packets
//!    ahead.
//! 4. A pull allows its bytes, and a packet may go while there is credit, which it may take below zero.
//! 5. A packet asks for an acknowledgment if it is the last, was sent before, or took the credit that was pulled below
//!    zero.
//! 6. A packet that is not acknowledged in time is to be sent again. Without credit its sender asks for it by a request
//!    of 64 B.
//!
//! Paper and program. The paper paces pulls at just less than the link's rate. The program multiplies the time of a
//! packet of 4,198 B by 0.99 where it would have to divide by it; as a pull is for 4,096 B, that gives 0.986 of the
//! link (`pull_time = "frame"`, the default). `pull_time = "credit"` gives `pacing` of it. The class has a timeout of
//! 100 us, the program of 150 us and six full queues (219.72 us at 100 Gb/s).
//!
//! Readings: a message asks again while packets are owed to it, which the program forgets if its last packets have been
//! cut. The unasked pulls end with the message. A request has no packet number of its own; it is answered by an
//! acknowledgment and the last pull again. A sender that has waited for ten timeouts with nothing in flight sends one
//! too: in the program the loss of all pulls is final.

use fairrate_units::{Bytes, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::credits::{CreditRule, Credits, DatagramDefaults, FirstWindow};
use crate::line_rate::LineRateConfig;
use crate::needs::{FeedbackNeeds, Needs};
use crate::port::NoPort;

pub use crate::line_rate::LineRate as Eqds;

/// Bytes of a unit of credit.
const QUANTUM: Bytes = Bytes::new(512);
/// Units of a pull.
const TURN: u64 = 8;
/// The packet whose time is that of a pull: 4,096 B and a header of 64 B, and 38 B of an Ethernet frame around it.
const FRAME: Bytes = Bytes::new(4_160 + 38);
/// A full packet on the wire.
const PACKET: Bytes = Bytes::new(4_150);

choice! {
    /// The time that a pull takes of a receiver's link.
    pub enum PullTime {
        /// `pacing` times a frame of 4,198 B, as the authors' simulator has it.
        Frame = "frame",
        /// The bytes that it allows, at `pacing` of the link's rate.
        Credit = "credit",
    }
}

algorithm_config! {
    /// Parameters of EQDS. The defaults are those of csg-htsim.
    pub struct EqdsConfig {
        /// Rate of pulls as a share of the receiver's link.
        pacing: f64 = 0.99, in 0.01..=1.0, tune = Linear(0.8, 1.0);
        /// Full packets that a sender may send unasked, and most that it may ask for.
        window: u32 = 50, in 1.0..=1_000_000.0, tune = Log(5, 500);
        /// Time of a pull: `pacing` times a frame of 4,198 B (csg-htsim), or its 4,096 B at `pacing` of the rate (the
        /// paper).
        pull_time: PullTime = PullTime::Frame;
    }
}

impl AlgorithmSpec for EqdsConfig {
    type Controller = Eqds;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let frame = (self.pull_time == PullTime::Frame).then_some(FRAME);
        let credit = Credits {
            pacing: self.pacing,
            window: FirstWindow::Packets(self.window),
            rule: CreditRule::Whole { quantum: QUANTUM, turn: TURN, frame },
            patience: 10,
            fabric: None,
        };
        Needs {
            feedback: FeedbackNeeds { uet: true, credit: Some(credit), ..FeedbackNeeds::NOTHING },
            datagrams: DatagramDefaults {
                rto: Time::from_us(100),
                trim_limit: Some(Bytes::new(35 * PACKET.as_u64())),
                ..DatagramDefaults::UET
            },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Eqds {
        LineRateConfig::default().build(flow)
    }
}
