//! Classes at egress ports by DSCP: which there are, and the input of `tc` that lays them out.
//!
//! A port gets a root of kind HTB. Each class is guaranteed its share of the port's rate by weight, may use what others
//! leave, and has a first-in, first-out queue of its own. Filters choose the class by the packet's DSCP, of IPv4 and
//! IPv6.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use fairrate_units::{Bytes, Rate};

use crate::error::Error;

/// Handle of the root, by which it is recognised. The queues of classes have the handles after it.
const ROOT: u32 = 0xfa00;
/// Minor number of the class of all other packets.
const OTHERS: u32 = 0xff;
/// Time for which a class may save tokens: the lateness of a timer that costs no rate.
const BURST_S: f64 = 100e-6;
/// Length of a full packet at an MTU of 1,500 bytes, as queueing disciplines count it.
const FULL_PACKET: u64 = 1_514;
/// Largest ratio of two weights: the class with the smaller one waits for so many packets of the other.
const MOST_RATIO: f64 = 100.0;
/// Least part of a port's rate of a class: HTB counts in bytes a second.
const LEAST_RATE: Rate = Rate::from_bps(8_000);
/// Names of code points: RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622.
const NAMES: [(&str, u8); 22] = [
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// A code point of differentiated services other than 0, that of all packets without a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dscp(u8);

impl Dscp {
    /// Returns its number, from 1 to 63.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the byte of the IP header that has it, and no ECN.
    pub fn tos(self) -> u8 {
        self.0 << 2
    }

    /// Returns the handle of the queue of its class, as the kernel has it.
    pub fn queue(self) -> u32 {
        (ROOT + self.minor()) << 16
    }

    fn minor(self) -> u32 {
        u32::from(self.0) + 1
    }
}

impl FromStr for Dscp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, number)| *number);
        match named.or_else(|| text.parse().ok()) {
            Some(number @ 1..=63) => Ok(Self(number)),
            Some(0) => Err("DSCP 0 is that of packets without a mark: they are in the class of all others".to_owned()),
            _ => Err(format!("`{text}` is no DSCP")),
        }
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A class of packets at a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// The packets; `None`: all that are in no other class.
    pub dscp: Option<Dscp>,
    /// Its weight among the classes.
    pub weight: f64,
    /// The longest queue.
    pub limit: Bytes,
}

/// The classes of a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes(Vec<Class>);

impl Classes {
    /// Parses classes, each `DSCP:WEIGHT` or `DSCP:WEIGHT:BYTES`, and that of all other packets, `WEIGHT` or
    /// `WEIGHT:BYTES`. Without bytes the longest queue is `limit`.
    ///
    /// # Errors
    /// If a format is wrong, a class is there twice, or weights or limits are out of range.
    pub fn parse(classes: &[String], others: &str, limit: Bytes) -> Result<Self, Error> {
        let invalid = |text: &str, message: String| {
            Error::Parameter {
            parameter: text.to_owned(),
            message,
            help: "write a class as `cs4:1` or `cs4:1:500KB`, with its DSCP, its weight and its longest queue; the others as `1` or \
                   `1:500KB`"
                .to_owned(),
        }
        };
        let mut all: Vec<Class> = Vec::new();
        for text in classes {
            let (dscp, rest) = text.split_once(':').ok_or_else(|| invalid(text, "there is no `:`".to_owned()))?;
            let dscp: Dscp = dscp.parse().map_err(|message| invalid(text, message))?;
            if all.iter().any(|class| class.dscp == Some(dscp)) {
                return Err(invalid(text, format!("there are two classes of DSCP {dscp}")));
            }
            all.push(class(Some(dscp), rest, limit).map_err(|message| invalid(text, message))?);
        }
        if all.is_empty() {
            return Err(invalid("--class", "there is no class".to_owned()));
        }
        all.push(class(None, others, limit).map_err(|message| invalid(others, message))?);
        let weights = || all.iter().map(|class| class.weight);
        let (least, most) = (weights().fold(f64::INFINITY, f64::min), weights().fold(0.0, f64::max));
        if MOST_RATIO * least < most {
            let message = format!("a weight of {most} beside one of {least} is more than {MOST_RATIO} times as large");
            return Err(invalid("--class", message));
        }
        Ok(Self(all))
    }

