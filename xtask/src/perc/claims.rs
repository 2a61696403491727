//! What the PERC paper states in words and numbers about Figures 1 to 8.

use super::runs::{CHARGED, FCT, FIG2, FIG6, FIRST_WAITS, HEADROOM, SMALL_CONTROL, WHY};
use crate::paper::{Claim, Claims, Measured, Says, Unit, algorithm};
use crate::seeds::{Estimate, each};

/// All claims, in the order of the figures; Figures 4 and 5 belong to Figure 1.
pub fn all(measured: &Measured) -> Vec<Claim> {
    let mut claims = Claims::default();
    completion_times(&mut claims, measured);
    fig2(&mut claims, measured);
    synchronous(&mut claims, measured);
    fig6(&mut claims, measured);
    fig8(&mut claims, measured);
    claims.0
}

/// Job, its name, and what it is about.
const SETTINGS: [(&str, &str); 3] = [
    ("fig1", "Fig 1, 100 Gb/s and 120 us"),
    ("fig4", "Fig 4, 10 Gb/s and 12 us"),
    ("fig5", "Fig 5, 100 Gb/s and 12 us"),
];
const CLASSES: [(&str, &str); 3] =
    [("small", "p99 FCT of small flows"), ("medium", "p99 FCT of medium flows"), ("large", "mean FCT of large flows")];

fn completion_times(claims: &mut Claims, measured: &Measured) {
    for (job, name) in SETTINGS {
        let values = |cc: &str, what: &str| each(measured, job, cc, what);
        let why = if job == "fig4" { &WHY[..] } else { &[] };
        for &cc in FCT.iter().chain(why).filter(|cc| **cc != "ideal") {
            for (class, text) in CLASSES {
                let value = Estimate::of_ratios(&values(cc, class), &values("ideal", class));
                let text = format!("{name}: {}: {text} over that of ideal", title(cc));
                claims.add_estimate(format!("{job}-{class}-{cc}"), job, text, Says::Words, Unit::Ratio, value);
            }
            let text = format!("{name}: {}: mean queue", title(cc));
            let value = Estimate::of(&values(cc, "queue_kb"));
            claims.add_estimate(format!("{job}-queue-{cc}"), job, text, Says::Words, Unit::Kilobytes, value);
        }
        for (class, text) in CLASSES {
            let pairs = [("rcp", "perc"), ("dctcp", "perc"), ("dctcp", "rcp"), ("rcp", CHARGED), ("dctcp", CHARGED)];
            for (cc, than) in pairs {
                let value = Estimate::of_ratios(&values(cc, class), &values(than, class));
                let (words, says) = ratio_of(job, class, cc, algorithm(than));
                if matches!(says, Says::Words) {
                    continue;
                }
                let text = format!("{name}: {text}, {cc} over {}{words}", title(than));
                claims.add_estimate(format!("{job}-{class}-{cc}-{than}"), job, text, says, Unit::Ratio, value);
            }
        }
    }
}

fn title(cc: &str) -> &str {
    match cc {
        HEADROOM => "perc with 5 % of headroom",
        CHARGED => "perc with charged control packets",
        SMALL_CONTROL => "perc with control packets of 1 B",
        FIRST_WAITS => "perc whose first rates wait",
        _ => cc,
    }
}

/// The text's words about two algorithms. Words without a number: "comparable" is within 25 %, "better" below 1, "much
/// better" at least a quarter; "breaks down" is 4, what the text has for RCP.
fn ratio_of(job: &str, class: &str, cc: &str, than: &str) -> (&'static str, Says) {
    match (job, class, cc, than) {
        ("fig1", "small" | "medium", "rcp", "perc") => (" (paper: almost 4)", Says::Times(4.0)),
        ("fig1", "medium" | "large", "dctcp", "perc") => (" (paper: breaks down)", Says::AtLeast(4.0)),
        ("fig4", _, "rcp", "perc") => (" (paper: comparable)", Says::About(1.0, 0.25)),
        ("fig4", _, "dctcp", "perc" | "rcp") => (" (paper: better)", Says::AtMost(1.0)),
        ("fig5", "medium", "rcp" | "dctcp", "perc") => (" (paper: perc very low)", Says::AtLeast(1.25)),
        _ => ("", Says::Words),
    }
}

