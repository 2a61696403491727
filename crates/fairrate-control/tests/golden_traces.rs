//! Golden traces: window and rate of one flow, and the queue, once per RTT in four scripted scenarios, for every
//! algorithm that decides at the sender alone, in both profiles. A changed trace is a changed algorithm: check it
//! before you accept it with `INSTA_UPDATE=always cargo test -p fairrate-control`.

use std::collections::VecDeque;
use std::fmt::Write as _;

use fairrate_control::{
    ALGORITHMS, Ack, Algorithm, AlgorithmConfig, Allowance, Controller, FlowContext, IntCounter, IntHop, Loss, Needs,
    PortRate, PortScope, Profile, Telemetry,
};
use fairrate_units::{Bytes, Rate, Time};

/// Time of a packet at 25 Gb/s. A base RTT has 25 steps.
const STEP: Time = Time::from_ns(320);
const STEPS_PER_RTT: u64 = 25;
const N_RTTS: u64 = 120;
const PACKET: u64 = 1_000;
const LINE_MBPS: u64 = 25_000;
/// Number of bytes behind a departing packet above which it is marked.
const MARK_AT: u64 = 20_000;

/// The script of the flows and the bottleneck, with times in RTTs.
struct Scenario {
    name: &'static str,
    n_flows: usize,
    capacity_mbps: fn(rtt: u64) -> u64,
    /// A function that returns `true` if flow `i`, which has sent `n_sent` packets, has more to send.
    wants: fn(i: usize, rtt: u64, n_sent: u64) -> bool,
    /// A function that returns flow 0's loss at the start of an RTT.
    loss: fn(rtt: u64) -> Option<Loss>,
}

const SCENARIOS: [Scenario; 4] = [
    // A lone flow; the bottleneck has 10 Gb/s from RTT 30 to 80.
    Scenario {
        name: "step",
        n_flows: 1,
        capacity_mbps: |rtt| if (30..80).contains(&rtt) { 10_000 } else { LINE_MBPS },
        wants: |_, _, _| true,
        loss: |_| None,
    },
    // Seven flows of 50 packets join at RTT 30.
    Scenario {
        name: "incast",
        n_flows: 8,
        capacity_mbps: |_| LINE_MBPS,
        wants: |i, rtt, n_sent| i == 0 || (30 <= rtt && n_sent < 50),
        loss: |_| None,
    },
    // A second flow sends in every other 20 RTTs.
    Scenario {
        name: "on/off",
        n_flows: 2,
        capacity_mbps: |_| LINE_MBPS,
        wants: |i, rtt, _| i == 0 || rtt / 20 % 2 == 1,
        loss: |_| None,
    },
    // The second flow leaves at RTT 20; a gap at RTT 60, a timeout at 90.
    Scenario {
        name: "recovery",
        n_flows: 2,
        capacity_mbps: |_| LINE_MBPS,
        wants: |i, rtt, _| i == 0 || rtt < 20,
        loss: |rtt| match rtt {
            60 => Some(Loss::Gap),
            90 => Some(Loss::Timeout),
            _ => None,
        },
    },
];

#[derive(Clone, Copy)]
struct Packet {
    flow: usize,
    end_seq: u64,
    sent: Time,
    cwnd: u64,
    marked: bool,
    int: IntHop,
    ack_at: Time,
}

struct Flow {
    controller: Algorithm,
    allowance: Allowance,
    /// Number of bytes that the pacing rate allows.
    credit: f64,
    snd_nxt: u64,
    snd_una: u64,
    last_cnp: Option<Time>,
}

