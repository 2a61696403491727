//! What the RoCC paper states in words and numbers about Figures 8 to 16 and Table III.

use super::runs::{FIG8_FLOWS, FIG8_GBPS, FIG9_FLOWS, FIG11, FIG12, ROCC, fig8_name};
use crate::paper::{Claim, Claims, Measured, Says, Unit, algorithm};

/// All claims, in the order of the figures.
pub fn all(measured: &Measured) -> Vec<Claim> {
    let mut claims = Claims::default();
    for cc in ROCC {
        fig8(&mut claims, measured, cc);
        fig9(&mut claims, measured, cc);
    }
    fig11(&mut claims, measured);
    fig11_words(&mut claims, measured);
    fig12a(&mut claims, measured);
    fig12b(&mut claims, measured);
    testbeds(&mut claims, measured);
    super::fabric::claims(&mut claims, measured);
    claims.0
}

/// Queues are held to 5 % of Qref and rates to 3 % of the fair rate: RoCC computes in steps of 10 Mb/s, 2.5 % of the
/// smallest fair rate here. "About 2 ms" is held to 2.5.
fn fig8(claims: &mut Claims, measured: &Measured, cc: &str) {
    let (suffix, with) = variant(cc);
    for gbps in FIG8_GBPS {
        let q_ref = if gbps == 40 { 150.0 } else { 300.0 };
        for n in FIG8_FLOWS {
            let job = fig8_name(gbps, n);
            let id = |what: &str| format!("fig8-{what}-{gbps}-{n}{suffix}");
            let get = |what: &str| measured.get(&job, cc, what);
            let of = format!("Fig 8{with}: {n} flows on {gbps} Gb/s");
            let fair = gbps as f64 / f64::from(n);
            let (queue, rate) = (Says::About(q_ref, 0.05), Says::About(fair, 0.03));
            claims.add(id("queue"), &job, format!("{of}: mean queue"), queue, Unit::Kilobytes, get("queue_kb"));
            claims.add(id("rate"), &job, format!("{of}: mean rate of a flow"), rate, Unit::Gbps, get("rate_gbps"));
            let text = format!("{of}: largest distance of a flow's rate from it");
            claims.add(id("worst"), &job, text, Says::AtMost(0.05), Unit::Share, get("worst"));
            let text = format!("{of}: rates settled after (5 %, 200 us windows)");
            claims.add(id("settle"), &job, text, Says::AtMost(2.5), Unit::Ms, get("settle_ms"));
        }
    }
}

/// How the claims about RoCC with whole gains on low queues are told from those about RoCC as printed.
fn variant(cc: &str) -> (&'static str, &'static str) {
    if cc == "rocc" { ("", "") } else { ("-full", ", whole gains on low queues") }
}

fn fig9(claims: &mut Claims, measured: &Measured, cc: &str) {
    let (suffix, with) = variant(cc);
    for (i, n) in FIG9_FLOWS.iter().enumerate() {
        let get = |what: &str| measured.get("fig9", cc, &format!("{i}-{what}"));
        let from = i.checked_sub(1).map_or("the start".to_owned(), |i| FIG9_FLOWS[i].to_string());
        let of = format!("Fig 9{with}: from {from} to {n} flows");
        let rate = Says::About(40.0 / f64::from(*n), 0.03);
        claims.add(format!("fig9-rate-{i}{suffix}"), "fig9", format!("{of}: mean rate"), rate, Unit::Gbps, get("gbps"));
        let text = format!("{of}: rates settled after (5 %)");
        claims.add(format!("fig9-rates-{i}{suffix}"), "fig9", text, Says::AtMost(2.0), Unit::Ms, get("rate-ms"));
        let text = format!("{of}: queue settled after (10 % of Qref)");
        claims.add(format!("fig9-queue-{i}{suffix}"), "fig9", text, Says::AtMost(2.0), Unit::Ms, get("queue-ms"));
    }
}

