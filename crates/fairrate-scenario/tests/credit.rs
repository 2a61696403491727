//! RCCC, EQDS and NDP: receivers give credit, switches trim.

use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{FlowOutcome, Recorder, RunTotals, SimConfig, Simulation};
use fairrate_units::Time;

const ALL: [&str; 3] = ["rccc", "eqds", "ndp"];

/// Returns a fabric of eight hosts in two racks under `cc`, with `blocks` of traffic and faults.
fn config(cc: &str, blocks: &str, sets: &[(&str, &str)]) -> SimConfig {
    let entropy = match cc {
        "rccc" => "mixed",
        "eqds" => "bitmap-once",
        _ => "permutation",
    };
    let text = format!(
        r#"
duration = "200ms"
stop = "all-flows-done"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
host_rate = "100Gbps"
host_delay = "500ns"
uplink_rate = "100Gbps"
uplink_delay = "500ns"
[switch]
buffer = "64MiB"
dt_alpha = "unlimited"
trim_limit = "145250B"
[routing]
balance = "host"
[transport]
cc = "{cc}"
entropy = "{entropy}"
rto = "200us"
{blocks}
"#
    );
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let overrides = Overrides { sets, ..Overrides::default() };
    match Scenario::from_toml(&text, "credit.toml", Path::new("."), &overrides) {
        Ok(scenario) => scenario.into_sim_config(),
        Err(error) => panic!("{error}"),
    }
}

/// Runs on `threads` threads; returns the outcomes of flows, in their order, and totals.
fn run(config: SimConfig, threads: usize) -> (Vec<FlowOutcome>, RunTotals) {
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::with_threads(config, threads);
    simulation.run(&mut recorder).expect("the run does not stall");
    let totals = simulation.totals();
    assert_eq!(totals.unaccounted_bytes(), 0);
    let mut flows = recorder.flows;
    flows.sort_by_key(|flow| flow.flow);
    (flows, totals)
}

fn incast(senders: u32, bytes: &str) -> String {
    format!("[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsenders = {senders}\nbytes = \"{bytes}\"\n")
}

fn times(flows: &[FlowOutcome]) -> Vec<f64> {
    flows.iter().map(|flow| flow.fct.expect("it is done").as_ps() as f64 / 1e6).collect()
}

/// Seven messages of 4 MB to one host: 28 MB take 2,240 us on its link, and 2,300 with headers and 0.985 of it. All end
/// within the last tenth, nothing is dropped, and what does not fit is cut in the first round trip alone.
#[test]
fn an_incast_is_fair_and_loses_nothing_but_payload() {
    for cc in ALL {
        let (flows, totals) = run(config(cc, &incast(7, "4MB"), &[]), 1);
        let times = times(&flows);
        let (first, last) = times.iter().fold((f64::MAX, 0.0_f64), |(a, b), &t| (a.min(t), b.max(t)));
        assert!(2_240.0 < last && last < 2_360.0, "{cc}: {last} us");
        assert!(0.9 * last < first, "{cc}: {first} to {last} us");
        assert_eq!(totals.drops.total(), 0, "{cc}");
        // Seven windows of at most 207.5 KB.
        assert!(0 < totals.counts.trims && totals.trimmed_bytes < 7 * 207_500, "{cc}: {} trims", totals.counts.trims);
        assert!(flows.iter().all(|flow| flow.timeouts == 0), "{cc}");
    }
}

/// A message within the first window takes what it takes without control; a byte takes the ideal time.
#[test]
fn a_message_within_the_first_window_waits_for_nobody() {
    for cc in ALL {
        let mtu = if cc == "ndp" { "9000B" } else { "4086B" };
        for bytes in ["1B", "4086B", "100KB"] {
            let (flows, _) = run(config(cc, &incast(1, bytes), &[]), 1);
            let line_rate =
                config("line-rate", &incast(1, bytes), &[("transport.kind", "uet"), ("transport.mtu", mtu)]);
            assert_eq!(times(&flows), times(&run(line_rate, 1).0), "{cc}, {bytes}");
            if bytes == "1B" {
                assert_eq!(flows[0].fct, Some(flows[0].ideal_fct), "{cc}");
            }
        }
    }
}

