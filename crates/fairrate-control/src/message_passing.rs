//! Flows and links that exchange control packets without a network: every hop of every packet takes a random time, so
//! flows ask links in every order. Tests compare the rates at which algorithms with control packets settle with the
//! exact optimum.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairrate_allocate::{Flow, Link, LinkId, max_min};
use fairrate_units::{Rate, Time};

use crate::controller::{AlgorithmSpec, Allowance, Controller, FlowContext};
use crate::draws::Draws;
use crate::port::{Actions, PortAgent, PortContext, PortPacket, PortPacketKind, PortView};
use crate::test_flow::port_40g;

/// Mean time of a hop.
const HOP: Time = Time::from_us(1);
const BASE_RTT: Time = Time::from_us(12);

/// Links and the flows that use them.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) gbps: Vec<u64>,
    /// The links of every flow, in order.
    pub(crate) paths: Vec<Vec<usize>>,
    /// Highest rate that each flow's application offers, in Gb/s; 0 for no limit.
    pub(crate) demand_gbps: Vec<u64>,
}

impl Network {
    /// Returns the exact max-min rates in bit/s. A flow with limited demand gets a link of its own.
    pub(crate) fn optimum(&self) -> Vec<f64> {
        let mut links: Vec<Link> = self.gbps.iter().map(|&g| Link::new("", Rate::from_gbps(g))).collect();
        let mut flows = Vec::new();
        for (path, &demand) in self.paths.iter().zip(&self.demand_gbps) {
            let mut ids: Vec<LinkId> = path.iter().map(|&link| LinkId(link as u32)).collect();
            if 0 < demand {
                ids.push(LinkId(links.len() as u32));
                links.push(Link::new("", Rate::from_gbps(demand)));
            }
            flows.push(Flow::new("", ids));
        }
        max_min(&fairrate_allocate::Network { links, flows }).expect("the network is sound").rates_bps
    }

    fn context(&self, flow: usize) -> FlowContext {
        let n_hops = self.paths[flow].len() as u32;
        FlowContext {
            path_base_rtt: HOP * (2 * u64::from(n_hops)),
            n_hops,
            demand: if self.demand_gbps[flow] == 0 { Rate::MAX } else { Rate::from_gbps(self.demand_gbps[flow]) },
            ..FlowContext::on(Rate::from_gbps(1_000), BASE_RTT)
        }
    }
}

/// A pending event of a flow. Events are ordered by time, and then by the order in which they were scheduled.
#[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord)]
enum Event {
    /// The packet in this slot reaches the link at this position of its path, or its receiver.
    Hop(usize, usize),
    /// The packet in this slot has returned to its sender.
    Back(usize),
    /// A controller's timer.
    Timer,
}

struct Run<'a, S: AlgorithmSpec> {
    network: &'a Network,
    controllers: Vec<S::Controller>,
    ports: Vec<S::Port>,
    n_words: usize,
    allowances: Vec<Allowance>,
    unsent: Vec<u64>,
    packets: Vec<Vec<f64>>,
    events: BinaryHeap<Reverse<(Time, u64, usize, Event)>>,
    n_events: u64,
    draws: Draws,
    /// Fraction of packets lost at a hop before `lossless_from`.
    loss: f64,
    lossless_from: Time,
}

impl<S: AlgorithmSpec> Run<'_, S> {
    fn plan(&mut self, at: Time, flow: usize, event: Event) {
        self.n_events += 1;
        self.events.push(Reverse((at, self.n_events, flow, event)));
    }

    fn delay(&mut self, n_hops: usize) -> Time {
        Time::from_ps((HOP.as_ps() as f64 * 2.0 * self.draws.uniform() * n_hops as f64) as u64)
    }

    fn decide(&mut self, now: Time, flow: usize, allowance: Option<Allowance>) {
        if let Some(a) = allowance {
            self.allowances[flow] = a;
            if a.timer < Time::MAX {
                self.plan(a.timer, flow, Event::Timer);
            }
        }
        let mut header = vec![0.0; self.n_words];
        if self.controllers[flow].control_packet(now, self.unsent[flow], &mut header) {
            self.packets.push(header);
            let at = now + self.delay(1);
            self.plan(at, flow, Event::Hop(self.packets.len() - 1, 0));
        }
    }

    fn handle(&mut self, now: Time, flow: usize, event: &Event) {
        match *event {
            Event::Timer if self.allowances[flow].timer == now => {
                let a = self.controllers[flow].on_timer(now);
                self.decide(now, flow, Some(a));
            }
            Event::Timer => {}
            Event::Back(packet) => {
                let header = std::mem::take(&mut self.packets[packet]);
                let a = self.controllers[flow].on_control(now, &header);
                self.decide(now, flow, a);
            }
            Event::Hop(packet, at) => {
                if now < self.lossless_from && self.draws.uniform() < self.loss {
                    return;
                }
                let path = &self.network.paths[flow];
                let Some(&link) = path.get(at) else {
                    let back = now + self.delay(path.len());
                    self.plan(back, flow, Event::Back(packet));
                    return;
                };
                let header = &mut self.packets[packet];
                let kind = PortPacketKind::Control;
                let mut seen = PortPacket { flow: flow as u32, class: 3, kind, wire: 40, header, mark: false };
                let view = PortView { now, queue_bytes: 0 };
                self.ports[link].on_enqueue(&view, &mut seen, &mut Actions::default());
                let next = now + self.delay(1);
                self.plan(next, flow, Event::Hop(packet, at + 1));
            }
        }
    }

    fn until(&mut self, end: Time) {
        while let Some(Reverse((now, ..))) = self.events.peek()
            && *now <= end
        {
            let Some(Reverse((now, _, flow, event))) = self.events.pop() else { return };
            self.handle(now, flow, &event);
        }
    }
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Fraction of packets lost at a hop, in the first half.
    pub(crate) loss: f64,
    /// End time of the run.
    pub(crate) end: Time,
    /// Time at which all flows but the first leave.
    pub(crate) leave: Time,
}

