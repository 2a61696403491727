//! `scale_up` of `[topology]`: the networks inside servers.

use fairrate_sim::FieldError;
use fairrate_sim::topology::{NODES_MAX, ScaleUp, Topology};
use fairrate_units::{Rate, Time};

use super::Shape;
use crate::error::{Report, Site};
use crate::reader::Section;
use crate::tree::{Node, Value};

/// Rate of each direction between a GPU and the switch of its server: NVLink of an H800, as in SimAI's templates of
/// topologies.
const NVLINK_RATE: Rate = Rate::from_gbps(2_880);
/// Delay of that link, from the same templates.
const NVLINK_DELAY: Time = Time::from_ns(25);
/// An example.
const EXAMPLE: &str = "{ size = 8, rate = \"2880Gbps\", delay = \"25ns\" }";

/// Reads `scale_up = { size = 8, rate = "2880Gbps", delay = "25ns" }`, or `false`. Shapes of servers have scale-up
/// networks of their size by default, and others have none.
pub(super) fn read(s: &mut Section<'_>, shape: &Shape) -> Option<(ScaleUp, Site)> {
    let size = match shape {
        Shape::Cluster(cluster) => Some(cluster.gpus_per_server),
        Shape::Star(_)
        | Shape::LeafSpine(_)
        | Shape::FatTree(_)
        | Shape::FatTreeK(_)
        | Shape::Dragonfly(_)
        | Shape::File(_) => None,
        _ => return None,
    };
    let site = s.site_of("scale_up");
    let mut inner = match s.node("scale_up") {
        None if size.is_none() => return None,
        None => Section::new(s.report, s.anchor.site, "`scale_up`", None),
        Some(Node { value: Value::Bool(false), .. }) => {
            s.out.push("scale_up", "false".to_owned());
            return None;
        }
        Some(Node { value: Value::Table(table), site }) => Section::new(s.report, *site, "`scale_up`", Some(table)),
        Some(node) => {
            let message = format!("expected a table for `scale_up`, found {}", node.value.describe());
            let help = format!("write `scale_up = {EXAMPLE}` or `scale_up = false`");
            s.problem_at("scenario::wrong_type", "scale_up", message, help);
            return None;
        }
    };
    let scale_up = ScaleUp {
        size: size.unwrap_or_else(|| inner.get("size", 8).value),
        rate: inner.get("rate", NVLINK_RATE).value,
        delay: inner.get("delay", NVLINK_DELAY).value,
    };
    if let Err(FieldError { field, message, help }) = scale_up.check() {
        let help = help.unwrap_or_else(|| format!("write for instance `scale_up = {EXAMPLE}`"));
        inner.problem_at("scenario::bad_topology", field, message, help);
    }
    s.out.push("scale_up", inner.finish().render_inline());
    Some((scale_up, site))
}

/// Adds the scale-up networks to a network, whose hosts have to fill servers.
pub(super) fn add(report: &Report, topology: &mut Topology, scale_up: &ScaleUp, site: Site) {
    let (n, size) = (topology.hosts().count(), scale_up.size as usize);
    if !n.is_multiple_of(size) {
        let message = format!("{n} hosts do not fill servers of {size}");
        let help = "let the size of a server divide the number of hosts";
        report.problem("scenario::bad_topology", site, message, "`scale_up`", help);
    } else if NODES_MAX < (topology.nodes.len() + n + n / size) as u64 {
        let message = format!("with scale-up networks there are {} nodes", topology.nodes.len() + n + n / size);
        let help = format!("fairrate takes networks up to {NODES_MAX} nodes");
        report.problem("scenario::bad_topology", site, message, "`scale_up`", help);
    } else {
        topology.add_servers(scale_up);
    }
}
