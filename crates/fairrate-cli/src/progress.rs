//! Progress on stderr: on a terminal, a bar for each run and one for all of them; otherwise a line now and then, or
//! nothing.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairrate_report::format;
use fairrate_sim::{Progress, SimConfig};
use fairrate_units::{Bytes, Time};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Least time between two lines without a terminal.
const LINE_EVERY_S: f64 = 5.0;
/// Number of steps of a bar.
const STEPS: u64 = 1_000;

/// The display of the progress of all runs of a command.
pub struct Board {
    mode: Mode,
    all: Option<All>,
}

enum Mode {
    Bars(MultiProgress),
    Lines(Mutex<Lines>),
    Silent,
}

impl Board {
    /// Returns a board with bars on a terminal, lines elsewhere, or nothing if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let mode = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Mode::Silent,
            (false, true) => Mode::Bars(MultiProgress::new()),
            (false, false) => Mode::Lines(Mutex::new(Lines::new())),
        };
        Self { mode, all: None }
    }

    /// Returns a board for `n` runs, of which `taken_over` are complete already.
    pub fn of_runs(quiet: bool, n: usize, taken_over: usize) -> Self {
        let board = Self::new(quiet);
        if !quiet && 0 < taken_over {
            // A failure to write to stderr is no reason to stop.
            let line = format!("{taken_over} of {n} runs are complete already and taken over (--fresh: do them again)");
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        let n = n - taken_over;
        let bar = board.bar("all runs");
        let count = Mutex::new(Count::default());
        Self { all: (1 < n).then(|| All { bar, n, started: Instant::now(), count }), ..board }
    }

    fn bar(&self, label: &str) -> ProgressBar {
        match &self.mode {
            Mode::Bars(bars) => bars.add(ProgressBar::new(STEPS).with_style(style()).with_prefix(label.to_owned())),
            Mode::Lines(_) | Mode::Silent => ProgressBar::hidden(),
        }
    }

    /// Prints a line, unless the board is silent.
    pub fn note(&self, line: &str) {
        match &self.mode {
            Mode::Bars(bars) => drop(bars.println(line)),
            // A failure to write to stderr is no reason to stop.
            Mode::Lines(_) => drop(writeln!(std::io::stderr(), "{line}")),
            Mode::Silent => {}
        }
    }

    /// Adds a run that begins.
    pub fn job(&self, label: &str, goal: Goal) -> Job<'_> {
        let id = self.all.as_ref().map_or(0, All::begin);
        Job {
            board: self,
            id,
            bar: self.bar(label),
            label: label.to_owned(),
            goal,
            started: Instant::now(),
            pace: Pace::default(),
        }
    }

    /// Counts a run that has ended, or failed before it began.
    pub fn ended(&self) {
        if let Some(all) = &self.all {
            all.with(|count| count.ended += 1);
            all.show();
        }
    }

    /// Removes the bar of all runs.
    pub fn clear(&self) {
        if let Some(all) = &self.all {
            all.bar.finish_and_clear();
        }
    }

    /// Prints a line without a terminal, if it is due.
    fn line(&self, fraction: f64, text: impl FnOnce() -> String) {
        let Mode::Lines(lines) = &self.mode else { return };
        let Ok(mut lines) = lines.lock() else { return };
        let elapsed_s = lines.started.elapsed().as_secs_f64();
        if lines.is_due(elapsed_s, fraction) {
            let _ = writeln!(std::io::stderr(), "{}", text());
        }
    }
}

/// The rule for the times of lines: at each tenth of the work, and each time the elapsed time has doubled.
struct Lines {
    started: Instant,
    last_s: f64,
    next_s: f64,
    next_fraction: f64,
}

impl Lines {
    fn new() -> Self {
        Self { started: Instant::now(), last_s: 0.0, next_s: LINE_EVERY_S, next_fraction: 0.1 }
    }

    fn is_due(&mut self, elapsed_s: f64, fraction: f64) -> bool {
        let has_changed = self.next_s <= elapsed_s || self.next_fraction <= fraction;
        if elapsed_s < self.last_s + LINE_EVERY_S || !has_changed {
            return false;
        }
        (self.last_s, self.next_s) = (elapsed_s, 2.0 * elapsed_s);
        self.next_fraction = ((10.0 * fraction).floor() + 1.0) / 10.0;
        true
    }
}

/// The speed of work. As it may vary, it is measured over the latter half of the time.
#[derive(Debug, Default)]
struct Pace {
    /// Pairs of the seconds from the start and the share of the work done by then; ever further apart.
    marks: Vec<(f64, f64)>,
}

