//! Every algorithm over both transports: it controls something, or the scenario is refused.

use std::path::Path;

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Profile};
use fairrate_scenario::{Overrides, Scenario, ScenarioError};
use fairrate_sim::{Recorder, Simulation};

const SENDERS: u32 = 8;

/// Returns the text of a scenario with eight endless flows into one link of 25 Gb/s, in a fabric with PFC.
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

/// Returns `true` if any allowance ever changes or is below the line rate, or switches hold flows back.
fn controls(scenario: Scenario) -> bool {
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut recorder).expect("the run does not stall");
    let mut allowances = recorder.rates.iter().map(|s| (s.cwnd_bytes, s.rate_bps));
    let first = allowances.clone().next();
    let acts = allowances.any(|(cwnd, rate)| Some((cwnd, rate)) != first || rate < 25_000_000_000);
    acts || 0 < simulation.totals().counts.flow_pauses
}

/// Returns a part of the message by which an algorithm is refused over a transport, if it is.
fn refusal(cc: &str, kind: &str) -> Option<&'static str> {
    match (["nscc", "rccc", "eqds", "ndp"].contains(&cc), kind == "uet") {
        (true, false) => Some("what receivers of Ultra Ethernet report"),
        (false, true) => Some("is not made for Ultra Ethernet"),
        _ => REFUSED.iter().find(|(name, transport, _)| (*name, *transport) == (cc, kind)).map(|(.., why)| *why),
    }
}

/// Algorithms that are refused over RDMA or TCP, with a part of the message.
const REFUSED: [(&str, &str, &str); 4] = [
    ("dcqcn", "tcp", "congestion notification packets"),
    ("dcqcn-pi", "tcp", "congestion notification packets"),
    ("flowtune", "rdma", "is built on TCP"),
    ("homa", "tcp", "is a transport of its own"),
];

#[test]
fn an_algorithm_controls_or_is_refused() {
    // Under RCCC, EQDS and NDP receivers control, and senders have no window.
    let have_no_window = ["line-rate", "ideal", "rccc", "eqds", "ndp"];
    for info in ALGORITHMS.iter().filter(|info| !have_no_window.contains(&info.name)) {
        for kind in ["rdma", "tcp", "uet"] {
            match (scenario(info.name, kind), refusal(info.name, kind)) {
                (Ok(scenario), None) => assert!(controls(scenario), "{} over {kind}", info.name),
                (Err(error), Some(why)) => assert!(error.to_string().contains(why), "{error}"),
                (Ok(_), Some(_)) => panic!("{} over {kind} is not refused", info.name),
                (Err(error), None) => panic!("{} over {kind}: {error}", info.name),
            }
        }
    }
}

/// With marks echoed on acknowledgments, DCQCN needs no notification packets.
#[test]
fn dcqcn_without_notification_packets_works_over_tcp() {
    let text = text("dcqcn", "tcp") + "[transport.dcqcn]\nnotification = \"ack\"\n";
    let scenario = Scenario::from_toml(&text, "transports.toml", Path::new("."), &Overrides::default());
    assert!(controls(scenario.expect("it is sound")));
}

/// The longest accepted packets have their full length: a megabyte takes at least its time, and has as many bytes on
/// the wire as payload and headers. A byte more is refused.
#[test]
fn the_longest_packets_take_their_time() {
    for info in ALGORITHMS.iter().filter(|info| info.name != "ideal") {
        let (kind, header) = match info.name {
            "flowtune" => ("tcp", 48),
            "nscc" | "rccc" | "eqds" | "ndp" => ("uet", 64),
            _ => ("rdma", 48),
        };
        let limit = if info.name == "pfabric" { "queue_limit = \"1MB\"" } else { "" };
        let read = |mtu: u64| {
            let text = format!(
                r#"
duration = "1s"
stop = "all-flows-done"
[topology]
kind = "star"
hosts = 3
[switch]
buffer = "4MiB"
{limit}
[transport]
cc = "{}"
kind = "{kind}"
mtu = "{mtu}B"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 1
bytes = "1MB"
"#,
                info.name
            );
            Scenario::from_toml(&text, "mtu.toml", Path::new("."), &Overrides::default())
        };
        let needs = AlgorithmConfig::by_name(info.name, Profile::Paper).expect("it is registered").needs();
        let mtu = 65_535 - header - needs.wire.data_overhead.as_u64();
        let error = read(mtu + 1).expect_err("a packet is too long").to_string();
        assert!(error.contains("makes packets of 64KiB"), "{error}");
        let mut recorder = Recorder::default();
        let mut simulation = Simulation::new(read(mtu).expect("packets have 65,535 bytes").into_sim_config());
        simulation.run(&mut recorder).expect("the run does not stall");
        let [flow] = &recorder.flows[..] else { panic!("{}: {:?}", info.name, simulation.unfinished()) };
        assert!(flow.fct.is_some_and(|fct| flow.ideal_fct <= fct), "{}", info.name);
        assert!(1_000_000 <= simulation.totals().sent_bytes, "{}", info.name);
    }
}
