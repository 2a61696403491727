use super::*;
use crate::test_flow::{acked, flow_25g, port_40g};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

/// Returns a switch port of 8 Gb/s, a byte each nanosecond, with d = 10 us; its first interval begins at time zero.
fn port(form: XcpForm, timers: XcpTimers) -> XcpPort {
    let config = XcpConfig { form, timers, ..XcpConfig::default() };
    let context = PortContext { rate: Rate::from_gbps(8), base_rtt: Time::from_us(10), wire_mtu: 1_000, ..port_40g() };
    let mut port = config.build_port(&context).expect("every port has one");
    port.te_due = port.te;
    if timers == XcpTimers::Ns2 {
        port.tq_due = port.tq;
    }
    port
}

/// Passes a packet of 1,000 bytes, with a queue of `queue_bytes` before and after it; returns its feedback in bytes or
/// bytes/s.
fn pass(port: &mut XcpPort, now: Time, queue_bytes: u64, rtt_s: f64, cwnd: f64) -> f64 {
    pass_asking(port, now, queue_bytes, rtt_s, cwnd, f64::INFINITY)
}

fn pass_asking(port: &mut XcpPort, now: Time, queue_bytes: u64, rtt_s: f64, cwnd: f64, asked: f64) -> f64 {
    let mut header = [rtt_s, cwnd, asked, 0.0];
    let kind = PortPacketKind::Data;
    let mut packet = PortPacket { flow: 0, class: 3, kind, wire: 1_000, header: &mut header, mark: false };
    let view = PortView { now, queue_bytes };
    port.on_enqueue(&view, &mut packet, &mut Actions::default());
    port.on_dequeue(&view, &mut packet, &mut Actions::default());
    header[FEEDBACK]
}

/// Passes the packets of two flows of 2,000 and 3,000 bytes per round trip of 10 us: y = 5e8 bytes/s, half of C.
/// Packets of the first flow have x = 10 us/2 and of the second 10 us/3: 20 us in all.
fn interval_of_two_flows(port: &mut XcpPort) {
    for (us, cwnd) in [(1, 2e3), (3, 3e3), (5, 2e3), (7, 3e3), (9, 3e3)] {
        assert_eq!(pass(port, Time::from_us(us), 0, 10e-6, cwnd), 0.0, "nothing is known yet");
    }
}

#[test]
fn both_forms_hand_out_the_spare_capacity_and_shuffle() {
    for form in [XcpForm::Paper, XcpForm::Ns2] {
        let mut port = port(form, XcpTimers::Ideal);
        interval_of_two_flows(&mut port);
        port.catch_up(Time::from_us(10));
        assert!(close(port.rtt_s * 1e6, 10.0));
        // φ = 0.4·5e8 = 2e8 bytes/s, 2,000 bytes a round trip; h = max(0, 0.5e8 - 2e8) = 0.
        // Each packet gets its share by x: 5/20 of 2e8 bytes/s, 500 bytes; and 3.33/20, 333.3 bytes. Both flows
        // grow by 1,000 bytes per round trip.
        let unit = if form == XcpForm::Paper { 1.0 } else { 1.0 / 10e-6 };
        let (first, second) =
            (pass(&mut port, Time::from_us(11), 0, 10e-6, 2e3), pass(&mut port, Time::from_us(13), 0, 10e-6, 3e3));
        assert!(close(first, 500.0 * unit) && close(second, 1e3 / 3.0 * unit), "{first} {second}");
    }
}

#[test]
fn a_full_link_shuffles_from_the_large_to_the_small() {
    for form in [XcpForm::Paper, XcpForm::Ns2] {
        let mut port = port(form, XcpTimers::Ideal);
        // 2 packets of a window of 2,000 bytes and 8 of one of 8,000: y = C, φ = 0, h = 0.1 C = 1e8 bytes/s.
        let round = |port: &mut XcpPort, start_us: u64| {
            let mut sums = [0.0; 2];
            for i in 0..10 {
                let small = i % 5 == 0;
                let cwnd = if small { 2e3 } else { 8e3 };
                let now = Time::from_us(start_us + i);
                sums[usize::from(!small)] += pass(port, now, 0, 10e-6, cwnd);
            }
            sums
        };
        round(&mut port, 0);
        // Half of 1,000 bytes for each flow, minus 0.2 and 0.8 of 1,000: +300 and -300 bytes.
        let [small, large] = round(&mut port, 10);
        let unit = if form == XcpForm::Paper { 1.0 } else { 1.0 / 10e-6 };
        assert!(close(small, 300.0 * unit) && close(large, -300.0 * unit), "{form:?}: {small} {large}");
    }
}

