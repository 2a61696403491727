//! The queues of probed ports over time as a heat map.

use std::fmt::Write as _;

use fairrate_text::escape;

use crate::format;
use crate::model::{PortSeries, RunData};
use crate::panel::TimeUnit;
use crate::picture::{CHARACTER, Place, legend, text};
use crate::ticks;

/// Title of the picture.
pub(crate) const TITLE: &str = "Queues over time";
/// Largest number of ports.
const MAX_PORTS: usize = 32;
/// Number of stretches of time.
const BINS: usize = 230;
/// Shares of the longest queue at which the colour changes.
const BOUNDS: [f64; 6] = [1.0 / 64.0, 1.0 / 32.0, 1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0];
const WIDTH: f64 = 1150.0;
const ROW: f64 = 13.0;

/// The longest queue of each port in each stretch of the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueueMap {
    /// Name and queues in bytes of each port, the longest queue first.
    rows: Vec<(String, Vec<f64>)>,
    /// Number of probed ports.
    probed: usize,
    longest: f64,
    end_ns: f64,
}

impl QueueMap {
    /// Returns the map of a run; `None` if less than two ports are probed, or all queues were empty.
    pub(crate) fn of(run: &RunData) -> Option<Self> {
        let end_ns = run.totals.end_ns;
        let peak = |port: &PortSeries| port.qlen_bytes.iter().copied().fold(0.0, f64::max);
        let mut ports: Vec<(f64, &PortSeries)> = run.links().map(|port| (peak(port), port)).collect();
        let (probed, longest) = (ports.len(), ports.iter().map(|(peak, _)| *peak).fold(0.0, f64::max));
        if probed < 2 || longest == 0.0 || end_ns <= 0.0 {
            return None;
        }
        ports.sort_by(|a, b| b.0.total_cmp(&a.0));
        ports.truncate(MAX_PORTS);
        let rows = ports.iter().map(|(_, port)| (port.name.clone(), longest_in_bins(port, end_ns))).collect();
        Some(Self { rows, probed, longest, end_ns })
    }

    /// Returns a note on what is drawn.
    fn note(&self) -> String {
        let n = self.rows.len();
        let which = if n < self.probed {
            format!("The {n} of {} probed ports with the longest queues, longest first", self.probed)
        } else {
            format!("The {n} probed ports, longest queue first")
        };
        format!(
            "{which}. A colour is the longest sampled queue in {}; the strongest is above half of {}.",
            format::time_ns(self.end_ns / BINS as f64),
            format::bytes(self.longest)
        )
    }

    /// Returns the part of the page with the map.
    pub(crate) fn section(&self) -> String {
        format!(
            "<div class=\"figs heat\"><section class=\"fig wide\"><h3>{TITLE}</h3><p class=\"note\">{}</p><div class=\"plot\">{}</div></section></div>\n",
            escape(&self.note()),
            self.svg(Place::Page)
        )
    }

    /// Returns the map as a file.
    pub(crate) fn file(&self) -> String {
        self.svg(Place::File)
    }

    /// Returns the map as CSV, a line for each port and stretch of time.
    pub(crate) fn csv(&self) -> String {
        let head = ["port", "from (ns)", "longest queue (B)"].map(str::to_owned);
        let rows = self.rows.iter().flat_map(|(name, queues)| {
            let from_ns = |i: usize| (self.end_ns * i as f64 / BINS as f64).round().to_string();
            queues.iter().enumerate().map(move |(i, queue)| [name.clone(), from_ns(i), queue.to_string()])
        });
        fairrate_text::csv(std::iter::once(head).chain(rows))
    }

