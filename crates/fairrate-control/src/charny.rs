//! `charny`: A. Charny, D. D. Clark, R. Jain, "Congestion Control with Explicit Rate Indication", ICC 1995, as PERC's
//! authors compare with it (L. Jose et al., HotNets 2015, section 4.2): one stamped rate for all links.
//!
//! | there                     | here                          | unit  |
//! |---------------------------|-------------------------------|-------|
//! | stamped rate              | header word `STAMP`           | bit/s |
//! | u-bit                     | header word `REDUCED`         | 1     |
//! | last stamped rate of a flow | a link's `RateTable`        | bit/s |
//! | advertised rate μ         | `advertised`                  | bit/s |
//! | marked (restricted) flows | those with a rate of at most μ | count |
//!
//! Readings. A rate equal to μ counts as reduced: a flow at its bottleneck keeps its stamp; otherwise it would
//! ask for everything in every second round trip. Equal means within a relative 10^-9, since μ is a quotient. A link
//! stores a flow's stamp as it leaves the link. All else is as in PERC's source: one control packet circulates, raises
//! wait, data wait for the first reply, the exit message is sent with the last byte, short flows ask for the rate they
//! need. The ns-3 artifact has none of this: both profiles are the same.

use fairrate_units::Rate;

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::explicit_rate::{Answers, COMMON_WORDS, EXIT, ExplicitRate, ExplicitRateConfig, Usable, times};
use crate::needs::{Needs, NetworkNeeds, WireNeeds};
use crate::port::{
    Actions, HeaderWords, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView,
};
use crate::rate_table::RateTable;

algorithm_config! {
    /// Parameters of Charny's algorithm.
    pub struct CharnyConfig {
        include /** What it shares with PERC. */ base: ExplicitRateConfig;
    }
}

/// Header word: the stamped rate.
const STAMP: usize = COMMON_WORDS;
/// Header word: the u-bit.
const REDUCED: usize = COMMON_WORDS + 1;
const WORDS: usize = COMMON_WORDS + 2;

/// Relative difference up to which rates are equal.
const EQUAL: f64 = 1e-9;

