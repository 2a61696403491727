//! Text for people: the known name that an unknown one was meant to be, lists as prose, columns, and text in markup.

/// Returns the name among `known` that `word` was probably meant to be; `None` if none is near.
///
/// Case does not count, and `_` is `-`. A name one edit away comes first. A name that has `word` as one of its parts
/// comes before names that are spelled alike, and those before names that contain `word` or are contained in it. Names
/// are spelled alike if a third of the word's characters (two at least) are edits enough to get from one to the other;
/// swapping two neighbours is one edit.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let wanted = plain(word);
    let names: Vec<(&str, String)> = known.into_iter().map(|name| (name, plain(name))).collect();
    let edits = |plain: &str| strsim::damerau_levenshtein(&wanted, plain);
    let has_part = |plain: &str| 1 < wanted.len() && plain.split('-').any(|part| part == wanted);
    let (best, spelling) = names.iter().min_by_key(|(_, plain)| edits(plain))?;
    let is_slip = 3 <= wanted.len() && edits(spelling) <= 1;
    let with_part = names.iter().filter(|(_, plain)| has_part(plain)).min_by_key(|(_, plain)| edits(plain));
    if let Some((name, _)) = with_part.filter(|_| !is_slip) {
        return Some(name);
    }
    let n_chars = wanted.chars().count();
    if edits(spelling) <= (n_chars / 3).max(2) && edits(spelling) < n_chars {
        return Some(best);
    }
    let contains = |plain: &str| 3 <= wanted.len() && (plain.contains(&wanted) || wanted.contains(plain));
    names.iter().filter(|(_, plain)| contains(plain)).map(|(name, _)| *name).max_by_key(|name| name.len())
}

/// Returns the question for the name among `known` that `word` was probably meant to be; `None` if none is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean `{near}`?"))
}

/// Returns `words` as prose, each in backticks: `a`, `b` or `c`.
pub fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [init @ .., last] => format!("{} or {last}", init.join(", ")),
    }
}

/// Returns the first lines in which `there` and `wanted` differ, for a message; `None` if the texts are equal.
pub fn first_difference(there: &str, wanted: &str) -> Option<String> {
    if there == wanted {
        return None;
    }
    let [mut have, mut want] = [there, wanted].map(|text| text.split('\n'));
    let differ = |(_, have, want): &(usize, Option<&str>, Option<&str>)| have != want;
    let pairs = (1..).map(|line| (line, have.next(), want.next()));
    let (line, have, want) = pairs.into_iter().find(differ)?;
    let shown = |text: Option<&str>| text.map_or("the end".to_owned(), |text| format!("{text:?}"));
    Some(format!("line {line} is {}, and should be {}", shown(have), shown(want)))
}

/// Returns lines of fields as columns with two spaces between them. The first `n_left` columns are aligned to the left,
/// the others to the right. Widths are in characters.
pub fn aligned<R: AsRef<[String]>>(lines: &[R], n_left: usize) -> String {
    let mut widths = Vec::new();
    for (i, field) in lines.iter().flat_map(|line| line.as_ref().iter().enumerate()) {
        widths.resize(widths.len().max(i + 1), 0);
        widths[i] = field.chars().count().max(widths[i]);
    }
    let mut text = String::new();
    for line in lines {
        let fields = line.as_ref().iter().zip(&widths).enumerate();
        let padded = fields.map(
            |(i, (field, width))| {
                if i < n_left { format!("{field:<width$}") } else { format!("{field:>width$}") }
            },
        );
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Returns `records`, the columns' names first, as CSV. A field is in quotes if it has a separator, a quote or a line
/// break. If a record begins with `#`, which readers take for a comment, all fields with that sign are in quotes.
pub fn csv<R: IntoIterator<Item = F>, F: AsRef<[u8]>>(records: impl IntoIterator<Item = R>) -> String {
    let records: Vec<Vec<F>> = records.into_iter().map(|record| record.into_iter().collect()).collect();
    let is_comment = |record: &Vec<F>| record.first().is_some_and(|field| field.as_ref().starts_with(b"#"));
    let comment = records.iter().any(is_comment).then_some(b'#');
    let mut writer = csv::WriterBuilder::new().comment(comment).from_writer(Vec::new());
    for record in records {
        writer.write_record(record).expect("memory takes records of one length");
    }
    String::from_utf8(writer.into_inner().expect("memory takes it")).expect("fields are texts")
}

/// Returns `text` as the content of an element, or an attribute in double quotes, of HTML or SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_that_of_lines() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let of = |there, wanted| first_difference(there, wanted).unwrap();
        assert_eq!(of("a\nb\nc\n", "a\nB\nd\n"), "line 2 is \"b\", and should be \"B\"");
        assert_eq!(of("a\n", "a\nb\n"), "line 2 is \"\", and should be \"b\"");
        assert_eq!(of("a\nb", "a"), "line 2 is \"b\", and should be the end");
    }

    #[test]
    fn fields_are_quoted_where_readers_would_split_them() {
        let records = [["name", "rate"], ["a,b", "1.5"], ["#1", "say \"x\""], ["", "two\nlines"]];
        assert_eq!(csv([["h0#2", "1"]]), "h0#2,1\n");
        assert_eq!(csv(records), "name,rate\n\"a,b\",1.5\n\"#1\",\"say \"\"x\"\"\"\n,\"two\nlines\"\n");
    }

    #[test]
    fn markup_is_no_markup_once_escaped() {
        assert_eq!(escape("<a href=\"x\">&lt;"), "&lt;a href=&quot;x&quot;&gt;&amp;lt;");
    }

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        for (word, known, expected) in [
            ("spine1-lef2", &["spine1-leaf2", "spine1-leaf3"][..], Some("spine1-leaf2")),
            ("zzz", &["spine1-leaf2"], None),
            ("start", &["sport", "start_ns"], Some("start_ns")),
            ("size", &["src", "size_bytes"], Some("size_bytes")),
            ("sports", &["sport", "start_ns"], Some("sport")),
            ("strat", &["sport", "start"], Some("start")),
            ("HPCC", &["dctcp", "hpcc"], Some("hpcc")),
            ("data_rate_of_links", &["rate", "rto"], Some("rate")),
            ("powertcp2000", &["powertcp", "perc"], Some("powertcp")),
            ("x", &["y"], None),
            ("anything", &[], None),
        ] {
            assert_eq!(nearest(word, known.iter().copied()), expected, "{word}");
        }
    }

    #[test]
    fn a_name_that_is_near_is_asked_for() {
        assert_eq!(did_you_mean("HPCC", ["dctcp", "hpcc"]).as_deref(), Some("did you mean `hpcc`?"));
        assert_eq!(did_you_mean("x", ["y"]), None);
    }

    #[test]
    fn lists_are_prose() {
        assert_eq!(one_of(&[]), "nothing");
        assert_eq!(one_of(&["a"]), "`a`");
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_field_and_lines_have_no_space_at_the_end() {
        let lines = [["queue", "size"], ["θ", "7"], ["drr", "1,000"]].map(|line| line.map(str::to_owned));
        assert_eq!(aligned(&lines, 1), "queue   size\nθ          7\ndrr    1,000\n");
        assert_eq!(aligned(&lines, 2), "queue  size\nθ      7\ndrr    1,000\n");
        assert_eq!(aligned::<[String; 0]>(&[], 1), "");
    }
}
