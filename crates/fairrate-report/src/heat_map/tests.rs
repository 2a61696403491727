use super::draw::{csv, file, section};
use super::*;
use crate::bootstrap::Interval;
use crate::metrics::GroupMetrics;
use crate::synthetic;

fn share(mean: f64, low: f64, high: f64) -> Estimate {
    Estimate { n: 5, mean, interval: Some(Interval { low, high }) }
}

fn map(cells: Vec<Option<Estimate>>) -> HeatMap {
    HeatMap {
        title: "One class".into(),
        file: "share-new-beside-old-one-class".into(),
        down: "flows, new:old".into(),
        across: "buffer".into(),
        columns: (1..=cells.len()).map(|i| format!("{i} BDP")).collect(),
        rows: vec![("4:4".into(), cells)],
    }
}

fn layout() -> Layout {
    let row = |line: &str| ("4:4".to_owned(), line.to_owned());
    Layout {
        blocks: ["new".into(), "old".into()],
        key: "buffer".into(),
        across: "buffer".into(),
        columns: vec![("10KB".into(), "1 BDP".into()), ("20KB".into(), "2 BDP".into())],
        maps: vec![
            Arrangement { title: "One <class>".into(), rows: vec![row("hpcc")] },
            Arrangement { title: "No such case".into(), rows: vec![row("swift")] },
        ],
    }
}

#[test]
fn a_verdict_goes_by_the_interval() {
    let verdicts = [(80.0, 85.0, 89.9), (89.9, 100.0, 105.0), (90.0, 100.0, 110.0), (110.1, 120.0, 130.0)]
        .map(|(low, mean, high)| Verdict::of(&share(mean, low, high)));
    assert_eq!(verdicts, [Verdict::Less, Verdict::Undecided, Verdict::Fair, Verdict::More]);
    // One seed has no interval: its value decides.
    let alone = |mean| Verdict::of(&Estimate { n: 1, mean, interval: None });
    assert_eq!([alone(89.0), alone(110.0), alone(111.0)], [Verdict::Less, Verdict::Fair, Verdict::More]);
}

/// Columns are found by line and value of the key, whatever their order, and a map without any number is left out.
#[test]
fn cells_have_the_shares_of_their_columns() {
    let variants = synthetic::grid(&["powertcp", "hpcc"], &[("buffer", &["20KB", "10KB"])], &[1, 2]);
    let with_share = |v: &Variant| {
        let mut metrics = Metrics::of(v);
        for (run, seed) in metrics.per_seed.iter_mut().zip(1..) {
            let value = if v.label.contains("10KB") { 0.5 } else { 2.0 } * f64::from(seed);
            let group = |block| GroupMetrics { block, fair_share: Some(value), ..GroupMetrics::default() };
            run.groups = vec![group(0), group(1)];
        }
        metrics
    };
    let metrics: Vec<Metrics> = variants.iter().map(with_share).collect();
    let maps = layout().fill(&variants, &metrics);
    let [map] = &maps[..] else { panic!("one map, not {}", maps.len()) };
    let means: Vec<Option<f64>> = map.rows[0].1.iter().map(|cell| cell.map(|c| c.mean)).collect();
    // (0.5 + 1)/2 and (2 + 4)/2.
    assert_eq!((means, map.columns.len()), (vec![Some(75.0), Some(300.0)], 2));
    assert_eq!(map.file, "share-new-beside-old-one-class");
}

#[test]
fn pictures_have_number_interval_verdict_and_what_is_missing() {
    let cells =
        vec![Some(share(20.0, 19.0, 21.0)), Some(share(95.0, 88.0, 101.0)), Some(share(500.0, 480.0, 520.0)), None];
    let text = file(&map(cells.clone()));
    for want in [
        "<title>4:4, 1 BDP: 20.0 % of a fair share [19.0, 21.0], 5 seeds: less</title>",
        "[88.0, 101], 5 seeds: undecided</title>",
        ">95.0 ?</text>",
        "<title>4:4, 4 BDP: no result</title>",
        "fill:#2166ac",
        "fill:#b2182b",
    ] {
        assert!(text.contains(want), "{want} in {text}");
    }
    assert!(!text.contains("var("), "a file has no style sheet");
    let page = section(&layout(), &[map(cells)]);
    assert!(page.contains("fill:var(--h0)") && page.contains("fill:var(--h3)") && !page.contains("http"), "{page}");
    assert_eq!(section(&layout(), &[]), "");
}

#[test]
fn names_cannot_break_out_of_a_picture() {
    let mut hostile = map(vec![None]);
    (hostile.title, hostile.rows[0].0) = ("</svg><script>".into(), "<b>".into());
    let page = section(&layout(), &[hostile.clone()]) + &file(&hostile);
    assert!(!page.contains("<script>") && !page.contains("<b>"));
}

#[test]
fn cells_are_lines_of_csv() {
    let text = csv(&map(vec![Some(share(20.0, 19.0, 21.5)), None]));
    assert_eq!(
        text,
        "\"flows, new:old\",buffer,share (%),low: share (%),high: share (%),verdict\n4:4,1 BDP,20,19,21.5,less\n4:4,2 BDP,,,,\n"
    );
}
