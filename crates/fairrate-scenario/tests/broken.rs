//! Common mistakes in scenario files, and fairrate's messages about them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fairrate_scenario::{Overrides, Scenario, ScenarioError};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

/// Returns the message as a terminal shows it, without colour.
fn render(error: &ScenarioError) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
    let mut text = String::new();
    handler.render_report(&mut text, error).expect("a report renders");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn broken_files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

#[test]
fn every_broken_scenario_has_a_message_with_place_and_help() {
    let files = broken_files();
    assert!(40 <= files.len());
    let mut all = String::new();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let dir = path.parent().expect("a directory");
        let error = Scenario::from_toml(&text, &name, dir, &Overrides::default()).expect_err(&name);
        assert!(!error.first_help().is_empty(), "{name} has no help");
        assert!(error.first_line().is_some(), "{name} has no line");
        assert!(error.code().expect("a code").to_string().starts_with("scenario::"));
        writeln!(all, "=== {name}\n{}", render(&error)).expect("text");
    }
    insta::assert_snapshot!(all);
}
