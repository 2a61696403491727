//! `cc` and `transport` of traffic blocks.

use std::path::Path;

use fairrate_control::Parameters;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{NonEct, Recorder, Simulation, Transport};
use fairrate_units::{Bytes, Time};

/// Returns the scenario of two blocks on a star, with `transport` in `[transport]` and `second` in the second block.
fn read(transport: &str, second: &str) -> Result<Scenario, String> {
    let text = format!(
        "duration = \"100us\"\n[topology]\nkind = \"star\"\n[switch]\npfc = false\n[transport]\n{transport}\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = [1]\nbytes = \"30KB\"\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = [2]\nbytes = \"30KB\"\n{second}\n"
    );
    Scenario::from_toml(&text, "stacks.toml", Path::new("."), &Overrides::default())
        .map_err(|error| format!("{error}\n{}", error.first_help()))
}

fn config(transport: &str, second: &str) -> fairrate_sim::SimConfig {
    read(transport, second).expect("it reads").into_sim_config()
}

#[test]
fn a_block_has_another_algorithm_over_the_same_transport() {
    let config = config("cc = \"swift\"\nrto = \"3ms\"\n[transport.dctcp]\ng = 0.25", "cc = \"dctcp\"");
    assert_eq!((config.cc.info().name, config.beside.len()), ("swift", 1));
    let beside = &config.beside[0];
    assert_eq!((beside.cc.info().name, beside.transport.rto), ("dctcp", Some(Time::from_ms(3))));
    let g = beside.cc.params().into_iter().find(|param| param.name == "g").expect("it has a gain");
    assert_eq!(g.toml, "0.25");
    let stacks: Vec<u8> = config.flows.iter().map(|flow| flow.stack).collect();
    assert_eq!(stacks, [0, 1]);
}

#[test]
fn a_block_has_a_transport_of_its_own() {
    let config =
        config("cc = \"swift\"\nmtu = \"2KB\"", "transport = { kind = \"tcp\", cc = \"cubic\", cubic = { c = 0.5 } }");
    let beside = &config.beside[0];
    assert!(matches!(beside.transport.kind, Transport::Tcp(_)));
    assert_eq!((beside.cc.info().name, beside.transport.mtu), ("cubic", Bytes::new(2_000)));
    let by_word = self::config("cc = \"swift\"\nmtu = \"2KB\"", "transport = \"tcp\"\ncc = \"cubic\"");
    assert!(matches!(by_word.beside[0].transport.kind, Transport::Tcp(_)));
}

/// A block that says what `[transport]` says anyway has no stack of its own.
#[test]
fn the_same_algorithm_is_no_other_one() {
    assert!(config("cc = \"swift\"", "cc = \"swift\"").beside.is_empty());
    assert_eq!(config("cc = \"swift\"", "").fabric.ecn, None);
}

/// The resolved scenario is the same scenario.
#[test]
fn what_is_resolved_runs_the_same() {
    for second in [
        "cc = \"dctcp\"",
        "transport = { kind = \"tcp\", cc = \"cubic\", rto = \"2ms\", cubic = { c = 0.5 } }",
        "transport = \"uet\"\ncc = \"nscc\"",
    ] {
        let scenario = read("cc = \"swift\"", second).expect("it reads");
        let again = Scenario::from_toml(&scenario.to_toml(), "again.toml", Path::new("."), &Overrides::default());
        let again = again.unwrap_or_else(|error| panic!("{error}\n{}", scenario.to_toml()));
        let fingerprint = |scenario: Scenario| {
            let mut simulation = Simulation::new(scenario.into_sim_config());
            simulation.run(&mut Recorder::default()).expect("no stall");
            simulation.totals().fingerprint
        };
        assert_eq!(scenario.to_toml(), again.to_toml());
        assert_eq!(fingerprint(scenario), fingerprint(again), "{second}");
    }
}

#[test]
fn marks_are_for_those_that_heed_them() {
    let non_ect = |second: &str| config("cc = \"dctcp\"\nkind = \"tcp\"", second).fabric.ecn.map(|ecn| ecn.non_ect);
    assert_eq!(non_ect(""), Some(NonEct::Mark));
    assert_eq!(non_ect("cc = \"cubic\""), Some(NonEct::Drop));
}

