//! Positions and labels of an axis's ticks, as in `page/scale.js`.

use crate::format;

/// A value with its label.
pub type Tick = (f64, String);

/// Returns about `about` round values from `low` to `high`.
pub fn linear(low: f64, high: f64, about: usize) -> Vec<Tick> {
    let raw = (high - low) / about.max(1) as f64;
    let decade = 10_f64.powi(raw.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|s| raw <= s * decade * 1.0001).unwrap_or(10.0) * decade;
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|i| i as f64 * step).map(|x| (x, between(x, step))).collect()
}

/// Returns the label of a value whose neighbours are `step` away.
fn between(x: f64, step: f64) -> String {
    if x.abs() < step / 1e6 {
        return "0".to_owned();
    }
    let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    if digits == 0 { format::count(x.round()) } else { format!("{x:.digits$}") }
}

/// Returns decades; also 2 and 5, or 3, of each where decades are few, and round values where the axis has less than
/// 0.7 of a decade.
pub fn logarithmic(low: f64, high: f64, about: usize) -> Vec<Tick> {
    let decades = (high / low).log10();
    if decades < 0.7 {
        return linear(low, high, about);
    }
    let about = about as f64;
    let every = (decades / about).ceil().max(1.0) as i32;
    let steps: &[f64] = match decades {
        d if d < about / 3.0 => &[1.0, 2.0, 5.0],
        d if d < about / 2.0 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = exponents.filter(|d| d % every == 0).flat_map(|d| steps.iter().map(move |s| s * 10_f64.powi(d)));
    all.filter(|x| low * 0.9999 <= *x && *x <= high * 1.0001).map(|x| (x, short(x))).collect()
}

/// Returns a number with a unit prefix, as `5k`, `200M`, `0.05`.
fn short(x: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let (size, name) = units.into_iter().find(|(size, _)| *size * 0.9999 <= x).unwrap_or((1.0, ""));
    let value = x / size;
    // The rounding removes the error of powers of ten; ticks have fewer decimals.
    format!("{}{name}", (value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(linear(0.0, 2_600.0, 5)), ["0", "1,000", "2,000"]);
        assert_eq!(texts(linear(0.0, 1.0, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(logarithmic(1.0, 105.0, 6)), ["1", "3", "10", "30", "100"]);
        assert_eq!(texts(logarithmic(1.0, 12.0, 6)), ["1", "2", "5", "10"]);
        assert_eq!(
            texts(logarithmic(900.0, 3e7, 20)),
            ["1k", "2k", "5k", "10k", "20k", "50k", "100k", "200k", "500k", "1M", "2M", "5M", "10M", "20M"]
        );
    }
}
