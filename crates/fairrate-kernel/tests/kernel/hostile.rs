//! Attacks on the pins by users who are not root, with and without write access for all to `/sys/fs/bpf`.
//!
//! Each test has mounts of its own, so those of the machine stay as they are.

use std::fs::{self, DirBuilder, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread;

use libbpf_rs::{MapCore as _, MapHandle};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::{clean, command, done, machine, refused, run};

const NOBODY: u32 = 65_534;
const PINS: &str = "/sys/fs/bpf/fairrate";

/// The state of the file system for pins before the first command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mounted {
    Not,
    ForRoot,
    ForEverybody,
}

/// Runs `f` with mounts of its own, in which the file system for pins is in the state `mounted`.
fn with_mounts<T: Send>(mounted: Mounted, f: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        unshare(CloneFlags::CLONE_NEWNS).expect("root may");
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).expect("root may");
        while umount2("/sys/fs/bpf", MntFlags::MNT_DETACH).is_ok() {}
        let mode = match mounted {
            Mounted::Not => None,
            Mounted::ForRoot => Some("mode=0700"),
            Mounted::ForEverybody => Some("mode=0777"),
        };
        if mode.is_some() {
            mount(Some("bpf"), "/sys/fs/bpf", Some("bpf"), MsFlags::empty(), mode).expect("root may");
        }
        let _detaches = Detaches;
        f()
    };
    thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A guard that detaches the remains of a failed test: its pins are in the mounts of the test, and only there.
struct Detaches;

impl Drop for Detaches {
    fn drop(&mut self) {
        let _ = Command::new(env!("CARGO_BIN_EXE_fairrate-kernel")).args(["detach", "--force"]).output();
    }
}

/// A directory whose files root must not remove.
struct Victim(PathBuf);

impl Victim {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("fairrate-victim-{}-{name}", std::process::id()));
        // A leftover of an earlier run has the same name.
        let _ = fs::remove_dir_all(&dir);
        DirBuilder::new().mode(0o755).create(&dir).expect("there is room");
        for file in ["one", "two", "params"] {
            fs::write(dir.join(file), "precious").expect("there is room");
        }
        Self(dir)
    }

    fn is_whole(&self) -> bool {
        fs::read_dir(&self.0).expect("it is there").count() == 3
            && self.0.metadata().expect("it is there").mode() & 0o777 == 0o755
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a shell of a user who is not root.
fn as_nobody(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).uid(NOBODY).gid(NOBODY).current_dir("/");
    command
}

