//! The common part of Table I and Figures 4 and 5: the testbed's algorithms, and the marks of its switches.

use fairrate_sim::FlowId;
use fairrate_units::Time;

use crate::experiment::Run;
use crate::record::{Record, seconds};
use crate::rtts::Rtts;

/// Algorithms of the paper's testbed, and XMP and OLIA.
pub const ALL: [&str; 6] = ["ratemp", "xmp", "dctcp", "balia", "lia", "olia"];

const BOTTLENECKS: &str = include_str!("../../scenarios/ratemp-bottlenecks.toml");
const LINKS: &str = include_str!("../../scenarios/ratemp-bottlenecks.txt");

/// Returns the marks of the testbed: a step for DCTCP and XMP, none for algorithms that react to losses.
pub fn marks(cc: &str) -> &'static [(&'static str, &'static str)] {
    match cc {
        "ratemp" => &[],
        "xmp" | "dctcp" => &[("switch.ecn.kmin", "30KB"), ("switch.ecn.kmax", "30KB"), ("switch.ecn.at", "enqueue")],
        _ => &[("switch.ecn", "false")],
    }
}

/// Returns a run of Table I and Figure 4: a connection (flow 0) over the bottlenecks AB and CD, and a flow on AB (flow
/// 1) from 5 to 10 s. The RTTs of the connection are counted from 1 s on.
pub fn bottlenecks(
    cc: &str,
    sets: &[(&str, &str)],
    seed: u64,
    read: impl Fn(&Record) -> crate::points::Point + Send + Sync + 'static,
) -> Run {
    let sets = [marks(cc), sets].concat();
    let run = Run::of("bottlenecks", BOTTLENECKS, cc, &sets, read);
    run.with_file("ratemp-bottlenecks.txt", LINKS).counting(Rtts::of(FlowId(0), Time::from_ms(1_000))).seeded(seed)
}

/// Returns a flow's throughput between two times, in Mb/s on the wire; NaN without two samples of the flow.
pub fn mbps(record: &Record, flow: u32, from_s: f64, to_s: f64) -> f64 {
    let inside = |t: Time| from_s <= seconds(t) && seconds(t) <= to_s;
    let mut samples = record.rates.iter().filter(|rate| rate.flow.0 == flow && inside(rate.t));
    let (Some(first), Some(last)) = (samples.next(), samples.next_back()) else { return f64::NAN };
    let bytes = (last.delivered_bytes - first.delivered_bytes) as f64 * record.wire_factor();
    bytes * 8e-6 / (seconds(last.t) - seconds(first.t))
}