impl Flow {
    fn acked(&mut self, now: Time, packet: &Packet, needs: &Needs) {
        let cnp_is_due = |interval| self.last_cnp.is_none_or(|last| interval <= now - last);
        if packet.marked && needs.feedback.cnp_interval.is_some_and(cnp_is_due) {
            self.last_cnp = Some(now);
            self.allowance = self.controller.on_cnp(now);
        }
        let ack = Ack {
            now,
            ack_seq: packet.end_seq,
            snd_nxt: self.snd_nxt,
            newly_acked: PACKET,
            delivered: PACKET,
            lost: 0,
            rtt: now - packet.sent,
            cwnd_at_send: packet.cwnd,
            in_flight: self.snd_nxt - packet.end_seq,
            delivery_rate: Rate::ZERO,
            prior_delivered: None,
            penalty: 0,
            app_limited: false,
            ecn_marked: packet.marked,
            int: if needs.network.telemetry.is_some() { std::slice::from_ref(&packet.int) } else { &[] },
            path: 0,
            header: &[],
        };
        self.snd_una = packet.end_seq;
        self.allowance = self.controller.on_ack(&ack);
    }

    fn packet_to_send(&mut self, index: usize, now: Time, wants: bool) -> Option<Packet> {
        self.credit = (self.credit + self.allowance.rate.as_bytes_per_sec() * STEP.as_secs_f64()).min(PACKET as f64);
        let in_window = self.snd_nxt - self.snd_una < self.allowance.cwnd.as_u64();
        if !wants || !in_window || self.credit < PACKET as f64 - 1e-6 {
            return None;
        }
        self.credit -= PACKET as f64;
        self.snd_nxt += PACKET;
        if let Some(allowance) = self.controller.on_sent(now, Bytes::new(PACKET)) {
            self.allowance = allowance;
        }
        let cwnd = self.allowance.cwnd.as_u64();
        let (int, ack_at) = (IntHop::default(), Time::MAX);
        Some(Packet { flow: index, end_seq: self.snd_nxt, sent: now, cwnd, marked: false, int, ack_at })
    }
}

/// The single queue: packets leave it in order, are marked and stamped, and return as acknowledgments.
struct Bottleneck {
    queue: VecDeque<Packet>,
    credit: f64,
    enqueued: u64,
    transmitted: u64,
}

impl Bottleneck {
    fn push(&mut self, packet: Packet) {
        self.enqueued += PACKET;
        self.queue.push_back(packet);
    }

    fn serve(&mut self, now: Time, capacity_mbps: u64, needs: &Needs) -> Option<Packet> {
        let capacity = Rate::from_mbps(capacity_mbps).as_bytes_per_sec();
        self.credit = (self.credit + capacity * STEP.as_secs_f64()).min(PACKET as f64);
        if self.credit < PACKET as f64 - 1e-6 {
            return None;
        }
        let mut packet = self.queue.pop_front()?;
        self.credit -= PACKET as f64;
        let left = self.queue.len() as u64 * PACKET;
        let telemetry = needs.network.telemetry.unwrap_or(Telemetry::EXACT);
        let tx_bytes = match telemetry.counter {
            IntCounter::Enqueued => self.enqueued,
            IntCounter::Transmitted => self.transmitted,
        };
        self.transmitted += PACKET;
        let hop = IntHop { ts: now, tx_bytes, qlen: left as u32, rate: PortRate::new(Rate::from_mbps(capacity_mbps)) };
        packet.int = hop.encoded(telemetry.format);
        packet.marked = needs.network.ecn && MARK_AT < left;
        packet.ack_at = now + STEP * STEPS_PER_RTT;
        Some(packet)
    }
}

