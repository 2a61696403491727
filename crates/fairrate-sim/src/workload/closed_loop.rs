//! Closed loops: every pair of hosts sends one flow after the other, with pauses between them.

use fairrate_units::{Rate, Time};

use super::{Block, Sampling, SizeDistribution, few_enough, hosts};
use crate::config::{FlowSpec, Trigger};
use crate::ids::{FlowId, NodeId};
use crate::input_error::FieldError;
use crate::rng::{Purpose, Stream};
use crate::topology::Topology;

/// A chain of flows for each pair of hosts: each flow starts once the one before has been acknowledged in full and an
/// exponential pause has passed. A slow network slows its sources down, so it cannot be overloaded for ever.
///
/// This is the traffic of RoCC's public code. There a pause begins when the last packet has left the sender's NIC
/// queue; here there is no such queue, and it begins with the last acknowledgment.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedLoop {
    /// Distribution of flow sizes, linear between its points.
    pub sizes: SizeDistribution,
    /// The way sizes are drawn from it.
    pub sampling: Sampling,
    /// Offered load on the link of each sending host, 0.7 for 70 %, spread evenly over its pairs.
    pub load: f64,
    /// The rule that derives the mean pause from the load.
    pub sleep: Sleep,
    /// The senders; `None`: all hosts.
    pub senders: Option<Vec<NodeId>>,
    /// The receivers; `None`: all hosts. Every sender is paired with each of them but itself.
    pub receivers: Option<Vec<NodeId>>,
    /// Start of the chains: each starts with its own pause.
    pub start: Time,
    /// End of the starts: no flow starts at this time or later.
    pub stop: Time,
}

/// The rules that derive the mean pause from the load. A pair that offers the rate r with flows of mean size s needs a
/// flow every s / r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Pause of s / r, where s is the mean of linear sampling even if sizes are drawn as steps: as the authors of RoCC
    /// compute it.
    WholeGap,
    /// Pause of s / r less the time of a mean flow at line rate, where s is the mean of the sizes drawn: an idle
    /// network then carries the load.
    RestOfGap,
}

impl Sleep {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("whole-gap", Self::WholeGap), ("rest-of-gap", Self::RestOfGap)];
}

impl ClosedLoop {
    /// Returns the flows. A chain has as many as can start before `stop` if each is sent at line rate; the start time
    /// of a flow is its start in that case.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        let (chains, sizes) = self.chains(topology)?;
        few_enough("load", self.number(&chains, &sizes))?;
        let mut block = Block::new(seed, group);
        for chain in &chains {
            self.add_chain(&mut block, chain, &sizes);
        }
        Ok(block.finish())
    }

    /// Returns the approximate number of flows.
    ///
    /// # Errors
    /// As [`ClosedLoop::generate`].
    pub fn expected_flows(&self, topology: &Topology) -> Result<f64, FieldError> {
        let (chains, sizes) = self.chains(topology)?;
        Ok(self.number(&chains, &sizes))
    }

    fn chains(&self, topology: &Topology) -> Result<(Vec<Chain>, SizeDistribution), FieldError> {
        let all = || Ok(topology.hosts().collect());
        let senders = self.senders.as_deref().map_or_else(all, |named| hosts("senders", named, topology))?;
        let receivers = self.receivers.as_deref().map_or_else(all, |named| hosts("receivers", named, topology))?;
        self.check()?;
        let rates = host_rates(topology);
        let sizes = self.sizes.sampled(self.sampling);
        let mut chains = Vec::new();
        for &src in &senders {
            let others = receivers.iter().filter(|&&dst| dst != src);
            let (line_rate, pairs) = (rates[src.index()], others.clone().count());
            if pairs == 0 {
                continue;
            }
            let mean_sleep_ps = self.mean_sleep_ps(&sizes, line_rate, pairs)?;
            chains.extend(others.map(|&dst| Chain { src, dst, line_rate, mean_sleep_ps }));
        }
        if chains.is_empty() {
            let message = "there is no pair of different hosts";
            return Err(FieldError::new("receivers", message).help("name a receiver that is not the only sender"));
        }
        Ok((chains, sizes))
    }

    /// Returns the mean pause of each pair whose sender has `pairs` pairs.
    fn mean_sleep_ps(&self, sizes: &SizeDistribution, line_rate: Rate, pairs: usize) -> Result<f64, FieldError> {
        let line_bps = line_rate.as_bps() as f64;
        let pair_bps = self.load * line_bps / pairs as f64;
        match self.sleep {
            Sleep::WholeGap => Ok(self.sizes.mean() * 8e12 / pair_bps),
            Sleep::RestOfGap if pair_bps < line_bps => Ok(sizes.mean() * 8e12 * (1.0 / pair_bps - 1.0 / line_bps)),
            Sleep::RestOfGap => Err(FieldError::new("load", "a pair would have to send without a pause")
                .help("lower the load, or let pauses last the `whole-gap`")),
        }
    }

    /// Adds the flows of one pair.
    fn add_chain(&self, block: &mut Block, chain: &Chain, sizes: &SizeDistribution) {
        let &Chain { src, dst, line_rate, mean_sleep_ps } = chain;
        let mut sleeps = block.pair_stream(src, dst, Purpose::Arrivals);
        let mut size_draws = block.pair_stream(src, dst, Purpose::Sizes);
        let sleep = |sleeps: &mut Stream| Time::from_ps(sleeps.exponential(mean_sleep_ps) as u64);
        let mut pause = sleep(&mut sleeps);
        let mut earliest = self.start.saturating_add(pause);
        let mut before = None;
        while earliest < self.stop {
            let bytes = sizes.sample(size_draws.uniform());
            let id = FlowId(block.flows.len() as u32);
            block.add(src, dst, bytes, earliest, self.stop);
            if let Some(before) = before {
                block.flows[id.index()].trigger = Trigger::After(before, pause);
            }
            pause = sleep(&mut sleeps);
            earliest = earliest.saturating_add(line_rate.tx_time(bytes)).saturating_add(pause);
            before = Some(id);
        }
    }

    fn check(&self) -> Result<(), FieldError> {
        if !(self.load.is_finite() && 0.0 < self.load) {
            return Err(FieldError::new("load", format!("`load` must be above 0, not {}", self.load))
                .help("write 0.7 for 70 %"));
        }
        if self.stop <= self.start {
            return Err(FieldError::new("stop", "`stop` must be after `start`"));
        }
        if self.stop == Time::MAX {
            return Err(FieldError::new("stop", "the chains never end").help("give `stop`"));
        }
        Ok(())
    }

    /// Returns the approximate number of flows of `chains`.
    fn number(&self, chains: &[Chain], sizes: &SizeDistribution) -> f64 {
        let span_ps = self.stop.saturating_sub(self.start).as_ps() as f64;
        let flows = |chain: &Chain| {
            let sent_ps = sizes.mean().max(1.0) * 8e12 / chain.line_rate.as_bps() as f64;
            span_ps / (chain.mean_sleep_ps + sent_ps)
        };
        chains.iter().map(flows).sum()
    }
}

