//! Random networks of a few hosts: every topology of the schema.

use std::fmt::Write;
use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};

use super::draw::{Draw, Key, Toml};

const RATES: &[&str] = &["\"1Gbps\"", "\"10Gbps\"", "\"25Gbps\"", "\"40Gbps\"", "\"100Gbps\"", "\"400Gbps\""];
const DELAYS: &[&str] = &["\"0s\"", "\"1ns\"", "\"100ns\"", "\"1us\"", "\"1500ns\"", "\"20us\""];

/// Shapes, each with its keys of sizes, and its keys of rates and delays.
const SHAPES: &[(&str, &[Key], &[Key])] = &[
    (
        "star",
        &[
            ("hosts", &["4", "6", "8"]),
            ("scale_up", &["{ size = 2 }", "{ size = 2, rate = \"100Gbps\", delay = \"500ns\" }"]),
        ],
        &[("rate", RATES), ("delay", DELAYS)],
    ),
    ("star", &[("hosts", &["2", "3", "5", "9"])], &[("rate", RATES), ("delay", DELAYS)]),
    (
        "dumbbell",
        &[("left", &["1", "2", "4"]), ("right", &["1", "2", "4"])],
        &[("host_rate", RATES), ("host_delay", DELAYS), ("bottleneck_rate", RATES), ("bottleneck_delay", DELAYS)],
    ),
    (
        "parking-lot",
        &[
            ("switches", &["3"]),
            ("hosts_per_switch", &["1", "2", "3"]),
            ("link_rates", &["\"link_rate\"", "[\"10Gbps\", \"40Gbps\"]"]),
        ],
        &[("host_rate", RATES), ("host_delay", DELAYS), ("link_rate", RATES), ("link_delay", DELAYS)],
    ),
    (
        "leaf-spine",
        &[("leaves", &["2", "3", "4"]), ("spines", &["1", "2", "3"]), ("hosts_per_leaf", &["1", "2", "4"])],
        &[("host_rate", RATES), ("host_delay", DELAYS), ("uplink_rate", RATES), ("uplink_delay", DELAYS)],
    ),
    (
        "fat-tree",
        &[
            ("pods", &["2", "3"]),
            ("tors_per_pod", &["1", "2"]),
            ("aggs_per_pod", &["1", "2"]),
            ("cores", &["2", "4"]),
            ("hosts_per_tor", &["1", "2", "3"]),
        ],
        &[
            ("host_rate", RATES),
            ("host_delay", DELAYS),
            ("fabric_rate", RATES),
            ("tor_delay", DELAYS),
            ("core_delay", DELAYS),
        ],
    ),
    (
        "fat-tree-k",
        &[("k", &["2", "4"]), ("hosts_per_edge", &["\"k/2\"", "1", "2", "3"])],
        &[("host_rate", RATES), ("fabric_rate", RATES), ("delay", DELAYS), ("core_delay", DELAYS)],
    ),
    (
        "asymmetric",
        &[("slow_hosts", &["1", "3"]), ("fast_hosts", &["1", "2"])],
        &[("slow_rate", RATES), ("fast_rate", RATES), ("core_rate", RATES), ("delay", DELAYS)],
    ),
    (
        "rdcn",
        &[
            ("tors", &["2", "3", "5"]),
            ("hosts_per_tor", &["1", "2", "3"]),
            ("day", &["\"20us\"", "\"60us\"", "\"225us\""]),
            ("night", &["\"0s\"", "\"1us\"", "\"20us\""]),
        ],
        &[
            ("host_rate", RATES),
            ("host_delay", DELAYS),
            ("uplink_rate", RATES),
            ("uplink_delay", DELAYS),
            ("circuit_rate", RATES),
            ("circuit_delay", DELAYS),
        ],
    ),
    ("rail", SERVERS, CLUSTER),
    ("dcn+", SERVERS, CLUSTER),
    ("hpn", SERVERS, CLUSTER),
    (
        "dragonfly",
        &[
            ("groups", &["2", "3", "4"]),
            ("switches_per_group", &["2", "3"]),
            ("hosts_per_switch", &["1", "2"]),
            ("global_per_switch", &["2", "3"]),
        ],
        DRAGONFLY,
    ),
    (
        "dragonfly",
        &[("groups", &["2", "3"]), ("hosts_per_switch", &["2"]), ("scale_up", &["{ size = 2 }", "{ size = 4 }"])],
        DRAGONFLY,
    ),
];

