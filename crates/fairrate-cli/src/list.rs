//! `fairrate list`: the names that scenarios can use.

use std::process::ExitCode;

use fairrate_control::{
    AlgorithmInfo, Constant, ConstantSet, ParamKind, Parameters, Profile, Registry, Scale, TuneRange, constant_sets,
};
use fairrate_report::format;
use fairrate_sim::topology::TOPOLOGIES;
use fairrate_sim::workload::WORKLOADS;
use fairrate_sim::{BALANCES, BalanceInfo, EntropyScheme, QUEUES};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kind of names to list
    #[arg(value_enum)]
    what: What,
    /// Print a JSON array in place of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum What {
    /// Congestion control algorithms, with their parameters in JSON
    Cc,
    /// Named sets of published constants, as dcqcn@paper
    Constants,
    /// Shapes of networks
    Topologies,
    /// Distributions of flow sizes
    Workloads,
    /// Queueing disciplines of switches
    Queues,
    /// Schemes that spread traffic over equal paths
    Balancing,
    /// Rules by which hosts choose paths
    Entropy,
}

/// Prints the list.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    match (args.what, args.json) {
        (What::Cc, false) => print_table(&["name", "title", "paper", "idea"], &algorithm_rows(registry)),
        (What::Cc, true) => output::print_json(&algorithms(registry)),
        (What::Constants, false) => print_constants(registry),
        (What::Constants, true) => output::print_json(&constants(registry)),
        (What::Topologies, false) => print_table(&["name", "shape", "link sets"], &topology_rows()),
        (What::Topologies, true) => output::print_json(&topologies()),
        (What::Workloads, false) => print_table(&["name", "mean", "what", "source"], &workload_rows()),
        (What::Workloads, true) => output::print_json(&workloads()),
        (What::Queues, false) => print_table(&["name", "what", "source"], &queue_rows()),
        (What::Queues, true) => output::print_json(&queues()),
        (What::Balancing, false) => print_table(&["name", "what", "source"], &scheme_rows(BALANCES)),
        (What::Balancing, true) => output::print_json(&balances()),
        (What::Entropy, false) => {
            print_table(&["name", "what", "source"], &scheme_rows(&EntropyScheme::ALL.map(EntropyScheme::info)))
        }
        (What::Entropy, true) => output::print_json(&entropies()),
    }
    .map(|()| ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct AlgorithmJson {
    name: &'static str,
    title: &'static str,
    paper: &'static str,
    idea: &'static str,
    parameters: Vec<ParameterJson>,
}

#[derive(Serialize)]
struct ParameterJson {
    name: &'static str,
    kind: &'static str,
    /// Default value, in TOML.
    default: String,
    /// Default value with `profile = "ns3"`, in TOML.
    default_ns3: String,
    /// Default value with `profile = "rocc-omnet"`, in TOML.
    default_rocc_omnet: String,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    choices: &'static [&'static str],
    doc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tune: Option<TuneJson>,
}

/// A suggested range for searches.
#[derive(Serialize)]
struct TuneJson {
    /// Lower end, in TOML.
    low: &'static str,
    /// Upper end, in TOML.
    high: &'static str,
    /// `linear` or `log`.
    scale: &'static str,
}

fn algorithms(registry: &Registry) -> Vec<AlgorithmJson> {
    let parameters = |name: &str| {
        let of = |profile| registry.config(name, profile).map_or_else(Vec::new, |c| c.params());
        let others = of(Profile::Ns3).into_iter().zip(of(Profile::RoccOmnet));
        let json = of(Profile::Paper).into_iter().zip(others).map(|(paper, (ns3, omnet))| {
            let (kind, choices) = kind_name(paper.kind);
            ParameterJson {
                name: paper.name,
                kind,
                default: paper.toml,
                default_ns3: ns3.toml,
                default_rocc_omnet: omnet.toml,
                choices,
                doc: paper.doc,
                tune: paper.tune.map(tune_json),
            }
        });
        json.collect()
    };
    let json = |a: &AlgorithmInfo| AlgorithmJson {
        name: a.name,
        title: a.title,
        paper: a.paper,
        idea: a.idea,
        parameters: parameters(a.name),
    };
    registry.infos().map(json).collect()
}

fn tune_json(range: TuneRange) -> TuneJson {
    let scale = match range.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
    };
    TuneJson { low: range.low, high: range.high, scale }
}

