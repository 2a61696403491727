//! Sizes and paths: Yosys for Virtex-7, and nextpnr after place and route on a device of another family.
//!
//! Yosys does not route. Its depth is the number of cells on the longest path between registers, and its delay the sum
//! of those cells' delays, from its models of the 7 series (those of an Artix-7). Wires come on top: half of a path or
//! more.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::Module;
use super::results::{Routed, Row};
use super::tools::{output, target};

/// The device of place and route.
const DEVICE: &str = "iCE40 HX8K";

/// Returns the versions of the programs.
pub fn versions() -> BTreeMap<String, String> {
    let version = |program: &str, arg: &str| {
        let output = Command::new(program).arg(arg).output().ok()?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        text.split_whitespace()
            .map(|word| word.trim_matches(['"', ')', '(']))
            .find(|w| w.contains('.') && w.starts_with(|c: char| c.is_ascii_digit()))
            .map(str::to_owned)
    };
    let programs = [("yosys", "-V"), ("verilator", "--version"), ("nextpnr-ice40", "-V")];
    programs.into_iter().filter_map(|(name, arg)| Some((name.to_owned(), version(name, arg)?))).collect()
}

/// Synthesises all modules. With `check`, the small forms of large modules, without place and route.
pub fn rows(root: &Path, modules: &[&Module], check: bool) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for module in modules {
        if let Some(small) = module.small {
            rows.push(virtex7(root, module, small)?);
        }
        if check && module.small.is_some() {
            continue;
        }
        let mut row = virtex7(root, module, module.parameters)?;
        if !check {
            row.routed = routed(root, module)?;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Synthesises a module for Virtex-7.
fn virtex7(root: &Path, module: &Module, parameters: &[(&str, u32)]) -> Result<Row, String> {
    let (name, source) = (module.name, root.join(format!("hardware/rtl/{}.sv", module.name)));
    let set = parameters.iter().map(|(key, value)| format!("chparam -set {key} {value} {name}; "));
    let chparam = set.collect::<Vec<_>>().concat();
    // The hierarchy is kept until the end, so that a module with many instances is synthesised once. Paths end at
    // registers, DSP slices and block RAMs.
    let script = format!(
        "read_verilog -sv {}; {chparam}synth_xilinx -family xc7 -nowidelut -noiopad -noclkbuf -top {name}; flatten; \
         tee -o /dev/stdout stat; design -save mapped; delete t:FD* t:DSP48E1 t:RAMB*; tee -o /dev/stdout ltp; \
         design -load mapped; read_verilog -lib -specify +/xilinx/cells_sim.v; tee -o /dev/stdout sta",
        source.display()
    );
    let text = output(Command::new("yosys").args(["-q", "-p", &script]))?;
    let sizes = cells(&text);
    let sum = |names: &[&str]| -> u64 {
        let of = |name: &&str| sizes.iter().filter(|(cell, _)| cell.starts_with(name)).map(|(_, n)| n).sum::<u64>();
        names.iter().map(of).sum()
    };
    let after = |mark: &str| {
        let rest = text.split(mark).nth(1)?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    let missing = |what: &str| format!("{name}: yosys tells no {what}");
    let arrival = text
        .lines()
        .find(|line| line.starts_with("Latest arrival time"))
        .and_then(|line| line.trim_end_matches(':').rsplit(' ').next()?.parse().ok());
    Ok(Row {
        module: name.to_owned(),
        parameters: parameters.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
        clocks: module.clocks.to_owned(),
        // An inverter is a look-up table, if it is not absorbed; RAM32M and RAM64M are four of them.
        lut: sum(&["LUT", "INV"]) + 4 * sum(&["RAM32M", "RAM64M"]) + sum(&["SRL"]),
        ff: sum(&["FD"]),
        dsp: sum(&["DSP48E1"]),
        bram18: sum(&["RAMB18"]) + 2 * sum(&["RAMB36"]),
        depth: after("(length=").ok_or_else(|| missing("longest path"))?,
        cells_ps: arrival.ok_or_else(|| missing("arrival time"))?,
        ..Row::default()
    })
}

/// Returns the numbers of cells in the output of `stat`.
fn cells(text: &str) -> BTreeMap<String, u64> {
    let begin = text.lines().skip_while(|line| !line.contains("Number of cells:")).skip(1);
    let cell = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    begin.map_while(cell).collect()
}

/// Places and routes the module's file in `hardware/route`, which has it between shift registers; `None` if there is no
/// such file, or no nextpnr.
fn routed(root: &Path, module: &Module) -> Result<Option<Routed>, String> {
    let top = format!("{}_route", module.name);
    let (rtl, route) =
        (root.join(format!("hardware/rtl/{}.sv", module.name)), root.join(format!("hardware/route/{top}.sv")));
    if !route.exists() || Command::new("nextpnr-ice40").arg("-V").output().is_err() {
        return Ok(None);
    }
    let dir = target(root).join(module.name);
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let netlist = dir.join("route.json");
    let script = format!(
        "read_verilog -sv {} {}; synth_ice40 -top {top} -json {}",
        rtl.display(),
        route.display(),
        netlist.display()
    );
    output(Command::new("yosys").args(["-q", "-p", &script]))?;
    let mut command = Command::new("nextpnr-ice40");
    command.args(["--hx8k", "--package", "ct256", "--seed", "1", "--freq", "150", "--timing-allow-fail"]);
    command.args(["--pcf-allow-unconstrained", "--json"]).arg(&netlist);
    let report = command.output().map_err(|e| format!("nextpnr-ice40: {e}"))?;
    let text = String::from_utf8_lossy(&report.stderr).into_owned();
    let frequency = text.lines().rev().find_map(|line| {
        let rest = line.split("Max frequency for clock").nth(1)?.split(": ").nth(1)?;
        rest.split(' ').next()?.parse().ok()
    });
    let used =
        text.lines().find_map(|line| line.split("ICESTORM_LC:").nth(1)?.trim().split('/').next()?.trim().parse().ok());
    match (frequency, used) {
        (Some(mhz), Some(cells)) => Ok(Some(Routed { device: DEVICE.to_owned(), cells, mhz })),
        _ => {
            Err(format!("{top}: nextpnr has no result:\n{}", text.lines().rev().take(5).collect::<Vec<_>>().join("\n")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_from_the_statistics() {
        let text = "   Number of processes:   0\n   Number of cells:     12\n     FDRE      3\n     LUT2    9\n\nEnd\n";
        assert_eq!(cells(text), BTreeMap::from([("FDRE".to_owned(), 3), ("LUT2".to_owned(), 9)]));
    }
}
