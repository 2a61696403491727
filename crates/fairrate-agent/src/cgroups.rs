//! Control groups of version 2 as directories.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

/// Returns the path where the hierarchy is mounted, or `None` if it is not mounted.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn root() -> io::Result<Option<PathBuf>> {
    let mounts = procfs::process::Process::myself().and_then(|me| me.mountinfo()).map_err(io::Error::other)?;
    let mut groups: Vec<_> = mounts.into_iter().filter(|mount| mount.fs_type == "cgroup2").collect();
    // A mount of a part of it, as in containers, is used only if there is none of the whole.
    groups.sort_by_key(|mount| mount.root != "/");
    Ok(groups.into_iter().next().map(|mount| mount.mount_point))
}

/// Returns the number of the group at `path`, or `None` if there is no group.
///
/// The number is an inode, so a directory of another filesystem could have the same inode as another group: it does not
/// count.
pub fn number(path: &Path) -> Option<u64> {
    let kind = statfs(path).ok()?;
    (kind.filesystem_type() == CGROUP2_SUPER_MAGIC).then(|| std::fs::metadata(path).ok())?.map(|about| about.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_has_a_number() {
        assert_eq!(number(&std::env::temp_dir()), None);
        assert_eq!(number(Path::new("/no/such/group")), None);
        if let Some(root) = root().unwrap() {
            assert_eq!(number(&root), Some(std::fs::metadata(&root).unwrap().ino()));
        }
    }
}
