//! The thread that keeps packets for the delays of their links.
//!
//! Each end of such a link is a veth pair of its own, whose far end is in the namespace of wires. Packets that leave a
//! port's queue arrive at that far end, and programs at the near end see them at once, as on a link without delay. The
//! thread takes each packet, keeps it for the delay, and sends it to the other port.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairrate_results::DelaySummary;
use fairrate_sim::PortId;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::delay::{DelayLine, HEADER};
use crate::failure::Failure;
use crate::field::FULL_PACKET;
use crate::lateness::Lateness;
use crate::namespaces::inside;
use crate::plan::{Plan, wire};
use crate::priority::first_of_all;
use crate::wire::{WireEnd, control};

/// Number of packets taken from a device before others have a turn.
const TURN: usize = 64;
/// Milliseconds between two checks whether the run is over.
const LOOK: u8 = 20;

/// Counters of the lines.
#[derive(Debug, Default)]
struct Counts {
    late: Lateness,
    /// Number of packets that found no room in a line, or that the kernel did not accept.
    drops: u64,
}

/// All links with a delay of their own, until this value is dropped.
#[derive(Debug)]
pub struct Lines {
    ends: Arc<Vec<WireEnd>>,
    counts: Arc<Mutex<Counts>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Lines {
    /// Starts the thread that keeps packets; returns `None` if no link has a delay of its own.
    ///
    /// # Errors
    /// If the devices do not exist.
    pub fn begin(plan: &Plan<'_>) -> Result<Option<Self>, Failure> {
        let ports: Vec<PortId> = plan.delayed_ports().collect();
        if ports.is_empty() {
            return Ok(None);
        }
        let open = || ports.iter().map(|port| WireEnd::open(&wire(*port))).collect::<Result<Vec<_>, Failure>>();
        let ends = Arc::new(inside(&plan.wires(), open)?);
        let (counts, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let lines =
            ports.iter().map(|port| plan.link(*port)).map(|link| DelayLine::new(link.delay, link.rate)).collect();
        let keeper = Keeper::new(Arc::clone(&ends), lines, Arc::clone(&counts), Arc::clone(&stop))?;
        let thread = std::thread::Builder::new().name("delays".to_owned()).spawn(move || keeper.run());
        let thread = thread.map_err(|e| Failure::system("starting a thread", e))?;
        Ok(Some(Self { ends, counts, stop, thread: Some(thread) }))
    }

    /// Resets the counters.
    ///
    /// # Errors
    /// If the kernel does not report its counters.
    pub fn count_anew(&self) -> Result<(), Failure> {
        self.unread()?;
        *lock(&self.counts) = Counts::default();
        Ok(())
    }

    /// Returns `true` if the thread has failed.
    pub fn have_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the thread and returns its counters.
    ///
    /// # Errors
    /// If the kernel does not report its counters, or the thread has failed, with the reason.
    pub fn end(mut self) -> Result<DelaySummary, Failure> {
        self.join()?;
        let unread = self.unread()?;
        let counts = lock(&self.counts);
        Ok(DelaySummary {
            links: self.ends.len() as u32 / 2,
            packets: counts.late.n(),
            late_p50_ns: counts.late.percentile(50).as_ns(),
            late_p99_ns: counts.late.percentile(99).as_ns(),
            late_max_ns: counts.late.max().as_ns(),
            drops: counts.drops + unread,
            ..DelaySummary::default()
        })
    }

    fn unread(&self) -> Result<u64, Failure> {
        let all: io::Result<u64> = self.ends.iter().map(WireEnd::take_drops).sum();
        all.map_err(|e| Failure::system("asking for drops of links with a delay", e))
    }

    fn join(&mut self) -> Result<(), Failure> {
        self.stop.store(true, Ordering::Release);
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The reason of a failure was available from `end`.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Locks the counters, which are correct even after a panic of the other thread.
fn lock(counts: &Mutex<Counts>) -> std::sync::MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of the thread. Line `i` is from end `i` to its partner.
struct Keeper {
    ends: Arc<Vec<WireEnd>>,
    lines: Vec<DelayLine>,
    counts: Arc<Mutex<Counts>>,
    stop: Arc<AtomicBool>,
    epoll: Epoll,
    /// Shortest time before which a packet that arrives now is not due.
    soonest: Duration,
}

impl Keeper {
    fn new(
        ends: Arc<Vec<WireEnd>>,
        lines: Vec<DelayLine>,
        counts: Arc<Mutex<Counts>>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let failed = |e| Failure::system("waiting for packets", e);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        for (i, end) in ends.iter().enumerate() {
            epoll.add(end, EpollEvent::new(EpollFlags::EPOLLIN, i as u64)).map_err(failed)?;
        }
        let soonest = lines.iter().map(DelayLine::delay).min().unwrap_or_default();
        Ok(Self { ends, lines, counts, stop, epoll, soonest })
    }

    fn run(mut self) -> Result<(), Failure> {
        first_of_all();
        let mut events = [EpollEvent::empty(); 64];
        let (mut packet, mut control) = ([0; FULL_PACKET as usize + HEADER], control());
        while !self.stop.load(Ordering::Acquire) {
            for event in self.wait(&mut events)? {
                self.take(event.data() as usize, &mut packet, &mut control)?;
            }
            self.send_what_is_due()?;
        }
        Ok(())
    }

    /// Waits until a packet is due, or may be, and returns the ends at which packets have arrived. The kernel has
    /// stamped them, so they need not be taken at once.
    fn wait<'e>(&self, events: &'e mut [EpollEvent]) -> Result<&'e [EpollEvent], Failure> {
        let next = self.lines.iter().filter_map(DelayLine::due).min();
        if let Some(next) = next {
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(self.soonest / 2));
        }
        let timeout = next.map_or(EpollTimeout::from(LOOK), |_| EpollTimeout::ZERO);
        match self.epoll.wait(events, timeout) {
            Ok(n) => Ok(&events[..n]),
            Err(Errno::EINTR) => Ok(&[]),
            Err(e) => Err(Failure::system("waiting for packets", e)),
        }
    }

    fn take(&mut self, i: usize, packet: &mut [u8], control: &mut [u8]) -> Result<(), Failure> {
        for _ in 0..TURN {
            let received = self.ends[i].receive(packet, control);
            let Some((length, arrived)) = received.map_err(|e| Failure::system("taking a packet", e))? else {
                return Ok(());
            };
            if !self.lines[i].push(arrived, &packet[..length]) {
                lock(&self.counts).drops += 1;
            }
        }
        Ok(())
    }

    fn send_what_is_due(&mut self) -> Result<(), Failure> {
        let mut counts = lock(&self.counts);
        for (i, line) in self.lines.iter_mut().enumerate() {
            // Port numbers of a link differ in the last bit, and so do the indices of its ends.
            let to = &self.ends[i ^ 1];
            while let Some((due, packet)) = line.due().zip(line.first()) {
                let now = Instant::now();
                if now < due {
                    break;
                }
                match to.send(&packet) {
                    Ok(()) => counts.late.add(now - due),
                    Err(e) if is_full(&e) => counts.drops += 1,
                    Err(e) => return Err(Failure::system("sending a packet on", e)),
                }
                line.pop();
            }
        }
        Ok(())
    }
}

/// Returns `true` if the kernel has no room for the packet.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN))
}
