//! The values that keys can have: their reading, their error messages, and their form in TOML.

use std::fmt::Write as _;

use fairrate_text::nearest;
use fairrate_units::{Bytes, Rate, Time};

use crate::tree::Value;

/// The problem of a node that is not the expected value.
pub(crate) struct Wrong {
    pub code: &'static str,
    pub message: String,
    pub help: String,
}

/// A value that a key can have.
pub(crate) trait Scalar: Sized {
    /// Name of the kind of value, with its article.
    const WHAT: &'static str;
    /// Form in which the value is written.
    const FORM: Form;
    /// Returns a valid value to go on with after a problem.
    fn placeholder() -> Self;
    /// Reads the value of `key`; the help of an error names `key`.
    fn read(key: &str, value: &Value) -> Result<Self, Wrong>;
    /// Returns the value as TOML.
    fn write(&self) -> String;
}

/// The form in which a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A number and one of the listed units, in quotes.
    Quantity(&'static [&'static str]),
    /// A number.
    Number,
    /// A whole number.
    Whole,
    /// `true` or `false`.
    Flag,
    /// Text.
    Text,
}

fn wrong_type<T: Scalar>(value: &Value, help: String) -> Wrong {
    let message = format!("expected {}, found {}", T::WHAT, value.describe());
    Wrong { code: "scenario::wrong_type", message, help }
}

macro_rules! quantity {
    ($type:ty, $what:literal, $unit:literal, $units:literal, $unit_list:expr, $max:expr, $placeholder:expr) => {
        impl Scalar for $type {
            const WHAT: &'static str = $what;
            const FORM: Form = Form::Quantity(&$unit_list);
            fn placeholder() -> Self {
                $placeholder
            }
            fn read(key: &str, value: &Value) -> Result<Self, Wrong> {
                let bare = |number: String| Wrong {
                    code: "scenario::missing_unit",
                    message: format!("`{key}` is {} and needs its unit, found the bare number `{number}`", $what),
                    help: format!(
                        "write it as a string with a unit, for instance `{key} = \"{}{}\"`; units are {}",
                        number.trim_start_matches('-'),
                        $unit,
                        $units
                    ),
                };
                match value {
                    Value::Text(text) if text.trim().parse::<f64>().is_ok() => Err(bare(text.trim().to_owned())),
                    Value::Text(text) => match text.parse::<$type>() {
                        Ok(value) if value <= $max => Ok(value),
                        Ok(_) => Err(Wrong {
                            code: "scenario::out_of_range",
                            message: format!("`{text}` is out of range"),
                            help: format!("write {} up to {}", $what, $max),
                        }),
                        Err(e) => Err(Wrong {
                            code: "scenario::bad_quantity",
                            message: e.to_string(),
                            help: repaired(text, &$unit_list)
                                .filter(|better| better.parse::<$type>().is_ok())
                                .map_or_else(
                                    || e.help().to_owned(),
                                    |better| format!("did you mean `{better}`? Units are {}", $units),
                                ),
                        }),
                    },
                    Value::Integer(n) => Err(bare(n.to_string())),
                    Value::Float(x) => Err(bare(x.to_string())),
                    _ => Err(wrong_type::<Self>(value, format!("write it as `{key} = \"{}\"`", Self::placeholder()))),
                }
            }
            fn write(&self) -> String {
                format!("\"{self}\"")
            }
        }
    };
}
// The upper ends leave room for sums: the largest time is far beyond any run and far below the largest `Time`.
quantity!(
    Time,
    "a time",
    "us",
    "ps, ns, us, ms and s",
    ["ps", "ns", "us", "ms", "s"],
    Time::from_ms(1_000_000_000),
    Time::from_us(10)
);
quantity!(
    Rate,
    "a rate",
    "Gbps",
    "bps, kbps, Mbps, Gbps and Tbps",
    ["bps", "kbps", "Mbps", "Gbps", "Tbps"],
    Rate::from_gbps(1_000_000),
    Rate::from_gbps(25)
);
quantity!(
    Bytes,
    "a size",
    "B",
    "B, KB, MB, GB, TB, KiB, MiB and GiB",
    ["B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB"],
    Bytes::new(1_000_000_000_000_000),
    Bytes::new(1_000)
);

