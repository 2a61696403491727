//! The effect of algorithms on each other in one queue: each beside DCTCP and beside CUBIC, and BBR beside more and
//! more flows of CUBIC.
//!
//! Four flows of each side share a port of 25 Gb/s with a base RTT of 20 us, for 100 ms; shares are those of the second
//! half. The buffer holds 5 or 40 times what the path holds, and drops when it is full. Beside DCTCP switches mark by
//! DCTCP's step, as its flows would be alone. Beside CUBIC, which does not go by marks, they mark as the other
//! algorithm asks for, and drop what cannot be marked (RFC 3168). RDMA sends only what is missing again, and TCP has
//! the simulator's defaults.
//!
//! Every packet is late by up to the time of a packet, at random: otherwise packets that arrive at the same picosecond
//! find room in a full queue by the number of their host, and of two equal algorithms one wins (76 to 24 for CUBIC
//! beside CUBIC, five seeds).
//!
//! Algorithms for several paths have connections of two subflows, which share the port: with a single one LIA, OLIA and
//! BALIA are NewReno.
//!
//! Left out, with what the program says of them in one run with TCP:
//!
//! - `ideal`, `flowtune`: "`ideal` sets the rates of all flows".
//! - `bfc`: "ports serve the queues of `bfc` and no others in turn with them".
//! - `pfabric`: "of `pfabric` and `dctcp` one has packets with priorities, and ports queue by these".
//! - `ndp`: "switches cut packets to their headers, and the hosts' transport does not know what these say". Without
//!   cuts it has no sign of a loss but a timeout of 50 ms.
//! - `retcp` beside DCTCP: "`retcp` takes marks for signs of circuits, and switches mark for congestion". Beside CUBIC
//!   it is there, without circuits.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIGURE: Figure = Figure {
    id: "beyond/coexistence",
    title: "Two algorithms in one queue",
    kind: Kind::Simulation,
    quick_s: 80,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/coexistence.toml");

/// A path of 100 Mb/s and a base RTT of 40 ms, which holds 500 KB: the scale at which BBR and CUBIC meet.
const WIDE: &str = r#"
duration = "120s"
[topology]
kind = "star"
hosts = 18
rate = "100Mbps"
delay = "10ms"
[switch]
pfc = false
dt_alpha = "unlimited"
[transport]
kind = "tcp"
[transport.tcp]
rto_min = "200ms"
rto_max = "10s"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = ["h1"]
bytes = "endless"
jitter = "1s"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = ["h2"]
bytes = "endless"
jitter = "1s"
cc = "cubic"
[[fault]]
links = "host-links"
jitter = "84us"
[[probe]]
flows = "all"
every = "1s"
"#;

/// Kinds of transport.
const TCP: &[(&str, &str)] = &[("transport.kind", "tcp")];
const RDMA: &[(&str, &str)] =
    &[("transport.kind", "rdma"), ("transport.recovery", "selective-repeat"), ("transport.rto", "1ms")];
const UET: &[(&str, &str)] = &[("transport.kind", "uet"), ("transport.mtu", "1KB"), ("switch.trim", "false")];

/// Connections of two subflows, beside those of a single one.
const TWO_SUBFLOWS: &[(&str, &str)] = &[("transport.kind", "tcp"), ("traffic.0.subflows", "2")];

/// An algorithm with its transport.
struct Side {
    cc: &'static str,
    transport: &'static [(&'static str, &'static str)],
    /// The only old algorithm beside which it runs; `None`: both.
    only: Option<&'static str>,
}

const fn side(cc: &'static str, transport: &'static [(&'static str, &'static str)]) -> Side {
    Side { cc, transport, only: None }
}

impl Side {
    /// Returns `true` if it runs beside the old algorithm `old`.
    fn is_beside(&self, old: &str) -> bool {
        self.only.is_none_or(|only| only == old)
    }
}

/// Coupled algorithms, which are to take no more of a port than a single TCP.
const COUPLED: [&str; 3] = ["lia", "olia", "balia"];

