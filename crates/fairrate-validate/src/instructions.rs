//! `cargo xtask instructions`: counts the instructions of a packet-hop, and of an event of the event list, with
//! callgrind, and compares them with `instructions.toml`. Times are noisy and differ by machine; these counts do not.
//!
//! Each workload runs in a separate process, this program under valgrind, which counts only inside of [`measured`]: not
//! the start, the reading of the scenario and the building of the network.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::Simulation;
use fairrate_sim::engine::hold::{self, Hold};
use serde::Deserialize;

/// Options of `instructions`.
#[derive(Args)]
pub struct Options {
    /// Writes the table anew
    #[arg(long)]
    bless: bool,
    /// Without valgrind, says so and counts nothing
    #[arg(long)]
    if_possible: bool,
    /// Does a workload's work and prints how much it was: what is run under valgrind
    #[arg(long, hide = true)]
    work: Option<String>,
}

/// Path of the committed counts.
const TABLE: &str = "crates/fairrate-validate/instructions.toml";

/// Largest relative increase of a count over that in the table. Counts with the table's compiler repeat exactly, so the
/// tolerance is for changes that are worth it, not for noise.
const TOLERANCE: f64 = 0.03;

/// A workload whose instructions are counted.
struct Workload {
    name: &'static str,
    work: Work,
}

enum Work {
    /// Traffic on a fat-tree of 128 hosts, under an algorithm and over a transport.
    Simulate { traffic: &'static str, cc: &'static str, transport: &'static str },
    /// Events popped from the event list and pushed again, with `pending` events in it.
    Events { pending: u32 },
}

const WORKLOADS: [Workload; 8] = [
    Workload {
        name: "perm128 powertcp",
        work: Work::Simulate { traffic: PERMUTATION, cc: "powertcp", transport: "rdma" },
    },
    Workload { name: "perm128 dctcp", work: Work::Simulate { traffic: PERMUTATION, cc: "dctcp", transport: "rdma" } },
    Workload {
        name: "perm128 dctcp/tcp",
        work: Work::Simulate { traffic: PERMUTATION, cc: "dctcp", transport: "tcp" },
    },
    // Agents of ports, which see data here, and control packets there.
    Workload { name: "perm128 rocc", work: Work::Simulate { traffic: PERMUTATION, cc: "rocc", transport: "rdma" } },
    Workload { name: "perm128 perc", work: Work::Simulate { traffic: PERMUTATION, cc: "perc", transport: "rdma" } },
    Workload { name: "incast32 hpcc", work: Work::Simulate { traffic: INCAST, cc: "hpcc", transport: "rdma" } },
    Workload { name: "incast32 dctcp", work: Work::Simulate { traffic: INCAST, cc: "dctcp", transport: "rdma" } },
    Workload { name: "event list 4096", work: Work::Events { pending: hold::SIZES[1] } },
];

const FAT_TREE: &str =
    "stop = \"all-flows-done\"\n[topology]\nkind = \"fat-tree-k\"\nk = 8\n[transport]\nmtu = \"1452B\"\n";
/// A permutation, for which switches work by spans.
const PERMUTATION: &str = "[[traffic]]\nkind = \"permutation\"\nbytes = \"200KB\"\n";
/// An incast, for which switches process single events.
const INCAST: &str = "[[traffic]]\nkind = \"incast\"\nreceiver = 0\nbytes = \"400KB\"\nsenders = [1, 4, 8, 12, 16, 20, \
                      24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112, \
                      116, 120, 124]\n";

const N_EVENTS: u64 = 300_000;

/// The committed table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The compiler used for the counts: another compiler generates other instructions.
    rustc: String,
    /// Instructions of a hop, or of an event, by workload.
    instructions: BTreeMap<String, f64>,
}

