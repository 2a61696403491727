//! The table of results: `hardware/results.toml`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

/// The committed table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Versions of the programs with which it was made.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The rows.
    #[serde(default)]
    pub row: Vec<Row>,
}

/// The results of a module.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Name of the module.
    pub module: String,
    /// Parameters, as `ENTRIES=1024`; empty: as written.
    pub parameters: String,
    /// Clocks from an input to its result.
    pub clocks: String,
    /// Random steps that were equal to the law's.
    pub random_steps: u64,
    /// Steps of a recorded simulation that were equal to the law's.
    pub recorded_steps: u64,
    /// The scenario that was recorded.
    pub recorded: String,
    /// Look-up tables of Virtex-7.
    pub lut: u64,
    /// Flip-flops.
    pub ff: u64,
    /// DSP48E1 slices.
    pub dsp: u64,
    /// Block RAMs of 18 Kbit; one of 36 Kbit counts twice.
    pub bram18: u64,
    /// Cells on the longest path between registers: look-up tables, carries and multiplexers.
    pub depth: u64,
    /// Delay of the cells on the slowest path, without wires, in picoseconds.
    pub cells_ps: u64,
    /// The module after place and route on another device.
    #[serde(default)]
    pub routed: Option<Routed>,
}

/// A module after place and route.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routed {
    /// The device.
    pub device: String,
    /// Its logic cells, with those of the shift registers around the module.
    pub cells: u64,
    /// Largest frequency of the clock, in MHz.
    pub mhz: f64,
}

impl Row {
    /// Returns the name of a row: the module with its parameters.
    pub fn name(&self) -> String {
        [self.module.as_str(), self.parameters.as_str()].join(" ").trim_end().to_owned()
    }
}

impl Results {
    /// Reads the table at `path`; without a file it is empty.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<Self, String> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Returns the table with `rows` in place of those of the same names.
    pub fn merged(mut self, rows: Vec<Row>, versions: BTreeMap<String, String>) -> Self {
        for row in rows {
            match self.row.iter_mut().find(|old| old.name() == row.name()) {
                Some(old) => *old = row,
                None => self.row.push(row),
            }
        }
        Self { versions, ..self }
    }

    /// Writes the table to `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let beside = path.with_extension("toml.part");
        std::fs::write(&beside, self.text()).map_err(failed)?;
        std::fs::rename(&beside, path).map_err(failed)
    }

    /// Returns the table as TOML.
    fn text(&self) -> String {
        let mut text = "# Written by `cargo xtask hardware`, and compared by `cargo xtask hardware --check`: docs/hardware.md.\n\n\
                        [versions]\n"
            .to_owned();
        for (program, version) in &self.versions {
            let _ = writeln!(text, "{program} = \"{version}\"");
        }
        for row in &self.row {
            let Row { module, parameters, clocks, random_steps, recorded_steps, recorded, .. } = row;
            let Row { lut, ff, dsp, bram18, depth, cells_ps, .. } = row;
            let _ = write!(
                text,
                "\n[[row]]\nmodule = \"{module}\"\nparameters = \"{parameters}\"\nclocks = \"{clocks}\"\n\
                 random_steps = {random_steps}\nrecorded_steps = {recorded_steps}\nrecorded = \"{recorded}\"\n\
                 lut = {lut}\nff = {ff}\ndsp = {dsp}\nbram18 = {bram18}\ndepth = {depth}\ncells_ps = {cells_ps}\n"
            );
            if let Some(Routed { device, cells, mhz }) = &row.routed {
                let _ = writeln!(text, "routed = {{ device = \"{device}\", cells = {cells}, mhz = {mhz:.1} }}");
            }
        }
        text
    }

    /// Compares `rows` with the table's, and prints what differs. Other versions of the programs make other netlists,
    /// so sizes are then shown and not compared. Returns `true` if all agree.
    pub fn compare(&self, rows: &[Row], versions: &BTreeMap<String, String>) -> bool {
        let yosys = |versions: &BTreeMap<String, String>| versions.get("yosys").cloned().unwrap_or_default();
        let same_yosys = yosys(&self.versions) == yosys(versions);
        if !same_yosys {
            println!("sizes are not compared: the table is of yosys {}", yosys(&self.versions));
        }
        let (mut inside, mut outside) = (0, 0);
        for row in rows {
            let old = self.row.iter().find(|old| old.name() == row.name());
            let kept = |row: &Row| (row.clocks.clone(), row.random_steps, row.recorded_steps, row.recorded.clone());
            let sizes = |row: &Row| [row.lut, row.ff, row.dsp, row.bram18, row.depth, row.cells_ps];
            let agrees = |old: &Row| kept(old) == kept(row) && (!same_yosys || sizes(old) == sizes(row));
            if old.is_some_and(agrees) {
                inside += 1;
            } else {
                outside += 1;
                println!("{}: another row than the table's; `cargo xtask hardware` writes it anew", row.name());
                if let Some(old) = old {
                    println!("  table: {:?} {:?}\n  now:   {:?} {:?}", kept(old), sizes(old), kept(row), sizes(row));
                }
            }
        }
        println!("rows: {inside} inside, {outside} outside");
        outside == 0
    }
}

/// Prints the rows as a table.
pub fn print(rows: &[Row]) {
    println!(
        "{:<28} {:>8} {:>10} {:>9} {:>7} {:>7} {:>4} {:>6} {:>6} {:>8}  routed",
        "module", "clocks", "random", "recorded", "LUT", "FF", "DSP", "BRAM18", "depth", "cells ns"
    );
    for row in rows {
        let routed =
            row.routed.as_ref().map_or(String::new(), |r| format!("{}: {} cells, {:.1} MHz", r.device, r.cells, r.mhz));
        let ns = row.cells_ps as f64 / 1e3;
        println!(
            "{:<28} {:>8} {:>10} {:>9} {:>7} {:>7} {:>4} {:>6} {:>6} {:>8.2}  {routed}",
            row.name(),
            row.clocks,
            row.random_steps,
            row.recorded_steps,
            row.lut,
            row.ff,
            row.dsp,
            row.bram18,
            row.depth,
            ns
        );
    }
}