const ALL: [Side; 34] = [
    side("dctcp", TCP),
    side("d2tcp", TCP),
    side("hull", TCP),
    side("newreno", TCP),
    side("cubic", TCP),
    side("bbr", TCP),
    side("powertcp", RDMA),
    side("theta-powertcp", RDMA),
    side("hpcc", RDMA),
    side("timely", RDMA),
    side("patched-timely", RDMA),
    side("dcqcn", RDMA),
    side("swift", RDMA),
    side("line-rate", RDMA),
    side("rocc", RDMA),
    side("qcn", RDMA),
    side("dcqcn-pi", RDMA),
    side("pacc", RDMA),
    side("rcp", RDMA),
    side("xcp", RDMA),
    side("perc", RDMA),
    side("homa", RDMA),
    side("nscc", UET),
    side("rccc", UET),
    side("eqds", UET),
    side("charny", RDMA),
    Side { cc: "retcp", transport: TCP, only: Some("cubic") },
    side("lia", TWO_SUBFLOWS),
    side("olia", TWO_SUBFLOWS),
    side("balia", TWO_SUBFLOWS),
    side("xmp", TWO_SUBFLOWS),
    side("amp", TWO_SUBFLOWS),
    side("mpcc", TWO_SUBFLOWS),
    side("ratemp", TWO_SUBFLOWS),
];

/// A change of coupled algorithms that shows why they take more than a single TCP.
struct Change {
    /// End of the names of its runs.
    suffix: &'static str,
    sets: [(&'static str, &'static str); 3],
    /// The change in words, and what it shows.
    words: &'static str,
    shows: &'static str,
}

/// Where windows in the second half of the run are still those that slow start has left: one round trip takes 0.8 ms,
/// and few packets are lost.
const HALF_FIRST_WINDOWS: Change = Change {
    suffix: "half first windows",
    sets: [
        ("transport.lia.initial_window", "5"),
        ("transport.olia.initial_window", "5"),
        ("transport.balia.initial_window", "5"),
    ],
    words: "subflows begin with five segments each, not ten",
    shows: "Slow start, which is not coupled (RFC 6356 section 3): two first windows of ten segments are one of twenty, and 50 ms of \
            round trips of 0.8 ms with 0 to 9 drops do not undo it.",
};

/// Where windows are the smallest ones most of the time: what DCTCP leaves is less than a segment a round trip.
const LEAST_WINDOWS: Change = Change {
    suffix: "least windows of one segment",
    sets: [("transport.lia.min_window", "1"), ("transport.olia.min_window", "1"), ("transport.balia.min_window", "1")],
    words: "subflows have least windows of one segment each, not two",
    shows: "The smallest window after a loss, two segments (RFC 5681), is each subflow's own: two subflows never have less than four, where \
            a single TCP has two.",
};

/// Returns the change that is tried beside `old` in a buffer, if any is.
fn change_of(old: &str, buffer: &str) -> Option<&'static Change> {
    match (old == OLD[0].cc, buffer == BUFFERS[1].1) {
        (true, _) => Some(&LEAST_WINDOWS),
        (false, true) => Some(&HALF_FIRST_WINDOWS),
        (false, false) => None,
    }
}

/// The old algorithm: its name, its block's transport, and the marks of switches.
struct Old {
    cc: &'static str,
    transport: &'static str,
    marks: &'static [(&'static str, &'static str)],
}

const OLD: [Old; 2] = [
    Old {
        cc: "dctcp",
        transport: "{ kind = \"tcp\", cc = \"dctcp\" }",
        // Its paper's step of 30 KB at 10 Gb/s, in proportion.
        marks: &[(
            "switch.ecn",
            "{ kmin = \"75KB\", kmax = \"75KB\", pmax = 1.0, at = \"enqueue\", phantom = \"none\" }",
        )],
    },
    Old { cc: "cubic", transport: "{ kind = \"tcp\", cc = \"cubic\" }", marks: &[] },
];

/// Buffers, with what they are in times of what the path holds (62.5 KB).
const BUFFERS: [(&str, &str); 2] = [("312KB", "5 BDP"), ("2500KB", "40 BDP")];

/// Numbers of CUBIC's flows beside one of BBR, and buffers in times of what the path holds (500 KB).
const CUBICS: [u32; 5] = [1, 2, 4, 8, 16];
const WIDE_BUFFERS: [(&str, &str); 2] = [("250KB", "0.5 BDP"), ("5MB", "10 BDP")];

