//! Parser of `ALGORITHM[:parameter=value,...]`, from the command line to the bytes of a program in the kernel.

use bytemuck::bytes_of;
use fairrate_control::rocc::RoccConfig;
use fairrate_control::{ALGORITHMS, AlgorithmConfig, Parameters, Profile, RawValue, SetParamError};
use fairrate_units::{Bytes, Rate, Time};

use crate::classes::Dscp;
use crate::error::Error;
use crate::laws::{RoccPoint, RoccPortState};
use crate::params::{self, Path};

/// An algorithm that runs in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Its name for `TCP_CONGESTION`.
    pub tcp_name: &'static str,
    /// Its program at switch ports.
    pub port: PortProgram,
}

/// The program of an algorithm at a switch's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProgram {
    /// No program.
    None,
    /// A marker of packets that join a queue longer than the port's setting, in bytes.
    Marks,
    /// A marker of packets with the probability of queue over the port's setting, in bytes.
    MarksInProportion,
    /// A program that stamps telemetry; the port's setting is its rate in kb/s.
    Stamps,
    /// RoCC's congestion point; the port's setting is its rate in kb/s.
    CongestionPoint,
    /// A link of PERC, which answers control packets; the port's setting is its rate in kb/s.
    Link,
}

impl PortProgram {
    /// Returns `true` if the program runs before the port's queue; others run at the other end of the link.
    pub fn is_before_the_queue(self) -> bool {
        self.takes_bytes() || self == Self::Link
    }

    /// Returns `true` if the port's setting is a queue length; others take the port's rate.
    pub fn takes_bytes(self) -> bool {
        matches!(self, Self::Marks | Self::MarksInProportion)
    }
}

/// All algorithms that run in the kernel.
pub const IN_KERNEL: [Algorithm; 6] = [
    Algorithm { name: "theta-powertcp", tcp_name: "fr_theta", port: PortProgram::None },
    Algorithm { name: "powertcp", tcp_name: "fr_powertcp", port: PortProgram::Stamps },
    Algorithm { name: "rocc", tcp_name: "fr_rocc", port: PortProgram::CongestionPoint },
    Algorithm { name: "ratemp", tcp_name: "fr_ratemp", port: PortProgram::MarksInProportion },
    Algorithm { name: "dctcp", tcp_name: "fr_dctcp", port: PortProgram::Marks },
    Algorithm { name: "perc", tcp_name: "fr_perc", port: PortProgram::Link },
];

/// `NETNS/DEV:RATE` or `NETNS/DEV:BYTES`: an egress port of a switch, or for PERC of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSetting {
    /// The switch's network namespace.
    pub namespace: String,
    /// The device.
    pub device: String,
    /// A rate in kb/s or a queue length in bytes, as the algorithm's program requires.
    pub setting: u64,
    /// The class that alone counts for the program; `None`: all of the port.
    pub class: Option<Dscp>,
    /// State of RoCC's congestion point or PERC's link there, as bytes of its program.
    pub point: Option<Vec<u8>>,
}

impl PortSetting {
    /// Parses a port for an algorithm. A class whose telemetry counts alone follows as `@DSCP`.
    ///
    /// # Errors
    /// If the format is wrong, or the algorithm has no program for ports, or none for this port.
    pub fn parse(text: &str, setup: &Setup) -> Result<Self, Error> {
        let algorithm = setup.algorithm;
        let invalid = |message: String, help: &str| Error::Parameter {
            parameter: text.to_owned(),
            message,
            help: help.to_owned(),
        };
        let (what, example) = match algorithm.port {
            PortProgram::None => {
                let message = format!("`{}` does nothing at switches", algorithm.name);
                return Err(invalid(message, "leave --switch-port out"));
            }
            PortProgram::Marks => ("the queue length from which packets are marked", "switch/eth1:60KB"),
            PortProgram::MarksInProportion => ("the queue length at which every packet is marked", "switch/eth1:40KB"),
            PortProgram::Stamps | PortProgram::CongestionPoint | PortProgram::Link => {
                ("the port's rate", "switch/eth1:200Mbps")
            }
        };
        let help = format!("write it as {example}: the switch's network namespace, its device and {what}");
        let (place, setting) = text.rsplit_once(':').ok_or_else(|| invalid("there is no `:`".to_owned(), &help))?;
        let (namespace, device) = place.rsplit_once('/').ok_or_else(|| invalid("there is no `/`".to_owned(), &help))?;
        let (setting, class) = match setting.split_once('@') {
            None => (setting, None),
            Some(_) if algorithm.port != PortProgram::Stamps => {
                let message = format!("at ports `{}` knows no classes", algorithm.name);
                return Err(invalid(message, "leave out what follows `@`"));
            }
            Some((setting, class)) => (setting, Some(class.parse().map_err(|message| invalid(message, &help))?)),
        };
        let setting = if algorithm.port.takes_bytes() {
            setting.parse::<Bytes>().map_err(|e| invalid(e.to_string(), &help))?.as_u64()
        } else {
            setting.parse::<Rate>().map_err(|e| invalid(e.to_string(), &help))?.as_bps() / 1_000
        };
        let rate = || Rate::from_bps(setting * 1_000);
        let point = match &setup.config {
            AlgorithmConfig::Rocc(config) => Some(point(config, rate())?),
            AlgorithmConfig::Perc(config) => {
                Some(bytes_of(&params::perc_link(config, rate(), setup.tau.unwrap_or(Time::ZERO))).to_vec())
            }
            _ => None,
        };
        Ok(Self { namespace: namespace.to_owned(), device: device.to_owned(), setting, class, point })
    }
}

