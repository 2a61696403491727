//! The scenario in the form that the testbed runs: rates scaled, and everything as Linux does it, so that the simulator
//! can run the same.
//!
//! A [`Field`] stores the file and the changes to it. The changes are those of the user, then the scale, then the facts
//! of TCP and queues on Linux, and at last the measured delays.

use std::path::PathBuf;

use fairrate_control::Registry;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::SimConfig;
use fairrate_units::{Bytes, Rate, Time};

use crate::failure::Failure;
use crate::{blocks, classes, delay};

/// Payload of a full packet: an MTU of 1,500 bytes without the headers of IP and TCP and without timestamps.
pub const MSS: u64 = 1_448;
/// Bytes of a packet beside its payload, including Ethernet's header. An acknowledgment has no others.
pub const HEADER: u64 = 66;
/// Length of a full packet as queueing disciplines count it.
pub const FULL_PACKET: u64 = MSS + HEADER;

/// The shortest time between two samples: the cost of a sample must not matter.
pub const LEAST_INTERVAL: Time = Time::from_ms(1);

/// A scenario file and the changes to it.
#[derive(Clone, Debug)]
pub struct Field {
    file: PathBuf,
    user: Overrides,
    sets: Vec<(String, String)>,
    /// Features of the scenario that the testbed does not have, as text for people.
    pub notes: Vec<String>,
}

impl Field {
    /// Creates the scenario of a file with the user's changes, and all its rates multiplied by `scale`. `is_warm`:
    /// connections are used before the start.
    ///
    /// # Errors
    /// If the scenario is wrong, or the testbed cannot run it.
    pub fn new(file: PathBuf, user: Overrides, scale: f64, is_warm: bool) -> Result<Self, Failure> {
        let mut field = Self { file, user, sets: Vec::new(), notes: Vec::new() };
        let asked = field.load()?;
        field.sets.extend(scaled_rates(&asked, scale)?);
        let scaled = field.load()?;
        crate::fit::check(&scaled)?;
        field.notes = crate::fit::notes(&scaled);
        field.sets.extend(facts_of_linux(scaled.sim_config(), is_warm));
        field.sets.extend(unmarkable_passes(&scaled)?);
        field.sets.extend(slower_probes(&scaled)?);
        crate::blocks::check(&field.load()?)?;
        crate::classes::check(&field.load()?)?;
        Ok(field)
    }

    /// Returns the scenario with all changes so far.
    ///
    /// # Errors
    /// If the scenario is wrong, for instance because its file has changed.
    pub fn load(&self) -> Result<Scenario, Failure> {
        let sets = self.user.sets.iter().chain(&self.sets).cloned().collect();
        let overrides = Overrides { sets, ..self.user.clone() };
        Ok(Scenario::with_algorithms(&Registry::new()).load(&self.file, &overrides)?)
    }

    /// Sets every link's delay to `besides` plus its laid-out delay, if it has one.
    ///
    /// # Errors
    /// The errors of [`Field::load`].
    pub fn set_delay(&mut self, besides: Time) -> Result<(), Failure> {
        let topology = topology_keys(&self.load()?)?;
        let delays = topology.iter().filter(|(key, _)| is_of(key, "delay"));
        let with_own = |(key, asked): (&String, &toml::Value)| {
            let asked =
                asked.as_str().and_then(|text| text.parse::<Time>().ok()).filter(|asked| delay::is_laid_out(*asked));
            let delay = asked.unwrap_or(Time::ZERO) + besides;
            (format!("topology.{key}"), format!("\"{}ns\"", delay.as_ns()))
        };
        self.sets.extend(delays.map(with_own));
        Ok(())
    }
}

/// Returns the scenario with every default, as a table.
fn resolved(scenario: &Scenario) -> Result<toml::Table, Failure> {
    scenario.to_toml().parse().map_err(|e| Failure::system("reading the resolved scenario", e))
}

/// Returns the keys of `[topology]`.
fn topology_keys(scenario: &Scenario) -> Result<toml::Table, Failure> {
    let table = resolved(scenario)?;
    Ok(table.get("topology").and_then(toml::Value::as_table).cloned().unwrap_or_default())
}

