//! Streams over random wires arrive; faults that the harness must detect are detected.

use proptest::prelude::*;

use super::*;

fn faults() -> impl Strategy<Value = Faults> {
    let rare = |most: f64| prop_oneof![1 => Just(0.0), 2 => 0.0..most];
    (rare(0.3), (rare(0.05), 0.5..0.95), rare(0.5), 1_u64..300, rare(0.3), rare(0.2)).prop_map(
        |(loss, burst, late, late_us, duplicate, corrupt)| Faults { loss, burst, late, late_us, duplicate, corrupt },
    )
}

/// Generates a path that is dead for a while, or never.
fn path() -> impl Strategy<Value = PathPlan> {
    let dead_us = prop_oneof![2 => Just((0, 0)), 1 => (0_u64..2_000, 1_u64..20_000).prop_map(|(at, d)| (at, at + d))];
    (faults(), faults(), 2_u64..100, dead_us, 1_u64..40).prop_map(|(there, back, delay_us, dead_us, window)| PathPlan {
        there,
        back,
        delay_us,
        dead_us,
        window,
    })
}

fn tcp() -> impl Strategy<Value = TcpConfig> {
    let delayed_ack = prop::option::of(
        (2_u32..5, 10_u64..500).prop_map(|(every, us)| DelayedAck { every, timeout: Time::from_us(us) }),
    );
    let receive_window = prop_oneof![2 => Just(u64::MAX), 1 => MSS..40 * MSS];
    let ecn_echo = prop::sample::select(vec![EcnEcho::Accurate, EcnEcho::Classic]);
    (delayed_ack, receive_window, ecn_echo, any::<bool>(), any::<bool>()).prop_map(
        |(delayed_ack, receive_window, ecn_echo, tail_loss_probe, prr)| TcpConfig {
            tail_loss_probe,
            delayed_ack,
            prr,
            receive_window,
            ecn_echo,
            ..TCP
        },
    )
}

proptest! {
    #[test]
    fn tcp_delivers_every_byte_in_order(bytes in 1_u64..150_000, seed: u64, tcp in tcp(), path in path()) {
        let plan = Plan { bytes, seed, tcp, paths: vec![path], checks: true };
        prop_assert_eq!(Transfer::new(plan).run(), Ok(()));
    }

    /// All paths but the first may die for ever.
    #[test]
    fn mptcp_delivers_every_byte_in_order(
        bytes in 1_u64..150_000,
        seed: u64,
        tcp in tcp(),
        paths in prop::collection::vec(path(), 2..5),
        dies_us in prop::option::of(0_u64..2_000),
        scheduler in prop::sample::select(vec![Scheduler::MinRtt, Scheduler::RoundRobin, Scheduler::Redundant]),
    ) {
        let mut paths = paths;
        if let Some(at) = dies_us {
            paths[1..].iter_mut().for_each(|path| path.dead_us = (at, u64::MAX));
        }
        let tcp = TcpConfig { multipath: MptcpConfig { scheduler, ..MptcpConfig::SINGLE }, ..tcp };
        let plan = Plan { bytes, seed, tcp, paths, checks: true };
        prop_assert_eq!(Transfer::new(plan).run(), Ok(()));
    }
}

const GOOD_PATH: PathPlan =
    PathPlan { there: Faults::NONE, back: Faults::NONE, delay_us: 10, dead_us: (0, 0), window: 10 };

fn plan(paths: Vec<PathPlan>) -> Plan {
    Plan { bytes: 50_500, seed: 7, tcp: TCP, paths, checks: true }
}

/// The harness reports transports that do not work.
#[test]
fn damage_that_nobody_notices_and_paths_that_stay_dead_are_found() {
    assert_eq!(Transfer::new(plan(vec![GOOD_PATH])).run(), Ok(()));
    let damaged = PathPlan { there: Faults { corrupt: 0.05, ..Faults::NONE }, ..GOOD_PATH };
    assert_eq!(Transfer::new(plan(vec![damaged.clone()])).run(), Ok(()));
    let result = Transfer::new(Plan { checks: false, ..plan(vec![damaged]) }).run();
    assert!(matches!(result, Err(Failure::Differs { .. })), "{result:?}");
    let dead = PathPlan { dead_us: (5, u64::MAX), ..GOOD_PATH };
    let result = Transfer::new(plan(vec![dead.clone()])).run();
    assert!(matches!(result, Err(Failure::NoEnd { .. })), "{result:?}");
    assert_eq!(Transfer::new(plan(vec![GOOD_PATH, dead])).run(), Ok(()));
    // An acknowledgment of more bytes than have arrived.
    let mut application =
        Application { held: BTreeMap::from([(0, vec![1, 2])]), read: 0, hash: XxHash64::with_seed(0) };
    assert_eq!(application.read_to(3), Err(Failure::Missing { byte: 2 }));
}