/// The flows of a pair of hosts.
struct Chain {
    src: NodeId,
    dst: NodeId,
    /// Rate of the sender's link.
    line_rate: Rate,
    mean_sleep_ps: f64,
}

/// Returns the rate of each node's link; meant for hosts, which have one link.
fn host_rates(topology: &Topology) -> Vec<Rate> {
    let mut rates = vec![Rate::ZERO; topology.nodes.len()];
    for (host, link) in topology.host_links() {
        rates[host.index()] = link.rate;
    }
    rates
}

#[cfg(test)]
mod tests {
    use fairrate_units::Bytes;

    use super::*;
    use crate::topology::Star;

    const MS: Time = Time::from_ms(1);

    fn star() -> Topology {
        Star { hosts: 4, rate: Rate::from_gbps(40), delay: Time::from_us(1) }.build()
    }

    /// Returns loops from h0 and h1 to h2 and h3: two pairs a sender.
    fn websearch(load: f64) -> ClosedLoop {
        ClosedLoop {
            sizes: SizeDistribution::by_name("websearch").unwrap(),
            sampling: Sampling::Step,
            load,
            sleep: Sleep::WholeGap,
            senders: Some(vec![NodeId(1), NodeId(0)]),
            receivers: Some(vec![NodeId(2), NodeId(3)]),
            start: MS,
            stop: Time::from_ms(2_001),
        }
    }

    /// Returns the chains: positions of flows, each flow after the one it waits for.
    fn chains(flows: &[FlowSpec]) -> Vec<Vec<usize>> {
        let mut next = vec![None; flows.len()];
        for (i, flow) in flows.iter().enumerate() {
            if let Trigger::After(before, _) = flow.trigger {
                assert_eq!(next[before.index()].replace(i), None, "a flow has one successor");
            }
        }
        let first = (0..flows.len()).filter(|&i| flows[i].trigger == Trigger::Time);
        first.map(|i| std::iter::successors(Some(i), |&i| next[i]).collect()).collect()
    }

    #[test]
    fn pauses_are_those_of_the_rules() {
        // 70 % of 40 Gb/s over 30 pairs are 933.3 Mb/s a pair; 1,711,250 B last 14.668 ms at that rate.
        let loops = websearch(0.7);
        let sizes = loops.sizes.sampled(Sampling::Step);
        let mean = |loops: &ClosedLoop, pairs| loops.mean_sleep_ps(&sizes, Rate::from_gbps(40), pairs).unwrap() / 1e9;
        assert!((mean(&loops, 30) - 1_711_250.0 * 8.0 / 933.333e6 * 1e3).abs() < 1e-4);
        // 2,434,900 B at 933.3 Mb/s last 20.871 ms, at 40 Gb/s 0.487 ms.
        let rest = ClosedLoop { sleep: Sleep::RestOfGap, ..loops };
        assert!((mean(&rest, 30) - (20.8706 - 0.48698)).abs() < 1e-3, "{}", mean(&rest, 30));
        // The value in a comment of the authors' scenario: 38.0278 ms for 36 Gb/s over 100 sources of one pair each.
        let theirs = websearch(0.9 / 100.0);
        assert!((mean(&theirs, 1) - 38.0278).abs() < 1e-3, "{}", mean(&theirs, 1));
    }

