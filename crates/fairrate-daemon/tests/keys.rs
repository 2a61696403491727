//! `fairrate-allocator keys`: nothing is overwritten, no link is followed, and certificates end.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use crate::common::new_dir;
use crate::common::program::{program, stderr};
use fairrate_daemon::Certificate;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const DAY: Duration = Duration::from_hours(24);

fn keys(dir: &Path, more: &[&str]) -> Output {
    let always = ["--allocators", "127.0.0.1", "--agents", "10.0.0.1,10.0.0.2"];
    program().arg("keys").arg(dir).args(always).args(more).output().expect("it starts")
}

fn made(dir: &Path, more: &[&str]) -> String {
    let output = keys(dir, more);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks that the command failed with bad input, for this reason.
fn refused(output: &Output, why: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in why {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Returns all files with their contents.
fn content(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(dir).expect("it is there").map(|entry| entry.expect("it is there").path());
    let mut all: Vec<_> = entries.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect();
    all.sort();
    all
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn certificate(path: &Path) -> Certificate {
    Certificate::read(&CertificateDer::from_pem_file(path).expect("it is there")).expect("it is one")
}

#[test]
fn half_an_authority_is_not_made_whole_by_another_one() {
    let dir = new_dir("half-an-authority");
    made(&dir, &[]);
    for (away, advice) in [("ca.key", "bring `ca.key` back"), ("ca.pem", "bring `ca.pem` back")] {
        let (there, safe) = (dir.join(away), dir.with_extension("safe"));
        fs::rename(&there, &safe).expect("it is ours");
        let before = content(&dir);
        refused(&keys(&dir, &["--renew"]), &[away, advice]);
        assert_eq!(content(&dir), before, "nothing is written");
        fs::rename(&safe, &there).expect("it is ours");
    }
    made(&dir, &[]);
}

#[test]
fn keys_of_another_authority_do_not_sign() {
    let (dir, other) = (new_dir("two-authorities"), new_dir("two-authorities-other"));
    made(&dir, &[]);
    made(&other, &[]);
    fs::copy(other.join("ca.key"), dir.join("ca.key")).expect("it is ours");
    let before = content(&dir);
    refused(&keys(&dir, &[]), &["`ca.key`", "`ca.pem`"]);
    assert_eq!(content(&dir), before);
    // Nor is a host's certificate accepted as one of this authority.
    fs::copy(other.join("ca.pem"), dir.join("ca.pem")).expect("it is ours");
    refused(&keys(&dir, &[]), &["allocator.pem", "another authority", "--renew"]);
    made(&dir, &["--renew"]);
}

#[test]
fn keys_of_hosts_are_kept_until_they_are_renewed() {
    let dir = new_dir("kept");
    made(&dir, &[]);
    let before = content(&dir);
    let text = made(&dir, &[]);
    assert_eq!(content(&dir), before);
    assert!(text.contains("10.0.0.1.key (kept"), "{text}");
    set_mode(&dir.join("allocator.key"), 0o640);
    made(&dir, &["--renew"]);
    let after = content(&dir);
    for ((path, old), (_, new)) in before.iter().zip(&after) {
        let is_of_authority = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ca."));
        assert_eq!(old == new, is_of_authority, "{}", path.display());
    }
    assert_eq!(before.len(), after.len(), "nothing is left over");
    assert_eq!(mode(&dir.join("allocator.key")), 0o640, "who could read it can read the new one");
    // Parts of two pairs.
    fs::copy(dir.join("10.0.0.1.key"), dir.join("10.0.0.2.key")).expect("it is ours");
    refused(&keys(&dir, &[]), &["10.0.0.2.key", "not the key of `10.0.0.2.pem`", "--renew"]);
    // Half a pair.
    fs::remove_file(dir.join("10.0.0.2.pem")).expect("it is ours");
    refused(&keys(&dir, &[]), &["10.0.0.2.key", "without", "--renew"]);
    made(&dir, &["--renew"]);
}

#[test]
fn certificates_end() {
    let dir = new_dir("lifetimes");
    made(&dir, &["--days", "30", "--authority-days", "90"]);
    let now = SystemTime::now();
    for (name, days) in [("ca", 90.0), ("allocator", 30.0), ("10.0.0.1", 30.0)] {
        let of = certificate(&dir.join(format!("{name}.pem")));
        assert!((of.days_left(now) - days).abs() < 0.5, "{name}: {} days", of.days_left(now));
        assert!(of.not_before <= now && now < of.not_before + DAY, "{name} begins about now");
    }
    // No certificate outlives its authority.
    let text = made(&dir, &["--days", "1000", "--renew"]);
    assert!((certificate(&dir.join("allocator.pem")).days_left(now) - 90.0).abs() < 0.5);
    assert!(text.contains("ends with the authority"), "{text}");
    let by_default = new_dir("lifetimes-default");
    made(&by_default, &[]);
    assert!((certificate(&by_default.join("allocator.pem")).days_left(now) - 365.0).abs() < 0.5);
    assert!((certificate(&by_default.join("ca.pem")).days_left(now) - 3650.0).abs() < 0.5);
    refused(&keys(&dir, &["--days", "0"]), &["--days"]);
}

#[test]
fn keys_are_their_owners_alone() {
    let dir = new_dir("modes");
    made(&dir, &[]);
    assert_eq!(mode(&dir), 0o700);
    let is_key = |path: &Path| path.extension().is_some_and(|extension| extension == "key");
    let all_keys = || content(&dir).into_iter().map(|(path, _)| path).filter(|path| is_key(path));
    assert!(all_keys().all(|path| mode(&path) == 0o600));
    // Existing keys, of hosts that are named now and of others.
    set_mode(&dir.join("ca.key"), 0o644);
    set_mode(&dir.join("10.0.0.2.key"), 0o666);
    let output = program().arg("keys").arg(&dir).args(["--allocators", "127.0.0.1"]).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("ca.key (others could read or write it: mode 644 is now 600)"), "{text}");
    assert!(text.contains("10.0.0.2.key (others could read or write it: mode 666 is now 600)"), "{text}");
    assert!(all_keys().all(|path| mode(&path) == 0o600));
}

#[test]
fn a_group_may_read_the_allocators_key_alone() {
    let dir = new_dir("group");
    let output = keys(&dir, &["--group", "12345"]);
    if !nix::unistd::geteuid().is_root() {
        refused(&output, &["12345"]);
        return println!("not run: only root may give a file to any group");
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (key, group) = (dir.join("allocator.key"), |path: &Path| fs::metadata(path).expect("it is there").gid());
    assert_eq!((mode(&key), group(&key)), (0o640, 12345));
    assert_eq!((mode(&dir), group(&dir)), (0o750, 12345), "the way there is open");
    for other in ["ca.key", "10.0.0.1.key"] {
        assert_eq!(mode(&dir.join(other)), 0o600, "{other}");
    }
    refused(&keys(&dir, &["--group", "no-such-group"]), &["no-such-group"]);
}

#[test]
fn a_group_may_read_a_key_that_was_there_before() {
    let dir = new_dir("group-later");
    made(&dir, &[]);
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: only root may give a file to any group");
    }
    let (key, before) = (dir.join("allocator.key"), content(&dir));
    assert!(made(&dir, &["--group", "12345"]).contains("the group 12345 may read it now"));
    assert_eq!((mode(&key), fs::metadata(&key).expect("it is there").gid()), (0o640, 12345));
    assert_eq!(content(&dir), before, "no key is another one");
    for other in ["ca.key", "10.0.0.1.key"] {
        assert_eq!(mode(&dir.join(other)), 0o600, "{other}");
    }
}

#[test]
fn links_are_not_followed() {
    let victim = Path::new(env!("CARGO_TARGET_TMPDIR")).join("victim");
    fs::write(&victim, "precious").expect("the target directory can be written");
    set_mode(&victim, 0o644);
    for name in ["allocator.key", "10.0.0.1.pem", "ca.key"] {
        let dir = new_dir("links");
        made(&dir, &[]);
        fs::remove_file(dir.join(name)).expect("it is ours");
        symlink(&victim, dir.join(name)).expect("it is ours");
        refused(&keys(&dir, &[]), &[name]);
        refused(&keys(&dir, &["--renew"]), &[name]);
        assert_eq!(fs::read(&victim).expect("it is there"), b"precious", "{name}");
        assert_eq!(mode(&victim), 0o644, "{name}");
    }
    // Nor is a link to a missing file a free place.
    let dir = new_dir("dangling");
    fs::create_dir(&dir).expect("the target directory can be written");
    set_mode(&dir, 0o700);
    symlink(dir.with_extension("nowhere"), dir.join("ca.key")).expect("it is ours");
    refused(&keys(&dir, &[]), &["ca.key"]);
    assert!(!dir.with_extension("nowhere").exists());
    // Nor is a directory behind a link the requested one.
    let link = new_dir("link-to-directory");
    let _ = fs::remove_file(&link);
    symlink(new_dir("dangling"), &link).expect("it is ours");
    refused(&keys(&link, &[]), &["link-to-directory"]);
}

#[test]
fn a_directory_that_others_may_write_is_no_place_for_keys() {
    for open in [0o777, 0o1777, 0o770] {
        let dir = new_dir("open-directory");
        fs::create_dir(&dir).expect("the target directory can be written");
        set_mode(&dir, open);
        refused(&keys(&dir, &[]), &["open-directory", "others may write", "chmod"]);
        assert_eq!(content(&dir), []);
    }
    if nix::unistd::geteuid().is_root() {
        let dir = new_dir("others-directory");
        fs::create_dir(&dir).expect("the target directory can be written");
        std::os::unix::fs::chown(&dir, Some(65534), None).expect("root may");
        refused(&keys(&dir, &[]), &["others-directory", "belongs to another user"]);
    }
}
