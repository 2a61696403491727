//! Warnings about the choice of paths, and about what fluids do not know.

use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::EntropyScheme;

/// Returns a scenario on a leaf-spine with these sections, each on lines of its own.
fn read(routing: &str, transport: &str, rest: &str) -> Scenario {
    let text = format!(
        "duration = \"9ms\"\n[topology]\nkind = \"leaf-spine\"\n[routing]\n{routing}\n[transport]\n{transport}\n\
         [[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n{rest}"
    );
    Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default()).expect("it reads")
}

fn warnings(routing: &str, transport: &str, rest: &str) -> Vec<String> {
    read(routing, transport, rest).warnings().to_vec()
}

/// The largest base RTT of the default leaf-spine is below 12 us, so 100 us are too much there and ten base RTTs are
/// not. Where nothing is lost a long window costs nothing, and without `rto` nothing is waited for.
#[test]
fn a_window_much_longer_than_disorder_is_warned_of() {
    let of = |window: &str, switch: &str| {
        let transport =
            format!("cc = \"dctcp\"\nrecovery = \"selective-repeat\"\nreorder_window = \"{window}\"\nrto = \"2ms\"");
        warnings("balance = \"spray\"", &transport, switch)
    };
    let got = of("500us", "[switch]\npfc = false");
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(got[0].starts_with("a `reorder_window` of 500us is more than 10 of the largest base RTT, "), "{got:?}");
    assert!(got[0].contains("waits for the `rto` of 2ms"), "{got:?}");
    let suggested = got[0].rsplit_once("reorder_window=\"").unwrap().1.trim_end_matches(['"', '`']).to_owned();
    assert_eq!(of(&suggested, "[switch]\npfc = false"), [""; 0]);
    assert_eq!(of("500us", ""), [""; 0]);
    let fault = "[[fault]]\nlinks = \"tor-uplinks\"\nloss = 0.001";
    assert_eq!(of("500us", fault).len(), 1);
}

/// Fluids know slow links. Faults of packets have no effect on them.
#[test]
fn faults_of_packets_under_an_oracle_are_warned_of() {
    let of = |fault: &str, cc: &str| {
        let fault = format!("[[fault]]\nlinks = \"host-links\"\n{fault}\n");
        warnings("", &format!("cc = \"{cc}\"\nrto = \"1ms\""), &fault)
    };
    assert_eq!(of("rate = 0.5", "ideal"), [""; 0]);
    let got = of("rate = 0.5\nloss = 0.01\ndown_at = \"1us\"\nup_at = \"2us\"\n[host]\nprocessing = \"1us\"", "ideal");
    assert_eq!(
        got,
        [
            "`ideal` has no packets, and runs as if there were no `loss`, `down_at` or `[host]`; slow links (`rate`) it knows"
        ]
    );
    assert_eq!(of("loss = 0.01", "dctcp"), [""; 0]);
}

#[test]
fn ultra_ethernet_on_one_path_is_warned_of() {
    for cc in ["nscc", "rccc"] {
        let got = warnings("", &format!("cc = \"{cc}\""), "");
        assert_eq!(got.len(), 1, "{got:?}");
        assert!(got[0].starts_with(&format!("`{cc}` is made for packets that take many paths")), "{got:?}");
        assert_eq!(warnings("balance = \"host\"", &format!("cc = \"{cc}\""), ""), [""; 0]);
    }
    // Where there is one path only there is nothing to choose.
    let star =
        "[topology]\nkind = \"star\"\n[transport]\ncc = \"nscc\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"";
    let star = Scenario::from_toml(star, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
    assert_eq!(star.warnings(), [""; 0]);
}

#[test]
fn timeouts_below_the_base_rtt_are_warned_of() {
    let of = |delay: &str, transport: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\ndelay = \"{delay}\"\n[transport]\ncc = \"dctcp\"\n{transport}\n\
             [[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\""
        );
        let star = Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
        star.warnings().to_vec()
    };
    // Four links of 1.5 ms and the packets on them, beside the default of 4 ms.
    let got = of("1500us", "");
    assert_eq!(got.len(), 1, "{got:?}");
    let words = "`transport.rto = \"4ms\"` is not above the largest base RTT, 6.001ms";
    assert!(got[0].starts_with(words) && got[0].contains("with `transport.rto=\"24004us\"`"), "{got:?}");
    assert_eq!(of("1500us", "rto = \"24ms\""), [""; 0]);
    assert_eq!(of("900us", ""), [""; 0]);
    assert_eq!(of("1500us", "kind = \"tcp\""), [""; 0]);
}

#[test]
fn hosts_that_choose_have_a_rule() {
    let of =
        |transport: &str| read("balance = \"host\"", transport, "").sim_config().transport.entropy.map(|e| e.scheme);
    assert_eq!(of("cc = \"nscc\""), Some(EntropyScheme::Mixed));
    assert_eq!(of("cc = \"dctcp\"\nkind = \"tcp\""), Some(EntropyScheme::Plb));
    assert_eq!(of("cc = \"cubic\"\nkind = \"tcp\""), Some(EntropyScheme::Oblivious));
    assert_eq!(of("cc = \"dctcp\""), Some(EntropyScheme::Oblivious));
    assert_eq!(of("cc = \"dctcp\"\nentropy = \"reps\""), Some(EntropyScheme::Reps));
    // The resolved scenario names it, and reads as it is.
    let resolved = read("balance = \"host\"", "cc = \"nscc\"", "").to_toml();
    assert!(resolved.contains("entropy = \"mixed\""), "{resolved}");
}

