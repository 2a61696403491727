//! `fairrate coexist`: the standard study of two algorithms that share a queue, as a comparison over buffers, numbers of flows and
//! round-trip times.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use fairrate_control::{AlgorithmConfig, Profile, Queueing, Registry};
use fairrate_experiment::columns::{Seeds, parse_seeds, parse_variant};
use fairrate_report::format;
use fairrate_report::index::Index;
use fairrate_report::metrics::GroupMetrics;
use fairrate_units::{Bytes, Rate, Time};

use crate::compare;
use crate::failure::Failure;
use crate::output;
use crate::run::Sets;

/// Arguments of `coexist`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One algorithm, as NAME, NAME:KEY=VALUE or NAME/TRANSPORT, where TRANSPORT is rdma, tcp or uet
    a: String,
    /// The other one
    b: String,
    /// Rate of all links
    #[arg(long, default_value = "25Gbps")]
    rate: Rate,
    /// Base round-trip time
    #[arg(long, default_value = "20us")]
    rtt: Time,
    /// Buffers, in times of what the path holds
    #[arg(long, value_name = "X,...", value_delimiter = ',', default_value = "0.3,1,3,10")]
    buffers: Vec<f64>,
    /// Numbers of flows of the two, as 1:1,1:10
    #[arg(long, value_name = "A:B,...", value_delimiter = ',', value_parser = numbers, default_value = "4:4,1:10,10:1")]
    flows: Vec<(u16, u16)>,
    /// Numbers of classes: 1, in which both share a queue, and 2, one for each, with weights by their numbers of flows. An algorithm
    /// whose ports have queues of their own has no second case
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=2), default_value = "1,2")]
    classes: Vec<u8>,
    /// Round trips that are simulated; the second half is measured
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(20..))]
    round_trips: u64,
    /// Seeds, as for `compare`
    #[arg(long, value_name = "SEEDS", default_value = "1..3", value_parser = parse_seeds)]
    seeds: Seeds,
    #[command(flatten)]
    sets: Sets,
    /// Results directory [default: runs/A-beside-B]; the scenario is written beside it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print compare.json in place of the tables
    #[arg(long)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// Algorithms that are usually run over TCP.
const OVER_TCP: [&str; 14] = [
    "newreno", "cubic", "bbr", "dctcp", "d2tcp", "hull", "retcp", "ratemp", "lia", "olia", "balia", "xmp", "amp",
    "mpcc",
];

/// Round trip of the other algorithm's flows over that of the first, where the two are not the same.
const FAR: u64 = 4;

/// Shares of a fair one that count as fair.
const FAIR: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// One of the two algorithms.
struct Side {
    /// Name and parameters, as `compare --cc` takes them.
    cc: String,
    name: &'static str,
    /// The keys of its parameters and their values.
    params: Vec<(String, String)>,
    transport: &'static str,
    /// Name of its traffic block.
    block: String,
    /// Set if its packets may wait in a class with a weight.
    may_weigh: bool,
}

impl Args {
    /// Returns `true` if there are cases with a class for each of the two.
    fn has_two_classes(&self, a: &Side, b: &Side) -> bool {
        self.classes.contains(&2) && a.may_weigh && b.may_weigh
    }
}

/// Reads `4:4`.
fn numbers(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=1_000).contains(n));
    let pair = text.split_once(':').and_then(|(a, b)| Some((number(a)?, number(b)?)));
    pair.ok_or_else(|| "write two numbers from 1 to 1000, as 4:4".to_owned())
}

