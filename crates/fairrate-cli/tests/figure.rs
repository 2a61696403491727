//! `fairrate figure`: the list, the files of a figure, continuation after an interruption, and unknown names.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::{fresh_dir, run, stderr, stdout};

#[test]
fn the_list_has_what_programs_need() {
    let output = run(&["figure", "--list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let figures = json["figures"].as_array().unwrap();
    let fig8 = figures.iter().find(|figure| figure["id"] == "powertcp/fig8").unwrap();
    assert_eq!((&fig8["paper"], &fig8["kind"]), (&"powertcp".into(), &"simulation".into()));
    assert!(fig8["claims"].as_u64().unwrap() > 0 && fig8["quick_s"].as_u64().unwrap() > 0);
    let lines = stdout(&run(&["figure", "--list"]));
    assert_eq!(lines.lines().count(), figures.len());
}

#[test]
fn a_figure_is_a_picture_a_page_its_points_and_its_claims() {
    let out = fresh_dir("figure_calculated");
    let output = run(&["figure", "rocc/fig6", "powertcp/fig3", "--quiet", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("not reproduced"), "a verdict is no failure");
    assert!(text.contains("\n2 figures: ") && text.contains(" reproduced, "), "{text}");
    for figure in ["rocc/fig6", "powertcp/fig3"] {
        let read = |name: &str| std::fs::read_to_string(out.join(figure).join(name)).unwrap();
        assert!(read("figure.svg").starts_with("<svg ") && read("figure.html").contains("<svg "));
        assert!(read("points.csv").starts_with("# "));
        let claims: serde_json::Value = serde_json::from_str(&read("claims.json")).unwrap();
        let claim = &claims["claims"][0];
        assert_eq!((&claims["figure"], &claim["verdict"]), (&figure.into(), &"reproduced".into()));
        assert!(claim["low"].as_f64().unwrap() <= claim["measured"].as_f64().unwrap());
    }
}

#[test]
fn a_figure_of_some_lines_has_their_claims() {
    let out = fresh_dir("figure_lines");
    let draw =
        |lines: &[&str]| run(&[&["figure", "powertcp/fig4", "--json", "--out", out.to_str().unwrap()], lines].concat());
    let output = draw(&["--line", "homa"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let ids: Vec<&str> =
        json[0]["claims"].as_array().unwrap().iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| id.contains("homa")), "{ids:?}");
    // A name is that of a line before it is the beginning of others; the other line is then missing.
    let n_lines = |line: &str| {
        draw(&["--line", line]);
        let table = std::fs::read_to_string(out.join("powertcp/fig4/measured.csv")).unwrap();
        let rows = table.lines().filter(|row| row.starts_with("10:1,"));
        rows.filter_map(|row| row.split(',').nth(1)).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((n_lines("theta-powertcp"), n_lines("theta")), (1, 2));
    let output = draw(&["--line", "hoam"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `homa`?"), "{}", stderr(&output));
    draw(&["--run", "10", "--line", "homa"]);
    let table = std::fs::read_to_string(out.join("powertcp/fig4/measured.csv")).unwrap();
    assert!(table.lines().skip(2).all(|row| row.starts_with("10:1,homa,")), "{table}");
    let output = draw(&["--run", "255.1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `255:1`?"), "{}", stderr(&output));
}

/// The options that leave runs out are named, and not `--quick`, with which alone all claims have a number.
#[test]
fn a_selection_is_named_as_the_cause_of_claims_without_numbers() {
    let out = fresh_dir("figure_cause");
    let draw = |more: &[&str]| {
        let args = ["figure", "powertcp/fig4", "--quick", "--quiet", "--out", out.to_str().unwrap()];
        stdout(&run(&[&args[..], more].concat()))
    };
    let all = draw(&[]);
    assert!(!all.contains("have no number"), "{all}");
    for (more, want) in [
        (&["--line", "homa"][..], "claims have no number with --line\n"),
        (&["--line", "homa", "--run", "10"][..], "claims have no number with --line and --run\n"),
    ] {
        let told = draw(more);
        assert!(told.contains(want), "{told}");
    }
}

/// Results of simulated runs are kept: the second time no simulation runs, and the figure is the same.
#[test]
fn what_was_run_is_taken_over() {
    let out = fresh_dir("figure_kept");
    let draw = || run(&["figure", "powertcp/fig5", "--json", "--out", out.to_str().unwrap()]);
    let (first, second) = (draw(), draw());
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(stderr(&second).contains("8 of 8 runs are complete already"), "{}", stderr(&second));
    assert_eq!(stdout(&first), stdout(&second));
}

/// With `--keep-runs` each simulation is a run as others are: a report opens it, and without it the run is done again.
#[test]
fn the_runs_of_a_figure_are_kept_as_results_directories() {
    let out = fresh_dir("figure_runs");
    let draw = |more: &[&str]| {
        let output =
            run(&[&["figure", "powertcp/fig9", "--quick", "--json", "--out", out.to_str().unwrap()], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output
    };
    let runs = out.join("powertcp/fig9/runs");
    let dirs = || {
        let entries = std::fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let without = draw(&[]);
    assert!(dirs().is_empty(), "{:?}", dirs());
    let first = draw(&["--keep-runs"]);
    assert!(!stderr(&first).contains("complete already"), "{}", stderr(&first));
    assert_eq!(stdout(&without), stdout(&first));
    let (second, n) = (draw(&["--keep-runs"]), dirs().len());
    assert!(stderr(&second).contains(&format!("{n} of {n} runs are complete already")), "{}", stderr(&second));
    for dir in dirs() {
        let report = run(&["report", dir.to_str().unwrap()]);
        assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
        let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
        assert!(page.contains("HOMA") && !page.contains("Partial results"), "{}", dir.display());
    }
    std::fs::remove_file(dirs()[0].join("flows.parquet")).unwrap();
    let third = draw(&["--keep-runs"]);
    assert!(stderr(&third).contains(&format!("{} of {n} runs are complete already", n - 1)), "{}", stderr(&third));
}

/// A figure of packets, one of flows without packets, and one of the machine itself; equations are tested above.
const KINDS: [&str; 3] = ["powertcp/fig9", "flowtune/fig12", "flowtune/table6.1"];

/// Returns the directory of quick figures of [`KINDS`], which are run once, and what was printed.
fn quick() -> &'static (PathBuf, String) {
    static QUICK: OnceLock<(PathBuf, String)> = OnceLock::new();
    QUICK.get_or_init(|| {
        let out = fresh_dir("figure_kinds");
        let output = run(&[&["figure"], &KINDS[..], &["--quick", "--quiet", "--out", out.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (out, stdout(&output))
    })
}

#[test]
fn a_small_figure_of_each_kind() {
    let (out, _) = quick();
    for figure in KINDS {
        let claims = std::fs::read_to_string(out.join(figure).join("claims.json")).unwrap();
        let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
        let claims = claims["claims"].as_array().unwrap();
        assert!(!claims.is_empty() && claims.iter().all(|claim| claim["measured"].is_number()), "{figure}");
        assert!(std::fs::read_to_string(out.join(figure).join("figure.svg")).unwrap().contains("<path"), "{figure}");
    }
}

/// The file of a figure's runs is enough to draw it again.
#[test]
fn a_figure_is_drawn_from_a_file() {
    let (out, again) = (fresh_dir("figure_measured"), fresh_dir("figure_redrawn"));
    let (out, again) = (out.to_str().unwrap(), again.to_str().unwrap());
    assert_eq!(run(&["figure", "rocc/fig6", "rocc/fig5", "--json", "--out", out]).status.code(), Some(0));
    // Figures with a table are drawn, and so are calculations; the others are named in the error.
    let some = fresh_dir("figure_some");
    let second = run(&["figure", "rocc", "--from", out, "--json", "--out", some.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(2));
    let said = stderr(&second);
    assert!(said.contains("11 of 15 figures could not be drawn") && said.contains("rocc/fig8/measured.csv"), "{said}");
    assert!(
        ["fig5", "fig6", "fig7", "hardware"].iter().all(|name| some
            .join("rocc")
            .join(name)
            .join("figure.svg")
            .exists())
    );
    assert!(!said.contains("rocc/fig7") && !some.join("rocc/fig8").exists());
    let one = run(&["figure", "rocc/fig8", "--from", out, "--json", "--out", again]);
    assert_eq!(one.status.code(), Some(2));
    assert!(stderr(&one).contains("rocc/fig8/measured.csv` cannot be read") && !Path::new(again).join("rocc").exists());
    let second = run(&["figure", "rocc/fig6", "rocc/fig5", "--from", out, "--json", "--out", again]);
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    for file in ["rocc/fig5/measured.csv", "rocc/fig6/measured.csv", "rocc/fig6/figure.svg"] {
        let read = |dir: &str| std::fs::read(Path::new(dir).join(file)).unwrap();
        assert!(read(out) == read(again), "{file}");
    }
    let wrong = Path::new(out).join("rocc/fig5/measured.csv");
    std::fs::copy(Path::new(out).join("rocc/fig6/measured.csv"), wrong).unwrap();
    let wrong = run(&["figure", "rocc/fig5", "--from", out, "--out", again]);
    // Lines break where the directory's name is long.
    let said: Vec<String> = stderr(&wrong).split_whitespace().filter(|word| *word != "│").map(str::to_owned).collect();
    assert!(wrong.status.code() == Some(2) && said.join(" ").contains("it is of rocc/fig6"), "{}", stderr(&wrong));
}

/// The committed tables are sufficient for all figures.
#[test]
fn all_figures_are_drawn_from_what_is_committed() {
    let out = fresh_dir("figure_all");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures");
    let output = run(&["figure", "all", "--from", docs, "--json", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let listed = run(&["figure", "--list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&listed)).unwrap();
    let figures = json["figures"].as_array().unwrap();
    assert!(figures.iter().all(|figure| out.join(figure["id"].as_str().unwrap()).join("figure.svg").exists()));
}

/// The program may not have been built; without it no figure is run.
#[test]
fn pdf_needs_a_program_of_its_own() {
    let out = fresh_dir("figure_pdf");
    let output = run(&["figure", "rocc/fig6", "--format", "pdf", "--out", out.to_str().unwrap()]);
    if output.status.code() == Some(0) {
        assert!(std::fs::read(out.join("rocc/fig6/figure.pdf")).unwrap().starts_with(b"%PDF-"));
    } else {
        assert!(stderr(&output).contains("fairrate-picture"), "{}", stderr(&output));
    }
}

#[test]
fn without_a_name_it_says_what_can_be_drawn() {
    let out = fresh_dir("figure_unnamed");
    let output = run(&["figure", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    for words in ["no figure is named", "`fairrate figure --list` shows all of them", "powertcp", "rocc", "--quick"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(stdout(&output).is_empty() && !out.exists());
}

/// A picture of quick runs says so wherever it goes.
#[test]
fn a_quick_figure_is_captioned() {
    let ((out, printed), again) = (quick(), fresh_dir("figure_quick_again"));
    let (out, again) = (out.to_str().unwrap(), again.to_str().unwrap());
    let words = "quick: fewer seeds and less traffic than the full figure, not for comparison";
    let read =
        |dir: &str, name: &str| std::fs::read_to_string(Path::new(dir).join("powertcp/fig9").join(name)).unwrap();
    assert!(printed.contains(words), "{printed}");
    assert!(read(out, "figure.svg").contains(words) && read(out, "figure.html").contains(words));
    let claims: serde_json::Value = serde_json::from_str(&read(out, "claims.json")).unwrap();
    assert_eq!(claims["quick"], true);
    // It stays with what was measured.
    assert_eq!(run(&["figure", "powertcp/fig9", "--from", out, "--quiet", "--out", again]).status.code(), Some(0));
    assert!(read(again, "figure.svg").contains(words));
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures");
    assert_eq!(run(&["figure", "powertcp/fig9", "--from", docs, "--quiet", "--out", again]).status.code(), Some(0));
    assert!(!read(again, "figure.svg").contains("quick: "));
}

#[test]
fn a_name_that_is_not_known_is_named_with_the_nearest() {
    let out = fresh_dir("figure_unknown");
    let output = run(&["figure", "powertcp/fig88", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `powertcp/fig8`"), "{}", stderr(&output));
    assert!(!out.join("powertcp").exists());
}
