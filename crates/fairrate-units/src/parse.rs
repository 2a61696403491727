use std::fmt;

/// A unit of a quantity and its size in the base unit.
pub(crate) struct Unit {
    pub name: &'static str,
    pub factor: u64,
}

/// The reason why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError {
    message: String,
    help: String,
}

impl ParseQuantityError {
    /// Returns the correction, for instance "write `8us`".
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for ParseQuantityError {}

/// Parses `NUMBER UNIT` (a decimal number, optional space) without a detour over floats; returns the quantity in the
/// base unit, rounded down. An error is a quantity above zero that is rounded to zero.
pub(crate) fn parse_quantity(text: &str, what: &str, units: &[Unit], example: &str) -> Result<u64, ParseQuantityError> {
    let (value, is_whole) = parse_rounded(text, what, units, example)?;
    if value == 0 && !is_whole {
        let (message, least) = (format!("less than 1{} in {what} `{text}`", units[0].name), units[0].name);
        return Err(ParseQuantityError { message, help: format!("write `0{least}`, or at least `1{least}`") });
    }
    Ok(value)
}

/// Parses a quantity as [`parse_quantity`] does; an error is one that is not whole in the base unit.
pub(crate) fn parse_whole(text: &str, what: &str, units: &[Unit], example: &str) -> Result<u64, ParseQuantityError> {
    let (value, is_whole) = parse_rounded(text, what, units, example)?;
    if !is_whole {
        let (message, unit) = (format!("a fraction of 1{} in {what} `{text}`", units[0].name), units[0].name);
        let help = format!("write `{value}{unit}` or `{}{unit}`", value.saturating_add(1));
        return Err(ParseQuantityError { message, help });
    }
    Ok(value)
}

/// Returns the quantity in the base unit, rounded down, and `true` if it was whole.
fn parse_rounded(text: &str, what: &str, units: &[Unit], example: &str) -> Result<(u64, bool), ParseQuantityError> {
    let names: Vec<&str> = units.iter().map(|u| u.name).collect();
    let fail = |why: &str, help: String| ParseQuantityError { message: format!("{why} in {what} `{text}`"), help };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    if number.is_empty() || number == "." {
        return Err(fail("no number", format!("write a {what} as `{example}`")));
    }
    if unit.is_empty() {
        return Err(fail("no unit", format!("write `{number}{}`: units are {}", units[0].name, names.join(", "))));
    }
    let exact = units.iter().find(|u| u.name == unit);
    let Some(found) = exact else {
        let near = units.iter().find(|u| u.name.eq_ignore_ascii_case(unit));
        let help = near.map_or_else(
            || format!("units are {}", names.join(", ")),
            |u| format!("write `{number}{}`: units are {}", u.name, names.join(", ")),
        );
        return Err(fail(&format!("unknown unit `{unit}`"), help));
    };
    let value = scale(&number, found.factor);
    value.ok_or_else(|| fail("number out of range", format!("write a {what} as `{example}`")))
}

/// Returns `number * factor`, rounded down, and `true` if it was whole, or `None` if `number` is not a number or the
/// result does not fit.
fn scale(number: &str, factor: u64) -> Option<(u64, bool)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = fraction.trim_end_matches('0');
    let digits = fraction.len().min(18);
    let is_cut = digits < fraction.len();
    let fraction: u128 = if digits == 0 { 0 } else { fraction.get(..digits)?.parse().ok()? };
    let scaled = whole.checked_mul(u128::from(factor))?;
    let (parts, power) = (fraction * u128::from(factor), 10u128.pow(u32::try_from(digits).ok()?));
    let value = u64::try_from(scaled.checked_add(parts / power)?).ok()?;
    Some((value, !is_cut && parts.is_multiple_of(power)))
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, Rate, Time};
    use proptest::prelude::*;

    #[test]
    fn a_byte_is_whole_picoseconds_at_every_ethernet_rate() {
        for gbps in [10, 25, 40, 50, 100, 200, 400, 800, 1600] {
            assert_eq!(Rate::from_gbps(gbps).tx_time(Bytes::new(1)).as_ps() * gbps, 8_000);
        }
    }

    #[test]
    fn decimals_and_units_are_exact() {
        assert_eq!("1.84us".parse(), Ok(Time::from_ns(1_840)));
        assert_eq!("0.1 Tbps".parse(), Ok(Rate::from_gbps(100)));
        assert_eq!("4MiB".parse(), Ok(Bytes::new(4_194_304)));
    }

    #[test]
    fn errors_say_what_to_write() {
        let err = "5".parse::<Time>().unwrap_err();
        assert_eq!(
            (err.to_string().as_str(), err.help()),
            ("no unit in time `5`", "write `5ps`: units are ps, ns, us, µs, ms, s")
        );
        assert!("100gbps".parse::<Rate>().unwrap_err().help().starts_with("write `100Gbps`"));
        assert!("1.2.3us".parse::<Time>().is_err());
        assert!("99999999999s".parse::<Time>().is_err());
    }

    /// A flow of one byte and a half, or of none, would be another one than was meant.
    #[test]
    fn bytes_are_whole_and_nothing_is_rounded_to_zero() {
        let error = |text: &str| {
            let error = text.parse::<Bytes>().unwrap_err();
            (error.to_string(), error.help().to_owned())
        };
        let want = ("a fraction of 1B in size `1.5B`".to_owned(), "write `1B` or `2B`".to_owned());
        assert_eq!(error("1.5B"), want);
        assert_eq!(error("1.0005KB").1, "write `1000B` or `1001B`");
        assert_eq!(error("0.1KiB").1, "write `102B` or `103B`");
        assert!("1.00000000000000000001MB".parse::<Bytes>().is_err());
        let good = ["1.50KB", "2.0B", "0.5KiB", "0.000001MB", "0B", "1.500000000000000000000000KB"];
        assert_eq!(good.map(str::parse), [1_500, 2, 512, 1, 0, 1_500].map(|n| Ok(Bytes::new(n))));
        assert_eq!("0.5ps".parse::<Time>().unwrap_err().to_string(), "less than 1ps in time `0.5ps`");
        assert_eq!("0.0009kbps".parse::<Rate>().unwrap_err().help(), "write `0bps`, or at least `1bps`");
        assert_eq!("0.3333333333333us".parse(), Ok(Time::from_ps(333_333)));
        assert_eq!("0.0us".parse(), Ok(Time::ZERO));
    }

    #[test]
    fn a_time_with_a_precision_is_short() {
        let text = |ps: u64| format!("{:.3}", Time::from_ps(ps));
        assert_eq!([0, 7, 62_500_013_703].map(text), ["0s", "7.000ps", "62.500ms"]);
    }

    proptest! {
        #[test]
        fn display_parses_back(n in any::<u64>()) {
            prop_assert_eq!(Time::from_ps(n).to_string().parse(), Ok(Time::from_ps(n)));
            prop_assert_eq!(Rate::from_bps(n).to_string().parse(), Ok(Rate::from_bps(n)));
            prop_assert_eq!(Bytes::new(n).to_string().parse(), Ok(Bytes::new(n)));
        }

        #[test]
        fn any_text_parses_or_errs(text in "\\PC*") {
            let _ = (text.parse::<Time>(), text.parse::<Rate>(), text.parse::<Bytes>());
        }
    }
}
