//! The states of links in the configuration.

use std::collections::HashSet;

use fairrate_units::Rate;
use serde::{Deserialize, Deserializer, de};

use super::place::Fault;
use crate::network::{LinkState, Network};

/// A link that is down, or has another rate than the topology's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name, `FROM->TO`.
    pub name: String,
    /// `true` if it is down, in both directions.
    #[serde(default)]
    pub down: bool,
    /// Its rate in this direction.
    #[serde(default, deserialize_with = "rate")]
    pub rate: Option<Rate>,
}

impl Link {
    /// Returns its state.
    pub fn state(&self) -> LinkState {
        match self.rate {
            Some(rate) if !self.down => LinkState::Rate(rate.as_bps_f64()),
            _ => LinkState::Down,
        }
    }
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

/// Checks the states of links; the error is the first invalid one.
pub(super) fn check(links: &[Link], network: &Network) -> Result<(), Fault> {
    let mut names = HashSet::new();
    for (i, link) in links.iter().enumerate() {
        let fail = |key: &str, what: String| Err(Fault::new(format!("link.{i}.{key}"), what));
        if link.down == link.rate.is_some() {
            return fail("name", "say one thing of a link: `down = true`, or `rate = \"5Gbps\"`".to_owned());
        }
        if link.rate.is_some_and(|rate| rate == Rate::ZERO) {
            return fail("rate", "a link without a rate is down: write `down = true`".to_owned());
        }
        let [name, _] = match network.find_link(&link.name) {
            Ok(names) => names,
            Err(unknown) => return fail("name", unknown.to_string()),
        };
        if names.contains(&name) {
            return fail("name", format!("the link `{name}` is there twice: remove one"));
        }
        names.insert(name);
    }
    Ok(())
}
