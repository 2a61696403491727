//! Random whole scenarios: every topology, algorithm and kind of traffic, both transports, faults, classes,
//! disciplines, run on one, two and three threads, and again from the resolved text.
//!
//! `FAIRRATE_CASES` is the number of cases, and `FAIRRATE_SEED` the seed of the first one; a case that fails is printed
//! with its seed and reduced to the parts that matter.

mod case;
mod check;
mod draw;
mod explained;
mod fabric;
mod found;
mod hosts;
mod imperfect;
mod network;
mod observer;
mod shrink;
mod traced;
mod traffic;

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use case::{Case, case};
use check::{Verdict, check};

/// Default number of cases; each takes about ten milliseconds.
const CASES: u64 = 3_000;
/// Number of failures after which no more cases are begun.
const ENOUGH: usize = 5;

/// Returns a number from the environment.
fn number(name: &str, default: u64) -> u64 {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("`{name}` is a number, not `{text}`"));
    std::env::var(name).map_or(default, parse)
}

/// The cases that were begun, and their results.
struct Tally {
    next: AtomicU64,
    end: u64,
    verdicts: Mutex<Vec<Verdict>>,
    failures: Mutex<Vec<String>>,
}

#[test]
fn random_scenarios_hold_what_is_promised() {
    let first = number("FAIRRATE_SEED", 1);
    let n_cases = number("FAIRRATE_CASES", CASES);
    let tally = Tally {
        next: AtomicU64::new(first),
        end: first + n_cases,
        verdicts: Mutex::default(),
        failures: Mutex::default(),
    };
    // A panic of a case is reported with the case. Threads of tests have names, the workers have none.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name().is_some() {
            hook(info);
        }
    }));
    let n_workers = std::thread::available_parallelism().map_or(1, |n| n.get().min(4));
    let tally_ref = &tally;
    std::thread::scope(|scope| {
        for worker in 0..n_workers {
            scope.spawn(move || work(worker, tally_ref));
        }
    });
    let failures = tally.failures.into_inner().expect("no worker panics");
    assert!(failures.is_empty(), "{} cases fail\n\n{}", failures.len(), failures.join("\n"));
    let verdicts = tally.verdicts.into_inner().expect("no worker panics");
    let count = |what| verdicts.iter().filter(|v| **v == what).count();
    let (ran, refused, stalled) = (count(Verdict::Ran), count(Verdict::Refused), count(Verdict::Stalled));
    println!("{ran} ran, {refused} were refused, {stalled} stalled");
    assert!(n_cases < 100 || verdicts.len() / 2 < ran, "most scenarios run: {ran} of {}", verdicts.len());
}

/// Checks cases until none are left.
fn work(worker: usize, tally: &Tally) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{}-{worker}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("it can be made");
    loop {
        let seed = tally.next.fetch_add(1, Ordering::Relaxed);
        if tally.end <= seed || ENOUGH <= tally.failures.lock().expect("no worker panics").len() {
            break;
        }
        let case = case(seed, &dir);
        match check(&case, &dir) {
            Ok(verdict) => tally.verdicts.lock().expect("no worker panics").push(verdict),
            Err(why) => {
                let text = describe(seed, &why, &case, &dir);
                tally.failures.lock().expect("no worker panics").push(text);
            }
        }
    }
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

/// Returns a description of a failure: its cause, the command to repeat it, and the smallest scenario that fails in the
/// same way.
fn describe(seed: u64, why: &str, case: &Case, dir: &Path) -> String {
    // Two failures are of the same kind if their messages differ only in numbers.
    let kind = |why: &str| why.chars().filter(|c| !c.is_ascii_hexdigit()).collect::<String>();
    let fails = |case: &Case| check(case, dir).is_err_and(|other| kind(&other) == kind(why));
    let least = shrink::shrink(case, fails);
    let again = check(&least, dir).err().unwrap_or_default();
    let mut text = format!(
        "FAIRRATE_SEED={seed} FAIRRATE_CASES=1 cargo test -p fairrate-scenario --test random\n{why}\nshrunk: {again}\n\n{}",
        least.toml
    );
    for (name, file) in &least.files {
        write!(text, "\n{name}\n{file}").expect("text");
    }
    text
}

#[test]
fn what_was_found_once_holds() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("found-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("it can be made");
    let verdict = |toml: &str| check(&Case { toml: toml.to_owned(), files: Vec::new() }, &dir);
    let fails = found::FOUND
        .iter()
        .chain(found::LATER)
        .map(|(what, toml)| (what, verdict(toml)))
        .filter(|(_, v)| *v != Ok(Verdict::Ran));
    let fails: Vec<_> = fails.collect();
    std::fs::remove_dir_all(&dir).expect("it can be removed");
    assert!(fails.is_empty(), "{fails:#?}");
}

/// In this build, overflows of arithmetic and failed debug assertions panic.
#[test]
fn the_build_is_checked() {
    let assertion = std::panic::catch_unwind(|| debug_assert!(std::hint::black_box(false)));
    let overflow = std::panic::catch_unwind(|| std::hint::black_box(u8::MAX) + std::hint::black_box(1));
    assert!(assertion.is_err() && overflow.is_err());
}
