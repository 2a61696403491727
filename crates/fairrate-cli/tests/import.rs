//! `fairrate import` writes scenarios that run.

use crate::common::{fresh_dir, run, stderr, stdout};

const MATRIX: &str = "Nodes 16\nConnections 2\n0->13 start 0 size 200000\n3->13 start 4 size 100000\n";

#[test]
fn a_job_of_htsim_runs() {
    let dir = fresh_dir("import_htsim");
    std::fs::create_dir_all(&dir).unwrap();
    let (job, out, results) = (dir.join("job.cm"), dir.join("deeper/made"), dir.join("results"));
    std::fs::write(&job, MATRIX).unwrap();
    let import = |more: &[&str]| {
        run(&[&["import", "htsim", job.to_str().unwrap(), "--out", out.to_str().unwrap()], more].concat())
    };
    // Starts at several times need a unit, and nothing is written without it.
    let refused = import(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--start-unit") && !out.exists(), "{}", stderr(&refused));
    let made = import(&["--start-unit", "us"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert!(stdout(&made).contains("2 flows between 16 hosts") && stdout(&made).contains("Not carried over"));
    let scenario = out.join("scenario.toml");
    let ran = run(&["run", scenario.to_str().unwrap(), "--out", results.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let summary = std::fs::read_to_string(results.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&summary["finished_flows"], &summary["unfinished_flows"]), (&2.into(), &0.into()), "{summary}");
    let again = import(&["--start-unit", "us"]);
    assert!(again.status.code() == Some(2) && stderr(&again).contains("exists"), "{}", stderr(&again));
}

#[test]
fn an_error_shows_the_line() {
    let dir = fresh_dir("import_wrong");
    std::fs::create_dir_all(&dir).unwrap();
    let (job, out) = (dir.join("job.cm"), dir.join("made"));
    std::fs::write(&job, MATRIX.replace("size 100000", "trigger 1 size 100000")).unwrap();
    let refused = run(&["import", "htsim", job.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let text = stderr(&refused);
    let huge = MATRIX.replace("start 4", "start 18446744073709551615");
    std::fs::write(dir.join("huge.cm"), huge).unwrap();
    let path = dir.join("huge.cm");
    let late = run(&["import", "htsim", path.to_str().unwrap(), "--start-unit", "us", "--out", out.to_str().unwrap()]);
    assert!(late.status.code() == Some(2) && !out.exists(), "{}", stderr(&late));
    assert!(text.contains("a `start` and a `trigger`") && text.contains("job.cm:4") && !out.exists(), "{text}");
}

/// Eight ranks of a workload as AICB writes it: one all-reduce in tensor groups of two, and gradients in data groups of
/// four.
#[test]
fn a_workload_of_simai_runs() {
    let dir = fresh_dir("import_simai");
    std::fs::create_dir_all(&dir).unwrap();
    let head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0\n";
    let layers = "2\ngrads -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4000000 1\nmlp -1 50000 ALLREDUCE 1000000 100000 NONE 0 1 NONE 0 1\n";
    let (file, out, results) = (dir.join("workload.txt"), dir.join("made"), dir.join("results"));
    let import = |text: String| {
        std::fs::write(&file, text).unwrap();
        run(&["import", "simai", file.to_str().unwrap(), "--out", out.to_str().unwrap()])
    };
    let refused = import(format!("{head}{}", layers.replace("ALLREDUCE 1000000", "BROADCAST 1000000")));
    assert_eq!(refused.status.code(), Some(2));
    let text = stderr(&refused);
    assert!(text.contains("workload.txt:4") && text.contains("`BROADCAST`") && !out.exists(), "{text}");
    let made = import(format!("{head}{layers}"));
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let said = stdout(&made);
    assert!(said.contains("8 ranks, 2 layers") && said.contains("Not carried over"), "{said}");
    assert!(said.contains("dp: 2 groups of 4 ranks, each with 1 operations of 4000000 bytes in all"), "{said}");
    let scenario = out.join("scenario.toml");
    let ran = run(&["run", scenario.to_str().unwrap(), "--out", results.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let json: serde_json::Value = serde_json::from_str(&stdout(&ran)).unwrap();
    let ns = |field: &str| json["metrics"]["jobs"][0][field].as_f64().unwrap();
    assert_eq!(ns("compute_ns"), 150_000.0);
    // At 400 Gb/s: 2 x 1/2 of 1 MB, and 2 x 3/4 of 4 MB, with headers and latencies of 2 and 6 steps.
    let least = 150_000.0 + 20_000.0 + 120_000.0;
    assert!(least < ns("time_ns") && ns("time_ns") < 1.2 * least, "{json}");
}

/// Traces of two ranks, written byte by byte: a computation of 50 us, and an all-reduce of 4,000,000 bytes.
#[test]
fn traces_of_chakra_run() {
    let dir = fresh_dir("import_chakra");
    std::fs::create_dir_all(&dir).unwrap();
    let varint = |mut number: u64| {
        let mut bytes = Vec::new();
        while 0x80 <= number {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let bytes =
        |field: u64, value: &[u8]| [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat();
    let number = |field: u64, value: u64| [varint(field << 3), varint(value)].concat();
    let record = |message: &[u8]| [varint(message.len() as u64), message.to_vec()].concat();
    let int64 = |name: &str, value: u64| bytes(10, &[bytes(1, name.as_bytes()), number(9, value)].concat());
    let trace = |size: &str| {
        let compute = [number(1, 1), bytes(2, b"mlp"), number(3, 4), number(7, 50)].concat();
        let reduce =
            [number(1, 2), number(3, 7), bytes(5, &[1]), int64("comm_type", 0), int64(size, 4_000_000)].concat();
        [record(&bytes(1, b"0.0.4")), record(&compute), record(&reduce)].concat()
    };
    let (prefix, out, results) = (dir.join("job"), dir.join("made"), dir.join("results"));
    let import = |rank: u32, trace: Vec<u8>| {
        std::fs::write(dir.join(format!("job.{rank}.et")), trace).unwrap();
        run(&["import", "chakra", prefix.to_str().unwrap(), "--out", out.to_str().unwrap()])
    };
    let refused = import(1, trace("comm_size"));
    assert!(
        stderr(&refused).contains("job.0.et` is missing") && refused.status.code() == Some(2),
        "{}",
        stderr(&refused)
    );
    let refused = import(0, trace("comm_bytes"));
    let text = stderr(&refused).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("job.0.et`") && text.contains("node 2, `comm_size`") && !out.exists(), "{text}");
    let made = import(0, trace("comm_size"));
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let said = stdout(&made);
    assert!(said.contains("2 ranks; times read in us and written in ns, sizes in bytes"), "{said}");
    assert!(said.contains("computations: 2, of 100000 ns in all") && said.contains("Not carried over"), "{said}");
    assert!(said.contains("all, 2 ranks: 1 all-reduce of 4000000 bytes in all"), "{said}");
    let scenario = out.join("scenario.toml");
    let ran = run(&["run", scenario.to_str().unwrap(), "--out", results.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let json: serde_json::Value = serde_json::from_str(&stdout(&ran)).unwrap();
    let ns = |field: &str| json["metrics"]["jobs"][0][field].as_f64().unwrap();
    assert_eq!(ns("compute_ns"), 50_000.0);
    // At 400 Gb/s: 2 x 1/2 of 4 MB, with headers and the latencies of two steps.
    let least = 50_000.0 + 80_000.0;
    assert!(least < ns("time_ns") && ns("time_ns") < 1.2 * least, "{json}");
}

/// A run goes to the ns-3 code's files and back, and does the same: the flows take the same paths and times.
#[test]
fn a_run_of_ns_3_goes_there_and_back() {
    let dir = fresh_dir("import_ns3");
    std::fs::create_dir_all(dir.join("run")).unwrap();
    let scenario = "profile = \"ns3\"\nduration = \"1s\"\nstop = \"all-flows-done\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
        [transport]\ncc = \"hpcc\"\nwindow = \"rate-scaled\"\n[[traffic]]\nkind = \"all-to-all\"\nbytes = \"20KB\"\n";
    let (path, files, made) = (dir.join("scenario.toml"), dir.join("run/ns3"), dir.join("made"));
    std::fs::write(&path, scenario).unwrap();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let exported = run(&["export", "ns3", &text(&path), "--out", &text(&files)]);
    assert_eq!(exported.status.code(), Some(0), "{}", stderr(&exported));
    assert!(stdout(&exported).contains("56 flows"), "{}", stdout(&exported));
    // As the ns-3 code is started from a directory above its files.
    let config = files.join("config.txt");
    let settings = std::fs::read_to_string(&config).unwrap().replace("FILE topology.txt", "FILE ns3/topology.txt");
    std::fs::write(&config, settings).unwrap();
    let imported = run(&["import", "ns3", &text(&config), "--out", &text(&made)]);
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    let fingerprint = |scenario: &std::path::Path, name: &str| {
        let out = dir.join(name);
        let ran = run(&["run", &text(scenario), "--out", &text(&out), "--json", "-q"]);
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        let summary: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).unwrap()).unwrap();
        (summary["fingerprint"].clone(), summary["finished_flows"].clone())
    };
    let there = fingerprint(&path, "a");
    assert_eq!((&there.1, &there), (&56.into(), &fingerprint(&made.join("scenario.toml"), "b")));
    // What is named and missing is asked for.
    std::fs::remove_file(files.join("flow.txt")).unwrap();
    let refused = run(&["import", "ns3", &text(&config), "--out", &text(&dir.join("other"))]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--flows FILE") && !dir.join("other").exists(), "{}", stderr(&refused));
}
