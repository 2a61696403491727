use std::path::Path;

use super::*;
use crate::config::Config;

/// Two leaves with two hosts each, under two spines.
fn network() -> Network {
    let text = "listen = \"127.0.0.1:0\"\ninsecure = true\nhosts = \"10.0.0.1+\"\n[topology]\nkind = \"leaf-spine\"\n\
                leaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
    Config::from_toml(text, Path::new("a.toml")).unwrap_or_else(|e| panic!("{e:?}")).1
}

fn path(network: &Network, src: u8, dst: u8) -> Vec<String> {
    let mut path = Vec::new();
    network.clone().into_paths()([10, 0, 0, src].into(), [10, 0, 0, dst].into(), &mut path);
    path.iter().map(|link| network.topology.port_name(PortId(link.0))).collect()
}

fn states<'a>(all: impl IntoIterator<Item = (&'a str, LinkState)>) -> BTreeMap<String, LinkState> {
    all.into_iter().map(|(name, state)| (name.to_owned(), state)).collect()
}

#[test]
fn paths_lead_around_links_that_are_down() {
    let network = network();
    let used = path(&network, 1, 3);
    assert_eq!(used.len(), 4);
    let (up, spine) = (used[1].clone(), used[1].split("->").nth(1).unwrap().to_owned());
    let cut = network.with_links(&states([(up.as_str(), LinkState::Down)])).unwrap();
    let other = path(&cut, 1, 3);
    assert!(other.len() == 4 && !other[1].contains(&spine), "{other:?}");
    // The same link by its other direction.
    let back = up.split_once("->").map(|(a, b)| format!("{b}->{a}")).unwrap();
    assert_eq!(path(&network.with_links(&states([(back.as_str(), LinkState::Down)])).unwrap(), 1, 3), other);
    assert_eq!((cut.n_changed(), cut.has_links_of(&network)), ((1, 0), true));
    // Without both uplinks the leaves are apart, and the hosts of a leaf are not.
    let leaf = up.split_once("->").unwrap().0;
    let all: Vec<String> = ports(&network.topology).map(|port| network.topology.port_name(port)).collect();
    let spines = all.iter().filter(|name| name.starts_with(&format!("{leaf}->spine")));
    let apart = network.with_links(&states(spines.map(|name| (name.as_str(), LinkState::Down)))).unwrap();
    assert_eq!((path(&apart, 1, 3).len(), path(&apart, 1, 2).len(), apart.n_changed().0), (0, 2, 2));
    // A host whose link is down has no path, and others have theirs.
    let host = used[0].as_str();
    let alone = network.with_links(&states([(host, LinkState::Down)])).unwrap();
    assert_eq!((path(&alone, 1, 3).len(), path(&alone, 3, 1).len(), path(&alone, 2, 3).len()), (0, 0, 4));
}

#[test]
fn a_rate_is_of_one_direction_and_names_are_checked() {
    let network = network();
    let used = path(&network, 1, 3);
    let slow = network.with_links(&states([(used[1].as_str(), LinkState::Rate(1e9))])).unwrap();
    assert_eq!(slow.capacities_bps().iter().filter(|bps| **bps == 1e9).count(), 1);
    assert_eq!((slow.n_changed(), slow.bounds_bps()), ((0, 1), network.capacities_bps().to_vec()));
    let unknown = |name: &str| network.with_links(&states([(name, LinkState::Down)])).unwrap_err().to_string();
    assert_eq!(unknown("h0->tor00"), "the topology has no link `h0->tor00`: did you mean `h0->tor0`?");
    assert!(unknown("x").contains("write a name such as `"), "{}", unknown("x"));
}
