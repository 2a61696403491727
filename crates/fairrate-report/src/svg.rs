//! A figure as a separate SVG file, for slides and papers: the same as in `report.html`, in its light colours.

use std::fmt::Write;

use crate::panel::{Panel, Series};
use crate::style::{COLOURS, DASHES, MARKERS, Style};
use crate::ticks::{self, Tick};

const INK: &str = "#16191d";
const SOFT: &str = "#5d6570";
const FAINT: &str = "#e4e6ea";
const PAPER: &str = "#ffffff";
/// Space around the figure, in pixels.
const MARGIN: f64 = 16.0;
/// Average width of a character, in pixels.
const CHARACTER: f64 = 6.8;
/// Pixels from one marker to the next on lines of many points.
const APART: f64 = 110.0;

/// Returns the colour of a line, from `--s0` to `--s7` of the style sheet.
fn colour(style: Style) -> &'static str {
    const STYLE: &str = include_str!("page/style.css");
    let after = STYLE.split_once(
        ["--s0: ", "--s1: ", "--s2: ", "--s3: ", "--s4: ", "--s5: ", "--s6: ", "--s7: "][style.colour % COLOURS],
    );
    after.and_then(|(_, rest)| rest.get(..7)).unwrap_or(INK)
}

/// A map from values to pixels.
#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    fn px(self, x: f64) -> f64 {
        // On a logarithmic axis zero is at its beginning.
        let f = |x: f64| if self.log { (if 0.0 < x { x } else { self.low }).ln() } else { x };
        let span = f(self.high) - f(self.low);
        self.from + (f(x) - f(self.low)) / if span == 0.0 { 1.0 } else { span } * (self.to - self.from)
    }

    fn shows(self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

/// A figure while it is drawn.
struct Drawing<'a> {
    figure: &'a Panel,
    x: Scale,
    y: Scale,
    out: String,
}

/// Height of a label of a mark, in pixels.
const LABEL: f64 = 13.0;

/// Returns the number of labels of marks above the plot.
fn labels(figure: &Panel) -> f64 {
    let labelled = figure.marks.iter().filter(|mark| !mark.label.is_empty() && figure.y.rows.is_empty());
    labelled.count() as f64
}

/// Returns the figure as SVG.
pub fn render(figure: &Panel) -> String {
    let width = if figure.wide { 960.0 } else { 600.0 };
    let rows = figure.y.rows.len() as f64;
    let height = if figure.y.rows.is_empty() { 300.0 } else { rows * 18.0 + 40.0 } + LABEL * labels(figure);
    let legend = legend_rows(figure, width);
    let heading =
        if figure.point.is_empty() { figure.title.clone() } else { format!("{}, {}", figure.title, figure.point) };
    let titles = wrapped(&heading, ((width / 8.2) as usize).max(20));
    let above = titles.len() as f64 * 20.0 + legend.len() as f64 * 20.0 + 6.0;
    let (full, tall) = (width + 2.0 * MARGIN, above + height + 2.0 * MARGIN);
    let mut drawing = Drawing::of(figure, width, height);
    drawing.axes();
    drawing.lines();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full} {tall}\" width=\"{full}\" height=\"{tall}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<title>{0}</title>\n\
         <rect width=\"{full}\" height=\"{tall}\" fill=\"{PAPER}\"/>\n",
        escape(&heading),
    );
    for (i, line) in titles.iter().enumerate() {
        let y = MARGIN + 15.0 + 20.0 * i as f64;
        let text = escape(line);
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{y}\" font-size=\"15\" font-weight=\"bold\" fill=\"{INK}\">{text}</text>"
        );
    }
    for (i, row) in legend.iter().enumerate() {
        let y = MARGIN + 14.0 + 20.0 * (titles.len() + i) as f64;
        out.extend(row.iter().map(|(series, x)| sample(series, MARGIN + x, y)));
    }
    let _ = writeln!(out, "<g transform=\"translate({MARGIN} {:.1})\">\n{}</g>\n</svg>", MARGIN + above, drawing.out);
    out
}

