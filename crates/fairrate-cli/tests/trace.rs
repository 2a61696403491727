//! `fairrate trace` writes a whole file, or says why it cannot.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{fairrate, run, simulated, stderr, stdout};

/// Four flows into one host, whose switch drops what does not fit.
const SCENARIO: &str = r#"
stop = "all-flows-done"
[topology]
kind = "star"
hosts = 5
rate = "25Gbps"
[switch]
pfc = false
buffer = "60KB"
[transport]
kind = "tcp"
cc = "cubic"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 4
bytes = "100KB"
"#;

/// Runs `scenario` into a directory of this test. Returns the directory of the test and that of the results.
fn results(name: &str, scenario: &str) -> (PathBuf, String) {
    let dir = simulated(name, scenario, &["-q"]).0;
    let out = dir.join("out").to_str().unwrap().to_owned();
    (dir, out)
}

/// Traces into the file `name` of `dir` and returns the text on stdout.
fn traced(dir: &Path, out: &str, name: &str, more: &[&str]) -> String {
    let file = dir.join(name);
    let output = run(&[&["trace", "-q", out, "--out", file.to_str().unwrap()], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(file.exists() && !dir.join(format!("{name}.new")).exists());
    stdout(&output)
}

/// Expects that tracing fails as bad input, with `words` in the message, and writes nothing.
fn expect_refused(dir: &Path, args: &[&str], words: &str) {
    let names = || std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let before = names();
    let output = run(&[&["trace", "-q"], args].concat());
    let message = stderr(&output).replace("\n  │ ", " ");
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(words) && stdout(&output).is_empty(), "{message}");
    assert_eq!(names(), before);
}

#[test]
fn a_trace_is_the_same_each_time() {
    let (dir, out) = results("trace_same", SCENARIO);
    let told = traced(&dir, &out, "a.pcapng", &[]);
    assert!(told.contains("cubic, seed 1, fingerprint ") && told.contains(" packets sent, "), "{told}");
    traced(&dir, &out, "b.pcapng", &[]);
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    assert!(read("a.pcapng") == read("b.pcapng"));
    let told = traced(&dir, &out, "c.pcapng", &["--limit", "20KB"]);
    assert!(told.contains("`--limit 20KB` is reached") && read("c.pcapng").len() <= 20_000, "{told}");
}

/// The format is that of the ending, and the run is the same under each.
#[test]
fn timelines_and_tables_are_of_the_same_run() {
    for (name, cc) in [("dcqcn", "cc = \"dcqcn\""), ("bbr", "cc = \"bbr\"\nkind = \"tcp\""), ("homa", "cc = \"homa\"")]
    {
        let scenario = SCENARIO.replace("kind = \"tcp\"\ncc = \"cubic\"", cc);
        let (dir, out) = results(&format!("trace_formats_{name}"), &scenario);
        let sent = |told: &str| told.split(": ").last().unwrap().split(',').next().unwrap().to_owned();
        let capture = sent(&traced(&dir, &out, "a.pcapng", &[]));
        assert_eq!(sent(&traced(&dir, &out, "a.perfetto-trace", &[])), capture);
        assert_eq!(sent(&traced(&dir, &out, "a.parquet", &[])), capture);
        let begins = |name: &str, with: &[u8]| std::fs::read(dir.join(name)).unwrap().starts_with(with);
        assert!(
            begins("a.pcapng", b"\x0A\x0D\x0D\x0A")
                && begins("a.perfetto-trace", b"\x0A")
                && begins("a.parquet", b"PAR1")
        );
    }
}

#[test]
fn bad_input_is_refused_with_a_way_out() {
    let (dir, out) = results("trace_refused", SCENARIO);
    let file = dir.join("a.pcapng");
    let file = file.to_str().unwrap();
    let refused = |args: &[&str], words: &str| expect_refused(&dir, args, words);
    refused(&["nowhere", "--out", file], "nowhere");
    refused(&[&out, "--out", "a.pcap"], "end it in `.pcapng`, `.perfetto-trace` or `.parquet`");
    refused(&[&out, "--out", dir.join("no/a.pcapng").to_str().unwrap()], "its directory does not exist");
    refused(&[&out, "--out", file, "--flow", "7"], "the run has 4 flows, from 0 to 3");
    refused(&[&out, "--out", file, "--port", "sw0->h9"], "did you mean `sw0->h");
    refused(&[&out, "--out", file, "--from", "2us", "--until", "1us"], "`--until` is later than `--from`");
    refused(&[&out, "--out", file, "--limit", "10B"], "at least 4KB");
    std::fs::write(file, "mine").unwrap();
    refused(&[&out, "--out", file], "exists");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
    // Another run, whose fingerprint the results do not have.
    let scenario = dir.join("out/scenario.toml");
    let text = std::fs::read_to_string(&scenario).unwrap();
    std::fs::write(&scenario, text.replace("\"60KB\"", "\"70KB\"").replace("seed = 1\n", "seed = 2\n")).unwrap();
    refused(&[&out, "--out", dir.join("b.pcapng").to_str().unwrap(), "--until", "1us"], "its run is another one");
}

#[test]
fn a_run_without_packets_is_refused() {
    let (dir, out) = results("trace_ideal", &SCENARIO.replace("kind = \"tcp\"\ncc = \"cubic\"", "cc = \"ideal\""));
    expect_refused(&dir, &[&out, "--out", dir.join("a.pcapng").to_str().unwrap()], "no packets");
}

/// Ctrl-C leaves neither the file nor the one beside it.
#[cfg(unix)]
#[test]
fn an_interrupted_trace_leaves_nothing() {
    let long = SCENARIO.replace("stop = \"all-flows-done\"", "duration = \"2ms\"").replace("\"100KB\"", "\"endless\"");
    let (dir, out) = results("trace_interrupt", &long);
    let (file, part) = (dir.join("a.pcapng"), dir.join("a.pcapng.new"));
    // The run goes on for longer than any test may take.
    let scenario = dir.join("out/scenario.toml");
    let text = std::fs::read_to_string(&scenario).unwrap();
    std::fs::write(&scenario, text.replace("duration = \"2ms\"", "duration = \"1000s\"")).unwrap();
    let mut command = fairrate();
    command.args(["trace", "-q", &out, "--until", "1ms", "--out", file.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while part.metadata().map_or(0, |part| part.len()) == 0 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = crate::common::interrupt(child);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(!file.exists() && !part.exists());
}

/// tshark, where there is one, finds no malformed packet, and what was sent again.
#[test]
fn tshark_reads_it() {
    let tshark = |file: &Path, filter: &str| -> Option<Vec<String>> {
        let fields = ["-T", "fields", "-e", "tcp.len", "-e", "_ws.col.Info"];
        let output = Command::new("tshark").arg("-r").arg(file).args(["-Y", filter]).args(fields).output().ok()?;
        output.status.success().then(|| stdout(&output).lines().map(str::to_owned).collect())
    };
    let (dir, out) = results("trace_tshark", SCENARIO);
    let hosts = ["--port", "h1", "--port", "h2", "--port", "h3", "--port", "h4"];
    traced(&dir, &out, "a.pcapng", &hosts);
    let file = dir.join("a.pcapng");
    let Some(all) = tshark(&file, "frame") else {
        eprintln!("left out: there is no tshark");
        return;
    };
    assert!(!all.is_empty() && all.iter().all(|line| !line.contains("Malformed")), "{all:?}");
    let again = tshark(&file, "tcp.analysis.retransmission or tcp.analysis.out_of_order").unwrap();
    assert_eq!(again, tshark(&file, "frame.comment == \"sent again\"").unwrap());
    let bytes: u64 = again.iter().map(|line| line.split('\t').next().unwrap().parse::<u64>().unwrap()).sum();
    let flows = run(&["show", &out, "--worst", "4", "--json"]);
    let flows: serde_json::Value = serde_json::from_str(&stdout(&flows)).unwrap();
    let counted = flows["flows"].as_array().unwrap().iter().map(|flow| flow["retransmitted_bytes"].as_u64().unwrap());
    assert_eq!(bytes, counted.sum::<u64>());
    assert!(0 < bytes);
}
