//! Every fuzz target on its corpus and on mutations of it: only the usual toolchain is needed, and every run tests the
//! same inputs. A mutation that fails is printed; add it to `corpus` once the fault is fixed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fairrate_fuzz_bodies as bodies;
use fairrate_sim::rng::{Purpose, Stream};

/// Number of mutations of each input.
const MUTATIONS: usize = 400;
/// Number of mutations of each file of results, which is written and read.
const OF_RESULTS: usize = 250;

/// A stream of random numbers.
struct Draw(Stream);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    /// Returns a range of up to `most` bytes of `data`.
    fn range(&mut self, data: &[u8], most: usize) -> std::ops::Range<usize> {
        let start = self.below(data.len() + 1);
        start..(start + 1 + self.below(most)).min(data.len())
    }
}

/// Words that are difficult for parsers.
const WORDS: &[&[u8]] = &[
    b"-1",
    b"0",
    b"1e308",
    b"NaN",
    b"inf",
    b"18446744073709551616",
    b"9223372036854775807",
    b"\0",
    b"\xff\xfe",
    b"\xc3\xa9",
    b"\r\n",
    b"\"",
    b"[",
    b"]]",
    b"{",
    b"#",
    b",,",
    b" = ",
    b"\n\n",
    b"0.5us",
    b"1KB",
    b"-",
];

/// Returns `data` with one to three changes.
fn mutated(draw: &mut Draw, data: &[u8], other: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..=draw.below(3) {
        let at = draw.below(data.len() + 1);
        let range = draw.range(&data, 20);
        match draw.below(8) {
            0 if at < data.len() => data[at] ^= 1 << draw.below(8),
            1 if at < data.len() => data[at] = draw.below(256) as u8,
            2 => drop(data.drain(range)),
            3 => {
                let again = data[range].to_vec();
                drop(data.splice(at..at, again));
            }
            4 => {
                let word = WORDS[draw.below(WORDS.len())].iter().copied();
                drop(data.splice(at..at, word));
            }
            5 => {
                let word = WORDS[draw.below(WORDS.len())].iter().copied();
                drop(data.splice(range, word));
            }
            6 => data.truncate(at),
            _ => {
                let piece = draw.range(other, 40);
                drop(data.splice(range, other[piece].iter().copied()));
            }
        }
    }
    data
}

/// Returns names and contents of the corpus of a target.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read(path).expect("it can be read"))
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has a corpus");
    files
}

/// Runs a target on every input, and on `mutations` of each.
fn run(inputs: &[(String, Vec<u8>)], mutations: usize, target: impl Fn(&str, &[u8])) {
    let draw = &mut Draw(Stream::new(1, 0, Purpose::Test));
    for (i, (name, data)) in inputs.iter().enumerate() {
        target(name, data);
        for n in 0..mutations {
            let other = &inputs[(i + 1 + n % inputs.len()) % inputs.len()].1;
            let data = mutated(draw, data, other);
            let result = catch_unwind(AssertUnwindSafe(|| target(name, &data)));
            let shown = || String::from_utf8_lossy(&data).escape_debug().to_string();
            assert!(result.is_ok(), "mutation {n} of `{name}` fails:\n{}", shown());
        }
    }
}

/// Runs a target that reads text.
fn run_text(target: &str, body: impl Fn(&str)) {
    run(&corpus(target), MUTATIONS, |_, data| body(&String::from_utf8_lossy(data)));
}

#[test]
fn scenarios() {
    run_text("scenario", bodies::scenario);
}

#[test]
fn flow_lists() {
    run_text("flow_list", bodies::flow_list);
}

#[test]
fn operations() {
    run_text("operations", bodies::operations);
}

#[test]
fn traces_of_chakra() {
    run(&corpus("chakra"), MUTATIONS, |_, data| bodies::chakra(data));
}

#[test]
fn topology_files() {
    run_text("topology_file", bodies::topology_file);
}

/// An input consists of the links, a line of dashes, and the flows.
#[test]
fn files_of_allocate() {
    run_text("allocate_files", |text| {
        let (links, flows) = text.split_once("---\n").unwrap_or((text, text));
        bodies::allocate_files(links, flows);
    });
}

#[test]
fn frames() {
    run(&corpus("frames"), MUTATIONS, |_, data| bodies::frames(data));
}

#[test]
fn results() {
    let number = |name: &str| bodies::files().position(|file| file == name).expect("a file of results") as u8;
    let whole = bodies::files().zip(bodies::whole());
    let mut inputs: Vec<_> = whole.map(|(name, data)| (name, data.clone())).collect();
    // The names of inputs in the corpus begin with the name of the file they replace, and a dash.
    inputs.extend(corpus("results"));
    run(&inputs, OF_RESULTS, |name, data| bodies::results(number(name.split('-').next().unwrap_or(name)), data));
}
