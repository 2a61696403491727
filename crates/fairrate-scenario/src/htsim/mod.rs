//! Reader of htsim's files: connection matrices (`.cm`) and fat trees (`.topo`), as its programs take them.

mod matrix;
mod topology;
mod triggers;

use std::fmt::Write as _;

use fairrate_sim::FileError;

pub use self::matrix::{Matrix, MatrixFlow, StartUnit};
pub use self::topology::Tree;

/// Bytes from which on a flow of a list is endless.
const ENDLESS: u64 = 1_000_000_000_000;

/// A job of htsim as a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario, which names the list `flows.csv`.
    pub scenario: String,
    /// The list of flows.
    pub flows: String,
    /// Parts of the job that the scenario lacks, a sentence each.
    pub left_out: Vec<String>,
}

/// Returns the job `name` as a scenario: the flows of `matrix` on `tree`, or, without it, on the fat tree that htsim
/// takes for this number of hosts.
///
/// # Errors
/// If there is no such fat tree, or the number of hosts is not that of `tree`. The error is about the matrix.
pub fn import(name: &str, matrix: &Matrix, unit: StartUnit, tree: Option<&Tree>) -> Result<Imported, FileError> {
    let topology = match tree {
        Some(tree) if tree.hosts() == matrix.nodes => tree.to_toml(),
        Some(tree) => {
            let message = format!("the matrix has {} nodes, and the topology {}", matrix.nodes, tree.hosts());
            return Err(FileError::new(matrix.nodes_line, message));
        }
        None => default_tree(matrix)?,
    };
    let mut left_out = vec!["The transport and packet size of htsim's program: set `cc` and `mtu`.".to_owned()];
    left_out.extend(tree.into_iter().flat_map(Tree::left_out));
    left_out.extend(matrix.left_out());
    let end = if matrix.flows.iter().any(|flow| flow.bytes == 0) {
        left_out.push("The end of the run: flows without a size never end, so set `duration`.".to_owned());
        "duration = \"10ms\""
    } else {
        "stop = \"all-flows-done\""
    };
    let mut text = format!("# The job {name} of htsim. Not carried over:\n");
    for sentence in &left_out {
        let _ = writeln!(text, "# - {sentence}");
    }
    let _ = write!(
        text,
        "{end}\n\n{topology}\n[transport]\ncc = \"dctcp\"\n\n[[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n"
    );
    Ok(Imported { scenario: text, flows: matrix.to_csv(unit), left_out })
}

/// Returns the fat tree of k-port switches that htsim takes without a topology: 100 Gb/s, 1 µs a link.
fn default_tree(matrix: &Matrix) -> Result<String, FileError> {
    let hosts = |k: u32| k * k * k / 4;
    let k = (2..=128).step_by(2).find(|&k| matrix.nodes <= hosts(k)).unwrap_or(128);
    if matrix.nodes != hosts(k) {
        let message = format!("no fat tree has {} hosts", matrix.nodes);
        let help = format!(
            "give htsim's file with `--topology`; without it the number is k³/4 for an even k, as {} or {}",
            hosts(k.saturating_sub(2).max(2)),
            hosts(k)
        );
        return Err(FileError::new(matrix.nodes_line, message).help(help));
    }
    Ok(format!(
        "[topology]\nkind = \"fat-tree-k\"\nk = {k}\nhost_rate = \"100Gbps\"\nfabric_rate = \"100Gbps\"\ndelay = \"1us\"\n\
         core_delay = \"1us\"\n"
    ))
}

/// Returns the lines that hold something, with their numbers from 1, without comments.
fn held(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines()).map(|(at, line)| (at, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Reads the number after a word.
fn number<T: std::str::FromStr>(at: usize, name: &str, word: Option<&str>) -> Result<T, FileError> {
    let Some(word) = word else { return Err(FileError::new(at, format!("`{name}` needs a number"))) };
    word.parse().map_err(|_| FileError::new(at, format!("`{}` is no number for `{name}`", word.escape_debug())))
}

#[cfg(test)]
mod tests;
