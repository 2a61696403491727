//! Collectives that are held up by paths, by the placement of ranks, by a slow link and by another job, beside what
//! closed forms and max-min rates say.
//!
//! - A ring on one switch: the bandwidth of 8 to 512 ranks.
//! - 512 ranks at 400 Gb/s on 16 leaves and 32 spines, in random order, under NSCC: an all-reduce and an all-to-all by
//!   way to choose paths, and DCQCN with ECMP and PFC beside it.
//! - 512 GPUs of 64 servers on rails: a ring over all ranks that are placed server by server, rail by rail, or at
//!   random; and one NIC's link at a quarter of its rate.
//! - Two rings of eight ranks whose messages share a link between leaves.
//!
//! Thresholds are ours: a tenth between packets under congestion control and max-min rates, a twentieth where no two
//! messages meet, and a hundredth for a ring alone.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_sim::workload::Op;

use super::collective_forms;
use super::collective_networks::{LEAVES, ONE_JOB, RAILS, SHARE, SLOW_LINK, STAR, TWO_JOBS};
use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, seconds};

pub const FIGURE: Figure = Figure {
    id: "beyond/collectives",
    title: "What holds a collective up: paths, placement, a slow link, another job",
    kind: Kind::Simulation,
    quick_s: 60,
    runs,
    panels,
    claims,
};

/// Ranks and buffers of the rings on one switch.
const RANKS: [u32; 7] = [8, 16, 32, 64, 128, 256, 512];
const BUFFERS: [&str; 2] = ["16MiB", "256MiB"];

/// A way to choose paths with an algorithm: its name, the algorithm, `balance` and `entropy`.
struct Way {
    name: &'static str,
    cc: &'static str,
    balance: &'static str,
    entropy: &'static str,
}

const WAYS: [Way; 6] = [
    Way { name: "max-min, ECMP", cc: "ideal", balance: "ecmp", entropy: "none" },
    Way { name: "DCQCN, ECMP", cc: "dcqcn", balance: "ecmp", entropy: "none" },
    Way { name: "NSCC, ECMP", cc: "nscc", balance: "ecmp", entropy: "none" },
    Way { name: "NSCC, REPS", cc: "nscc", balance: "host", entropy: "reps" },
    Way { name: "NSCC, adaptive", cc: "nscc", balance: "adaptive", entropy: "none" },
    Way { name: "NSCC, sprayed", cc: "nscc", balance: "spray", entropy: "none" },
];

/// A timeout that no queue here is longer than; NSCC's default of 200 us is for packets that are sprayed.
const LATE: (&str, &str) = ("transport.rto", "1ms");
/// Uplinks on which no two messages meet: each carries the links of twenty hosts.
const WIDE: (&str, &str) = ("topology.uplink_rate", "8Tbps");
/// No bound on what a flow has in flight.
const NO_WINDOW: (&str, &str) = ("transport.window", "none");
/// Operations of the comparison of paths.
const OPS: [&str; 2] = ["all-reduce", "all-to-all"];
/// Placements of a ring on rails.
const PLACEMENTS: [&str; 3] = ["contiguous", "by-rail", "random"];

/// An operation on rails beside a slow link: its name, and its keys.
struct OnRails {
    name: &'static str,
    sets: &'static [(&'static str, &'static str)],
}

const ON_RAILS: [OnRails; 4] = [
    OnRails {
        name: "all-reduce, two levels",
        sets: &[("traffic.0.op", "all-reduce"), ("traffic.0.hierarchy", "true")],
    },
    OnRails {
        name: "all-reduce, ring by rail",
        sets: &[("traffic.0.op", "all-reduce"), ("traffic.0.placement", "by-rail")],
    },
    OnRails {
        name: "all-to-all, two levels",
        sets: &[("traffic.0.op", "all-to-all"), ("traffic.0.hierarchy", "true")],
    },
    OnRails { name: "all-to-all, direct", sets: &[("traffic.0.op", "all-to-all")] },
];