fn fig2(claims: &mut Claims, measured: &Measured) {
    for cc in FIG2 {
        let get = |what| measured.get("fig2", cc, what);
        let mut add = |what: &str, text: &str, says, unit, value| {
            claims.add(format!("fig2-{what}-{cc}"), "fig2", format!("Fig 2: {cc}: {text}"), says, unit, value);
        };
        let steps = cc == "perc";
        let says = if steps { Says::AtMost(360.0) } else { Says::Words };
        let text = "flow 1 settled at half of the link after flow 2 came (10 %)";
        add("settle", text, says, Unit::Us, get("flow1_settle_us"));
        let (text, says) = if steps {
            ("use of the link from an RTT after flow 2 came to the end", Says::Words)
        } else {
            ("use of the link in that time (paper: underutilised)", Says::AtMost(0.9))
        };
        add("use", text, says, Unit::Share, get("use"));
        let (text, says) = if steps {
            ("lowest rate of flow 1 while flow 2 was there", Says::About(50.0, 0.1))
        } else {
            ("lowest rate of flow 1 while flow 2 was there (paper: a sharp dip)", Says::AtMost(40.0))
        };
        add("dip", text, says, Unit::Gbps, get("lowest_gbps"));
        add("fct", "completion time of flow 2", Says::Words, Unit::Us, get("flow2_us"));
    }
}

/// The calculation without packets: no tolerance.
fn synchronous(claims: &mut Claims, measured: &Measured) {
    let exactly = |x| Says::About(x, 0.0);
    let get = |job, what| measured.get(job, "", what);
    let mut add = |id: &str, job: &str, text: &str, says, unit, value| claims.add(id, job, text, says, unit, value);
    let text = "Fig 3: iterations of synchronous PERC when C joins A and B";
    add("fig3-iterations", "fig3", text, exactly(2.0), Unit::Count, get("fig3", "iterations"));
    let text = "Fig 3: largest distance from max-min then";
    add("fig3-error", "fig3", text, Says::AtMost(1e-9), Unit::Share, get("fig3", "error"));
    for (flow, want) in [("a", 35.0), ("b", 25.0), ("c", 5.0), ("d", 5.0)] {
        let text = format!("Fig 7: rate of {} in synchronous PERC", flow.to_uppercase());
        add(&format!("fig7-{flow}"), "fig7", &text, exactly(want), Unit::Gbps, get("fig7", flow));
    }
    let text = "Fig 7: time of synchronous PERC, at 24 us an iteration";
    add("fig7-us", "fig7", text, Says::AtMost(100.0), Unit::Us, get("fig7", "us"));
    let text = "Fig 7: most that synchronous PERC offers beyond a link on the way";
    add("fig7-overload", "fig7", text, Says::Words, Unit::Gbps, get("fig7", "overload_gbps"));
}

fn fig6(claims: &mut Claims, measured: &Measured) {
    for cc in FIG6 {
        let get = |what| measured.get("fig6", cc, what);
        let mut add = |what: &str, text: &str, says, unit, value| {
            claims.add(format!("fig6-{what}-{cc}"), "fig6", format!("Fig 6: {cc}: {text}"), says, unit, value);
        };
        // RCP's numbers are in the text; the others' follow from "twice", "3x", "5x" and "7x" of them.
        let (median, p99) = match cc {
            "perc" => (Says::AtMost(14.0 / 3.0), Says::AtMost(10.0)),
            "charny" => (Says::About(7.0, 0.25), Says::AtMost(71.0 / 5.0)),
            _ => (Says::About(14.0, 0.25), Says::About(71.0, 0.25)),
        };
        add("median", "median time to converge", median, Unit::Rtts, get("median"));
        add("p99", "99th percentile", p99, Unit::Rtts, get("p99"));
        let in10 = if cc == "perc" { Says::AtLeast(0.99) } else { Says::Words };
        add("in10", "changes that converge in less than 10 RTTs", in10, Unit::Share, get("in10"));
        add("failed", "changes that never converge", Says::Words, Unit::Share, get("failed"));
    }
    for (id, cc, what, paper) in [
        ("charny-median", "charny", "median", 1.5),
        ("charny-p99", "charny", "p99", 1.5),
        ("rcp-median", "rcp", "median", 3.0),
        ("rcp-p99", "rcp", "p99", 7.0),
    ] {
        let value = measured.get("fig6", cc, what) / measured.get("fig6", "perc", what);
        let text = format!("Fig 6: {what}, {cc} over perc");
        claims.add(format!("fig6-ratio-{id}"), "fig6", text, Says::Times(paper), Unit::Ratio, value);
    }
}

