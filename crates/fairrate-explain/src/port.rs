//! Ports: their speed, what they transmitted while packets of the observed flows waited there, and their pauses.

use std::collections::{HashMap, HashSet};

use fairrate_sim::ideal::tx_time;
use fairrate_sim::{FlowId, HostConfig, NodeId, PortId, SimConfig};
use fairrate_units::{Bytes, Rate, Time};

use crate::faults::outages;

/// The transmission of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    /// Its start.
    pub(crate) at: Time,
    pub(crate) flow: FlowId,
    pub(crate) wire: u16,
    /// The rate of the port.
    pub(crate) rate: Rate,
}

/// The use of a port during a part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It transmitted a packet of a flow, this number of bytes of it.
    By(FlowId, u64),
    /// It was paused and transmitted nothing.
    Paused,
    /// Its link was down.
    Down,
    /// It is the port of a NIC that is slower than its link, and rested after a packet.
    Resting,
    /// It transmitted nothing for another reason.
    Nothing,
}

/// The ports of a run.
pub(crate) struct Ports {
    config: SimConfig,
    /// The place of each node among the configurations of hosts that are not ideal, if there are any.
    hosts: Vec<Option<usize>>,
    /// The last transmission of each port.
    last: Vec<Option<Transmission>>,
    /// The number of packets and senders that wait at each port now.
    watchers: Vec<u32>,
    /// The ports of each ToR that serve its queues together, circuits and uplinks, by port; empty without circuits.
    together: HashMap<PortId, Vec<PortId>>,
    /// The transmissions of ports that somebody waited for, in the order of time.
    logs: HashMap<PortId, Vec<Transmission>>,
    /// The pauses and resumptions of classes of ports.
    pauses: HashMap<(PortId, u8), Vec<(Time, bool)>>,
}

impl Ports {
    /// Returns the ports of a run that has not begun.
    pub(crate) fn new(config: &SimConfig) -> Self {
        let n = config.topology.n_ports();
        let config = config.clone();
        let mut hosts = Vec::new();
        if !config.hosts.is_empty() {
            hosts = vec![None; config.topology.nodes.len()];
            for (at, host) in config.hosts.iter().enumerate() {
                for node in &host.hosts {
                    hosts[node.index()] = Some(at);
                }
            }
        }
        let together = ports_of_circuits(&config);
        let (last, watchers) = (vec![None; n], vec![0; n]);
        Self { config, hosts, last, watchers, together, logs: HashMap::new(), pauses: HashMap::new() }
    }

    /// Calls `act` for each port by which a packet may leave that waits at `port`.
    fn of_each_server(&mut self, port: PortId, act: impl Fn(&mut Self, PortId)) {
        match self.together.get(&port).cloned() {
            None => act(self, port),
            Some(all) => all.into_iter().for_each(|server| act(self, server)),
        }
    }

    pub(crate) fn config(&self) -> &SimConfig {
        &self.config
    }

    /// Returns the configuration of a host that is not ideal.
    fn host(&self, node: NodeId) -> Option<&HostConfig> {
        self.config.hosts.get((*self.hosts.get(node.index())?)?)
    }

    /// Returns `true` if a host may act on packets later than they arrive by `port`, which leads to it.
    pub(crate) fn leads_to_delay(&self, port: PortId) -> bool {
        self.host(self.config.topology.to(port)).is_some_and(HostConfig::delays)
    }

    /// Returns the time for which `port` is busy with a packet of `wire` bytes that it transmits at `rate`: longer than
    /// for the transmission if it is the port of a slow NIC.
    fn busy_time(&self, port: PortId, rate: Rate, wire: u16) -> Time {
        let tx = self.tx_time(rate, wire);
        let nic_rate = self.host(self.config.topology.from(port)).and_then(|host| host.nic_rate);
        let Some(nic_rate) = nic_rate.filter(|&nic_rate| nic_rate < rate) else { return tx };
        let ps = u128::from(tx.as_ps()) * u128::from(rate.as_bps());
        Time::from_ps(ps.div_ceil(u128::from(nic_rate.as_bps())) as u64)
    }

    /// Returns the time that a packet of `wire` bytes takes at a port of `rate`.
    pub(crate) fn tx_time(&self, rate: Rate, wire: u16) -> Time {
        let fabric = &self.config.fabric;
        tx_time(fabric.clock, rate, Bytes::new(u64::from(wire)) + fabric.frame_overhead)
    }

    /// Records that `port` starts to transmit a packet.
    pub(crate) fn sent(&mut self, port: PortId, transmission: Transmission) {
        self.last[port.index()] = Some(transmission);
        if 0 < self.watchers[port.index()] {
            self.logs.entry(port).or_default().push(transmission);
        }
    }

