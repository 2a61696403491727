//! Figure 8: circuits that are up for a day of each week.

use fairrate_report::panel::{Axis, Mark, Panel};
use fairrate_report::stats;
use fairrate_sim::topology::{CircuitState, Circuits};
use fairrate_units::Time;

use crate::claim::{Claim, Rule, Verdict};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, Samples, seconds};

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig8",
    title: "A reconfigurable network: circuits that come and go",
    kind: Kind::Simulation,
    quick_s: 20,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/powertcp-rdcn.toml");

/// A line: an algorithm with its settings.
struct Variant {
    line: &'static str,
    cc: &'static str,
    sets: &'static [(&'static str, &'static str)],
}

/// PowerTCP as in the paper's section 5: one update per round trip. λ has the artifact's floor of half the rate.
const POWERTCP: Variant = Variant { line: "powertcp", cc: "powertcp", sets: &[] };
const PER_ACK: Variant =
    Variant { line: "powertcp, per ACK", cc: "powertcp", sets: &[("transport.powertcp.update", "per-ack")] };
/// PowerTCP as Alg. 1 is printed: λ without a floor.
const PRINTED: Variant = Variant {
    line: "powertcp, per ACK, no floor",
    cc: "powertcp",
    sets: &[("transport.powertcp.update", "per-ack"), ("transport.powertcp.lambda_floor", "0.0")],
};
const HPCC: Variant = Variant { line: "hpcc", cc: "hpcc", sets: &[] };
const RETCP: [Variant; 2] = [
    Variant { line: "retcp, 1800 us", cc: "retcp", sets: &[("transport.retcp.prebuffer", "1800us")] },
    Variant { line: "retcp, 600 us", cc: "retcp", sets: &[("transport.retcp.prebuffer", "600us")] },
];
const VARIANTS: [&Variant; 6] = [&POWERTCP, &PER_ACK, &PRINTED, &HPCC, &RETCP[0], &RETCP[1]];

/// The distance in racks of each rack's destination, which makes the day of a pair early or late in the week. The
/// distances stand for seeds: the rest of the scenario is the same in all runs.
const RACKS: [u64; 5] = [12, 3, 8, 17, 22];
/// Share of a circuit's rate from which it counts as filled: the lower end of the paper's 80-85 %.
const FILLED: f64 = 0.8;
/// The upper end of the same.
const MOST_USED: f64 = 0.85;
/// Numbers of senders in a rack: all ten of the text's servers, and the four whose links add up to a circuit. The text
/// does not say how many send.
const SENDERS: [(&str, &str, u64); 2] = [("week", "10", 10), ("four senders", "4", 4)];
/// Numbers between the two, which only show what the use of circuits and the VOQs depend on.
const BETWEEN: [(&str, &str, u64); 5] = [
    ("five senders", "5", 5),
    ("six senders", "6", 6),
    ("seven senders", "7", 7),
    ("eight senders", "8", 8),
    ("nine senders", "9", 9),
];
/// The most that a queue near zero holds, in KB: a tenth of what is in flight over a circuit in its round trip.
const NEAR_ZERO_KB: f64 = 30.0;
/// Number of samples, which are microseconds, over which throughput is measured.
const BIN: usize = 10;
/// Time after a day until packets queued for the circuit have left the VOQ.
const DRAINED: Time = Time::from_us(150);
/// The time in the picture before and after the begin of a day.
const SHOWN: (Time, Time) = (Time::from_us(700), Time::from_us(600));
/// The scenario's day, in milliseconds.
const DAY_MS: f64 = 0.225;

fn runs(scale: &Scale) -> Vec<Run> {
    let racks = if scale.quick { &RACKS[..1] } else { &RACKS[..] };
    let run = |(name, per_tor, n): (&str, &str, u64), racks: u64, variant: &Variant| {
        let (stride, queue) = ((n * racks).to_string(), format!("[\"tor0->tor{racks}\", \"tor0->core0\"]"));
        let flows: Vec<String> = (0..n).map(|flow| flow.to_string()).collect();
        let flows = format!("[{}]", flows.join(", "));
        let mut sets = vec![
            ("topology.hosts_per_tor", per_tor),
            ("traffic.0.stride", stride.as_str()),
            ("probe.0.queues", &queue),
            ("probe.1.flows", &flows),
        ];
        sets.extend(variant.sets);
        let is_drawn = SENDERS.iter().any(|(drawn, ..)| *drawn == name);
        let read = move |record: &Record| {
            let point = Pair::of(record, &format!("tor{racks}")).point();
            if is_drawn { point } else { point.without_series() }
        };
        Run::of(name, SCENARIO, variant.cc, &sets, read).called(variant.line).seeded(racks)
    };
    let of = |senders, variants: &'static [&'static Variant]| {
        racks.iter().flat_map(move |&racks| variants.iter().map(move |variant| run(senders, racks, variant)))
    };
    let between = BETWEEN.into_iter().filter(|_| scale.causes).flat_map(|senders| of(senders, &VARIANTS[..3]));
    SENDERS.into_iter().flat_map(|senders| of(senders, &VARIANTS)).chain(between).collect()
}

