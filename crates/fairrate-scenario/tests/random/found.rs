//! Scenarios that once failed, without what does not matter.

/// What was wrong, and the scenario.
pub const FOUND: &[(&str, &str)] = &[
    (
        "flows of a closed loop that had not started were counted as unfinished",
        r#"
duration = "60us"
[topology]
kind = "fat-tree-k"
[[traffic]]
kind = "closed-loop"
sizes = "fixed"
size = "1999B"
load = 0.7
senders = ["h5", "h15", "h7"]
stop = "200us"
"#,
    ),
    (
        "an ingress with a floor of nothing stayed paused when it was empty",
        r#"
[topology]
kind = "asymmetric"
slow_hosts = 1
[switch]
buffer = "40KB"
xon_offset = "20KB"
xon_floor = "0B"
[[traffic]]
kind = "staggered"
receiver = "h0"
senders = ["h1", "h2"]
interval = "19us"
bytes = "50001B"
"#,
    ),
    (
        "a fabric without thresholds dropped before it paused",
        r#"
[topology]
kind = "dumbbell"
[transport]
cc = "pacc"
[switch]
buffer = "100KB"
dt_alpha = "unlimited"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 3
bytes = "400KB"
"#,
    ),
    (
        "pause frames piled up at a port that was down",
        r#"
duration = "1ms"
[topology]
kind = "dumbbell"
left = 2
right = 2
bottleneck_rate = "100Gbps"
[switch]
buffer = "12KB"
headroom = "0B"
xon_offset = "0B"
[transport]
cc = "line-rate"
[[fault]]
links = ["sw1->sw0"]
both_ways = false
down_at = "5us"
[[traffic]]
kind = "incast"
receiver = "h2"
senders = ["h0", "h1"]
bytes = "4MB"
[[probe]]
queues = ["sw1->sw0", "sw0->sw1"]
"#,
    ),
];
