//! The keys of `kind = "collective"`.

use fairrate_sim::workload::{Collective, CollectiveAlgorithm, MAX_CHANNELS, Op, Order};
use fairrate_units::{Bytes, Rate, Time};

use super::Kind;
use super::hosts::read_hosts;
use crate::reader::{OrWord, Section};

/// Most chunks of a message, and most iterations.
const MOST: u32 = 1_000_000;

pub(super) fn read_collective(s: &mut Section<'_>) -> Kind {
    if !s.has("op") {
        s.missing("op", "\"all-reduce\"");
    }
    let op = s.choice("op", Op::NAMES, Op::AllReduce).value;
    let algorithm = read_algorithm(s, op);
    let bytes = s.require::<Bytes>("bytes", "\"64MiB\"").value;
    if bytes == Bytes::ZERO && s.has("bytes") {
        let help = "write for instance `bytes = \"64MiB\"`";
        s.problem_at("scenario::out_of_range", "bytes", "a collective of no bytes", help);
    }
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
        reduce_rate,
        nearest_first,
        order,
    };
    Kind::Collective { collective, hosts: read_hosts(s, "hosts") }
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