/// Runs `plan` on `network` and returns the flows' final rates in bit/s. All flows start at time 0, in a random order.
pub(crate) fn settle<S: AlgorithmSpec>(spec: &S, network: &Network, plan: &Plan) -> Vec<f64> {
    let n = network.paths.len();
    let contexts: Vec<FlowContext> = (0..n).map(|flow| network.context(flow)).collect();
    let port = |(port, &gbps): (u32, &u64)| {
        let context = PortContext { port, rate: Rate::from_gbps(gbps), base_rtt: BASE_RTT, ..port_40g() };
        spec.build_port(&context).expect("links have agents")
    };
    let longest = network.paths.iter().map(Vec::len).max().unwrap_or(0);
    let words = spec.needs().wire.header;
    let mut run: Run<'_, S> = Run {
        network,
        controllers: contexts.iter().map(|context| spec.build(context)).collect(),
        ports: (0..).zip(&network.gbps).map(port).collect(),
        n_words: usize::from(words.fixed) + usize::from(words.per_hop) * longest,
        allowances: Vec::new(),
        unsent: vec![u64::MAX; n],
        packets: Vec::new(),
        events: BinaryHeap::new(),
        n_events: 0,
        draws: Draws::new(plan.seed, 0),
        loss: plan.loss,
        lossless_from: Time::from_ps(plan.end.as_ps() / 2),
    };
    run.allowances = run.controllers.iter_mut().map(|c| c.on_start(Time::ZERO)).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_cached_key(|_| (run.draws.uniform() * 1e9) as u64);
    for flow in order {
        let a = run.allowances[flow];
        run.decide(Time::ZERO, flow, Some(a));
    }
    if plan.leave < plan.end {
        run.until(plan.leave);
        for flow in 1..n {
            run.unsent[flow] = 0;
            run.decide(plan.leave, flow, None);
        }
    }
    run.until(plan.end);
    run.allowances.iter().map(|a| a.rate.as_bps_f64()).collect()
}

/// Returns `true` if all `rates` equal those in `want`, to within a relative `tolerance`.
pub(crate) fn equal(rates: &[f64], want: &[f64], tolerance: f64) -> bool {
    rates.len() == want.len()
        && rates.iter().zip(want).all(|(rate, want)| (rate - want).abs() <= tolerance * want + 1.0)
}

pub(crate) mod strategies {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::Network;

    /// Returns networks of two to eight links with a few capacities, so that ties are frequent, and 2 to 20 flows over
    /// 1 to 6 of the links.
    pub(crate) fn network() -> impl Strategy<Value = Network> {
        let links = prop::collection::vec(select(vec![10_u64, 20, 25, 40, 60, 100]), 2..=8);
        links.prop_flat_map(|gbps| {
            let all: Vec<usize> = (0..gbps.len()).collect();
            let path = subsequence(all, 1..=gbps.len().min(6)).prop_shuffle();
            let demand = prop_oneof![4 => Just(0), 1 => 1_u64..30];
            prop::collection::vec((path, demand), 2..=20).prop_map(move |flows| Network {
                gbps: gbps.clone(),
                demand_gbps: flows.iter().map(|flow| flow.1).collect(),
                paths: flows.into_iter().map(|flow| flow.0).collect(),
            })
        })
    }
}
