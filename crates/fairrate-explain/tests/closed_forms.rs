//! Accounts held against numbers worked by hand.

use fairrate_explain::{Behind, Explanation, How, Loss, Observer, Reason, Slow, Way, outages, slow, sums};
use fairrate_sim::{DropCause, FlowId, PfcEvent, PortId, Recorder, SimConfig, Simulation};
use fairrate_units::Time;

mod common;
use common::{PACKET, US, chain, config, explain, port, star};

#[test]
fn a_flow_alone_is_serialisation_and_propagation() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"50KB\"\n",
    );
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    let expected = [
        (Way::Data, Reason::Serialisation(nic), 50 * PACKET, 50 * 1_048),
        (Way::Data, Reason::Propagation(nic), US, 0),
        (Way::Data, Reason::Serialisation(last), PACKET, 1_048),
        (Way::Data, Reason::Propagation(last), US, 0),
    ];
    assert_eq!(chain(&e), expected);
    assert_eq!((e.round_trips, e.losses), (0, 0));
}

/// Ten flows of one packet start at once. All packets reach the switch together and leave by number of the link, so the
/// last one waits for nine transmissions.
#[test]
fn the_last_of_an_incast_waits_for_the_bytes_of_the_nine_others() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\n[[traffic]]\nkind = \"incast\"\nsenders = 10\nreceiver = \"h0\"\nbytes = \"1KB\"\n",
    );
    let last = port(&c, "sw0", "h0");
    let waits = |flow: u32| -> Vec<(u64, u64)> {
        let e = explain(&c, flow);
        let queues = sums(&e.chain).into_iter().filter(|s| matches!(s.reason, Reason::Queue(at, _) if at == last));
        queues.map(|s| (s.time.as_ps(), s.bytes)).collect()
    };
    let mut number: Vec<usize> = (0..10).map(|flow| waits(flow).len()).collect();
    number.sort_unstable();
    assert_eq!(number, (0..10).collect::<Vec<_>>(), "each flow waits for a different number of others");
    for flow in 0..10 {
        assert!(waits(flow).iter().all(|&wait| wait == (PACKET, 1_048)), "each wait is for one whole packet");
    }
    let slowest = (0..10).find(|&flow| waits(flow).len() == 9).expect("one is the last");
    assert_eq!(explain(&c, slowest).fct.as_ps(), 11 * PACKET + 2 * US);
}

/// Two flows share a NIC, packet by packet.
#[test]
fn flows_of_one_host_wait_for_their_turns() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"5KB\"\n\
         [[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h2\"\nbytes = \"5KB\"\n",
    );
    let nic = port(&c, "h1", "sw0");
    let e = explain(&c, 1);
    let turn = (Way::Data, Reason::Turn(nic, Behind::Flow(FlowId(0))), 5 * PACKET, 5 * 1_048);
    assert!(chain(&e).contains(&turn), "{:?}", chain(&e));
    assert!(chain(&e).contains(&(Way::Data, Reason::Serialisation(nic), 5 * PACKET, 5 * 1_048)));
}

/// A window of one packet lets one go a round trip: each waits for the acknowledgment of the one before.
#[test]
fn a_window_of_a_packet_makes_a_chain_of_round_trips() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\nwindow = \"1000B\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"5KB\"\n",
    );
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    assert_eq!((e.round_trips, e.losses), (4, 0));
    // An acknowledgment of 60 bytes takes 19.2 ns.
    let expected = [
        (Way::Data, Reason::Serialisation(nic), 5 * PACKET, 5 * 1_048),
        (Way::Data, Reason::Propagation(nic), 5 * US, 0),
        (Way::Data, Reason::Serialisation(last), 5 * PACKET, 5 * 1_048),
        (Way::Data, Reason::Propagation(last), 5 * US, 0),
        (Way::Ack, Reason::Serialisation(last.reverse()), 4 * 19_200, 240),
        (Way::Ack, Reason::Propagation(last.reverse()), 4 * US, 0),
        (Way::Ack, Reason::Serialisation(nic.reverse()), 4 * 19_200, 240),
        (Way::Ack, Reason::Propagation(nic.reverse()), 4 * US, 0),
    ];
    assert_eq!(chain(&e), expected);
    let window = sums(&e.sender).into_iter().find(|s| s.reason == Reason::Window).expect("it waits for its window");
    assert_eq!(window.time.as_ps(), 4 * (PACKET + 4 * US + 2 * 19_200), "all of a round trip but its own transmission");
}

