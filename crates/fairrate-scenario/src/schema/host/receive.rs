//! The receive buffer of a host: `rx_rate`, `rx_buffer`, `rx_full` and its levels.

use fairrate_sim::{FullBuffer, Pfc, ReceiveBuffer};
use fairrate_units::{Bytes, Rate, Time};

use super::check_rate;
use crate::reader::{OrWord, Section, list};
use crate::scalar::Scalar;
use crate::tree::{Node, Value};

/// The buffer of a typical NIC.
const BUFFER: Bytes = Bytes::new(1_000_000);
/// The keys that mean something only with `rx_rate`.
const KEYS: [&str; 5] = ["rx_buffer", "rx_penalty_from", "rx_full", "rx_pause_at", "rx_resume_at"];
const EXAMPLE: &str = "[{ at = \"0s\", rate = \"100Gbps\" }, { at = \"1ms\", rate = \"50Gbps\" }]";

/// Reads the receive buffer, if the host has one. With `pfc` it pauses by default when it fills.
pub(super) fn read_receive(s: &mut Section<'_>, pfc: &Pfc) -> Option<ReceiveBuffer> {
    let Some(rates) = read_rates(s) else {
        for key in KEYS {
            if s.node(key).is_some() {
                let message = format!("`{key}` without a rate at which the buffer is drained");
                s.problem_at("scenario::conflict", key, message, "add for instance `rx_rate = \"50Gbps\"`");
            }
        }
        return None;
    };
    let size = s.get("rx_buffer", BUFFER).value;
    let penalty_from = read_penalty(s, size);
    let pauses = s.choice("rx_full", &[("pause", true), ("drop", false)], *pfc != Pfc::Off).value;
    if !pauses {
        for key in ["rx_pause_at", "rx_resume_at"] {
            if s.node(key).is_some() {
                let help = format!("remove `{key}`, or write `rx_full = \"pause\"`");
                s.problem_at("scenario::conflict", key, format!("`{key}` of a buffer that drops"), help);
            }
        }
        return Some(ReceiveBuffer { rates, size, full: FullBuffer::Drop, penalty_from });
    }
    let (at, resume) = (read_level(s, "rx_pause_at"), read_level(s, "rx_resume_at"));
    if let (Some(at), Some(resume)) = (at, resume)
        && at < resume
    {
        let message = format!("a buffer that pauses above {at} and resumes at {resume}");
        s.problem_at("scenario::conflict", "rx_resume_at", message, "let `rx_resume_at` be at most `rx_pause_at`");
    }
    Some(ReceiveBuffer { rates, size, full: FullBuffer::Pause { at, resume }, penalty_from })
}

/// Reads the bytes in a buffer of `size` from which senders are asked for a penalty, or `"off"`.
fn read_penalty(s: &mut Section<'_>, size: Bytes) -> Option<Bytes> {
    let OrWord::Value(from) = s.value_or::<Bytes>("rx_penalty_from", &["off"], OrWord::Word(0)).value else {
        return None;
    };
    if size <= from {
        let message = format!("a penalty from {from} on in a receive buffer of {size}");
        s.problem_at(
            "scenario::conflict",
            "rx_penalty_from",
            message,
            "let `rx_penalty_from` be less than `rx_buffer`",
        );
    }
    Some(from)
}

/// Reads a level of the buffer, or `"auto"`.
fn read_level(s: &mut Section<'_>, key: &str) -> Option<Bytes> {
    match s.value_or::<Bytes>(key, &["auto"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(level) => Some(level),
    }
}

/// Reads `rx_rate = "50Gbps"`, a list of steps, or `"link"`, which stands for no limit.
fn read_rates(s: &mut Section<'_>) -> Option<Vec<(Time, Rate)>> {
    if let Some(Node { value: Value::Array(_), .. }) = s.peek("rx_rate") {
        return Some(read_steps(s));
    }
    match s.value_or::<Rate>("rx_rate", &["link"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(rate) => {
            check_rate(s, "rx_rate", rate);
            Some(vec![(Time::ZERO, rate)])
        }
    }
}

/// Reads the list of steps at `rx_rate`.
fn read_steps(s: &mut Section<'_>) -> Vec<(Time, Rate)> {
    let (mut steps, mut out) = (Vec::<(Time, Rate)>::new(), Vec::new());
    for node in s.items("rx_rate").unwrap_or_default() {
        let Value::Table(table) = &node.value else {
            let message = format!("expected a step of `rx_rate`, found {}", node.value.describe());
            s.report.problem(
                "scenario::wrong_type",
                node.site,
                message,
                "`rx_rate`",
                format!("write `rx_rate = {EXAMPLE}`"),
            );
            continue;
        };
        let mut step = Section::new(s.report, node.site, "a step of `rx_rate`", Some(table));
        let at = step.require::<Time>("at", "\"0s\"").value;
        let rate = step.require::<Rate>("rate", "\"50Gbps\"").value;
        check_rate(&step, "rate", rate);
        steps.push((at, rate));
        out.push(step.finish().render_inline());
    }
    let first = steps.first().map(|step| step.0);
    if first != Some(Time::ZERO) || !steps.is_sorted_by(|a, b| a.0 < b.0) {
        let message = match first {
            None => "a list of no rates".to_owned(),
            Some(at) if at != Time::ZERO => format!("the first rate holds from {at} on"),
            Some(_) => "the times of rates do not ascend".to_owned(),
        };
        let help = format!("begin at \"0s\" and go on in the order of time, as `rx_rate = {EXAMPLE}`");
        s.problem_at("scenario::conflict", "rx_rate", message, help);
        steps = vec![(Time::ZERO, Rate::placeholder())];
    }
    s.out.push("rx_rate", list(out));
    steps
}
