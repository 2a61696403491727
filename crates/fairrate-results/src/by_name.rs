//! Counters in summaries: a key for each, as `ecn_marks`, and for drops `drops_CAUSE`. For fields with
//! `#[serde(flatten, with = "by_name")]`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use fairrate_sim::{AllocatorTotals, Counts, DropCause, Drops};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserializer, Serializer};

/// Counters that can be asked for by name.
pub(crate) trait Counters: Copy + Default {
    /// Returns each counter with its key.
    fn with_keys(&self) -> Vec<(String, u64)>;

    /// Returns a function that sets the counter of `key`; `None`: there is none.
    fn setter(key: &str) -> Option<impl FnOnce(&mut Self, u64)>;
}

impl Counters for Drops {
    fn with_keys(&self) -> Vec<(String, u64)> {
        self.by_cause().map(|(cause, n)| (format!("drops_{}", cause.name()), n)).collect()
    }

    fn setter(key: &str) -> Option<impl FnOnce(&mut Self, u64)> {
        let name = key.strip_prefix("drops_")?;
        let cause = DropCause::ALL.into_iter().find(|cause| name == cause.name())?;
        Some(move |drops: &mut Self, n| drops.add(cause, n))
    }
}

/// Implements [`Counters`] for types of counters that have their keys for names.
macro_rules! counters {
    ($($counts:ident)+) => {$(
        impl Counters for $counts {
            fn with_keys(&self) -> Vec<(String, u64)> {
                self.by_name().map(|(name, n)| (name.to_owned(), n)).to_vec()
            }

            fn setter(key: &str) -> Option<impl FnOnce(&mut Self, u64)> {
                let name = Self::NAMES.into_iter().find(|&name| name == key)?;
                Some(move |counts: &mut Self, n| counts.named(name).into_iter().for_each(|counter| *counter = n))
            }
        }
    )+};
}
counters! { Counts AllocatorTotals }

/// Writes each counter under its own key.
pub(crate) fn serialize<T: Counters, S: Serializer>(counters: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counters.with_keys())
}

/// Reads the counters that have a key; others are 0.
pub(crate) fn deserialize<'de, T: Counters, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(Keys(PhantomData))
}

/// Reads the keys of counters and passes over all others.
struct Keys<T>(PhantomData<T>);

impl<'de, T: Counters> Visitor<'de> for Keys<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut counters = T::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match T::setter(&key) {
                Some(set) => set(&mut counters, map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(counters)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Around {
        before: u32,
        #[serde(flatten, with = "crate::by_name")]
        drops: Drops,
        #[serde(flatten, with = "crate::by_name")]
        counts: Counts,
        after: String,
    }

    #[test]
    fn each_counter_has_a_key_among_others() {
        let drops = DropCause::ALL.into_iter().zip(1..).collect();
        let mut counts = Counts::default();
        (21..).zip(Counts::NAMES).for_each(|(n, name)| *counts.named(name).unwrap() = n);
        let around = Around { before: 1, drops, counts, after: "x".into() };
        let text = serde_json::to_string(&around).unwrap();
        assert!(text.starts_with(r#"{"before":1,"drops_egress_threshold":1,"#), "{text}");
        assert!(text.contains(r#""drops_unreachable":10,"drops_host":11,"duplicates":21,"trims":22,"#), "{text}");
        assert!(text.ends_with(r#""flow_resumes":30,"after":"x"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Around>(&text).unwrap(), around);
        let old: Around =
            serde_json::from_str(r#"{"before":1,"drops_early":7,"else":[1.5],"trims":4,"after":""}"#).unwrap();
        assert_eq!(old.drops, [(DropCause::Early, 7)].into_iter().collect());
        assert_eq!(old.counts, Counts { trims: 4, ..Counts::default() });
    }
}
