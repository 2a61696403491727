//! The network during a run: laid out by a plan, removed with its namespaces.

use std::collections::BTreeMap;
use std::path::Path;

use fairrate_sim::{PortId, SimConfig};

use crate::failure::Failure;
use crate::namespaces::{Namespaces, inside};
use crate::plan::Plan;
use crate::qdisc::PortCounters;
use crate::{sampling, tools};

/// Lays out a plan in namespaces with its mark.
///
/// # Errors
/// If the kernel or a tool refuses.
pub fn lay_out(plan: &Plan<'_>, namespaces: &Namespaces) -> Result<(), Failure> {
    namespaces.make(plan.namespaces())?;
    tools::batch("ip", &[], &plan.links())?;
    tools::batch("ip", &["-n", &plan.wires()], &plan.wires_up())?;
    for node in plan.nodes() {
        let namespace = plan.namespace(node);
        inside(&namespace, || plan.sysctls(node).iter().try_for_each(|(key, value)| set(key, value)))?;
        tools::batch("ip", &["-n", &namespace], &plan.addresses(node))?;
        tools::batch("tc", &["-n", &namespace], &plan.queues(node))?;
    }
    Ok(())
}

/// Sets a sysctl of the thread's namespace.
fn set(key: &str, value: &str) -> Result<(), Failure> {
    let path = Path::new("/proc/sys/net/ipv4").join(key);
    std::fs::write(&path, value).map_err(|e| Failure::io("writing", &path, e))
}

/// Returns the present counters of all ports.
///
/// # Errors
/// If the kernel does not report them.
pub fn counters(config: &SimConfig, plan: &Plan<'_>) -> Result<BTreeMap<PortId, PortCounters>, Failure> {
    let ports: Vec<PortId> = (0..config.topology.n_ports() as u32).map(PortId).collect();
    let mut all = BTreeMap::new();
    for mut queues in sampling::open(config, plan, &ports)? {
        queues.read(|port, counters| {
            all.insert(port, counters);
        })?;
    }
    Ok(all)
}
