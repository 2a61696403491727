//! Any two texts are the links and flows of an allocation, or an error with a place in the text.
#![no_main]

use fairrate_allocate::{FileError, Network, max_min, parse_flows, parse_host_flows, parse_links};
use libfuzzer_sys::fuzz_target;

fn assert_in(text: &str, error: &FileError) {
    let line = text.lines().nth(error.line - 1).unwrap_or_default();
    assert!(error.column.is_none_or(|(from, to)| line.get(from..to).is_some()), "{error:?}");
}

fuzz_target!(|texts: (&str, &str)| {
    // Hosts called by a number, as in a topology file.
    let host = |name: &str| name.parse::<u8>().map_err(|e| (e.to_string(), None));
    let _ = parse_host_flows(texts.1, host).inspect_err(|e| assert_in(texts.1, e));
    let links = parse_links(texts.0).inspect_err(|e| assert_in(texts.0, e));
    let Ok(links) = links else { return };
    let flows = parse_flows(texts.1, &links).inspect_err(|e| assert_in(texts.1, e));
    let Ok(flows) = flows else { return };
    let network = Network { links, flows };
    let allocation = max_min(&network).expect("what is read has an allocation");
    assert!(allocation.rates_bps.iter().all(|rate_bps| rate_bps.is_finite() && 0.0 < *rate_bps));
});