/// Alone, a message longer than the window goes at the pace of its receiver: 20 MB at 0.98 to 0.99 of the link, but for
/// NDP, whose window of 15 packets is more than this network's bandwidth-delay product too.
#[test]
fn a_message_alone_goes_at_the_pace_of_its_receiver() {
    for (cc, least, most) in [("rccc", 0.97, 0.98), ("eqds", 0.965, 0.975), ("ndp", 0.975, 0.99)] {
        let (flows, totals) = run(config(cc, &incast(1, "20MB"), &[]), 1);
        let share = 20e6 * 8.0 / (times(&flows)[0] * 1e-6) / 100e9;
        assert!(least < share && share < most, "{cc}: {share}");
        assert_eq!(totals.counts.trims, 0, "{cc}");
    }
}

/// The named reading of EQDS's pull: at 0.99 of the rate, as in the paper, it is faster than the frame of the program.
#[test]
fn a_pull_of_eqds_takes_the_time_of_its_bytes_or_of_a_frame() {
    let time = |pull: &str| {
        let (flows, _) = run(config("eqds", &incast(1, "20MB"), &[("transport.eqds.pull_time", pull)]), 1);
        times(&flows)[0]
    };
    let ratio = time("credit") / time("frame");
    assert!((ratio - 0.985_25 / 0.99).abs() < 0.001, "{ratio}");
}

const LOSSES: &str = r#"
[[fault]]
links = "host-links"
loss = 0.02
[[fault]]
links = "tor-uplinks"
loss = 0.02
"#;

/// Links lose 2 % of all packets: data, headers, acknowledgments, pulls and requests alike.
#[test]
fn lost_pulls_and_lost_headers_are_made_up_for() {
    for cc in ALL {
        for seed in ["1", "2", "3"] {
            let (flows, totals) = run(config(cc, &(incast(7, "1MB") + LOSSES), &[("seed", seed)]), 1);
            assert_eq!(flows.len(), 7, "{cc}");
            assert!(0 < totals.drops.total() && 0 < totals.counts.trims, "{cc}");
            assert!(flows.iter().all(|flow| flow.fct_ack.is_some_and(|fct| fct < Time::from_ms(20))), "{cc}");
        }
    }
}

/// A link that is down from the start swallows whole first windows; then one that is down later swallows all pulls.
#[test]
fn messages_survive_links_that_are_down() {
    for cc in ALL {
        for (down, up) in [("0us", "300us"), ("40us", "400us")] {
            for link in ["h1->tor0", "tor0->h1", "tor0->h0"] {
                let fault = format!("[[fault]]\nlinks = [\"{link}\"]\ndown_at = \"{down}\"\nup_at = \"{up}\"\n");
                let (flows, _) = run(config(cc, &(incast(3, "1MB") + &fault), &[]), 1);
                assert_eq!(flows.len(), 3, "{cc}, {link} down from {down}");
                assert!(flows.iter().all(|flow| flow.fct_ack.is_some_and(|fct| fct < Time::from_ms(20))));
            }
        }
    }
}

#[test]
fn threads_give_the_same_bits() {
    for cc in ALL {
        let blocks = incast(7, "1MB") + LOSSES + "[[traffic]]\nkind = \"permutation\"\nbytes = \"300KB\"\n";
        let of = |threads| {
            let (flows, totals) = run(config(cc, &blocks, &[]), threads);
            (flows.iter().map(|flow| (flow.flow, flow.fct_ack)).collect::<Vec<_>>(), totals.fingerprint)
        };
        let one = of(1);
        assert!([2, 3].iter().all(|&threads| of(threads) == one), "{cc}");
    }
}

/// A permutation over all paths, each in its turn, meets no queue of more than a few packets: all of 16 flows are as
/// good as alone.
#[test]
fn numbered_paths_spread_evenly() {
    let permutation = "[[traffic]]\nkind = \"permutation\"\nbytes = \"9MB\"\n";
    let last = |sets: &[(&str, &str)]| {
        let (flows, totals) = run(config("ndp", permutation, sets), 1);
        (times(&flows).into_iter().fold(0.0, f64::max), totals.counts.trims)
    };
    let (numbered, trims) = last(&[]);
    let (hashed, _) = last(&[("transport.entropy", "oblivious")]);
    assert_eq!(trims, 0);
    assert!(numbered < 1.05 * hashed, "{numbered} and {hashed} us");
}