fn succeeds_as_nobody(script: &str) -> bool {
    as_nobody(script).output().expect("there is a shell").status.success()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the traps that a user sets before root attaches: in a directory of his own, or in its place.
fn traps(victim: &Victim) -> [String; 4] {
    let victim = victim.0.display();
    [
        format!("mkdir {PINS} && ln -s {victim} {PINS}/stage"),
        format!("mkdir {PINS} && ln -s {victim} {PINS}/theta-powertcp"),
        format!("mkdir -m 0777 {PINS} && mkdir -m 0777 {PINS}/stage && ln -s {victim}/one {PINS}/stage/ops"),
        format!("ln -s {victim} {PINS}"),
    ]
}

#[test]
fn a_users_directory_is_neither_followed_nor_emptied() {
    let Some(_machine) = machine() else { return };
    for mounted in [Mounted::Not, Mounted::ForRoot, Mounted::ForEverybody] {
        let victim = Victim::new("trap");
        for trap in traps(&victim) {
            with_mounts(mounted, || {
                assert_eq!(succeeds_as_nobody(&trap), mounted == Mounted::ForEverybody, "{mounted:?}: {trap}");
                for args in ["attach theta-powertcp", "status", "detach theta-powertcp"] {
                    let output = run(args);
                    assert!(victim.is_whole(), "{mounted:?}: {trap}: {args}");
                    if mounted == Mounted::ForEverybody {
                        assert_eq!(output.status.code(), Some(2), "{trap}: {args}");
                        let message = error(&output);
                        assert!(message.contains(&format!("`{PINS}`")) && message.contains("is not used"), "{message}");
                        assert!(message.contains("chmod go-w /sys/fs/bpf"), "{message}");
                    } else {
                        assert!(output.status.success(), "{mounted:?}: {args}: {}", error(&output));
                    }
                }
                if mounted != Mounted::ForEverybody {
                    assert!(!Path::new(PINS).exists(), "{mounted:?}");
                    assert_eq!(fs::metadata("/sys/fs/bpf").expect("it is mounted").mode() & 0o077, 0, "{mounted:?}");
                }
            });
        }
        assert!(clean::is_clean());
    }
}

#[test]
fn a_directory_that_others_may_write_to_is_refused_even_if_it_is_roots() {
    let Some(_machine) = machine() else { return };
    let victim = Victim::new("roots");
    with_mounts(Mounted::ForEverybody, || {
        fs::create_dir(PINS).expect("root may");
        fs::set_permissions(PINS, fs::Permissions::from_mode(0o777)).expect("root may");
        assert!(succeeds_as_nobody(&format!("ln -s {} {PINS}/stage", victim.0.display())));
        let message = refused("attach theta-powertcp");
        assert!(message.contains("can be written by others than root (mode 0777)"), "{message}");
        assert!(victim.is_whole());
        // The same at the mount point: without the sticky bit others can rename root's files.
        fs::set_permissions("/sys/fs/bpf", fs::Permissions::from_mode(0o777)).expect("root may");
        let message = refused("attach theta-powertcp");
        assert!(message.contains("`/sys/fs/bpf` lets others rename what is root's"), "{message}");
        assert!(victim.is_whole());
    });
    assert!(clean::is_clean());
}

#[test]
fn what_is_no_pin_of_ours_is_not_removed() {
    let Some(_machine) = machine() else { return };
    let victim = Victim::new("stage");
    with_mounts(Mounted::ForRoot, || {
        fs::create_dir_all(format!("{PINS}/stage/deep/er")).expect("root may");
        let message = refused("attach theta-powertcp");
        assert!(message.contains("has something in it that is no pin of fairrate, `deep`"), "{message}");
        assert!(Path::new(&format!("{PINS}/stage/deep/er")).exists());
        fs::remove_dir_all(format!("{PINS}/stage/deep")).expect("root may");
        // A link is not a pin either, whatever its name.
        std::os::unix::fs::symlink(victim.0.join("one"), format!("{PINS}/stage/ops")).expect("root may");
        let message = refused("attach theta-powertcp");
        assert!(message.contains("is no pin of fairrate, `ops`"), "{message}");
        fs::remove_file(format!("{PINS}/stage/ops")).expect("root may");
        done("attach theta-powertcp");
        done("detach");
        assert!(!Path::new(PINS).exists());
    });
    assert!(victim.is_whole());
    assert!(clean::is_clean());
}

#[test]
fn where_everybody_may_write_the_pins_are_still_roots_alone() {
    let Some(_machine) = machine() else { return };
    with_mounts(Mounted::ForEverybody, || {
        // An earlier version made it accessible to others, so that they could hold its lock.
        DirBuilder::new().mode(0o755).create(PINS).expect("root may");
        done("attach theta-powertcp");
        assert_eq!(fs::metadata(PINS).expect("it is there").mode() & 0o7777, 0o700);
        for script in [
            format!("ls {PINS}"),
            format!("mkdir {PINS}/stage"),
            format!("flock -n {PINS} true"),
            format!("mv {PINS} {PINS}2"),
            format!("rmdir {PINS}"),
        ] {
            assert!(!succeeds_as_nobody(&script), "{script}");
        }
        done("detach");
        assert!(!Path::new(PINS).exists());
    });
    assert!(clean::is_clean());
}

/// A guard that ends a shell which exits on SIGTERM. It exits once its last command is complete: a command that
/// outlived it could still make what the test has cleared away.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = signal::kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

#[test]
fn a_user_who_swaps_directories_and_links_meanwhile_gains_nothing() {
    let Some(_machine) = machine() else { return };
    let victim = Victim::new("race");
    with_mounts(Mounted::ForEverybody, || {
        let target = victim.0.display();
        let script = format!(
            "trap exit TERM; while :; do mkdir {PINS}; ln -s {target} {PINS}/stage; ln -s {target} {PINS}/theta-powertcp; \
             rm -f {PINS}/stage {PINS}/theta-powertcp; rmdir {PINS}; ln -s {target} {PINS}; rm -f {PINS}; done 2>/dev/null"
        );
        let user = Ends(as_nobody(&script).spawn().expect("there is a shell"));
        for _ in 0..30 {
            for args in ["attach theta-powertcp", "detach"] {
                let output = run(args);
                assert!(matches!(output.status.code(), Some(0 | 2)), "{args}: {}", error(&output));
                assert!(victim.is_whole(), "{args}");
            }
        }
        drop(user);
        let _ = fs::remove_file(PINS);
        // The refused algorithm is still attached.
        let _ = as_nobody(&format!("rm -f {PINS}/*; rmdir {PINS}")).output();
        run("detach");
        assert!(!Path::new(PINS).exists());
    });
    assert!(clean::is_clean());
}

#[test]
fn a_lock_is_waited_for_with_an_end_and_its_holder_is_named() {
    let Some(_machine) = machine() else { return };
    with_mounts(Mounted::ForRoot, || {
        DirBuilder::new().mode(0o700).create(PINS).expect("root may");
        let held = File::open(PINS).expect("root may");
        held.lock().expect("nobody has it");
        for args in ["attach theta-powertcp --wait 200ms", "detach --wait 200ms"] {
            let output = run(args);
            assert_eq!(output.status.code(), Some(1), "{args}");
            let message = error(&output);
            let holder = format!("error: process {} (`", std::process::id());
            assert!(message.starts_with(&holder) && message.contains(PINS), "{message}");
        }
        // Reading the status takes no lock.
        assert_eq!(done("status"), "nothing is attached\n");
        drop(held);
        done("attach theta-powertcp --wait 200ms");
        done("detach");
    });
    assert!(clean::is_clean());
}

#[test]
fn several_at_once_mount_the_file_system_once() {
    let Some(_machine) = machine() else { return };
    with_mounts(Mounted::Not, || {
        let all: Vec<_> = (0..8).map(|_| command("attach theta-powertcp").spawn()).collect();
        for child in all {
            assert!(child.expect("the program starts").wait().expect("it ends").success());
        }
        let mounts = fs::read_to_string("/proc/thread-self/mounts").expect("it is mounted");
        let mounts: Vec<&str> = mounts.lines().filter(|line| line.contains(" /sys/fs/bpf bpf ")).collect();
        assert_eq!(mounts.len(), 1, "{mounts:?}");
        assert!(mounts[0].contains("nosuid"), "{mounts:?}");
        done("detach");
        assert!(!Path::new(PINS).exists());
    });
    assert!(clean::is_clean());
}

#[test]
fn an_algorithm_whose_pins_were_unmounted_is_named_with_a_way_out() {
    let Some(_machine) = machine() else { return };
    with_mounts(Mounted::ForRoot, || {
        done("attach theta-powertcp");
        let pins = File::open(PINS).expect("root may");
        umount2("/sys/fs/bpf", MntFlags::MNT_DETACH).expect("it is mounted");
        let message = refused("attach theta-powertcp");
        assert!(message.contains("TCP has `fr_theta`, but its pins are gone"), "{message}");
        assert!(message.contains("bpftool struct_ops unregister name fr_theta"), "{message}");
        let ops = format!("/proc/self/fd/{}/theta-powertcp/ops", pins.as_raw_fd());
        MapHandle::from_pinned_path(ops).expect("it is held open").delete(&[0; 4]).expect("it is registered");
    });
    assert!(clean::is_clean());
}
