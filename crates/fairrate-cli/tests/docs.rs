//! The documentation shows the true output of the command line: every command in a `console` block of the README, the
//! tutorial and the pages on `allocate`, `explain` and `trace` is run, in order, and the lines below it are its output,
//! except for wall-clock times. To write them anew: `FAIRRATE_BLESS=1 cargo test -p fairrate-cli --test docs`.

mod common;

use std::path::{Path, PathBuf};

use common::{fairrate, fresh_dir, stderr, stdout};
use fairrate_text::first_difference;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Creates a reader's directory: the examples, and the files that the page asks to save.
fn workplace(name: &str, page: &str) -> PathBuf {
    let dir = fresh_dir(name);
    std::fs::create_dir_all(dir.join("examples")).expect("the target directory can be written");
    for entry in std::fs::read_dir(root().join("examples")).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            continue;
        }
        std::fs::copy(&path, dir.join("examples").join(path.file_name().expect("a file"))).expect("a copy");
    }
    for (name, text) in files_to_save(page) {
        std::fs::write(dir.join(name), text).expect("the target directory can be written");
    }
    dir
}

/// Returns name and text of every block that is followed by "Save it as `NAME`".
fn files_to_save(page: &str) -> Vec<(&str, &str)> {
    const WORDS: &str = "```\n\nSave it as `";
    let files = page.match_indices(WORDS).map(|(at, _)| {
        let name = page[at + WORDS.len()..].split('`').next().expect("a name");
        let (_, block) = page[..at].rsplit_once("```").expect("a block begins");
        (name, block.split_once('\n').expect("a language").1)
    });
    files.collect()
}

/// Returns the words of a command line; single quotes hold one together.
fn arguments(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    parts.flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
}

/// Runs a command line in `dir`. Returns the lines of its output, or of its message if it fails.
fn output_of(line: &str, dir: &Path) -> Vec<String> {
    let command = ["cargo run --release -- ", "fairrate "].iter().find_map(|p| line.strip_prefix(p));
    let command = command.unwrap_or_else(|| panic!("`{line}` is no command of ours"));
    let output = fairrate().args(arguments(command)).current_dir(dir).output().expect("the binary starts");
    let text = if output.status.success() { stdout(&output) } else { stderr(&output) };
    text.trim_end().lines().map(untimed).collect()
}

/// Returns a line without wall-clock time.
fn untimed(line: &str) -> String {
    match line.split_once(" simulated in ") {
        Some((before, after)) => format!("{before} simulated in ...{}", &after[after.find(" s ").unwrap_or(0)..]),
        None => line.trim_end().to_owned(),
    }
}

const TIMES: &str = "  ns per packet-hop";

/// Returns a line of wall-clock times, replaced by the next such line of the page if that has the same form.
fn with_times_of<'a>(page: &mut impl Iterator<Item = &'a str>, line: String) -> String {
    if !line.starts_with(TIMES) {
        return line;
    }
    let same_form = |l: &&str| l.len() == line.len() && words(l) == words(&line);
    page.next().filter(same_form).map(str::to_owned).unwrap_or(line)
}

fn words(line: &str) -> usize {
    line.split_whitespace().count()
}

/// Compares a page with the output of its commands. Returns the directory in which they ran.
fn hold(page: &str) -> PathBuf {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).expect("the page");
    let dir = workplace(&page.replace(['/', '.'], "_"), &text);
    let mut times = text.lines().filter(|l| l.starts_with(TIMES));
    let (mut lines, mut block, mut n) = (Vec::new(), false, 0);
    for line in text.lines() {
        block = if block { line != "```" } else { line == "```console" };
        if let (true, Some(command)) = (block, line.strip_prefix("$ ")) {
            lines.push(line.to_owned());
            lines.extend(output_of(command, &dir).into_iter().map(|line| with_times_of(&mut times, line)));
            n += 1;
        } else if !block || line == "```console" {
            lines.push(line.to_owned());
        }
    }
    assert!(0 < n, "{page} shows no command");
    let written = lines.join("\n") + "\n";
    if std::env::var_os("FAIRRATE_BLESS").is_some() {
        std::fs::write(&path, written).expect("the page can be written");
    } else if let Some(difference) = first_difference(&text, &written) {
        let bless = "FAIRRATE_BLESS=1 cargo test -p fairrate-cli --test docs";
        panic!("{page}: {difference}; `{bless}` writes it");
    }
    dir
}

