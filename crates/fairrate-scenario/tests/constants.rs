//! Named sets of constants: `cc = "NAME@SET"`.

use std::path::Path;

use fairrate_scenario::{Overrides, Scenario, ScenarioError};

/// Reads a star of three hosts at `rate` with the algorithm `cc` and the lines `more`.
fn read(cc: &str, rate: &str, more: &str) -> Result<String, ScenarioError> {
    let text = format!(
        "duration = \"1ms\"\n[topology]\nkind = \"star\"\nhosts = 3\nrate = \"{rate}\"\n[transport]\ncc = \"{cc}\"\n{more}\n\
         [[traffic]]\nkind = \"permutation\"\nbytes = \"1MB\"\n"
    );
    let scenario = Scenario::from_toml(&text, "x.toml", Path::new(""), &Overrides::default())?;
    Ok(scenario.to_toml())
}

/// Returns the lines of a resolved scenario that begin with one of `keys`.
fn lines(resolved: &str, keys: &[&str]) -> Vec<String> {
    resolved
        .lines()
        .filter(|line| keys.iter().any(|key| line.starts_with(&format!("{key} = "))))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_set_changes_parameters_and_marks_and_the_resolved_scenario_names_all() {
    let paper = read("dcqcn@paper", "40Gbps", "").expect("a scenario");
    let marks = "ecn = { kmin = \"5KB\", kmax = \"200KB\", pmax = 0.01, per = \"any-rate\", at = \"dequeue\", draws = \"per-port\" }";
    assert_eq!(lines(&paper, &["cc", "ai"]), ["cc = \"dcqcn\"", "ai = \"40Mbps\""]);
    assert!(paper.contains(marks), "{paper}");
    // It equals the same constants written out.
    let by_hand = read("dcqcn", "40Gbps", "[switch]\necn = { kmin = \"5KB\", kmax = \"200KB\", pmax = 0.01 }")
        .expect("a scenario");
    assert_eq!(paper, by_hand);
}

#[test]
fn rates_are_in_proportion_to_the_hosts() {
    let ai = |rate| lines(&read("dcqcn@hpcc", rate, "").expect("a scenario"), &["ai", "hai"]);
    assert_eq!(ai("100Gbps"), ["ai = \"20Mbps\"", "hai = \"200Mbps\""]);
    assert_eq!(ai("25Gbps"), ["ai = \"5Mbps\"", "hai = \"50Mbps\""]);
}

#[test]
fn keys_of_the_file_stand() {
    let own =
        read("dcqcn@hpcc", "100Gbps", "dcqcn.ai = \"7Mbps\"\n[switch]\necn = { kmin = \"9KB\" }").expect("a scenario");
    assert_eq!(lines(&own, &["ai", "hai"]), ["ai = \"7Mbps\"", "hai = \"200Mbps\""]);
    assert!(
        own.contains("kmin = \"9KB\", kmax = \"400KB\", pmax = 0.2, per = \"any-rate\", kmax_per = \"25Gbps\""),
        "{own}"
    );
    let off = read("dcqcn@hpcc", "100Gbps", "[switch]\necn = false").expect("a scenario");
    assert!(off.contains("ecn = false"), "{off}");
    let on = read("dcqcn@paper", "100Gbps", "[switch]\necn = true").expect("a scenario");
    assert!(on.contains("kmin = \"5KB\""), "{on}");
}

#[test]
fn the_form_of_a_profile_is_a_set() {
    let set = read("timely@ns3", "25Gbps", "").expect("a scenario");
    assert_eq!(lines(&set, &["ai", "sampling"]), ["ai = \"50Mbps\"", "sampling = \"rtt\""]);
}

#[test]
fn unknown_sets_are_refused_with_a_suggestion() {
    let said = |cc| {
        let error = read(cc, "25Gbps", "").expect_err(cc);
        let line = error.first_line().map(|(_, line)| line);
        (error.to_string(), error.first_help().to_owned(), line)
    };
    let (message, help, line) = said("dcqcn@papr");
    assert_eq!((message.as_str(), help.as_str()), ("`dcqcn` has no constants `papr`", "did you mean `dcqcn@paper`?"));
    assert_eq!(line, Some(7));
    assert_eq!(said("line-rate@paper").1, "`line-rate` has no named constants; `fairrate list constants` has all");
    assert_eq!(said("dcqnc@paper").0, "there is no algorithm `dcqnc`");
    assert!(said("dcqcn@").1.starts_with("there are `dcqcn@paper`, "));
}

#[test]
fn hosts_of_several_rates_have_no_proportion() {
    let text = "duration = \"1ms\"\n[topology]\nkind = \"file\"\npath = \"t.txt\"\n[transport]\ncc = \"dcqcn@scaled\"\n\
                [[traffic]]\nkind = \"permutation\"\nbytes = \"1MB\"\n";
    let network = "3 1 2\n2\n0 2 10Gbps 1us 0\n1 2 25Gbps 1us 0\n";
    let error =
        Scenario::from_texts(text, "x.toml", &[("t.txt", network)], &Overrides::default()).expect_err("two rates");
    assert_eq!(
        error.to_string(),
        "this set is in proportion to the hosts' line rate, and there are hosts of 10Gbps and 25Gbps"
    );
}
