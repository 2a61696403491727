//! Network namespaces, and an algorithm loaded into the kernel, that are removed however the program ends.
//!
//! All namespaces of a run have names that begin with its mark, `fr-` and the number of its process. A file of that
//! name below `/run/fairrate-testbed` is locked as long as the process lives, and contains the algorithms that the run
//! has loaded, one a line. Each new run removes the namespaces and algorithms of marks whose file is not locked. Only
//! root can open these files, since a user who can open a file can lock it.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};

use crate::failure::Failure;
use crate::{algorithm, tools};

/// Directory of the marks' files.
const MARKS: &str = "/run/fairrate-testbed";
/// Directory in which iproute2 keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// The mark of this process, and all namespaces that carry it.
#[derive(Debug)]
pub struct Namespaces {
    mark: String,
    lock: PathBuf,
    locked: File,
}

/// The remains of runs that were killed.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Number of namespaces that were removed.
    pub namespaces: usize,
    /// Algorithms that could not be removed from the kernel, with the reason.
    pub left: Vec<String>,
}

impl Namespaces {
    /// Takes the mark of this process, after removing the remains of dead runs.
    ///
    /// # Errors
    /// If files below `/run` cannot be written, or are not writable by root alone.
    pub fn claim() -> Result<(Self, Orphans), Failure> {
        let failed = |e| Failure::io("writing to", Path::new(MARKS), e);
        let marks = private(Path::new(MARKS))?;
        let removed = remove_orphans(marks)?;
        let mark = format!("fr-{}", std::process::id());
        let lock = marks.join(format!("{mark}.lock"));
        // The file gets its name only once it is locked, so that it is never taken for an orphan.
        let made = marks.join(format!("{mark}.new"));
        let locked = File::create(&made).map_err(failed)?;
        locked.lock().map_err(failed)?;
        fs::rename(&made, &lock).map_err(failed)?;
        Ok((Self { mark, lock, locked }, removed))
    }

    /// Returns the prefix of its namespaces' names.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Records that the run is about to load algorithms into the kernel; the text has one a line.
    ///
    /// # Errors
    /// If the file of the mark cannot be written.
    pub fn note(&self, algorithms: &str) -> Result<(), Failure> {
        let written = (&self.locked).write_all(algorithms.as_bytes());
        written.map_err(|e| Failure::io("writing to", &self.lock, e))
    }

    /// Makes namespaces with the given names.
    ///
    /// # Errors
    /// If they cannot be made, for instance without root.
    pub fn make(&self, names: impl Iterator<Item = String>) -> Result<(), Failure> {
        let lines: Vec<String> = names.map(|name| format!("netns add {name}")).collect();
        tools::batch("ip", &[], &lines.join("\n"))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // A failure cannot be reported here; the next run tries again as long as the file exists.
        if remove_marked(&self.mark, &self.lock).is_ok_and(|orphans| orphans.left.is_empty()) {
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// Makes a directory that only root can access, if it does not exist.
fn private(path: &Path) -> Result<&Path, Failure> {
    let failed = |e| Failure::io("making", path, e);
    DirBuilder::new().mode(0o700).recursive(true).create(path).map_err(failed)?;
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if !found.is_dir() || found.uid() != 0 || found.mode() & 0o022 != 0 {
        return Err(Failure::Machine {
            message: format!("`{}` is no directory that root alone can write to", path.display()),
            help: format!("see what it is with `ls -ld {}`, and remove it", path.display()),
        });
    }
    // An earlier version let others open the files in it, and so lock them.
    fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed)?;
    Ok(path)
}

/// Runs `work` in a namespace: in a thread of its own, so that no other thread is moved there.
///
/// # Errors
/// The errors of `work`, and an error if there is no such namespace.
pub fn inside<T: Send>(name: &str, work: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    let enter = || {
        let path = Path::new(NAMESPACES).join(name);
        let file = File::open(&path).map_err(|e| Failure::io("opening", &path, e))?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|e| Failure::io("entering", &path, e))?;
        work()
    };
    std::thread::scope(|scope| match scope.spawn(enter).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Removes the namespaces and algorithms with marks of dead processes.
fn remove_orphans(marks: &Path) -> Result<Orphans, Failure> {
    let failed = |e| Failure::io("reading", marks, e);
    let mut all = Orphans::default();
    for entry in fs::read_dir(marks).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some((mark, process, is_locked)) = mark_of(&path) else { continue };
        if !is_locked && !Path::new("/proc").join(process.to_string()).exists() {
            remove(&path).map_err(failed)?;
        }
        let Some(file) = File::open(&path).ok().filter(|_| is_locked) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        let orphans = remove_marked(mark, &path)?;
        if orphans.left.is_empty() {
            remove(&path).map_err(failed)?;
        }
        all.namespaces += orphans.namespaces;
        all.left.extend(orphans.left);
    }
    Ok(all)
}

/// Returns the mark of a file's name, its process, and `true` if the process has already locked the file under this
/// name.
fn mark_of(path: &Path) -> Option<(&str, u32, bool)> {
    let (mark, kind) = path.file_name()?.to_str()?.split_once('.')?;
    let process = mark.strip_prefix("fr-")?.parse().ok()?;
    ["lock", "new"].contains(&kind).then_some((mark, process, kind == "lock"))
}

/// Removes a file, which another process may have removed just before.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Removes the namespaces with a mark, and the algorithm in the mark's file from the kernel if it is not used
/// elsewhere.
fn remove_marked(mark: &str, file: &Path) -> Result<Orphans, Failure> {
    let start = format!("{mark}-");
    let names = match fs::read_dir(NAMESPACES) {
        Ok(entries) => entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(Failure::io("reading", Path::new(NAMESPACES), e)),
    };
    let marked: Vec<String> = names.into_iter().filter(|name| name.starts_with(&start)).collect();
    let brought = fs::read_to_string(file).unwrap_or_default();
    let taken = brought.lines().map(|algorithm| algorithm::take_back(algorithm, &marked));
    let left: Vec<String> = taken.filter_map(Result::err).map(|e| e.to_string()).collect();
    let lines: Vec<String> = marked.iter().map(|name| format!("netns del {name}")).collect();
    tools::batch("ip", &["-force"], &lines.join("\n"))?;
    Ok(Orphans { namespaces: marked.len(), left })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_number_stands_for_no_mark() {
        assert_eq!(mark_of(Path::new("/run/x/fr-12.lock")), Some(("fr-12", 12, true)));
        assert_eq!(mark_of(Path::new("/run/x/fr-12.new")), Some(("fr-12", 12, false)));
        for other in ["fr-12.other", "fr-.lock", ".lock", "fr-1-2.lock", "fr-12 x.lock"] {
            assert_eq!(mark_of(Path::new(other)), None, "{other}");
        }
    }
}
