//! Links of documentation in a release: they lead to where files of the repository are there, and what is not there is no link.

use std::path::{Component, Path, PathBuf};

/// Returns the page `text`, which lies in `from` of the repository and in `to` of a release, with links that hold there. `place`
/// returns the place in the release of a file or directory of the repository; `None`: it has none.
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
}
