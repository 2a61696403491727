//! `fairrate figure`: the figures of the papers: their runs, their drawings, and the comparison with the papers'
//! claims.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use fairrate_experiment::crew::{self, Planned};
use fairrate_papers::measured::{self, About};
use fairrate_papers::{FIGURES, Figure, Kept, Kind, Points, Run, Scale, Store, Tally, matching, sheet};
use fairrate_results::ResultsDir;
use serde::Serialize;
use serde_json::Value;

use crate::compare::{Seeds, parse_seeds};
use crate::drive::{self, Watcher};
use crate::external;
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::progress::Board;

/// Name of the file with the results of a figure's runs.
const MEASURED: &str = "measured.csv";

/// Description and results of the runs of a figure.
type Measured = (About, Points);

/// Arguments of `figure`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Figures, as powertcp/fig8; all of a paper, as powertcp; or all
    #[arg(value_name = "FIGURE")]
    names: Vec<String>,
    /// List the figures
    #[arg(long, conflicts_with_all = ["names", "quick", "seeds", "jobs", "out", "fresh", "from"])]
    list: bool,
    /// Less of everything: fewer seeds, less traffic
    #[arg(long)]
    quick: bool,
    /// With --quick too, run the variants that only show why a claim fails
    #[arg(long)]
    causes: bool,
    /// Seeds of what is random, as 3 or 1..5 or 1,4,7 [default: 1..5, with --quick 1]
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    seeds: Option<Seeds>,
    /// Only this line, as powertcp, or those whose names begin so; again for more of them. Claims without a number are
    /// left out
    #[arg(long = "line", value_name = "NAME", conflicts_with_all = ["list", "from"])]
    lines: Vec<String>,
    /// Only the runs of this name, as the tables and pictures have it, or those whose names begin so; again for more of
    /// them
    #[arg(long = "run", value_name = "NAME", conflicts_with_all = ["list", "from"])]
    runs: Vec<String>,
    /// Directory of the figures
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Besides figure.svg, a picture for papers or slides; needs the program fairrate-picture
    #[arg(long, value_enum, default_value_t = Format::Svg, value_name = "FORMAT")]
    format: Format,
    /// Run nothing: draw from the measured.csv of each figure below this directory; calculations that have none take no
    /// time and are made anew
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "seeds", "jobs", "fresh"])]
    from: Option<PathBuf>,
    /// Do all runs again, those that are complete too
    #[arg(long)]
    fresh: bool,
    /// Leave a results directory of each simulation in runs/, for `fairrate report` and Python
    #[arg(long, conflicts_with_all = ["list", "from"])]
    keep_runs: bool,
    /// Runs at the same time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print claims.json of all figures, or the list, in place of tables
    #[arg(long)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// Formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Svg,
    Pdf,
    Png,
}

/// Runs and draws the figures.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.list {
        return list(args.json).map(|()| ExitCode::SUCCESS);
    }
    if args.names.is_empty() {
        return Err(unnamed());
    }
    let figures = chosen(&args.names)?;
    let seeds = args
        .seeds
        .as_ref()
        .map_or_else(|| if args.quick { vec![1] } else { (1..=5).collect() }, |seeds| seeds.0.clone());
    let scale = Scale { quick: args.quick, causes: args.causes || !args.quick, seeds };
    for figure in &figures {
        ResultsDir::check(&place(&args.out, figure))?;
    }
    let converter = converter(args.format)?;
    let known: Vec<Result<Option<Measured>, Failure>> =
        figures.iter().map(|figure| args.from.as_ref().map_or(Ok(None), |from| known(from, figure))).collect();
    let jobs = args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    drive::listen_for_interrupts();
    let (mut told, mut tally, mut undrawn, n_figures) = (Vec::new(), Tally::default(), Vec::new(), figures.len());
    for (figure, known) in figures.into_iter().zip(known) {
        let known = match known {
            // With several figures, the others are still drawn.
            Err(failure) if 1 < n_figures => {
                undrawn.push(format!("{}: {failure}", figure.id));
                continue;
            }
            known => known?,
        };
        let Some((claims, of_figure)) = draw(figure, known, &scale, args, jobs)? else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        if let Some(converter) = &converter {
            converter.convert(&place(&args.out, figure))?;
        }
        told.push(claims);
        tally.add(&of_figure);
    }
    if args.json {
        output::print_json(&told)?;
    } else if 1 < told.len() {
        output::print_text(&format!("{} figures: {}\n", told.len(), tally.words()))?;
    }
    if undrawn.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::Undrawn { n_undrawn: undrawn.len(), n_figures, each: undrawn.join("\n") })
}

