//! How much memory a run takes, and that packets take none of their own once queues have been as long as they get. A
//! program of its own and without the test harness, so that nobody else allocates.
#![allow(unsafe_code)] // An allocator can be written in no other way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use fairrate_control::AlgorithmConfig;
use fairrate_sim::topology::{FatTreeK, Topology};
use fairrate_sim::{
    AllocatorConfig, FlowOutcome, FlowSpec, MarkAt, MptcpConfig, PfcEvent, PortSample, RateSample, Recovery, Scheduler,
    SimConfig, Simulation, Sink, SubflowPaths, TcpConfig, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

mod common;

use common::{TCP, algorithm, config, flow};

struct Counting;

static N_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

fn note(grown: i64) {
    N_ALLOCATIONS.fetch_add(u64::from(0 < grown), Ordering::Relaxed);
    LIVE_BYTES.fetch_add(grown, Ordering::Relaxed);
    if 0 < grown && TRACE.swap(false, Ordering::Relaxed) {
        let s = std::backtrace::Backtrace::force_capture().to_string();
        let l: Vec<_> = s.lines().filter(|l| !l.contains("alloc::") && !l.contains(" at ") && !l.contains("memory::")).take(6).collect();
        eprintln!("{grown} {}", l.join(" <- "));
        TRACE.store(true, Ordering::Relaxed);
    }
}
static TRACE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as i64 - layout.size() as i64);
        // SAFETY: the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Listens to nothing.
struct Deaf;

impl Sink for Deaf {
    fn flow(&mut self, _: &FlowOutcome) {}
    fn port(&mut self, _: &PortSample) {}
    fn rate(&mut self, _: &RateSample) {}
    fn pfc(&mut self, _: &PfcEvent) {}
}

fn fat_tree(k: u32) -> Topology {
    let (gbps, us) = (Rate::from_gbps(25), Time::from_us(1));
    FatTreeK { k, hosts_per_edge: None, host_rate: gbps, fabric_rate: gbps, delay: us, core_delay: us }.build()
}

/// Every host sends for ever to one in another pod, and three more to the first.
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
    c.allocator = Some(AllocatorConfig {
        host,
        intermediaries: Vec::new(),
        interval: us(10),
        gamma: 0.4,
        threshold: 0.01,
        lifetime: us(200),
        sign_of_life: us(100),
        flowlet_gap: Time::ZERO,
        tcp: TcpConfig { rto_min: us(20), rto_max: us(30), tail_loss_probe: false, idle_restart: false, ..TCP },
        cc: algorithm("newreno"),
        class: 3,
        min_packet: Bytes::new(84),
        outages: Vec::new(),
        external: Vec::new(),
        external_groups: Vec::new(),
    });
    c
}

/// A fabric that drops.
fn lossy(mut c: SimConfig) -> SimConfig {
    (c.fabric.pfc, c.fabric.buffer) = (false, Bytes::new(100_000));
    (c.fabric.ingress_alpha, c.fabric.egress_alpha) = (None, Some(1.0));
    c.transport.rto = Some(Time::from_us(500));
    c.transport.recovery = Recovery::SelectiveRepeat;
    c
}

/// Allocations while packets pass 200,000 links, after as many events as `warm_up`.
fn allocations(mut c: SimConfig, warm_up: u64) -> u64 {
    c.stop.when_flows_done = false;
    c.stop.at = Some(Time::from_ms(10_000));
    let mut simulation = Simulation::new(c);
    let before = simulation.advance(warm_up, &mut Deaf).expect("the run does not stall").packet_hops;
    let counted = N_ALLOCATIONS.load(Ordering::Relaxed);
    TRACE.store(std::env::var_os("TRACE").is_some(), Ordering::Relaxed);
    let after = simulation.advance(400_000, &mut Deaf).expect("the run does not stall").packet_hops;
    TRACE.store(false, Ordering::Relaxed);
    assert!(200_000 <= after - before, "{}", after - before);
    N_ALLOCATIONS.load(Ordering::Relaxed) - counted
}

fn main() {
    let cases = [
        ("powertcp", over_rdma("powertcp")),
        ("hpcc", over_rdma("hpcc")),
        ("swift", over_rdma("swift")),
        ("dctcp", over_rdma("dctcp")),
        ("line-rate", over_rdma("line-rate")),
        ("dcqcn", over_rdma("dcqcn")),
        ("rocc", over_rdma("rocc")),
        ("perc", over_rdma("perc")),
        ("bfc", over_rdma("bfc")),
        ("dctcp, drops", lossy(over_rdma("dctcp"))),
        ("dctcp over TCP", over_tcp(algorithm("dctcp"), TCP)),
        ("newreno over TCP, drops", lossy(over_tcp(algorithm("newreno"), TCP))),
        ("ratemp", two_paths("ratemp")),
        ("ratemp, drops", lossy(two_paths("ratemp"))),
        ("flowtune", with_allocator()),
    ];
    for (name, c) in cases {
        let warm_up = std::env::var("W").map_or(1_000_000, |w| w.parse().unwrap());
        eprintln!("{name}: {}", allocations(c, warm_up));
    }
}
