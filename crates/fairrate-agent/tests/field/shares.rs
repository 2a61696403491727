//! Weights of control groups.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::rack::{Rack, rates};

/// A control group of the test, removed with it.
pub struct Group(PathBuf);

impl Group {
    /// Makes the group; returns `None` if there are no groups of version 2.
    pub fn new() -> Option<Self> {
        let roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
        let root = roots.iter().map(Path::new).find(|root| root.join("cgroup.procs").exists())?;
        let path = root.join(format!("fr-test-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    /// Returns its directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Runs `work` with this process in the group: sockets that are made then belong to it.
    pub fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        let join = |group: &Path| std::fs::write(group.join("cgroup.procs"), std::process::id().to_string());
        join(&self.0).expect("root may join a group");
        let done = work();
        join(self.0.parent().expect("it lies in the root")).expect("root may leave a group");
        done
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The requirement: within 5 % of 2 to 1.
#[test]
fn a_group_of_weight_two_has_twice_the_rate() {
    let Some(group) = Group::new() else {
        println!("not run: needs control groups of version 2");
        return;
    };
    let more = format!("[[weight]]\ncgroup = \"{}\"\nweight = 2.0\n", group.path().display());
    let rack = Rack::new().with_agents([0, 1], &more);
    let gold = group.inside(|| rack.flow(0));
    let plain = rack.flow(1);
    std::thread::sleep(Duration::from_secs(1));
    let measured = rates(&[&gold, &plain], Duration::from_secs(2));
    let ratio = measured[0] / measured[1];
    println!("weights 2 and 1: {:.1} and {:.1} Mb/s, {ratio:.3} to 1", measured[0] / 1e6, measured[1] / 1e6);
    assert!((ratio / 2.0 - 1.0).abs() < 0.05, "{measured:?}");
    [gold, plain].into_iter().for_each(crate::rack::Flow::stop);
}
