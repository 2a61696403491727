//! From `config.txt` to a scenario. Settings that the ns-3 code and the profile `"ns3"` have in common need no key.

use std::fmt::Write as _;

use fairrate_sim::FileError;
use fairrate_units::{Rate, Time};

use super::{Config, MODES};

/// A run of the ns-3 code as a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario, which names `topology.txt` and `flow.txt`.
    pub scenario: String,
    /// Parts of the run that the scenario lacks, a sentence each.
    pub left_out: Vec<String>,
}

/// Settings that a scenario needs not, as they only name files or say what is printed.
const OF_OUTPUT: [&str; 8] = [
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "ENABLE_TRACE",
];

/// Settings that are carried over, or that are without effect under the algorithm.
const UNDERSTOOD: [&str; 36] = [
    "ENABLE_QCN",
    "USE_DYNAMIC_PFC_THRESHOLD",
    "PACKET_PAYLOAD_SIZE",
    "SIMULATOR_STOP_TIME",
    "CC_MODE",
    "ALPHA_RESUME_INTERVAL",
    "RATE_DECREASE_INTERVAL",
    "CLAMP_TARGET_RATE",
    "RP_TIMER",
    "EWMA_GAIN",
    "FAST_RECOVERY_TIMES",
    "RATE_AI",
    "RATE_HAI",
    "MIN_RATE",
    "DCTCP_RATE_AI",
    "ERROR_RATE_PER_LINK",
    "L2_CHUNK_SIZE",
    "L2_ACK_INTERVAL",
    "L2_BACK_TO_ZERO",
    "HAS_WIN",
    "GLOBAL_T",
    "VAR_WIN",
    "FAST_REACT",
    "U_TARGET",
    "MI_THRESH",
    "INT_MULTI",
    "MULTI_RATE",
    "SAMPLE_FEEDBACK",
    "PINT_LOG_BASE",
    "PINT_PROB",
    "RATE_BOUND",
    "ACK_HIGH_PRIO",
    "LINK_DOWN",
    "KMAX_MAP",
    "KMIN_MAP",
    "PMAX_MAP",
];

/// A scenario under construction: its sections, and what it lacks.
struct Draft<'a> {
    config: &'a Config,
    /// Keys before all sections.
    top: String,
    switch: String,
    transport: String,
    algorithm: String,
    routing: String,
    faults: String,
    left_out: Vec<String>,
}

/// Returns the run `name` as a scenario.
///
/// # Errors
/// If a setting has no sense, or asks for what fairrate does not have: HPCC-PINT. The error is about `config.txt`.
pub fn import(name: &str, config: &Config) -> Result<Imported, FileError> {
    let mode = config.value("CC_MODE")?.unwrap_or(1);
    let Some(&(_, cc)) = MODES.iter().find(|(number, _)| *number == mode) else {
        let what = if mode == 10 { "HPCC-PINT" } else { "an unknown algorithm" };
        let help = "fairrate has 1 (DCQCN), 3 (HPCC), 7 (TIMELY) and 8 (DCTCP)";
        return Err(config.error("CC_MODE", format!("`CC_MODE {mode}` is {what}")).help(help));
    };
    let mut draft = Draft {
        config,
        top: String::new(),
        switch: String::new(),
        transport: format!("cc = \"{cc}\"\n"),
        algorithm: String::new(),
        routing: String::new(),
        faults: String::new(),
        left_out: Vec::new(),
    };
    draft.run()?;
    draft.switches()?;
    draft.hosts()?;
    draft.algorithm(cc)?;
    draft.failures()?;
    draft.rest(cc);
    Ok(draft.finish(name, cc))
}

