use super::*;
use crate::metrics::PortMetrics;
use crate::model::Maybe;
use crate::synthetic;
use proptest::prelude::*;

/// Returns a column whose only probed port has these 99th percentiles of its queue, one per seed, and no flows that
/// finish.
fn column(name: &str, queues: &[f64]) -> Metrics {
    let run = |(seed, queue): (u64, &f64)| Metrics {
        title: name.into(),
        seeds: vec![seed],
        goodput_bps: 1e9,
        ports: vec![PortMetrics { port: "a->b".into(), qlen_p99_bytes: *queue, ..PortMetrics::default() }],
        ..Metrics::default()
    };
    let per_seed: Vec<Metrics> = (1..).zip(queues).map(run).collect();
    let mut all = Metrics { seeds: (1..=queues.len() as u64).collect(), ..per_seed[0].clone() };
    all.per_seed = if queues.len() < 2 { Vec::new() } else { per_seed };
    all
}

fn said(columns: Vec<Metrics>) -> Findings {
    let comparison = Comparison::of(columns);
    let titles: Vec<String> = comparison.metrics.iter().map(|m| m.title.clone()).collect();
    of(&comparison, &titles.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the sentence about the queue.
fn queue(findings: &Findings) -> &str {
    findings.sentences.iter().find(|s| s.contains("queue")).map_or("", String::as_str)
}

#[test]
fn a_claim_by_hand() {
    // B is twice A in each seed; C is A and a little more or less.
    let a = [1e3, 1.1e3, 1.2e3, 0.9e3, 1e3];
    let c = [1.05e3, 1.0e3, 1.25e3, 0.95e3, 0.96e3];
    let got = said(vec![column("A", &a), column("B", &a.map(|x| 2.0 * x)), column("C", &c)]);
    let want = "A has the lowest 99th percentile of the queue of a->b: 1.04 KB [960 B, 1.14 KB]; C cannot be told from it. \
                That of B is 2.00 times as high [2.00, 2.00]. C and B are told from each other.";
    assert_eq!(queue(&got), want);
    assert!(got.note.contains("excludes zero"), "{}", got.note);
    // Goodput is the same for all.
    assert!(got.sentences[0].contains("no algorithm can be told from the best"), "{got:?}");
}

#[test]
fn every_column_is_named_and_those_that_are_not_told_apart() {
    // Seed by seed, B is 1.5 times A and D twice A; C differs from B by -10, 20, -30, 40 and 0, which is chance.
    let a = [1e3, 1.1e3, 1.2e3, 0.9e3, 1e3];
    let [by_half, twice] = [1.5, 2.0].map(|factor| a.map(|x| factor * x));
    let near = [1.49e3, 1.67e3, 1.77e3, 1.39e3, 1.5e3];
    let got = said(vec![column("D", &twice), column("C", &near), column("A", &a), column("B", &by_half)]);
    let want = "A has the lowest 99th percentile of the queue of a->b: 1.04 KB [960 B, 1.14 KB]. That of B is 1.50 times as high \
                [1.50, 1.50], that of C is 1.50 times as high [1.49, 1.53] and that of D is 2.00 times as high [2.00, 2.00]. \
                B and C cannot be told from each other.";
    assert_eq!(queue(&got), want);
    let mut without = column("E", &a);
    without.per_seed.iter_mut().for_each(|run| run.ports.clear());
    let got = said(vec![column("A", &a), column("B", &by_half), column("D", &twice), without]);
    let sentence = queue(&got);
    assert!(sentence.ends_with("B and D are told from each other. There is no such number of E."), "{sentence}");
    // Of very many only the best and the worst.
    let names: Vec<String> = (0..12).map(|i| format!("column {i}")).collect();
    let columns = (0..).map(f64::from).zip(&names).map(|(i, name)| column(name, &a.map(|x| (1.0 + i) * x)));
    let many = said(columns.collect());
    assert!(
        queue(&many).ends_with("That of column 11 is 12.0 times as high [12.0, 12.0]; 10 others are in between."),
        "{}",
        queue(&many)
    );
}

#[test]
fn a_difference_below_one_percent_makes_no_column_better() {
    let a = [1e3, 1.1e3, 1.2e3, 0.9e3, 1e3];
    let got = said(vec![column("A", &a), column("B", &a.map(|x| 1.004 * x))]);
    let want = "By the 99th percentile of the queue of a->b all are within 1 % of A: 1.04 KB [960 B, 1.14 KB].";
    assert_eq!(queue(&got), want);
}

#[test]
fn blocks_with_names_stand_in_place_of_sizes() {
    let mut variants = synthetic::comparison(&["powertcp", "dcqcn"], &[1, 2, 3, 4, 5]);
    for run in variants.iter_mut().flat_map(|v| &mut v.runs) {
        run.blocks = vec!["background".into(), "incast".into()];
        for flow in &mut run.flows {
            flow.block = flow.id % 2;
        }
    }
    let got = said(variants.iter().map(Metrics::of).collect());
    for name in ["background", "incast"] {
        assert!(got.sentences.iter().any(|s| s.contains(&format!("flows of {name}"))), "{got:?}");
    }
    assert!(got.sentences.iter().all(|s| !s.contains("up to 10 KB")), "{got:?}");
}

#[test]
fn one_seed_and_few_seeds_give_numbers_only() {
    for n in 1..FEW {
        let column = |name, x| column(name, &vec![x; n]);
        let got = said(vec![column("A", 5e3), column("B", 1e3)]);
        assert_eq!(queue(&got), "99th percentile of the queue of a->b: A 5.00 KB and B 1.00 KB.");
        assert!(got.sentences.iter().all(|s| !s.contains("est ") && !s.contains("times")), "{got:?}");
        assert!(got.note.contains("no difference is claimed"), "{}", got.note);
    }
}

#[test]
fn a_single_column_says_nothing() {
    assert_eq!(said(vec![column("A", &[1.0; 5])]), Findings::default());
}

#[test]
fn a_best_that_is_a_lower_bound_is_not_claimed() {
    let mut variants = synthetic::comparison(&["powertcp", "dcqcn"], &[1, 2, 3, 4, 5]);
    let short = |variants: &[crate::model::Variant]| {
        let got = said(variants.iter().map(Metrics::of).collect());
        let about = got.sentences.iter().find(|s| s.contains("up to 10 KB")).cloned();
        (about, got.sentences)
    };
    assert!(short(&variants).0.unwrap().starts_with("PowerTCP has the lowest 99th percentile of the slowdown"));
    // The slowest flows of PowerTCP do not finish: their bounds look fast.
    for flow in
        variants[0].runs.iter_mut().flat_map(|r| &mut r.flows).filter(|f| f.slowdown.get().is_some_and(|s| 1.5 < s))
    {
        (flow.fct_ns, flow.slowdown, flow.at_least) = (Maybe::NONE, Maybe::NONE, Maybe::of(1.5));
    }
    let (about, sentences) = short(&variants);
    assert_eq!(about, None);
    assert!(sentences.iter().any(|s| s.starts_with("Measured flows left unfinished") && s.contains("PowerTCP")));
}

#[test]
fn runs_with_pauses_are_counted() {
    let mut columns: Vec<Metrics> = ["A", "B", "C"].map(|name| column(name, &[1.0; 5])).into();
    for run in &mut columns[0].per_seed {
        run.counts.pfc_pauses = 3.0;
    }
    columns[1].per_seed[2].counts.pfc_pauses = 1.0;
    let got = said(columns);
    assert!(
        got.sentences.contains(&"PFC paused ports in all runs of A, in 1 of 5 of B, in none of C.".to_owned()),
        "{got:?}"
    );
    assert!(got.sentences.iter().all(|s| !s.contains("dropped")));
}

#[test]
fn a_grid_counts_its_points() {
    let points = [("load=0.2", 1.0, 2.0), ("load=0.4", 1.0, 1.0), ("load=0.6", 3.0, 1.0)];
    let columns = points.iter().flat_map(|(point, a, b)| {
        [("A", a), ("B", b)].map(|(name, x)| Metrics { point: (*point).into(), ..column(name, &[*x * 1e3; 5]) })
    });
    let got = said(columns.collect());
    let want = "Lowest 99th percentile of the queue of a->b, or not told from it, of 3 grid points: A at 2 and B at 2.";
    assert_eq!(got.sentences, [want]);
}

/// Returns five seeds of several columns: a common part of each seed, and noise.
fn noisy(columns: &[f64], random: &[f64]) -> Vec<Metrics> {
    let mut random = random.iter().copied().cycle();
    let common: Vec<f64> = (0..5).map(|_| 1e3 * (5.0 + random.next().unwrap())).collect();
    let names = ["A", "B", "C", "D"];
    let of = |(name, shift): (&&str, &f64)| {
        let queues: Vec<f64> = common.iter().map(|c| c + shift + 1e3 * random.next().unwrap()).collect();
        column(name, &queues)
    };
    names.iter().zip(columns).map(of).collect()
}

proptest! {
    #[test]
    fn no_claim_without_an_interval_that_carries_it(
        shifts in prop::collection::vec(0.0..2e3, 2..5), random in prop::collection::vec(0.0..1.0, 40),
    ) {
        let columns = noisy(&shifts, &random);
        let got = said(columns.clone());
        let sentence = queue(&got);
        let index = |name: &str| columns.iter().position(|m| m.title == name).unwrap();
        // A column is told from the best one only if, beside the bootstrap's, Student's interval of the differences
        // excludes zero.
        let excludes = |a: &str, b: &str| {
            let values = |name: &str| columns[index(name)].per_seed.iter().map(|m| m.ports[0].qlen_p99_bytes).collect::<Vec<_>>();
            let differences: Vec<f64> = values(a).iter().zip(values(b)).map(|(x, y)| x - y).collect();
            let mean = differences.iter().sum::<f64>() / 5.0;
            let deviation = (differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
            2.776 * deviation / 5.0_f64.sqrt() < mean
        };
        let Some((best, rest)) = sentence.split_once(" has the lowest") else {
            prop_assert!(sentence.contains("no algorithm can be told"), "{}", sentence);
            return Ok(());
        };
        let tied = rest.split_once("; ").and_then(|(_, rest)| rest.split_once(" cannot be told")).map_or("", |(names, _)| names);
        for other in ["A", "B", "C", "D"].into_iter().take(columns.len()).filter(|name| *name != best) {
            if !tied.contains(other) {
                prop_assert!(excludes(other, best), "{}", sentence);
            }
        }
        let behind = rest.split_once("That of ").unwrap().1;
        for interval in behind.split('[').skip(1) {
            let low = interval.split_once(", ").unwrap().0;
            prop_assert!(1.0 <= low.parse::<f64>().unwrap(), "{}", sentence);
        }
        for other in columns.iter().map(|m| &m.title) {
            prop_assert!(sentence.contains(other.as_str()), "{}", sentence);
        }
    }
}

#[test]
fn equal_algorithms_are_seldom_told_apart() {
    // Two columns of the same kind: Student's interval of five seeds excludes zero in 5 % of cases, whatever the
    // bootstrap says.
    let mut draw = synthetic::Lcg(1);
    let trials = 300;
    let claims = (0..trials).filter(|_| {
        let random: Vec<f64> = (0..40).map(|_| draw.next()).collect();
        queue(&said(noisy(&[0.0, 0.0], &random))).contains("has the lowest")
    });
    let share = claims.count() as f64 / f64::from(trials);
    assert!(share < 0.1, "{share}");
}