/// Returns one row per RTT: window in KB, rate in Gb/s, queue in KB.
fn trace(config: &AlgorithmConfig, scenario: &Scenario) -> Vec<String> {
    let context = FlowContext {
        mtu: Bytes::new(PACKET),
        wire_mtu: Bytes::new(PACKET),
        ..FlowContext::on(Rate::from_mbps(LINE_MBPS), STEP * STEPS_PER_RTT)
    };
    let needs = config.needs();
    let new_flow = || {
        let mut controller = config.build(&context);
        let allowance = controller.on_start(Time::ZERO);
        Flow { controller, allowance, credit: 0.0, snd_nxt: 0, snd_una: 0, last_cnp: None }
    };
    let mut flows: Vec<Flow> = (0..scenario.n_flows).map(|_| new_flow()).collect();
    let mut bottleneck = Bottleneck { queue: VecDeque::new(), credit: 0.0, enqueued: 0, transmitted: 0 };
    let mut acks: VecDeque<Packet> = VecDeque::new();
    let mut rows = Vec::new();
    for step in 0..N_RTTS * STEPS_PER_RTT {
        let (now, rtt) = (STEP * step, step / STEPS_PER_RTT);
        if step % STEPS_PER_RTT == 0 {
            if let Some(loss) = (scenario.loss)(rtt) {
                flows[0].allowance = flows[0].controller.on_loss(now, loss);
            }
            let cwnd = Some(flows[0].allowance.cwnd).filter(|&cwnd| cwnd < Bytes::MAX);
            let cwnd = cwnd.map_or("-".into(), |cwnd| format!("{:.1}", cwnd.as_f64() / 1e3));
            let rate = flows[0].allowance.rate.as_gbps_f64();
            rows.push(format!("{cwnd:>7} {rate:>6.2} {:>4}", bottleneck.queue.len() as u64 * PACKET / 1_000));
        }
        for flow in &mut flows {
            while flow.allowance.timer <= now {
                flow.allowance = flow.controller.on_timer(flow.allowance.timer);
            }
        }
        while let Some(packet) = acks.pop_front_if(|p| p.ack_at <= now) {
            flows[packet.flow].acked(now, &packet, &needs);
        }
        for turn in 0..flows.len() {
            let index = (turn + step as usize) % flows.len();
            let wants = (scenario.wants)(index, rtt, flows[index].snd_nxt / PACKET);
            if let Some(packet) = flows[index].packet_to_send(index, now, wants) {
                bottleneck.push(packet);
            }
        }
        acks.extend(bottleneck.serve(now, (scenario.capacity_mbps)(rtt), &needs));
    }
    rows
}

/// Returns the traces of an algorithm as a table, a column a scenario.
fn table(config: &AlgorithmConfig) -> String {
    let traces: Vec<Vec<String>> = SCENARIOS.iter().map(|s| trace(config, s)).collect();
    let mut table = String::from("window of flow 0 in KB, rate in Gb/s, queue in KB\nRTT");
    for scenario in &SCENARIOS {
        write!(table, " | {:>19}", scenario.name).expect("strings take text");
    }
    for rtt in 0..N_RTTS as usize {
        write!(table, "\n{rtt:>3}").expect("strings take text");
        for rows in &traces {
            write!(table, " | {}", rows[rtt]).expect("strings take text");
        }
    }
    table
}

/// Traces of the profile `ns3` are stored only where they are not those of the paper's.
#[test]
fn traces_are_as_recorded() {
    for info in ALGORITHMS {
        let config = |profile| AlgorithmConfig::by_name(info.name, profile).expect("listed");
        let [paper, ns3] = [Profile::Paper, Profile::Ns3].map(config);
        if paper.needs().network.ports != PortScope::None || paper.needs().feedback.oracle.is_some() {
            // Half of it is at ports, or in an oracle, which are not here.
            continue;
        }
        let (paper, ns3, name) = (table(&paper), table(&ns3), format!("{}-ns3", info.name));
        if paper == ns3 {
            let stored = format!("{}/tests/snapshots/golden_traces__{name}.snap", env!("CARGO_MANIFEST_DIR"));
            assert!(
                !std::path::Path::new(&stored).exists(),
                "{name} does what the paper's profile does: remove its traces"
            );
        } else {
            insta::assert_snapshot!(name, ns3);
        }
        insta::assert_snapshot!(format!("{}-paper", info.name), paper);
    }
}