#[test]
fn what_does_not_go_together_is_refused_with_the_reason() {
    let wrong = [
        ("cc = \"rocc\"", "cc = \"xcp\"", "`rocc` and `xcp` do not fit into one network: the first has agents at"),
        (
            "cc = \"dctcp\"",
            "cc = \"dcqcn\"",
            "alone, `dctcp` has marks from 30KB to 30KB and `dcqcn` from 100KB to 400KB",
        ),
        ("cc = \"swift\"", "cc = \"ideal\"", "`ideal` sets the rates of all flows"),
        ("cc = \"swift\"", "cc = \"bfc\"", "ports serve the queues of `bfc`"),
        ("cc = \"swift\"", "cc = \"pfabric\"", "of `swift` and `pfabric` one has packets with priorities"),
        ("cc = \"rccc\"", "cc = \"eqds\"", "receivers give credit by one set of rules"),
        ("cc = \"swift\"", "transport = { mtu = \"9KB\" }", "an `mtu` of 9KB beside one of 1KB"),
        ("cc = \"swift\"", "cc = \"dctpc\"", "did you mean `dctcp`?"),
        ("cc = \"swift\"", "transport = 3", "expected a transport, found the number `3`"),
        ("cc = \"swift\"", "cc = 3", "expected a string"),
        ("cc = \"swift\"", "transport = { cc = \"dctcp\" }\ncc = \"hpcc\"", "a block has one `cc`"),
        ("cc = \"swift\"", "transport = { knid = \"tcp\" }", "`transport` of `[[traffic]]` has no key `knid`"),
        ("cc = \"swift\"", "transport = \"tpc\"", "did you mean `tcp`?"),
    ];
    for (transport, second, message) in wrong {
        let error = read(transport, second).expect_err(second);
        assert!(error.contains(message), "{second}: {error}");
    }
}

/// Returns the scenario of a flow list with `algorithms` and these rows, whose last column is `cc`.
fn listed(algorithms: &str, rows: &str) -> Result<Scenario, String> {
    let dir =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("list-{}-{}", rows.len(), algorithms.len()));
    std::fs::create_dir_all(&dir).expect("it can be made");
    std::fs::write(dir.join("flows.csv"), format!("start_ns,src,dst,bytes,cc\n{rows}")).expect("it can be written");
    let text = format!(
        "duration = \"100us\"\n[topology]\nkind = \"star\"\n[switch]\npfc = false\n[transport]\ncc = \"swift\"\n\
         [[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n{algorithms}\n"
    );
    Scenario::from_toml(&text, "list.toml", &dir, &Overrides::default())
        .map_err(|error| format!("{error}\n{}", error.first_help()))
}

#[test]
fn flows_of_a_list_have_algorithms_of_their_own() {
    let algorithms = "algorithms = { old = \"cubic/tcp\", new = { kind = \"rdma\", cc = \"dcqcn\", rto = \"2ms\" }, same = \"swift\" }";
    let rows = "0,0,1,1000,old\n1,1,2,1000,\n2,2,3,1000,new\n3,3,0,1000,same\n";
    let scenario = listed(algorithms, rows).expect("it reads");
    let config = scenario.sim_config();
    let of = |flow: &fairrate_sim::FlowSpec| config.stack(flow.stack).1.info().name;
    assert_eq!(config.flows.iter().map(of).collect::<Vec<_>>(), ["cubic", "swift", "dcqcn", "swift"]);
    assert_eq!((config.beside.len(), config.beside[1].transport.rto), (2, Some(Time::from_ms(2))));
    // The resolved scenario says the same.
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("list-resolved");
    std::fs::create_dir_all(&dir).expect("it can be made");
    std::fs::write(dir.join("flows.csv"), format!("start_ns,src,dst,bytes,cc\n{rows}")).expect("it can be written");
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml", &dir, &Overrides::default());
    let again = again.unwrap_or_else(|error| panic!("{error}\n{}", scenario.to_toml()));
    assert_eq!(again.to_toml(), scenario.to_toml());
    assert_eq!(again.sim_config().beside, config.beside);
    let wrong = listed(algorithms, "0,0,1,1000,odl\n").map(|_| ()).expect_err("a slip");
    assert!(
        wrong.contains("`odl` is none of the block's `algorithms`") && wrong.contains("did you mean `old`?"),
        "{wrong}"
    );
    let none = listed("", "0,0,1,1000,cubic\n").map(|_| ()).expect_err("no algorithms");
    assert!(none.contains("add `algorithms = { cubic = \"cubic/tcp\" }`"), "{none}");
}

/// A block with the keys of `[transport]` does not repeat its problems.
#[test]
fn a_problem_of_the_transport_is_told_once() {
    let text = "duration = \"1ms\"\n[topology]\nkind = \"star\"\n[transport]\nmtuu = \"1KB\"\n\
                [[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = 1\nbytes = \"1KB\"\ncc = \"dctcp\"\n";
    let error = Scenario::from_toml(text, "x.toml", Path::new("."), &Overrides::default()).expect_err("a slip");
    assert_eq!(error.problems().len(), 1, "{error}");
}

/// The ns-3 code has one algorithm a run.
#[test]
fn several_algorithms_are_not_exported() {
    let scenario = read("cc = \"hpcc\"", "cc = \"dctcp\"").expect("it reads");
    let (message, _) = fairrate_scenario::ns3::export(&scenario).expect_err("it is refused");
    assert_eq!(message, "the ns-3 code has one algorithm a run");
}
