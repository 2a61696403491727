use super::*;

fn axes(texts: &[&str]) -> Vec<Axis> {
    texts.iter().map(|t| parse_axis(t).unwrap()).collect()
}

fn labels(ccs: &[&str], grid: &[&str]) -> Vec<String> {
    let ccs: Vec<String> = ccs.iter().map(|c| (*c).to_owned()).collect();
    columns(&ccs, &[], &axes(grid), false, &Registry::new()).unwrap().into_iter().map(|c| c.label).collect()
}

#[test]
fn seeds_come_alone_in_lists_and_in_ranges_with_both_ends() {
    let ok = |text| parse_seeds(text).unwrap().0;
    assert_eq!((ok("3"), ok("1..5"), ok("1,4,7")), (vec![3], vec![1, 2, 3, 4, 5], vec![1, 4, 7]));
    assert_eq!((ok("1..2,2..=3"), ok("0..0")), (vec![1, 2, 3], vec![0]));
    for wrong in ["", "a", "5..1", "1..", "-1", "0..99999999999", "1..10000,10001..20000"] {
        assert!(parse_seeds(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_variant_is_a_name_and_its_changes() {
    let name = fairrate_control::ALGORITHMS[0].name;
    let parse_variant = |text| parse_variant(text, &Registry::new());
    assert_eq!(parse_variant(name).unwrap(), Variant { label: name.into(), cc: name.into(), sets: vec![] });
    let variant = parse_variant("powertcp:gamma=0.5").unwrap();
    let sets = vec![("transport.powertcp.gamma".to_owned(), "0.5".to_owned())];
    assert_eq!((variant.cc.as_str(), variant.sets), ("powertcp", sets));
    assert_eq!(parse_variant("powertpc").unwrap_err().help(), "did you mean `powertcp`?");
    assert!(parse_variant("powertcp:gama=0.5").is_err());
}

#[test]
fn parameters_follow_colons_or_commas() {
    let registry = Registry::new();
    let variant = |text| parse_variant(text, &registry);
    let colons = variant("dcqcn:ai=200Mbps:hai=2Gbps").unwrap();
    let sets = [("transport.dcqcn.ai", "200Mbps"), ("transport.dcqcn.hai", "2Gbps")];
    assert_eq!(colons.sets, sets.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(colons.label, "dcqcn:ai=200Mbps:hai=2Gbps");
    for same in ["dcqcn:ai=200Mbps,hai=2Gbps", " dcqcn: ai=200Mbps , hai=2Gbps"] {
        assert_eq!(variant(same), Ok(colons.clone()), "{same}");
    }
    // A piece that sets no parameter is part of a value.
    assert_eq!(variant("dcqcn:ai=1,5Mbps").unwrap().sets[0].1, "1,5Mbps");
    let said = |text| variant(text).unwrap_err();
    assert_eq!(said("dcqcn:ai=1Mbps,hay=2Gbps").help(), "did you mean `hai`?");
    assert_eq!(said("dcqcn,ai=1Mbps").to_string(), "parameters of `dcqcn` follow a colon");
    assert_eq!(said("dcqcn,ai=1Mbps").help(), "write `dcqcn:ai=1Mbps`; further parameters follow colons or commas");
    assert_eq!(said("ai=1Mbps").help(), "parameters follow their algorithm after a colon, as `NAME:ai=1Mbps`");
    assert_eq!(said("dcqcn,hpcc").to_string(), "`dcqcn,hpcc` are several algorithms");
}

#[test]
fn a_list_of_algorithms_may_have_parameters_with_commas() {
    let joined = |text: &str| joined(&text.split(',').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(
        joined("hpcc,dcqcn:ai=1Mbps,hai=2Gbps:g=0.5,swift"),
        ["hpcc", "dcqcn:ai=1Mbps,hai=2Gbps:g=0.5", "swift"]
    );
    assert_eq!(joined("dcqcn:ai=1Mbps,./a=b.so,hpcc:eta=0.9"), ["dcqcn:ai=1Mbps", "./a=b.so", "hpcc:eta=0.9"]);
    // An algorithm alone is followed by no parameters: `ai=1Mbps` stays apart, and is reported as no algorithm.
    assert_eq!(joined("dcqcn,ai=1Mbps"), ["dcqcn", "ai=1Mbps"]);
}

#[test]
fn commas_in_quotes_and_brackets_are_part_of_a_value() {
    let values = |text| parse_axis(text).unwrap().values;
    assert_eq!(values("traffic.0.load=0.4, 0.6,0.4"), ["0.4", "0.6"]);
    assert_eq!(values(r#"probe.0.queues=["a->b","c"],["d"]"#), [r#"["a->b","c"]"#, r#"["d"]"#]);
    assert_eq!(values(r#"a="x,y",'z,[',{b=[1,2]}"#), [r#""x,y""#, "'z,['", "{b=[1,2]}"]);
    for wrong in ["load", "=1", "a=", "a=1,,2", "a=[1,2", "a=\"1", "a=1,"] {
        assert!(parse_axis(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn grids_multiply_and_algorithms_go_fastest() {
    let got = labels(&["hpcc", "powertcp:gamma=0.5"], &["traffic.0.load=0.4,0.6", "switch.buffer=1MiB"]);
    let want = ["hpcc load=0.4 buffer=1MiB", "powertcp:gamma=0.5 load=0.4 buffer=1MiB", "hpcc load=0.6 buffer=1MiB"];
    assert_eq!((&got[..3], got.len()), (&want.map(str::to_owned)[..], 4));
    assert_eq!(labels(&[], &["a=1,2", "b=3,4"]), ["a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"]);
    assert_eq!(labels(&[], &[]), [""]);
}

#[test]
fn a_column_is_a_place_on_a_line() {
    let ccs = ["hpcc", "powertcp:gamma=0.5"].map(str::to_owned);
    let of = |ccs: &[String], grid: &[&str]| {
        let columns = columns(ccs, &[], &axes(grid), false, &Registry::new()).unwrap();
        columns.into_iter().map(|c| (c.line, c.place)).collect::<Vec<_>>()
    };
    let at = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    let got = of(&ccs, &["traffic.0.bytes='50KB'"]);
    assert_eq!(got, [(ccs[0].clone(), at("bytes", "50KB")), (ccs[1].clone(), at("bytes", "50KB"))]);
    assert_eq!(of(&[], &["transport.cc=swift", "a=1"]), [("swift".to_owned(), at("a", "1"))]);
    assert_eq!(of(&[], &["a=1"]), [(String::new(), at("a", "1"))]);
}

#[test]
fn keys_are_as_short_as_they_can_be() {
    let got = labels(&[], &["traffic.0.load=1", "traffic.1.load=2", "switch.pfc=true", "transport.red.pfc=3"]);
    assert_eq!(got, ["traffic.0.load=1 traffic.1.load=2 switch.pfc=true red.pfc=3"]);
    assert_eq!(labels(&[], &["a.load=1", "load=2"]), ["a.load=1 load=2"]);
}

#[test]
fn names_are_fit_for_directories_and_differ() {
    let got = columns(&[], &[], &axes(&[r#"f=a/b,a:b,"a:b",A/B,../x"#]), false, &Registry::new()).unwrap();
    let names: Vec<&str> = got.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["f=a-b", "f=a-b-2", "f=a-b-3", "f=A-B-4", "f=..-x"]);
    let labels: Vec<&str> = got.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["f=a/b", "f=a:b", "f=a:b (2)", "f=A/B", "f=../x"]);
    let long = format!("f={0}1,{0}2", "x".repeat(400));
    let got = columns(&[], &[], &axes(&[&long]), false, &Registry::new()).unwrap();
    assert!(got[0].name != got[1].name && got.iter().all(|c| c.name.len() < 200));
}

#[test]
fn rows_have_numbers_where_an_axis_has_nothing_else() {
    let got =
        columns(&[], &[], &axes(&["traffic.0.load=0.4,0.6", "links.x=1,\"2us\"", "y='a'"]), false, &Registry::new())
            .unwrap();
    let tags: Vec<Tag> = got[1].tags().collect();
    let text = |name: &str, text: &str| Tag::new(name, TagValue::Text(text.into()));
    assert_eq!(tags, [Tag::new("traffic.0.load", TagValue::Number(0.4)), text("links.x", "2us"), text("y", "a")]);
    assert_eq!(got[0].tags().nth(1), Some(text("links.x", "1")));
}

#[test]
fn a_key_is_set_in_one_place() {
    let fails = |ccs: &[&str], grid: &[&str], seeded| {
        let ccs: Vec<String> = ccs.iter().map(|c| (*c).to_owned()).collect();
        columns(&ccs, &[], &axes(grid), seeded, &Registry::new()).is_err()
    };
    assert!(fails(&[], &["a=1", "a=2"], false) && fails(&[], &["seed=1,2"], true));
    assert!(fails(&["hpcc"], &["transport.cc=hpcc"], false) && !fails(&[], &["transport.cc=hpcc", "seed=1"], false));
    assert!(fails(&["powertcp:gamma=0.5"], &["transport.powertcp.gamma=0.4"], false));
    let many = (0..200).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    assert!(fails(&[], &[&format!("a={many}"), &format!("b={many}")], false));
}

#[test]
fn a_variant_has_its_own_label_or_short_words_in_place_of_toml() {
    let label = |text: &str| parse_changes(text, &Registry::new()).map(|variant| variant.label);
    for (text, want) in [
        ("lossy = swift: switch.pfc=false", "lossy"),
        ("Swift, no PFC=swift:hop_target=30us: switch.pfc=false", "Swift, no PFC"),
        ("swift: switch.pfc=false, transport.rto=\"1ms\"", "swift pfc=false rto=1ms"),
        ("swift: probe.0.queues=[\"a->b\", \"c->d\"]", "swift queues=a->b+c->d"),
        ("swift: traffic=[{kind=\"incast\"}], switch.pfc=false", "swift traffic pfc=false"),
    ] {
        assert_eq!(label(text).as_deref(), Ok(want), "{text}");
    }
}

#[test]
fn labels_have_any_characters_that_print() {
    let read = |text: &str| parse_changes(text, &Registry::new());
    for (text, want) in [
        ("1/4 rate = swift: switch.pfc=false", "1/4 rate"),
        ("pfc=off, rto=1ms = swift: switch.pfc=false", "pfc=off, rto=1ms"),
        ("a = b = swift:hop_target=30us: switch.pfc=false", "a = b"),
        ("-> 100 % \u{3b8} \"x\" = swift: switch.pfc=false", "-> 100 % \u{3b8} \"x\""),
        ("\"lossy: a/b = c\" = swift: switch.pfc=false", "lossy: a/b = c"),
        ("'say \"x\": y'=swift: switch.pfc=false", "say \"x\": y"),
        ("10:1 = swift: switch.pfc=false", "10:1"),
        (".. = swift: switch.pfc=false", ".."),
    ] {
        let variant = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let sets = variant.sets.iter().filter(|(key, _)| key == "switch.pfc").count();
        assert_eq!((variant.label.as_str(), variant.cc.as_str(), sets), (want, "swift", 1), "{text}");
    }
    // Values with equals signs make no label.
    assert_eq!(
        read("swift: traffic=[{kind = \"incast\"}]").map(|variant| variant.label).as_deref(),
        Ok("swift traffic")
    );
    for (text, message, help) in [
        (" = swift: switch.pfc=false", "has an empty label", "lossy = swift"),
        ("\"\" = swift: switch.pfc=false", "has an empty label", "lossy = swift"),
        ("\"lossy = swift: switch.pfc=false", "has no second quote", "a label with a colon has quotes"),
        ("\"lossy\" swift: switch.pfc=false", "no `=` is between label and algorithm", "lossy = swift"),
        ("lossy\u{7} = swift: switch.pfc=false", "has the character U+0007, which does not print", "lossy = swift"),
        ("a\u{202e}b = swift: switch.pfc=false", "U+202E", "lossy = swift"),
        (&format!("{} = swift: switch.pfc=false", "x".repeat(61)), "has 61 characters", "up to 60"),
        ("fast: lossy = swift: switch.pfc=false", "algorithm `fast` is not known", "write the whole label in quotes"),
        ("load=0.6 lossy=swift: switch.pfc=false", "", "a label with an equals sign in it has spaces around"),
    ] {
        let error = read(text).unwrap_err();
        assert!(
            error.to_string().contains(message) && error.help().contains(help),
            "{text}: {error}; {}",
            error.help()
        );
    }
}

/// A label never leads out of the comparison's directory, nor to one of its own files.
#[test]
fn directories_of_labels_are_safe() {
    let changes = ["..", ".", "report.html", "compare.json", "Figures", "a/b", "a:b"]
        .map(|label| format!("\"{label}\" = swift: switch.pfc=false"));
    let columns = columns(&[], &changes, &[], false, &Registry::new()).unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["-.", "-", "report.html-2", "compare.json-2", "Figures-2", "a-b", "a-b-2"]);
}

#[test]
fn a_point_of_the_grid_has_short_words_in_place_of_toml() {
    let axes = ["traffic.0.sizes={file=\"a.csv\"},{file=\"b.csv\"}", "probe.0.queues=[\"a->b\"],[\"c->d\"]"];
    let axes: Vec<Axis> = axes.iter().map(|text| parse_axis(text).unwrap()).collect();
    let columns = columns(&["hpcc".to_owned()], &[], &axes, false, &Registry::new()).unwrap();
    let labels: Vec<&str> = columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!(labels[..2], ["hpcc sizes=#1 queues=a->b", "hpcc sizes=#1 queues=c->d"]);
    assert_eq!(columns[3].grid[0].1, "{file=\"b.csv\"}", "compare.json has the value as written");
}
