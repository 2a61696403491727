//! The program: its errors, its signals, and the effects of its deaths on agents.

use std::path::Path;
use std::time::Duration;

use crate::common::program::{ANY_PORT, Program, file, program, stderr};
use crate::common::{ALONE_BPS, INSECURE, client, host, is_near, until};

#[test]
fn bad_input_is_told_with_its_place() {
    let wrong_key = file("wrong-key.toml", &INSECURE.replace("insecure", "insecur"));
    let wrong_rate = file("wrong-rate.toml", &INSECURE.replace("rate = \"10Gbps\"", "rat = \"10Gbps\""));
    let missing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-such-file.toml");
    for (command, config, expected) in [
        ("check", &wrong_key, vec!["wrong-key.toml", "line 2", "unknown field `insecur`", "`insecure`"]),
        ("run", &wrong_rate, vec!["wrong-rate.toml:8", "no key `rat`", "did you mean `rate`?"]),
        ("check", &missing, vec!["no-such-file.toml", "No such file"]),
    ] {
        let output = program().arg(command).arg(config).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        for part in expected {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let elsewhere = program().args(["load", "--server", "10.0.0.1:4600"]).output().expect("it starts");
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(stderr(&elsewhere).contains("no loopback address"), "{}", stderr(&elsewhere));
}

#[test]
fn a_configuration_is_described() {
    let config = file("right.toml", INSECURE);
    let output = program().arg("check").arg(config).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("8 hosts with addresses, 16 links"), "{text}");
}

#[test]
fn an_address_that_is_taken_ends_it_with_a_reason() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has one");
    let control = Path::new(env!("CARGO_TARGET_TMPDIR")).join("taken.sock");
    for (name, of) in [
        ("listen", ANY_PORT.replace("listen = \"127.0.0.1:0\"", &format!("listen = \"{address}\""))),
        ("metrics", ANY_PORT.replace("metrics = \"127.0.0.1:0\"", &format!("metrics = \"{address}\""))),
    ] {
        let text =
            INSECURE.replacen("listen = \"127.0.0.1:0\"", &format!("control = \"{}\"\n{of}", control.display()), 1);
        let output = program().arg("run").arg(file(&format!("taken-{name}.toml"), &text)).output().expect("it starts");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(text.contains(&format!("cannot listen on {address}: Address already in use")), "{name}: {text}");
        assert!(!control.exists(), "{name}: its socket is gone");
    }
}

#[test]
fn it_calls_itself_by_its_own_name() {
    let output = program().arg("--version").output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text, format!("fairrate-allocator {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn who_is_killed_comes_back() {
    let first = Program::start("killed.toml", ANY_PORT);
    let (address, again) = (first.address, format!("listen = \"{}\"\nmetrics = \"127.0.0.1:0\"", first.address));
    let client = client(&[address]);
    (0..20).for_each(|flow| client.begin(flow, host(1), host(2), 1.0));
    let all_have_rates = || (0..20).all(|flow| is_near(client.rate_bps(flow), ALONE_BPS / 20.0));
    until("all have their rates", all_have_rates);
    // `Drop` kills it, as `kill -9` does.
    drop(first);
    until("rates end with the lease", || client.rate_bps(0).is_none());
    let second = Program::start("killed-again.toml", &again);
    until("all have their rates again", all_have_rates);
    drop(second);
}

#[test]
fn who_is_stopped_goes_on() {
    let server = Program::start("stopped.toml", ANY_PORT);
    let client = client(&[server.address]);
    client.begin(1, host(1), host(2), 1.0);
    until("the flow has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    server.signal("-STOP");
    until("its rate ends with the lease", || client.rate_bps(1).is_none());
    // Longer than the lease and than agents wait for a message: they have given up meanwhile.
    std::thread::sleep(Duration::from_secs(1));
    server.signal("-CONT");
    until("the rate is back", || is_near(client.rate_bps(1), ALONE_BPS));
}

#[test]
fn signals_and_metrics() {
    let mut server = Program::start("signals.toml", ANY_PORT);
    assert!(server.get("/healthz").ends_with("\r\n\r\nok\n"));
    let client = client(&[server.address]);
    client.begin(1, host(1), host(2), 1.0);
    until("the flow has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    until("it is counted", || server.get("/metrics").contains("\nfairrate_flows 1\n"));
    server.signal("-HUP");
    until("the configuration is loaded again", || {
        server.get("/metrics").contains("fairrate_reloads_total{result=\"ok\"} 1\n")
    });
    assert!(
        server.get("/metrics").contains("fairrate_connections_closed_total{why=\"Rekeyed\"} 0\n"),
        "nobody is lost"
    );
    server.signal("-TERM");
    assert!(server.child.0.wait().expect("it ends").success());
}

#[test]
fn a_load_is_measured() {
    let server = Program::start("load.toml", ANY_PORT);
    let (address, metrics) = (server.address.to_string(), server.metrics.to_string());
    let plan = ["--agents", "4", "--flows", "20", "--hosts", "8", "--churn", "200", "--time", "500ms"];
    let to = ["load", "--server", &address, "--metrics", &metrics];
    let output = program().args(to).args(plan).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", stderr(&output));
    for part in
        ["4 agents, 20 flows", "start to first rate: p50", "ended before a rate: ", "allocator: ", "Mbit/s from agents"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}