/// Counts, prints and compares instructions. Returns `false` if a count is above its tolerance.
///
/// # Errors
/// If valgrind, a workload or the table cannot be used.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    if let Some(name) = &options.work {
        println!("{}", work(name)?);
        return Ok(true);
    }
    if !has_valgrind() {
        let message = "valgrind is missing: no instructions are counted";
        if options.if_possible {
            println!("not run: {message}");
            return Ok(true);
        }
        return Err(message.to_owned());
    }
    let rustc = rustc(root)?;
    let mut counts = BTreeMap::new();
    for workload in &WORKLOADS {
        counts.insert(workload.name.to_owned(), count(workload.name)?);
    }
    let path = root.join(TABLE);
    if options.bless {
        std::fs::write(&path, text(&rustc, &counts)).map_err(|e| format!("{TABLE}: {e}"))?;
        println!("{TABLE} is written");
        return Ok(true);
    }
    let table = std::fs::read_to_string(&path).map_err(|e| format!("{TABLE}: {e}"))?;
    let table: Table = toml::from_str(&table).map_err(|e| format!("{TABLE}: {e}"))?;
    let (report, passed) = compare(&table, &rustc, &counts);
    print!("{report}");
    Ok(passed)
}

fn has_valgrind() -> bool {
    let mut command = Command::new("valgrind");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the compiler's version and its host.
fn rustc(root: &Path) -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").current_dir(root).output().map_err(|e| format!("rustc: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    Ok(format!("{} {}", field("release: "), field("host: ")))
}

/// Runs a workload under valgrind. Returns the number of instructions for each unit of its work.
fn count(name: &str) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*instructions*measured*"]);
    command.arg(program).args(["instructions", "--work", name]);
    // The C library selects its copying functions by the processor's features; this setting selects the same ones
    // everywhere. The environment lies on the stack and so affects its alignment, and is cleared.
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("GLIBC_TUNABLES", BASELINE);
    let output = command.output().map_err(|e| format!("valgrind: {e}"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let collected = stderr.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse::<u64>().ok());
    match (collected, stdout.trim().parse::<u64>()) {
        (Some(instructions), Ok(work)) if output.status.success() && 0 < instructions && 0 < work => {
            Ok(instructions as f64 / work as f64)
        }
        _ => Err(format!("`{name}` was not counted:\n{stderr}")),
    }
}

/// The setting that disables, for the C library's own functions, all features beyond those of every x86-64 processor.
const BASELINE: &str = "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX,-AVX_Usable,-ERMS,-FSRM,-SSSE3,-SSE4_1,-SSE4_2";

/// Returns a report of each count beside the table's, and `true` if none is above its tolerance.
fn compare(table: &Table, rustc: &str, counts: &BTreeMap<String, f64>) -> (String, bool) {
    let (mut report, mut outside, mut lower) = (String::new(), 0, false);
    for (name, count) in counts {
        let Some(before) = table.instructions.get(name) else {
            outside += 1;
            let _ = writeln!(report, "{name:<20} {count:>8.1} instructions, not in the table");
            continue;
        };
        let change = count / before - 1.0;
        let above = TOLERANCE < change;
        outside += u32::from(above);
        lower |= change < -TOLERANCE;
        let verdict = if above { " TOO MANY" } else { "" };
        let _ = writeln!(report, "{name:<20} {count:>8.1} instructions, {:+.2} %{verdict}", change * 100.0);
    }
    let inside = counts.len() as u32 - outside;
    if rustc != table.rustc {
        let _ = writeln!(report, "counted with {rustc}, the table with {}: not held against it", table.rustc);
        return (report, true);
    }
    if 0 < outside || lower {
        let _ = writeln!(report, "`cargo xtask instructions --bless` takes these numbers, with a reason in the commit");
    }
    let _ = writeln!(report, "rows: {inside} inside, {outside} outside");
    (report, outside == 0)
}

