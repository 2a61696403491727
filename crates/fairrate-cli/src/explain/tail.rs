//! `explain --tail`: what the completion times of fast and of slow flows are made of.

use fairrate_explain::{Explanation, Reason, Way};
use fairrate_report::format;
use fairrate_report::panel::{Axis, Panel, Series};
use fairrate_report::style::Style;
use fairrate_results::FlowRow;
use serde::Serialize;

/// The largest number of flows of a part that are explained.
const SAMPLE: usize = 25;
/// Width of a bar in characters.
const WIDTH: usize = 40;

/// The parts of all flows, by the percentile of their slowdown: names, and ends in per mille of the flows.
const PARTS: [(&str, usize); 4] = [("up to p50", 500), ("p50 to p90", 900), ("p90 to p99", 990), ("above p99", 1_000)];

/// The kinds of reasons, each with its letter in bars and its place among the numbers of a [`Part`].
const KINDS: [(&str, char); 10] = [
    ("transmission", 't'),
    ("propagation", 'p'),
    ("queue", 'q'),
    ("turns", 'n'),
    ("acks", 'a'),
    ("PFC", 'f'),
    ("pacing", 'c'),
    ("waits", 'w'),
    ("losses", 'l'),
    ("other", 'o'),
];

fn kind_of(way: Way, reason: Reason) -> usize {
    match reason {
        _ if way == Way::Ack => 4,
        Reason::Serialisation(_) => 0,
        Reason::Propagation(_) => 1,
        Reason::Queue(..) => 2,
        Reason::Turn(..) => 3,
        Reason::Receiver => 4,
        Reason::Pause(_) => 5,
        Reason::Pacing => 6,
        Reason::Window | Reason::Credit | Reason::Notice | Reason::Held | Reason::Connection | Reason::Handshake => 7,
        Reason::Timeout(_) | Reason::Recovery(_) => 8,
        Reason::Blocked(_)
        | Reason::Down(_)
        | Reason::LateLink(_)
        | Reason::Host(_)
        | Reason::SlowNic(_)
        | Reason::LastPacket
        | Reason::Unsent
        | Reason::Unknown => 9,
    }
}

/// A part of the flows of a run.
#[derive(Serialize)]
pub struct Part {
    /// The run.
    run: String,
    seed: u64,
    /// The percentiles of slowdown between which its flows are.
    #[serde(rename = "part")]
    range: &'static str,
    /// Number of its flows.
    flows: usize,
    /// Number of those that were explained.
    explained: usize,
    /// Mean completion time of the explained flows.
    fct_ps_mean: f64,
    /// Mean slowdown of the explained flows.
    slowdown_mean: f64,
    /// Time of each kind, of all explained flows together.
    ps: Vec<Share>,
}

#[derive(Serialize)]
struct Share {
    kind: &'static str,
    ps: u64,
}

/// Returns the flows of each part that are to be explained, with the number of all flows of the part; `rows` are those
/// of all finished flows.
pub fn sample(mut rows: Vec<FlowRow>) -> Vec<(&'static str, usize, Vec<FlowRow>)> {
    let slowdown = |row: &FlowRow| row.slowdown.unwrap_or_default();
    rows.sort_by(|a, b| slowdown(a).total_cmp(&slowdown(b)).then(a.id.cmp(&b.id)));
    let (n, mut from) = (rows.len(), 0);
    let mut parts = Vec::new();
    for (name, per_mille) in PARTS {
        let to = (n * per_mille).div_ceil(1_000);
        let part = &rows[from..to];
        from = to;
        let taken = part.len().min(SAMPLE);
        // Evenly spaced, so that a part's sample does not hang on the order of flows.
        let places = (0..taken).map(|i| (2 * i + 1) * part.len() / (2 * taken));
        let sample: Vec<FlowRow> = places.map(|at| part[at].clone()).collect();
        if !sample.is_empty() {
            parts.push((name, part.len(), sample));
        }
    }
    parts
}

impl Part {
    /// Returns the part `name` of a run with `flows` flows, of which `accounts` belong to `rows`.
    pub fn of(
        run: &str,
        seed: u64,
        name: &'static str,
        flows: usize,
        rows: &[FlowRow],
        accounts: &[Explanation],
    ) -> Self {
        let mut ps = [0; KINDS.len()];
        for piece in accounts.iter().flat_map(|account| &account.chain) {
            ps[kind_of(piece.way, piece.reason)] += (piece.to - piece.from).as_ps();
        }
        let n = accounts.len().max(1) as f64;
        Self {
            run: run.to_owned(),
            seed,
            range: name,
            flows,
            explained: accounts.len(),
            fct_ps_mean: accounts.iter().map(|account| account.fct.as_ps() as f64).sum::<f64>() / n,
            slowdown_mean: rows.iter().filter_map(|row| row.slowdown).sum::<f64>() / n,
            ps: KINDS.iter().zip(ps).map(|(&(kind, _), ps)| Share { kind, ps }).collect(),
        }
    }

    fn total(&self) -> u64 {
        self.ps.iter().map(|share| share.ps).sum::<u64>().max(1)
    }

