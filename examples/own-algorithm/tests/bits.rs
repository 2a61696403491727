//! The algorithm of this crate does what the built-in one does, and everything else knows its name.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fairrate_control::{AlgorithmConfig, Profile, Registry};
use fairrate_results::Results;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{Recorder, RunTotals, Simulation};
use own_algorithm::{MY_D2TCP, MyD2tcpConfig};

fn registry() -> Registry {
    Registry::new().with(MY_D2TCP, MyD2tcpConfig::new).expect("the name is free")
}

fn scenario_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deadlines.toml")
}

fn simulate(cc: &str, sets: &[(&str, &str)]) -> (Recorder, RunTotals) {
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..Overrides::default() };
    let scenario = Scenario::with_algorithms(&registry()).load(&scenario_file(), &overrides).expect("it reads");
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut recorder).expect("it runs");
    (recorder, simulation.totals())
}

#[test]
fn it_repeats_the_built_in_one_to_the_bit() {
    for d_max in ["1.0", "2.0", "8.0"] {
        let own = simulate("my-d2tcp", &[("transport.my-d2tcp.d_max", d_max)]);
        let built_in = simulate("d2tcp", &[("transport.d2tcp.d_max", d_max)]);
        assert_eq!(own.1, built_in.1, "d_max {d_max}");
        assert_eq!(own.0.rates, built_in.0.rates, "d_max {d_max}");
    }
    assert_ne!(simulate("my-d2tcp", &[]).1.fingerprint, simulate("dctcp", &[]).1.fingerprint);
}

#[test]
fn its_parameters_are_checked_as_those_of_the_built_in_ones() {
    let config = registry().config("my-d2tcp", Profile::Paper).expect("it is there");
    assert!(matches!(config, AlgorithmConfig::Custom(_)));
    let wrong = |key: &str, value: &str| {
        let overrides = Overrides { sets: vec![(key.to_owned(), value.to_owned())], ..Overrides::default() };
        Scenario::with_algorithms(&registry()).load(&scenario_file(), &overrides).expect_err("it is wrong")
    };
    let range = wrong("transport.my-d2tcp.d_max", "0.5");
    assert_eq!((range.first_code(), range.first_help()), ("scenario::bad_parameter", "give a number from 1 to 100"));
    let typo = wrong("transport.my-d2tcp.d_mx", "2.0");
    assert_eq!((typo.first_code(), typo.first_help()), ("scenario::unknown_key", "did you mean `d_max`?"));
    let word = wrong("transport.my-d2tcp.first_window", "11mtu");
    assert_eq!(word.first_help(), r#"write one of ["bdp", "10mtu"]"#);
    let name = wrong("transport.cc", "my-d2tpc");
    assert!(name.first_help().starts_with("did you mean `my-d2tcp`?"), "{}", name.first_help());
}

fn program(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own-algorithm")).args(args).output().expect("it starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_command_line_knows_it() {
    assert!(stdout(&program(&["list", "cc"])).contains("my-d2tcp"));
    assert!(stdout(&program(&["list", "cc", "--json"])).contains("\"first_window\""));
    for subcommand in ["run", "compare"] {
        let help = stdout(&program(&[subcommand, "--help"]));
        assert!(help.contains("Algorithms of this program: my-d2tcp"), "{help}");
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare");
    let _ = std::fs::remove_dir_all(&dir);
    let (file, out) = (scenario_file().display().to_string(), dir.display().to_string());
    let ccs = "d2tcp,my-d2tcp,my-d2tcp:d_max=4";
    let table = stdout(&program(&["compare", &file, "--cc", ccs, "--out", &out, "--quiet"]));
    assert!(table.contains("my-d2tcp:d_max=4"), "{table}");
    let summary = |run: &str| Results::open(&dir.join(run)).expect("results").summary;
    let (own, built_in) = (summary("my-d2tcp"), summary("d2tcp"));
    assert_eq!((own.cc.as_str(), own.cc_title.as_str()), ("my-d2tcp", "my D2TCP"));
    assert_eq!(own.fingerprint, built_in.fingerprint);
    assert_ne!(summary("my-d2tcp-d_max=4").fingerprint, own.fingerprint);
    let report = std::fs::read_to_string(dir.join("report.html")).expect("the report");
    assert!(report.contains("my D2TCP d_max=4"));
    // What has run is taken over, but for this crate's algorithm, whose code may have changed.
    let made = |run: &str| {
        std::fs::metadata(dir.join(run).join("summary.json")).expect("it is there").modified().expect("a time")
    };
    let before = ["d2tcp", "my-d2tcp"].map(made);
    stdout(&program(&["compare", &file, "--cc", ccs, "--out", &out, "--quiet"]));
    let after = ["d2tcp", "my-d2tcp"].map(made);
    assert!(after[0] == before[0] && after[1] != before[1], "{before:?} {after:?}");
    // The resolved scenario runs again, and the report is drawn again.
    let resolved = dir.join("my-d2tcp/scenario.toml").display().to_string();
    let again = dir.with_file_name("again").display().to_string();
    let _ = std::fs::remove_dir_all(&again);
    stdout(&program(&["run", &resolved, "--out", &again, "--quiet"]));
    assert_eq!(Results::open(Path::new(&again)).expect("results").summary.fingerprint, own.fingerprint);
    stdout(&program(&["report", &again]));
    // A misspelt name is an error with a suggestion and exit code 2.
    let wrong = program(&["run", &file, "--cc", "my-d2tpc"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(said.contains("did you mean `my-d2tcp`?"), "{said}");
}