/// The hosts of the second ring, and how many of its messages cross the spine each way. Each of the four of the first
/// ring then has an equal part of 400 Gb/s in place of its 100.
const BESIDE: [(&str, u32); 3] = [
    (r#"["h4", "h12", "h5", "h13", "h6", "h14", "h7", "h15"]"#, 4),
    (r#"["h4", "h5", "h12", "h13", "h6", "h7", "h14", "h15"]"#, 2),
    (r#"["h4-h7", "h12-h15"]"#, 1),
];
const SHARING: [&str; 4] = ["ideal", "dcqcn", "hpcc", "powertcp"];

fn ring_name(buffer: &str) -> String {
    format!("ring on one switch, {buffer}")
}

fn paths_name(op: &str) -> String {
    format!("512 ranks on leaves, {op}")
}

/// Returns the runs that show why NSCC under ECMP is not at max-min rates: the way, what is changed, and the line.
fn causes(op: &str) -> Vec<(&'static str, (&'static str, &'static str), String)> {
    let changed = |way: &Way, set: (&'static str, &'static str)| (way.name, set, with(way.name, set));
    if op == OPS[0] { vec![changed(&WAYS[2], LATE)] } else { vec![changed(&WAYS[0], WIDE), changed(&WAYS[2], WIDE)] }
}

/// Returns what is changed to show why an exchange on rails is not at max-min rates.
fn causes_on_rails(what: &str, is_slow: bool) -> &'static [(&'static str, &'static str)] {
    match (what == ON_RAILS[3].name, what == ON_RAILS[2].name && is_slow) {
        (true, _) => &[WIDE],
        (_, true) => &[NO_WINDOW],
        _ => &[],
    }
}

/// Returns the name of a line with something changed.
fn with(line: &str, (key, value): (&str, &str)) -> String {
    format!("{line}, {key} = {value}")
}

fn placed_name(placement: &str) -> String {
    format!("ring on rails, {placement}")
}

fn on_rails_name(what: &str, is_slow: bool) -> String {
    format!("{what}, {}", if is_slow { "a link at a quarter" } else { "whole links" })
}

fn beside_name(crossing: u32) -> String {
    format!("two rings, 4 and {crossing} messages on a link")
}

const ALONE: &str = "one ring alone";

/// Returns a run of `cc` in an experiment of its own. Lines are not rivals here: each is held against a form, or
/// against what it does alone.
fn run(
    what: &str,
    line: &str,
    (toml, cc): (&'static str, &str),
    sets: &[(&str, &str)],
    read: impl Fn(&Record) -> Point + Send + Sync + 'static,
) -> Run {
    Run::of(&apart(what, line), toml, cc, sets, read).called(line)
}

fn apart(what: &str, line: &str) -> String {
    format!("{what}: {line}")
}

/// Returns the values of a line in its experiment.
fn values(points: &Points, what: &str, line: &str, number: &str) -> Vec<f64> {
    points.values(&apart(what, line), line, number)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let mut runs = Vec::new();
    // Quick figures have less to send, and fewer ranks.
    let bytes = ("traffic.0.bytes", if scale.quick { "1MiB" } else { "64MiB" });
    let leaves = ("topology.leaves", if scale.quick { "4" } else { "16" });
    let servers = ("topology.servers", if scale.quick { "8" } else { "64" });
    for buffer in BUFFERS {
        for n in RANKS.into_iter().filter(|&n| !scale.quick || n <= 64) {
            let hosts = n.to_string();
            let sets = [("topology.hosts", hosts.as_str()), ("traffic.0.bytes", buffer)];
            runs.push(run(&ring_name(buffer), &hosts, (STAR, "dcqcn"), &sets, read_ring));
        }
    }
    for op in OPS {
        for way in &WAYS {
            let mut sets = vec![leaves, bytes, ("traffic.0.op", op), ("routing.balance", way.balance)];
            if way.cc == "nscc" {
                sets.push(("transport.entropy", way.entropy));
            }
            let of = |&seed: &u64| run(&paths_name(op), way.name, (LEAVES, way.cc), &sets, read).seeded(seed);
            runs.extend(scale.seeds.iter().map(of));
            for (_, set, line) in causes(op).into_iter().filter(|(of, ..)| scale.causes && *of == way.name) {
                let sets = [&sets[..], &[set]].concat();
                let of = |&seed: &u64| run(&paths_name(op), &line, (LEAVES, way.cc), &sets, read).seeded(seed);
                runs.extend(scale.seeds.iter().map(of));
            }
        }
    }
    for cc in ["ideal", "dcqcn"] {
        for placement in PLACEMENTS {
            let sets = [servers, bytes, ("traffic.0.op", "all-reduce"), ("traffic.0.placement", placement)];
            let of = |&seed: &u64| run(&placed_name(placement), cc, (RAILS, cc), &sets, read).seeded(seed);
            runs.extend(scale.seeds.iter().map(of));
        }
        for OnRails { name, sets } in &ON_RAILS {
            for is_slow in [false, true] {
                let (toml, share) = if is_slow { (SLOW_LINK, SHARE) } else { (RAILS, 1.0) };
                let sets = [sets, &[servers, bytes][..]].concat();
                let read = move |record: &Record| read_on_rails(record, share);
                let of = |&seed: &u64| run(&on_rails_name(name, is_slow), cc, (toml, cc), &sets, read).seeded(seed);
                runs.extend(scale.seeds.iter().map(of));
                for cause in causes_on_rails(name, is_slow).iter().filter(|_| scale.causes) {
                    let (sets, line) = ([&sets[..], &[*cause]].concat(), with(cc, *cause));
                    let of =
                        |&seed: &u64| run(&on_rails_name(name, is_slow), &line, (toml, cc), &sets, read).seeded(seed);
                    runs.extend(scale.seeds.iter().map(of));
                }
            }
        }
    }
    for cc in SHARING {
        // Under max-min rates there are no controllers to go on with.
        let connection = if cc == "ideal" { "per-flow" } else { "per-pair" };
        let alone = [bytes, ("traffic.0.connection", connection)];
        runs.extend(scale.seeds.iter().map(|&seed| run(ALONE, cc, (ONE_JOB, cc), &alone, read).seeded(seed)));
        for (hosts, crossing) in BESIDE {
            let second =
                [("traffic.1.bytes", bytes.1), ("traffic.1.connection", connection), ("traffic.1.hosts", hosts)];
            let sets = [&alone[..], &second].concat();
            let of = |&seed: &u64| run(&beside_name(crossing), cc, (TWO_JOBS, cc), &sets, read).seeded(seed);
            runs.extend(scale.seeds.iter().map(of));
        }
    }
    runs
}

/// Reads of each collective the mean time of an iteration in ms, without the first and the last one of several, and
/// that over the least time that links allow.
fn read(record: &Record) -> Point {
    let mut point = Point::default();
    for (at, spec) in record.config.collectives.iter().enumerate() {
        let times = record.collective_times(at);
        let inner = if 2 < times.len() { &times[1..times.len() - 1] } else { &times[..] };
        let Some(mean) = stats::mean(inner).filter(|_| times.len() == spec.iterations as usize) else { continue };
        point.numbers.insert(format!("ms {at}"), 1e3 * mean);
        point.numbers.insert(format!("over bound {at}"), mean / seconds(spec.bound));
    }
    point.numbers.insert("drops".to_owned(), record.totals.drops.total() as f64);
    point.numbers.insert("pauses".to_owned(), record.pauses.iter().filter(|event| event.pause).count() as f64);
    point
}

/// Reads besides what a collective over two levels takes by its closed form.
fn read_on_rails(record: &Record, share: f64) -> Point {
    let mut point = read(record);
    if record.config.collectives[0].op == Op::AllReduce {
        point.numbers.insert("form".to_owned(), 1e3 * collective_forms::two_levels(record, share));
    }
    point
}

/// Reads the bandwidth of a ring in GB/s, and its time over that of the closed form.
fn read_ring(record: &Record) -> Point {
    let (spec, times) = (&record.config.collectives[0], record.collective_times(0));
    let Some(&time_s) = times.first() else { return Point::default() };
    let (_, bus) = spec.bandwidths(fairrate_units::Time::from_ps((time_s * 1e12) as u64));
    Point::of([("busbw", bus / 1e9), ("over form", time_s / collective_forms::ring(record))])
}

fn panels(points: &Points) -> Vec<Panel> {
    let rings = BUFFERS.map(|buffer| {
        let at = |&n: &u32| (f64::from(n), values(points, &ring_name(buffer), &n.to_string(), "busbw"));
        let cc = if buffer == BUFFERS[0] { "timely" } else { "dcqcn" };
        Curve { name: buffer.to_owned(), cc, values: RANKS.iter().map(at).collect() }
    });
    let axis = Axis::new("bus bandwidth (GB/s)").showing(0.0, 50.0);
    let ring = curves::panel("a ring on one switch, 400 Gb/s", Axis::new("ranks").logarithmic(), axis, rings.into());

    let by_word = |name: String, cc: &'static str, values: Vec<Vec<f64>>| Curve {
        name,
        cc,
        values: (0..).map(f64::from).zip(values).collect(),
    };
    let looks = ["dcqcn", "hpcc"];
    let of_op = |(op, cc): (&str, &'static str)| {
        let values = WAYS.iter().map(|way| values(points, &paths_name(op), way.name, "over bound 0"));
        by_word(op.to_owned(), cc, values.collect())
    };
    let ways: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
    let paths = curves::panel(
        "512 ranks on leaves and spines",
        words("rates and paths", &ways),
        Axis::new("time over its bound").showing(0.0, 2.0),
        OPS.into_iter().zip(looks).map(of_op).collect(),
    );

    let fidelities = [("ideal", "max-min"), ("dcqcn", "DCQCN")];
    let of_placement = |(cc, name): (&'static str, &str)| {
        let values = PLACEMENTS.iter().map(|placement| values(points, &placed_name(placement), cc, "ms 0"));
        by_word(name.to_owned(), cc, values.collect())
    };
    let placement = curves::panel(
        "a ring of 512 ranks on eight rails",
        words("placement", &PLACEMENTS),
        Axis::new("time (ms)").showing(0.0, 1.0),
        fidelities.map(of_placement).into(),
    );

    let of_link = |(cc, name): (&'static str, &str)| {
        let ratio = |what: &OnRails| slowed(points, what.name, cc);
        by_word(name.to_owned(), cc, ON_RAILS.iter().map(ratio).collect())
    };
    let names = ON_RAILS.map(|what| what.name);
    let link = curves::panel(
        "one NIC's link at a quarter of its rate",
        words("operation", &names),
        Axis::new("time over that with whole links").showing(0.0, 4.0),
        fidelities.map(of_link).into(),
    );

    let of_jobs = |cc: &&'static str| {
        let values = BESIDE.iter().map(|&(_, crossing)| slowdowns(points, crossing, cc, 0));
        by_word(if *cc == "ideal" { "max-min".to_owned() } else { (*cc).to_owned() }, cc, values.collect())
    };
    let beside = curves::panel(
        "two rings on a link: messages of both",
        words("messages", &["4 and 4", "4 and 2", "4 and 1"]),
        Axis::new("time of the first over that alone").showing(1.0, 2.2),
        SHARING.iter().map(of_jobs).collect(),
    );
    // Long words need room.
    let wide = |panel: Panel| Panel { wide: true, ..panel };
    vec![wide(paths), ring, placement, wide(link), beside]
}

/// Returns the time of an operation on rails with a slow link over that with whole ones, seed by seed.
fn slowed(points: &Points, what: &str, cc: &str) -> Vec<f64> {
    let [slow, whole] = [true, false].map(|is_slow| values(points, &on_rails_name(what, is_slow), cc, "ms 0"));
    over(&slow, &whole)
}

/// Returns the time of ring number `ring` beside another one over that of one alone, seed by seed.
fn slowdowns(points: &Points, crossing: u32, cc: &str, ring: usize) -> Vec<f64> {
    let (beside, alone) =
        (values(points, &beside_name(crossing), cc, &format!("ms {ring}")), values(points, ALONE, cc, "ms 0"));
    over(&beside, &alone)
}

/// Returns the ratios of `a` to `b`, seed by seed.
fn over(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

/// The change after which a direct exchange takes as long in fluids as in packets. There a sender goes on when all
/// links have carried its last message, where a NIC hands it to a queue.
const NONE_MEET: &str = "uplinks have 8 Tb/s, so that no two messages meet there";

fn claims(points: &Points) -> Vec<Claim> {
    let parts = [ring_claims, path_claims, placement_claims, rail_claims, beside_claims];
    parts.iter().flat_map(|claims| claims(points)).collect()
}

/// Returns the claims about rings on one switch: their bandwidth, and their time by the closed form.
fn ring_claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for buffer in BUFFERS {
        for n in RANKS {
            let value = |what: &str| values(points, &ring_name(buffer), &n.to_string(), what).first().copied();
            let sentence = format!("ours: ring of {n} ranks, {buffer}: its bandwidth");
            claims.push(Claim::exact(&format!("busbw-{n}-{buffer}"), &sentence, Rule::Words, "GB/s", value("busbw")));
            let sentence = format!("closed form: ring of {n} ranks, {buffer}: its time over that of its steps");
            let rule = Rule::About(1.0, 0.01);
            claims.push(Claim::exact(&format!("form-{n}-{buffer}"), &sentence, rule, "", value("over form")));
        }
    }
    claims
}

/// Returns the claims about an operation on leaves and spines, by each way to choose paths.
fn path_claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for op in OPS {
        let of = |way: &Way| values(points, &paths_name(op), way.name, "over bound 0");
        for way in &WAYS {
            let sentence = format!("ours: {op} of 512 ranks, {}: its time over the least that links allow", way.name);
            claims.push(Claim::mean(&format!("paths-{op}-{}", way.name), &sentence, Rule::Words, "times", of(way)));
        }
        let sentence = format!("max-min: {op} of 512 ranks under NSCC with ECMP: its time over that of max-min rates");
        let ratio = over(&of(&WAYS[2]), &of(&WAYS[0]));
        let claim = Claim::mean(&format!("paths-{op}-max-min"), &sentence, Rule::About(1.0, 0.1), "times", ratio);
        let changed = |way: &Way, set| values(points, &paths_name(op), &with(way.name, set), "over bound 0");
        claims.push(if op == OPS[0] {
            let late = over(&changed(&WAYS[2], LATE), &of(&WAYS[0]));
            claim.changing("a packet counts as lost after 1 ms, not after 200 us", late)
        } else {
            claim.changing(NONE_MEET, over(&changed(&WAYS[2], WIDE), &changed(&WAYS[0], WIDE)))
        });
    }
    claims
}

