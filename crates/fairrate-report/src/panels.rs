//! The figures of columns that are drawn together: against time, against flow size, and as distributions.

use std::num::NonZeroU64;

use crate::by_size::{self, BySize};
use crate::figures::Line;
use crate::format;
use crate::metrics::{Metrics, Share};
use crate::model::{FlowSeries, PortSeries, RunData, Variant};
use crate::outages::{self, MAX_FAILED};
use crate::panel::{Axis, Course, Panel, Series, TimeUnit};
use crate::pauses::{intervals, paused_ports};
use crate::queue_tails;
use crate::rtts;
use crate::series::{bin_width, ccdf, cdf, downsample, drop_repeats, growth, shortest_step};
use crate::style::Style;
use crate::timeline;
use crate::worst;

/// Largest number of ports that have their own figures.
const MAX_PORTS: usize = 4;
/// Largest number of flows that have their own lines.
const MAX_FLOWS: usize = 16;
/// Largest number of rows of the pause chart.
const MAX_PAUSED: usize = 24;
/// Number of throughput bins over a whole run.
const BINS: f64 = 400.0;

/// Columns that are drawn together.
pub(crate) struct Page<'a> {
    variants: &'a [&'a Variant],
    lines: &'a [Line],
    /// Largest number of points of a line.
    points: usize,
    unit: TimeUnit,
}

impl<'a> Page<'a> {
    /// Returns a page of columns, with the looks of their lines and at most `points` points per line.
    pub(crate) fn new(variants: &'a [&'a Variant], lines: &'a [Line], points: usize) -> Self {
        Self { variants, lines, points, unit: TimeUnit::for_span(span_ns(variants)) }
    }
}

