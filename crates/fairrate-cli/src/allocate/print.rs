//! An allocation as CSV and as JSON.

use fairrate_allocate::{Allocation, Network};
use serde::Serialize;

use super::optimum::Optimum;

const SCHEMA: &str = "fairrate.allocate/1";

/// The rates of an allocation, with further results.
pub enum Rates {
    /// Max-min fair rates.
    MaxMin(Allocation),
    /// Rates of the largest utility.
    Optimum(Optimum),
}

impl Rates {
    fn bps(&self) -> &[f64] {
        match self {
            Self::MaxMin(allocation) => &allocation.rates_bps,
            Self::Optimum(optimum) => &optimum.solution.rates_bps,
        }
    }

    fn objective(&self) -> String {
        match self {
            Self::MaxMin(_) => "max-min".to_owned(),
            Self::Optimum(optimum) if optimum.alpha == 1.0 => "proportional".to_owned(),
            Self::Optimum(optimum) => format!("alpha={}", optimum.alpha),
        }
    }
}

const fn gbps(bps: f64) -> f64 {
    bps / 1e9
}

/// Returns `rates` as CSV: the name and the rate of each flow, in Gb/s. Numbers are the shortest that give the same
/// value when they are read.
pub fn csv(network: &Network, rates: &Rates) -> String {
    let head = ["flow".to_owned(), "rate_gbps".to_owned()];
    let rows = network.flows.iter().zip(rates.bps());
    let rows = rows.map(|(flow, rate_bps)| [flow.name.clone(), gbps(*rate_bps).to_string()]);
    fairrate_text::csv(std::iter::once(head).chain(rows))
}

/// The output of `--json`.
#[derive(Serialize)]
pub struct AllocationJson<'a> {
    schema: &'static str,
    objective: String,
    #[serde(flatten)]
    optimum: Option<OptimumJson>,
    flows: Vec<FlowJson<'a>>,
    links: Vec<LinkJson<'a>>,
}

#[derive(Serialize)]
struct OptimumJson {
    method: &'static str,
    /// The method that was asked for, if it gave up.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback_from: Option<&'static str>,
    /// The sum of utilities, with rates in Gb/s.
    utility: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    residual: Option<f64>,
    converged: bool,
    kkt: KktJson,
}

#[derive(Serialize)]
struct KktJson {
    stationarity: f64,
    feasibility: f64,
    slackness: f64,
    gap: f64,
}

#[derive(Serialize)]
struct FlowJson<'a> {
    flow: &'a str,
    rate_gbps: f64,
    /// For max-min rates, the link that limits the flow; null if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    bottleneck: Option<Bottleneck<'a>>,
}

/// Name of a link, or null.
#[derive(Serialize)]
#[serde(transparent)]
struct Bottleneck<'a>(Option<&'a str>);

#[derive(Serialize)]
struct LinkJson<'a> {
    link: &'a str,
    capacity_gbps: f64,
    /// Sum of the rates of its flows.
    load_gbps: f64,
    /// For rates of the largest utility, the price of a Gb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

/// Returns all results of the allocation.
pub fn json<'a>(network: &'a Network, rates: &Rates) -> AllocationJson<'a> {
    let mut loads_bps = vec![0.0; network.links.len()];
    let mut flows = Vec::with_capacity(network.flows.len());
    for (i, (flow, &rate_bps)) in network.flows.iter().zip(rates.bps()).enumerate() {
        for link in &flow.links {
            loads_bps[link.index()] += rate_bps;
        }
        let bottleneck = match rates {
            Rates::MaxMin(allocation) => {
                Some(Bottleneck(allocation.bottleneck[i].map(|link| &*network.links[link.index()].name)))
            }
            Rates::Optimum(_) => None,
        };
        flows.push(FlowJson { flow: &flow.name, rate_gbps: gbps(rate_bps), bottleneck });
    }
    let prices: Vec<f64> = match rates {
        Rates::MaxMin(_) => Vec::new(),
        Rates::Optimum(optimum) => optimum.prices_per_gbps().collect(),
    };
    let links = network.links.iter().zip(loads_bps).enumerate().map(|(i, (link, load_bps))| LinkJson {
        link: &link.name,
        capacity_gbps: gbps(link.capacity_bps),
        load_gbps: gbps(load_bps),
        price: prices.get(i).copied(),
    });
    let optimum = match rates {
        Rates::MaxMin(_) => None,
        Rates::Optimum(optimum) => Some(optimum_json(optimum)),
    };
    AllocationJson { schema: SCHEMA, objective: rates.objective(), optimum, flows, links: links.collect() }
}

fn optimum_json(optimum: &Optimum) -> OptimumJson {
    let kkt = optimum.kkt;
    OptimumJson {
        method: optimum.method,
        fallback_from: optimum.gave_up.map(|(method, _)| method),
        utility: optimum.utility,
        iterations: optimum.convergence.map(|c| c.iterations),
        residual: optimum.convergence.map(|c| c.residual),
        converged: optimum.convergence.is_none_or(|c| c.converged),
        kkt: KktJson {
            stationarity: kkt.stationarity,
            feasibility: kkt.feasibility,
            slackness: kkt.slackness,
            gap: kkt.gap,
        },
    }
}
