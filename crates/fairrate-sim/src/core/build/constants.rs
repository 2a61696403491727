//! The values of a run that do not change, from its configuration.

use fairrate_control::AlgorithmConfig;
use fairrate_units::{Bytes, Time};

use crate::config::{Recovery, SimConfig, Transport, TransportConfig};
use crate::core::run::{Constants, Rules};
use crate::ideal::{self, Framing};
use crate::routing::Routes;

/// Returns the sizes of packets on the wire of the run's first stack.
pub(crate) fn framing(config: &SimConfig) -> Framing {
    framing_of(config, (&config.transport, &config.cc))
}

fn framing_of(config: &SimConfig, (t, cc): (&TransportConfig, &AlgorithmConfig)) -> Framing {
    let needs = cc.needs();
    Framing {
        mtu: t.mtu,
        header: t.data_header(&needs),
        ack: t.ack + t.ack_overhead.unwrap_or(needs.wire.ack_overhead),
        overhead: config.fabric.frame_overhead,
    }
}

impl SimConfig {
    /// Returns the base round-trip time of the network, τ, as the run will have it for the packets of its first stack.
    #[must_use]
    pub fn base_rtt(&self, routes: &Routes) -> Time {
        ideal::network_base_rtt(
            &self.topology,
            routes,
            self.fabric.clock,
            framing(self),
            self.transport.base_rtt,
            &self.processing(),
        )
    }
}

/// Checks that the lengths of the longest packets fit into 16 bits.
pub(super) fn check_packets(config: &SimConfig) {
    for (t, cc) in config.stacks() {
        let (framing, control) = (framing_of(config, (t, cc)), cc.needs().wire.control.unwrap_or_default());
        for bytes in [framing.mtu + framing.header, framing.ack, t.cnp, config.fabric.pfc_frame, control] {
            assert!(bytes <= TransportConfig::MAX_PACKET, "a packet of {bytes} is too long");
        }
        assert!(t.mtu == config.transport.mtu, "all stacks have the same `mtu`");
    }
}

/// Returns the values of a run that do not change, and those of its stacks.
pub(super) fn constants(config: &SimConfig, routes: &Routes) -> (Constants, Vec<Rules>) {
    let rules: Vec<Rules> = config.stacks().map(|stack| rules(config, routes, stack)).collect();
    let constants = Constants {
        mtu: config.transport.mtu.as_u64(),
        wire_mtu: config.longest_packet().as_u64(),
        pfc_wire: config.fabric.pfc_frame.as_u64() as u16,
        clock: config.fabric.clock,
        header_words: rules.iter().map(|rules| rules.header_words).max().unwrap_or(0),
        coalesces: rules.iter().any(|rules| rules.ack_every.is_some()),
        has_control: rules.iter().any(|rules| rules.control_wire.is_some()),
        telemetry: config.network_needs().telemetry,
        base_rtt: rules[0].base_rtt,
    };
    (constants, rules)
}

/// Returns what holds for the flows of a stack.
fn rules(config: &SimConfig, routes: &Routes, (t, cc): (&TransportConfig, &AlgorithmConfig)) -> Rules {
    let (needs, framing) = (cc.needs(), framing_of(config, (t, cc)));
    let base_rtt = ideal::network_base_rtt(
        &config.topology,
        routes,
        config.fabric.clock,
        framing,
        t.base_rtt,
        &config.processing(),
    );
    Rules {
        framing,
        window: t.window,
        min_window: match t.kind {
            Transport::Tcp(tcp) => u64::from(tcp.min_window) * framing.mtu.as_u64(),
            Transport::Rdma | Transport::Uet { .. } => 0,
        },
        data_header: framing.header.as_u64(),
        room: if t.window_overshoot { 1 } else { t.mtu.as_u64() as u32 },
        ack_wire: framing.ack.as_u64() as u16,
        cnp_wire: t.cnp.as_u64() as u16,
        control_wire: needs.wire.control.map(|bytes| bytes.as_u64() as u16),
        control_class: t.control_class,
        reaction_ps: t.reaction_delay.as_ps(),
        header_words: usize::from(needs.wire.header.fixed)
            + usize::from(needs.wire.header.per_hop) * routes.longest_path() as usize,
        ack_class: t.ack_class,
        recovery: t.recovery,
        gap_patience_ps: match t.recovery {
            Recovery::GoBackN => t.nack_interval,
            Recovery::SelectiveRepeat => t.reorder_window,
        }
        .as_ps(),
        cnp_by_clock: needs.feedback.cnp_by_clock,
        cnp_interval_ps: needs.feedback.cnp_interval.map(Time::as_ps),
        rto_ps: t.rto.filter(|_| !matches!(t.kind, Transport::Tcp(_))).map_or(u64::MAX, Time::as_ps),
        ack_every: t.ack_every.filter(|_| t.kind == Transport::Rdma).map(Bytes::as_u64),
        rto_head_ps: match (t.kind, t.rto, t.rto_low) {
            (Transport::Rdma, Some(rto), Some(low)) => rto.as_ps().saturating_sub(low.as_ps()),
            _ => 0,
        },
        fixed_rto: needs
            .feedback
            .rto_rtts
            .map(|rtts| Time::from_ps((rtts * base_rtt.as_ps() as f64) as u64).max(Time::from_ns(1))),
        repace: needs.pacing.repace_on_change,
        pacing_credit: u64::from(needs.pacing.pacing_credit),
        bucket: needs.pacing.bucket,
        first_ack_only_stored: needs.feedback.first_ack_only_stored,
        ecn: needs.network.ecn,
        base_rtt,
    }
}
