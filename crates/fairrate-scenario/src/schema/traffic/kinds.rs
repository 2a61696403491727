//! The kinds of traffic and their keys.

use fairrate_sim::topology::TOPOLOGIES;
use fairrate_sim::workload::{
    AllToAll, Churn, ClosedLoop, Incast, IncastQueries, Peers, Permutation, Poisson, RequestRate, Responders, Sampling,
    Senders, SizeDistribution, Sleep, Staggered, Stride, WORKLOADS,
};
use fairrate_units::{Bytes, Time};

use super::super::files::{Files, file_problem};
use super::Kind;
use super::collective::read_collective;
use super::hosts::{PEERS, read_hosts, read_receiver, read_receivers, read_senders};
use super::trace::read_trace;
use super::training::read_training;
use crate::reader::{OrWord, Section, list};
use crate::scalar::quote;
use crate::tree::{Node, Value};

const KINDS: &[&str] = &[
    "poisson",
    "closed-loop",
    "incast",
    "incast-queries",
    "staggered",
    "permutation",
    "stride",
    "all-to-all",
    "churn",
    "list",
    "collective",
    "training",
    "trace",
];

/// Reads the kind of a block and the keys of that kind.
pub(super) fn read_kind(s: &mut Section<'_>, files: &Files<'_>, end: Option<Time>, shape: &str) -> Option<Kind> {
    let kind = match s.node("kind") {
        Some(Node { value: Value::Text(kind), site }) => {
            if !KINDS.contains(&kind.as_str()) {
                s.unknown_word("traffic", kind, *site, KINDS);
                return None;
            }
            kind.clone()
        }
        Some(_) => {
            s.given::<String>("kind");
            return None;
        }
        None => {
            s.missing("kind", "\"poisson\"");
            return None;
        }
    };
    s.out.push("kind", quote(&kind));
    s.name = format!("`[[traffic]]` of kind `{kind}`");
    Some(match kind.as_str() {
        "poisson" => read_poisson(s, files, end, shape)?,
        "closed-loop" => read_closed_loop(s, files, end)?,
        "incast" => read_incast(s),
        "incast-queries" => read_queries(s, end),
        "staggered" => read_staggered(s),
        "permutation" => {
            let permutation = Permutation { bytes: flow_bytes(s, None), start: start(s), hosts: None };
            Kind::Permutation { permutation, hosts: read_hosts(s, "hosts") }
        }
        "stride" => {
            let stride = s.require::<u32>("stride", "16").value;
            let stride = Stride { stride, bytes: flow_bytes(s, None), start: start(s), hosts: None };
            Kind::Stride { stride, hosts: read_hosts(s, "hosts") }
        }
        "all-to-all" => {
            let all = AllToAll { bytes: flow_bytes(s, None), start: start(s), hosts: None };
            Kind::AllToAll { all, hosts: read_hosts(s, "hosts") }
        }
        "churn" => read_churn(s),
        "collective" => read_collective(s, files),
        "training" => read_training(s, files),
        "trace" => read_trace(s, files)?,
        _ => read_list(s, files)?,
    })
}

fn start(s: &mut Section<'_>) -> Time {
    s.get("start", Time::ZERO).value
}

/// Reads a time, or `never`.
fn time_or_never(s: &mut Section<'_>, key: &str, default: OrWord<Time>) -> Time {
    match s.value_or::<Time>(key, &["never"], default).value {
        OrWord::Word(_) => Time::MAX,
        OrWord::Value(time) => time,
    }
}

/// Reads the bytes of each flow, or `endless`.
fn flow_bytes(s: &mut Section<'_>, default: Option<OrWord<Bytes>>) -> Bytes {
    if default.is_none() && !s.has("bytes") {
        s.missing("bytes", "\"1MB\"");
    }
    let default = default.unwrap_or(OrWord::Value(Bytes::new(1)));
    match s.value_or::<Bytes>("bytes", &["endless"], default).value {
        OrWord::Word(_) => Bytes::MAX,
        OrWord::Value(Bytes::ZERO) => {
            s.problem_at(
                "scenario::out_of_range",
                "bytes",
                "a flow of no bytes",
                "write for instance `bytes = \"1MB\"`",
            );
            Bytes::new(1)
        }
        OrWord::Value(bytes) => bytes,
    }
}