/// The receiver drains at half the rate of its link and acts 700 ns later, the sender 300 ns after arrivals.
#[test]
fn delays_of_hosts_are_named() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\nwindow = \"1000B\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"5KB\"\n\
         [[host]]\nhosts = \"h0\"\nprocessing = \"700ns\"\nrx_rate = \"12.5Gbps\"\n[[host]]\nhosts = \"h1\"\nprocessing = \"300ns\"\n",
    );
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    assert_eq!((e.round_trips, e.losses), (4, 0));
    let of_hosts: Vec<_> = chain(&e).into_iter().filter(|piece| matches!(piece.1, Reason::Host(_))).collect();
    let expected = [
        (Way::Data, Reason::Host(last), 5 * (2 * PACKET + 700_000), 0),
        (Way::Ack, Reason::Host(nic.reverse()), 4 * 300_000, 0),
    ];
    assert_eq!(of_hosts, expected);
}

/// A NIC of 20 Gb/s takes 419.2 ns for a packet, of which it rests for 83.84 ns.
#[test]
fn a_slow_nic_is_named() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"50KB\"\n\
         [host]\nnic_rate = \"20Gbps\"\n",
    );
    let nic = port(&c, "h1", "sw0");
    let e = explain(&c, 0);
    let rests = chain(&e).into_iter().find(|piece| piece.1 == Reason::SlowNic(nic));
    assert_eq!(rests, Some((Way::Data, Reason::SlowNic(nic), 49 * 83_840, 0)));
}

/// Eleven packets arrive together, one is sent at once and the buffer holds nine: the eleventh is dropped and comes
/// again after its timeout of 1 ms.
#[test]
fn a_drop_and_its_timeout_are_named() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\nrto = \"1ms\"\n[switch]\nbuffer = \"10KB\"\npfc = false\ndt_alpha = \"unlimited\"\n\
         [[traffic]]\nkind = \"incast\"\nsenders = 11\nreceiver = \"h0\"\nbytes = \"1KB\"\n",
    );
    let last = port(&c, "sw0", "h0");
    let lossy: Vec<Explanation> = (0..11).map(|flow| explain(&c, flow)).filter(|e| 0 < e.losses).collect();
    let [e] = &lossy[..] else { panic!("one packet is dropped: {lossy:#?}") };
    let loss = Loss { port: last, how: How::Dropped(DropCause::BufferFull) };
    let timeout = sums(&e.chain).into_iter().find(|s| s.reason == Reason::Timeout(Some(loss))).expect("it is named");
    // The timer started as the packet left its host, and the drop came when it reached the switch.
    assert_eq!(timeout.time, Time::from_ms(1) - Time::from_ps(PACKET + US));
    assert_eq!(e.fct, Time::from_ms(1) + Time::from_ps(2 * (PACKET + US)));
}

