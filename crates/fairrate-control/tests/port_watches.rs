//! Tests that packets which a port does not watch change nothing: a port that gets all callbacks behaves as a port that
//! gets only the callbacks it watches.

use fairrate_control::{
    ALGORITHMS, Actions, AlgorithmConfig, PortAgent, PortAlgorithm, PortContext, PortPacket, PortPacketKind, PortScope,
    PortStep, PortView, Profile,
};
use fairrate_units::{Rate, Time};

const KINDS: [PortPacketKind; 3] = [PortPacketKind::Data, PortPacketKind::Control, PortPacketKind::Other];

/// A port of an algorithm, with the actions it has requested so far.
struct Side {
    port: PortAlgorithm,
    actions: Actions,
}

impl Side {
    fn new(config: &AlgorithmConfig) -> Option<Self> {
        let context = PortContext {
            port: 7,
            rate: Rate::from_gbps(100),
            nic_rate: Rate::MAX,
            base_rtt: Time::from_us(8),
            wire_mtu: 1_500,
            frame_overhead: 0,
            upstream_delay: Time::from_us(1),
            of_host: false,
            seed: 1,
        };
        Some(Self { port: config.build_port(&context)?, actions: Actions::default() })
    }

    /// Passes a packet to the port; returns the packet's header and mark.
    fn tell(&mut self, view: &PortView, step: PortStep, kind: PortPacketKind, flow: u32) -> ([f64; 16], bool) {
        // No flag of any algorithm is 2.
        let mut header = [2.0; 16];
        let words: &mut [f64] = if kind == PortPacketKind::Other { &mut [] } else { &mut header };
        let mut packet = PortPacket { flow, class: 3, kind, wire: 1_500, header: words, mark: false };
        match step {
            PortStep::Enqueue => self.port.on_enqueue(view, &mut packet, &mut self.actions),
            PortStep::Dequeue => self.port.on_dequeue(view, &mut packet, &mut self.actions),
        }
        let mark = packet.mark;
        (header, mark)
    }
}

fn check(config: &AlgorithmConfig, name: &str) {
    let (Some(mut all), Some(mut watched)) = (Side::new(config), Side::new(config)) else { return };
    let mut queue = std::collections::VecDeque::new();
    for i in 0..20_000_u64 {
        let now = Time::from_ns(130 * i);
        // Two packets of three join in the first half of every 2,000 steps, one of three in the second.
        let joins = (i % 3 < 2) == (i % 2_000 < 1_000);
        if !joins && queue.is_empty() {
            continue;
        }
        let step = if joins { PortStep::Enqueue } else { PortStep::Dequeue };
        if joins {
            // At first a port at rest sees only acknowledgments.
            let kind = if i < 2_000 { PortPacketKind::Other } else { KINDS[(i * i % 7 % 3) as usize] };
            queue.push_back((kind, (i % 5) as u32));
        }
        let (kind, flow) = if joins { queue[queue.len() - 1] } else { queue.pop_front().expect("it is not empty") };
        let others = queue.len() - usize::from(joins);
        let view = PortView { now, queue_bytes: 1_500 * others as u64 };
        for side in [&mut all, &mut watched] {
            if side.port.timer() <= now {
                side.port.on_timer(&view, &mut side.actions);
            }
        }
        let told = all.tell(&view, step, kind, flow);
        if watched.port.watches(kind, step) {
            assert_eq!(watched.tell(&view, step, kind, flow), told, "{name}, step {i}");
        }
        assert_eq!(all.port.timer(), watched.port.timer(), "{name}, step {i}");
        assert_eq!(all.actions.notices, watched.actions.notices, "{name}, step {i}");
        assert_eq!(all.actions.pauses, watched.actions.pauses, "{name}, step {i}");
    }
}

#[test]
fn what_a_port_does_not_watch_changes_nothing() {
    let mut n_ports = 0;
    for algorithm in ALGORITHMS {
        let config = AlgorithmConfig::by_name(algorithm.name, Profile::Paper).expect("it is in the table");
        if config.needs().network.ports != PortScope::None {
            check(&config, algorithm.name);
            n_ports += 1;
        }
    }
    assert!(5 < n_ports, "the algorithms with ports are checked");
}
