//! `report.html`: one self-contained file that opens without a network and keeps its look.
//!
//! The bytes depend on nothing but the runs: no date, no wall-clock time, no machine.

use std::collections::BTreeSet;
use std::fmt::Write;

use fairrate_text::escape;

use crate::collectives;
use crate::comparison::{Better, Comparison, MAX_PORTS, Value, best, mean};
use crate::completion;
use crate::critical_path;
use crate::export::Picture;
use crate::figures::{self, Chapter, Line, MAX_DRAWN};
use crate::findings::{self, Findings, Pick};
use crate::format;
use crate::html_table::table_html;
use crate::jobs;
use crate::metrics::{Metrics, PortMetrics};
use crate::model::{RunData, Variant};
use crate::network;
use crate::notes::{bold, largest, notes, unfinished, window};
use crate::places;
use crate::queue_map::{self, QueueMap};
use crate::stats::Distribution;
use crate::style::{DASHES, MARKERS};
use crate::sweep::Grid;
use crate::table::{self, Table};
use crate::worst;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: [&str; 3] = [include_str!("page/scale.js"), include_str!("page/chart.js"), include_str!("page/page.js")];
/// Content security policy: the page may not fetch anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
/// The row of the tables that depends on the machine.
const WALL_CLOCK_ROW: &str = "ns per packet-hop";

/// Largest number of runs that a warning names.
const MAX_NAMED: usize = 8;

/// Returns the page of one run or of a comparison. `variants` must not be empty, `comparison` has their numbers,
/// `heat_maps` is their part of the page, as HTML, and `chapters` has their figures.
pub fn page(variants: &[Variant], comparison: &Comparison, heat_maps: &str, chapters: &[Chapter]) -> String {
    let metrics = &comparison.metrics;
    let lines = figures::lines(variants);
    let grid = Grid::of(variants, metrics);
    let first = variants[0].first();
    let body = [
        header(variants, comparison, &lines),
        navigation(),
        "<main>\n".to_owned(),
        says(variants, comparison),
        // In a grid no column is the best: its figures are first.
        if grid.is_none() { cards(variants, comparison, &lines) } else { String::new() },
        heat_maps.to_owned(),
        undrawn(variants),
        "<div id=\"figures\"></div>\n".to_owned(),
        iterations(variants),
        network(variants),
        numbers(comparison),
        scenarios(variants),
        "</main>\n".to_owned(),
        footer(variants),
    ];
    let title = format!("{}: {}", escape(&scenario(variants)), escape(&names(&lines)));
    let data = data(first, &lines, chapters);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{}<script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{}</script>\n</body>\n</html>\n",
        body.concat(),
        SCRIPT.concat(),
    )
}

