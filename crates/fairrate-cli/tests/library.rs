//! Algorithms from shared libraries: the one in `examples/library-c`, and broken ones, on the command line. They are
//! compiled with the C compiler that rustc links with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{fairrate, fresh_dir, stderr, stdout};
use fairrate_results::Results;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles C to `dir/name`; returns its path.
fn compile(source: &Path, dir: &Path, name: &str) -> PathBuf {
    let library = dir.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared", "-fPIC", "-I"]);
    cc.arg(root().join("include")).arg("-o").arg(&library).arg(source).arg("-lm");
    let output = cc.output().expect("there is a C compiler");
    assert!(output.status.success(), "{}", stderr(&output));
    library
}

/// Creates a directory with θ-PowerTCP in C, and examples.
fn with_theta(name: &str) -> PathBuf {
    let dir = fresh_dir(name);
    std::fs::create_dir_all(&dir).expect("the target directory can be written");
    compile(&root().join("examples/library-c/theta_powertcp.c"), &dir, "libtheta.so");
    std::fs::copy(root().join("examples/incast10.toml"), dir.join("incast10.toml")).expect("a copy");
    dir
}

fn in_dir(dir: &Path, args: &[&str]) -> Output {
    fairrate().args(args).current_dir(dir).output().expect("the binary starts")
}

