//! Warnings: settings that are allowed and likely not meant.

mod classes;
mod fluids;
mod marks;
mod paths;
mod timeouts;

use fairrate_control::{AlgorithmConfig, MadeFor, Parameters, Profile};
use fairrate_sim::SimConfig;
use fairrate_units::Rate;

/// Returns the warnings of a scenario, each a sentence or two.
pub(super) fn warnings(config: &SimConfig, profile: Profile) -> Vec<String> {
    let topology = &config.topology;
    let rates = || topology.host_links().map(|(_, link)| link.rate);
    let (Some(slowest), Some(fastest)) = (rates().min(), rates().max()) else { return Vec::new() };
    let outside = |made_for: &&MadeFor| slowest < made_for.least || made_for.most < fastest;
    let warn = |cc: &AlgorithmConfig, made_for: &MadeFor| {
        let defaults = AlgorithmConfig::by_name(cc.info().name, profile).unwrap_or_else(|| cc.clone());
        let value = |cc: &AlgorithmConfig| Some(cc.params().into_iter().find(|p| p.name == made_for.param)?.toml);
        let default = value(cc).filter(|toml| Some(toml) == value(&defaults).as_ref())?;
        let (rate, edge) = if made_for.most < fastest { (fastest, made_for.most) } else { (slowest, made_for.least) };
        Some(warning(cc.info().name, made_for, &default, rate, edge))
    };
    let of_stack =
        |(_, cc)| AlgorithmConfig::made_for(cc).iter().filter(outside).filter_map(|made_for| warn(cc, made_for));
    config
        .stacks()
        .flat_map(of_stack)
        .chain(paths::warnings(config))
        .chain(marks::warning(config))
        .chain(fluids::warning(config))
        .chain(classes::warning(config))
        .chain(timeouts::warning(config))
        .collect()
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