/// Eight senders fill a small buffer, so that the switch pauses them. A NIC with one flow at line rate stands still
/// while it is paused, but for the rest of the packet that it transmits as the pause arrives.
#[test]
fn pauses_are_named_at_the_port_that_obeys_them() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\n[switch]\nbuffer = \"60KB\"\n\
         [[traffic]]\nkind = \"incast\"\nsenders = 8\nreceiver = \"h0\"\nbytes = \"100KB\"\n",
    );
    let e = explain(&c, 3);
    let topology = &c.topology;
    let nic = (0..topology.n_ports() as u32).map(PortId).find(|&p| topology.from(p) == c.flows[3].src).expect("a NIC");
    let mut recorder = Recorder::default();
    Simulation::new(c).run(&mut recorder).expect("the run does not stall");
    let last = e.sender.last().expect("the last packet's way").from;
    let changes: Vec<_> = recorder.pfc.iter().filter(|event| event.port == nic && event.t <= last).collect();
    let paused = |pair: &[&PfcEvent]| if pair[0].pause { (pair[1].t - pair[0].t).as_ps() } else { 0 };
    let (paused, n): (u64, u64) = (changes.windows(2).map(paused).sum(), changes.len() as u64 / 2);
    let of = |reason| sums(&e.chain).into_iter().find(|s| s.reason == reason).map_or(0, |s| s.time.as_ps());
    assert!(0 < n && (paused - n * PACKET..=paused).contains(&of(Reason::Pause(nic))), "{paused}, {:?}", chain(&e));
    assert_eq!(of(Reason::Serialisation(nic)), 100 * PACKET);
    let is_wait = |reason| matches!(reason, Reason::Turn(..) | Reason::Blocked(_) | Reason::Window | Reason::Pacing);
    assert!(!e.chain.iter().any(|piece| is_wait(piece.reason)), "{:?}", chain(&e));
}

/// A packet that reaches the switch while the link to its host is down waits until that comes up.
#[test]
fn a_link_that_is_down_is_named() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"1KB\"\nstart = \"10us\"\n\
         [[fault]]\nlinks = [\"sw0->h0\"]\ndown_at = \"5us\"\nup_at = \"50us\"\n",
    );
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain(&c, 0);
    let expected = [
        (Way::Data, Reason::Serialisation(nic), PACKET, 1_048),
        (Way::Data, Reason::Propagation(nic), US, 0),
        (Way::Data, Reason::Down(last), 39 * US - PACKET, 0),
        (Way::Data, Reason::Serialisation(last), PACKET, 1_048),
        (Way::Data, Reason::Propagation(last), US, 0),
    ];
    assert_eq!(chain(&e), expected);
    let us = Time::from_us;
    assert_eq!(outages(&c, last, us(40), us(100)), [(us(5), us(50))]);
    assert_eq!((outages(&c, last, us(50), us(100)), outages(&c, nic, us(0), us(100))), (Vec::new(), Vec::new()));
}

/// Links that fail again and again are down from 10 to 20 us of every 30 us, until faults stop.
#[test]
fn failures_repeat_and_links_are_slow() {
    let c = star(
        "[transport]\ncc = \"line-rate\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"1KB\"\n\
         [[fault]]\nlinks = [\"sw0->h0\"]\ndown_at = \"10us\"\nup_at = \"20us\"\nperiod = \"30us\"\nstop = \"80us\"\n\
         [[fault]]\nlinks = [\"sw0->h0\"]\nrate = 0.25\nstart = \"15us\"\n",
    );
    let last = port(&c, "sw0", "h0");
    let us = Time::from_us;
    assert_eq!(outages(&c, last, us(0), us(200)), [(us(10), us(20)), (us(40), us(50)), (us(70), us(80))]);
    assert_eq!(outages(&c, last, us(45), us(70)), [(us(40), us(50))]);
    let quarter = Slow { share: 0.25, from: us(15), to: Time::MAX };
    assert_eq!((slow(&c, last, us(0), us(15)), slow(&c, last, us(0), us(16))), (Vec::new(), vec![quarter]));
}

/// Returns the account of `flow` until the end of a run that it does not survive.
fn explain_open(config: &SimConfig, flow: u32) -> Explanation {
    let flow = FlowId(flow);
    let mut observer = Observer::new(config, &[flow]).expect("the flow can be explained");
    let mut simulation = Simulation::new(config.clone());
    simulation.run(&mut observer).expect("the run does not stall");
    simulation.unfinished().iter().for_each(|outcome| observer.add_outcome(outcome));
    let end = simulation.totals().end;
    assert_eq!(observer.explain(flow), None);
    let explanation = observer.explain_open(flow, end).expect("the flow is under way");
    assert_eq!(explanation.start + explanation.fct, end);
    explanation
}

