//! A log that cannot be written ends nothing, and a thread that panics ends the whole program.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::program::{ANY_PORT, Program, all_of, file, full_disk, program};
use crate::common::{ALONE_BPS, INSECURE, client, host, is_near, until};
use fairrate_daemon::Metrics;
use fairrate_daemon::logging::{Log, PANICKED};

#[test]
fn rates_go_on_when_nobody_reads_the_log() {
    let server = Program::start_with_closed_log("closed-log.toml", ANY_PORT);
    let client = client(&[server.address]);
    client.begin(1, host(1), host(2), 1.0);
    until("the flow has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    // The allocator logs that it closes this connection.
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.write_all(&[0, 0]).expect("there is room");
    all_of(&mut stream);
    let lost = || {
        server
            .get("/metrics")
            .lines()
            .any(|line| line.starts_with("fairrate_log_lines_lost_total ") && !line.ends_with(" 0"))
    };
    until("the lost line is counted", lost);
    client.begin(2, host(1), host(2), 1.0);
    until("rates still follow flows", || is_near(client.rate_bps(2), ALONE_BPS / 2.0));
    assert!(server.get("/healthz").ends_with("\r\n\r\nok\n"));
}

#[test]
fn no_command_needs_its_output() {
    let config = file("no-output.toml", INSECURE);
    let dir = file("no-output-keys", "").with_extension("d");
    let keys = ["keys", &dir.display().to_string(), "--allocators", "127.0.0.1"];
    let check = ["check", &config.display().to_string()];
    for (args, status) in [(&keys[..], 1), (&check[..], 1), (&["check", "no-such-file.toml"][..], 2)] {
        let mut command = program();
        let output = command.args(args).stdout(full_disk()).stderr(full_disk()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
    }
}

/// The environment variable set where the test runs itself to see how it ends.
const CHILD: &str = "FAIRRATE_TEST_PANIC";

#[test]
fn a_panic_in_any_thread_ends_the_program() {
    if std::env::var_os(CHILD).is_some() {
        let log = Log::to(std::io::stderr(), Metrics::new().log_lines_lost()).expect("threads");
        log.end_on_panic();
        let thread = std::thread::Builder::new().name("busy".into()).spawn(|| panic!("it is \x1b[31mover"));
        let _ = thread.expect("threads").join();
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let own = std::env::current_exe().expect("it has a path");
    let mut child = Command::new(own);
    child.args(["--exact", "log::a_panic_in_any_thread_ends_the_program", "--nocapture"]).env(CHILD, "1");
    let output = child.stderr(Stdio::piped()).output().expect("it starts");
    let text = crate::common::program::stderr(&output);
    assert_eq!(output.status.code(), Some(PANICKED), "{text}");
    assert!(text.contains("error: thread `busy`") && text.contains("tests/log.rs"), "{text}");
}
