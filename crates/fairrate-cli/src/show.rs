//! `fairrate show`: the flows of a run that fared worst, and the ports with the longest queues; or the runs of a
//! comparison.

mod comparison;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_report::load::{self, at_least};
use fairrate_report::metric::{size_class, size_classes};
use fairrate_report::metrics::{Metrics, PortMetrics};
use fairrate_report::{format, index, model};
use fairrate_results::{FlowRow, Results};
use fairrate_scenario::{Overrides, Scenario, traffic_block_names};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of a run; of one of a comparison, its runs are listed
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Number of flows, and of ports
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    worst: u32,
    #[command(flatten)]
    chosen: Chosen,
    /// Print one JSON object in place of tables
    #[arg(long)]
    pub json: bool,
}

/// The choice of flows, as `show` and `explain` have it.
#[derive(Debug, clap::Args)]
pub struct Chosen {
    /// Only flows of this size: short (up to 10 KB), 10-100KB, medium (100 KB to 1 MB) or long
    #[arg(long, value_name = "SIZE")]
    class: Option<String>,
    /// Only flows of this `[[traffic]]` block, by name or counted from 0, or of this group of a flow list
    #[arg(long, value_name = "BLOCK")]
    block: Option<String>,
}

impl Chosen {
    /// Returns the flows of a size or of a traffic block, as the arguments of the same names choose them.
    pub fn of(class: Option<String>, block: Option<String>) -> Self {
        Self { class, block }
    }

    /// Returns the choice in words, to follow the name of a scenario; nothing for all flows.
    pub fn words(&self) -> String {
        let words = [("size", &self.class), ("block", &self.block)];
        words.iter().filter_map(|(of, name)| Some(format!(", {of} {}", name.as_ref()?))).collect()
    }

    /// Returns the traffic block that is chosen, among blocks with these names and the groups of the flows in `rows`.
    pub fn block(&self, blocks: &[String], rows: &[FlowRow]) -> Result<Option<u32>, Failure> {
        self.block.as_deref().map(|block| block_of(block, blocks, rows)).transpose()
    }

    /// Returns a test for the chosen flows among `rows`, those of a run whose traffic blocks are called `blocks`.
    pub fn filter(&self, blocks: &[String], rows: &[FlowRow]) -> Result<impl Fn(&FlowRow) -> bool + use<>, Failure> {
        let wanted = self.class.as_deref().map(class_of).transpose()?;
        let block = self.block(blocks, rows)?;
        Ok(move |row: &FlowRow| {
            let of_size = |(above, up_to)| row.bytes.is_some_and(|bytes| above < bytes && bytes <= up_to);
            wanted.is_none_or(of_size) && block.is_none_or(|block| row.group == block)
        })
    }
}

/// A flow with the names of its hosts.
#[derive(Serialize)]
struct ShownFlow {
    flow: u32,
    from: String,
    to: String,
    block: u32,
    /// The name of the block; empty without one.
    block_name: String,
    bytes: Option<u64>,
    start_ns: u64,
    fct_ns: Option<u64>,
    /// Completion time over that of the flow alone; if it is unfinished, its time so far over it.
    slowdown: f64,
    finished: bool,
    retransmitted_bytes: u64,
    timeouts: u32,
}

/// A port with its queue in the measuring window.
#[derive(Serialize)]
struct ShownPort {
    port: String,
    queue_mean_bytes: f64,
    queue_p99_bytes: f64,
    queue_peak_bytes: f64,
    pause_ns: f64,
    drops: f64,
}

#[derive(Serialize)]
struct Shown {
    scenario: String,
    cc: String,
    seed: u64,
    state: String,
    flows: Vec<ShownFlow>,
    ports: Vec<ShownPort>,
}

