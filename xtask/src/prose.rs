//! `cargo xtask prose`: counts sentences of comments that begin in a way which CONTRIBUTING rules out, and comment
//! lines that are too long.

use std::path::{Path, PathBuf};

/// First words of a doc comment's line that hide its noun. See "Style" in CONTRIBUTING.
const HIDING: [&str; 12] =
    ["What", "Whether", "Which", "How many", "How much", "How", "Who", "Whose", "Of", "By what", "By which", "In what"];

/// First words that hide the noun of a later sentence of any comment.
const HIDING_LATER: [&str; 7] = ["What", "Whether", "Who", "Whose", "How many", "How much", "By what"];

/// The longest line of a comment, in characters: rustfmt's `max_width`, which it does not apply to comments.
const LONGEST: usize = 120;

/// Counts; `false` if a line hides a noun, or is longer than [`LONGEST`].
///
/// # Errors
/// If a source file cannot be read.
pub fn run(root: &Path) -> Result<bool, String> {
    let (mut hiding, mut long) = (Vec::new(), Vec::new());
    for file in sources(root)? {
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for (number, whole) in (1..).zip(text.lines()) {
            let line = whole.trim();
            if hides_noun(line) {
                hiding.push(format!("{shown}:{number}: {line}"));
            }
            if is_comment(line) && LONGEST < whole.chars().count() {
                long.push(format!("{shown}:{number}: longer than {LONGEST} characters"));
            }
        }
    }
    let is_good = hiding.is_empty() && long.is_empty();
    if !is_good {
        hiding.iter().chain(&long).for_each(|place| println!("{place}"));
    }
    println!("{} lines hide a noun; {} are too long", hiding.len(), long.len());
    Ok(is_good)
}

/// Returns `true` if `line` is a comment, other than a row of a table, which cannot be broken.
fn is_comment(line: &str) -> bool {
    line.strip_prefix("//").is_some_and(|text| !text.trim_start_matches(['/', '!', ' ']).starts_with('|'))
}

/// Returns `true` if `line` is of a doc comment and begins with one of [`HIDING`], or is of any comment and has a later
/// sentence that begins with one of [`HIDING_LATER`].
fn hides_noun(line: &str) -> bool {
    let begins = |text: &str, words: &[&str]| {
        words.iter().any(|word| text.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')))
    };
    let Some(text) = line.strip_prefix("//") else { return false };
    let doc = text.strip_prefix(['/', '!']).and_then(|text| text.strip_prefix(' '));
    doc.is_some_and(|text| begins(text, &HIDING)) || text.split(". ").skip(1).any(|text| begins(text, &HIDING_LATER))
}

/// Returns the Rust files of the workspace, without what is built.
fn sources(root: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut found, mut dirs) =
        (Vec::new(), vec![root.join("crates"), root.join("examples"), root.join("xtask"), root.join("fuzz")]);
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| format!("{}: {e}", dir.display()))?.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tables_may_be_long() {
        assert!(is_comment("// A sentence.") && is_comment("/// A sentence with a | bar.") && is_comment("//! - item"));
        assert!(!is_comment("//! | a | b |") && !is_comment("let a = 1; // set"));
    }

    #[test]
    fn only_sentences_that_begin_so_count() {
        assert!(hides_noun("/// Whether it is marked.") && hides_noun("//! What a run tells: samples"));
        assert!(
            hides_noun("/// Returns the rest. What is left is lost.") && hides_noun("// Sent. Who it is for is known.")
        );
        for line in [
            "/// Returns `true` if it is marked.",
            "/// Whatever",
            "// What is this",
            "let what = 1; /// What",
            "///What",
            "/// Returns the first. Of equal ones the last.",
        ] {
            assert!(!hides_noun(line), "{line}");
        }
    }
}
