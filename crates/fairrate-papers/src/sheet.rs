//! A figure as files: the picture, its points, and the paper's claims beside the measurements.

use std::fmt::Write;

use fairrate_report::export;
use fairrate_report::panel::Panel;
use fairrate_report::svg;
use fairrate_text::{aligned, escape};
use serde_json::{Value, json};

use crate::claim::{Change, Claim, Tally};
use crate::figure::Figure;
use crate::looked::looked_at;
use crate::points::thinned;

/// Largest number of points of a line in small pictures.
const SMALL: usize = 160;

/// Number of panels side by side.
const COLUMNS: usize = 2;

/// The caption of figures of quick runs.
pub const QUICK: &str = "quick: fewer seeds and less traffic than the full figure, not for comparison";

/// Height of a line of a caption in pixels.
const CAPTION: f64 = 20.0;

/// The text below a picture.
#[derive(Clone, Copy, Debug)]
pub struct Caption<'a> {
    /// The text, in lines.
    pub text: &'a str,
    /// `true` if it warns.
    pub warns: bool,
}

/// Returns the text below the picture of a full figure: its name, and in a second line the verdicts of its claims.
pub fn caption(figure: &Figure, tally: &Tally) -> String {
    let verdicts = if tally.is_empty() { String::new() } else { format!("\n{}", tally.words()) };
    format!("{}{verdicts}", figure.id)
}

/// Returns the picture as SVG: all panels, two in a row.
pub fn picture(panels: &[Panel]) -> String {
    captioned(panels, None)
}

/// Returns the picture as [`picture`] does, with a caption below it if there is one.
pub fn captioned(panels: &[Panel], caption: Option<Caption<'_>>) -> String {
    let drawn: Vec<(String, f64, f64)> = panels.iter().map(|panel| sized(svg::render(panel))).collect();
    let rows: Vec<&[(String, f64, f64)]> = drawn.chunks(COLUMNS).collect();
    let height_of = |row: &[(String, f64, f64)]| row.iter().map(|panel| panel.2).fold(0.0, f64::max);
    let width = rows.iter().map(|row| row.iter().map(|panel| panel.1).sum()).fold(0.0, f64::max);
    let of_panels: f64 = rows.iter().map(|row| height_of(row)).sum();
    let height = of_panels + caption.map_or(0, |caption| caption.text.lines().count()) as f64 * CAPTION;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n"
    );
    let mut y = 0.0;
    for row in rows {
        let mut x = 0.0;
        for (text, wide, _) in row {
            let _ = writeln!(out, "{}", text.replacen("<svg ", &format!("<svg x=\"{x}\" y=\"{y}\" "), 1));
            x += wide;
        }
        y += height_of(row);
    }
    for (n, text) in caption.iter().flat_map(|caption| caption.text.lines()).enumerate() {
        let (x, y, text) = (width / 2.0, of_panels + (n as f64 + 0.5) * CAPTION, escape(text));
        let colour = if caption.is_some_and(|caption| caption.warns) { "#b3261e" } else { "#5d6570" };
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"{colour}\">{text}</text>"
        );
    }
    out + "</svg>\n"
}

/// Returns the picture with few points per line, as pages of documents have it.
pub fn small_picture(panels: &[Panel], caption: &str) -> String {
    let mut panels = panels.to_vec();
    for series in panels.iter_mut().flat_map(|panel| &mut panel.series).filter(|series| series.low.is_empty()) {
        let pairs: Vec<(f64, f64)> = series.x.iter().copied().zip(series.y.iter().copied()).collect();
        (series.x, series.y) = thinned(&pairs, SMALL).into_iter().unzip();
    }
    captioned(&panels, Some(Caption { text: caption, warns: false }))
}

/// Returns a picture with its width and height.
fn sized(text: String) -> (String, f64, f64) {
    let after = |key: &str| text.split_once(key)?.1.split('"').next()?.parse().ok();
    let (width, height) = (after(" width=\"").unwrap_or(0.0), after(" height=\"").unwrap_or(0.0));
    (text, width, height)
}

/// Returns the points of all panels as CSV, a line each, with units in the head of each panel.
pub fn points(panels: &[Panel]) -> String {
    panels.iter().map(|panel| format!("# {}\n{}", panel.title, export::csv(panel))).collect::<Vec<_>>().join("\n")
}

