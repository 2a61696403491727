//! `cargo xtask test`: all checks, each named and timed on stderr, by the clock and in time of processors, which other
//! lanes do not change much.
//!
//! Two lanes of checks run side by side. One builds with cargo's profile for tests and the other with that for
//! releases, so that neither waits for the other. The output of a check in a lane is shown when it has ended. Checks
//! that measure on this machine's network run last, alone.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{cargo, kernel};

/// A check: its name and the arguments of its commands, of which each must succeed. `xtask` runs this program, all else
/// is cargo's.
struct Check {
    name: &'static str,
    commands: Vec<Vec<&'static str>>,
}

/// Returns the check of one command, whose arguments have no spaces.
fn check(name: &'static str, command: &'static str) -> Check {
    Check { name, commands: vec![command.split(' ').collect()] }
}

/// The setting that makes warnings of rustdoc errors, such as a broken link.
const STRICT: &str = r#"build.rustdocflags=["-D","warnings"]"#;

/// Returns the checks that run side by side, by lane. With `bpf`, the programs in the kernel are built too.
fn lanes(bpf: bool) -> [Vec<Check>; 2] {
    let mut clippy = check("clippy", "clippy --workspace --all-targets --locked -- -D warnings");
    let mut tests = check("tests", "test --workspace --locked");
    if bpf {
        let tests_as_root = ["--test", "field", "--test", "kernel"];
        let all = ["clippy", "--workspace", "--all-targets", "--locked", "--features", kernel::FEATURES];
        clippy.commands.push([&all[..], &tests_as_root, &["--", "-D", "warnings"]].concat());
        tests.commands[0].extend(["--features", kernel::FEATURES]);
        // The checks that run alone then have less to build.
        let build = ["build", "--workspace", "--locked", "--features", kernel::FEATURES];
        tests.commands.push([&build[..], &tests_as_root].concat());
    }
    let mut links = check("links of rustdoc", "doc --workspace --no-deps --document-private-items --locked");
    links.commands[0].extend(["--config", STRICT]);
    let of_tests = vec![
        check("format", "fmt --all --check"),
        check("prose", "xtask prose"),
        clippy,
        links,
        tests,
        check("own algorithms", "xtask own-algorithms"),
        check("page in a browser", "xtask watch-page --if-possible"),
    ];
    let of_releases = vec![
        check("dependencies", "xtask dependencies"),
        check("packages", "package --workspace --no-verify --allow-dirty --offline --quiet"),
        check("C header", "xtask header --check"),
        check("ns-3", "xtask validate ns3"),
        check("ns-3's TCP", "xtask validate ns3-tcp"),
        check("HOMA's authors' code", "xtask validate homa-omnet"),
        check("RoCC's authors' code", "xtask validate rocc-omnet"),
        check("Ultra Ethernet's simulator", "xtask validate uet-htsim"),
        check("the simulator of NDP and EQDS", "xtask validate csg-htsim"),
        check("hardware", "xtask hardware --check --if-possible"),
        check("instructions", "xtask instructions --if-possible"),
        // It compares with programs of the other lane, whose build it waits for.
        check("Python", "xtask python --if-possible"),
        check("release", "xtask dist --dev --if-possible"),
    ];
    [of_tests, of_releases]
}

/// Returns the checks that run alone, since they measure.
fn alone() -> Vec<Check> {
    vec![
        check("testbed", "xtask testbed --if-possible"),
        check("agents", "xtask agent --if-possible"),
        check("in the kernel", "xtask kernel --if-possible"),
    ]
}

/// Runs all checks; once one has failed, no other begins. Returns `true` if all pass.
pub fn run(root: &Path) -> bool {
    let (lanes, alone) = (lanes(kernel::missing().is_none()), alone());
    let n_checks = lanes.iter().map(Vec::len).sum::<usize>() + alone.len();
    let run = Run { root, n_checks, n_begun: AtomicUsize::new(0), results: Mutex::default() };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for lane in &lanes {
            scope.spawn(|| run.one_by_one(lane, Display::AtEnd));
        }
    });
    run.one_by_one(&alone, Display::AtOnce);
    let results = run.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    if results.stopped_at.is_empty() {
        eprintln!("all checks passed in {:.1} s", begin.elapsed().as_secs_f64());
    }
    for name in &results.stopped_at {
        println!("stopped at the check `{name}`");
    }
    println!("{} passed, {} failed", results.count.passed, results.count.failed);
    results.stopped_at.is_empty()
}

/// A run of all checks, which the lanes share.
struct Run<'a> {
    root: &'a Path,
    n_checks: usize,
    n_begun: AtomicUsize,
    results: Mutex<Results>,
}

/// The results of the checks that have ended. Whoever has the lock may print.
#[derive(Default)]
struct Results {
    count: Count,
    stopped_at: Vec<&'static str>,
}

