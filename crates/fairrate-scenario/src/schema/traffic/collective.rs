//! The keys of `kind = "collective"`.

use fairrate_sim::workload::{Collective, CollectiveAlgorithm, MAX_CHANNELS, Op, Order, Pace, Sizes};
use fairrate_units::{Bytes, Rate, Time};

use super::super::files::{Files, file_problem};
use super::Kind;
use super::ranks::read_ranks;
use crate::reader::{OrWord, Section};

/// Most chunks of a message, and most iterations.
const MOST: u32 = 1_000_000;

pub(super) fn read_collective(s: &mut Section<'_>, files: &Files<'_>) -> Kind {
    if !s.has("op") {
        s.missing("op", "\"all-reduce\"");
    }
    let op = s.choice("op", Op::NAMES, Op::AllReduce).value;
    let algorithm = read_algorithm(s, op);
    let sizes = if op == Op::AllToAll { read_sizes(s, files) } else { Sizes::Even };
    let bytes = read_bytes(s, &sizes);
    let channels = count(s, "channels", MAX_CHANNELS);
    let chunks = count(s, "chunks", MOST);
    let repeat = count(s, "repeat", MOST);
    let start = s.get("start", Time::ZERO).value;
    let compute = s.get("compute", Time::ZERO).value;
    let reduces = matches!(op, Op::AllReduce | Op::ReduceScatter);
    let reduce_rate = if reduces { read_reduce_rate(s) } else { Rate::MAX };
    let is_halving = algorithm == CollectiveAlgorithm::HalvingDoubling;
    let nearest_first = is_halving && s.get("nearest_first", false).value;
    let is_direct = algorithm == CollectiveAlgorithm::Direct;
    let order = if is_direct { s.choice("order", Order::NAMES, Order::Shifted).value } else { Order::Shifted };
    let hierarchy = op != Op::Broadcast && read_hierarchy(s, op, algorithm);
    let is_ring = algorithm == CollectiveAlgorithm::Ring && !hierarchy;
    let merged_rings = is_ring && read_merged_rings(s, chunks);
    if merged_rings && reduce_rate != Rate::MAX {
        let help = "remove `merged_rings`, or `reduce_rate`";
        s.problem_at(
            "scenario::conflict",
            "merged_rings",
            "merged messages of a ring are not added up one by one",
            help,
        );
    }
    let ranks = read_ranks(s, files);
    if compute == Time::ZERO {
        ranks.check_compute(
            s,
            "a collective without `compute` computes nothing",
            "add for instance `compute = \"1ms\"`",
        );
    }
    let collective = Collective {
        op,
        algorithm,
        hosts: None,
        bytes,
        channels,
        chunks,
        repeat,
        start,
        compute,
        pace: Pace::EVEN,
        reduce_rate,
        nearest_first,
        order,
        hierarchy,
        sizes,
        merged_rings,
    };
    Kind::Collective { collective, ranks }
}

/// Reads the bytes of each pair of ranks: those of a file, or an imbalance.
fn read_sizes(s: &mut Section<'_>, files: &Files<'_>) -> Sizes {
    if s.has("path") {
        if s.has("imbalance") {
            let help = "remove `imbalance`, or `path`";
            s.problem_at("scenario::conflict", "imbalance", "the sizes are in the file already", help);
        }
        s.node("imbalance");
        let Some(file) = files.read(s, "exchange", "csv") else { return Sizes::Even };
        let fallback = "write a line for each rank, with the bytes for each of them, as `0,1000,500`";
        return Sizes::parse_matrix(&file.text).unwrap_or_else(|error| {
            file_problem(s.report, "scenario::matrix_file", &file, &error, fallback);
            Sizes::Even
        });
    }
    s.node("path");
    let imbalance = read_imbalance(s);
    if imbalance == 1.0 { Sizes::Even } else { Sizes::Imbalance(imbalance) }
}

