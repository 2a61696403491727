//! A paper's statements, and the verdict of a measurement on each.

use std::collections::BTreeMap;
use std::fmt;

use fairrate_report::bootstrap::FEW;
use fairrate_report::stats;
use serde::Serialize;

/// Tolerance of a change, in percentage points; but no more than half of the change.
const POINTS: f64 = 5.0;

/// Returns the tolerance of `change`, in percentage points.
fn slack(change: f64) -> f64 {
    POINTS.min(change.abs() / 2.0)
}

/// The test a measured number must pass to support a sentence. Where the paper gives no tolerance it is ours, and the
/// sentence says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// A value, and the largest relative distance from it.
    About(f64, f64),
    /// An upper bound.
    AtMost(f64),
    /// A lower bound.
    AtLeast(f64),
    /// A factor, met from three quarters of it to four thirds, since factors are read off plots or rounded. A smaller
    /// factor is weaker as long as it is above 1.
    Times(f64),
    /// A lower bound of a factor. A smaller factor is weaker as long as it is above 1.
    AtLeastTimes(f64),
    /// A change in per cent, or a larger change down; met up to five points above it, or half of the change if that is
    /// less. A smaller change is weaker as long as it is below 0.
    Less(f64),
    /// A change in per cent up; met from as many points below it to four thirds of the factor that it is. A smaller
    /// change is weaker as long as it is above 0.
    More(f64),
    /// A change in per cent that is called none: met up to five points below and above 0.
    Similar,
    /// Both ends of a range of values.
    Between(f64, f64),
    /// A range of factors, as a text gives it for several sizes or loads: met from three quarters of the least to four
    /// thirds of the largest. A smaller factor is weaker as long as it is above 1.
    TimesFromTo(f64, f64),
    /// No number in the paper: the measured number is shown beside its words.
    Words,
}

impl Rule {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::About(paper, within) => (value - paper).abs() <= within * paper.abs(),
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => least <= value,
            Self::Times(factor) => 0.75 * factor <= value && value <= factor / 0.75 && 1.0 < value,
            Self::AtLeastTimes(factor) => factor <= value,
            Self::Less(change) => value <= change + slack(change),
            Self::More(change) => {
                change - slack(change) <= value && 1.0 + value / 100.0 <= (1.0 + change / 100.0) / 0.75
            }
            Self::Similar => value.abs() <= POINTS,
            Self::Between(least, most) => least <= value && value <= most,
            Self::TimesFromTo(least, most) => 0.75 * least <= value && value <= most / 0.75 && 1.0 < value,
            Self::Words => true,
        }
    }

    /// Returns `true` if some value of the interval from `low` to `high` passes. The values that pass are an interval
    /// too: it includes `low` or `high`, or lies between them.
    fn holds_within(self, low: f64, high: f64) -> bool {
        let within = match self {
            Self::About(paper, _) | Self::Times(paper) | Self::More(paper) | Self::Between(paper, _) => {
                low <= paper && paper <= high
            }
            Self::Similar => low <= 0.0 && 0.0 <= high,
            _ => false,
        };
        within || self.holds(low) || self.holds(high)
    }

    /// Returns `true` if `value` has at least the right direction, but less than the paper says.
    fn points_there(self, value: f64) -> bool {
        match self {
            Self::Times(factor) | Self::AtLeastTimes(factor) | Self::TimesFromTo(factor, _) => {
                1.0 < value && value < factor
            }
            Self::Less(_) => value < 0.0,
            Self::More(change) => 0.0 < value && value < change,
            _ => false,
        }
    }

    /// Returns the rule in words, with numbers in `unit`.
    fn text(self, unit: &str) -> String {
        match self {
            Self::About(paper, 0.0) => show(paper, unit),
            Self::About(paper, within) => format!("{} \u{b1} {:.0} %", show(paper, unit), within * 100.0),
            Self::AtMost(most) => format!("at most {}", show(most, unit)),
            Self::AtLeast(least) => format!("at least {}", show(least, unit)),
            Self::Times(factor) => format!("{} times", short(factor)),
            Self::AtLeastTimes(factor) => format!("at least {} times", short(factor)),
            Self::Less(change) | Self::More(change) => format!("{change:+.0} %"),
            Self::Similar => format!("0 % \u{b1} {POINTS:.0} points"),
            Self::Between(least, most) => format!("{} to {}", short(least), show(most, unit)),
            Self::TimesFromTo(least, most) => format!("{} to {} times", short(least), short(most)),
            Self::Words => "no number".to_owned(),
        }
    }
}

