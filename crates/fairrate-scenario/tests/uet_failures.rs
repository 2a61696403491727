//! Ultra Ethernet when a spine dies.

use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{Recorder, RunTotals, Simulation};

/// Payload of a flow in bytes.
const BYTES: u64 = 2_000_000;

/// Runs a permutation on 64 hosts, whose four spines have just the capacity of the hosts, and of which one dies at 50
/// us. Returns the totals and the share of the payload that is sent again.
fn run(cc: &str, reroute_delay: &str, more: &str) -> (RunTotals, f64) {
    let text = format!(
        "duration = \"5ms\"\nstop = \"all-flows-done\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 8\nspines = 4\n\
         hosts_per_leaf = 8\nhost_rate = \"100Gbps\"\nuplink_rate = \"200Gbps\"\n[switch]\n{more}\n[routing]\nbalance = \"host\"\n\
         reroute_delay = \"{reroute_delay}\"\n[transport]\ncc = \"{cc}\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"{BYTES}B\"\n\
         [[fault]]\nswitches = [\"spine0\"]\ndown_at = \"50us\"\n"
    );
    let scenario = Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut recorder).expect("it ends");
    let open = simulation.unfinished();
    let again: u64 = recorder.flows.iter().chain(&open).map(|flow| flow.retransmitted_bytes).sum();
    (simulation.totals(), again as f64 / (64 * BYTES) as f64)
}

/// Nobody reacts: a quarter of all packets waits at dead ports, and of what is sent again another quarter does, so that
/// 1/3 of the payload is sent again, if packets on other paths go on; a fifth more is for losses of acknowledgments.
/// Limits of ingress ports cut these too.
#[test]
fn a_dead_path_does_not_spoil_the_others() {
    for cc in ["rccc", "nscc"] {
        let (totals, again) = run(cc, "never", "");
        assert_eq!(totals.flows_unfinished, 0, "{cc}");
        assert!(again < 1.0 / 3.0 + 0.2, "{cc}: {again}");
    }
    let (totals, again) = run("rccc", "never", "dt_alpha = 0.125\negress_alpha = \"unlimited\"");
    assert!(0 < totals.flows_unfinished && 1.0 < again, "{again}");
}

/// Switches react at once: three quarters of the capacity are left for 0.99 of it, which receivers grant, so that 1/4
/// of what is sent is cut and sent again. NSCC slows down.
#[test]
fn receivers_grant_what_the_fabric_has_lost() {
    let [(_, rccc), (_, nscc)] = ["rccc", "nscc"].map(|cc| run(cc, "0ns", ""));
    assert!(rccc < 1.0 / 3.0, "{rccc}");
    assert!(nscc < 0.02, "{nscc}");
}
