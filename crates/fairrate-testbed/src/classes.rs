//! Priority classes with weights: which of a scenario's are laid out, as classes by DSCP at the ports of switches.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use fairrate_scenario::Scenario;
use fairrate_sim::{FlowSpec, SimConfig};

use crate::algorithm;
use crate::blocks;
use crate::failure::Failure;
use crate::field::port_limit;
use crate::plan::{Plan, device};

/// The classes that are laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// Their weights by number.
    weights: BTreeMap<u8, f64>,
    /// The class of packets without a mark.
    unmarked: u8,
}

impl Classes {
    /// Returns the classes of a scenario; `None` if its flows are in one class, or in one without a weight: then
    /// switches treat all alike.
    pub fn of(config: &SimConfig) -> Option<Self> {
        let used = used(config);
        let weights: BTreeMap<u8, f64> =
            used.iter().map(|&class| Some((class, config.fabric.class(class).weight?))).collect::<Option<_>>()?;
        let marked = |class: &&u8| config.fabric.class(**class).own_telemetry;
        let unmarked = used.iter().rev().find(|class| !marked(class)).or(used.last()).copied()?;
        (1 < weights.len()).then_some(Self { weights, unmarked })
    }

    /// Returns the name of the DSCP of a class; `None` if its packets have no mark.
    pub fn dscp(&self, class: u8) -> Option<String> {
        (class != self.unmarked).then(|| format!("cs{class}"))
    }

    /// Returns the byte of the IP header of a flow's packets.
    pub fn tos(&self, config: &SimConfig, flow: &FlowSpec) -> u32 {
        let class = class_of(config, flow);
        // Class selector n is the code point 8n, and a code point has the upper six bits.
        if class == self.unmarked { 0 } else { u32::from(class) << 5 }
    }

    /// Returns the arguments of `fairrate-kernel` that lay the classes out at all ports of switches.
    pub fn arguments(&self, config: &SimConfig, plan: &Plan<'_>) -> Vec<String> {
        let switches = plan.nodes().filter(|&node| !config.topology.is_host(node));
        let ports = switches.flat_map(|node| plan.ports(node).map(move |port| (node, port)));
        let ports = ports.flat_map(|(node, port)| {
            let rate = config.topology.link(port).rate.as_bps();
            ["--port".to_owned(), format!("{}/{}:{rate}bps", plan.namespace(node), device(port))]
        });
        let classes = self.weights.iter().flat_map(|(&class, weight)| match self.dscp(class) {
            Some(dscp) => ["--class".to_owned(), format!("{dscp}:{weight}")],
            None => ["--others".to_owned(), weight.to_string()],
        });
        let limit = ["--limit".to_owned(), format!("{}B", port_limit(config).as_u64())];
        ["classes".to_owned(), "set".to_owned()].into_iter().chain(ports).chain(classes).chain(limit).collect()
    }

    /// Lays the classes out. They are removed with the namespaces.
    ///
    /// # Errors
    /// If `fairrate-kernel` is missing or refuses.
    pub fn lay_out(&self, config: &SimConfig, plan: &Plan<'_>) -> Result<(), Failure> {
        let mut set = Command::new(algorithm::program());
        let output = set.args(self.arguments(config, plan)).output().map_err(|e| Failure::Algorithm {
            message: format!("`fairrate-kernel`, which lays out classes, cannot be run: {e}"),
            help: "build it beside this program, or leave out `[[class]]`".to_owned(),
        })?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(());
        }
        Err(Failure::system("`fairrate-kernel classes set`", said.trim()))
    }
}

/// Returns the class of the data of a flow.
fn class_of(config: &SimConfig, flow: &FlowSpec) -> u8 {
    flow.class.unwrap_or(config.stack(flow.stack).0.data_class)
}

/// Returns `true` if the scenario has classes with weights, laid out or not.
pub fn have_weights(config: &SimConfig) -> bool {
    config.fabric.classes.values().any(|class| class.weight.is_some())
}

/// Returns the classes in which flows send.
fn used(config: &SimConfig) -> BTreeSet<u8> {
    config.flows.iter().map(|flow| class_of(config, flow)).collect()
}

/// Returns the class of the flows of a stack, if telemetry counts it alone.
pub fn with_own_telemetry(config: &SimConfig, stack: u8) -> Option<u8> {
    let mut flows = config.flows.iter().filter(|flow| flow.stack == stack);
    let class = class_of(config, flows.next()?);
    config.fabric.class(class).own_telemetry.then_some(class)
}

/// Checks that the classes of a scenario can be laid out with its algorithms.
///
/// # Errors
/// The first feature that the testbed cannot do, with an alternative.
pub fn check(scenario: &Scenario) -> Result<(), Failure> {
    let config = scenario.sim_config();
    let Some(classes) = Classes::of(config) else { return Ok(()) };
    let unfit = |what: String, help: &str| {
        Err(Failure::Unfit { scenario: scenario.name().to_owned(), what, help: help.to_owned() })
    };
    if config.fabric.class(classes.unmarked).own_telemetry {
        return unfit(
            "telemetry counts each class alone, and packets without a mark are in one of them".to_owned(),
            "leave out `telemetry = \"class\"` in one `[[class]]`",
        );
    }
    for (stack, cc) in blocks::algorithms(config) {
        let name = cc.info().name;
        if algorithm::has_part_at_ports(cc) && name != "powertcp" {
            let what = format!("its switches have classes, and `{name}` acts on the queue of a whole port here");
            return unfit(
                what,
                "leave out `[[class]]`, or choose an algorithm without a part at switches, or `powertcp`",
            );
        }
        let flows = || config.flows.iter().filter(|flow| flow.stack == stack);
        let own = with_own_telemetry(config, stack);
        let is_alike = |flow: &FlowSpec| own.is_none_or(|own| class_of(config, flow) == own);
        if name == "powertcp" && !flows().all(is_alike) {
            return unfit(
                "flows of `powertcp` are in several classes, and telemetry counts one of them".to_owned(),
                "give all of them the same `class`",
            );
        }
    }
    Ok(())
}

/// Returns notes on classes that are laid out in another way, or not at all.
pub fn notes(config: &SimConfig) -> Vec<&'static str> {
    let mut notes = Vec::new();
    let used = used(config);
    if Classes::of(config).is_some() {
        let of_host = |host| config.flows.iter().filter(move |flow| flow.src == host);
        let sends_in_several =
            |host| of_host(host).map(|flow| class_of(config, flow)).collect::<BTreeSet<_>>().len() > 1;
        if config.topology.hosts().any(sends_in_several) {
            notes.push("hosts send all classes in one queue");
        }
    } else {
        if 1 < used.len() {
            notes.push("a class has no weight, so switches treat all classes alike");
        } else if config.flows.iter().any(|flow| flow.class.is_some()) {
            notes.push("all flows are of one priority class");
        }
        if used.len() < 2 && !config.fabric.classes.is_empty() {
            notes.push("switches treat all classes alike");
        }
    }
    notes
}