/// Times in the text are "within 100 us", "around 50 us" and "almost 600 us", read off a plot; here rates count as there
/// when they stay within 5 %.
fn fig8(claims: &mut Claims, measured: &Measured) {
    let get = |cc: &str, what: &str| measured.get("fig8", cc, what);
    let all = |cc: &str| ["a", "b", "c", "d"].map(|f| get(cc, &format!("{f}-5-us"))).into_iter().fold(0.0, worst);
    let mut add = |id: &str, text: &str, says, unit, value| {
        claims.add(format!("fig8-{id}"), "fig8", format!("Fig 8: {text}"), says, unit, value);
    };
    add("perc-c", "perc: C at 5 Gb/s after", Says::About(50.0, 0.25), Unit::Us, get("perc", "c-5-us"));
    add("perc-all", "perc: all flows at their rates after", Says::AtMost(100.0), Unit::Us, all("perc"));
    add("ideal-all", "ideal: all flows at their rates after", Says::AtMost(0.0), Unit::Us, all("ideal"));
    add("charny-all", "charny: all flows at their rates after", Says::Words, Unit::Us, all("charny"));
    let rcp = |flow: &str, percent: u32| get("rcp", &format!("{flow}-{percent}-us"));
    for flow in ["c", "d"] {
        let text = format!("rcp: {} at 5 Gb/s after (10 %; paper: almost 600)", flow.to_uppercase());
        add(&format!("rcp-{flow}"), &text, Says::About(600.0, 0.5), Unit::Us, rcp(flow, 10));
    }
    for flow in ["a", "b"] {
        let name = flow.to_uppercase();
        let text = format!("rcp: {name} within 20 % after (paper: oscillates within 20 %)");
        add(&format!("rcp-{flow}-20"), &text, Says::AtMost(1_000.0), Unit::Us, rcp(flow, 20));
        let text = format!("rcp: {name} within 5 % after (paper: milliseconds)");
        add(&format!("rcp-{flow}-5"), &text, Says::AtLeast(1_000.0), Unit::Us, rcp(flow, 5));
    }
    for (cc, name) in [("perc", "perc"), ("perc:no-wait", "perc without waiting 2 RTTs")] {
        let text = format!("{name}: time in which rates exceed a link");
        add(&format!("overload-us-{cc}"), &text, Says::Words, Unit::Us, get(cc, "overload_us"));
        let text = format!("{name}: most by which they do");
        add(&format!("overload-gbps-{cc}"), &text, Says::Words, Unit::Gbps, get(cc, "overload_gbps"));
    }
    let saved = get("perc:no-wait", "overload_us") - get("perc", "overload_us");
    let text = "perc: waiting 2 RTTs makes overload shorter by";
    add("overload", text, Says::AtLeast(0.0), Unit::Us, saved);
    add(
        "no-wait-all",
        "perc without waiting: all flows at their rates after",
        Says::Words,
        Unit::Us,
        all("perc:no-wait"),
    );
}

/// The larger of two, not a number if one of them is not.
fn worst(a: f64, b: f64) -> f64 {
    if b.is_nan() { b } else { f64::max(a, b) }
}
