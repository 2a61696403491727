//! The file of a trace: its format, and the file beside it until it is whole.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use fairrate_text::one_of;
use fairrate_trace::{Format, Network, Output, Pcapng, Perfetto, Table};
use fairrate_units::Bytes;

use crate::failure::Failure;

/// The formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pcapng,
    Perfetto,
    Parquet,
}

/// The endings of names, each with its format.
const ENDINGS: [(&str, Kind); 3] =
    [(".pcapng", Kind::Pcapng), (".perfetto-trace", Kind::Perfetto), (".parquet", Kind::Parquet)];

impl Kind {
    /// Returns the format that the ending of `path` says.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.to_string_lossy();
        let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        found.map(|&(_, kind)| kind).ok_or_else(|| Failure::Usage {
            message: format!("`{name}` has no ending of a trace"),
            help: format!("end it in {}", one_of(&ENDINGS.map(|(ending, _)| ending))),
        })
    }

    /// Begins a file of this format.
    pub fn begin(self, network: Network, out: Output, about: &str) -> io::Result<Box<dyn Format>> {
        match self {
            Self::Pcapng => Ok(Box::new(Pcapng::new(network, out, about)?)),
            Self::Perfetto => Ok(Box::new(Perfetto::new(network, out))),
            Self::Parquet => Ok(Box::new(Table::new(network, out, about)?)),
        }
    }
}

/// A file beside the one that is to be written. It is removed if it is not kept.
pub struct Part {
    path: PathBuf,
    file: Option<File>,
}

impl Part {
    /// Creates the file beside `path`, where nothing may be yet.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        check_new(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = path.with_file_name(format!("{name}.new"));
        // A killed command may have left it.
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => Failure::Usage {
                message: format!("`{}` cannot be written: its directory does not exist", path.display()),
                help: "make the directory first".to_owned(),
            },
            _ => Failure::io("writing", path, error),
        };
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&part).map_err(failed)?;
        Ok(Self { path: part, file: Some(file) })
    }

    /// Returns an output into the file, of at most `limit` bytes.
    pub fn output(&self, limit: Option<Bytes>) -> io::Result<Output> {
        let file = self.file.as_ref().ok_or_else(|| io::Error::other("the file is closed"))?.try_clone()?;
        Ok(Output::new(Box::new(BufWriter::with_capacity(1 << 16, file)), limit.map_or(u64::MAX, Bytes::as_u64)))
    }

    /// Gives the file, which is whole, its name.
    pub fn keep(mut self, path: &Path) -> Result<(), Failure> {
        check_new(path)?;
        self.file = None;
        std::fs::rename(&self.path, path).map_err(|error| Failure::io("writing", path, error))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After `keep` there is none; an error leaves a file that the next command replaces.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Checks that there is nothing at `path` yet.
pub fn check_new(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::Usage {
        message: format!("`{}` exists", path.display()),
        help: "give another name, or remove it first".to_owned(),
    })
}
