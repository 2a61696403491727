//! The thread that starts flows and writes their bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::mpsc::Sender;

use fairrate_sim::{FlowId, FlowSpec, Trigger};
use fairrate_units::{Bytes, Time};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::failure::Failure;
use crate::shared::{Message, Phase, Shared};
use crate::wakeup::Wakeup;

/// Number of bytes written at once.
const CHUNK: usize = 64 * 1024;
/// Number of bytes that a flow writes before others have a turn.
const TURN: usize = 4 * CHUNK;
/// Number of events taken at once.
const EVENTS: usize = 256;

/// An action that is due at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Start(u32),
    Stop(u32),
}

/// The senders of all flows.
pub struct Sending<'a> {
    shared: &'a Shared,
    flows: &'a [FlowSpec],
    ideal: &'a [Time],
    told: Sender<Message>,
    epoll: Epoll,
    wakeup: Wakeup,
    due: BinaryHeap<Reverse<(Time, Due)>>,
    /// Bytes that each flow has yet to write; `u64::MAX` for an endless flow, until it stops.
    left: Vec<u64>,
    zeros: Vec<u8>,
}

impl<'a> Sending<'a> {
    /// Creates senders that start their flows at their times.
    ///
    /// # Errors
    /// If the kernel refuses to wait for events.
    pub fn new(
        shared: &'a Shared,
        flows: &'a [FlowSpec],
        ideal: &'a [Time],
        told: Sender<Message>,
    ) -> Result<Self, Failure> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| Failure::system("making an epoll", e))?;
        let wakeup = Wakeup::new(&epoll)?;
        let timed = |(i, flow): (u32, &FlowSpec)| {
            (flow.trigger == Trigger::Time).then_some(Reverse((flow.start, Due::Start(i))))
        };
        let due = (0..).zip(flows).filter_map(timed).collect();
        let left = flows.iter().map(|flow| flow.bytes.as_u64()).collect();
        Ok(Self { shared, flows, ideal, told, epoll, wakeup, due, left, zeros: vec![0; CHUNK] })
    }

    /// Sends until the run is over.
    ///
    /// # Errors
    /// If a connection breaks.
    pub fn run(mut self) -> Result<(), Failure> {
        let mut events = [EpollEvent::empty(); EVENTS];
        while !self.shared.is_over() {
            self.begin_what_is_due()?;
            let next = self.due.peek().map(|Reverse((t, _))| self.shared.clock.at(*t));
            for event in self.wakeup.wait(&self.epoll, next, &mut events)? {
                let flow = event.data() as u32;
                if event.events().contains(EpollFlags::EPOLLIN) {
                    self.finish(flow)?;
                } else {
                    self.write(flow)?;
                }
            }
        }
        Ok(())
    }

    fn begin_what_is_due(&mut self) -> Result<(), Failure> {
        while let Some(&Reverse((t, due))) = self.due.peek() {
            let now = self.shared.clock.now();
            if now < t || self.shared.clock.at(t) > std::time::Instant::now() {
                return Ok(());
            }
            self.due.pop();
            match due {
                Due::Start(flow) => self.start(flow, t, now)?,
                Due::Stop(flow) => self.stop(flow)?,
            }
        }
        Ok(())
    }

    fn start(&mut self, flow: u32, due: Time, now: Time) -> Result<(), Failure> {
        let spec = &self.flows[flow as usize];
        let progress = &self.shared.progress[flow as usize];
        progress.started_ns.store(due.as_ns(), std::sync::atomic::Ordering::Release);
        progress.set_phase(Phase::Active);
        self.tell(Message::Late(now.saturating_sub(due)));
        if spec.stop != Time::MAX && spec.bytes == Bytes::MAX {
            self.due.push(Reverse((spec.stop, Due::Stop(flow))));
        }
        let events = EpollFlags::EPOLLOUT | EpollFlags::EPOLLIN;
        let socket = &self.shared.connections[flow as usize].sender;
        self.epoll
            .add(socket, EpollEvent::new(events, u64::from(flow)))
            .map_err(|e| Failure::system("waiting for a sender", e))?;
        self.write(flow)
    }

    /// Stops an endless flow: it writes no more.
    fn stop(&mut self, flow: u32) -> Result<(), Failure> {
        self.left[flow as usize] = 0;
        self.shared.progress[flow as usize].set_phase(Phase::Done);
        self.wait_for_answer(flow)
    }

    fn write(&mut self, flow: u32) -> Result<(), Failure> {
        let mut socket = &self.shared.connections[flow as usize].sender;
        let mut turn = TURN;
        while 0 < self.left[flow as usize] && 0 < turn {
            let n = self.left[flow as usize].min(CHUNK.min(turn) as u64) as usize;
            match socket.write(&self.zeros[..n]) {
                Ok(n) => {
                    turn -= n;
                    if self.left[flow as usize] != u64::MAX {
                        self.left[flow as usize] -= n as u64;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(Failure::system(format!("sending flow {flow}"), e)),
            }
        }
        if self.left[flow as usize] == 0 { self.wait_for_answer(flow) } else { Ok(()) }
    }

    /// Waits for the receiver's answer, after everything is written.
    fn wait_for_answer(&self, flow: u32) -> Result<(), Failure> {
        let socket = &self.shared.connections[flow as usize].sender;
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN, u64::from(flow));
        self.epoll.modify(socket, &mut event).map_err(|e| Failure::system("waiting for an answer", e))
    }

    /// Ends a flow whose receiver has answered: the receiver has all bytes, and the sender has their acknowledgment.
    fn finish(&mut self, flow: u32) -> Result<(), Failure> {
        let mut socket = &self.shared.connections[flow as usize].sender;
        match socket.read(&mut [0; 16]) {
            Ok(0) => return Err(Failure::system(format!("flow {flow}"), "its receiver has closed the connection")),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(Failure::system(format!("hearing of flow {flow}"), e)),
        }
        let now = self.shared.clock.now();
        self.epoll.delete(socket).map_err(|e| Failure::system("leaving a sender", e))?;
        self.shared.progress[flow as usize].set_phase(Phase::Done);
        let mut outcome = self.shared.outcome(FlowId(flow), self.ideal[flow as usize])?;
        outcome.fct_ack = Some(now.saturating_sub(outcome.start));
        self.tell(Message::Flow(outcome));
        self.wake_successor(flow, now);
        Ok(())
    }

    /// Schedules the flow that waits for this one, if there is one.
    fn wake_successor(&mut self, flow: u32, now: Time) {
        let waits = |(i, spec): (u32, &FlowSpec)| match spec.trigger {
            Trigger::After(FlowId(before), pause) if before == flow => {
                Some((i, (now + pause).max(spec.start), spec.stop))
            }
            _ => None,
        };
        if let Some((next, start, stop)) = (0..).zip(self.flows).find_map(waits)
            && start < stop
        {
            self.due.push(Reverse((start, Due::Start(next))));
        }
    }

    fn tell(&self, told: Message) {
        // The channel is closed only once the run is over.
        let _ = self.told.send(told);
    }
}
