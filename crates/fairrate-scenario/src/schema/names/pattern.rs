//! Patterns that stand for several names of nodes: `*` for any characters, and `h0-h7` for the names from `h0` to `h7`.

/// Returns `true` if `text` may stand for several names.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains('*') || range(text).is_some()
}

/// Returns `true` if `name` is `pattern`, or one of the names that it stands for.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let in_range = || range(pattern).is_some_and(|range| range.contains(name));
    matches_stars(pattern, name) || in_range()
}

/// Names that differ in the number at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range<'a> {
    /// The first name.
    pub first: &'a str,
    /// The last name.
    pub last: &'a str,
}

impl Range<'_> {
    fn contains(&self, name: &str) -> bool {
        let ends = [self.first, self.last, name].map(numbered);
        let [Some((letters, first)), Some((_, last)), Some((own, n))] = ends else { return false };
        letters == own && first <= n && n <= last
    }
}

/// Returns the range that `text` is, as `h0-h7`: the letters of both names are the same, and their numbers ascend.
pub(super) fn range(text: &str) -> Option<Range<'_>> {
    let is_range = |(first, last): &(&str, &str)| match (numbered(first), numbered(last)) {
        (Some((a, from)), Some((b, to))) => a == b && from < to,
        _ => false,
    };
    let halves = text.match_indices('-').map(|(at, _)| (&text[..at], &text[at + 1..]));
    halves.into_iter().find(is_range).map(|(first, last)| Range { first, last })
}

/// Splits a name into letters and the number at its end. A number with zeros before it would be another name of the
/// same node.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[letters.len()..];
    let is_plain = digits == "0" || !digits.starts_with('0');
    (!letters.is_empty() && !letters.contains('*') && is_plain).then(|| digits.parse().ok().map(|n| (letters, n)))?
}

/// Returns `true` if `name` matches `pattern`, in which `*` stands for any characters, or none.
fn matches_stars(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    // A part between two stars is matched where it first occurs.
    for part in middle.split('*') {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::{is_pattern, matches};

    #[test]
    fn stars_stand_for_any_characters() {
        let yes =
            [("h0", "h0"), ("h*", "h0"), ("h*", "h"), ("*", "tor1"), ("*1*", "tor10"), ("t*r*0", "tor10"), ("**", "x")];
        assert!(yes.iter().all(|(pattern, name)| matches(pattern, name)));
        let no = [("h", "h0"), ("h*", "tor0"), ("*0", "tor1"), ("t*r*2", "tor10"), ("", "h0")];
        assert!(!no.iter().any(|(pattern, name)| matches(pattern, name)));
    }

    #[test]
    fn ranges_have_both_ends() {
        let yes =
            [("h0-h7", "h0"), ("h0-h7", "h7"), ("h8-h12", "h10"), ("rack-a1-rack-a3", "rack-a2"), ("h0-h7", "h0-h7")];
        assert!(yes.iter().all(|(pattern, name)| is_pattern(pattern) && matches(pattern, name)));
        let no = [
            ("h0-h7", "h8"),
            ("h0-h7", "tor1"),
            ("h0-h7", "h"),
            ("h0-h7", "h07"),
            ("h7-h0", "h3"),
            ("h0-tor7", "h3"),
            ("0-7", "3"),
        ];
        assert!(!no.iter().any(|(pattern, name)| matches(pattern, name)));
        assert!(["h0", "h7-h0", "h0-tor7", "a-b", "h0-h*0"].iter().all(|text| !is_pattern(text) || text.contains('*')));
    }
}
