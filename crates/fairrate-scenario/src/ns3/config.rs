//! `config.txt`: a setting a line, its name and its values. As the ns-3 code's own documentation does, a line may end
//! with a remark in braces.

use std::fmt::Display;
use std::str::FromStr;

use fairrate_sim::FileError;

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    line: usize,
    name: String,
    values: Vec<String>,
}

/// The settings of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config(Vec<Setting>);

impl Config {
    /// Reads `config.txt`.
    ///
    /// # Errors
    /// If a line is no setting, or sets what was set before; the error has the line.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut settings: Vec<Setting> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split(['{', '#']).next().unwrap_or_default();
            let mut words = text.split_whitespace();
            let Some(name) = words.next() else { continue };
            if !name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_') {
                let message = format!("`{}` is no name of a setting", name.escape_debug());
                return Err(FileError::new(line, message).help("settings are lines such as `CC_MODE 3`"));
            }
            if let Some(first) = settings.iter().find(|setting| setting.name == name) {
                return Err(FileError::new(line, format!("`{name}` is set in line {} already", first.line)));
            }
            settings.push(Setting { line, name: name.to_owned(), values: words.map(str::to_owned).collect() });
        }
        if settings.is_empty() {
            return Err(FileError::new(1, "there is no setting").help("settings are lines such as `CC_MODE 3`"));
        }
        Ok(Self(settings))
    }

    /// Returns the names of all settings, in the order of the file.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|setting| setting.name.as_str())
    }

    /// Returns the values of a setting and its line, if it is there.
    pub(super) fn values(&self, name: &str) -> Option<(usize, &[String])> {
        self.0.iter().find(|setting| setting.name == name).map(|setting| (setting.line, &*setting.values))
    }

    /// Returns the only value of a setting, if it is there.
    ///
    /// # Errors
    /// If it has no value or several, or if the value is of another kind.
    pub fn value<T: FromStr>(&self, name: &str) -> Result<Option<T>, FileError>
    where
        T::Err: Display,
    {
        let Some((line, values)) = self.values(name) else { return Ok(None) };
        let [value] = values else {
            return Err(FileError::new(line, format!("`{name}` takes one value, and there are {}", values.len())));
        };
        let wrong =
            |error| FileError::new(line, format!("`{}` is no value for `{name}`: {error}", value.escape_debug()));
        value.parse().map(Some).map_err(wrong)
    }

    /// Returns an error about a setting.
    pub(super) fn error(&self, name: &str, message: String) -> FileError {
        FileError::new(self.values(name).map_or(1, |(line, _)| line), message)
    }
}
