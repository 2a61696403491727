//! The network: a star of hosts with agents, and two more hosts with an allocator each.

use std::fs::OpenOptions;
use std::ops::Deref;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::rack::{Rack, Running, allocator_program, until};

/// Rate of a link, in Mb/s: little enough that two cores carry the hosts' packets.
pub const LINK_MBPS: u32 = 20;
/// Share of a rate on the wire that is payload, as in the agent's configuration.
pub const PAYLOAD_SHARE: f64 = 1448.0 / 1538.0;
/// Port of allocators, and of the metrics of allocators and agents.
const PORT: u16 = 4_600;
const METRICS: u16 = 9_460;

/// The network and the programs' files.
pub struct Network {
    rack: Rack,
    hosts: u32,
    out: PathBuf,
}

impl Deref for Network {
    type Target = Rack;

    fn deref(&self) -> &Rack {
        &self.rack
    }
}

impl Network {
    /// Lays out a star of `hosts` hosts and the two of the allocators. Logs of the daemons go to `out`.
    pub fn new(hosts: u32, out: &Path) -> Self {
        let senders: Vec<u32> = (1..hosts + 2).collect();
        let network = format!(
            "[topology]\nkind = \"star\"\nhosts = {}\nrate = \"{LINK_MBPS}Mbps\"\ndelay = \"0s\"\n[switch]\npfc = false\n\
             dt_alpha = \"unlimited\"\nbuffer = \"3MB\"\nqueue_limit = \"100KB\"\n[transport]\nkind = \"tcp\"\ncc = \"cubic\"\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = {senders:?}\nbytes = \"1MB\"\n",
            hosts + 2
        );
        Self { rack: Rack::of(&network, 0), hosts, out: out.to_owned() }
    }

    /// Returns the number of hosts with agents.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the hosts of the two allocators.
    pub fn allocators(&self) -> [u32; 2] {
        [self.hosts, self.hosts + 1]
    }

    /// Starts the allocator of a host.
    pub fn start_allocator(&self, host: u32) -> Running {
        let text = format!(
            "listen = \"{0}:{PORT}\"\nmetrics = \"{0}:{METRICS}\"\ninsecure = true\ninsecure_beyond_loopback = true\n\
             hosts = \"{1}+\"\nquorum = {{ agents = {2} }}\nengine = {{ interval = \"1ms\" }}\n\
             [topology]\nkind = \"star\"\nhosts = {3}\nrate = \"{LINK_MBPS}Mbps\"\n",
            Rack::address(host),
            Rack::address(0),
            self.hosts,
            self.hosts + 2
        );
        self.daemon(host, &allocator_program(), &format!("allocator-{host}"), &text)
    }

    /// Starts the agent of a host.
    pub fn start_agent(&self, host: u32) -> Running {
        let servers = self.allocators().map(|host| format!("\"{}:{PORT}\"", Rack::address(host))).join(", ");
        let text = format!(
            "fabric = [\"10.0.0.0/16\"]\nmetrics = \"{}:{METRICS}\"\nallocator = {{ servers = [{servers}], insecure = true }}\n",
            Rack::address(host)
        );
        self.daemon(host, Path::new(env!("CARGO_BIN_EXE_fairrate-agent")), &format!("agent-{host}"), &text)
    }

    fn daemon(&self, host: u32, program: &Path, name: &str, text: &str) -> Running {
        let log = self.out.join(format!("{name}.log"));
        let log = OpenOptions::new().create(true).append(true).open(log).expect("the log can be written");
        let file = self.write(&format!("{name}.toml"), text);
        self.start(host, program, &file, |command| {
            // A Ctrl-C is for the soak, which ends them.
            command.stderr(Stdio::from(log)).process_group(0);
        })
    }

    /// Waits until both allocators have all agents, and one of them decides.
    pub fn wait_for_agents(&self) {
        let all = f64::from(self.hosts);
        let has_all = |host: &u32| self.metric(*host, METRICS, "fairrate_agents") == all;
        until("all agents are there", || self.allocators().iter().all(has_all));
        until("an allocator decides", || self.decider().is_some());
    }

    /// Returns the position of the allocator that decides.
    pub fn decider(&self) -> Option<usize> {
        self.allocators().iter().position(|host| self.metric(*host, METRICS, "fairrate_decides") == 1.0)
    }

    /// Drops all packets between two hosts at the switch, or lets them pass again.
    pub fn cut(&self, a: u32, b: u32, cut: Cut) {
        let verb = match cut {
            Cut::Make => "add",
            Cut::Mend => "del",
        };
        for (from, to) in [(a, b), (b, a)] {
            let (from, to) = (Rack::address(from).to_string(), Rack::address(to).to_string());
            self.ip(&["rule", verb, "from", &from, "to", &to, "blackhole"]);
        }
    }

    /// Takes the link of a host down at the switch, or up again.
    pub fn link(&self, host: u32, cut: Cut) {
        // Each host has one link; its end at the switch is the second of the two.
        let device = format!("p{}", 2 * host + 1);
        match cut {
            Cut::Make => self.ip(&["link", "set", &device, "down"]),
            Cut::Mend => {
                self.ip(&["link", "set", &device, "up"]);
                // The kernel forgets the routes of a link that is down.
                self.ip(&["route", "replace", &format!("{}/32", Rack::address(host)), "dev", &device]);
            }
        }
    }

    fn ip(&self, args: &[&str]) {
        let status = Command::new("ip").args(["-n", &self.namespace(self.hosts + 2)]).args(args).status();
        assert!(status.expect("ip runs").success(), "ip {args:?}");
    }
}

/// The beginning or the end of a partition.
#[derive(Clone, Copy)]
pub enum Cut {
    Make,
    Mend,
}
