//! `perc`: PERC. L. Jose, L. Yan, M. Alizadeh, G. Varghese, N. McKeown, S. Katti, "High Speed Networks Need Proactive
//! Congestion Control", HotNets 2015: the asynchronous form of section 3.2, with either header of section 5.
//!
//! | paper   | here                                 | unit  |
//! |---------|--------------------------------------|-------|
//! | d_l^a   | `demand`, a link's `RateTable`       | bit/s |
//! | f_l     | `share`, `Shares`                    | bit/s |
//! | C_l     | `capacity` (less `headroom`)         | bit/s |
//! | r_a     | the pacing rate                      | bit/s |
//!
//! Readings. If Σd ≤ C, a link advertises C in the paper. Because flows get this answer one after another, each of
//! several new flows could then take the whole link. So a link answers with the rate that the asking flow would get:
//! eq. (2) with that flow's own demand taken as infinite (`share = "asking"`). Then eq. (2) always has a solution, and
//! it is at most C. The printed rule is `share = "printed"`. Hosts' links count as links. A control packet visits links
//! on its way to the receiver, which sends it back; the next is sent when it has returned. Data wait for the first
//! reply. Rates are bits on the wire; control packets are counted in them with `charge_control` only, and
//! acknowledgments never. The exit message is sent with the last byte. The ns-3 artifact has no PERC: both profiles are
//! the same.