impl Pace {
    /// Returns the remaining time in seconds; `None` if too little is done to estimate it, or the work makes no
    /// progress.
    fn seconds_left(&mut self, elapsed_s: f64, fraction: f64) -> Option<f64> {
        if self.marks.last().is_none_or(|(at_s, _)| 1.1 * at_s < elapsed_s) {
            self.marks.push((elapsed_s, fraction));
        }
        let earlier = self.marks.iter().rev().find(|(at_s, _)| 2.0 * at_s <= elapsed_s);
        let &(since_s, done) = earlier.unwrap_or(&(0.0, 0.0));
        (0.01 < fraction && done < fraction).then(|| (1.0 - fraction) * (elapsed_s - since_s) / (fraction - done))
    }
}

/// The progress of all runs together.
struct All {
    bar: ProgressBar,
    n: usize,
    started: Instant,
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    pace: Pace,
    ended: usize,
    next_id: usize,
    running: HashMap<usize, Running>,
}

/// The progress of a run.
#[derive(Clone, Copy, Default)]
struct Running {
    /// Share of the run that is done, from 0 to 1.
    fraction: f64,
    /// Estimated remaining time in seconds; 0 if unknown.
    left_s: f64,
}

impl Count {
    /// Returns the number of runs done, with fractions for those that go on.
    fn done(&self) -> f64 {
        self.ended as f64 + self.running.values().map(|r| r.fraction).sum::<f64>()
    }

    /// Returns a line about the runs, for instance `12 of 40 runs done, 2 running, 35 s left`.
    fn describe(&mut self, n: usize, elapsed: Duration) -> String {
        // A run that has just ended may not yet be counted, and a run that was counted may still be among the running
        // ones.
        let at_this_pace = self.pace.seconds_left(elapsed.as_secs_f64(), (self.done() / n as f64).min(1.0));
        // Runs of a grid differ in length, so a long run may take longer than all others together.
        let left = at_this_pace.map(|left| self.running.values().map(|r| r.left_s).fold(left, f64::max));
        let left = left.map_or_else(String::new, |left| format!(", {} left", rough(left)));
        format!("{} of {n} runs done, {} running{left}", self.ended, self.running.len())
    }
}

/// Returns a length of time with a suitable unit.
fn rough(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

impl All {
    fn with<T>(&self, f: impl FnOnce(&mut Count) -> T) -> T {
        f(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self) -> usize {
        self.with(|count| {
            count.next_id += 1;
            count.running.insert(count.next_id, Running::default());
            count.next_id
        })
    }

    /// Returns the share of all runs that is done.
    fn fraction(&self) -> f64 {
        self.with(|count| count.done()) / self.n as f64
    }

    fn describe(&self) -> String {
        self.with(|count| count.describe(self.n, self.started.elapsed()))
    }

    fn show(&self) {
        self.bar.set_position((self.fraction() * STEPS as f64) as u64);
        self.bar.set_message(self.describe());
    }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{prefix:>16} {bar:28} {msg}");
    style.map_or_else(|_| ProgressStyle::default_bar(), |s| s.progress_chars("━╸─"))
}

/// The conditions that end a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The simulated time at which it ends, if there is one.
    at: Option<Time>,
    /// The number of finite flows whose completion ends it, if that ends it.
    flows: Option<u64>,
    /// Number of finite flows of the workload.
    n_flows: u64,
}

impl Goal {
    /// Returns the goal of a run.
    pub fn of(config: &SimConfig) -> Self {
        let n_flows = config.flows.iter().filter(|f| f.bytes != Bytes::MAX).count() as u64;
        Self { at: config.stop.at, flows: config.stop.when_flows_done.then_some(n_flows), n_flows }
    }

    /// Returns the share of the run that is done, from 0 to 1: that of the condition that is nearer.
    fn fraction(&self, progress: &Progress) -> f64 {
        let part = |done: f64, all: f64| if 0.0 < all { (done / all).min(1.0) } else { 0.0 };
        let time = self.at.map(|at| part(progress.now.as_us_f64(), at.as_us_f64()));
        let flows = self.flows.map(|n| part(progress.flows_done as f64, n as f64));
        time.unwrap_or(0.0).max(flows.unwrap_or(0.0))
    }

    /// Returns a line about the run, for instance `1.20 ms of 4.00 ms, 5.31 M packet-hops/s, 12 of 40 flows, 3 s left`.
    fn describe(&self, progress: &Progress, elapsed: Duration, left_s: Option<f64>) -> String {
        let now = format::time_ns(progress.now.as_ns_f64());
        let at = self.at.map_or_else(String::new, |at| format!(" of {}", format::time_ns(at.as_ns_f64())));
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let speed = progress.packet_hops as f64 / seconds / 1e6;
        let left = left_s.map_or_else(String::new, |s| format!(", {} left", rough(s)));
        format!("{now}{at}, {speed:.2} M packet-hops/s, {} of {} flows{left}", progress.flows_done, self.n_flows)
    }
}

/// A run on the board, which is removed when this is dropped.
pub struct Job<'a> {
    board: &'a Board,
    id: usize,
    bar: ProgressBar,
    label: String,
    goal: Goal,
    started: Instant,
    pace: Pace,
}

