//! Heat maps as pictures: in the page with the colours of its theme, and as files with light colours.

use std::fmt::Write as _;

use fairrate_text::escape;

use super::{HeatMap, Layout, Verdict};
use crate::bootstrap::Estimate;
use crate::format;
use crate::picture::{CHARACTER, Place, text};

/// Shares at which the colour changes, in per cent of a fair one. The middle one of the seven colours is for fair
/// shares.
const BOUNDS: [f64; 6] = [25.0, 50.0, 90.0, 110.0, 200.0, 400.0];
const CELL_WIDTH: f64 = 60.0;
const CELL_HEIGHT: f64 = 34.0;
/// Height of the heads of columns, with the line that says what they are.
const HEADS: f64 = 42.0;
/// Height of the legend.
const LEGEND: f64 = 74.0;
/// Largest number of columns of a map that takes a third of the page.
const SMALL: usize = 6;
/// The same for half of the page.
const HALF: usize = 10;
/// Title of the chapter.
const CHAPTER: &str = "Who takes what";

/// Returns the number of the colour of a share, 0 to 6.
fn step(share: f64) -> usize {
    let is_above = |bound: &&f64| if **bound < 100.0 { **bound <= share } else { **bound < share };
    BOUNDS.iter().filter(is_above).count()
}

/// Returns the title of the chapter that maps are of.
pub(crate) fn chapter(layout: &Layout) -> String {
    format!("{CHAPTER}: {} beside {}", layout.blocks[0], layout.blocks[1])
}

/// Returns what the colours are of, in a sentence or two.
fn note(layout: &Layout) -> String {
    let [a, b] = &layout.blocks;
    format!(
        "Goodput of a flow of {a} over that of the mean flow of both, in per cent: 100 is fair. Blue: {a} gets less than its share beside \
         {b}; red: it gets more. Within 10 % is fair. A question mark: the 95 % interval over \
         seeds reaches over an end of that, so there is no verdict."
    )
}

/// Returns the part of the page with `maps`; empty if there are none.
pub(crate) fn section(layout: &Layout, maps: &[HeatMap]) -> String {
    if maps.is_empty() {
        return String::new();
    }
    let mut out = format!("<h2>{}</h2>\n<p class=\"about\">{}</p>\n", escape(&chapter(layout)), escape(&note(layout)));
    out.push_str("<div class=\"figs heat\">\n");
    for map in maps {
        let size = match map.columns.len() {
            n if n <= SMALL => " small",
            n if n <= HALF => "",
            _ => " wide",
        };
        // No space between two figures: on paper they fill a line.
        let _ = write!(
            out,
            "<section class=\"fig{size}\"><h3>{}</h3><div class=\"plot\">{}</div></section>",
            escape(&map.title),
            picture(map, Place::Page)
        );
    }
    out + "</div>\n"
}

/// Returns the picture as a file.
pub(crate) fn file(map: &HeatMap) -> String {
    picture(map, Place::File)
}

/// Returns the cells as CSV, a line each.
pub(crate) fn csv(map: &HeatMap) -> String {
    let columns = ["share (%)", "low: share (%)", "high: share (%)", "verdict"].map(str::to_owned);
    let mut records = vec![[map.down.clone(), map.across.clone()].into_iter().chain(columns).collect::<Vec<_>>()];
    for (row, cells) in &map.rows {
        for (column, cell) in map.columns.iter().zip(cells) {
            let (share, verdict) = match cell {
                Some(share) => (share.mean.to_string(), Verdict::of(share).word()),
                None => (String::new(), ""),
            };
            let ends = cell.and_then(|share| share.interval).map(|i| (i.low.to_string(), i.high.to_string()));
            let (low, high) = ends.unwrap_or_default();
            records.push(vec![row.clone(), column.clone(), share, low, high, verdict.to_owned()]);
        }
    }
    fairrate_text::csv(&records)
}

