//! Links of documentation in a release: they lead to where files of the repository are there, and what is not there is
//! no link.

use std::path::{Component, Path, PathBuf};

use super::files;

/// Returns the page `text`, which lies in `from` of the repository and in `to` of a release, with links that hold
/// there. `place` returns the place in the release of a file or directory of the repository; `None`: it has none.
pub fn moved(text: &str, (from, to): (&Path, &Path), place: &dyn Fn(&Path) -> Option<PathBuf>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (before, after) = (&rest[..middle], &rest[middle + 2..]);
        let Some(end) = after.find([')', '\n']).filter(|&end| after.as_bytes()[end] == b')') else {
            out.push_str(&rest[..middle + 2]);
            rest = after;
            continue;
        };
        let (target, label) = (&after[..end], start_of_label(before));
        rest = &after[end + 1..];
        let Some(label) = label.filter(|_| is_local(target)) else {
            out.extend([before, "](", target, ")"]);
            continue;
        };
        let (path, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
        if let Some(there) = place(&plain(&from.join(path))) {
            out.extend([before, "](", &between(to, &there), anchor, ")"]);
        } else {
            out.extend([before[..label].trim_end_matches('!'), &before[label + 1..]]);
        }
    }
    out + rest
}

/// Returns all pages of Markdown below `dir`.
///
/// # Errors
/// If a directory cannot be read.
pub fn pages(dir: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(files::all_below(dir)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md")).collect())
}

/// Returns the number of links to files in all pages below `dir`, and those that lead nowhere, each with its page.
///
/// # Errors
/// If a page cannot be read.
pub fn dead(dir: &Path) -> Result<(usize, Vec<String>), String> {
    let (mut n, mut dead) = (0, Vec::new());
    for page in pages(dir)? {
        let text = files::read(&page)?;
        let here = page.parent().unwrap_or(dir);
        for target in targets(&text).filter(|target| is_local(target)) {
            n += 1;
            let path = target.split('#').next().unwrap_or_default();
            if !here.join(path).exists() {
                dead.push(format!("{}: {target}", page.strip_prefix(dir).unwrap_or(&page).display()));
            }
        }
    }
    Ok((n, dead))
}

/// Returns the targets of all links and pictures in `text`, but for blocks of code.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let prose = text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    prose.flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target)))
}

/// Returns the place of the bracket that opens the label at the end of `text`.
fn start_of_label(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.char_indices().rev().find_map(|(at, c)| match c {
        ']' => {
            depth += 1;
            None
        }
        '[' if depth == 0 => Some(at),
        '[' => {
            depth -= 1;
            None
        }
        _ => None,
    })
}

/// Returns `true` for a path of a file, and `false` for a place in the same page, or in the web.
fn is_local(target: &str) -> bool {
    !target.is_empty() && !target.starts_with('#') && !target.contains(':') && !target.contains(' ')
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the way from the directory `from` to `to`, both from the same root.
fn between(from: &Path, to: &Path) -> String {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..".to_owned());
    let down = to.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_files_are() {
        let place = |path: &Path| match path.to_str() {
            Some("docs/tutorial.md") => Some(PathBuf::from("share/doc/docs/tutorial.md")),
            Some("examples/a.toml") => Some(PathBuf::from("share/fairrate/examples/a.toml")),
            _ => None,
        };
        let there = |text: &str| moved(text, (Path::new("docs/papers"), Path::new("share/doc/docs/papers")), &place);
        assert_eq!(there("see [the tutorial](../tutorial.md#run)."), "see [the tutorial](../tutorial.md#run).");
        assert_eq!(there("[a](../../examples/a.toml)"), "[a](../../../fairrate/examples/a.toml)");
        // What is not there is no link, nor a picture.
        assert_eq!(there("[`x.rs`](../../crates/x.rs), ![a curve](no.svg)"), "`x.rs`, a curve");
        assert_eq!(there("[[routing]](../../no.md)"), "[routing]");
        // The web, places in the page, and what is no link stay.
        for text in ["[x](https://a.b/c)", "[x](#y)", "`f[0](1, 2)`", "a](b\nc)", "[x]()"] {
            assert_eq!(there(text), text);
        }
    }

    #[test]
    fn dead_links_are_found() {
        let dir = std::env::temp_dir().join(format!("fairrate-links-{}", std::process::id()));
        let text =
            "[a](docs/a.md#x) [b](no.md), ![c](no.svg)\n[d](https://a.b) [e](#f)\n```\n[g](no.txt)\n```\n[h](docs/)\n";
        files::write(&dir.join("page.md"), text.as_bytes()).expect("it can be written");
        files::write(&dir.join("docs/a.md"), b"[up](../page.md)").expect("it can be written");
        let found = dead(&dir);
        std::fs::remove_dir_all(&dir).expect("it can be removed");
        assert_eq!(found, Ok((5, vec!["page.md: no.md".to_owned(), "page.md: no.svg".to_owned()])));
    }
}
