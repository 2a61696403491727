//! Links that lose, corrupt, duplicate, delay and reorder packets, and links that go down.
//!
//! Every faulty direction of a link decides about each packet as it is put onto the wire, with a separate random stream
//! for each fault that applies to it, so that a further fault does not change the draws of others. Frames between the
//! two ends of a link (PFC, pauses of single flows) are exempt: real frames are repeated for as long as they are to
//! last, so that the loss of one has no lasting effect. They are lost with a link that goes down.

use std::collections::BTreeSet;

use crate::config::{FaultConfig, FaultPackets, Flap};
use crate::ids::{FlowId, PacketIdx, PortId, PortIdx};
use crate::packet::PacketKind;
use crate::rng::{Purpose, Stream};
use crate::table::Table;

/// The faults of all links.
pub struct Faults {
    /// Faulty links, by port.
    links: Table<PortIdx, Option<Box<FaultyLink>>>,
    flaps: Vec<FlapState>,
    /// For each fault that changes rates during the run, the ports that are here, and the times of the changes in
    /// picoseconds.
    slow: Vec<(Vec<PortIdx>, [u64; 2])>,
}

/// One direction of a link that has faults.
#[derive(Default)]
pub struct FaultyLink {
    rules: Vec<Rule>,
    /// Packets that later ones may overtake: arrival, number, packet.
    late: BTreeSet<(u64, u64, PacketIdx)>,
    n_late: u64,
    /// Arrival of the last packet on the wire, in picoseconds: packets that keep their order arrive no earlier.
    last_arrival_ps: u64,
    /// Number of flaps that hold the link down at the moment.
    downs: u32,
    /// Flows that the other end should pause, according to the frames that were sent.
    pub held_flows: BTreeSet<FlowId>,
    /// Flows that the other end has paused, according to the frames that have arrived.
    pub told_flows: BTreeSet<FlowId>,
}

/// One fault of one link.
struct Rule {
    packets: FaultPackets,
    start_ps: u64,
    stop_ps: u64,
    loss: f64,
    burst: Option<Burst>,
    corrupt: f64,
    duplicate: f64,
    reorder: f64,
    reorder_ps: u64,
    jitter_ps: u64,
    stream: Stream,
}

/// Losses that come in bursts: E. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39, 1960,
/// and E. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", 42, 1963.
struct Burst {
    /// Probability that a packet in the good state is followed by the bad state.
    to_bad: f64,
    /// Probability that a packet in the bad state is followed by the good state.
    to_good: f64,
    /// Loss in the bad state.
    loss: f64,
    is_bad: bool,
}

/// The effect of a faulty link on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The packet does not reach the other end.
    pub lost: bool,
    /// The host that receives the packet discards it.
    pub corrupt: bool,
    /// Number of further copies that arrive with the packet.
    pub copies: u32,
    /// Further delay in picoseconds that keeps the order of packets.
    pub jitter_ps: u64,
    /// Further delay in picoseconds during which other packets may overtake; 0: the packet keeps its place.
    pub late_ps: u64,
}

/// A set of directions of links that go down and come up together.
struct FlapState {
    ports: Vec<PortIdx>,
    times: FlapTimes,
}

/// The times at which links go down and come up.
#[derive(Clone, Copy)]
pub struct FlapTimes {
    /// Time from which the links do not go down any more, in picoseconds.
    stop_ps: u64,
    down_ps: u64,
    up_ps: u64,
    /// Zero: the links go down once.
    period_ps: u64,
    is_down: bool,
}

impl Faults {
    /// Creates the state of `configs` at `n_ports` ports, where `place_of` returns a port's index among these ports, or
    /// `None` for other ports; returns `None` if there are no faults.
    pub fn new(
        configs: &[FaultConfig],
        seed: u64,
        n_ports: usize,
        place_of: impl Fn(PortId) -> Option<PortIdx>,
    ) -> Option<Box<Self>> {
        if configs.is_empty() {
            return None;
        }
        let links = (0..n_ports).map(|_| None).collect();
        let mut faults = Self { links, flaps: Vec::new(), slow: Vec::new() };
        for (index, config) in (0u64..).zip(configs) {
            let here = |port: &PortId| place_of(*port).map(|place| (*port, place));
            for (port, place) in config.ports.iter().filter_map(here) {
                let link = faults.links[place].get_or_insert_with(Box::default);
                // Ports are far fewer than 2^32.
                link.rules.push(Rule::new(config, Stream::new(seed, index << 32 | u64::from(port.0), Purpose::Fault)));
            }
            if config.changes_rate() {
                let ports = config.ports.iter().filter_map(|&port| place_of(port)).collect();
                faults.slow.push((ports, [config.start.as_ps(), config.stop.as_ps()]));
            }
            if let Some(flap) = &config.flap {
                let ports = config.ports.iter().filter_map(|&port| place_of(port)).collect();
                faults.flaps.push(FlapState { ports, times: FlapTimes::new(config, flap) });
            }
        }
        Some(Box::new(faults))
    }