    /// Returns the classes, that of all other packets last.
    pub fn all(&self) -> &[Class] {
        &self.0
    }

    /// Returns the input of `tc -batch` that lays the classes out at a device without a root of its own.
    ///
    /// # Errors
    /// If the port's rate is too small for the share of a class.
    pub fn tc(&self, port: &Port) -> Result<String, Error> {
        let Port { device, rate, .. } = port;
        let (sum, least) = self
            .0
            .iter()
            .fold((0.0, f64::INFINITY), |(sum, least), class| (sum + class.weight, f64::min(least, class.weight)));
        let burst = ((rate.as_bytes_per_sec() * BURST_S) as u64).max(2 * FULL_PACKET);
        let whole = format!("ceil {}bit burst {burst} cburst {burst}", rate.as_bps());
        let mut text = format!("qdisc add dev {device} root handle {ROOT:x}: htb default {OTHERS:x}\n");
        let mut line = |words: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{words}");
        };
        let bps = rate.as_bps();
        line(format_args!(
            "class add dev {device} parent {ROOT:x}: classid {ROOT:x}:1 htb rate {bps}bit {whole} quantum {FULL_PACKET}"
        ));
        for Class { dscp, weight, limit } in &self.0 {
            let minor = dscp.map_or(OTHERS, Dscp::minor);
            let part = Rate::from_bps_f64((rate.as_bps_f64() * weight / sum).floor());
            if part < LEAST_RATE {
                return Err(Error::Parameter {
                    parameter: format!("{device}:{rate}"),
                    message: format!("a class would have {part}, and the least is {LEAST_RATE}"),
                    help: "give the port's rate, or the class a larger weight".to_owned(),
                });
            }
            // Classes that share what others leave take turns by their quanta; the least weight sends a full packet.
            let quantum = (FULL_PACKET as f64 * weight / least).round();
            let bps = part.as_bps();
            line(format_args!(
                "class add dev {device} parent {ROOT:x}:1 classid {ROOT:x}:{minor:x} htb rate {bps}bit {whole} quantum {quantum}"
            ));
            let queue = ROOT + minor;
            line(format_args!(
                "qdisc add dev {device} parent {ROOT:x}:{minor:x} handle {queue:x}: bfifo limit {}",
                limit.as_u64()
            ));
        }
        for class in &self.0 {
            let Some(dscp) = class.dscp else { continue };
            let (tos, minor) = (dscp.tos(), dscp.minor());
            for (protocol, priority, field) in [("ip", 1, "ip dsfield"), ("ipv6", 2, "ip6 priority")] {
                line(format_args!(
                    "filter add dev {device} parent {ROOT:x}: protocol {protocol} prio {priority} u32 match {field} {tos:#04x} 0xfc \
                     flowid {ROOT:x}:{minor:x}"
                ));
            }
        }
        Ok(text)
    }
}

/// Parses `WEIGHT` or `WEIGHT:BYTES`.
fn class(dscp: Option<Dscp>, text: &str, limit: Bytes) -> Result<Class, String> {
    let (weight, bytes) = text.split_once(':').map_or((text, None), |(weight, bytes)| (weight, Some(bytes)));
    let weight: f64 = weight.parse().map_err(|_| format!("`{weight}` is no weight"))?;
    if !(0.001..=1_000.0).contains(&weight) {
        return Err(format!("a weight of {weight} is not from 0.001 to 1,000"));
    }
    let limit = bytes.map_or(Ok(limit), |bytes| bytes.parse::<Bytes>().map_err(|e| e.to_string()))?;
    if !(2 * FULL_PACKET..=u64::from(u32::MAX)).contains(&limit.as_u64()) {
        return Err(format!("a queue of {limit} is not from two full packets to 4 GB"));
    }
    Ok(Class { dscp, weight, limit })
}

