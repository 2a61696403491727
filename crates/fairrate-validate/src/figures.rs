//! `cargo xtask figures`: writes the part of `docs/figures.md` that is generated from measurements, with its pictures
//! and tables, and the pages `docs/papers` of sentences.
//!
//! The results of runs are in `docs/figures/PAPER/NAME/measured.csv`. Calculations, which take no time, are repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use fairrate_papers::measured::{self, About};
use fairrate_papers::{Claim, FIGURES, Figure, Kind, Points, Scale, Tally, Verdict, is_bare, looked_at, sheet};

use crate::{kept, sentences};

/// Path of the page, relative to the root.
const PAGE: &str = "docs/figures.md";
const DIR: &str = "docs/figures";
const MEASURED: &str = "measured.csv";
/// The line below which the page is generated; the text above it is written by hand.
const MARKER: &str = "<!-- From here on `cargo xtask figures` writes this page. -->\n";

/// Words in the sentences of claims about another reading of a paper than that of its text: other code's forms and
/// constants, another traffic, other rates of hosts.
const OTHER_READINGS: &[(&str, &[&str])] = &[
    ("powertcp", &["artifact", "8.8 us", "one class", "per ACK", "no floor", "printed", "K = 6", "four senders"]),
    (
        "rocc",
        &[
            "whole gains",
            "authors' code",
            "rocc-omnet",
            "pacing alone",
            "by line rate",
            "no floor",
            "PFC by",
            "PFC at",
            "no multiplicative decrease",
            "resume at",
        ],
    ),
    ("ratemp", &["hosts of 40 Gb/s", "hosts of 50 Gb/s", "hosts of 100 Gb/s", "RateMP's marks"]),
    (
        "flowtune",
        &["10 segments", "K = ", "timers of ns-2", "tiny buffer", "no RACK", "size over completion time", "bounded"],
    ),
    ("perc", &["charged", "of 1 B", "headroom"]),
];

/// Options of `figures`.
#[derive(Args)]
pub struct Options {
    /// First take over what runs came to, from an output directory of `fairrate figure`; again for more of them, whose
    /// runs are put together
    #[arg(long, value_name = "DIR")]
    take: Vec<PathBuf>,
    /// With --take: keep those runs of the tables that are there already which the directories lack, such as those from
    /// other seeds. Of each line that is kept, the directories must have a run as the table has it, unless no source
    /// has changed since
    #[arg(long, requires = "take")]
    add: bool,
    /// Write nothing; say what is out of date
    #[arg(long)]
    check: bool,
}

/// Writes the page. With `check`, writes nothing and returns `true` if it is up to date.
///
/// # Errors
/// If a file cannot be read or written.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    if !options.take.is_empty() {
        take(root, &options.take, options.add)?;
    }
    let files = files(root)?;
    let mut n_stale = 0;
    for (path, text) in &files {
        let path = root.join(path);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        n_stale += 1;
        if options.check {
            println!("{} is out of date: run `cargo xtask figures`", path.display());
        } else {
            write(&path, text)?;
        }
    }
    println!("{} files, {n_stale} of them {}", files.len(), if options.check { "out of date" } else { "written" });
    Ok(!options.check || n_stale == 0)
}

/// Copies the results of runs in short form; for figures with the same runs, only once. Figures in the directories
/// `from` that were run with `--quick` are skipped. With `add`, runs that are only in the existing tables are kept.
fn take(root: &Path, from: &[PathBuf], add: bool) -> Result<(), String> {
    for figure in FIGURES.iter().filter(|figure| figure.kind != Kind::Calculation) {
        let Some((mut about, mut points)) = read_all(from, figure)? else { continue };
        if add && let Some((about_old, mut all)) = read(&root.join(DIR), figure.id)? {
            // The speed of a machine is another one each time.
            if about.sources != about_old.sources && figure.kind != Kind::Measurement {
                kept::check(figure.id, &all, &points)?;
            }
            all.extend(points);
            points = all;
            about = about.with(&about_old, count(figure, &points));
        }
        let table = measured::compact(&about, &points);
        let shorter = tables_before(root, figure)?
            .into_iter()
            .find_map(|(other, rows)| measured::without_rows(&table, &other, &rows));
        write(&root.join(DIR).join(figure.id).join(MEASURED), &shorter.unwrap_or(table))?;
    }
    Ok(())
}