fn done(dir: &Path, args: &[&str]) -> String {
    let output = in_dir(dir, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

fn results(dir: &Path) -> Results {
    Results::open(dir).expect("results")
}

/// Checks that two runs are equal bit for bit: the events, and every sample of windows and rates.
fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (results(a), results(b));
    assert_eq!(a.summary.fingerprint, b.summary.fingerprint);
    let (a, b) = (a.rates().expect("rates"), b.rates().expect("rates"));
    assert!(1_000 < a.len());
    assert_eq!(a, b);
}

#[test]
fn theta_powertcp_in_c_repeats_the_built_in_one_to_the_bit() {
    let dir = with_theta("library_bits");
    let ccs = "theta-powertcp,./libtheta.so,theta-powertcp:gamma=0.6,./libtheta.so:gamma=0.6";
    let table = done(&dir, &["compare", "incast10.toml", "--cc", ccs, "--out", "out", "--quiet"]);
    assert!(table.contains("c-theta-powertcp:gamma=0.6"), "{table}");
    let run = |name: &str| dir.join("out").join(name);
    assert_same(&run("theta-powertcp"), &run("c-theta-powertcp"));
    assert_same(&run("theta-powertcp-gamma=0.6"), &run("c-theta-powertcp-gamma=0.6"));
    let summary = results(&run("c-theta-powertcp")).summary;
    assert_eq!((summary.cc.as_str(), summary.cc_title.as_str()), ("c-theta-powertcp", "θ-PowerTCP in C"));
    let report = std::fs::read_to_string(dir.join("out/report.html")).expect("the report");
    assert!(report.contains("θ-PowerTCP in C gamma=0.6"));
}

#[test]
fn a_scenario_names_a_library_and_its_results_run_again() {
    let dir = with_theta("library_scenario");
    let text = std::fs::read_to_string(dir.join("incast10.toml")).expect("text");
    let (text, one_ms) = (text.replace("\"5ms\"", "\"2ms\""), "[transport]\ncc = \"./libtheta.so\"\n");
    let own = format!("{text}{one_ms}[transport.c-theta-powertcp]\ngamma = 0.8\n");
    std::fs::create_dir(dir.join("sub")).expect("a directory");
    std::fs::rename(dir.join("libtheta.so"), dir.join("sub/libtheta.so")).expect("it is there");
    std::fs::write(dir.join("sub/own.toml"), &own).expect("it can be written");
    // Paths are relative to the scenario, whatever the current directory is.
    done(&dir, &["run", "sub/own.toml", "--out", "own", "--quiet"]);
    done(&dir, &["run", "sub/own.toml", "--cc", "theta-powertcp:gamma=0.8", "--out", "built-in", "--quiet"]);
    assert_same(&dir.join("own"), &dir.join("built-in"));
    let resolved = std::fs::read_to_string(dir.join("built-in/scenario.toml")).expect("text");
    assert!(!resolved.contains("c-theta-powertcp"), "{resolved}");
    // Two threads, with the library removed from its old place.
    std::fs::remove_file(dir.join("sub/libtheta.so")).expect("it is there");
    done(&dir, &["run", "own/scenario.toml", "--threads", "2", "--out", "again", "--quiet"]);
    assert_same(&dir.join("own"), &dir.join("again"));
    // A report does not load or run a library of the directory.
    std::fs::write(dir.join("again/c-theta-powertcp.so"), "no library").expect("it can be written");
    done(&dir, &["report", "again"]);
}

#[test]
fn a_comparison_goes_by_what_is_in_the_library() {
    let dir = with_theta("library_cache");
    let small = ["--set", "duration=1200us", "--quiet", "--json"];
    let compare = |library: &str| {
        let args = [&["compare", "incast10.toml", "--cc", library, "--out", "out"][..], &small].concat();
        let json: serde_json::Value = serde_json::from_str(&done(&dir, &args)).expect("JSON");
        json.pointer("/runs/0/scenario_hash").expect("a hash").clone()
    };
    let first = compare("./libtheta.so");
    let source = std::fs::read_to_string(root().join("examples/library-c/theta_powertcp.c")).expect("text");
    std::fs::write(dir.join("other.c"), source.replace("max(f->power, 1e-9)", "max(f->power, 0.5)")).expect("written");
    compile(&dir.join("other.c"), &dir, "libother.so");
    assert_ne!(compare("./libother.so"), first);
    assert_eq!(compare("./libtheta.so"), first);
}

/// Compiles a library that differs from a correct one in one line of a table.
fn broken(dir: &Path, name: &str, from: &str, to: &str) {
    let source = "#include \"fairrate.h\"\n\
        static void *make(const FairrateFlow *f, const double *p) { (void)f; (void)p; return 0; }\n\
        static FairrateAllowance on_start(void *s, uint64_t t) { (void)s; (void)t; FairrateAllowance a = {0}; return a; }\n\
        static FairrateAllowance on_ack(void *s, const FairrateAck *a) { (void)a; return on_start(s, 0); }\n\
        static const FairrateParameter p[] = {{\"k\", \"none\", 1.0, 0.0, 2.0}};\n\
        const FairrateAlgorithm fairrate_algorithm = {.abi = FAIRRATE_ABI, .name = \"mine\", .title = \"Mine\",\n\
        .paper = \"none\", .idea = \"none\", .parameters = p, .n_parameters = 1,\n\
        .make = make, .on_start = on_start, .on_ack = on_ack};\n\
        void *used[] = {(void *)make, (void *)on_start, (void *)on_ack, (void *)p};\n";
    assert!(source.contains(from), "{from}");
    let file = dir.join(format!("{name}.c"));
    std::fs::write(&file, source.replace(from, to)).expect("it can be written");
    compile(&file, dir, &format!("{name}.so"));
}

/// Checks that a run ends with exit code 2 and writes nothing; returns its message and help.
fn refused(dir: &Path, args: &[&str]) -> String {
    let output = in_dir(dir, &[&["run", "incast10.toml", "--out", "refused", "--quiet", "--json"][..], args].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!dir.join("refused").exists());
    let json: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    let text = |key: &str| json.pointer(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let shown = format!("{}\n  {}", text("/error/message"), text("/error/help"));
    shown.replace(&dir.display().to_string(), "DIR")
}

#[test]
fn what_is_no_library_of_ours_is_refused_with_a_way_out() {
    let dir = with_theta("library_broken");
    std::fs::write(dir.join("text.so"), "not an object").expect("it can be written");
    let cases = [
        ("version", ".abi = FAIRRATE_ABI", ".abi = 7"),
        ("symbol", "fairrate_algorithm", "another_symbol"),
        ("function", ".on_ack = on_ack", ".on_ack = 0"),
        ("no-name", ".name = \"mine\"", ".name = 0"),
        ("bad-name", ".name = \"mine\"", ".name = \"My Own\""),
        ("taken", ".name = \"mine\"", ".name = \"hpcc\""),
        ("key", ".name = \"mine\"", ".name = \"mtu\""),
        ("default", "1.0, 0.0, 2.0", "3.0, 0.0, 2.0"),
        ("no-list", ".parameters = p", ".parameters = 0"),
    ];
    let mut all: Vec<String> = Vec::new();
    let mut note = |what: &str, said: String| all.push(format!("{what}: {said}"));
    note("none", refused(&dir, &["--cc", "./libthet.so"]));
    note("in a file", refused(&dir, &["--set", "transport.cc=./libthet.so"]));
    note("text", refused(&dir, &["--cc", "./text.so"]));
    for (name, from, to) in cases {
        broken(&dir, name, from, to);
        note(name, refused(&dir, &["--cc", &format!("./{name}.so")]));
    }
    note("parameter", refused(&dir, &["--cc", "./libtheta.so:gama=0.5"]));
    note("range", refused(&dir, &["--cc", "./libtheta.so:gamma=1.5"]));
    insta::assert_snapshot!(all.join("\n"));
}
