//! Priorities of the process and of its threads.

/// Lets the calling thread, and those that it starts, run before other programs. If this is not allowed, they keep
/// their priority.
pub fn before_other_programs() {
    // SAFETY: it takes a number and keeps nothing.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::nice(-20) };
}

/// Gives the calling thread the lowest real-time priority: it runs before all threads without such a priority, and its
/// sleeps end on time. If this is not allowed, the thread keeps its priority.
pub fn first_of_all() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the parameters are valid for the call, which keeps nothing.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    let _ = nix::sys::prctl::set_timerslack(1);
}
