//! `[[class]]`: classes that switches treat in another way than the others.

use std::collections::BTreeMap;

use fairrate_control::{NetworkNeeds, PortScope, Profile, Queueing};
use fairrate_sim::{ClassConfig, FabricConfig, MarkBy, Pfc, QueueConfig, TieRule};

use super::stacks::Stacks;
use super::switch::{alpha, read_headroom};
use super::transport::check_class;
use super::{ecn, topology};
use crate::error::Site;
use crate::reader::{OrWord, Section};

/// Reads all classes, whose defaults are what `fabric` says of all.
pub(super) fn read(
    root: &mut Section<'_>,
    profile: Profile,
    stacks: &Stacks,
    fabric: &FabricConfig,
    shape: &topology::Shape,
) -> BTreeMap<u8, ClassConfig> {
    let (mut classes, mut out) = (BTreeMap::new(), Vec::new());
    for mut s in root.children("class") {
        let class = s.require::<u8>("class", "4").value;
        let n_problems = s.report.count();
        check_class(&s, "class", class);
        if classes.contains_key(&class) {
            let message = format!("class {class} is described already");
            s.problem_at("scenario::conflict", "class", message, "put both into one `[[class]]`");
        }
        let usual = fabric.class(class);
        let weight = read_weight(&mut s);
        let pfc = read_pfc(&mut s, fabric);
        let default = |alpha: Option<f64>| alpha.map_or(OrWord::Word(0), OrWord::Value);
        let own = ClassConfig {
            weight,
            pfc,
            ingress_alpha: alpha(&mut s, "dt_alpha", default(usual.ingress_alpha)),
            egress_alpha: alpha(&mut s, "egress_alpha", default(usual.egress_alpha)),
            headroom: read_headroom(&mut s, usual.headroom),
            ecn: ecn::read_class(&mut s, profile, stacks, class, fabric, !pfc),
            own_telemetry: s.choice("telemetry", &[("port", false), ("class", true)], false).value,
            trim: read_trim(&mut s, fabric),
        };
        check(&s, stacks, fabric, class, &own, shape);
        if s.report.count() == n_problems {
            classes.insert(class, own);
        }
        out.push(s.finish());
    }
    root.out.arrays.push(("class".into(), out));
    classes
}

fn read_weight(s: &mut Section<'_>) -> Option<f64> {
    match s.value_or::<f64>("weight", &["strict"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(weight) => {
            if !(0.0 < weight && weight <= 1e6) {
                let help = "write a number above zero, as `weight = 2.0`, or `weight = \"strict\"`";
                s.problem_at("scenario::out_of_range", "weight", format!("`weight = {weight}` is out of range"), help);
            }
            Some(weight)
        }
    }
}

/// Reads whether PFC pauses the class. A fabric without PFC has none for a class either.
fn read_pfc(s: &mut Section<'_>, fabric: &FabricConfig) -> bool {
    let has_pfc = fabric.pfc != Pfc::Off;
    let pfc = s.get("pfc", has_pfc).value;
    if pfc && !has_pfc {
        let help = "write `pfc = true` in `[switch]`, and `pfc = false` in the `[[class]]` of each class without it";
        s.problem_at("scenario::conflict", "pfc", "`[switch]` has no PFC", help);
    }
    pfc
}

/// Reads whether switches trim data of the class. It is not written to the resolved scenario if they trim none.
fn read_trim(s: &mut Section<'_>, fabric: &FabricConfig) -> bool {
    let trims = fabric.admission.trim.is_some();
    let trim = s.get("trim", trims).value;
    if trim && !trims {
        let help = "write `trim = true` in `[switch]`, and `trim = false` in the `[[class]]` of each class without it";
        s.problem_at("scenario::conflict", "trim", "switches do not trim", help);
    } else if !trim && !trims {
        s.out.values.pop();
    }
    trim || !trims
}

/// Checks that a class fits to its network and to the algorithms in it.
fn check(
    s: &Section<'_>,
    stacks: &Stacks,
    fabric: &FabricConfig,
    class: u8,
    own: &ClassConfig,
    shape: &topology::Shape,
) {
    let problem = |key: &str, message: String, help: &str| s.problem_at("scenario::conflict", key, message, help);
    if own.ecn.is_some_and(|ecn| ecn.by == MarkBy::Round || ecn.by == MarkBy::Share) && own.weight.is_none() {
        let message = "the thresholds go by the weight of the class, and it has none".to_owned();
        problem("ecn", message, "write `weight = 1.0`, or another `compare`");
    }
    for cc in stacks.all.iter().map(|stack| &stack.cc) {
        let needs = cc.needs();
        let NetworkNeeds { queueing, ports, .. } = needs.network;
        let name = cc.info().name;
        if own.weight.is_some()
            && (needs.feedback.grants.is_some()
                || queueing == Queueing::Priorities
                || queueing == Queueing::Own && ports != PortScope::None)
        {
            let message = format!("under `{name}` ports have queues of their own, which no weights share");
            problem("weight", message, "remove `weight`, or choose another `cc`");
        }
    }
    if own.weight.is_none() {
        if own.own_telemetry {
            let message = "ports count the bytes of a class if it has a weight".to_owned();
            problem("telemetry", message, "write `weight = 1.0`, or `telemetry = \"port\"`");
        }
        return;
    }
    if fabric.queue != QueueConfig::FIFO {
        let message = "classes with weights wait in plain queues".to_owned();
        problem("weight", message, "remove `weight`, or `queue` and its limits in `[switch]`");
    } else if fabric.ties == TieRule::Insertion {
        let message = "ns-3's NICs, whose order this profile has, know no weights".to_owned();
        problem("weight", message, "remove `weight`, or write `ties = \"entity\"` in `[links]`");
    } else if matches!(shape, topology::Shape::Rdcn(_)) {
        let message = format!("a circuit serves queues in turn, whatever the weight of class {class}");
        problem("weight", message, "remove `weight`, or choose another topology");
    }
}

/// Checks that the markers of all classes are of one kind.
pub(super) fn check_marks(root: &Section<'_>, fabric: &FabricConfig, site: Site) {
    let mut all = fabric.all_ecn();
    let Some(first) = all.next() else { return };
    let conflict = all.find_map(|ecn| {
        let at = ecn.at != first.at;
        let draws = ecn.draws != first.draws;
        at.then_some("at").or(draws.then_some("draws"))
    });
    if let Some(key) = conflict {
        let message = format!("`{key}` of `ecn` differs between classes, and switches have one for all");
        let help = format!("write the same `{key}` in `ecn` of `[switch]` and of every `[[class]]`");
        root.report.problem("scenario::conflict", site, message, "`[[class]]`", help);
    }
}