/// An egress port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The network namespace; `None`: the present one.
    pub namespace: Option<String>,
    /// The device.
    pub device: String,
    /// The rate that its classes share; zero where none is needed.
    pub rate: Rate,
}

impl Port {
    /// Parses `NETNS/DEV:RATE`, or `DEV:RATE` for the present namespace.
    ///
    /// # Errors
    /// If the format is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (place, rate) = text.rsplit_once(':').ok_or_else(|| invalid_port(text, "there is no `:`".to_owned()))?;
        let rate: Rate = rate.parse().map_err(|e: <Rate as FromStr>::Err| invalid_port(text, e.to_string()))?;
        Ok(Self { rate, ..Self::place(place)? })
    }

    /// Parses `NETNS/DEV`, or `DEV` for the present namespace.
    ///
    /// # Errors
    /// If the format is wrong.
    pub fn place(text: &str) -> Result<Self, Error> {
        let (namespace, device) = match text.rsplit_once('/') {
            Some((namespace, device)) => (Some(namespace), device),
            None => (None, text),
        };
        // Devices are words in the input of `tc`.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@:".contains(c);
        if device.is_empty() || 15 < device.len() || device.starts_with('-') || !device.chars().all(is_plain) {
            return Err(invalid_port(text, format!("`{device}` is no name of a device")));
        }
        if namespace.is_some_and(str::is_empty) {
            return Err(invalid_port(text, "there is no name before the `/`".to_owned()));
        }
        Ok(Self { namespace: namespace.map(str::to_owned), device: device.to_owned(), rate: Rate::ZERO })
    }
}

fn invalid_port(text: &str, message: String) -> Error {
    let help = "write it as `switch/eth1:200Mbps`, with the network namespace, the device and the rate, or as `eth1:200Mbps`; where \
                classes are removed, without the rate";
    Error::Parameter { parameter: text.to_owned(), message, help: help.to_owned() }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.device),
            None => f.write_str(&self.device),
        }
    }
}

/// The root of a device's queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The kernel's default, which comes back when another is removed.
    Default,
    /// Classes of this program.
    Ours,
    /// Another one, as `tc` names it.
    Foreign(String),
}

