//! Any text is a scenario or an error, and a scenario's resolved text is that same scenario.
#![no_main]

use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // Files are the matter of the other targets, and a fuzzer should not open any.
    if text.contains("path") || text.contains('\\') {
        return;
    }
    let read = |text: &str| Scenario::from_toml(text, "fuzz.toml", Path::new("no-such-directory"), &Overrides::default());
    if let Ok(scenario) = read(text) {
        let again = read(&scenario.to_toml()).expect("a resolved scenario reads");
        assert_eq!(scenario.to_toml(), again.to_toml());
    }
});
