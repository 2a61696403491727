//! The agent as a service: a single instance, its health, its log, its notifications to systemd.

use std::net::SocketAddrV4;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::rack::{PORT, Rack, Running, agents_metrics, page, until};

fn keep_stderr(command: &mut Command) {
    command.stderr(Stdio::piped());
}

/// Two agents would count every flow twice.
#[test]
fn a_second_agent_of_a_namespace_refuses() {
    let mut rack = Rack::new().with_agents([0], "");
    let mut second = rack.changed_agent(0, &[PORT], "", keep_stderr);
    let (code, text) = second.output();
    assert!(code == Some(1) && text.contains("another agent (process "), "{code:?}: {text}");
    assert!(text.contains("looks after this network namespace"), "{text}");
    // In another namespace another agent may run, and after a killed agent a new one may.
    let _elsewhere = rack.agent(1, &[PORT], "");
    rack.wait_for_agents(2);
    rack.agents[0].kill();
    rack.wait_for_agents(1);
    let _third = rack.agent(0, &[PORT], "");
    rack.wait_for_agents(2);
}

/// `check` finds what would stop `run`: control groups that are hidden, as `ip netns exec` hides those of the host.
#[test]
fn check_looks_for_control_groups() {
    let file = std::env::temp_dir().join(format!("fairrate-check-{}.toml", std::process::id()));
    let text = "fabric = [\"10.0.0.0/24\"]\nallocator = { servers = [\"10.0.0.8:4600\"], insecure = true }\n";
    std::fs::write(&file, text).unwrap();
    let check = |before: &str| {
        let script = format!("{before} exec {} check {}", env!("CARGO_BIN_EXE_fairrate-agent"), file.display());
        let done = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, text) = check("umount --all --lazy --types cgroup2;");
    assert!(code == Some(1) && text.contains("`nsenter --net=/run/netns/NAME` does not"), "{code:?}: {text}");
    if fairrate_agent::cgroups::root().unwrap().is_some() {
        assert_eq!(check(""), (Some(0), String::new()));
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn health_and_metrics_are_served() {
    let rack = Rack::new().with_agents([0], "metrics = 9462\n");
    let ask = |address: &str, path: &str| {
        let at = SocketAddrV4::new(address.parse().unwrap(), 9_462);
        rack.at(0, || Ok(page(at, path)))
    };
    assert!(ask("127.0.0.1", "/healthz").unwrap().ends_with("\r\n\r\nok\n"));
    let metrics = || ask("127.0.0.1", "/metrics").unwrap();
    assert!(metrics().contains("fairrate_agent_flow_starts_total 0\n"), "{}", metrics());
    until("it is connected", || metrics().contains("fairrate_agent_allocators 1\n"));
    // A port alone is on the loopback address of this host.
    assert!(ask("10.0.0.1", "/healthz").is_err());
}

#[test]
fn rates_go_on_when_nobody_takes_the_log() {
    let rack = Rack::new().with_agents([], "");
    let mut agent = rack.changed_agent(0, &[PORT], &agents_metrics(), keep_stderr);
    agent.close_stderr();
    rack.wait_for_agents(1);
    let flow = rack.flow(0);
    until("it has a rate", || flow.limit_bps().is_finite());
    until("lines are counted", || 0.0 < rack.agent_metric(0, "fairrate_agent_log_lines_lost_total"));
    assert!(agent.end().success());
    flow.stop();
}

#[test]
fn an_allocator_that_is_not_there_is_logged() {
    let rack = Rack::new();
    let mut agent = rack.changed_agent(0, &[PORT], &agents_metrics(), keep_stderr);
    until("it runs", || rack.at(0, || Ok(page(SocketAddrV4::new(Rack::address(0), 9_461), "/healthz").is_ok())));
    std::thread::sleep(Duration::from_secs(3));
    agent.signal(Signal::SIGTERM);
    let (code, text) = agent.output();
    let lines = text.lines().filter(|line| line.contains("no connection to the allocator")).count();
    assert!(code == Some(0) && text.contains("10.0.0.8:4600"), "{text}");
    // There are few of them, though it tries several times a second.
    assert!((1..=6).contains(&lines), "{text}");
}

/// Returns the agent's notifications to systemd until one contains `word`.
fn words_until(socket: &UnixDatagram, word: &str) -> String {
    let (mut all, mut buffer) = (String::new(), [0; 1024]);
    while !all.contains(word) {
        let n = socket.recv(&mut buffer).expect("it says something in time");
        all += &String::from_utf8_lossy(&buffer[..n]);
        all.push('\n');
    }
    all
}

#[test]
fn systemd_hears_that_it_is_ready_and_alive() {
    let rack = Rack::new().with_agents([], "");
    // A path, as abstract names belong to a network namespace.
    let path = std::env::temp_dir().join(format!("fairrate-notify-{}", std::process::id()));
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let change = |command: &mut Command| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "3000000");
    };
    let agent: Running = rack.changed_agent(0, &[PORT], "", change);
    assert!(words_until(&socket, "READY=1").contains("STATUS="));
    (0..2).for_each(|_| drop(words_until(&socket, "WATCHDOG=1")));
    // A stopped process sends no notifications, and systemd restarts it.
    agent.signal(Signal::SIGSTOP);
    socket.set_nonblocking(true).unwrap();
    while socket.recv(&mut [0; 64]).is_ok() {}
    std::thread::sleep(Duration::from_secs(2));
    assert!(socket.recv(&mut [0; 64]).is_err());
    agent.signal(Signal::SIGCONT);
    socket.set_nonblocking(false).unwrap();
    words_until(&socket, "WATCHDOG=1");
    agent.signal(Signal::SIGTERM);
    words_until(&socket, "STOPPING=1");
    assert!(agent.end().success());
    std::fs::remove_file(path).unwrap();
}