#[test]
fn a_standing_queue_is_drained() {
    let mut port = port(XcpForm::Paper, XcpTimers::Ideal);
    for i in 0..20 {
        pass(&mut port, Time::from_us(i), 4_000, 10e-6, 10e3);
    }
    port.catch_up(Time::from_us(20));
    // Only the second interval has a smallest queue of 4,000: φ = -0.226·4,000 = -904 bytes, h = 1,000 - 904 = 96.
    assert!(close(port.persistent_queue, 4_000.0));
    // A tenth for each of ten packets: (96 - 96 - 904)/10.
    assert!(close(pass(&mut port, Time::from_us(20), 4_000, 10e-6, 10e3), -90.4));
    // A moment without a queue is enough for Q = 0.
    pass(&mut port, Time::from_us(25), 0, 10e-6, 10e3);
    port.catch_up(Time::from_us(30));
    assert!(port.persistent_queue == 0.0);
}

#[test]
fn a_header_keeps_the_least_feedback_and_without_an_rtt_there_is_none() {
    let mut port = port(XcpForm::Paper, XcpTimers::Ideal);
    interval_of_two_flows(&mut port);
    assert!(close(pass_asking(&mut port, Time::from_us(11), 0, 10e-6, 2e3, 80.0), 80.0));
    assert!(close(pass_asking(&mut port, Time::from_us(12), 0, 10e-6, 2e3, -80.0), -80.0));
    assert_eq!(pass(&mut port, Time::from_us(13), 0, 0.0, 2e3), 0.0);
    assert!(close(port.sums.input, 3_000.0) && close(port.sums.bytes, 2_000.0));
}

#[test]
fn residues_end() {
    let mut port = port(XcpForm::Ns2, XcpTimers::Ideal);
    interval_of_two_flows(&mut port);
    // 2e8 bytes/s to give, 0.5e8 to each packet of the first flow: four get it, the fifth gets nothing.
    let given: Vec<f64> = (0..5).map(|i| pass(&mut port, Time::from_us(11 + i), 0, 10e-6, 2e3)).collect();
    assert!(given[..4].iter().all(|&g| close(g, 5e7)) && given[4].abs() < 1.0, "{given:?}");
    // The amount denied by an earlier port (3e7 of 5e7) counts as negative feedback; there is none left, so
    // the packet takes its 2e7 of the residue.
    interval_of_two_flows_again(&mut port);
    assert!(close(pass_asking(&mut port, Time::from_us(31), 0, 10e-6, 2e3, 2e7), 2e7));
    assert!(close(port.residue_positive, 2e8 - 2e7));
}

fn interval_of_two_flows_again(port: &mut XcpPort) {
    port.catch_up(Time::from_us(20));
    for (us, cwnd) in [(21, 2e3), (23, 3e3), (25, 2e3), (27, 3e3), (29, 3e3)] {
        pass(port, Time::from_us(us), 0, 10e-6, cwnd);
    }
    port.catch_up(Time::from_us(30));
}

#[test]
fn the_timers_of_ns2_know_no_microseconds() {
    let mut port = port(XcpForm::Ns2, XcpTimers::Ns2);
    assert_eq!((port.te, port.te_due), (Time::from_ms(50), Time::from_ms(50)));
    pass(&mut port, Time::from_ms(49), 0, 12e-6, 2e3);
    port.catch_up(Time::from_ms(50));
    // d = 12 us: Te = 1 ms. Tq was due first, when d was still 50 ms: 25 ms.
    assert_eq!((port.te, port.te_due), (Time::from_ms(1), Time::from_ms(51)));
    assert_eq!((port.tq, port.tq_due), (Time::from_ms(25), Time::from_ms(75)));
    for ms in 50..80 {
        pass(&mut port, Time::from_ms(ms), 0, 12e-6, 2e3);
    }
    assert_eq!((port.tq, port.tq_due), (Time::from_ms(2), Time::from_ms(81)));
    // The last packet was at 79 ms; the interval that ends at 81 ms is the first without packets, and the next has 50
    // ms.
    port.catch_up(Time::from_ms(81));
    assert_eq!((port.te, port.te_due), (Time::from_ms(50), Time::from_ms(131)));
}