    /// Returns the bar: a letter for each fortieth of the time.
    fn bar(&self) -> String {
        let (total, mut sum, mut bar) = (self.total() as f64, 0, String::new());
        for (share, (_, letter)) in self.ps.iter().zip(KINDS) {
            sum += share.ps;
            let end = (WIDTH as f64 * sum as f64 / total).round() as usize;
            bar.extend(std::iter::repeat_n(letter, end - bar.len()));
        }
        bar
    }
}

/// Returns the kinds that occur. One without half of a tenth of a percent anywhere would be a column of zeros.
fn kinds_of(parts: &[Part]) -> Vec<usize> {
    let occurs = |kind: &usize| parts.iter().any(|part| part.total() <= 2_000 * part.ps[*kind].ps);
    (0..KINDS.len()).filter(occurs).collect()
}

/// Returns the parts of the chosen flows, which are called `name`, as a chart: a bar for each, with the share of each
/// kind that occurs.
pub fn to_panel(name: &str, parts: &[Part]) -> Panel {
    let row = |part: &Part| {
        let seed =
            if parts.iter().any(|p| p.seed != part.seed) { format!(", seed {}", part.seed) } else { String::new() };
        format!("{}{seed}, {}: {}", part.run, part.range, format::number(part.slowdown_mean))
    };
    let mut series = Vec::new();
    for (nth, kind) in kinds_of(parts).into_iter().enumerate() {
        for (at, part) in parts.iter().enumerate() {
            let percent = |ps: u64| 100.0 * ps as f64 / part.total() as f64;
            let from: u64 = part.ps[..kind].iter().map(|share| share.ps).sum();
            let legend = if at == 0 { KINDS[kind].0.to_owned() } else { String::new() };
            let x =
                if part.ps[kind].ps == 0 { Vec::new() } else { vec![percent(from), percent(from + part.ps[kind].ps)] };
            series.push(Series {
                key: KINDS[kind].0.to_owned(),
                name: legend,
                style: Style::nth(nth),
                x,
                y: vec![at as f64],
                ..Series::default()
            });
        }
    }
    Panel {
        title: format!("{name}: completion times by percentile of slowdown, with the mean slowdown of each part"),
        x: Axis::new("share of the time (%)").showing(0.0, 100.0),
        y: Axis { rows: parts.iter().map(row).collect(), ..Axis::default() },
        series,
        parts: true,
        wide: true,
        ..Panel::default()
    }
}

/// Returns the parts as a table: a line for each, with its bar and the share of each kind that occurs.
pub fn to_text(parts: &[Part]) -> String {
    let kinds = kinds_of(parts);
    let head = ["run", "flows by slowdown", "of what", "number", "mean FCT", "slowdown"].map(str::to_owned);
    let named = kinds.iter().map(|&kind| format!("{} {}", KINDS[kind].1, KINDS[kind].0));
    let mut lines = vec![head.into_iter().chain(named).collect::<Vec<_>>()];
    for part in parts {
        let share = |&kind: &usize| format::percent(part.ps[kind].ps as f64 / part.total() as f64);
        let number = if part.explained < part.flows {
            format!("{} of {}", part.explained, part.flows)
        } else {
            part.flows.to_string()
        };
        let first = [
            if parts.iter().any(|p| p.seed != part.seed) {
                format!("{}, seed {}", part.run, part.seed)
            } else {
                part.run.clone()
            },
            part.range.to_owned(),
            part.bar(),
            number,
            format::time_ns(part.fct_ps_mean / 1_000.0),
            format::number(part.slowdown_mean),
        ];
        lines.push(first.into_iter().chain(kinds.iter().map(share)).collect());
    }
    fairrate_text::aligned(&lines, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_all_others() {
        let ps = KINDS.iter().enumerate().map(|(i, &(kind, _))| Share { kind, ps: u64::from(i < 3) }).collect();
        let part = Part { ps, ..Part::of("", 1, "", 0, &[], &[]) };
        assert_eq!(part.bar(), format!("{}{}{}", "t".repeat(13), "p".repeat(14), "q".repeat(13)));
    }

    /// The first part has queues and losses, 3 to 1, and the second one queues alone.
    #[test]
    fn a_chart_has_a_bar_for_each_part_and_a_colour_for_each_kind() {
        let part = |seed, queue, losses| {
            let of =
                |kind: &str| [("queue", queue), ("losses", losses)].iter().find(|of| of.0 == kind).map_or(0, |of| of.1);
            let ps = KINDS.iter().map(|&(kind, _)| Share { kind, ps: of(kind) }).collect();
            Part { ps, slowdown_mean: 2.0, ..Part::of("homa", seed, "above p99", 0, &[], &[]) }
        };
        let panel = to_panel("s", &[part(1, 3, 1), part(2, 5, 0)]);
        assert_eq!(panel.y.rows, ["homa, seed 1, above p99: 2.00", "homa, seed 2, above p99: 2.00"]);
        let bars: Vec<(&str, &str, &[f64])> =
            panel.series.iter().map(|s| (s.key.as_str(), s.name.as_str(), s.x.as_slice())).collect();
        let expected: [(&str, &str, &[f64]); 4] = [
            ("queue", "queue", &[0.0, 75.0]),
            ("queue", "", &[0.0, 100.0]),
            ("losses", "losses", &[75.0, 100.0]),
            ("losses", "", &[]),
        ];
        assert_eq!(bars, expected);
    }
}
