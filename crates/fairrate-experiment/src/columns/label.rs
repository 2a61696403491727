//! Labels of variants as users write them, and the names of directories made from them.

use super::ColumnsError;

/// Largest number of characters of a variant's own label.
const LONGEST_LABEL: usize = 60;
/// Largest number of characters of a file's name; file systems allow some 255 bytes.
const LONGEST_NAME: usize = 120;
/// Names of a comparison's own files and directories.
pub(super) const TAKEN: [&str; 3] = ["compare.json", "report.html", "figures"];

/// Converts a label to the name of a file or directory: everything but letters, digits and `-_.=` becomes a dash, and
/// so does a dot at the beginning, as names that begin so are hidden, or are other directories.
pub fn file_name(label: &str) -> String {
    let name = label.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.=".contains(c)), "-");
    let name = name.strip_prefix('.').map_or(name.clone(), |rest| format!("-{rest}"));
    name.chars().take(LONGEST_NAME).collect()
}

/// Splits a label off `LABEL = NAME: KEY=VALUE`; returns `None` without one. A label in quotes has any characters that
/// print. Without quotes the label ends at the last equals sign with spaces around it that is before the changes; or if
/// there is none, at the first equals sign, unless a colon or a slash is before it, as in parameters and paths.
///
/// # Errors
/// If the label is empty or too long, has a character that does not print, or a quote without its end.
pub(super) fn split(text: &str) -> Result<(Option<&str>, &str), ColumnsError> {
    let text = text.trim();
    let wrong = |message: String| {
        let help = format!(
            "use up to {LONGEST_LABEL} characters, as in `lossy = swift: switch.pfc=false`; a label with a colon has quotes, as in \
             `\"lossy: swift\" = swift: switch.pfc=false`"
        );
        ColumnsError::Usage { message, help }
    };
    let (label, rest) = if let Some(quote) = text.chars().next().filter(|c| ['"', '\''].contains(c)) {
        let end = text[1..].split_once(quote);
        let (label, rest) =
            end.ok_or_else(|| wrong(format!("the label of `{}` has no second quote", text.escape_debug())))?;
        let rest = rest.trim_start().strip_prefix('=');
        let rest =
            rest.ok_or_else(|| wrong(format!("no `=` is between label and algorithm of `{}`", text.escape_debug())))?;
        (label, rest)
    } else {
        let before_changes = text.match_indices(": ").next().map_or(text, |(at, _)| &text[..at]);
        let spaced = before_changes.rfind(" = ").map(|at| (&text[..at], &text[at + 3..]));
        let plain = || text.split_once('=').filter(|(label, _)| !label.contains([':', '/']));
        match spaced.or_else(plain) {
            Some(both) => both,
            None => return Ok((None, text)),
        }
    };
    let label = label.trim();
    if label.is_empty() {
        return Err(wrong(format!("`{}` has an empty label", text.escape_debug())));
    }
    if let Some(c) = label.chars().find(|c| !prints(*c)) {
        let message = format!(
            "the label `{}` has the character U+{:04X}, which does not print",
            label.escape_debug(),
            u32::from(c)
        );
        return Err(wrong(message));
    }
    let n = label.chars().count();
    if LONGEST_LABEL < n {
        return Err(wrong(format!("the label `{label}` has {n} characters")));
    }
    Ok((Some(label), rest))
}

/// Returns `true` if a character has a place of its own in a line of text: it does not control, and neither joins nor
/// turns others.
fn prints(c: char) -> bool {
    let joins_or_turns = matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !c.is_control() && !joins_or_turns
}

/// Returns words for the help of an error about the algorithm of `text`, if the algorithm looks like the end of a
/// label.
pub(super) fn hint(text: &str, label: Option<&str>) -> Option<String> {
    let (head, rest) = text.split_once(": ")?;
    if label.is_none() && rest.split(['"', '\'']).next().is_some_and(|plain| plain.contains(" = ")) {
        return Some(format!("if `{}` is the beginning of a label, write the whole label in quotes", head.trim()));
    }
    let is_cut =
        label.is_some() && !text.contains(" = ") && 1 < head.split(':').next().unwrap_or_default().matches('=').count();
    is_cut.then(|| {
        "a label with an equals sign in it has spaces around the one behind it, as in `x=1 = swift: ...`".to_owned()
    })
}
