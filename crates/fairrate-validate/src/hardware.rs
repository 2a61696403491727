//! `cargo xtask hardware`: the modules in `hardware/rtl` beside the laws in Rust, bit by bit, and their size on an
//! FPGA. The table of results is committed; `docs/hardware.md` describes it.
//!
//! The rule of the benches: all outputs of a module equal those of the law, and come after the number of clocks that
//! the module states. It is that of `tests/differential` of `fairrate-kernel`.

mod recorded;
mod results;
mod synthesis;
mod tools;
mod vectors;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use self::results::{Results, Row};
use self::vectors::{Counted, Source};

/// Options of `hardware`.
#[derive(Args)]
pub struct Options {
    /// Compares with the committed table and writes nothing. Leaves out what takes minutes: place and route, and the
    /// synthesis of the whole flow table
    #[arg(long)]
    check: bool,
    /// Leaves out what lacks a program, with a word
    #[arg(long)]
    if_possible: bool,
    /// Only the module of this name
    #[arg(long, value_name = "MODULE")]
    only: Option<String>,
    /// Random steps of a module
    #[arg(long, value_name = "STEPS", default_value_t = 1_000_000)]
    steps: u64,
}

/// Path of the committed results.
const TABLE: &str = "hardware/results.toml";

/// A module with its law.
struct Module {
    /// Name of the module, of its file in `hardware/rtl`, and, before `_bench`, of its bench.
    name: &'static str,
    /// Clocks from an input to its result.
    clocks: &'static str,
    /// Parameters with which it is synthesised, as yosys takes them.
    parameters: &'static [(&'static str, u32)],
    /// The same for `--check`, where the whole module takes minutes.
    small: Option<&'static [(&'static str, u32)]>,
    random: fn(&mut dyn Write, u64) -> std::io::Result<Counted>,
    recorded: fn(&mut dyn Write, &Path) -> Result<Counted, String>,
}

const MODULES: &[Module] = &[
    Module {
        name: "rocc_cp",
        clocks: "14",
        parameters: &[],
        small: None,
        random: vectors::rocc::random,
        recorded: vectors::rocc::recorded,
    },
    Module {
        name: "flow_table",
        clocks: "4",
        parameters: &[("ENTRIES", 1_024)],
        small: Some(&[("ENTRIES", 64)]),
        random: vectors::table::random,
        recorded: vectors::table::recorded,
    },
    Module {
        name: "int_stamp",
        clocks: "4",
        parameters: &[],
        small: None,
        random: vectors::int::random,
        recorded: vectors::int::recorded,
    },
    Module {
        name: "perc_port",
        clocks: "n + 38",
        parameters: &[("FLOWS", 64)],
        small: Some(&[("FLOWS", 8)]),
        random: vectors::perc::random,
        recorded: vectors::perc::recorded,
    },
];

/// Runs benches, synthesises, prints the results, and compares them with the table or writes it. Returns `true` if all
/// agree.
///
/// # Errors
/// If a program is missing and `if_possible` is not set, or a module cannot be built.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    if let Some(what) = tools::missing() {
        if !options.if_possible {
            return Err(format!("the hardware cannot be tested: {what}"));
        }
        println!("not run: {what}: the hardware is left out");
        return Ok(true);
    }
    let is_wanted = |module: &&Module| options.only.as_ref().is_none_or(|only| only == module.name);
    let modules: Vec<&Module> = MODULES.iter().filter(is_wanted).collect();
    if modules.is_empty() {
        let names: Vec<&str> = MODULES.iter().map(|module| module.name).collect();
        return Err(format!("there is no such module; there are {}", names.join(", ")));
    }
    let committed = Results::read(&root.join(TABLE))?;
    // Two lanes: simulations and syntheses.
    let (benches, rows) = std::thread::scope(|scope| {
        let benches = scope.spawn(|| benches(root, &modules, options));
        let rows = synthesis::rows(root, &modules, options.check);
        (benches.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), rows)
    });
    let (benches, mut rows) = (benches?, rows?);
    for row in &mut rows {
        let module = row.module.clone();
        for bench in benches.iter().filter(|bench| bench.module == module) {
            bench.tell(row);
        }
    }
    let versions = synthesis::versions();
    results::print(&rows);
    let n_differ = benches.iter().map(|bench| bench.differ).sum::<u64>();
    if 0 < n_differ {
        println!("{n_differ} steps differ from the laws");
    }
    let cocotb =
        tools::cocotb(root, &modules.iter().map(|module| module.name).collect::<Vec<_>>(), options.if_possible)?;
    let agree = n_differ == 0 && cocotb;
    if options.check {
        return Ok(committed.compare(&rows, &versions) && agree);
    }
    if agree {
        committed.merged(rows, versions).write(&root.join(TABLE))?;
        println!("{TABLE} is written");
    }
    Ok(agree)
}

/// The steps of a module beside its law.
struct Bench {
    module: &'static str,
    counted: Counted,
    /// Number of steps that differ.
    differ: u64,
}

impl Bench {
    /// Writes the steps into the module's row.
    fn tell(&self, row: &mut Row) {
        match self.counted.source {
            Source::Random => row.random_steps = self.counted.steps,
            Source::Recorded(name) => {
                row.recorded_steps = self.counted.steps;
                name.clone_into(&mut row.recorded);
            }
        }
    }
}

/// Runs the benches of all modules.
fn benches(root: &Path, modules: &[&Module], options: &Options) -> Result<Vec<Bench>, String> {
    let mut benches = Vec::new();
    for module in modules {
        let dir = tools::target(root).join(module.name);
        std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let program = tools::build_bench(root, module.name, &dir)?;
        let (random, recorded) = (dir.join("random.txt"), dir.join("recorded.txt"));
        let counted = written(&random, |out| (module.random)(out, options.steps).map_err(|e| e.to_string()))?;
        benches.push(bench(module, &program, &random, counted)?);
        let counted = written(&recorded, |out| (module.recorded)(out, root))?;
        benches.push(bench(module, &program, &recorded, counted)?);
    }
    Ok(benches)
}

/// Writes a file of vectors by `write`.
fn written(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<Counted, String>) -> Result<Counted, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    let counted = write(&mut out)?;
    out.flush().map_err(failed)?;
    Ok(counted)
}

/// Runs a bench on a file of vectors, which it then removes.
fn bench(module: &Module, program: &PathBuf, vectors: &Path, counted: Counted) -> Result<Bench, String> {
    let mut command = Command::new(program);
    command.arg(format!("+vectors={}", vectors.display()));
    let output = tools::output(&mut command)?;
    let result = output.lines().find_map(|line| line.strip_prefix("steps ")?.split_once(", differ "));
    let (steps, differ) = result.ok_or_else(|| format!("{}: the bench has no result:\n{output}", module.name))?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|e| format!("{}: `{text}`: {e}", module.name));
    let (steps, differ) = (number(steps)?, number(differ)?);
    if steps != counted.steps {
        return Err(format!("{}: the bench did {steps} of {} steps", module.name, counted.steps));
    }
    if 0 < differ {
        println!("{}:\n{output}", module.name);
        println!("vectors are in {}", vectors.display());
    } else {
        std::fs::remove_file(vectors).map_err(|e| format!("{}: {e}", vectors.display()))?;
    }
    Ok(Bench { module: module.name, counted, differ })
}
