//! The warning about agents that see one queue where classes share a port by weights.

use fairrate_control::PortScope;
use fairrate_sim::{FlowSpec, SimConfig};

/// Returns a warning if an algorithm's agents at switch ports go by the queues of all classes, and flows of two classes
/// with weights are in the run.
pub(super) fn warning(config: &SimConfig) -> Option<String> {
    let weights = |class: u8| config.fabric.classes.get(&class).filter(|own| own.weight.is_some());
    let class_of = |flow: &FlowSpec| flow.class.unwrap_or(config.stack(flow.stack).0.data_class);
    let sees_all = |flow: &&FlowSpec| {
        weights(class_of(flow)).is_some_and(|own| !own.own_telemetry)
            && config.stack(flow.stack).1.needs().network.ports == PortScope::Switches
    };
    let flow = config.flows.iter().find(sees_all)?;
    let class = class_of(flow);
    let other = config.flows.iter().map(class_of).find(|&other| other != class && weights(other).is_some())?;
    Some(format!(
        "`{}` goes by the queues of all classes at a port, so weights of classes {class} and {other} do not hold; with \
         `telemetry = \"class\"` in the `[[class]]` of its flows it goes by theirs",
        config.stack(flow.stack).1.info().name
    ))
}
