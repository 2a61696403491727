//! Which figures a report has, and what they show.

use std::collections::HashSet;

use crate::comparison::Comparison;
use crate::figure::{Axis, Figure, Series, TimeUnit};
use crate::format;
use crate::metric::Metric;
use crate::metrics::{Metrics, Share};
use crate::model::{Flow, FlowSeries, PortSeries, RunData, Variant};
use crate::pauses::{intervals, paused_ports};
use crate::series::{bin_width, cdf, downsample, drop_repeats, growth};
use crate::stats;
use crate::style::{self, Style};
use crate::sweep::Grid;
use crate::table::Table;

/// Points of a line at most: about two a pixel on a wide screen.
const POINTS: usize = 2_000;
/// Points of a line of a page with many lines: the page is to be mailed.
const FEW_POINTS: usize = 200;
/// Points of the lines of a figure, or of the figures of all points of a grid, for as long as that leaves [`FEW_POINTS`].
const POINTS_IN_ALL: usize = 32_000;
/// Columns that get lines against time at most. Figures over a grid have all columns.
pub const MAX_DRAWN: usize = style::DISTINCT;
/// Ports that get figures of their own.
const MAX_PORTS: usize = 4;
/// Flows that get lines of their own.
const MAX_FLOWS: usize = 16;
/// Rows of the pause chart.
const MAX_PAUSED: usize = 24;
/// From here on the workload is about how long flows take, and that comes first.
const MANY_FLOWS: usize = 1_000;
/// Bins of throughput over a whole run.
const BINS: f64 = 400.0;

/// The figures about the same thing, under a heading.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Chapter {
    /// Heading.
    pub title: String,
    /// The point of a grid that it is about, as `load=0.6`; empty: the whole grid, or there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// A line of the figures: an algorithm, or one with other parameters.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Line {
    /// What series of it have for a key.
    pub key: String,
    /// Name in legends.
    pub name: String,
    /// Its look.
    #[serde(flatten)]
    pub style: Style,
}

/// The lines of a report, each with a look of its own: at every point of a grid an algorithm has the same.
pub fn lines(variants: &[Variant]) -> Vec<Line> {
    let mut seen = HashSet::new();
    let first: Vec<&Variant> = variants.iter().filter(|v| seen.insert(v.line.as_str())).collect();
    let ccs: Vec<&str> = first.iter().map(|v| v.first().cc.as_str()).collect();
    let of = |(v, style): (&&Variant, Style)| Line { key: v.line.clone(), name: v.line.clone(), style };
    first.iter().zip(style::styles(&ccs)).map(of).collect()
}

/// All figures of a report, in order; chapters without any are left out. Over a grid come `metrics` first, or the usual ones
/// if these are none, and then what there is to see at each of its points.
pub fn all(variants: &[Variant], comparison: &Comparison, metrics: &[Metric]) -> Vec<Chapter> {
    let lines = lines(variants);
    let drawn = &variants[..variants.len().min(MAX_DRAWN)];
    let chapters = match Grid::of(variants, &comparison.metrics) {
        Some(grid) => {
            let usual = Metric::usual(&comparison.metrics);
            let metrics = if metrics.is_empty() { &usual } else { metrics };
            let looks = looks(&lines);
            let figures = metrics.iter().flat_map(|m| grid.figures(*m, &looks)).collect();
            let over = Chapter { title: format!("Over {}", grid.parameter()), figures, ..Chapter::default() };
            std::iter::once(over).chain(at_each_point(drawn, &lines)).collect()
        }
        None => chapters(&drawn.iter().collect::<Vec<_>>(), &lines, points(drawn.len())),
    };
    let mut chapters: Vec<Chapter> = chapters.into_iter().filter(|c| !c.figures.is_empty()).collect();
    name_files(&mut chapters);
    chapters
}

fn looks(lines: &[Line]) -> Vec<(&str, Style)> {
    lines.iter().map(|l| (l.key.as_str(), l.style)).collect()
}

