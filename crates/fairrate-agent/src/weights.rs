//! Weights of flows, given by their control groups.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::config::Weight;

/// The weights by control group, in the kernel's numbering. The kernel finds the named group that is nearest to a
/// socket, so the groups below a named one, which may be many and belong to any user, are not looked at here.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    given: Vec<(PathBuf, f64)>,
    of: HashMap<u64, f64>,
}

/// The named groups that were removed and added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Numbers of the groups that no longer exist.
    pub gone: Vec<u64>,
    /// Numbers of the new groups.
    pub come: Vec<u64>,
}

impl Weights {
    /// Creates weights as configured, of groups that [`Self::look`] has yet to find.
    pub fn new(given: &[Weight]) -> Self {
        let given = given.iter().map(|of| (of.cgroup.clone(), of.weight)).collect();
        Self { given, of: HashMap::new() }
    }

    /// Looks for the groups again; `number` returns the number of the group at a path.
    pub fn look(&mut self, number: impl Fn(&Path) -> Option<u64>) -> Changes {
        let numbered = |(path, weight): &(PathBuf, f64)| Some((number(path)?, *weight));
        let before = std::mem::take(&mut self.of);
        self.of = self.given.iter().filter_map(numbered).collect();
        let missing = |of: &HashMap<u64, f64>, other: &HashMap<u64, f64>| {
            let mut numbers: Vec<u64> = of.keys().filter(|number| !other.contains_key(number)).copied().collect();
            numbers.sort_unstable();
            numbers
        };
        Changes { gone: missing(&before, &self.of), come: missing(&self.of, &before) }
    }

    /// Returns the paths of control groups that do not exist.
    pub fn missing(&self, number: impl Fn(&Path) -> Option<u64>) -> impl Iterator<Item = &Path> {
        self.given.iter().map(|(path, _)| path.as_path()).filter(move |path| number(path).is_none())
    }

    /// Returns the weight of a socket whose nearest named group is `group`; 0 stands for none.
    pub fn of(&self, group: u64) -> f64 {
        self.of.get(&group).copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_and_go() {
        let weight = |cgroup: &str, weight| Weight { cgroup: cgroup.into(), weight };
        let mut weights = Weights::new(&[weight("/gold", 2.0), weight("/later", 3.0)]);
        let before = |path: &Path| (path == Path::new("/gold")).then_some(7);
        assert_eq!(weights.look(before), Changes { gone: vec![], come: vec![7] });
        assert_eq!(weights.missing(before).collect::<Vec<_>>(), [Path::new("/later")]);
        assert_eq!([7, 8, 0].map(|group| weights.of(group)), [2.0, 1.0, 1.0]);
        let after = |path: &Path| (path == Path::new("/later")).then_some(8);
        assert_eq!(weights.look(after), Changes { gone: vec![7], come: vec![8] });
        assert_eq!([7, 8, 0].map(|group| weights.of(group)), [1.0, 3.0, 1.0]);
        assert_eq!(weights.look(after), Changes::default());
    }
}
