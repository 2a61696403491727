use fairrate_results::Measured;
use proptest::prelude::*;

use super::ports::port_metrics;
use std::num::NonZeroU64;

use super::*;
use crate::model::{FlowSeries, Maybe, PortSeries};
use crate::synthetic;

fn flow(id: u32, bytes: Option<u64>, fct_ns: Option<f64>) -> Flow {
    let (bytes, slowdown) = (bytes.and_then(NonZeroU64::new), fct_ns.map(|t| t / 1e3).into());
    Flow { id, bytes, fct_ns: fct_ns.into(), slowdown, ..Flow::default() }
}

#[test]
fn slowdowns_fall_into_their_buckets() {
    let flows = vec![
        flow(0, Some(10_000), Some(2e3)),
        flow(1, Some(10_001), Some(4e3)),
        flow(2, Some(5_000), None),
        flow(3, None, None),
    ];
    let run = RunData { flows, measured: Measured { until_ns: 1, ..Measured::default() }, ..RunData::default() };
    let all = slowdowns(&[run]);
    let got: Vec<_> = all.iter().map(|b| (b.bucket.as_ref(), b.slowdown.n, b.slowdown.mean)).collect();
    assert_eq!(got, [("all sizes", 2, Some(3.0)), ("<= 10 KB", 1, Some(2.0)), ("10-100 KB", 1, Some(4.0))]);
}

#[test]
fn flows_of_several_blocks_are_told_apart_and_those_with_names_are_shown() {
    let of_block = |block: u32, fct_ns: f64| Flow { block, ..flow(block, Some(5_000), Some(fct_ns)) };
    let flows = vec![of_block(0, 2e3), of_block(1, 4e3), of_block(1, 6e3)];
    let run = |flows: Vec<Flow>| RunData {
        flows,
        blocks: vec![String::new(), "incast".to_owned()],
        measured: Measured { until_ns: 1, ..Measured::default() },
        ..RunData::default()
    };
    let all = slowdowns(&[run(flows.clone())]);
    let got: Vec<_> = all.iter().map(|b| (b.bucket.as_ref(), b.block, b.slowdown.mean, b.is_shown)).collect();
    assert_eq!(got[2..], [("traffic 0", Some(0), Some(2.0), false), ("incast", Some(1), Some(5.0), true)]);
    let alone = slowdowns(&[run(flows[..1].to_vec())]);
    assert!(alone.iter().all(|b| b.block.is_none()), "a single block is all flows: {alone:?}");
    let named = slowdowns(&[run(flows[1..].to_vec())]);
    let got: Vec<_> = named.iter().map(|b| (b.bucket.as_ref(), b.block, b.is_shown)).collect();
    assert_eq!(got[2..], [("incast", Some(1), false)], "its metrics have its name all the same");
}

fn measured(until_ns: u64) -> Measured {
    Measured { from_ns: 1_000, until_ns, ..Measured::default() }
}

#[test]
fn unfinished_flows_count_with_what_they_take_at_least() {
    let starved = Flow { start_ns: 1e3, at_least: Maybe::of(7.0), ..flow(1, Some(5_000), None) };
    let flows = vec![
        Flow { start_ns: 1e3, ..flow(0, Some(10_000), Some(2e3)) },
        starved,
        Flow { start_ns: 9e3, ..flow(2, Some(5_000), Some(1e3)) },
        flow(3, Some(5_000), Some(1e3)),
        Flow { start_ns: 2e3, ..flow(4, None, None) },
    ];
    let got = slowdowns(&[RunData { measured: measured(8_000), flows, ..RunData::default() }]);
    // One flow starts after the window and another before it, and the endless flow has no slowdown: 2 and a lower bound
    // of 7 are left.
    let all = &got[0].slowdown;
    assert_eq!((all.n, all.n_bounds, all.p50, all.p99, all.mean), (2, 1, Some(2.0), Some(7.0), Some(4.5)));
    assert!(!all.is_bound(2.0) && all.is_bound(7.0));
    assert_eq!(got[0].share().map(|s| s.to_string()).as_deref(), Some("1 of 2"));
    assert_eq!(got[0].unfinished_share(), 0.5);
}

