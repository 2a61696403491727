//! The statements of `docs/allocator.md`: its configurations are valid, and its tables have every key, limit and
//! metric.

mod common;

use std::path::Path;

use common::{INSECURE, Running};
use fairrate_daemon::config::Config;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/allocator.md");
    std::fs::read_to_string(path).expect("the page")
}

/// Returns the blocks of text that contain `key`.
fn blocks<'a>(page: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).filter(move |block| block.contains(key))
}

#[test]
fn configurations_are_right() {
    let page = page();
    let whole = blocks(&page, "listen =").next().expect("there is a configuration");
    Config::from_toml(whole, Path::new("allocator.toml")).expect("it is right");
    let keys = blocks(&page, "[keys]").next().expect("there are keys");
    let with_keys = whole.replace("insecure = true\n", "") + keys;
    Config::from_toml(&with_keys, Path::new("allocator.toml")).expect("it is right with keys too");
}

#[test]
fn defaults_are_those_of_the_code() {
    let (config, _) = Config::from_toml(INSECURE, Path::new("allocator.toml")).expect("it is right");
    let (engine, limits) = (config.engine, config.limits);
    let page = page();
    let says = |key: &str, default: String| {
        assert!(page.contains(&format!("| `{key}` | `{default}` |")), "{key} is {default}");
    };
    says("engine.interval", format!("\"{}\"", humantime::format_duration(engine.interval)));
    says("engine.gamma", engine.gamma.to_string());
    says("engine.alpha", engine.alpha.to_string());
    says("engine.threshold", engine.threshold.to_string());
    says("engine.batch", format!("\"{}\"", humantime::format_duration(engine.batch)));
    says("engine.rest_after", engine.rest_after.to_string());
    says("engine.seed", engine.seed.to_string());
    says("limits.agents", limits.agents.to_string());
    says("limits.connections", limits.connections.to_string());
    says("limits.sessions_per_agent", limits.sessions_per_agent.to_string());
    says("limits.flows_per_agent", limits.flows_per_agent.to_string());
    says("limits.updates_per_second", limits.updates_per_second.to_string());
}

/// The commented configuration is valid, and its lines with `#` and a key are the defaults.
#[test]
fn the_sample_has_the_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/allocator.toml");
    let sample = std::fs::read_to_string(path).expect("the sample");
    let uncomment =
        |line: &str| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned();
    let uncommented: String = sample.lines().map(|line| uncomment(line) + "\n").collect();
    let read = |text: &str| Config::from_toml(text, Path::new("allocator.toml")).expect("it is right").0;
    assert_eq!(format!("{:?}", read(&uncommented)), format!("{:?}", read(&sample)));
    // Every key of the page that has a default there.
    let page = page();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `engine.").or(line.strip_prefix("| `limits.")));
    for key in rows.filter_map(|row| row.split('`').next()) {
        assert!(sample.contains(&format!("\n#{key} = ")), "{key}");
    }
}

#[test]
fn every_metric_is_explained() {
    let (server, page) = (Running::start(INSECURE, 1), page());
    let text = server.metrics.text();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE fairrate_")?.split(' ').next());
    let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("`fairrate_{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let board = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana-allocator.json");
    let board = std::fs::read_to_string(board).expect("the dashboard");
    let shown = board
        .split("fairrate_")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| c != '_' && !c.is_ascii_lowercase()).next());
    for name in shown.map(|name| name.trim_end_matches("_bucket")) {
        assert!(text.contains(&format!("# TYPE fairrate_{name} ")), "the dashboard shows `fairrate_{name}`");
    }
    server.stop();
}

#[test]
fn the_unit_goes_with_the_program() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let read = |name: &str| std::fs::read_to_string(packaging.join(name)).expect("it is there");
    let (unit, users) = (read("fairrate-allocator.service"), read("fairrate-allocator.sysusers"));
    let has = |line: &str| assert!(unit.lines().any(|of| of == line), "{line}");
    // The notifications to systemd need a socket, and a watchdog needs the notifications.
    has("Type=notify");
    has("RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX");
    assert!(unit.contains("\nWatchdogSec=") && unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"));
    // Bad input stays bad; systemd checks the status of the main process alone.
    has("RestartPreventExitStatus=2");
    assert!(!unit.contains("\nExecStartPre="));
    // It is tried for ever, and not in a tight loop. `RestartSteps` would slow it down from systemd 254 on only.
    has("StartLimitIntervalSec=0");
    has("RestartSec=1s");
    assert!(!unit.contains("\nRestartSteps="));
    has("SupplementaryGroups=fairrate-keys");
    assert!(users.contains("\ng fairrate-keys -\n") && unit.contains("--group fairrate-keys\n"));
}
