//! A log whose failures never end the program.
//!
//! Lines are written to stderr by a thread of their own. A line that finds the queue of that thread full, or that
//! stderr does not take (a full disk, a closed pipe), is dropped and counted. [`Throttle`] prevents a peer from filling
//! the log.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus::IntCounter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Largest number of lines that wait for the thread.
const WAITING: usize = 1024;

/// Time that an ending program gives its last lines.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The exit status after a panic, which is also that of a panic in a program's first thread.
pub const PANICKED: i32 = 101;

enum Job {
    Line(Vec<u8>),
    /// Request for an answer once all earlier lines are written.
    Flush(SyncSender<()>),
}

/// A log. Clones write to the same one.
#[derive(Clone, Debug)]
pub struct Log {
    jobs: SyncSender<Job>,
    lost: IntCounter,
}

impl Log {
    /// Starts a log to `out`. Lines that cannot be written are counted in `lost`.
    ///
    /// # Errors
    /// If no thread is available.
    pub fn to(out: impl Write + Send + 'static, lost: IntCounter) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(WAITING);
        let of_thread = lost.clone();
        std::thread::Builder::new().name("fairrate-log".into()).spawn(move || write_all(&waiting, out, &of_thread))?;
        Ok(Self { jobs, lost })
    }

    /// Starts the log of a program, to stderr, with the filter in `RUST_LOG` or else at level `info`. From then on a
    /// panic in any thread is logged and ends the whole program with the status [`PANICKED`].
    ///
    /// # Errors
    /// If no thread is available.
    ///
    /// # Panics
    /// If the program has a log already.
    pub fn start(lost: IntCounter) -> io::Result<Self> {
        let log = Self::to(io::stderr(), lost)?;
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let has_colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(has_colour);
        // The subscriber would log its own errors by a macro that panics when stderr is closed.
        lines.log_internal_errors(false).with_writer(log.clone()).init();
        log.end_on_panic();
        Ok(log)
    }

    /// Makes a panic in any thread write to this log and end the program with the status [`PANICKED`]: a service that
    /// has lost a thread is worse than one that is restarted.
    pub fn end_on_panic(&self) {
        let log = self.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("without a name");
            log.line(format!("error: thread `{name}`: {panic}\n").into_bytes());
            log.flush();
            std::process::exit(PANICKED);
        }));
    }

    /// Writes a line, or counts it as lost.
    fn line(&self, line: Vec<u8>) {
        if self.jobs.try_send(Job::Line(line)).is_err() {
            self.lost.inc();
        }
    }

    /// Waits until all lines are written, but not for long.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.jobs.try_send(Job::Flush(done)).is_ok() {
            // A log that takes no lines does not block the caller.
            let _: Result<(), RecvTimeoutError> = written.recv_timeout(LAST_WORDS);
        }
    }
}

fn write_all(jobs: &Receiver<Job>, mut out: impl Write, lost: &IntCounter) {
    for job in jobs {
        match job {
            Job::Line(line) => {
                if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                    lost.inc();
                }
            }
            Job::Flush(done) => {
                let _ = done.try_send(());
            }
        }
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(self)
    }
}

/// Writes one line to a [`Log`], and never fails.
#[derive(Debug)]
pub struct LineWriter<'a>(&'a Log);

impl Write for LineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.line(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A filter that lets few lines of a kind pass: [`Throttle::BURST`] at once, and after that one every
/// [`Throttle::INTERVAL`].
///
/// ```
/// use fairrate_daemon::logging::Throttle;
///
/// let refused = Throttle::new();
/// let lines: Vec<_> = (0..7).map(|_| refused.pass()).collect();
/// // Five pass, and two are left out. The next one that passes can say "left_out=2".
/// assert_eq!(lines, [Some(0), Some(0), Some(0), Some(0), Some(0), None, None]);
/// ```
#[derive(Debug)]
pub struct Throttle(Mutex<Throttled>);

#[derive(Debug)]
struct Throttled {
    /// Number of lines that may pass at once.
    tokens: u32,
    /// Time at which the last token was added; `None`: all tokens are there.
    since: Option<Instant>,
    left_out: u64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new()
    }
}

