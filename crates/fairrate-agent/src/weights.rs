//! What flows count for: the weights of their control groups.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::Weight;

/// Weights by control group, as the kernel numbers these.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    given: Vec<(PathBuf, f64)>,
    of: HashMap<u64, f64>,
}

impl Weights {
    /// Weights as configured. A group that begins to exist later counts from [`Self::look`] on.
    pub fn new(given: &[Weight]) -> Self {
        let mut weights =
            Self { given: given.iter().map(|of| (of.cgroup.clone(), of.weight)).collect(), of: HashMap::new() };
        weights.look();
        weights
    }

    /// Looks for the groups, and for those below them, anew.
    pub fn look(&mut self) {
        self.of.clear();
        // A group that is named itself has its own weight: deeper paths come later.
        self.given.sort_by_key(|(path, _)| path.components().count());
        for (path, weight) in &self.given {
            number_below(path, *weight, &mut self.of);
        }
    }

    /// Groups that do not exist, as far as this program sees.
    pub fn missing(&self) -> impl Iterator<Item = &Path> {
        self.given.iter().map(|(path, _)| path.as_path()).filter(|path| !path.is_dir())
    }

    /// The weight of a socket of this group.
    pub fn of(&self, cgroup: u64) -> f64 {
        self.of.get(&cgroup).copied().unwrap_or(1.0)
    }
}

/// A group's number is the inode of its directory.
fn number_below(path: &Path, weight: f64, of: &mut HashMap<u64, f64>) {
    let Ok(about) = std::fs::metadata(path) else { return };
    of.insert(about.ino(), weight);
    let children = std::fs::read_dir(path).into_iter().flatten().flatten();
    for child in children.filter(|child| child.file_type().is_ok_and(|kind| kind.is_dir())) {
        number_below(&child.path(), weight, of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_group_that_is_named_decides() {
        let root = std::env::temp_dir().join(format!("fairrate-weights-{}", std::process::id()));
        let (gold, inner, own) = (root.join("gold"), root.join("gold/a"), root.join("gold/b"));
        for dir in [&inner, &own] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let weight = |cgroup: &Path, weight| Weight { cgroup: cgroup.to_owned(), weight };
        let mut weights = Weights::new(&[weight(&own, 4.0), weight(&gold, 2.0), weight(&root.join("later"), 3.0)]);
        let number = |path: &Path| std::fs::metadata(path).unwrap().ino();
        assert_eq!([&gold, &inner, &own, &root].map(|path| weights.of(number(path))), [2.0, 2.0, 4.0, 1.0]);
        assert_eq!(weights.missing().collect::<Vec<_>>(), [root.join("later")]);
        std::fs::create_dir(root.join("later")).unwrap();
        weights.look();
        assert_eq!(weights.of(number(&root.join("later"))), 3.0);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
