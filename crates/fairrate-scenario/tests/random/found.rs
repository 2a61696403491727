//! Scenarios that once failed, reduced to the parts that matter.

mod later;

pub use later::LATER;

/// Pairs of the fault and the scenario.
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
    (
        "a buffer without thresholds that ran full paused and resumed with every packet",
        r#"
duration = "2ms"
[topology]
kind = "star"
hosts = 5
rate = "1Gbps"
[transport]
cc = "olia"
[switch]
buffer = "40KB"
dt_alpha = "unlimited"
[[traffic]]
kind = "permutation"
bytes = "endless"
burst = "1B"
pause = "0s"
[[traffic]]
kind = "incast"
receiver = "h1"
senders = ["h2"]
bytes = "endless"
[[probe]]
queues = ["h0->sw0", "sw0->h0", "h1->sw0", "sw0->h1", "h2->sw0", "sw0->h2", "h3->sw0", "sw0->h3", "h4->sw0", "sw0->h4"]
"#,
    ),
    (
        "an acknowledgment sent as marks changed had what was left in its place in memory for a header",
        r#"
duration = "300us"
[topology]
kind = "asymmetric"
slow_hosts = 1
fast_hosts = 1
[transport]
cc = "rcp"
kind = "tcp"
data_overhead = "0B"
[transport.tcp]
delayed_ack = 2
[switch]
ecn = { kmin = "5KB", kmax = "50KB", pmax = 0.1, per = "25Gbps", at = "enqueue" }
[[fault]]
links = "tor-downlinks"
packets = "acks"
loss = 0.1
[[traffic]]
kind = "all-to-all"
bytes = "400KB"
"#,
    ),
    (
        "a window looked ahead at the port of a PFC frame, which has none",
        r#"
[topology]
kind = "parking-lot"
hosts_per_switch = 3
[switch]
buffer = "40KB"
[[traffic]]
kind = "staggered"
receiver = "h2"
senders = ["h4", "h3", "h0", "h6", "h8", "h1", "h5", "h7"]
bytes = "30KB"
interval = "5us"
[[traffic]]
kind = "closed-loop"
sizes = "fixed"
size = "1999B"
load = 1.5
senders = ["h6", "h1", "h7"]
stop = "100us"
"#,
    ),
    (
        "packets that go side by side were taken to wait for each other: a flow was faster than alone",
        r#"
[topology]
kind = "leaf-spine"
host_rate = "100Gbps"
[transport]
cc = "line-rate"
[routing]
balance = "spray"
[[traffic]]
kind = "closed-loop"
sizes = "fixed"
size = "1999B"
load = 0.1
stop = "100us"
"#,
    ),
    (
        "an observer saw control packets that take no time leave a port before they joined it",
        r#"
profile = "ns3"
[topology]
kind = "star"
rate = "400Gbps"
[transport]
cc = "perc"
kind = "tcp"
[transport.tcp]
subflows = 8
[[traffic]]
kind = "stride"
stride = 1
bytes = "400KB"
"#,
    ),
    (
        "the bytes that a fluid delivers fell when the last packet of a flow had left its sender",
        r#"
seed = 702
duration = "50us"
[topology]
kind = "parking-lot"
link_delay = "20us"
[transport]
cc = "ideal"
[[traffic]]
kind = "stride"
stride = 3
bytes = "400KB"
[[traffic]]
kind = "poisson"
sizes = "fixed"
size = "1999B"
load = 0.1
link_set = "host-links"
max_flows = 10
"#,
    ),
    (
        "an answer with credit told nothing of the bytes that had come, so a small window never opened again",
        r#"
[topology]
kind = "fat-tree-k"
[transport]
cc = "ndp"
window = "20KB"
[[traffic]]
kind = "stride"
stride = 3
bytes = "30KB"
"#,
    ),
    (
        "a packet that leaves just as its link becomes slow goes at the rate before, and its account did not know that",
        r#"
[topology]
kind = "dumbbell"
left = 2
right = 2
[[fault]]
links = "host-links"
start = "10us"
rate = 0.9
[[traffic]]
kind = "incast"
receiver = "h3"
senders = ["h0"]
bytes = "1KB"
start = "10us"
"#,
    ),
    (
        "a drop at a host told of the queue of its switch, which is elsewhere in time where switches go by spans",
        r#"
[topology]
kind = "asymmetric"
[transport]
cc = "powertcp"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 3
bytes = "300KB"
[[host]]
rx_rate = "700Mbps"
rx_buffer = "20KB"
rx_full = "drop"
"#,
    ),
    (
        "both ends of a flow send packets that are no data, and CONGA took them for one flowlet where both leaves were in one part",
        r#"
[topology]
kind = "leaf-spine"
[transport]
cc = "eqds"
rto = "30us"
[routing]
balance = "conga"
[[traffic]]
kind = "incast"
receiver = "h2"
senders = 2
bytes = "400KB"
"#,
    ),
    (
        "marks of a class were left out of the resolved scenario where they are the usual ones, and then were those of the switch",
        r#"
[topology]
kind = "asymmetric"
[[class]]
class = 1
[[traffic]]
kind = "incast"
receiver = "h2"
senders = 2
bytes = "30KB"
transport = { kind = "tcp", cc = "ratemp", rto = "100us" }
class = 1
[[traffic]]
kind = "staggered"
cc = "ratemp"
receiver = "h2"
senders = 1
bytes = "30KB"
interval = "0s"
"#,
    ),
    (
        "resume frames of returned headers, on two threads",
        r#"
seed = 617
duration = "2ms"
[topology]
kind = "parking-lot"
link_rates = ["10Gbps", "40Gbps"]
host_delay = "0s"
link_delay = "100ns"
[transport]
cc = "nscc"
header = "0B"
ack = "84B"
data_overhead = "42B"
rto = "30us"
[switch]
trim_limit = "12KB"
trim_size = "3000B"
trim_return = true
pfc = { pause = "20KB", resume = "5KB" }
ecn = { phantom = 0.95 }
[[traffic]]
kind = "incast-queries"
responders = 2
request_size = "50KB"
rate_per_host_per_s = 30000.0
stop = "100us"
[[probe]]
queues = ["h0->sw0", "sw0->h0", "h1->sw0", "sw0->h1", "h2->sw1", "sw1->h2", "h3->sw1", "sw1->h3", "h4->sw2", "sw2->h4", "h5->sw2", "sw2->h5", "sw0->sw1", "sw1->sw0", "sw1->sw2", "sw2->sw1"]
"#,
    ),
    (
        "a message whose data need not be sent again after all",
        r#"
[topology]
kind = "parking-lot"
host_delay = "100ns"
[transport]
recovery = "irn"
[switch]
queue = "red"
[[traffic]]
kind = "collective"
op = "reduce-scatter"
bytes = "200KB"
repeat = 3
[[traffic]]
kind = "closed-loop"
sizes = "fixed"
size = "1999B"
load = 0.1
stop = "200us"
"#,
    ),
];