impl Draft<'_> {
    /// Returns `true` if a switch of the file is on, `default` without it.
    fn is_on(&self, name: &str, default: bool) -> Result<bool, FileError> {
        match self.config.value::<u32>(name)? {
            None => Ok(default),
            Some(value @ (0 | 1)) => Ok(value == 1),
            Some(value) => Err(self.config.error(name, format!("`{name}` is 0 or 1, and not {value}"))),
        }
    }

    /// Returns the rate of a setting such as `50Mb/s`.
    fn rate(&self, name: &str) -> Result<Option<Rate>, FileError> {
        let Some(text) = self.config.value::<String>(name)? else { return Ok(None) };
        let words = text.strip_suffix("b/s").map_or_else(|| text.clone(), |number| format!("{number}bps"));
        let wrong = |_| self.config.error(name, format!("`{}` is no rate for `{name}`", text.escape_debug()));
        words.parse().map(Some).map_err(wrong)
    }

    fn lacks(&mut self, sentence: impl Into<String>) {
        self.left_out.push(sentence.into());
    }

    fn run(&mut self) -> Result<(), FileError> {
        let stop_s: f64 = self.config.value("SIMULATOR_STOP_TIME")?.unwrap_or(3.01);
        if !(0.0 < stop_s && stop_s < 1e6) {
            let message = format!("a run of {stop_s} s has no sense");
            return Err(self.config.error("SIMULATOR_STOP_TIME", message));
        }
        let stop = Time::from_secs_f64(stop_s);
        let _ = writeln!(self.top, "duration = \"{stop}\"\nstop = \"all-flows-done\"");
        Ok(())
    }

    fn switches(&mut self) -> Result<(), FileError> {
        let megabytes: u64 = self.config.value("BUFFER_SIZE")?.unwrap_or(16);
        let _ = writeln!(self.switch, "buffer = \"{megabytes}MiB\"");
        if !self.is_on("USE_DYNAMIC_PFC_THRESHOLD", true)? {
            self.lacks("Fixed PFC thresholds (`USE_DYNAMIC_PFC_THRESHOLD 0`): here they are dynamic.");
        }
        if self.is_on("ENABLE_QCN", true)? {
            self.marks()
        } else {
            self.switch.push_str("ecn = false\n");
            Ok(())
        }
    }

    /// Writes ECN's thresholds, which the file has for several rates. Those in proportion to the rate are one key.
    fn marks(&mut self) -> Result<(), FileError> {
        let maps = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"].map(|name| self.map(name));
        let [kmin, kmax, pmax] = maps;
        let (kmin, kmax, pmax) = (kmin?, kmax?, pmax?);
        let (Some(&(rate, least)), Some(&(_, most)), Some(&(_, chance))) = (kmin.first(), kmax.first(), pmax.first())
        else {
            return Ok(());
        };
        let scales =
            |map: &[(f64, f64)]| map.iter().all(|&(at, value)| (value * rate - map[0].1 * at).abs() < 1e-6 * at);
        let is_plain = scales(&kmin)
            && scales(&kmax)
            && pmax.iter().all(|&(_, value)| value == chance)
            && kmax[0].0 == rate
            && pmax[0].0 == rate;
        if !is_plain {
            self.lacks(format!(
                "ECN thresholds that are not in proportion to rates (`KMIN_MAP` and the others): those of {} are scaled.",
                Rate::from_bps_f64(rate)
            ));
        }
        let per = Rate::from_bps_f64(rate);
        let _ = writeln!(
            self.switch,
            "ecn = {{ kmin = \"{least}KB\", kmax = \"{most}KB\", pmax = {chance:?}, per = \"{per}\", at = \"dequeue\" }}"
        );
        Ok(())
    }

    /// Returns a map from rates, in bit/s, as `KMIN_MAP 2 25000000000 100 100000000000 400`.
    fn map(&self, name: &str) -> Result<Vec<(f64, f64)>, FileError> {
        let Some((_, values)) = self.config.values(name) else { return Ok(Vec::new()) };
        let wrong =
            |word: &str| self.config.error(name, format!("`{}` is no number for `{name}`", word.escape_debug()));
        let numbers =
            values.iter().map(|word| word.parse::<f64>().ok().filter(|x| 0.0 <= *x).ok_or_else(|| wrong(word)));
        let numbers = numbers.collect::<Result<Vec<f64>, FileError>>()?;
        match numbers.split_first() {
            Some((&n, pairs)) if pairs.len() as f64 == 2.0 * n && pairs.chunks(2).all(|pair| 1.0 <= pair[0]) => {
                Ok(pairs.chunks(2).map(|pair| (pair[0], pair[1])).collect())
            }
            _ => {
                let message =
                    format!("`{name}` is a number of pairs, and as many pairs of a rate in bit/s and a value");
                Err(self.config.error(name, message))
            }
        }
    }

    fn hosts(&mut self) -> Result<(), FileError> {
        if let Some(bytes) = self.config.value::<u16>("PACKET_PAYLOAD_SIZE")? {
            let _ = writeln!(self.transport, "mtu = \"{bytes}B\"");
        }
        match (self.is_on("HAS_WIN", true)?, self.is_on("VAR_WIN", false)?) {
            (false, _) => self.transport.push_str("window = \"none\"\n"),
            (true, true) => self.transport.push_str("window = \"rate-scaled\"\n"),
            (true, false) => {
                self.transport.push_str("window = \"rate-scaled\"\n");
                self.lacks(
                    "Windows of a fixed size (`VAR_WIN 0`): here they follow the rate. Set `window` to the network's bandwidth-delay product for those.",
                );
            }
        }
        if !self.is_on("GLOBAL_T", true)? {
            self.lacks(
                "Base RTTs by pair of hosts (`GLOBAL_T 0`): here all flows have that of the network, or `base_rtt`.",
            );
        }
        if self.is_on("ACK_HIGH_PRIO", false)? {
            self.transport.push_str("ack_class = 1\n");
        }
        if !self.is_on("RATE_BOUND", true)? {
            self.lacks("Windows without pacing (`RATE_BOUND 0`): here senders are paced.");
        }
        if self.is_on("L2_BACK_TO_ZERO", false)? {
            self.lacks("Recovery from the start of a chunk (`L2_BACK_TO_ZERO 1`): here it is go-back-N.");
        }
        if self.config.value::<u32>("L2_ACK_INTERVAL")?.is_some_and(|n| 1 < n) {
            self.lacks("An acknowledgment for several packets (`L2_ACK_INTERVAL`): here each has its own.");
        }
        Ok(())
    }

    /// Writes a parameter of the algorithm, if the file sets it.
    fn parameter(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            let _ = writeln!(self.algorithm, "{key} = {value}");
        }
    }

    /// Writes a rate as a parameter, if the file sets it.
    fn rate_parameter(&mut self, key: &str, name: &str) -> Result<(), FileError> {
        let rate = self.rate(name)?.map(|rate| format!("\"{rate}\""));
        self.parameter(key, rate);
        Ok(())
    }

    /// Writes a number of microseconds as a parameter, if the file sets it.
    fn time_parameter(&mut self, key: &str, name: &str) -> Result<(), FileError> {
        let us: Option<f64> = self.config.value(name)?;
        self.parameter(key, us.map(|us| format!("\"{}\"", Time::from_secs_f64(us * 1e-6))));
        Ok(())
    }

    fn algorithm(&mut self, cc: &str) -> Result<(), FileError> {
        let gain = self.config.value::<f64>("EWMA_GAIN")?.map(|gain| format!("{gain:?}"));
        match cc {
            "dcqcn" => {
                self.time_parameter("alpha_interval", "ALPHA_RESUME_INTERVAL")?;
                self.time_parameter("decrease_interval", "RATE_DECREASE_INTERVAL")?;
                self.time_parameter("increase_interval", "RP_TIMER")?;
                let clamp = self.is_on("CLAMP_TARGET_RATE", false)?;
                self.parameter("always_clamp_target", Some(clamp));
                self.parameter("g", gain);
                let steps = self.config.value::<u32>("FAST_RECOVERY_TIMES")?;
                self.parameter("fast_recovery", steps);
                self.rate_parameter("ai", "RATE_AI")?;
                self.rate_parameter("hai", "RATE_HAI")?;
            }
            "hpcc" => {
                let eta = self.config.value::<f64>("U_TARGET")?.map(|eta| format!("{eta:?}"));
                self.parameter("eta", eta);
                let stages = self.config.value::<u32>("MI_THRESH")?;
                self.parameter("max_stage", stages);
                let per_ack = self.is_on("FAST_REACT", true)?;
                self.parameter("fast_react", Some(per_ack));
                self.rate_parameter("additive_increase", "RATE_AI")?;
                if self.is_on("MULTI_RATE", true)? {
                    self.lacks("A rate for each hop (`MULTI_RATE 1`): here there is one.");
                }
                if self.is_on("SAMPLE_FEEDBACK", false)? {
                    self.lacks("Telemetry once a round trip (`SAMPLE_FEEDBACK 1`): here every packet has it.");
                }
            }
            "timely" => {
                self.rate_parameter("ai", "RATE_AI")?;
                self.rate_parameter("hai", "RATE_HAI")?;
            }
            _ => {
                self.parameter("g", gain);
                self.rate_parameter("ai", "DCTCP_RATE_AI")?;
            }
        }
        self.rate_parameter("min_rate", "MIN_RATE")?;
        if matches!(cc, "dcqcn" | "timely") && self.is_on("HAS_WIN", true)? && self.is_on("VAR_WIN", false)? {
            self.parameter("windowed", Some(true));
        }
        Ok(())
    }

    fn failures(&mut self) -> Result<(), FileError> {
        let loss: f64 = self.config.value("ERROR_RATE_PER_LINK")?.unwrap_or(0.0);
        if !(0.0..1.0).contains(&loss) {
            return Err(self.config.error("ERROR_RATE_PER_LINK", format!("{loss} is no probability of a loss")));
        }
        if 0.0 < loss {
            let _ = write!(self.faults, "\n[[fault]]\nlinks = \"*->*\"\nloss = {loss:?}\n");
        }
        let none = ["0"; 3].map(str::to_owned);
        let values = self.config.values("LINK_DOWN").map_or(&none[..], |(_, values)| values);
        let numbers: Option<Vec<u64>> = values.iter().map(|word| word.parse().ok()).collect();
        let Some([at_us, a, b]) = numbers.as_deref() else {
            let message = "`LINK_DOWN` is a time in microseconds and two nodes".to_owned();
            return Err(self.config.error("LINK_DOWN", message));
        };
        if 0 < *at_us {
            // The ns-3 code adds two seconds, and finds new routes at once.
            let down_at = Time::from_us(*at_us).saturating_add(Time::from_ms(2_000));
            let _ = write!(self.faults, "\n[[fault]]\nlinks = \"{a}->{b}\"\ndown_at = \"{down_at}\"\n");
            self.routing.push_str("\n[routing]\nreroute_delay = \"0s\"\n");
        }
        if !self.faults.is_empty() {
            self.transport.push_str("rto = \"4ms\"\n");
            self.lacks(
                "Senders without a timeout: a last packet that is lost is never sent again there. Here `rto` is 4 ms.",
            );
        }
        Ok(())
    }

    /// Lists what has no place in a scenario.
    fn rest(&mut self, cc: &str) {
        if cc == "hpcc" {
            self.lacks(
                "The algorithm's name in forks: PowerTCP's code has `CC_MODE 3` and options for PowerTCP; set `cc = \"powertcp\"` or `\"theta-powertcp\"` for those.",
            );
        }
        let has = |name: &str| self.config.values(name).is_some();
        if has("QLEN_MON_START") || has("QLEN_MON_END") {
            self.lacks("Queue lengths (`QLEN_MON_START`): add a `[[probe]]` with `queues`.");
        }
        let known = |name: &str| {
            OF_OUTPUT.contains(&name)
                || UNDERSTOOD.contains(&name)
                || ["BUFFER_SIZE", "QLEN_MON_START", "QLEN_MON_END"].contains(&name)
        };
        let others: Vec<String> =
            self.config.names().filter(|name| !known(name)).map(|name| format!("`{name}`: not known.")).collect();
        self.left_out.extend(others);
    }

    fn finish(self, name: &str, cc: &str) -> Imported {
        let Self { top, switch, transport, algorithm, routing, faults, left_out, .. } = self;
        let mut text = format!("# The run {name} of HPCC's ns-3 code.");
        if !left_out.is_empty() {
            text.push_str(" Not carried over:");
            for sentence in &left_out {
                let _ = write!(text, "\n# - {sentence}");
            }
        }
        let _ = write!(
            text,
            "\nprofile = \"ns3\"\n{top}\n[topology]\nkind = \"file\"\npath = \"topology.txt\"\n\n[switch]\n{switch}{routing}\n\
             [transport]\n{transport}\n[transport.{cc}]\n{algorithm}\n[[traffic]]\nkind = \"list\"\npath = \"flow.txt\"\n{faults}"
        );
        Imported { scenario: text, left_out }
    }
}