proptest! {
    /// No percentile decreases if flows starve: an unfinished flow took longer than any finished flow.
    #[test]
    fn slowdowns_do_not_fall_as_flows_starve(
        each in prop::collection::vec((0.0..1e3, 1.0..50.0, any::<bool>()), 1..60), p in 0.0..1.0
    ) {
        // All runs end at 60 of the flows' ideal time after they began; flows of a start finish by then.
        let of = |starves: bool| {
            let flow = |(id, (start, slowdown, starved)): (usize, &(f64, f64, bool))| {
                let open = *starved && starves;
                let (slowdown, at_least) = if open { (Maybe::NONE, Maybe::of(60.0)) } else { (Maybe::of(*slowdown), Maybe::NONE) };
                Flow { id: id as u32, bytes: NonZeroU64::new(1), start_ns: 1e3 + start, slowdown, at_least, ..Flow::default() }
            };
            let flows = each.iter().enumerate().map(flow).collect();
            slowdowns(&[RunData { measured: measured(8_000), flows, ..RunData::default() }]).remove(0).slowdown
        };
        let (fed, starved) = (of(false), of(true));
        prop_assert_eq!(fed.n, starved.n);
        let all = |d: &Distribution| [d.mean, d.p50, d.p95, d.p99, d.p999, d.max];
        for (fed, starved) in all(&fed).into_iter().zip(all(&starved)) {
            prop_assert!(fed <= starved);
        }
        // A percentile that is not reported as a bound is the same however long the starving flows take.
        let value = |d: &Distribution| [d.p50, d.p95, d.p99][(p * 3.0) as usize];
        if let Some(x) = value(&starved).filter(|x| !starved.is_bound(*x)) {
            let later = Distribution::with_bounds(
                each.iter().filter(|f| !f.2).map(|f| f.1).collect(), &vec![1e9; starved.n_bounds]);
            prop_assert_eq!(value(&later), Some(x));
        }
    }
}

#[test]
fn ports_are_measured_within_the_window() {
    // A queue of 5000 B until 2 us, and 100 B in the window from 2 to 4 us; then 96 us without packets.
    let port = PortSeries {
        capacity_bps: Some(8e9),
        t_ns: vec![0.0, 1e3, 2e3, 3e3, 4e3, 1e5],
        qlen_bytes: vec![5e3, 5e3, 100.0, 100.0, 0.0, 0.0],
        tx_bytes: vec![0.0, 0.0, 0.0, 1e3, 2e3, 2e3],
        ..PortSeries::default()
    };
    let run = |from_ns, until_ns| RunData {
        measured: Measured { from_ns, until_ns, ..Measured::default() },
        ports: vec![port.clone()],
        ..RunData::default()
    };
    let got = &ports(&[run(2_000, 4_000)])[0];
    assert_eq!((got.qlen_mean_bytes, got.qlen_p99_bytes, got.qlen_peak_bytes), (100.0, 100.0, 100.0));
    // 2000 B in 2 us at 1 B/ns.
    assert_eq!(got.utilisation, Some(1.0));
    let whole = &ports(&[run(0, 100_000)])[0];
    assert_eq!((whole.qlen_peak_bytes, whole.utilisation), (5e3, Some(0.02)));
    // Between two samples the queue holds its value, and the counter grows evenly.
    let between = &ports(&[run(1_500, 2_500)])[0];
    assert_eq!((between.qlen_mean_bytes, between.utilisation), (2_550.0, Some(0.5)));
}

#[test]
fn changes_without_end_are_slowest() {
    // Ranks ceil(.5 * 3) = 2 and ceil(.99 * 3) = 3 of 2, 4 and never.
    let run = |settled_rtts| RunData { settled_rtts, ..RunData::default() };
    let got = convergence(&[run(vec![4.0, f64::INFINITY]), run(vec![2.0])]);
    let want = Convergence { changes: 3, converged: 2, p50_rtts: Some(4.0), p99_rtts: None };
    assert_eq!(got, Some(want));
    assert_eq!(convergence(&[run(Vec::new())]), None);
}

