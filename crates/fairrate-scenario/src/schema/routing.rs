//! `[routing]`: the choice among equal paths, and what becomes of it when links fail.

use std::collections::BTreeSet;

use fairrate_control::{Needs, Parameters, PortScope};
use fairrate_sim::routing::Routes;
use fairrate_sim::{Adaptive, BALANCES, Balance, Conga, NodeId, Rehash, Reroute, Signal, SimConfig, Stack};
use fairrate_units::{Bytes, Time};

use super::stacks::Stacks;
use crate::error::{Report, Site};
use crate::reader::{OrWord, Section};
use crate::tree::Value;

/// Names of the measures of adaptive routing, and of their orders.
const SIGNALS: [(&str, &str); 8] = [
    ("levels", "levels"),
    ("exact", "exact"),
    ("utilization", "utilization"),
    ("pauses", "pauses"),
    ("pauses-levels", "pauses-levels"),
    ("pauses-utilization", "pauses-utilization"),
    ("levels-utilization", "levels-utilization"),
    ("pauses-levels-utilization", "pauses-levels-utilization"),
];

/// The choices of `[routing]`.
#[derive(Clone, Copy)]
pub(super) struct Routing {
    pub(super) balance: Balance,
    pub(super) reroute: Option<Reroute>,
    /// `true` if all switches hash alike.
    pub(super) has_one_salt: bool,
}

/// Reads `[routing]`: the scheme, the parameters of all schemes, and the reaction to links that are down.
pub(super) fn read(root: &mut Section<'_>, stacks: &Stacks) -> Routing {
    let mut s = root.child("routing", "`[routing]`");
    let names: Vec<(&'static str, &'static str)> = BALANCES.iter().map(|b| (b.name, b.name)).collect();
    let name = s.choice("balance", &names, "ecmp").value;
    // ConWeave's ns-3 code has this gap for LetFlow and CONGA; the papers, with TCP at 1 and 10 Gb/s, 500 us.
    let gap = s.get("gap", Time::from_us(100)).value;
    // DRILL(2, 1), the paper's choice.
    let samples = count(&mut s, "samples", 2, 1);
    let memory = count(&mut s, "memory", 1, 0);
    // The paper's time constant, and the time after which its leaves let a load fade.
    let (constant, age) = (s.get("time_constant", Time::from_us(160)).value, s.get("age", Time::from_ms(10)).value);
    let signal = s.choice("signal", &SIGNALS, "levels").value;
    // Five times rate times round-trip time of uet-htsim's network, its queues without trimming: 100 Gb/s and 12 us.
    let full = s.get("full", Bytes::new(750_000)).value;
    // uet-htsim reads its ports every 100 ns; the default is the ideal switch.
    let refresh = s.get("refresh", Time::ZERO).value;
    let sticky = match s.value_or::<Time>("sticky", &["off"], OrWord::Word(0)).value {
        OrWord::Value(time) => Some(time),
        OrWord::Word(_) => None,
    };
    let has_one_salt = s.choice("salt", &[("each", false), ("one", true)], false).value;
    let balance = match name {
        "wcmp" => Balance::Wcmp,
        "host" => Balance::Host,
        "spray" => Balance::Spray,
        "round-robin" => Balance::RoundRobin,
        "flowlet" => Balance::Flowlet { gap },
        "conga" => Balance::Conga(Conga { gap, memory: constant, age }),
        "adaptive" => Balance::Adaptive(Adaptive { signals: signals(signal, full), refresh, sticky }),
        "drill" => Balance::Drill { samples, memory },
        "ecmp" => Balance::Ecmp,
        other => unreachable!("`{other}` is listed in BALANCES and not read here"),
    };
    for Stack { cc, .. } in &stacks.all {
        let Some(why) = why_one_path(&cc.needs()).filter(|_| balance.is_by_packet()) else { continue };
        let message = format!("`{}` {why}, and these packets have several", cc.info().name);
        let name = cc.info().name;
        let help = if cc.params().iter().any(|p| p.name == "per_path") {
            format!("write `balance = \"ecmp\"`, or `per_path = true` in `[transport.{name}]`")
        } else {
            "write `balance = \"ecmp\"`, or choose another `cc`".to_owned()
        };
        s.problem_at("scenario::conflict", "balance", message, help);
    }
    let reroute = read_reroute(&mut s, balance, stacks);
    root.out.tables.push(("routing".into(), s.finish()));
    Routing { balance, reroute, has_one_salt }
}

/// Returns the measures that a name of [`SIGNALS`] stands for, in their order.
fn signals(name: &str, full: Bytes) -> [Option<Signal>; 3] {
    let mut words = name.split('-').map(|word| match word {
        "levels" => Signal::Levels { full },
        "utilization" => Signal::Utilization,
        "pauses" => Signal::Pauses,
        _ => Signal::Exact,
    });
    std::array::from_fn(|_| words.next())
}

/// Largest number of uplinks of a leaf that CONGA's header has room for; 16 in the paper.
const CONGA_UPLINKS: usize = 32;

