//! Further network namespaces of an agent, as files: containers come and go.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{NSFS_MAGIC, fstatfs, statfs};

use crate::lock::Lock;

/// A network namespace that is there, with the right to manage it.
#[derive(Debug)]
pub struct Namespace {
    path: PathBuf,
    /// Its inode, by which the kernel's program knows it.
    pub number: u32,
    _lock: Lock,
}

impl Namespace {
    /// Opens it, to enter it; returns `None` if it is gone. An open file keeps a namespace alive and its mount busy.
    pub fn open(&self) -> Option<File> {
        let file = File::open(&self.path).ok()?;
        let is_it = file.metadata().is_ok_and(|about| about.ino() as u32 == self.number);
        let is_namespace = fstatfs(&file).is_ok_and(|kind| kind.filesystem_type() == NSFS_MAGIC);
        (is_it && is_namespace).then_some(file)
    }
}

/// The namespaces of a configuration that are there.
#[derive(Debug, Default)]
pub struct Namespaces {
    paths: Vec<PathBuf>,
    there: Vec<Namespace>,
    /// Paths that cannot be used, which have been logged.
    refused: Vec<PathBuf>,
}

/// The namespaces that have gone and come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Inodes of those that are gone.
    pub gone: Vec<u32>,
    /// Inodes of the new ones.
    pub come: Vec<u32>,
}

impl Namespaces {
    /// Creates the set of namespaces at `paths`, of which [`Self::look`] has yet to find those that are there.
    pub fn new(paths: &[PathBuf]) -> Self {
        Self { paths: paths.to_owned(), ..Self::default() }
    }

    /// Looks for them again. Those of other agents, whose locks are in `directory`, are left alone, and so is `own`.
    pub fn look(&mut self, directory: &Path, own: u32) -> Changes {
        let mut changes = Changes::default();
        self.there.retain(|namespace| {
            let is_there = number(&namespace.path) == Some(namespace.number);
            if !is_there {
                changes.gone.push(namespace.number);
            }
            is_there
        });
        for path in &self.paths {
            let Some(number) = number(path) else {
                if !path.exists() {
                    self.refused.retain(|refused| refused != path);
                } else if !self.refused.contains(path) {
                    tracing::warn!(path = %path.display(), "a file named in `namespaces` is not a network namespace");
                    self.refused.push(path.clone());
                }
                continue;
            };
            if number == own || self.there.iter().any(|namespace| namespace.number == number) {
                continue;
            }
            match Lock::take(directory, number) {
                Ok(lock) => {
                    self.refused.retain(|refused| refused != path);
                    changes.come.push(number);
                    self.there.push(Namespace { path: path.clone(), number, _lock: lock });
                }
                Err(error) if !self.refused.contains(path) => {
                    tracing::warn!(path = %path.display(), %error, "a network namespace is left alone");
                    self.refused.push(path.clone());
                }
                Err(_) => {}
            }
        }
        changes
    }

    /// Returns those that are there.
    pub fn there(&self) -> &[Namespace] {
        &self.there
    }
}

/// Returns the inode of the namespace at `path`, or `None` if there is none. A file elsewhere could have the same
/// number.
fn number(path: &Path) -> Option<u32> {
    let kind = statfs(path).ok()?;
    let about = (kind.filesystem_type() == NSFS_MAGIC).then(|| std::fs::metadata(path).ok())??;
    Some(about.ino() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_namespace_counts_and_its_lock_is_kept() {
        let directory = std::env::temp_dir().join(format!("fairrate-namespaces-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let own = Path::new("/proc/self/ns/net");
        let paths = [own.to_owned(), "/proc/self/stat".into(), "/no/such/namespace".into()];
        let (mut namespaces, mut other) = (Namespaces::new(&paths), Namespaces::new(&paths));
        let number = number(own).expect("this process has one");
        assert_eq!(namespaces.look(&directory, number), Changes::default(), "it is the agent's own");
        let found = namespaces.look(&directory, 0);
        assert_eq!(found, Changes { gone: vec![], come: vec![number] });
        assert_eq!(namespaces.look(&directory, 0), Changes::default());
        assert_eq!(namespaces.refused, paths[1..2], "a file that is no namespace is logged");
        assert_eq!(other.look(&directory, 0), Changes::default(), "another agent has it");
        drop(namespaces);
        assert_eq!(other.look(&directory, 0).come, [number]);
        drop(other);
        std::fs::remove_dir_all(directory).expect("it is ours");
    }
}
