//! `[routing]`: the choice among equal paths, and what becomes of it when links fail.

use fairrate_control::{AlgorithmConfig, Needs, PortScope};
use fairrate_sim::{BALANCES, Balance, Rehash, Reroute, Signal};
use fairrate_units::{Bytes, Time};

use crate::reader::{OrWord, Section};

/// Reads `[routing]`: the scheme, the parameters of all schemes, and the reaction to links that are down.
pub(super) fn read(root: &mut Section<'_>, cc: &AlgorithmConfig) -> (Balance, Option<Reroute>) {
    let mut s = root.child("routing", "`[routing]`");
    let names: Vec<(&'static str, &'static str)> = BALANCES.iter().map(|b| (b.name, b.name)).collect();
    let name = s.choice("balance", &names, "ecmp").value;
    // ConWeave's ns-3 code has this gap for LetFlow and CONGA; the papers, with TCP at 1 and 10 Gb/s, 500 us.
    let gap = s.get("gap", Time::from_us(100)).value;
    // DRILL(2, 1), the paper's choice.
    let samples = count(&mut s, "samples", 2, 1);
    let memory = count(&mut s, "memory", 1, 0);
    let by_levels = s.choice("signal", &[("levels", true), ("exact", false)], true).value;
    // Five times rate times round-trip time of uet-htsim's network, its queues without trimming: 100 Gb/s and 12 us.
    let full = s.get("full", Bytes::new(750_000)).value;
    let balance = match name {
        "host" => Balance::Host,
        "spray" => Balance::Spray,
        "round-robin" => Balance::RoundRobin,
        "flowlet" => Balance::Flowlet { gap },
        "adaptive" => Balance::Adaptive(if by_levels { Signal::Levels { full } } else { Signal::Exact }),
        "drill" => Balance::Drill { samples, memory },
        "ecmp" => Balance::Ecmp,
        other => unreachable!("`{other}` is listed in BALANCES and not read here"),
    };
    if let Some(why) = why_one_path(&cc.needs()).filter(|_| balance.is_by_packet()) {
        let message = format!("`{}` {why}, and these packets have several", cc.info().name);
        let help = "write `balance = \"ecmp\"`, or choose another `cc`";
        s.problem_at("scenario::conflict", "balance", message, help);
    }
    let reroute = read_reroute(&mut s, balance, cc);
    root.out.tables.push(("routing".into(), s.finish()));
    (balance, reroute)
}

/// Reads `reroute_delay`, `convergence_delay` and `rehash`. Flows with fixed paths wait for their links by default, and
/// packets that choose a port choose one that is up.
fn read_reroute(s: &mut Section<'_>, balance: Balance, cc: &AlgorithmConfig) -> Option<Reroute> {
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
    if let Some(why) = why_known_path(&cc.needs()).filter(|_| s.has("reroute_delay")) {
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
    let compares = needs.network.telemetry.is_some().then_some("compares telemetry of the ports of one path");
    why_known_path(needs).or(compares)
}

/// Returns the reason why an algorithm needs to know the path of a flow before it starts; `None` if it does not.
fn why_known_path(needs: &Needs) -> Option<&'static str> {
    knows_paths(needs).then_some("has to know the one path of each flow")
}

/// Returns `true` if an algorithm needs to know the path of a flow before it starts.
pub(super) fn knows_paths(needs: &Needs) -> bool {
    needs.network.ports != PortScope::None || needs.feedback.allocator || needs.feedback.oracle
}
