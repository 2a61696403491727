//! Tests that every wrapper forwards all calls of a controller: no method's default answers in its place.

use fairrate_control::forward::{Recorder, call_all};
use fairrate_control::{
    Actions, Algorithm, Alone, Controller, CoupledAlgorithm, CoupledController, PathState, PortAgent, PortAlgorithm,
    PortPacket, PortPacketKind, PortStep, PortView,
};
use fairrate_units::{Rate, Time};

/// Returns the methods of trait `name`, read from `source`.
fn methods<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let text = source.split(&format!("pub trait {name} {{\n")).nth(1).expect("it is there");
    let text = text.split("\n}\n").next().unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.strip_prefix("    fn "));
    lines.map(|line| line.split('(').next().unwrap_or_default()).collect()
}

/// Asserts that `controller` forwards each method once to `recorder` and returns the answers.
fn expect_all(controller: &mut impl Controller, recorder: &Recorder, subflow: Option<usize>) {
    let all = methods(include_str!("../src/controller.rs"), "Controller");
    recorder.take();
    let answers = call_all(controller);
    let expected: Vec<(&str, u64)> = all.iter().copied().zip(1..).collect();
    assert_eq!(answers, expected);
    let reached: Vec<_> = recorder.take();
    assert_eq!(reached, all.into_iter().map(|method| (method, subflow)).collect::<Vec<_>>());
}

#[test]
fn a_recorder_notes_all_methods() {
    let recorder = Recorder::default();
    expect_all(&mut recorder.clone(), &recorder, None);
}

#[test]
fn every_call_reaches_an_algorithm_of_ones_own() {
    let recorder = Recorder::default();
    expect_all(&mut Algorithm::Custom(Box::new(recorder.clone())), &recorder, None);
}

#[test]
fn every_call_reaches_the_controller_of_a_connection_of_one_subflow() {
    let recorder = Recorder::default();
    expect_all(&mut Alone(recorder.clone()), &recorder, Some(0));
    let boxed = CoupledAlgorithm::Custom(Box::new(recorder.clone()));
    expect_all(&mut Alone(boxed), &recorder, Some(0));
}

#[test]
fn every_call_of_a_subflow_reaches_the_controller_of_its_connection() {
    let recorder = Recorder::default();
    let mut boxed = CoupledAlgorithm::Custom(Box::new(recorder.clone()));
    boxed.on_path(3, Time::ZERO, PathState::Dead);
    assert_eq!(recorder.take(), [("on_path", Some(3))]);
    let mut of_connections = methods(include_str!("../src/coupled.rs"), "CoupledController");
    let mut of_flows = methods(include_str!("../src/controller.rs"), "Controller");
    of_flows.push("on_path");
    of_flows.sort_unstable();
    of_connections.sort_unstable();
    assert_eq!(of_connections, of_flows, "a subflow hears of all that a flow does");
}

/// A port agent that asks for the queue 7 and the time 9, and counts the other calls.
struct Counting(std::sync::Arc<std::sync::atomic::AtomicU32>);

impl Counting {
    fn count(&self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl PortAgent for Counting {
    fn on_enqueue(&mut self, _: &PortView, _: &mut PortPacket<'_>, _: &mut Actions) {
        self.count();
    }
    fn watches(&self, _: PortPacketKind, _: PortStep) -> bool {
        false
    }
    fn on_dequeue(&mut self, _: &PortView, _: &mut PortPacket<'_>, _: &mut Actions) {
        self.count();
    }
    fn assign(&self, _: u8, _: u32) -> Option<u16> {
        Some(7)
    }
    fn on_flow_pause(&mut self, _: u32, _: bool) {
        self.count();
    }
    fn on_rate(&mut self, _: Rate) {
        self.count();
    }
    fn on_timer(&mut self, _: &PortView, _: &mut Actions) {
        self.count();
    }
    fn timer(&self) -> Time {
        Time::from_ps(9)
    }
}

#[test]
fn every_call_reaches_the_agent_of_a_port() {
    let calls = std::sync::Arc::default();
    let mut agent = PortAlgorithm::Custom(Box::new(Counting(std::sync::Arc::clone(&calls))));
    let view = PortView { now: Time::ZERO, queue_bytes: 0 };
    let (header, mark) = (&mut [][..], false);
    let mut packet = PortPacket { flow: 0, class: 0, kind: PortPacketKind::Data, wire: 1, header, mark };
    let mut actions = Actions::default();
    agent.on_enqueue(&view, &mut packet, &mut actions);
    agent.on_dequeue(&view, &mut packet, &mut actions);
    agent.on_flow_pause(0, true);
    agent.on_rate(Rate::ZERO);
    agent.on_timer(&view, &mut actions);
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 5);
    assert!(!agent.watches(PortPacketKind::Data, PortStep::Enqueue));
    assert_eq!((agent.assign(0, 0), agent.timer()), (Some(7), Time::from_ps(9)));
    assert_eq!(methods(include_str!("../src/port.rs"), "PortAgent").len(), 8);
}
