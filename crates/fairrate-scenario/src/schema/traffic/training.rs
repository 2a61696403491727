//! The keys of `kind = "training"`.

use fairrate_sim::workload::{ComputeTime, MAX_CHANNELS, Model, Pace, Parallelism, Recompute, Training};
use fairrate_units::Time;

use super::super::files::Files;
use super::Kind;
use super::collective::{count, read_imbalance, read_merged_rings};
use super::ranks::read_ranks;
use crate::reader::Section;

/// Most layers, heads, experts, ranks of a dimension, micro-batches and iterations.
const MOST: u32 = 100_000;
/// Most numbers in a row of a matrix, tokens of a sequence and of the vocabulary, and sequences of a micro-batch.
const WIDEST: u64 = 10_000_000;

pub(super) fn read_training(s: &mut Section<'_>, files: &Files<'_>) -> Kind {
    let model = read_model(s);
    let parallelism = read_parallelism(s, &model);
    let chunks = count(s, "chunks", MOST);
    let hierarchy = s.get("hierarchy", false).value;
    let merged_rings = !hierarchy && read_merged_rings(s, chunks);
    let training = Training {
        model,
        parallelism,
        microbatches: count(s, "microbatches", MOST),
        virtual_stages: count(s, "virtual_stages", MOST),
        recompute: s.choice("recompute", Recompute::NAMES, Recompute::None).value,
        compute: read_compute(s),
        optimizer: s.get("optimizer", Time::ZERO).value,
        overlap: s.get("overlap", true).value,
        distributed_optimizer: s.get("distributed_optimizer", true).value,
        tp_channels: count(s, "tp_channels", MAX_CHANNELS),
        channels: count(s, "channels", MAX_CHANNELS),
        chunks,
        hierarchy,
        merged_rings,
        iterations: count(s, "iterations", MOST),
        start: s.get("start", Time::ZERO).value,
        hosts: None,
        pace: Pace::EVEN,
    };
    Kind::Training { training: Box::new(training), ranks: read_ranks(s, files) }
}

fn read_model(s: &mut Section<'_>) -> Model {
    let layers = needed(s, "layers", u64::from(MOST), 32) as u32;
    let hidden = needed(s, "hidden", WIDEST, 4_096);
    let ffn = size(s, "ffn", WIDEST, hidden.saturating_mul(4).min(WIDEST));
    let heads = needed(s, "heads", u64::from(MOST), 32) as u32;
    let kv_heads = size(s, "kv_heads", u64::from(MOST), u64::from(heads)) as u32;
    let vocabulary = needed(s, "vocabulary", WIDEST, 32_000);
    let sequence = needed(s, "sequence", WIDEST, 4_096);
    let micro_batch = size(s, "micro_batch", WIDEST, 1);
    let dtype_bytes = size(s, "dtype_bytes", 8, 2);
    let gradient_bytes = size(s, "gradient_bytes", 8, 4);
    let gated = s.get("gated", false).value;
    let experts = if s.has("experts") { needed(s, "experts", u64::from(MOST), 8) as u32 } else { 0 };
    if experts == 0 {
        for key in ["top_k", "ep", "imbalance"].into_iter().filter(|key| s.has(key)).collect::<Vec<_>>() {
            let help = format!("add for instance `experts = 8`, or remove `{key}`");
            s.problem_at("scenario::conflict", key, format!("`{key}` is for experts, and there are none"), help);
            s.node(key);
        }
    }
    let top_k = if experts == 0 { 0 } else { size(s, "top_k", u64::from(MOST), 2) as u32 };
    let imbalance = if experts == 0 { 1.0 } else { read_imbalance(s) };
    Model {
        layers,
        hidden,
        ffn,
        heads,
        kv_heads,
        vocabulary,
        sequence,
        micro_batch,
        dtype_bytes,
        gradient_bytes,
        gated,
        experts,
        top_k,
        imbalance,
    }
}

fn read_parallelism(s: &mut Section<'_>, model: &Model) -> Parallelism {
    let [tp, cp, dp, pp] = ["tp", "cp", "dp", "pp"].map(|key| count(s, key, MOST));
    let ep = if model.experts == 0 { 1 } else { count(s, "ep", MOST) };
    let sequence_parallel = s.get("sequence_parallel", 1 < tp).value;
    Parallelism { tp, cp, dp, ep, pp, sequence_parallel }
}

/// Reads `tflops`, or `forward` and `backward` of a layer.
fn read_compute(s: &mut Section<'_>) -> ComputeTime {
    if !s.has("forward") {
        if s.has("backward") {
            s.missing("forward", "\"3ms\"");
        }
        let tflops = s.require::<f64>("tflops", "400.0").value;
        if !(1e-3..=1e9).contains(&tflops) && s.has("tflops") {
            let help = "write 10^12 operations a second that a rank does, as `tflops = 400.0`";
            s.problem_at("scenario::out_of_range", "tflops", format!("`tflops = {tflops}` is out of range"), help);
        }
        return ComputeTime::Tflops(tflops);
    }
    if s.has("tflops") {
        let help = "remove `tflops`, or `forward` and `backward`";
        s.problem_at("scenario::conflict", "tflops", "the times of a layer are given already", help);
        s.node("tflops");
    }
    let forward = s.require::<Time>("forward", "\"3ms\"").value;
    let backward = s.get("backward", forward.saturating_add(forward)).value;
    ComputeTime::PerLayer { forward, backward }
}

/// Reads a number from 1 to `most` that has no default.
fn needed(s: &mut Section<'_>, key: &str, most: u64, example: u64) -> u64 {
    if !s.has(key) {
        s.missing(key, &example.to_string());
    }
    size(s, key, most, example)
}

/// Reads a number from 1 to `most`.
fn size(s: &mut Section<'_>, key: &str, most: u64, default: u64) -> u64 {
    let number = s.get::<u64>(key, default).value;
    if number == 0 || most < number {
        let help = format!("write a number from 1 to {most}, as `{key} = {default}`");
        s.problem_at("scenario::out_of_range", key, format!("`{key} = {number}` is out of range"), help);
        return default.max(1);
    }
    number
}