#[test]
fn deadlines_are_judged_once_they_are_decided() {
    let run = |flows, missed, open| {
        let deadlines = Some(fairrate_results::Deadlines { flows, missed, open });
        RunData { totals: crate::model::Totals { deadlines, ..Default::default() }, ..RunData::default() }
    };
    // 2 of 8 + 4 flows are open, and 3 of the other 10 missed.
    let want = DeadlineMetrics { flows: 12, missed: 3, open: 2, missed_share: Some(0.3) };
    assert_eq!(deadlines(&[run(8, 1, 2), run(4, 2, 0)]), Some(want));
    assert_eq!(deadlines(&[run(2, 0, 2)]).map(|d| d.missed_share), Some(None));
    assert_eq!(deadlines(&[RunData::default()]), None);
}

#[test]
fn a_port_by_hand() {
    // 25 Gb/s is 3.125 B/ns. 2500 B in 1 us is 20 Gb/s: 80 %. Queue 0 for 500 ns, then 3000 for 500 ns.
    let port = PortSeries {
        name: "a->b".into(),
        capacity_bps: Some(25e9),
        t_ns: vec![0.0, 500.0, 1000.0],
        qlen_bytes: vec![0.0, 3000.0, 1000.0],
        tx_bytes: vec![100.0, 1350.0, 2600.0],
        ..PortSeries::default()
    };
    let got = port_metrics(&port);
    assert_eq!((got.utilisation, got.throughput_bps), (Some(0.8), 20e9));
    assert_eq!((got.qlen_mean_bytes, got.qlen_p99_bytes, got.qlen_peak_bytes), (1500.0, 3000.0, 3000.0));
}

#[test]
fn ports_together_by_hand() {
    // One port half full of traffic with 100 B queued, one idle: mean 50 B, 25 % used.
    let port = |qlen: f64, tx: f64| PortSeries {
        capacity_bps: Some(16e9),
        t_ns: vec![1e3, 2e3],
        qlen_bytes: vec![qlen, qlen],
        tx_bytes: vec![500.0, 500.0 + tx],
        drops: 1,
        ..PortSeries::default()
    };
    let ports = vec![port(100.0, 1000.0), port(0.0, 0.0)];
    let run = RunData { measured: measured(2_000), ports, ..RunData::default() };
    // What waits at a host waits at no port.
    let buffer = PortSeries { name: "host-rx->h3".into(), qlen_bytes: vec![1e9; 3], ..run.ports[0].clone() };
    let mut with_buffer = run.clone();
    with_buffer.ports.push(buffer);
    let (plain, more) = (std::slice::from_ref(&run), std::slice::from_ref(&with_buffer));
    assert_eq!(all_ports(more), all_ports(plain));
    assert_eq!(worst_port(&super::ports(more)), worst_port(&super::ports(plain)));
    let all = all_ports(&[run.clone(), run]).unwrap();
    assert_eq!((all.port.as_str(), all.utilisation, all.drops), ("all 2 ports", Some(0.25), 2.0));
    assert_eq!((all.qlen_mean_bytes, all.qlen_p99_bytes, all.qlen_peak_bytes), (50.0, 100.0, 100.0));
}

#[test]
fn fairness_looks_at_the_time_all_long_flows_share() {
    let series = |flow, t_ns: &[f64], delivered: &[f64]| FlowSeries {
        flow,
        t_ns: t_ns.to_vec(),
        delivered_bytes: delivered.to_vec(),
        ..FlowSeries::default()
    };
    // Flow 0 has the link alone for 1 us; from 1 us to 3 us both get 100.
    let flows = vec![flow(0, None, None), flow(1, None, None)];
    let mut run = RunData { measured: measured(3_000), flows, ..RunData::default() };
    run.rates = vec![series(0, &[0.0, 1e3, 3e3], &[0.0, 900.0, 1000.0]), series(1, &[1e3, 3e3], &[0.0, 100.0])];
    assert_eq!(fairness(&run), Some(1.0));
    // Within 1 and 2 us flow 0 gets 50 and flow 1 the same; with the first microsecond flow 0 would have more.
    run.measured.until_ns = 2_000;
    assert_eq!(fairness(&run), Some(1.0));
    run.rates.pop();
    assert_eq!(fairness(&run), None);
}