    /// Returns the faults of a port's wire.
    #[inline]
    pub fn link(&mut self, port: PortIdx) -> Option<&mut FaultyLink> {
        self.links[port].as_deref_mut()
    }

    /// Returns the number and the time of the first failure, in picoseconds, of each flap that affects any of the
    /// ports.
    pub fn first_flaps(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let here = (0..).zip(&self.flaps).filter(|(_, flap)| !flap.ports.is_empty());
        here.map(|(index, flap)| (index, flap.times.down_ps))
    }

    /// Returns the number and time of each change of rates, in picoseconds, that affects any of the ports.
    pub fn changes_of_rates(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let here = (0..).zip(&self.slow).filter(|(_, (ports, _))| !ports.is_empty());
        let changes = here.flat_map(|(index, (_, times))| times.map(|at| (index, at)));
        changes.filter(|&(_, at)| 0 < at && at < u64::MAX)
    }

    /// Returns the ports of a change of rates.
    pub fn slow_ports(&self, index: u32) -> Vec<PortIdx> {
        self.slow[index as usize].0.clone()
    }

    /// Returns the number of flaps.
    pub fn n_flaps(&self) -> u32 {
        self.flaps.len() as u32
    }

    /// Returns the ports of flap number `index`.
    pub fn ports_of(&self, index: u32) -> Vec<PortIdx> {
        self.flaps[index as usize].ports.clone()
    }

    /// Applies flap number `index`; returns its ports, `true` if they go down, and the time of its next change.
    pub fn flap(&mut self, index: u32) -> (Vec<PortIdx>, bool, Option<u64>) {
        let flap = &mut self.flaps[index as usize];
        let next = flap.times.toggle();
        (flap.ports.clone(), flap.times.is_down, next)
    }

    /// Returns the packets that are held up.
    pub fn late_packets(&self) -> impl Iterator<Item = PacketIdx> + '_ {
        self.links.iter().flatten().flat_map(|link| link.late.iter().map(|&(_, _, packet)| packet))
    }
}

impl FlapTimes {
    /// Returns the times of `flap`, a part of `config`, before the first failure.
    pub fn new(config: &FaultConfig, flap: &Flap) -> Self {
        let (down_ps, up_ps) = (flap.down_at.as_ps(), flap.up_at.as_ps());
        let period_ps = flap.period.map_or(0, fairrate_units::Time::as_ps);
        Self { stop_ps: config.stop.as_ps(), down_ps, up_ps, period_ps, is_down: false }
    }

    /// Returns the time of the first failure in picoseconds.
    pub fn first_ps(&self) -> u64 {
        self.down_ps
    }

    /// Returns `true` if the links are down at the moment.
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Switches between down and up; returns the time of the next change.
    pub fn toggle(&mut self) -> Option<u64> {
        self.is_down = !self.is_down;
        if self.is_down {
            return (self.up_ps < u64::MAX).then_some(self.up_ps);
        }
        (self.down_ps, self.up_ps) = (self.down_ps + self.period_ps, self.up_ps + self.period_ps);
        (0 < self.period_ps && self.down_ps < self.stop_ps).then_some(self.down_ps)
    }
}

impl FaultyLink {
    /// Decides about a packet that is put onto the wire now.
    pub fn judge(&mut self, kind: PacketKind, now_ps: u64) -> Verdict {
        let mut verdict = Verdict::default();
        for rule in self.rules.iter_mut().filter(|rule| rule.applies(kind, now_ps)) {
            rule.judge(&mut verdict);
        }
        verdict
    }

    /// Returns the arrival time of a packet that would arrive at `arrival_ps` but must not overtake the one before.
    pub fn in_order(&mut self, arrival_ps: u64) -> u64 {
        self.last_arrival_ps = self.last_arrival_ps.max(arrival_ps);
        self.last_arrival_ps
    }

    /// Delays a packet until `arrival_ps`.
    pub fn hold(&mut self, packet: PacketIdx, arrival_ps: u64) {
        self.late.insert((arrival_ps, self.n_late, packet));
        self.n_late += 1;
    }

    /// Takes the packet that was delayed until now, if it is still there.
    pub fn release(&mut self, now_ps: u64) -> Option<PacketIdx> {
        let due = self.late.first().is_some_and(|&(arrival_ps, ..)| arrival_ps == now_ps);
        due.then(|| self.late.pop_first()).flatten().map(|(.., packet)| packet)
    }