fn at(old: &str, buffer: &str) -> String {
    format!("beside {old}, {buffer}")
}

fn with_change(name: &str, change: &Change) -> String {
    format!("{name}, {}", change.suffix)
}

fn beside_cubics(n: u32, buffer: &str) -> String {
    format!("beside {n} cubic, {buffer}")
}

fn runs(scale: &Scale) -> Vec<Run> {
    let mut runs = Vec::new();
    let end = if scale.quick { "20ms" } else { "100ms" };
    let from = if scale.quick { "10ms" } else { "50ms" };
    for Old { cc: old, transport, marks } in &OLD {
        for (buffer, words) in BUFFERS {
            for Side { cc, transport: own, .. } in ALL.iter().filter(|side| side.is_beside(old)) {
                let mut sets = vec![
                    ("duration", end),
                    ("measure.from", from),
                    ("switch.buffer", buffer),
                    ("traffic.1.transport", *transport),
                ];
                sets.extend(own.iter().chain(*marks));
                let name = at(old, words);
                runs.extend(scale.seeds.iter().map(|&seed| Run::of(&name, SCENARIO, cc, &sets, read).seeded(seed)));
                let is_tried = scale.causes && COUPLED.contains(cc);
                if let Some(change) = change_of(old, words).filter(|_| is_tried) {
                    sets.extend(change.sets);
                    let name = with_change(&name, change);
                    runs.extend(scale.seeds.iter().map(|&seed| Run::of(&name, SCENARIO, cc, &sets, read).seeded(seed)));
                }
            }
        }
    }
    for n in CUBICS {
        let senders = if n == 1 { "\"h2\"".to_owned() } else { format!("\"h2-h{}\"", n + 1) };
        for (buffer, words) in WIDE_BUFFERS {
            let sets = [
                ("duration", if scale.quick { "20s" } else { "120s" }),
                ("switch.buffer", buffer),
                ("traffic.1.senders", senders.as_str()),
            ];
            let name = beside_cubics(n, words);
            runs.extend(scale.seeds.iter().map(|&seed| Run::of(&name, WIDE, "bbr", &sets, read).seeded(seed)));
        }
    }
    runs
}

/// Reads the share of the first block, in per cent of the payload that arrives in the second half of the run, and the
/// payload of both in Gb/s.
fn read(record: &Record) -> Point {
    let (end, mut sums) = (record.totals.end.as_secs_f64(), [0.0; 2]);
    for (id, spec) in (0..).zip(&record.config.flows) {
        let mut of_flow = record.rates.iter().filter(|sample| sample.flow.0 == id);
        let half = of_flow.rfind(|sample| sample.t.as_secs_f64() <= end / 2.0);
        let before = half.map_or(0, |sample| sample.delivered_bytes);
        let outcome = record.cut.iter().find(|outcome| outcome.flow.0 == id);
        let all = outcome.map_or(0, |outcome| outcome.delivered_bytes);
        sums[spec.group as usize] += (all - before) as f64;
    }
    let all = sums[0] + sums[1];
    Point::of([("share", 100.0 * sums[0] / all), ("all", all * 8.0 / (end / 2.0) / 1e9)])
}

fn panels(points: &Points) -> Vec<Panel> {
    let names: Vec<&str> = ALL.iter().map(|side| side.cc).collect();
    let share = || Axis::new("share of the payload (%)").showing(0.0, 100.0);
    let matrix = |(_, buffer): (&str, &str)| {
        let curve = |old: &Old| {
            let of = |(i, side): (usize, &Side)| (i as f64, points.values(&at(old.cc, buffer), side.cc, "share"));
            let sides = ALL.iter().enumerate().filter(|(_, side)| side.is_beside(old.cc));
            Curve { name: format!("beside {}", old.cc), cc: old.cc, values: sides.map(of).collect() }
        };
        curves::panel(
            format!("four flows beside four, buffer {buffer}"),
            words("algorithm", &names),
            share(),
            OLD.iter().map(curve).collect(),
        )
    };
    let numbers: Vec<String> = CUBICS.iter().map(u32::to_string).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let curve = |(i, (_, buffer)): (usize, &(&str, &str))| {
        let of = |(i, n): (usize, &u32)| (i as f64, points.values(&beside_cubics(*n, buffer), "bbr", "share"));
        let cc = ["bbr", "cubic"][i];
        Curve { name: format!("buffer {buffer}"), cc, values: CUBICS.iter().enumerate().map(of).collect() }
    };
    let wide = curves::panel(
        "one flow of BBR beside flows of CUBIC",
        words("flows of CUBIC", &numbers),
        share(),
        WIDE_BUFFERS.iter().enumerate().map(curve).collect(),
    );
    BUFFERS.into_iter().map(matrix).chain([wide]).collect()
}

