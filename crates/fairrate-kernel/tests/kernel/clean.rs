//! Attaching and detaching, in order and out of order: nothing is left.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libbpf_rs::query::ProgInfoIter;

use crate::{command, done, machine, refused, run};

const ALGORITHMS: [(&str, &str); 6] = [
    ("theta-powertcp", "fr_theta"),
    ("dctcp", "fr_dctcp"),
    ("ratemp", "fr_ratemp"),
    ("powertcp", "fr_powertcp"),
    ("rocc", "fr_rocc"),
    ("perc", "fr_perc"),
];

fn programs() -> usize {
    ProgInfoIter::default().filter(|p| p.name.to_string_lossy().starts_with("fr_")).count()
}

fn names() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("there is TCP")
}

/// Returns `true` if no program, pin or name of fairrate exists. The kernel frees programs some time after their last
/// use.
pub fn is_clean() -> bool {
    if Path::new("/sys/fs/bpf/fairrate").exists() || names().contains("fr_") {
        return false;
    }
    (0..500).any(|_| {
        programs() == 0 || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }
    })
}

#[test]
fn two_hundred_cycles_leave_nothing() {
    let Some(_machine) = machine() else { return };
    for i in 0..200 {
        // The verifier takes longest for the last four.
        let (algorithm, name) = ALGORITHMS[if i % 20 < 4 { 2 + i % 20 } else { i % 2 }];
        assert_eq!(done(&format!("attach {algorithm} --print-name")).trim(), name);
        done(&format!("detach {algorithm}"));
    }
    assert!(is_clean());
}

#[test]
fn attaching_twice_is_attaching_once() {
    let Some(_machine) = machine() else { return };
    done("attach theta-powertcp:gamma=0.8");
    let before = programs();
    done("attach theta-powertcp:gamma=0.7");
    assert_eq!(programs(), before);
    assert!(names().contains("fr_theta"));
    assert!(done("status").starts_with("theta-powertcp (fr_theta): 0 connections"));
    done("detach");
    assert_eq!(done("status"), "nothing is attached\n");
    assert_eq!(done("status --json"), "[]\n");
    let message = refused("detach theta-powertcp");
    assert!(message.starts_with("error: `theta-powertcp` is not attached"), "{message}");
    assert!(is_clean());
}

#[test]
fn half_an_attachment_is_taken_back() {
    let Some(_machine) = machine() else { return };
    let message = refused("attach rocc --default --switch-port fr-no-such-switch/eth0:1Gbps");
    assert!(message.contains("fr-no-such-switch"), "{message}");
    assert!(is_clean());
}

#[test]
fn killed_at_any_time_it_can_be_attached_again() {
    let Some(_machine) = machine() else { return };
    for ms in (0..40).step_by(2) {
        let mut child = command("attach powertcp").spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().expect("it is a child");
        child.wait().expect("it has ended");
    }
    done("attach powertcp");
    done("detach");
    assert!(is_clean());
}

#[test]
fn killed_while_it_detaches_the_rest_goes_with_the_next_one() {
    let Some(_machine) = machine() else { return };
    for ms in (0..40).step_by(2) {
        done("attach powertcp");
        let mut child = command("detach powertcp").spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().expect("it is a child");
        child.wait().expect("it has ended");
        done("detach");
        assert!(is_clean(), "after {ms} ms");
    }
}

#[test]
fn many_at_once_do_not_disturb_each_other() {
    let Some(_machine) = machine() else { return };
    let attach: Vec<_> = (0..12).map(|i| command(&format!("attach {}", ALGORITHMS[i % 6].0)).spawn()).collect();
    for child in attach {
        assert!(child.expect("the program starts").wait().expect("it ends").success());
    }
    assert!(ALGORITHMS.iter().all(|(_, name)| names().contains(name)));
    let detach: Vec<_> = ALGORITHMS.iter().map(|(a, _)| command(&format!("detach {a}")).spawn()).collect();
    for child in detach {
        assert!(child.expect("the program starts").wait().expect("it ends").success());
    }
    assert!(is_clean());
}

/// Namespaces are found by the processes in them, which may end at any time.
#[test]
fn processes_that_come_and_go_meanwhile_are_no_error() {
    let Some(_machine) = machine() else { return };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                Command::new("true").status().expect("the program starts");
            }
        });
        let results: Vec<bool> =
            (0..30).flat_map(|_| ["attach theta-powertcp", "detach"]).map(|args| run(args).status.success()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(results.iter().filter(|succeeds| !**succeeds).count(), 0);
    });
    assert!(is_clean());
}

#[test]
fn what_the_verifier_refuses_is_told_by_the_end_of_its_log() {
    let Some(_machine) = machine() else { return };
    let object = include_bytes!(concat!(env!("OUT_DIR"), "/refused.bpf.o"));
    let error = fairrate_kernel::bpf::load_only(object, "fr_refused").expect_err("it reads past an array");
    let message = error.to_string();
    assert!(message.starts_with("the kernel's verifier refuses the program; the end of its log:"), "{message}");
    assert!(message.contains("invalid access to map value"), "{message}");
    assert!(message.lines().count() <= 6, "{message}");
    assert!(is_clean());
}

#[test]
fn a_kernel_that_does_not_describe_its_types_is_named() {
    let Some(_machine) = machine() else { return };
    let error = fairrate_kernel::bpf::check(Path::new("/sys/kernel/btf/no-such-kernel")).expect_err("there is none");
    assert!(error.to_string().starts_with("this kernel does not describe its types"));
    assert!(error.help().contains("CONFIG_DEBUG_INFO_BTF"));
    assert!(fairrate_kernel::bpf::check(Path::new("/sys/kernel/btf/vmlinux")).is_ok());
}
