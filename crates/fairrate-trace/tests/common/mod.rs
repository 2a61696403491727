//! Traced runs.
#![allow(dead_code)] // Not every test needs all of it.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{Both, FlowOutcome, Observation, RunTotals, SimConfig, Simulation, Sink};
use fairrate_trace::{Counts, End, Filter, Format, Network, Output, Pcapng, Tracer};

/// A file in memory.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A run with its trace.
pub struct Traced {
    pub file: Vec<u8>,
    pub totals: RunTotals,
    pub counts: Counts,
    pub end: End,
    /// Payload bytes that were sent again.
    pub retransmitted: u64,
    /// Frames that pause or resume.
    pub n_pauses: u64,
}

/// Eight flows of 100 KB from the hosts 1 to 8 meet at the port to host 0, whose switch drops or trims what does not
/// fit where no algorithm of lossless networks is meant.
pub fn config(transport: &str) -> SimConfig {
    let is_lossy = ["tcp", "nscc"].iter().any(|name| transport.contains(name)) && !transport.contains("powertcp");
    let trims = if transport.contains("nscc") { "trim = true\n" } else { "" };
    let switch = if is_lossy { format!("[switch]\npfc = false\nbuffer = \"100KB\"\n{trims}") } else { String::new() };
    let switch = if transport.contains("line-rate") { "[switch]\nbuffer = \"300KB\"\n".to_owned() } else { switch };
    let toml = format!(
        "stop = \"all-flows-done\"\n[topology]\nkind = \"star\"\nhosts = 9\nrate = \"25Gbps\"\n{switch}[transport]\n{transport}\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsenders = 8\nbytes = \"100KB\"\n"
    );
    let scenario = Scenario::from_toml(&toml, "test.toml", Path::new("."), &Overrides::default());
    scenario.expect("the scenario is right").into_sim_config()
}

/// A sink that notes what the trace is held against.
#[derive(Default)]
struct Noting {
    retransmitted: u64,
    n_pauses: u64,
}

impl Sink for Noting {
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.retransmitted += outcome.retransmitted_bytes;
    }
    fn observe(&mut self, observation: &Observation) {
        self.n_pauses += u64::from(matches!(observation, Observation::Pfc(_)));
    }
}

/// Runs the scenario under `transport` and traces it into a capture.
pub fn trace(transport: &str, filter: Filter, limit: u64) -> Traced {
    let begin = |network, out| Box::new(Pcapng::new(network, out, "a test").unwrap()) as Box<dyn Format>;
    trace_into(&config(transport), begin, filter, limit)
}

/// Runs `config` and traces it.
pub fn trace_into(
    config: &SimConfig,
    begin: impl Fn(Network, Output) -> Box<dyn Format>,
    filter: Filter,
    limit: u64,
) -> Traced {
    let file = Shared::default();
    let format = begin(Network::new(config), Output::new(Box::new(file.clone()), limit));
    let (mut tracer, mut noting) = (Tracer::new(format, filter), Noting::default());
    let mut simulation = Simulation::new(config.clone());
    simulation.run(&mut Both(&mut tracer, &mut noting)).expect("the run does not stall");
    let (counts, bytes, end) = tracer.finish().expect("memory can be written");
    let file = file.0.lock().unwrap().clone();
    assert_eq!(file.len() as u64, bytes);
    let Noting { retransmitted, n_pauses } = noting;
    Traced { file, totals: simulation.totals(), counts, end, retransmitted, n_pauses }
}
