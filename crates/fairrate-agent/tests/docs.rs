//! The statements of `docs/agent.md`: its configuration is valid, and its tables have every default and metric.

use std::path::Path;

use fairrate_agent::config::Config;
use fairrate_agent::metrics::Metrics;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).expect("it is there")
}

/// Returns the configuration on the page.
fn configuration() -> Config {
    let page = read("docs/agent.md");
    let block = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("there is one");
    toml::from_str(block).expect("it is right")
}

#[test]
fn defaults_are_those_of_the_code() {
    let (config, page) = (configuration(), read("docs/agent.md"));
    let says = |key: &str, default: String| {
        assert!(page.contains(&format!("| `{key}` | `{default}` |")), "{key} is {default}");
    };
    says("udp", config.udp.to_string());
    says("flowlets.gap", format!("\"{:?}\"", config.flowlets.gap));
    says("flowlets.every", format!("\"{:?}\"", config.flowlets.every));
    says("pacing.payload_share", format!("{:.4}", config.pacing.payload_share));
    says("limits.flows", config.limits.flows.to_string());
}

/// The commented configuration is valid, and its lines with `#` and a key are the defaults.
#[test]
fn the_sample_has_the_defaults() {
    let sample = read("packaging/agent.toml");
    let uncommented: String = sample.lines().map(|line| uncomment(line).to_owned() + "\n").collect();
    let (config, mut with): (Config, Config) =
        (toml::from_str(&sample).unwrap(), toml::from_str(&uncommented).unwrap());
    assert_eq!(with.weight.len(), 1);
    assert!((with.pacing.payload_share - config.pacing.payload_share).abs() < 1e-4);
    (with.weight, with.pacing) = (Vec::new(), config.pacing);
    assert_eq!(format!("{with:?}"), format!("{config:?}"));
    let keys = ["udp", "gap", "every", "payload_share", "flows"];
    assert!(keys.iter().all(|key| sample.contains(&format!("\n#{key} = "))), "{keys:?}");
}

fn uncomment(line: &str) -> &str {
    line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line)
}

#[test]
fn every_metric_is_explained() {
    let (page, body) = (read("docs/agent.md"), Metrics::new().page("/metrics").expect("there is one").body);
    let names = body.lines().filter_map(|line| line.strip_prefix("# TYPE fairrate_agent_")?.split(' ').next());
    let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("`fairrate_agent_{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_unit_goes_with_the_program() {
    let unit = read("packaging/fairrate-agent.service");
    let has = |line: &str| assert!(unit.lines().any(|of| of == line), "{line}");
    // The notifications to systemd need a socket, and a watchdog needs the notifications.
    has("Type=notify");
    has("RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX");
    assert!(unit.contains("\nWatchdogSec="));
    // Bad input stays bad; systemd checks the status of the main process alone.
    has("RestartPreventExitStatus=2");
    assert!(!unit.contains("\nExecStartPre="));
    // It is tried for ever, and not in a tight loop. `RestartSteps` would slow it down from systemd 254 on only.
    has("StartLimitIntervalSec=0");
    has("RestartSec=1s");
    assert!(!unit.contains("\nRestartSteps="));
    // The lock's directory: all else is read-only, and only root may access it.
    has("RuntimeDirectory=fairrate-agent");
    has("RuntimeDirectoryMode=0700");
}
