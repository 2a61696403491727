//! `fairrate check`: what a scenario is, before it runs.

use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_experiment::{
    Block, Class, Description, Fault, Groups, ImperfectHosts, Job, LeftOut, Load, Operations, Oversubscription,
    Servers, describe,
};
use fairrate_scenario::shown_bytes;
use fairrate_text::aligned;
use fairrate_units::Rate;

use crate::failure::Failure;
use crate::output;
use crate::run::What;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    what: What,
    /// Print one JSON object in place of text
    #[arg(long)]
    pub json: bool,
}

/// Prints the description of the scenario.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let scenario = args.what.load(registry)?;
    let description = describe(&scenario);
    if args.json {
        output::print_json(&description)?;
    } else {
        output::warn(&description.warnings.iter().map(String::as_str).collect::<Vec<_>>());
        output::print_text(&text(&description))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(d: &Description) -> String {
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut row = |name: &str, text: String| rows.push([name.to_owned(), text]);
    row("scenario", format!("{}, {} over {}", d.name, d.cc, d.transport.to_uppercase()));
    row("network", format!("{}, {}", counted(d.hosts, "host", "s"), counted(d.switches, "switch", "es")));
    if let Some(Servers { n, gpus }) = &d.servers {
        row("servers", format!("{n} of {gpus} GPUs, each with an end point on the scale-up network of its server"));
    }
    for links in &d.links {
        let (rate, delay) = (Rate::from_bps(links.rate_bps), us(links.delay_ns as f64 / 1e3));
        row("links", format!("{} x {} of {rate} and {delay}", links.n, links.between));
    }
    for switches in &d.oversubscription {
        row("switches", of_switches(switches));
    }
    row(
        "base RTT",
        format!("{} at most; at the fastest host it holds {} of payload", us(d.base_rtt_us), size(d.bdp_bytes as f64)),
    );
    row(
        "packets",
        format!("{} of payload, {} on the wire", size(d.packet_bytes[0] as f64), size(d.packet_bytes[1] as f64)),
    );
    row("PFC", d.pfc.clone());
    row("paths", format!("{}: {}", d.routing.balance, d.routing.meaning));
    for port in &d.ports {
        let rate = Rate::from_bps(port.rate_bps);
        if let Some(ecn_bytes) = port.ecn_bytes {
            row("marks", format!("at {rate}: {}", of_marks(ecn_bytes)));
        }
        if let Some([pause, resume]) = port.pfc_bytes {
            row("pauses", format!("at {rate}: above {}, until {}", size(pause as f64), size(resume as f64)));
        }
    }
    for class in &d.classes {
        row(&format!("class {}", class.class), of_class(class));
    }
    for block in &d.traffic {
        row(&format!("traffic {}", block.group), of_block(block));
    }
    for job in &d.jobs {
        of_job(job, &mut row);
    }
    for (i, fault) in d.faults.iter().enumerate() {
        row(&format!("fault {i}"), of_fault(fault));
    }
    for ImperfectHosts { n, first, effects } in &d.imperfect_hosts {
        let more = if first.len() < *n { ", ..." } else { "" };
        row("hosts", format!("{} ({}{more}): {}", counted(*n, "host", "s"), first.join(", "), effects.join("; ")));
    }
    of_loads(d, &mut row);
    row("the run", of_run(d));
    aligned(&rows, 2)
}

fn of_marks([from, all]: [f64; 2]) -> String {
    if from < all {
        format!("from {} on, all from {} on", size(from), size(all))
    } else {
        format!("from {} on", size(from))
    }
}

fn of_class(class: &Class) -> String {
    let share = class.share.map_or_else(
        || "strict: it goes before classes with weights and with higher numbers".to_owned(),
        |share| format!("{:.4} % of what strict classes leave", 100.0 * share).replace(".0000", ""),
    );
    let pfc = if class.pfc { "PFC pauses it" } else { "no PFC" };
    let marks = class.ecn_bytes.map_or_else(|| "no marks".to_owned(), |of| format!("marks {}", of_marks(of)));
    format!("{share}; {pfc}; {marks}")
}

fn of_switches(switches: &Oversubscription) -> String {
    let Oversubscription { tier, n, down_bps, up_bps, all_bps, buffer_bytes } = *switches;
    let [down, up, all] = [down_bps, up_bps, all_bps].map(Rate::from_bps);
    let ratio = || format!("{:.3}:1", down_bps as f64 / up_bps as f64).replace(".000:1", ":1");
    let rates = match (up_bps, all_bps - down_bps - up_bps) {
        (0, 0) => format!("{all} in all"),
        (0, _) => format!("{down} down, {all} in all"),
        (_, 0) => format!("{down} down, {up} up ({})", ratio()),
        _ => format!("{down} down, {up} up ({}), {all} in all", ratio()),
    };
    format!("{n} x {tier}: {rates}; buffer {}", size(buffer_bytes as f64))
}

fn of_block(block: &Block) -> String {
    let Block { name, flows, at_most, endless, bytes, scale_up_bytes, size_bytes, starts_us: [first, last], .. } =
        block;
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let control = block.control.map(|[cc, transport]| format!(" under {cc} over {}", transport.to_uppercase()));
    let at_most = if *at_most { "at most " } else { "" };
    let mut parts = vec![format!("{name}{at_most}{}{}", counted(*flows, "flow", "s"), control.unwrap_or_default())];
    if 0 < *endless {
        parts.push(format!("{endless} of them endless"));
    }
    if let Some([least, mean, most]) = size_bytes {
        let sizes = if least < most {
            format!("{} to {}, {} on average", size(*least), size(*most), size(*mean))
        } else {
            format!("{} each", size(*mean))
        };
        parts.push(format!("{sizes}, {at_most}{} in all", size(*bytes as f64)));
    }
    if let Some(inside) = scale_up_bytes.filter(|inside| 0 < *inside) {
        let outside = bytes.saturating_sub(inside);
        let [inside, outside] = [inside, outside].map(|bytes| size(bytes as f64));
        parts.push(format!("{inside} over scale-up networks and {outside} by NICs"));
    }
    let starts = if first < last { format!("{} to {}", us(*first), us(*last)) } else { us(*first) };
    format!("{}; starts: {starts}", parts.join(", "))
}

/// Adds the rows of a job: its process groups, and the operations of an iteration.
fn of_job(job: &Job, row: &mut impl FnMut(&str, String)) {
    let iterations = counted(job.iterations as usize, "iteration", "s");
    row(&format!("training {}", job.group), format!("{iterations} on {}", counted(job.ranks, "rank", "s")));
    for Groups { dimension, n, ranks: [least, most], first } in &job.groups {
        let ranks = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let first = first.iter().map(|hosts| format!("({})", hosts.join(" "))).collect::<Vec<_>>().join(" ");
        let more = if *n > 2 { " ..." } else { "" };
        row(&format!("  {dimension}"), format!("{} of {ranks}: {first}{more}", counted(*n, "group", "s")));
    }
    for Operations { name, kind, dimension, n, groups, bytes } in &job.operations {
        let each = size(*bytes as f64);
        let text = match groups {
            0 => format!("{} of {each}", counted(*n, "message", "s")),
            _ => format!("{} x {kind} of {each} in each {dimension} group", n / groups),
        };
        row(&format!("  {name}"), text);
    }
}

fn of_fault(fault: &Fault) -> String {
    let Fault { links, directions, first, packets, effects, down_us, up_us, period_us, last_us } = fault;
    let more = if first.len() < *links { ", ..." } else { "" };
    let ways = if *directions == 2 * links { "both ways" } else { "one way" };
    let ways = if *links < *directions && *directions < 2 * links { "some of them both ways" } else { ways };
    let mut parts = vec![format!("{} {ways} ({}{more})", counted(*links, "link", "s"), first.join(", "))];
    if !effects.is_empty() {
        let packets = if *packets == "all" { "packets" } else { packets };
        parts.push(format!(": {packets} {}", effects.join(", ")));
    }
    if let Some(down) = down_us {
        let up = up_us.map_or_else(|| "for good".to_owned(), |up| format!("until {}", us(up)));
        let again = period_us.map_or_else(String::new, |period| format!(", again every {}", us(period)));
        let last = last_us.map_or_else(String::new, |last| format!(", for the last time before {}", us(last)));
        let mark = if effects.is_empty() { ":" } else { ";" };
        parts.push(format!("{mark} down from {} {up}{again}{last}", us(*down)));
    }
    parts.concat()
}

/// Adds the rows of the offered load, and those of the blocks that it leaves out.
fn of_loads(d: &Description, row: &mut impl FnMut(&str, String)) {
    for load in &d.load {
        row("load", of_load(load));
    }
    if !d.load.is_empty() {
        let headers = 100.0 * d.load_headers.unwrap_or(0.0);
        let counted = format!("with headers ({headers:.1} % of payload), without acknowledgments");
        row(
            "",
            format!("of finite flows from the first start to the last, {counted}; tables of runs count payload alone"),
        );
    }
    if !d.load_beside_circuits.is_empty() {
        row("", format!("not known of {}: circuits carry a part of it", d.load_beside_circuits.join(", ")));
    }
    for (i, LeftOut { group, flows, of }) in d.load_without.iter().enumerate() {
        let (which, whose) = if flows < of {
            (format!("{flows} of the {of} flows of traffic {group}"), "they start")
        } else {
            (format!("traffic {group}"), "its flows start")
        };
        let is_first = i == 0 && d.load.is_empty();
        row(if is_first { "load" } else { "" }, format!("not known of {which}: {whose} as others end"));
    }
}

fn of_load(load: &Load) -> String {
    let most = match (&load.most, &load.most_at) {
        (Some(most), Some(at)) if load.mean * 1.005 < *most => format!(", at most {:.1} % at {at}", 100.0 * most),
        _ => String::new(),
    };
    format!("{}: {:.1} %{most}", load.links, 100.0 * load.mean)
}

fn of_run(d: &Description) -> String {
    let seconds = match d.run.seconds {
        s if s < 1.0 => "less than a second".to_owned(),
        s if s < 120.0 => format!("about {s:.0} s"),
        s if s < 7_200.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {:.1} h", s / 3_600.0),
    };
    let memory = shown_bytes(d.run.memory_bytes);
    format!(
        "{:.3} million packet-hops without losses, {seconds} on one core, {memory} of network, flows and samples",
        d.run.packet_hops / 1e6
    )
}

/// Returns a number with a noun, and the ending of its plural.
fn counted(n: usize, noun: &str, plural: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { plural })
}

fn us(us: f64) -> String {
    match us {
        us if 0.0 < us && us < 0.1 => format!("{} ns", short(us * 1e3)),
        us if us < 1_000.0 => format!("{} us", short(us)),
        us if us < 1e6 => format!("{} ms", short(us / 1e3)),
        us => format!("{} s", short(us / 1e6)),
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{} B", short(bytes)),
        bytes if bytes < 1e6 => format!("{} KB", short(bytes / 1e3)),
        bytes if bytes < 1e9 => format!("{} MB", short(bytes / 1e6)),
        bytes => format!("{} GB", short(bytes / 1e9)),
    }
}

/// Returns a number with three digits or more, and no zeros behind its point.
fn short(x: f64) -> String {
    let digits = if x < 10.0 { 2 } else { usize::from(x < 100.0) };
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        assert_eq!([us(1.0), us(28.96), us(150_000.0), us(2.5e6)], ["1 us", "29 us", "150 ms", "2.5 s"]);
        assert_eq!([size(64.0), size(1_048.0), size(90_500.0), size(3e9)], ["64 B", "1.05 KB", "90.5 KB", "3 GB"]);
    }
}
