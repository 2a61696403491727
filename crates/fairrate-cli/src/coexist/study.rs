//! The study of two algorithms: its scenario, its networks and its cases, for the command and for Python.

use std::path::{Path, PathBuf};

use fairrate_control::{AlgorithmConfig, Profile, Queueing, Registry};
use fairrate_experiment::columns::parse_variant;
use fairrate_report::heat_map::Layout;
use fairrate_units::{Bytes, Rate, Time};

use super::cases::{self, Loads, SHORT_HOSTS};
use super::maps;
use crate::failure::Failure;

/// The cases of a study.
#[derive(Clone, Debug, clap::Args)]
pub struct Plan {
    /// Rate of all links
    #[arg(long, default_value = "25Gbps")]
    pub rate: Rate,
    /// Base round-trip time
    #[arg(long, default_value = "20us")]
    pub rtt: Time,
    /// Buffers, in times of what the path holds
    #[arg(long, value_name = "X,...", value_delimiter = ',', default_value = "0.1,0.3,1,3,10")]
    pub buffers: Vec<f64>,
    /// Numbers of flows of the two, as 1:1,1:10
    #[arg(long, value_name = "A:B,...", value_delimiter = ',', value_parser = numbers, default_value = "4:4,1:10,10:1")]
    pub flows: Vec<(u16, u16)>,
    /// Numbers of classes: 1, in which both share a queue, and 2, one for each, with weights by their numbers of flows.
    /// An algorithm whose ports have queues of their own has no second case
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=2), default_value = "1,2")]
    pub classes: Vec<u8>,
    /// Loads of the port by short flows, as 0.2,0.5: those of either algorithm beside long flows of either, in one
    /// class; "" for none
    #[arg(long, value_name = "LOAD,...", value_parser = cases::loads, default_value = "0.3")]
    pub short: Loads,
    /// Round trips that are simulated; the second half is measured
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(20..))]
    pub round_trips: u64,
}

impl Plan {
    /// Returns the end of the runs.
    pub(super) fn end(&self) -> Time {
        Time::from_ps(self.rtt.as_ps() * self.round_trips)
    }

    /// Returns `true` if there are cases with a class for each of the two.
    pub(super) fn has_two_classes(&self, sides: [&Side; 2]) -> bool {
        self.classes.contains(&2) && sides.iter().all(|side| side.may_weigh)
    }

    /// Returns `true` if there are cases with one class for both.
    pub(super) fn has_one_class(&self, sides: [&Side; 2]) -> bool {
        self.classes.contains(&1) || !self.has_two_classes(sides)
    }

    /// Returns the probe of the shared port, as an inline table.
    pub(super) fn queue_probe(&self) -> String {
        let every = Time::from_ps((self.end().as_ps() / 2_000).max(1_000));
        format!("{{ queue = \"1->0\", every = \"{every}\" }}")
    }
}

/// Returns the bytes that the path holds.
pub(super) fn bdp_bytes(plan: &Plan) -> f64 {
    plan.rate.bytes_in(plan.rtt).as_f64()
}

/// Algorithms that are usually run over TCP.
const OVER_TCP: [&str; 14] = [
    "newreno", "cubic", "bbr", "dctcp", "d2tcp", "hull", "retcp", "ratemp", "lia", "olia", "balia", "xmp", "amp",
    "mpcc",
];

/// Round trip of the other algorithm's flows over that of the first, where the two are not the same.
pub(super) const FAR: u64 = 4;
/// Interval at which the flows are probed, in round trips: the bins in which goodput settles after a change.
const BIN: u64 = 20;
/// Smallest buffer of a switch, in bytes: scenarios refuse smaller ones.
const LEAST_BUFFER: f64 = 10_000.0;

/// One of the two algorithms.
pub struct Side {
    /// Name and parameters, as `compare --cc` takes them.
    pub(super) cc: String,
    name: &'static str,
    /// The keys of its parameters and their values.
    params: Vec<(String, String)>,
    transport: &'static str,
    /// Name of its traffic block.
    pub(super) block: String,
    /// Set if its packets may wait in a class with a weight.
    may_weigh: bool,
}