/// The numbers that `metrics` draw over a grid, as a table; `None` without a grid.
pub fn table_over_grid(variants: &[Variant], comparison: &Comparison, metrics: &[Metric]) -> Option<Table> {
    Some(Grid::of(variants, &comparison.metrics)?.table(metrics, &looks(&lines(variants))))
}

/// Points of a line where there are `n` columns.
fn points(n: usize) -> usize {
    (POINTS_IN_ALL / n.max(1)).clamp(FEW_POINTS, POINTS)
}

/// The chapters of each point of a grid.
fn at_each_point(variants: &[Variant], lines: &[Line]) -> Vec<Chapter> {
    let mut seen = HashSet::new();
    let places = variants.iter().map(|v| v.first().point.as_str()).filter(|point| seen.insert(*point));
    let mut all = Vec::new();
    for point in places {
        let here: Vec<&Variant> = variants.iter().filter(|v| v.first().point == point).collect();
        for mut chapter in chapters(&here, lines, points(variants.len())) {
            point.clone_into(&mut chapter.point);
            for figure in &mut chapter.figures {
                point.clone_into(&mut figure.point);
            }
            all.push(chapter);
        }
    }
    all
}

/// Gives figures names that differ: chapter, title and point of the grid.
fn name_files(chapters: &mut [Chapter]) {
    let mut taken = HashSet::new();
    for chapter in chapters {
        for figure in &mut chapter.figures {
            let words = format!("{} {} {}", chapter.title, figure.title, figure.point);
            let name = file_name(&words);
            let names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}")));
            figure.file = names.into_iter().find(|name| taken.insert(name.clone())).unwrap_or_default();
        }
    }
}

/// Characters of the name of a figure's file at most.
const LONGEST_NAME: usize = 100;

/// Words as the name of a file: lower case, everything else than letters, digits and `.=` a dash.
fn file_name(words: &str) -> String {
    let mut name = String::new();
    for c in words.replace('\u{3b8}', "theta").chars().flat_map(char::to_lowercase) {
        let kept = c.is_ascii_alphanumeric() || ".=".contains(c);
        if kept {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(LONGEST_NAME);
    name.trim_matches(['-', '.']).to_owned()
}

/// The chapters of columns that are drawn together.
fn chapters(variants: &[&Variant], lines: &[Line], points: usize) -> Vec<Chapter> {
    let page = Page { variants, lines, points, unit: TimeUnit::for_span(span_ns(variants)) };
    let chapter = |title: &str, figures| Chapter { title: title.to_owned(), figures, ..Chapter::default() };
    let mut chapters = [
        chapter("At the switches", page.ports()),
        chapter("Flow completion", page.slowdown_by_size()),
        chapter("Flow by flow", page.flows()),
        chapter("Distributions", page.distributions()),
        chapter("Priority flow control", page.pauses()),
    ];
    if MANY_FLOWS <= page.completions() {
        chapters.swap(0, 1);
    }
    chapters.into()
}

fn span_ns(variants: &[&Variant]) -> f64 {
    variants.iter().flat_map(|v| &v.runs).map(|r| r.totals.end_ns).fold(0.0, f64::max)
}

struct Page<'a> {
    variants: &'a [&'a Variant],
    lines: &'a [Line],
    /// Points of a line at most.
    points: usize,
    unit: TimeUnit,
}

