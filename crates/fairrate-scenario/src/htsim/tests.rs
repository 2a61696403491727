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

/// Returns a matrix of four hosts with these flows and triggers.
fn triggered(flows: &[&str], triggers: &[&str]) -> String {
    let head = format!("Nodes 16\nConnections {}\nTriggers {}\n", flows.len(), triggers.len());
    head + &[flows, triggers].concat().join("\n")
}

/// Returns the columns `src`, `dst`, `id` and `after` of what was imported.
fn waits(matrix: &str) -> Vec<String> {
    let made = imported(matrix, None);
    assert!(scenario(&made).sim_config().flows.len() + 1 == made.flows.lines().count(), "{made:?}");
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        [fields[1], fields[2], fields[4], fields[5]].join(" ")
    };
    made.flows.lines().skip(1).map(of_line).collect()
}

#[test]
fn flows_wait_for_what_activates_their_trigger() {
    let one = "trigger id 1 oneshot";
    // One flow of a sender after the other, and flows without an id.
    let serial = ["0->1 id 7 start 0 size 5 send_done_trigger 1", "0->2 trigger 1 size 5", "3->1 start 0 size 5"];
    assert_eq!(waits(&triggered(&serial, &[one])), ["h0 h1 7 ", "h0 h2 8 7:acked", "h3 h1 9 "]);
    // A ring: the receiver goes on, and sees data arrive, not that it is acknowledged.
    let ring = ["0->1 id 1 start 0 size 5 send_done_trigger 1", "1->2 id 2 trigger 1 size 5"];
    assert_eq!(waits(&triggered(&ring, &[one])), ["h0 h1 1 ", "h1 h2 2 1"]);
    assert!(imported(&triggered(&ring, &[one]), None).scenario.contains("The moment of 1 starts"));
    let exact = ring.map(|line| line.replace("send_done", "recv_done"));
    let exact = triggered(&[&exact[0], &exact[1]], &[one]);
    assert_eq!(waits(&exact), ["h0 h1 1 ", "h1 h2 2 1"]);
    assert!(!imported(&exact, None).scenario.contains("moment"));
    // A barrier: two flows before two others.
    let barrier = [
        "0->1 id 1 start 0 size 5 send_done_trigger 4",
        "2->0 id 2 start 0 size 5 recv_done_trigger 4",
        "0->3 id 3 trigger 4 size 5",
        "0->4 id 4 trigger 4 size 5",
    ];
    let got = waits(&triggered(&barrier, &["trigger id 4 barrier count 2"]));
    assert_eq!(got, ["h0 h1 1 ", "h2 h0 2 ", "h0 h3 3 1:acked;2", "h0 h4 4 1:acked;2"]);
}

#[test]
fn multishot_triggers_start_the_next_flow() {
    let line = |dst: u32, how: &str| format!("0->{dst} id {dst} {how} size 5 send_done_trigger 1");
    let matrix = |n_at_once: u32| {
        let how = |dst| if dst <= n_at_once { "start 0" } else { "trigger 1" };
        let lines: Vec<String> = (1..5).map(|dst| line(dst, how(dst))).collect();
        triggered(&lines.iter().map(String::as_str).collect::<Vec<_>>(), &["trigger id 1 multishot"])
    };
    assert_eq!(waits(&matrix(1)), ["h0 h1 1 ", "h0 h2 2 1:acked", "h0 h3 3 2:acked", "h0 h4 4 3:acked"]);
    assert!(!imported(&matrix(1), None).scenario.contains("multishot"));
    assert_eq!(waits(&matrix(2)), ["h0 h1 1 ", "h0 h2 2 ", "h0 h3 3 1:acked", "h0 h4 4 2:acked"]);
    assert!(imported(&matrix(2), None).scenario.contains("The order of 2 flows of multishot triggers"));
}

#[test]
fn triggers_that_cannot_be_carried_over_are_refused() {
    let (first, then) = ("0->1 id 1 start 0 size 5 send_done_trigger 1", "0->2 id 2 trigger 1 size 5");
    let again = "0->3 id 3 start 0 size 5 send_done_trigger 1";
    for (flows, trigger, line, what) in [
        (vec![then], "oneshot", 5, "no flow activates trigger 1"),
        (vec![first, again, then], "oneshot", 7, "2 flows activate trigger 1, which is for one"),
        (vec![first, then], "barrier count 2", 6, "waits for 2: it never starts its 1 flows"),
        (vec![first, again, then], "barrier count 1", 7, "waits for any 1 of 2 flows"),
        (vec![first, then, "0->4 id 4 trigger 1 size 5"], "multishot", 7, "never starts the last of its 2 flows"),
        (vec![first, "5->6 id 2 trigger 1 size 5"], "oneshot", 5, "of line 4 from 0 to 1, of which it knows nothing"),
        (vec!["0->1 id 1 start 0 size 0 send_done_trigger 1", then], "oneshot", 4, "never activates trigger 1"),
    ] {
        let error = Matrix::parse(&triggered(&flows, &[&format!("trigger id 1 {trigger}")])).unwrap_err();
        assert!(error.line == line && error.message.contains(what), "{error:?}");
    }
    // Flows that wait for each other are refused as those of a list are.
    let ring = ["0->1 id 1 trigger 2 size 5 recv_done_trigger 1", "1->0 id 2 trigger 1 size 5 recv_done_trigger 2"];
    let made = imported(&triggered(&ring, &["trigger id 1 oneshot", "trigger id 2 oneshot"]), None);
    let files = [("flows.csv", made.flows.as_str())];
    let error = Scenario::from_texts(&made.scenario, "job.toml", &files, &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("cycle"), "{error}");
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
        ("Nodes 16\nConnections 1\n0->1 id 1 trigger 1 start 0 size 1\n", 3, "a `start` and a `trigger`"),
        ("Nodes 16\nConnections 1\n0->1 id 1 trigger 1 size 1\n", 3, "no line declares trigger 1"),
        ("Nodes 16\nConnections 1\n0->1 id 1 start 0 msg size 1\n", 3, "`msg`"),
        ("Nodes 16\nConnections 0\nTriggers 1\n", 3, "1 triggers are announced, 0 follow"),
        ("Nodes 16\nConnections 0\nTriggers 1\ntrigger id 1 often\n", 4, "of no known kind"),
        ("Nodes 16\nConnections 0\nTriggers 1\ntrigger id 1 barrier 4\n", 4, "no `count`"),
        ("Nodes 16\nTriggers 2\ntrigger id 1 oneshot\ntrigger id 1 oneshot\n", 4, "on line 3, too"),
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