fn names(lines: &[Line]) -> String {
    lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the name of the scenario, or the names if a grid has several.
fn scenario(variants: &[Variant]) -> String {
    format::names(variants.iter().map(|variant| variant.first().scenario.as_str()))
}

fn header(variants: &[Variant], comparison: &Comparison, lines: &[Line]) -> String {
    let first = variants[0].first();
    let kind = match variants {
        [one] if one.runs.len() == 1 => "Simulated run",
        [_] => "Simulated runs",
        _ if variants.iter().any(|v| !v.first().point.is_empty()) => "Comparison over a grid",
        _ => "Comparison",
    };
    let scale = Grid::of(variants, &comparison.metrics).map_or_else(
        || {
            let all = |value: &dyn Fn(&RunData) -> f64, shown: fn(f64) -> String| {
                let values = variants.iter().map(|variant| value(variant.first()));
                let (least, most) = values.fold((f64::INFINITY, 0.0), |(a, b), x| (x.min(a), x.max(b)));
                if least < most { format!("{} to {}", shown(least), shown(most)) } else { shown(most) }
            };
            let flows = all(&|run| run.flows.len() as f64, format::count);
            format!("{flows} flows &middot; {} simulated", all(&|run| run.totals.end_ns, format::time_ns))
        },
        |grid| escape(&grid.summary()),
    );
    let scenario = scenario(variants);
    let about = if first.description.is_empty() { &scenario } else { &first.description };
    let mut out = format!(
        "<header>\n<p class=\"kind\">{kind}, {}</p>\n<h1>{}</h1>\n<p class=\"lead\">{} &middot; {scale} &middot; {}</p>\n{}",
        escape(&scenario),
        escape(&capitalised(about)),
        escape(&names(lines)),
        format::seeds_of(comparison.metrics.iter().map(|metrics| metrics.seeds.as_slice())),
        measured(&comparison.metrics),
    );
    let mut partial: Vec<String> = variants.iter().flat_map(|v| &v.runs).filter_map(incomplete).collect();
    partial.extend(comparison.left_out.iter().map(|run| format!("{run}, left out")));
    if MAX_NAMED < partial.len() {
        let more = partial.len() - MAX_NAMED;
        partial.truncate(MAX_NAMED);
        partial.push(format!("and {more} more runs"));
    }
    if !partial.is_empty() {
        let _ = writeln!(out, "<p class=\"warn\">Partial results: {}.</p>", escape(&partial.join("; ")));
    }
    out + "</header>\n"
}

/// Returns the meaning of the measuring window in words, as a line of its own.
fn measured(metrics: &[Metrics]) -> String {
    let caption = table::caption(&metrics.iter());
    let Some((from, until)) = caption.strip_prefix("Measured from ").and_then(|rest| rest.split_once(" to ")) else {
        return String::new();
    };
    let by_seed = if caption.contains("..") { " (each run has its own window)" } else { "" };
    format!(
        "<p class=\"lead\">Measured are the flows that started between {from} and {until}, and queues and rates in between{by_seed}.</p>\n"
    )
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn incomplete(run: &RunData) -> Option<String> {
    (run.state != "complete").then(|| format!("{} seed {} {}", run.label, run.seed, run.state))
}

fn navigation() -> String {
    "<nav><div><div id=\"all\"></div><button type=\"button\" class=\"reset\" id=\"reset\" \
     title=\"show all lines and the whole time; drag in a chart to zoom\">Show all</button></div></nav>\n"
        .to_owned()
}

/// Returns what the runs say, in words.
fn says(variants: &[Variant], comparison: &Comparison) -> String {
    let names: Vec<&str> = variants.iter().map(|v| v.line.as_str()).collect();
    let Findings { sentences, note } = findings::of(comparison, &names);
    if sentences.is_empty() {
        return String::new();
    }
    let items = sentences.iter().map(|text| escape(text)).collect::<Vec<_>>().join("</li>\n<li>");
    let items = items.replace("-&gt;", "&rarr;");
    format!(
        "<section class=\"says\">\n<h2>What these runs say</h2>\n<ul>\n<li>{items}</li>\n</ul>\n<p class=\"note\">{}</p>\n</section>\n",
        escape(&note)
    )
}

/// A number at the head of the page.
struct Headline {
    title: String,
    values: Vec<Option<f64>>,
    /// The columns whose values are lower bounds, as not all of their flows finished.
    bounds: Vec<bool>,
    /// The column that is better than each other one, as in the tables.
    best: Vec<usize>,
    show: fn(f64) -> String,
}

/// Returns the cards with the most important numbers: as a value for one run, as bars for a comparison.
fn cards(variants: &[Variant], comparison: &Comparison, lines: &[Line]) -> String {
    let colour = |v: &Variant| lines.iter().find(|l| l.key == v.line).map_or(0, |l| l.style.colour);
    let colours: Vec<usize> = variants.iter().map(colour).collect();
    let headlines = headlines(comparison);
    let mut out = String::from("<div class=\"cards\">\n");
    for headline in headlines.iter().filter(|h| h.values.iter().any(Option::is_some)).take(6) {
        let _ = write!(out, "<section class=\"card\"><h3>{}</h3>", escape(&headline.title).replace("-&gt;", "&rarr;"));
        match headline.values.as_slice() {
            [Some(value)] => out.push_str(&big_number(&(headline.show)(*value), headline.bounds[0])),
            _ => out.push_str(&bars(headline, &comparison.metrics, &colours)),
        }
        out.push_str("</section>\n");
    }
    out + "</div>\n"
}

/// The name of the bucket of all flows.
const ALL: &str = "all sizes";
/// Largest number of traffic blocks that have cards.
const MOST_BLOCKS: usize = 3;
/// The slowdowns, or times, that a number is a percentile of.
type Slowdown<'a> = &'a dyn Fn(&Metrics) -> Option<Distribution>;

fn headlines(comparison: &Comparison) -> Vec<Headline> {
    use Better::{Higher, Lower};
    let (metrics, agree) = (&comparison.metrics, comparison.seeds_agree());
    let mut all = Vec::new();
    let mut add_of =
        |title: &str, better: Better, show: fn(f64) -> String, value: Value<'_>, slowdown: Slowdown<'_>| {
            // As in the tables, this is the mean of the values of all seeds.
            let values = metrics.iter().map(|m| mean(m, value)).collect();
            let is_bound = |m: &Metrics| {
                m.seeds_alone().iter().any(|run| value(run).zip(slowdown(run)).is_some_and(|(x, d)| d.is_bound(x)))
            };
            let bounds: Vec<bool> = metrics.iter().map(is_bound).collect();
            let mut best = best(metrics, value, better, show, &|i| bounds[i]);
            best.retain(|_| !agree);
            all.push(Headline { title: title.to_owned(), values, bounds, best, show });
        };
    add_of("Deadlines missed", Lower, format::percent, &|m| m.deadlines?.missed_share, &|_| None);
    let blocks = findings::named_blocks(metrics);
    let whole = if blocks.is_empty() { vec![ALL] } else { blocks };
    for bucket in whole.iter().copied().take(MOST_BLOCKS) {
        let of = |m: &Metrics| m.bucket(bucket).map(|b| b.slowdown);
        let (percentile, pick) = findings::percentile_of(metrics, bucket);
        let whose = if bucket == ALL { String::new() } else { format!(" of {bucket}") };
        let mut slowdown = |words: &str, pick: Pick| {
            let value = |m: &Metrics| of(m).as_ref().and_then(pick);
            add_of(&format!("FCT slowdown{whose}, {words}"), Lower, format::number, &value, &of);
        };
        slowdown(percentile, pick);
        if bucket == ALL && percentile != "median" {
            slowdown("median", |d| d.p50);
        }
    }
    let with_queries = |m: &Metrics| {
        let shown = m.completion.iter().filter(|c| c.is_shown && c.has_queries());
        shown.map(|c| c.block).collect::<BTreeSet<_>>()
    };
    for block in metrics.iter().flat_map(with_queries).collect::<BTreeSet<_>>() {
        let name = completion::name_in(metrics, block);
        let of = |m: &Metrics| m.completion_of(block).map(|c| c.queries);
        let value = |m: &Metrics| of(m)?.p50;
        add_of(&format!("Completion of queries of {name}, median"), Lower, format::time_ns, &value, &of);
    }
    for (title, value) in jobs::headlines(metrics, MOST_BLOCKS) {
        add_of(&title, Lower, format::time_ns, value.as_ref(), &|_| None);
    }
    let mut add = |title: &str, better: Better, show: fn(f64) -> String, value: Value<'_>| {
        add_of(title, better, show, value, &|_| None);
    };
    let rtts = |x| format!("{} RTTs", format::number(x));
    add("Convergence, 99th percentile", Lower, rtts, &|m| m.convergence.and_then(|c| c.p99_rtts));
    add("Convergence, median", Lower, rtts, &|m| m.convergence.and_then(|c| c.p50_rtts));
    if let Some(port) = metrics.iter().find_map(headline_port).map(|p| p.port.clone()) {
        let at = |m: &Metrics, f: fn(&PortMetrics) -> Option<f64>| {
            m.ports.iter().chain(&m.all_ports).find(|p| p.port == port).and_then(f)
        };
        add(&format!("Peak queue, {port}"), Lower, format::bytes, &|m| at(m, |p| Some(p.qlen_peak_bytes)));
        let p99 = format!("99th percentile of the queue, {port}");
        add(&p99, Lower, format::bytes, &|m| at(m, |p| Some(p.qlen_p99_bytes)));
        add(&format!("Mean queue, {port}"), Lower, format::bytes, &|m| at(m, |p| Some(p.qlen_mean_bytes)));
        add(&format!("Utilisation, {port}"), Higher, format::percent, &|m| at(m, |p| p.utilisation));
    } else {
        add("Goodput of all flows", Higher, format::rate, &|m| Some(m.goodput_bps));
    }
    add("Fairness of long flows (Jain index)", Higher, |x| format!("{x:.3}"), &|m| m.jain);
    add("PFC pauses", Lower, format::count, &|m| Some(m.counts.pfc_pauses));
    add("Flows unfinished", Lower, format::count, &|m| Some(m.flows_unfinished));
    all
}

/// Returns the port that the page is about: the one with the longest queue, or all together where there are many.
fn headline_port(m: &Metrics) -> Option<&PortMetrics> {
    if MAX_PORTS < m.ports.len() {
        return m.all_ports.as_ref();
    }
    m.ports.iter().max_by(|a, b| a.qlen_peak_bytes.total_cmp(&b.qlen_peak_bytes))
}

/// Returns a number with its unit set smaller.
fn big_number(text: &str, is_bound: bool) -> String {
    let (value, unit) = text.split_once(' ').unwrap_or((text, ""));
    format!("<p class=\"big\">{} <small>{unit}</small></p>", table::bounded(value.to_owned(), is_bound))
}

/// Returns a bar for each algorithm, as long as its value.
fn bars(headline: &Headline, metrics: &[Metrics], colours: &[usize]) -> String {
    let largest = headline.values.iter().flatten().copied().fold(0.0, f64::max);
    let mut out = String::from("<div class=\"bars\">");
    for (i, ((m, value), colour)) in metrics.iter().zip(&headline.values).zip(colours).enumerate() {
        let text = value.map_or_else(|| "-".to_owned(), headline.show);
        let class = if headline.best.contains(&i) { " class=\"best\"" } else { "" };
        let text = table::bounded(text, headline.bounds[i]);
        let percent = value.map_or(0.0, |v| if 0.0 < largest { 100.0 * v / largest } else { 0.0 });
        let width = if percent == 0.0 { "0".to_owned() } else { format!("max(2px,{percent:.1}%)") };
        let _ = write!(
            out,
            "<span{class}>{}</span><span class=\"bar\" style=\"width:{width};background:var(--s{})\"></span>\
             <span class=\"value\"><span{class}>{text}</span></span>",
            escape(&m.title),
            colour,
        );
    }
    out + "</div>"
}

/// Returns a note that figures against time leave out some columns, if they do.
fn undrawn(variants: &[Variant]) -> String {
    if variants.len() <= MAX_DRAWN {
        return String::new();
    }
    format!(
        "<p class=\"note\">Figures against time show the first {MAX_DRAWN} of {} columns; figures over the grid and tables have all.</p>\n",
        variants.len()
    )
}

/// Returns the tables of iterations of jobs and collective operations with their critical paths, with a single column;
/// empty if there are none.
fn iterations(variants: &[Variant]) -> String {
    let [variant] = variants else { return String::new() };
    let run = variant.first();
    let tables = [collectives::table(run), jobs::table(run)].into_iter().flatten();
    let body: String =
        tables.chain(critical_path::tables(&run.critical_paths)).map(|table| table_html(&table)).collect();
    if body.is_empty() {
        return body;
    }
    let seed =
        if variant.runs.len() < 2 { String::new() } else { format!("<p class=\"note\">Of seed {}.</p>\n", run.seed) };
    format!("<h2>Iterations and their critical paths</h2>\n{seed}{body}")
}

/// Returns the pictures of the network, its ports and its worst flows, with a single column; empty if nothing of them
/// was recorded.
fn network(variants: &[Variant]) -> String {
    let [variant] = variants else { return String::new() };
    let run = variant.first();
    let end_ns = run.totals.end_ns;
    let picture = run.shape.as_ref().map_or_else(String::new, |shape| network::section(shape, &run.links, end_ns));
    let queues = QueueMap::of(run).map_or_else(String::new, |map| map.section());
    let tables = [places::table(run), worst::table(&run.worst)].into_iter().flatten().map(|table| table_html(&table));
    let body = [picture, queues].into_iter().chain(tables).collect::<String>();
    if body.is_empty() {
        return body;
    }
    let seed =
        if variant.runs.len() < 2 { String::new() } else { format!("<p class=\"note\">Of seed {}.</p>\n", run.seed) };
    format!("<h2>{NETWORK}</h2>\n{seed}{body}")
}

/// Title of the chapter on ports.
const NETWORK: &str = "The network, port by port";

/// Returns the pictures of that chapter as files.
pub(crate) fn pictures(variants: &[Variant]) -> Vec<Picture> {
    let [variant] = variants else { return Vec::new() };
    let run = variant.first();
    let end_ns = run.totals.end_ns;
    let network = run.shape.as_ref().and_then(|shape| network::file(shape, &run.links, end_ns)).map(|svg| Picture {
        chapter: NETWORK,
        title: network::TITLE,
        svg,
        csv: network::csv(&run.links, end_ns),
    });
    let queues = QueueMap::of(run).map(|map| Picture {
        chapter: NETWORK,
        title: queue_map::TITLE,
        svg: map.file(),
        csv: map.csv(),
    });
    network.into_iter().chain(queues).collect()
}

/// Returns the tables, with notes on their intervals.
fn numbers(comparison: &Comparison) -> String {
    let mut out = String::from("<h2>In numbers</h2>\n");
    let about = notes(comparison);
    let tables = tables(comparison);
    for note in about
        .first()
        .into_iter()
        .chain(&bold(comparison))
        .chain(&unfinished(comparison, &[]))
        .chain(&largest(&tables.iter().collect::<Vec<_>>()))
        .chain(&window(&comparison.metrics))
    {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    out.extend(tables.iter().map(table_html));
    let titled = |mut table: Table| {
        table.columns = comparison.metrics[1..].iter().map(|m| m.title.clone()).collect();
        table
    };
    if let Some(table) = table::differences(comparison).map(titled) {
        let _ = writeln!(out, "<h2>Differences</h2>\n<p class=\"note\">{}</p>", escape(&about[1..].join(" ")));
        out.push_str(&table_html(&table.without(WALL_CLOCK_ROW)));
    }
    out
}

fn tables(comparison: &Comparison) -> Vec<Table> {
    let metrics = &comparison.metrics;
    let mut tables = match metrics.as_slice() {
        [one] if one.seeds.len() < 2 => table::single(one),
        _ => vec![table::comparison(comparison)],
    };
    if let Some(table) = tables.last_mut() {
        table.columns = metrics.iter().map(|m| m.title.clone()).collect();
    }
    tables.into_iter().map(|t| t.without(WALL_CLOCK_ROW)).collect()
}

/// Returns the scenario of each variant, folded unless there is only one variant.
fn scenarios(variants: &[Variant]) -> String {
    let mut out = String::from("<h2>Scenario</h2>\n");
    for (i, variant) in variants.iter().enumerate() {
        let open = if i == 0 && variants.len() == 1 { " open" } else { "" };
        let _ = writeln!(
            out,
            "<details{open}><summary>scenario.toml of {}</summary><pre>{}</pre></details>",
            escape(&variant.title),
            escape(variant.first().scenario_toml.trim_end()),
        );
    }
    out
}

fn footer(variants: &[Variant]) -> String {
    let p = &variants[0].first().provenance;
    let commit = if p.commit.is_empty() || p.commit == "unknown" {
        String::new()
    } else {
        format!(", commit <code>{}</code>", escape(&p.commit))
    };
    let mut out = format!(
        "<footer>\n<p>fairrate {}{commit}. A fingerprint is the hash of a run's order of events.</p>\n",
        escape(&p.version)
    );
    for run in variants.iter().flat_map(|v| &v.runs) {
        let _ = writeln!(
            out,
            "<p>{}, seed {}: scenario <code>{}</code>, fingerprint <code>{}</code></p>",
            escape(&run.label),
            run.seed,
            escape(&run.provenance.scenario_hash),
            escape(&run.provenance.fingerprint),
        );
    }
    out + "</footer>\n"
}

/// Returns the data for the page's script, as JSON.
fn data(first: &RunData, lines: &[Line], chapters: &[Chapter]) -> String {
    let data = serde_json::json!({
        "name": first.scenario, "legend": lines, "chapters": chapters, "dashes": DASHES, "markers": MARKERS,
    });
    // Within a script element only `</` and `<!--` could end the data early.
    data.to_string().replace('<', "\\u003c").replace("->", "\u{2192}")
}

#[cfg(test)]
mod tests;
