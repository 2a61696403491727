//! A warning about marks that come later than pauses.

use std::collections::BTreeMap;

use fairrate_sim::topology::Topology;
use fairrate_sim::{NodeId, Pfc, PortId, SimConfig};
use fairrate_units::Bytes;

/// A port whose queue pauses senders before it marks packets.
struct Late {
    port: PortId,
    /// Queue from which it marks, in bytes.
    marks_from: f64,
    /// Queue from which PFC pauses the fewest ports that can fill it, in bytes.
    pauses_from: f64,
    /// Number of these ports.
    fillers: usize,
}

/// Returns a warning if an algorithm goes by marks and PFC pauses senders before a queue is long enough for any.
pub(super) fn warning(config: &SimConfig) -> Option<String> {
    let marks = config.fabric.ecn.filter(|ecn| ecn.phantom.is_none() && ecn.average.is_none())?;
    if !config.cc.needs().network.ecn || config.fabric.pfc == Pfc::Off {
        return None;
    }
    let topology = &config.topology;
    let inputs = inputs(topology);
    let is_crossed = crossed(config);
    let is_marking = |port: &PortId| {
        let (from, to) = (topology.from(*port), topology.to(*port));
        !topology.is_host(from)
            && is_crossed[from.index()]
            && (marks.to_hosts || !(topology.is_host(to) || topology.is_queue(to)))
    };
    let late = |port: PortId| {
        let (marks_from, _) = marks.thresholds(topology.link(port).rate);
        let (pauses_from, fillers) = pauses_from(config, port, inputs.get(&topology.from(port))?)?;
        (pauses_from <= marks_from).then_some(Late { port, marks_from, pauses_from, fillers })
    };
    let ports = (0..topology.n_ports() as u32).map(PortId).filter(is_marking);
    // The port at which marks are latest, by ratio.
    let ratio = |late: &Late| late.marks_from / late.pauses_from.max(1.0);
    let worst = ports.filter_map(late).max_by(|a, b| ratio(a).total_cmp(&ratio(b)).then(b.port.0.cmp(&a.port.0)))?;
    let bytes = |x: f64| Bytes::new(x as u64);
    let node = |node: NodeId| topology.nodes[node.index()].name.as_str();
    let Late { port, marks_from, pauses_from, fillers } = worst;
    let whom = if fillers == 1 {
        "the one port that fills it".to_owned()
    } else {
        format!("the {fillers} ports that fill it")
    };
    Some(format!(
        "PFC pauses before switches mark, so that `{}` hears of congestion too late: a queue at {}->{} ({}) is marked from {} on, and {whom} \
         may be paused from {} on; marks of half of that at most come first, by `kmin` and `kmax` of `[switch.ecn]`, or take a larger \
         `buffer` or `dt_alpha` in `[switch]`",
        config.cc.info().name,
        node(topology.from(port)),
        node(topology.to(port)),
        topology.link(port).rate,
        rounded(bytes(marks_from)),
        rounded(bytes(pauses_from)),
    ))
}

/// Returns, by number of the node, `true` for switches that flows may cross: those that switches connect with the host
/// of a flow. A network within servers has none of the flows between their NICs.
fn crossed(config: &SimConfig) -> Vec<bool> {
    let topology = &config.topology;
    let mut is_crossed = vec![false; topology.nodes.len()];
    let mut neighbours: Vec<Vec<NodeId>> = vec![Vec::new(); topology.nodes.len()];
    for link in &topology.links {
        neighbours[link.a.index()].push(link.b);
        neighbours[link.b.index()].push(link.a);
    }
    let ends = config.flows.iter().flat_map(|flow| [flow.src, flow.dst]);
    let mut next: Vec<NodeId> = ends.filter(|end| !std::mem::replace(&mut is_crossed[end.index()], true)).collect();
    while let Some(node) = next.pop() {
        let switches = neighbours[node.index()].iter().filter(|&&neighbour| !topology.is_host(neighbour));
        next.extend(switches.filter(|switch| !std::mem::replace(&mut is_crossed[switch.index()], true)));
    }
    is_crossed
}

/// Returns the bytes with three digits.
fn rounded(bytes: Bytes) -> Bytes {
    let n = bytes.as_u64();
    let unit = 10_u64.pow(n.max(1).ilog10().saturating_sub(2));
    Bytes::new(n / unit * unit)
}

/// The inputs of a switch: the rate of each link in bits per second and the node at its other end, by falling rate.
type Inputs = Vec<(u64, NodeId)>;

/// Returns the inputs of every switch.
fn inputs(topology: &Topology) -> BTreeMap<NodeId, Inputs> {
    let mut inputs: BTreeMap<NodeId, Inputs> = BTreeMap::new();
    for link in &topology.links {
        for (switch, other) in [(link.a, link.b), (link.b, link.a)] {
            if !topology.is_host(switch) {
                inputs.entry(switch).or_default().push((link.rate.as_bps(), other));
            }
        }
    }
    for of_switch in inputs.values_mut() {
        of_switch.sort_unstable_by(|a, b| b.cmp(a));
    }
    inputs
}

/// Returns the queue at `port` from which PFC pauses the fewest inputs of its switch that can fill it, in bytes, with
/// their number; `None` if nothing can fill it.
fn pauses_from(config: &SimConfig, port: PortId, inputs: &Inputs) -> Option<(f64, usize)> {
    let fabric = &config.fabric;
    let rate = config.topology.link(port).rate;
    let fillers = fillers(inputs, rate.as_bps(), config.topology.to(port))?;
    let from = match fabric.pfc {
        Pfc::Off => return None,
        Pfc::Egress(levels) => levels.at(rate).pause.as_f64(),
        Pfc::IngressLevels(levels) => fillers as f64 * levels.at(rate).pause.as_f64(),
        Pfc::Ingress => {
            let all_bps = || inputs.iter().map(|(bps, _)| bps).sum();
            let buffer = fabric.buffer_of(fabric.buffer_per.map_or(0, |_| all_bps())) as f64;
            // Each of n ports is paused above alpha times what is free, B - q, and has q / n of the queue.
            fabric.ingress_alpha.map_or(buffer, |alpha| {
                let all = alpha * fillers as f64;
                buffer * all / (1.0 + all)
            })
        }
    };
    Some((from, fillers))
}

/// Returns the smallest number of `inputs`, without those from `to`, that bring more than a port with `bps` sends
/// there.
fn fillers(inputs: &Inputs, bps: u64, to: NodeId) -> Option<usize> {
    let mut sum = 0_u64;
    let mut others = inputs.iter().filter(|(_, from)| *from != to);
    let last = others.position(|(input_bps, _)| {
        sum = sum.saturating_add(*input_bps);
        bps < sum
    });
    last.map(|last| last + 1)
}