/// The degree to which a measurement supports a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The measurement agrees with the paper.
    Reproduced,
    /// The measurement agrees with the paper, and would under other algorithms too.
    Vacuous,
    /// The direction is the paper's, but the effect is smaller.
    Weaker,
    /// The measurement contradicts the paper.
    NotReproduced,
    /// The interval includes values that pass and values that do not, or there is no value.
    Undecided,
    /// There are too few seeds to decide.
    FewSeeds,
    /// The number is only shown beside the paper's words.
    Shown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::Vacuous => "vacuous",
            Self::Weaker => "weaker",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
            Self::FewSeeds => "too few seeds",
            Self::Shown => "shown",
        })
    }
}

/// Numbers of claims by verdict.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<Verdict, usize>);

impl Tally {
    /// Returns the numbers of `claims`.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut tally = Self::default();
        for claim in claims {
            *tally.0.entry(claim.verdict()).or_default() += 1;
        }
        tally
    }

    /// Adds the numbers of `other`.
    pub fn add(&mut self, other: &Self) {
        for (verdict, n) in &other.0 {
            *self.0.entry(*verdict).or_default() += n;
        }
    }

    /// Returns the number of claims with `verdict`.
    pub fn get(&self, verdict: Verdict) -> usize {
        self.0.get(&verdict).copied().unwrap_or(0)
    }

    /// Returns `true` if no claim was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers as text, such as `12 reproduced, 3 weaker`.
    pub fn words(&self) -> String {
        self.0.iter().map(|(verdict, n)| format!("{n} {verdict}")).collect::<Vec<_>>().join(", ")
    }
}

/// A sentence of a paper, with the values measured for it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Name, unique within the figure.
    pub id: String,
    /// The paper's statement, in our words or quoted.
    pub sentence: String,
    /// The test a number must pass to support the sentence.
    pub rule: Rule,
    /// Unit of the number; empty for ratios and shares.
    pub unit: &'static str,
    /// The measured values, one per seed; a single value where nothing is random.
    pub values: Vec<f64>,
    /// `true` if the values depend on a seed.
    pub is_random: bool,
    /// The reason for a result that the paper does not have, measured by changing that one thing.
    pub cause: Option<String>,
    /// `true` if the sentence is also supported where other algorithms stand for those it names ([`Figure::judged`]).
    ///
    /// [`Figure::judged`]: crate::Figure::judged
    pub is_vacuous: bool,
    /// The same number with one thing changed, which is a cause if the sentence is supported then.
    pub changes: Vec<Change>,
}

/// The values of a claim's number with one thing changed.
#[derive(Clone, Debug)]
pub struct Change {
    /// The change, as `gains are whole on low queues`.
    pub what: String,
    /// The changed values, in the order of the claim's.
    pub values: Vec<f64>,
}

impl Claim {
    /// Returns a claim about a value that does not depend on a seed.
    pub fn exact(id: &str, sentence: &str, rule: Rule, unit: &'static str, value: Option<f64>) -> Self {
        let values = value.into_iter().collect();
        Self { is_random: false, ..Self::mean(id, sentence, rule, unit, values) }
    }

    /// Returns a claim about the mean over seeds of `values`.
    pub fn mean(id: &str, sentence: &str, rule: Rule, unit: &'static str, values: Vec<f64>) -> Self {
        let (id, sentence) = (id.to_owned(), sentence.to_owned());
        Self { id, sentence, rule, unit, values, is_random: true, is_vacuous: false, cause: None, changes: Vec::new() }
    }

    /// Returns the claim with `cause`.
    #[must_use]
    pub fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// Returns the claim with `cause`, if its verdict is weaker or not reproduced; otherwise without a cause.
    #[must_use]
    pub fn explained(self, cause: Option<String>) -> Self {
        let fails = matches!(self.verdict(), Verdict::Weaker | Verdict::NotReproduced);
        Self { cause: cause.filter(|_| fails), ..self }
    }

    /// Returns the claim with the `values` its number takes if `what` is changed. Empty `values` add nothing.
    #[must_use]
    pub fn changing(mut self, what: &str, values: Vec<f64>) -> Self {
        if !values.is_empty() {
            self.changes.push(Change { what: what.to_owned(), values });
        }
        self
    }

