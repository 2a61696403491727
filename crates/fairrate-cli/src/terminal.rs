//! Texts for a terminal.

use std::borrow::Cow;

use fairrate_scenario::printable;

/// Replaces the control characters of a text; if it is `styled`, escape sequences of colours and weights stay.
pub fn harmless(text: &str, styled: bool) -> Cow<'_, str> {
    if !styled || !text.contains(ESCAPE) {
        return printable(text);
    }
    let mut harmless = String::with_capacity(text.len());
    let mut parts = text.split(ESCAPE);
    harmless.push_str(&printable(parts.next().unwrap_or_default()));
    for part in parts {
        match style_len(part) {
            Some(len) => harmless.extend([ESCAPE, &part[..len], &printable(&part[len..])]),
            None => harmless.extend(["?", &printable(part)]),
        }
    }
    Cow::Owned(harmless)
}

const ESCAPE: &str = "\u{1b}";

/// Returns the length of the text that, behind an escape character, sets a style, such as `[1m`; `None` for other
/// texts.
fn style_len(text: &str) -> Option<usize> {
    let codes = text.strip_prefix('[')?;
    let end = codes.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    codes[end..].starts_with('m').then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_stay_and_all_else_goes() {
        let text = "\u{1b}[1mbold\u{1b}[0m \u{1b}[2Jx\u{1b}]0;title\u{7}\u{1b}";
        assert_eq!(harmless(text, true), "\u{1b}[1mbold\u{1b}[0m ?[2Jx?]0;title??");
        assert_eq!(harmless(text, false), "?[1mbold?[0m ?[2Jx?]0;title??");
        assert_eq!(harmless("plain\n", true), "plain\n");
    }
}