/// Returns a legend's entry: a piece of the line and its name.
fn sample(s: &Series, x: f64, y: f64) -> String {
    let mark = marker(s.style, if s.thin { Fill::Hollow } else { Fill::Solid }, (x + 17.0, y), 1.0);
    let name = escape(&s.name);
    format!(
        "<path d=\"M{x} {y}h34\" {}/>{mark}<text x=\"{}\" y=\"{}\" fill=\"{INK}\">{name}</text>\n",
        stroke(s),
        x + 40.0,
        y + 4.0,
    )
}

/// Returns the named lines in rows that are no wider than `width`, with the position of each.
fn legend_rows(figure: &Panel, width: f64) -> Vec<Vec<(&Series, f64)>> {
    let mut rows: Vec<Vec<(&Series, f64)>> = Vec::new();
    let mut room = 0.0;
    for series in figure.series.iter().filter(|s| (figure.y.rows.is_empty() || figure.parts) && !s.name.is_empty()) {
        let size = 62.0 + series.name.chars().count() as f64 * 7.0;
        if rows.is_empty() || room < size {
            rows.push(Vec::new());
            room = width;
        }
        rows.last_mut().expect("there is a row").push((series, width - room));
        room -= size;
    }
    rows
}

/// Splits a text into lines of at most `most` characters, as far as its words allow.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= most {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn stroke(s: &Series) -> String {
    let width = match (s.thin, s.step) {
        (true, _) => 1.0,
        (false, true) => 1.6,
        (false, false) => 2.0,
    };
    let dash = DASHES[s.style.dash];
    let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    format!("fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash}", colour(s.style))
}

/// The inside of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// The colour of its line.
    Solid,
    /// The colour of the paper.
    Hollow,
}

fn marker(style: Style, fill: Fill, (x, y): (f64, f64), size: f64) -> String {
    let corners: Vec<String> =
        MARKERS[style.marker].iter().map(|(dx, dy)| format!("{:.1} {:.1}", x + dx * size, y + dy * size)).collect();
    let line = colour(style);
    let fill = if fill == Fill::Hollow { PAPER } else { line };
    format!(
        "<path d=\"M{}Z\" fill=\"{fill}\" stroke=\"{line}\" stroke-width=\"1.4\" stroke-linejoin=\"round\"/>",
        corners.join("L")
    )
}

/// Returns `text` as the content of an element, with arrows in place of `->`.
fn escape(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    fairrate_text::escape(&text).replace("-&gt;", "\u{2192}")
}