/// Returns a map as SVG.
fn picture(map: &HeatMap, place: Place) -> String {
    let longest = map.rows.iter().map(|(head, _)| head.chars().count()).max().unwrap_or(1).max(4);
    let left = 14.0 + longest as f64 * CHARACTER;
    let is_file = matches!(place, Place::File);
    let (margin, title) = if is_file { (16.0, 26.0) } else { (0.0, 0.0) };
    let grid = left + map.columns.len() as f64 * CELL_WIDTH;
    let inner = grid.max(7.0 * LEGEND_WIDTH).max(map.down.chars().count() as f64 * CHARACTER);
    let width = inner + 2.0 * margin;
    let height = title + HEADS + map.rows.len() as f64 * CELL_HEIGHT + LEGEND + 2.0 * margin;
    let namespace =
        if is_file { " xmlns=\"http://www.w3.org/2000/svg\" font-family=\"Helvetica, Arial, sans-serif\"" } else { "" };
    let size = if is_file {
        format!(" width=\"{width}\" height=\"{height}\"")
    } else {
        format!(" style=\"max-width:{width}px\"")
    };
    let (ink, soft) = (place.colour("ink"), place.colour("soft"));
    let mut out = format!(
        "<svg{namespace} viewBox=\"0 0 {width} {height}\"{size} font-size=\"12\" role=\"img\" aria-label=\"{}\">\n",
        escape(&map.title)
    );
    if is_file {
        let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>", place.colour("card"));
    }
    let _ = writeln!(out, "<g transform=\"translate({margin} {margin})\">");
    if is_file {
        let _ = writeln!(
            out,
            "<text y=\"14\" font-size=\"15\" font-weight=\"bold\" fill=\"{ink}\">{}</text>",
            escape(&map.title)
        );
    }
    out.push_str(&text(left + (grid - left) / 2.0, title + 14.0, "middle", &soft, &map.across));
    for (i, head) in map.columns.iter().enumerate() {
        let x = left + (i as f64 + 0.5) * CELL_WIDTH;
        out.push_str(&text(x, title + 34.0, "middle", &ink, head));
    }
    for (i, (head, cells)) in map.rows.iter().enumerate() {
        let y = title + HEADS + i as f64 * CELL_HEIGHT;
        out.push_str(&text(left - 8.0, y + CELL_HEIGHT / 2.0 + 4.0, "end", &ink, head));
        for (j, cell) in cells.iter().enumerate() {
            let about = format!("{head}, {}", map.columns[j]);
            out.push_str(&square(left + j as f64 * CELL_WIDTH, y, &about, cell.as_ref(), place));
        }
    }
    let below = title + HEADS + map.rows.len() as f64 * CELL_HEIGHT;
    out.push_str(&text(0.0, below + 16.0, "start", &soft, &map.down));
    out.push_str(&legend(below + 26.0, place));
    out + "</g>\n</svg>"
}

/// Returns a cell, whose title has the interval and the verdict.
fn square(x: f64, y: f64, about: &str, cell: Option<&Estimate>, place: Place) -> String {
    let (width, height) = (CELL_WIDTH - 2.0, CELL_HEIGHT - 2.0);
    let middle = (x + CELL_WIDTH / 2.0, y + CELL_HEIGHT / 2.0 + 4.0);
    let rect = |fill: &str, line: &str, more: &str| {
        format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width}\" height=\"{height}\" style=\"fill:{fill};stroke:{line}\"{more}/>",
            x + 1.0,
            y + 1.0
        )
    };
    let Some(share) = cell else {
        let (soft, line) = (place.colour("soft"), place.colour("line"));
        let title = escape(&format!("{about}: no result"));
        let dash = rect("none", &line, " stroke-dasharray=\"2 3\"");
        return format!(
            "<g><title>{title}</title>{dash}{}</g>\n",
            text(middle.0, middle.1, "middle", &soft, "-").trim_end()
        );
    };
    let (verdict, step) = (Verdict::of(share), step(share.mean));
    let (fill, ink) = (place.colour(&format!("h{step}")), place.colour(&format!("hi{step}")));
    let seeds = match share.interval {
        Some(i) => format!(" [{}, {}], {} seeds", format::number(i.low), format::number(i.high), share.n),
        None => ", one seed".to_owned(),
    };
    let title =
        escape(&format!("{about}: {} % of a fair share{seeds}: {}", format::number(share.mean), verdict.word()));
    let (line, more, mark) = match verdict {
        Verdict::Undecided => (ink.clone(), " stroke-dasharray=\"3 3\"", " ?"),
        Verdict::Fair => (place.colour("line"), "", ""),
        Verdict::Less | Verdict::More => (fill.clone(), "", ""),
    };
    let number = text(middle.0, middle.1, "middle", &ink, &(format::number(share.mean) + mark));
    format!("<g><title>{title}</title>{}{}</g>\n", rect(&fill, &line, more), number.trim_end())
}

/// Width of a colour in the legend.
const LEGEND_WIDTH: f64 = 42.0;

/// Returns the legend: the seven colours with the shares between them, and the marks.
fn legend(y: f64, place: Place) -> String {
    let soft = place.colour("soft");
    let mut out = String::new();
    for i in 0..=BOUNDS.len() {
        let (x, fill, line) = (i as f64 * LEGEND_WIDTH, place.colour(&format!("h{i}")), place.colour("line"));
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{LEGEND_WIDTH}\" height=\"12\" style=\"fill:{fill};stroke:{line}\"/>"
        );
    }
    for (i, bound) in BOUNDS.iter().enumerate() {
        out.push_str(&text((i as f64 + 1.0) * LEGEND_WIDTH, y + 26.0, "middle", &soft, &format!("{bound}")));
    }
    out + &text(0.0, y + 42.0, "start", &soft, "% of a fair share \u{b7} ? undecided \u{b7} - no result")
}
