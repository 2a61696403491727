//! The numbers of uet-htsim, from `reference.csv`.

use std::collections::BTreeMap;
use std::path::Path;

/// First line of the table. Flags are those of the job in words, for readers.
const HEADER: &str =
    "case,flags,seeds,mean_us,mean_from_us,mean_to_us,largest_us,largest_from_us,largest_to_us,sent_again";

/// A number over the seeds of uet-htsim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverSeeds {
    /// Mean over the seeds.
    pub mean: f64,
    /// Smallest and largest of a seed.
    range: (f64, f64),
}

impl OverSeeds {
    /// Returns `true` if `value` is within the range over the seeds.
    pub fn has(self, value: f64) -> bool {
        self.range.0 <= value && value <= self.range.1
    }
}

/// The numbers of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Mean completion time in microseconds.
    pub mean_us: OverSeeds,
    /// Largest completion time in microseconds.
    pub largest_us: OverSeeds,
    /// Packets sent again, in the mean over the seeds.
    pub sent_again: f64,
}

/// Reads the numbers of every case.
pub fn read(path: &Path) -> Result<BTreeMap<String, Reference>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    parse(&text).map_err(|e| format!("{}, {e}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<String, Reference>, String> {
    if text.lines().next() != Some(HEADER) {
        return Err(format!("line 1: not `{HEADER}`"));
    }
    let mut cases = BTreeMap::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        let at = |what: String| format!("line {}: {what}", i + 1);
        let fields: Vec<&str> = line.split(',').collect();
        let [case, _, _, ref numbers @ ..] = fields[..] else {
            return Err(at("not a case, its flags and its seeds".to_owned()));
        };
        let number = |field: &&str| field.parse::<f64>().map_err(|_| at(format!("`{field}` is no number")));
        let numbers: Vec<f64> = numbers.iter().map(number).collect::<Result<_, _>>()?;
        let [mean, mean_from, mean_to, largest, largest_from, largest_to, sent_again] = numbers[..] else {
            return Err(at(format!("{} numbers after the seeds, not 7", numbers.len())));
        };
        let reference = Reference {
            mean_us: OverSeeds { mean, range: (mean_from, mean_to) },
            largest_us: OverSeeds { mean: largest, range: (largest_from, largest_to) },
            sent_again,
        };
        if cases.insert(case.to_owned(), reference).is_some() {
            return Err(at(format!("`{case}` a second time")));
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_case_with_its_numbers() {
        let cases = parse(&format!("{HEADER}\nperm,mixed; 64 values,10,2,1,3,5,4,7,0.5\n")).expect("it is sound");
        let perm = cases["perm"];
        assert_eq!((perm.mean_us.mean, perm.largest_us.mean, perm.sent_again), (2.0, 5.0, 0.5));
        assert!(perm.largest_us.has(4.0) && perm.largest_us.has(7.0) && !perm.largest_us.has(7.1));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let error = |lines: &str| parse(&format!("{HEADER}\n{lines}")).expect_err("it is not sound");
        assert_eq!(error("a,b"), "line 2: not a case, its flags and its seeds");
        assert_eq!(error("a,b,1,1,1,1,1,1,1"), "line 2: 6 numbers after the seeds, not 7");
        assert_eq!(error("a,b,1,1,1,1,1,1,x,1"), "line 2: `x` is no number");
        assert_eq!(error("a,b,1,1,1,1,1,1,1,1\na,b,1,1,1,1,1,1,1,1"), "line 3: `a` a second time");
        assert!(parse("case\n").is_err());
    }
}