/// Returns the failure of a command without a figure: what can be drawn, and how.
fn unnamed() -> Failure {
    let mut papers: Vec<(&str, Vec<&Figure>)> = Vec::new();
    for figure in FIGURES {
        match papers.iter_mut().find(|(paper, _)| *paper == figure.paper()) {
            Some((_, figures)) => figures.push(figure),
            None => papers.push((figure.paper(), vec![figure])),
        }
    }
    let line = |(paper, figures): &(&str, Vec<&Figure>)| {
        let plural = if figures.len() == 1 { "" } else { "s" };
        vec![(*paper).to_owned(), format!("{} figure{plural}, as {}", figures.len(), figures[0].id)]
    };
    let lines: Vec<Vec<String>> = papers.iter().map(line).collect();
    let example = FIGURES[0].id;
    Failure::Usage {
        message: format!("no figure is named, and there are {} figures", FIGURES.len()),
        help: format!(
            "`fairrate figure --list` shows all of them. `fairrate figure {example} --quick` draws one in seconds, `fairrate figure {}` all of a \
             paper, and `fairrate figure all` everything. There are:\n{}",
            papers[0].0,
            fairrate_text::aligned(&lines, usize::MAX).trim_end(),
        ),
    }
}

/// The program that turns SVG into another format.
struct Converter {
    program: PathBuf,
    ending: &'static str,
}

/// Returns the program that a format needs; `None` for SVG.
fn converter(format: Format) -> Result<Option<Converter>, Failure> {
    const NAME: &str = "fairrate-picture";
    let ending = match format {
        Format::Svg => return Ok(None),
        Format::Pdf => "pdf",
        Format::Png => "png",
    };
    let program = external::program(NAME.as_ref());
    match Command::new(&program).arg("--version").output() {
        Ok(_) => Ok(Some(Converter { program, ending })),
        Err(_) => Err(Failure::Usage {
            message: format!("`--format {ending}` needs the program `{NAME}`, which is not there"),
            help: format!(
                "fairrate's Python package has it (`pip install .` in its sources), as has `cargo install --path crates/{NAME}`; without \
                 `--format` there is figure.svg, and `fairrate.picture(\"figure.svg\")` in Python makes a PNG of it"
            ),
        }),
    }
}

impl Converter {
    /// Writes the picture in a figure's directory in the other format.
    fn convert(&self, dir: &Path) -> Result<(), Failure> {
        let out = dir.join("figure").with_extension(self.ending);
        let failed = |cause: String| Failure::Io { doing: "writing", path: out.clone(), cause };
        let done = Command::new(&self.program).args([&dir.join("figure.svg"), &out]).output();
        let done = done.map_err(|e| failed(e.to_string()))?;
        if done.status.success() {
            Ok(())
        } else {
            Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
        }
    }
}

/// Returns the figures with these names, each once.
fn chosen(names: &[String]) -> Result<Vec<&'static Figure>, Failure> {
    let mut figures: Vec<&Figure> = Vec::new();
    for name in names {
        let found = matching(name);
        if found.is_empty() {
            let known: Vec<&str> = FIGURES.iter().map(|figure| figure.id).chain(["all"]).collect();
            return Err(Failure::unknown_name("figure", name, &known));
        }
        figures
            .extend(found.into_iter().filter(|figure| figures.iter().all(|f| f.id != figure.id)).collect::<Vec<_>>());
    }
    Ok(figures)
}

/// Returns the directory of a figure.
fn place(out: &Path, figure: &Figure) -> PathBuf {
    out.join(figure.id)
}