impl<'a> Drawing<'a> {
    fn of(figure: &'a Panel, width: f64, height: f64) -> Self {
        let rows = !figure.y.rows.is_empty();
        let (x_low, x_high) = range_x(figure);
        let (y_low, y_high) = if rows { (-0.5, figure.y.rows.len() as f64 - 0.5) } else { range_y(figure) };
        let (top, bottom) = (if rows { 4.0 } else { 22.0 } + LABEL * labels(figure), height - 36.0);
        let (from, to) = if rows { (top, bottom) } else { (bottom, top) };
        let y = Scale { low: y_low, high: y_high, from, to, log: figure.y.log };
        let widest = y_ticks(figure, y).iter().map(|(_, text)| text.chars().count()).max().unwrap_or(1);
        let left = 10.0 + widest as f64 * CHARACTER;
        let x = Scale { low: x_low, high: x_high, from: left, to: width - 10.0, log: figure.x.log };
        Self { figure, x, y, out: String::new() }
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escape(text);
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{SOFT}\">{text}</text>"
        );
    }

    /// Draws the marked stretches of the horizontal axis; labels are above the plot, so that no line crosses them.
    fn marks(&mut self, top: f64, bottom: f64) {
        let mut line = labels(self.figure);
        for mark in &self.figure.marks {
            let px = |x: f64| self.x.px(x).clamp(self.x.from, self.x.to);
            let (from, to) = (px(mark.from), mark.to.map_or(self.x.to, px));
            let is_labelled = !mark.label.is_empty() && 0.0 < line;
            let above = if is_labelled { top - LABEL * line } else { top };
            let (width, height) = ((to - from).max(1.0), bottom - top);
            let _ = writeln!(
                self.out,
                "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{SOFT}\" opacity=\"0.14\"/>\n\
                 <path d=\"M{from:.1} {above:.1}V{bottom:.1}M{to:.1} {top:.1}V{bottom:.1}\" stroke=\"{SOFT}\" stroke-dasharray=\"2 3\"/>"
            );
            if is_labelled {
                let fits = from + mark.label.chars().count() as f64 * CHARACTER < self.x.to;
                let (x, anchor) = if fits { (from + 4.0, "start") } else { (from - 4.0, "end") };
                self.text(x, above + 10.0, anchor, &mark.label);
                line -= 1.0;
            }
        }
    }

    fn axes(&mut self) {
        let (left, right) = (self.x.from, self.x.to);
        let (top, bottom) = (self.y.from.min(self.y.to), self.y.from.max(self.y.to));
        self.marks(top, bottom);
        for (at, text) in y_ticks(self.figure, self.y) {
            let y = self.y.px(at);
            let _ = writeln!(self.out, "<path d=\"M{left:.1} {y:.1}H{right:.1}\" stroke=\"{FAINT}\"/>");
            self.text(left - 7.0, y + 4.0, "end", &text);
        }
        for (at, text) in self.x_ticks() {
            let x = self.x.px(at);
            let _ = writeln!(self.out, "<path d=\"M{x:.1} {bottom:.1}v4\" stroke=\"{SOFT}\"/>");
            self.text(x, bottom + 17.0, "middle", &text);
        }
        let _ = writeln!(self.out, "<path d=\"M{left:.1} {bottom:.1}H{right:.1}\" stroke=\"{SOFT}\"/>");
        let (x, y) = (self.figure.x.label.clone(), self.figure.y.label.clone());
        self.text(right, bottom + 33.0, "end", &x);
        self.text(0.0, 12.0, "start", &y);
    }

    /// Returns the figure's own ticks, without labels that would overlap others; round numbers if it has no ticks.
    fn x_ticks(&self) -> Vec<Tick> {
        let axis = &self.figure.x;
        let about = (((self.x.to - self.x.from) / 75.0) as usize).max(2);
        if axis.ticks.is_empty() {
            let of = if axis.log { ticks::logarithmic } else { ticks::linear };
            return of(self.x.low, self.x.high, about);
        }
        let mut end = f64::MIN;
        let label = |(at, text): &Tick| {
            let half = text.chars().count() as f64 * CHARACTER / 2.0;
            let fits = end + 6.0 <= self.x.px(*at) - half;
            end = if fits { self.x.px(*at) + half } else { end };
            (*at, if fits { text.clone() } else { String::new() })
        };
        axis.ticks.iter().filter(|(at, _)| self.x.shows(*at)).map(label).collect()
    }

    fn lines(&mut self) {
        let figure = self.figure;
        for s in figure.series.iter().filter(|s| !s.low.is_empty() && !figure.x.words) {
            let band = self.band(s);
            self.out.push_str(&band);
        }
        // The first line is the most important: it is drawn last, on top.
        for (i, s) in figure.series.iter().enumerate().rev() {
            let drawn = if figure.y.rows.is_empty() { self.line(s, i) } else { self.bars(s) };
            self.out.push_str(&drawn);
        }
    }

    fn line(&self, s: &Series, rank: usize) -> String {
        let among = self.figure.series.len();
        let words = self.figure.x.words;
        let aside = if words { (rank as f64 - (among as f64 - 1.0) / 2.0) * 11.0 } else { 0.0 };
        // Values of words are not joined, but a level is a line all the same: it has no marks.
        let mut out = if words && s.marks {
            self.whiskers(s, aside)
        } else {
            format!("<path d=\"{}\" {}/>\n", self.path(s), stroke(s))
        };
        if s.marks {
            for k in (0..s.x.len()).filter(|k| s.y[*k].is_finite()) {
                let fill = if s.thin || s.partial.contains(&k) { Fill::Hollow } else { Fill::Solid };
                out.push_str(&marker(s.style, fill, (self.x.px(s.x[k]) + aside, self.height(s.y[k])), 1.0));
            }
        } else if 1 < among && !words {
            out.push_str(&self.sparse_marks(s, (rank as f64 + 0.5) / among as f64));
        }
        out + "\n"
    }

    /// Returns a few markers along a line of many points, beside the markers of the other lines.
    fn sparse_marks(&self, s: &Series, first: f64) -> String {
        let mut out = String::new();
        let mut px = self.x.from + first * APART;
        while px < self.x.to {
            let before = s.x.partition_point(|x| self.x.px(*x) <= px).checked_sub(1);
            if let Some(k) = before.filter(|k| s.y[*k].is_finite() && k + 1 < s.x.len()) {
                let x = if s.step { px } else { self.x.px(s.x[k]) };
                out.push_str(&marker(s.style, Fill::Solid, (x, self.height(s.y[k])), 0.8));
            }
            px += APART;
        }
        out
    }

    /// Returns the vertical position of a value; on a logarithmic axis zero is at its foot.
    fn height(&self, y: f64) -> f64 {
        let foot = self.y.from + 2.0;
        if self.y.log && y <= 0.0 { foot } else { self.y.px(y) }
    }

    fn path(&self, s: &Series) -> String {
        let (mut d, mut pen) = (String::new(), false);
        for (x, y) in s.x.iter().zip(&s.y) {
            let (px, py) = (self.x.px(*x), self.height(*y));
            let _ = match (y.is_finite(), pen, s.step) {
                (false, ..) => Ok(()),
                (true, false, _) => write!(d, "M{px:.1} {py:.1}"),
                (true, true, true) => write!(d, "H{px:.1}V{py:.1}"),
                (true, true, false) => write!(d, "L{px:.1} {py:.1}"),
            };
            pen = y.is_finite();
        }
        d
    }

    /// Returns the area between the low and high ends of a line's points, as SVG paths.
    fn band(&self, s: &Series) -> String {
        let known: Vec<usize> = (0..s.x.len()).filter(|k| s.low[*k].is_finite() && s.high[*k].is_finite()).collect();
        let mut out = String::new();
        for run in known.chunk_by(|a, b| a + 1 == *b) {
            let at = |k: &usize, y: f64| format!("{:.1} {:.1}", self.x.px(s.x[*k]), self.height(y));
            let there = run.iter().map(|k| at(k, s.high[*k]));
            let corners: Vec<String> = there.chain(run.iter().rev().map(|k| at(k, s.low[*k]))).collect();
            let _ =
                writeln!(out, "<path d=\"M{}Z\" fill=\"{}\" opacity=\"0.16\"/>", corners.join("L"), colour(s.style));
        }
        out
    }

    fn whiskers(&self, s: &Series, aside: f64) -> String {
        let ends =
            s.x.iter().zip(s.low.iter().zip(&s.high)).filter(|(_, (low, high))| low.is_finite() && high.is_finite());
        let mut d = String::new();
        for (x, (low, high)) in ends {
            let (px, from, to) = (self.x.px(*x) + aside, self.height(*low), self.height(*high));
            let _ = write!(d, "M{px:.1} {from:.1}V{to:.1}");
        }
        format!("<path d=\"{d}\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", colour(s.style))
    }

    fn bars(&self, s: &Series) -> String {
        let (height, outline) = if s.thin { (4.0, format!(" stroke=\"{PAPER}\"")) } else { (10.0, String::new()) };
        let y = self.y.px(s.y[0]) - height / 2.0;
        let bar = |ends: &[f64]| {
            let (from, to) = (self.x.px(ends[0]), self.x.px(ends[1]));
            let (width, fill) = ((to - from).max(1.0), colour(s.style));
            format!(
                "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\"{outline}/>\n"
            )
        };
        s.x.chunks_exact(2).map(bar).collect()
    }
}