    #[test]
    fn every_pair_has_a_chain_and_each_flow_waits_for_the_one_before() {
        let flows = websearch(0.7).generate(&star(), 1, 3).unwrap();
        assert!(flows.is_sorted_by_key(|f| (f.start, f.src)));
        assert!(flows.iter().all(|f| f.group == 3 && f.stop == Time::from_ms(2_001) && f.start < f.stop));
        let chains = chains(&flows);
        assert_eq!(chains.iter().map(Vec::len).sum::<usize>(), flows.len());
        let mut pairs: Vec<_> = chains.iter().map(|c| (flows[c[0]].src.0, flows[c[0]].dst.0)).collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(0, 2), (0, 3), (1, 2), (1, 3)]);
        for chain in &chains {
            for pair in chain.windows(2) {
                let (before, flow) = (&flows[pair[0]], &flows[pair[1]]);
                assert_eq!((flow.src, flow.dst, flow.sport), (before.src, before.dst, before.sport + 1));
                let Trigger::After(_, pause) = flow.trigger else { panic!("a chain") };
                // At 40 Gb/s a byte lasts 200 ps.
                assert_eq!(flow.start, before.start + Time::from_ps(before.bytes.as_u64() * 200) + pause);
            }
        }
        // A mean pause is 0.97786 ms, a mean flow lasts 0.48698 ms: 2 s hold 1365 flows a pair, with a standard
        // deviation of 37 or so.
        assert!(chains.iter().all(|c| c.len().abs_diff(1_365) < 160), "{:?}", chains.iter().map(Vec::len).max());
    }

    #[test]
    fn an_idle_network_carries_the_load_if_pauses_are_the_rest_of_the_gap() {
        // Every flow is alone and at line rate, so that its earliest start is its start.
        for (sampling, load) in [(Sampling::Step, 0.4), (Sampling::Linear, 0.8)] {
            let loops =
                ClosedLoop { sleep: Sleep::RestOfGap, sampling, stop: Time::from_ms(20_001), ..websearch(load) };
            let flows = loops.generate(&star(), 1, 0).unwrap();
            let bytes: f64 = flows.iter().map(|f| f.bytes.as_f64()).sum();
            // Two senders of 40 Gb/s for 20 s: some 33,000 flows or more, the load has a standard error of 1.1 %.
            let offered = bytes * 8.0 / 20.0 / 80e9;
            assert!((offered / load - 1.0).abs() < 0.04, "{offered} of {load}");
        }
    }

    #[test]
    fn a_pair_keeps_its_draws_when_another_joins() {
        let topology = star();
        let one = ClosedLoop { senders: Some(vec![NodeId(0)]), ..websearch(0.4) };
        let two = ClosedLoop { senders: None, ..one.clone() };
        let of_h0 = |flows: Vec<FlowSpec>| -> Vec<_> {
            flows.into_iter().filter(|f| f.src == NodeId(0)).map(|f| (f.start, f.dst, f.bytes, f.sport)).collect()
        };
        let (one, two) = (one.generate(&topology, 1, 0).unwrap(), two.generate(&topology, 1, 0).unwrap());
        assert!(one.len() < two.len());
        assert_eq!(of_h0(one), of_h0(two));
    }

    #[test]
    fn what_cannot_be_generated_is_named() {
        let topology = star();
        let error = |loops: ClosedLoop| {
            let error = loops.generate(&topology, 1, 0).unwrap_err();
            format!("{}: {} ({})", error.field, error.message, error.help.unwrap_or_default())
        };
        let base = websearch(0.7);
        let same = Some(vec![NodeId(1)]);
        assert_eq!(
            error(ClosedLoop { senders: same.clone(), receivers: same, ..base.clone() }),
            "receivers: there is no pair of different hosts (name a receiver that is not the only sender)"
        );
        assert_eq!(
            error(ClosedLoop { senders: Some(vec![NodeId(4)]), ..base.clone() }),
            "senders: `sw0` is a switch, not a host ()"
        );
        assert_eq!(
            error(ClosedLoop { receivers: Some(Vec::new()), ..base.clone() }),
            "receivers: `receivers` is empty (leave it out for all hosts)"
        );
        assert_eq!(error(ClosedLoop { stop: Time::MAX, ..base.clone() }), "stop: the chains never end (give `stop`)");
        assert_eq!(error(ClosedLoop { stop: MS, ..base.clone() }), "stop: `stop` must be after `start` ()");
        assert_eq!(
            error(ClosedLoop { load: 0.0, ..base.clone() }),
            "load: `load` must be above 0, not 0 (write 0.7 for 70 %)"
        );
        let rest = ClosedLoop { sleep: Sleep::RestOfGap, ..base.clone() };
        assert!(error(ClosedLoop { load: 2.0, ..rest }).starts_with("load: a pair would have to send without a pause"));
        let short = ClosedLoop { sizes: SizeDistribution::fixed(Bytes::new(1)), stop: Time::from_ms(100_000), ..base };
        assert!(error(short).starts_with("load: this makes about "));
    }
}
