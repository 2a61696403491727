//! Named sets of constants: `dcqcn@paper` is DCQCN with the marks of its paper. Each set has its source.
//!
//! Algorithms have their paper's form and constants by default. A set names other published constants, with the marks
//! of switches that belong to them. For every algorithm that has a form of its own in public code, the profile's name
//! is a set too: `timely@ns3`.

use crate::config::{Parameters, Profile};
use crate::custom::Registry;
use fairrate_units::Rate;

/// A named set of constants of an algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantSet {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Name of the set, which follows the algorithm's after `@`.
    pub name: &'static str,
    /// Publication or program that has these constants.
    pub source: &'static str,
    /// Line rate of the hosts that the constants are for, from which those that are `scaled` grow in proportion.
    pub made_for: Option<Rate>,
    /// Constants.
    pub constants: Vec<Constant>,
}

/// A key of a scenario with its value in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Key of the scenario with dots, as `switch.ecn.kmin`.
    pub key: String,
    /// Value, in TOML.
    pub toml: String,
    /// A rate in proportion to the hosts' line rate.
    pub scaled: bool,
}

/// A row of the table: algorithm, set, source, and the line rate of hosts in Gb/s that its scaled rates are for.
type Row = (&'static str, &'static str, &'static str, Option<u64>, &'static [(&'static str, &'static str, bool)]);

const fn fixed(key: &'static str, toml: &'static str) -> (&'static str, &'static str, bool) {
    (key, toml, false)
}

const fn scaled(key: &'static str, toml: &'static str) -> (&'static str, &'static str, bool) {
    (key, toml, true)
}

/// Marks of DCQCN's paper, for ports of 40 Gb/s.
const MARKS: [(&str, &str, bool); 3] =
    [fixed("switch.ecn.kmin", "\"5KB\""), fixed("switch.ecn.kmax", "\"200KB\""), fixed("switch.ecn.pmax", "0.01")];
/// Marks of HPCC's and PowerTCP's public ns-3 code.
const NS3_MARKS: [(&str, &str, bool); 5] = [
    fixed("switch.ecn.kmin", "\"100KB\""),
    fixed("switch.ecn.kmax", "\"400KB\""),
    fixed("switch.ecn.pmax", "0.2"),
    fixed("switch.ecn.kmin_per", "\"25Gbps\""),
    fixed("switch.ecn.kmax_per", "\"25Gbps\""),
];

const TABLE: &[Row] = &[
    ("dcqcn", "paper", "DCQCN, SIGCOMM 2015, section 5: parameters and marks for 40 Gb/s", None, &MARKS),
    (
        "dcqcn",
        "scaled",
        "the constants of dcqcn@paper, in proportion to line rates from 40 Gb/s on (ours)",
        Some(40),
        &[
            MARKS[0],
            MARKS[1],
            MARKS[2],
            fixed("switch.ecn.kmin_per", "\"40Gbps\""),
            fixed("switch.ecn.kmax_per", "\"40Gbps\""),
            scaled("transport.dcqcn.ai", "\"40Mbps\""),
            scaled("transport.dcqcn.hai", "\"400Mbps\""),
        ],
    ),
    (
        "dcqcn",
        "hpcc",
        "HPCC's public ns-3 code (run.py): a NIC vendor's values, in proportion to line rates from 25 Gb/s on",
        Some(25),
        &[
            fixed("transport.dcqcn.notification", "\"ack\""),
            fixed("transport.dcqcn.reaction", "\"sampled\""),
            fixed("transport.dcqcn.decrease_interval", "\"4us\""),
            fixed("transport.dcqcn.alpha_interval", "\"1us\""),
            fixed("transport.dcqcn.increase_interval", "\"300us\""),
            fixed("transport.dcqcn.count_bytes", "false"),
            fixed("transport.dcqcn.fast_recovery", "1"),
            fixed("transport.dcqcn.always_clamp_target", "false"),
            fixed("transport.dcqcn.hyper_growth", "false"),
            scaled("transport.dcqcn.ai", "\"5Mbps\""),
            scaled("transport.dcqcn.hai", "\"50Mbps\""),
            NS3_MARKS[0],
            NS3_MARKS[1],
            NS3_MARKS[2],
            NS3_MARKS[3],
            NS3_MARKS[4],
        ],
    ),
    (
        "dcqcn",
        "rocc",
        "the public OMNeT++ code of RoCC's authors: increase and marks",
        None,
        &[fixed("transport.dcqcn.ai", "\"4Mbps\""), MARKS[0], MARKS[1], MARKS[2]],
    ),
    (
        "hpcc",
        "hpcc",
        "HPCC's public ns-3 code (run.py): increase in proportion to line rates from 25 Gb/s on",
        Some(25),
        &[scaled("transport.hpcc.additive_increase", "\"10Mbps\"")],
    ),
    (
        "ndp",
        "paper",
        "NDP, SIGCOMM 2017: queues of 8 packets and a timeout of 1 ms",
        None,
        &[fixed("switch.trim_limit", "\"72512B\""), fixed("transport.rto", "\"1ms\"")],
    ),
];

