use super::*;
use crate::{Overrides, Scenario};

/// The settings of HPCC's public code, without those of its output.
const SETTINGS: &str = "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1 {0: disable, 1: enable}\n\nPACKET_PAYLOAD_SIZE 1000\nTOPOLOGY_FILE mix/topology.txt\n\
    FLOW_FILE mix/flow.txt\nSIMULATOR_STOP_TIME 4.00\nCC_MODE 3\nRP_TIMER 900 \nEWMA_GAIN 0.00390625\nRATE_AI 50Mb/s\nMIN_RATE 100Mb/s\n\
    ERROR_RATE_PER_LINK 0.0000\nHAS_WIN 1\nGLOBAL_T 1\nVAR_WIN 1\nFAST_REACT 1\nU_TARGET 0.95\nMI_THRESH 5\nMULTI_RATE 0\nRATE_BOUND 1\n\
    LINK_DOWN 0 0 0\nKMAX_MAP 2 25000000000 400 100000000000 1600\nKMIN_MAP 2 25000000000 100 100000000000 400\n\
    PMAX_MAP 2 25000000000 0.2 100000000000 0.2\nBUFFER_SIZE 32\n";
const TOPOLOGY: &str = "4 1 3\n3\n0 3 25Gbps 0.001ms 0\n1 3 25Gbps 0.001ms 0\n2 3 25Gbps 0.001ms 0\n";
const FLOWS: &str = "2\n0 2 3 100 200000 0.001\n1 2 3 100 50000 0.001\n";

fn read(imported: &Imported) -> Scenario {
    let files = [("topology.txt", TOPOLOGY), ("flow.txt", FLOWS)];
    Scenario::from_texts(&imported.scenario, "scenario.toml", &files, &Overrides::default()).expect("it is sound")
}

fn imported(settings: &str) -> Imported {
    import("run", &Config::parse(settings).expect("it reads")).expect("it can be carried over")
}

#[test]
fn the_settings_of_hpccs_code_are_the_profile() {
    let imported = imported(SETTINGS);
    let scenario = read(&imported);
    let plain = "profile = \"ns3\"\nduration = \"4s\"\nstop = \"all-flows-done\"\n[topology]\nkind = \"file\"\npath = \"topology.txt\"\n[switch]\nbuffer = \"32MiB\"\n\
        [transport]\ncc = \"hpcc\"\nwindow = \"rate-scaled\"\n[[traffic]]\nkind = \"list\"\npath = \"flow.txt\"\n";
    let files = [("topology.txt", TOPOLOGY), ("flow.txt", FLOWS)];
    let plain = Scenario::from_texts(plain, "scenario.toml", &files, &Overrides::default()).expect("it is sound");
    let (a, b) = (scenario.sim_config(), plain.sim_config());
    assert_eq!((&a.fabric, &a.transport, &a.cc, &a.flows, a.stop), (&b.fabric, &b.transport, &b.cc, &b.flows, b.stop));
    // What HPCC's code has in common with its forks is the only thing to think of.
    assert_eq!(imported.left_out.len(), 1, "{:?}", imported.left_out);
}

