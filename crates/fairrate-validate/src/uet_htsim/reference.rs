//! The numbers of uet-htsim, from `reference.csv`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::csv::Table;

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

/// Reads the numbers of every case. The column of flags, those of the job in words, is for readers.
pub fn read(path: &Path) -> Result<BTreeMap<String, Reference>, String> {
    of_cases(&Table::read(path)?)
}

fn of_cases(table: &Table) -> Result<BTreeMap<String, Reference>, String> {
    let mut cases = BTreeMap::new();
    for row in table.rows() {
        let over_seeds = |mean: &str, from: &str, to: &str| {
            Ok::<_, String>(OverSeeds { mean: row.number(mean)?, range: (row.number(from)?, row.number(to)?) })
        };
        let reference = Reference {
            mean_us: over_seeds("mean_us", "mean_from_us", "mean_to_us")?,
            largest_us: over_seeds("largest_us", "largest_from_us", "largest_to_us")?,
            sent_again: row.number("sent_again")?,
        };
        if cases.insert(row.text("case")?.to_owned(), reference).is_some() {
            return Err(row.wrong("case", "there a second time"));
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "case,flags,seeds,mean_us,mean_from_us,mean_to_us,largest_us,largest_from_us,largest_to_us,sent_again";

    fn parse(lines: &str) -> Result<BTreeMap<String, Reference>, String> {
        of_cases(&Table::parse(Path::new("r.csv"), &format!("{HEADER}\n{lines}")))
    }

    #[test]
    fn a_line_is_a_case_with_its_numbers() {
        let cases = parse("perm,mixed; 64 values,10,2,1,3,5,4,7,0.5\n").expect("it is sound");
        let perm = cases["perm"];
        assert_eq!((perm.mean_us.mean, perm.largest_us.mean, perm.sent_again), (2.0, 5.0, 0.5));
        assert!(perm.largest_us.has(4.0) && perm.largest_us.has(7.0) && !perm.largest_us.has(7.1));
    }

    #[test]
    fn errors_name_their_line() {
        let error = |lines: &str| parse(lines).expect_err("it is not sound");
        assert_eq!(error("a,b"), "r.csv: line 2: `mean_us` is missing");
        assert_eq!(error("a,b,1,1,1,1,1,1,1"), "r.csv: line 2: `sent_again` is missing");
        assert_eq!(error("a,b,1,1,1,1,1,1,x,1"), "r.csv: line 2: `largest_to_us` is not a number");
        let twice = error("a,b,1,1,1,1,1,1,1,1\na,b,1,1,1,1,1,1,1,1");
        assert_eq!(twice, "r.csv: line 3: `case` is there a second time");
        assert!(of_cases(&Table::parse(Path::new("r.csv"), "case\na\n")).is_err());
    }
}