impl Page<'_> {
    fn each(&self) -> impl Iterator<Item = (&Variant, Style)> {
        let look = |v: &Variant| self.lines.iter().find(|l| l.key == v.line).map_or_else(Style::default, |l| l.style);
        self.variants.iter().map(move |v| (*v, look(v)))
    }

    /// The time axis: the whole run.
    fn time(&self) -> Axis {
        self.unit.axis().showing(0.0, span_ns(self.variants) / self.unit.ns)
    }

    /// Throughput and queue of each probed port.
    fn ports(&self) -> Vec<Figure> {
        self.port_names().iter().flat_map(|name| [self.throughput(name), self.queue(name)]).collect()
    }

    /// The probed ports with the longest queues, in the order they were probed.
    fn port_names(&self) -> Vec<String> {
        let ports = || self.variants.iter().flat_map(|v| &v.first().ports);
        let mut names: Vec<String> = Vec::new();
        for port in ports() {
            if !names.contains(&port.name) {
                names.push(port.name.clone());
            }
        }
        let peak = |name: &String| {
            let queues = ports().filter(|p| p.name == *name).flat_map(|p| &p.qlen_bytes);
            queues.copied().fold(0.0, f64::max)
        };
        let mut by_peak: Vec<(f64, usize)> = names.iter().map(peak).zip(0..).collect();
        by_peak.sort_by(|a, b| b.0.total_cmp(&a.0));
        by_peak.truncate(MAX_PORTS);
        let mut kept: Vec<usize> = by_peak.into_iter().map(|(_, i)| i).collect();
        kept.sort_unstable();
        kept.into_iter().map(|i| names[i].clone()).collect()
    }

    fn throughput(&self, port: &str) -> Figure {
        let width = bin_width(span_ns(self.variants), BINS, self.sample_interval(port));
        let line = |p: &PortSeries| {
            let (t, rate) = growth(&p.t_ns, &p.tx_bytes, width);
            (self.unit.of(&t), rate.iter().map(|r| r * 8.0).collect())
        };
        let capacity = self.variants.iter().flat_map(|v| &v.first().ports).find(|p| p.name == port);
        let gbps = capacity.and_then(|p| p.capacity_bps).map_or(0.0, |c| c / 1e9);
        Figure {
            title: format!("Throughput of {port}"),
            note: format!("Bits on the wire, headers included, in bins of {}", format::time_ns(width)),
            x: self.time(),
            y: Axis::new("throughput (Gb/s)").showing(0.0, gbps),
            series: self.port_lines(port, false, line),
            ..Figure::default()
        }
    }

    fn queue(&self, port: &str) -> Figure {
        let line = |p: &PortSeries| {
            let kilobytes: Vec<f64> = p.qlen_bytes.iter().map(|q| q / 1e3).collect();
            let (t, q) = drop_repeats(&self.unit.of(&p.t_ns), &kilobytes);
            downsample(&t, &q, self.points)
        };
        Figure {
            title: format!("Queue of {port}"),
            note: format!("Sampled every {}; no peak is lost to drawing", format::time_ns(self.sample_interval(port))),
            x: self.time(),
            y: Axis::new("queue (KB)").showing(0.0, 0.0),
            series: self.port_lines(port, true, line),
            ..Figure::default()
        }
    }

    /// The shortest time between two samples of a port, in ns.
    fn sample_interval(&self, port: &str) -> f64 {
        let ports = self.variants.iter().flat_map(|v| &v.first().ports).filter(|p| p.name == port);
        let steps = ports.flat_map(|p| p.t_ns.windows(2).take(100).map(|t| t[1] - t[0]));
        steps.filter(|s| 0.0 < *s).reduce(f64::min).unwrap_or(1.0)
    }

    /// A line for each variant that probed the port.
    fn port_lines(&self, port: &str, step: bool, line: impl Fn(&PortSeries) -> (Vec<f64>, Vec<f64>)) -> Vec<Series> {
        let of = |(variant, style): (&Variant, Style)| {
            let found = variant.first().ports.iter().find(|p| p.name == port)?;
            let (x, y) = line(found);
            Some(Series { step, x, y, ..variant_line(variant, style) })
        };
        self.each().filter_map(of).collect()
    }

    /// How many flows of finite size have finished, under the algorithm where most did.
    fn completions(&self) -> usize {
        let finished = |v: &&Variant| v.runs.iter().flat_map(|r| &r.flows).filter(|f| f.slowdown.is_some()).count();
        self.variants.iter().map(finished).max().unwrap_or(0)
    }

    fn slowdown_by_size(&self) -> Vec<Figure> {
        let series: Vec<Series> = self.each().flat_map(|(v, style)| slowdown_by_size(v, style)).collect();
        // Flows of one size make a point, not a line.
        if series.iter().all(|s| s.x.len() < 2) {
            return Vec::new();
        }
        vec![Figure {
            title: "FCT slowdown by flow size".into(),
            note: format!(
                "Filled: 99th percentile. Thin and hollow: median. A point per half decade of sizes, at its median size{}",
                self.unfinished(". Of the flows that finished: "),
            ),
            x: Axis::new("flow size (bytes)").logarithmic(),
            y: Axis::new("FCT / ideal FCT").logarithmic().showing(1.0, 2.0),
            series,
            wide: true,
            ..Figure::default()
        }]
    }

    /// Under which algorithms not all flows finished, with words before it; empty if all did.
    fn unfinished(&self, before: &str) -> String {
        let share = |v: &Variant| Metrics::finished(&v.runs);
        let told = self.variants.iter().filter_map(|v| share(v).map(|share| format!("{share} under {}", v.line)));
        let told: Vec<String> = told.collect();
        if told.is_empty() { String::new() } else { format!("{before}{}", told.join(", ")) }
    }

    fn distributions(&self) -> Vec<Figure> {
        let slowdown = (2 <= self.completions()).then(|| self.slowdown_cdf());
        let probed = self.variants.iter().flat_map(|v| &v.runs).any(|r| !r.settled_rtts.is_empty());
        let convergence = probed.then(|| self.convergence_cdf());
        let several = self.variants.iter().any(|v| 1 < v.first().ports.len());
        let pooled = several.then(|| self.pooled_queue_cdf());
        let names = self.port_names();
        let each = names.iter().filter(|_| names.len() < MAX_PORTS).map(|name| self.queue_cdf(name));
        slowdown.into_iter().chain(convergence).chain(pooled).chain(each).collect()
    }

    /// How long rates took to settle; a curve that ends below 1 has changes after which they did not.
    fn convergence_cdf(&self) -> Figure {
        let line = |(variant, style): (&Variant, Style)| {
            let values: Vec<f64> = variant.runs.iter().flat_map(|r| &r.settled_rtts).copied().collect();
            let (mut x, mut y) = cdf(&values, |_| 1.0, self.points / 4);
            x.retain(|rtts| rtts.is_finite());
            y.truncate(x.len());
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        Figure {
            title: "Convergence of rates".into(),
            note:
                "Fraction of the arrivals and departures of flows, of all seeds, after which rates had settled by then"
                    .into(),
            x: Axis::new("time (base RTTs)").showing(0.0, 0.0),
            y: Axis::new("fraction of changes").showing(0.0, 1.0),
            series: self.each().map(line).filter(|s| !s.x.is_empty()).collect(),
            ..Figure::default()
        }
    }

    fn slowdown_cdf(&self) -> Figure {
        let line = |(variant, style): (&Variant, Style)| {
            let flows = variant.runs.iter().flat_map(|r| &r.flows);
            let values: Vec<f64> = flows.filter_map(|f| f.slowdown).collect();
            let (x, mut y) = cdf(&values, |_| 1.0, self.points / 4);
            if let Some(Share { finished, flows }) = Metrics::finished(&variant.runs) {
                y.iter_mut().for_each(|y| *y *= finished as f64 / flows as f64);
            }
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        Figure {
            title: "FCT slowdown".into(),
            note: format!(
                "Fraction of the flows, all sizes and seeds, that finished and were no slower than this{}",
                self.unfinished(". Finished: "),
            ),
            x: Axis::new("FCT / ideal FCT").logarithmic(),
            y: Axis::new("fraction of flows").showing(0.0, 1.0),
            series: self.each().map(line).collect(),
            ..Figure::default()
        }
    }

    /// How much of the time the queue of a port was how long.
    fn queue_cdf(&self, port: &str) -> Figure {
        Figure {
            title: format!("Queue of {port}"),
            note: "Fraction of the sampled time that the queue was no longer than this".into(),
            x: Axis::new("queue (KB)").showing(0.0, 0.0),
            y: Axis::new("fraction of time").showing(0.0, 1.0),
            series: self.port_lines(port, true, |p| time_at_length(&[p], self.points / 4)),
            ..Figure::default()
        }
    }

    /// The same of all probed ports, of all seeds.
    fn pooled_queue_cdf(&self) -> Figure {
        let line = |(variant, style): (&Variant, Style)| {
            let ports: Vec<&PortSeries> = variant.runs.iter().flat_map(|r| &r.ports).collect();
            let (x, y) = time_at_length(&ports, self.points / 4);
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        let n = self.variants.iter().map(|v| v.first().ports.len()).max().unwrap_or(0);
        Figure {
            title: format!("Queues of all {n} probed ports"),
            note: "Fraction of the sampled time, over all ports and seeds, that a queue was no longer than this".into(),
            x: Axis::new("queue (KB)").showing(0.0, 0.0),
            y: Axis::new("fraction of time").showing(0.0, 1.0),
            series: self.each().map(line).collect(),
            ..Figure::default()
        }
    }

    /// Goodput of each probed flow: one small chart per variant; with a single run, pacing rate and window too.
    fn flows(&self) -> Vec<Figure> {
        let probed: Vec<(&Variant, Vec<&FlowSeries>)> =
            self.variants.iter().map(|v| (*v, most_telling(v.first()))).filter(|(_, f)| !f.is_empty()).collect();
        let single = self.variants.len() == 1;
        let mut figures: Vec<Figure> = probed.iter().map(|(v, flows)| self.goodput(v, flows, !single)).collect();
        let top = |f: &Figure| f.series.iter().flat_map(|s| &s.y).copied().fold(0.0, f64::max);
        let highest = figures.iter().map(top).fold(0.0, f64::max);
        for figure in &mut figures {
            figure.y.range = Some((0.0, highest));
        }
        if let (true, Some((variant, flows))) = (single, probed.first()) {
            figures.push(self.sender_state(variant, flows, "Pacing rate", "rate (Gb/s)", |s| (&s.rate_bps, 1e9)));
            figures.push(self.sender_state(variant, flows, "Congestion window", "cwnd (KB)", |s| (&s.cwnd_bytes, 1e3)));
        }
        figures.retain(|f| f.series.iter().any(|s| s.y.iter().any(|y| y.is_finite())));
        figures
    }

    fn goodput(&self, variant: &Variant, flows: &[&FlowSeries], small: bool) -> Figure {
        let steps = flows.iter().flat_map(|s| s.t_ns.windows(2).take(100)).map(|t| t[1] - t[0]);
        let finest = steps.filter(|s| 0.0 < *s).reduce(f64::min).unwrap_or(1.0);
        let width = bin_width(span_ns(self.variants), BINS / 2.0, 2.0 * finest);
        let line = |(i, s): (usize, &&FlowSeries)| {
            let (t, rate) = growth(&s.t_ns, &s.delivered_bytes, width);
            let gbps = rate.iter().map(|r| r * 8.0).collect();
            Series { x: self.unit.of(&t), y: gbps, ..flow_line(i, s) }
        };
        let probed = variant.first().rates.len();
        let shown =
            if flows.len() < probed { format!("; {} of {probed} probed flows", flows.len()) } else { String::new() };
        Figure {
            title: if small { variant.line.clone() } else { "Goodput of each flow".to_owned() },
            note: format!("Goodput: payload received in order, in bins of {}{shown}", format::time_ns(width)),
            x: self.time(),
            y: Axis::new("goodput (Gb/s)"),
            series: flows.iter().enumerate().map(line).collect(),
            small,
            wide: !small,
            ..Figure::default()
        }
    }

    fn sender_state(
        &self,
        variant: &Variant,
        flows: &[&FlowSeries],
        title: &str,
        label: &str,
        pick: fn(&FlowSeries) -> (&Vec<f64>, f64),
    ) -> Figure {
        let line = |(i, s): (usize, &&FlowSeries)| {
            let (values, unit) = pick(s);
            let scaled: Vec<f64> = values.iter().map(|v| v / unit).collect();
            let (t, y) = drop_repeats(&self.unit.of(&s.t_ns), &scaled);
            let (x, y) = downsample(&t, &y, self.points / 2);
            Series { step: true, x, y, ..flow_line(i, s) }
        };
        Figure {
            title: title.to_owned(),
            note: format!("As the sender's {} controller allows", variant.title),
            x: self.time(),
            y: Axis::new(label).showing(0.0, 0.0),
            series: flows.iter().enumerate().map(line).collect(),
            ..Figure::default()
        }
    }

    /// Ports paused at the same time; with a single run, which ones.
    fn pauses(&self) -> Vec<Figure> {
        if self.variants.iter().all(|v| v.first().pauses.is_empty()) {
            return Vec::new();
        }
        let line = |(variant, style): (&Variant, Style)| {
            let (t, n) = paused_ports(&variant.first().pauses, variant.first().totals.end_ns);
            let (x, y) = downsample(&self.unit.of(&t), &n, self.points);
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        let mut figures = vec![Figure {
            title: "Paused ports".into(),
            note: "Ports that a pause frame holds back, all classes".into(),
            x: self.time(),
            y: Axis::new("ports").showing(0.0, 1.0),
            series: self.each().map(line).collect(),
            wide: true,
            ..Figure::default()
        }];
        if let ([variant], Some((_, style))) = (self.variants, self.each().next()) {
            figures.push(self.pause_bars(&variant.line, variant.first(), style));
        }
        figures
    }

    /// One row a port, one bar a pause; a series holds the two ends of each bar of its row.
    fn pause_bars(&self, key: &str, run: &RunData, style: Style) -> Figure {
        let mut bars: Vec<(String, Vec<f64>)> = Vec::new();
        for (port, from, to) in intervals(&run.pauses, run.totals.end_ns) {
            match bars.iter_mut().find(|(name, _)| *name == port) {
                Some((_, ends)) => ends.extend([from, to]),
                None => bars.push((port, vec![from, to])),
            }
        }
        let paused = |ends: &[f64]| ends.chunks(2).map(|e| e[1] - e[0]).sum::<f64>();
        bars.sort_by(|a, b| paused(&b.1).total_cmp(&paused(&a.1)).then_with(|| a.0.cmp(&b.0)));
        let n = bars.len();
        bars.truncate(MAX_PAUSED);
        let rows = bars.iter().map(|(name, _)| name.clone()).collect();
        let series = bars.iter().enumerate().map(|(row, (name, ends))| Series {
            key: key.to_owned(),
            name: name.clone(),
            style,
            x: self.unit.of(&ends[..ends.len().min(2 * self.points)]),
            y: vec![row as f64],
            hint: vec![format!("{} paused", format::time_ns(paused(ends)))],
            ..Series::default()
        });
        Figure {
            title: "Pauses by port".into(),
            note: if MAX_PAUSED < n { format!("The {MAX_PAUSED} longest paused of {n} ports") } else { String::new() },
            x: self.time(),
            y: Axis { rows, ..Axis::default() },
            series: series.collect(),
            wide: true,
            ..Figure::default()
        }
    }
}

/// The distribution of queue lengths, in KB, over the time they were held.
fn time_at_length(ports: &[&PortSeries], points: usize) -> (Vec<f64>, Vec<f64>) {
    let held = |p: &PortSeries| -> Vec<f64> {
        let until_next = p.t_ns.windows(2).map(|t| t[1] - t[0]);
        until_next.chain([0.0]).take(p.t_ns.len()).collect()
    };
    let weights: Vec<f64> = ports.iter().flat_map(|p| held(p)).collect();
    let kilobytes: Vec<f64> = ports.iter().flat_map(|p| p.qlen_bytes.iter().map(|q| q / 1e3)).collect();
    cdf(&kilobytes, |i| weights[i], points)
}

fn variant_line(variant: &Variant, style: Style) -> Series {
    Series { key: variant.line.clone(), name: variant.line.clone(), style, ..Series::default() }
}

/// Flows are many and their lines close together: they get dashes only once colours are used up.
fn flow_line(i: usize, series: &FlowSeries) -> Series {
    Series {
        key: format!("flow {}", series.flow),
        name: series.name.clone(),
        style: Style::nth(i),
        ..Series::default()
    }
}

/// The probed flows that are drawn: endless ones first, then the largest.
fn most_telling(run: &RunData) -> Vec<&FlowSeries> {
    let size = |s: &FlowSeries| run.flows.iter().find(|f| f.id == s.flow).and_then(|f| f.bytes).unwrap_or(u64::MAX);
    let mut flows: Vec<(u64, &FlowSeries)> =
        run.rates.iter().filter(|s| 2 <= s.t_ns.len()).map(|s| (size(s), s)).collect();
    flows.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.flow.cmp(&b.1.flow)));
    flows.truncate(MAX_FLOWS);
    let mut flows: Vec<&FlowSeries> = flows.into_iter().map(|(_, s)| s).collect();
    flows.sort_by_key(|s| s.flow);
    flows
}

/// Two lines, 99th percentile and median, with a point for each half decade of flow sizes.
fn slowdown_by_size(variant: &Variant, style: Style) -> [Series; 2] {
    let half_decade = |bytes: u64| ((bytes.max(1) as f64).log10() * 2.0 + 1e-9).floor() as usize;
    let mut groups: Vec<Vec<(u64, f64)>> = vec![Vec::new(); 40];
    let sized = |f: &Flow| f.bytes.zip(f.slowdown);
    for (bytes, slowdown) in variant.runs.iter().flat_map(|r| &r.flows).filter_map(sized) {
        groups[half_decade(bytes)].push((bytes, slowdown));
    }
    groups.retain(|g| !g.is_empty());
    let size = |g: &Vec<(u64, f64)>| stats::percentile(&stats::sorted(g.iter().map(|f| f.0 as f64)), 0.5);
    let at = |p: f64| move |g: &Vec<(u64, f64)>| stats::percentile(&stats::sorted(g.iter().map(|f| f.1)), p);
    let x: Vec<f64> = groups.iter().filter_map(size).collect();
    let hint: Vec<String> = groups.iter().map(|g| format!("{} flows", format::count(g.len() as f64))).collect();
    let base = variant_line(variant, style);
    let p99 = groups.iter().filter_map(at(0.99)).collect();
    let p50 = groups.iter().filter_map(at(0.5)).collect();
    [
        Series { marks: true, x: x.clone(), y: p99, hint: hint.clone(), ..base.clone() },
        Series { marks: true, thin: true, name: String::new(), x, y: p50, hint, ..base },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn all(variants: &[Variant]) -> Vec<Chapter> {
        super::all(variants, &Comparison::of(variants.iter().map(Metrics::of).collect()), &[])
    }

    #[test]
    fn lines_of_one_figure_are_pairwise_distinct() {
        let readme = ["powertcp", "theta-powertcp", "hpcc", "timely", "dcqcn", "dctcp", "swift"];
        let all_algorithms: Vec<&str> = fairrate_control::ALGORITHMS.iter().map(|a| a.name).collect();
        for ccs in [&readme[..], &["rocc", "dcqcn"], &all_algorithms] {
            let chapters = all(&synthetic::comparison(ccs, &[1]));
            for figure in chapters.iter().flat_map(|c| &c.figures).filter(|f| f.y.rows.is_empty()) {
                let looks: HashSet<_> = figure.series.iter().map(|s| (s.style.colour, s.style.dash, s.thin)).collect();
                assert_eq!(looks.len(), figure.series.len(), "{}", figure.title);
            }
        }
    }

    #[test]
    fn figures_have_files_of_their_own() {
        let mut variants = synthetic::grid(&["powertcp", "hpcc"], &[("load", &["0.2", "0.4"])], &[1]);
        for run in variants.iter_mut().flat_map(|v| &mut v.runs) {
            let second = PortSeries { name: "tor0->H16".into(), ..run.ports[0].clone() };
            run.ports.push(second);
        }
        let chapters = all(&variants);
        let files: Vec<&str> = chapters.iter().flat_map(|c| &c.figures).map(|f| f.file.as_str()).collect();
        assert_eq!(files.iter().collect::<HashSet<_>>().len(), files.len(), "{files:?}");
        let fit =
            |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-.=".contains(c)) && name.len() <= 110;
        assert!(files.iter().all(fit), "{files:?}");
        assert!(files.contains(&"at-the-switches-queue-of-tor0-h16-load=0.2"), "{files:?}");
    }

    #[test]
    fn every_column_of_a_grid_is_drawn() {
        let loads: Vec<String> = (1..=10).map(|i| format!("0.{i:02}")).collect();
        let loads: Vec<&str> = loads.iter().map(String::as_str).collect();
        let variants = synthetic::grid(&["powertcp", "hpcc"], &[("load", &loads)], &[1]);
        let chapters = all(&variants);
        let over = &chapters[0];
        assert_eq!((over.title.as_str(), over.point.as_str()), ("Over load", ""));
        assert!(over.figures[0].series.iter().all(|s| s.x.len() == 10));
        let mut queues = chapters.iter().flat_map(|c| &c.figures).filter(|f| f.title == "Queue of tor0->h16");
        assert!(queues.clone().count() == 20 && queues.all(|f| f.series.len() == 2 && !f.point.is_empty()));
    }

    #[test]
    fn distributions_of_slowdowns_end_where_flows_do_not() {
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        for flow in variants[1].runs[0].flows.iter_mut().take(750) {
            (flow.fct_ns, flow.slowdown) = (None, None);
        }
        let chapters = all(&variants);
        let figure = chapters.iter().flat_map(|c| &c.figures).find(|f| f.title == "FCT slowdown").unwrap();
        let ends: Vec<Option<&f64>> = figure.series.iter().map(|s| s.y.last()).collect();
        assert_eq!(ends, [Some(&1.0), Some(&0.75)]);
        assert!(figure.note.ends_with("Finished: 2,250 of 3,000 under HPCC"), "{}", figure.note);
    }

    #[test]
    fn a_comparison_overlays_every_algorithm_in_every_chapter() {
        let variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2]);
        let chapters = all(&variants);
        let titles: Vec<&str> = chapters.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles.len(), 5, "{titles:?}");
        for figure in chapters.iter().flat_map(|c| &c.figures).filter(|f| !f.small) {
            let keys: std::collections::BTreeSet<&str> = figure.series.iter().map(|s| s.key.as_str()).collect();
            assert_eq!(keys.len(), 2, "{}", figure.title);
            assert!(figure.series.iter().all(|s| s.x.len() == s.y.len() && !s.x.is_empty()), "{}", figure.title);
        }
        assert_eq!(chapters[2].figures.len(), 2, "a small chart of flows per algorithm");
    }

    #[test]
    fn a_single_run_shows_windows_and_which_ports_were_paused() {
        let variants = synthetic::comparison(&["powertcp"], &[1]);
        let chapters = all(&variants);
        let titles: Vec<&str> = chapters.iter().flat_map(|c| &c.figures).map(|f| f.title.as_str()).collect();
        for want in ["Goodput of each flow", "Pacing rate", "Congestion window", "Pauses by port"] {
            assert!(titles.contains(&want), "{want} in {titles:?}");
        }
    }

    #[test]
    fn convergence_has_a_line_for_each_algorithm() {
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2]);
        for (variant, slow) in variants.iter_mut().zip([1.0, 3.0]) {
            for run in &mut variant.runs {
                run.settled_rtts = vec![slow, 2.0 * slow, 4.0 * slow, f64::INFINITY];
            }
        }
        let chapters = all(&variants);
        let mut figures = chapters.iter().flat_map(|c| &c.figures);
        let figure = figures.find(|f| f.title == "Convergence of rates").unwrap();
        let points = |s: &Series| (s.key.clone(), s.x.clone(), s.y.clone());
        let got: Vec<_> = figure.series.iter().map(points).collect();
        let y = vec![0.25, 0.5, 0.75];
        assert_eq!(got[0], ("PowerTCP".into(), vec![1.0, 2.0, 4.0], y.clone()));
        assert_eq!(got[1], ("HPCC".into(), vec![3.0, 6.0, 12.0], y));
    }

    #[test]
    fn nothing_probed_and_nothing_finished_gives_no_figures() {
        let variants = crate::model::variants(vec![RunData::default()]);
        assert_eq!(all(&variants), Vec::new());
    }
}