/// Every number of Figure 11, with those that the text states.
fn fig11(claims: &mut Claims, measured: &Measured) {
    for cc in FIG11 {
        let get = |what: &str| measured.get("fig11", cc, what);
        let name = cc.replace(":0.99", " with 1 % of headroom");
        let mut add = |what: &str, says, unit, text: &str, value| {
            claims.add(format!("fig11-{what}-{cc}"), "fig11", format!("Fig 11: {name}: {text}"), says, unit, value);
        };
        let rate = match cc {
            "rocc" => Says::About(4.0, 0.03),
            // Lower than expected because of the headroom.
            "hpcc" => Says::AtMost(3.9),
            _ => Says::Words,
        };
        add("rate", rate, Unit::Gbps, "mean rate of a flow", get("rate_gbps"));
        let (text, fairness) = match cc {
            "timely" | "qcn" => ("largest distance from 4 Gb/s (paper: significant)", Says::AtLeast(0.2)),
            "hpcc:0.99" => ("largest distance from 4 Gb/s (paper: critically unfair)", Says::AtLeast(0.2)),
            "dcqcn-pi" => ("largest distance from 4 Gb/s", Says::Words),
            _ => ("largest distance from 4 Gb/s (paper: fair)", Says::AtMost(0.1)),
        };
        add("fair", fairness, Unit::Share, text, get("worst"));
        let (text, queue) = match cc {
            "rocc" => ("mean queue (paper: its reference)", Says::About(150.0, 0.05)),
            "dcqcn" => ("mean queue (paper: fluctuating around 100 KB)", Says::Words),
            "timely" => ("mean queue (paper: fluctuating around 200 KB)", Says::Words),
            "hpcc" => ("mean queue (paper: shallow)", Says::AtMost(30.0)),
            _ => ("mean queue", Says::Words),
        };
        add("queue", queue, Unit::Kilobytes, text, get("queue_kb"));
        add("deviation", Says::Words, Unit::Kilobytes, "standard deviation of the queue", get("queue_deviation_kb"));
        let (text, utilisation) = match cc {
            "rocc" | "dcqcn-pi" | "timely" => ("utilisation (paper: high)", Says::AtLeast(0.97)),
            "hpcc" => ("utilisation (paper: less by the headroom)", Says::About(0.95, 0.02)),
            _ => ("utilisation", Says::Words),
        };
        add("use", utilisation, Unit::Share, text, get("utilisation"));
    }
}

/// What the text says of one algorithm beside another.
fn fig11_words(claims: &mut Claims, measured: &Measured) {
    let ratio = |a, b, what| measured.get("fig11", a, what) / measured.get("fig11", b, what);
    let mut add = |id: &str, text: &str, value| {
        claims.add(format!("fig11-{id}"), "fig11", format!("Fig 11: {text}"), Says::AtMost(0.8), Unit::Ratio, value);
    };
    let deviation = "queue_deviation_kb";
    add("pi-stable", "dcqcn-pi's queue deviates less than dcqcn's", ratio("dcqcn-pi", "dcqcn", deviation));
    add("pacc-stable", "pacc's queue deviates less than dcqcn's", ratio("pacc", "dcqcn", deviation));
    add("rocc-stable", "rocc's queue deviates less than dcqcn's", ratio("rocc", "dcqcn", deviation));
    add(
        "pacc-fast",
        "pacc settles sooner than dcqcn (all rates within 25 %, 1 ms)",
        ratio("pacc", "dcqcn", "settle_ms"),
    );
}