impl Page<'_> {
    fn each(&self) -> impl Iterator<Item = (&Variant, Style)> {
        let look = |v: &Variant| self.lines.iter().find(|l| l.key == v.line).map_or_else(Style::default, |l| l.style);
        self.variants.iter().map(move |v| (*v, look(v)))
    }

    /// Returns the time axis of the whole run.
    fn time(&self) -> Axis {
        self.unit.axis().showing(0.0, span_ns(self.variants) / self.unit.ns)
    }

    /// Returns the throughput and the queue of each probed port.
    pub(crate) fn ports(&self) -> Vec<Panel> {
        self.port_names().iter().flat_map(|name| [self.throughput(name), self.queue(name)]).collect()
    }

    /// Marks the failures of links in a figure over time.
    pub(crate) fn with_marks(&self, mut figure: Panel) -> Panel {
        if figure.x.link == self.unit.axis().link {
            figure.marks = outages::marks(self.variants, self.unit);
        }
        figure
    }

    /// Returns the names of the probed ports with the longest queues and of some that fail, in the order they were
    /// probed.
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
        let fails = |i: usize| ports().any(|p| p.name == names[i] && outages::fails(self.variants, p));
        let others = by_peak.split_off(by_peak.len().min(MAX_PORTS));
        by_peak.extend(others.into_iter().filter(|(_, i)| fails(*i)).take(MAX_FAILED));
        let mut kept: Vec<usize> = by_peak.into_iter().map(|(_, i)| i).collect();
        kept.sort_unstable();
        kept.into_iter().map(|i| names[i].clone()).collect()
    }

    /// Returns the rule by which the ports with figures are chosen, and the seed that is drawn.
    pub(crate) fn choice_of_ports(&self) -> String {
        let probed = self.variants.iter().map(|v| v.first().ports.len()).max().unwrap_or(0);
        let shown = self.port_names().len();
        let seed = self.variants[0].first().seed;
        let with_seeds = self.variants.iter().any(|v| 1 < v.runs.len());
        if shown == 0 || (probed <= shown && !with_seeds) {
            return String::new();
        }
        let tables = "Tables and distributions are of all ports and seeds.";
        if probed <= shown {
            return format!("Seed {seed} is drawn. {tables}");
        }
        let failed = match shown.saturating_sub(MAX_PORTS) {
            0 => String::new(),
            n => format!(", and {n} more whose links fail"),
        };
        let algorithm = if self.variants.len() == 1 { "" } else { ", under any algorithm" };
        let longest = shown.min(MAX_PORTS);
        format!(
            "Of {probed} probed ports: the {longest} with the longest sampled queue in seed {seed}{algorithm}{failed}. {tables}"
        )
    }

    /// Returns the number of packets that switches cut in the drawn run of each column, in a sentence; empty without
    /// any.
    pub(crate) fn trims(&self) -> String {
        let cut = |v: &&Variant| {
            let totals = &v.first().totals;
            let (packets, bytes) =
                (format::count(totals.counts.trims as f64), format::bytes(totals.trimmed_bytes as f64));
            let returned = match totals.counts.returns {
                0 => String::new(),
                returns => format!(" ({} headers sent back)", format::count(returns as f64)),
            };
            (0 < totals.counts.trims).then(|| format!("{packets} packets of {bytes}{returned} under {}", v.line))
        };
        let cut: Vec<String> = self.variants.iter().filter_map(cut).collect();
        if cut.is_empty() { String::new() } else { format!("Cut to their headers: {}.", cut.join(", ")) }
    }

    fn throughput(&self, port: &str) -> Panel {
        let bins = self.variants.iter().filter_map(|v| v.first().shortest_bin_ns(port));
        let width = bin_width(span_ns(self.variants), BINS, bins.fold(self.sample_interval(port), f64::max));
        let line = |p: &PortSeries, _| {
            let (t, rate) = growth(&p.t_ns, &p.tx_bytes, width);
            (self.unit.of(&t), rate.iter().map(|r| r * 8.0).collect())
        };
        let capacity = self.variants.iter().flat_map(|v| &v.first().ports).find(|p| p.name == port);
        let gbps = capacity.and_then(|p| p.capacity_bps).map_or(0.0, |c| c / 1e9);
        Panel {
            title: format!("Throughput of {port}"),
            note: format!("Bits on the wire, headers included, in bins of {}", format::time_ns(width)),
            x: self.time(),
            y: Axis::new("throughput (Gb/s)").showing(0.0, gbps),
            series: self.port_lines(port, Course::Straight, line),
            ..Panel::default()
        }
    }

    fn queue(&self, port: &str) -> Panel {
        let line = |p: &PortSeries, _| {
            let kilobytes: Vec<f64> = p.qlen_bytes.iter().map(|q| q / 1e3).collect();
            let (t, q) = drop_repeats(&self.unit.of(&p.t_ns), &kilobytes);
            downsample(&t, &q, self.points)
        };
        Panel {
            title: format!("Queue of {port}"),
            note: format!("Sampled every {}; no peak is lost to drawing", format::time_ns(self.sample_interval(port))),
            x: self.time(),
            y: Axis::new("queue (KB)").showing(0.0, 0.0),
            series: self.port_lines(port, Course::Steps, line),
            ..Panel::default()
        }
    }

    /// Returns the shortest time between two samples of a port, in ns.
    fn sample_interval(&self, port: &str) -> f64 {
        let ports = self.variants.iter().flat_map(|v| &v.first().ports).filter(|p| p.name == port);
        shortest_step(ports.map(|p| &*p.t_ns))
    }

    /// Returns a line for each variant that probed the port; `line` makes it from the port's samples and the measuring
    /// window.
    fn port_lines(&self, port: &str, course: Course, line: impl Fn(&PortSeries, (f64, f64)) -> Points) -> Vec<Series> {
        let of = |(variant, style): (&Variant, Style)| {
            let found = variant.first().ports.iter().find(|p| p.name == port)?;
            let (x, y) = line(found, variant.first().window());
            Some(Series { step: course == Course::Steps, x, y, ..variant_line(variant, style) })
        };
        self.each().filter_map(of).collect()
    }

    /// Returns the number of finite flows that finished, of the variant with the most of them.
    pub(crate) fn completions(&self) -> usize {
        let finished = |v: &&Variant| {
            v.runs.iter().flat_map(RunData::measured_flows).filter(|f| f.slowdown.get().is_some()).count()
        };
        self.variants.iter().map(finished).max().unwrap_or(0)
    }

    /// Returns the slowdown against flow size, and of a single run its worst flows.
    pub(crate) fn completion(&self, wanted: &BySize) -> Vec<Panel> {
        self.slowdown_by_size(wanted).into_iter().chain(self.worst_flows()).collect()
    }

    fn worst_flows(&self) -> Option<Panel> {
        let (variant, style) = self.each().next().filter(|_| self.variants.len() == 1)?;
        worst::panel(&variant.first().worst, &variant.line, style, self.unit, self.time())
    }

    /// Returns the slowdown against flow size.
    fn slowdown_by_size(&self, wanted: &BySize) -> Vec<Panel> {
        let unfinished = self.unfinished(". Hollow: lower bounds where not all flows finished: ");
        by_size::figures(&self.each().collect::<Vec<_>>(), wanted, &unfinished)
    }

    /// Returns the variants in which not all flows finished, with the share that did and `before` in front; empty if
    /// all did.
    fn unfinished(&self, before: &str) -> String {
        let share = |v: &Variant| Metrics::finished(&v.runs);
        let told = self.variants.iter().filter_map(|v| share(v).map(|share| format!("{share} under {}", v.line)));
        let told: Vec<String> = told.collect();
        if told.is_empty() { String::new() } else { format!("{before}{}", told.join(", ")) }
    }

    /// Returns the distributions of slowdowns, times to converge and queues.
    pub(crate) fn distributions(&self) -> Vec<Panel> {
        let slowdown = (2 <= self.completions()).then(|| self.slowdown_cdf());
        let probed = self.variants.iter().flat_map(|v| &v.runs).any(|r| !r.settled_rtts.is_empty());
        let convergence = probed.then(|| self.convergence_cdf());
        let several = self.variants.iter().any(|v| 1 < v.first().links().count());
        let pooled = several.then(|| self.pooled_queue_ccdf());
        let names = self.port_names();
        let each = names.iter().filter(|_| names.len() < MAX_PORTS).map(|name| self.queue_ccdf(name));
        let queues = pooled.into_iter().chain(each).filter(|figure| !figure.series.is_empty());
        slowdown
            .into_iter()
            .chain(rtts::panel(&self.each().collect::<Vec<_>>()))
            .chain(self.disorder_ccdf())
            .chain(convergence)
            .chain(queues)
            .collect()
    }

    /// Returns the distribution of flows' reorder extents; `None` where no packet has overtaken another.
    fn disorder_ccdf(&self) -> Option<Panel> {
        let line = |(variant, style): (&Variant, Style)| {
            let flows = variant.runs.iter().flat_map(RunData::measured_flows);
            let values: Vec<f64> = flows.map(|f| f64::from(f.reorder_extent) / 1e3).collect();
            let (x, y) = ccdf(&values, |_| 1.0, self.points / 4);
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        let series: Vec<Series> = self.each().map(line).filter(|s| !s.x.is_empty()).collect();
        (!series.is_empty()).then(|| Panel {
            title: "Reorder extent".into(),
            note: "Fraction of the flows, all seeds, in which a packet arrived with a later one further ahead of it than this".into(),
            x: Axis::new("ahead (KB)").logarithmic(),
            y: Axis::new("fraction of flows").logarithmic().showing(1.0, 1.0),
            series,
            ..Panel::default()
        })
    }

    /// Returns the distribution of the times rates took to settle; a curve that ends below 1 has changes after which
    /// they did not.
    fn convergence_cdf(&self) -> Panel {
        let line = |(variant, style): (&Variant, Style)| {
            let values: Vec<f64> = variant.runs.iter().flat_map(|r| &r.settled_rtts).copied().collect();
            let (mut x, mut y) = cdf(&values, |_| 1.0, self.points / 4);
            x.retain(|rtts| rtts.is_finite());
            y.truncate(x.len());
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        Panel {
            title: "Convergence of rates".into(),
            note:
                "Fraction of the arrivals and departures of flows, of all seeds, after which rates had settled by then"
                    .into(),
            x: Axis::new("time (base RTTs)").showing(0.0, 0.0),
            y: Axis::new("fraction of changes").showing(0.0, 1.0),
            series: self.each().map(line).filter(|s| !s.x.is_empty()).collect(),
            ..Panel::default()
        }
    }

    fn slowdown_cdf(&self) -> Panel {
        let line = |(variant, style): (&Variant, Style)| {
            let flows = variant.runs.iter().flat_map(RunData::measured_flows);
            let values: Vec<f64> = flows.filter_map(|f| f.slowdown.get()).collect();
            let (x, mut y) = cdf(&values, |_| 1.0, self.points / 4);
            if let Some(Share { finished, flows }) = Metrics::finished(&variant.runs) {
                y = y.iter().map(|y| y * finished as f64 / flows as f64).collect();
            }
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        Panel {
            title: "FCT slowdown".into(),
            note: format!(
                "Fraction of the flows, all sizes and seeds, that finished and were no slower than this{}",
                self.unfinished(". Finished: "),
            ),
            x: Axis::new("FCT / ideal FCT").logarithmic(),
            y: Axis::new("fraction of flows").showing(0.0, 1.0),
            series: self.each().map(line).collect(),
            ..Panel::default()
        }
    }

    /// Returns a panel with the distribution of a port's queue length over time.
    fn queue_ccdf(&self, port: &str) -> Panel {
        let series = self
            .port_lines(port, Course::Steps, |p, window| queue_tails::time_above(&[p.within(window)], self.points / 4));
        Panel {
            title: format!("Queue of {port}"),
            note: "Fraction of the measuring window that the queue was longer than this".into(),
            ..queue_tails::figure(series)
        }
    }

    /// Returns a panel with the distribution of the queue lengths of all probed ports, over all seeds.
    fn pooled_queue_ccdf(&self) -> Panel {
        let line = |(variant, style): (&Variant, Style)| {
            let within = |r: &RunData| r.links().map(|p| p.within(r.window())).collect::<Vec<_>>();
            let ports: Vec<PortSeries> = variant.runs.iter().flat_map(within).collect();
            let (x, y) = queue_tails::time_above(&ports, self.points / 4);
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        let n = self.variants.iter().map(|v| v.first().links().count()).max().unwrap_or(0);
        Panel {
            title: format!("Queues of all {n} probed ports"),
            note: "Fraction of the measuring window, over all ports and seeds, that a queue was longer than this"
                .into(),
            ..queue_tails::figure(self.each().map(line).collect())
        }
    }

    /// Returns the goodput of each probed flow: one small chart per variant; with a single variant, pacing rate and
    /// window too.
    pub(crate) fn flows(&self) -> Vec<Panel> {
        let probed: Vec<(&Variant, Vec<&FlowSeries>)> =
            self.variants.iter().map(|v| (*v, most_telling(v.first()))).filter(|(_, f)| !f.is_empty()).collect();
        let single = self.variants.len() == 1;
        let mut figures: Vec<Panel> = probed.iter().map(|(v, flows)| self.goodput(v, flows, !single)).collect();
        let top = |f: &Panel| f.series.iter().flat_map(|s| &s.y).copied().fold(0.0, f64::max);
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

    fn goodput(&self, variant: &Variant, flows: &[&FlowSeries], small: bool) -> Panel {
        let finest = shortest_step(flows.iter().map(|s| &*s.t_ns));
        let width = bin_width(span_ns(self.variants), BINS / 2.0, 2.0 * finest);
        let line = |(i, s): (usize, &&FlowSeries)| {
            let (t, rate) = growth(&s.t_ns, &s.delivered_bytes, width);
            let gbps = rate.iter().map(|r| r * 8.0).collect();
            Series { x: self.unit.of(&t), y: gbps, ..flow_line(i, s) }
        };
        let probed = variant.first().rates.len();
        let shown =
            if flows.len() < probed { format!("; {} of {probed} probed flows", flows.len()) } else { String::new() };
        Panel {
            title: if small { variant.line.clone() } else { "Goodput of each flow".to_owned() },
            note: format!("Goodput: payload received in order, in bins of {}{shown}", format::time_ns(width)),
            x: self.time(),
            y: Axis::new("goodput (Gb/s)"),
            series: flows.iter().enumerate().map(line).collect(),
            small,
            wide: !small,
            ..Panel::default()
        }
    }

    fn sender_state(
        &self,
        variant: &Variant,
        flows: &[&FlowSeries],
        title: &str,
        label: &str,
        pick: fn(&FlowSeries) -> (&Vec<f64>, f64),
    ) -> Panel {
        let line = |(i, s): (usize, &&FlowSeries)| {
            let (values, unit) = pick(s);
            let scaled: Vec<f64> = values.iter().map(|v| v / unit).collect();
            let (t, y) = drop_repeats(&self.unit.of(&s.t_ns), &scaled);
            let (x, y) = downsample(&t, &y, self.points / 2);
            Series { step: true, x, y, ..flow_line(i, s) }
        };
        Panel {
            title: title.to_owned(),
            note: format!("As the sender's {} controller allows", variant.title),
            x: self.time(),
            y: Axis::new(label).showing(0.0, 0.0),
            series: flows.iter().enumerate().map(line).collect(),
            ..Panel::default()
        }
    }

    /// Returns the number of ports paused at the same time; with a single variant, also the pauses of each port.
    pub(crate) fn pauses(&self) -> Vec<Panel> {
        if self.variants.iter().all(|v| v.first().pauses.is_empty()) {
            return Vec::new();
        }
        let line = |(variant, style): (&Variant, Style)| {
            let (t, n) = paused_ports(&variant.first().pauses, variant.first().totals.end_ns);
            let (x, y) = downsample(&self.unit.of(&t), &n, self.points);
            Series { step: true, x, y, ..variant_line(variant, style) }
        };
        let mut figures = vec![Panel {
            title: "Paused ports".into(),
            note: "Ports that a pause frame holds back, all classes".into(),
            x: self.time(),
            y: Axis { whole: true, ..Axis::new("ports").showing(0.0, 1.0) },
            series: self.each().map(line).collect(),
            wide: true,
            ..Panel::default()
        }];
        if let ([variant], Some((_, style))) = (self.variants, self.each().next()) {
            figures.push(self.pause_bars(&variant.line, variant.first(), style));
        }
        figures
    }

    /// Returns the work of ranks over time, with a single variant.
    pub(crate) fn timelines(&self) -> Vec<Panel> {
        let [variant] = self.variants else { return Vec::new() };
        timeline::panels(&variant.first().timelines, self.unit, &self.time())
    }

    /// Returns a chart with a row for each port and a bar for each pause; a series has the two ends of each bar of its
    /// row.
    fn pause_bars(&self, key: &str, run: &RunData, style: Style) -> Panel {
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
        Panel {
            title: "Pauses by port".into(),
            note: if MAX_PAUSED < n { format!("The {MAX_PAUSED} longest paused of {n} ports") } else { String::new() },
            x: self.time(),
            y: Axis { rows, ..Axis::default() },
            series: series.collect(),
            wide: true,
            ..Panel::default()
        }
    }
}

/// The x and y values of a line's points.
type Points = (Vec<f64>, Vec<f64>);

pub(crate) fn variant_line(variant: &Variant, style: Style) -> Series {
    Series { key: variant.line.clone(), name: variant.line.clone(), style, ..Series::default() }
}

/// Returns the line of the `i`-th flow. Flows are many and their lines close together: dashes are used only once the
/// colours are used up.
fn flow_line(i: usize, series: &FlowSeries) -> Series {
    Series {
        key: format!("flow {}", series.flow),
        name: series.name.clone(),
        style: Style::nth(i),
        ..Series::default()
    }
}

/// Returns the probed flows that are drawn: endless flows have precedence, then the largest.
fn most_telling(run: &RunData) -> Vec<&FlowSeries> {
    let size = |s: &FlowSeries| {
        run.flows.iter().find(|f| f.id == s.flow).and_then(|f| f.bytes).map_or(u64::MAX, NonZeroU64::get)
    };
    let mut flows: Vec<(u64, &FlowSeries)> =
        run.rates.iter().filter(|s| 2 <= s.t_ns.len()).map(|s| (size(s), s)).collect();
    flows.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.flow.cmp(&b.1.flow)));
    flows.truncate(MAX_FLOWS);
    let mut flows: Vec<&FlowSeries> = flows.into_iter().map(|(_, s)| s).collect();
    flows.sort_by_key(|s| s.flow);
    flows
}

fn span_ns(variants: &[&Variant]) -> f64 {
    variants.iter().map(|v| v.first().totals.end_ns).fold(0.0, f64::max)
}