#[test]
fn making_up_for_intervals_gives_the_numbers_of_ticking() {
    for (form, timers) in [XcpForm::Paper, XcpForm::Ns2].into_iter().zip([XcpTimers::Ideal, XcpTimers::Ns2]) {
        for of_host in [false, true] {
            let mut lazy = port(form, timers);
            lazy.of_host = of_host;
            let mut ticking = lazy.clone();
            let mut draws = Draws::new(7, 0);
            let mut now = Time::ZERO;
            for step in 0..2_000 {
                let u = draws.uniform();
                let gap_ns = if step % 500 == 499 {
                    4e8
                } else if step % 50 == 49 {
                    1e8 * u
                } else {
                    3_000.0 * u
                };
                now += Time::from_ps((gap_ns * 1e3) as u64);
                let queue = if of_host { 0 } else { (draws.uniform() * 5_000.0) as u64 };
                while ticking.te_due.min(ticking.tq_due) <= now {
                    if ticking.tq_due <= ticking.te_due { ticking.end_tq() } else { ticking.end_interval() }
                }
                let rtt_s = 10e-6 * (1.0 + draws.uniform());
                let [a, b] = [&mut lazy, &mut ticking].map(|port| pass(port, now, queue, rtt_s, 4e3));
                assert_eq!(a, b, "{form:?} {step}");
                let state = |p: &XcpPort| (p.te, p.te_due, p.tq, p.tq_due, p.persistent_queue, p.rtt_s);
                assert_eq!(state(&lazy), state(&ticking), "{form:?} {step}");
            }
        }
    }
}

#[test]
fn a_host_counts_what_windows_would_have_queued() {
    let mut port = port(XcpForm::Paper, XcpTimers::Ideal);
    port.of_host = true;
    for us in 0..20 {
        // Ten packets are admitted at once; the first leaves, and the others follow.
        let grown = if us == 0 {
            9_000.0
        } else if us < 10 {
            -1_000.0
        } else {
            0.0
        };
        let mut header = [10e-6, 1e4, f64::INFINITY, grown];
        let kind = PortPacketKind::Data;
        let mut packet = PortPacket { flow: 0, class: 3, kind, wire: 1_000, header: &mut header, mark: false };
        let view = PortView { now: Time::from_us(us), queue_bytes: 0 };
        port.on_dequeue(&view, &mut packet, &mut Actions::default());
        let waiting = if us < 10 { 9_000.0 - 1_000.0 * us as f64 } else { 0.0 };
        assert!((port.queue.at(view.now) - waiting).abs() < 1e-6, "{us}");
    }
    assert!(close(port.sums.input, 10_000.0));
}

#[test]
fn the_window_follows_feedback_in_both_forms() {
    let mut xcp = XcpConfig::default().build(&flow_25g());
    assert_eq!(xcp.on_start(Time::ZERO).cwnd, Bytes::new(2_000));
    let mut header = [0.0; 4];
    xcp.stamp(Time::ZERO, &mut header);
    assert_eq!(header, [0.0, 2.0 * 1_056.0, f64::INFINITY, 0.0]);
    // 528 bytes on the wire are half a packet.
    let ack = |rtt_ns, feedback: &'static [f64]| Ack { header: feedback, ..acked(1_000, rtt_ns, 2_000) };
    assert_eq!(xcp.on_ack(&ack(8_000, &[0.0, 0.0, 528.0, 0.0])).cwnd, Bytes::new(2_500));
    assert!(close(xcp.srtt_s * 1e6, 8.0));
    assert_eq!(xcp.on_ack(&ack(16_000, &[0.0, 0.0, -99_999.0, 0.0])).cwnd, Bytes::new(1_000));
    assert!(close(xcp.srtt_s * 1e6, 9.0));
    // ns-2: 132e6 bytes/s over 8 us are 1,056 bytes.
    let mut xcp = XcpConfig { form: XcpForm::Ns2, ..XcpConfig::default() }.build(&flow_25g());
    assert_eq!(xcp.on_ack(&ack(8_000, &[0.0, 0.0, 132e6, 0.0])).cwnd, Bytes::new(3_000));
}

#[test]
fn losses_are_tcps() {
    let mut xcp = XcpConfig { initial_window: 10.0, ..XcpConfig::default() }.build(&flow_25g());
    xcp.on_ack(&acked(1_000, 8_000, 11_000));
    assert_eq!(xcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(5_000));
    assert_eq!(xcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(5_000), "the same window");
    xcp.on_ack(&acked(11_000, 8_000, 16_000));
    assert_eq!(xcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(2_500));
    assert_eq!(xcp.on_loss(Time::ZERO, Loss::Timeout).cwnd, Bytes::new(1_000));
}

#[test]
fn a_flow_says_by_how_much_its_host_holds_more_back() {
    let mut xcp = XcpConfig { initial_window: 4.0, ..XcpConfig::default() }.build(&flow_25g());
    let grown = |xcp: &mut Xcp| {
        let mut header = [0.0; 4];
        xcp.on_sent(Time::ZERO, Bytes::new(1_056));
        xcp.stamp(Time::ZERO, &mut header);
        header[GROWN]
    };
    // Four packets are admitted, three wait behind the first; with each further packet one less waits.
    assert!(close(grown(&mut xcp), 3.0 * 1_056.0));
    assert!(close(grown(&mut xcp), -1_056.0));
    // An acknowledgment admits another packet: one sent, one admitted.
    xcp.on_ack(&acked(1_000, 8_000, 2_000));
    assert!(close(grown(&mut xcp), 0.0));
}