/// Checks that the network is one for CONGA: leaves and spines.
pub(super) fn check_conga(report: &Report, config: &SimConfig, site: Site) {
    let (topology, routes) = (&config.topology, Routes::of(config));
    if !matches!(config.fabric.balance, Balance::Conga(_)) {
        return;
    }
    let problem = |message: String, help: &str| report.problem("scenario::conflict", site, message, "in here", help);
    if 4 < routes.longest_path() {
        let message =
            format!("`conga` is for leaves and spines, and the longest path here has {} links", routes.longest_path());
        problem(message, "write another `balance`, as `balance = \"adaptive\"`, or take `kind = \"leaf-spine\"`");
        return;
    }
    let uplinks = |leaf: NodeId| topology.hosts().map(|host| routes.next_hops(leaf, host).count()).max().unwrap_or(0);
    let leaves: BTreeSet<NodeId> =
        topology.hosts().filter_map(|host| Some(topology.to(routes.host_port(host)?))).collect();
    let most = leaves.into_iter().map(uplinks).max().unwrap_or(0);
    if CONGA_UPLINKS < most {
        let message = format!("a leaf has {most} uplinks, and `conga` numbers {CONGA_UPLINKS} in its header");
        problem(message, "take fewer spines, or another `balance`");
    }
}

/// Returns `true` if hosts choose paths, before `[routing]` is read.
pub(super) fn is_by_hosts(root: &Section<'_>) -> bool {
    let balance = match root.peek("routing").map(|node| &node.value) {
        Some(Value::Table(table)) => table.get("balance").map(|entry| &entry.node.value),
        _ => None,
    };
    matches!(balance, Some(Value::Text(text)) if text == "host")
}

/// Reads `reroute_delay`, `convergence_delay` and `rehash`. Flows with fixed paths wait for their links by default, and
/// packets that choose a port choose one that is up.
fn read_reroute(s: &mut Section<'_>, balance: Balance, stacks: &Stacks) -> Option<Reroute> {
    let default = if balance.is_by_packet() { OrWord::Value(Time::ZERO) } else { OrWord::Word(0) };
    let time = |s: &mut Section<'_>, key: &str, default| match s.value_or::<Time>(key, &["never"], default).value {
        OrWord::Value(time) => time,
        OrWord::Word(_) => Time::MAX,
    };
    let delay = time(s, "reroute_delay", default);
    let like_own = if delay == Time::MAX { OrWord::Word(0) } else { OrWord::Value(delay) };
    let convergence = time(s, "convergence_delay", like_own);
    let rehash =
        s.choice("rehash", &[("modulo", Rehash::Modulo), ("resilient", Rehash::Resilient)], Rehash::Modulo).value;
    if convergence < delay {
        let noticed = if delay == Time::MAX { "never noticed".to_owned() } else { format!("noticed after {delay}") };
        let message = format!("switches hear after {convergence} of failures that are {noticed} where they are");
        let help = format!("write `reroute_delay = \"{convergence}\"`, or more than that for `convergence_delay`");
        s.problem_at("scenario::conflict", "convergence_delay", message, help);
    }
    if delay == Time::MAX {
        return None;
    }
    for Stack { cc, .. } in &stacks.all {
        let Some(why) = why_known_path(&cc.needs()).filter(|_| s.has("reroute_delay")) else { continue };
        let message = format!("`{}` {why}, and a flow that is rerouted takes another", cc.info().name);
        let help = "write `reroute_delay = \"never\"`, or choose another `cc`";
        s.problem_at("scenario::conflict", "reroute_delay", message, help);
    }
    Some(Reroute { delay, convergence, rehash })
}

/// Reads a number of ports, of which there are at least `least`.
fn count(s: &mut Section<'_>, key: &str, default: u32, least: u8) -> u8 {
    let given = s.get(key, default).value;
    u8::try_from(given).ok().filter(|&n| least <= n).unwrap_or_else(|| {
        let message = format!("`{key} = {given}` is out of range");
        s.problem_at("scenario::out_of_range", key, message, format!("write a number from {least} to 255"));
        default as u8
    })
}

/// Returns the reason why an algorithm needs all packets of a flow on one path; `None` if it does not.
fn why_one_path(needs: &Needs) -> Option<&'static str> {
    // A record is compared with the previous one of the same hop: a difference between two ports means nothing.
    let compares = needs.network.telemetry.is_some() && !needs.feedback.paths_apart;
    why_known_path(needs).or(compares.then_some("compares telemetry of the ports of one path"))
}

/// Returns the reason why an algorithm needs to know the path of a flow before it starts; `None` if it does not.
fn why_known_path(needs: &Needs) -> Option<&'static str> {
    knows_paths(needs).then_some("has to know the one path of each flow")
}

/// Returns `true` if an algorithm needs to know the path of a flow before it starts.
pub(super) fn knows_paths(needs: &Needs) -> bool {
    needs.network.ports != PortScope::None || needs.feedback.allocator || needs.feedback.oracle.is_some()
}