fn kind_name(kind: ParamKind) -> (&'static str, &'static [&'static str]) {
    match kind {
        ParamKind::Float => ("number", &[]),
        ParamKind::Count => ("count", &[]),
        ParamKind::Bool => ("switch", &[]),
        ParamKind::Time => ("time", &[]),
        ParamKind::Rate => ("rate", &[]),
        ParamKind::Bytes => ("size", &[]),
        ParamKind::Choice(words) => ("choice", words),
    }
}

#[derive(Serialize)]
struct ConstantsJson {
    name: String,
    source: &'static str,
    /// Line rate of hosts for which the scaled values are.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_for: Option<String>,
    constants: Vec<ConstantJson>,
}

#[derive(Serialize)]
struct ConstantJson {
    key: String,
    /// Value, in TOML.
    value: String,
    /// In proportion to the hosts' line rate.
    scaled: bool,
}

fn constants(registry: &Registry) -> Vec<ConstantsJson> {
    let constant = |c: &Constant| ConstantJson { key: c.key.clone(), value: c.toml.clone(), scaled: c.scaled };
    let json = |set: ConstantSet| ConstantsJson {
        name: format!("{}@{}", set.algorithm, set.name),
        source: set.source,
        made_for: set.made_for.map(|rate| rate.to_string()),
        constants: set.constants.iter().map(constant).collect(),
    };
    constant_sets(registry).into_iter().map(json).collect()
}

/// Prints each set: its name and source, and below them its values with their shortest keys.
fn print_constants(registry: &Registry) -> Result<(), Failure> {
    let value = |set: &ConstantSet, constant: &Constant| {
        let key = constant.key.rsplit('.').next().unwrap_or(&constant.key);
        let per = set.made_for.filter(|_| constant.scaled).map(|rate| format!(" per {rate}")).unwrap_or_default();
        format!("{key}={}{per}", constant.toml.trim_matches('"'))
    };
    let block = |set: ConstantSet| {
        let values: Vec<String> = set.constants.iter().map(|constant| value(&set, constant)).collect();
        format!("{}@{}: {}\n    {}\n", set.algorithm, set.name, set.source, values.join(", "))
    };
    output::print(&constant_sets(registry).into_iter().map(block).collect::<String>())
}

#[derive(Serialize)]
struct TopologyJson {
    name: &'static str,
    title: &'static str,
    link_sets: &'static [&'static str],
}

fn topologies() -> Vec<TopologyJson> {
    TOPOLOGIES.iter().map(|t| TopologyJson { name: t.name, title: t.title, link_sets: t.link_sets }).collect()
}

#[derive(Serialize)]
struct WorkloadJson {
    name: &'static str,
    title: &'static str,
    source: &'static str,
    mean_bytes: f64,
}

fn workloads() -> Vec<WorkloadJson> {
    let json = |w: &fairrate_sim::workload::WorkloadInfo| WorkloadJson {
        name: w.name,
        title: w.title,
        source: w.source,
        mean_bytes: w.mean,
    };
    WORKLOADS.iter().map(json).collect()
}

#[derive(Serialize)]
struct SourcedJson {
    name: &'static str,
    title: &'static str,
    source: &'static str,
}

fn queues() -> Vec<SourcedJson> {
    QUEUES.iter().map(|q| SourcedJson { name: q.name, title: q.title, source: q.source }).collect()
}

fn balances() -> Vec<SourcedJson> {
    BALANCES.iter().map(scheme_json).collect()
}

fn entropies() -> Vec<SourcedJson> {
    EntropyScheme::ALL.map(EntropyScheme::info).iter().map(scheme_json).collect()
}

fn scheme_json(scheme: &BalanceInfo) -> SourcedJson {
    SourcedJson { name: scheme.name, title: scheme.title, source: scheme.source }
}

fn algorithm_rows(registry: &Registry) -> Vec<Vec<String>> {
    registry.infos().map(|a| [a.name, a.title, a.paper, a.idea].map(str::to_owned).to_vec()).collect()
}

fn topology_rows() -> Vec<Vec<String>> {
    TOPOLOGIES.iter().map(|t| vec![t.name.to_owned(), t.title.to_owned(), t.link_sets.join(", ")]).collect()
}

fn workload_rows() -> Vec<Vec<String>> {
    let row = |w: &fairrate_sim::workload::WorkloadInfo| {
        vec![w.name.to_owned(), format::bytes(w.mean), w.title.to_owned(), w.source.to_owned()]
    };
    WORKLOADS.iter().map(row).collect()
}

fn queue_rows() -> Vec<Vec<String>> {
    QUEUES.iter().map(|q| [q.name, q.title, q.source].map(str::to_owned).to_vec()).collect()
}

fn scheme_rows(schemes: &[BalanceInfo]) -> Vec<Vec<String>> {
    schemes.iter().map(|s| [s.name, s.title, s.source].map(str::to_owned).to_vec()).collect()
}

/// Prints a table with columns of text.
fn print_table(head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let head = head.iter().map(|h| (*h).to_owned()).collect();
    let lines = [&[head], rows].concat();
    output::print(&fairrate_text::aligned(&lines, usize::MAX))
}
