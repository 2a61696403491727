//! `ecn` of `[switch]`: the marks of switches.

use fairrate_control::{MarkedQueue, NetworkNeeds, Profile, RedDefault};
use fairrate_sim::{EcnConfig, FabricConfig, MarkAt, MarkBy, MarkDraws, NonEct, SimConfig};
use fairrate_units::{Bytes, Rate};

use super::stacks::Stacks;
use crate::error::{Report, Site};
use crate::reader::{OrWord, Section};
use crate::tree::{Node, Value};

/// RED as the artifact configures it for every algorithm: 100 and 400 KB at 25 Gb/s, in proportion at other rates.
const RED: EcnConfig = EcnConfig {
    phantom: None,
    kmin: Bytes::new(100_000),
    kmax: Bytes::new(400_000),
    pmax: 0.2,
    kmin_per: Some(Rate::from_gbps(25)),
    kmax_per: Some(Rate::from_gbps(25)),
    average: None,
    at: MarkAt::Dequeue,
    draws: MarkDraws::PerPort,
    to_hosts: true,
    non_ect: NonEct::Mark,
    by: MarkBy::Class,
};

/// RED as the OMNeT++ code of RoCC's authors has it for DCQCN.
const OMNET_RED: EcnConfig = EcnConfig {
    kmin: Bytes::new(5_000),
    kmax: Bytes::new(200_000),
    pmax: 0.01,
    kmin_per: None,
    kmax_per: None,
    average: Some(0.2),
    at: MarkAt::Enqueue,
    ..RED
};

/// HULL's phantom queue, NSDI 2012: its testbed of 1 Gb/s marks above 1 KB; in proportion at other rates.
const PHANTOM: EcnConfig = EcnConfig {
    phantom: None,
    kmin: Bytes::new(1_000),
    kmax: Bytes::new(1_000),
    pmax: 1.0,
    kmin_per: Some(Rate::from_gbps(1)),
    kmax_per: Some(Rate::from_gbps(1)),
    average: None,
    at: MarkAt::Enqueue,
    draws: MarkDraws::PerPort,
    to_hosts: true,
    non_ect: NonEct::Mark,
    by: MarkBy::Class,
};

/// Returns the marking that an algorithm requires.
fn own_red(red: RedDefault) -> EcnConfig {
    let RedDefault { kmin, kmax, pmax, per_rate, queue } = red;
    let (phantom, at) = match queue {
        MarkedQueue::Joined => (None, MarkAt::Enqueue),
        MarkedQueue::Left => (None, MarkAt::Dequeue),
        MarkedQueue::Phantom(percent) => (Some(f64::from(percent) / 100.0), MarkAt::Enqueue),
    };
    EcnConfig { phantom, kmin, kmax, pmax, kmin_per: per_rate, kmax_per: per_rate, at, ..RED }
}

/// Returns the default marking: in the paper profile only for algorithms that read marks, in the ns-3 profile, as in
/// the artifact, for all algorithms without circuits.
pub(super) fn default_ecn(profile: Profile, needs: &NetworkNeeds) -> Option<EcnConfig> {
    match profile {
        Profile::RoccOmnet if needs.ecn => Some(OMNET_RED),
        Profile::Ns3 if needs.circuits.is_none() => Some(EcnConfig { draws: MarkDraws::LikeNs3, ..RED }),
        _ => needs.ecn.then(|| needs.red.map_or(RED, own_red)),
    }
}

/// Reads `ecn` of `[switch]`: the thresholds, or `None` if switches do not mark. `apart`: the classes that have marks
/// of their own.
pub(super) fn read(s: &mut Section<'_>, profile: Profile, stacks: &Stacks, apart: &[u8]) -> Option<EcnConfig> {
    let is_lossy = s.peek("pfc").is_some_and(|node| matches!(node.value, Value::Bool(false)));
    let here = |at: usize| stacks.classes_of(at).iter().any(|class| !apart.contains(class));
    let here: Vec<usize> = (0..stacks.all.len()).filter(|&at| here(at)).collect();
    let (default, base) = usual_of(profile, stacks, &here, is_lossy);
    read_from(s, default, base, Keys::Unusual)
}

/// Reads `ecn` of a `[[class]]`. By default it is that of `[switch]` if the scenario gives one or no algorithm is known
/// to send in the class, and else what the algorithms in the class are made for. `is_lossy`: the class has no PFC.
pub(super) fn read_class(
    s: &mut Section<'_>,
    profile: Profile,
    stacks: &Stacks,
    class: u8,
    fabric: &FabricConfig,
    is_lossy: bool,
) -> Option<EcnConfig> {
    let here: Vec<usize> = (0..stacks.all.len()).filter(|&at| stacks.classes_of(at).contains(&class)).collect();
    let (default, base) = if stacks.gives_ecn || here.is_empty() {
        (fabric.ecn, fabric.ecn.unwrap_or(usual_of(profile, stacks, &here, is_lossy).1))
    } else {
        usual_of(profile, stacks, &here, is_lossy)
    };
    // What the resolved scenario leaves out would be that of `[switch]`.
    read_from(s, default, base, Keys::All)
}