fn y_ticks(figure: &Panel, y: Scale) -> Vec<Tick> {
    if !figure.y.rows.is_empty() {
        return figure.y.rows.iter().cloned().zip(0..).map(|(text, at)| (f64::from(at), text)).collect();
    }
    let of = if y.log { ticks::logarithmic } else { ticks::linear };
    let about = if figure.y.whole { ((y.high - y.low) as usize).clamp(1, 5) } else { 5 };
    of(y.low, y.high, about)
}

/// Returns the range of all data of all lines and the axis's own least range.
fn range_x(figure: &Panel) -> (f64, f64) {
    let axis = &figure.x;
    let shown = |x: &f64| x.is_finite() && !(axis.log && *x <= 0.0);
    let values = figure.series.iter().flat_map(|s| &s.x).copied().filter(shown);
    let (low, high) = values.fold(axis.range.unwrap_or((f64::MAX, f64::MIN)), |(l, h), x| (l.min(x), h.max(x)));
    match (low < high, axis.log) {
        (_, true) if high < low => (1.0, 10.0),
        (_, false) if high < low => (0.0, 1.0),
        (false, true) => (low / 2.0, low * 2.0),
        (false, false) => (low - 0.5, low + 0.5),
        _ if axis.words || !figure.series.iter().any(|s| s.marks) => (low, high),
        // Room at the ends, so that no marker is cut in two.
        (true, true) => (low / (high / low).powf(0.03), high * (high / low).powf(0.03)),
        (true, false) => (low - 0.03 * (high - low), high + 0.03 * (high - low)),
    }
}

