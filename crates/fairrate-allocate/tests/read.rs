//! The readers of links and flows: accepted files, and error messages.

use fairrate_allocate::{FileError, Flow, Link, LinkId, parse_flows, parse_host_flows, parse_links};
use proptest::prelude::*;

const LINKS: &str = "link,capacity_gbps\nleaf0->spine0,60\nspine0->leaf1,30\n";

fn links() -> Vec<Link> {
    parse_links(LINKS).unwrap()
}

fn flows(text: &str) -> Result<Vec<Flow>, FileError> {
    parse_flows(text, &links())
}

/// Returns an error, the text it points at, and its help.
fn told(error: FileError, text: &str) -> (String, String, String) {
    let line = text.lines().nth(error.line - 1).expect("a line");
    let place = error.column.map_or(line, |(from, to)| &line[from..to]);
    (error.to_string(), place.to_owned(), error.help.unwrap_or_default())
}

#[track_caller]
fn assert_told(error: Option<FileError>, text: &str, want: (&str, &str, &str)) {
    let told = told(error.expect(text), text);
    assert_eq!((told.0.as_str(), told.1.as_str(), told.2.as_str()), want, "in\n{text}");
}

#[test]
fn columns_come_in_any_order_and_weights_are_one_by_default() {
    let links = parse_links("\u{feff}capacity_gbps , link\r\n\r\n# none\r\n 0.5,\"a\" \r\n1e2,b\r\n").unwrap();
    let of = |name: &str, capacity_bps| Link { name: name.to_owned(), capacity_bps };
    assert_eq!(links, [of("a", 5e8), of("b", 1e11)]);
    let text = "weight,links,flow\n2.5, b  a ,\"x, \"\"y\"\"\"\n,a,z\n";
    let flows = parse_flows(text, &links).unwrap();
    let both = [LinkId(1), LinkId(0)];
    assert_eq!(flows, [Flow::new("x, \"y\"", both).weight(2.5), Flow::new("z", [LinkId(0)])]);
    assert_eq!(parse_flows("flow,links\nz,a\n", &links).unwrap(), [Flow::new("z", [LinkId(0)])]);
    assert_eq!(parse_flows("flow,links,weight\n", &links), Ok(Vec::new()));
}

#[test]
fn bad_links_are_told() {
    let cases = [
        ("", ("line 1: the file is empty", "", "the first line is `link,capacity_gbps`")),
        ("link,capacity\n", ("line 1: unknown column `capacity`", "capacity", "did you mean `capacity_gbps`?")),
        (
            "link,capacity_gbs\n",
            ("line 1: unknown column `capacity_gbs`", "capacity_gbs", "did you mean `capacity_gbps`?"),
        ),
        ("link\na\n", ("line 1: column `capacity_gbps` is missing", "link", "the first line is `link,capacity_gbps`")),
        ("link,capacity_gbps,link\n", ("line 1: column `link` comes a second time", "link", "")),
        ("link,capacity_gbps\na,1\na,2\n", ("line 3: link `a` comes a second time", "a", "the first is on line 2")),
        ("link,capacity_gbps\n,1\n", ("line 2: `link` is empty", ",1", "")),
        ("link,capacity_gbps\na\n", ("line 2: 1 field under a header of 2 columns", "a", "")),
        (
            "link,capacity_gbps\na b,1\n",
            ("line 2: there is space in the name `a b`", "a b", "flows list links by name with spaces between them"),
        ),
        ("link,capacity_gbps\n\"a,1\n", ("line 2: a quote that does not end", "\"a,1", "")),
        (
            "link,capacity_gbps\n# comment\na,100Gbps\n",
            ("line 3: `100Gbps` is not a capacity", "100Gbps", "capacities are in Gb/s: write `100`"),
        ),
    ];
    for (text, want) in cases {
        if text.is_empty() {
            let error = parse_links(text).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.help.as_deref()), (want.0, Some(want.2)));
        } else {
            assert_told(parse_links(text).err(), text, want);
        }
    }
    for bad in ["0", "-5", "inf", "NaN", "fast", "1e300", "1e-30", "0Gbps"] {
        let text = format!("link,capacity_gbps\na,{bad}\n");
        let message = format!("line 2: `{bad}` is not a capacity");
        assert_told(
            parse_links(&text).err(),
            &text,
            (&message, bad, "write Gb/s without a unit, above 0, such as 100"),
        );
    }
}