impl Side {
    fn of(text: &str, registry: &Registry) -> Result<Self, Failure> {
        let (cc, transport) = text.rsplit_once('/').map_or((text, None), |(cc, transport)| (cc, Some(transport)));
        let variant = parse_variant(cc, registry)?;
        let name = variant.cc.as_str();
        let Some(config) = AlgorithmConfig::by_name(name, Profile::Paper) else {
            return Err(Failure::Usage {
                message: format!("`{name}` is no built-in algorithm without a set of constants"),
                help: "put algorithms of your own into a scenario with two `[[traffic]]` blocks, and run `fairrate compare`".to_owned(),
            });
        };
        let (info, needs) = (config.info(), config.needs());
        let may_weigh = needs.network.queueing == Queueing::Any && needs.feedback.grants.is_none();
        let transport = match transport {
            Some("rdma") => "rdma",
            Some("tcp") => "tcp",
            Some("uet") => "uet",
            Some(other) => {
                return Err(Failure::Usage {
                    message: format!("there is no transport `{other}`"),
                    help: format!("write `{cc}/rdma`, `{cc}/tcp` or `{cc}/uet`"),
                });
            }
            None if needs.feedback.uet => "uet",
            None if OVER_TCP.contains(&info.name) => "tcp",
            None => "rdma",
        };
        let prefix = format!("transport.{}.", info.name);
        let params = variant.sets.into_iter().map(|(key, value)| (key.trim_start_matches(&prefix).to_owned(), value));
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let block = cc.chars().map(plain).take(28).collect();
        Ok(Self { cc: cc.to_owned(), name: info.name, params: params.collect(), transport, block, may_weigh })
    }

    /// Returns its keys of `[transport]`, without parameters.
    fn transport_keys(&self) -> String {
        let more = match self.transport {
            "rdma" => ", recovery = \"selective-repeat\", rto = \"1ms\"",
            _ => "",
        };
        format!("kind = \"{}\", cc = \"{}\"{more}", self.transport, self.name)
    }

    /// Returns its `transport` as an inline table.
    fn inline(&self) -> String {
        let values = self.params.iter().map(|(key, value)| {
            let is_bare = value.parse::<f64>().is_ok() || ["true", "false"].contains(&value.as_str());
            format!("{key} = {}", if is_bare { value.clone() } else { format!("\"{value}\"") })
        });
        let params = values.collect::<Vec<_>>().join(", ");
        let params = if params.is_empty() { params } else { format!(", {} = {{ {params} }}", self.name) };
        format!("{{ {}{params} }}", self.transport_keys())
    }
}

/// Runs the study, and returns the exit code.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let (mut a, mut b) = (Side::of(&args.a, registry)?, Side::of(&args.b, registry)?);
    if a.block == b.block {
        (a.block, b.block) = (a.block + "-1", b.block + "-2");
    }
    if args.rate == Rate::ZERO
        || args.rtt < Time::from_ns(100)
        || args.buffers.iter().any(|x| !(0.01..=1e3).contains(x))
    {
        return Err(Failure::Usage {
            message: format!("a rate of {}, a round trip of {} and buffers of {:?}", args.rate, args.rtt, args.buffers),
            help: "give a rate above zero, a round trip of at least 100ns, and buffers from 0.01 to 1000".to_owned(),
        });
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/{}-beside-{}", a.block, b.block)));
    let mut beside = out.clone().into_os_string();
    beside.push("-scenario");
    let beside = PathBuf::from(beside);
    let is_new = !beside.exists();
    write_scenario(&beside, args, &a, &b)?;
    let result = compare::run(&comparison(args, [&a, &b], &beside, &out), registry);
    if result.is_err() && is_new && !out.exists() {
        // Nothing is left of a study that was refused.
        let _ = std::fs::remove_dir_all(&beside);
    }
    let code = result?;
    if !args.json {
        let index = Index::read(&out)?;
        if let Some((_, comparison)) = index.assemble(&out, registry)? {
            let cases = comparison.metrics.iter().map(|m| (m.label.as_str(), m.groups.as_slice()));
            output::print_text(&verdict(cases))?;
        }
    }
    Ok(code)
}

/// Writes the scenario and its two networks to `dir`.
fn write_scenario(dir: &Path, args: &Args, a: &Side, b: &Side) -> Result<(), Failure> {
    let most = |of: fn(&(u16, u16)) -> u16| args.flows.iter().map(of).max().unwrap_or(1);
    let (n_a, n_b) = (most(|n| n.0), most(|n| n.1));
    let [near, far] = [1, 2 * FAR - 1].map(|times| network(args, n_a, n_b, times));
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| Failure::io("writing", &path, error))
    };
    std::fs::create_dir_all(dir).map_err(|error| Failure::io("creating", dir, error))?;
    write("near.txt", &near)?;
    write("far.txt", &far)?;
    write("coexist.toml", &scenario(args, a, b))
}

