//! The network to lay out, for each topology; the refused scenarios, and the changes to scenarios. No test needs root.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::NonEct;
use fairrate_testbed::blocks;
use fairrate_testbed::classes::Classes;
use fairrate_testbed::field::Field;
use fairrate_testbed::idle;
use fairrate_testbed::paths::{Address, Ways};
use fairrate_testbed::plan::Plan;
use fairrate_units::Time;

const ALL_TO_ALL: &str = "kind = \"all-to-all\"\nbytes = \"100KB\"";

/// Keys and their values, as in `--set`.
type Sets<'a> = &'a [(&'a str, &'a str)];

/// Writes a scenario with this topology and these flows, and reads it as the testbed does.
fn field(name: &str, topology: &str, traffic: &str, scale: f64, sets: Sets<'_>) -> Result<Field, String> {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plans");
    std::fs::create_dir_all(&dir).unwrap();
    let head = "duration = \"1s\"\n[switch]\npfc = false\nbuffer = \"100KB\"\n[transport]\ncc = \"cubic\"";
    let text = format!("{head}\n[topology]\n{topology}\n[[traffic]]\n{traffic}\n");
    let file = dir.join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let overrides = Overrides { sets, ..Overrides::default() };
    Field::new(file, overrides, scale, true).map_err(|failure| format!("{:?}", miette::Report::new(failure)))
}

/// Returns all input of `ip` and `tc`.
fn words(topology: &str, traffic: &str, scale: f64) -> String {
    let name = topology.split('"').nth(1).unwrap();
    let scenario = field(name, topology, traffic, scale, &[]).unwrap().load().unwrap();
    let config = scenario.sim_config();
    let ways = Ways::new(config);
    let plan = Plan::new(config, &ways, "fr-1");
    let mut text = format!("ip -batch\n{}", plan.links());
    if plan.delayed_ports().next().is_some() {
        let _ = write!(text, "\nip -n {} -batch\n{}\n", plan.wires(), plan.wires_up());
    }
    for node in plan.nodes() {
        let namespace = plan.namespace(node);
        let _ = write!(text, "\nip -n {namespace} -batch\n{}", plan.addresses(node));
        let _ = write!(text, "tc -n {namespace} -batch\n{}", plan.queues(node));
    }
    text
}

#[test]
fn star() {
    insta::assert_snapshot!(words("kind = \"star\"\nhosts = 3\nrate = \"100Mbps\"", ALL_TO_ALL, 1.0));
}

#[test]
fn dumbbell_a_hundredth_as_fast() {
    let topology = "kind = \"dumbbell\"\nleft = 1\nright = 1\nhost_rate = \"40Gbps\"\nbottleneck_rate = \"10Gbps\"";
    insta::assert_snapshot!(words(topology, ALL_TO_ALL, 0.01));
}

#[test]
fn a_link_with_a_delay_of_its_own_has_its_ends_in_the_namespace_of_wires() {
    let topology = "kind = \"dumbbell\"\nleft = 1\nright = 1\nhost_rate = \"100Mbps\"\nhost_delay = \"5us\"\n\
                    bottleneck_rate = \"50Mbps\"\nbottleneck_delay = \"5ms\"";
    insta::assert_snapshot!("delay", words(topology, ALL_TO_ALL, 1.0));
}

#[test]
fn parking_lot_with_a_rate_for_each_link() {
    let rates = "host_rate = \"1Gbps\"\nlink_rates = [\"500Mbps\", \"300Mbps\"]";
    let topology = format!("kind = \"parking-lot\"\nhosts_per_switch = 1\n{rates}");
    insta::assert_snapshot!(words(&topology, ALL_TO_ALL, 0.5));
}

#[test]
fn asymmetric() {
    let topology = "kind = \"asymmetric\"\nslow_hosts = 1\nfast_hosts = 1";
    let traffic = "kind = \"incast\"\nreceiver = \"h2\"\nsenders = 2\nbytes = \"100KB\"";
    insta::assert_snapshot!(words(topology, traffic, 0.01));
}

#[test]
fn a_host_of_a_leaf_spine_has_an_address_for_each_way_to_it() {
    let topology = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2";
    insta::assert_snapshot!(words(topology, ALL_TO_ALL, 0.01));
}

#[test]
fn hosts_with_subflows_tell_of_addresses_and_have_routes() {
    let topology = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1";
    let traffic = "kind = \"incast\"\nreceiver = \"h0\"\nsenders = [\"h1\"]\nbytes = \"1MB\"\nsubflows = 2";
    let sets = [("transport.kind", "tcp"), ("transport.tcp.paths", "disjoint")];
    let scenario = field("subflows", topology, traffic, 0.01, &sets).unwrap().load().unwrap();
    let ways = Ways::new(scenario.sim_config());
    let plan = Plan::new(scenario.sim_config(), &ways, "fr-1");
    let hosts: Vec<String> = scenario.sim_config().topology.hosts().map(|host| plan.addresses(host)).collect();
    insta::assert_snapshot!(hosts.join("\n"));
}

