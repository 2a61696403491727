//! Random hosts that are not ideal.

use super::draw::{Draw, Key, Toml, list};
use super::network::Network;

const HOST: &[Key] = &[
    ("processing", &["\"0s\"", "\"1ps\"", "\"700ns\"", "\"20us\""]),
    ("jitter", JITTER),
    ("noise", &["{ period = \"20us\", length = \"10us\" }", "{ period = \"100us\", length = \"3us\" }"]),
    ("nic_rate", &["\"900Mbps\"", "\"7Gbps\"", "\"22.5Gbps\"", "\"360Gbps\""]),
];

const JITTER: &[&str] = &[
    "{ distribution = \"uniform\", mean = \"1us\" }",
    "{ distribution = \"exponential\", mean = \"3us\" }",
    "{ distribution = \"lognormal\", mean = \"500ns\", sigma = 1.5 }",
    "{ distribution = \"uniform\", mean = \"1ps\" }",
];

const RECEIVE: &[Key] =
    &[("rx_rate", RX_RATE), ("rx_buffer", &["\"20KB\"", "\"300KB\"", "\"3MB\"", "\"3MB\"", "\"3MB\""])];

const RX_RATE: &[&str] = &[
    "\"700Mbps\"",
    "\"5Gbps\"",
    "\"17Gbps\"",
    "[{ at = \"0s\", rate = \"20Gbps\" }, { at = \"30us\", rate = \"1Gbps\" }, { at = \"60us\", rate = \"33Gbps\" }]",
];

/// Writes some `[[host]]` blocks, or `[host]`, and probes of receive buffers.
pub fn hosts(draw: &mut Draw, toml: &mut Toml, network: &Network) {
    if !draw.one_in(4) {
        return;
    }
    let n = draw.between(1, 3);
    for _ in 0..n {
        toml.section(if n == 1 && draw.one_in(2) { "[host]" } else { "[[host]]" });
        if draw.one_in(2) {
            let of = draw.between(1, 3);
            toml.key("hosts", list(&draw.some(&network.hosts, of)));
        }
        toml.maybe(draw, 2, HOST);
        if draw.one_in(2) {
            toml.all(draw, RECEIVE);
            toml.maybe(draw, 4, &[("rx_penalty_from", &["\"0B\"", "\"10KB\"", "\"off\""])]);
            toml.maybe(draw, 2, &[("rx_full", &["\"drop\"", "\"pause\""])]);
            if !toml.0.ends_with("\"drop\"\n") {
                toml.maybe(draw, 6, &[("rx_pause_at", &["\"15KB\"", "\"200KB\""])]);
                toml.maybe(draw, 6, &[("rx_resume_at", &["\"0B\"", "\"10KB\""])]);
            }
        }
    }
    if draw.one_in(2) {
        toml.section("[[probe]]");
        toml.key("host_rx", list(&draw.some(&network.hosts, 2)));
        toml.any(draw, ("every", &["\"300ns\"", "\"5us\""]));
    }
}