/// Returns our own questions, and one published result.
fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for Old { cc: old, .. } in &OLD {
        for (_, buffer) in BUFFERS {
            for Side { cc, .. } in ALL.iter().filter(|side| side.is_beside(old)) {
                let id = format!("share-{cc}-{old}-{}", buffer.replace(' ', ""));
                let sentence = format!(
                    "ours: four flows of {cc} beside four of {old}, buffer {buffer}: their part of the payload"
                );
                let values = points.values(&at(old, buffer), cc, "share");
                claims.push(Claim::mean(&id, &sentence, Rule::Words, "%", values));
            }
            claims.extend(COUPLED.map(|cc| no_harm(points, cc, old, buffer)));
        }
    }
    for (_, buffer) in WIDE_BUFFERS {
        let shares = CUBICS.map(|n| points.values(&beside_cubics(n, buffer), "bbr", "share"));
        for (n, values) in CUBICS.iter().zip(&shares) {
            let id = format!("bbr-{n}-{}", buffer.replace(' ', ""));
            let sentence =
                format!("ours: one flow of BBR beside {n} of CUBIC, buffer {buffer}: its part of the payload");
            claims.push(Claim::mean(&id, &sentence, Rule::Words, "%", values.clone()));
        }
        if buffer == WIDE_BUFFERS[1].1 {
            claims.push(no_dependence(&shares));
        }
    }
    claims
}

/// Returns the second goal of RFC 6356: a multipath flow takes no more of a shared resource than a single TCP there.
/// The single TCP is NewReno, from which LIA, OLIA and BALIA differ in their growth alone. The threshold is ours: a
/// tenth more, which is what `fairrate coexist` calls fair.
fn no_harm(points: &Points, cc: &str, old: &str, buffer: &str) -> Claim {
    let ratios = points.ratios(&at(old, buffer), cc, "newreno", "share");
    let id = format!("no-harm-{cc}-{old}-{}", buffer.replace(' ', ""));
    let sentence = format!(
        "RFC 6356: a flow of several paths takes no more of a port than a single TCP: four connections of {cc} with two subflows beside four \
         flows of {old}, buffer {buffer}: their part over that of four flows of NewReno"
    );
    let claim = Claim::mean(&id, &sentence, Rule::AtMost(1.1), "times", ratios);
    let Some(change) = change_of(old, buffer) else { return claim };
    let single = points.values(&at(old, buffer), "newreno", "share");
    let changed = points.values(&with_change(&at(old, buffer), change), cc, "share");
    let ratios = changed.iter().zip(&single).map(|(changed, single)| changed / single).collect();
    claim.changing(change.words, ratios).explained(Some(change.shows.to_owned()))
}

/// Returns the published result: "BBR's throughput when competing with loss-based algorithms does not depend on the
/// number of competing loss-based flows" (R. Ware et al., IMC 2019, as its authors sum it up at APNIC, 2020-01-24). The
/// threshold of ten points is ours.
fn no_dependence(shares: &[Vec<f64>; CUBICS.len()]) -> Claim {
    let n_seeds = shares.iter().map(Vec::len).min().unwrap_or(0);
    let spread = |seed: usize| {
        let of_seed = stats::sorted(shares.iter().map(|values| values[seed]));
        of_seed.last().copied().unwrap_or(f64::NAN) - of_seed.first().copied().unwrap_or(f64::NAN)
    };
    let sentence = "Ware et al.: BBR's throughput beside loss-based flows does not depend on their number: largest less smallest share of one flow \
                    beside 1 to 16 of CUBIC, buffer 10 BDP";
    Claim::mean("bbr-no-dependence", sentence, Rule::AtMost(10.0), "points", (0..n_seeds).map(spread).collect())
}
