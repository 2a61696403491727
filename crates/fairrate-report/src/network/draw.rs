//! The picture of a network as SVG.

use std::fmt::Write as _;

use fairrate_text::escape;

use super::{Group, LinkTotals, Picture, Shape, Strip};
use crate::format;
use crate::picture::{Place, legend, text};

/// Title of the picture.
pub(crate) const TITLE: &str = "Utilisation of every port";
/// Utilisations at which the colour changes.
const BOUNDS: [f64; 6] = [0.05, 0.2, 0.4, 0.6, 0.8, 0.95];
const WIDTH: f64 = 1150.0;
/// Width of the names of tiers.
const LEFT: f64 = 116.0;
/// Height of a strip of ports.
const STRIP: f64 = 14.0;
/// Space between two rows, where links are drawn.
const BETWEEN: f64 = 58.0;
/// The same without lines.
const BETWEEN_BARE: f64 = 24.0;
/// Distance of the middle control point of a line that goes sideways from its boxes: twice its height.
const ARC: f64 = 30.0;
/// Height of the legend.
const LEGEND: f64 = 58.0;
/// Widest box of a node.
const WIDEST: f64 = 90.0;
/// Largest number of lines between boxes: more cannot be told apart.
const MAX_LINES: usize = 700;

/// Returns the number of the colour of a utilisation, 0 to 6.
fn step(utilisation: f64) -> usize {
    BOUNDS.iter().filter(|bound| **bound <= utilisation).count()
}

/// Returns a note on what is drawn.
fn note(picture: &Picture) -> String {
    let largest = picture.rows.iter().flatten().map(|group| group.nodes).max().unwrap_or(1);
    let grouped = if largest < 2 {
        String::new()
    } else {
        format!(" Of large tiers a box is of up to {largest} neighbouring nodes.")
    };
    let lines = if picture.bundles.len() <= MAX_LINES {
        " A line has the colour of the busier direction of its links."
    } else {
        " Links are too many for lines."
    };
    format!(
        "Bytes on the wire over the whole run, over what the port could have sent. A box is a node; its upper strip has the ports that go \
         up, its lower strip those that go down, with the colour of the busiest one.{grouped}{lines}"
    )
}

/// Returns the part of the page with the picture; empty without the totals of the ports.
pub(crate) fn section(shape: &Shape, links: &[LinkTotals], end_ns: f64) -> String {
    if links.is_empty() || links.len() != shape.ports.len() {
        return String::new();
    }
    let picture = Picture::of(shape, links, end_ns);
    format!(
        "<div class=\"figs heat\"><section class=\"fig wide\"><h3>{TITLE}</h3><p class=\"note\">{}</p><div class=\"plot\">{}</div></section></div>\n",
        escape(&note(&picture)),
        svg(&picture, links, end_ns, Place::Page)
    )
}

/// Returns the picture as a file; `None` without the totals of the ports.
pub(crate) fn file(shape: &Shape, links: &[LinkTotals], end_ns: f64) -> Option<String> {
    let is_whole = !links.is_empty() && links.len() == shape.ports.len();
    is_whole.then(|| svg(&Picture::of(shape, links, end_ns), links, end_ns, Place::File))
}

/// Returns the ports as CSV, a line each.
pub(crate) fn csv(links: &[LinkTotals], end_ns: f64) -> String {
    let head = ["port", "utilisation", "bytes sent", "marks", "paused (ns)", "drops"].map(str::to_owned);
    let rows = links.iter().map(|link| {
        let numbers = [link.tx_bytes.to_string(), link.ecn_marks.to_string(), link.pfc_pause_ns.to_string()];
        let [sent, marks, paused] = numbers;
        [link.port.clone(), link.utilisation(end_ns).to_string(), sent, marks, paused, link.dropped().to_string()]
    });
    fairrate_text::csv(std::iter::once(head).chain(rows))
}

/// Returns the picture in words, for those who do not see it.
fn words(picture: &Picture, links: &[LinkTotals], end_ns: f64) -> String {
    let rows = picture.rows.iter().rev().map(|row| tier(row)).collect::<Vec<_>>().join(", ");
    let busiest = links.iter().max_by(|a, b| a.utilisation(end_ns).total_cmp(&b.utilisation(end_ns)));
    let busiest = busiest.map_or_else(String::new, |link| {
        format!(" The busiest port is {}, at {}.", link.port, format::percent(link.utilisation(end_ns)))
    });
    format!("Utilisation of the ports of a network of {rows}.{busiest}")
}

/// Returns a tier in words, as `16 tor`.
fn tier(row: &[Group]) -> String {
    let stem = |name: &str| name.split(|c: char| c.is_ascii_digit()).next().unwrap_or("").to_owned();
    let nodes: usize = row.iter().map(|group| group.nodes).sum();
    let first = row.first().map_or_else(String::new, |group| stem(&group.names.0));
    let same = !first.is_empty() && row.iter().all(|group| stem(&group.names.0) == first);
    format!("{nodes} {}", if same { first.as_str() } else { "nodes" })
}

/// Returns the left edge and the width of box `place` of `n`.
fn column(place: usize, n: usize) -> (f64, f64) {
    let pitch = (WIDTH - LEFT) / n as f64;
    let width = (pitch - 2.0).min(WIDEST);
    (LEFT + (place as f64 + 0.5) * pitch - width / 2.0, width)
}

