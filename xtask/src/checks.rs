//! `cargo xtask test`: the checks in their order, each named and timed on stderr.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A check: its name and cargo's arguments.
const CHECKS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("prose", &["xtask", "prose"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    (
        "links of rustdoc",
        &["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--config", STRICT],
    ),
    ("dependencies", &["xtask", "dependencies"]),
    ("C header", &["xtask", "header", "--check"]),
    ("tests", &["test", "--workspace", "--locked"]),
    ("own algorithms", &["xtask", "own-algorithms"]),
    ("Python", &["xtask", "python", "--if-possible"]),
    ("testbed", &["xtask", "testbed", "--if-possible"]),
    ("agents", &["xtask", "agent", "--if-possible"]),
    ("in the kernel", &["xtask", "kernel", "--if-possible"]),
    ("ns-3", &["xtask", "validate", "ns3"]),
    ("ns-3's TCP", &["xtask", "validate", "ns3-tcp"]),
    ("instructions", &["xtask", "instructions", "--if-possible"]),
];

/// The setting that makes warnings of rustdoc errors, such as a broken link.
const STRICT: &str = r#"build.rustdocflags=["-D","warnings"]"#;

/// Numbers of passed and failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
}

/// Runs all checks, and stops at the first that fails. Returns `true` if all pass.
pub fn run(root: &Path) -> Result<bool, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut count = Count::default();
    let begin = Instant::now();
    for (i, (name, args)) in CHECKS.iter().enumerate() {
        let step = format!("[{}/{}] {name}", i + 1, CHECKS.len());
        eprintln!("{step}: cargo {}", args.join(" "));
        let start = Instant::now();
        let mut command = Command::new(&cargo);
        // Property tests draw the same cases every time; without the variable they draw new ones.
        command.args(*args).current_dir(root).env("PROPTEST_RNG_SEED", "1");
        let passed = run_one(&mut command, &mut count).map_err(|e| format!("cannot run the check `{name}`: {e}"))?;
        eprintln!("{step}: {} in {:.1} s", if passed { "passed" } else { "FAILED" }, start.elapsed().as_secs_f64());
        if !passed {
            // A failed check without tests, such as the format, counts as one test.
            count.failed = count.failed.max(1);
            println!("stopped at the check `{name}`");
            println!("{} passed, {} failed", count.passed, count.failed);
            return Ok(false);
        }
    }
    eprintln!("all checks passed in {:.1} s", begin.elapsed().as_secs_f64());
    println!("{} passed, {} failed", count.passed, count.failed);
    Ok(true)
}

/// Runs a command, prints its output and adds up the test results in it. Returns `true` if it succeeds.
fn run_one(command: &mut Command, count: &mut Count) -> std::io::Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let before = *count;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line?;
            println!("{line}");
            if let Some(result) = test_result(&line) {
                count.passed += result.passed;
                count.failed += result.failed;
            }
        }
    }
    let success = child.wait()?.success();
    if success && before == *count {
        // A check without tests counts as one test.
        count.passed += 1;
    }
    Ok(success)
}

/// Reads `test result: ok. 12 passed; 0 failed; ...`, or `rows: 12 inside, 0 outside, ...` of a validation.
fn test_result(line: &str) -> Option<Count> {
    let number = |text: &str, after: &str| text.split(after).next()?.trim().rsplit(' ').next()?.parse().ok();
    if let Some(rest) = line.strip_prefix("test result: ") {
        return Some(Count { passed: number(rest, " passed")?, failed: number(rest.split_once(';')?.1, " failed")? });
    }
    let rest = line.strip_prefix("rows: ")?;
    Some(Count { passed: number(rest, " inside")?, failed: number(rest.split_once(',')?.1, " outside")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_and_of_a_validation_are_read() {
        let cargo = "test result: ok. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(test_result(cargo), Some(Count { passed: 12, failed: 3 }));
        let rows = "rows: 410 inside, 7 outside, 66 without tolerance";
        assert_eq!(test_result(rows), Some(Count { passed: 410, failed: 7 }));
        assert_eq!(test_result("running 12 tests"), None);
    }
}