/// Reads the runs of a figure from all directories that have some, but for those with `--quick`.
fn read_all(from: &[PathBuf], figure: &Figure) -> Result<Option<(About, Points)>, String> {
    let mut all: Option<(About, Points)> = None;
    for dir in from {
        let Some((about, points)) = read(dir, figure.id)? else { continue };
        if about.quick {
            println!("{} in `{}` was run with --quick: left out", figure.id, dir.display());
            continue;
        }
        all = Some(match all {
            None => (about, points),
            Some((before, _)) if before.sources != about.sources => {
                let (figure, dir) = (figure.id, dir.display());
                return Err(format!("{figure}: `{dir}` and a directory before it are of other sources"));
            }
            Some((before, mut together)) => {
                together.extend(points);
                (about.with(&before, count(figure, &together)), together)
            }
        });
    }
    Ok(all)
}

/// Returns the number of the figure's runs among `points`, which may have those of other figures of the paper.
fn count(figure: &Figure, points: &Points) -> usize {
    let seeds: BTreeSet<u64> = points.iter().filter_map(|(_, _, seed, _)| seed).collect();
    let runs = (figure.runs)(&Scale::new(false, seeds.into_iter().collect()));
    runs.iter().filter(|run| points.has(&run.name, &run.line, run.seed)).count()
}

