//! Warnings: settings that are allowed and likely not meant.

use fairrate_control::{AlgorithmConfig, MadeFor, Parameters, Profile};
use fairrate_sim::{Balance, EntropyScheme, Flap, SimConfig, Transport};

use fairrate_units::{Rate, Time};

use super::routing::knows_paths;

/// Returns the warnings of a scenario, each a sentence or two.
pub(super) fn warnings(config: &SimConfig, profile: Profile) -> Vec<String> {
    let topology = &config.topology;
    let is_of_host = |link: &&fairrate_sim::topology::Link| topology.is_host(link.a) || topology.is_host(link.b);
    let rates = || topology.links.iter().filter(is_of_host).map(|link| link.rate);
    let (Some(slowest), Some(fastest)) = (rates().min(), rates().max()) else { return Vec::new() };
    let outside = |made_for: &&MadeFor| slowest < made_for.least || made_for.most < fastest;
    let defaults = AlgorithmConfig::by_name(config.cc.info().name, profile).unwrap_or_else(|| config.cc.clone());
    let warn = |made_for: &MadeFor| {
        let value = |cc: &AlgorithmConfig| Some(cc.params().into_iter().find(|p| p.name == made_for.param)?.toml);
        let default = value(&config.cc).filter(|toml| Some(toml) == value(&defaults).as_ref())?;
        let (rate, edge) = if made_for.most < fastest { (fastest, made_for.most) } else { (slowest, made_for.least) };
        Some(warning(config.cc.info().name, made_for, &default, rate, edge))
    };
    config
        .cc
        .made_for()
        .iter()
        .filter(outside)
        .filter_map(warn)
        .chain(disorder(config))
        .chain(no_reaction(config))
        .collect()
}

/// The shortest failure of a link to which networks usually react.
const NOTICEABLE: Time = Time::from_ms(1);

/// Returns a warning if links are down for long and no switch reacts, though there are other paths.
fn no_reaction(config: &SimConfig) -> Option<String> {
    let lasts = |flap: &Flap| NOTICEABLE <= flap.up_at - flap.down_at;
    let is_long = config.faults.iter().any(|fault| fault.flap.as_ref().is_some_and(lasts));
    let topology = &config.topology;
    let n_switches = topology.nodes.len() - topology.hosts().count();
    (is_long
        && config.fabric.reroute.is_none()
        && topology.circuits.is_none()
        && 2 < n_switches
        && !knows_paths(&config.cc.needs()))
    .then(|| {
        "links go down, and no switch reacts: flows on them wait until they are up again; with \
             `routing.reroute_delay=\"1ms\"` switches send them another way after that time"
            .to_owned()
    })
}

/// Returns a warning if packets overtake each other, and receivers take that for losses. TCP tells the two apart by time, and a transport
/// with grants has no such reports.
fn disorder(config: &SimConfig) -> Option<String> {
    let is_plb = config.transport.entropy.is_some_and(|entropy| entropy.scheme == EntropyScheme::Plb);
    let keeps_order = is_plb
        || match config.fabric.balance {
            Balance::Ecmp | Balance::Wcmp | Balance::Flowlet { .. } | Balance::Conga(_) => true,
            Balance::Adaptive(adaptive) => adaptive.sticky.is_some(),
            Balance::Host | Balance::Spray | Balance::RoundRobin | Balance::Drill { .. } => false,
        };
    let can_wait = config.transport.kind == Transport::Rdma && config.cc.needs().feedback.grants.is_none();
    (!keeps_order && can_wait && config.transport.reorder_window == Time::ZERO).then(|| {
        "packets of a flow take several paths and overtake each other, and receivers take every gap for a loss; with \
         `transport.recovery=\"selective-repeat\"` and, for instance, `transport.reorder_window=\"100us\"` they wait for what is late"
            .to_owned()
    })
}

/// Returns a warning of a default that was published for hosts of other rates than `rate`, with the value in proportion
/// to `edge`.
fn warning(cc: &str, made_for: &MadeFor, default: &str, rate: Rate, edge: Rate) -> String {
    let MadeFor { param, least, most, source } = made_for;
    let text = format!(
        "`{param} = {default}` of `{cc}` is the default of {source}, for hosts of {least} to {most}, and there are hosts of {rate}"
    );
    let scaled = default.trim_matches('"').parse::<Rate>().ok();
    let scaled = scaled.map(|value| Rate::from_bps_f64(value.as_bps_f64() * rate.as_bps_f64() / edge.as_bps_f64()));
    match scaled {
        Some(scaled) => format!("{text}; in proportion it would be `transport.{cc}.{param}=\"{scaled}\"`"),
        None => text,
    }
}