/// Returns a congestion point at the largest rate.
fn point(config: &RoccConfig, rate: Rate) -> Result<Vec<u8>, Error> {
    let params = params::rocc_port(config, rate)?;
    let state = RoccPortState { f: params.f_max, q_old: 0 };
    Ok(bytes_of(&RoccPoint {
        params,
        state,
        period_ns: config.period.as_ns(),
        ticked_ns: 0,
        n_ticks: 0,
        tell_until: 0,
    })
    .to_vec())
}

/// An algorithm with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The parameters in the program's format: a struct of [`crate::laws`].
    pub params: Vec<u8>,
    /// The given text.
    pub text: String,
    /// The simulator's configuration with the same parameters.
    pub config: AlgorithmConfig,
    /// The network's base round-trip time, if it was given.
    pub tau: Option<Time>,
    /// The DSCP that connections get; `None`: that of their program.
    pub dscp: Option<Dscp>,
}

impl Setup {
    /// Parses `text` for a host with this path.
    ///
    /// # Errors
    /// If there is no such algorithm or parameter, a value is out of range, or the kernel does not support a setting.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let (name, given) = text.split_once(':').unwrap_or((text, ""));
        let algorithm = find(name)?;
        let config = AlgorithmConfig::by_name(name, Profile::Paper).ok_or_else(|| unknown(name))?;
        let mut config = config.over_tcp();
        for parameter in given.split(',').filter(|p| !p.trim().is_empty()) {
            set(&mut config, name, parameter.trim())?;
        }
        let params = match &config {
            AlgorithmConfig::ThetaPowerTcp(c) => bytes_of(&params::theta(c, path)?).to_vec(),
            AlgorithmConfig::PowerTcp(c) => bytes_of(&params::powertcp(c, path)?).to_vec(),
            AlgorithmConfig::Rocc(c) => bytes_of(&params::rocc(c, path)).to_vec(),
            AlgorithmConfig::RateMp(c) => bytes_of(&params::ratemp(c, path)?).to_vec(),
            AlgorithmConfig::Dctcp(c) => bytes_of(&params::dctcp(c)?).to_vec(),
            AlgorithmConfig::Perc(c) => bytes_of(&params::perc(c, path)?).to_vec(),
            _ => return Err(unknown(name)),
        };
        Ok(Self { algorithm, params, text: text.to_owned(), config, tau: path.tau, dscp: None })
    }
}