/// Reads how many times the mean the busiest rank gets.
pub(super) fn read_imbalance(s: &mut Section<'_>) -> f64 {
    let imbalance = s.get("imbalance", 1.0_f64).value;
    if !(1.0..=1e6).contains(&imbalance) {
        let message = format!("`imbalance = {imbalance}` is out of range");
        let help = "write how many times the mean the busiest rank gets, as `imbalance = 2.0`";
        s.problem_at("scenario::out_of_range", "imbalance", message, help);
        return 1.0;
    }
    imbalance
}

/// Reads the bytes of a rank, which a matrix has.
fn read_bytes(s: &mut Section<'_>, sizes: &Sizes) -> Bytes {
    if s.has("path") && s.is_known("path") {
        if s.has("bytes") {
            let help = "remove `bytes`, or `path`";
            s.problem_at("scenario::conflict", "bytes", "the sizes are in the file already", help);
        }
        s.node("bytes");
        return sizes.largest_row().unwrap_or(Bytes::ZERO);
    }
    let bytes = s.require::<Bytes>("bytes", "\"64MiB\"").value;
    if bytes == Bytes::ZERO && s.has("bytes") {
        let help = "write for instance `bytes = \"64MiB\"`";
        s.problem_at("scenario::out_of_range", "bytes", "a collective of no bytes", help);
    }
    bytes
}

/// Reads whether all messages of a ring from a rank to the next are one flow.
pub(super) fn read_merged_rings(s: &mut Section<'_>, chunks: u32) -> bool {
    let merged = s.get("merged_rings", false).value;
    if merged && 1 < chunks {
        let message = "merged messages of a ring have no pieces";
        s.problem_at("scenario::conflict", "merged_rings", message, "remove `merged_rings`, or `chunks`");
    }
    merged
}

/// Reads whether data goes inside servers and across them in steps of their own, which rings and exchanges do.
fn read_hierarchy(s: &mut Section<'_>, op: Op, algorithm: CollectiveAlgorithm) -> bool {
    let hierarchy = s.get("hierarchy", false).value;
    if hierarchy && op != Op::AllToAll && algorithm != CollectiveAlgorithm::Ring {
        let message = format!("there is no hierarchy of `{}`", algorithm.name());
        s.problem_at("scenario::conflict", "hierarchy", message, "set `algorithm = \"ring\"`, or remove `hierarchy`");
    }
    hierarchy
}

/// Reads the algorithm, which has to know the operation.
fn read_algorithm(s: &mut Section<'_>, op: Op) -> CollectiveAlgorithm {
    let known = op.algorithms();
    let algorithm = s.choice("algorithm", CollectiveAlgorithm::NAMES, known[0]).value;
    if known.contains(&algorithm) {
        return algorithm;
    }
    let names: Vec<&str> = known.iter().map(|algorithm| algorithm.name()).collect();
    let message = format!("there is no {} by `{}`", op.name(), algorithm.name());
    let help = format!("set `algorithm` to {}", fairrate_text::one_of(&names));
    s.problem_at("scenario::conflict", "algorithm", message, help);
    known[0]
}

/// Reads a number from 1 to `most`; 1 by default.
pub(super) fn count(s: &mut Section<'_>, key: &str, most: u32) -> u32 {
    let number = s.get::<u32>(key, 1).value;
    if number == 0 || most < number {
        let help = format!("write a number from 1 to {most}, as `{key} = 1`");
        s.problem_at("scenario::out_of_range", key, format!("`{key} = {number}` is out of range"), help);
        return 1;
    }
    number
}

fn read_reduce_rate(s: &mut Section<'_>) -> Rate {
    match s.value_or::<Rate>("reduce_rate", &["unlimited"], OrWord::Word(0)).value {
        OrWord::Word(_) => Rate::MAX,
        OrWord::Value(Rate::ZERO) => {
            let help = "write a rate above zero, as `reduce_rate = \"2Tbps\"`, or \"unlimited\"";
            s.problem_at("scenario::out_of_range", "reduce_rate", "sums that take for ever", help);
            Rate::MAX
        }
        OrWord::Value(rate) => rate,
    }
}
