//! A file that grows piece by piece and is whole under its name at every moment, even if a write is interrupted.
//!
//! There are two copies. A piece is appended to the copy that readers do not see, after the previous piece, which that
//! copy lacks. Then the two copies swap names. Nothing is ever written to the copy that readers see.

use std::fs::{self, File, OpenOptions};
use std::hash::Hasher as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use twox_hash::XxHash64;

/// A file that grows.
#[derive(Debug)]
pub(super) struct GrowingFile {
    /// The path that readers open.
    path: PathBuf,
    /// The copy that readers see.
    shown: File,
    /// The copy that is written to; `None` after an error or [`GrowingFile::close`].
    spare: Option<File>,
    /// The piece that the spare copy lacks.
    behind: Vec<u8>,
    /// `true` if the file system has hard links. Without them a swap costs a copy of the whole file.
    has_links: bool,
    len: u64,
    hash: XxHash64,
}

/// Extensions of the spare copy's name beside the file: the second one exists only within a swap.
const SPARE_NAMES: [&str; 2] = ["part", "old"];

impl GrowingFile {
    /// Creates the file with a first piece.
    pub fn create(path: &Path, piece: Vec<u8>) -> io::Result<Self> {
        Self::remove_spares(path)?;
        let made = Self::begin(path, piece);
        if made.is_err() {
            // An error of the removal is ignored: the first error is returned.
            let _ = Self::remove_spares(path);
        }
        made
    }

    fn begin(path: &Path, piece: Vec<u8>) -> io::Result<Self> {
        let [spare_path, _] = spare_paths(path);
        let mut shown = new_file(&spare_path)?;
        shown.write_all(&piece)?;
        fs::rename(&spare_path, path)?;
        let mut hash = XxHash64::with_seed(0);
        hash.write(&piece);
        let (path, spare) = (path.to_owned(), Some(new_file(&spare_path)?));
        Ok(Self { path, shown, spare, len: piece.len() as u64, behind: piece, has_links: true, hash })
    }

    /// Removes the files that a killed process may have left beside `path`.
    pub fn remove_spares(path: &Path) -> io::Result<()> {
        spare_paths(path).iter().try_for_each(|spare| crate::dir::remove_if_there(spare))
    }

    /// Appends a piece, in one step for all readers.
    pub fn append(&mut self, piece: Vec<u8>) -> io::Result<()> {
        let done = self.try_append(&piece);
        if done.is_err() {
            self.give_up();
            return done;
        }
        self.hash.write(&piece);
        self.len += piece.len() as u64;
        self.behind = piece;
        if !self.has_links {
            self.behind.clear();
        }
        done
    }

    fn try_append(&mut self, piece: &[u8]) -> io::Result<()> {
        let Some(mut spare) = self.spare.take() else {
            return Err(io::Error::other("an earlier write failed"));
        };
        spare.write_all(&self.behind)?;
        spare.write_all(piece)?;
        let [spare_path, kept_path] = spare_paths(&self.path);
        self.has_links = self.has_links && fs::hard_link(&self.path, &kept_path).is_ok();
        fs::rename(&spare_path, &self.path)?;
        let old = std::mem::replace(&mut self.shown, spare);
        self.spare = Some(if self.has_links {
            fs::rename(&kept_path, &spare_path)?;
            old
        } else {
            let mut copy = new_file(&spare_path)?;
            io::copy(&mut File::open(&self.path)?, &mut copy)?;
            copy
        });
        Ok(())
    }

    /// Returns `true` if a piece of this length is worth the cost of appending it.
    pub fn is_worth(&self, piece: usize) -> bool {
        self.has_links || self.len <= 4 * piece as u64
    }

    /// Removes the spare copy, which frees its space on the disk.
    pub fn give_up(&mut self) {
        self.spare = None;
        // A file that cannot be removed is overwritten by the next run.
        let _ = Self::remove_spares(&self.path);
    }

    /// Ends the file: removes the spare copy.
    pub fn close(&mut self) -> io::Result<()> {
        match self.spare.take() {
            Some(_) => Self::remove_spares(&self.path),
            None => Ok(()),
        }
    }

    /// Syncs the file to disk.
    pub fn sync(&self) -> io::Result<()> {
        self.shown.sync_all()
    }

    /// Returns the file's length and the XXH64 hash of its bytes.
    pub fn len_and_hash(&self) -> (u64, u64) {
        (self.len, self.hash.finish())
    }
}

fn spare_paths(path: &Path) -> [PathBuf; 2] {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    SPARE_NAMES.map(|end| path.with_file_name(format!("{name}.{end}")))
}

/// Creates a file; fails if the path exists, so no link of that name is followed.
fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("fairrate-growing-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        dir
    }

    fn grown(has_links: bool, name: &str) {
        let dir = fresh(name);
        let path = dir.join("x.parquet");
        let mut want = b"first".to_vec();
        let mut file = GrowingFile::create(&path, want.clone()).expect("it can be written");
        file.has_links = has_links;
        if !has_links {
            let [spare, _] = spare_paths(&path);
            fs::write(&spare, &want).expect("a copy");
            file.behind.clear();
        }
        for piece in ["", "second", "3", "fourth and more"] {
            file.append(piece.as_bytes().to_vec()).expect("it grows");
            want.extend(piece.as_bytes());
            assert_eq!(fs::read(&path).expect("it is there"), want);
            assert_eq!(file.len_and_hash(), (want.len() as u64, XxHash64::oneshot(0, &want)));
        }
        file.close().expect("it ends");
        assert_eq!(fs::read_dir(&dir).expect("the directory").count(), 1, "only the file is left");
        fs::remove_dir_all(&dir).expect("it goes");
    }

    #[test]
    fn all_pieces_are_there_after_each_one() {
        grown(true, "links");
        grown(false, "copies");
    }

    #[test]
    fn what_another_process_left_is_replaced_and_links_are_not_followed() {
        let dir = fresh("left");
        let path = dir.join("x.parquet");
        for name in ["x.parquet", "x.parquet.part", "x.parquet.old"] {
            fs::write(dir.join(name), "old").expect("a file");
        }
        #[cfg(unix)]
        {
            fs::write(dir.join("theirs"), "theirs").expect("a file");
            fs::remove_file(dir.join("x.parquet.part")).expect("it goes");
            std::os::unix::fs::symlink(dir.join("theirs"), dir.join("x.parquet.part")).expect("a link");
        }
        let mut file = GrowingFile::create(&path, b"new".to_vec()).expect("it can be written");
        file.close().expect("it ends");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        #[cfg(unix)]
        assert_eq!(fs::read(dir.join("theirs")).expect("it is there"), b"theirs");
        fs::remove_dir_all(&dir).expect("it goes");
    }

    #[test]
    fn a_failed_append_leaves_what_readers_see() {
        let dir = fresh("failed");
        let path = dir.join("x.parquet");
        let mut file = GrowingFile::create(&path, b"first".to_vec()).expect("it can be written");
        // A swap fails if another process removes the spare copy.
        fs::remove_file(dir.join("x.parquet.part")).expect("it goes");
        assert!(file.append(b"second".to_vec()).is_err() && file.append(b"third".to_vec()).is_err());
        assert_eq!(fs::read(&path).expect("it is there"), b"first");
        fs::remove_dir_all(&dir).expect("it goes");
    }
}