/// Returns the algorithm with the name `name`.
///
/// # Errors
/// If the kernel has none of that name.
pub fn find(name: &str) -> Result<Algorithm, Error> {
    IN_KERNEL.into_iter().find(|a| a.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Error {
    let names = IN_KERNEL.map(|a| a.name);
    let help = if ALGORITHMS.iter().any(|a| a.name == name) {
        format!("the simulator alone has it; the kernel has {}", names.join(", "))
    } else {
        fairrate_text::did_you_mean(name, names.iter().copied())
            .unwrap_or_else(|| format!("it has {}", names.join(", ")))
    };
    Error::UnknownAlgorithm { name: name.to_owned(), help }
}

/// Sets a parameter of `config`, written `name=value`.
fn set(config: &mut AlgorithmConfig, algorithm: &str, parameter: &str) -> Result<(), Error> {
    let invalid = |message: String, help: String| Error::Parameter { parameter: parameter.to_owned(), message, help };
    let Some((name, value)) = parameter.split_once('=') else {
        return Err(invalid("there is no `=`".to_owned(), "write it as `gamma=0.9`".to_owned()));
    };
    let (name, value) = (name.trim(), value.trim().trim_matches('"'));
    config.set(name, raw(value)).map_err(|error| match error {
        SetParamError::Invalid { message, help } => invalid(message, help),
        SetParamError::UnknownName => {
            let params = config.params();
            let names: Vec<&str> = params.iter().map(|p| p.name).collect();
            let help = fairrate_text::did_you_mean(name, names.iter().copied())
                .unwrap_or_else(|| format!("it has {}", names.join(", ")));
            Error::UnknownParameter { algorithm: algorithm.to_owned(), name: name.to_owned(), help }
        }
    })
}

/// Converts a value as TOML would.
fn raw(value: &str) -> RawValue<'_> {
    if let Ok(n) = value.parse() {
        return RawValue::Integer(n);
    }
    match value.parse() {
        Ok(x) => RawValue::Float(x),
        Err(_) => value.parse().map_or(RawValue::Text(value), RawValue::Bool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { line_rate: Rate::from_gbps(1), tau: Some(Time::from_us(300)) };

    fn error(text: &str) -> (String, String) {
        let error = Setup::parse(text, &PATH).expect_err("it should be refused");
        (error.to_string(), error.help().to_owned())
    }

    #[test]
    fn parameters_are_those_of_scenarios() {
        let setup = Setup::parse("theta-powertcp:gamma=0.5, beta=10Mbps", &PATH).expect("both exist");
        let params: &crate::laws::ThetaParams = bytemuck::from_bytes(&setup.params);
        assert_eq!((params.law.gamma_q31, params.law.beta_bps), (1 << 30, 10_000_000));
        assert_eq!((params.law.line_bps, params.tau_ns), (1_000_000_000, 300_000));
        let dctcp = Setup::parse("dctcp", &PATH).expect("it exists");
        // Over TCP it begins with ten packets, in slow start.
        let params: &crate::laws::DctcpParams = bytemuck::from_bytes(&dctcp.params);
        assert_eq!((params.first_packets, params.slow_start), (10, 1));
    }

    #[test]
    fn a_link_of_perc_has_what_headroom_leaves_and_a_long_memory() {
        let setup = Setup::parse("perc:headroom=0.1,state_timeout=20", &PATH).expect("both exist");
        let port = PortSetting::parse("switch/eth1:100Mbps", &setup).expect("it takes a rate");
        let link: crate::laws::PercLink = bytemuck::pod_read_unaligned(&port.point.expect("it has a table"));
        // 90 Mb/s in 2^-16 bit/s; twenty round trips of 300 us are less than a second.
        assert_eq!((link.capacity, link.timeout_ns, link.n), (90_000_000 << 16, 1_000_000_000, 0));
        let slow = Setup::parse("perc", &Path { tau: Some(Time::from_ms(200)), ..PATH }).expect("it exists");
        let port = PortSetting::parse("switch/eth1:100Mbps", &slow).expect("it takes a rate");
        let link: crate::laws::PercLink = bytemuck::pod_read_unaligned(&port.point.expect("it has a table"));
        assert_eq!(link.timeout_ns, 2_000_000_000);
    }

    #[test]
    fn telemetry_may_be_that_of_a_class() {
        let class = |algorithm: &str, text: &str| {
            let setup = Setup::parse(algorithm, &PATH).expect("it exists");
            PortSetting::parse(text, &setup).map(|port| (port.setting, port.class.map(Dscp::number)))
        };
        assert_eq!(class("powertcp", "switch/eth1:200Mbps@cs4").ok(), Some((200_000, Some(32))));
        assert_eq!(class("powertcp", "switch/eth1:200Mbps").ok(), Some((200_000, None)));
        let message = |algorithm, text| class(algorithm, text).map_err(|e| e.to_string());
        let unknown = "in `switch/eth1:200Mbps@cs9`: `cs9` is no DSCP";
        assert_eq!(message("powertcp", "switch/eth1:200Mbps@cs9"), Err(unknown.to_owned()));
        let useless = "in `switch/eth1:60KB@cs4`: at ports `dctcp` knows no classes";
        assert_eq!(message("dctcp", "switch/eth1:60KB@cs4"), Err(useless.to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        let cases = [
            ("thetapowertcp", "the kernel has no algorithm `thetapowertcp`", "did you mean `theta-powertcp`?"),
            ("hpcc", "the kernel has no algorithm `hpcc`", "the simulator alone has it; the kernel has "),
            ("dctcp:gg=1", "`dctcp` has no parameter `gg`", "did you mean `g`?"),
            ("dctcp:g", "in `g`: there is no `=`", "write it as `gamma=0.9`"),
            ("dctcp:g=7", "in `g=7`: `7` is out of range", "give a number from 0 to 1"),
            ("theta-powertcp:beta=5", "in `beta=5`: expected a rate with its unit", "write it as a string"),
            ("perc:share=printed", "the kernel's PERC has no `share = \"printed\"`", "it has share = \"asking\""),
            ("dctcp:form=rate", "the kernel's DCTCP has no `form = \"rate\"`", "it has form = \"window\""),
        ];
        for (text, message, help) in cases {
            let found = error(text);
            assert!(found.0.starts_with(message) && found.1.starts_with(help), "{text}: {found:?}");
        }
    }
}
