//! Errors under `--json`: one line on stderr, `{"error": {...}}`.

use std::path::Path;

use miette::{Diagnostic, LabeledSpan};
use serde::Serialize;

/// An error in the form for programs.
#[derive(Debug, Default, Serialize)]
struct ErrorJson {
    /// Kind of error, such as `scenario::unknown_key`.
    code: String,
    message: String,
    /// The file or directory that the error is about.
    path: Option<String>,
    /// Place in the file, from 1 (`line`, `column`); a column counts characters.
    line: Option<usize>,
    column: Option<usize>,
    /// The remedy.
    help: Option<String>,
    /// Other errors found with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<ErrorJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
}

#[derive(Serialize)]
struct Line {
    error: ErrorJson,
}

/// Returns an error as a line of JSON.
pub fn line(error: &dyn Diagnostic, path: Option<&Path>, exit_code: u8) -> String {
    let mut json = ErrorJson::of(error);
    json.path = json.path.or(path.map(|path| path.display().to_string()));
    json.exit_code = Some(exit_code);
    written(json)
}

/// Returns an error of wrong arguments as a line of JSON. `text` is the message for the terminal.
pub fn usage(text: &str, exit_code: u8) -> String {
    let (message, help) = text.split_once("\n\n").unwrap_or((text, ""));
    let message = message.strip_prefix("error: ").unwrap_or(message).trim().to_owned();
    let help = Some(help.trim().to_owned()).filter(|help| !help.is_empty());
    let code = "cli::usage".to_owned();
    written(ErrorJson { code, message, help, exit_code: Some(exit_code), ..ErrorJson::default() })
}

fn written(error: ErrorJson) -> String {
    // Serialising to memory fails only for maps without text keys, and there are none.
    serde_json::to_string(&Line { error }).unwrap_or_default() + "\n"
}

impl ErrorJson {
    fn of(error: &dyn Diagnostic) -> Self {
        let place = error.labels().and_then(|mut labels| labels.next()).and_then(|label| place(error, &label));
        let (path, line, column) = place.map_or((None, None, None), |(p, l, c)| (Some(p), Some(l), Some(c)));
        Self {
            code: error.code().map(|code| code.to_string()).unwrap_or_default(),
            message: error.to_string(),
            path,
            line,
            column,
            help: error.help().map(|help| help.to_string()),
            others: error.related().map(|all| all.map(Self::of).collect()).unwrap_or_default(),
            exit_code: None,
        }
    }
}

/// Returns name of the text, line and column of a label.
fn place(error: &dyn Diagnostic, label: &LabeledSpan) -> Option<(String, usize, usize)> {
    let span = error.source_code()?.read_span(label.inner(), 0, 0).ok()?;
    Some((span.name()?.to_owned(), span.line() + 1, span.column() + 1))
}
