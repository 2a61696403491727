//! Hosts by names and patterns.

use std::collections::BTreeSet;
use std::path::Path;

use fairrate_scenario::{Overrides, Scenario, ScenarioError};

/// Reads a scenario on a leaf-spine of 4 racks with 4 hosts each.
fn read(rest: &str) -> Result<Scenario, ScenarioError> {
    let text = format!(
        "duration = \"1ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n[transport]\nrto = \"1ms\"\n{rest}"
    );
    Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default())
}

/// Returns the ids of the hosts that send and that receive in a block with these lines.
fn ends(block: &str) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let scenario = read(&format!("[[traffic]]\nbytes = \"1KB\"\n{block}")).expect(block);
    let flows = &scenario.sim_config().flows;
    // The resolved scenario has the same flows.
    let resolved = scenario.to_toml();
    let again = Scenario::from_toml(&resolved, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
    assert_eq!(&again.sim_config().flows, flows, "{resolved}");
    (flows.iter().map(|flow| flow.src.0).collect(), flows.iter().map(|flow| flow.dst.0).collect())
}

fn set(ids: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
    ids.into_iter().collect()
}

#[test]
fn patterns_stand_for_hosts() {
    for kind in ["permutation", "all-to-all", "stride\"\nstride = \"1"] {
        let kind = kind.replace("= \"1", "= 1");
        let kind = if kind.contains("stride = 1") { "stride\"\nstride = 1".to_owned() } else { format!("{kind}\"") };
        let of = |hosts: &str| ends(&format!("kind = \"{kind}\nhosts = {hosts}"));
        assert_eq!(of("[\"h0-h7\"]"), (set(0..8), set(0..8)), "{kind}");
        assert_eq!(of("\"h1*\""), (set([1, 10, 11, 12, 13, 14, 15]), set([1, 10, 11, 12, 13, 14, 15])), "{kind}");
        assert_eq!(of("[\"tor1-tor2\", \"h0\", 15]").0, set((4..12).chain([0, 15])), "{kind}");
        assert_eq!(of("\"tor*\"").0, set(0..16), "{kind}");
        assert_eq!(of("\"tor3\"").0, set(12..16), "{kind}");
        // All nodes: hosts by themselves and by their ToRs, each once.
        assert_eq!(of("[\"*\"]").0, set(0..16), "{kind}");
    }
}

#[test]
fn senders_of_a_pattern_do_not_send_to_themselves() {
    for kind in ["kind = \"incast\"", "kind = \"staggered\"\ninterval = \"1us\""] {
        let of = |senders: &str| ends(&format!("{kind}\nreceiver = \"h2\"\nsenders = {senders}"));
        assert_eq!(of("\"h0-h5\""), (set([0, 1, 3, 4, 5]), set([2])));
        assert_eq!(of("[\"tor0\", 9]"), (set([0, 1, 3, 9]), set([2])));
        assert_eq!(of("[\"h*\"]").0.len(), 15);
        assert_eq!(of("3").0.len(), 3);
    }
    let itself =
        read("[[traffic]]\nkind = \"incast\"\nbytes = \"1KB\"\nreceiver = \"h2\"\nsenders = [\"h2\"]").unwrap_err();
    assert!(format!("{itself:?}").contains("cannot send to itself"), "{itself:?}");
}

#[test]
fn poisson_and_closed_loops_take_patterns() {
    let poisson = "kind = \"poisson\"\nsizes = \"fixed\"\nsize = \"1KB\"\nload = 0.1\nhosts = \"tor0-tor1\"\nreceivers = \"h8-h11\"";
    let read = |block: &str| read(&format!("[[traffic]]\n{block}")).expect(block);
    let flows = read(poisson).sim_config().flows.clone();
    assert!(!flows.is_empty() && flows.iter().all(|flow| flow.src.0 < 8 && (8..12).contains(&flow.dst.0)));
    let loops = "kind = \"closed-loop\"\nsizes = \"fixed\"\nsize = \"1KB\"\nload = 0.1\nsenders = \"h0-h1\"\nreceivers = [\"h8-h9\"]";
    let flows = read(loops).sim_config().flows.clone();
    assert!(!flows.is_empty() && flows.iter().all(|flow| flow.src.0 < 2 && (8..10).contains(&flow.dst.0)));
}

/// Links and switches of faults take the same patterns: four hosts with a link each, and two spines with four.
#[test]
fn faults_take_ranges() {
    let traffic = "[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n";
    let ports = |fault: &str| {
        let scenario = read(&format!("{traffic}[[fault]]\ndown_at = \"1us\"\n{fault}")).expect(fault);
        scenario.sim_config().faults[0].ports.len()
    };
    assert_eq!(ports("links = [\"h0-h3->tor0\"]"), 8);
    assert_eq!(ports("links = \"tor1-tor2->spine*\""), 8);
    assert_eq!(ports("switches = [\"spine0-spine1\"]"), 16);
}

#[test]
fn patterns_that_match_nothing_are_errors() {
    let of = |hosts: &str| {
        let error =
            read(&format!("[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\nhosts = {hosts}")).unwrap_err();
        format!("{error:?}")
    };
    for (hosts, message) in [
        ("[\"x*\"]", "no node is called `x*`"),
        ("[\"h0-h16\"]", "there is no node `h16`, an end of `h0-h16`"),
        ("[\"spine*\"]", "no switch of `spine*` has hosts"),
        ("[\"h3-h1\"]", "there is no node `h3-h1`"),
        ("\"h99\"", "there is no node `h99`"),
        ("[\"spine0\"]", "switch `spine0` has no hosts"),
    ] {
        assert!(of(hosts).contains(message), "{hosts}: {}", of(hosts));
    }
    let traffic = "[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n";
    let fault = format!(
        "{:?}",
        read(&format!("{traffic}[[fault]]\ndown_at = \"1us\"\nswitches = [\"spine0-spine9\"]")).unwrap_err()
    );
    assert!(fault.contains("there is no node `spine9`"), "{fault}");
}

/// Returns the hosts with each processing time, in ns.
fn processing(sections: &str) -> Vec<(u64, BTreeSet<u32>)> {
    let traffic = "[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n";
    let scenario = read(&format!("{traffic}{sections}")).expect(sections);
    let of = |scenario: &Scenario| {
        let hosts = scenario.sim_config().hosts.iter();
        hosts.map(|host| (host.processing.as_ns(), host.hosts.iter().map(|node| node.0).collect())).collect::<Vec<_>>()
    };
    let again = Scenario::from_toml(&scenario.to_toml(), "x.toml", Path::new("."), &Overrides::default());
    assert_eq!(of(&again.expect("it reads")), of(&scenario));
    of(&scenario)
}

/// The last block that names a host holds, and a single block may be a table.
#[test]
fn blocks_of_hosts_replace_each_other() {
    assert_eq!(processing("[host]\nprocessing = \"7ns\""), [(7, set(0..16))]);
    let blocks = "[[host]]\nprocessing = \"1ns\"\n[[host]]\nhosts = \"tor1\"\nprocessing = \"2ns\"\n\
                  [[host]]\nhosts = [\"h5\", \"h9-h10\"]\nprocessing = \"3ns\"";
    let first = set((0..4).chain([8]).chain(11..16));
    assert_eq!(processing(blocks), [(1, first), (2, set([4, 6, 7])), (3, set([5, 9, 10]))]);
}
