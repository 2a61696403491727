//! Defaults of namespaces: they are restored, whatever the order of attaching and detaching.

use std::path::Path;
use std::process::Command;

use crate::traffic::{default_of, inside, succeed};
use crate::{clean, done, machine};

/// Namespaces without a network, which are removed with this value.
struct Namespaces(Vec<String>);

impl Namespaces {
    fn new(n: usize) -> Self {
        let names: Vec<String> = (0..n).map(|i| format!("frd{}n{i}", std::process::id())).collect();
        for name in &names {
            succeed(&format!("ip netns add {name}"));
        }
        Self(names)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

const THREE: [(&str, &str); 3] = [("theta-powertcp", "fr_theta"), ("dctcp", "fr_dctcp"), ("rocc", "fr_rocc")];
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn a_namespace_gets_its_default_back_in_whatever_order() {
    let Some(_machine) = machine() else { return };
    let namespaces = Namespaces::new(1);
    let name = &namespaces.0[0];
    let before = default_of(name);
    for order in ORDERS {
        for (algorithm, _) in THREE {
            done(&format!("attach {algorithm} --netns {name}"));
        }
        // The last remaining one is the default.
        let mut left = vec![0, 1, 2];
        for i in order {
            done(&format!("detach {}", THREE[i].0));
            left.retain(|other| *other != i);
            let expected = left.last().map_or(before.as_str(), |&last| THREE[last].1);
            assert_eq!(default_of(name), expected, "{order:?} at {i}");
        }
    }
    assert!(clean::is_clean());
}

#[test]
fn one_that_is_attached_again_is_the_last_one() {
    let Some(_machine) = machine() else { return };
    let namespaces = Namespaces::new(1);
    let name = &namespaces.0[0];
    let before = default_of(name);
    for (algorithm, tcp_name) in [THREE[0], THREE[1], THREE[0], THREE[0]] {
        done(&format!("attach {algorithm} --netns {name}"));
        assert_eq!(default_of(name), tcp_name);
    }
    let status = done("status");
    assert!(status.contains(&format!("  default of namespace {name}: theta-powertcp\n")), "{status}");
    assert!(status.contains(&format!("  in namespace {name}, whose default is fr_theta: dctcp\n")), "{status}");
    done("detach theta-powertcp");
    assert_eq!(default_of(name), "fr_dctcp");
    done("detach dctcp");
    assert_eq!(default_of(name), before);
    assert!(clean::is_clean());
}

/// A default that another user sets in the meantime is left alone.
#[test]
fn a_default_of_others_is_neither_named_nor_changed() {
    let Some(_machine) = machine() else { return };
    let namespaces = Namespaces::new(1);
    let name = &namespaces.0[0];
    done(&format!("attach theta-powertcp --netns {name}"));
    inside(name, || std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno")).expect("every kernel has it");
    let status = done("status");
    assert!(!status.contains("default of namespace"), "{status}");
    assert!(status.contains(&format!("  in namespace {name}, whose default is reno: theta-powertcp\n")), "{status}");
    done("detach theta-powertcp");
    assert_eq!(default_of(name), "reno");
    assert!(clean::is_clean());
}

/// A namespace that is made while the first one has our default takes its default from the first one.
#[test]
fn a_namespace_made_meanwhile_gets_the_default_that_the_first_one_had() {
    let Some(_machine) = machine() else { return };
    let before = default_here();
    done("attach theta-powertcp --default");
    let namespaces = Namespaces::new(1);
    let inherited = default_of(&namespaces.0[0]);
    // Other users of this machine may have connected in this moment.
    done("detach theta-powertcp --force");
    assert_eq!(default_here(), before);
    if inherited == "fr_theta" {
        assert_eq!(default_of(&namespaces.0[0]), before);
    } else {
        println!("not run: needs the machine's first network namespace");
    }
    assert!(clean::is_clean());
}

fn default_here() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("there is TCP").trim().to_owned()
}

#[test]
fn taken_from_some_namespaces_it_stays_in_others() {
    let Some(_machine) = machine() else { return };
    let namespaces = Namespaces::new(3);
    let [a, b, c] = [&namespaces.0[0], &namespaces.0[1], &namespaces.0[2]];
    let before = default_of(a);
    done(&format!("attach theta-powertcp --netns {a} --netns {b} --netns {c}"));
    done(&format!("detach theta-powertcp --netns {a} --netns {b}"));
    assert_eq!([default_of(a), default_of(b), default_of(c)], [before.as_str(), before.as_str(), "fr_theta"]);
    // Again: there is nothing to remove.
    done(&format!("detach theta-powertcp --netns {a}"));
    done("detach theta-powertcp --unused");
    let status = done("status");
    assert_eq!(status.matches("namespace").count(), 1, "{status}");
    done(&format!("detach theta-powertcp --netns {c}"));
    assert_eq!(done("status"), "nothing is attached\n");
    assert_eq!(default_of(c), before);
    assert!(clean::is_clean());
}

#[test]
fn attached_for_all_it_stays_when_the_last_namespace_goes() {
    let Some(_machine) = machine() else { return };
    let namespaces = Namespaces::new(1);
    let name = &namespaces.0[0];
    done("attach dctcp:g=0.25");
    done(&format!("attach dctcp --netns {name}"));
    done(&format!("detach dctcp --netns {name}"));
    assert_eq!(done("status"), "dctcp (fr_dctcp): 0 connections\n  in namespaces that have no others: dctcp:g=0.25\n");
    done("detach dctcp");
    assert!(clean::is_clean());
}

#[test]
fn a_namespace_that_is_gone_is_said_and_forgotten() {
    let Some(_machine) = machine() else { return };
    let mut namespaces = Namespaces::new(2);
    let gone = namespaces.0.remove(0);
    done(&format!("attach theta-powertcp --netns {gone} --netns {}", namespaces.0[0]));
    succeed(&format!("ip netns del {gone}"));
    let status = done("status");
    assert!(status.contains(", which is gone: theta-powertcp\n"), "{status}");
    assert_eq!(status.matches("default of namespace").count(), 1, "{status}");
    done(&format!("attach theta-powertcp --netns {}", namespaces.0[0]));
    let status = done("status");
    assert!(!status.contains("which is gone"), "{status}");
    // The last namespace that exists: the algorithm is removed with it.
    succeed(&format!("ip netns del {}", namespaces.0[0]));
    namespaces.0.clear();
    done("detach theta-powertcp --unused");
    done("detach theta-powertcp --unused");
    assert!(!Path::new("/sys/fs/bpf/fairrate").exists());
    assert!(clean::is_clean());
}
