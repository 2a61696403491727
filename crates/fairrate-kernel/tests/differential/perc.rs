//! PERC's two halves: a link's answers, and a flow's control packets and rate.

use fairrate_control::perc::{ExplicitRateConfig, Perc as RustPerc, PercConfig, PercHeader, PercPort, ShortFlows};
use fairrate_control::{
    Actions, AlgorithmSpec, Controller, FlowContext, PortAgent, PortContext, PortPacket, PortPacketKind, PortView,
};
use fairrate_kernel::laws::{PERC_EXIT, PERC_FLOWS, Perc, PercLink, PercRecord, perc_rate, perc_word};
use fairrate_kernel::params::{self, Path};
use fairrate_units::{Rate, Time};

use crate::STEPS;
use crate::stream::Draws;

/// Number of the link under test, and of another one.
const LINK: u32 = 7;
const OTHER: u32 = 9;
const NO_LINK: u32 = 0xffff;
const INFINITE: u32 = u32::MAX;
/// Bits behind the point of a rate.
const PER_BPS: f64 = 65_536.0;

/// Returns the rate of a word in bit/s, as the Rust law has it.
fn bps(word: u32) -> f64 {
    if word == INFINITE { f64::INFINITY } else { perc_rate(word) as f64 / PER_BPS }
}

/// Returns the word of a rate in bit/s.
fn word(bps: f64) -> u32 {
    if bps == f64::INFINITY { INFINITE } else { perc_word((bps * PER_BPS) as u64) }
}

fn link_id(link: u32) -> f64 {
    if link == NO_LINK { -1.0 } else { f64::from(link) }
}

/// Asks the Rust port; returns the header that it leaves: smallest, second, and the link of the smallest.
fn ask_rust(port: &mut PercPort, flow: u32, now: Time, r: &PercRecord) -> (f64, f64, f64) {
    let is_exit = f64::from(r.seq_and_flags & PERC_EXIT);
    let (at, of) = (r.links >> 16, r.links & 0xffff);
    let header = &mut [
        1.0,
        is_exit,
        bps(r.demand_bottleneck),
        bps(r.demand_others),
        link_id(at),
        bps(r.smallest),
        bps(r.second),
        link_id(of),
    ];
    let kind = PortPacketKind::Control;
    let mut packet = PortPacket { flow, class: 0, kind, wire: 40, header, mark: false };
    port.on_enqueue(&PortView { now, queue_bytes: 0 }, &mut packet, &mut Actions::default());
    (header[5], header[6], header[7])
}

/// Returns the link's port in a network whose largest base round-trip time is `tau`.
fn port(rate: Rate, tau: Time) -> PortContext {
    PortContext {
        port: LINK,
        rate,
        nic_rate: Rate::MAX,
        base_rtt: tau,
        wire_mtu: 1_048,
        frame_overhead: 0,
        upstream_delay: Time::from_us(1),
        of_host: false,
        seed: 1,
    }
}

/// Runs both links on random control packets of up to `n_flows` flows.
fn links(rate: Rate, n_flows: u64, seed: u64, steps: u64) {
    let (mut draws, mut now_ns) = (Draws::new(seed), 0);
    let tau = Time::from_ms(100);
    let config = PercConfig { header: PercHeader::TwoValue, ..PercConfig::default() };
    let port = port(rate, tau);
    let mut rust = config.build_port(&port).expect("every port has one");
    let mut c = params::perc_link(&config, rate, tau);
    for step in 0..steps {
        // Mostly dense, now and then with silences after which flows are forgotten: ten RTTs are 1 s.
        now_ns += if draws.once_in(500) { draws.between(1, 1_500_000_000) } else { draws.between(1, 10_000_000) };
        let flow = draws.between(0, n_flows);
        let mut demand = || match draws.between(0, 4) {
            0 => INFINITE,
            1 => perc_word(draws.between(0, 40) * (rate.as_bps() << 16) / 40 / n_flows),
            2 => perc_word(draws.between(0, rate.as_bps() << 17)),
            _ => perc_word(draws.between(0, (rate.as_bps() << 16) / n_flows * 3)),
        };
        let (demand_bottleneck, demand_others, before) = (demand(), demand(), demand());
        let second = before.max(demand());
        let bottleneck = [LINK, OTHER, NO_LINK][draws.between(0, 3) as usize];
        let flags = if draws.once_in(5) { PERC_EXIT } else { 0 };
        let mut record = PercRecord {
            demand_bottleneck,
            demand_others,
            smallest: before,
            second,
            links: bottleneck << 16 | OTHER,
            seq_and_flags: 1 << 8 | flags,
        };
        let (smallest, second, at) = ask_rust(&mut rust, flow as u32, Time::from_ns(now_ns), &record);
        c.on_record(flow, now_ns, LINK, &mut record);
        assert_eq!(
            (record.smallest, record.second, link_id(record.links & 0xffff)),
            (word(smallest), word(second), at),
            "step {step}: flow {flow} of {}",
            c.n
        );
    }
}

