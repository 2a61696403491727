//! Network namespaces, and an algorithm brought into the kernel, that go away however the program ends.
//!
//! All namespaces of a run have names that begin with its mark, `fr-` and the number of its process. A file of that name below
//! `/run/fairrate-testbed` is locked as long as the process lives, and names the algorithm that the run has brought. Whoever starts removes
//! what carries the mark of a file without a lock. Only root can open these files, as whoever can open one can lock it.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};

use crate::failure::Failure;
use crate::{algorithm, tools};

/// Where the files of marks lie.
const MARKS: &str = "/run/fairrate-testbed";
/// Where iproute2 keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// The mark of this process, and all namespaces that carry it.
#[derive(Debug)]
pub struct Namespaces {
    mark: String,
    lock: PathBuf,
    locked: File,
}

/// What runs that were killed had left.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Namespaces that were removed.
    pub namespaces: usize,
    /// Algorithms that could not be taken out of the kernel, with the reason.
    pub left: Vec<String>,
}

impl Namespaces {
    /// Takes the mark of this process, after removing what dead ones have left.
    ///
    /// # Errors
    /// If files below `/run` cannot be written, or are not root's alone.
    pub fn claim() -> Result<(Self, Orphans), Failure> {
        let failed = |e| Failure::io("writing to", Path::new(MARKS), e);
        let marks = private(Path::new(MARKS))?;
        let removed = remove_orphans(marks)?;
        let mark = format!("fr-{}", std::process::id());
        let lock = marks.join(format!("{mark}.lock"));
        // It has its name only once it is locked: nobody takes it for an orphan.
        let made = marks.join(format!("{mark}.new"));
        let locked = File::create(&made).map_err(failed)?;
        locked.lock().map_err(failed)?;
        fs::rename(&made, &lock).map_err(failed)?;
        Ok((Self { mark, lock, locked }, removed))
    }

    /// What names of its namespaces begin with.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Notes that the run is about to bring an algorithm into the kernel.
    ///
    /// # Errors
    /// If the file of the mark cannot be written.
    pub fn note(&self, algorithm: &str) -> Result<(), Failure> {
        let written = (&self.locked).write_all(algorithm.as_bytes());
        written.map_err(|e| Failure::io("writing to", &self.lock, e))
    }

    /// Makes namespaces of these names.
    ///
    /// # Errors
    /// If they cannot be made, as without root.
    pub fn make(&self, names: impl Iterator<Item = String>) -> Result<(), Failure> {
        let lines: Vec<String> = names.map(|name| format!("netns add {name}")).collect();
        tools::batch("ip", &[], &lines.join("\n"))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // There is nobody to tell; the next start tries again as long as the file is there.
        if remove_marked(&self.mark, &self.lock).is_ok_and(|orphans| orphans.left.is_empty()) {
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// Makes a directory that others than root cannot look into, if it is not there.
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

/// Does something in a namespace: in a thread of its own, so that no other one is moved there.
///
/// # Errors
/// Those of `work`, and if there is no such namespace.
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

/// Removes what carries the marks of dead processes.
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

/// Returns the mark that a file stands for, its process, and whether the process had already locked it under this name.
fn mark_of(path: &Path) -> Option<(&str, u32, bool)> {
    let (mark, kind) = path.file_name()?.to_str()?.split_once('.')?;
    let process = mark.strip_prefix("fr-")?.parse().ok()?;
    ["lock", "new"].contains(&kind).then_some((mark, process, kind == "lock"))
}

/// Another process may have removed it just now.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Removes the namespaces with a mark, and the algorithm that its file names from the kernel if nobody else has it.
fn remove_marked(mark: &str, file: &Path) -> Result<Orphans, Failure> {
    let start = format!("{mark}-");
    let names = match fs::read_dir(NAMESPACES) {
        Ok(entries) => entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(Failure::io("reading", Path::new(NAMESPACES), e)),
    };
    let marked: Vec<String> = names.into_iter().filter(|name| name.starts_with(&start)).collect();
    let brought = fs::read_to_string(file).unwrap_or_default();
    let taken = if brought.is_empty() { Ok(()) } else { algorithm::take_back(&brought, &marked) };
    let lines: Vec<String> = marked.iter().map(|name| format!("netns del {name}")).collect();
    tools::batch("ip", &["-force"], &lines.join("\n"))?;
    Ok(Orphans { namespaces: marked.len(), left: taken.err().map(|e| e.to_string()).into_iter().collect() })
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