/// Returns the claims about a ring on rails, by each placement of its ranks.
fn placement_claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for placement in PLACEMENTS {
        let of = |cc: &str| values(points, &placed_name(placement), cc, "ms 0");
        let sentence = format!("ours: ring of 512 ranks on rails, {placement}, DCQCN");
        claims.push(Claim::mean(&format!("placed-{placement}"), &sentence, Rule::Words, "ms", of("dcqcn")));
        let sentence = format!("max-min: the same, {placement}: its time over that of max-min rates");
        let (id, rule) = (format!("placed-{placement}-max-min"), Rule::About(1.0, 0.1));
        claims.push(Claim::mean(&id, &sentence, rule, "times", over(&of("dcqcn"), &of("ideal"))));
    }
    claims
}

/// Returns the claims about operations on rails with a slow link and without.
fn rail_claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for what in ON_RAILS.map(|what| what.name) {
        let sentence = format!("ours: {what}, one link at a quarter, DCQCN: its time over that with whole links");
        let (id, ratio) = (format!("slow-{what}"), slowed(points, what, "dcqcn"));
        claims.push(Claim::mean(&id, &sentence, Rule::Words, "times", ratio));
        for is_slow in [false, true] {
            let name = on_rails_name(what, is_slow);
            let of = |cc: &str, number: &str| values(points, &name, cc, number);
            let sentence = format!("max-min: {name}, DCQCN: its time over that of max-min rates");
            let ratio = over(&of("dcqcn", "ms 0"), &of("ideal", "ms 0"));
            let id = format!("rails-{name}-max-min");
            let changed = |set| over(&of(&with("dcqcn", set), "ms 0"), &of(&with("ideal", set), "ms 0"));
            let claim = Claim::mean(&id, &sentence, Rule::About(1.0, 0.1), "times", ratio);
            let claim = claim.changing(NONE_MEET, changed(WIDE));
            claims.push(claim.changing("flows have no window", changed(NO_WINDOW)));
            if what == ON_RAILS[0].name {
                let sentence = format!("closed form: {name}, DCQCN: its time over that of its steps");
                let ratio = over(&of("dcqcn", "ms 0"), &of("dcqcn", "form"));
                claims.push(Claim::mean(
                    &format!("rails-{name}-form"),
                    &sentence,
                    Rule::About(1.0, 0.05),
                    "times",
                    ratio,
                ));
            }
        }
    }
    claims
}

/// Returns the claims about two rings that share a link.
fn beside_claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (_, crossing) in BESIDE {
        // Each message that crosses has an equal part of 400 Gb/s, and alone all of its host's 100.
        let expected = f64::from(4 + crossing) / 4.0;
        for cc in SHARING {
            let within = if cc == "ideal" { 0.02 } else { 0.1 };
            for (ring, which) in [(0, "the first"), (1, "the second")] {
                let sentence = format!(
                    "max-min: two rings, 4 and {crossing} messages on a link, {cc}: time of {which} over that of one alone"
                );
                let id = format!("beside-{crossing}-{cc}-{ring}");
                let ratio = slowdowns(points, crossing, cc, ring);
                claims.push(Claim::mean(&id, &sentence, Rule::About(expected, within), "times", ratio));
            }
        }
    }
    claims
}
