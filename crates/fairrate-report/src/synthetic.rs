//! Synthetic runs with the shape of real ones, for tests of tables and figures. They are seeded, without a simulator.

use std::num::NonZeroU64;

use fairrate_results::Measured;

use crate::model::{Flow, FlowSeries, Maybe, Pause, PortSeries, Provenance, RunData, Totals, Variant, variants};

const STEP_NS: f64 = 1_000.0;
const SAMPLES: usize = 4_001;

/// Returns one run per algorithm and seed, as variants.
pub(crate) fn comparison(ccs: &[&str], seeds: &[u64]) -> Vec<Variant> {
    let runs = ccs.iter().zip(1..).flat_map(|(cc, rank)| seeds.iter().map(move |seed| run(cc, rank, *seed)));
    variants(runs.collect())
}

/// Returns the same at every point of a grid, whose last key varies fastest.
pub(crate) fn grid(ccs: &[&str], axes: &[(&str, &[&str])], seeds: &[u64]) -> Vec<Variant> {
    let mut points: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for (key, values) in axes {
        let with = |p: &Vec<(String, String)>, v: &str| [&p[..], &[((*key).to_owned(), v.to_owned())]].concat();
        points = points.iter().flat_map(|p| values.iter().map(|v| with(p, v)).collect::<Vec<_>>()).collect();
    }
    let mut runs = Vec::new();
    for (i, at) in points.iter().enumerate() {
        let point = at.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
        for (cc, rank) in ccs.iter().zip(1..) {
            let of_seed = |seed: &u64| RunData {
                label: format!("{cc} {point}"),
                point: point.clone(),
                grid: at.clone(),
                ..run(cc, rank, seed + 1_000 * i as u64)
            };
            runs.extend(seeds.iter().map(of_seed));
        }
    }
    variants(runs)
}

/// Returns a run with a queue that an incast fills at 1 ms and that drains more slowly the higher `rank`.
fn run(cc: &str, rank: u32, seed: u64) -> RunData {
    let mut random = Lcg(seed.wrapping_mul(977) + u64::from(rank));
    let slow = f64::from(rank);
    let t_ns: Vec<f64> = (0..SAMPLES).map(|i| i as f64 * STEP_NS).collect();
    let queue = |t: &f64| if *t < 1e6 { 0.0 } else { 2e5 * slow.sqrt() * (-(t - 1e6) / (6e4 * slow)).exp() };
    let qlen_bytes: Vec<f64> = t_ns.iter().map(|t| (queue(t) + 2e3 * random.next()).floor()).collect();
    let tx_bytes = (0..SAMPLES).map(|i| (i as f64 * 3_125.0 * (1.0 - 0.01 * slow)).floor()).collect();
    let port = PortSeries {
        name: "tor0->h16".into(),
        capacity_bps: Some(25e9),
        t_ns: t_ns.clone(),
        qlen_bytes,
        tx_bytes,
        ..PortSeries::default()
    };
    let flows: Vec<Flow> = (0..3_000).map(|id| flow(id, slow, &mut random)).collect();
    let endless = (3_000..3_004).map(|id| Flow { id, start_ns: 5e5, ..Flow::default() });
    let pauses = (0..10 * rank).map(|i| Pause {
        t_ns: 1e6 + f64::from(i) * 7e3,
        port: format!("h{}->tor0", i % 3),
        class: 3,
        pause: i / 3 % 2 == 0,
    });
    RunData {
        scenario: "synthetic".into(),
        description: "made up".into(),
        blocks: Vec::new(),
        cc: cc.into(),
        cc_title: String::new(),
        label: cc.into(),
        line: cc.into(),
        point: String::new(),
        grid: Vec::new(),
        seed,
        state: "complete".into(),
        is_open: false,
        totals: Totals {
            end_ns: 4e6,
            wall_s: 0.5,
            packet_hops: 4_000_000,
            goodput_bps: 24e9 / slow,
            flows_done: 3_000,
            ..Totals::default()
        },
        measured: Measured { from_ns: 0, until_ns: 4_000_000, goodput_bytes: 0, load: Vec::new(), groups: Vec::new() },
        rates: (0..4).map(|i| endless_flow(i, &t_ns, slow)).collect(),
        flows: flows.into_iter().chain(endless).collect(),
        not_started: std::collections::BTreeMap::new(),
        stops_ns: std::collections::BTreeMap::new(),
        ports: vec![port],
        pauses: pauses.collect(),
        outages: Vec::new(),
        settled_rtts: Vec::new(),
        collectives: Vec::new(),
        jobs: Vec::new(),
        timelines: Vec::new(),
        critical_paths: Vec::new(),
        shape: None,
        packet_bytes: 1_048.0,
        links: Vec::new(),
        rtts: Vec::new(),
        worst: Vec::new(),
        scenario_toml: format!("seed = {seed}\n[transport]\ncc = \"{cc}\"\n"),
        provenance: Provenance {
            version: "0.0.0".into(),
            commit: String::new(),
            scenario_hash: "00".into(),
            fingerprint: format!("{seed:016x}"),
        },
    }
}

fn flow(id: u32, slow: f64, random: &mut Lcg) -> Flow {
    let bytes = 10_f64.powf(2.5 + 4.5 * random.next());
    let slowdown = 1.0 + slow * 0.3 * random.next() / (1.02 - random.next());
    let fct_ns = (5_000.0 + bytes * 0.32) * slowdown;
    Flow {
        id,
        block: 0,
        dst: 16,
        reorder_extent: 0,
        bytes: NonZeroU64::new(bytes as u64),
        start_ns: 3e6 * random.next(),
        fct_ns: Maybe::of(fct_ns),
        slowdown: Maybe::of(slowdown),
        at_least: Maybe::NONE,
    }
}

fn endless_flow(i: u32, t_ns: &[f64], slow: f64) -> FlowSeries {
    let start = 5e5 + 5e5 * f64::from(i);
    let t: Vec<f64> = t_ns.iter().copied().filter(|t| start <= *t).step_by(10).collect();
    let share = |t: f64| 25e9 / 4.0 * (1.0 + 3.0 * (-(t - start) / (2e5 * slow)).exp());
    FlowSeries {
        flow: 3_000 + i,
        name: format!("{}: h{i}->h16", 3_000 + i),
        cwnd_bytes: t.iter().map(|t| share(*t) * 1e-5).collect(),
        rate_bps: t.iter().map(|t| share(*t)).collect(),
        delivered_bytes: t.iter().map(|t| (t - start) * 0.78).collect(),
        t_ns: t,
    }
}

/// A small generator, so that synthetic runs need no dependency.
pub(crate) struct Lcg(pub u64);

impl Lcg {
    /// Returns the next number, from 0 up to, but without, 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / f64::from(1 << 24)
    }
}