    /// Returns the claim about `change`: the same rule, tested against the changed values.
    #[must_use]
    pub fn changed(&self, change: &Change) -> Self {
        Self { values: change.values.clone(), is_vacuous: false, cause: None, changes: Vec::new(), ..self.clone() }
    }

    /// Returns the reasons, in words, why a sentence is not supported: its number with each change, its cause, and a
    /// note if no cause is known.
    pub fn why(&self) -> Vec<String> {
        if !matches!(self.verdict(), Verdict::Weaker | Verdict::NotReproduced) {
            return self.cause.iter().cloned().collect();
        }
        let changed: Vec<(&Change, Self)> = self.changes.iter().map(|change| (change, self.changed(change))).collect();
        let line =
            |(change, claim): &(&Change, Self)| format!("If {}: {}, {}.", change.what, claim.text(), claim.verdict());
        let is_known = changed.iter().any(|(_, claim)| claim.verdict() == Verdict::Reproduced);
        let unknown = (!is_known && self.cause.is_none()).then(|| "No cause is known.".to_owned());
        changed.iter().map(line).chain(self.cause.clone()).chain(unknown).collect()
    }

    /// Returns the mean over seeds and both ends of its 95 % interval by Student's t; with one value, both ends are the
    /// mean.
    pub fn measured(&self) -> Option<(f64, f64, f64)> {
        let mean = stats::mean(&self.values).filter(|mean| mean.is_finite())?;
        let half = stats::student_half_width(&self.values).unwrap_or(0.0);
        Some((mean, mean - half, mean + half))
    }

    /// Returns the verdict on the sentence: by the whole interval, over at least five seeds.
    pub fn verdict(&self) -> Verdict {
        if self.rule == Rule::Words {
            return Verdict::Shown;
        }
        let Some((mean, low, high)) = self.measured() else { return Verdict::Undecided };
        if self.is_random && self.values.len() < FEW {
            return Verdict::FewSeeds;
        }
        let all = |holds: &dyn Fn(f64) -> bool| [low, mean, high].iter().all(|&value| holds(value));
        if all(&|value| self.rule.holds(value)) {
            if self.is_vacuous { Verdict::Vacuous } else { Verdict::Reproduced }
        } else if self.rule.holds_within(low, high) {
            Verdict::Undecided
        } else if all(&|value| self.rule.points_there(value)) {
            Verdict::Weaker
        } else {
            Verdict::NotReproduced
        }
    }

    /// Returns the paper's number as text.
    pub fn paper(&self) -> String {
        self.rule.text(self.unit)
    }

    /// Returns the measured mean with its interval as text.
    pub fn text(&self) -> String {
        match self.measured() {
            None => "-".to_owned(),
            Some((mean, low, high)) if low < high => {
                format!("{} [{}, {}]", show(mean, self.unit), short(low), short(high))
            }
            Some((mean, ..)) => show(mean, self.unit),
        }
    }
}

fn show(value: f64, unit: &str) -> String {
    if unit.is_empty() { short(value) } else { format!("{} {unit}", short(value)) }
}

