//! Settings that circuits (`kind = "rdcn"`) do not support.

use fairrate_control::{AlgorithmConfig, PortScope};
use fairrate_sim::{FabricConfig, Pfc, TransportConfig};

use super::topology::Shape;
use crate::reader::Section;

/// Checks that a network with circuits supports the settings of the other sections.
pub(super) fn check(
    root: &Section<'_>,
    shape: &Shape,
    transport: &TransportConfig,
    cc: &AlgorithmConfig,
    fabric: &FabricConfig,
) {
    let (needs, algorithm) = (cc.needs(), cc.info().name);
    let problem = |section: &str, message: String, help: &str| {
        let at = if root.has(section) { section } else { "topology" };
        root.problem_at("scenario::conflict", at, message, help);
    };
    if needs.network.circuits.is_some() && fabric.ecn.is_some() {
        let message = format!("`{algorithm}` takes marks for signs of circuits, and switches mark for congestion");
        problem("switch", message, "remove `ecn` from `[switch]`, or choose another `cc`");
    }
    let Shape::Rdcn(rdcn) = shape else { return };
    if needs.network.ports != PortScope::None || needs.feedback.allocator || needs.feedback.oracle.is_some() {
        let message = format!("`{algorithm}` has to know the one path of each flow, and circuits give it a second one");
        problem("transport", message, "choose another `cc`, or another `kind` of network");
    }
    if fabric.pfc != Pfc::Off {
        let message = "a pause cannot go back over a circuit, which goes one way";
        problem("switch", message.to_owned(), "write `pfc = false` in `[switch]`");
    }
    if fabric.balance.is_by_packet() {
        let message = "there is one packet switch, and circuits are not chosen";
        problem("routing", message.to_owned(), "write `balance = \"ecmp\"` in `[routing]`");
    } else if fabric.reroute.is_some() {
        let message = "there is one packet switch, and no way around it";
        problem("routing", message.to_owned(), "write `reroute_delay = \"never\"` in `[routing]`");
    }
    let longest = transport.mtu + transport.data_header(&needs);
    if rdcn.day < rdcn.circuit_rate.tx_time(longest) {
        let message = format!("a packet of {longest} takes longer than a day on a circuit of {}", rdcn.circuit_rate);
        problem("topology", message, "lengthen `day`, as `day = \"225us\"`");
    }
}