/// Returns the quantity with the unit that was likely meant, if `text` is a number and something like a unit. Bytes a
/// second become bits.
fn repaired(text: &str, units: &[&str]) -> Option<String> {
    let text = text.trim();
    let end = (1..text.len()).rev().find(|&end| text.get(..end).is_some_and(|number| number.parse::<f64>().is_ok()))?;
    let (number, unit) = (text[..end].parse::<f64>().ok().filter(|number| number.is_finite())?, text[end..].trim());
    let of_bytes = unit.strip_suffix("Bps").or_else(|| unit.strip_suffix("B/s"));
    if let Some(in_bits) = of_bytes.map(|prefix| format!("{prefix}bps")).filter(|unit| units.contains(&unit.as_str())) {
        return Some(format!("{}{in_bits}", 8.0 * number));
    }
    nearest(unit, units.iter().copied()).map(|unit| format!("{number}{unit}"))
}

impl Scalar for f64 {
    const WHAT: &'static str = "a number";
    const FORM: Form = Form::Number;
    fn placeholder() -> Self {
        0.5
    }
    fn read(key: &str, value: &Value) -> Result<Self, Wrong> {
        match value {
            Value::Float(x) => Ok(*x),
            Value::Integer(n) => Ok(*n as Self),
            Value::Text(text) => {
                let text = text.trim();
                let percent = text.strip_suffix('%').and_then(|t| t.trim().parse::<Self>().ok()).map(|x| x / 100.0);
                let number = percent.or_else(|| text.parse::<Self>().ok().filter(|x| x.is_finite()));
                Err(wrong_type::<Self>(value, format!("write it without quotes: `{key} = {}`", number.unwrap_or(0.5))))
            }
            _ => Err(wrong_type::<Self>(value, format!("write a number, as `{key} = 0.5`"))),
        }
    }
    fn write(&self) -> String {
        format!("{self:?}")
    }
}

macro_rules! count {
    ($type:ty) => {
        impl Scalar for $type {
            const WHAT: &'static str = "a whole number";
            const FORM: Form = Form::Whole;
            fn placeholder() -> Self {
                1
            }
            fn read(key: &str, value: &Value) -> Result<Self, Wrong> {
                match value {
                    Value::Integer(n) => <$type>::try_from(*n).map_err(|_| Wrong {
                        code: "scenario::out_of_range",
                        message: format!("`{key} = {n}` is out of range"),
                        help: format!("write a whole number from 0 to {}", <$type>::MAX.min(i64::MAX as $type)),
                    }),
                    Value::Text(t) if t.trim().parse::<$type>().is_ok() => {
                        Err(wrong_type::<Self>(value, format!("write it without quotes: `{key} = {}`", t.trim())))
                    }
                    _ => Err(wrong_type::<Self>(value, format!("write a whole number, as `{key} = 16`"))),
                }
            }
            fn write(&self) -> String {
                self.to_string()
            }
        }
    };
}
count!(u8);
count!(u16);
count!(u32);
count!(u64);

impl Scalar for bool {
    const WHAT: &'static str = "true or false";
    const FORM: Form = Form::Flag;
    fn placeholder() -> Self {
        true
    }
    fn read(key: &str, value: &Value) -> Result<Self, Wrong> {
        match value {
            Value::Bool(b) => Ok(*b),
            Value::Text(t) if t.eq_ignore_ascii_case("true") || t.eq_ignore_ascii_case("false") => {
                Err(wrong_type::<Self>(value, format!("write it without quotes: `{key} = {}`", t.to_lowercase())))
            }
            _ => Err(wrong_type::<Self>(value, format!("write `{key} = true` or `{key} = false`"))),
        }
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

impl Scalar for String {
    const WHAT: &'static str = "a string";
    const FORM: Form = Form::Text;
    fn placeholder() -> Self {
        Self::new()
    }
    fn read(key: &str, value: &Value) -> Result<Self, Wrong> {
        match value {
            Value::Text(t) => Ok(t.clone()),
            Value::Integer(n) => Err(wrong_type::<Self>(value, format!("put it in quotes: `{key} = \"{n}\"`"))),
            _ => Err(wrong_type::<Self>(value, format!("write text in quotes: `{key} = \"...\"`"))),
        }
    }
    fn write(&self) -> String {
        quote(self)
    }
}

/// Returns `text` as a TOML string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::repaired;

    #[test]
    fn likely_quantities_have_the_value_that_was_meant() {
        let rates = |text| repaired(text, &["bps", "Mbps", "Gbps"]);
        assert_eq!(rates("25gbps").as_deref(), Some("25Gbps"));
        assert_eq!(rates("25GBps").as_deref(), Some("200Gbps"));
        assert_eq!(rates("1.5 GB/s").as_deref(), Some("12Gbps"));
        assert_eq!(repaired("1e3uss", &["us", "ms"]).as_deref(), Some("1000us"));
        assert_eq!(rates("fast"), None);
        assert_eq!(rates("Gbps"), None);
    }
}
