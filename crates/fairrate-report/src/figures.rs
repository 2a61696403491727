//! The figures of a report, their order, and the looks of their lines.

use std::collections::HashSet;

use crate::by_size::BySize;
use crate::comparison::Comparison;
use crate::heat_map::Layout;
use crate::metric::Metric;
use crate::model::Variant;
use crate::panel::Panel;
use crate::panels::Page;
use crate::style::{self, Style};
use crate::sweep::Grid;
use crate::table::Table;

/// Largest number of points of a line: about two a pixel on a wide screen.
const POINTS: usize = 2_000;
/// Smallest limit on the points of a line, for a page with many lines: the page must be small enough to be mailed.
const FEW_POINTS: usize = 200;
/// Largest number of points of the lines of a figure together, or of the figures of all points of a grid, as long as
/// that leaves [`FEW_POINTS`] a line.
const POINTS_IN_ALL: usize = 32_000;
/// Largest number of columns that have lines in figures against time. Figures over a grid have all columns.
pub const MAX_DRAWN: usize = style::DISTINCT;
/// Number of flow completions from which the workload is about flow completion times, and their chapter is the first.
const MANY_FLOWS: usize = 1_000;

/// The figures about one subject, under a heading.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Chapter {
    /// Heading.
    pub title: String,
    /// The point of a grid that the chapter is about, as `load=0.6`; empty if it is about the whole grid, or there is
    /// none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// The rule by which its figures are chosen; empty if all are shown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The chapter's figures.
    pub figures: Vec<Panel>,
}

/// A line of the figures: an algorithm, with or without changed parameters.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Line {
    /// Key of the line's series.
    pub key: String,
    /// Name in legends.
    pub name: String,
    /// The line's look.
    #[serde(flatten)]
    pub style: Style,
}

/// Returns the lines of a report, each with its own look: an algorithm has the same look at every point of a grid.
pub fn lines(variants: &[Variant]) -> Vec<Line> {
    let mut seen = HashSet::new();
    let first: Vec<&Variant> = variants.iter().filter(|v| seen.insert(v.line.as_str())).collect();
    let ccs: Vec<&str> = first.iter().map(|v| v.first().cc.as_str()).collect();
    let of = |(v, style): (&&Variant, Style)| Line { key: v.line.clone(), name: v.line.clone(), style };
    first.iter().zip(style::styles(&ccs)).map(of).collect()
}

/// The choices of a reader among the figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Metrics over the grid; empty: the usual ones.
    pub metrics: Vec<Metric>,
    /// Percentiles and sizes of the slowdown against flow size.
    pub by_size: BySize,
    /// Heat maps of a study.
    pub heat_maps: Option<Layout>,
}

/// Returns all figures of a report, in order, without empty chapters. With a grid, the metrics over the grid are first,
/// and then the chapters of each of its points.
pub fn all(variants: &[Variant], comparison: &Comparison, selection: &Selection) -> Vec<Chapter> {
    let lines = lines(variants);
    let drawn = &variants[..variants.len().min(MAX_DRAWN)];
    let chapters = match Grid::of(variants, &comparison.metrics) {
        Some(grid) => {
            let usual = Metric::usual(&comparison.metrics);
            let metrics = if selection.metrics.is_empty() { &usual } else { &selection.metrics };
            let looks = looks(&lines);
            let figures = metrics.iter().flat_map(|m| grid.figures(*m, &looks)).collect();
            let over = Chapter { title: format!("Over {}", grid.parameter()), figures, ..Chapter::default() };
            std::iter::once(over).chain(at_each_point(drawn, &lines, selection)).collect()
        }
        None => chapters(&drawn.iter().collect::<Vec<_>>(), &lines, points(drawn.len()), selection),
    };
    let mut chapters: Vec<Chapter> = chapters.into_iter().filter(|c| !c.figures.is_empty()).collect();
    name_files(&mut chapters);
    chapters
}

fn looks(lines: &[Line]) -> Vec<(&str, Style)> {
    lines.iter().map(|l| (l.key.as_str(), l.style)).collect()
}

/// Returns the values of `metrics` over a grid, as a table; `None` without a grid.
pub fn table_over_grid(variants: &[Variant], comparison: &Comparison, metrics: &[Metric]) -> Option<Table> {
    Some(Grid::of(variants, &comparison.metrics)?.table(metrics, &looks(&lines(variants))))
}

/// Returns the largest number of points of a line where there are `n` columns.
fn points(n: usize) -> usize {
    (POINTS_IN_ALL / n.max(1)).clamp(FEW_POINTS, POINTS)
}

/// Returns the chapters of each point of a grid.
fn at_each_point(variants: &[Variant], lines: &[Line], selection: &Selection) -> Vec<Chapter> {
    let mut seen = HashSet::new();
    let places = variants.iter().map(|v| v.first().point.as_str()).filter(|point| seen.insert(*point));
    let mut all = Vec::new();
    for point in places {
        let here: Vec<&Variant> = variants.iter().filter(|v| v.first().point == point).collect();
        for mut chapter in chapters(&here, lines, points(variants.len()), selection) {
            point.clone_into(&mut chapter.point);
            for figure in &mut chapter.figures {
                point.clone_into(&mut figure.point);
            }
            all.push(chapter);
        }
    }
    all
}