/// Returns the claims as JSON; `quick` tells if they are judged by quick runs.
pub fn claims(figure: &Figure, claims: &[Claim], quick: bool) -> Value {
    let change = |claim: &Claim, change: &Change| {
        let changed = claim.changed(change);
        let (mean, low, high) = changed.measured().map_or((None, None, None), |(m, l, h)| (Some(m), Some(l), Some(h)));
        json!({ "change": change.what, "measured": mean, "low": low, "high": high, "verdict": changed.verdict() })
    };
    let claim = |claim: &Claim| {
        let (mean, low, high) = claim.measured().map_or((None, None, None), |(m, l, h)| (Some(m), Some(l), Some(h)));
        json!({
            "id": claim.id, "sentence": claim.sentence, "paper": claim.paper(), "unit": claim.unit,
            "measured": mean, "low": low, "high": high, "seeds": claim.values.len(),
            "verdict": claim.verdict(),
            "cause": claim.cause, "changes": claim.changes.iter().map(|c| change(claim, c)).collect::<Vec<_>>(),
        })
    };
    json!({ "figure": figure.id, "title": figure.title, "quick": quick, "claims": claims.iter().map(claim).collect::<Vec<_>>() })
}

/// Returns the claims as a table for the terminal.
pub fn table(claims: &[Claim]) -> String {
    let head = ["the paper says", "as a number", "measured", "verdict"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(claims.iter().map(cells)).collect();
    let text = aligned(&rows, usize::MAX);
    let mut lines = text.lines();
    let mut out = lines.next().unwrap_or_default().to_owned() + "\n";
    for (line, claim) in lines.zip(claims) {
        let _ = writeln!(out, "{line}");
        for why in claim.why() {
            let _ = writeln!(out, "    {why}");
        }
    }
    out
}

/// Returns the claims as a page of Markdown.
pub fn markdown(figure: &Figure, claims: &[Claim]) -> String {
    let looked = looked(figure, claims).map_or_else(String::new, |text| format!("{text}\n\n"));
    let mut out = format!(
        "# {}: {}\n\n{looked}| the paper says | as a number | measured | verdict |\n|---|---|---|---|\n",
        figure.id, figure.title
    );
    for claim in claims {
        let [sentence, paper, measured, verdict] = cells(claim).map(|cell| cell.replace('|', "\\|"));
        let sentence = [vec![sentence], claim.why()].concat().join("<br>");
        let _ = writeln!(out, "| {sentence} | {paper} | {measured} | {verdict} |");
    }
    out
}

/// Returns the sentence on what was looked at, if a claim fails without a known cause.
fn looked(figure: &Figure, claims: &[Claim]) -> Option<String> {
    let fails = claims.iter().any(|claim| claim.why().iter().any(|why| why.starts_with("No cause is known")));
    let text = looked_at(figure).filter(|_| fails)?;
    Some(format!("Where no cause is known, these were looked at: {text}."))
}

/// Returns a claim as text: the paper's sentence, its number, the measured number, and the verdict.
fn cells(claim: &Claim) -> [String; 4] {
    [claim.sentence.clone(), claim.paper(), claim.text(), claim.verdict().to_string()]
}

/// Returns a complete HTML page: the picture with its caption, if there is one, and the claims.
pub fn page(figure: &Figure, panels: &[Panel], claims: &[Claim], caption: Option<Caption<'_>>) -> String {
    let mut rows = String::new();
    for claim in claims {
        let cells = cells(claim).map(|cell| format!("<td>{}</td>", escape(&cell))).concat();
        let _ = writeln!(rows, "<tr>{cells}</tr>");
        for why in claim.why() {
            let _ = writeln!(rows, "<tr><td class=\"cause\" colspan=\"4\">{}</td></tr>", escape(&why));
        }
    }
    let looked = looked(figure, claims).map_or_else(String::new, |text| format!("<p>{}</p>\n", escape(&text)));
    let (title, id, picture) = (escape(figure.title), figure.id, captioned(panels, caption));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{id}: {title}</title>\n<style>\n{STYLE}</style>\n\
         <h1>{title}</h1>\n<p><code>fairrate figure {id}</code></p>\n{picture}\n{looked}<table>\n\
         <tr><th>the paper says</th><th>as a number</th><th>measured</th><th>verdict</th></tr>\n{rows}</table>\n</html>\n"
    )
}

/// The CSS of a page.
const STYLE: &str =
    "body { font: 15px/1.5 Helvetica, Arial, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: .3rem 1rem .3rem 0; border-top: 1px solid #e4e6ea; vertical-align: top; }
.cause { color: #5d6570; border: 0; padding-top: 0; }
";