/// The link stays down, so the packet waits until the run ends at 100 ms.
#[test]
fn an_unfinished_flow_waits_until_the_end_of_the_run() {
    let head = "[transport]\ncc = \"line-rate\"\nrto = \"1s\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"1KB\"\n";
    let c = star(&format!("{head}[[fault]]\nlinks = [\"sw0->h0\"]\ndown_at = \"0s\"\n"));
    let (nic, last) = (port(&c, "h1", "sw0"), port(&c, "sw0", "h0"));
    let e = explain_open(&c, 0);
    let expected = [
        (Way::Data, Reason::Serialisation(nic), PACKET, 1_048),
        (Way::Data, Reason::Propagation(nic), US, 0),
        (Way::Data, Reason::Down(last), 100_000 * US - US - PACKET, 0),
    ];
    assert_eq!((chain(&e), e.is_finished), (expected.to_vec(), false));
    // The whole flow was sent at once.
    let sender: Vec<(Reason, u64)> = sums(&e.sender).iter().map(|s| (s.reason, s.time.as_ps())).collect();
    assert_eq!(sender, [(Reason::Serialisation(nic), PACKET), (Reason::Unsent, 100_000 * US - PACKET)]);
}

/// A lost packet that is not sent again before the end is named.
#[test]
fn an_unfinished_flow_misses_what_was_lost() {
    let head = "[transport]\ncc = \"line-rate\"\nrto = \"1s\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h0\"\nbytes = \"1KB\"\n";
    let c = star(&format!("{head}[[fault]]\nlinks = [\"sw0->h0\"]\nloss = 1.0\n"));
    let last = port(&c, "sw0", "h0");
    let e = explain_open(&c, 0);
    let loss = Loss { port: last, how: How::Dropped(DropCause::Fault) };
    let lost = sums(&e.chain).into_iter().find(|s| s.reason == Reason::Recovery(Some(loss))).expect("it is named");
    assert!(Time::from_us(99_990) < lost.time, "{:?}", chain(&e));
}

/// At night the uplink serves the queues of circuits: the last of 50 packets waits behind the others there.
#[test]
fn an_uplink_beside_circuits_is_named() {
    let c = config(
        "duration = \"1ms\"\n[topology]\nkind = \"rdcn\"\ntors = 3\nhosts_per_tor = 2\nhost_rate = \"100Gbps\"\n\
         [transport]\ncc = \"line-rate\"\nrto = \"10ms\"\nwindow = \"none\"\n\
         [switch]\nbuffer = \"100MB\"\ndt_alpha = \"unlimited\"\n\
         [[traffic]]\nkind = \"incast\"\nsenders = [\"h1\"]\nreceiver = \"h3\"\nbytes = \"50KB\"\nstart = \"230us\"\n",
    );
    let uplink = port(&c, "tor0", "core0");
    let e = explain(&c, 0);
    let waits = (Way::Data, Reason::Queue(uplink, Behind::Itself), 49 * (PACKET - PACKET / 4), 49 * 1_048 * 3 / 4);
    assert!(chain(&e).contains(&waits), "{:?}", chain(&e));
    assert!(chain(&e).iter().all(|&(_, reason, ..)| !matches!(reason, Reason::Blocked(_))), "{:?}", chain(&e));
}

/// A sender whose rate rises waits for its pacing until then, and not for its idle NIC.
#[test]
fn a_rate_that_rises_ends_the_pacing() {
    let c = star(
        "[transport]\ncc = \"rocc\"\n[[traffic]]\nkind = \"incast\"\nsenders = [\"h1\", \"h2\"]\nreceiver = \"h0\"\nbytes = \"600KB\"\n\
         [[traffic]]\nkind = \"incast\"\nsenders = [\"h3\"]\nreceiver = \"h0\"\nbytes = \"2MB\"\n",
    );
    let e = explain(&c, 2);
    assert!(chain(&e).iter().any(|&(_, reason, ..)| reason == Reason::Pacing), "{:?}", chain(&e));
    assert!(chain(&e).iter().all(|&(_, reason, ..)| !matches!(reason, Reason::Blocked(_))), "{:?}", chain(&e));
}
