//! Figure 4: ten flows, and the answers of 255 hosts, join a long flow at its receiver.

use fairrate_report::panel::{Axis, Panel};
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

/// The rows of the figure: a name and the scenario.
pub const ROWS: [(&str, &str); 2] = [
    ("10:1", include_str!("../../scenarios/incast10.toml")),
    ("255:1", include_str!("../../scenarios/incast255.toml")),
];
const ALGORITHMS: [&str; 5] = ["powertcp", "theta-powertcp", "hpcc", "timely", "homa"];
/// Settings of HOMA in the paper: one message granted at a time. Its classes are not for pauses.
const HOMA: [(&str, &str); 2] = [("transport.homa.overcommitment", "1"), ("switch.pfc", "false")];
/// Suffix of runs that are not drawn, for claims: algorithms in the forms of the paper's public artifact.
const FORMS: &str = ", artifact's forms";
/// Name of θ-PowerTCP with the artifact's RTT of each path in place of one τ for the network.
const OWN_TAU: &str = "theta-powertcp, RTTs of its paths";
const BURST: Time = Time::from_ms(1);
const END: Time = Time::from_ms(5);

fn runs(_: &Scale) -> Vec<Run> {
    let row = |&(name, toml): &(&'static str, &'static str)| {
        let drawn = ALGORITHMS.map(|cc| Run::of(name, toml, cc, if cc == "homa" { &HOMA } else { &[] }, read));
        let forms = |cc: &&str| Run::of(&format!("{name}{FORMS}"), toml, cc, &[("profile", "ns3")], read);
        let forms: Vec<Run> = ALGORITHMS[..4].iter().map(forms).collect();
        let own_tau =
            [("transport.theta-powertcp.base_rtt", "min-seen"), ("transport.theta-powertcp.update", "per-ack")];
        let own_tau = Run::of(name, toml, "theta-powertcp", &own_tau, read).called(OWN_TAU);
        drawn.into_iter().chain(forms).chain([own_tau])
    };
    ROWS.iter().flat_map(row).collect()
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
    let row = |(name, _): &(&str, &str)| {
        let forms = format!("{name}{FORMS}");
        [of_powertcp(points, name, name), of_powertcp(points, name, &forms), of_homa(points, name)].concat()
    };
    ROWS.iter().flat_map(row).collect()
}

/// Our limits: "near-zero" is a fourteenth of the 437 KB of ten windows of a BDP, and "no loss" is 0.98.
const NEAR_ZERO: Rule = Rule::AtMost(30.0);
const NO_LOSS: Rule = Rule::AtLeast(0.98);

/// Returns a claim about a run.
fn exact(run: &str, id: &str, text: &str, rule: Rule, unit: &'static str, value: Option<f64>) -> Claim {
    Claim::exact(&format!("{run}-{id}"), &format!("{run}: {text}"), rule, unit, value)
}

fn of_powertcp(points: &Points, row: &str, run: &str) -> Vec<Claim> {
    let of = |cc: &str, what: &str| points.mean(run, cc, what);
    let mut claims = Vec::new();
    for cc in ["powertcp", "theta-powertcp"] {
        let text = format!("{cc} comes back to a near-zero queue (mean of the last ms)");
        let near_zero = exact(run, &format!("queue-{cc}"), &text, NEAR_ZERO, "KB", of(cc, "last"));
        let own_tau = points.mean(row, OWN_TAU, "last").filter(|_| cc != "powertcp" && row == run);
        claims.push(match own_tau {
            Some(kb) => near_zero.because(format!(
                "One \u{3c4} for the network, 29 us, hides a queue of 75 KB from flows whose base RTT is 5 us. With the RTTs of \
                 their paths, an update an ACK: {kb:.1} KB."
            )),
            None => near_zero,
        });
        let text = format!("{cc} loses no throughput (least of any 100 us, share of the link)");
        claims.push(exact(run, &format!("throughput-{cc}"), &text, NO_LOSS, "", of(cc, "least")));
    }
    // The text gives a factor for 10:1 only. For 255:1 it speaks of similar benefits.
    if row == "10:1" {
        let ratio = of("hpcc", "peak").zip(of("powertcp", "peak")).map(|(hpcc, powertcp)| hpcc / powertcp);
        let text = "HPCC's queue peaks twice PowerTCP's";
        claims.push(exact(run, "hpcc-peak", text, Rule::AtLeastTimes(2.0), "", ratio));
    }
    for cc in ["hpcc", "timely"] {
        let text = format!("{cc} loses throughput after reacting");
        claims.push(exact(run, &format!("loses-{cc}"), &text, Rule::AtMost(0.9), "", of(cc, "least")));
    }
    claims
}

/// Returns claims about HOMA: "While HOMA sustains throughput", it "does not accurately control" queues: at 255:1 it
/// "reaches approximately 500KB higher queue-length compared to PowerTCP and cannot converge to near-zero queue-lengths
/// quickly".
fn of_homa(points: &Points, row: &str) -> Vec<Claim> {
    let of = |what: &str| points.mean(row, "homa", what);
    let mut claims = vec![exact(row, "homa-throughput", "HOMA sustains throughput", NO_LOSS, "", of("least"))];
    if row == "10:1" {
        claims.push(exact(row, "homa-queue", "HOMA's queue in the last ms", Rule::Words, "KB", of("last")));
        return claims;
    }
    let more = of("peak").zip(points.mean(row, "powertcp", "peak")).map(|(homa, powertcp)| homa - powertcp);
    claims.push(exact(
        row,
        "homa-peak",
        "HOMA's queue peaks above PowerTCP's by",
        Rule::About(500.0, 0.25),
        "KB",
        more,
    ));
    let text = "HOMA does not come back to a near-zero queue (mean of the last ms)";
    claims.push(exact(row, "homa-queue", text, Rule::AtLeast(30.0), "KB", of("last")));
    claims
}
