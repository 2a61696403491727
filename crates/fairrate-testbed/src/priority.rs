//! A thread that comes before others.

/// From now on the thread runs as soon as it can, before all threads without a priority in real time, and its sleeps end on time.
/// Where that is not allowed, it goes on as it is.
pub fn first_of_all() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the parameters are valid for the call, which keeps nothing.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    let _ = nix::sys::prctl::set_timerslack(1);
}
