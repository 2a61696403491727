//! Parameters of algorithms in Python: the arguments of a class, whose defaults are the parameters' types.

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock};

use fairrate_control::{Param, ParamKind, RawValue, SetParamError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, FromPyObject, IntoPyObject)]
pub enum Value {
    /// A switch: before the numbers, as a bool of Python is also one.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A real number.
    Number(f64),
    /// Text.
    Text(String),
}

impl Value {
    fn to_toml(&self) -> String {
        match self {
            Self::Switch(on) => on.to_string(),
            Self::Whole(n) => n.to_string(),
            // With a point, as whole numbers are another type.
            Self::Number(x) => format!("{x:?}"),
            Self::Text(text) => toml::Value::from(text.as_str()).to_string(),
        }
    }

    fn kind(&self) -> ParamKind {
        match self {
            Self::Switch(_) => ParamKind::Bool,
            Self::Whole(_) => ParamKind::Count,
            Self::Number(_) => ParamKind::Float,
            Self::Text(_) => ParamKind::Choice(&[]),
        }
    }

    /// Returns `raw` as a value of the same type.
    fn like(&self, raw: RawValue<'_>) -> Result<Self, SetParamError> {
        let (value, help) = match (self, raw) {
            (Self::Switch(_), RawValue::Bool(on)) => return Ok(Self::Switch(on)),
            (Self::Whole(_), RawValue::Integer(n)) => return Ok(Self::Whole(n)),
            (Self::Number(_), RawValue::Integer(n)) => return Ok(Self::Number(n as f64)),
            (Self::Number(_), RawValue::Float(x)) if x.is_finite() => return Ok(Self::Number(x)),
            (Self::Text(_), RawValue::Text(text)) => return Ok(Self::Text(text.to_owned())),
            (Self::Switch(_), other) => (other, "true or false"),
            (Self::Whole(_), other) => (other, "a whole number"),
            (Self::Number(_), other) => (other, "a number"),
            (Self::Text(_), other) => (other, "a text"),
        };
        let shown = match value {
            RawValue::Text(text) => format!("the text `{text}`"),
            RawValue::Float(x) => format!("the number `{x}`"),
            RawValue::Integer(n) => format!("the number `{n}`"),
            RawValue::Bool(on) => format!("`{on}`"),
        };
        let message = format!("{shown} has another type than the default, `{}`", self.to_toml());
        Err(SetParamError::Invalid { message, help: format!("give {help}, as the class does") })
    }
}

/// The parameters of an algorithm in Python.
#[derive(Clone, Debug, Default)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    /// Returns parameters with their defaults.
    pub fn new(defaults: Vec<(String, Value)>) -> Self {
        Self(defaults.into_iter().map(|(name, value)| (kept(&name), value)).collect())
    }

    /// Returns all parameters with their present values.
    pub fn params(&self) -> Vec<Param> {
        let param = |(name, value): &(&'static str, Value)| Param {
            name,
            kind: value.kind(),
            toml: value.to_toml(),
            doc: "a parameter of the class",
            tune: None,
        };
        self.0.iter().map(param).collect()
    }

    /// Sets parameter `name` to `value`.
    pub fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
        let own = self.0.iter_mut().find(|own| own.0 == name).ok_or(SetParamError::UnknownName)?;
        own.1 = own.1.like(value)?;
        Ok(())
    }

    /// Calls `class` with those of the parameters that `names` has.
    pub fn call<'py>(&self, class: &Bound<'py, PyAny>, names: &HashSet<String>) -> PyResult<Bound<'py, PyAny>> {
        if names.is_empty() {
            return class.call0();
        }
        let arguments = PyDict::new(class.py());
        for (name, value) in self.0.iter().filter(|(name, _)| names.contains(*name)) {
            arguments.set_item(name, value.clone())?;
        }
        class.call((), Some(&arguments))
    }
}

/// Returns a name that lives as long as the process: each is stored once.
fn kept(name: &str) -> &'static str {
    static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let mut names = NAMES.get_or_init(Mutex::default).lock().expect("nothing panics with this lock held");
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(new);
    new
}
