//! Section IV-C: RoCC's switch on an FPGA. The modules in `hardware/rtl` after synthesis, as shares of the paper's
//! device.
//!
//! The numbers are those of `hardware/results.toml`, which `cargo xtask hardware` measures with Yosys. The rules: the
//! paper says that its circuits "only" need some per cent, in whole per cents as its tool reports them, cut and not
//! rounded; so ours must need less than the next whole per cent. Yosys does not route, so it has no frequency: what it
//! says of the slowest path is shown beside the paper's.

use fairrate_report::panel::{Axis, Panel};

use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "rocc/hardware",
    title: "RoCC's switch on an FPGA: shares of a Virtex-7",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const TABLE: &str = include_str!("../../hardware.toml");
/// Look-up tables and flip-flops of an XC7V2000T, the paper's device.
const LUTS: f64 = 1_221_600.0;
const FFS: f64 = 2_443_200.0;

/// A module that the paper has too.
struct Module {
    name: &'static str,
    /// Its rows' parameters in the table.
    parameters: &'static str,
    words: &'static str,
    /// The paper's per cents of flip-flops and look-up tables, and its frequency in MHz.
    says: [f64; 3],
}

const MODULES: [Module; 2] = [
    Module { name: "rocc_cp", parameters: "", words: "congestion point", says: [1.0, 2.0, 370.0] },
    Module { name: "flow_table", parameters: "ENTRIES=1024", words: "flow table of 1,024", says: [4.0, 4.0, 200.56] },
];

/// Returns the value of `key` in the row of a module; NaN if the table lacks it.
fn value(module: &Module, key: &str) -> f64 {
    let field = |row: &str, key: &str| {
        let values = row.lines().filter_map(|line| line.split_once(" = "));
        values.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value.trim_matches('"').to_owned())
    };
    let is_its = |row: &&str| {
        field(row, "module").as_deref() == Some(module.name)
            && field(row, "parameters").as_deref() == Some(module.parameters)
    };
    let row = TABLE.split("[[row]]").find(is_its);
    row.and_then(|row| field(row, key)?.parse().ok()).unwrap_or(f64::NAN)
}

fn runs(_: &Scale) -> Vec<Run> {
    let run = |module: &'static Module| {
        Run::calculated("synthesis", module.words, move || {
            Point::of([
                ("ff", 100.0 * value(module, "ff") / FFS),
                ("lut", 100.0 * value(module, "lut") / LUTS),
                ("cells", 1e6 / value(module, "cells_ps")),
                ("depth", value(module, "depth")),
            ])
        })
    };
    MODULES.iter().map(run).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let words = MODULES.each_ref().map(|module| module.words);
    let draw = |title: &str, what: &str, which: usize, y: Axis| {
        let ours = MODULES.iter().map(|module| points.values("synthesis", module.words, what)).collect();
        let paper = MODULES.iter().map(|module| vec![module.says[which]]).collect();
        let lines = vec![
            Compared { name: "paper".to_owned(), cc: "line-rate", values: paper },
            Compared { name: "ours".to_owned(), cc: "rocc", values: ours },
        ];
        words_panel(title, &words, y, lines)
    };
    let share = || Axis::new("share of the device (%)").showing(0.0, 6.0);
    vec![
        draw("flip-flops", "ff", 0, share()),
        draw("look-up tables", "lut", 1, share()),
        draw("clock; ours without wires", "cells", 2, Axis::new("frequency (MHz)").showing(0.0, 500.0)),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |module: &'static Module| {
        let [ff, lut, mhz] = module.says;
        let id = module.name.replace('_', "-");
        let measured = |what: &str| points.mean("synthesis", module.words, what);
        let claim = |what: &str, name: &str, says: f64| {
            let sentence = format!("the {} needs {says} % of the {name} (cut to whole per cents)", module.words);
            Claim::exact(&format!("{id}-{what}"), &sentence, Rule::AtMost(says + 1.0), "%", measured(what))
        };
        let sentence = format!("the {} runs at {mhz} MHz; ours, with cells and without wires", module.words);
        let clock = Claim::exact(&format!("{id}-clock"), &sentence, Rule::Words, "MHz", measured("cells"));
        [claim("ff", "flip-flops", ff), claim("lut", "look-up tables", lut), clock]
    };
    MODULES.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number that the figure shows is in the committed table.
    #[test]
    fn the_table_has_the_modules() {
        for module in &MODULES {
            for key in ["ff", "lut", "cells_ps", "depth"] {
                assert!(value(module, key).is_finite(), "{} {key}", module.name);
            }
        }
    }
}
