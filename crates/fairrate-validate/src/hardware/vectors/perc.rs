//! Control packets at a link of PERC, and its answers.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use fairrate_control::perc::{PercConfig, PercPort};
use fairrate_control::{Actions, AlgorithmSpec, PortAgent, PortContext, PortPacket, PortPacketKind, PortView};
use fairrate_sim::rng::{Purpose, Stream};
use fairrate_units::{Rate, Time};

use super::{Counted, Source, port};
use crate::hardware::recorded::{Call, record};

/// Flows of the table in the bench.
const FLOWS: usize = 64;
/// Units of a rate for each bit/s, as in the law's table.
const PER_BPS: f64 = 65_536.0;
/// Words of a control packet with one link: sequence number, exit, number of links passed, and the link's demand or
/// share.
const EXIT: usize = 1;
const HOPS: usize = 2;
const WORDS: usize = 3;

/// Returns the law's parameters. Flows are never forgotten: the module has no clock.
fn config() -> PercConfig {
    let mut config = PercConfig::default();
    config.base.state_timeout = 1e6;
    config
}

/// A file of control packets.
struct Packets<'a> {
    out: &'a mut dyn Write,
    capacity: u64,
    flows: BTreeSet<u32>,
    steps: u64,
}

impl<'a> Packets<'a> {
    fn new(out: &'a mut dyn Write, port: &PortContext) -> io::Result<Self> {
        let capacity = (port.rate.as_bps_f64() * PER_BPS) as u64;
        writeln!(out, "0 {capacity}")?;
        Ok(Self { out, capacity, flows: BTreeSet::new(), steps: 0 })
    }

    /// Writes a control packet of `flow` with a demand and its answer, in bit/s.
    fn asks(&mut self, flow: u32, demand: f64, answer: f64) -> io::Result<()> {
        self.flows.remove(&flow);
        let demand = ((demand.max(0.0) * PER_BPS) as u64).min(self.capacity);
        writeln!(self.out, "1 {flow} {demand} {} {}", (answer * PER_BPS).floor(), self.flows.len())?;
        self.flows.insert(flow);
        self.steps += 1;
        Ok(())
    }

    /// Writes an exit message of `flow`.
    fn leaves(&mut self, flow: u32) -> io::Result<()> {
        writeln!(self.out, "2 {flow}")?;
        self.flows.remove(&flow);
        self.steps += 1;
        Ok(())
    }
}

/// The message of a flow's control packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Message {
    /// The flow's demand in bit/s.
    Demand(f64),
    /// The flow's end.
    Exit,
}

/// Sends a control packet through the law. Returns its answer in bit/s.
fn through(law: &mut PercPort, flow: u32, message: Message) -> f64 {
    let header = &mut match message {
        Message::Demand(demand) => [1.0, 0.0, 0.0, demand],
        Message::Exit => [1.0, 1.0, 0.0, 0.0],
    };
    let kind = PortPacketKind::Control;
    let mut packet = PortPacket { flow, class: 0, kind, wire: 40, header, mark: false };
    law.on_enqueue(&PortView { now: Time::from_us(1), queue_bytes: 0 }, &mut packet, &mut Actions::default());
    header[WORDS]
}

/// Writes `n` random packets at links of 10, 40 and 100 Gb/s: demands without limit, near the fair share, far from it,
/// and 0.
pub fn random(out: &mut dyn Write, n: u64) -> io::Result<Counted> {
    let mut draws = Stream::new(1, 3, Purpose::Test);
    let cases = [(10, 64), (40, 20), (100, 64), (100, 3)];
    let mut steps = 0;
    for (gbps, most_flows) in cases {
        let context = port(Rate::from_gbps(gbps));
        let mut law = config().build_port(&context).expect("a switch has one");
        let mut packets = Packets::new(out, &context)?;
        let line = context.rate.as_bps_f64();
        // Few flows at times, many at others.
        let mut n_flows = most_flows;
        for _ in 0..n / cases.len() as u64 {
            if draws.below(500) == 0 {
                n_flows = 1 + draws.below(most_flows);
            }
            let flow = draws.below(n_flows) as u32;
            if draws.below(8) == 0 {
                let flow = draws.below(most_flows) as u32;
                through(&mut law, flow, Message::Exit);
                packets.leaves(flow)?;
                continue;
            }
            let demand = match draws.below(8) {
                0..=2 => f64::INFINITY,
                3 | 4 => line * draws.uniform() * 2.0 / n_flows as f64,
                5 => line * draws.uniform(),
                6 => draws.below(4) as f64 / PER_BPS,
                _ => line / (1 + draws.below(n_flows)) as f64,
            };
            let answer = through(&mut law, flow, Message::Demand(demand));
            packets.asks(flow, demand, answer)?;
        }
        steps += packets.steps;
    }
    Ok(Counted { steps, source: Source::Random })
}

/// Writes the control packets of the busiest port of `examples/perc-link.toml`.
pub fn recorded(out: &mut dyn Write, root: &Path) -> Result<Counted, String> {
    let name = "examples/perc-link.toml";
    let recording = record(&root.join(name), config())?;
    let mut packets = Packets::new(out, &recording.port).map_err(|e| e.to_string())?;
    for call in &recording.calls {
        let Call::Enqueue { flow, kind: PortPacketKind::Control, before, after } = call else { continue };
        let written = if before[EXIT] == 1.0 {
            packets.leaves(*flow)
        } else {
            // The word of this link comes after those that the packet has passed.
            let at = WORDS + before[HOPS] as usize;
            packets.asks(*flow, before[at], after[at])
        };
        written.map_err(|e| e.to_string())?;
        if FLOWS < packets.flows.len() {
            return Err(format!("{name}: more than {FLOWS} flows, the bench's table, are on a link at once"));
        }
    }
    Ok(Counted { steps: packets.steps, source: Source::Recorded(name) })
}
