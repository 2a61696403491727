//! Waiting for events until a time, to the microsecond.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::failure::Failure;

/// The longest wait, in milliseconds, without a check whether the run is over.
const LOOK: u8 = 20;
/// The data of the timer's events.
const TIMER: u64 = u64::MAX;

/// A timer among the events of an epoll.
pub struct Wakeup {
    timer: TimerFd,
}

impl Wakeup {
    /// Creates a timer that an epoll waits for.
    ///
    /// # Errors
    /// If the kernel provides no timer.
    pub fn new(epoll: &Epoll) -> Result<Self, Failure> {
        let failed = |e| Failure::system("making a timer", e);
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC);
        let timer = timer.map_err(failed)?;
        // The timer is never read: it wakes once each time that it is set.
        let once = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(timer.as_fd(), EpollEvent::new(once, TIMER)).map_err(failed)?;
        Ok(Self { timer })
    }

    /// Returns events of sockets, waiting until `next`, or for some milliseconds; there may be none.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub fn wait<'e>(
        &self,
        epoll: &Epoll,
        next: Option<Instant>,
        events: &'e mut [EpollEvent],
    ) -> Result<impl Iterator<Item = &'e EpollEvent> + use<'e>, Failure> {
        if let Some(next) = next {
            // A time of zero would disarm the timer.
            let left = next.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
            let once = Expiration::OneShot(TimeSpec::nanoseconds(left.as_nanos() as i64));
            self.timer.set(once, TimerSetTimeFlags::empty()).map_err(|e| Failure::system("setting a timer", e))?;
        }
        let n = match epoll.wait(events, EpollTimeout::from(LOOK)) {
            Ok(n) => n,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(e) => return Err(Failure::system("waiting for sockets", e)),
        };
        Ok(events[..n].iter().filter(|event| event.data() != TIMER))
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::epoll::EpollCreateFlags;

    use super::*;

    #[test]
    fn a_timer_wakes_once() {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let wakeup = Wakeup::new(&epoll).unwrap();
        let mut events = [EpollEvent::empty(); 4];
        assert_eq!(wakeup.wait(&epoll, Some(Instant::now()), &mut events).unwrap().count(), 0);
        // Whatever has woken it before, nothing wakes it now.
        epoll.wait(&mut events, EpollTimeout::from(LOOK)).unwrap();
        assert_eq!(epoll.wait(&mut events, EpollTimeout::ZERO), Ok(0));
    }
}