/// A pair of ToRs in a run.
struct Pair<'a> {
    record: &'a Record,
    circuits: &'a Circuits,
    matching: u32,
    voq: Samples<'a>,
    uplink_bps: f64,
}

impl<'a> Pair<'a> {
    fn of(record: &'a Record, to: &str) -> Self {
        let topology = &record.config.topology;
        let circuits = topology.circuits.as_ref().expect("the scenario has circuits");
        let [from, to_node] = ["tor0", to].map(|name| topology.node(name).expect("the network has it"));
        Self {
            record,
            circuits,
            matching: circuits.matching(from, to_node),
            voq: record.port("tor0", to),
            uplink_bps: record.rate_bps(topology.link_sets["tor-uplinks"][0]),
        }
    }

    /// Returns the start of the current day of the pair's circuit or, between days, of the next day.
    fn day_by(&self, at: Time) -> Time {
        match self.circuits.state(self.matching, at) {
            CircuitState::Day(end) => end.saturating_sub(self.circuits.day),
            CircuitState::Away(next) => next,
        }
    }

    fn is_day(&self, at: Time) -> bool {
        matches!(self.circuits.state(self.matching, at), CircuitState::Day(_))
    }

    /// Returns `true` if the circuit has ended, and packets queued for it still drain.
    fn drains(&self, at: Time) -> bool {
        let gone = (self.day_by(at) + self.circuits.day).saturating_sub(self.circuits.week());
        !self.is_day(at) && gone <= at && at < gone + DRAINED
    }

    /// Returns the times in microseconds to drain the VOQ at the rate of the link that serves it, for all samples that
    /// count: ascending.
    fn latencies(&self, samples: &Samples<'_>, counts: impl Fn(Time) -> bool) -> Vec<f64> {
        let bps = |at| if self.is_day(at) { self.voq.bps } else { self.uplink_bps };
        let counted = samples.iter().filter(|s| counts(s.t));
        stats::sorted(counted.map(|s| s.qlen_bytes as f64 * 8e6 / bps(s.t)))
    }

    /// Returns the time from the begin of a day to the end of the first bin in which its circuit is filled, or to the
    /// end of the day.
    fn filled_us(&self, day: &Samples<'_>) -> f64 {
        let begin = day.iter().next().map_or(0.0, |s| seconds(s.t));
        let filled = day.throughput_gbps(BIN).into_iter().find(|bin| FILLED * day.bps <= bin.1 * 1e9);
        filled.map_or(seconds(self.circuits.day), |bin| bin.0 - begin) * 1e6
    }

    /// Returns the throughput of the transmitter that serves the VOQ in Gb/s, and the VOQ in KB, around the begin of a
    /// day: means over bins, at their ends in milliseconds. The uplink carries acknowledgments of another pair too.
    fn around(&self, begin: Time) -> [Vec<(f64, f64)>; 2] {
        let (from, to) = (begin.saturating_sub(SHOWN.0), begin + SHOWN.1);
        let (voq, uplink) = (self.voq.within(from, to), self.record.port("tor0", "core0").within(from, to));
        let served = voq.throughput_gbps(BIN).into_iter().zip(uplink.throughput_gbps(BIN));
        let served = served.map(|((_, circuit), (_, uplink))| circuit.max(uplink)).collect::<Vec<_>>();
        let kb: Vec<f64> = voq.queue_kb().into_iter().map(|(_, kb)| kb).collect();
        let kb = kb.chunks_exact(BIN).filter_map(stats::mean).collect();
        // All pairs have the same times, which a difference of two times in seconds would not give.
        let ends_ms = (1..).map(|bin: u32| (f64::from(bin) * BIN as f64 - SHOWN.0.as_us_f64()) * 1e-3);
        [served, kb].map(|values: Vec<f64>| ends_ms.clone().zip(values).collect())
    }