/// Formats `value` with three digits.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if 100.0 <= v || v == 0.0 => 0,
        v if 10.0 <= v => 1,
        v if 1.0 <= v => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rule: Rule, values: &[f64]) -> Verdict {
        Claim::mean("id", "a sentence", rule, "", values.to_vec()).verdict()
    }

    #[test]
    fn the_whole_interval_decides_and_few_seeds_do_not() {
        assert_eq!(verdict(Rule::AtLeast(0.8), &[0.81, 0.82, 0.83, 0.82, 0.81]), Verdict::Reproduced);
        assert_eq!(verdict(Rule::AtLeast(0.8), &[0.75, 0.85, 0.79, 0.83, 0.81]), Verdict::Undecided);
        assert_eq!(verdict(Rule::AtLeast(0.8), &[0.7, 0.71, 0.7, 0.72, 0.7]), Verdict::NotReproduced);
        // 1.5, and 0.86 to either side: neither the mean nor an end is within a tenth of 1, but values between them
        // are.
        let wide = [0.9, 0.9, 1.3, 1.9, 2.5];
        assert_eq!(verdict(Rule::About(1.0, 0.1), &wide), Verdict::Undecided);
        assert_eq!(verdict(Rule::About(4.0, 0.1), &wide), Verdict::NotReproduced);
        assert_eq!(verdict(Rule::AtLeast(0.8), &[0.9; 4]), Verdict::FewSeeds);
        // Deviation sqrt(2), over sqrt(2), times 12.706.
        let two = Claim::mean("id", "", Rule::Words, "", vec![1.0, 3.0]).measured().expect("there are values");
        assert!((two.0 - 2.0).abs() < 1e-12 && (two.2 - 14.706).abs() < 1e-9, "{two:?}");
        assert_eq!(Claim::exact("id", "", Rule::AtLeast(0.8), "", Some(0.9)).verdict(), Verdict::Reproduced);
        assert_eq!(Claim::exact("id", "", Rule::AtLeast(0.8), "", None).verdict(), Verdict::Undecided);
        assert_eq!(verdict(Rule::Words, &[]), Verdict::Shown);
    }

    #[test]
    fn a_change_with_which_the_sentence_holds_is_a_cause() {
        let claim = |value| Claim::exact("id", "", Rule::AtMost(2.5), "ms", Some(value));
        assert!(claim(2.0).changing("it is warm", vec![1.0]).why().is_empty());
        assert_eq!(claim(7.0).why(), ["No cause is known."]);
        let changed = claim(7.0).changing("it is warm", vec![5.0]).changing("it rains", vec![]);
        assert_eq!(changed.why(), ["If it is warm: 5.00 ms, not reproduced.", "No cause is known."]);
        assert_eq!(changed.changing("it snows", vec![2.0]).why()[1], "If it snows: 2.00 ms, reproduced.");
        assert_eq!(claim(7.0).because("It is so.").why(), ["It is so."]);
    }

    /// For a factor of 4, three quarters are enough and four thirds not too much; and a number below 1 is not a factor.
    #[test]
    fn factors_are_bounded_on_both_sides() {
        let of = |value| verdict(Rule::Times(4.0), &[value; 5]);
        let expected = [Verdict::NotReproduced, Verdict::Weaker, Verdict::Reproduced, Verdict::NotReproduced];
        assert_eq!([0.9, 2.9, 5.3, 5.4].map(of), expected);
        assert_eq!(verdict(Rule::Times(1.2), &[0.95; 5]), Verdict::NotReproduced);
        let least = |value| verdict(Rule::AtLeastTimes(2.0), &[value; 5]);
        assert_eq!([0.9, 1.5, 20.0].map(least), [Verdict::NotReproduced, Verdict::Weaker, Verdict::Reproduced]);
        let change = |value| verdict(Rule::Less(-33.0), &[value; 5]);
        let expected = [Verdict::Reproduced, Verdict::Reproduced, Verdict::Weaker, Verdict::NotReproduced];
        assert_eq!([-50.0, -28.0, -20.0, 3.0].map(change), expected);
        assert_eq!(verdict(Rule::More(60.0), &[30.0; 5]), Verdict::Weaker);
        // 1.6 times, at most 2.13; and half of 5 % are 2.5 points.
        let up = [55.0, 113.0, 114.0].map(|value| verdict(Rule::More(60.0), &[value; 5]));
        assert_eq!(up, [Verdict::Reproduced, Verdict::Reproduced, Verdict::NotReproduced]);
        let down = [-2.5, -2.4, 0.0].map(|value| verdict(Rule::Less(-5.0), &[value; 5]));
        assert_eq!(down, [Verdict::Reproduced, Verdict::Weaker, Verdict::NotReproduced]);
        let similar = [-5.1, -5.0, 5.0, 5.1].map(|value| verdict(Rule::Similar, &[value; 5]) == Verdict::Reproduced);
        assert_eq!(similar, [false, true, true, false]);
        let between = [0.79, 0.80, 0.85, 0.86].map(|value| verdict(Rule::Between(0.8, 0.85), &[value; 5]));
        let expected = [Verdict::NotReproduced, Verdict::Reproduced, Verdict::Reproduced, Verdict::NotReproduced];
        assert_eq!(between, expected);
        let range = |value| verdict(Rule::TimesFromTo(2.0, 3.0), &[value; 5]);
        let expected = [Verdict::NotReproduced, Verdict::Weaker, Verdict::Reproduced, Verdict::NotReproduced];
        assert_eq!([0.9, 1.4, 3.9, 4.1].map(range), expected);
        let claim = Claim::exact("id", "", Rule::About(2.0, 0.25), "ms", Some(1.234));
        assert_eq!((claim.paper(), claim.text()), ("2.00 ms \u{b1} 25 %".to_owned(), "1.23 ms".to_owned()));
    }
}
