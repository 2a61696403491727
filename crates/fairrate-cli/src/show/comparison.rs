//! The runs of a comparison, for `fairrate show` on its directory.

use std::path::Path;

use fairrate_report::index::Index;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// A run of the comparison.
#[derive(Serialize)]
struct ShownRun {
    label: String,
    seed: u64,
    state: String,
    /// Its directory.
    dir: String,
}

#[derive(Serialize)]
struct ShownRuns {
    scenario: String,
    runs: Vec<ShownRun>,
}

/// Prints the runs of the comparison in `dir`, with the command that shows one of them.
pub fn list(dir: &Path, json: bool) -> Result<(), Failure> {
    let index = Index::read(dir)?;
    index.runs.iter().filter(|run| run.state == "complete").try_for_each(|run| run.check(dir))?;
    let scenario = index.scenario().to_owned();
    let shown = |run: fairrate_report::index::RunEntry| ShownRun {
        label: run.label,
        seed: run.seed,
        state: run.state,
        dir: dir.join(run.dir).display().to_string(),
    };
    let shown = ShownRuns { scenario, runs: index.runs.into_iter().map(shown).collect() };
    if json { output::print_json(&shown) } else { output::print_text(&shown.to_text()) }
}

impl ShownRuns {
    fn to_text(&self) -> String {
        let head = ["run", "seed", "state", "directory"].map(str::to_owned);
        let row = |run: &ShownRun| [run.label.clone(), run.seed.to_string(), run.state.clone(), run.dir.clone()];
        let lines: Vec<[String; 4]> = std::iter::once(head).chain(self.runs.iter().map(row)).collect();
        let plural = if self.runs.len() == 1 { "" } else { "s" };
        let table = fairrate_text::aligned(&lines, 4);
        // A run that is complete has the most to show.
        let one = self.runs.iter().find(|run| run.state == "complete").or(self.runs.first());
        let command =
            one.map_or_else(String::new, |run| format!("\nshow one with `fairrate show {}`\n", quoted(&run.dir)));
        format!("{}: a comparison of {} run{plural}\n\n{table}{command}", self.scenario, self.runs.len())
    }
}

/// Returns a path as a shell reads it, in quotes if it has more than plain characters.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-=+,:@%".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}
