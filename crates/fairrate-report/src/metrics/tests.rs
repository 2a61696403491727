use super::*;
use crate::synthetic;

fn flow(id: u32, bytes: Option<u64>, fct_ns: Option<f64>) -> Flow {
    Flow { id, bytes, fct_ns, slowdown: fct_ns.map(|t| t / 1e3), ..Flow::default() }
}

#[test]
fn slowdowns_fall_into_their_buckets() {
    let flows = vec![
        flow(0, Some(10_000), Some(2e3)),
        flow(1, Some(10_001), Some(4e3)),
        flow(2, Some(5_000), None),
        flow(3, None, None),
    ];
    let run = RunData { flows, ..RunData::default() };
    let got: Vec<_> = slowdown_by_size(&[run]).iter().map(|b| (b.bucket, b.slowdown.n, b.slowdown.mean)).collect();
    assert_eq!(got, [("all sizes", 2, Some(3.0)), ("<= 10 KB", 1, Some(2.0)), ("10-100 KB", 1, Some(4.0))]);
}

#[test]
fn slowdowns_say_how_many_flows_they_know() {
    let late = Flow { start_ns: 9e3, ..flow(2, Some(5_000), None) };
    let flows = vec![flow(0, Some(10_000), Some(2e3)), flow(1, Some(5_000), None), late, flow(3, None, None)];
    let totals = crate::model::Totals { end_ns: 8e3, ..Default::default() };
    let got = slowdown_by_size(&[RunData { totals, flows, ..RunData::default() }]);
    // The late flow would have begun after the end, and the endless one never finishes.
    assert_eq!(got.iter().map(|b| (b.slowdown.n, b.flows)).collect::<Vec<_>>(), [(1, 2), (1, 2)]);
    assert_eq!(got[0].share().map(|s| s.to_string()).as_deref(), Some("1 of 2"));
    let none = slowdown_by_size(&[RunData { flows: vec![flow(0, Some(1), None)], ..RunData::default() }]);
    assert_eq!((none[0].slowdown.n, none[0].share().map(|s| s.to_string())), (0, Some("0 of 1".to_owned())));
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
        let deadlines = Some(fairrate_scenario::Deadlines { flows, missed, open });
        RunData { totals: crate::model::Totals { deadlines, ..Default::default() }, ..RunData::default() }
    };
    // Of 8 + 4 flows 2 are open, and 3 of the other 10 missed.
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
    let run = RunData { ports: vec![port(100.0, 1000.0), port(0.0, 0.0)], ..RunData::default() };
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
    let mut run = RunData { flows: vec![flow(0, None, None), flow(1, None, None)], ..RunData::default() };
    run.rates = vec![series(0, &[0.0, 1e3, 3e3], &[0.0, 900.0, 1000.0]), series(1, &[1e3, 3e3], &[0.0, 100.0])];
    assert_eq!(fairness(&run), Some(1.0));
    run.rates.pop();
    assert_eq!(fairness(&run), None);
}

#[test]
fn fairness_of_a_burst_is_that_of_its_mean_rates() {
    // Rates 1/1 and 1/3: (4/3)^2 / (2 * 10/9) = 0.8. An unfinished flow has none.
    let burst = |fcts: &[Option<f64>]| {
        let flows = fcts.iter().zip(0..).map(|(t, id)| flow(id, Some(1000), *t)).collect();
        fairness(&RunData { flows, ..RunData::default() })
    };
    assert!((burst(&[Some(1.0), Some(3.0)]).unwrap() - 0.8).abs() < 1e-12);
    assert_eq!(burst(&[Some(1.0), None]), Some(0.5));
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
