//! The files of HPCC's public ns-3 code, which PowerTCP's and others' grew from: `config.txt` with the settings of a run, the topology
//! and the list of flows that it names.

mod config;
mod export;
mod import;

pub use self::config::Config;
pub use self::export::{Exported, export};
pub use self::import::{Imported, import};

/// Numbers of algorithms in `CC_MODE`, with their names.
const MODES: [(u32, &str); 4] = [(1, "dcqcn"), (3, "hpcc"), (7, "timely"), (8, "dctcp")];

#[cfg(test)]
mod tests;