/// Returns new intervals for probes whose interval is shorter than is possible here.
fn slower_probes(scenario: &Scenario) -> Result<Vec<(String, String)>, Failure> {
    let table = resolved(scenario)?;
    let probes = table.get("probe").and_then(toml::Value::as_array).into_iter().flatten().enumerate();
    let too_often = |probe: &toml::Value| {
        let every = probe.get("every").and_then(toml::Value::as_str).and_then(|text| text.parse::<Time>().ok());
        every.is_some_and(|every| every < LEAST_INTERVAL)
    };
    let slower = |i: usize| (format!("probe.{i}.every"), format!("\"{}ns\"", LEAST_INTERVAL.as_ns()));
    Ok(probes.filter(|(_, probe)| too_often(probe)).map(|(i, _)| slower(i)).collect())
}

/// Returns the marking with packets that cannot be marked passing, as the marker of `fairrate-kernel` lets them;
/// nothing if there is one algorithm, or no marker.
fn unmarkable_passes(scenario: &Scenario) -> Result<Option<(String, String)>, Failure> {
    let config = scenario.sim_config();
    if blocks::algorithms(config).count() < 2 || !crate::algorithm::marks(config) {
        return Ok(None);
    }
    let table = resolved(scenario)?;
    let ecn = table.get("switch").and_then(|switch| switch.get("ecn")).and_then(toml::Value::as_table);
    let passing = |ecn: &toml::Table| {
        let given =
            ecn.iter().filter(|(key, _)| *key != "non_ect").map(|(key, value)| format!("{key} = {}", text(value)));
        let keys: Vec<String> = given.chain(["non_ect = \"ignore\"".to_owned()]).collect();
        ("switch.ecn".to_owned(), format!("{{ {} }}", keys.join(", ")))
    };
    Ok(ecn.map(passing))
}

/// Returns a text, a number or a truth value as TOML.
fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("\"{text}\""),
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Float(x) => format!("{x:?}"),
        other => other.as_bool().unwrap_or_default().to_string(),
    }
}

/// Returns `true` if `key` is `quantity` or ends with it after an underscore, for instance `rate` or `host_rate`.
fn is_of(key: &str, quantity: &str) -> bool {
    key == quantity || key.strip_suffix(quantity).is_some_and(|start| start.ends_with('_'))
}

/// Returns the keys of the topology's rates, each multiplied by `scale`.
fn scaled_rates(scenario: &Scenario, scale: f64) -> Result<Vec<(String, String)>, Failure> {
    if scale == 1.0 {
        return Ok(Vec::new());
    }
    let topology = topology_keys(scenario)?;
    if topology.get("kind").and_then(toml::Value::as_str) == Some("file") {
        let help = "change the rates in the file, or leave `--scale` out".to_owned();
        return Err(Failure::Usage { message: "`--scale` does not reach into topology files".to_owned(), help });
    }
    let scaled = |text: &str| text.parse::<Rate>().ok().map(|rate| format!("\"{}bps\"", scaled(rate, scale).as_bps()));
    let changed = topology.iter().filter_map(|(key, value)| {
        let value = match value {
            toml::Value::String(text) if is_of(key, "rate") => scaled(text)?,
            toml::Value::Array(rates) if is_of(key, "rates") => {
                let each: Option<Vec<String>> = rates.iter().map(|rate| scaled(rate.as_str()?)).collect();
                format!("[{}]", each?.join(", "))
            }
            _ => return None,
        };
        Some((format!("topology.{key}"), value))
    });
    Ok(changed.collect())
}

fn scaled(rate: Rate, scale: f64) -> Rate {
    Rate::from_bps_f64((rate.as_bps_f64() * scale).round())
}

/// Returns the largest number of bytes that may wait at an egress port of a switch; where classes have weights, of one
/// class: those that it has there alone.
pub fn port_limit(config: &SimConfig) -> Bytes {
    let fabric = &config.fabric;
    match fabric.egress_alpha {
        Some(alpha) if classes::have_weights(config) => {
            Bytes::new((fabric.buffer.as_u64() as f64 * alpha / (1.0 + alpha)).round() as u64)
        }
        _ => fabric.queue.limit_bytes.min(fabric.buffer),
    }
}

/// Part of a shared buffer that a class may have, so that others hardly change its limit.
const PART: u64 = 1_024;

