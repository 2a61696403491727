//! `fairrate allocate`: the rates that flows should have by definition.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fairrate_allocate::{Allocation, FileError, Network, max_min, parse_flows, parse_links};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

const SCHEMA: &str = "fairrate.allocate/1";

/// Arguments of `allocate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// CSV of links: link,capacity_gbps
    #[arg(long, value_name = "FILE")]
    links: PathBuf,
    /// CSV of flows: flow,links,weight; links with spaces between them, weight 1 if there is none
    #[arg(long, value_name = "FILE")]
    flows: PathBuf,
    /// What the rates are to be
    #[arg(long, value_enum)]
    objective: Objective,
    /// Print JSON, with bottlenecks and the load of links, in place of CSV
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Objective {
    /// Weighted max-min fair, exactly
    MaxMin,
}

/// Computes and prints them.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let links = read(&args.links, parse_links)?;
    let flows = read(&args.flows, |text| parse_flows(text, &links))?;
    let network = Network { links, flows };
    let (objective, allocation) = match args.objective {
        Objective::MaxMin => ("max-min", max_min(&network)),
    };
    let allocation = allocation.expect("the readers take nothing that has no allocation");
    if args.json {
        output::print_json(&json(objective, &network, &allocation));
    } else {
        output::print(&csv(&network, &allocation));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a file and parses it.
fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, FileError>) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::Unreadable { path: path.to_owned(), cause: describe(&e) })?;
    parse(&text).map_err(|error| Failure::input_file(path, text, error))
}

fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::InvalidData => "it is not text".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

const fn gbps(bps: f64) -> f64 {
    bps / 1e9
}

/// A line a flow. Numbers are the shortest that give the same value when they are read.
fn csv(network: &Network, allocation: &Allocation) -> String {
    let rows = network.flows.iter().zip(&allocation.rates_bps);
    let rows = rows.map(|(flow, rate_bps)| format!("{},{}\n", quoted(&flow.name), gbps(*rate_bps)));
    ["flow,rate_gbps\n".to_owned()].into_iter().chain(rows).collect()
}

/// A text as a field of CSV.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"']) || text.starts_with('#') {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[derive(Serialize)]
struct AllocationJson<'a> {
    schema: &'static str,
    objective: &'static str,
    flows: Vec<FlowJson<'a>>,
    links: Vec<LinkJson<'a>>,
}

#[derive(Serialize)]
struct FlowJson<'a> {
    flow: &'a str,
    rate_gbps: f64,
    /// The link that limits it, if one does.
    bottleneck: Option<&'a str>,
}

#[derive(Serialize)]
struct LinkJson<'a> {
    link: &'a str,
    capacity_gbps: f64,
    /// What its flows' rates add up to.
    load_gbps: f64,
}

fn json<'a>(objective: &'static str, network: &'a Network, allocation: &Allocation) -> AllocationJson<'a> {
    let mut loads_bps = vec![0.0; network.links.len()];
    let mut flows = Vec::with_capacity(network.flows.len());
    for ((flow, &rate_bps), bottleneck) in network.flows.iter().zip(&allocation.rates_bps).zip(&allocation.bottleneck) {
        for link in &flow.links {
            loads_bps[link.index()] += rate_bps;
        }
        let bottleneck = bottleneck.map(|link| &*network.links[link.index()].name);
        flows.push(FlowJson { flow: &flow.name, rate_gbps: gbps(rate_bps), bottleneck });
    }
    let links = network.links.iter().zip(loads_bps).map(|(link, load_bps)| LinkJson {
        link: &link.name,
        capacity_gbps: gbps(link.capacity_bps),
        load_gbps: gbps(load_bps),
    });
    AllocationJson { schema: SCHEMA, objective, flows, links: links.collect() }
}