/// Returns the marking of switches that nobody describes, for the stacks at `here`, and the one from which a
/// description starts.
fn usual_of(profile: Profile, stacks: &Stacks, here: &[usize], is_lossy: bool) -> (Option<EcnConfig>, EcnConfig) {
    // Where receivers share out their own links, marks tell of the network alone, as in uet-htsim.
    let to_hosts = stacks.all.iter().all(|stack| stack.cc.needs().feedback.credit.is_none());
    let non_ect = usual_non_ect(here.len(), is_lossy);
    let usual = |ecn: EcnConfig| EcnConfig { to_hosts, non_ect, ..ecn };
    let default = stacks.needs_of(here).and_then(|needs| default_ecn(profile, &needs)).map(usual);
    (default, default.unwrap_or(usual(RED)))
}

/// The keys of a marking that the resolved scenario has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// All.
    All,
    /// Keys that most markings have, and keys whose value is not the usual one.
    Unusual,
}

/// Reads `ecn`; the resolved scenario gets the `keys` of it.
fn read_from(s: &mut Section<'_>, default: Option<EcnConfig>, base: EcnConfig, keys: Keys) -> Option<EcnConfig> {
    let (given, table) = match s.node("ecn") {
        None => (default, None),
        Some(Node { value: Value::Bool(on), .. }) => (on.then_some(base), None),
        Some(node @ Node { value: Value::Table(_), .. }) => (Some(base), Some(node)),
        Some(node) => {
            let message = format!("expected thresholds for `ecn`, found {}", node.value.describe());
            let help = "write `ecn = { kmin = \"100KB\", kmax = \"400KB\", pmax = 0.2 }` or `ecn = false`";
            s.problem_at("scenario::wrong_type", "ecn", message, help);
            (None, None)
        }
    };
    let Some(base) = given else {
        s.out.push("ecn", "false".into());
        return None;
    };
    let site = table.map_or(s.anchor.site, |n| n.site);
    let table = table.and_then(|n| if let Value::Table(t) = &n.value { Some(t) } else { None });
    let mut e = Section::new(s.report, site, "`ecn`", table);
    let ecn = read_thresholds(&mut e, base, keys);
    s.out.push("ecn", e.finish().render_inline());
    Some(ecn)
}

/// Returns the treatment of data whose algorithm does not go by marks if none is given, where `n_stacks` send. Beside
/// others it is dropped where they are marked, as RED does, unless PFC keeps the class from dropping.
fn usual_non_ect(n_stacks: usize, is_lossy: bool) -> NonEct {
    match (n_stacks, is_lossy) {
        (0 | 1, _) => NonEct::Mark,
        (_, false) => NonEct::Ignore,
        (_, true) => NonEct::Drop,
    }
}

fn read_thresholds(e: &mut Section<'_>, base: EcnConfig, keys: Keys) -> EcnConfig {
    let phantom = read_phantom(e, base.phantom, keys);
    let base =
        if phantom.is_some() && base.phantom.is_none() { EcnConfig { draws: base.draws, ..PHANTOM } } else { base };
    let (kmin, kmax) = (e.get("kmin", base.kmin).value, e.get("kmax", base.kmax).value);
    let pmax = e.get("pmax", base.pmax).value;
    let (kmin_per, kmax_per) = read_per(e, base);
    let at = e.choice("at", &[("enqueue", MarkAt::Enqueue), ("dequeue", MarkAt::Dequeue)], base.at).value;
    let draws = e.choice("draws", &[("per-port", MarkDraws::PerPort), ("ns3", MarkDraws::LikeNs3)], base.draws).value;
    // The order of thresholds for different rates depends on the ports: `check`.
    if kmin_per == kmax_per && kmax < kmin {
        let message = format!("`kmin` of {kmin} is above `kmax` of {kmax}");
        let help = "marking begins at `kmin`: make it at most `kmax`, and give both";
        e.problem_at("scenario::conflict", "kmin", message, help);
    }
    if !(0.0..=1.0).contains(&pmax) {
        let message = format!("`pmax = {pmax}` is no probability");
        e.problem_at("scenario::out_of_range", "pmax", message, "write a number from 0 to 1, as `pmax = 0.2`");
    }
    if phantom.is_some() && at == MarkAt::Dequeue {
        let help = "remove `at`, or set `phantom = \"none\"`";
        e.problem_at("scenario::conflict", "at", "packets join a phantom queue, and nothing leaves it", help);
    }
    let average = read_average(e, base.average, keys);
    if average.is_some() && (phantom.is_some() || draws == MarkDraws::LikeNs3) {
        let help = "remove `average`, or `phantom` and `draws`";
        e.problem_at("scenario::conflict", "average", "an average is of the queue, with a stream of each port", help);
    }
    let to_hosts = read_to_hosts(e, base.to_hosts, keys);
    // A phantom queue has nothing to drop.
    let usual = if phantom.is_some() && base.non_ect == NonEct::Drop { NonEct::Ignore } else { base.non_ect };
    let non_ect = read_non_ect(e, usual, keys);
    if non_ect == NonEct::Drop && phantom.is_some() {
        let help = "write `non_ect = \"ignore\"`, or remove `phantom`";
        e.problem_at("scenario::conflict", "non_ect", "a phantom queue has nothing to drop", help);
    }
    let by = read_by(e, base.by, keys);
    if by != MarkBy::Class && phantom.is_some() {
        let help = "remove `compare`, or `phantom`";
        e.problem_at("scenario::conflict", "compare", "packets of all classes join a phantom queue", help);
    } else if by == MarkBy::Round && at == MarkAt::Dequeue {
        let help = "write `at = \"enqueue\"`, or another `compare`";
        e.problem_at("scenario::conflict", "compare", "rounds are estimated as packets join a queue", help);
    }
    EcnConfig { phantom, kmin, kmax, pmax, kmin_per, kmax_per, average, at, draws, to_hosts, non_ect, by }
}