impl Throttle {
    /// Number of lines that pass at once.
    pub const BURST: u32 = 5;

    /// The time after which one more line passes.
    pub const INTERVAL: Duration = Duration::from_secs(10);

    /// Creates a throttle that has seen no line.
    pub const fn new() -> Self {
        Self(Mutex::new(Throttled { tokens: Self::BURST, since: None, left_out: 0 }))
    }

    /// Returns `None` if the line has to be left out; otherwise the number of lines left out since the last one that
    /// passed.
    pub fn pass(&self) -> Option<u64> {
        self.pass_at(Instant::now())
    }

    /// Returns the result of [`Throttle::pass`] at the time `now`.
    pub fn pass_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refill(now);
        if state.tokens == 0 {
            state.left_out += 1;
            return None;
        }
        state.tokens -= 1;
        Some(std::mem::take(&mut state.left_out))
    }

    /// Returns the number of lines left out since the last one that passed, if there are any and one may pass now, and
    /// resets it. A service calls this from time to time, so that the last lines of a flood are summed up too.
    pub fn sum_up(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refill(Instant::now());
        if state.left_out == 0 || state.tokens == 0 {
            return None;
        }
        state.tokens -= 1;
        Some(std::mem::take(&mut state.left_out))
    }
}

impl Throttled {
    fn refill(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let steps = now.saturating_duration_since(since).as_nanos() / Throttle::INTERVAL.as_nanos();
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(steps).min(Throttle::BURST);
        self.since = Some(if self.tokens == Throttle::BURST { now } else { since + Throttle::INTERVAL * steps });
    }
}

/// Returns `text` with at most 64 characters, none of which a terminal or a reader of logs could misinterpret.
///
/// ```
/// use fairrate_daemon::logging::harmless;
///
/// assert_eq!(harmless("10.0.0.1\n\x1b[2J"), "10.0.0.1??[2J");
/// ```
pub fn harmless(text: &str) -> String {
    let seen = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().take(64).map(seen).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn counter() -> IntCounter {
        IntCounter::new("lost", "Lines").expect("the name is valid")
    }

    /// A writer that collects bytes once it is unlocked.
    struct Gate(Arc<Mutex<Vec<u8>>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_on_a_full_disk_are_counted() {
        let lost = counter();
        let log = Log::to(Full, lost.clone()).unwrap();
        (0..10).for_each(|i| writeln!(log.make_writer(), "line {i}").unwrap());
        // A line that is written in pieces counts once for each.
        while lost.get() < 10 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_logs_does_not_wait_for_a_log_that_is_stuck() {
        let (lost, out) = (counter(), Arc::new(Mutex::new(Vec::new())));
        let log = Log::to(Gate(Arc::clone(&out)), lost.clone()).unwrap();
        let stuck = out.lock().unwrap();
        // One line may be on its way out; the others fill the queue.
        (0..WAITING + 11).for_each(|_| log.make_writer().write_all(b"a line\n").unwrap());
        assert!((10..=11).contains(&lost.get()), "{}", lost.get());
        drop(stuck);
        while out.lock().unwrap().len() < 7 * WAITING {
            log.flush();
        }
    }

    #[test]
    fn a_flood_of_lines_is_summed_up() {
        let (throttle, start) = (Throttle::new(), Instant::now());
        let passed = |at: Duration| throttle.pass_at(start + at);
        assert_eq!([0; 5].map(|_| passed(Duration::ZERO)), [Some(0); 5]);
        assert_eq!([0; 100].map(|_| passed(Duration::from_secs(1))), [None; 100]);
        assert_eq!(passed(Duration::from_secs(10)), Some(100));
        assert_eq!(passed(Duration::from_secs(19)), None);
        assert_eq!(passed(Duration::from_secs(20)), Some(1));
        // After a quiet time as many lines pass at once as in the beginning.
        assert_eq!([0; 6].map(|_| passed(Duration::from_secs(1000)).is_some()), [true, true, true, true, true, false]);
    }
}
