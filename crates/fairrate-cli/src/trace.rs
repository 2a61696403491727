//! `fairrate trace`: the packets of a run, as a file for other tools.

mod chosen;
mod file;

use std::path::PathBuf;
use std::process::ExitCode;

use fairrate_control::Registry;
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
    /// Trace packets of this flow, by its number in `flows.parquet` and `fairrate show`; may be given again
    #[arg(long, value_name = "N")]
    flow: Vec<u32>,
    /// Trace packets at this port, as `tor0->h16`, or at all ports of a node, as `h16`; may be given again
    #[arg(long, value_name = "NAME")]
    port: Vec<String>,
    /// Trace from this time on, as 20us
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    from: Time,
    /// Trace until this time [default: the end of the run]
    #[arg(long, value_name = "TIME")]
    until: Option<Time>,
    /// Largest size of the file: the trace ends with the last packet that there is room for
    #[arg(long, value_name = "SIZE")]
    limit: Option<Bytes>,
    /// No progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

/// The smallest `--limit`.
const SMALLEST: Bytes = Bytes::new(4_000);

/// Runs the scenario of a results directory again, and writes its trace.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let kind = Kind::of(&args.out)?;
    args.check()?;
    if args.dir.join(index::FILE).exists() {
        return Err(refused(&args.dir, "has the runs of a comparison", "name the directory of one of its runs"));
    }
    let source = Source::open(&args.dir, registry)?;
    if source.config().stacks().any(|(_, cc)| cc.needs().feedback.oracle.is_some()) {
        return Err(source.refused("is a run of `ideal`, which has no packets", "trace a run of another algorithm"));
    }
    let network = Network::new(source.config());
    let filter = chosen::filter(args, &network, source.config())?;
    let part = Part::create(&args.out)?;
    let summary = &source.results.summary;
    let about =
        format!("{}: {}, seed {}, fingerprint {}", summary.scenario, summary.cc, summary.seed, summary.fingerprint);
    let writing = |error| Failure::io("writing", &args.out, error);
    let format = kind.begin(network, part.output(args.limit).map_err(writing)?, &about).map_err(writing)?;
    let mut tracer = Tracer::new(format, filter);
    let board = Board::new(args.quiet);
    let ended = source.run_again(&mut tracer, &mut source.watcher(&board))?;
    let (counts, bytes, end) = tracer.finish().map_err(writing)?;
    if ended.is_none() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    part.keep(&args.out)?;
    output::print_text(&args.told(&about, counts, Bytes::new(bytes), end))?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
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

    /// Returns what the trace has, in words.
    fn told(&self, about: &str, counts: Counts, bytes: Bytes, end: End) -> String {
        let Counts { sent, dropped, trimmed, pauses } = counts;
        let mut parts = vec![format!("{} packets sent", grouped(sent))];
        for (n, what) in [(dropped, "dropped"), (trimmed, "cut to their headers"), (pauses, "pauses and resumptions")] {
            if 0 < n {
                parts.push(format!("{} {what}", grouped(n)));
            }
        }
        let size = fairrate_report::format::bytes(bytes.as_f64());
        let ends = match (end, self.limit) {
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