fn svg(picture: &Picture, links: &[LinkTotals], end_ns: f64, place: Place) -> String {
    let n_rows = picture.rows.len();
    let has_lines = picture.bundles.len() <= MAX_LINES;
    let between = if has_lines { BETWEEN } else { BETWEEN_BARE };
    let has_sides = |row: usize| picture.rows[row].iter().any(|group| 0 < group.side.ports);
    let head = if has_lines && n_rows.checked_sub(1).is_some_and(has_sides) { ARC / 2.0 } else { 0.0 };
    let top = |row: usize| head + (n_rows - 1 - row) as f64 * (2.0 * STRIP + between);
    let (ink, soft) = (place.colour("ink"), place.colour("soft"));
    let mut out = String::new();
    if has_lines {
        let middle = |(row, at): (usize, usize)| {
            let (x, width) = column(at, picture.rows[row].len());
            x + width / 2.0
        };
        for &(upper, lower, busiest) in &picture.bundles {
            let (x1, x2) = (middle(upper), middle(lower));
            let colour = place.colour(&format!("q{}", step(busiest).max(1)));
            let (y1, y2) = (top(upper.0) + 2.0 * STRIP, top(lower.0));
            let d = if upper.0 == lower.0 {
                format!("M{x1:.1} {y2:.1}Q{:.1} {:.1} {x2:.1} {y2:.1}", f64::midpoint(x1, x2), y2 - ARC)
            } else {
                format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}")
            };
            let _ = writeln!(out, "<path d=\"{d}\" style=\"fill:none;stroke:{colour}\" stroke-width=\"1.2\"/>");
        }
    }
    for (row, groups) in picture.rows.iter().enumerate() {
        let y = top(row);
        out.push_str(&text(0.0, y + STRIP + 4.0, "start", &ink, &tier(groups)));
        for (at, group) in groups.iter().enumerate() {
            out.push_str(&node(group, column(at, groups.len()), y, place));
        }
        if has_sides(row) {
            out.push_str(&text(0.0, y + STRIP + 18.0, "start", &soft, "middle: sideways"));
        }
    }
    let below = top(0) + 2.0 * STRIP + 16.0;
    let bounds = BOUNDS.map(|bound| format!("{}", (bound * 100.0).round()));
    out.push_str(&legend(LEFT, below, &bounds, "% used   \u{d7} drops   \u{2016} paused by PFC", place));
    let height = below + LEGEND - 16.0;
    place.svg((WIDTH, height), TITLE, &words(picture, links, end_ns), &out)
}

/// Returns the box of a group.
fn node(group: &Group, (x, width): (f64, f64), y: f64, place: Place) -> String {
    let name = match group.nodes {
        1 => group.names.0.clone(),
        n => format!("{} to {} ({n} nodes)", group.names.0, group.names.1),
    };
    let strips: Vec<(&str, &Strip)> = [("up", &group.up), ("sideways", &group.side), ("down", &group.down)]
        .into_iter()
        .filter(|(_, s)| 0 < s.ports)
        .collect();
    let about = strips.iter().map(|(way, strip)| about(way, strip)).collect::<Vec<_>>().join("\n");
    let mut out = format!("<g><title>{}</title>", escape(&format!("{name}\n{about}")));
    let height = 2.0 * STRIP / strips.len().max(1) as f64;
    let (line, card) = (place.colour("line"), place.colour("card"));
    let _ = write!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" style=\"fill:{card};stroke:{line}\"/>",
        2.0 * STRIP
    );
    for (i, (_, strip)) in strips.iter().enumerate() {
        let (y, shade) = (y + i as f64 * height, step(strip.busiest));
        let fill = place.colour(&format!("q{shade}"));
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" style=\"fill:{fill};stroke:{card}\"/>"
        );
        let mark = match (0 < strip.drops, 0.0 < strip.paused_ns) {
            (true, true) => "\u{d7}\u{2016}",
            (true, false) => "\u{d7}",
            (false, true) => "\u{2016}",
            (false, false) => continue,
        };
        // Dark colours of the light theme are light ones of the dark theme, and the paper stands out from them in both.
        let ink = place.colour(if 4 <= shade { "card" } else { "ink" });
        out.push_str(text(x + width / 2.0, y + height / 2.0 + 4.0, "middle", &ink, mark).trim_end());
    }
    out + "</g>\n"
}

/// Returns the ports of a strip in words.
fn about(way: &str, strip: &Strip) -> String {
    let mean = format::percent(strip.sum / strip.ports as f64);
    let ports = match strip.ports {
        1 => format!("{way}: {} {}", strip.busiest_port, format::percent(strip.busiest)),
        n => {
            format!("{way}: {n} ports, mean {mean}, busiest {} {}", strip.busiest_port, format::percent(strip.busiest))
        }
    };
    let count =
        |n: u64, what: &str| if n == 0 { String::new() } else { format!(", {} {what}", format::count(n as f64)) };
    let paused = if 0.0 < strip.paused_ns {
        format!(", paused up to {}", format::time_ns(strip.paused_ns))
    } else {
        String::new()
    };
    format!("{ports}{}{}{paused}", count(strip.drops, "drops"), count(strip.marks, "marks"))
}