impl AlgorithmSpec for CharnyConfig {
    type Controller = Charny;
    type Port = CharnyPort;
    fn needs(&self) -> Needs {
        let header = HeaderWords { fixed: WORDS as u8, per_hop: 0 };
        Needs {
            network: NetworkNeeds { ports: PortScope::All, ..NetworkNeeds::NOTHING },
            wire: WireNeeds { header, control: Some(self.base.control_packet), ..WireNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Charny {
        Charny::new(&self.base, flow, Stamp(f64::INFINITY))
    }
    fn build_port(&self, port: &PortContext) -> Option<CharnyPort> {
        let usable = self.base.usable(port);
        let table = RateTable::new(usable.of(port.rate), times(port.base_rtt, self.base.state_timeout));
        Some(CharnyPort { advertised: table.capacity(), usable, table })
    }
}

/// A flow under Charny's algorithm.
pub type Charny = ExplicitRate<Stamp>;

/// The next stamped rate in bit/s: the rate that the links allowed last, or infinite to ask for all the flow can use.
#[derive(Clone, Copy, Debug)]
pub struct Stamp(f64);

impl Answers for Stamp {
    fn ask(&self, limit: f64, header: &mut [f64]) {
        header[STAMP] = self.0.min(limit);
    }

    /// Stores and returns the rate that came back. If a link reduced it, the next stamp is that rate; otherwise the
    /// next stamp asks for more.
    fn take(&mut self, header: &[f64]) -> f64 {
        // `max` also turns NaN into 0.
        let rate = header[STAMP].max(0.0);
        self.0 = if header[REDUCED] == 1.0 { rate } else { f64::INFINITY };
        rate
    }

    fn forget(&mut self) {
        self.0 = f64::INFINITY;
    }
}

/// A link under Charny's algorithm.
#[derive(Clone, Debug)]
pub struct CharnyPort {
    table: RateTable,
    /// The advertised rate μ, in bit/s.
    advertised: f64,
    usable: Usable,
}

impl CharnyPort {
    /// Returns μ = (C - Σ over marked R) / (n - |M|), or C - ΣR + max R if all flows are marked.
    fn rate_with(&self, n_marked: usize, marked: f64) -> f64 {
        let n = self.table.len();
        let rate = if n_marked < n {
            (self.table.capacity() - marked) / (n - n_marked) as f64
        } else {
            let (total, largest) = self.table.total_and_largest();
            self.table.capacity() - total + largest
        };
        rate.clamp(0.0, self.table.capacity())
    }

    /// Updates μ. Flows with a rate up to the old μ are marked. If some of these rates are above the new μ, those flows
    /// are unmarked and μ is computed again. A third computation would change nothing.
    fn advertise(&mut self) {
        let (n_marked, marked) = self.table.up_to(self.advertised);
        let mut rate = self.rate_with(n_marked, marked);
        let (n_still, still) = self.table.up_to(rate);
        if n_still < n_marked {
            rate = self.rate_with(n_still, still);
        }
        self.advertised = rate;
    }
}

impl PortAgent for CharnyPort {
    fn watches(&self, kind: PortPacketKind, step: PortStep) -> bool {
        (kind, step) == (PortPacketKind::Control, PortStep::Enqueue)
    }

    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if packet.kind != PortPacketKind::Control {
            return;
        }
        self.table.expire(view.now);
        if packet.header[EXIT] == 1.0 {
            self.table.remove(packet.flow);
            self.advertise();
            return;
        }
        self.table.insert(view.now, packet.flow, packet.header[STAMP]);
        self.advertise();
        if self.advertised * (1.0 - EQUAL) <= packet.header[STAMP] {
            packet.header[STAMP] = packet.header[STAMP].min(self.advertised);
            packet.header[REDUCED] = 1.0;
            self.table.insert(view.now, packet.flow, packet.header[STAMP]);
            self.advertise();
        }
    }

    fn on_rate(&mut self, rate: Rate) {
        self.table.set_capacity(self.usable.of(rate));
        self.advertise();
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Time;
    use proptest::prelude::*;

    use super::*;
    use crate::controller::Controller;
    use crate::message_passing::{Network, Plan, equal, settle, strategies};
    use crate::test_flow::{flow_25g, port_40g};

    const G: f64 = 1e9;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn link(gbps: u64) -> CharnyPort {
        let rate = Rate::from_gbps(gbps);
        let port = PortContext { port: 0, rate, base_rtt: us(10), ..port_40g() };
        CharnyConfig::default().build_port(&port).expect("it has one")
    }

    /// Returns the stamp in Gb/s and the u-bit after the link, for a packet with the given stamp.
    fn pass(link: &mut CharnyPort, flow: u32, stamp: f64) -> (f64, bool) {
        let header = &mut [1.0, 0.0, stamp * G, 0.0];
        let mut packet = PortPacket { flow, class: 3, kind: PortPacketKind::Control, wire: 40, header, mark: false };
        link.on_enqueue(&PortView { now: us(1), queue_bytes: 0 }, &mut packet, &mut Actions::default());
        ((header[STAMP] / G * 1e6).round() / 1e6, header[REDUCED] == 1.0)
    }

    #[test]
    fn a_link_lowers_stamps_to_its_advertised_rate() {
        let mut link = link(100);
        // Alone: all of it. With the second flow: both are above 100 - 200 + 100 = 0, so unmarked, 100/2.
        assert_eq!(pass(&mut link, 1, 1_000.0), (100.0, true));
        assert_eq!(pass(&mut link, 2, 1_000.0), (50.0, true));
        assert_eq!(pass(&mut link, 1, 100.0), (50.0, true));
        // Both marked: 100 - 100 + 50 = 50, and an equal stamp counts as reduced.
        assert_eq!(pass(&mut link, 2, 50.0), (50.0, true));
        // Flow 2 has 10 elsewhere: untouched; all marked, 100 - 60 + 50 = 90 for flow 1, which may ask again.
        assert_eq!(pass(&mut link, 2, 10.0), (10.0, false));
        assert_eq!(pass(&mut link, 1, 50.0), (50.0, false));
        assert_eq!(pass(&mut link, 1, 1_000.0), (90.0, true));
    }

    #[test]
    fn the_source_asks_for_more_only_if_no_link_said_no() {
        // 25 Gb/s, RTT 8 us.
        let mut charny = CharnyConfig::default().build(&flow_25g());
        charny.on_start(us(0));
        let stamp = |charny: &mut Charny, now| {
            let mut header = [0.0; WORDS];
            assert!(charny.control_packet(now, u64::MAX, &mut header));
            header[STAMP] / G
        };
        assert_eq!(stamp(&mut charny, us(0)), 25.0);
        let back = |charny: &mut Charny, now, seq, rate: f64, reduced| {
            let a = charny.on_control(now, &[seq, 0.0, rate * G, reduced]).expect("a decision");
            (a.rate.as_gbps_f64(), a.timer)
        };
        assert_eq!(back(&mut charny, us(8), 1.0, 10.0, 1.0).0, 10.0);
        assert_eq!(stamp(&mut charny, us(8)), 10.0);
        assert_eq!(back(&mut charny, us(16), 2.0, 10.0, 0.0).0, 10.0);
        assert_eq!(stamp(&mut charny, us(16)), 25.0);
        // A raise waits for two RTTs, a cut does not.
        assert_eq!(back(&mut charny, us(24), 3.0, 12.0, 1.0), (10.0, us(40)));
        assert_eq!(stamp(&mut charny, us(24)), 12.0);
        assert_eq!(back(&mut charny, us(32), 4.0, 4.0, 1.0).0, 4.0);
    }

    /// PERC Fig. 7: the rates of A, B, C, D are 35, 25, 5, 5 Gb/s.
    #[test]
    fn the_dependency_chain_of_perc_fig_7_settles() {
        let paths = vec![vec![0], vec![0, 1], vec![1, 2], vec![2]];
        let network = Network { gbps: vec![60, 30, 10], paths, demand_gbps: vec![0; 4] };
        for seed in 0..20 {
            let plan = Plan { seed, loss: 0.0, end: us(300), leave: Time::MAX };
            let rates = settle(&CharnyConfig::default(), &network, &plan);
            assert!(equal(&rates, &[35.0 * G, 25.0 * G, 5.0 * G, 5.0 * G], 1e-6), "{rates:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        /// Flows settle at the max-min rates in any order of messages and with any losses.
        #[test]
        fn rates_settle_at_the_optimum(
            network in strategies::network(), seed in any::<u64>(),
            loss in prop_oneof![3 => Just(0.0), 1 => Just(0.05)],
        ) {
            let plan = Plan { seed, loss, end: Time::from_ms(5), leave: Time::MAX };
            let rates = settle(&CharnyConfig::default(), &network, &plan);
            let want = network.optimum();
            prop_assert!(equal(&rates, &want, 1e-6), "{:?} for {:?}", rates, want);
        }
    }
}