    /// Takes the link down; if it was up, returns the delayed packets, which are lost.
    pub fn go_down(&mut self) -> Option<Vec<PacketIdx>> {
        self.downs += 1;
        (self.downs == 1).then(|| std::mem::take(&mut self.late).into_iter().map(|(.., packet)| packet).collect())
    }

    /// Ends a flap; returns `true` if no other flap holds the link down.
    pub fn come_up(&mut self) -> bool {
        self.downs -= 1;
        if self.downs == 0 {
            self.last_arrival_ps = 0;
        }
        self.downs == 0
    }
}

impl Rule {
    fn new(config: &FaultConfig, stream: Stream) -> Self {
        let burst = config.burst.map(|b| Burst {
            to_bad: 1.0 / b.good_packets,
            to_good: 1.0 / b.bad_packets,
            loss: b.loss,
            is_bad: false,
        });
        Self {
            packets: config.packets,
            start_ps: config.start.as_ps(),
            stop_ps: config.stop.as_ps(),
            loss: config.loss,
            burst,
            corrupt: config.corrupt,
            duplicate: config.duplicate,
            reorder: config.reorder,
            reorder_ps: config.reorder_delay.as_ps(),
            jitter_ps: config.jitter.as_ps(),
            stream,
        }
    }

    fn applies(&self, kind: PacketKind, now_ps: u64) -> bool {
        let picked = match kind {
            PacketKind::Data | PacketKind::Trimmed => matches!(self.packets, FaultPackets::All | FaultPackets::Data),
            PacketKind::Ack | PacketKind::Nack | PacketKind::Credit | PacketKind::Returned => {
                matches!(self.packets, FaultPackets::All | FaultPackets::Acks)
            }
            PacketKind::Cnp | PacketKind::Busy | PacketKind::Notice | PacketKind::Control | PacketKind::ControlBack => {
                matches!(self.packets, FaultPackets::All | FaultPackets::Control)
            }
            PacketKind::Pause | PacketKind::Resume | PacketKind::FlowPause | PacketKind::FlowResume => false,
        };
        picked && self.start_ps <= now_ps && now_ps < self.stop_ps
    }

    fn judge(&mut self, verdict: &mut Verdict) {
        let stream = &mut self.stream;
        let mut happens = |p: f64| 0.0 < p && stream.uniform() < p;
        let lost_in_burst = self.burst.as_mut().is_some_and(|burst| burst.pass(&mut happens));
        verdict.lost |= lost_in_burst | happens(self.loss);
        verdict.corrupt |= happens(self.corrupt);
        verdict.copies += u32::from(happens(self.duplicate));
        if happens(self.reorder) {
            verdict.late_ps += self.reorder_ps;
        }
        if 0 < self.jitter_ps {
            verdict.jitter_ps += self.stream.below(self.jitter_ps);
        }
    }
}