fn range_y(figure: &Panel) -> (f64, f64) {
    let axis = &figure.y;
    let values = figure.series.iter().flat_map(|s| s.y.iter().chain(&s.low).chain(&s.high)).copied();
    let shown = values.filter(|y| y.is_finite() && !(axis.log && *y <= 0.0));
    let own = axis.range.filter(|(low, _)| !axis.log || 0.0 < *low);
    let (low, high) = shown.fold(own.unwrap_or((f64::MAX, f64::MIN)), |(l, h), y| (l.min(y), h.max(y)));
    match axis.range {
        _ if high < low => (if axis.log { 1.0 } else { 0.0 }, 2.0),
        _ if axis.log => (low, if low < high { high * 1.05 } else { 2.0 * low }),
        _ if low == high => (low, low + 1.0),
        Some((_, 1.0)) if high <= 1.0 => (low, 1.0),
        _ => (low, high + (high - low) * 0.05),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Comparison;
    use crate::metrics::Metrics;
    use crate::{figures, synthetic};

    fn all() -> Vec<Panel> {
        let grid: &[(&str, &[&str])] = &[("load", &["0.2", "0.4"])];
        let words: &[(&str, &[&str])] = &[("pfc", &["true", "false"])];
        let sets = [
            synthetic::comparison(&["powertcp", "hpcc", "swift"], &[1]),
            synthetic::comparison(&["powertcp"], &[1]),
            synthetic::grid(&["powertcp", "hpcc"], grid, &[1, 2, 3]),
            synthetic::grid(&["powertcp", "hpcc"], words, &[1, 2, 3]),
        ];
        let of = |variants: &Vec<_>| {
            let comparison = Comparison::of(variants.iter().map(Metrics::of).collect());
            figures::all(variants, &comparison, &figures::Selection::default())
                .into_iter()
                .flat_map(|c| c.figures)
                .collect::<Vec<_>>()
        };
        sets.iter().flat_map(of).collect()
    }

    #[test]
    fn every_figure_is_well_formed_and_has_all_its_lines() {
        for figure in all() {
            let svg = render(&figure);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", figure.title);
            // Every element is closed: by itself, or by its end.
            let (open, closed) = (svg.matches('<').count(), svg.matches("/>").count() + 2 * svg.matches("</").count());
            assert_eq!(open, closed, "{}", figure.title);
            for s in figure.series.iter().filter(|s| !s.name.is_empty()) {
                assert!(svg.contains(&escape(&s.name)), "{} lacks {}", figure.title, s.name);
            }
        }
    }

    #[test]
    fn a_figure_without_data_has_axes() {
        for log in [false, true] {
            let mut figure = Panel { title: "nothing".into(), ..Panel::default() };
            (figure.x.log, figure.y.log) = (log, log);
            let svg = render(&figure);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn names_cannot_break_out_of_a_picture() {
        let series =
            Series { name: "</text><script>".into(), x: vec![0.0, 1.0], y: vec![1.0, 2.0], ..Series::default() };
        let figure = Panel { title: "a & b -> c \u{1b}".into(), series: vec![series], ..Panel::default() };
        let svg = render(&figure);
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}') && svg.contains("a &amp; b \u{2192} c"), "{svg}");
    }
}
