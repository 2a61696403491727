//! `[transport.tcp]`: TCP and its subflows.

use fairrate_sim::{
    DelayedAck, EcnEcho, LossDetection, MarkReduction, MptcpConfig, Scheduler, SubflowPaths, TcpConfig,
};
use fairrate_units::{Bytes, Time};

use crate::reader::{OrWord, Section};

/// Largest number of subflows of a connection: twice the number in MPTCP papers on datacenters.
const MAX_SUBFLOWS: u8 = 16;

/// Reads `[transport.tcp]`; `is_used`: TCP is the transport.
pub(super) fn read(s: &mut Section<'_>, is_used: bool) -> TcpConfig {
    let mut t = s.child("tcp", "`[transport.tcp]`");
    let config = TcpConfig {
        // Values from 20 us to 30 ms are far above any RTT here. Flowtune section 6.1 runs its control connections with
        // 20 us to 30 us; 1 ms is usual for datacenter simulations.
        rto_min: t.get("rto_min", Time::from_ms(1)).value,
        rto_max: t.get("rto_max", Time::from_ms(100)).value,
        // A timer of high resolution, far below any RTT here; Linux's jiffies are 1 to 10 ms.
        clock_granularity: t.get("clock_granularity", Time::from_us(1)).value,
        // Linux since 4.18.
        loss_detection: t
            .choice(
                "loss_detection",
                &[("rack", LossDetection::Rack), ("sack", LossDetection::Sack)],
                LossDetection::Rack,
            )
            .value,
        tail_loss_probe: t.get("tail_loss_probe", true).value,
        delayed_ack: read_delayed_ack(&mut t),
        handshake: t.get("handshake", false).value,
        // Linux: net.ipv4.tcp_slow_start_after_idle = 1.
        idle_restart: t.get("idle_restart", true).value,
        // Linux since 3.2.
        prr: t.get("prr", true).value,
        mark_reduction: t
            .choice(
                "mark_reduction",
                &[("rfc9937", MarkReduction::Rfc9937), ("ns3", MarkReduction::Ns3)],
                MarkReduction::Rfc9937,
            )
            .value,
        min_window: t.get("min_window", 0).value,
        receive_window: match t.value_or::<Bytes>("receive_window", &["unlimited"], OrWord::Word(0)).value {
            OrWord::Word(_) => u64::MAX,
            OrWord::Value(bytes) => bytes.as_u64(),
        },
        ecn_echo: t
            .choice("ecn_echo", &[("accurate", EcnEcho::Accurate), ("classic", EcnEcho::Classic)], EcnEcho::Accurate)
            .value,
        multipath: read_multipath(&mut t),
    };
    if config.rto_min == Time::ZERO || config.rto_max < config.rto_min {
        let message = format!("`rto_min` of {} and `rto_max` of {}", config.rto_min, config.rto_max);
        let help = "let `rto_min` be above zero and at most `rto_max`";
        t.problem_at("scenario::conflict", if t.has("rto_max") { "rto_max" } else { "rto_min" }, message, help);
    }
    let out = t.finish();
    if is_used || s.has("tcp") {
        s.out.tables.push(("tcp".into(), out));
    }
    config
}

/// Reads the keys of MPTCP. The default is plain TCP; with subflows, MPTCP's own defaults: the smallest round-trip time
/// first, and paths by hash.
fn read_multipath(t: &mut Section<'_>) -> MptcpConfig {
    let subflows = t.get("subflows", 1).value;
    let schedulers =
        [("min-rtt", Scheduler::MinRtt), ("round-robin", Scheduler::RoundRobin), ("redundant", Scheduler::Redundant)];
    let paths = [("hashed", SubflowPaths::Hashed), ("disjoint", SubflowPaths::Disjoint)];
    MptcpConfig {
        subflows: checked_subflows(t, subflows),
        scheduler: t.choice("scheduler", &schedulers, Scheduler::MinRtt).value,
        paths: t.choice("paths", &paths, SubflowPaths::Hashed).value,
    }
}

/// Returns the number of subflows of a connection, limited to the allowed range; reports a number outside it.
pub(super) fn checked_subflows(s: &Section<'_>, subflows: u8) -> u8 {
    if !(1..=MAX_SUBFLOWS).contains(&subflows) {
        let message = format!("{subflows} subflows");
        let help = format!("write a number from 1, which is plain TCP, to {MAX_SUBFLOWS}");
        s.problem_at("scenario::out_of_range", "subflows", message, help);
    }
    subflows.clamp(1, MAX_SUBFLOWS)
}

/// Reads after how many segments an acknowledgment is sent; by default after every segment, as in simulations.
fn read_delayed_ack(t: &mut Section<'_>) -> Option<DelayedAck> {
    let every = t.get::<u32>("delayed_ack", 1);
    let timeout = t.get("delayed_ack_timeout", Time::from_us(50)).value;
    if every.value == 0 || 100 < every.value {
        let message = format!("an acknowledgment every {} segments", every.value);
        t.problem_at("scenario::out_of_range", "delayed_ack", message, "write for instance `delayed_ack = 2`");
    }
    (1 < every.value).then_some(DelayedAck { every: every.value, timeout })
}
