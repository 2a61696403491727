//! Numbers of dropped packets in summaries: a key `drops_CAUSE` for each cause.

use std::borrow::Cow;
use std::fmt;

use fairrate_sim::{DropCause, Drops};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Packets dropped, by cause. A cause that a file does not name has dropped none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropsByCause(pub Drops);

/// The prefix of all keys.
const PREFIX: &str = "drops_";

impl Serialize for DropsByCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.by_cause().map(|(cause, n)| (format!("{PREFIX}{}", cause.name()), n)))
    }
}

impl<'de> Deserialize<'de> for DropsByCause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

/// Reads the keys of causes and passes over all others.
struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = DropsByCause;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers of dropped packets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DropsByCause, A::Error> {
        let mut drops = Drops::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let name = key.strip_prefix(PREFIX);
            match DropCause::ALL.into_iter().find(|cause| name == Some(cause.name())) {
                Some(cause) => drops.add(cause, map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(DropsByCause(drops))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Around {
        before: u32,
        #[serde(flatten)]
        drops: DropsByCause,
        after: String,
    }

    #[test]
    fn each_cause_has_a_key_among_others() {
        let counts = DropCause::ALL.into_iter().zip(1..);
        let around = Around { before: 1, drops: DropsByCause(counts.collect()), after: "x".into() };
        let text = serde_json::to_string(&around).unwrap();
        assert!(text.starts_with(r#"{"before":1,"drops_egress_threshold":1,"#), "{text}");
        assert!(text.ends_with(r#""drops_faults":9,"drops_unreachable":10,"drops_host":11,"after":"x"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Around>(&text).unwrap(), around);
        let old: Around = serde_json::from_str(r#"{"before":1,"drops_early":7,"else":[1.5],"after":""}"#).unwrap();
        assert_eq!(old.drops.0, [(DropCause::Early, 7)].into_iter().collect());
    }
}