/// Keys of sizes, and of rates and delays, of servers of GPUs.
const SERVERS: &[Key] = &[
    ("servers", &["1", "2", "3", "4"]),
    ("gpus_per_server", &["2", "4"]),
    ("servers_per_leaf", &["1", "2", "3"]),
    ("spines", &["1", "2", "3"]),
    ("scale_up", &["{}", "{ rate = \"800Gbps\" }", "{ rate = \"100Gbps\", delay = \"1us\" }", "false"]),
];
const DRAGONFLY: &[Key] = &[
    ("host_rate", RATES),
    ("host_delay", DELAYS),
    ("local_rate", RATES),
    ("local_delay", DELAYS),
    ("global_rate", RATES),
    ("global_delay", DELAYS),
];
const CLUSTER: &[Key] =
    &[("host_rate", RATES), ("host_delay", DELAYS), ("uplink_rate", RATES), ("uplink_delay", DELAYS)];

/// A network, with the names that the rest of a scenario can use.
pub struct Network {
    /// Text of its section.
    pub toml: String,
    /// Text of its file, if it is read from one.
    pub file: Option<String>,
    /// Names of hosts.
    pub hosts: Vec<String>,
    /// Names of egress ports.
    pub ports: Vec<String>,
    /// Names of link sets.
    pub link_sets: Vec<String>,
    /// `true` if there are several racks.
    pub has_racks: bool,
    /// `true` if there are circuits.
    pub has_circuits: bool,
    /// `true` if hosts have queues, so that they use TCP.
    pub has_host_queues: bool,
}

/// Draws a network. Its file is written into `dir`.
pub fn network(draw: &mut Draw, dir: &Path) -> Network {
    let (mut toml, file) = if draw.one_in(8) {
        ("[topology]\nkind = \"file\"\npath = \"topology.txt\"\n".to_owned(), Some(topology_file(draw)))
    } else {
        (shape(draw), None)
    };
    if let Some(file) = &file {
        std::fs::write(dir.join("topology.txt"), file).expect("it can be written");
    }
    let has_one_link = !["rdcn", "rail", "dcn+", "hpn", "scale_up = {"].iter().any(|word| toml.contains(word));
    let has_host_queues = has_one_link && draw.one_in(6);
    if has_host_queues {
        toml.push_str("host_queues = true\n");
    }
    let transport = if has_host_queues { "[transport]\nkind = \"tcp\"\n" } else { "" };
    let text = format!("{toml}{transport}[[traffic]]\nkind = \"all-to-all\"\nbytes = \"1B\"\n");
    let scenario = Scenario::from_toml(&text, "network.toml", dir, &Overrides::default());
    let topology = &scenario.unwrap_or_else(|e| panic!("{e}\n{text}")).into_sim_config().topology;
    let name = |node: fairrate_sim::NodeId| &topology.nodes[node.index()].name;
    let ports = (0..topology.n_ports() as u32).map(fairrate_sim::PortId);
    let racks: Vec<u32> = topology.hosts().map(|h| topology.nodes[h.index()].rack).collect();
    Network {
        hosts: topology.hosts().map(|h| name(h).clone()).collect(),
        ports: ports.map(|p| format!("{}->{}", name(topology.from(p)), name(topology.to(p)))).collect(),
        link_sets: topology.link_sets.keys().cloned().collect(),
        has_circuits: topology.circuits.is_some(),
        has_host_queues,
        has_racks: racks.iter().any(|rack| *rack != racks[0]),
        toml,
        file,
    }
}

fn shape(draw: &mut Draw) -> String {
    let (kind, sizes, links) = draw.pick(SHAPES);
    let mut toml = Toml::default();
    toml.section("[topology]");
    toml.text("kind", kind);
    toml.all(draw, sizes);
    toml.maybe(draw, 3, links);
    toml.0
}

/// Draws a topology file: switches in a random tree with some more links, which may close cycles, and hosts at random
/// switches.
fn topology_file(draw: &mut Draw) -> String {
    let (n_hosts, n_switches) = (draw.between(2, 6), draw.between(1, 4));
    let nodes = n_hosts + n_switches;
    let mut links: Vec<(usize, usize)> = (0..n_hosts).map(|h| (h, n_hosts + draw.below(n_switches))).collect();
    links.extend((1..n_switches).map(|s| (n_hosts + draw.below(s), n_hosts + s)));
    for _ in 0..draw.below(3) {
        let (a, b) = (n_hosts + draw.below(n_switches), n_hosts + draw.below(n_switches));
        if a < b {
            links.push((a, b));
        }
    }
    let switches: Vec<String> = (n_hosts..nodes).map(|s| s.to_string()).collect();
    let mut text = format!("{nodes} {n_switches} {}\n{}\n", links.len(), switches.join(" "));
    for (a, b) in links {
        let rate = draw.pick(&["10Gbps", "25Gbps", "100Gbps"]);
        writeln!(text, "{a} {b} {rate} {}us 0", draw.between(1, 5)).expect("text");
    }
    text
}