/// Returns the existing complete tables of the figures that come before `figure` in its paper.
fn tables_before(root: &Path, figure: &Figure) -> Result<Vec<(About, String)>, String> {
    let before =
        FIGURES.iter().take_while(|other| other.id != figure.id).filter(|other| other.paper() == figure.paper());
    let mut tables = Vec::new();
    for other in before {
        let path = root.join(DIR).join(other.id).join(MEASURED);
        if !path.exists() {
            continue;
        }
        let named = |e: String| format!("`{}`: {e}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|e| named(e.to_string()))?;
        let (about, _) = measured::read(&text).map_err(named)?;
        if about.rows_of.is_none() {
            tables.push((about, text));
        }
    }
    Ok(tables)
}

/// Returns all generated files, as pairs of path relative to the root and text.
fn files(root: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let page = root.join(PAGE);
    let by_hand = std::fs::read_to_string(&page).map_err(|e| format!("cannot read `{}`: {e}", page.display()))?;
    let by_hand = by_hand.split(MARKER).next().unwrap_or_default();
    let mut files = BTreeMap::new();
    let (mut papers, mut sections) = (Vec::<(&str, [Tally; 2])>::new(), String::new());
    let mut all = BTreeMap::new();
    for figure in FIGURES {
        let paper = figure.paper();
        if papers.last().is_none_or(|(last, _)| *last != paper) {
            papers.push((paper, Default::default()));
            let _ = writeln!(sections, "\n## {}\n", title(paper));
        }
        let known = points(root, figure)?;
        let claims = known.as_ref().map(|(_, points)| figure.judged(points));
        // Without measurements the claims have no numbers.
        let claims = claims.unwrap_or_else(|| (figure.claims)(&Points::default()));
        if known.is_some() && claims.iter().any(is_bare) && looked_at(figure).is_none() {
            return Err(format!(
                "`{}` has failing claims, and crates/fairrate-papers/src/looked.rs does not say what was looked at",
                figure.id
            ));
        }
        let tally = if known.is_some() { Tally::of(&claims) } else { Tally::default() };
        if known.is_some() {
            let (other, own): (Vec<&Claim>, Vec<&Claim>) = claims.iter().partition(|claim| is_other(paper, claim));
            let [of_text, of_others] = &mut papers.last_mut().expect("one was pushed").1;
            of_text.add(&Tally::of(own));
            of_others.add(&Tally::of(other));
        }
        sections += &section(figure, known.as_ref().map(|(about, _)| about), &tally);
        if let Some((_, points)) = &known {
            let dir = Path::new(DIR).join(figure.id);
            files.insert(
                dir.join("figure.svg"),
                sheet::small_picture(&(figure.panels)(points), &sheet::caption(figure, &tally)),
            );
            files.insert(dir.join("claims.md"), sheet::markdown(figure, &claims));
        }
        all.insert(figure.id, claims);
    }
    let names: Vec<(&str, &str)> = papers.iter().map(|(paper, _)| (*paper, title(paper))).collect();
    files.extend(sentences::pages(root, &names, &all)?);
    files.insert(PathBuf::from(PAGE), format!("{by_hand}{MARKER}\n{}{sections}", overview(&papers)));
    Ok(files)
}

/// Returns the results of the runs of a figure, as far as they exist.
fn points(root: &Path, figure: &Figure) -> Result<Option<(About, Points)>, String> {
    if figure.kind != Kind::Calculation {
        return read(&root.join(DIR), figure.id);
    }
    let mut points = Points::default();
    let runs = (figure.runs)(&Scale::new(false, vec![1]));
    for run in &runs {
        let point = run.point(|_| true)?.ok_or("a calculation was interrupted")?;
        points.add(&run.name, &run.line, run.seed, point);
    }
    Ok(Some((About::new(figure.id, false, runs.len(), 0.0), points)))
}

/// Reads the results of the runs of a figure from a file below `from`, if it exists.
fn read(from: &Path, figure: &str) -> Result<Option<(About, Points)>, String> {
    let place = |figure: &str| from.join(figure).join(MEASURED);
    let failed = |e: std::io::Error, figure: &str| format!("cannot read `{}`: {e}", place(figure).display());
    let other = |figure: &str| std::fs::read_to_string(place(figure)).map_err(|e| failed(e, figure));
    match std::fs::read_to_string(place(figure)) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(e, figure)),
        Ok(text) => {
            let known = measured::read_with(&text, other);
            known.map(Some).map_err(|e| format!("`{}`: {e}", place(figure).display()))
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot write `{}`: {e}", file.display());
    file.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::write(file, text).map_err(failed)
}

/// Returns `true` if a claim is about another reading than that of the paper's text.
fn is_other(paper: &str, claim: &Claim) -> bool {
    let words = OTHER_READINGS.iter().find(|(of, _)| *of == paper).map_or(&[][..], |(_, words)| words);
    words.iter().any(|word| claim.sentence.contains(word))
}

/// Returns a table of the claims of each paper by verdict: those as its text has them, and those of other readings.
fn overview(papers: &[(&str, [Tally; 2])]) -> String {
    const ALL: [Verdict; 6] = [
        Verdict::Reproduced,
        Verdict::Vacuous,
        Verdict::Weaker,
        Verdict::NotReproduced,
        Verdict::Undecided,
        Verdict::Shown,
    ];
    let heads = ALL.map(|verdict| verdict.to_string()).join(" | ");
    let mut out = format!("## Verdicts by paper\n\n| paper | {heads} |\n|---|--:|--:|--:|--:|--:|--:|\n");
    for (paper, tallies) in papers {
        for (tally, reading) in tallies.iter().zip(["", ", other readings"]).filter(|(tally, _)| !tally.is_empty()) {
            let counts = ALL.map(|verdict| tally.get(verdict).to_string()).join(" | ");
            let _ = writeln!(out, "| {}{reading} | {counts} |", title(paper));
        }
    }
    out
}

/// Returns the section of a figure: its picture, its cost and the verdicts of its claims.
fn section(figure: &Figure, about: Option<&About>, tally: &Tally) -> String {
    let (id, title) = (figure.id, figure.title);
    let mut out = format!("### {id}\n\n{title}. `fairrate figure {id}`");
    let Some(about) = about else {
        return out + ". It has not been run at full size yet.\n\n";
    };
    let time = match figure.kind {
        Kind::Calculation => ", calculated in no time".to_owned(),
        _ => format!(", {} runs, {} on one core", about.runs, duration(about.seconds)),
    };
    let claims = if tally.is_empty() {
        "no claims".to_owned()
    } else {
        format!("[claims](figures/{id}/claims.md): {}", tally.words())
    };
    let _ = writeln!(out, "{time}; {claims}.\n\n![{title}](figures/{id}/figure.svg)\n");
    out
}

/// Returns a number of seconds in words.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "less than a second".to_owned(),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// Returns the name of a paper.
fn title(paper: &str) -> &str {
    match paper {
        "powertcp" => "PowerTCP",
        "rocc" => "RoCC",
        "ratemp" => "RateMP",
        "flowtune" => "Flowtune",
        "perc" => "PERC",
        "beyond" => "Beyond the papers",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_the_unit_that_fits() {
        let said = [0.4, 90.0, 600.0, 9_000.0].map(duration);
        assert_eq!(said, ["less than a second", "90 s", "10 min", "2.5 h"]);
    }

    /// The committed page is the one generated from the committed measurements.
    #[test]
    fn the_page_is_up_to_date() {
        let stale = files(&crate::root()).expect("it is made");
        let stale = stale
            .into_iter()
            .filter(|(path, text)| std::fs::read_to_string(crate::root().join(path)).map_or(true, |old| old != *text));
        let stale: Vec<PathBuf> = stale.map(|(path, _)| path).collect();
        assert!(stale.is_empty(), "run `cargo xtask figures`: {stale:?}");
    }
}
