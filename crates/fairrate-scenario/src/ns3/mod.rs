//! The files of HPCC's public ns-3 code, which PowerTCP's and others' grew from: `config.txt` with the settings of a
//! run, the topology and the list of flows that it names.

mod config;
mod export;
mod import;

pub use self::config::Config;
pub use self::export::{Exported, export};
pub use self::import::{Imported, import};

/// Numbers of algorithms in `CC_MODE`, with their names.
const MODES: [(u32, &str); 4] = [(1, "dcqcn"), (3, "hpcc"), (7, "timely"), (8, "dctcp")];

/// Returns the part of a topology or of a list of flows that the ns-3 code reads: as many lines of links or flows as
/// its first line announces in its last number, after `head` lines. Returns the number of further lines too; the whole
/// text if the first line says nothing of the kind.
pub fn announced(text: &str, head: usize) -> (String, usize) {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.first().and_then(|line| line.split_whitespace().last());
    let n = first.and_then(|word| word.parse::<usize>().ok()).map(|n| n.saturating_add(head));
    match n {
        Some(n) if n < lines.len() => (lines[..n].join("\n") + "\n", lines.len() - n),
        _ => (text.to_owned(), 0),
    }
}

#[cfg(test)]
mod tests;