/// Reads the queue that is compared with the thresholds. It is not written to the resolved scenario if it is that of
/// the class.
fn read_by(e: &mut Section<'_>, default: MarkBy, keys: Keys) -> MarkBy {
    let by = e.choice("compare", MarkBy::NAMES, default).value;
    if keys == Keys::Unusual && (default, by) == (MarkBy::Class, MarkBy::Class) {
        e.out.values.pop();
    }
    by
}

/// Reads the port rates to which `kmin` and `kmax` refer. A threshold given in the file is absolute unless the file
/// gives its rate; a threshold not given keeps the rate of its default.
fn read_per(e: &mut Section<'_>, base: EcnConfig) -> (Option<Rate>, Option<Rate>) {
    let (has_kmin, has_kmax) = (e.has("kmin"), e.has("kmax"));
    let none_given = !has_kmin && !has_kmax;
    let default = if none_given { base.kmin_per } else { None };
    let per = one_per(e, "per", default);
    let says = e.has("per");
    let own = |has: bool, base: Option<Rate>| if has || (none_given && says) { per } else { base };
    let (kmin, kmax) = (own(has_kmin, base.kmin_per), own(has_kmax, base.kmax_per));
    (one_of_two(e, "kmin_per", kmin, per), one_of_two(e, "kmax_per", kmax, per))
}

/// Reads the port rate of one threshold. If it equals `both`, it is not written to the resolved scenario.
fn one_of_two(e: &mut Section<'_>, key: &str, default: Option<Rate>, both: Option<Rate>) -> Option<Rate> {
    let rate = one_per(e, key, default);
    if rate == both {
        e.out.values.pop();
    }
    rate
}

fn one_per(e: &mut Section<'_>, key: &str, default: Option<Rate>) -> Option<Rate> {
    let default = default.map_or(OrWord::Word(0), OrWord::Value);
    let OrWord::Value(rate) = e.value_or::<Rate>(key, &["any-rate"], default).value else { return None };
    if rate == Rate::ZERO {
        let help = format!("write for instance `{key} = \"25Gbps\"`");
        e.problem_at("scenario::out_of_range", key, "thresholds for a rate of zero", help);
    }
    Some(rate)
}

/// Checks that `kmin` is at most `kmax` at the rate of every switch port.
pub(super) fn check(report: &Report, config: &SimConfig, site: Site) {
    config
        .fabric
        .all_ecn()
        .filter(|ecn| ecn.kmin_per != ecn.kmax_per)
        .for_each(|ecn| check_rates(report, config, site, &ecn));
}

fn check_rates(report: &Report, config: &SimConfig, site: Site, ecn: &EcnConfig) {
    let topology = &config.topology;
    let switches = topology.links.iter().filter(|link| !topology.is_host(link.a) || !topology.is_host(link.b));
    let wrong = switches.map(|link| link.rate).find(|&rate| {
        let (kmin, kmax) = ecn.thresholds(rate);
        kmax < kmin
    });
    if let Some(rate) = wrong {
        let (kmin, kmax) = ecn.thresholds(rate);
        let [kmin, kmax] = [kmin, kmax].map(|bytes| Bytes::new(bytes as u64));
        let message = format!("`kmin` of {kmin} is above `kmax` of {kmax} at ports of {rate}");
        let help = "one of them scales with a port's rate and the other does not: give both in `ecn` of `[switch]`";
        report.problem("scenario::conflict", site, message, "thresholds that cross", help);
    }
}