    /// Records that somebody begins to wait at `port`.
    pub(crate) fn watch(&mut self, port: PortId) {
        self.of_each_server(port, Self::watch_one);
    }

    fn watch_one(&mut self, port: PortId) {
        let watchers = &mut self.watchers[port.index()];
        *watchers += 1;
        if *watchers == 1
            && let Some(last) = self.last[port.index()]
        {
            let log = self.logs.entry(port).or_default();
            if log.last() != Some(&last) {
                log.push(last);
            }
        }
    }

    /// Records that somebody waits at `port` no more.
    pub(crate) fn unwatch(&mut self, port: PortId) {
        self.of_each_server(port, |ports, server| {
            let watchers = &mut ports.watchers[server.index()];
            *watchers = watchers.saturating_sub(1);
        });
    }

    /// Records the pause or resumption of a class of `port`.
    pub(crate) fn paused(&mut self, port: PortId, class: u8, t: Time, pause: bool) {
        self.pauses.entry((port, class)).or_default().push((t, pause));
    }

    /// Returns the uses of `port` from `from` to `to`, in which a packet of `class` waited there, as ends and uses in
    /// the order of time.
    pub(crate) fn uses(&self, port: PortId, class: u8, from: Time, to: Time) -> Vec<(Time, Use)> {
        let mut uses = Vec::new();
        let log = self.logs.get(&port).map_or(&[][..], Vec::as_slice);
        let first = log.partition_point(|t| t.at <= from).saturating_sub(1);
        let mut at = from;
        for (i, tx) in log.iter().enumerate().skip(first).take_while(|(_, tx)| tx.at < to) {
            let next = log.get(i + 1).map_or(Time::MAX, |next| next.at);
            let whole = self.tx_time(tx.rate, tx.wire);
            let end = (tx.at + whole).min(next).min(to);
            if at < end {
                self.idle(port, class, at, tx.at.max(at), &mut uses);
                let begin = tx.at.max(at);
                let bytes = u128::from(tx.wire) * u128::from((end - begin).as_ps()) / u128::from(whole.as_ps().max(1));
                uses.push((end, Use::By(tx.flow, bytes as u64)));
                at = end;
            }
            let free = (tx.at + self.busy_time(port, tx.rate, tx.wire)).min(next).min(to);
            if at < free {
                uses.push((free, Use::Resting));
                at = free;
            }
        }
        self.idle(port, class, at, to, &mut uses);
        uses
    }

    /// Adds the uses from `from` to `to`, in which `port` transmitted nothing.
    fn idle(&self, port: PortId, class: u8, from: Time, to: Time, uses: &mut Vec<(Time, Use)>) {
        let changes = self.pauses.get(&(port, class)).map_or(&[][..], Vec::as_slice);
        let first = changes.partition_point(|&(t, _)| t <= from);
        let mut is_paused = first.checked_sub(1).is_some_and(|before| changes[before].1);
        let mut at = from;
        let inside = changes[first..].iter().copied().take_while(|&(t, _)| t < to);
        for (t, pause) in inside.chain([(to, false)]) {
            if at < t {
                self.idle_or_down(port, at, t, if is_paused { Use::Paused } else { Use::Nothing }, uses);
            }
            (at, is_paused) = (at.max(t), pause);
        }
    }

    /// Adds `used` from `from` to `to`, but for the times for which the link of `port` was down: its pauses end there.
    fn idle_or_down(&self, port: PortId, from: Time, to: Time, used: Use, uses: &mut Vec<(Time, Use)>) {
        let mut at = from;
        for (down, up) in outages(&self.config, port, from, to) {
            if at < down {
                uses.push((down, used));
            }
            at = up.min(to);
            uses.push((at, Use::Down));
        }
        if at < to {
            uses.push((to, used));
        }
    }
}

/// Returns the ports of each ToR that lead to other switches, by each of them, in a network with circuits: its circuits
/// and its uplink serve the same queues.
fn ports_of_circuits(config: &SimConfig) -> HashMap<PortId, Vec<PortId>> {
    let topology = &config.topology;
    if topology.circuits.is_none() {
        return HashMap::new();
    }
    let hosts: HashSet<NodeId> = topology.hosts().collect();
    let mut of_node: HashMap<NodeId, Vec<PortId>> = HashMap::new();
    for port in (0..topology.n_ports() as u32).map(PortId) {
        if !hosts.contains(&topology.from(port)) && !hosts.contains(&topology.to(port)) {
            of_node.entry(topology.from(port)).or_default().push(port);
        }
    }
    of_node.into_values().flat_map(|all| all.clone().into_iter().map(move |port| (port, all.clone()))).collect()
}
