//! A report counts each flow of the scenario once, also those that had not begun, and knows when endless flows stop.

use fairrate_control::Registry;
use fairrate_report::load;

use crate::common::simulated;

/// Two flows that finish within the run.
const DONE: &str = r#"
duration = "200us"
[topology]
kind = "star"
hosts = 8
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 2
bytes = "2KB"
"#;

/// Three flows that begin after its end.
const LATE: &str = r#"
[[traffic]]
kind = "incast"
receiver = "h4"
senders = 3
bytes = "2KB"
start = "1ms"
"#;

/// An endless flow that stops within it.
const ENDLESS: &str = r#"
[[traffic]]
kind = "incast"
receiver = "h5"
senders = 1
bytes = "endless"
stop = "100us"
"#;

#[test]
fn each_flow_counts_once_and_endless_ones_stop() {
    let read = |name: &str, more: &[&str]| {
        let (dir, _) = simulated(name, &format!("{DONE}{}", more.concat()), &["-q"]);
        let run = load::run(&dir.join("out"), &Registry::new()).expect("results that were just written");
        let n_flows = run.flows.len() + run.not_started.values().sum::<usize>();
        let stops_ns: Vec<f64> = run.stops_ns.into_values().collect();
        (n_flows, stops_ns, run.worst.iter().filter(|flow| flow.is_explained).count())
    };
    assert_eq!(read("unbegun_none", &[]), (2, vec![], 2));
    assert_eq!(read("unbegun_late", &[LATE]), (5, vec![], 2));
    assert_eq!(read("unbegun_endless", &[ENDLESS]), (3, vec![1e5], 2));
    assert_eq!(read("unbegun_both", &[LATE, ENDLESS]), (6, vec![1e5], 2));
}
