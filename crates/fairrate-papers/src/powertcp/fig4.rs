//! Figure 4: ten flows, and the answers of 255 hosts, join a long flow at its receiver.

use fairrate_report::figure::{Axis, Figure as Panel};
use fairrate_units::Time;

use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, ms_from};

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig4",
    title: "Reaction to incasts of 10:1 and 255:1",
    kind: Kind::Simulation,
    quick_s: 5,
    runs,
    panels,
    claims,
};

/// The rows of the figure: a name, the scenario, and what is set in it.
pub const ROWS: [(&str, &str); 2] = [
    ("10:1", include_str!("../../../../examples/incast10.toml")),
    ("255:1", include_str!("../../../../examples/incast255.toml")),
];
const ALGORITHMS: [&str; 5] = ["powertcp", "theta-powertcp", "hpcc", "timely", "homa"];
/// HOMA as the paper has it: one message granted at a time. Its classes are not for pauses.
const HOMA: [(&str, &str); 2] = [("transport.homa.overcommitment", "1"), ("switch.pfc", "false")];
const BURST: Time = Time::from_ms(1);
const END: Time = Time::from_ms(5);

fn runs(_: &Scale) -> Vec<Run> {
    let run = |(name, toml): (&'static str, &'static str), cc: &'static str| {
        let sets = if cc == "homa" { &HOMA[..] } else { &[] };
        Run::of(name, toml, cc, sets, read)
    };
    ROWS.iter().flat_map(|row| ALGORITHMS.map(|cc| run(*row, cc))).collect()
}

pub fn read(record: &Record) -> Point {
    let port = record.port("tor0", "h16");
    let after = port.within(BURST + Time::from_us(200), END);
    // Bins of 100 samples, which are 100 us.
    let least = after.throughput_gbps(100).iter().map(|bin| bin.1 * 1e9 / port.bps).reduce(f64::min);
    Point::of([
        ("peak", port.within(BURST, END).peak_queue_kb().unwrap_or(f64::NAN)),
        ("last", port.within(END.saturating_sub(Time::from_ms(1)), END).mean_queue_kb().unwrap_or(f64::NAN)),
        ("least", least.unwrap_or(f64::NAN)),
    ])
    .with("queue", port.queue_kb())
    .with("throughput", port.throughput_gbps(20))
}

fn panels(points: &Points) -> Vec<Panel> {
    let axis = || Axis { link: "time", ..Axis::new("time since the burst (ms)") };
    let row = |(name, _): &(&'static str, &'static str)| {
        let lines = |what: &str| {
            let line = |cc| Line::of(cc, &ms_from(points.series(name, cc, what), 1e-3, (-0.25, 3.0)));
            ALGORITHMS.map(line).into()
        };
        let throughput = Axis::new("throughput (Gb/s)").showing(0.0, 26.0);
        [
            panel(format!("{name}: throughput at the receiver"), axis(), throughput, lines("throughput")),
            panel(format!("{name}: its queue"), axis(), Axis::new("queue (KB)"), lines("queue")),
        ]
    };
    ROWS.iter().flat_map(row).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    let row = |(name, _): &(&'static str, &'static str)| {
        let of = |cc: &str, what: &str| points.mean(name, cc, what);
        let exact = |id: &str, text: &str, rule, unit, value| {
            Claim::exact(&format!("{name}-{id}"), &format!("{name}: {text}"), rule, unit, value)
        };
        let ratio = of("hpcc", "peak").zip(of("powertcp", "peak")).map(|(hpcc, powertcp)| hpcc / powertcp);
        // "Near-zero": a fourteenth of the 437 KB that ten windows of a BDP are. "No loss": 0.98. Both are ours.
        let mut claims: Vec<Claim> = ["powertcp", "theta-powertcp"]
            .into_iter()
            .flat_map(|cc| {
                let near_zero = format!("{cc} comes back to a near-zero queue (mean of the last ms)");
                let no_loss = format!("{cc} loses no throughput (least of any 100 us, share of the link)");
                [
                    exact(&format!("queue-{cc}"), &near_zero, Rule::AtMost(30.0), "KB", of(cc, "last")),
                    exact(&format!("throughput-{cc}"), &no_loss, Rule::AtLeast(0.98), "", of(cc, "least")),
                ]
            })
            .collect();
        // The text gives the factor for 10:1, and says only that it is higher for 255:1.
        let (times, least) = if *name == "10:1" { ("twice", 2.0) } else { ("above", 1.0) };
        let peak = format!("HPCC's queue peaks {times} PowerTCP's");
        claims.push(exact("hpcc-peak", &peak, Rule::AtLeastTimes(least), "", ratio));
        let loses = |cc: &str| {
            exact(
                &format!("loses-{cc}"),
                &format!("{cc} loses throughput after reacting"),
                Rule::AtMost(0.9),
                "",
                of(cc, "least"),
            )
        };
        claims.extend(["hpcc", "timely"].map(loses));
        claims.push(exact("homa-peak", "HOMA's queue peaks at", Rule::Words, "KB", of("homa", "peak")));
        claims
    };
    ROWS.iter().flat_map(row).collect()
}