#[test]
fn settings_without_a_place_are_named() {
    let settings = SETTINGS
        .replace("CC_MODE 3", "CC_MODE 1\nMY_OWN 7\nQLEN_MON_START 2000000000")
        .replace("GLOBAL_T 1", "GLOBAL_T 0")
        .replace("VAR_WIN 1", "VAR_WIN 0")
        .replace("100000000000 1600", "100000000000 900")
        .replace("LINK_DOWN 0 0 0", "LINK_DOWN 500 0 3")
        .replace("PER_LINK 0.0000", "PER_LINK 0.001");
    let imported = imported(&settings);
    let all = imported.left_out.join("\n");
    for part in ["KMIN_MAP", "VAR_WIN 0", "GLOBAL_T 0", "QLEN_MON_START", "`MY_OWN`: not known"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let config = read(&imported).into_sim_config();
    assert_eq!(config.cc.info().name, "dcqcn");
    // A loss on all links, and a link that goes down half a millisecond after 2 s.
    let down = config.faults.iter().find_map(|fault| fault.flap.as_ref()).expect("a link goes down");
    assert_eq!((config.faults.len(), down.down_at), (2, fairrate_units::Time::from_us(2_000_500)));
}

#[test]
fn lines_beyond_those_announced_are_passed_over() {
    assert_eq!(announced(TOPOLOGY, 2), (TOPOLOGY.to_owned(), 0));
    assert_eq!(announced(&format!("{TOPOLOGY}\n0 1 25Gbps 1us 0\n"), 2), (TOPOLOGY.to_owned(), 1));
    assert_eq!(announced("1\n0 2 3 100 1 0.1\n1 2 3 100 1 0.1\n\n", 1), ("1\n0 2 3 100 1 0.1\n".to_owned(), 1));
    assert_eq!(announced("nothing\n", 1), ("nothing\n".to_owned(), 0));
}

#[test]
fn errors_have_lines() {
    let error = |text: &str| Config::parse(text).and_then(|config| import("run", &config)).expect_err("it is wrong");
    for (text, line, part) in [
        ("", 1, "no setting"),
        ("CC_MODE 3\ncc 4\n", 2, "`cc` is no name"),
        ("CC_MODE 3\nHAS_WIN 1\nCC_MODE 4\n", 3, "line 1 already"),
        ("CC_MODE 10", 1, "HPCC-PINT"),
        ("CC_MODE 3 4", 1, "one value"),
        ("CC_MODE x", 1, "no value for `CC_MODE`"),
        ("CC_MODE 3\nHAS_WIN 2", 2, "0 or 1"),
        ("CC_MODE 3\nRATE_AI fast", 2, "no rate"),
        ("CC_MODE 3\nKMIN_MAP 2 25000000000 100", 2, "number of pairs"),
        ("CC_MODE 3\nKMIN_MAP 1 -5 100", 2, "no number"),
        ("CC_MODE 3\nLINK_DOWN 5 1", 2, "two nodes"),
        ("CC_MODE 3\nERROR_RATE_PER_LINK 1.5", 2, "no probability"),
        ("CC_MODE 3\nSIMULATOR_STOP_TIME -1", 2, "no sense"),
    ] {
        let error = error(text);
        assert_eq!(error.line, line, "{text}: {error:?}");
        assert!(error.message.contains(part), "{text}: {}", error.message);
    }
}

#[test]
fn keys_that_the_files_lack_are_named() {
    let text = "profile = \"ns3\"\nduration = \"3ms\"\n[links]\nframe_overhead = \"20B\"\n[topology]\nkind = \"star\"\n\
        [switch]\ndt_alpha = 0.5\n[transport]\ncc = \"hpcc\"\nrto = \"1ms\"\nrecovery = \"selective-repeat\"\n\
        [[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = 3\nbytes = \"endless\"\nstop = \"1ms\"\ndemand = \"1Gbps\"\n";
    let scenario = Scenario::from_texts(text, "s.toml", &[], &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let left_out = export(&scenario).expect("the rest can be carried over").left_out.join("\n");
    for part in [
        "not those of `profile = \"ns3\"`: `links.frame_overhead`, `switch.dt_alpha`, `transport.recovery`, `transport.rto`.",
        "at which endless flows stop",
        "(`demand`)",
    ] {
        assert!(left_out.contains(part), "{left_out}");
    }
}

#[test]
fn deadlines_that_the_files_lack_are_named() {
    let text = "profile = \"ns3\"\n[topology]\nkind = \"star\"\n[transport]\ncc = \"hpcc\"\n\
        [[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n";
    let left_out = |flows: &str| {
        let scenario = Scenario::from_texts(text, "s.toml", &[("flows.csv", flows)], &Overrides::default());
        export(&scenario.unwrap_or_else(|e| panic!("{e}"))).expect("the rest can be carried over").left_out.join("\n")
    };
    assert!(left_out("start_ns,src,dst,bytes,deadline_ns\n0,h0,h1,1000,50000\n").contains("Deadlines of flows."));
    assert!(!left_out("start_ns,src,dst,bytes\n0,h0,h1,1000\n").contains("Deadlines"));
}

#[test]
fn what_is_exported_comes_back_the_same() {
    let text = "profile = \"ns3\"\nduration = \"3ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
        [transport]\ncc = \"hpcc\"\nwindow = \"rate-scaled\"\n[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\nstop = \"2ms\"\n";
    let scenario = Scenario::from_texts(text, "s.toml", &[], &Overrides::default()).expect("it is sound");
    let exported = export(&scenario).expect("the ns-3 code has all of it");
    let keys = exported.left_out.iter().find(|sentence| sentence.starts_with("Keys"));
    assert_eq!(keys, None);
    let file = |name: &str| &exported.files.iter().find(|file| file.0 == name).expect("it is there").1;
    let settings = Config::parse(file("config.txt")).expect("it reads");
    let imported = import("run", &settings).expect("it can be carried over");
    let files = [("topology.txt", file("topology.txt").as_str()), ("flow.txt", file("flow.txt").as_str())];
    let back = Scenario::from_texts(&imported.scenario, "s.toml", &files, &Overrides::default()).expect("it is sound");
    let (a, b) = (scenario.sim_config(), back.sim_config());
    let links = |config: &fairrate_sim::SimConfig| config.topology.links.clone();
    assert_eq!((links(a), a.topology.nodes.len(), &a.cc), (links(b), b.topology.nodes.len(), &b.cc));
    // Thresholds are the same at each rate, though given for another one.
    let ecn = |config: &fairrate_sim::SimConfig| config.fabric.ecn.expect("switches mark");
    for gbps in [25, 100] {
        let rate = fairrate_units::Rate::from_gbps(gbps);
        assert_eq!(ecn(a).thresholds(rate), ecn(b).thresholds(rate));
    }
    let fabric = fairrate_sim::FabricConfig { ecn: a.fabric.ecn, ..b.fabric.clone() };
    assert_eq!((&a.fabric, &a.transport), (&fabric, &b.transport));
    let rounded =
        |f: &fairrate_sim::FlowSpec| (f.src, f.dst, f.bytes, (f.start.as_ps() + 500) / 1_000, f.sport, f.dport);
    assert!(a.flows.iter().map(rounded).eq(b.flows.iter().map(rounded)) && !a.flows.is_empty());
}

#[test]
fn what_the_ns_3_code_lacks_is_refused() {
    let refused = |rest: &str| {
        let text = format!("duration = \"3ms\"\n[topology]\nkind = \"star\"\n{rest}");
        let scenario = Scenario::from_texts(&text, "s.toml", &[], &Overrides::default()).expect("it is sound");
        export(&scenario).expect_err("it is refused").0
    };
    let incast = "[[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = 1\nbytes = \"1KB\"\n";
    assert!(refused(&format!("[transport]\ncc = \"swift\"\n{incast}")).contains("no `swift`"));
    assert!(refused(&format!("[transport]\ncc = \"dctcp\"\nkind = \"tcp\"\n{incast}")).contains("RDMA alone"));
    let closed =
        "[transport]\ncc = \"dcqcn\"\n[[traffic]]\nkind = \"closed-loop\"\nsizes = \"websearch\"\nload = 0.5\n";
    assert!(refused(closed).contains("wait for others"));
}