/// Returns the text of the table.
fn text(rustc: &str, counts: &BTreeMap<String, f64>) -> String {
    let mut text = "# Instructions of a packet-hop, or of an event out of the event list and in again, as counted by\n\
                    # callgrind. Written by `cargo xtask instructions --bless`.\n\n"
        .to_owned();
    let _ = writeln!(text, "rustc = \"{rustc}\"\n\n[instructions]");
    for (name, count) in counts {
        let _ = writeln!(text, "\"{name}\" = {count:.1}");
    }
    text
}

/// Does a workload's work. Returns the number of hops or events.
fn work(name: &str) -> Result<u64, String> {
    let workload =
        WORKLOADS.iter().find(|w| w.name == name).ok_or_else(|| format!("no workload is called `{name}`"))?;
    match workload.work {
        Work::Simulate { traffic, cc, transport } => simulate(traffic, cc, transport),
        Work::Events { pending } => Ok(events(pending)),
    }
}

fn simulate(traffic: &str, cc: &str, transport: &str) -> Result<u64, String> {
    let sets = vec![("transport.kind".to_owned(), transport.to_owned())];
    let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..Overrides::default() };
    let scenario = Scenario::from_toml(&format!("{FAT_TREE}{traffic}"), "counted.toml", Path::new("."), &overrides);
    let mut simulation = Simulation::new(scenario.map_err(|e| e.to_string())?.into_sim_config());
    let mut outcome = None;
    measured(&mut || outcome = Some(simulation.run(&mut ())));
    let progress = outcome.expect("it has run").map_err(|e| e.to_string())?;
    Ok(progress.packet_hops)
}

fn events(pending: u32) -> u64 {
    let mut hold = Hold::new(pending);
    // Most of the initial events have been replaced.
    (0..4 * pending).for_each(|_| _ = hold.step());
    measured(&mut || (0..N_EVENTS).for_each(|_| _ = black_box(hold.step())));
    N_EVENTS
}

/// Runs `work`. Callgrind finds this function by its name, and counts only inside of it.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Prevents the call above from becoming a jump, which would leave this function.
    black_box(());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rustc: &str, count: f64) -> Table {
        let text = text(rustc, &BTreeMap::from([("a hop".to_owned(), count)]));
        toml::from_str(&text).expect("what is written can be read")
    }

    fn passed(table: &Table, rustc: &str, count: f64) -> (String, bool) {
        compare(table, rustc, &BTreeMap::from([("a hop".to_owned(), count)]))
    }

    #[test]
    fn more_instructions_fail_and_fewer_ask_for_a_new_table() {
        let table = table("1 x", 1_000.0);
        let (report, fine) = passed(&table, "1 x", 1_029.0);
        assert!(fine && report.ends_with("+2.90 %\nrows: 1 inside, 0 outside\n"), "{report}");
        let (report, fine) = passed(&table, "1 x", 1_031.0);
        assert!(!fine && report.contains("+3.10 % TOO MANY") && report.contains("--bless"), "{report}");
        assert!(report.ends_with("rows: 0 inside, 1 outside\n"), "{report}");
        let (report, fine) = passed(&table, "1 x", 900.0);
        assert!(fine && report.contains("-10.00 %") && report.contains("--bless"), "{report}");
        let (report, fine) = passed(&table, "2 x", 2_000.0);
        assert!(fine && report.contains("not held"), "{report}");
        assert!(!compare(&table, "1 x", &BTreeMap::from([("another".to_owned(), 1.0)])).1);
    }

    #[test]
    fn every_workload_works_and_is_in_the_table() {
        let committed = include_str!("../instructions.toml");
        let table: Table = toml::from_str(committed).expect("the table is valid");
        assert!(WORKLOADS.iter().all(|w| table.instructions.contains_key(w.name)));
        assert_eq!(table.instructions.len(), WORKLOADS.len());
        assert_eq!(work("event list 4096"), Ok(N_EVENTS));
        assert!(work("perm128 dctcp/tcp").is_ok_and(|hops| 100_000 < hops));
        assert!(work("nothing").is_err());
    }
}