    /// Reads whole weeks after the first; the picture is of the first day in them.
    fn point(&self) -> Point {
        let week = self.circuits.week();
        let last = self.voq.iter().last().map_or(Time::ZERO, |sample| sample.t);
        let end = Time::from_ps(last.as_ps() / week.as_ps() * week.as_ps());
        let weeks = self.voq.within(week, end);
        let first = self.day_by(week);
        let begins = std::iter::successors(Some(first), |&day| Some(day + week));
        let days: Vec<Samples<'_>> = begins
            .map(|begin| (begin, begin + self.circuits.day))
            .take_while(|&(_, gone)| gone <= end)
            .map(|(begin, gone)| self.voq.within(begin, gone))
            .collect();
        let (all, settled) = (self.latencies(&weeks, |_| true), self.latencies(&weeks, |at| !self.drains(at)));
        let in_days: Vec<f64> =
            days.iter().flat_map(|day| day.queue_kb().into_iter().map(|(_, kb)| kb).collect::<Vec<_>>()).collect();
        let mean = |values: &[f64]| stats::mean(values).unwrap_or(f64::NAN);
        let percentile = |values: &[f64], p| stats::percentile(values, p).unwrap_or(f64::NAN);
        let [throughput, voq] = self.around(first);
        Point::of([
            ("utilisation", mean(&days.iter().filter_map(Samples::used).collect::<Vec<_>>())),
            ("filled", mean(&days.iter().map(|day| self.filled_us(day)).collect::<Vec<_>>())),
            ("voq of days", mean(&in_days)),
            ("latency mean", mean(&all)),
            ("latency p95", percentile(&all, 0.95)),
            ("latency p99", percentile(&all, 0.99)),
            ("settled p99", percentile(&settled, 0.99)),
        ])
        .with_each_seed("throughput", throughput)
        .with_each_seed("voq", voq)
        .with_each_seed(
            "latency",
            (0..=50).map(|i| 2.0 * f64::from(i)).map(|p| (p, percentile(&all, p / 100.0))).collect(),
        )
    }
}

fn panels(points: &Points) -> Vec<Panel> {
    SENDERS.into_iter().flat_map(|(name, ..)| panels_of(points, name)).collect()
}