/// Prints the worst flows and ports. Results may be from another person, so their library is not loaded.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let registry = &registry.without_libraries();
    args.chosen.class.as_deref().map(class_of).transpose()?;
    if args.dir.join(index::FILE).exists() {
        comparison::list(&args.dir, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut results = Results::open(&args.dir)?;
    let scenario = Scenario::with_algorithms(registry).load(&results.scenario_path(), &Overrides::default()).ok();
    let name = |id: u32| {
        let node = scenario.as_ref().and_then(|s| s.sim_config().topology.nodes.get(id as usize));
        node.map_or_else(|| id.to_string(), |node| node.name.clone())
    };
    load::complete(&mut results, scenario.as_ref())?;
    let blocks = traffic_block_names(&results.scenario_toml()?);
    let rows = results.flows()?;
    let is_wanted = args.chosen.filter(&blocks, &rows)?;
    let end_ns = results.summary.sim_s * 1e9;
    let mut flows: Vec<(f64, FlowRow)> = rows
        .into_iter()
        .filter(is_wanted)
        .filter_map(|row| Some((row.slowdown.or_else(|| at_least(&row, end_ns))?, row)))
        .collect();
    flows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
    flows.truncate(args.worst as usize);
    let shown = |(slowdown, row): (f64, FlowRow)| ShownFlow {
        flow: row.id,
        from: name(row.src),
        to: name(row.dst),
        block: row.group,
        block_name: blocks.get(row.group as usize).cloned().unwrap_or_default(),
        bytes: row.bytes,
        start_ns: row.start_ns,
        fct_ns: row.fct_ns,
        slowdown,
        finished: row.finished,
        retransmitted_bytes: row.retransmitted_bytes,
        timeouts: row.timeouts,
    };
    let summary = &results.summary;
    let shown = Shown {
        scenario: summary.scenario.clone(),
        cc: summary.cc.clone(),
        seed: summary.seed,
        state: summary.state.clone(),
        flows: flows.into_iter().map(shown).collect(),
        ports: ports(args, registry)?,
    };
    if args.json {
        output::print_json(&shown)?;
    } else {
        output::print_text(&shown.to_text(&args.chosen.words()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the range of sizes of a class: above, and up to.
fn class_of(name: &str) -> Result<(u64, u64), Failure> {
    size_class(name).ok_or_else(|| Failure::unknown_name("size of flows", name, &size_classes()))
}

/// Returns the number of the block `name`: one of the names `blocks`, its number, or a group of flows in `rows`.
fn block_of(name: &str, blocks: &[String], rows: &[FlowRow]) -> Result<u32, Failure> {
    if let Some(block) = (0..).zip(blocks).find_map(|(i, block)| (!name.is_empty() && block == name).then_some(i)) {
        return Ok(block);
    }
    let numbers: BTreeSet<u32> = (0..blocks.len() as u32).chain(rows.iter().map(|row| row.group)).collect();
    let number: Option<u32> = name.parse().ok();
    if let Some(block) = number.filter(|number| numbers.contains(number)) {
        return Ok(block);
    }
    let names: Vec<&str> = blocks.iter().map(String::as_str).filter(|block| !block.is_empty()).collect();
    let named = |number: u32| blocks.get(number as usize).filter(|block| !block.is_empty());
    let shown = |&number: &u32| named(number).map_or_else(|| number.to_string(), |name| format!("{number} (`{name}`)"));
    let help = match fairrate_text::did_you_mean(name, names).filter(|_| number.is_none()) {
        Some(question) => question,
        None if numbers.is_empty() => "there are no blocks".to_owned(),
        None => format!("there are {}", numbers.iter().map(shown).collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::UnknownName { what: "traffic block", name: name.to_owned(), help })
}

/// Returns the ports with the largest 99th percentiles of their queues.
fn ports(args: &Args, registry: &Registry) -> Result<Vec<ShownPort>, Failure> {
    let data = output::load(&args.dir, "", registry)?;
    let mut ports: Vec<PortMetrics> = model::variants(vec![data]).iter().flat_map(|v| Metrics::of(v).ports).collect();
    ports.sort_by(|a, b| {
        let queue = |port: &PortMetrics| (port.qlen_p99_bytes, port.qlen_peak_bytes);
        queue(b).partial_cmp(&queue(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let shown = |port: PortMetrics| ShownPort {
        port: port.port,
        queue_mean_bytes: port.qlen_mean_bytes,
        queue_p99_bytes: port.qlen_p99_bytes,
        queue_peak_bytes: port.qlen_peak_bytes,
        pause_ns: port.pfc_pause_ns,
        drops: port.drops,
    };
    Ok(ports.into_iter().take(args.worst as usize).map(shown).collect())
}

impl Shown {
    /// Returns the tables of flows that were `chosen` in these words, and of ports.
    fn to_text(&self, chosen: &str) -> String {
        let heading = format!("{}: {}, seed {} ({})\n", self.scenario, self.cc, self.seed, self.state);
        let flows = if self.flows.is_empty() {
            let of = if chosen.is_empty() { String::new() } else { format!(" of {}", chosen.trim_start_matches(", ")) };
            format!("no flow{of} has started and has an end\n")
        } else {
            let head = ["flow", "from", "to", "block", "bytes", "start", "FCT", "slowdown", "sent again", "timeouts"];
            table("Flows with the largest slowdowns", &head, self.flows.iter().map(ShownFlow::row), 3)
        };
        let is_bound = self.flows.iter().any(|flow| !flow.finished);
        let note = if is_bound { "≥: unfinished; its time so far over its time alone\n" } else { "" };
        let mut parts = vec![heading, flows + note];
        if !self.ports.is_empty() {
            let head = ["port", "queue mean", "queue p99", "queue peak", "paused", "drops"];
            parts.push(table("Probed ports with the longest queues", &head, self.ports.iter().map(ShownPort::row), 1));
        }
        parts.join("\n")
    }
}

/// Returns a table under its title, with the first `n_left` columns aligned to the left.
fn table(title: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>, n_left: usize) -> String {
    let head = head.iter().map(|&word| word.to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    format!("{title}\n{}", fairrate_text::aligned(&lines, n_left))
}

impl ShownFlow {
    fn row(&self) -> Vec<String> {
        let time = |ns: u64| format::time_ns(ns as f64);
        vec![
            self.flow.to_string(),
            self.from.clone(),
            self.to.clone(),
            if self.block_name.is_empty() { self.block.to_string() } else { self.block_name.clone() },
            self.bytes.map_or_else(|| "endless".to_owned(), |bytes| format::bytes(bytes as f64)),
            time(self.start_ns),
            self.fct_ns.map_or_else(|| "-".to_owned(), time),
            format!("{}{}", if self.finished { "" } else { "≥ " }, format::number(self.slowdown)),
            format::bytes(self.retransmitted_bytes as f64),
            self.timeouts.to_string(),
        ]
    }
}

impl ShownPort {
    fn row(&self) -> Vec<String> {
        vec![
            self.port.clone(),
            format::bytes(self.queue_mean_bytes),
            format::bytes(self.queue_p99_bytes),
            format::bytes(self.queue_peak_bytes),
            format::time_ns(self.pause_ns),
            format::count(self.drops),
        ]
    }
}
