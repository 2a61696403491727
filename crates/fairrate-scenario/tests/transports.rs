//! Every algorithm over both transports: it controls something, or the scenario is refused.

use std::path::Path;

use fairrate_control::ALGORITHMS;
use fairrate_scenario::{Overrides, Scenario, ScenarioError};
use fairrate_sim::{Recorder, Simulation};

const SENDERS: u32 = 8;

/// Eight endless flows into one link of 25 Gb/s, in a fabric that pauses.
fn text(cc: &str, kind: &str) -> String {
    format!(
        r#"
duration = "5ms"
[topology]
kind = "star"
hosts = {hosts}
rate = "25Gbps"
[switch]
buffer = "400KB"
[transport]
cc = "{cc}"
kind = "{kind}"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = {SENDERS}
bytes = "endless"
[[probe]]
flows = "all"
every = "10us"
"#,
        hosts = SENDERS + 1
    )
}

fn scenario(cc: &str, kind: &str) -> Result<Scenario, ScenarioError> {
    Scenario::from_toml(&text(cc, kind), "transports.toml", Path::new("."), &Overrides::default())
}

/// Whether any allowance ever changes or is below the line rate, or switches hold flows back.
fn controls(scenario: Scenario) -> bool {
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut recorder).expect("the run does not stall");
    let mut allowances = recorder.rates.iter().map(|s| (s.cwnd_bytes, s.rate_bps));
    let first = allowances.clone().next();
    let acts = allowances.any(|(cwnd, rate)| Some((cwnd, rate)) != first || rate < 25_000_000_000);
    acts || 0 < simulation.totals().flow_pauses
}

/// Those that are refused over a transport, and what the message says.
const REFUSED: [(&str, &str, &str); 3] = [
    ("dcqcn", "tcp", "congestion notification packets"),
    ("dcqcn-pi", "tcp", "congestion notification packets"),
    ("flowtune", "rdma", "is built on TCP"),
];

#[test]
fn an_algorithm_controls_or_is_refused() {
    for info in ALGORITHMS.iter().filter(|info| !["line-rate", "ideal"].contains(&info.name)) {
        for kind in ["rdma", "tcp"] {
            let refused = REFUSED.iter().find(|(cc, transport, _)| (*cc, *transport) == (info.name, kind));
            match (scenario(info.name, kind), refused) {
                (Ok(scenario), None) => assert!(controls(scenario), "{} over {kind}", info.name),
                (Err(error), Some((.., why))) => assert!(error.to_string().contains(why), "{error}"),
                (Ok(_), Some(_)) => panic!("{} over {kind} is not refused", info.name),
                (Err(error), None) => panic!("{} over {kind}: {error}", info.name),
            }
        }
    }
}

/// Where marks come back on acknowledgments nothing is missing.
#[test]
fn dcqcn_without_notification_packets_works_over_tcp() {
    let text = text("dcqcn", "tcp") + "[transport.dcqcn]\nnotification = \"ack\"\n";
    let scenario = Scenario::from_toml(&text, "transports.toml", Path::new("."), &Overrides::default());
    assert!(controls(scenario.expect("it is sound")));
}
