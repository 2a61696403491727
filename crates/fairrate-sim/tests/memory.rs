//! Memory use of a run, and a check that packets allocate nothing once queues have reached their greatest lengths. A
//! separate program without the test harness, so that no other code allocates.
#![allow(unsafe_code)] // An allocator can be written in no other way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use fairrate_control::AlgorithmConfig;
use fairrate_sim::topology::{FatTreeK, LeafSpine, Topology};
use fairrate_sim::{
    FlowSpec, MarkAt, MptcpConfig, Pfc, Recovery, Scheduler, SimConfig, Simulation, StopRule, SubflowPaths, Switching,
    TcpConfig, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

mod common;

use common::{TCP, algorithm, config, flow};

struct Counting;

static N_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);

fn note(size: usize) {
    N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    LIVE_BYTES.fetch_add(size as u64, Ordering::Relaxed);
}

fn live_bytes() -> i64 {
    LIVE_BYTES.load(Ordering::Relaxed).cast_signed()
}

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        LIVE_BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn fat_tree(k: u32) -> Topology {
    let (gbps, us) = (Rate::from_gbps(25), Time::from_us(1));
    FatTreeK { k, hosts_per_edge: None, host_rate: gbps, fabric_rate: gbps, delay: us, core_delay: us }.build()
}

/// Returns endless flows: from every host to a host in another pod, and three more to the first host.
fn long_flows() -> Vec<FlowSpec> {
    let permutation = (0..16).map(|i| flow(i, (i + 5) % 16, u64::MAX, Time::from_us(1)));
    let incast = (1..4).map(|i| FlowSpec { sport: 20_000, ..flow(4 * i, 0, u64::MAX, Time::from_us(2)) });
    permutation.chain(incast).collect()
}

fn over_rdma(cc: &str) -> SimConfig {
    config(fat_tree(4), algorithm(cc), long_flows())
}

fn over_tcp(cc: AlgorithmConfig, tcp: TcpConfig) -> SimConfig {
    let mut c = config(fat_tree(4), cc, long_flows());
    c.transport.kind = Transport::Tcp(tcp);
    c
}

fn two_paths(cc: &str) -> SimConfig {
    let multipath = MptcpConfig { subflows: 2, scheduler: Scheduler::MinRtt, paths: SubflowPaths::Disjoint };
    let mut c = over_tcp(algorithm(cc), TcpConfig { multipath, ..TCP });
    if let Some(ecn) = &mut c.fabric.ecn {
        (ecn.kmin, ecn.kmax, ecn.pmax, ecn.at) = (Bytes::ZERO, Bytes::new(40_000), 1.0, MarkAt::Dequeue);
    }
    c
}

fn with_allocator() -> SimConfig {
    let us = Time::from_us;
    let mut c = over_tcp(algorithm("flowtune"), TCP);
    let host = c.topology.attach_allocator(Rate::from_gbps(40), Time::from_ns(1_500), us(2));
    c.allocator = Some(common::allocator(host));
    c
}

/// Returns the run on a lossy fabric.
fn lossy(mut c: SimConfig) -> SimConfig {
    (c.fabric.pfc, c.fabric.buffer) = (Pfc::Off, Bytes::new(100_000));
    (c.fabric.ingress_alpha, c.fabric.egress_alpha) = (None, Some(1.0));
    c.transport.rto = Some(Time::from_us(500));
    c.transport.recovery = Recovery::SelectiveRepeat;
    c
}

/// Largest number of spans of 400,000 events that lists and pools may take to grow.
const SPANS: usize = 60;

/// Returns the allocations in the span with the fewest, where in each span packets pass 200,000 links. Lists and pools
/// grow until they have their greatest lengths, which takes a while if windows vary; code that allocates per packet
/// never stops.
fn fewest_allocations(mut c: SimConfig) -> u64 {
    c.stop = StopRule { at: Some(Time::from_ms(10_000)), when_flows_done: false };
    let mut simulation = Simulation::new(c);
    let mut hops = simulation.advance(2_000_000, &mut ()).expect("the run does not stall").packet_hops;
    let mut fewest = u64::MAX;
    for _ in 0..SPANS {
        let counted = N_ALLOCATIONS.load(Ordering::Relaxed);
        let after = simulation.advance(400_000, &mut ()).expect("the run does not stall").packet_hops;
        assert!(200_000 <= after - hops, "{}", after - hops);
        fewest = fewest.min(N_ALLOCATIONS.load(Ordering::Relaxed) - counted);
        hops = after;
        if fewest == 0 {
            break;
        }
    }
    fewest
}

