//! Figure 7: the share of updates as the network grows.

use fairrate_report::panel::{Axis, Panel};

use super::lines::{self, Curve};
use super::updates;
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig7",
    title: "What updates take of the capacity as the network grows, at a load of 0.6",
    kind: Kind::Simulation,
    quick_s: 2,
    runs,
    panels,
    claims,
};

/// Racks of 16 servers: 128 to 2,048 servers.
const RACKS: [u32; 5] = [8, 16, 32, 64, 128];

fn name(racks: u32) -> String {
    format!("{} servers", 16 * racks)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let racks = if scale.quick { &RACKS[..3] } else { &RACKS };
    // The allocator's links grow with the network, as its traffic does.
    let at = |&racks: &u32| {
        let (leaves, rate) = (racks.to_string(), format!("{}Gbps", 5 * racks));
        let sets = [("topology.leaves", leaves.as_str()), ("allocator.rate", rate.as_str())];
        updates::runs(scale, &name(racks), "1ms", racks, &sets)
    };
    racks.iter().flat_map(at).collect()
}

fn shares(points: &Points, racks: u32) -> Vec<f64> {
    points.values(&name(racks), "flowtune", "from data")
}

fn panels(points: &Points) -> Vec<Panel> {
    let values = RACKS.map(|racks| (f64::from(16 * racks), shares(points, racks))).into();
    let line = Curve { name: "packets with updates".to_owned(), cc: "powertcp", values };
    let ticks = RACKS.map(|racks| (f64::from(16 * racks), (16 * racks).to_string())).into();
    let servers = Axis { ticks, ..Axis::new("servers").logarithmic() };
    let y = Axis::new("share of the capacity (%)").showing(0.0, 1.0);
    let panel = lines::means("Web, 1 ms of arrivals", servers, y, vec![line]);
    let small = points.mean(&name(RACKS[0]), "flowtune", "from data");
    let level = |panel, y| with_level(panel, "paper: constant", y, (128.0, 2_048.0));
    vec![match small {
        Some(small) => level(panel, small),
        None => panel,
    }]
}

fn claims(points: &Points) -> Vec<Claim> {
    let small = shares(points, RACKS[0]);
    let claim = |&racks: &u32| {
        let ratios = shares(points, racks).iter().zip(&small).map(|(share, small)| share / small).collect();
        let sentence = format!("{}: \"the same fraction\" as with 128 (within a tenth is ours)", name(racks));
        Claim::mean(&racks.to_string(), &sentence, Rule::About(1.0, 0.1), "", ratios)
    };
    RACKS[1..].iter().map(claim).collect()
}
