//! Reduction of a scenario to the smallest one that still fails.

use super::case::Case;

/// Removes sections from a failing case, then keys, then lines of its files, as long as `fails` returns `true`. Returns
/// the smallest case.
pub fn shrink(case: &Case, fails: impl Fn(&Case) -> bool) -> Case {
    let mut least = case.clone();
    loop {
        let before = least.toml.len() + least.files.iter().map(|f| f.1.len()).sum::<usize>();
        least.toml = without(sections(&least.toml), |toml| fails(&Case { toml: toml.to_owned(), ..least.clone() }));
        least.toml = without(lines(&least.toml), |toml| fails(&Case { toml: toml.to_owned(), ..least.clone() }));
        for i in 0..least.files.len() {
            let with = |text: &str| {
                let mut other = least.clone();
                text.clone_into(&mut other.files[i].1);
                other
            };
            least.files[i].1 = without(lines(&least.files[i].1), |text| fails(&with(text)));
        }
        if least.toml.len() + least.files.iter().map(|f| f.1.len()).sum::<usize>() == before {
            return least;
        }
    }
}

/// Returns the parts that cannot be removed, tried one after the other from the last.
fn without(mut parts: Vec<String>, fails: impl Fn(&str) -> bool) -> String {
    for i in (0..parts.len()).rev() {
        let part = parts.remove(i);
        if !fails(&parts.concat()) {
            parts.insert(i, part);
        }
    }
    parts.concat()
}

fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Splits a document at its headers, each with its keys.
fn sections(toml: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    for line in lines(toml) {
        if line.starts_with('[') {
            sections.push(String::new());
        }
        sections.last_mut().expect("there is one").push_str(&line);
    }
    sections
}