#[test]
fn a_link_answers_as_the_rust_port_does() {
    links(Rate::from_gbps(100), 12, 1, STEPS / 4);
    links(Rate::from_mbps(200), 60, 2, STEPS / 4);
    links(Rate::from_mbps(97), PERC_FLOWS as u64, 3, STEPS / 8);
    links(Rate::from_gbps(40), 3, 4, STEPS / 8);
}

/// The answer itself, before it becomes a word, is the Rust port's rounded down to 2^-16 bit/s.
#[test]
fn answers_are_exact_to_a_unit() {
    let (rate, n_flows) = (Rate::from_gbps(25), 40);
    let tau = Time::from_ms(100);
    let config = PercConfig { header: PercHeader::TwoValue, ..PercConfig::default() };
    let port = port(rate, tau);
    let mut rust = config.build_port(&port).expect("every port has one");
    let mut c = params::perc_link(&config, rate, tau);
    let mut draws = Draws::new(5);
    for step in 0..STEPS / 4 {
        let (flow, demand) = (draws.between(0, n_flows), draws.between(0, (rate.as_bps() << 16) / 20));
        let header = &mut [1.0, 0.0, 0.0, demand as f64 / PER_BPS, -1.0, f64::INFINITY, f64::INFINITY, -1.0];
        let kind = PortPacketKind::Control;
        let mut packet = PortPacket { flow: flow as u32, class: 0, kind, wire: 40, header, mark: false };
        let now = Time::from_us(step);
        rust.on_enqueue(&PortView { now, queue_bytes: 0 }, &mut packet, &mut Actions::default());
        assert_eq!(c.answer(flow, now.as_ns(), demand), (header[5] * PER_BPS) as u64, "step {step}");
    }
}

#[test]
fn words_keep_the_order_of_rates_and_26_bits() {
    let mut draws = Draws::new(6);
    let mut last = (0, 0);
    for _ in 0..100_000 {
        let rate = draws.between(0, u64::MAX) >> draws.between(0, 64);
        let word = perc_word(rate);
        let back = perc_rate(word);
        assert!(back <= rate && rate - back <= rate >> 25, "{rate} became {back}");
        assert_eq!(perc_word(back), word);
        assert!((rate < last.0) <= (word <= last.1) && (last.0 < rate) <= (last.1 <= word));
        last = (rate, word);
    }
    // A record may have any word.
    assert_eq!(perc_rate(INFINITE), u64::MAX);
    assert_eq!(perc_rate(39 << 26 | 1), u64::MAX);
}

/// A table that is full answers, and remembers nothing more; a sender with a quarter of it has no more once half is
/// taken.
#[test]
fn a_table_has_an_end_and_no_sender_can_fill_it() {
    let capacity = 1_000_000_u64 << 16;
    let mut full = PercLink::new(capacity, u64::MAX);
    // The lower half of a flow's number is the sender here.
    for flow in 0..1_000 {
        full.answer(flow, 1, u64::MAX);
    }
    assert_eq!(full.n as usize, PERC_FLOWS);
    assert_eq!(full.answer(2_000, 1, u64::MAX), capacity / 1_024);
    assert_eq!(full.answer(100, 1, u64::MAX), capacity / PERC_FLOWS as u64, "who is in the table stays in it");
    let mut greedy = PercLink::new(capacity, u64::MAX);
    for port in 0..1_000 {
        greedy.answer(port << 32 | 5, 1, u64::MAX);
    }
    assert_eq!(greedy.n as usize, PERC_FLOWS / 2 + 1);
    for sender in 0..64 {
        assert!(capacity / 256 <= greedy.answer(6 + sender, 1, u64::MAX), "there is room for others");
    }
}