impl Root {
    /// Returns the root of a queueing discipline with this kind and handle, as `tc` prints them.
    pub fn of(kind: &str, handle: &str) -> Self {
        match handle {
            "0:" => Self::Default,
            _ if kind == "htb" && handle == format!("{ROOT:x}:") => Self::Ours,
            _ => Self::Foreign(format!("{kind} {handle}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Bytes = Bytes::new(100_000);

    fn parse(classes: &[&str], others: &str) -> Result<Classes, String> {
        let classes: Vec<String> = classes.iter().map(|text| (*text).to_owned()).collect();
        Classes::parse(&classes, others, LIMIT).map_err(|e| e.to_string())
    }

    #[test]
    fn two_classes_share_a_port_and_have_queues_of_their_own() {
        let classes = parse(&["cs4:1:50KB"], "3").expect("they are valid");
        let port = Port::parse("switch/p1:200Mbps").expect("it is valid");
        let expected = "\
qdisc add dev p1 root handle fa00: htb default ff
class add dev p1 parent fa00: classid fa00:1 htb rate 200000000bit ceil 200000000bit burst 3028 cburst 3028 quantum 1514
class add dev p1 parent fa00:1 classid fa00:21 htb rate 50000000bit ceil 200000000bit burst 3028 cburst 3028 quantum 1514
qdisc add dev p1 parent fa00:21 handle fa21: bfifo limit 50000
class add dev p1 parent fa00:1 classid fa00:ff htb rate 150000000bit ceil 200000000bit burst 3028 cburst 3028 quantum 4542
qdisc add dev p1 parent fa00:ff handle faff: bfifo limit 100000
filter add dev p1 parent fa00: protocol ip prio 1 u32 match ip dsfield 0x80 0xfc flowid fa00:21
filter add dev p1 parent fa00: protocol ipv6 prio 2 u32 match ip6 priority 0x80 0xfc flowid fa00:21
";
        assert_eq!(classes.tc(&port).expect("the rate is enough"), expected);
        assert_eq!(classes.all()[0].dscp.map(Dscp::queue), Some(0xfa21_0000));
    }

    #[test]
    fn code_points_have_names_and_numbers() {
        let read = |text: &str| text.parse::<Dscp>().map(|dscp| (dscp.number(), dscp.tos(), dscp.to_string()));
        assert_eq!(read("AF11"), Ok((10, 0x28, "af11".to_owned())));
        assert_eq!(read("63"), Ok((63, 0xfc, "63".to_owned())));
        assert_eq!(read("64"), Err("`64` is no DSCP".to_owned()));
        assert!(read("0").is_err_and(|message| message.starts_with("DSCP 0 is that of packets without a mark")));
        // The queue of the last one does not meet that of all others.
        assert_eq!(Dscp(63).queue(), 0xfa40_0000);
    }

    #[test]
    fn wrong_classes_are_named() {
        let cases: [(&[&str], &str, &str); 9] = [
            (&["cs4"], "1", "in `cs4`: there is no `:`"),
            (&["cs9:1"], "1", "in `cs9:1`: `cs9` is no DSCP"),
            (&["cs4:1", "32:2"], "1", "in `32:2`: there are two classes of DSCP cs4"),
            (&["cs4:nan"], "1", "in `cs4:nan`: a weight of NaN is not from 0.001 to 1,000"),
            (&["cs4:-1"], "1", "in `cs4:-1`: a weight of -1 is not from 0.001 to 1,000"),
            (&["cs4:1:1KB"], "1", "in `cs4:1:1KB`: a queue of 1KB is not from two full packets to 4 GB"),
            (&["cs4:1"], "none", "in `none`: `none` is no weight"),
            (&["cs4:1"], "101", "in `--class`: a weight of 101 beside one of 1 is more than 100 times as large"),
            (&[], "1", "in `--class`: there is no class"),
        ];
        for (classes, others, message) in cases {
            assert_eq!(parse(classes, others).map(|_| ()), Err(message.to_owned()));
        }
        let slow = Port::parse("p1:9kbps").expect("it is valid");
        let error = parse(&["cs4:1"], "1").and_then(|classes| classes.tc(&slow).map_err(|e| e.to_string()));
        assert_eq!(error, Err("in `p1:9kbps`: a class would have 4500bps, and the least is 8kbps".to_owned()));
    }

    #[test]
    fn a_port_is_a_plain_word() {
        for text in [
            "p1",
            "p1:fast",
            "/p1:1Mbps",
            "sw/:1Mbps",
            "sw/p1 root:1Mbps",
            "sw/p1\nqdisc:1Mbps",
            "-p:1Mbps",
            "sw/a234567890123456:1Mbps",
        ] {
            assert!(Port::parse(text).is_err(), "{text}");
        }
        let port = Port::parse("/run/netns/sw/eth1:1Mbps").expect("a namespace may be a path");
        assert_eq!((port.namespace.as_deref(), port.device.as_str()), (Some("/run/netns/sw"), "eth1"));
        assert_eq!(Port::place("eth1.100").expect("the namespace may be left out").to_string(), "eth1.100");
    }

    #[test]
    fn a_root_that_somebody_else_made_is_known() {
        assert_eq!(Root::of("noqueue", "0:"), Root::Default);
        assert_eq!(Root::of("htb", "fa00:"), Root::Ours);
        assert_eq!(Root::of("tbf", "fa00:"), Root::Foreign("tbf fa00:".to_owned()));
        assert_eq!(Root::of("htb", "1:"), Root::Foreign("htb 1:".to_owned()));
    }
}
