//! Network namespaces that go away however the program ends.
//!
//! All namespaces of a run have names that begin with its mark, `fr-` and the number of its process. A file of that name below
//! `/run/fairrate-testbed` is locked as long as the process lives. Whoever starts removes what carries the mark of a file without a lock.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};

use crate::failure::Failure;
use crate::tools;

/// Where the files of marks lie.
const MARKS: &str = "/run/fairrate-testbed";
/// Where iproute2 keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// The mark of this process, and all namespaces that carry it.
#[derive(Debug)]
pub struct Namespaces {
    mark: String,
    lock: PathBuf,
    _locked: File,
}

impl Namespaces {
    /// Takes the mark of this process, after removing what dead ones have left; says how much that was.
    ///
    /// # Errors
    /// If files below `/run` cannot be written.
    pub fn claim() -> Result<(Self, usize), Failure> {
        let failed = |e| Failure::io("writing to", Path::new(MARKS), e);
        fs::create_dir_all(MARKS).map_err(failed)?;
        let removed = remove_orphans(Path::new(MARKS)).map_err(failed)?;
        let mark = format!("fr-{}", std::process::id());
        let lock = Path::new(MARKS).join(format!("{mark}.lock"));
        // It has its name only once it is locked: nobody takes it for an orphan.
        let made = Path::new(MARKS).join(format!("{mark}.new"));
        let file = File::create(&made).map_err(failed)?;
        file.lock().map_err(failed)?;
        fs::rename(&made, &lock).map_err(failed)?;
        Ok((Self { mark, lock, _locked: file }, removed))
    }

    /// What names of its namespaces begin with.
    pub fn mark(&self) -> &str {
        &self.mark
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
        if remove_marked(&self.mark).is_ok() {
            let _ = fs::remove_file(&self.lock);
        }
    }
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

/// Removes the namespaces of marks whose processes are dead.
fn remove_orphans(marks: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(marks)? {
        let path = entry?.path();
        let Some(mark) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".lock")) else { continue };
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            removed += remove_marked(mark)?;
            fs::remove_file(&path)?;
        }
    }
    Ok(removed)
}

/// Removes the namespaces with a mark; says how many.
fn remove_marked(mark: &str) -> io::Result<usize> {
    let start = format!("{mark}-");
    let entries = match fs::read_dir(NAMESPACES) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(e),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let marked: Vec<String> = names.filter(|name| name.starts_with(&start)).collect();
    let lines: Vec<String> = marked.iter().map(|name| format!("netns del {name}")).collect();
    tools::batch("ip", &["-force"], &lines.join("\n")).map_err(io::Error::other)?;
    Ok(marked.len())
}
