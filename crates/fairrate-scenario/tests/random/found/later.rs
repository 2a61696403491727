//! The scenarios that were found with several algorithms, imperfect hosts, traces and jobs.

/// Pairs of the fault and the scenario.
pub const LATER: &[(&str, &str)] = &[
    (
        "what strict classes leave of a link",
        r#"
[topology]
kind = "star"
hosts = 5
[[class]]
class = 5
weight = 2.5
[[traffic]]
kind = "collective"
op = "all-reduce"
bytes = "33333B"
channels = 3
class = 1
[[probe]]
convergence = true
[[traffic]]
kind = "churn"
flows = 5
changes = 1
"#,
    ),
    (
        "a request for bytes where flows of other algorithms send",
        r#"
[topology]
kind = "star"
hosts = 4
[switch]
pfc = false
[[fault]]
links = ["h0->sw0", "h1->sw0","sw0->h2"]
loss = 0.05
[[traffic]]
kind = "all-to-all"
cc = "homa"
bytes = "400KB"
[[traffic]]
kind = "stride"
stride = 1
bytes = "4MB"
start = "20us"
"#,
    ),
    (
        "headroom for each class of flows",
        r#"
duration = "2ms"
[topology]
kind = "parking-lot"
hosts_per_switch = 1
host_rate = "400Gbps"
[switch]
buffer = "40KB"
[[traffic]]
kind = "incast"
receiver = "h1"
senders = ["h2"]
bytes = "1GB"
class = 6
[[traffic]]
kind = "incast"
receiver = "h1"
senders = ["h2"]
bytes = "1GB"
class = 1
"#,
    ),
    (
        "a pause of a host that is taken back before it is sent",
        r#"
seed = 770
[topology]
kind = "leaf-spine"
hosts_per_leaf = 1
host_rate = "40Gbps"
host_delay = "0s"
[transport]
cc = "line-rate"
mtu = "9000B"
[[traffic]]
kind = "permutation"
bytes = "400KB"
start = "25us"
[[traffic]]
kind = "training"
hosts = ["h1", "h0", "h2", "h3"]
cp = 2
dp = 2
layers = 2
heads = 4
hidden = 16
vocabulary = 32
sequence = 16
experts = 8
ep = 2
forward = "7us"
[[host]]
nic_rate = "7Gbps"
rx_rate = "17Gbps"
rx_pause_at = "15KB"
"#,
    ),
    (
        "a trace whose last packet was the first of its port was longer than its limit",
        r#"
seed = 812
[topology]
kind = "fat-tree-k"
k = 4
hosts_per_edge = 3
[[traffic]]
kind = "poisson"
sizes = "fixed"
size = "1999B"
load = 1.5
max_flows = 1
[[traffic]]
kind = "permutation"
bytes = "999B"
[[host]]
nic_rate = "900Mbps"
"#,
    ),
    (
        "a host that paused its switch under HOMA held back the switch's own frames too, and a lossless fabric dropped",
        r#"
[topology]
kind = "dcn+"
servers = 3
host_rate = "25Gbps"
[transport]
cc = "homa"
[[traffic]]
kind = "all-to-all"
bytes = "30KB"
[[host]]
rx_rate = [{ at = "0s", rate = "20Gbps" }, { at = "30us", rate = "1Gbps" }, { at = "60us", rate = "33Gbps" }]
rx_buffer = "20KB"
"#,
    ),
    (
        "a merged ring over links of different lengths was faster than its longest link alone, and delivered more than it had",
        r#"
[topology]
kind = "asymmetric"
slow_hosts = 1
[transport]
cc = "ideal"
[[traffic]]
kind = "collective"
op = "all-reduce"
bytes = "33333B"
merged_rings = true
[[probe]]
flows = "all"
every = "1us"
"#,
    ),
    (
        "a flow stopped after going back ended with packets on their way, which counted or not by the number of threads",
        r#"
seed = 402
duration = "300us"
[topology]
kind = "dragonfly"
groups = 2
local_rate = "25Gbps"
[transport]
cc = "line-rate"
data_class = 2
nack_interval = "0s"
[switch]
queue = "red"
[switch.red]
weight = 0.5
[routing]
balance = "round-robin"
[[fault]]
links = ["tor4->tor6", "tor0->tor3"]
packets = "acks"
duplicate = 0.3
rate = 0.25
reorder = 0.001
reorder_delay = "5us"
down_at = "0s"
up_at = "41us"
[[fault]]
links = ["tor5->h11", "tor6->h12", "tor1->tor5"]
burst = { good = 20, bad = 2, bad_loss = 0.5 }
[[traffic]]
kind = "permutation"
hosts = ["h10", "h15", "h12", "h4", "h0", "h8", "h3", "h11", "h14", "h7", "h2", "h5", "h1"]
bytes = "30KB"
class = 5
[[traffic]]
kind = "staggered"
receiver = "h15"
senders = 9
bytes = "999B"
interval = "5us"
[[traffic]]
kind = "staggered"
receiver = "h9"
senders = ["h8", "h7", "h11", "h2"]
interval = "0s"
hold = "50us"
"#,
    ),
    (
        "what a faulty link lost was seen in another order on threads, where NICs of servers were cut from their switches",
        r#"
[topology]
kind = "star"
scale_up = { size = 2, rate = "100Gbps", delay = "500ns" }
[[fault]]
links = ["h5->sw0", "sw0->h5", "sw0->h7"]
corrupt = 0.3
reorder = 0.02
reorder_delay = "100ns"
[[traffic]]
kind = "stride"
stride = 1
bytes = "30KB"
"#,
    ),
    (
        "a packet that takes no time was sent before it was queued, where ties go by events",
        r#"
[topology]
kind = "dcn+"
[links]
clock = "whole-nanoseconds"
[transport]
cc = "perc"
[transport.perc]
first_rate_waits = true
[[traffic]]
kind = "incast"
receiver = "h6"
senders = ["h2"]
bytes = "1B"
"#,
    ),
    (
        "pauses waited behind other frames for longer than the headroom lasted, where frames are large",
        r#"
duration = "2ms"
[topology]
kind = "dragonfly"
[switch]
buffer = "40KB"
xon_floor = "10KB"
pfc_frame = "1KB"
[[traffic]]
kind = "incast-queries"
responders = 2
request_size = "50KB"
load = 0.5
"#,
    ),
    (
        "a port that gave up its queue while it sent was free before its packet had left, and sent twice as fast from then on",
        r#"
duration = "300us"
[topology]
kind = "asymmetric"
slow_hosts = 3
fast_rate = "1Gbps"
[transport]
cc = "patched-timely"
[switch]
pfc = { by = "ingress", pause = { 10Gbps = "5KB", 40Gbps = "40KB" }, resume = "0B" }
[routing]
balance = "conga"
[[fault]]
links = "host-links"
down_at = "40us"
up_at = "41us"
[[traffic]]
kind = "permutation"
bytes = "400KB"
[[probe]]
queues = ["h0->sw0", "sw0->h0", "h3->sw1", "sw1->h3", "h4->sw1", "sw1->h4", "sw2->h5", "h5->sw2"]
every = "1us"
"#,
    ),
];
