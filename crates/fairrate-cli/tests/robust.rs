//! A hostile machine and hostile input: killed processes, full disks, damaged results, and names that point elsewhere.
#![cfg(unix)]

mod common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Started, fairrate, fresh_dir, run, small_scenario, stderr, stdout};
use fairrate_results::TABLES;
use fairrate_sim::rng::{Purpose, Stream};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).expect("JSON")
}

/// Returns the words on stderr, without line breaks, whose places depend on the lengths of paths.
fn words(output: &Output) -> String {
    stderr(output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// Returns every file below a directory with its content.
fn snapshot(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            files.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn one_process_writes_to_a_directory_and_a_killed_one_leaves_it_free() {
    let scenario = small_scenario("lock");
    let out = scenario.with_file_name("out");
    let endless = ["--set", "stop=duration", "--set", "duration=1000s", "--set", "traffic.0.bytes=endless", "--quiet"];
    let mut command = fairrate();
    command.args(["run", text(&scenario), "--out", text(&out), "--set", "probe=[]"]).args(endless);
    let mut first = Started(Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()));
    let last_table = TABLES.last().expect("a run has tables").name;
    let last_file = |extension: &str| out.join(format!("{last_table}.{extension}"));
    // The spare copy is made after the table has its name.
    while !(last_file("parquet").exists() && last_file("parquet.part").exists()) {
        let child = first.0.as_mut().expect("it was started");
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::sleep(Duration::from_millis(2));
    }
    let before = snapshot(&out);
    for (args, said) in [
        (vec!["run", text(&scenario)], "anotherfairrateiswritingto"),
        (vec!["compare", text(&scenario), "--cc", "hpcc"], "holdsasinglerun"),
    ] {
        let second = run(&[&args[..], &["--out", text(&out)]].concat());
        assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
        let told = words(&second).replace(' ', "");
        assert!(told.contains(said) && told.contains(text(&out)), "{told}");
    }
    assert!(snapshot(&out) == before, "what the first one writes is left alone");
    drop(first);
    let third = run(&["run", text(&scenario), "--out", text(&out), "--quiet"]);
    assert_eq!(third.status.code(), Some(0), "{}", stderr(&third));
}

/// Reads every table of a directory with a plain Parquet reader, and returns their number.
fn read_tables(dir: &Path) -> usize {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let paths = entries.map(|e| e.unwrap().path());
    let tables: Vec<PathBuf> = paths.filter(|p| p.extension().is_some_and(|e| e == "parquet")).collect();
    for path in &tables {
        let reader = SerializedFileReader::new(File::open(path).unwrap());
        let reader = reader.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let rows = reader.get_row_iter(None).unwrap().inspect(|row| assert!(row.is_ok(), "{row:?}")).count();
        assert_eq!(i64::try_from(rows), Ok(reader.metadata().file_metadata().num_rows()));
    }
    tables.len()
}

/// Returns `true` if `show` has a port with a queue in the results of a run that was killed.
fn tells_of_queues(dir: &Path) -> bool {
    let shown = run(&["show", text(dir), "--json"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let ports = shown["ports"].as_array().unwrap();
    ports.iter().any(|port| port["queue_peak_bytes"].as_f64().is_some_and(|bytes| 0.0 < bytes))
}

#[test]
fn killed_runs_leave_tables_that_every_reader_reads() {
    const KILLS: usize = 60;
    let scenario = small_scenario("kills");
    let out = scenario.with_file_name("out");
    let mut command = vec!["run", text(&scenario), "--out", text(&out), "--quiet"];
    let sets =
        ["stop=duration", "duration=3ms", "traffic.0.bytes=endless", "probe.0.every=100ns", "probe.1.every=100ns"];
    command.extend(sets.iter().flat_map(|set| ["--set", set]));
    let started = Instant::now();
    assert_eq!(run(&command).status.code(), Some(0));
    let whole = u64::try_from(started.elapsed().as_micros()).unwrap();
    let (mut draws, mut n_tables, mut n_killed, mut n_told) = (Stream::new(7, 0, Purpose::Test), 0, 0, 0);
    for i in 0..KILLS {
        // Half of the runs write into a new directory, half over the remains of an earlier run.
        if i % 2 == 0 {
            fs::remove_dir_all(&out).unwrap();
        }
        let mut child = fairrate().args(&command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(draws.below(whole)));
        n_killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        n_tables += read_tables(&out);
        if out.join("summary.json").exists() {
            let state = json(&out.join("summary.json"))["state"].clone();
            assert!(state == "running" || state == "complete", "{state}");
            n_told += usize::from(state == "running" && tells_of_queues(&out));
        }
        fs::create_dir_all(&out).unwrap();
    }
    assert!(KILLS / 3 < n_killed && KILLS < n_tables, "{n_killed} were killed, {n_tables} tables were read");
    assert!(0 < n_told, "no killed run has queues in what `show` prints");
    let last = run(&command);
    assert_eq!(last.status.code(), Some(0), "{}", stderr(&last));
    let paths = fs::read_dir(&out).unwrap().map(|e| e.unwrap().path());
    let is_left = |path: &PathBuf| path.extension().is_some_and(|end| ["part", "old", "new"].iter().any(|e| end == *e));
    let left: Vec<PathBuf> = paths.filter(is_left).collect();
    assert!(left.is_empty(), "a run that ends leaves nothing of its own way: {left:?}");
}

/// Returns arguments of a run that writes far more than fits.
fn much() -> Vec<&'static str> {
    let sets = ["stop=duration", "duration=5ms", "traffic.0.bytes=endless", "probe.0.every=50ns", "probe.1.every=50ns"];
    sets.iter().flat_map(|set| ["--set", set]).collect()
}

fn assert_failed_and_readable(output: &Output, out: &Path) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    read_tables(out);
    if out.join("summary.json").exists() {
        let summary = json(&out.join("summary.json"));
        assert_eq!(summary["state"], "failed", "{summary}");
        assert!(summary["error"].as_str().is_some_and(|why| why.contains("out/")), "{summary}");
    }
}

#[test]
fn files_that_may_not_grow_are_a_failed_run() {
    let scenario = small_scenario("file_limit");
    let out = scenario.with_file_name("out");
    // A started program inherits ignored signals; writing beyond the limit is then an error.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 256; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_fairrate")]);
    command.args(["run", text(&scenario), "--out", text(&out), "--quiet"]).args(much());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_failed_and_readable(&output, &out);
    assert_eq!(read_tables(&out), TABLES.len());
    assert_eq!(json(&out.join("summary.json"))["state"], "failed");
    // This run has no such limit.
    let again = run(&["run", text(&scenario), "--out", text(&out), "--quiet"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
}

/// Needs a separate mount namespace for a small file system; without one, only the limit of
/// [`files_that_may_not_grow_are_a_failed_run`] is tested.
#[test]
fn a_full_disk_is_a_failed_run() {
    let scenario = small_scenario("full_disk");
    let out = scenario.with_file_name("disk");
    fs::create_dir_all(&out).unwrap();
    let unshare = |script: &str, rest: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).args(rest);
        command.stdin(Stdio::null()).output()
    };
    if !unshare("mount -t tmpfs none \"$1\"", &[text(&out)]).is_ok_and(|o| o.status.success()) {
        eprintln!("left out: no file system can be mounted here");
        return;
    }
    let kept = scenario.with_file_name("kept");
    // Sizes from too small for the first file to nearly sufficient.
    for size in (4..=60).step_by(8).chain([100, 400]) {
        let script = format!(
            "mount -t tmpfs -o size={size}k none \"$1\" || exit 99; disk=$1; kept=$2; shift 2; \"$@\"; code=$?; \
             mkdir -p \"$disk/out\"; cp -r \"$disk/out\" \"$kept\"; exit $code"
        );
        let _ = fs::remove_dir_all(&kept);
        let results = out.join("out");
        let mut rest = vec![text(&out), text(&kept), env!("CARGO_BIN_EXE_fairrate"), "run", text(&scenario)];
        rest.extend(["--out", text(&results), "--quiet"]);
        rest.extend(much());
        let output = unshare(&script, &rest).unwrap();
        assert_failed_and_readable(&output, &kept);
    }
}

#[test]
fn damaged_runs_are_run_again() {
    let scenario = small_scenario("damage");
    let out = scenario.with_file_name("out");
    let compare = || run(&["compare", text(&scenario), "--cc", "hpcc,dctcp", "--out", text(&out), "--json"]);
    let means = |output: &Output| {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
        let index: Value = serde_json::from_str(&stdout(output)).unwrap();
        let values = index["statistics"]["values"].as_array().unwrap().clone();
        values.into_iter().filter(|v| v["metric"] != "ns_per_packet_hop").collect::<Vec<_>>()
    };
    let first = means(&compare());
    assert!(stderr(&compare()).contains("2 of 2 runs are complete already"));
    let ports = fs::read(out.join("hpcc/ports.parquet")).unwrap();
    let mut flipped = ports.clone();
    flipped[100] ^= 4;
    let summary = fs::read(out.join("hpcc/summary.json")).unwrap();
    for (name, content) in [
        ("ports.parquet", Some(&ports[..ports.len() / 2])),
        ("ports.parquet", Some(&[][..])),
        ("ports.parquet", Some(&flipped[..])),
        ("ports.parquet", None),
        ("summary.json", Some(&[][..])),
        ("summary.json", Some(&summary[..summary.len() / 2])),
        ("summary.json", Some(b"{}")),
        ("summary.json", None),
    ] {
        let path = out.join("hpcc").join(name);
        match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        // No page is written for damaged results.
        let before = fs::read(out.join("report.html")).unwrap();
        for dir in [out.join("hpcc"), out.clone()] {
            let report = run(&["report", text(&dir)]);
            assert!(matches!(report.status.code(), Some(1 | 2)), "{name}: {}", stderr(&report));
            assert!(words(&report).replace(' ', "").contains("hpcc"), "{name}: {}", stderr(&report));
        }
        assert!(fs::read(out.join("report.html")).unwrap() == before);
        let again = compare();
        assert!(stderr(&again).contains("1 of 2 runs are complete already"), "{name}: {}", stderr(&again));
        assert_eq!(means(&again), first, "{name}");
    }
    fs::write(out.join("compare.json"), "").unwrap();
    assert_eq!(run(&["report", text(&out)]).status.code(), Some(1));
    assert!(stderr(&compare()).contains("2 of 2 runs are complete already"));
}

#[test]
fn a_page_that_is_not_ours_is_left_alone() {
    let scenario = small_scenario("users_page");
    let dir = scenario.parent().unwrap();
    fs::rename(&scenario, dir.join("scenario.toml")).unwrap();
    fs::write(dir.join("report.html"), "mine").unwrap();
    let before = snapshot(dir);
    let scenario = dir.join("scenario.toml");
    for args in [vec!["run", text(&scenario)], vec!["compare", text(&scenario), "--cc", "hpcc"]] {
        let output = run(&[&args[..], &["--out", text(dir)]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(words(&output).contains("holds something else than results"), "{}", stderr(&output));
    }
    // A directory in the place of a run is not changed either.
    let out = dir.join("out");
    fs::create_dir_all(out.join("hpcc")).unwrap();
    fs::write(out.join("hpcc/notes.txt"), "mine").unwrap();
    fs::write(out.join(".fairrate.lock"), "").unwrap();
    let output = run(&["compare", text(&scenario), "--cc", "hpcc,dctcp", "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    fs::remove_dir_all(&out).unwrap();
    assert!(snapshot(dir) == before);
}

#[test]
fn lost_output_is_a_failure() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let scenario = small_scenario("lost_output");
    let out = scenario.with_file_name("out");
    let links = scenario.with_file_name("links.csv");
    let flows = scenario.with_file_name("flows.csv");
    fs::write(&links, "link,capacity_gbps\na,10\n").unwrap();
    fs::write(&flows, "flow,links\nx,a\n").unwrap();
    let allocate = ["allocate", "--links", text(&links), "--flows", text(&flows), "--objective", "max-min"];
    let mut commands = vec![allocate.to_vec(), vec!["list", "cc"], vec!["run", text(&scenario), "--out", text(&out)]];
    commands.push(vec!["compare", text(&scenario), "--cc", "hpcc", "--out", text(&out)]);
    commands.push(vec!["report", text(&out)]);
    for args in commands {
        let json = if args[0] == "report" { &[][..] } else { &["--json"][..] };
        for more in [&[][..], json] {
            let _ = if args[0] == "report" { Ok(()) } else { fs::remove_dir_all(&out) };
            let mut command = fairrate();
            command.args(&args).args(more).stdout(File::options().write(true).open(full).unwrap());
            let output = command.stderr(Stdio::piped()).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{args:?} {more:?}: {}", stderr(&output));
            assert!(stderr(&output).contains("writing `stdout` failed"), "{args:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn names_stay_below_runs_and_do_nothing_to_a_terminal() {
    let home = fresh_dir("names");
    let work = home.join("a/b/work");
    fs::create_dir_all(&work).unwrap();
    let scenario = small_scenario("names_scenario");
    let body = fs::read_to_string(&scenario).unwrap();
    let go = |name: &str, args: &[&str]| {
        let path = home.join("named.toml");
        fs::write(&path, format!("name = \"{name}\"\n{body}")).unwrap();
        fairrate().current_dir(&work).args(args).arg(&path).output().unwrap()
    };
    let elsewhere = format!("{}/elsewhere/x", text(&home));
    for name in [elsewhere.as_str(), "../../x", "..", ".", "a/b", "a b"] {
        for args in [&["run"][..], &["compare", "--cc", "hpcc"][..]] {
            let output = go(name, args);
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        }
    }
    let names = |dir: &Path| fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!((names(&work), names(&home.join("a"))), (vec!["runs".into()], vec!["b".into()]));
    assert_eq!(names(&home).len(), 2, "{:?}", names(&home));
    assert_eq!(names(&work.join("runs")).len(), 10, "{:?}", names(&work.join("runs")));
    let before = snapshot(&home).len();
    for name in ["a\\u0000b", "a\\u001b[2Jb", "a\\nb", &"x".repeat(300)] {
        let output = go(name, &["run"]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
        assert!(!output.stderr.contains(&0x1b) && !output.stdout.contains(&0x1b), "{name}");
    }
    // Quoted text in errors does no harm either.
    fs::write(home.join("named.toml"), "name = 3 # \u{1b}[2J\u{9b}2J\n\"\u{1b}]0;x\u{7}\" = 1\n").unwrap();
    let output = run(&["run", text(&home.join("named.toml"))]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).contains(['\u{1b}', '\u{9b}', '\u{7}']), "{}", stderr(&output));
    assert_eq!(snapshot(&home).len(), before);
}

#[test]
fn a_comparison_leads_nowhere_else() {
    let scenario = small_scenario("leads");
    let out = scenario.with_file_name("out");
    let compare = run(&["compare", text(&scenario), "--cc", "hpcc", "--out", text(&out), "--quiet"]);
    assert_eq!(compare.status.code(), Some(0), "{}", stderr(&compare));
    let path = out.join("compare.json");
    let index = fs::read_to_string(&path).unwrap();
    for dir in ["..", "/", "../out/hpcc", ""] {
        fs::write(&path, index.replace("\"dir\": \"hpcc\"", &format!("\"dir\": \"{dir}\""))).unwrap();
        let report = run(&["report", text(&out)]);
        assert_eq!(report.status.code(), Some(1), "{dir}: {}", stderr(&report));
        assert!(words(&report).contains("is no directory of a run"), "{dir}: {}", stderr(&report));
    }
}

#[test]
fn numbers_of_another_run_are_not_those_of_a_column() {
    let scenario = small_scenario("replaced");
    let out = scenario.with_file_name("out");
    let compare = ["compare", text(&scenario), "--cc", "hpcc,dctcp", "--out", text(&out), "--quiet"];
    assert_eq!(run(&compare).status.code(), Some(0));
    let (taken, other) = (out.join("dctcp"), scenario.with_file_name("other.toml"));
    let all: [&[&str]; 3] = [&["report"], &["show"], &["explain", "--tail", "--quiet"]];
    let read = |args: &[&str]| run(&[args, &[text(&out)]].concat());
    for bytes in ["50KB", "60KB"] {
        // A run of the comparison's scenario again has the same numbers.
        fs::write(&other, fs::read_to_string(&scenario).unwrap().replace("50KB", bytes)).unwrap();
        let again =
            run(&["run", text(&other), "--set", "name=small", "--cc", "dctcp", "--out", text(&taken), "--quiet"]);
        assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
        for args in all {
            let output = read(args);
            assert_eq!(
                output.status.code(),
                Some(if bytes == "50KB" { 0 } else { 2 }),
                "{args:?}: {}",
                stderr(&output)
            );
            let said = words(&output).contains("holds another run than the comparison's");
            assert_eq!(said, bytes == "60KB", "{args:?}: {}", stderr(&output));
        }
    }
    // The comparison is what repeats it.
    assert_eq!(run(&compare).status.code(), Some(0));
    assert_eq!(all.map(|args| read(args).status.code()), [Some(0); 3]);
}

#[test]
fn a_run_and_a_comparison_do_not_share_a_directory() {
    let scenario = small_scenario("kinds");
    let (single, several) = (scenario.with_file_name("single"), scenario.with_file_name("several"));
    let compared = |out: &Path| run(&["compare", text(&scenario), "--cc", "hpcc,swift", "--out", text(out), "--quiet"]);
    let simulated = |out: &Path| run(&["run", text(&scenario), "--out", text(out), "--quiet"]);
    for again in 0..2 {
        assert_eq!(simulated(&single).status.code(), Some(0), "{again}");
        assert_eq!(compared(&several).status.code(), Some(0), "{again}");
    }
    let before = [snapshot(&single), snapshot(&several)];
    let refused = [
        (compared(&single), "holds a single run, not a comparison"),
        (simulated(&several), "holds a comparison, not a single run"),
    ];
    for (output, said) in refused {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(words(&output).contains(said), "{}", stderr(&output));
    }
    assert_eq!([snapshot(&single), snapshot(&several)], before);
}

#[test]
fn other_programs_are_named_and_their_ends_are_told() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;
    let dir = fresh_dir("robust_plugins");
    fs::create_dir_all(dir.join("fairrate-sub")).unwrap();
    for (name, script) in [("fairrate-sub/x", "exit 0"), ("fairrate-dies", "kill -KILL $$")] {
        fs::write(dir.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let go = |name: &str| fairrate().arg(name).current_dir(&dir).env("PATH", &dir).output().unwrap();
    for name in ["sub/x", "sub/", "/x"] {
        let output = go(name);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains("is not known"), "{name}: {}", stderr(&output));
    }
    // It takes the command's place, so its end is that of the command.
    assert_eq!(go("dies").status.signal(), Some(9));
}

#[test]
fn endless_input_is_refused() {
    if !Path::new("/dev/zero").exists() {
        return;
    }
    let scenario = small_scenario("endless_input");
    let flows = scenario.with_file_name("flows.csv");
    fs::write(&flows, "flow,links\nx,a\n").unwrap();
    for args in [
        vec!["allocate", "--links", "/dev/zero", "--flows", text(&flows), "--objective", "max-min"],
        vec!["allocate", "--topology", "star", "--flows", "/dev/zero", "--objective", "max-min"],
        vec!["run", "/dev/zero"],
    ] {
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
    }
}

/// Runs a command with limited address space, in which large workloads do not fit.
fn within(kilobytes: u32, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {kilobytes}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_fairrate")]);
    command.args(args).env("NO_COLOR", "1").stdin(Stdio::null()).output().unwrap()
}

#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_is_made() {
    let scenario = small_scenario("memory");
    let out = scenario.with_file_name("out");
    let head = "duration = \"100s\"\n[topology]\nkind = \"star\"\nhosts = 16\n[[traffic]]\nload = 1.0\n";
    for traffic in [
        "kind = \"poisson\"\nsizes = \"fb-web\"\nmax_flows = 20000000\n",
        "kind = \"closed-loop\"\nsizes = \"fixed\"\nsize = \"1B\"\nstop = \"20ms\"\n",
    ] {
        fs::write(&scenario, format!("{head}{traffic}")).unwrap();
        let output = within(2_000_000, &["run", text(&scenario), "--out", text(&out)]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let told = words(&output);
        assert!(told.contains("GB of memory, and there are") && told.contains("too_little_memory"), "{told}");
        assert!(!out.exists());
    }
    let probe = "kind = \"permutation\"\nbytes = \"1KB\"\n[[probe]]\nqueues = \"host-links\"\nevery = \"10ns\"\n";
    fs::write(&scenario, format!("{}{probe}", head.replace("load = 1.0\n", ""))).unwrap();
    let output = within(2_000_000, &["run", text(&scenario), "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(words(&output).contains("samples of ports take up to"), "{}", stderr(&output));
    // Links with one flow each: the reference needs memory proportional to the square of their number.
    let (links, flows) = (scenario.with_file_name("links.csv"), scenario.with_file_name("flows.csv"));
    let lines = |head: &str, line: &dyn Fn(u32) -> String| {
        let lines: Vec<String> = std::iter::once(head.to_owned()).chain((0..20_000).map(line)).collect();
        lines.join("\n")
    };
    fs::write(&links, lines("link,capacity_gbps", &|i| format!("l{i},10"))).unwrap();
    fs::write(&flows, lines("flow,links", &|i| format!("f{i},l{i}"))).unwrap();
    let args = ["allocate", "--links", text(&links), "--flows", text(&flows), "--objective", "proportional"];
    let output = within(2_000_000, &[&args[..], &["--method", "reference"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        words(&output).contains("`--method reference` needs 3.2 GB of memory, and there are"),
        "{}",
        stderr(&output)
    );
    assert_eq!(within(2_000_000, &args).status.code(), Some(0));
}

#[test]
fn the_limit_of_hosts_is_the_one_that_is_told() {
    let scenario = small_scenario("limits");
    for hosts in [99_000_000, 2_000_000, 200_000] {
        let set = format!("topology.hosts={hosts}");
        let output = run(&["run", text(&scenario), "--set", &set]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(words(&output).contains("100000"), "{}", stderr(&output));
    }
}

#[test]
fn a_column_is_suggested_by_its_meaning() {
    let scenario = small_scenario("suggestion");
    let list = scenario.with_file_name("flows.csv");
    fs::write(&list, "src,dst,size_bytes,start\nh1,h0,1000,0\n").unwrap();
    let set = "traffic=[{kind = \"list\", path = \"flows.csv\"}]";
    let output = run(&["run", text(&scenario), "--set", set]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(words(&output).contains("did you mean `start_ns`?"), "{}", stderr(&output));
}

#[test]
fn plans_are_bounded_before_they_are_made() {
    let scenario = small_scenario("plans");
    let out = scenario.with_file_name("out");
    let values = (1..=1_000).map(|i| format!("{i}KB")).collect::<Vec<_>>().join(",");
    let grid = format!("traffic.0.bytes={values}");
    for more in [
        &["--grid", &grid, "--seeds", "1..10000"][..],
        &["--seeds", "1..10000,10001..20000"],
        &["--seeds", "1..100000"],
    ] {
        let output = within(1_000_000, &[&["compare", text(&scenario), "--out", text(&out)], more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(!out.exists());
    }
}

#[test]
fn flows_behind_the_end_of_a_run_are_not_made() {
    let scenario = small_scenario("behind_the_end");
    let out = scenario.with_file_name("out");
    let body = "duration = \"100us\"\n[topology]\nkind = \"star\"\nhosts = 16\n[[traffic]]\nkind = \"poisson\"\n\
                sizes = \"fb-web\"\nload = 1.0\nstop = \"100ms\"\n";
    fs::write(&scenario, body).unwrap();
    let output = run(&["run", text(&scenario), "--out", text(&out), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = json(&out.join("summary.json"));
    assert!(summary["flows"].as_u64().unwrap() < 5_000, "{}", summary["flows"]);
    // The resolved scenario has the same meaning as the file, and gives the same run.
    let again = run(&["run", text(&out.join("scenario.toml")), "--out", text(&out.with_file_name("again")), "--json"]);
    let fingerprint = |o: &Output| serde_json::from_str::<Value>(&stdout(o)).unwrap()["fingerprint"].clone();
    assert_eq!(fingerprint(&output), fingerprint(&again));
}

/// Returns the error of a command with `--json`, which is the last line of stderr.
fn error_of(output: &Output) -> Value {
    let told = stderr(output);
    let line = told.lines().last().unwrap_or_default();
    serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {told}"))["error"].clone()
}

#[test]
fn errors_are_json_where_results_are() {
    let scenario = small_scenario("json_errors");
    let out = scenario.with_file_name("out");
    let (links, flows) = (scenario.with_file_name("links.csv"), scenario.with_file_name("flows.csv"));
    fs::write(&links, "link,capacity_gbps\na,ten\n").unwrap();
    fs::write(&flows, "flow,links\nx,a\n").unwrap();
    let bad = scenario.with_file_name("bad.toml");
    fs::write(&bad, "duration = \"1ms\"\nsede = 3\n[topology]\nkind = \"str\"\n").unwrap();
    let (taken, nowhere) = (scenario.with_file_name("taken"), scenario.with_file_name("nowhere.toml"));
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("x"), "").unwrap();
    let allocate = ["allocate", "--links", text(&links), "--flows", text(&flows), "--objective", "max-min"];
    for (args, code, path, place) in [
        (vec!["run", text(&bad)], "scenario::unknown_name", Some(text(&bad)), Some((4, 8))),
        (vec!["run", text(&nowhere)], "scenario::unreadable_file", Some(text(&nowhere)), None),
        (vec!["compare", text(&bad), "--seeds", "1"], "scenario::unknown_name", Some(text(&bad)), Some((4, 8))),
        (vec!["run", text(&scenario), "--out", text(&taken)], "results::occupied", Some(text(&taken)), None),
        (vec!["run", text(&scenario), "--cc", "hpc"], "cli::unknown_name", None, None),
        (allocate.to_vec(), "cli::input_file", Some(text(&links)), Some((2, 3))),
        (vec!["list", "everything"], "cli::usage", None, None),
        (vec!["run"], "cli::usage", None, None),
        (vec!["bench", "--job", "nothing"], "cli::usage", None, None),
    ] {
        let output = run(&[&args[..], &["--json"]].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{args:?}: {}", stderr(&output));
        let error = error_of(&output);
        assert_eq!((error["code"].as_str(), &error["exit_code"]), (Some(code), &2.into()), "{args:?}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{args:?}: {error}");
        assert_eq!(error["path"].as_str(), path, "{args:?}: {error}");
        let (line, column) = (error["line"].as_u64(), error["column"].as_u64());
        assert_eq!(line.zip(column), place, "{args:?}: {error}");
        assert!(error["help"].is_string(), "{args:?}: {error}");
    }
    let output = run(&["run", text(&bad), "--json"]);
    assert_eq!(error_of(&output)["others"].as_array().map(Vec::len), Some(2), "{}", error_of(&output));
    // Without `--json` errors are printed as text.
    assert!(stderr(&run(&["run", text(&bad)])).contains("did you mean `seed`?"));
    // A failed run reports its failure on both stdout and stderr.
    let body = fs::read_to_string(&scenario).unwrap();
    fs::write(&scenario, body + "[[fault]]\nlinks = [\"sw0->h0\"]\nloss = 1.0\n").unwrap();
    let output = run(&["run", text(&scenario), "--out", text(&out), "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(serde_json::from_str::<Value>(&stdout(&output)).unwrap()["state"], "failed");
    assert_eq!((error_of(&output)["code"].as_str(), &error_of(&output)["exit_code"]), (Some("run::failed"), &1.into()));
}