/// Runs both flows on random replies, losses of control packets, and bytes left to send.
fn flows(config: &PercConfig, line: Rate, rtt_ns: u64, seed: u64, steps: u64) -> f64 {
    let flow = FlowContext::on(line, Time::from_ns(rtt_ns));
    let mut rust: RustPerc = config.build(&flow);
    let p = params::perc(config, &Path { line_rate: line, tau: None }).expect("the kernel has it");
    let mut c = Perc::new(p, 1_000, 1_048, rtt_ns);
    rust.on_start(Time::ZERO);
    let (mut draws, mut now_ns, mut largest) = (Draws::new(seed), 1_000, 0.0_f64);
    let mut on_way: Option<PercRecord> = None;
    for step in 0..steps {
        now_ns += if draws.once_in(30) { rtt_ns * draws.between(1, 9) } else { draws.between(1, rtt_ns) };
        let now = Time::from_ns(now_ns);
        let mut header = [0.0; 8];
        let mut rate = match draws.between(0, 4) {
            0 | 1 => {
                let unsent = [0, 1, 5_000, 100_000, 1 << 30][draws.between(0, 5) as usize];
                let asks = rust.control_packet(now, unsent, &mut header);
                let record = c.ask(now_ns, unsent);
                assert_eq!(record.is_some(), asks, "step {step}");
                if let Some(record) = record {
                    largest = largest.max(compare(step, &record, &header));
                    on_way = Some(record);
                }
                None
            }
            2 if on_way.is_some() => {
                let mut record = on_way.expect("it is there");
                if draws.once_in(2) {
                    on_way = None;
                }
                record.smallest = perc_word(draws.between(0, line.as_bps() << 16) >> draws.between(0, 8));
                record.second = record.smallest.max(perc_word(draws.between(0, line.as_bps() << 17)));
                record.links = record.links & 0xffff_0000 | draws.between(1, 5) as u32;
                let seq = f64::from(record.seq_and_flags >> 8);
                let at = f64::from(record.links & 0xffff);
                let header = [seq, 0.0, 0.0, 0.0, 0.0, bps(record.smallest), bps(record.second), at];
                c.returned(now_ns, &record);
                rust.on_control(now, &header).map(|a| a.rate)
            }
            2 => None,
            _ => {
                c.tick(now_ns);
                Some(rust.on_timer(now).rate)
            }
        };
        if let Some(rate) = rate.take() {
            let (ours, theirs) = (c.rate() as f64 / PER_BPS, rate.as_bps_f64());
            let off = ((ours - theirs).abs() - 1.0).max(0.0) / theirs.max(1.0);
            largest = largest.max(off);
            assert!(off <= 1e-6, "step {step}: {ours} instead of {theirs}");
        }
    }
    largest
}

/// Compares the demands of a control packet with those of the Rust controller; returns the relative error.
fn compare(step: u64, ours: &PercRecord, theirs: &[f64; 8]) -> f64 {
    assert_eq!(f64::from(ours.seq_and_flags >> 8), theirs[0], "step {step}");
    assert_eq!(f64::from(ours.seq_and_flags & PERC_EXIT), theirs[1], "step {step}");
    assert_eq!(link_id(ours.links >> 16), theirs[4], "step {step}");
    let demands = [(ours.demand_bottleneck, theirs[2]), (ours.demand_others, theirs[3])];
    let errors = demands.map(|(ours, theirs)| ((bps(ours) - theirs).abs() - 1.0).max(0.0) / theirs.max(1.0));
    let largest = errors[0].max(errors[1]);
    assert!(largest <= 1e-6, "step {step}: {demands:?}");
    largest
}

#[test]
fn a_flow_is_the_rust_controller() {
    // In the kernel a flow keeps its rate however long no reply comes, as with links that never forget it.
    let base = ExplicitRateConfig { state_timeout: 1e6, ..ExplicitRateConfig::default() };
    let paper = PercConfig { header: PercHeader::TwoValue, base, ..PercConfig::default() };
    let base = ExplicitRateConfig {
        increase_wait: 0.5,
        first_rate_waits: true,
        short_flows: ShortFlows::Advertise,
        initial_rate: 0.25,
        resend: 6.0,
        ..paper.base.clone()
    };
    let other = PercConfig { base, ..paper.clone() };
    let base = ExplicitRateConfig { short_flows: ShortFlows::Off, increase_wait: 0.0, ..paper.base.clone() };
    let plain = PercConfig { base, ..paper.clone() };
    let mut largest = 0.0_f64;
    for (seed, (config, mbps, rtt_ns)) in (1..).zip([
        (&paper, 100_000, 10_000),
        (&paper, 200, 8_000_000),
        (&other, 25_000, 28_000),
        (&plain, 1_000, 500_000),
    ]) {
        largest = largest.max(flows(config, Rate::from_mbps(mbps), rtt_ns, seed, STEPS / 4));
    }
    println!("perc: largest error {largest:e}");
}
