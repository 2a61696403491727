//! The suggested ranges of parameters, over the whole registry.

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Param, ParamKind, Parameters, Profile, RawValue, Scale};
use fairrate_units::{Bytes, Rate, Time};

/// Returns a value in TOML as its kind has it.
fn raw(kind: ParamKind, toml: &str) -> RawValue<'_> {
    match kind {
        ParamKind::Float => RawValue::Float(toml.parse().expect("a number")),
        ParamKind::Count => RawValue::Integer(toml.parse().expect("a count")),
        _ => RawValue::Text(toml.strip_prefix('"').and_then(|t| t.strip_suffix('"')).expect("a quantity in quotes")),
    }
}

/// Returns a value in TOML as a number in base units.
fn number(param: &Param, toml: &str) -> f64 {
    let text = toml.trim_matches('"');
    match param.kind {
        ParamKind::Time => text.parse::<Time>().expect("a time").as_ps() as f64,
        ParamKind::Rate => text.parse::<Rate>().expect("a rate").as_bps() as f64,
        ParamKind::Bytes => text.parse::<Bytes>().expect("a size").as_u64() as f64,
        ParamKind::Float => text.parse().expect("a number"),
        ParamKind::Count => f64::from(text.parse::<u32>().expect("a count")),
        ParamKind::Bool | ParamKind::Choice(_) => panic!("{} has a suggested range and is no number", param.name),
    }
}

#[test]
fn ranges_hold_the_defaults_of_all_profiles_and_allowed_values_only() {
    for info in ALGORITHMS {
        for profile in [Profile::Paper, Profile::Ns3, Profile::RoccOmnet] {
            let config = AlgorithmConfig::by_name(info.name, profile).expect("listed");
            for form in [config.clone(), config.over_tcp()] {
                for param in form.params() {
                    let Some(tune) = param.tune else { continue };
                    let place = format!("{} {} {profile:?}", info.name, param.name);
                    let [low, high, default] = [tune.low, tune.high, &param.toml].map(|toml| number(&param, toml));
                    assert!(low < high && low <= default && default <= high, "{place}: {low} {default} {high}");
                    assert!(tune.scale == Scale::Linear || low > 0.0, "{place}: a logarithmic scale from {low}");
                    for end in [tune.low, tune.high] {
                        let set = form.clone().set(param.name, raw(param.kind, end));
                        assert!(set.is_ok(), "{place} = {end}: {set:?}");
                    }
                }
            }
        }
    }
}

/// The algorithms with a suggested range for every numeric parameter, with the exceptions.
#[test]
fn tuned_algorithms_have_ranges_for_all_their_numbers() {
    // The default, 0, stands for a number that the port works out.
    let exceptions = [("rocc", "table_size")];
    let tuned = "dcqcn dctcp hpcc powertcp theta-powertcp swift timely patched-timely rocc d2tcp hull nscc eqds ndp";
    for name in tuned.split(' ') {
        let params = AlgorithmConfig::by_name(name, Profile::Paper).expect("listed").params();
        for param in params {
            // A word of its own among the values, as `"bdp"`.
            let is_number = param.toml.trim_matches('"').starts_with(|c: char| c.is_ascii_digit());
            let wants = is_number && !exceptions.contains(&(name, param.name));
            assert_eq!(param.tune.is_some(), wants, "{name} {}", param.name);
        }
    }
}
