//! `fairrate watch` and `run --watch`: programs that are there and not there, and what the two say to each other.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{fresh_dir, interrupt, small_scenario, stderr, stdout};

/// Returns a new directory with this binary and nothing beside it.
fn alone(name: &str) -> PathBuf {
    let dir = fresh_dir(name);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::hard_link(env!("CARGO_BIN_EXE_fairrate"), dir.join("fairrate")).unwrap();
    dir
}

/// Returns a command of the binary in `dir`, which finds no other program of fairrate than those beside it.
fn fairrate_in(dir: &Path) -> Command {
    let mut command = Command::new(dir.join("fairrate"));
    command.stdin(Stdio::null()).env("NO_COLOR", "1").env("PATH", "/usr/bin:/bin");
    command
}

#[test]
fn without_the_program_they_say_how_to_get_it() {
    let (dir, scenario) = (alone("watch_alone"), small_scenario("watch_missing"));
    let out = scenario.with_file_name("out");
    let mut run = fairrate_in(&dir);
    run.args(["run", scenario.to_str().unwrap(), "--watch", "--out", out.to_str().unwrap()]);
    let mut watch = fairrate_in(&dir);
    watch.args(["watch", out.to_str().unwrap()]);
    for command in [&mut run, &mut watch] {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("cargo install --path crates/fairrate-watch"), "{said}");
    }
    assert!(!out.exists());
}

/// SIGTERM and SIGINT to `fairrate watch` alone reach its program, whose exit status is that of the command.
#[test]
fn a_signal_reaches_the_program_of_watch() {
    let dir = alone("watch_signal");
    let page = "#!/bin/sh\ntrap 'echo terminated; exit 3' TERM\ntrap 'echo interrupted; exit 4' INT\necho ready\n\
                for i in $(seq 200); do sleep 0.05; done\n";
    std::fs::write(dir.join("fairrate-watch"), page).unwrap();
    std::fs::set_permissions(dir.join("fairrate-watch"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (signal, said, code) in [("TERM", "terminated\n", 3), ("INT", "interrupted\n", 4)] {
        let mut child = fairrate_in(&dir).args(["watch", "out"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        line.clear();
        stdout.read_line(&mut line).unwrap();
        assert_eq!((child.wait().unwrap().code(), line.as_str()), (Some(code), said), "{signal}");
    }
}

/// The page asks to stop as soon as it is there; it stays when the run has ended, until Ctrl-C, and ends with the run's
/// program.
#[test]
fn a_page_stops_its_run_and_ends_with_it() {
    let (dir, scenario) = (alone("watch_stop"), small_scenario("watch_stopped"));
    let (out, ended) = (scenario.with_file_name("out"), dir.join("ended"));
    let page = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit\n[ \"$1\" = --of-run ] || exit 9\ntest -f \"$2/scenario.toml\" || exit 8\n\
         trap '' INT\necho http://page/\necho stop\ncat > /dev/null\necho yes > '{}'\n",
        ended.display()
    );
    std::fs::write(dir.join("fairrate-watch"), page).unwrap();
    std::fs::set_permissions(dir.join("fairrate-watch"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = fairrate_in(&dir);
    command.args(["run", scenario.to_str().unwrap(), "--watch", "--quiet", "--out", out.to_str().unwrap()]);
    for set in ["stop=duration", "duration=1000s", "traffic.0.bytes=endless", "probe.0.every=1ms", "probe.1.every=1ms"]
    {
        command.args(["--set", set]);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The report is the last thing that is written.
    while !out.join("report.html").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before the page stopped it");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!ended.exists() && child.try_wait().unwrap().is_none(), "the page stays");
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stdout(&output).contains("(interrupted)"), "{}", stdout(&output));
    let said = stderr(&output);
    for words in ["page        http://page/", "stopped on its page"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(ended.exists(), "the page has ended");
    assert!(std::fs::read_to_string(out.join("summary.json")).unwrap().contains("\"interrupted\""));
}