impl Run<'_> {
    /// Runs checks one after the other, until one has failed, here or in another lane.
    fn one_by_one(&self, checks: &[Check], display: Display) {
        for check in checks {
            if !self.results().stopped_at.is_empty() {
                return;
            }
            let step =
                format!("[{}/{}] {}", 1 + self.n_begun.fetch_add(1, Ordering::Relaxed), self.n_checks, check.name);
            eprintln!("{step}: begins");
            let start = Instant::now();
            let mut output = Output { display, ..Output::default() };
            let passed = check.commands.iter().all(|command| self.succeeds(command, &mut output));
            let mut results = self.results();
            output.show();
            results.count += output.count(passed);
            if !passed {
                results.stopped_at.push(check.name);
            }
            let verdict = if passed { "passed" } else { "FAILED" };
            let [took, busy] = [start.elapsed(), output.processor_time].map(|time| time.as_secs_f64());
            eprintln!("{step}: {verdict} in {took:.1} s, {busy:.1} s of processors");
        }
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a command. Returns `true` if it succeeds.
    fn succeeds(&self, args: &[&str], output: &mut Output) -> bool {
        output.add(format!("$ cargo {}", args.join(" ")));
        self.run_one(args, output).unwrap_or_else(|e| {
            output.add(format!("cannot be run: {e}"));
            false
        })
    }

    fn run_one(&self, args: &[&str], output: &mut Output) -> std::io::Result<bool> {
        // Through cargo this program would wait for what another lane builds.
        let (mut command, args) = match args.split_first() {
            Some((&"xtask", rest)) => (Command::new(std::env::current_exe()?), rest),
            _ => (cargo::command(self.root), args),
        };
        command.args(args);
        if std::io::stderr().is_terminal() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        // Property tests draw the same cases every time; without the variable they draw new ones.
        command.env("PROPTEST_RNG_SEED", "1");
        let (reader, writer) = std::io::pipe()?;
        command.current_dir(self.root).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // It holds the pipe open.
        drop(command);
        for line in BufReader::new(reader).split(b'\n') {
            output.add(String::from_utf8_lossy(&line?).into_owned());
        }
        output.processor_time += processor_time(child.id()).unwrap_or_default();
        Ok(child.wait()?.success())
    }
}

/// Waits until a child of this process has ended. Returns its processor time and that of all processes that it has
/// waited for; `None` on a system without `/proc`.
fn processor_time(id: u32) -> Option<Duration> {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The fields after the name, which may contain parentheses: the state, and from the twelfth on the times.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            let ticks = fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u64>());
            // Linux reports times to programs in hundredths of a second.
            return Some(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>().ok()?));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The time at which the output of a check is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Display {
    /// Each line when it comes, for checks that run alone.
    AtOnce,
    /// All lines when the check has ended.
    #[default]
    AtEnd,
}

/// The output of a check, and what it costs.
#[derive(Default)]
struct Output {
    display: Display,
    lines: Vec<String>,
    processor_time: Duration,
}

impl Output {
    fn add(&mut self, line: String) {
        if self.display == Display::AtOnce {
            println!("{line}");
        }
        self.lines.push(line);
    }

    /// Prints what has not been shown yet.
    fn show(&self) {
        if self.display == Display::AtEnd {
            self.lines.iter().for_each(|line| println!("{line}"));
        }
    }

    /// Returns the tests in the output of a check. A check without tests, such as the format, counts as one, but not if
    /// it has not been run.
    fn count(&self, passed: bool) -> Count {
        let mut count = Count::default();
        self.lines.iter().filter_map(|line| test_result(line)).for_each(|result| count += result);
        let was_run = !self.lines.iter().any(|line| line.starts_with("not run: "));
        if passed && count == Count::default() {
            count.passed = u64::from(was_run);
        }
        if !passed {
            count.failed = count.failed.max(1);
        }
        count
    }
}

/// Numbers of passed and failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
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

    #[test]
    fn the_time_of_a_child_includes_its_children() {
        let loops = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let Ok(mut child) = Command::new("sh").args(["-c", &format!("({loops}); true")]).spawn() else { return };
        let time = processor_time(child.id());
        child.wait().expect("it was started");
        if cfg!(target_os = "linux") {
            assert!(time.is_some_and(|time| Duration::ZERO < time), "{time:?}");
        }
    }

    #[test]
    fn a_check_counts_by_its_exit_code_where_no_test_says_more() {
        let output = |text: &str| Output { lines: text.lines().map(str::to_owned).collect(), ..Output::default() };
        let count = |passed, failed| Count { passed, failed };
        assert_eq!(output("formatted").count(true), count(1, 0));
        assert_eq!(output("formatted").count(false), count(0, 1));
        assert_eq!(output("not run: needs root").count(true), count(0, 0));
        let two = "rows: 2 inside, 0 outside\nrows: 3 inside, 1 outside";
        assert_eq!((output(two).count(true), output(two).count(false)), (count(5, 1), count(5, 1)));
        assert_eq!(output("not run: MPTCP\nrows: 2 inside, 0 outside").count(false), count(2, 1));
    }

    #[test]
    fn every_check_has_its_own_name() {
        for bpf in [false, true] {
            let checks: Vec<Check> = lanes(bpf).into_iter().flatten().chain(alone()).collect();
            let names: std::collections::BTreeSet<&str> = checks.iter().map(|check| check.name).collect();
            assert_eq!(names.len(), checks.len());
            assert!(checks.iter().flat_map(|check| &check.commands).flatten().all(|arg| !arg.is_empty()));
        }
    }
}
