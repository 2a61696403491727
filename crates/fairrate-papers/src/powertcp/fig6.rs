//! Figure 6: slowdowns of web search by flow size, at 20 and 60 % of the ToR uplinks.

use fairrate_report::panel::Panel;

use super::websearch::{
    DCQCN, HOMA_1, HOMA_6, HOMA_FIFO, HPCC, Line, POWERTCP, Reading, THETA, TIMELY, at, by_size_panel, runs as runs_at,
};
use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig6",
    title: "Tail of flow completion times, web search at 20 and 60 %",
    kind: Kind::Simulation,
    quick_s: 40,
    runs,
    panels,
    claims,
};

const LOADS: [u32; 2] = [20, 60];
const LINES: [Line; 5] = [POWERTCP, THETA, HPCC, TIMELY, DCQCN];
const READINGS: [Reading; 3] = [Reading::Own, Reading::Forms, Reading::Traffic];
/// Lines of the reading with another τ: those for PowerTCP's lead over HPCC.
const OF_TAU: [Line; 3] = [POWERTCP, THETA, HPCC];
const HOMA: [Line; 3] = [HOMA_1, HOMA_6, HOMA_FIFO];

fn runs(scale: &Scale) -> Vec<Run> {
    let of_load = |load: u32| {
        let readings = if scale.quick { &[Reading::Own, Reading::Traffic][..] } else { &READINGS };
        let plain = readings.iter().flat_map(move |&reading| runs_at(reading, load, &LINES, scale));
        let others = if scale.causes { &HOMA } else { &HOMA[..1] };
        let tau = if scale.causes { runs_at(Reading::PathTau, load, &OF_TAU, scale) } else { Vec::new() };
        plain.chain(runs_at(Reading::Own, load, others, scale)).chain(tau)
    };
    LOADS.into_iter().flat_map(of_load).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let drawn: Vec<Line> = LINES.iter().chain(&HOMA[..1]).copied().collect();
    let of = |reading| LOADS.map(|load| by_size_panel(points, reading, load, &drawn));
    [Reading::Own, Reading::Traffic].into_iter().flat_map(of).collect()
}

/// The text's statements on 99.9th percentiles of a line against another's, in per cent: load, class, line, other line,
/// change.
pub(super) const SAYS: [(u32, &str, Line, Line, f64); 17] = [
    (20, "short", POWERTCP, HPCC, -9.0),
    (20, "short", POWERTCP, TIMELY, -80.0),
    (20, "short", POWERTCP, DCQCN, -80.0),
    (20, "short", THETA, HPCC, -9.0),
    (20, "medium", POWERTCP, HPCC, -33.0),
    (20, "medium", POWERTCP, TIMELY, -62.0),
    (20, "medium", POWERTCP, DCQCN, -50.0),
    (60, "short", POWERTCP, HPCC, -33.0),
    (60, "short", POWERTCP, TIMELY, -74.0),
    (60, "short", POWERTCP, DCQCN, -74.0),
    (60, "short", THETA, HPCC, -36.0),
    (60, "short", THETA, TIMELY, -82.0),
    (60, "short", THETA, DCQCN, -82.0),
    (60, "medium", POWERTCP, HPCC, -33.0),
    (60, "medium", POWERTCP, TIMELY, -62.0),
    (60, "medium", POWERTCP, DCQCN, -50.0),
    (60, "long", POWERTCP, HPCC, 0.0),
];
/// The statements on PowerTCP against HOMA, whose medium flows have "similar benefits even at 60 % load".
const OF_HOMA: [(u32, &str, f64); 4] =
    [(20, "short", -80.0), (20, "medium", -76.0), (60, "short", -99.0), (60, "medium", -76.0)];

fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for reading in READINGS {
        claims.extend(
            SAYS.map(|(load, class, line, other, says)| against(points, reading, load, class, &line, &other, says)),
        );
    }
    let of_tau = SAYS.into_iter().filter(|says| OF_TAU.iter().any(|line| line.name == says.3.name));
    claims.extend(
        of_tau.map(|(load, class, line, other, says)| {
            against(points, Reading::PathTau, load, class, &line, &other, says)
        }),
    );
    for other in &HOMA {
        claims.extend(
            OF_HOMA.map(|(load, class, says)| against(points, Reading::Own, load, class, &POWERTCP, other, says)),
        );
    }
    claims.extend(READINGS.map(|reading| theta_medium(points, reading)));
    claims.extend(of_homa(points));
    claims
}

pub(super) fn against(
    points: &Points,
    reading: Reading,
    load: u32,
    class: &str,
    line: &Line,
    other: &Line,
    says: f64,
) -> Claim {
    let id = format!("{load}-{class}-{}-{}-{}", line.name, other.name, reading.name());
    let sentence = format!("{}: {class} flows, {} against {}", at(reading, load), line.name, other.name);
    let changes = |reading, other: &Line| {
        let ratios = points.ratios(&at(reading, load), line.name, other.name, class);
        ratios.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect::<Vec<f64>>()
    };
    let rule = if says == 0.0 { Rule::Similar } else { Rule::Less(says) };
    let claim = Claim::mean(&id, &sentence, rule, "%", changes(reading, other));
    if HOMA[..2].iter().any(|homa| homa.name == other.name) {
        return claim.changing("HOMA has one class and 1.2 MB of buffer", changes(reading, &HOMA_FIFO));
    }
    match reading {
        Reading::Own | Reading::Forms => {
            claim.changing("traffic and τ are the artifact's", changes(Reading::Traffic, other))
        }
        Reading::Traffic => claim.changing("τ is that of the paths", changes(Reading::PathTau, other)),
        Reading::PathTau | Reading::Buffers => claim,
    }
}

/// Returns the claim on θ-PowerTCP's medium flows: "experience 60 % worse performance on average compared to PowerTCP
/// and HPCC".
fn theta_medium(points: &Points, reading: Reading) -> Claim {
    let of = |load, line: &Line| points.values(&at(reading, load), line.name, "medium");
    let worse = |load| {
        let (powertcp, hpcc) = (of(load, &POWERTCP), of(load, &HPCC));
        let both = powertcp.into_iter().zip(hpcc).map(|(a, b)| f64::midpoint(a, b));
        of(load, &THETA).into_iter().zip(both).map(|(theta, both)| 100.0 * (theta / both - 1.0)).collect::<Vec<_>>()
    };
    let means = worse(20).into_iter().zip(worse(60)).map(|(a, b)| f64::midpoint(a, b)).collect();
    let sentence = format!("{}: medium flows of theta-powertcp against PowerTCP and HPCC, both loads", reading.name());
    Claim::mean(&format!("theta-medium-{}", reading.name()), &sentence, Rule::More(60.0), "%", means)
}

/// Returns the claims on HOMA for which the text has no number.
fn of_homa(points: &Points) -> [Claim; 2] {
    let short = |line: &Line| points.values(&at(Reading::Own, 60), line.name, "short");
    let worst = short(&TIMELY).into_iter().zip(short(&DCQCN)).map(|(timely, dcqcn)| timely.max(dcqcn));
    let ratios = short(&HOMA_1).into_iter().zip(worst).map(|(homa, worst)| homa / worst).collect();
    let text = "60 %: \"HOMA performs the worst\", short flows against the worst of TIMELY and DCQCN";
    let worst = Claim::mean("homa-worst", text, Rule::AtLeastTimes(1.0), "", ratios);
    let changes = points.ratios(&at(Reading::Own, 60), HOMA_1.name, HOMA_6.name, "short");
    let text = "60 %: HOMA \"performed best\" with K = 1, short flows against K = 6";
    let changes = changes.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect();
    [worst, Claim::mean("homa-best", text, Rule::AtMost(0.0), "%", changes)]
}
