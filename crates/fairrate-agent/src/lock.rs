//! A lock that allows one agent in a network namespace: two would count every flowlet twice.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, mkdir, unlinkat};

/// Directory of the locks. Only root may access it, so only root can hold one.
pub const DIRECTORY: &str = "/run/fairrate-agent";

/// The exclusive right to manage a network namespace, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    directory: File,
    name: String,
    _file: File,
}

/// The error when the lock cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent holds the lock.
    #[error("another agent{by} looks after this network namespace: end that one first")]
    Held {
        /// The other agent, as ` (process 7)`.
        by: String,
    },
    /// The directory is not accessible to root alone.
    #[error("`{}` may be used by others than root: remove it", .0.display())]
    Open(PathBuf),
    /// A file cannot be used.
    #[error("`{}`: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
}

impl Lock {
    /// Takes the lock of a network namespace, by its inode, in `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// If another process holds it, or others than this user may use `directory`.
    pub fn take(directory: &Path, netns: u32) -> Result<Self, LockError> {
        let name = format!("{netns}.lock");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |cause: io::Error| LockError::File { path, cause }
        };
        let opened = open_own(directory).map_err(failed(directory))?;
        let opened = opened.ok_or_else(|| LockError::Open(directory.to_owned()))?;
        let path = directory.join(&name);
        loop {
            let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let file = openat(&opened, name.as_str(), flags, Mode::from_bits_truncate(0o600));
            let mut file = File::from(file.map_err(|e| failed(&path)(e.into()))?);
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(LockError::Held { by: holder(&mut file) }),
                Err(TryLockError::Error(cause)) => return Err(failed(&path)(cause)),
            }
            // The former holder may have removed the file since it was opened here: then the next attempt opens another
            // file.
            if 0 < file.metadata().map_err(failed(&path))?.nlink() {
                let pid = std::process::id().to_string();
                file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).map_err(failed(&path))?;
                return Ok(Self { directory: opened, name, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is held until the file is closed, after this. A remaining file does no harm.
        let _ = unlinkat(&self.directory, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

/// Opens a directory; returns `None` if others than this user may use it.
fn open_own(path: &Path) -> io::Result<Option<File>> {
    match mkdir(path, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(e) => return Err(e.into()),
    }
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = open(path, flags, Mode::empty())?;
    let about = fstat(&directory)?;
    let open_to_others = Mode::S_IRWXG | Mode::S_IRWXO;
    let is_own = about.st_uid == nix::unistd::geteuid().as_raw()
        && !Mode::from_bits_truncate(about.st_mode).intersects(open_to_others);
    Ok(is_own.then(|| File::from(directory)))
}

/// Returns the holder of a lock in words, if its file names it.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(20).read_to_string(&mut text) {
        Ok(_) if text.parse::<u32>().is_ok() => format!(" (process {text})"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("fairrate-lock-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn there_is_one_for_each_namespace() {
        let dir = dir("one");
        let first = Lock::take(&dir, 7).unwrap();
        let second = Lock::take(&dir, 7).unwrap_err().to_string();
        assert!(second.contains(&format!("(process {})", std::process::id())), "{second}");
        let _other = Lock::take(&dir, 8).unwrap();
        drop(first);
        assert!(!dir.join("7.lock").exists());
        let _again = Lock::take(&dir, 7).unwrap();
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_others_may_use_or_have_put_there_is_refused() {
        let (dir, elsewhere) = (dir("open"), dir("elsewhere"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(Lock::take(&dir, 7), Err(LockError::Open(_))));
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
        symlink("/dev/null", dir.join("7.lock")).unwrap();
        assert!(matches!(Lock::take(&dir, 7), Err(LockError::File { .. })));
        symlink(&dir, &elsewhere).unwrap();
        assert!(matches!(Lock::take(&elsewhere, 8), Err(LockError::File { .. })));
        std::fs::remove_file(elsewhere).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
