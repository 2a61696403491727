use super::*;
use crate::{Overrides, Scenario};

const MATRIX: &str = "# a job\nNodes 16\nConnections 2\n0->13 id 1 start 5001 size 200000\n3->1 id 2 start 0 size 0\n";
const TWO_TIERS: &str = "Nodes 32\nTiers 2\nTier 0\nDownlink_speed_Gbps 200\nRadix_Up 4\nRadix_Down 8\nDownlink_Latency_ns 500\n\
                         Tier 1\nDownlink_speed_Gbps 400\nRadix_Down 4\nDownlink_Latency_ns 700\nSwitch_Latency_ns 3\n";

fn imported(matrix: &str, tree: Option<&str>) -> Imported {
    let tree = tree.map(|text| Tree::parse(text).unwrap());
    import("job", &Matrix::parse(matrix).unwrap(), StartUnit::Picoseconds, tree.as_ref()).unwrap()
}

/// Reads what was imported as a scenario.
fn scenario(imported: &Imported) -> Scenario {
    let files = [("flows.csv", imported.flows.as_str())];
    Scenario::from_texts(&imported.scenario, "job.toml", &files, &Overrides::default()).unwrap()
}

#[test]
fn a_matrix_becomes_a_list_of_flows_on_a_fat_tree() {
    let made = imported(MATRIX, None);
    assert_eq!(made.flows, "start_ns,src,dst,bytes,id\n5.001,h0,h13,200000,1\n0,h3,h1,1000000000000,2\n");
    assert!(made.left_out.iter().all(|sentence| made.scenario.contains(sentence)), "{made:?}");
    assert!(made.left_out.iter().any(|sentence| sentence.contains("duration")), "{made:?}");
    let config = scenario(&made);
    let config = config.sim_config();
    assert_eq!((config.topology.hosts().count(), config.flows.len()), (16, 2));
    assert_eq!(config.flows[1].start, fairrate_units::Time::from_ps(5_001));
}

#[test]
fn microseconds_are_whole_and_flows_without_ids_get_ours() {
    let matrix = Matrix::parse("Nodes 16\nConnections 1\n0->13 start 40 size 7\n").unwrap();
    let made = import("job", &matrix, StartUnit::Microseconds, None).unwrap();
    assert_eq!(made.flows, "start_ns,src,dst,bytes\n40000,h0,h13,7\n");
    let at_once = Matrix::parse("Nodes 16\nConnections 1\n0->13 start 0 size 7\n").unwrap();
    assert!(import("job", &at_once, StartUnit::Microseconds, None).unwrap().flows.ends_with("\n0,h0,h13,7\n"));
}

#[test]
fn trees_of_two_and_three_tiers_have_their_links() {
    let made = imported("Nodes 32\nConnections 1\n0->31 start 0 size 1\n", Some(TWO_TIERS));
    assert!(made.left_out.iter().any(|sentence| sentence.contains("latency of switches")), "{made:?}");
    let two = scenario(&made);
    // 32 hosts, and four leaves with a link to each of four spines.
    assert_eq!(two.sim_config().topology.links.len(), 32 + 16);
    let three = "Nodes 16\nTiers 3\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Up 2\nRadix_Down 2\nDownlink_Latency_ns 1000\n\
                 Tier 1\nDownlink_speed_Gbps 100\nRadix_Up 2\nRadix_Down 2\nDownlink_Latency_ns 1000\nTier 2\n\
                 Downlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\n";
    let three = scenario(&imported("Nodes 16\nConnections 1\n0->13 start 0 size 1\n", Some(three)));
    assert_eq!(three.sim_config().topology.links.len(), 16 + 16 + 16);
}

#[test]
fn errors_have_the_line() {
    let matrix = |text: &str| Matrix::parse(text).unwrap_err();
    for (text, line, what) in [
        ("Nodes 16\nConnections 2\n0->13 start 0 size 1\n", 2, "2 connections are announced, 1 follow"),
        ("Nodes 16\nConnections 1\n0->16 start 0 size 1\n", 3, "host 16 is not among the 16 nodes"),
        ("Nodes 16\nConnections 1\n4->4 start 0 size 1\n", 3, "sends to itself"),
        ("Nodes 16\nConnections 1\n0->1 start 0\n", 3, "no `size`"),
        (
            "Nodes 16\nConnections 2\n0->1 id 7 start 0 size 1\n1->2 id 7 start 0 size 1\n",
            4,
            "id 7 is of an earlier flow",
        ),
        ("Nodes 16\nConnections 1\n0->1 start 0 size 1 size 2\n", 3, "`size` is there twice"),
        ("Nodes 16\nConnections 1\n0->1 id 1 trigger 1 size 1\n", 3, "wait for each other"),
        ("Nodes 16\nConnections 1\n0->1 strat 0 size 1\n", 3, "no key `strat`"),
        ("Connections 1\n0->1 start 0 size 1\nNodes 16\n", 2, "before `Nodes`"),
        ("Nodes 99999999999\n", 1, "is no number for `Nodes`"),
    ] {
        let error = matrix(text);
        assert!(error.line == line && error.message.contains(what), "{error:?}");
    }
    let error = import("job", &Matrix::parse("Nodes 17\nConnections 0\n").unwrap(), StartUnit::Picoseconds, None);
    assert!(error.unwrap_err().message.contains("no fat tree has 17 hosts"));
    for (from, to, what) in [
        ("Radix_Down 4", "Radix_Down 5", "the number of ToRs in a pod"),
        ("Tier 1", "Tier 2", "tier 2 is where tier 1 is expected"),
        ("Radix_Up 4\n", "", "has no `Radix_Up`"),
        ("Tiers 2", "Tiers 3", "3 tiers are announced, 2 follow"),
        ("Radix_Down 4", "Radix_Down 4\nBundle 2", "several cables"),
    ] {
        let error = Tree::parse(&TWO_TIERS.replacen(from, to, 1)).unwrap_err();
        assert!(error.message.contains(what), "{error:?}");
    }
}
