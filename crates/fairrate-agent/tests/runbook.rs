//! The statements of `docs/runbook.md`: it has a section for every alert, and alerts name metrics that there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const RULES: &str = "packaging/alerts-allocator.yml";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect("it is there")
}

/// Returns the rest of each line of `text` that begins with `begin`, without spaces around it.
fn after<'a>(text: &'a str, begin: &'a str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.trim_start().strip_prefix(begin)).map(str::trim).collect()
}

#[test]
fn every_alert_has_a_section_and_every_section_an_alert() {
    let (rules, page) = (read(RULES), read("docs/runbook.md"));
    let alerts = after(&rules, "- alert: ");
    assert_eq!(alerts, after(&page, "### "));
    let places: Vec<String> = alerts
        .iter()
        .map(|alert| format!("file:///usr/share/doc/fairrate-allocator/runbook.md#{}", alert.to_lowercase()))
        .collect();
    assert_eq!(after(&rules, "runbook_url: "), places);
    for section in page.split("\n### ").skip(1) {
        let parts = ["- **Means**: ", "- **See**: ", "- **Do**: ", "- **Meanwhile**: "];
        let at: Vec<_> = parts.iter().map(|part| section.find(part)).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{section}");
    }
}

#[test]
fn alerts_and_runbook_name_metrics_that_there_are() {
    let of_allocator = fairrate_daemon::metrics::Metrics::new().text();
    let of_agent = fairrate_agent::metrics::Metrics::new().page("/metrics").expect("there is one").body;
    let both = of_allocator + &of_agent;
    let mut known: BTreeSet<&str> = after(&both, "# TYPE ").iter().filter_map(|line| line.split(' ').next()).collect();
    // It is there once keys are.
    known.insert("fairrate_certificate_days_left");
    for file in [RULES, "packaging/alerts-allocator.test.yml", "docs/runbook.md"] {
        let text = read(file);
        let names =
            text.split(|c: char| c != '_' && !c.is_ascii_lowercase()).filter(|name| name.starts_with("fairrate_"));
        // The runbook's `grep` looks for all of them.
        let unknown: Vec<&str> = names.filter(|name| *name != "fairrate_" && !known.contains(name)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

/// Every alert fires in a test of the rules.
#[test]
fn every_alert_is_tested() {
    let (rules, tests) = (read(RULES), read("packaging/alerts-allocator.test.yml"));
    let fired: BTreeSet<&str> = tests
        .split("alertname: ")
        .skip(1)
        .filter(|rest| rest.lines().nth(1).is_some_and(|line| line.contains("exp_alerts")))
        .filter_map(|rest| rest.lines().next())
        .collect();
    let missing: Vec<&str> = after(&rules, "- alert: ").into_iter().filter(|alert| !fired.contains(alert)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for args in [["check", "rules", "alerts-allocator.yml"], ["test", "rules", "alerts-allocator.test.yml"]] {
        let Ok(done) = Command::new("promtool").args(args).current_dir(path("packaging")).output() else {
            println!("not run: promtool is missing");
            return;
        };
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
