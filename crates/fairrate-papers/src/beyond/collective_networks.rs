//! The networks of the collectives, each with one of them.

/// Hosts of one switch.
pub const STAR: &str = r#"
[topology]
kind = "star"
rate = "400Gbps"
delay = "500ns"
[switch]
buffer = "32MiB"
[transport]
dcqcn = { ai = "400Mbps", hai = "4Gbps" }
mtu = "9000B"
ack_every = "message"
rto = "1s"
[[traffic]]
kind = "collective"
op = "all-reduce"
"#;

/// 512 hosts, as many uplinks as hosts on each leaf.
pub const LEAVES: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 16
spines = 32
hosts_per_leaf = 32
host_rate = "400Gbps"
host_delay = "500ns"
uplink_rate = "400Gbps"
uplink_delay = "500ns"
[switch]
buffer = "64MiB"
[transport]
dcqcn = { ai = "400Mbps", hai = "4Gbps" }
mtu = "4KB"
[[traffic]]
kind = "collective"
placement = "random"
"#;

/// 512 GPUs in 64 servers, whose eight rails have a leaf each.
macro_rules! rails {
    () => {
        r#"
[topology]
kind = "rail"
servers = 64
[switch]
buffer = "32MiB"
[transport]
dcqcn = { ai = "400Mbps", hai = "4Gbps" }
mtu = "9000B"
window = "bdp"
[[traffic]]
kind = "collective"
"#
    };
}

pub const RAILS: &str = rails!();
/// The same where the link of a NIC has lost three of four lanes.
pub const SLOW_LINK: &str = concat!(rails!(), "[[fault]]\nlinks = [\"h0->tor0\"]\nrate = 0.25\n");
/// The share of its rate that this link has.
pub const SHARE: f64 = 0.25;

/// A ring of eight hosts on two leaves, each of whose messages crosses the only spine.
macro_rules! one_job {
    () => {
        r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 8
host_rate = "100Gbps"
host_delay = "500ns"
uplink_rate = "400Gbps"
uplink_delay = "500ns"
[transport]
mtu = "4KB"
[[traffic]]
kind = "collective"
op = "all-reduce"
bytes = "64MiB"
repeat = 6
hosts = ["h0", "h8", "h1", "h9", "h2", "h10", "h3", "h11"]
"#
    };
}

pub const ONE_JOB: &str = one_job!();
pub const TWO_JOBS: &str = concat!(
    one_job!(),
    r#"
[[traffic]]
kind = "collective"
op = "all-reduce"
bytes = "64MiB"
repeat = 6
"#
);