impl Burst {
    /// Lets a packet pass in the present state and updates the state; returns `true` if the packet is lost.
    fn pass(&mut self, happens: &mut impl FnMut(f64) -> bool) -> bool {
        let lost = self.is_bad && happens(self.loss);
        let leaves = happens(if self.is_bad { self.to_good } else { self.to_bad });
        self.is_bad ^= leaves;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BurstLoss;
    use fairrate_units::Time;

    const N: u32 = 200_000;

    fn all(configs: &[FaultConfig], seed: u64, n_ports: usize) -> Option<Box<Faults>> {
        Faults::new(configs, seed, n_ports, |port| Some(PortIdx(port.0)))
    }

    fn verdicts(mut config: FaultConfig, seed: u64) -> Vec<Verdict> {
        config.ports = vec![PortId(3)];
        let mut faults = all(&[config], seed, 4).expect("a fault");
        let link = faults.link(PortIdx(3)).expect("it is there");
        (0..N).map(|i| link.judge(PacketKind::Data, u64::from(i))).collect()
    }

    /// Returns `true` if `count` of `n` is within four standard errors of probability `p`.
    fn fits(count: usize, n: usize, p: f64) -> bool {
        let (n, count) = (n as f64, count as f64);
        (count - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt()
    }

    fn count(verdicts: &[Verdict], what: impl Fn(&Verdict) -> bool) -> usize {
        verdicts.iter().filter(|v| what(v)).count()
    }

    #[test]
    fn each_fault_comes_as_often_as_it_should() {
        for seed in [1, 2, 3] {
            let all = verdicts(
                FaultConfig {
                    loss: 0.01,
                    corrupt: 0.002,
                    duplicate: 0.03,
                    reorder: 0.1,
                    reorder_delay: Time::from_us(5),
                    jitter: Time::from_ns(1),
                    ..FaultConfig::NONE
                },
                seed,
            );
            let n = N as usize;
            assert!(fits(count(&all, |v| v.lost), n, 0.01));
            assert!(fits(count(&all, |v| v.corrupt), n, 0.002));
            assert!(fits(count(&all, |v| v.copies == 1), n, 0.03));
            assert!(fits(count(&all, |v| v.late_ps == 5_000_000), n, 0.1));
            // Uniform below 1,000 ps: mean 499.5, standard deviation 288.7.
            let mean = all.iter().map(|v| v.jitter_ps as f64).sum::<f64>() / f64::from(N);
            assert!((mean - 499.5).abs() < 4.0 * 288.7 / f64::from(N).sqrt(), "{mean}");
            assert!(all.iter().all(|v| v.jitter_ps < 1_000));
            // Independent of each other.
            assert!(fits(count(&all, |v| v.copies == 1 && v.late_ps > 0), n, 0.003));
        }
    }

    /// With mean lengths 400 and 8 the bad state has 8 of 408 packets, a burst of 8 packets is geometric with standard
    /// deviation sqrt(1 - 1/8) * 8 = 7.48, and a good stretch likewise.
    #[test]
    fn bursts_are_as_long_and_as_far_apart_as_they_should() {
        let burst = BurstLoss { good_packets: 400.0, bad_packets: 8.0, loss: 1.0 };
        for seed in [1, 2, 3] {
            let all = verdicts(FaultConfig { burst: Some(burst), ..FaultConfig::NONE }, seed);
            let mut lengths = [Vec::new(), Vec::new()];
            let mut run = (all[0].lost, 0);
            for verdict in &all {
                if verdict.lost != run.0 {
                    lengths[usize::from(run.0)].push(f64::from(run.1));
                    run = (verdict.lost, 0);
                }
                run.1 += 1;
            }
            for (lengths, mean) in lengths.iter().zip([400.0_f64, 8.0]) {
                let n = lengths.len() as f64;
                let deviation = (1.0 - 1.0 / mean).sqrt() * mean;
                let got = lengths.iter().sum::<f64>() / n;
                assert!((got - mean).abs() < 4.0 * deviation / n.sqrt(), "{got} for {mean}");
            }
        }
    }

    #[test]
    fn streams_and_kinds_and_times_are_kept_apart() {
        let config = |stop| FaultConfig { loss: 0.5, stop, packets: FaultPackets::Data, ..FaultConfig::NONE };
        let both = [
            FaultConfig { ports: vec![PortId(0), PortId(1)], ..config(Time::MAX) },
            FaultConfig { ports: vec![PortId(1)], start: Time::from_ns(10), ..config(Time::from_ns(20)) },
        ];
        let lost = |configs: &[FaultConfig], port| {
            let mut faults = all(configs, 7, 2).expect("faults");
            let link = faults.link(PortIdx(port)).expect("it is there");
            (0..40u64).map(|ns| link.judge(PacketKind::Data, ns * 1_000).lost).collect::<Vec<_>>()
        };
        assert_eq!(lost(&both, 0), lost(&both[..1], 0), "a further fault moves nobody's draws");
        assert_ne!(lost(&both, 0), lost(&both[..1], 1), "each link has its own");
        let (with, without) = (lost(&both, 1), lost(&both[..1], 1));
        assert_eq!((&with[..10], &with[20..]), (&without[..10], &without[20..]));
        assert_ne!(with, without);
        let mut faults = all(&both, 7, 2).expect("faults");
        let link = faults.link(PortIdx(0)).expect("it is there");
        for kind in [PacketKind::Ack, PacketKind::Notice, PacketKind::Pause, PacketKind::FlowResume] {
            assert!((0..100).all(|_| link.judge(kind, 0) == Verdict::default()));
        }
    }

    #[test]
    fn flaps_repeat_until_they_stop() {
        let us = Time::from_us;
        let flap = Some(Flap { down_at: us(10), up_at: us(12), period: Some(us(5)) });
        let config = FaultConfig { ports: vec![PortId(1)], stop: us(20), flap, ..FaultConfig::NONE };
        let mut faults = all(&[config], 1, 2).expect("a fault");
        let mut at = faults.first_flaps().next().map(|first| first.1);
        let mut seen = Vec::new();
        while let Some(ps) = at {
            let (ports, down, next) = faults.flap(0);
            assert_eq!(ports, [PortIdx(1)]);
            seen.push((ps / 1_000_000, down));
            at = next;
        }
        assert_eq!(seen, [(10, true), (12, false), (15, true), (17, false)]);
    }
}