/// Reads `4:4`.
fn numbers(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=1_000).contains(n));
    let pair = text.split_once(':').and_then(|(a, b)| Some((number(a)?, number(b)?)));
    pair.ok_or_else(|| "write two numbers from 1 to 1000, as 4:4".to_owned())
}

impl Side {
    /// Reads `NAME`, `NAME:KEY=VALUE` or `NAME/TRANSPORT`.
    fn of(text: &str, registry: &Registry) -> Result<Self, Failure> {
        // A path has slashes too.
        let is_path = |cc: &str| cc.contains('/') || cc.is_empty() || cc == "." || cc == "..";
        let (cc, transport) = match text.rsplit_once('/') {
            Some((cc, transport)) if !is_path(cc) => (cc, Some(transport)),
            _ => (text, None),
        };
        let variant = parse_variant(cc, registry)?;
        let name = variant.cc.as_str();
        let Some(config) = AlgorithmConfig::by_name(name, Profile::Paper) else {
            return Err(Failure::Usage {
                message: format!("`{text}` is no built-in algorithm without a set of constants"),
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
    pub(super) fn inline(&self) -> String {
        let values = self.params.iter().map(|(key, value)| {
            let is_bare = value.parse::<f64>().is_ok() || ["true", "false"].contains(&value.as_str());
            format!("{key} = {}", if is_bare { value.clone() } else { format!("\"{value}\"") })
        });
        let params = values.collect::<Vec<_>>().join(", ");
        let params = if params.is_empty() { params } else { format!(", {} = {{ {params} }}", self.name) };
        format!("{{ {}{params} }}", self.transport_keys())
    }
}

/// A study that can be run.
pub struct Study {
    /// Text of the scenario, which names the file `near.txt`.
    pub scenario: String,
    /// Names and texts of its two networks.
    pub networks: [(&'static str, String); 2],
    /// The cases as variants of `compare`: their labels, the first algorithm, and their keys.
    pub variants: Vec<String>,
    /// The buffers, values of the key `switch.buffer`.
    pub buffers: Vec<String>,
    /// The names of the two traffic blocks.
    pub blocks: [String; 2],
    /// The heat maps of its report.
    pub heat_maps: Layout,
}

impl Study {
    /// Returns the study of two algorithms, each given as `NAME`, `NAME:KEY=VALUE` or `NAME/TRANSPORT`.
    ///
    /// # Errors
    /// An algorithm is not known, or a value of the plan is out of range.
    pub fn new(plan: &Plan, [a, b]: [&str; 2], registry: &Registry) -> Result<Self, Failure> {
        let (mut a, mut b) = (Side::of(a, registry)?, Side::of(b, registry)?);
        if a.block == b.block {
            (a.block, b.block) = (a.block + "-1", b.block + "-2");
        }
        if plan.rate == Rate::ZERO
            || plan.rtt < Time::from_ns(100)
            || plan.buffers.iter().any(|x| !(0.01..=1e3).contains(x))
        {
            return Err(Failure::Usage {
                message: format!(
                    "a rate of {}, a round trip of {} and buffers of {:?}",
                    plan.rate, plan.rtt, plan.buffers
                ),
                help: "give a rate above zero, a round trip of at least 100ns, and buffers from 0.01 to 1000"
                    .to_owned(),
            });
        }
        let most = plan.flows.iter().map(|n| n.0.max(n.1)).max().unwrap_or(1);
        let most = if plan.short.0.is_empty() { most } else { most.max(SHORT_HOSTS) };
        let [near, far] = [1, 2 * FAR - 1].map(|times| network(plan, most, times));
        let buffers = buffers(plan, &a);
        Ok(Self {
            scenario: scenario(plan, &a, &b),
            networks: [("near.txt", near), ("far.txt", far)],
            variants: cases::variants(plan, [&a, &b]),
            heat_maps: maps::layout(plan, [&a, &b], &buffers),
            buffers,
            blocks: [a.block, b.block],
        })
    }

    /// Writes the scenario, as `coexist.toml`, and its networks to `dir`.
    ///
    /// # Errors
    /// A file of these names has another content, or cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), Failure> {
        let networks = self.networks.iter().map(|(name, text)| (*name, text));
        let files: Vec<_> = networks.chain([("coexist.toml", &self.scenario)]).collect();
        let mut missing = Vec::new();
        for (name, text) in files {
            let path = dir.join(name);
            if path.symlink_metadata().is_err() {
                missing.push((path, text));
            } else if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                return Err(Failure::Usage {
                    message: format!("`{}` exists, and is not that of this study", path.display()),
                    help: "give another `--out`, or remove the file; `fairrate compare` runs a scenario that you have edited"
                        .to_owned(),
                });
            }
        }
        std::fs::create_dir_all(dir).map_err(|error| Failure::io("creating", dir, error))?;
        let write = |(path, text): &(PathBuf, &String)| {
            std::fs::write(path, text).map_err(|error| Failure::io("writing", path, error))
        };
        missing.iter().try_for_each(write)
    }
}

/// Returns the buffers, each of which holds some packets at least.
fn buffers(plan: &Plan, a: &Side) -> Vec<String> {
    let bdp = bdp_bytes(plan);
    let packet = if a.transport == "uet" { 5_000.0 } else { 1_100.0 };
    let buffer =
        |times: &f64| Bytes::new((times * bdp).max(LEAST_BUFFER).max(5.0 * packet) as u64).as_u64().to_string() + "B";
    plan.buffers.iter().map(buffer).collect()
}

/// Returns a topology file: the receiver, which is node 0, a switch, and `n` senders of each of the two algorithms in
/// turns. The links of the other algorithm's senders are `times` as long.
fn network(plan: &Plan, n: u16, times: u64) -> String {
    let nodes = 2 + 2 * u32::from(n);
    let link_ns = plan.rtt.as_ps() / 4_000;
    let link = |host: u32| {
        let ns = if host % 2 == 1 { link_ns * times } else { link_ns };
        format!("{host} 1 {} {ns}ns 0\n", plan.rate)
    };
    format!("{nodes} 1 {}\n1\n", nodes - 1) + &link(0) + &(2..nodes).map(link).collect::<String>()
}

fn scenario(plan: &Plan, a: &Side, b: &Side) -> String {
    let end = plan.end();
    let half = Time::from_ps(end.as_ps() / 2);
    let bin = Time::from_ps(plan.rtt.as_ps() * BIN);
    let block = |side: &Side, sender: u32, transport: &str| {
        format!(
            "\n[[traffic]]\nname = \"{}\"\nkind = \"incast\"\nreceiver = 0\nsenders = [{sender}]\nbytes = \"endless\"\njitter = \"{}\"\n{transport}",
            side.block, plan.rtt
        )
    };
    // Strict classes, of which only one has data, are as one.
    let classes = if plan.has_two_classes([a, b]) {
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
         [[probe]]\nqueue = \"1->0\"\nevery = \"{every}\"\n\n\
         [[probe]]\nflows = \"all\"\nevery = \"{bin}\"\n",
        every = Time::from_ps((end.as_ps() / 2_000).max(1_000)),
        packet = plan.rate.tx_time(Bytes::new(1_048)),
        a = a.cc,
        b = b.cc,
        a_block = a.block,
        b_block = b.block,
        keys = a.transport_keys().replace(", ", "\n"),
        first = block(a, 2, ""),
        second = block(b, 3, &format!("transport = {}\n", b.inline())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_numbers_are_read() {
        assert_eq!(numbers("1:10"), Ok((1, 10)));
        for wrong in ["1", "0:1", "1:2000", "a:b"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }
}
