//! The measuring window: where it ends by default.

use fairrate_scenario::{Overrides, Scenario, Window};
use fairrate_units::Time;

const LIST: &str = "\
[topology]
kind = \"star\"
hosts = 4
[[traffic]]
kind = \"list\"
path = \"flows.csv\"
";

/// Returns the window of `text` with the list `flows`.
fn window(text: &str, flows: &str) -> Window {
    let files = [("flows.csv", flows)];
    let scenario = Scenario::from_texts(text, "case.toml", &files, &Overrides::default());
    scenario.unwrap_or_else(|e| panic!("{e}\n{text}")).window()
}

#[test]
fn a_window_ends_with_the_last_start_of_a_list() {
    let flows = "id,start_ns,src,dst,bytes\n1,1000,h0,h1,1000000\n2,50000,h3,h0,100000\n";
    let window = window(LIST, flows);
    assert_eq!((window.from, window.until), (Time::from_us(1), Some(Time::from_us(50))));
}

/// Nothing says when a flow starts that waits for another one, by default or if the last start is asked for.
#[test]
fn a_window_ends_with_the_run_if_flows_of_a_list_wait() {
    let flows = "id,start_ns,src,dst,bytes,after\n1,0,h0,h1,1000000,\n2,50000,h3,h0,100000,\n3,0,h1,h2,500000,1\n";
    for until in ["", "[measure]\nuntil = \"last-start\"\n"] {
        assert_eq!(window(&format!("{LIST}{until}"), flows).until, None, "{until}");
    }
}

/// Messages of a collective wait for each other by their nature: the load beside it says where the window ends.
#[test]
fn a_window_ends_with_the_last_start_beside_a_collective() {
    let collective = "[[traffic]]\nkind = \"collective\"\nop = \"all-gather\"\nbytes = \"1MB\"\nhosts = \"all\"\n";
    let flows = "start_ns,src,dst,bytes\n1000,h0,h1,1000000\n50000,h3,h0,100000\n";
    assert_eq!(window(&format!("{LIST}{collective}"), flows).until, Some(Time::from_us(50)));
}