/// RoCC within 2 %. Of the others the text gives rounded numbers: the direction counts, and half of the distance.
fn fig12a(claims: &mut Claims, measured: &Measured) {
    for cc in FIG12 {
        let get = |what: &str| measured.get("fig12a", cc, what);
        let mut add = |what: &str, text: &str, says| {
            let text = format!("Fig 12a: {cc}: rate of {text}");
            claims.add(format!("fig12a-{what}-{}", cc.replace(':', "-")), "fig12a", text, says, Unit::Gbps, get(what));
        };
        let (d0, d5, others) = match algorithm(cc) {
            "rocc" => {
                (("D0", Says::About(5.0, 0.02)), ("D5", Says::About(5.0, 0.02)), ("D1-D4", Says::About(8.75, 0.02)))
            }
            "dcqcn" => (
                ("D0 (paper: 30 % below 5)", Says::AtMost(4.25)),
                ("D5 (paper: more than 5)", Says::AtLeast(5.0)),
                ("D1-D4", Says::Words),
            ),
            "hpcc" => {
                (("D0 (paper: around 50 % below 5)", Says::AtMost(3.75)), ("D5", Says::Words), ("D1-D4", Says::Words))
            }
            "pacc" => (
                ("D0 (paper: very similar to dcqcn)", Says::AtMost(4.25)),
                ("D5 (paper: very similar to dcqcn)", Says::AtLeast(5.0)),
                ("D1-D4", Says::Words),
            ),
            _ => (
                ("D0 (paper: almost 5)", Says::About(5.0, 0.1)),
                ("D5 (paper: almost 5)", Says::About(5.0, 0.1)),
                ("D1-D4 (paper: about 45 % below 8.75)", Says::AtMost(6.8)),
            ),
        };
        add("d0", d0.0, d0.1);
        add("d5", d5.0, d5.1);
        add("d1-4", others.0, others.1);
    }
}

fn fig12b(claims: &mut Claims, measured: &Measured) {
    let fair = 100.0 / 7.0;
    for cc in FIG12 {
        let get = |what: &str| measured.get("fig12b", cc, what);
        let mut add = |what: &str, text: &str, says, unit| {
            let text = format!("Fig 12b: {cc}: {text}");
            claims.add(format!("fig12b-{what}-{}", cc.replace(':', "-")), "fig12b", text, says, unit, get(what));
        };
        let (slow, fast) = match algorithm(cc) {
            "rocc" => (Says::About(fair, 0.02), Says::About(fair, 0.02)),
            "hpcc" => (Says::About(9.4, 0.15), Says::About(24.5, 0.15)),
            _ => (Says::Words, Says::Words),
        };
        add("slow", "mean rate of D0-D4", slow, Unit::Gbps);
        add("fast", "mean rate of D5 and D6", fast, Unit::Gbps);
        if !matches!(algorithm(cc), "rocc" | "hpcc") {
            add("worst", "largest distance from 14.29 Gb/s (paper: close to it)", Says::AtMost(0.15), Unit::Share);
        }
    }
    let error = |cc| measured.get("fig12b", cc, "worst");
    for (id, cc, than) in [("dcqcn", "dcqcn", "hpcc"), ("pacc", "pacc", "dcqcn"), ("bfc", "bfc", "dcqcn")] {
        let text = format!("Fig 12b: {cc} is fairer than {than} (ratio of largest distances)");
        let value = error(cc) / error(than);
        claims.add(format!("fig12b-order-{id}"), "fig12b", text, Says::AtMost(1.0), Unit::Ratio, value);
    }
}

/// The testbeds against their simulation. "3 Gb/s" and "13 Gb/s" of the text are thirds of the links, cut.
fn testbeds(claims: &mut Claims, measured: &Measured) {
    let third = |gbps: f64| [gbps / 3.0; 3];
    for (job, name, rates) in [
        ("fig13-uni", "Fig 13, three hosts offer 10 Gb/s each to 10", third(10.0)),
        ("fig13-mix", "Fig 13, three hosts offer 10, 3, 1 Gb/s to 10", [6.0, 3.0, 1.0]),
        ("fig14-uni", "Fig 14, three hosts offer 40 Gb/s each to 40", third(40.0)),
        ("fig14-mix", "Fig 14, three hosts offer 40, 30, 10 Gb/s to 40", [15.0, 15.0, 10.0]),
    ] {
        let get = |what: &str| measured.get(job, "rocc", what);
        let queue = Says::About(75.0, 0.05);
        claims.add(format!("{job}-queue"), job, format!("{name}: mean queue"), queue, Unit::Kilobytes, get("queue_kb"));
        for (what, rate) in ["d0", "d1", "d2"].into_iter().zip(rates) {
            let text = format!("{name}: rate of {}", what.to_uppercase());
            claims.add(format!("{job}-{what}"), job, text, Says::About(rate, 0.03), Unit::Gbps, get(what));
        }
    }
}