/// Gives each figure a unique file name made of chapter, title and point of the grid.
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

/// Largest number of characters of the name of a figure's file.
const LONGEST_NAME: usize = 100;

/// Returns `words` as the name of a file: lower case, with a dash for everything but letters, digits and `.=`.
pub(crate) fn file_name(words: &str) -> String {
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

/// Returns the chapters of columns that are drawn together.
fn chapters(variants: &[&Variant], lines: &[Line], points: usize, selection: &Selection) -> Vec<Chapter> {
    let page = Page::new(variants, lines, points);
    let chapter = |title: &str, figures: Vec<Panel>| {
        let figures = figures.into_iter().map(|figure| page.with_marks(figure)).collect();
        Chapter { title: title.to_owned(), figures, ..Chapter::default() }
    };
    let mut chapters = [
        chapter("At the switches", page.ports()),
        chapter("Training", page.timelines()),
        chapter("Flow completion", page.completion(&selection.by_size)),
        chapter("Flow by flow", page.flows()),
        chapter("Distributions", page.distributions()),
        chapter("Priority flow control", page.pauses()),
    ];
    let notes = [page.choice_of_ports(), page.trims()];
    chapters[0].note = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" ");
    if MANY_FLOWS <= page.completions() {
        chapters.swap(0, 2);
    }
    chapters.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::model::{Maybe, PortSeries, RunData};
    use crate::panel::Series;
    use crate::synthetic;

    fn all(variants: &[Variant]) -> Vec<Chapter> {
        super::all(variants, &Comparison::of(variants.iter().map(Metrics::of).collect()), &Selection::default())
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
    fn reorder_extents_are_drawn_where_packets_overtook_each_other() {
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        let drawn = |variants: &[Variant]| {
            let chapters = all(variants);
            let figure = chapters.iter().flat_map(|c| &c.figures).find(|f| f.title == "Reorder extent");
            figure.map(|figure| (figure.series.len(), figure.series[0].x.last().copied()))
        };
        assert_eq!(drawn(&variants), None);
        variants[1].runs[0].flows[3].reorder_extent = 5_000;
        assert_eq!(drawn(&variants), Some((1, Some(5.0))));
    }

    #[test]
    fn distributions_of_slowdowns_end_where_flows_do_not() {
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        for flow in variants[1].runs[0].flows.iter_mut().take(750) {
            (flow.fct_ns, flow.slowdown) = (Maybe::NONE, Maybe::NONE);
        }
        let chapters = all(&variants);
        let figure = chapters.iter().flat_map(|c| &c.figures).find(|f| f.title == "FCT slowdown").unwrap();
        let ends: Vec<Option<&f64>> = figure.series.iter().map(|s| s.y.last()).collect();
        assert_eq!(ends, [Some(&1.0), Some(&0.75)]);
        assert!(figure.note.ends_with("Finished: 2,250 of 3,000 under HPCC"), "{}", figure.note);
    }

    #[test]
    fn failures_are_marked_over_time_and_failed_ports_are_shown() {
        use crate::outages::Outage;
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        for run in variants.iter_mut().flat_map(|v| &mut v.runs) {
            let first = run.ports[0].clone();
            let shrunk = |i: usize| first.qlen_bytes.iter().map(|q| q / (1 + i) as f64).collect();
            let port = |i: usize| PortSeries { name: format!("s0->s{i}"), qlen_bytes: shrunk(i), ..first.clone() };
            run.ports = (1..9).map(port).collect();
            // The queues of ports 7 and 8 are the shortest.
            run.outages = vec![Outage { ports: vec!["s0->s8".into(), "s8->s0".into()], times_ns: vec![(1e6, 2e6)] }];
        }
        let chapters = all(&variants);
        let rule = "Of 8 probed ports: the 4 with the longest sampled queue in seed 1, under any algorithm, and 1 more whose links \
                    fail. Tables and distributions are of all ports and seeds.";
        assert!(chapters.iter().any(|c| c.title == "At the switches" && c.note == rule), "{chapters:?}");
        let figures = || chapters.iter().flat_map(|c| &c.figures);
        let queues: Vec<&str> = figures().filter_map(|f| f.title.strip_prefix("Queue of ")).collect();
        assert_eq!(queues, ["s0->s1", "s0->s2", "s0->s3", "s0->s4", "s0->s8"]);
        assert!(figures().all(|f| (f.x.link == "time") == (f.marks.len() == 1)));
        let svg = crate::svg::render(figures().find(|f| !f.marks.is_empty()).unwrap());
        assert!(svg.contains("s0\u{2192}s8 down"), "{svg}");
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