fn packets_allocate_nothing() {
    for cc in ["powertcp", "hpcc", "swift", "dctcp", "line-rate", "dcqcn", "rocc", "bfc", "perc", "homa"] {
        assert_eq!(fewest_allocations(over_rdma(cc)), 0, "{cc}");
    }
    let cases = [
        ("dctcp, drops", lossy(over_rdma("dctcp"))),
        ("homa, drops", lossy(over_rdma("homa"))),
        ("dctcp over TCP", over_tcp(algorithm("dctcp"), TCP)),
        ("newreno over TCP, drops", lossy(over_tcp(algorithm("newreno"), TCP))),
        ("bbr over TCP, drops", lossy(over_tcp(algorithm("bbr"), TCP))),
        ("ratemp", two_paths("ratemp")),
        ("ratemp, drops", lossy(two_paths("ratemp"))),
        ("flowtune", with_allocator()),
    ];
    for (name, c) in cases {
        assert_eq!(fewest_allocations(c), 0, "{name}");
    }
}

/// Returns a run that is ready to start, with switches that work by spans, and the memory that it takes with its
/// configuration.
fn built(config: impl FnOnce() -> SimConfig, threads: usize) -> (Simulation, i64) {
    let before = live_bytes();
    let simulation = Simulation::with_switching(config(), threads, Switching::Spans);
    (simulation, live_bytes() - before)
}

/// Returns a leaf-spine topology of 32 leaves.
fn leaves(spines: u32, hosts_per_leaf: u32) -> Topology {
    let (rate, us) = (Rate::from_gbps(25), Time::from_us(1));
    let (host_rate, host_delay, uplink_rate, uplink_delay) = (rate, us, rate, us);
    LeafSpine { leaves: 32, spines, hosts_per_leaf, host_rate, host_delay, uplink_rate, uplink_delay }.build()
}

/// Returns `n` flows of a packet, 100 ns apart.
fn short_flows(n: u32) -> Vec<FlowSpec> {
    (0..n).map(|i| flow(i % 256, (i + 100) % 256, 1_000, Time::from_ns(100 * u64::from(i)))).collect()
}

/// Checks the memory of a thread's ports, hosts and flows that have not started.
fn what_is_idle_takes_little() {
    let per = |cc: &str, threads: usize, more: (u32, u32, u32), n: i64| {
        let run = |spines, hosts, flows| {
            let (simulation, bytes) =
                built(|| config(leaves(spines, hosts), algorithm(cc), short_flows(256 + flows)), threads);
            assert_eq!(simulation.threads(), threads);
            bytes
        };
        (run(16 + more.0, 8 + more.1, more.2) - run(16, 8, 0)) / n
    };
    // With two threads, a host and each end of a flow is in one of them. Every second link to a spine is between their
    // parts, and each part has both its ports: three for two.
    for (cc, host_port_max) in [("powertcp", 425), ("dctcp", 495)] {
        for (threads, port_max, flow_max) in [(1, host_port_max, 289), (2, 3 * host_port_max / 2, 338)] {
            let (ports, hosts) = (2_i64 * 32 * 32, 32 * 32);
            let port = per(cc, threads, (32, 0, 0), ports);
            // A host's link has two ports, and is in one part.
            let host = per(cc, threads, (0, 32, 0), hosts);
            let flow = per(cc, threads, (0, 0, 10_000), 10_000);
            assert!(
                port <= port_max && host <= 2 * host_port_max + 145 && flow <= flow_max,
                "{cc}, {threads}: {port} bytes a port, {host} a host, {flow} a flow"
            );
        }
    }
}

/// Checks that a run has no copy of flows that others hold too, as those who write results do.
fn flows_are_shared() {
    let beside_flows = |n: u32| {
        let c = config(leaves(16, 8), algorithm("dctcp"), short_flows(n));
        let kept = c.clone();
        let (_simulation, bytes) = built(|| c, 1);
        (kept, bytes).1
    };
    let more = (beside_flows(10_256) - beside_flows(256)) / 10_000;
    assert!(more + size_of::<FlowSpec>().cast_signed() as i64 <= 289, "{more} bytes a flow beside its description");
}

/// Checks that finished flows take no more memory than before they started.
fn what_is_over_takes_no_more() {
    let left = |kind: Transport, n: u32| {
        let config = || {
            let mut c = config(leaves(16, 8), algorithm("dctcp"), short_flows(n));
            c.transport.kind = kind;
            // The event of a timeout remains until its time, as it does with TCP.
            c.transport.rto = None;
            c
        };
        let (mut simulation, bytes) = built(config, 1);
        simulation.run(&mut ()).expect("the run does not stall");
        let before = live_bytes();
        drop(simulation);
        before - live_bytes() - bytes
    };
    for (kind, most) in [(Transport::Rdma, 8), (Transport::Tcp(TCP), 136)] {
        let more = (left(kind, 21_000) - left(kind, 11_000)) / 10_000;
        assert!(more <= most, "{more} bytes a flow, {kind:?}");
    }
}

fn main() {
    what_is_idle_takes_little();
    flows_are_shared();
    what_is_over_takes_no_more();
    packets_allocate_nothing();
}
