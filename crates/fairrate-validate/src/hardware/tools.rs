//! The programs that simulate and synthesise hardware, and the environment of cocotb.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns a requirement that this machine lacks; `None` if it has all.
pub fn missing() -> Option<&'static str> {
    let starts = |program: &str, arg: &str| {
        let mut command = Command::new(program);
        command.arg(arg).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let needs = [
        ("verilator", "--version", "needs Verilator"),
        ("iverilog", "-V", "needs Icarus Verilog"),
        ("yosys", "-V", "needs Yosys"),
        ("g++", "--version", "needs g++"),
    ];
    needs.into_iter().find(|(program, arg, _)| !starts(program, arg)).map(|(.., what)| what)
}

/// Returns the directory of all that is built here.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir)).join("hardware")
}

/// Runs a program. Returns its output.
///
/// # Errors
/// If it cannot be run, or fails.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("cannot run `{name}`: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("`{name}` fails:\n{}{}", text(&output.stdout), text(&output.stderr)))
    }
}

/// Builds the bench of a module by Verilator, into `dir`. Returns the program.
///
/// # Errors
/// If it cannot be built.
pub fn build_bench(root: &Path, module: &str, dir: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new("verilator");
    command.args([
        "--binary",
        "--timing",
        "-Wno-fatal",
        "-Wno-WIDTH",
        "-O3",
        "--unroll-count",
        "1",
        "--x-assign",
        "fast",
        "-CFLAGS",
        "-O1",
    ]);
    command.args(["--top", &format!("{module}_bench"), "-o", "bench", "-Mdir"]).arg(dir);
    command.arg(root.join(format!("hardware/bench/{module}_bench.sv")));
    command.arg(root.join(format!("hardware/rtl/{module}.sv")));
    output(&mut command)?;
    Ok(dir.join("bench"))
}

/// Runs the tests by cocotb of the `modules`. Returns `true` if all pass.
///
/// # Errors
/// If cocotb cannot be installed, and `if_possible` is not set.
pub fn cocotb(root: &Path, modules: &[&str], if_possible: bool) -> Result<bool, String> {
    let venv = match environment(root) {
        Ok(venv) => venv,
        Err(why) if if_possible => {
            println!("cocotb is left out: {}", why.lines().next().unwrap_or_default());
            return Ok(true);
        }
        Err(why) => return Err(why),
    };
    let mut command = Command::new(venv.join("bin/python"));
    command.arg(root.join("hardware/cocotb/run.py")).arg("--build").arg(target(root).join("cocotb")).args(modules);
    let name = command.get_program().to_string_lossy().into_owned();
    Ok(command.status().map_err(|e| format!("cannot run `{name}`: {e}"))?.success())
}

/// Returns the environment with cocotb, which it makes if there is none.
fn environment(root: &Path) -> Result<PathBuf, String> {
    let venv = target(root).join("venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        output(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r"]);
    output(pip.arg(root.join("hardware/cocotb/requirements.txt")))?;
    Ok(venv)
}
