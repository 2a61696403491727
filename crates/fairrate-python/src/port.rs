//! Agents of egress ports, written in Python.

use fairrate_control::{
    Actions, NOTICE_VALUES, Notice, PortAgent, PortContext, PortPacket, PortPacketKind, PortStep, PortView,
};
use fairrate_units::Time;
use pyo3::prelude::*;

use crate::controller::{Failed, own_method, time};
use crate::views;

/// An agent whose methods are those of a Python object.
pub struct Agent {
    port: u32,
    on_enqueue: Option<Py<PyAny>>,
    on_dequeue: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    object: Py<PyAny>,
    timer: Time,
    failed: Failed,
}

impl Agent {
    /// Creates the agent that `object` is at a port.
    pub fn new(object: &Bound<'_, PyAny>, context: &PortContext, failed: &Failed) -> PyResult<Self> {
        object.call_method1("on_start", (views::Port::of(context),))?;
        let own = |name: &str| own_method(object, "PortAgent", name);
        let mut agent = Self {
            port: context.port,
            on_enqueue: own("on_enqueue")?,
            on_dequeue: own("on_dequeue")?,
            on_timer: own("on_timer")?,
            timer: Time::MAX,
            failed: failed.clone(),
            object: object.clone().unbind(),
        };
        agent.timer = timer_of(object)?;
        Ok(agent)
    }

    fn see(&mut self, step: PortStep, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
        let method = if step == PortStep::Enqueue { &self.on_enqueue } else { &self.on_dequeue };
        let Some(method) = method.as_ref().filter(|_| !self.failed.is_noted()) else { return };
        let seen = views::Packet {
            flow: packet.flow,
            priority: packet.class,
            kind: views::kind_name(packet.kind),
            wire_bytes: packet.wire,
            header: packet.header.to_vec(),
            mark: packet.mark,
        };
        let (port, object) = (self.port, &self.object);
        let done = Python::attach(|py| {
            let seen = Bound::new(py, seen)?;
            let answer = method.bind(py).call1((view.now.as_ns_f64(), view.queue_bytes, &seen))?;
            let seen = seen.borrow();
            packet.mark = seen.mark;
            views::put_words(&seen.header, packet.header)?;
            notices(port, &answer, actions)?;
            timer_of(object.bind(py))
        });
        self.keep(done);
    }

    fn keep(&mut self, timer: PyResult<Time>) {
        match timer {
            Ok(timer) => self.timer = timer,
            Err(error) => {
                self.timer = Time::MAX;
                self.failed.note(error);
            }
        }
    }
}

/// Reads the agent's `timer_ns`: time of its next call; `None`: never.
fn timer_of(object: &Bound<'_, PyAny>) -> PyResult<Time> {
    let timer_ns: Option<f64> = object.getattr("timer_ns")?.extract()?;
    timer_ns.map_or(Ok(Time::MAX), |ns| time("timer_ns", ns))
}

/// Adds the notices that a method returned to `actions`: pairs of a flow and up to four numbers, or `None`.
fn notices(port: u32, answer: &Bound<'_, PyAny>, actions: &mut Actions) -> PyResult<()> {
    if answer.is_none() {
        return Ok(());
    }
    for (flow, given) in answer.extract::<Vec<(u32, Vec<f64>)>>()? {
        let mut values = [0.0; NOTICE_VALUES];
        views::put_words(&given, values.get_mut(..given.len()).unwrap_or_default())?;
        actions.notices.push(Notice { flow, port, values });
    }
    Ok(())
}

impl PortAgent for Agent {
    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
        self.see(PortStep::Enqueue, view, packet, actions);
    }
    fn on_dequeue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
        self.see(PortStep::Dequeue, view, packet, actions);
    }
    fn watches(&self, _: PortPacketKind, step: PortStep) -> bool {
        if step == PortStep::Enqueue { self.on_enqueue.is_some() } else { self.on_dequeue.is_some() }
    }
    fn on_timer(&mut self, view: &PortView, actions: &mut Actions) {
        self.timer = Time::MAX;
        let Some(method) = self.on_timer.as_ref().filter(|_| !self.failed.is_noted()) else { return };
        let (port, object) = (self.port, &self.object);
        let done = Python::attach(|py| {
            object.bind(py).setattr("timer_ns", py.None())?;
            let answer = method.bind(py).call1((view.now.as_ns_f64(), view.queue_bytes))?;
            notices(port, &answer, actions)?;
            timer_of(object.bind(py))
        });
        self.keep(done);
    }
    fn timer(&self) -> Time {
        self.timer
    }
}