/// Returns the keys of the switches' buffers. A port has a limit of its own. Classes with weights have none in
/// scenarios: there the buffer is large, and a class may have a small part of it.
fn limits(config: &SimConfig) -> Vec<(String, String)> {
    let limit = port_limit(config);
    let ports = config.topology.n_ports() as u64;
    // Large enough that no port has to share its limit with another.
    let shared = Bytes::new((limit.as_u64() + 2 * FULL_PACKET).saturating_mul(ports));
    let set = |key: &str, value: String| (key.to_owned(), value);
    if !classes::have_weights(config) {
        return vec![
            set("switch.buffer", size(shared)),
            set("switch.queue_limit", size(limit)),
            set("switch.queue_packets", "unlimited".to_owned()),
            set("switch.queue", "fifo".to_owned()),
            set("switch.egress_alpha", "unlimited".to_owned()),
        ];
    }
    let alpha = format!("{:?}", 1.0 / (PART - 1) as f64);
    let mut sets = vec![
        set("switch.buffer", size(Bytes::new(limit.as_u64().saturating_mul(PART)))),
        set("switch.egress_alpha", alpha.clone()),
    ];
    for i in 0..config.fabric.classes.len() {
        sets.push(set(&format!("class.{i}.dt_alpha"), "unlimited".to_owned()));
        sets.push(set(&format!("class.{i}.egress_alpha"), alpha.clone()));
    }
    sets
}

/// Returns the facts of Linux as keys of the scenario. Sources: `net/ipv4/tcp*.c` and `ip-sysctl.rst` of Linux.
fn facts_of_linux(config: &SimConfig, is_warm: bool) -> Vec<(String, String)> {
    // A transport has one payload: the shortest of its algorithms.
    let record = blocks::algorithms(config).map(|(_, cc)| crate::algorithm::record_bytes(cc)).max().unwrap_or(0);
    let mut sets = vec![
        ("transport.kind", "tcp".to_owned()),
        ("transport.mtu", size(Bytes::new(MSS - record))),
        ("transport.header", size(Bytes::new(HEADER + record))),
        ("transport.ack", size(Bytes::new(HEADER))),
        ("transport.data_overhead", "algorithm".to_owned()),
        ("transport.ack_overhead", "algorithm".to_owned()),
        ("transport.tcp.rto_min", "\"200ms\"".to_owned()),
        ("transport.tcp.rto_max", "\"120s\"".to_owned()),
        ("transport.tcp.clock_granularity", "\"1us\"".to_owned()),
        ("transport.tcp.loss_detection", "rack".to_owned()),
        ("transport.tcp.tail_loss_probe", "true".to_owned()),
        ("transport.tcp.delayed_ack", "2".to_owned()),
        ("transport.tcp.delayed_ack_timeout", "\"40ms\"".to_owned()),
        ("transport.tcp.idle_restart", "true".to_owned()),
        ("transport.tcp.prr", "true".to_owned()),
        ("switch.pfc", "false".to_owned()),
        ("switch.dt_alpha", "unlimited".to_owned()),
    ];
    if !crate::algorithm::marks(config) {
        sets.push(("switch.ecn", "false".to_owned()));
    }
    let mut used = blocks::algorithms(config).map(|(_, cc)| cc);
    if used.any(|cc| crate::algorithm::of_kernel(cc).is_none()) {
        // The window of `fairrate-kernel`'s algorithms is never smaller.
        sets.push(("transport.tcp.min_window", "2".to_owned()));
    }
    if blocks::algorithms(config).any(|(_, cc)| cc.info().name == "cubic") {
        sets.extend([("transport.cubic.form", "linux".to_owned()), ("transport.cubic.hystart", "true".to_owned())]);
        sets.push(("transport.cubic.hystart_trains", "true".to_owned()));
        sets.push(("transport.cubic.knows_path", is_warm.to_string()));
    }
    if 1 < blocks::algorithms(config).count() {
        // Their sockets do not ask for ECN, whatever the switches do for another algorithm.
        let without = |name: &str| blocks::algorithms(config).any(|(_, cc)| cc.info().name == name);
        let keys = [("cubic", "transport.cubic.ecn"), ("newreno", "transport.newreno.ecn")];
        sets.extend(keys.into_iter().filter(|(name, _)| without(name)).map(|(_, key)| (key, "false".to_owned())));
    }
    let of_tcp = sets.into_iter().map(|(key, value)| (key.to_owned(), value));
    of_tcp.chain(limits(config)).collect()
}

fn size(bytes: Bytes) -> String {
    format!("\"{}B\"", bytes.as_u64())
}
