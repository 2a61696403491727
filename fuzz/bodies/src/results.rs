//! Results directories with one file replaced.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use fairrate_experiment::run_into;
use fairrate_results::{Results, ResultsWriter, TABLES};
use fairrate_scenario::{Overrides, Scenario};

/// A run with rows in every table.
const RUN: &str = r#"
duration = "60us"
[topology]
kind = "star"
hosts = 3
[switch]
buffer = "40KB"
[transport]
cc = "line-rate"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 2
bytes = "50KB"
[[probe]]
queue = "sw0->h0"
every = "10us"
[[probe]]
flows = "all"
[[probe]]
convergence = true
"#;

/// Returns the names of the files of a results directory; a number below their count chooses one.
pub fn files() -> impl Iterator<Item = String> {
    let tables = TABLES.iter().map(|table| format!("{}.parquet", table.name));
    ["summary.json", "scenario.toml"].map(str::to_owned).into_iter().chain(tables)
}

/// Returns the files of a whole run, in the order of [`files`].
///
/// # Panics
/// If the run cannot be written.
pub fn whole() -> &'static [Vec<u8>] {
    static WHOLE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let dir = directory("whole");
        let scenario = Scenario::from_toml(RUN, "run.toml", Path::new("."), &Overrides::default());
        let scenario = scenario.expect("it reads");
        let mut writer =
            ResultsWriter::create(&dir, &fairrate_experiment::inputs_of(&scenario)).expect("it can be written");
        let ended = run_into(scenario.into_sim_config(), 1, &mut writer, &mut ());
        // The same bytes each time.
        let wall = Duration::from_millis(1);
        writer.finish(&ended.unfinished, &ended.totals, wall, &ended.state).expect("it was written");
        let files = files().map(|name| std::fs::read(dir.join(name)).expect("it was written")).collect();
        std::fs::remove_dir_all(&dir).expect("it goes");
        files
    })
}

/// Checks that a results directory whose file number `which` is `data` is read, or gives an error, and that results
/// that are read can be drawn.
///
/// # Panics
/// If that does not hold.
pub fn results(which: u8, data: &[u8]) {
    let which = usize::from(which) % whole().len();
    let dir = directory("one");
    std::fs::create_dir_all(&dir).expect("it can be made");
    for (i, (name, file)) in files().zip(whole()).enumerate() {
        let file = if i == which { data } else { file };
        std::fs::write(dir.join(name), file).expect("it can be written");
    }
    if let Ok(results) = Results::open(&dir) {
        let _ = (results.flows(), results.ports(), results.rates(), results.pfc(), results.convergence());
    }
    match fairrate_report::load::run(&dir, &fairrate_control::Registry::new()) {
        Ok(run) => assert_eq!(run.label, run.cc),
        Err(error) => assert!(!error.to_string().is_empty(), "an error says what is wrong"),
    }
    std::fs::remove_dir_all(&dir).expect("it goes");
}

/// Returns a directory of this thread.
fn directory(name: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id()).replace(|c: char| !c.is_ascii_digit(), "");
    std::env::temp_dir().join(format!("fairrate-fuzz-{name}-{}-{thread}", std::process::id()))
}
