use super::*;
use crate::synthetic;

fn comparison(ccs: &[&str], seeds: &[u64]) -> Comparison {
    Comparison::of(synthetic::comparison(ccs, seeds).iter().map(Metrics::of).collect())
}

fn measure<'a>(all: &'a Comparison, key: &str) -> &'a Measure {
    all.groups.iter().flat_map(|g| &g.measures).find(|m| m.key == key).unwrap()
}

#[test]
fn means_are_over_seeds_and_differences_seed_by_seed() {
    let variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2, 3]);
    let all = Comparison::of(variants.iter().map(Metrics::of).collect());
    let p99 = measure(&all, "slowdown[all sizes].p99");
    let of_run = |column: usize, seed: usize| {
        let runs = vec![variants[column].runs[seed].clone()];
        Metrics::of(&crate::model::Variant { runs, ..variants[column].clone() }).overall().unwrap().p99.unwrap()
    };
    let mean = (0..3).map(|seed| of_run(1, seed)).sum::<f64>() / 3.0;
    let difference = (0..3).map(|seed| of_run(1, seed) - of_run(0, seed)).sum::<f64>() / 3.0;
    assert_eq!(p99.cells[1].estimate.unwrap().mean, mean);
    let (to, got) = p99.cells[1].difference.unwrap();
    assert_eq!((to, got.n), (0, 3));
    assert!((got.mean - difference).abs() < 1e-12);
    assert_eq!(p99.cells[0].difference, None);
}

#[test]
fn seeds_that_only_one_column_has_make_no_pair() {
    let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2, 3]);
    variants[0].runs.remove(1);
    let all = Comparison::of(variants.iter().map(Metrics::of).collect());
    let goodput = measure(&all, "goodput_bps");
    assert_eq!(goodput.cells.iter().map(|c| c.estimate.unwrap().n).collect::<Vec<_>>(), [2, 3]);
    assert_eq!((goodput.cells[1].difference.unwrap().1.n, all.fewest_seeds()), (2, 2));
}

#[test]
fn a_column_is_held_against_the_first_of_its_grid_point() {
    let mut metrics = comparison(&["a", "b", "c", "d"], &[1]).metrics;
    for (m, point) in metrics.iter_mut().zip(["load=0.4", "load=0.4", "load=0.8", "load=0.8"]) {
        m.point = point.into();
    }
    let all = Comparison::of(metrics);
    let to: Vec<_> = measure(&all, "goodput_bps").cells.iter().map(|c| c.difference.map(|(to, _)| to)).collect();
    assert_eq!(to, [None, Some(0), Some(0), Some(2)]);
}

#[test]
fn what_never_converged_has_no_mean() {
    let mut variants = synthetic::comparison(&["powertcp"], &[1, 2]);
    variants[0].runs[0].settled_rtts = vec![2.0, 4.0];
    variants[0].runs[1].settled_rtts = vec![2.0, f64::INFINITY];
    let all = Comparison::of(variants.iter().map(Metrics::of).collect());
    assert_eq!(measure(&all, "convergence.p50_rtts").cells[0].estimate.unwrap().mean, 2.0);
    assert_eq!(measure(&all, "convergence.p99_rtts").cells[0].estimate, None);
}

#[test]
fn seeds_that_change_nothing_are_noticed() {
    assert!(!comparison(&["powertcp"], &[1, 2]).seeds_agree());
    let mut variants = synthetic::comparison(&["powertcp"], &[1, 2]);
    variants[0].runs[1] = crate::model::RunData { seed: 2, ..variants[0].runs[0].clone() };
    variants[0].runs[1].totals.wall_s *= 2.0;
    assert!(Comparison::of(variants.iter().map(Metrics::of).collect()).seeds_agree());
}

#[test]
fn statistics_name_their_columns() {
    let json = serde_json::to_value(comparison(&["powertcp", "hpcc"], &[1, 2]).statistics()).unwrap();
    assert_eq!((&json["level"], &json["resamples"]), (&0.95.into(), &10_000.into()));
    let values = json["values"].as_array().unwrap();
    let of = |column: &str| values.iter().find(|v| v["metric"] == "goodput_bps" && v["column"] == column).unwrap();
    // The synthetic goodput is 24 Gb/s over the column's number, whatever the seed.
    assert_eq!((&of("powertcp")["mean"], &of("powertcp")["difference"]), (&24e9.into(), &serde_json::Value::Null));
    assert_eq!(of("hpcc")["interval"], serde_json::json!({ "low": 12e9, "high": 12e9 }));
    let difference = &of("hpcc")["difference"];
    assert_eq!((&difference["to"], &difference["mean"]), (&"powertcp".into(), &(-12e9).into()));
    assert_eq!((&difference["ratio"], &difference["excludes_zero"]), (&0.5.into(), &true.into()));
}