#[test]
fn rules_that_hear_of_no_marks_are_warned_of() {
    let of = |entropy: &str, cc: &str, rest: &str| {
        let waits = "recovery = \"selective-repeat\"\nreorder_window = \"50us\"";
        warnings("balance = \"host\"", &format!("cc = \"{cc}\"\nentropy = \"{entropy}\"\n{waits}"), rest)
    };
    for entropy in ["bitmap", "reps", "reps-legacy", "mixed", "plb"] {
        let got = of(entropy, "swift", "");
        assert_eq!(got.len(), 1, "{got:?}");
        assert!(
            got[0].starts_with(&format!("`entropy = \"{entropy}\"` learns from ECN marks, and no switch sets any")),
            "{got:?}"
        );
        assert_eq!(of(entropy, "dctcp", ""), [""; 0]);
        let marks = "[switch]\necn = { kmin = \"100KB\", kmax = \"400KB\", pmax = 0.2 }";
        assert_eq!(of(entropy, "swift", marks), [""; 0]);
    }
    assert_eq!(of("oblivious", "swift", ""), [""; 0]);
}

#[test]
fn a_rule_for_hashes_where_nothing_hashes_is_warned_of() {
    let of = |balance: &str, rehash: &str| {
        let transport = "cc = \"dctcp\"\nrecovery = \"selective-repeat\"\nreorder_window = \"50us\"";
        let routing = format!("balance = \"{balance}\"\nreroute_delay = \"1ms\"\nrehash = \"{rehash}\"");
        warnings(&routing, transport, "")
    };
    for balance in ["spray", "round-robin", "adaptive", "drill", "flowlet"] {
        let got = of(balance, "resilient");
        assert_eq!(got.len(), 1, "{got:?}");
        assert!(got[0].starts_with("`rehash = \"resilient\"` has no effect"), "{got:?}");
        assert_eq!(of(balance, "modulo"), [""; 0]);
    }
    assert_eq!((of("ecmp", "resilient"), of("host", "resilient")), (Vec::new(), Vec::new()));
}

/// Two hosts of 25 Gb/s fill the port of another one. With a buffer of 125 KB for each of the 40 ports of a star,
/// thresholds of an eighth of what is free pause both from 0.25 / 1.25 of the buffer on: 1 MB of 5 MB.
#[test]
fn marks_that_come_after_pauses_are_warned_of() {
    let of = |switch: &str, cc: &str| {
        let text = format!(
            "duration = \"9ms\"\n[topology]\nkind = \"star\"\nhosts = 40\nrate = \"25Gbps\"\n[switch]\nbuffer = \"5MB\"\n{switch}\n\
             [transport]\ncc = \"{cc}\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n"
        );
        let scenario = Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
        scenario.warnings().iter().filter(|text| text.starts_with("PFC pauses before")).cloned().collect::<Vec<_>>()
    };
    let marks = |kb: u32| format!("ecn = {{ kmin = \"{kb}KB\", kmax = \"{kb}KB\", pmax = 1.0 }}");
    let got = of(&marks(1_000), "dctcp");
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(
        got[0].contains("`dctcp`")
            && got[0].contains("is marked from 1MB on, and the 2 ports that fill it may be paused from 1MB on"),
        "{got:?}"
    );
    for (switch, cc) in [
        (marks(999), "dctcp"),
        // It does not go by marks.
        (marks(1_000), "swift"),
        (format!("{}\npfc = false", marks(1_000)), "dctcp"),
        (format!("{}\ndt_alpha = 1.0", marks(1_000)), "dctcp"),
    ] {
        assert_eq!(of(&switch, cc), [""; 0], "{switch}");
    }
}

/// The switch within each server is reached from its GPUs alone, and a permutation goes between NICs.
#[test]
fn marks_of_a_network_that_no_flow_crosses_do_not_count() {
    let of = |kind: &str, rest: &str| {
        let text = format!(
            "[topology]\nkind = \"rail\"\nservers = 2\n[transport]\ncc = \"dctcp\"\n[[traffic]]\nkind = \"{kind}\"\n\
             bytes = \"100KB\"\n{rest}"
        );
        let scenario = Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
        scenario.warnings().iter().filter(|text| text.contains("nvswitch")).count()
    };
    assert_eq!(of("permutation", ""), 0);
    assert_eq!(of("collective", "op = \"all-to-all\""), 1);
}

/// Agents of ports see all queues of a port, unless classes have telemetry of their own.
#[test]
fn one_rate_for_classes_with_weights_is_warned_of() {
    let of = |cc: &str, own: &str| {
        let rest = format!(
            "class = 3\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\nclass = 4\n\
             [[class]]\nclass = 3\nweight = 1.0\n{own}\n[[class]]\nclass = 4\nweight = 2.0\n{own}"
        );
        warnings("", &format!("cc = \"{cc}\""), &rest)
    };
    let got = of("rocc", "");
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(got[0].starts_with("`rocc` goes by the queues of all classes at a port, so weights of classes 3 and 4 "));
    assert_eq!(of("rocc", "telemetry = \"class\""), [""; 0]);
    assert_eq!(of("dctcp", ""), [""; 0]);
}