/// Reads whether ports to hosts mark. It is not written to the resolved scenario if they do.
fn read_to_hosts(e: &mut Section<'_>, default: bool, keys: Keys) -> bool {
    let to_hosts = e.get("to_hosts", default).value;
    if keys == Keys::Unusual && default && to_hosts {
        e.out.values.pop();
    }
    to_hosts
}

/// Reads the treatment of data whose algorithm does not go by marks. It is not written to the resolved scenario if that
/// is marked as all other is.
fn read_non_ect(e: &mut Section<'_>, default: NonEct, keys: Keys) -> NonEct {
    let non_ect = e.choice("non_ect", NonEct::NAMES, default).value;
    if keys == Keys::Unusual && (default, non_ect) == (NonEct::Mark, NonEct::Mark) {
        e.out.values.pop();
    }
    non_ect
}

/// Reads the weight of a packet in the average of a queue. It is not written to the resolved scenario if there is none.
fn read_average(e: &mut Section<'_>, default: Option<f64>, keys: Keys) -> Option<f64> {
    let OrWord::Value(weight) =
        e.value_or::<f64>("average", &["none"], default.map_or(OrWord::Word(0), OrWord::Value)).value
    else {
        if keys == Keys::Unusual {
            e.out.values.pop();
        }
        return None;
    };
    if !(0.0 < weight && weight <= 1.0) {
        let help = "write the weight of a packet, as `average = 0.2`";
        e.problem_at("scenario::out_of_range", "average", format!("`average = {weight}` is out of range"), help);
    }
    Some(weight)
}

/// Reads the share of a port's rate at which its phantom queue drains; `None` if marking uses the real queue.
fn read_phantom(e: &mut Section<'_>, default: Option<f64>, keys: Keys) -> Option<f64> {
    if default.is_none() && keys == Keys::Unusual {
        e.node("phantom")?;
    }
    let default = default.map_or(OrWord::Word(0), OrWord::Value);
    let OrWord::Value(share) = e.value_or::<f64>("phantom", &["none"], default).value else { return None };
    if !(0.0 < share && share <= 1.0) {
        let help = "write the share of the line rate at which it drains, as `phantom = 0.95`";
        e.problem_at("scenario::out_of_range", "phantom", format!("`phantom = {share}` is out of range"), help);
    }
    Some(share)
}

#[cfg(test)]
mod tests {
    use fairrate_control::{AlgorithmConfig, Needs, PacingNeeds};

    use super::*;

    /// An algorithm built on DCTCP, with DCTCP's needs, gets DCTCP's marking.
    #[test]
    fn marks_go_by_needs_and_not_by_name() {
        let dctcp = AlgorithmConfig::by_name("dctcp", Profile::Paper).expect("it is registered").needs();
        let derived = Needs { pacing: PacingNeeds { pacing_credit: 1, ..dctcp.pacing }, ..dctcp };
        let step = default_ecn(Profile::Paper, &derived.network).expect("it reads marks");
        assert_eq!((step.kmin, step.kmax, step.pmax), (Bytes::new(30_000), Bytes::new(30_000), 1.0));
        let per = Some(Rate::from_gbps(10));
        assert_eq!((step.kmin_per, step.kmax_per, step.at), (per, per, MarkAt::Enqueue));
        let hull = AlgorithmConfig::by_name("hull", Profile::Paper).expect("it is registered").needs();
        assert_eq!(default_ecn(Profile::Paper, &hull.network), Some(EcnConfig { phantom: Some(0.95), ..PHANTOM }));
    }

    #[test]
    fn phantom_queues_have_hulls_thresholds_unless_the_file_has_others() {
        let head =
            "[topology]\nkind = \"star\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n[switch]\necn = ";
        let ecn = |text: &str| {
            let text = format!("{head}{{ phantom = {text} }}");
            let scenario =
                crate::Scenario::from_toml(&text, "x", std::path::Path::new("."), &crate::Overrides::default());
            scenario.expect("it reads").sim_config().fabric.ecn.expect("it marks")
        };
        let kb = |kb: u64| Bytes::new(1_000 * kb);
        assert_eq!(ecn("0.95"), EcnConfig { phantom: Some(0.95), ..PHANTOM });
        let own = EcnConfig { phantom: Some(0.9), kmin: kb(6), kmax: kb(9), kmin_per: None, kmax_per: None, ..PHANTOM };
        assert_eq!(ecn("0.9, kmin = \"6KB\", kmax = \"9KB\""), own);
        assert_eq!(ecn("\"none\"").phantom, None);
    }
}
