use super::*;
use crate::test_flow::{acked, flow_25g, port_40g};

/// Returns a switch port of 8 Gb/s, a byte each nanosecond, with d = 10 us: 10,000 bytes per round trip.
fn context() -> PortContext {
    PortContext { rate: Rate::from_gbps(8), base_rtt: Time::from_us(10), wire_mtu: 1_000, ..port_40g() }
}

/// Returns the port of `config`, whose first interval begins at time zero.
fn port_of(config: &RcpConfig) -> RcpPort {
    let mut port = config.build_port(&context()).expect("every port has one");
    port.due = port.slot;
    port
}

fn port() -> RcpPort {
    port_of(&RcpConfig::default())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

fn enqueue(port: &mut RcpPort, now: Time, wire: u32, queue_bytes: u64, rtt_s: f64) {
    let mut header = [f64::INFINITY, rtt_s, 0.0];
    let mut packet =
        PortPacket { flow: 0, class: 3, kind: PortPacketKind::Data, wire, header: &mut header, mark: false };
    port.on_enqueue(&PortView { now, queue_bytes }, &mut packet, &mut Actions::default());
}

/// Returns the rate in the header of a packet that leaves after it asked for `asked` bit/s.
fn dequeue(port: &mut RcpPort, now: Time, queue_bytes: u64, asked: f64, behind: f64) -> f64 {
    let mut header = [asked, 0.0, behind];
    let mut packet =
        PortPacket { flow: 0, class: 3, kind: PortPacketKind::Data, wire: 1_000, header: &mut header, mark: false };
    port.on_dequeue(&PortView { now, queue_bytes }, &mut packet, &mut Actions::default());
    header[RATE]
}

#[test]
fn the_rate_follows_spare_capacity_and_queue() {
    let mut port = port();
    // C = 1e9 bytes/s, R = C/2, d = T = 10 us.
    assert!(close(port.rate, 5e8));
    // Idle: 1 + 0.5. Half loaded: 1 + 0.25. Full with a queue of 2,000 bytes: q/d = 2e8, 1 - 0.1.
    assert!(close(port.next_rate(0.0, 0.0), 7.5e8));
    assert!(close(port.next_rate(5e8, 0.0), 6.25e8));
    assert!(close(port.next_rate(1e9, 2_000.0), 4.5e8));
    // Twice the capacity and a queue of a round trip: 1 - 0.5 - 0.5 leaves 0.01 packets of 1,000 bytes in 10 us.
    assert!(close(port.next_rate(2e9, 10_000.0), 1e6));
    // No more than the capacity; R does not change on a full link with an empty queue.
    port.rate = 9e8;
    assert!(close(port.next_rate(0.0, 0.0), 1e9));
    assert!(close(port.next_rate(1e9, 0.0), 9e8));
    // γ = 0.9: 9e8·(1 + 0.5·(9 - 8.1)/9).
    port.config.gamma = 0.9;
    port.rate = 8e8;
    assert!(close(port.next_rate(8.1e8, 0.0), 8.4e8));
    // T = d/2: half the step.
    port.slot = Time::from_us(5);
    assert!(close(port.next_rate(8.1e8, 0.0), 8.2e8));
}

#[test]
fn intervals_count_arrivals_and_see_the_queue_at_their_end() {
    let mut port = port();
    for us in 0..5 {
        enqueue(&mut port, Time::from_us(2 * us), 1_000, 0, 0.0);
        dequeue(&mut port, Time::from_us(2 * us), 0, f64::INFINITY, 0.0);
    }
    // 5,000 bytes in 10 us: 1 + 0.25.
    assert!(close(dequeue(&mut port, Time::from_us(10), 0, f64::INFINITY, 0.0), 8.0 * 6.25e8));
    // The next interval: 1,000 bytes of a packet whose last quarter counts in the interval after, and 3,000 waiting at
    // the end: 6.25e8·(1 + 0.5·(1 - 0.075) - 0.5·0.3) = 8.203125e8.
    enqueue(&mut port, Time::from_ns(19_250), 1_000, 2_000, 0.0);
    port.catch_up(Time::from_us(20));
    assert!(close(port.rate, 8.203_125e8));
    assert!(close(port.input, 250.0) && port.spill == 0.0);
    // A packet that asks for a lower rate, or got one at an earlier port, keeps it.
    assert!(close(dequeue(&mut port, Time::from_us(21), 2_000, 1e9, 0.0), 1e9));
}

#[test]
fn acknowledgments_are_input_without_a_header() {
    let mut port = port();
    let mut packet =
        PortPacket { flow: 0, class: 3, kind: PortPacketKind::Other, wire: 500, header: &mut [], mark: false };
    let view = PortView { now: Time::from_us(1), queue_bytes: 0 };
    port.on_enqueue(&view, &mut packet, &mut Actions::default());
    port.on_dequeue(&view, &mut packet, &mut Actions::default());
    assert!(close(port.input, 500.0));
}

#[test]
fn a_host_counts_what_its_flows_hold_back() {
    let mut port = RcpConfig::default().build_port(&PortContext { of_host: true, ..context() }).expect("has one");
    port.due = port.slot;
    // Two flows at line rate take turns: y = 2C, and after ten packets 9,000 bytes are held back.
    for us in 0..10 {
        let behind = if us == 0 { 0.0 } else { 1_000.0 };
        dequeue(&mut port, Time::from_us(us), 0, f64::INFINITY, behind);
    }
    assert!(close(port.input, 19_000.0));
    port.catch_up(Time::from_us(10));
    // 5e8·(1 + 0.5·(1 - 1.9) - 0.5·0.9) = 0.1 of 5e8.
    assert!(close(port.rate, 5e7));
}

#[test]
fn in_the_form_of_ns2_the_round_trip_is_measured() {
    let config = RcpConfig { form: RcpForm::Ns2, ..RcpConfig::default() };
    let mut port = port_of(&config);
    // Mean (20·3,000 + 40·1,000)/4,000 = 25 us, longer than d = 10 us and T = d: d becomes the mean.
    enqueue(&mut port, Time::ZERO, 3_000, 0, 20e-6);
    enqueue(&mut port, Time::from_us(4), 1_000, 3_000, 40e-6);
    dequeue(&mut port, Time::from_us(5), 0, 0.0, 0.0);
    port.catch_up(Time::from_us(10));
    assert!(close(port.rtt_s * 1e6, 25.0) && port.slot == Time::from_us(25) && port.due == Time::from_us(35));
    // R: T/d = 10/25 with the new d, y = 4e8: 5e8·(1 + 0.4·0.5·0.6).
    assert!(close(port.rate, 5.6e8));
    // A smaller mean of 10 us: gain (25/25)·0.56·(10/25) = 0.224; 0.224·10 + 0.776·25 = 21.64 us.
    enqueue(&mut port, Time::from_us(12), 1_000, 0, 10e-6);
    port.catch_up(Time::from_us(35));
    assert!(close(port.rtt_s * 1e6, 21.64));
    // No longer than a timeslot.
    port.config.timeslot = Time::from_us(15);
    port.catch_up(Time::from_us(35) + port.slot);
    assert_eq!(port.slot, Time::from_us(15));
}

/// An agent that is called at every end of an interval, by a timer.
struct Ticking(RcpPort);

impl Ticking {
    fn tick_until(&mut self, now: Time) {
        while self.0.due <= now {
            self.0.update();
        }
    }
}

#[test]
fn making_up_for_updates_gives_the_numbers_of_ticking() {
    for form in [RcpForm::PercPaper, RcpForm::Ns2] {
        for of_host in [false, true] {
            let config = RcpConfig { form, ..RcpConfig::default() };
            let build = || config.build_port(&PortContext { of_host, ..context() }).expect("every port has one");
            let (mut lazy, mut ticking) = (build(), Ticking(build()));
            let mut draws = Draws::new(7, 0);
            let mut now = Time::ZERO;
            for step in 0..2_000 {
                let u = draws.uniform();
                // Bursts, gaps of some intervals, and a long silence now and then.
                let gap_ns = if step % 500 == 499 {
                    1e7
                } else if step % 50 == 49 {
                    1e6 * u
                } else {
                    3_000.0 * u
                };
                now += Time::from_ps((gap_ns * 1e3) as u64);
                let queue = if of_host { 0 } else { (draws.uniform() * 5_000.0) as u64 };
                let (rtt_s, behind) = (10e-6 * (1.0 + draws.uniform()), 500.0 * draws.uniform());
                ticking.tick_until(now);
                for port in [&mut lazy, &mut ticking.0] {
                    enqueue(port, now, 1_000, queue, rtt_s);
                    dequeue(port, now, queue, f64::INFINITY, behind);
                }
                let (a, b) = (&lazy, &ticking.0);
                assert_eq!((a.rate, a.rtt_s, a.slot, a.due), (b.rate, b.rtt_s, b.slot, b.due), "{form:?} {step}");
            }
        }
    }
}

#[test]
fn a_year_of_silence_is_made_up_for() {
    let mut port = port();
    assert!(close(dequeue(&mut port, Time::from_ms(86_400_000 * 200), 0, f64::INFINITY, 0.0), 8e9));
    assert!(Time::from_ms(86_400_000 * 200) < port.due);
}

#[test]
fn nothing_is_sent_until_the_syn_is_back() {
    let mut rcp = RcpConfig::default().build(&flow_25g());
    let mut header = [0.0; 3];
    // 5 x 8 us; then twice as long.
    let start = rcp.on_start(Time::ZERO);
    assert_eq!((start.rate, start.timer), (Rate::ZERO, Time::from_us(40)));
    assert!(rcp.control_packet(Time::ZERO, 1_000, &mut header) && header == [f64::INFINITY, 0.0, 0.0]);
    assert!(!rcp.control_packet(Time::ZERO, 1_000, &mut header), "one is enough");
    assert_eq!(rcp.on_timer(Time::from_us(39)).timer, Time::from_us(40));
    assert_eq!(rcp.on_timer(Time::from_us(40)).timer, Time::from_us(120));
    assert!(rcp.control_packet(Time::from_us(40), 1_000, &mut header), "the SYN again");
    let a = rcp.on_control(Time::from_us(48), &[5e9, 0.0, 0.0]).expect("a rate");
    assert_eq!((a.rate, a.timer, a.cwnd), (Rate::from_gbps(5), Time::MAX, Bytes::MAX));
    assert!(close(rcp.srtt_s * 1e6, 8.0));
    let a = rcp.on_ack(&Ack { header: &[7e9, 0.0, 0.0], ..acked(1_000, 16_000, 2_000) });
    assert_eq!(a.rate, Rate::from_gbps(7));
    // 8 + (16 - 8)/8.
    assert!(close(rcp.srtt_s * 1e6, 9.0));
    assert_eq!(rcp.on_ack(&Ack { header: &[4e10, 0.0, 0.0], ..acked(1_000, 8_000, 2_000) }).rate, rcp.line_rate);
    assert_eq!(rcp.on_loss(Time::from_ms(2), Loss::Timeout).rate, rcp.line_rate);
}

#[test]
fn a_slow_flow_asks_every_round_trip() {
    let mut rcp = RcpConfig::default().build(&flow_25g());
    let mut header = [0.0; 3];
    rcp.on_start(Time::ZERO);
    rcp.control_packet(Time::ZERO, 1_000, &mut header);
    // 1,056 bytes at 1 Gb/s are 8.448 us, more than the base RTT.
    let a = rcp.on_control(Time::from_us(8), &[1e9, 0.0, 0.0]).expect("a rate");
    assert_eq!(a.timer, Time::from_us(16));
    assert_eq!(rcp.on_timer(Time::from_us(16)).timer, Time::from_us(56));
    assert!(rcp.control_packet(Time::from_us(16), 1_000, &mut header) && header[RTT] > 0.0);
    let a = rcp.on_control(Time::from_us(24), &[2e9, 0.0, 0.0]).expect("a rate");
    assert_eq!(a.timer, Time::MAX, "4.2 us are less");
    rcp.ask(Time::from_us(30));
    assert!(!rcp.control_packet(Time::from_us(30), 0, &mut header), "nothing left to send");
}

#[test]
fn a_flow_says_how_far_it_is_behind_its_pace() {
    let mut rcp = RcpConfig::default().build(&flow_25g());
    let behind_after = |rcp: &mut Rcp, now_ns: u64| {
        let mut header = [0.0; 3];
        rcp.on_sent(Time::from_ns(now_ns), Bytes::new(1_000));
        rcp.stamp(Time::from_ns(now_ns), &mut header);
        header[BEHIND]
    };
    rcp.on_start(Time::ZERO);
    // A byte each nanosecond.
    rcp.on_control(Time::from_us(8), &[8e9, 0.0, 0.0]);
    assert!(behind_after(&mut rcp, 9_000).abs() < 1e-6, "the first packet");
    assert!(behind_after(&mut rcp, 10_000).abs() < 1e-6, "on time");
    assert!((behind_after(&mut rcp, 13_000) - 2_000.0).abs() < 1e-6, "2 us late");
    // Half the pace after 0.5 us: 500 + 750 bytes in 2 us.
    rcp.on_control(Time::from_ns(13_500), &[4e9, 0.0, 0.0]);
    assert!((behind_after(&mut rcp, 15_000) - 250.0).abs() < 1e-6);
    // A long gap counts for a base RTT: 8 us of 0.5 bytes a nanosecond.
    assert!((behind_after(&mut rcp, 1_000_000) - 4_000.0).abs() < 1e-6);
}
