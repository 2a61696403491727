//! `ndp`: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017. The rules and numbers are those of the authors' simulator (github.com/Broadcom/csg-htsim at 841d9e7,
//! `ndp.cpp` and `main_ndp.cpp`).
//!
//! | simulator                        | here                          | value |
//! |----------------------------------|-------------------------------|-------|
//! | `packet_size`, `ACKSIZE`         | `mtu`, `header`               | 9,000 B of payload and 64 B |
//! | `_cwnd`                          | `window`                      | 15 packets |
//! | `_packet_drain_time`             | `pacing`                      | (9,000 + 64) B x 8 / (0.99 R) |
//! | `_pull_no`, `_max_pull`          | numbers of credit, in packets |       |
//! | `setMinRTO`                      | `rto`                         | 50 ms |
//! | `DEFAULT_QUEUE_SIZE`             | `trim_limit` of `[switch]`    | 15 x 9,000 B |
//! | `SCATTER_PERMUTE`                | `entropy = "permutation"`     | all paths |
//!
//! NDP is a part of the transport, as `rccc` is. A sender's controller decides nothing and sends at line rate what it
//! may:
//!
//! 1. A message begins with a window of 15 packets at line rate.
//! 2. A receiver answers each packet at once: a whole one with an ACK, one that was cut to its header with a NACK.
//! 3. Each of both earns its message one pull. Pulls of a host share a pacer, one for each (packet + 64 B)/(0.99 R), in
//!    turn over its messages. The pacer is free for an answer that comes after such a time without pulls: it carries
//!    the pull itself.
//! 4. Pull numbers are cumulative: a sender sends as many packets as the number has advanced, those that were cut
//!    first.
//! 5. A message that has arrived takes its pulls back.
//! 6. Each packet takes the next path of a random permutation of all paths, which is drawn again when it is used up.
//! 7. A packet without an answer in time is sent again at once, without a pull.
//!
//! Paper and program. The paper has queues of 8 packets, a timeout of 1 ms (`cc = "ndp@paper"`), and a weighted round
//! robin of headers and data, 10:1, where the program and the switches here send headers first. The program's packets
//! have 9,064 B on the wire, so 14 of them fit into 15 x 9,000 B. Its timeouts are compiled out, and so is the paper's
//! return of headers to their sender; without either a header that is lost is final.
//!
//! Readings: all packets but the last are full, and the last has the rest (the program rounds sizes up to full
//! packets). A sender that has waited for a timeout with nothing in flight asks for the last pull again: in the program
//! the loss of all pulls is final.

use fairrate_units::{Bytes, Time};

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::credits::{CreditRule, Credits, DatagramDefaults, FirstWindow};
use crate::line_rate::LineRateConfig;
use crate::needs::{FeedbackNeeds, Needs};
use crate::port::NoPort;

pub use crate::line_rate::LineRate as Ndp;

/// Payload of a full packet.
const MTU: Bytes = Bytes::new(9_000);

algorithm_config! {
    /// Parameters of NDP. The defaults are those of csg-htsim.
    pub struct NdpConfig {
        /// Rate of pulls as a share of the receiver's link.
        pacing: f64 = 0.99, in 0.01..=1.0, tune = Linear(0.8, 1.0);
        /// Packets that a sender sends unasked.
        window: u32 = 15, in 1.0..=1_000_000.0, tune = Log(2, 150);
    }
}

impl AlgorithmSpec for NdpConfig {
    type Controller = Ndp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let credit = Credits {
            pacing: self.pacing,
            window: FirstWindow::Packets(self.window),
            rule: CreditRule::Arrivals,
            patience: 1,
            fabric: None,
        };
        Needs {
            feedback: FeedbackNeeds { uet: true, credit: Some(credit), ..FeedbackNeeds::NOTHING },
            datagrams: DatagramDefaults {
                mtu: MTU,
                // Each packet is acknowledged.
                ack_every: Bytes::new(1),
                rto: Time::from_ms(50),
                trim_limit: Some(Bytes::new(15 * MTU.as_u64())),
            },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Ndp {
        LineRateConfig::default().build(flow)
    }
}