    fn svg(&self, place: Place) -> String {
        let longest_name = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let left = (longest_name as f64 * CHARACTER + 12.0).min(WIDTH / 3.0);
        let bin = (WIDTH - left) / BINS as f64;
        let (ink, soft) = (place.colour("ink"), place.colour("soft"));
        let bottom = self.rows.len() as f64 * ROW;
        let mut out = format!(
            "<rect x=\"{left:.1}\" y=\"0\" width=\"{:.1}\" height=\"{bottom}\" style=\"fill:{}\"/>\n",
            WIDTH - left,
            place.colour("q0")
        );
        let mut paths = vec![String::new(); BOUNDS.len() + 1];
        for (row, (name, queues)) in self.rows.iter().enumerate() {
            let y = row as f64 * ROW;
            out.push_str(&text(left - 6.0, y + 10.0, "end", &ink, &name.replace("->", "\u{2192}")));
            let steps: Vec<usize> = queues.iter().map(|queue| self.step(*queue)).collect();
            let mut at = 0;
            for run in steps.chunk_by(|a, b| a == b) {
                let (x, width) = (left + at as f64 * bin, run.len() as f64 * bin);
                at += run.len();
                let _ = write!(paths[run[0]], "M{x:.1} {y}h{width:.1}v{:.0}h-{width:.1}z", ROW - 1.0);
            }
        }
        for (step, d) in paths.iter().enumerate().skip(1).filter(|(_, d)| !d.is_empty()) {
            let _ = writeln!(out, "<path d=\"{d}\" style=\"fill:{}\"/>", place.colour(&format!("q{step}")));
        }
        let unit = TimeUnit::for_span(self.end_ns);
        let span = self.end_ns / unit.ns;
        for (at, label) in ticks::linear(0.0, span, 8) {
            let x = left + at / span * (WIDTH - left);
            out.push_str(&text(x, bottom + 15.0, if x < WIDTH - 20.0 { "middle" } else { "end" }, &soft, &label));
        }
        out.push_str(&text(
            left + (WIDTH - left) / 2.0,
            bottom + 32.0,
            "middle",
            &soft,
            &format!("time ({})", unit.name),
        ));
        let bounds = BOUNDS.map(|share| format::number(share * self.longest / 1e3));
        out.push_str(&legend(left, bottom + 42.0, &bounds, "KB queued", place));
        let words = format!(
            "Longest queues over time of {} ports. The longest is {} at {}.",
            self.rows.len(),
            format::bytes(self.longest),
            self.rows[0].0
        );
        place.svg((WIDTH, bottom + 76.0), TITLE, &words, &out)
    }

    /// Returns the number of the colour of a queue, 0 to 6.
    fn step(&self, queue: f64) -> usize {
        BOUNDS.iter().filter(|share| **share * self.longest <= queue).count()
    }
}

/// Returns the longest queue of a port in each of [`BINS`] stretches of the run. Between two samples a queue stays as
/// it was.
fn longest_in_bins(port: &PortSeries, end_ns: f64) -> Vec<f64> {
    let mut longest = vec![0.0_f64; BINS];
    let bin = |t: f64| ((t / end_ns * BINS as f64) as usize).min(BINS - 1);
    for (i, (&t, &queue)) in port.t_ns.iter().zip(&port.qlen_bytes).enumerate() {
        let until = port.t_ns.get(i + 1).copied().unwrap_or(t);
        let (first, last) = (bin(t), bin(until));
        // The stretch in which the next sample is begins with this queue only if the sample does not begin it.
        for slot in &mut longest[first..=last.max(first)] {
            *slot = slot.max(queue);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunData {
        let port = |name: &str, q: f64| PortSeries {
            name: name.into(),
            t_ns: vec![0.0, 10.0, 500.0, 990.0],
            qlen_bytes: vec![0.0, 0.0, q, 0.0],
            ..PortSeries::default()
        };
        let mut run = RunData { ports: vec![port("a->b", 100.0), port("c->d", 1_000.0)], ..RunData::default() };
        run.totals.end_ns = 1_000.0;
        run
    }

    #[test]
    fn queues_hold_until_the_next_sample() {
        let map = QueueMap::of(&run()).unwrap();
        assert_eq!(map.rows[0].0, "c->d");
        // 500 of 1,000 ns is stretch 115, and 990 ns stretch 227.
        let held: Vec<usize> = (0..BINS).filter(|i| 0.0 < map.rows[0].1[*i]).collect();
        assert_eq!((held[0], held[held.len() - 1]), (115, 227));
        // A tenth of the longest one is above a sixteenth.
        assert_eq!((map.step(100.0), map.step(1_000.0), map.step(15.0)), (3, 6, 0));
        assert!(
            map.section()
                .contains("aria-label=\"Longest queues over time of 2 ports. The longest is 1.00 KB at c-&gt;d.\"")
        );
    }

    #[test]
    fn a_single_port_and_empty_queues_have_no_map() {
        let mut run = run();
        run.ports.iter_mut().for_each(|port| port.qlen_bytes = vec![0.0; 4]);
        assert_eq!(QueueMap::of(&run), None);
        run.ports.truncate(1);
        assert_eq!(QueueMap::of(&run), None);
    }
}
