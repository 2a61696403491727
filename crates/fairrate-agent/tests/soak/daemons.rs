//! The daemons and what they use.

use crate::network::Network;
use crate::rack::Running;

/// The daemons that run.
pub struct Daemons {
    pub agents: Vec<Running>,
    pub allocators: Vec<Running>,
}

/// The memory and the descriptors of a daemon at a time.
pub struct Use {
    pub name: String,
    pub process: u32,
    pub rss_kib: u64,
    pub descriptors: u64,
}

impl Daemons {
    /// Starts all daemons.
    pub fn start(network: &Network) -> Self {
        Self {
            allocators: network.allocators().map(|host| network.start_allocator(host)).into(),
            agents: (0..network.hosts()).map(|host| network.start_agent(host)).collect(),
        }
    }

    /// Returns what each daemon uses. One that has ended is left out.
    pub fn uses(&self) -> Vec<Use> {
        let agents = self.agents.iter().enumerate().map(|(at, running)| (format!("agent {at}"), running.id()));
        let allocators =
            self.allocators.iter().enumerate().map(|(at, running)| (format!("allocator {}", at + 1), running.id()));
        agents.chain(allocators).filter_map(|(name, process)| Use::of(name, process)).collect()
    }
}

impl Use {
    fn of(name: String, process: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let rss_kib = rss.trim().split(' ').next()?.parse().ok()?;
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?.count() as u64;
        Some(Self { name, process, rss_kib, descriptors })
    }
}