use fairrate_units::{Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::explicit_rate::{Answers, COMMON_WORDS, EXIT, ExplicitRate, Usable, times};
pub use crate::explicit_rate::{ExplicitRateConfig, ShortFlows};
use crate::needs::{Needs, NetworkNeeds, WireNeeds};
use crate::port::{
    Actions, HeaderWords, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView,
};
use crate::rate_table::RateTable;

choice! {
    /// The content of a control packet.
    pub enum PercHeader {
        /// A demand and a fair share for every link.
        PerHop = "per-hop",
        /// The two smallest fair shares, from which every demand follows.
        TwoValue = "two-value",
    }
}

choice! {
    /// The answer of a link.
    pub enum PercShare {
        /// The rate that the asking flow would get.
        Asking = "asking",
        /// The solution of eq. (2), or C if it has none.
        Printed = "printed",
    }
}

algorithm_config! {
    /// Parameters of PERC.
    pub struct PercConfig {
        /// Content of control packets (section 3: a demand for every link; section 5: two values).
        header: PercHeader = PercHeader::PerHop;
        /// Answer of a link: the share that the asking flow would get, or eq. (2) as printed, with C where demands fit.
        share: PercShare = PercShare::Asking;
        include /** What it shares with Charny's algorithm. */ base: ExplicitRateConfig;
    }
}

impl AlgorithmSpec for PercConfig {
    type Controller = Perc;
    type Port = PercPort;
    fn needs(&self) -> Needs {
        let header = match self.header {
            PercHeader::PerHop => HeaderWords { fixed: PER_HOP as u8, per_hop: 1 },
            PercHeader::TwoValue => HeaderWords { fixed: TWO_VALUE_WORDS as u8, per_hop: 0 },
        };
        Needs {
            network: NetworkNeeds { ports: PortScope::All, ..NetworkNeeds::NOTHING },
            wire: WireNeeds { header, control: Some(self.base.control_packet), ..WireNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Perc {
        let shares = match self.header {
            PercHeader::PerHop => Shares::PerHop(vec![f64::INFINITY; flow.n_hops as usize]),
            PercHeader::TwoValue => Shares::TwoValue(TwoSmallest::NONE),
        };
        Perc::new(&self.base, flow, shares)
    }
    fn build_port(&self, port: &PortContext) -> Option<PercPort> {
        let usable = self.base.usable(port);
        let table = RateTable::new(usable.of(port.rate), times(port.base_rtt, self.base.state_timeout));
        Some(PercPort { id: f64::from(port.port), header: self.header, share: self.share, usable, table })
    }
}

/// Per-hop header: number of links passed so far.
const HOPS: usize = COMMON_WORDS;
/// Per-hop header: a word for each link, the demand on the way in and the fair share on the way out.
const PER_HOP: usize = COMMON_WORDS + 1;

/// Two-value header: the demand for the link `BOTTLENECK`, and for all others.
const DEMAND_BOTTLENECK: usize = COMMON_WORDS;
const DEMAND_OTHERS: usize = COMMON_WORDS + 1;
const BOTTLENECK: usize = COMMON_WORDS + 2;
/// Two-value header: the answers of the links passed so far.
const SMALLEST: usize = COMMON_WORDS + 3;
const SECOND: usize = COMMON_WORDS + 4;
const SMALLEST_AT: usize = COMMON_WORDS + 5;
const TWO_VALUE_WORDS: usize = COMMON_WORDS + 6;

/// A flow under PERC.
pub type Perc = ExplicitRate<Shares>;

/// The two smallest fair shares of a path, and the link of the smallest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSmallest {
    smallest: f64,
    second: f64,
    /// Number of the link; below 0 if there is none.
    at: f64,
}

impl TwoSmallest {
    const NONE: Self = Self { smallest: f64::INFINITY, second: f64::INFINITY, at: -1.0 };

    /// Adds the `share` of another link.
    fn add(&mut self, share: f64, link: f64) {
        if share < self.smallest {
            *self = Self { smallest: share, second: self.smallest, at: link };
        } else {
            self.second = self.second.min(share);
        }
    }
}

/// The fair shares f_l that the links of the path have answered.
#[derive(Clone, Debug)]
pub enum Shares {
    /// The share of every link.
    PerHop(Vec<f64>),
    /// The two smallest shares.
    TwoValue(TwoSmallest),
}

/// Returns the smallest of all values but the value at index `without`.
fn smallest_other(values: &[f64], without: usize) -> f64 {
    let others = values.iter().enumerate().filter(|&(at, _)| at != without);
    others.fold(f64::INFINITY, |min, (_, &value)| min.min(value))
}

impl Shares {
    /// Returns r = min f_l.
    fn smallest(&self) -> f64 {
        match self {
            Self::PerHop(f) => smallest_other(f, usize::MAX),
            Self::TwoValue(two) => two.smallest,
        }
    }
}

impl Answers for Shares {
    /// Writes the demands of eq. (1): d_l = min of f_l' over the other links, and no more than the flow can use
    /// (footnote 2).
    fn ask(&self, limit: f64, header: &mut [f64]) {
        match self {
            Self::PerHop(f) => {
                for (link, demand) in header[PER_HOP..].iter_mut().take(f.len()).enumerate() {
                    *demand = smallest_other(f, link).min(limit);
                }
            }
            Self::TwoValue(two) => {
                header[DEMAND_BOTTLENECK] = two.second.min(limit);
                header[DEMAND_OTHERS] = two.smallest.min(limit);
                header[BOTTLENECK] = two.at;
                (header[SMALLEST], header[SECOND], header[SMALLEST_AT]) = (f64::INFINITY, f64::INFINITY, -1.0);
            }
        }
    }

    fn take(&mut self, header: &[f64]) -> f64 {
        // `max` also turns NaN into 0.
        match self {
            Self::PerHop(f) => f.iter_mut().zip(&header[PER_HOP..]).for_each(|(f, &share)| *f = share.max(0.0)),
            Self::TwoValue(two) => {
                let (smallest, second) = (header[SMALLEST].max(0.0), header[SECOND].max(0.0));
                *two = TwoSmallest { smallest, second, at: header[SMALLEST_AT] };
            }
        }
        self.smallest()
    }

    fn forget(&mut self) {
        match self {
            Self::PerHop(f) => f.fill(f64::INFINITY),
            Self::TwoValue(two) => *two = TwoSmallest::NONE,
        }
    }
}

/// A link under PERC.
#[derive(Clone, Debug)]
pub struct PercPort {
    id: f64,
    header: PercHeader,
    share: PercShare,
    usable: Usable,
    table: RateTable,
}

impl PercPort {
    /// Stores the `demand` of `flow`; returns the link's answer f_l.
    fn answer(&mut self, now: Time, flow: u32, demand: f64) -> f64 {
        match self.share {
            PercShare::Asking => {
                self.table.remove(flow);
                let share = self.table.level(1);
                self.table.insert(now, flow, demand);
                share
            }
            PercShare::Printed => {
                self.table.insert(now, flow, demand);
                if self.table.fit() { self.table.capacity() } else { self.table.level(0) }
            }
        }
    }

    fn answer_per_hop(&mut self, now: Time, flow: u32, header: &mut [f64]) {
        let at = PER_HOP + header[HOPS] as usize;
        header[HOPS] += 1.0;
        if let Some(word) = header.get_mut(at) {
            *word = self.answer(now, flow, *word);
        }
    }

    fn answer_two_value(&mut self, now: Time, flow: u32, header: &mut [f64]) {
        let demand = header[if header[BOTTLENECK] == self.id { DEMAND_BOTTLENECK } else { DEMAND_OTHERS }];
        let mut two = TwoSmallest { smallest: header[SMALLEST], second: header[SECOND], at: header[SMALLEST_AT] };
        two.add(self.answer(now, flow, demand), self.id);
        (header[SMALLEST], header[SECOND], header[SMALLEST_AT]) = (two.smallest, two.second, two.at);
    }
}

impl PortAgent for PercPort {
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
            return;
        }
        match self.header {
            PercHeader::PerHop => self.answer_per_hop(view.now, packet.flow, packet.header),
            PercHeader::TwoValue => self.answer_two_value(view.now, packet.flow, packet.header),
        }
    }

    fn on_rate(&mut self, rate: Rate) {
        self.table.set_capacity(self.usable.of(rate));
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::controller::Controller;
    use crate::message_passing::{Network, Plan, equal, settle, strategies};
    use crate::test_flow::{flow_25g, port_40g};

    const G: f64 = 1e9;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn link(gbps: u64, share: PercShare) -> PercPort {
        let rate = Rate::from_gbps(gbps);
        let port = PortContext { port: 7, rate, base_rtt: us(10), ..port_40g() };
        PercConfig { share, ..PercConfig::default() }.build_port(&port).expect("it has one")
    }

    /// Returns the answers in Gb/s to messages (flow, demand in Gb/s).
    fn answers(link: &mut PercPort, messages: &[(u32, f64)]) -> Vec<f64> {
        messages.iter().map(|&(flow, demand)| (link.answer(us(1), flow, demand * G) / G * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn a_link_answers_what_the_asking_flow_would_get() {
        let inf = f64::INFINITY;
        // Alone: all of it. Then half, a third; a flow that needs 10 leaves 45 to each of two others.
        let messages = [(1, inf), (2, inf), (1, inf), (3, inf), (3, 10.0), (1, inf), (2, inf)];
        let mut asked = link(100, PercShare::Asking);
        assert_eq!(answers(&mut asked, &messages), [100.0, 50.0, 50.0, 33.333_333, 33.333_333, 45.0, 45.0]);
        // As printed the demand counts that comes with the message: f with (inf, inf, 10) is 45.
        let mut printed = link(100, PercShare::Printed);
        assert_eq!(answers(&mut printed, &messages), [100.0, 50.0, 50.0, 33.333_333, 45.0, 45.0, 45.0]);
        // Demands of 10 and 20 fit: as printed, C for each flow, though two flows of that rate would be too much; with
        // `asking`, the capacity that the other flow leaves.
        let messages = [(1, 10.0), (2, 20.0), (1, 10.0)];
        assert_eq!(answers(&mut link(100, PercShare::Printed), &messages), [100.0, 100.0, 100.0]);
        assert_eq!(answers(&mut link(100, PercShare::Asking), &messages), [100.0, 90.0, 80.0]);
        // Σd = C: as printed still C.
        assert_eq!(answers(&mut link(100, PercShare::Printed), &[(1, 80.0), (2, 20.0)]), [100.0, 100.0]);
    }

    #[test]
    fn headroom_is_not_given_away_and_silent_flows_are_forgotten() {
        let base = ExplicitRateConfig { headroom: 0.2, ..ExplicitRateConfig::default() };
        let rate = Rate::from_gbps(10);
        let port = PortContext { port: 0, rate, base_rtt: us(10), ..port_40g() };
        let mut link = PercConfig { base, ..PercConfig::default() }.build_port(&port).expect("it has one");
        let mut ask = |now, flow, exit| {
            let header = &mut [1.0, exit, 0.0, f64::INFINITY];
            let kind = PortPacketKind::Control;
            let mut packet = PortPacket { flow, class: 3, kind, wire: 40, header, mark: false };
            link.on_enqueue(&PortView { now, queue_bytes: 0 }, &mut packet, &mut Actions::default());
            header[3] / G
        };
        assert_eq!(ask(us(0), 1, 0.0), 8.0);
        assert_eq!(ask(us(1), 2, 0.0), 4.0);
        ask(us(2), 2, 1.0);
        assert_eq!(ask(us(3), 1, 0.0), 8.0, "flow 2 has left");
        // Ten base RTTs of 10 us.
        assert_eq!(ask(us(103), 3, 0.0), 4.0);
        assert_eq!(ask(us(104), 3, 0.0), 8.0, "flow 1 has been silent");
    }

    fn perc(base: ExplicitRateConfig, flow: &FlowContext) -> Perc {
        PercConfig { base, ..PercConfig::default() }.build(flow)
    }

    /// Returns the header of the flow's control packet sent now, if any.
    fn departs(perc: &mut Perc, now: Time, unsent: u64) -> Option<[f64; 5]> {
        let mut header = [0.0; 5];
        perc.control_packet(now, unsent, &mut header).then_some(header)
    }

    /// Returns the control packet to the flow with the fair shares `f` in Gb/s; gives the resulting rate in Gb/s and
    /// timer.
    fn comes_back(perc: &mut Perc, now: Time, seq: f64, f: [f64; 2]) -> (f64, Time) {
        let a = perc.on_control(now, &[seq, 0.0, 2.0, f[0] * G, f[1] * G]).expect("a decision");
        (a.rate.as_gbps_f64(), a.timer)
    }

    #[test]
    fn the_source_takes_the_least_share_and_demands_the_least_of_the_others() {
        // 25 Gb/s, two links, RTT 8 us.
        let mut perc = perc(ExplicitRateConfig::default(), &flow_25g());
        let start = perc.on_start(us(0));
        assert_eq!((start.rate, start.timer), (Rate::ZERO, us(24)));
        assert_eq!(departs(&mut perc, us(0), u64::MAX), Some([1.0, 0.0, 0.0, 25.0 * G, 25.0 * G]));
        // First rate at once, 10; demands crossed.
        assert_eq!(comes_back(&mut perc, us(8), 1.0, [10.0, 20.0]).0, 10.0);
        assert_eq!(departs(&mut perc, us(8), u64::MAX), Some([2.0, 0.0, 0.0, 20.0 * G, 10.0 * G]));
        // A higher rate waits for two RTTs; a lower rate does not wait and discards the pending raise.
        assert_eq!(comes_back(&mut perc, us(16), 2.0, [15.0, 20.0]), (10.0, us(32)));
        departs(&mut perc, us(16), u64::MAX);
        assert_eq!(comes_back(&mut perc, us(24), 3.0, [5.0, 20.0]), (5.0, us(48)), "the timer is the packet's");
        departs(&mut perc, us(24), u64::MAX);
        assert_eq!(comes_back(&mut perc, us(32), 4.0, [6.0, 20.0]), (5.0, us(48)));
        departs(&mut perc, us(32), u64::MAX);
        assert_eq!(perc.on_timer(us(48)).rate, Rate::from_gbps(6));
        // A copy of an old packet has no effect.
        assert_eq!(comes_back(&mut perc, us(49), 4.0, [1.0, 1.0]).0, 6.0);
        // Packet 5 left at 32 us and was lost: at 56 us the next leaves, with the shares known.
        assert_eq!(perc.on_timer(us(56)).timer, us(56 + 40), "and is waited for longer, for half of ten base RTTs");
        assert_eq!(departs(&mut perc, us(56), u64::MAX), Some([6.0, 0.0, 0.0, 20.0 * G, 6.0 * G]));
    }

    #[test]
    fn short_flows_demand_what_they_need_in_a_round_trip() {
        // 10,000 bytes are 10,560 on the wire, in 8 us: 10.56 Gb/s.
        let mut perc = perc(ExplicitRateConfig::default(), &flow_25g());
        perc.on_start(us(0));
        assert_eq!(departs(&mut perc, us(0), 10_000), Some([1.0, 0.0, 0.0, 10.56 * G, 10.56 * G]));
        assert_eq!(comes_back(&mut perc, us(8), 1.0, [20.0, 25.0]).0, 10.56, "no faster than it told");
        // 3,000 bytes left: 3.168 Gb/s, in force once the links have the demand.
        assert_eq!(departs(&mut perc, us(8), 3_000), Some([2.0, 0.0, 0.0, 3.168 * G, 3.168 * G]));
        assert_eq!(perc.on_timer(us(9)).rate.as_gbps_f64(), 10.56);
        // Nothing left: exit. If bytes are lost later, the flow has to ask again.
        assert_eq!(departs(&mut perc, us(12), 0).expect("exit")[..2], [3.0, 1.0]);
        assert_eq!(perc.on_timer(us(13)).rate, Rate::ZERO);
        assert_eq!(departs(&mut perc, us(14), 1_000), Some([4.0, 0.0, 0.0, 1.056 * G, 1.056 * G]));

        for (short_flows, demand) in [(ShortFlows::Advertise, 10.56), (ShortFlows::Off, 25.0)] {
            let mut perc = self::perc(ExplicitRateConfig { short_flows, ..ExplicitRateConfig::default() }, &flow_25g());
            perc.on_start(us(0));
            assert_eq!(departs(&mut perc, us(0), 10_000).expect("a request")[3], demand * G);
            assert_eq!(comes_back(&mut perc, us(8), 1.0, [20.0, 25.0]).0, 20.0);
        }
    }

    #[test]
    fn the_application_and_the_options_limit_the_rate() {
        let slow = FlowContext { demand: Rate::from_gbps(3), ..flow_25g() };
        let hasty = ExplicitRateConfig { increase_wait: 0.0, initial_rate: 0.5, ..ExplicitRateConfig::default() };
        let mut limited = perc(hasty.clone(), &slow);
        assert_eq!(limited.on_start(us(0)).rate, Rate::from_gbps(3));
        assert_eq!(departs(&mut limited, us(0), u64::MAX).expect("a request")[3], 3.0 * G);
        assert_eq!(comes_back(&mut limited, us(8), 1.0, [20.0, 25.0]).0, 3.0);
        let mut free = perc(hasty, &flow_25g());
        assert_eq!(free.on_start(us(0)).rate, Rate::from_mbps(12_500));
        departs(&mut free, us(0), u64::MAX);
        assert_eq!(comes_back(&mut free, us(8), 1.0, [2.0, 25.0]).0, 2.0);
        departs(&mut free, us(8), u64::MAX);
        assert_eq!(comes_back(&mut free, us(16), 2.0, [20.0, 25.0]).0, 20.0, "without wait");
        // A first rate that waits.
        let base = ExplicitRateConfig { first_rate_waits: true, ..ExplicitRateConfig::default() };
        let mut late = perc(base, &flow_25g());
        late.on_start(us(0));
        departs(&mut late, us(0), u64::MAX);
        assert_eq!(comes_back(&mut late, us(8), 1.0, [20.0, 25.0]), (0.0, us(24)));
    }

    /// PERC Fig. 7: the rates of A, B, C, D are 35, 25, 5, 5 Gb/s.
    #[test]
    fn the_dependency_chain_of_fig_7_settles() {
        let paths = vec![vec![0], vec![0, 1], vec![1, 2], vec![2]];
        let network = Network { gbps: vec![60, 30, 10], paths, demand_gbps: vec![0; 4] };
        for seed in 0..20 {
            let plan = Plan { seed, loss: 0.0, end: us(200), leave: Time::MAX };
            let rates = settle(&PercConfig::default(), &network, &plan);
            assert!(equal(&rates, &[35.0 * G, 25.0 * G, 5.0 * G, 5.0 * G], 1e-6), "{rates:?}");
        }
    }

    fn shares_of(f: &[f64]) -> (Shares, Shares) {
        let mut two = TwoSmallest::NONE;
        f.iter().zip(0..).for_each(|(&share, link)| two.add(share, f64::from(link)));
        (Shares::PerHop(f.to_vec()), Shares::TwoValue(two))
    }

    fn config(header: PercHeader) -> PercConfig {
        PercConfig { header, ..PercConfig::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        /// Section 5: two values give every link the demand of eq. (1). The test uses few values, so that ties are
        /// frequent.
        #[test]
        fn two_values_carry_every_demand(
            f in prop::collection::vec(prop_oneof![3 => (1_u32..5).prop_map(f64::from), 1 => 0.5_f64..5.0], 1..9),
            limit in prop_oneof![Just(25.0), 0.5_f64..5.0],
        ) {
            let (per_hop, two) = shares_of(&f);
            prop_assert_eq!(per_hop.smallest(), two.smallest());
            let (mut vector, mut words) = (vec![0.0; PER_HOP + f.len()], vec![0.0; TWO_VALUE_WORDS]);
            per_hop.ask(limit, &mut vector);
            two.ask(limit, &mut words);
            for (link, demand) in vector[PER_HOP..].iter().enumerate() {
                let word = if words[BOTTLENECK] == link as f64 { DEMAND_BOTTLENECK } else { DEMAND_OTHERS };
                prop_assert_eq!(*demand, words[word], "link {}", link);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        /// Flows settle at the max-min rates in any order of messages and with any losses, with two values as with a
        /// vector.
        #[test]
        fn rates_settle_at_the_optimum(
            network in strategies::network(), seed in any::<u64>(),
            loss in prop_oneof![3 => Just(0.0), 1 => Just(0.05)],
        ) {
            let plan = Plan { seed, loss, end: Time::from_ms(5), leave: Time::MAX };
            let rates = settle(&config(PercHeader::PerHop), &network, &plan);
            let want = network.optimum();
            prop_assert!(equal(&rates, &want, 1e-6), "{:?} for {:?}", rates, want);
            prop_assert_eq!(&rates, &settle(&config(PercHeader::TwoValue), &network, &plan));
        }

        /// When all others have left, the first flow has its path for itself.
        #[test]
        fn what_leaves_is_given_to_those_that_stay(network in strategies::network(), seed in any::<u64>()) {
            let plan = Plan { seed, loss: 0.0, end: Time::from_ms(3), leave: Time::from_ms(2) };
            let rates = settle(&config(PercHeader::PerHop), &network, &plan);
            let alone = Network { paths: network.paths[..1].to_vec(), ..network };
            prop_assert!(equal(&rates[..1], &alone.optimum(), 1e-6), "{:?}", rates);
        }
    }

    #[test]
    fn a_packet_is_as_large_as_the_paper_says() {
        let needs = PercConfig::default().needs();
        assert_eq!((needs.wire.control, needs.wire.data_overhead), (Some(Bytes::new(40)), Bytes::ZERO));
    }
}
