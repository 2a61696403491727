//! Servers with scale-up networks: what names stand for, and which traffic uses which network.

use std::collections::BTreeSet;
use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{NodeId, SimConfig};

/// Returns the flows of a block on two servers of four GPUs, with names of their ends; the resolved scenario has the
/// same ones.
fn ends(topology: &str, block: &str) -> BTreeSet<(String, String)> {
    let text =
        format!("duration = \"1ms\"\n[topology]\n{topology}\n[[traffic]]\n{block}\n[transport]\nrto = \"1ms\"\n");
    let read = |text: &str| Scenario::from_toml(text, "x.toml", Path::new("."), &Overrides::default());
    let scenario = read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let resolved = scenario.to_toml();
    assert_eq!(read(&resolved).expect("it reads").sim_config().flows, scenario.sim_config().flows, "{resolved}");
    let config: &SimConfig = scenario.sim_config();
    let name = |node: NodeId| config.topology.nodes[node.index()].name.clone();
    config.flows.iter().map(|flow| (name(flow.src), name(flow.dst))).collect()
}

/// Returns `true` if a node is an end point on a scale-up network.
fn is_up(name: &str) -> bool {
    name.strip_suffix("up").is_some_and(|name| name.ends_with('.'))
}

const RAIL: &str = "kind = \"rail\"\nservers = 2\ngpus_per_server = 4\nspines = 2";

/// An exchange of all ranks has 2·4·3 pairs inside servers and 8·4 between them.
#[test]
fn collectives_use_both_networks() {
    let star = "kind = \"star\"\nhosts = 8\nscale_up = { size = 4, rate = \"800Gbps\" }";
    for topology in [RAIL, star] {
        let pairs = ends(topology, "kind = \"collective\"\nop = \"all-to-all\"\nbytes = \"8KB\"");
        assert_eq!(pairs.len(), 56);
        let inside = pairs.iter().filter(|(from, _)| is_up(from));
        assert_eq!(inside.count(), 24);
        assert!(pairs.iter().all(|(from, to)| is_up(from) == is_up(to)));
        assert!(pairs.contains(&("h4.up".into(), "h7.up".into())) && pairs.contains(&("h3".into(), "h4".into())));
    }
    let none = format!("{RAIL}\nscale_up = false");
    let pairs = ends(&none, "kind = \"collective\"\nop = \"all-to-all\"\nbytes = \"8KB\"");
    assert!(pairs.len() == 56 && pairs.iter().all(|(from, _)| !is_up(from)));
}

#[test]
fn other_traffic_has_nics_alone() {
    for block in [
        "kind = \"all-to-all\"\nbytes = \"1KB\"",
        "kind = \"all-to-all\"\nbytes = \"1KB\"\nhosts = \"*\"",
        "kind = \"all-to-all\"\nbytes = \"1KB\"\nhosts = [\"nvswitch*\"]",
        "kind = \"poisson\"\nsizes = \"fixed\"\nsize = \"1KB\"\nload = 0.5\nmax_flows = 500",
    ] {
        let pairs = ends(RAIL, block);
        assert!(40 < pairs.len() && pairs.iter().all(|(from, to)| !from.contains('.') && !to.contains('.')), "{block}");
    }
    let server = ends(RAIL, "kind = \"all-to-all\"\nbytes = \"1KB\"\nhosts = \"nvswitch1\"");
    let hosts: BTreeSet<String> = server.into_iter().map(|(from, _)| from).collect();
    assert_eq!(hosts, ["h4", "h5", "h6", "h7"].map(String::from).into());
}

/// Returns the edges of a ring with this placement, in the order of ranks.
fn ring(placement: &str, seed: u64) -> Vec<(String, String)> {
    let text = format!(
        "duration = \"1ms\"\nseed = {seed}\n[topology]\n{RAIL}\n[transport]\nrto = \"1ms\"\n[[traffic]]\nkind = \"collective\"\n\
         op = \"all-gather\"\nbytes = \"8KB\"\n{placement}\n"
    );
    let files = [("by-hand.txt", "# ranks\nh7\n h0-h2\n\nh6\n")];
    let read = |text: &str, files: &[(&str, &str)]| Scenario::from_texts(text, "x.toml", files, &Overrides::default());
    let scenario = read(&text, &files).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let resolved = scenario.to_toml();
    let flows = &scenario.sim_config().flows;
    let again = read(&resolved, &[("placement.txt", files[0].1)]).expect("it reads");
    assert_eq!(again.sim_config().flows, *flows, "{resolved}");
    let name = |node: NodeId| scenario.sim_config().topology.nodes[node.index()].name.clone();
    // The messages of the first step have no dependency.
    let first = flows.iter().filter(|flow| flow.trigger == fairrate_sim::Trigger::Time);
    first.map(|flow| (name(flow.src), name(flow.dst))).collect()
}

#[test]
fn ranks_are_placed_as_the_scenario_says() {
    let edges = |names: &[&str]| -> BTreeSet<(String, String)> {
        let end = |from: &str, to: &str| {
            let server = |name: &str| name[1..].parse::<u32>().expect("a number") / 4;
            let suffix = if server(from) == server(to) { ".up" } else { "" };
            (format!("{from}{suffix}"), format!("{to}{suffix}"))
        };
        (0..names.len()).map(|at| end(names[at], names[(at + 1) % names.len()])).collect()
    };
    let ring = |placement: &str, seed| ring(placement, seed).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(ring("", 1), edges(&["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"]));
    let by_rail = ring("placement = \"by-rail\"", 1);
    assert_eq!(by_rail, edges(&["h0", "h4", "h1", "h5", "h2", "h6", "h3", "h7"]));
    let some = ring("placement = \"by-rail\"\nhosts = [\"h5\", \"h0\", \"h4\", \"h1\"]", 1);
    assert_eq!(some, edges(&["h0", "h4", "h1", "h5"]));
    let random = [1, 2].map(|seed| ring("placement = \"random\"", seed));
    assert!(random[0] != random[1] && random.iter().all(|edges| edges.len() == 8));
    let by_hand = ring("placement = \"file\"\nplacement_path = \"by-hand.txt\"", 1);
    assert_eq!(by_hand, edges(&["h7", "h0", "h1", "h2", "h6"]));
}