impl Job<'_> {
    /// Shows the progress of the run.
    pub fn update(&mut self, progress: &Progress) {
        let (elapsed, fraction) = (self.started.elapsed(), self.goal.fraction(progress));
        let left_s = self.pace.seconds_left(elapsed.as_secs_f64(), fraction);
        let describe = || self.goal.describe(progress, elapsed, left_s);
        if let Some(all) = &self.board.all {
            all.with(|count| count.running.insert(self.id, Running { fraction, left_s: left_s.unwrap_or(0.0) }));
        }
        match &self.board.mode {
            Mode::Silent => {}
            Mode::Bars(_) => {
                self.bar.set_position((self.goal.fraction(progress) * STEPS as f64) as u64);
                self.bar.set_message(describe());
                self.board.all.iter().for_each(All::show);
            }
            Mode::Lines(_) => match &self.board.all {
                Some(all) => self.board.line(all.fraction(), || all.describe()),
                None => self.board.line(fraction, || format!("{}: {}", self.label, describe())),
            },
        }
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some(all) = &self.board.all {
            all.with(|count| count.running.remove(&self.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64, flows_done: u64) -> Progress {
        Progress { now: Time::from_us(us), packet_hops: 6_000_000, flows_done, finished: false }
    }

    #[test]
    fn the_nearer_end_counts() {
        let both = Goal { at: Some(Time::from_us(100)), flows: Some(10), n_flows: 10 };
        assert_eq!([both.fraction(&at(25, 1)), both.fraction(&at(25, 9))], [0.25, 0.9]);
        let endless = Goal { at: None, flows: Some(0), n_flows: 0 };
        assert_eq!(endless.fraction(&at(25, 0)), 0.0);
    }

    #[test]
    fn a_line_says_how_long_it_will_take() {
        let goal = Goal { at: Some(Time::from_ms(4)), flows: None, n_flows: 40 };
        let line = goal.describe(&at(1_000, 12), Duration::from_secs(2), Some(6.0));
        assert_eq!(line, "1.00 ms of 4.00 ms, 3.00 M packet-hops/s, 12 of 40 flows, 6 s left");
    }

    #[test]
    fn lines_are_few_however_long_a_run_takes() {
        // Checked ten times a second: with steady progress, in fits, and without a visible end.
        let n_lines = |total_s: u32, fraction: &dyn Fn(f64) -> f64| {
            let mut lines = Lines::new();
            let times = (1..=10 * total_s).map(|i| f64::from(i) / 10.0);
            times.filter(|&at| lines.is_due(at, fraction(at / f64::from(total_s)))).count()
        };
        for total_s in [60, 1_500, 36_000] {
            for fraction in [&|x| x, &|x: f64| x.powi(8), &|x: f64| x.powf(0.1), &|_| 0.0] as [&dyn Fn(f64) -> f64; 4] {
                let n = n_lines(total_s, fraction);
                assert!((3..=24).contains(&n), "{n} lines in {total_s} s");
            }
        }
        assert_eq!(n_lines(4, &|x| x), 0);
    }

    #[test]
    fn what_is_left_follows_the_pace_of_late() {
        let mut pace = Pace::default();
        for s in 1..=100 {
            pace.seconds_left(f64::from(s), f64::from(s) / 200.0);
        }
        assert_eq!(pace.seconds_left(100.0, 0.5).map(f64::round), Some(100.0));
        // From here on ten times slower: 0.5 per 1,000 s.
        for s in 101..=400 {
            pace.seconds_left(f64::from(s), 0.5 + f64::from(s - 100) / 2_000.0);
        }
        let left = pace.seconds_left(400.0, 0.65).expect("it goes on");
        assert!((left - 700.0).abs() < 1.0, "{left}");
        // Without progress the remaining time is unknown.
        for s in 401..=2_000 {
            pace.seconds_left(f64::from(s), 0.65);
        }
        assert_eq!(pace.seconds_left(2_000.0, 0.65), None);
        assert_eq!(Pace::default().seconds_left(10.0, 0.001), None);
    }

    #[test]
    fn what_is_left_counts_parts_of_runs() {
        let mut count = Count { ended: 3, ..Count::default() };
        let half = Running { fraction: 0.5, left_s: 10.0 };
        count.running.extend([(4, half), (5, half)]);
        // 4 of 20 in 30 s: 16 more take 120 s.
        assert_eq!(count.describe(20, Duration::from_secs(30)), "3 of 20 runs done, 2 running, 2 min left");
        count.running.insert(5, Running { left_s: 300.0, ..half });
        assert_eq!(count.describe(20, Duration::from_secs(30)), "3 of 20 runs done, 2 running, 5 min left");
        assert_eq!(Count::default().describe(20, Duration::ZERO), "0 of 20 runs done, 0 running");
        assert_eq!([35.2, 600.0, 9_000.0].map(rough), ["35 s", "10 min", "2.5 h"]);
    }
}