/// Runs a figure whose measurements are not `known`, draws it, and prints and returns its claims with their verdicts'
/// numbers; `None` if it was interrupted.
fn draw(
    figure: &Figure,
    known: Option<Measured>,
    scale: &Scale,
    args: &Args,
    jobs: usize,
) -> Result<Option<(Value, Tally)>, Failure> {
    let place = ResultsDir::claim(&place(&args.out, figure))?;
    let dir = place.path();
    let Some((about, points)) = known.map_or_else(|| measure(figure, scale, args, jobs), |known| Ok(Some(known)))?
    else {
        return Ok(None);
    };
    let (panels, mut claims) = ((figure.panels)(&points), figure.judged(&points));
    let all = claims.len();
    let has_all_runs = !about.quick && args.lines.is_empty() && args.runs.is_empty();
    claims.retain(|claim| has_all_runs || claim.measured().is_some());
    let (json, tally) = (sheet::claims(figure, &claims, about.quick), Tally::of(&claims));
    let caption = about.quick.then_some(sheet::QUICK);
    let of_full = sheet::caption(figure, &tally);
    let below = Some(sheet::Caption { text: caption.unwrap_or(&of_full), warns: about.quick });
    output::write(&dir.join("figure.svg"), &sheet::captioned(&panels, below))?;
    output::write(&dir.join("figure.html"), &sheet::page(figure, &panels, &claims, below))?;
    output::write(&dir.join("points.csv"), &sheet::points(&panels))?;
    output::write(&dir.join(MEASURED), &measured::write(&about, &points))?;
    let text = serde_json::to_string_pretty(&json).unwrap_or_default();
    output::write(&dir.join("claims.json"), &(text + "\n"))?;
    if !args.json {
        let page = dir.join("figure.html");
        let head = format!("{}: {}", figure.id, figure.title);
        let left_out = match all - claims.len() {
            0 => String::new(),
            n => format!("{n} of {all} claims have no number with {}\n", cause(figure, scale, args, about.quick)),
        };
        let (table, verdicts) = (sheet::table(&claims), tally.words());
        let summary = if verdicts.is_empty() { String::new() } else { format!("{verdicts}\n") };
        let caption = caption.map_or_else(String::new, |caption| format!("{caption}\n"));
        output::print_text(&format!("{head}\n\n{table}\n{summary}{left_out}{caption}\n{}\n\n", page.display()))?;
    }
    Ok(Some((json, tally)))
}

/// Returns the options that leave out runs of a figure, in words. `quick` is `true` for results of quick runs.
fn cause(figure: &Figure, scale: &Scale, args: &Args, quick: bool) -> String {
    let selections = [("--line", args.lines.is_empty()), ("--run", args.runs.is_empty())];
    let mut options: Vec<&str> = selections.iter().filter(|(_, is_empty)| !is_empty).map(|(name, _)| *name).collect();
    if quick && (options.is_empty() || lacks_selected(figure, scale, args)) {
        options.push("--quick");
    }
    if options.is_empty() { "these runs alone".to_owned() } else { options.join(" and ") }
}

/// Returns `true` if the figure has selected runs in its full size that it lacks at this scale.
fn lacks_selected(figure: &Figure, scale: &Scale, args: &Args) -> bool {
    let full = Scale { quick: false, causes: scale.causes, seeds: scale.seeds.clone() };
    let names = |run: &Run| (run.name.clone(), run.line.clone());
    let here: BTreeSet<(String, String)> = (figure.runs)(scale).iter().map(names).collect();
    let selected = selected(figure, &full, args).unwrap_or_default();
    selected.iter().any(|run| !here.contains(&names(run)))
}

/// Returns the runs of a figure that `--run` and `--line` select.
fn selected(figure: &Figure, scale: &Scale, args: &Args) -> Result<Vec<Run>, Failure> {
    let runs = only("run", &args.runs, |run| &run.name, (figure.runs)(scale))?;
    only("line", &args.lines, |run| &run.line, runs)
}

/// Returns the results of a figure's runs from a file below `from`; `None` for a calculation without such a file, which
/// takes no time.
fn known(from: &Path, figure: &Figure) -> Result<Option<Measured>, Failure> {
    let is_calculated = figure.kind == Kind::Calculation && !place(from, figure).join(MEASURED).exists();
    if is_calculated { Ok(None) } else { read(from, figure).map(Some) }
}