/// Returns a topology file: a receiver, the senders of the two algorithms, and a switch. The links of the other algorithm's senders are
/// `times` as long.
fn network(args: &Args, n_a: u16, n_b: u16, times: u64) -> String {
    let (n_a, n_b) = (u32::from(n_a), u32::from(n_b));
    let switch = 1 + n_a + n_b;
    let link_ns = args.rtt.as_ps() / 4_000;
    let link = |host: u32| {
        let ns = if n_a < host { link_ns * times } else { link_ns };
        format!("{host} {switch} {} {ns}ns 0\n", args.rate)
    };
    format!("{} 1 {switch}\n{switch}\n", switch + 1) + &(0..switch).map(link).collect::<String>()
}

fn scenario(args: &Args, a: &Side, b: &Side) -> String {
    let end = Time::from_ps(args.rtt.as_ps() * args.round_trips);
    let half = Time::from_ps(end.as_ps() / 2);
    let every = Time::from_ps((end.as_ps() / 2_000).max(1_000));
    let block = |side: &Side, transport: &str| {
        format!(
            "\n[[traffic]]\nname = \"{}\"\nkind = \"incast\"\nreceiver = 0\nsenders = [1]\nbytes = \"endless\"\njitter = \"{}\"\n{transport}",
            side.block, args.rtt
        )
    };
    // Strict classes, of which only one has data, are as one.
    let classes = if args.has_two_classes(a, b) {
        "\n# Cases with two classes give these weights, and the second algorithm class 4.\n[[class]]\nclass = 3\n\n[[class]]\nclass = 4\n"
    } else {
        ""
    };
    format!(
        "# {a} beside {b}: written by `fairrate coexist`.\n\
         name = \"{a_block}-beside-{b_block}\"\nduration = \"{end}\"\n\n\
         [topology]\nkind = \"file\"\npath = \"near.txt\"\n\n\
         [switch]\npfc = false\ndt_alpha = \"unlimited\"\n\n\
         [transport]\n{keys}\n\n\
         [measure]\nfrom = \"{half}\"\n{first}{second}{classes}\n\
         # Otherwise packets of the same time would find room in a full queue by the number of their host.\n\
         [[fault]]\nlinks = \"host-links\"\njitter = \"{packet}\"\n\n\
         [[probe]]\nqueue = \"{switch}->0\"\nevery = \"{every}\"\n",
        packet = args.rate.tx_time(Bytes::new(1_048)),
        a = args.a,
        b = args.b,
        a_block = a.block,
        b_block = b.block,
        keys = a.transport_keys().replace(", ", "\n"),
        first = block(a, ""),
        second = block(b, &format!("transport = {}\n", b.inline())),
        switch = 1
            + args.flows.iter().map(|n| u32::from(n.0)).max().unwrap_or(1)
            + args.flows.iter().map(|n| u32::from(n.1)).max().unwrap_or(1),
    )
}

