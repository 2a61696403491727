//! `[[class]]`: classes that switches treat apart.

use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{MarkAt, MarkBy, NonEct, Recorder, SimConfig, Simulation};
use fairrate_units::Bytes;

const BLOCKS: &str = "[[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = [1]\nbytes = \"300KB\"\n\
                      [[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = [2]\nbytes = \"300KB\"\nclass = 4\n";

fn read(head: &str, tail: &str) -> Result<Scenario, String> {
    let text = format!("duration = \"300us\"\n[topology]\nkind = \"star\"\n{head}\n{BLOCKS}{tail}\n");
    Scenario::from_toml(&text, "classes.toml", Path::new("."), &Overrides::default())
        .map_err(|error| format!("{error}\n{}", error.first_help()))
}

fn config(head: &str, tail: &str) -> SimConfig {
    read(head, tail).unwrap_or_else(|error| panic!("{error}")).into_sim_config()
}

#[test]
fn a_class_is_as_the_switch_says_but_for_its_keys() {
    let fabric = config("[switch]\ndt_alpha = 0.5\n[[class]]\nclass = 4\nweight = 2.0\npfc = false", "").fabric;
    let (own, other) = (fabric.class(4), fabric.class(3));
    assert_eq!((own.weight, own.pfc, own.ingress_alpha), (Some(2.0), false, Some(0.5)));
    assert_eq!((other.weight, other.pfc, fabric.classes.len()), (None, true, 1));
}

/// Two algorithms for different marks go together in classes of their own, and each gets its marks.
#[test]
fn marks_are_those_of_the_algorithms_in_a_class() {
    let second = "transport = { kind = \"tcp\", cc = \"dctcp\" }";
    assert!(read("[transport]\ncc = \"dcqcn\"", second).is_ok(), "they share no class");
    let at = "ecn = { at = \"enqueue\" }";
    let c = config(
        &format!("[transport]\ncc = \"dcqcn\"\n[switch]\npfc = true\n[[class]]\nclass = 3\n{at}\n[[class]]\nclass = 4"),
        second,
    );
    let kmin = |class: u8| c.fabric.class(class).ecn.map(|ecn| (ecn.kmin, ecn.at, ecn.non_ect));
    assert_eq!(kmin(3), Some((Bytes::new(100_000), MarkAt::Enqueue, NonEct::Mark)));
    assert_eq!(kmin(4), Some((Bytes::new(30_000), MarkAt::Enqueue, NonEct::Mark)));
    // What the switch says holds for all.
    let c = config(
        "[switch]\necn = { kmin = \"9KB\", kmax = \"9KB\", compare = \"share\" }\n[[class]]\nclass = 4\nweight = 1.0\n",
        "",
    );
    assert_eq!(c.fabric.class(4).ecn.map(|ecn| (ecn.kmin, ecn.by)), Some((Bytes::new(9_000), MarkBy::Share)));
}

#[test]
fn what_is_resolved_runs_the_same() {
    let head = "[transport]\nrto = \"1ms\"\n[switch]\necn = { kmin = \"9KB\", kmax = \"9KB\", at = \"enqueue\" }\n\
                [[class]]\nclass = 3\nweight = 1.5\nheadroom = \"20KB\"\n\
                [[class]]\nclass = 4\nweight = 3.0\npfc = false\negress_alpha = 0.5\necn = { compare = \"round\" }\n\
                [[class]]\nclass = 1\necn = false\n";
    let scenario = read(head, "").expect("it reads");
    let again = Scenario::from_toml(&scenario.to_toml(), "again.toml", Path::new("."), &Overrides::default());
    let again = again.unwrap_or_else(|error| panic!("{error}\n{}", scenario.to_toml()));
    assert_eq!(scenario.to_toml(), again.to_toml());
    assert_eq!(scenario.sim_config().fabric, again.sim_config().fabric);
    let fingerprint = |scenario: Scenario| {
        let mut simulation = Simulation::new(scenario.into_sim_config());
        simulation.run(&mut Recorder::default()).expect("no stall");
        simulation.totals().fingerprint
    };
    assert_eq!(fingerprint(scenario), fingerprint(again));
}

#[test]
fn what_does_not_go_together_is_refused_with_the_reason() {
    let wrong = [
        ("[[class]]\nweight = 1.0", "`[[class]]` needs `class`"),
        ("[[class]]\nclass = 0", "class 0 is reserved for PFC frames"),
        ("[[class]]\nclass = 8", "there is no class 8"),
        ("[[class]]\nclass = 4\n[[class]]\nclass = 4", "class 4 is described already"),
        ("[[class]]\nclass = 4\nweight = 0.0", "`weight = 0` is out of range"),
        ("[[class]]\nclass = 4\nwieght = 1.0", "did you mean `weight`?"),
        (
            "[[class]]\nclass = 4\necn = { compare = \"round\", at = \"enqueue\" }",
            "go by the weight of the class, and it has none",
        ),
        (
            "[[class]]\nclass = 4\nweight = 1.0\necn = { compare = \"round\" }",
            "rounds are estimated as packets join a queue",
        ),
        (
            "[switch]\npfc = false\n[transport]\nrto = \"1ms\"\n[[class]]\nclass = 4\npfc = true",
            "`[switch]` has no PFC",
        ),
        ("[transport]\nrto = \"none\"\n[[class]]\nclass = 4\npfc = false", "class 4 drops packets, and without `rto`"),
        (
            "[switch]\nqueue = \"codel\"\n[[class]]\nclass = 4\nweight = 1.0",
            "classes with weights wait in plain queues",
        ),
        (
            "[transport]\ncc = \"homa\"\n[[class]]\nclass = 4\nweight = 1.0",
            "under `homa` ports have queues of their own",
        ),
        ("profile = \"ns3\"\n[[class]]\nclass = 4\nweight = 1.0", "ns-3's NICs"),
        ("[[class]]\nclass = 4\ntrim = true", "switches do not trim"),
        (
            "[transport]\ncc = \"dctcp\"\n[[class]]\nclass = 4\necn = { kmin = \"9KB\", kmax = \"9KB\", at = \"dequeue\" }",
            "`at` of `ecn` differs between classes",
        ),
    ];
    for (head, message) in wrong {
        // A profile is a key of the document.
        let (top, head) = head
            .strip_prefix("profile")
            .map_or(("", head), |rest| rest.split_once('\n').map_or((rest, ""), |(top, head)| (top, head)));
        let top = if top.is_empty() { String::new() } else { format!("profile{top}\n") };
        let text = format!("{top}duration = \"300us\"\n[topology]\nkind = \"star\"\n{head}\n{BLOCKS}\n");
        let error = Scenario::from_toml(&text, "classes.toml", Path::new("."), &Overrides::default()).map(|_| ());
        let error = error.expect_err(&text);
        let told = format!("{error}\n{}", error.first_help());
        assert!(told.contains(message), "{head}: {told}");
    }
}