#[test]
fn fairness_of_a_burst_is_that_of_its_mean_rates() {
    // Rates 1/1 and 1/3: (4/3)^2 / (2 * 10/9) = 0.8. The rate of an unfinished flow is not known.
    let burst = |fcts: &[Option<f64>]| {
        let flows = fcts.iter().zip(0..).map(|(t, id)| flow(id, Some(1000), *t)).collect();
        fairness(&RunData { flows, ..RunData::default() })
    };
    assert!((burst(&[Some(1.0), Some(3.0)]).unwrap() - 0.8).abs() < 1e-12);
    assert_eq!(burst(&[Some(1.0), None]), None);
    assert_eq!(burst(&[Some(1.0)]), None);
}

#[test]
fn seeds_are_pooled_and_averaged() {
    let variants = synthetic::comparison(&["powertcp"], &[1, 2]);
    let (both, one) = (Metrics::of(&variants[0]), {
        let runs = vec![variants[0].runs[0].clone()];
        Metrics::of(&Variant { runs, ..variants[0].clone() })
    });
    assert_eq!(both.seeds, [1, 2]);
    assert_eq!(both.overall().unwrap().n, 2 * one.overall().unwrap().n);
    assert!((both.flows_done - one.flows_done).abs() < 1e-9);
}

#[test]
fn the_worst_port_is_that_of_each_seed() {
    let mut variants = synthetic::comparison(&["powertcp"], &[1, 2]);
    for (seed, run) in variants[0].runs.iter_mut().enumerate() {
        // Queues of 1, 2 ... KB at all times; those of seed 2 are ten times as long, and in the other order.
        let port = |i: usize| {
            let bytes = if seed == 0 { (i + 1) as f64 * 1e3 } else { (6 - i) as f64 * 1e4 };
            let qlen_bytes = vec![bytes; run.ports[0].t_ns.len()];
            PortSeries { name: format!("p{i}"), qlen_bytes, ..run.ports[0].clone() }
        };
        run.ports = (0..6).map(port).collect();
    }
    let all = Metrics::of(&variants[0]);
    let worst = |m: &Metrics| m.worst_port.as_ref().map(|p| (p.port.clone(), p.qlen_p99_bytes)).unwrap();
    let each: Vec<_> = all.per_seed.iter().map(worst).collect();
    assert_eq!(each, [("p5".to_owned(), 6e3), ("p0".to_owned(), 6e4)]);
    assert_eq!(worst(&all), ("of each seed".to_owned(), 3.3e4));
    variants[0].runs.truncate(1);
    assert_eq!(worst(&Metrics::of(&variants[0])), ("p5".to_owned(), 6e3));
    variants[0].runs[0].ports.truncate(1);
    assert_eq!(Metrics::of(&variants[0]).worst_port, None);
}

#[test]
fn a_port_with_one_sample_has_no_measures() {
    let port = |t_ns: &[f64]| PortSeries {
        name: "a->b".into(),
        capacity_bps: Some(1e9),
        t_ns: t_ns.to_vec(),
        qlen_bytes: vec![0.0; t_ns.len()],
        tx_bytes: vec![0.0; t_ns.len()],
        ..PortSeries::default()
    };
    let of = |t_ns: &[f64]| {
        let run = RunData { measured: measured(2_000), ports: vec![port(t_ns)], ..RunData::default() };
        ports(&[run]).remove(0)
    };
    let one = of(&[1_000.0]);
    assert!(one.throughput_bps.is_nan() && one.qlen_peak_bytes.is_nan() && one.drops.is_nan(), "{one:?}");
    assert_eq!((one.utilisation, of(&[1_000.0, 2_000.0]).utilisation), (None, Some(0.0)));
}