#[test]
fn routes_follow_the_simulators_paths() {
    let topology = "kind = \"fat-tree\"\npods = 2\nhosts_per_tor = 2\ncores = 4";
    let scenario = field("fat-tree", topology, ALL_TO_ALL, 0.001, &[]).unwrap().load().unwrap();
    let config = scenario.sim_config();
    let ways = Ways::new(config);
    let follow = |start, to: Address| {
        let (mut at, mut hops) = (start, Vec::new());
        while at != to.host {
            let port = ways.exits[&(at, to)];
            hops.push(port);
            at = config.topology.to(port);
        }
        hops
    };
    let mut last_alias = 0;
    for (ends, (there, back)) in ways.ends.iter().zip(&ways.ports) {
        assert_eq!(follow(config.topology.to(there[0]), ends.dst), there[1..]);
        assert_eq!(follow(config.topology.to(back[0]), ends.src), back[1..]);
        last_alias = last_alias.max(ends.dst.alias);
    }
    assert!(0 < last_alias, "some host has several ways to it");
}

#[test]
fn what_the_testbed_cannot_do_is_refused_with_a_way_out() {
    let star = "kind = \"star\"\nhosts = 3\nrate = \"100Mbps\"";
    let permutation = "kind = \"permutation\"\nbytes = \"1KB\"";
    let several = format!("{permutation}\nsubflows = 2");
    let slow = format!("{permutation}\ndemand = \"1Mbps\"");
    let tcp = ("transport.kind", "tcp");
    let far = "kind = \"star\"\nhosts = 60\nrate = \"100Mbps\"\ndelay = \"1s\"";
    let cases: [(&str, &str, &str, Sets<'_>); 9] = [
        ("far", far, permutation, &[]),
        ("fast", "kind = \"star\"\nhosts = 3", ALL_TO_ALL, &[]),
        ("many", "kind = \"star\"\nhosts = 300\nrate = \"1Mbps\"", permutation, &[]),
        ("circuits", "kind = \"rdcn\"\ntors = 3", ALL_TO_ALL, &[]),
        ("demand", star, &slow, &[]),
        ("collective", star, "kind = \"collective\"\nop = \"all-reduce\"\nbytes = \"30KB\"", &[]),
        ("subflows", star, &several, &[tcp]),
        ("handshake", star, permutation, &[tcp, ("transport.tcp.handshake", "true")]),
        ("spraying", star, permutation, &[("routing.balance", "spray"), ("transport.recovery", "selective-repeat")]),
    ];
    let all = cases.map(|(name, topology, traffic, sets)| {
        let refused = field(name, topology, traffic, 1.0, sets).map(|_| ()).unwrap_err();
        format!("{name}:\n{}", refused.replace(env!("CARGO_TARGET_TMPDIR"), "DIR"))
    });
    insta::assert_snapshot!(all.join("\n"));
}

/// Returns two blocks that send to h0 and to `receiver`, with these algorithms.
fn two_blocks(receiver: &str, first: &str, second: &str) -> String {
    let block = |name, sender, receiver, cc| {
        format!(
            "name = \"{name}\"\nkind = \"incast\"\nsenders = \"{sender}\"\nreceiver = \"{receiver}\"\nbytes = \"1MB\"\n{cc}"
        )
    };
    format!("{}\n[[traffic]]\n{}", block("old", "h1", "h0", first), block("new", "h2", receiver, second))
}

const STAR_OF_FOUR: &str = "kind = \"star\"\nhosts = 4\nrate = \"100Mbps\"";
const MARKS: (&str, &str) = ("switch.ecn", "{ kmin = \"30KB\", kmax = \"30KB\", pmax = 1.0, per = \"any-rate\" }");
const OVER_TCP: (&str, &str) = ("transport.kind", "tcp");

#[test]
fn algorithms_that_do_not_go_together_are_refused_with_both_blocks() {
    let of = |cc: &str| format!("cc = \"{cc}\"");
    let beta = "transport = { kind = \"tcp\", cc = \"cubic\", cubic = { beta = 0.8 } }";
    let cases: [(&str, String); 3] = [
        ("ports", two_blocks("h3", &of("dctcp"), &of("ratemp"))),
        ("telemetry", two_blocks("h0", &of("powertcp"), &of("cubic"))),
        ("transport", two_blocks("h3", "", beta)),
    ];
    let all = cases.map(|(name, traffic)| {
        let refused = field(name, STAR_OF_FOUR, &traffic, 1.0, &[OVER_TCP, MARKS]).map(|_| ()).unwrap_err();
        format!("{name}:\n{}", refused.replace(env!("CARGO_TARGET_TMPDIR"), "DIR"))
    });
    insta::assert_snapshot!(all.join("\n"));
    // PowerTCP on hosts of its own.
    let apart = two_blocks("h3", &of("powertcp"), &of("cubic"));
    assert!(field("apart", STAR_OF_FOUR, &apart, 1.0, &[OVER_TCP]).is_ok());
}

#[test]
fn two_algorithms_have_the_facts_of_linux_and_packets_without_ecn_pass() {
    let traffic = two_blocks("h0", "cc = \"dctcp\"", "");
    let field = field("two", STAR_OF_FOUR, &traffic, 1.0, &[OVER_TCP, MARKS, ("transport.cubic.ecn", "true")]).unwrap();
    let scenario = field.load().unwrap();
    let config = scenario.sim_config();
    let names: Vec<&str> = blocks::algorithms(config).map(|(_, cc)| cc.info().name).collect();
    assert_eq!(names, ["cubic", "dctcp"]);
    assert!(config.stacks().all(|(transport, _)| *transport == config.transport));
    let ecn = config.fabric.ecn.as_ref().unwrap();
    assert_eq!((ecn.non_ect, ecn.thresholds(fairrate_units::Rate::from_mbps(100)).0), (NonEct::Ignore, 30_000.0));
    let text = scenario.to_toml();
    for line in ["form = \"linux\"", "hystart = true", "ecn = false", "min_window = 2"] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
    assert!(field.notes.contains(&"packets that cannot be marked pass".to_owned()), "{:?}", field.notes);
}

#[test]
fn an_algorithm_that_no_block_uses_is_not_asked_for() {
    let traffic = two_blocks("h0", "cc = \"bbr\"", "cc = \"cubic\"");
    let sets = [OVER_TCP, ("transport.cc", "swift")];
    let scenario = field("unused", STAR_OF_FOUR, &traffic, 1.0, &sets).unwrap().load().unwrap();
    let names: Vec<&str> = blocks::algorithms(scenario.sim_config()).map(|(_, cc)| cc.info().name).collect();
    assert_eq!(names, ["bbr", "cubic"]);
}

#[test]
fn the_effective_scenario_says_what_is_done_on_linux() {
    let topology = "kind = \"dumbbell\"\nleft = 1\nright = 1\nhost_rate = \"40Gbps\"\nhost_delay = \"5us\"";
    let traffic = format!("{ALL_TO_ALL}\n[[probe]]\nqueue = \"sw0->sw1\"");
    let mut field = field("effective", topology, &traffic, 0.01, &[]).unwrap();
    field.set_delay(Time::from_us(7)).unwrap();
    let text = field.load().unwrap().to_toml();
    for line in [
        "host_rate = \"400Mbps\"",
        "bottleneck_rate = \"250Mbps\"",
        "host_delay = \"7us\"",
        "bottleneck_delay = \"7us\"",
        "every = \"1ms\"",
        "kind = \"tcp\"",
        "mtu = \"1448B\"",
        "queue_limit = \"100KB\"",
        "pfc = false",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
    let notes = [
        "the scenario's hosts use RDMA; here they use TCP",
        "every egress port has a limit of its own; buffers are not shared by Dynamic Thresholds",
        "delays below 500us are too short to be laid out, as 5us is: such links have the kernel's, which was measured",
    ];
    assert_eq!(field.notes, notes);
}

#[test]
fn delays_that_are_laid_out_stay_and_the_rest_is_spread() {
    let topology = "kind = \"dumbbell\"\nleft = 1\nright = 1\nhost_rate = \"1Gbps\"\nbottleneck_rate = \"1Gbps\"\n\
                    host_delay = \"10us\"\nbottleneck_delay = \"5ms\"";
    let mut field = field("laid-out", topology, ALL_TO_ALL, 1.0, &[]).unwrap();
    let scenario = field.load().unwrap();
    let (config, ways) = (scenario.sim_config(), Ways::new(scenario.sim_config()));
    // Three packets of 1,514 bytes and three of 66 take 37.92 us at 1 Gb/s. Six links delay 10 ms and the rest of 120
    // us.
    let rtts = vec![Time::from_us(10_120 + 38); config.flows.len()];
    let besides = idle::link_delay(config, &ways, &rtts);
    assert!((Time::from_us(20)..Time::from_ns(20_100)).contains(&besides), "{besides}");
    field.set_delay(Time::from_us(20)).unwrap();
    let text = field.load().unwrap().to_toml();
    for line in ["host_delay = \"20us\"", "bottleneck_delay = \"5020us\""] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
    assert_eq!(idle::furthest_off(config, &ways, &rtts), Some((Time::from_ms(10), rtts[0])));
}

#[test]
fn field_examples_are_on_linux_as_they_stand() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/field");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut n = 0;
    for file in files.filter(|file| file.extension().is_some_and(|e| e == "toml")) {
        let asked = Scenario::load(&file, &Overrides::default()).unwrap();
        let field = Field::new(file.clone(), Overrides::default(), 1.0, true).unwrap();
        assert_eq!(field.notes, [""; 0], "{}", file.display());
        assert_eq!(field.load().unwrap().sim_config().transport, asked.sim_config().transport, "{}", file.display());
        n += 1;
    }
    assert_eq!(n, 5);
}

/// Two blocks whose flows share the port to h0 in classes 3 and 4, and what `[[class]]` says of them.
fn in_classes(first: &str, second: &str, of_3: &str, of_4: &str) -> String {
    let blocks = two_blocks("h3", &format!("{first}\nclass = 3"), &format!("{second}\nclass = 4"));
    format!("{blocks}\n[[class]]\nclass = 3\n{of_3}\n[[class]]\nclass = 4\n{of_4}")
}

#[test]
fn classes_with_weights_are_asked_for_by_dscp() {
    let traffic = in_classes("cc = \"theta-powertcp\"", "cc = \"cubic\"", "weight = 1.0", "weight = 3.0");
    let scenario = field("classes", STAR_OF_FOUR, &traffic, 1.0, &[OVER_TCP]).unwrap().load().unwrap();
    let config = scenario.sim_config();
    let (ways, classes) = (Ways::new(config), Classes::of(config).unwrap());
    let plan = Plan::new(config, &ways, "fr-1");
    // Each class has the port's limit, and the last one has no mark.
    let ports: Vec<String> = [1, 3, 5, 7].map(|port| format!("--port fr-1-sw0/p{port}:100000000bps")).into();
    let expected = format!("classes set {} --class cs3:1 --others 3 --limit 100000B", ports.join(" "));
    assert_eq!(classes.arguments(config, &plan).join(" "), expected);
    let tos: Vec<u32> = config.flows.iter().map(|flow| classes.tos(config, flow)).collect();
    assert_eq!(tos, [0x60, 0]);
    // Hosts keep their token buckets, and the switch's ports have none.
    for node in plan.nodes() {
        assert_eq!(plan.queues(node).is_empty(), !config.topology.is_host(node));
    }
    // The simulator has the same limit: a small part of a large buffer.
    assert_eq!(config.fabric.class(3).egress_alpha, Some(1.0 / 1_023.0));
    assert_eq!(config.fabric.buffer.as_u64(), 102_400_000);
}

#[test]
fn flows_of_one_class_have_token_buckets_whatever_other_classes_there_are() {
    let traffic = in_classes("", "", "weight = 1.0", "weight = 1.0");
    let sets = [OVER_TCP, ("traffic.0.class", "4"), ("switch.egress_alpha", "1.0")];
    let scenario = field("one-class", STAR_OF_FOUR, &traffic, 1.0, &sets).unwrap().load().unwrap();
    let config = scenario.sim_config();
    let ways = Ways::new(config);
    assert_eq!(Classes::of(config), None);
    let plan = Plan::new(config, &ways, "fr-1");
    let queues: String = plan.nodes().map(|node| plan.queues(node)).collect();
    // Half of 100 KB, which a class alone has with an alpha of one.
    assert_eq!(queues.matches("limit 50000\n").count(), 4);
}

#[test]
fn classes_that_cannot_be_laid_out_are_refused_or_noted() {
    let of = |cc: &str| format!("cc = \"{cc}\"");
    let refused = |name, traffic: &str| field(name, STAR_OF_FOUR, traffic, 1.0, &[OVER_TCP]).map(|_| ()).unwrap_err();
    let own = "weight = 1.0\ntelemetry = \"class\"";
    let message = refused("own", &in_classes(&of("powertcp"), &of("cubic"), own, own));
    assert!(message.contains("packets without a mark are in one of them"), "{message}");
    let message = refused("rocc-classes", &in_classes(&of("rocc"), &of("cubic"), "weight = 1.0", "weight = 1.0"));
    assert!(message.contains("`rocc` acts on the queue of a whole port here"), "{message}");
    let strict = in_classes("", &of("cubic"), "", "weight = 1.0");
    let field = field("strict", STAR_OF_FOUR, &strict, 1.0, &[OVER_TCP]).unwrap();
    assert_eq!(field.notes[0], "a class has no weight, so switches treat all classes alike");
}
