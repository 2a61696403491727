//! Progress on stderr: a bar for each run on a terminal, else a line now and then, or nothing.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fairrate_report::format;
use fairrate_sim::{Progress, SimConfig};
use fairrate_units::{Bytes, Time};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Steps of a bar.
const STEPS: u64 = 1_000;

/// Where all runs of a command show how far they are.
pub struct Board {
    mode: Mode,
}

enum Mode {
    Bars(MultiProgress),
    Lines(Mutex<Instant>),
    Silent,
}

impl Board {
    /// Bars, lines or nothing, as stderr and `--quiet` want it.
    pub fn new(quiet: bool) -> Self {
        let mode = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Mode::Silent,
            (false, true) => Mode::Bars(MultiProgress::new()),
            (false, false) => Mode::Lines(Mutex::new(Instant::now())),
        };
        Self { mode }
    }

    /// A run begins.
    pub fn job(&self, label: &str, goal: Goal) -> Job<'_> {
        let bar = match &self.mode {
            Mode::Bars(bars) => bars.add(ProgressBar::new(STEPS).with_style(style()).with_prefix(label.to_owned())),
            Mode::Lines(_) | Mode::Silent => ProgressBar::hidden(),
        };
        Job { board: self, bar, label: label.to_owned(), goal, started: Instant::now() }
    }
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{prefix:>16} {bar:28} {msg}");
    style.map_or_else(|_| ProgressStyle::default_bar(), |s| s.progress_chars("━╸─"))
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// At this simulated time, if any.
    at: Option<Time>,
    /// When these many finite flows are done, if that ends it.
    flows: Option<u64>,
    /// Finite flows of the workload.
    n_flows: u64,
}

impl Goal {
    /// The goal of a run.
    pub fn of(config: &SimConfig) -> Self {
        let n_flows = config.flows.iter().filter(|f| f.bytes != Bytes::MAX).count() as u64;
        Self { at: config.stop.at, flows: config.stop.when_flows_done.then_some(n_flows), n_flows }
    }

    /// How much of the run is over, from 0 to 1: whichever end is nearer.
    fn fraction(&self, progress: &Progress) -> f64 {
        let part = |done: f64, all: f64| if 0.0 < all { (done / all).min(1.0) } else { 0.0 };
        let time = self.at.map(|at| part(progress.now.as_us_f64(), at.as_us_f64()));
        let flows = self.flows.map(|n| part(progress.flows_done as f64, n as f64));
        time.unwrap_or(0.0).max(flows.unwrap_or(0.0))
    }

    /// A line about it, for instance `1.20 ms of 4.00 ms, 5.31 M packet-hops/s, 12 of 40 flows, 3 s left`.
    fn describe(&self, progress: &Progress, elapsed: Duration) -> String {
        let now = format::time_ns(progress.now.as_ns_f64());
        let at = self.at.map_or_else(String::new, |at| format!(" of {}", format::time_ns(at.as_ns_f64())));
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let speed = progress.packet_hops as f64 / seconds / 1e6;
        let fraction = self.fraction(progress);
        let left = if 0.01 < fraction {
            format!(", {:.0} s left", seconds * (1.0 - fraction) / fraction)
        } else {
            String::new()
        };
        format!("{now}{at}, {speed:.2} M packet-hops/s, {} of {} flows{left}", progress.flows_done, self.n_flows)
    }
}

/// A run on the board.
pub struct Job<'a> {
    board: &'a Board,
    bar: ProgressBar,
    label: String,
    goal: Goal,
    started: Instant,
}

impl Job<'_> {
    /// Shows how far it is.
    pub fn update(&mut self, progress: &Progress) {
        match &self.board.mode {
            Mode::Silent => {}
            Mode::Bars(_) => {
                self.bar.set_position((self.goal.fraction(progress) * STEPS as f64) as u64);
                self.bar.set_message(self.goal.describe(progress, self.started.elapsed()));
            }
            Mode::Lines(last) => {
                let Ok(mut last) = last.lock() else { return };
                if LINE_EVERY <= last.elapsed() {
                    *last = Instant::now();
                    let line = self.goal.describe(progress, self.started.elapsed());
                    // Nobody may be reading stderr any more; that is no reason to stop.
                    let _ = writeln!(std::io::stderr(), "{}: {line}", self.label);
                }
            }
        }
    }

    /// It is over.
    pub fn finish(self) {
        self.bar.finish_and_clear();
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
        let line = goal.describe(&at(1_000, 12), Duration::from_secs(2));
        assert_eq!(line, "1.00 ms of 4.00 ms, 3.00 M packet-hops/s, 12 of 40 flows, 6 s left");
    }
}
