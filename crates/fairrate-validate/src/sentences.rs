//! A page for each paper in `docs/papers`: ten sentences of it, with the claims that measure them.
//!
//! The files of `crates/fairrate-papers/sentences` have the sentences, and name claims. Numbers and verdicts come from
//! the committed measurements, so no page has a number of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairrate_papers::Claim;
use serde::Deserialize;

const SENTENCES: &str = "crates/fairrate-papers/sentences";
const PAGES: &str = "docs/papers";

/// The sentences of a paper.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    summary: String,
    sentence: Vec<Sentence>,
}

/// A sentence of a paper.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    text: String,
    /// The sections that have it.
    place: String,
    /// Claims that measure it, as `figure#claim`, the best first.
    claims: Vec<String>,
    /// The reading or parameter that the result depends on.
    depends: Option<String>,
}

/// Returns the pages of the papers `names`, each with its title, as pairs of path relative to the root and text.
/// `claims` has all claims by figure.
///
/// # Errors
/// If a file of sentences cannot be read, or names a claim that does not exist.
pub fn pages(
    root: &Path,
    names: &[(&str, &str)],
    claims: &BTreeMap<&str, Vec<Claim>>,
) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut pages = BTreeMap::new();
    for &(name, title) in names {
        let file = root.join(SENTENCES).join(name).with_extension("toml");
        if !file.exists() {
            continue;
        }
        let failed = |cause: String| format!("`{}`: {cause}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|e| failed(e.to_string()))?;
        let paper: Paper = toml::from_str(&text).map_err(|e| failed(e.to_string()))?;
        let text = page(&paper, title, claims).map_err(failed)?;
        pages.insert(Path::new(PAGES).join(name).with_extension("md"), text);
    }
    Ok(pages)
}

fn page(paper: &Paper, title: &str, claims: &BTreeMap<&str, Vec<Claim>>) -> Result<String, String> {
    let n = paper.sentence.len();
    let mut out = format!("# {title}: {n} sentences\n\n{}\n\n", paper.summary);
    out += "Below each sentence stand the claims that measure it, the nearest to the paper's text first: the paper's number, ours \
            with its 95 % interval over five seeds, and the [verdict](../figures.md). `cargo xtask figures` writes this page.\n";
    let mut figures = BTreeSet::new();
    for (i, sentence) in (1..).zip(&paper.sentence) {
        let _ = write!(out, "\n## {i}. {}\n\n*{}.*", sentence.text, sentence.place);
        if let Some(depends) = &sentence.depends {
            let _ = write!(out, " {depends}");
        }
        out.push('\n');
        if sentence.claims.is_empty() {
            continue;
        }
        out += "\n| measured as | paper | here | verdict |\n|---|---|---|---|\n";
        for id in &sentence.claims {
            let (figure, claim) = find(id, claims)?;
            figures.insert(figure.to_owned());
            let cells = [claim.sentence.clone(), claim.paper(), claim.text(), format!("**{}**", claim.verdict())];
            let [text, theirs, ours, verdict] = cells.map(|cell| cell.replace('|', "\\|"));
            let _ =
                writeln!(out, "| [{figure}](../figures/{figure}/claims.md): {text} | {theirs} | {ours} | {verdict} |");
        }
    }
    out += "\n## Pictures\n";
    for figure in figures {
        let _ = write!(out, "\n### {figure}\n\n![{figure}](../figures/{figure}/figure.svg)\n");
    }
    Ok(out)
}

/// Returns the claim `id`, with its figure.
fn find<'a>(id: &'a str, claims: &'a BTreeMap<&str, Vec<Claim>>) -> Result<(&'a str, &'a Claim), String> {
    let (figure, name) = id.split_once('#').ok_or_else(|| format!("`{id}` is no `figure#claim`"))?;
    let of_figure = claims.get(figure).ok_or_else(|| format!("`{id}`: there is no figure `{figure}`"))?;
    let claim = of_figure.iter().find(|claim| claim.id == name);
    claim.map(|claim| (figure, claim)).ok_or_else(|| format!("`{figure}` has no claim `{name}`"))
}

#[cfg(test)]
mod tests {
    use fairrate_papers::Rule;

    use super::*;

    #[test]
    fn a_sentence_has_the_numbers_of_its_claims() {
        let claim = Claim::exact("c", "a | b", Rule::AtMost(2.0), "ms", Some(1.0));
        let claims = BTreeMap::from([("rocc/fig8", vec![claim])]);
        let of = |id: &str| Paper {
            summary: "All of it.".to_owned(),
            sentence: vec![Sentence {
                text: "It is quick".to_owned(),
                place: "abstract".to_owned(),
                claims: vec![id.to_owned()],
                depends: None,
            }],
        };
        let text = page(&of("rocc/fig8#c"), "RoCC", &claims).unwrap();
        let row =
            "| [rocc/fig8](../figures/rocc/fig8/claims.md): a \\| b | at most 2.00 ms | 1.00 ms | **reproduced** |";
        assert!(text.contains(row) && text.contains("## 1. It is quick\n\n*abstract.*\n"), "{text}");
        for wrong in ["rocc/fig8", "rocc/fig9#c", "rocc/fig8#d"] {
            assert!(page(&of(wrong), "RoCC", &claims).is_err(), "{wrong}");
        }
    }
}
