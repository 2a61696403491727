//! The time until goodput is back after a failure, in scenarios where it is known.

use serde_json::Value;

use crate::common::simulated;

/// 32 hosts offer 10 Gb/s each to the next rack, sprayed over four spines, of which one dies after a millisecond.
const SPRAYED: &str = r#"
duration = "2ms"
[topology]
kind = "leaf-spine"
leaves = 4
spines = 4
hosts_per_leaf = 8
host_rate = "25Gbps"
uplink_rate = "100Gbps"
[switch]
pfc = false
[routing]
balance = "spray"
[transport]
cc = "line-rate"
recovery = "selective-repeat"
reorder_window = "20us"
rto = "40us"
[[traffic]]
kind = "stride"
stride = 8
bytes = "endless"
demand = "10Gbps"
[[fault]]
switches = ["spine0"]
down_at = "1ms"
"#;

/// One flow at line rate, whose last link is down for half a millisecond.
const SINGLE: &str = r#"
duration = "3ms"
[topology]
kind = "star"
hosts = 2
rate = "25Gbps"
[transport]
cc = "line-rate"
rto = "5ms"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = ["h1"]
bytes = "endless"
[[fault]]
links = ["sw0->h0"]
down_at = "1ms"
up_at = "1.5ms"
"#;

/// Runs `scenario` with `more` arguments; returns the summary and the text of the terminal.
fn recovery(name: &str, scenario: &str, more: &[&str]) -> (Value, String) {
    let (dir, text) = simulated(name, scenario, more);
    let summary = std::fs::read_to_string(dir.join("out/summary.json")).unwrap();
    (serde_json::from_str(&summary).unwrap(), text)
}

/// Returns `true` if the table has a row of the recovery.
fn has_row(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("recovery "))
}

fn time_us(summary: &Value) -> f64 {
    summary["recovery"]["time_ns"].as_f64().unwrap() / 1e3
}

/// Until switches react, a quarter of the packets is lost, and soon every flow waits for one of them. Then a lost
/// packet is sent again after its gap was reported (20 us) or, if it was lost again, after a timeout (40 us). A window
/// is 20 us.
#[test]
fn sprayed_goodput_is_back_once_switches_react() {
    for delay in [0, 100, 300] {
        let set = format!("routing.reroute_delay=\"{delay}us\"");
        let (summary, text) = recovery(&format!("recovery_{delay}"), SPRAYED, &["--set", &set]);
        let got = time_us(&summary);
        let delay = f64::from(delay);
        assert!(delay <= got && got <= delay + 20.0 + 40.0 + 20.0, "{got} us for a delay of {delay} us");
        let before = summary["recovery"]["before_bps"].as_f64().unwrap();
        // A packet of 1,000 bytes of payload has a header of 48 bytes, which the demand includes.
        assert!((before * 1.048 / 320e9 - 1.0).abs() < 0.01, "{before}");
        assert!(has_row(&text), "{text}");
        // Three spines have capacity enough.
        let settled = summary["recovery"]["settled_bps"].as_f64().unwrap();
        assert!((settled / before - 1.0).abs() < 0.01, "{settled}");
    }
}

/// Four uplinks of 25 Gb/s are full at 12 Gb/s a host; three have at most 75 of the 96 Gb/s, less what is sent again.
#[test]
fn lost_capacity_is_the_level_at_which_goodput_settles() {
    let set = |change: &'static str| ["--set", change];
    let full = [
        set("topology.uplink_rate=\"25Gbps\""),
        set("traffic.0.demand=\"12Gbps\""),
        set("transport.cc=\"dctcp\""),
        set("routing.reroute_delay=\"50us\""),
        set("duration=\"4ms\""),
    ]
    .concat();
    let (summary, text) = recovery("recovery_settled", SPRAYED, &full);
    assert_eq!(summary["recovery"]["time_ns"], Value::Null);
    let row = text.lines().find(|line| line.trim_start().starts_with("settled at ")).unwrap();
    let share: f64 = row.trim_end().trim_end_matches('%').split_whitespace().last().unwrap().parse().unwrap();
    assert!((50.0..=79.0).contains(&share), "{row}");
    let bps = |key: &str| summary["recovery"][key].as_f64().unwrap();
    assert!((100.0 * bps("settled_bps") / bps("before_bps") - share).abs() < 0.1, "{row}");
}

/// Packets on the wire are lost as the link goes down, and what waits behind them arrives for nothing once it is up:
/// all that is sent again takes the link's time, 8 · 1,048 / 25 ns a kilobyte. Then the first new packet is there, and
/// the next whole window is full.
#[test]
fn a_link_that_comes_back_first_sends_what_waited() {
    let (summary, _) = recovery("recovery_link", SINGLE, &[]);
    let again = summary["retransmitted_bytes"].as_f64().unwrap();
    let expected = 500.0 + again * 1.048 * 8.0 / 25e3;
    let got = time_us(&summary);
    assert!(expected <= got && got <= expected + 40.0, "{got} us for {expected} us");
}

/// Without an end of the failure goodput never comes back: the table has a `-`, a note says so, and the metric has no
/// value.
#[test]
fn a_recovery_that_never_comes_is_told() {
    let set = ["--set", "fault.0.up_at=\"never\""];
    let (summary, text) = recovery("recovery_never", SINGLE, &set);
    assert_eq!((&summary["recovery"]["down_ns"], &summary["recovery"]["time_ns"]), (&1_000_000.into(), &Value::Null));
    let row = text.lines().find(|line| line.trim_start().starts_with("recovery ")).unwrap();
    assert!(row.ends_with(" -"), "{row}");
    assert!(text.contains("No recovery: "), "{text}");
    let without =
        ["--set", "fault.0.down_at=\"never\"", "--set", "fault.0.up_at=\"never\"", "--set", "fault.0.loss=1e-9"];
    let (summary, text) = recovery("recovery_none", SINGLE, &without);
    assert_eq!(summary["recovery"], Value::Null);
    assert!(!has_row(&text), "{text}");
}
