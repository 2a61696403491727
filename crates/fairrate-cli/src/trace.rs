//! `fairrate trace`: the packets of a run, as a file for other tools.

mod chosen;
pub mod file;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_experiment::{Ended, Watch};
use fairrate_report::index;
use fairrate_trace::{Counts, End, Network, Tracer};
use fairrate_units::{Bytes, Time};

use self::file::{Kind, Part};
use crate::explain::source::{Source, refused};
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::progress::Board;

/// Arguments of `trace`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of a run
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// File to write, which must not exist; its ending is the format: .pcapng, .perfetto-trace or .parquet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// No progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

/// The part of a run that is traced.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Trace packets of this flow, by its number in `flows.parquet` and `fairrate show`; may be given again
    #[arg(long, value_name = "N")]
    pub flow: Vec<u32>,
    /// Trace packets at this port, as `tor0->h16`, or at all ports of a node, as `h16`; may be given again
    #[arg(long, value_name = "NAME")]
    pub port: Vec<String>,
    /// Trace from this time on, as 20us
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub from: Time,
    /// Trace until this time [default: the end of the run]
    #[arg(long, value_name = "TIME")]
    pub until: Option<Time>,
    /// Largest size of the file: the trace ends with the last packet that there is room for
    #[arg(long, value_name = "SIZE")]
    pub limit: Option<Bytes>,
}

/// The smallest `--limit`.
const SMALLEST: Bytes = Bytes::new(4_000);

/// A trace that was written.
struct Written {
    /// The run in words.
    about: String,
    counts: Counts,
    bytes: Bytes,
    end: End,
}

/// Runs the scenario of a results directory again, and writes its trace.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let board = Board::new(args.quiet);
    let done = write(&args.dir, &args.out, &args.selection, registry, |source, tracer| {
        source.run_again(tracer, &mut source.watcher(&board))
    })?;
    let Some(written) = done else { return Ok(ExitCode::from(INTERRUPTED)) };
    output::print_text(&args.summary(&written))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the scenario of the results in `dir` again, and writes its trace to `out`; returns `None` if `watch` stopped
/// the run.
pub fn to_file(
    dir: &Path,
    out: &Path,
    selection: &Selection,
    registry: &Registry,
    watch: &mut dyn Watch,
) -> Result<Option<()>, Failure> {
    let done = write(dir, out, selection, registry, |source, tracer| source.run_again(tracer, watch))?;
    Ok(done.map(|_| ()))
}

/// Writes the trace of the results in `dir` to `out`; `run` does their run again.
fn write(
    dir: &Path,
    out: &Path,
    selection: &Selection,
    registry: &Registry,
    run: impl FnOnce(&Source, &mut Tracer) -> Result<Option<Ended>, Failure>,
) -> Result<Option<Written>, Failure> {
    let kind = Kind::of(out)?;
    selection.check()?;
    if dir.join(index::FILE).exists() {
        return Err(refused(dir, "has the runs of a comparison", "name the directory of one of its runs"));
    }
    let source = Source::open(dir, registry)?;
    if source.config().stacks().any(|(_, cc)| cc.needs().feedback.oracle.is_some()) {
        return Err(source.refused("is a run of `ideal`, which has no packets", "trace a run of another algorithm"));
    }
    let network = Network::new(source.config());
    let filter = chosen::filter(selection, &network, source.config())?;
    let part = Part::create(out)?;
    let summary = &source.results.summary;
    let about =
        format!("{}: {}, seed {}, fingerprint {}", summary.scenario, summary.cc, summary.seed, summary.fingerprint);
    let writing = |error| Failure::io("writing", out, error);
    let format = kind.begin(network, part.output(selection.limit).map_err(writing)?, &about).map_err(writing)?;
    let mut tracer = Tracer::new(format, filter);
    let ended = run(&source, &mut tracer)?;
    let (counts, bytes, end) = tracer.finish().map_err(writing)?;
    if ended.is_none() {
        return Ok(None);
    }
    part.keep(out)?;
    Ok(Some(Written { about, counts, bytes: Bytes::new(bytes), end }))
}

impl Selection {
    /// Checks what needs no results.
    fn check(&self) -> Result<(), Failure> {
        let wrong = |message: String, help: &str| Err(Failure::Usage { message, help: help.to_owned() });
        if let Some(until) = self.until.filter(|&until| until <= self.from) {
            let message = format!("the trace would end at {until}, before it begins at {}", self.from);
            return wrong(message, "`--until` is later than `--from`");
        }
        if let Some(limit) = self.limit.filter(|&limit| limit < SMALLEST) {
            return wrong(format!("no trace fits into {limit}"), "`--limit` is at least 4KB, as 100MB");
        }
        Ok(())
    }
}

impl Args {
    /// Returns the content of the trace in words.
    fn summary(&self, Written { about, counts, bytes, end }: &Written) -> String {
        let Counts { sent, dropped, trimmed, pauses } = *counts;
        let mut parts = vec![format!("{} packets sent", grouped(sent))];
        for (n, what) in [(dropped, "dropped"), (trimmed, "cut to their headers"), (pauses, "pauses and resumptions")] {
            if 0 < n {
                parts.push(format!("{} {what}", grouped(n)));
            }
        }
        let size = fairrate_report::format::bytes(bytes.as_f64());
        let ends = match (end, self.selection.limit) {
            (End::Limit, Some(limit)) => {
                format!("\nIt ends before the run does: `--limit {limit}` is reached. The file says so too.")
            }
            _ => String::new(),
        };
        format!("{about}\n{}: {}, {size}{ends}\n", self.out.display(), parts.join(", "))
    }
}

/// Returns a number with commas between thousands.
fn grouped(n: u64) -> String {
    fairrate_report::format::count(n as f64)
}
