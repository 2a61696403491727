//! The soak: hosts in network namespaces with agents, connections under churn, two allocators, and a fault every
//! minute.
//!
//! `cargo xtask soak` builds and runs it, as root. `docs/soak.md` has its rules and what was seen.
#![cfg(feature = "bpf")]

mod daemons;
mod faults;
mod load;
mod network;
#[allow(dead_code, reason = "the field tests use the rest")]
#[path = "../field/rack.rs"]
mod rack;
mod record;
mod socket;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

use daemons::Daemons;
use faults::Faults;
use load::Load;
use network::Network;
use record::Record;
use watch::Watch;

/// Time from the beginning of a minute to its fault.
const FAULT_AT: Duration = Duration::from_secs(20);
/// Time between two looks at the daemons' memory.
const LOOK: Duration = Duration::from_secs(2);
/// Exit status after an interruption, as that of a shell.
const INTERRUPTED: u8 = 130;

/// Options of the soak; `cargo xtask soak` has checked them.
#[derive(Parser)]
struct Options {
    /// Minutes to run.
    #[arg(long, default_value_t = 60)]
    minutes: u32,
    /// Seed of messages and faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of hosts with agents.
    #[arg(long, default_value_t = 8)]
    hosts: u32,
    /// Payload that each host begins, in per cent of what its link carries.
    #[arg(long, default_value_t = 80)]
    load: u32,
    /// Directory of the results.
    #[arg(long)]
    out: PathBuf,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    if let Err(e) = ctrlc::set_handler(move || stops.store(true, Ordering::Relaxed)) {
        eprintln!("error: signals cannot be caught: {e}");
        return ExitCode::from(2);
    }
    match run(&options, &stop) {
        Ok(passed) if !stop.load(Ordering::Relaxed) => ExitCode::from(u8::from(!passed)),
        Ok(_) => ExitCode::from(INTERRUPTED),
        Err(e) => {
            eprintln!("error: {}: {e}", options.out.display());
            ExitCode::from(2)
        }
    }
}

/// Runs the soak. Returns `true` if all rules hold.
fn run(options: &Options, stop: &AtomicBool) -> std::io::Result<bool> {
    std::fs::create_dir_all(&options.out)?;
    let network = Network::new(options.hosts, &options.out);
    let mut daemons = Daemons::start(&network);
    network.wait_for_agents();
    let load = Load::start(&network, options.seed, f64::from(options.load) / 100.0);
    let watch = Watch::start(&network, &load);
    let mut record = Record::open(&options.out, options.minutes)?;
    let mut faults = Faults::new(options.seed, options.hosts);
    for minute in 1..=options.minutes {
        let began = Instant::now();
        let mut happened = None;
        while began.elapsed() < Duration::from_secs(60) && !stop.load(Ordering::Relaxed) {
            record.look(&daemons)?;
            if FAULT_AT <= began.elapsed() && happened.is_none() {
                happened = Some(faults.next(&network, &mut daemons, &watch));
            }
            std::thread::sleep(LOOK.min(Duration::from_secs(60).saturating_sub(began.elapsed())));
        }
        let fault = happened.map_or_else(|| "none".to_owned(), |fault| fault.to_string());
        record.minute(minute, &fault, began.elapsed(), load.take(), watch.take())?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    load.stop();
    watch.stop();
    record.end(options.hosts)
}
