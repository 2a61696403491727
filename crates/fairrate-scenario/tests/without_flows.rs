//! Scenarios for readers of results, without flows.

use std::path::Path;

use fairrate_control::Registry;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::SimConfig;

#[test]
fn all_but_flows_and_probes_is_as_in_the_whole_scenario() {
    let registry = Registry::new();
    let reader = Scenario::with_algorithms(&registry);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let paths = std::fs::read_dir(examples).expect("the examples are there").map(|e| e.expect("an entry").path());
    let mut n = 0;
    for path in paths.filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let read =
            |reader: fairrate_scenario::Reader<'_>| reader.load(&path, &Overrides::default()).expect("an example");
        let (whole, without) = (read(reader), read(reader.without_flows()));
        let told = |s: &Scenario| (s.to_toml(), s.description().to_owned(), s.traffic_blocks().to_owned());
        assert_eq!(told(&whole), told(&without));
        let rest = |scenario: &Scenario| {
            let mut config: SimConfig = scenario.sim_config().clone();
            config.flows = Vec::new().into();
            config.dependencies = Vec::new().into();
            (config.changes, config.tasks, config.collectives, config.jobs) = Default::default();
            (config.probes, config.snapshots) = Default::default();
            format!("{config:?}")
        };
        assert!(without.sim_config().flows.is_empty() && !whole.sim_config().flows.is_empty());
        assert_eq!(rest(&whole), rest(&without), "{}", path.display());
        n += 1;
    }
    assert!(20 < n, "{n} examples");
}