fn panels_of(points: &Points, run: &str) -> [Panel; 3] {
    let lines = |what: &str| {
        let line = |variant: &Variant| Line {
            name: variant.line.to_owned(),
            ..Line::ranged(variant.cc, points.each_seed(run, variant.line, what))
        };
        VARIANTS.map(line).into()
    };
    // A line is that of the first seed, and that is the least distance that was run.
    let drawn: Vec<u64> = RACKS.into_iter().filter(|&racks| points.has(run, POWERTCP.line, Some(racks))).collect();
    let pair = match (drawn.iter().min(), drawn.len()) {
        (None, _) => String::new(),
        (Some(racks), 1) => format!("tor0 to tor{racks}"),
        (Some(racks), pairs) => format!("tor0 to tor{racks} and the range of {pairs} pairs"),
    };
    let of = |title: &str| {
        if run == SENDERS[0].0 { format!("{title}, {pair}") } else { format!("{title}, {pair}, {run}") }
    };
    let time = || Axis { link: "time", ..Axis::new("time since the circuit came (ms)") };
    let with_day = |panel: Panel| {
        let day = Mark { from: 0.0, to: Some(DAY_MS), label: "the circuit is up".to_owned() };
        Panel { marks: vec![day], ..panel }
    };
    let throughput = Axis::new("throughput (Gb/s, over 10 us)").showing(0.0, 100.0);
    let voq = Axis::new("VOQ (KB, mean over 10 us)");
    let share = Axis::new("share of the time (%)");
    [
        with_day(panel(of("(a) throughput"), time(), throughput, lines("throughput"))),
        with_day(panel(of("(a) its VOQ"), time(), voq, lines("voq"))),
        panel(of("(b) queueing latency"), share, Axis::new("at most (us)"), lines("latency")),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    SENDERS.into_iter().flat_map(|(name, ..)| claims_of_run(points, name)).collect()
}

/// Returns an id or a sentence of a claim: that of four senders says so.
fn named(run: &str, id: &str, sentence: &str) -> (String, String) {
    if run == SENDERS[0].0 {
        (id.to_owned(), sentence.to_owned())
    } else {
        (format!("four-{id}"), format!("{run}, {sentence}"))
    }
}

fn claims_of_run(points: &Points, run: &str) -> Vec<Claim> {
    let values = |variant: &Variant, what: &str| points.values(run, variant.line, what);
    let mut claims = Vec::new();
    for (tag, variant) in [("", &POWERTCP), ("-per-ack", &PER_ACK), ("-printed", &PRINTED)] {
        claims.extend(claims_of(points, run, tag, variant));
    }
    let mut shown = |id: String, variant: &Variant, text: &str, rule, unit, what: &str| {
        let (id, sentence) = named(run, &id, &format!("{}: {text}", variant.line));
        claims.push(Claim::mean(&id, &sentence, rule, unit, values(variant, what)));
    };
    let empty = "\"does not fill the available bandwidth\" (less than 80 % of the circuit)";
    shown("hpcc".to_owned(), &HPCC, empty, Rule::AtMost(FILLED), "", "utilisation");
    for variant in &RETCP {
        let filled = "\"instantly fills the available bandwidth\" (80 % after)";
        shown(format!("filled-{}", variant.line), variant, filled, Rule::Words, "us", "filled");
    }
    for variant in VARIANTS {
        shown(format!("p99-{}", variant.line), variant, "p99 of queueing latency", Rule::Words, "us", "latency p99");
    }
    claims
}

fn claims_of(points: &Points, run: &str, tag: &str, variant: &Variant) -> Vec<Claim> {
    let line = variant.line;
    let claim = |id: &str, text: &str, rule, unit, values| {
        let (id, sentence) = named(run, &format!("{id}{tag}"), &format!("{line}: {text}"));
        Claim::mean(&id, &sentence, rule, unit, values)
    };
    let values = |what| points.values(run, line, what);
    let with_changes = |claim: Claim, what: &str| {
        let of = |claim: Claim, (name, ..): (&str, &str, u64)| {
            claim.changing(&format!("there are {name}"), points.values(name, line, what))
        };
        BETWEEN.into_iter().fold(claim, of)
    };
    let used = "\"80-85 % circuit utilization\"";
    let used = claim("utilisation", used, Rule::Between(FILLED, MOST_USED), "", values("utilisation"));
    let empty = "\"near-zero queue lengths\": its VOQ in days, mean (30 KB is ours)";
    let empty = claim("voq", empty, Rule::AtMost(NEAR_ZERO_KB), "KB", values("voq of days"));
    // A round trip of 24 us until the sender learns of the circuit, and the round trip that the paper allows.
    let filled = "\"fills the available bandwidth within one RTT\" of hearing of it (80 % after)";
    let filled = claim("filled", filled, Rule::AtMost(48.0), "us", values("filled"));
    let printed = points.mean(run, PRINTED.line, "filled");
    let doubles = printed.map(|us| {
        format!("With its floor at half the rate, power lets a window no more than double at a time. Without it: {us:.0} us.")
    });
    let mut claims =
        vec![with_changes(used, "utilisation"), because(filled, doubles), with_changes(empty, "voq of days")];
    for retcp in &RETCP {
        let other = retcp.line;
        let ratios = |what| points.ratios(run, other, line, what);
        let ratio = |id: &str, text: &str, rule, what| {
            claim(&format!("{id}-{other}"), &format!("{other} {text}"), rule, "", ratios(what))
        };
        let drained = stats::mean(&ratios("settled p99")).map(|ratio| {
            format!(
                "After a day the uplink drains what was sent for the circuit. Without these 150 us: {ratio:.1} times."
            )
        });
        let tail =
            ratio("tail", "has \"at least 5x\" its tail latency (p99 is ours)", Rule::AtLeastTimes(5.0), "latency p99");
        let intro = ratio("intro", "has \"at least 2x\" (introduction)", Rule::AtLeastTimes(2.0), "latency p99");
        claims.extend([because(tail, drained.clone()), because(intro, drained)]);
        claims.push(ratio("p95", "over it at p95", Rule::Words, "latency p95"));
        claims.push(ratio("mean", "over it on average", Rule::Words, "latency mean"));
    }
    claims
}

/// Returns a claim with its cause, if its verdict is other than reproduced.
fn because(claim: Claim, cause: Option<String>) -> Claim {
    match cause.filter(|_| !matches!(claim.verdict(), Verdict::Reproduced)) {
        Some(cause) => claim.because(cause),
        None => claim,
    }
}