#[test]
fn bad_flows_are_told() {
    let cases = [
        ("flow,link\n", ("line 1: unknown column `link`", "link", "did you mean `links`?")),
        (
            "flow,links\na,leaf0->spine0 spine0->laef1\n",
            ("line 2: there is no link `spine0->laef1`", "spine0->laef1", "did you mean `spine0->leaf1`?"),
        ),
        (
            "flow,links\na,core\n",
            ("line 2: there is no link `core`", "core", "links go from `leaf0->spine0` to `spine0->leaf1`"),
        ),
        (
            "flow,links\na,\" \"\n",
            (
                "line 2: flow `a` uses no link, so nothing limits its rate",
                "a,\" \"",
                "list its links by name with spaces between them",
            ),
        ),
        (
            "flow,links\na,leaf0->spine0 spine0->leaf1 leaf0->spine0\n",
            (
                "line 2: flow `a` lists link `leaf0->spine0` a second time",
                "leaf0->spine0",
                "a flow uses each of its links once",
            ),
        ),
        (
            "flow,links\na,leaf0->spine0\n\na,spine0->leaf1\n",
            ("line 4: flow `a` comes a second time", "a", "the first is on line 2"),
        ),
        ("flow,links\na,leaf0->spine0,2\n", ("line 2: 3 fields under a header of 2 columns", "a,leaf0->spine0,2", "")),
        (
            "flow,links\n\"a\" b,leaf0->spine0\n",
            (
                "line 2: text after a closing quote",
                " b,leaf0->spine0",
                "a field in quotes ends with its quote; a quote in it is written twice",
            ),
        ),
    ];
    for (text, want) in cases {
        assert_told(flows(text).err(), text, want);
    }
    for bad in ["0", "-1", "inf", "nan", "heavy", "1e7"] {
        let text = format!("flow,links,weight\na,leaf0->spine0,{bad}\n");
        let message = format!("line 2: `{bad}` is not a weight");
        assert_told(flows(&text).err(), &text, (&message, bad, "weights are above 0, from 1e-6 to 1e6"));
    }
}

#[test]
fn places_in_a_line_count_the_byte_order_mark() {
    let text = "\u{feff}flow,lnks\n";
    assert_told(flows(text).err(), text, ("line 1: unknown column `lnks`", "lnks", "did you mean `links`?"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_told(text in "(link,capacity_gbps|flow,links,weight|src,dst,sport|\\PC*)\n([a-c\" ,0-9#.\u{e9}\r\n-]|->){0,60}") {
        let host = |name: &str| name.parse::<u8>().map_err(|error| (error.to_string(), None));
        let host_flows = parse_host_flows(&text, host);
        for error in [parse_links(&text).err(), flows(&text).err(), host_flows.err()].into_iter().flatten() {
            if !text.trim().is_empty() {
                told(error, &text); // The place is one in the text.
            }
        }
    }

    #[test]
    fn flows_between_hosts_that_are_written_are_read(ends in proptest::collection::vec((0..9_u8, 10..20_u8, 0..9_u16), 0..20)) {
        let rows: Vec<String> = ends.iter().map(|(src, dst, sport)| format!("{dst},{sport},{src}")).collect();
        let host = |name: &str| name.parse::<u8>().map_err(|error| (error.to_string(), None));
        let read = parse_host_flows(&format!("dst,sport,src\n{}", rows.join("\n")), host).unwrap();
        prop_assert!(read.iter().all(|f| f.name.is_none() && f.weight == 1.0 && f.ports.1.is_none()));
        let read: Vec<_> = read.iter().map(|f| (f.src, f.dst, f.ports.0.unwrap())).collect();
        prop_assert_eq!(read, ends);
    }

    #[test]
    fn what_is_written_is_read(weights in proptest::collection::vec(1e-6..1e6_f64, 0..20)) {
        let rows: Vec<String> = weights.iter().enumerate().map(|(i, w)| format!("f{i},spine0->leaf1,{w}")).collect();
        let read = flows(&format!("flow,links,weight\n{}", rows.join("\n"))).unwrap();
        prop_assert_eq!(read.iter().map(|flow| flow.weight).collect::<Vec<_>>(), weights);
    }
}
