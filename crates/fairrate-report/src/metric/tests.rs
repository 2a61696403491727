use super::*;

fn by_name(name: &str) -> Option<Metric> {
    Metric::by_name(name, &[])
}

fn name_of(metric: Metric) -> String {
    metric.name(&[])
}

#[test]
fn every_name_is_a_metric_and_names_are_unique() {
    let names = Metric::names();
    for name in &names {
        assert_eq!(by_name(name).map(name_of).as_ref(), Some(name));
    }
    assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
    assert!(USUAL.iter().all(|name| names.iter().any(|n| n == name)));
    assert_eq!(by_name("slowdown-p99").map(name_of).as_deref(), Some("slowdown-p99:all"));
    assert_eq!(by_name("completion").map(name_of).as_deref(), Some("completion:all"));
    for block in ["slowdown-p99:block1", "unfinished-share:block0", "completion:block0", "query-p99.9:block2"] {
        assert_eq!(by_name(block).map(name_of).as_deref(), Some(block));
    }
    for wrong in [
        "slowdown-p99:block",
        "slowdown-p99:block01",
        "slowdown-p99:block+1",
        "",
        "slowdown",
        "slowdown-",
        "slowdown-p98",
        "slowdown-p99:",
        "slowdown-p99:tiny",
        "queue",
        "completion:",
        "completion:short",
        "completions",
        "query-p99:long",
        "query-p98",
        "query",
    ] {
        assert_eq!(by_name(wrong), None, "{wrong}");
    }
}

#[test]
fn traffic_blocks_go_by_name_and_by_number() {
    let blocks = ["", "incast", "short", "block0"].map(str::to_owned);
    let read = |name: &str| Metric::by_name(name, &blocks).map(|metric| metric.name(&blocks));
    for (given, want) in [
        ("slowdown-p99:incast", "slowdown-p99:incast"),
        ("slowdown-p99:block1", "slowdown-p99:incast"),
        ("unfinished-share:incast", "unfinished-share:incast"),
        ("slowdown-p99:block0", "slowdown-p99:block0"),
        ("slowdown-p99:short", "slowdown-p99:short"),
        ("slowdown-p99:block2", "slowdown-p99:block2"),
        ("slowdown-p99:block3", "slowdown-p99:block3"),
    ] {
        assert_eq!(read(given).as_deref(), Some(want), "{given}");
    }
    assert_eq!(read("slowdown-p99:block4"), None, "there are four");
    assert_eq!((read("slowdown-p99:Incast"), read("slowdown-p99:")), (None, None));
}

#[test]
fn sizes_are_buckets_of_the_tables() {
    let known = |bucket: &str| crate::metrics::SIZE_BUCKETS.iter().any(|b| b.name == bucket);
    assert!(SIZES[1..].iter().all(|(_, bucket, _)| known(bucket)));
}

/// A block that goes by another name in another column is compared by its number, and its title says so.
#[test]
fn a_block_with_two_names_goes_by_its_number() {
    let column = |name: &str| Metrics {
        completion: vec![Completion { block: Some(0), name: name.to_owned(), ..Completion::default() }],
        ..Metrics::default()
    };
    let metric = Metric::by_name("completion:big", &["big".to_owned()]).expect("a block has this name");
    let title = |names: [&str; 2]| metric.title(names.map(column).iter());
    assert_eq!(title(["big", "big"]), "Completion, flows of big");
    assert_eq!(title(["big", "small"]), "Completion, flows of traffic 0");
}

/// A block with the name of a size or of a block by number would not be found by it, so scenarios refuse these names.
#[test]
fn no_block_is_called_as_metrics_call_something_else() {
    let read = |name: &str| {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nkind = \"star\"\n[[traffic]]\nname = \"{name}\"\nkind = \"permutation\"\nbytes = \"1KB\"\n"
        );
        fairrate_scenario::Scenario::from_texts(&text, "s.toml", &[], &fairrate_scenario::Overrides::default())
    };
    for name in size_classes().into_iter().chain(["block0", "block12"]) {
        assert!(read(name).is_err(), "{name}");
    }
    assert!(read("incast").is_ok() && read("block").is_ok());
}
