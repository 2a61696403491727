//! Accounts as text for a terminal.

use std::fmt::Write as _;

use fairrate_report::format;
use fairrate_units::Time;

use super::Explained;
use super::names::Names;
use super::rows::{Row, rows};

/// Width of a waterfall in characters.
const WIDTH: usize = 30;
/// Largest number of rows of an account; the shortest ones share the last row.
const ROWS: usize = 14;
/// The parts of a character, from none to seven eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Returns the whole account of a flow.
pub fn whole(explained: &Explained, names: &Names<'_>) -> String {
    let mut text = heading(explained, names);
    let _ = write!(text, "{}.\n\n", explained.sentence);
    let fct = explained.account.fct;
    let (chain, sender) = if explained.account.is_finished {
        (
            "Its completion time, from the last byte back along what each step waited for",
            "the packet that completed the flow was sent",
        )
    } else {
        (
            "Its time until the end of the run, from the byte that the receiver waits for back along what each step waited for",
            "the run ended",
        )
    };
    let _ = writeln!(text, "{chain}");
    text += &waterfall(&explained.chain, fct, names);
    let _ = writeln!(text, "\nIts sender, until {sender}");
    text += &waterfall(&explained.sender, fct, names);
    text
}

/// Returns the account of a flow in two lines.
pub fn brief(explained: &Explained, names: &Names<'_>) -> String {
    format!("{}  {}\n", heading(explained, names), explained.sentence)
}

fn heading(explained: &Explained, names: &Names<'_>) -> String {
    let Explained { account, row, .. } = explained;
    let time = |t: Time| format::time_ns(t.as_ns_f64());
    let spec = names.spec(account.flow);
    let ends = spec.map_or_else(String::new, |spec| format!("{} to {}", names.node(spec.src), names.node(spec.dst)));
    format!(
        "flow {}: {} from {ends}, block {}, start {}, {}\n",
        row.id,
        row.bytes.map_or_else(String::new, |bytes| format::bytes(bytes as f64)),
        names.block(row.group),
        time(account.start),
        if account.is_finished {
            format!("FCT {}, slowdown {}", time(account.fct), format::optional(row.slowdown))
        } else {
            let least = row.ideal_fct_ns.map(|ns| (account.fct.as_ns_f64() / ns.max(1) as f64).max(1.0));
            let got = format::bytes(row.delivered_bytes as f64);
            format!(
                "unfinished after {} with {got} delivered, slowdown ≥ {}",
                time(account.fct),
                format::optional(least)
            )
        },
    )
}

/// Returns the sum over several flows.
pub fn total(all: &[Explained], names: &Names<'_>) -> String {
    let pieces: Vec<_> = all.iter().flat_map(|explained| explained.account.chain.iter().copied()).collect();
    let fct = all.iter().fold(Time::ZERO, |sum, explained| sum + explained.account.fct);
    let what = if all.iter().all(|explained| explained.account.is_finished) { "Completion times" } else { "Times" };
    format!("{what} of these {} flows together\n{}", all.len(), waterfall(&rows(&pieces), fct, names))
}

/// Returns rows with their shares of `whole`, each bar where the one before ends.
fn waterfall(rows: &[Row], whole: Time, names: &Names<'_>) -> String {
    let n_shown = if rows.len() <= ROWS { rows.len() } else { ROWS - 1 };
    let mut lines = Vec::new();
    let mut before = Time::ZERO;
    let mut line = |label: String, time: Time, details: String| {
        let share = |t: Time| t.as_ps() as f64 / whole.as_ps().max(1) as f64;
        let percent = format::percent(share(time));
        lines.push(vec![
            label,
            bar(share(before), share(before + time)),
            format::time_ns(time.as_ns_f64()),
            percent,
            details,
        ]);
        before += time;
    };
    for row in &rows[..n_shown] {
        line(row.label(names), row.time, row.details(names));
    }
    let rest = &rows[n_shown..];
    if !rest.is_empty() {
        let time = rest.iter().fold(Time::ZERO, |sum, row| sum + row.time);
        line(format!("{} shorter ones", rest.len()), time, String::new());
    }
    line_up(&lines)
}

/// Returns lines of a label, a bar, a time, a share and details as columns.
fn line_up(lines: &[Vec<String>]) -> String {
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let (label, time, percent) = (width(0), width(2), width(3));
    let mut text = String::new();
    for line in lines {
        let [name, bar, t, share, details] = &line[..] else { continue };
        let row = format!("  {name:<label$}  {bar:<WIDTH$}  {t:>time$}  {share:>percent$}  {details}");
        text += row.trim_end();
        text.push('\n');
    }
    text
}

/// Returns a bar from one share of the width to another one.
fn bar(from: f64, to: f64) -> String {
    let eighths = |share: f64| (share * (8 * WIDTH) as f64).round() as usize;
    let (from, to) = (eighths(from) / 8, eighths(to));
    let full = (to / 8).saturating_sub(from);
    let part = if from <= to / 8 { EIGHTHS[to % 8] } else { "" };
    format!("{}{}{part}", " ".repeat(from), "█".repeat(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_follow_each_other() {
        assert_eq!(bar(0.0, 0.5), "█".repeat(15));
        assert_eq!(bar(0.5, 1.0), " ".repeat(15) + &"█".repeat(15));
        assert_eq!(bar(0.5, 0.5 + 1.0 / 60.0), " ".repeat(15) + "▌");
        assert_eq!(bar(0.2, 0.2), " ".repeat(6));
    }
}
