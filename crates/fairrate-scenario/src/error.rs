//! Problems of a scenario: their message, their place and the text to write instead.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::place::{ProblemParts, key_at, line_and_column};

/// A place in one of the texts a scenario is read from: the file, a `--set` argument, a flow list ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The text, as a position in [`Report::sources`].
    pub source: u32,
    /// Offset of the first byte.
    pub start: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Site {
    pub fn new(source: u32, range: std::ops::Range<usize>) -> Self {
        Self { source, start: range.start, len: range.end.saturating_sub(range.start) }
    }
}

/// One problem of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: &'static str,
    message: String,
    label: String,
    help: String,
    place: Option<(Arc<NamedSource<String>>, Site)>,
    /// The file that it is about, if that could not be read.
    file: Option<PathBuf>,
}

impl Problem {
    fn parts(&self) -> ProblemParts {
        let said = ProblemParts {
            code: self.code,
            message: self.message.clone(),
            help: self.help.clone(),
            ..ProblemParts::default()
        };
        let Some((source, site)) = &self.place else {
            return ProblemParts { source: self.file.as_ref().map(|file| file.display().to_string()), ..said };
        };
        let (line, column) = line_and_column(source.inner(), site.start);
        ProblemParts {
            source: Some(source.name().to_owned()),
            key: key_at(source.name(), source.inner(), site.start),
            line: Some(line),
            column: Some(column),
            ..said
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.help.is_empty()).then(|| Box::new(&self.help) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_ref().map(|(source, _)| source as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, site) = self.place.as_ref()?;
        let label = (!self.label.is_empty()).then(|| self.label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new(label, site.start, site.len))))
    }
}

/// All problems found in a scenario that cannot be run, each with its place in the text and a remedy.
///
/// As a [`Diagnostic`] it shows the first problem, and the others as related ones.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{first}")]
pub struct ScenarioError {
    first: Box<Problem>,
    rest: Vec<Problem>,
}

impl ScenarioError {
    /// Returns an error about a whole `file`, without a place in its text.
    pub(crate) fn of_file(file: &Path, code: &'static str, message: String, help: String) -> Self {
        let [message, help] = [message, help].map(|text| printable(&text).into_owned());
        let first =
            Box::new(Problem { code, message, label: String::new(), help, place: None, file: Some(file.to_owned()) });
        Self { first, rest: Vec::new() }
    }

    /// Returns the number of problems.
    pub fn n_problems(&self) -> usize {
        1 + self.rest.len()
    }

    /// Returns the code of the first problem, such as `scenario::unknown_key`.
    pub fn first_code(&self) -> &'static str {
        self.first.code
    }

    /// Returns the file that the first problem is about, if it has no place in a text.
    pub fn first_file(&self) -> Option<&Path> {
        self.first.file.as_deref()
    }

    /// Returns the remedy for the first problem.
    pub fn first_help(&self) -> &str {
        &self.first.help
    }

    /// Returns the parts of every problem.
    pub fn problems(&self) -> Vec<ProblemParts> {
        std::iter::once(&*self.first).chain(&self.rest).map(Problem::parts).collect()
    }

    /// Returns the name of the text with the first problem and the problem's line, from 1.
    pub fn first_line(&self) -> Option<(&str, usize)> {
        let (source, site) = self.first.place.as_ref()?;
        let before = source.inner().as_bytes().get(..site.start)?;
        Some((source.name(), before.split(|b| *b == b'\n').count()))
    }
}

impl Diagnostic for ScenarioError {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.first.code()
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.first.help()
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.first.source_code()
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.first.labels()
    }
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        (!self.rest.is_empty()).then(|| Box::new(self.rest.iter().map(|p| p as &dyn Diagnostic)) as Box<_>)
    }
}

/// Largest number of problems shown; further ones are likely consequences of the first.
const MAX_PROBLEMS: usize = 20;

/// The problems of one scenario and the texts they are in.
#[derive(Debug, Default)]
pub(crate) struct Report {
    sources: RefCell<Vec<Arc<NamedSource<String>>>>,
    problems: RefCell<Vec<Problem>>,
}

impl Report {
    /// Adds a text that sites can point into; returns its position in [`Report::sources`].
    pub fn add_source(&self, name: &str, text: String) -> u32 {
        let mut sources = self.sources.borrow_mut();
        let changed = match printable(&text) {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        };
        sources.push(Arc::new(NamedSource::new(printable(name), changed.unwrap_or(text))));
        sources.len() as u32 - 1
    }

    /// Adds a problem, unless there are [`MAX_PROBLEMS`].
    pub fn problem(
        &self,
        code: &'static str,
        site: Site,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        let mut problems = self.problems.borrow_mut();
        if MAX_PROBLEMS <= problems.len() {
            return;
        }
        let source = Arc::clone(&self.sources.borrow()[site.source as usize]);
        let [message, label, help] =
            [message.into(), label.into(), help.into()].map(|text: String| printable(&text).into_owned());
        problems.push(Problem { code, message, label, help, place: Some((source, site)), file: None });
    }

    /// Returns the start of the scenario file, for problems without a place of their own.
    #[allow(clippy::unused_self)]
    pub fn start(&self) -> Site {
        Site { source: 0, start: 0, len: 0 }
    }

    /// Returns the number of problems so far.
    pub fn count(&self) -> usize {
        self.problems.borrow().len()
    }

    /// Calls `f` and returns its result if it adds no problem. The problems that `f` adds are removed.
    pub fn quietly<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let before = self.count();
        let value = f();
        let is_clean = self.count() == before;
        self.problems.borrow_mut().truncate(before);
        is_clean.then_some(value)
    }

    /// Returns `true` if there is no problem so far.
    pub fn is_clean(&self) -> bool {
        self.problems.borrow().is_empty()
    }

    /// Returns all problems as an error, if there are any.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let mut problems = self.problems.borrow().clone();
        if problems.is_empty() {
            return Ok(());
        }
        let first = Box::new(problems.remove(0));
        Err(ScenarioError { first, rest: problems })
    }
}

/// Replaces the characters of `text` that move the cursor of a terminal or turn the direction of writing by others of
/// the same length, so that places in the text stay where they are. Lines and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_unfit = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        (c.is_control() && !matches!(c, '\n' | '\t')) || turns
    };
    if !text.contains(is_unfit) {
        return Cow::Borrowed(text);
    }
    let stand_in = |c: char| match c.len_utf8() {
        // A carriage return belongs to a line's end.
        1 if c == '\r' => ' ',
        1 => '?',
        2 => '\u{bf}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(|c| if is_unfit(c) { stand_in(c) } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_moves_no_cursor_and_keeps_its_length() {
        let nasty = "a\u{1b}[2J\r\n\tb\u{9b}c\u{202e}d\u{7f}\0é";
        let shown = printable(nasty);
        assert_eq!(shown, "a?[2J \n\tb\u{bf}c\u{fffd}d??é");
        assert_eq!(shown.len(), nasty.len());
        assert!(matches!(printable("name = \"é\"\n"), Cow::Borrowed(_)));
    }
}