#[test]
fn the_readme_shows_what_is_printed_and_drawn() {
    let dir = hold("README.md");
    let drawn = dir.join("runs/incast10/figures/at-the-switches-queue-of-tor0-h16.svg");
    let drawn = std::fs::read_to_string(drawn).expect("the figure");
    let path = root().join("docs/images/incast10.svg");
    if std::env::var_os("FAIRRATE_BLESS").is_some() {
        std::fs::write(&path, drawn).expect("the picture can be written");
    } else {
        let shown = std::fs::read_to_string(&path).expect("the picture");
        assert!(shown == drawn, "docs/images/incast10.svg: run this test with FAIRRATE_BLESS=1");
    }
}

/// Pictures of pages, each with the command that draws it. Those below `docs/figures` are checked by `cargo xtask
/// figures --check`.
const PICTURES: [(&str, &str); 6] = [
    ("incast10.svg", "the README's `fairrate compare`, held above"),
    ("staircase.svg", "a measurement on Linux: `cargo xtask agent`, as root, which no two times gives the same"),
    ("tails-homa.svg", "docs/explain.md's `fairrate explain runs/sprayed`, which takes one and a half minutes"),
    ("tails-requests.svg", "docs/explain.md's `fairrate explain runs/classes`, which takes half a minute"),
    ("tails-ring.svg", "docs/explain.md's `fairrate explain runs/rings`"),
    ("tune-dcqcn.svg", "docs/tune.md's `fairrate tune`, which takes eight minutes"),
];

#[test]
fn every_picture_is_drawn_by_something() {
    let names = std::fs::read_dir(root().join("docs/images")).expect("pictures");
    let mut names: Vec<String> =
        names.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, PICTURES.map(|(name, _)| name));
}

#[test]
fn the_tutorial_shows_what_is_printed() {
    hold("docs/tutorial.md");
}

#[test]
fn the_page_on_explain_shows_what_is_printed() {
    hold("docs/explain.md");
}

#[test]
fn the_page_on_trace_shows_what_is_printed() {
    hold("docs/trace.md");
}

#[test]
fn the_page_on_allocate_shows_what_is_printed() {
    hold("docs/allocate.md");
}

/// Adds all files below `dir` whose names end in one of `endings` to `found`.
fn files_below(dir: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, endings, found);
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
}

/// Returns the files below `examples/` and `docs/` that `text` names, relative to the root.
fn named_files(text: &str) -> Vec<String> {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let begins =
        ["examples/", "docs/", "scenarios/"].into_iter().flat_map(|dir| text.match_indices(dir).map(|(at, _)| at));
    let named = begins.map(|at| text[at..].split(|c| !is_of_path(c)).next().unwrap_or_default().trim_end_matches('.'));
    // Words in capitals are placeholders.
    let stands_for =
        |path: &str| path.split('/').any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()));
    let is_file = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    named.filter(|path| !stands_for(path)).filter(is_file).map(str::to_owned).collect()
}

/// The files named in error messages, helps and docs of sources exist.
#[test]
fn files_that_messages_name_exist() {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates") {
        files_below(&entry.expect("an entry").path().join("src"), &[".rs"], &mut sources);
    }
    files_below(&root().join("python/fairrate"), &[".py", ".pyi"], &mut sources);
    let mut n = 0;
    for source in &sources {
        for path in named_files(&std::fs::read_to_string(source).expect("a source")) {
            // `scenarios` of fairrate-papers is a link.
            let path = path.replacen("scenarios/", "examples/", 1);
            assert!(root().join(&path).exists(), "{} names `{path}`", source.display());
            n += 1;
        }
    }
    assert!(20 < n, "{n}");
    assert_eq!(named_files("such as `examples/incast.toml`."), ["examples/incast.toml"]);
    assert!(named_files("docs/figures/PAPER/NAME/measured.csv, examples/library-* and docs/figures").is_empty());
}