/// Profiles whose forms are sets too, with their names in scenarios and their sources.
const PROFILES: [(&str, Profile, &str); 2] = [
    ("ns3", Profile::Ns3, "public ns-3 code, as with `profile = \"ns3\"`: the algorithm's form and constants there"),
    (
        "rocc-omnet",
        Profile::RoccOmnet,
        "the public OMNeT++ code of RoCC's authors, as with `profile = \"rocc-omnet\"`: the algorithm's form and constants there",
    ),
];

/// Returns all sets of the algorithms in `registry`, by algorithm.
pub fn constant_sets(registry: &Registry) -> Vec<ConstantSet> {
    registry.infos().flat_map(|info| constant_sets_of(info.name, registry)).collect()
}

/// Returns the sets of the algorithm called `name`; empty if there are none.
pub fn constant_sets_of(name: &str, registry: &Registry) -> Vec<ConstantSet> {
    let mut sets: Vec<ConstantSet> = TABLE.iter().filter(|row| row.0 == name).map(of_row).collect();
    sets.extend(
        PROFILES.iter().filter_map(|&(set, profile, source)| of_profile(name, (set, profile, source), registry)),
    );
    sets
}

fn of_row(&(algorithm, name, source, made_for, values): &Row) -> ConstantSet {
    let constant =
        |&(key, toml, scaled): &(&str, &str, bool)| Constant { key: key.to_owned(), toml: toml.to_owned(), scaled };
    let made_for = made_for.map(Rate::from_gbps);
    ConstantSet { algorithm, name, source, made_for, constants: values.iter().map(constant).collect() }
}

/// Returns the parameters that differ from the paper's in a profile; `None` if none does.
fn of_profile(
    algorithm: &str,
    (name, profile, source): (&'static str, Profile, &'static str),
    registry: &Registry,
) -> Option<ConstantSet> {
    let algorithm = registry.infos().find(|info| info.name == algorithm)?.name;
    let params = |profile| registry.config(algorithm, profile).map_or_else(Vec::new, |config| config.params());
    let pairs = params(Profile::Paper).into_iter().zip(params(profile));
    let constants: Vec<Constant> = pairs
        .filter(|(paper, other)| paper.toml != other.toml)
        .map(|(_, other)| Constant {
            key: format!("transport.{algorithm}.{}", other.name),
            toml: other.toml,
            scaled: false,
        })
        .collect();
    (!constants.is_empty()).then_some(ConstantSet { algorithm, name, source, made_for: None, constants })
}

impl Constant {
    /// Returns the value for hosts of `line_rate`, in TOML.
    pub fn value(&self, made_for: Option<Rate>, line_rate: Rate) -> String {
        let rate = self.toml.trim_matches('"').parse::<Rate>().ok();
        match (self.scaled, made_for, rate) {
            (true, Some(made_for), Some(rate)) => {
                let factor = line_rate.as_bps_f64() / made_for.as_bps_f64();
                format!("\"{}\"", Rate::from_bps_f64(rate.as_bps_f64() * factor))
            }
            _ => self.toml.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_profiles_are_sets() {
        let sets = constant_sets(&Registry::new());
        let mut names: Vec<_> = sets.iter().map(|set| (set.algorithm, set.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), sets.len());
        let timely = constant_sets_of("timely", &Registry::new());
        let ai = timely[0].constants.iter().find(|c| c.key == "transport.timely.ai").expect("it differs");
        assert_eq!((timely[0].name, ai.toml.as_str()), ("ns3", "\"50Mbps\""));
        assert!(constant_sets_of("line-rate", &Registry::new()).is_empty());
    }

    #[test]
    fn scaled_rates_grow_with_the_hosts() {
        let sets = constant_sets_of("dcqcn", &Registry::new());
        let hpcc = sets.iter().find(|set| set.name == "hpcc").expect("there is one");
        let at = |key: &str, gbps| {
            let constant = hpcc.constants.iter().find(|c| c.key == key).expect("it is there");
            constant.value(hpcc.made_for, Rate::from_gbps(gbps))
        };
        assert_eq!(at("transport.dcqcn.ai", 100), "\"20Mbps\"");
        assert_eq!(at("transport.dcqcn.hai", 25), "\"50Mbps\"");
        assert_eq!(at("switch.ecn.kmin", 100), "\"100KB\"");
    }
}