/// Reads the results of a figure's runs from a file below `from`.
fn read(from: &Path, figure: &Figure) -> Result<Measured, Failure> {
    let file = place(from, figure).join(MEASURED);
    let failed = |cause: String| Failure::Unreadable { path: file.clone(), cause };
    let text = std::fs::read_to_string(&file).map_err(|e| failed(e.to_string()))?;
    let other = |id: &str| {
        let file = from.join(id).join(MEASURED);
        std::fs::read_to_string(&file).map_err(|e| format!("it needs `{}`: {e}", file.display()))
    };
    let (about, points) = measured::read_with(&text, other).map_err(failed)?;
    if about.figure != figure.id {
        return Err(failed(format!("it is of {}", about.figure)));
    }
    Ok((about, points))
}

/// Returns the results of all runs of a figure; `None` if they were interrupted.
fn measure(figure: &Figure, scale: &Scale, args: &Args, jobs: usize) -> Result<Option<Measured>, Failure> {
    let store = Store::new(&args.out, figure, args.keep_runs);
    let runs = selected(figure, scale, args)?;
    let plan: Vec<Planned<Option<Kept>>> = runs.iter().map(|run| store.planned(run, args.fresh)).collect();
    let board = Board::of_runs(args.quiet, runs.len(), plan.iter().filter(|run| run.known.is_some()).count());
    let one = |i: usize| store.run(&runs[i], &mut Watcher::new(&runs[i].label(), &board, 1));
    let done = crew::work(plan, jobs, &drive::interrupted, &one, &mut |_, _| board.ended());
    board.clear();
    let (mut points, mut seconds, mut failed, mut is_whole) = (Points::default(), 0.0, Vec::new(), true);
    for (run, result) in runs.iter().zip(done) {
        match result.transpose() {
            Ok(Some(Some(kept))) => {
                points.add(&run.name, &run.line, run.seed, kept.point);
                seconds += kept.seconds;
            }
            Ok(_) => is_whole = false,
            Err(cause) => failed.push(format!("{}: {cause}", run.label())),
        }
    }
    if !failed.is_empty() {
        return Err(Failure::Runs { n_failed: failed.len(), n_runs: runs.len(), each: failed.join("\n") });
    }
    Ok(is_whole.then(|| (About::new(figure.id, scale.quick, runs.len(), seconds), points)))
}

/// Returns the runs whose `name` one of `names` gives, or all if there are no names. One of `names` is a whole name, or
/// the beginning of others. `kind` is the word for a name in messages.
fn only(kind: &'static str, names: &[String], name: fn(&Run) -> &String, runs: Vec<Run>) -> Result<Vec<Run>, Failure> {
    if names.is_empty() {
        return Ok(runs);
    }
    let known: BTreeSet<String> = runs.iter().map(|run| name(run).clone()).collect();
    let mut chosen: BTreeSet<&str> = BTreeSet::new();
    for wanted in names {
        let begin = known.iter().map(String::as_str).filter(|name| name.starts_with(wanted.as_str()));
        let found: Vec<&str> = if known.contains(wanted) { vec![wanted] } else { begin.collect() };
        if found.is_empty() {
            return Err(Failure::unknown_name(kind, wanted, &known.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        chosen.extend(found);
    }
    Ok(runs.into_iter().filter(|run| chosen.contains(name(run).as_str())).collect())
}

#[derive(Serialize)]
struct FigureJson {
    id: &'static str,
    title: &'static str,
    paper: &'static str,
    kind: &'static str,
    claims: usize,
    quick_s: u32,
}

fn list(json: bool) -> Result<(), Failure> {
    // Without points the claims are the same, but without numbers.
    let claims = |figure: &Figure| (figure.claims)(&Points::default()).len();
    if json {
        let of = |figure: &Figure| FigureJson {
            id: figure.id,
            title: figure.title,
            paper: figure.paper(),
            kind: figure.kind.name(),
            claims: claims(figure),
            quick_s: figure.quick_s,
        };
        let figures: Vec<FigureJson> = FIGURES.iter().map(of).collect();
        return output::print_json(&serde_json::json!({ "figures": figures }));
    }
    let line = |figure: &Figure| {
        let claims = format!("{:>3} claims", claims(figure));
        [figure.id.to_owned(), figure.kind.name().to_owned(), claims, figure.title.to_owned()]
    };
    let lines: Vec<[String; 4]> = FIGURES.iter().map(line).collect();
    output::print_text(&fairrate_text::aligned(&lines, 4))
}
