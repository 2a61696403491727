//! Random whole scenarios.

use std::path::Path;

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Needs, PortScope, Profile, Queueing};

use super::draw::{Draw, Toml};
use super::network::Network;
use super::{fabric, hosts, imperfect, network, traffic};

/// A scenario and the files it names.
#[derive(Clone)]
pub struct Case {
    /// Text of the scenario.
    pub toml: String,
    /// Names and texts of files beside it.
    pub files: Vec<(&'static str, String)>,
}

impl Case {
    /// Writes the files that the scenario names.
    pub fn write_files(&self, dir: &Path) {
        for (name, text) in &self.files {
            std::fs::write(dir.join(name), text).expect("it can be written");
        }
    }
}

/// Draws an algorithm that the network supports.
fn algorithm(draw: &mut Draw, network: &Network) -> &'static str {
    loop {
        let cc = draw.pick(ALGORITHMS).name;
        let misses_path = network.has_circuits && knows_paths(&needs_of(cc));
        if !misses_path && (!network.has_host_queues || is_over_tcp(cc)) {
            return cc;
        }
    }
}

fn needs_of(cc: &str) -> Needs {
    AlgorithmConfig::by_name(cc, Profile::Paper).expect("it is of the table").needs()
}

fn knows_paths(needs: &Needs) -> bool {
    needs.network.ports != PortScope::None || needs.feedback.allocator || needs.feedback.oracle.is_some()
}

/// Returns `true` if packets of a flow under `cc` may not be sprayed.
fn has_one_path(cc: &str) -> bool {
    let needs = needs_of(cc);
    knows_paths(&needs) || needs.network.telemetry.is_some()
}

/// Returns some algorithms that fit into one network with `cc`, each with `true` if it goes over TCP. `toml` is the
/// scenario so far.
fn beside(draw: &mut Draw, toml: &str, cc: &str, over_circuits: bool) -> Vec<(&'static str, bool)> {
    let (own, by_packet) = (needs_of(cc), toml.contains("[routing]"));
    let is_alone = |needs: &Needs| {
        let Needs { network, feedback, .. } = needs;
        let has_port_queues = network.queueing == Queueing::Own && network.ports != PortScope::None;
        feedback.oracle.is_some() || feedback.allocator || network.queueing == Queueing::Priorities || has_port_queues
    };
    let fits = |other: &'static str| {
        let needs = needs_of(other);
        let has_two = |has: fn(&Needs) -> bool| has(&own) && has(&needs);
        let marks_differ = own.network.ecn && needs.network.ecn && own.network.red != needs.network.red;
        let conflicts = [
            is_alone(&own),
            is_alone(&needs),
            own.network.union(&needs.network).is_err(),
            marks_differ,
            has_two(|needs| needs.feedback.grants.is_some()),
            has_two(|needs| needs.feedback.credit.is_some()),
            by_packet && has_one_path(other),
            over_circuits && knows_paths(&needs),
        ];
        !conflicts.contains(&true)
    };
    let all: Vec<&'static str> = ALGORITHMS.iter().map(|info| info.name).filter(|other| fits(other)).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let chosen: Vec<&'static str> = draw.some(&all, 2).into_iter().copied().collect();
    chosen.into_iter().map(|other| (other, is_over_tcp(other) && draw.one_in(2))).collect()
}

/// Returns `true` if an algorithm may go over TCP.
fn is_over_tcp(cc: &str) -> bool {
    let needs = needs_of(cc);
    !needs.feedback.uet && needs.feedback.grants.is_none() && needs.feedback.cnp_interval.is_none()
}

/// Draws the scenario of a seed, whose files go into `dir`.
pub fn case(seed: u64, dir: &Path) -> Case {
    let draw = &mut Draw::new(seed);
    let network = network::network(draw, dir);
    let cc = algorithm(draw, &network);
    let tcp = (draw.one_in(2) || network.has_host_queues) && !["homa", "nscc", "rccc", "eqds", "ndp"].contains(&cc);
    let weights = AlgorithmConfig::by_name(cc, Profile::Paper).is_some_and(|cc| cc.needs().feedback.weights);
    let mut toml = Toml::default();
    toml.key("seed", draw.below(1_000));
    toml.any(draw, ("duration", &["\"50us\"", "\"300us\"", "\"2ms\"", "\"20ms\"", "\"none\""]));
    toml.maybe(draw, 2, &[("stop", &["\"all-flows-done\""])]);
    toml.maybe(draw, 10, &[("profile", &["\"ns3\"", "\"rocc-omnet\""])]);
    toml.0.push_str(&network.toml);
    if draw.one_in(6) {
        toml.section("[links]");
        toml.maybe(draw, 2, &[("clock", &["\"whole-nanoseconds\""]), ("ties", &["\"insertion\""])]);
        if cc != "ideal" {
            toml.maybe(draw, 2, &[("frame_overhead", &["\"20B\"", "\"1KiB\""])]);
        }
    }
    hosts::transport(draw, &mut toml, cc, tcp);
    if !draw.one_in(4) {
        fabric::switch(draw, &mut toml, cc);
        if network.has_circuits {
            toml.0 = toml.0.replace("pfc = true", "pfc = false");
        }
    }
    if draw.one_in(4) {
        let plain = !["queue", "ns3", "insertion", "trim"].iter().any(|word| toml.0.contains(word));
        let weighs = plain && !network.has_circuits && !["homa", "pfabric", "bfc"].contains(&cc);
        fabric::classes(draw, &mut toml, weighs);
    }
    if !network.has_circuits && !knows_paths(&needs_of(cc)) && draw.one_in(2) {
        let by_hosts = fabric::routing(draw, &mut toml, !has_one_path(cc));
        if by_hosts {
            let entropy = hosts::entropy(draw, cc);
            toml.0 = toml.0.replacen("[transport]\n", &format!("[transport]\n{entropy}"), 1);
        }
    }
    if network.has_host_queues {
        // They go by the switches at which hosts are.
        toml.0 = toml.0.replace("\"wcmp\"", "\"ecmp\"").replace("\"conga\"", "\"ecmp\"");
    }
    fabric::faults(draw, &mut toml, &network);
    if cc == "flowtune" && draw.one_in(2) {
        hosts::allocator(draw, &mut toml, &network);
    }
    let beside = if draw.one_in(4) && !network.has_host_queues {
        beside(draw, &toml.0, cc, network.has_circuits)
    } else {
        Vec::new()
    };
    let flows = traffic::traffic(draw, &mut toml, &network, (tcp, weights), &beside);
    let convergence = draw.one_in(10);
    traffic::probes(draw, &mut toml, &network, convergence);
    if convergence && draw.one_in(2) {
        toml.section("[[traffic]]");
        toml.text("kind", "churn");
        toml.all(draw, &[("flows", &["2", "5"]), ("changes", &["1", "4"])]);
    }
    imperfect::hosts(draw, &mut toml, &network);
    if network.has_host_queues {
        // A NIC below its link's rate takes packets from flows.
        let lines: Vec<&str> = toml.0.lines().filter(|line| !line.starts_with("nic_rate")).collect();
        toml.0 = lines.join("\n") + "\n";
    }
    let files = [("topology.txt", network.file), ("flows.csv", flows)];
    Case { toml: toml.0, files: files.into_iter().filter_map(|(name, text)| Some((name, text?))).collect() }
}