/// Returns the comparison of all cases.
fn comparison(args: &Args, [a, b]: [&Side; 2], beside: &Path, out: &Path) -> compare::Args {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: compare::Args,
    }
    let bdp = args.rate.bytes_in(args.rtt).as_f64();
    let packet = if a.transport == "uet" { 5_000.0 } else { 1_100.0 };
    // A buffer holds some packets at least.
    let buffer = |times: &f64| Bytes::new((times * bdp).max(5.0 * packet) as u64).as_u64().to_string() + "B";
    let buffers = args.buffers.iter().map(buffer).collect::<Vec<_>>().join(",");
    let most_a = u32::from(args.flows.iter().map(|n| n.0).max().unwrap_or(1));
    let list = |from: u32, n: u16| {
        let hosts: Vec<String> = (from..from + u32::from(n)).map(|host| host.to_string()).collect();
        format!("[{}]", hosts.join(", "))
    };
    let mut words: Vec<String> = vec!["coexist".into(), beside.join("coexist.toml").display().to_string()];
    let mut add = |key: &str, value: String| words.extend([key.to_owned(), value]);
    for (n_a, n_b) in &args.flows {
        let (first, second) = (list(1, *n_a), list(1 + most_a, *n_b));
        let mut case = |label: &str, path: &str, more: &str| {
            let keys = format!("traffic.0.senders={first}, traffic.1.senders={second}, topology.path={path}{more}");
            add("--variant", format!("\"{n_a}:{n_b}{label}\" = {}: {keys}", a.cc));
        };
        if args.classes.contains(&1) || !args.has_two_classes(a, b) {
            case("", "near.txt", "");
            case(&format!(", {FAR} times the RTT"), "far.txt", "");
        }
        if args.has_two_classes(a, b) {
            // Each class may hold as much of the buffer as is free, so that none takes all.
            let of_class = |at: u8, weight: u16| format!(", class.{at}.weight={weight}.0, class.{at}.egress_alpha=1.0");
            let weights = of_class(0, *n_a) + &of_class(1, *n_b);
            case(", two classes", "near.txt", &format!(", traffic.1.class=4{weights}"));
        }
    }
    add("--grid", format!("switch.buffer={buffers}"));
    let seeds: Vec<String> = args.seeds.0.iter().map(u64::to_string).collect();
    add("--seeds", seeds.join(","));
    for metric in ["fair-share:block0", "fair-share:block1", "queue-mean", "drops"] {
        add("--metric", metric.to_owned());
    }
    for (key, value) in args.sets.pairs() {
        add("--set", format!("{key}={value}"));
    }
    add("--out", out.display().to_string());
    words.extend([(args.json, "--json"), (args.quiet, "--quiet")].into_iter().filter(|f| f.0).map(|f| f.1.to_owned()));
    Line::parse_from(words).args
}

/// Returns what the cases say in a few sentences.
fn verdict<'a>(cases: impl Iterator<Item = (&'a str, &'a [GroupMetrics])>) -> String {
    let mut shares: Vec<(f64, String)> = Vec::new();
    let (mut name, mut other) = (String::new(), String::new());
    for (label, groups) in cases {
        let [a, b] = groups else { continue };
        (name, other) = (a.name.clone(), b.name.clone());
        shares.extend(a.fair_share.map(|share| (share, label.to_owned())));
    }
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(least), Some(most)) = (shares.first(), shares.last()) else { return String::new() };
    let n_fair = shares.iter().filter(|(share, _)| FAIR.contains(share)).count();
    let n_more = shares.iter().filter(|(share, _)| *FAIR.end() < *share).count();
    let all = shares.len();
    let count = |n: usize| if n == all { format!("all {all}") } else { format!("{n} of {all}") };
    let word = match (n_fair, n_more) {
        (fair, _) if fair == all => format!("{name} and {other} share fairly in all {all} cases (within 10 %)."),
        (fair, more) if fair + more == all => format!("{name} takes more than its share in {} cases.", count(more)),
        (fair, 0) => format!("{name} gets less than its share in {} cases.", count(all - fair)),
        (fair, more) => format!(
            "{name} takes more than its share in {} cases and less in {}.",
            count(more),
            count(all - fair - more)
        ),
    };
    let case = |(share, case): &(f64, String)| format!("{} ({case})", format::percent(*share));
    format!("{word} A flow of {name} gets from {} to {} of a fair share.\n", case(least), case(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, fair_share: f64) -> GroupMetrics {
        GroupMetrics { name: name.into(), fair_share: Some(fair_share), ..GroupMetrics::default() }
    }

    #[test]
    fn a_verdict_names_the_extremes() {
        let pairs = [0.95, 1.5, 0.2].map(|share| [group("new", share), group("old", 2.0 - share)]);
        let cases = ["1:1", "1:10", "10:1"].iter().zip(&pairs).map(|(label, groups)| (*label, groups.as_slice()));
        assert_eq!(
            verdict(cases),
            "new takes more than its share in 1 of 3 cases and less in 1 of 3. A flow of new gets from 20.0 % (10:1) to 150.0 % \
             (1:10) of a fair share.\n"
        );
    }

    #[test]
    fn pairs_of_numbers_are_read() {
        assert_eq!(numbers("1:10"), Ok((1, 10)));
        for wrong in ["1", "0:1", "1:2000", "a:b"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }
}