fn read_poisson(s: &mut Section<'_>, files: &Files<'_>, end: Option<Time>, shape: &str) -> Option<Kind> {
    let sizes = read_sizes(s, files);
    let sampling = s.choice("sampling", Sampling::NAMES, Sampling::Linear).value;
    let load = read_load(s, "the link set's");
    // PowerTCP section 4.1 defines load by the ToR uplinks, with destinations in other racks.
    let sets = TOPOLOGIES.iter().find(|t| t.name == shape).map_or(&[][..], |t| t.link_sets);
    let link_set = ["tor-uplinks", "bottleneck"].into_iter().find(|set| sets.contains(set)).unwrap_or("host-links");
    let link_set = s.get("link_set", link_set.to_owned()).value;
    let hosts = read_hosts(s, "hosts");
    let peers = if shape == "star" { Peers::OtherHost } else { Peers::OtherRack };
    let receivers = read_receivers(s);
    let destinations = if receivers.is_some() { peers } else { s.choice("destinations", PEERS, peers).value };
    let start = start(s);
    let stop = time_or_never(s, "stop", end.map_or(OrWord::Word(0), OrWord::Value));
    let max_flows = match s.value_or::<u64>("max_flows", &["unlimited"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(n) => Some(n),
    };
    if stop == Time::MAX && max_flows.is_none() {
        s.missing("stop", "\"40ms\"");
    }
    check_order(s, start, stop);
    let (sizes, stop) = (sizes?.sampled(sampling), within_run(start, stop, end));
    let poisson = Poisson { sizes, load, link_set, hosts: None, destinations, receivers: None, start, stop, max_flows };
    Some(Kind::Poisson { poisson, hosts, receivers })
}

/// Reads a load as a fraction of the capacity of `whose` links.
fn read_load(s: &mut Section<'_>, whose: &str) -> f64 {
    let load = s.require::<f64>("load", "0.6").value;
    if !(0.0 < load && load <= 1.5) {
        // Few networks are offered more than three times what they carry; a load of 5 or more is one in per cent.
        let help = if (5.0..=100.0).contains(&load) {
            format!("a load is a fraction of {whose} capacity: `load = {}`", load / 100.0)
        } else {
            format!("a load is a fraction of {whose} capacity, above 0 and up to 1.5, as `load = 0.6`")
        };
        s.problem_at("scenario::out_of_range", "load", format!("`load = {load}` is out of range"), help);
    }
    load
}

/// Reads a closed loop. Defaults follow RoCC's public code: sizes are the points of the CDF, and the pause alone fills
/// the gap.
fn read_closed_loop(s: &mut Section<'_>, files: &Files<'_>, end: Option<Time>) -> Option<Kind> {
    let sizes = read_sizes(s, files);
    let sampling = s.choice("sampling", Sampling::NAMES, Sampling::Step).value;
    let load = read_load(s, "the sender's link's");
    let sleep = s.choice("sleep", Sleep::NAMES, Sleep::WholeGap).value;
    let (senders, receivers) = (read_hosts(s, "senders"), read_hosts(s, "receivers"));
    let start = start(s);
    let stop = time_or_never(s, "stop", end.map_or(OrWord::Word(0), OrWord::Value));
    if stop == Time::MAX {
        s.missing("stop", "\"20ms\"");
    }
    check_order(s, start, stop);
    let stop = within_run(start, stop, end);
    let loops = ClosedLoop { sizes: sizes?, sampling, load, sleep, senders: None, receivers: None, start, stop };
    Some(Kind::ClosedLoop { loops, senders, receivers })
}

/// Returns the time at which arrivals stop: no flows start after the end of the run. A block that starts later has no
/// flows.
fn within_run(start: Time, stop: Time, end: Option<Time>) -> Time {
    end.map_or(stop, |end| stop.min(end)).max(start.saturating_add(Time::from_ps(1)))
}

fn check_order(s: &Section<'_>, start: Time, stop: Time) {
    if stop <= start {
        let message = format!("`stop` at {stop} is not after `start` at {start}");
        let key = if s.has("start") { "start" } else { "stop" };
        s.problem_at(
            "scenario::conflict",
            key,
            message,
            "let `start` be before `stop`, and before the run's `duration`",
        );
    }
}

fn read_sizes(s: &mut Section<'_>, files: &Files<'_>) -> Option<SizeDistribution> {
    let name = s.require::<String>("sizes", "\"websearch\"");
    match name.value.as_str() {
        "fixed" => Some(SizeDistribution::fixed(s.require::<Bytes>("size", "\"100KB\"").value)),
        "file" => {
            let file = files.read(s, "sizes", "txt")?;
            let fallback = "a line is `bytes cdf`, both ascending, and the last cdf is 1, or 100 in percent";
            SizeDistribution::parse_file(&file.text)
                .map_err(|e| file_problem(s.report, "scenario::sizes_file", &file, &e, fallback))
                .ok()
        }
        text => {
            let found = SizeDistribution::by_name(text);
            if found.is_none() && matches!(s.node("sizes"), Some(Node { value: Value::Text(_), .. })) {
                let words: Vec<&str> = WORKLOADS.iter().map(|w| w.name).chain(["fixed", "file"]).collect();
                s.unknown_word("sizes", text, name.site, &words);
            }
            found
        }
    }
}

fn read_incast(s: &mut Section<'_>) -> Kind {
    let (receiver, senders) = (read_receiver(s), read_senders(s));
    let bytes = flow_bytes(s, None);
    let start = start(s);
    let stop = time_or_never(s, "stop", OrWord::Word(0));
    let jitter = s.get("jitter", Time::ZERO).value;
    check_order(s, start, stop);
    let incast =
        Incast { receiver: fairrate_sim::NodeId(0), senders: Senders::Hosts(Vec::new()), bytes, start, stop, jitter };
    Kind::Incast { incast, receiver, senders }
}

fn read_staggered(s: &mut Section<'_>) -> Kind {
    let (receiver, senders) = (read_receiver(s), read_senders(s));
    let staggered = Staggered {
        receiver: fairrate_sim::NodeId(0),
        senders: Senders::Hosts(Vec::new()),
        start: start(s),
        interval: s.require("interval", "\"1ms\"").value,
        hold: time_or_never(s, "hold", OrWord::Word(0)),
        bytes: flow_bytes(s, Some(OrWord::Word(0))),
    };
    Kind::Staggered { staggered, receiver, senders }
}

fn read_queries(s: &mut Section<'_>, end: Option<Time>) -> Kind {
    let responders = [("other-racks", Responders::OtherRacks), ("one-other-rack", Responders::OneOtherRack)];
    let queries = IncastQueries {
        request_size: s.require("request_size", "\"2MB\"").value,
        responders: s.require("responders", "16").value,
        from: s.choice("from", &responders, Responders::OtherRacks).value,
        rate: read_request_rate(s),
        start: start(s),
        stop: time_or_never(s, "stop", end.map_or(OrWord::Word(0), OrWord::Value)),
    };
    if queries.responders == 0 {
        s.problem_at(
            "scenario::out_of_range",
            "responders",
            "nobody responds",
            "write how many hosts, as `responders = 16`",
        );
    }
    if queries.stop == Time::MAX {
        s.missing("stop", "\"40ms\"");
    }
    check_order(s, queries.start, queries.stop);
    let stop = within_run(queries.start, queries.stop, end);
    Kind::IncastQueries(IncastQueries { stop, ..queries })
}

/// Reads `rate_per_host_per_s`, or `load` in its place.
fn read_request_rate(s: &mut Section<'_>) -> RequestRate {
    if s.has("load") {
        if s.has("rate_per_host_per_s") {
            let help = "remove `load`, or `rate_per_host_per_s`";
            s.problem_at("scenario::conflict", "load", "the load follows from the rate of requests", help);
        }
        return RequestRate::Load(read_load(s, "the host's link's"));
    }
    let rate = s.require("rate_per_host_per_s", "4.0").value;
    if !(0.0 < rate && rate <= 1e9) {
        let help = "write requests per second of each host, as `rate_per_host_per_s = 4.0`, or `load = 0.1`";
        let message = format!("a rate of {rate} is out of range");
        s.problem_at("scenario::out_of_range", "rate_per_host_per_s", message, help);
    }
    RequestRate::PerSecond(rate)
}

fn read_churn(s: &mut Section<'_>) -> Kind {
    let flows = s.require("flows", "32").value;
    let changes = s.require("changes", "300").value;
    let hosts = read_hosts(s, "hosts");
    Kind::Churn { churn: Churn { flows, changes, hosts: None, start: start(s) }, hosts }
}

fn read_list(s: &mut Section<'_>, files: &Files<'_>) -> Option<Kind> {
    let file = files.read(s, "flows", "csv");
    let mut ignore_columns = Vec::new();
    for node in s.items("ignore_columns").unwrap_or_default() {
        if let Value::Text(name) = &node.value {
            ignore_columns.push(name.clone());
            continue;
        }
        let message = format!("expected the name of a column, found {}", node.value.describe());
        s.report.problem(
            "scenario::wrong_type",
            node.site,
            message,
            "`ignore_columns`",
            "write `ignore_columns = [\"pg\"]`",
        );
    }
    s.out.push("ignore_columns", list(ignore_columns.iter().map(|c| quote(c))));
    Some(Kind::List { file: file?, ignore_columns })
}
