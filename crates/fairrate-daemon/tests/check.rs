//! `check` and `run` check the keys: unusable keys are bad input, and keys that expire soon lead to a warning.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use crate::common::program::{file, program, stderr};
use crate::common::{Running, host, new_dir, secure, until};
use fairrate_daemon::keys::{self, Request};

const DAY: Duration = Duration::from_hours(24);

/// Makes keys with the given lifetime, and a configuration with them.
fn configured(name: &str, lifetime: Duration) -> (PathBuf, PathBuf) {
    let dir = new_dir(name);
    let request = Request { lifetime, ..Request::new(&[[127, 0, 0, 1].into()], &[host(1)]) };
    keys::make(&dir, &request).expect("the directory can be written");
    let config = file(&format!("{name}.toml"), &secure(&dir));
    (dir, config)
}

fn check(config: &Path) -> Output {
    program().arg("check").arg(config).output().expect("it starts")
}

/// Checks that both commands fail with these messages, and that systemd does not start the service again.
fn refused(config: &Path, expected: &[&str]) {
    for command in ["check", "run"] {
        let output = program().arg(command).arg(config).output().expect("it starts");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {text}");
        for part in expected {
            assert!(text.contains(part), "{command}: {part}: {text}");
        }
    }
}

#[test]
fn keys_that_cannot_be_used_are_bad_input() {
    let (dir, config) = configured("check-keys", 365 * DAY);
    assert_eq!(check(&config).status.code(), Some(0));
    let (key, other) = (dir.join("allocator.key"), dir.join("10.0.0.1.key"));
    let right = fs::read(&key).expect("it is there");
    fs::copy(&other, &key).expect("it is ours");
    refused(&config, &["do not fit"]);
    fs::write(&key, "no key").expect("it is ours");
    refused(&config, &["allocator.key"]);
    fs::remove_file(&key).expect("it is ours");
    refused(&config, &["allocator.key", "No such file"]);
    fs::write(&key, right).expect("the directory is ours");
    fs::write(dir.join("ca.pem"), "").expect("it is ours");
    refused(&config, &["ca.pem"]);
}

#[test]
fn keys_of_another_user_are_bad_input_with_advice() {
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: it needs root to be another user");
    }
    let (dir, config) = configured("check-unreadable", 365 * DAY);
    // A user who may pass the directory still may not read the key.
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("it is ours");
    for command in ["check", "run"] {
        let mut of_nobody = program();
        let output = of_nobody.arg(command).arg(&config).uid(65534).gid(65534).output().expect("it starts");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {text}");
        assert!(text.contains("allocator.key") && text.contains("user 65534") && text.contains("--group"), "{text}");
    }
    // The group of `--group` may read it.
    let dir = dir.with_extension("group");
    let _ = fs::remove_dir_all(&dir);
    let request = Request { group: Some(12345), ..Request::new(&[[127, 0, 0, 1].into()], &[]) };
    keys::make(&dir, &request).expect("the directory can be written");
    let config = file("check-group.toml", &secure(&dir));
    let output = program().arg("check").arg(config).uid(65534).gid(12345).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn certificates_that_end_soon_are_warned_about() {
    let text = |name: &str, lifetime: Duration| {
        let (_, config) = configured(name, lifetime);
        let output = check(&config);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let soon = text("check-soon", 20 * DAY + DAY / 2);
    assert!(soon.contains("allocator.pem") && soon.contains("20 days") && soon.contains("--renew"), "{soon}");
    assert_eq!(text("check-later", 40 * DAY), "");
    let (_, config) = configured("check-expired", Duration::ZERO);
    let output = check(&config);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("has expired"), "{}", stderr(&output));
}

#[test]
fn keys_that_others_can_read_are_warned_about() {
    let (dir, config) = configured("check-open", 365 * DAY);
    fs::set_permissions(dir.join("allocator.key"), fs::Permissions::from_mode(0o644)).expect("it is ours");
    let text = stderr(&check(&config));
    assert!(text.contains("allocator.key") && text.contains("chmod 600"), "{text}");
}

#[test]
fn an_address_that_the_certificate_does_not_name_is_warned_about() {
    let (dir, _) = configured("check-address", 365 * DAY);
    let config = file("check-address.toml", &secure(&dir).replace("127.0.0.1:0", "127.0.0.9:0"));
    let text = stderr(&check(&config));
    assert!(text.contains("127.0.0.9") && text.contains("allocator.pem"), "{text}");
}

#[test]
fn a_certificate_that_agents_refuse_is_warned_about() {
    let (dir, config) = configured("check-refused", 365 * DAY);
    assert!(!stderr(&check(&config)).contains("will refuse it"));
    // An agent's own, for this address.
    let request = Request::new(&[[127, 0, 0, 2].into()], &[[127, 0, 0, 1].into()]);
    keys::make(&dir, &request).expect("the directory is ours");
    let (of_allocator, of_agent) = (["allocator.pem", "allocator.key"], ["127.0.0.1.pem", "127.0.0.1.key"]);
    let to = |dir: &Path| {
        for (from, name) in of_agent.iter().zip(of_allocator) {
            fs::copy(dir.join(from), dir.join(name)).expect("it is ours");
        }
    };
    to(&dir);
    assert!(stderr(&check(&config)).contains("will refuse it: it is not for servers"), "{}", stderr(&check(&config)));
    let (other, _) = configured("check-refused-other", 365 * DAY);
    for name in of_allocator {
        fs::copy(other.join(name), dir.join(name)).expect("it is ours");
    }
    let text = stderr(&check(&config));
    assert!(text.contains("will refuse it: it is not signed by an authority of") && text.contains("ca.pem"), "{text}");
}

#[test]
fn a_metric_counts_the_days() {
    let (dir, _) = configured("check-metric", 200 * DAY);
    let server = Running::start(&secure(&dir), 1);
    let days = |of: &str| server.metric(&format!("fairrate_certificate_days_left{{of=\"{of}\"}}"));
    assert!((days("allocator") - 200.0).abs() < 0.5 && (days("authority") - 3650.0).abs() < 0.5);
    let request = Request { renew: true, ..Request::new(&[[127, 0, 0, 1].into()], &[]) };
    keys::make(&dir, &request).expect("the directory is ours");
    server.rekey().expect("the keys are right");
    until("it is that of the new one", || (days("allocator") - 365.0).abs() < 0.5);
    server.stop();
}
