//! The contents of a certificate: its name, its addresses and its validity.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::logging::harmless;

/// The seconds of a day.
const DAY_S: f64 = 86_400.0;

/// The contents of a certificate that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its common name, fit for a log or a terminal.
    pub name: String,
    /// Its addresses, in order.
    pub addresses: Vec<IpAddr>,
    /// First time at which it is valid.
    pub not_before: SystemTime,
    /// Last time at which it is valid.
    pub not_after: SystemTime,
}

impl Certificate {
    /// Reads a certificate; returns `None` if `der` is not a certificate.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        let validity = certificate.validity();
        let mut addresses: Vec<IpAddr> = match certificate.subject_alternative_name() {
            Ok(Some(names)) => names.value.general_names.iter().filter_map(address).collect(),
            _ => Vec::new(),
        };
        addresses.sort_unstable();
        addresses.dedup();
        Some(Self {
            name: harmless(name.unwrap_or("no name")),
            addresses,
            not_before: time(validity.not_before.timestamp()),
            not_after: time(validity.not_after.timestamp()),
        })
    }

    /// Returns the days from `now` until it expires; below 0 if it has expired.
    pub fn days_left(&self, now: SystemTime) -> f64 {
        let seconds = match self.not_after.duration_since(now) {
            Ok(left) => left.as_secs_f64(),
            Err(over) => -over.duration().as_secs_f64(),
        };
        seconds / DAY_S
    }

    /// Returns its name, and the first of its addresses that differ from it.
    pub fn label(&self) -> String {
        let others: Vec<String> = self.addresses.iter().map(IpAddr::to_string).filter(|a| *a != self.name).collect();
        match others.len() {
            0 => self.name.clone(),
            n @ 1..=3 => format!("{} for {}", self.name, others[..n].join(", ")),
            n => format!("{} for {} and {} more", self.name, others[..3].join(", "), n - 3),
        }
    }
}

/// Returns the address of a name. An IPv4 address has one form only.
fn address(name: &GeneralName<'_>) -> Option<IpAddr> {
    let GeneralName::IPAddress(bytes) = name else { return None };
    let short = <[u8; 4]>::try_from(*bytes).ok().map(IpAddr::from);
    short.or_else(|| <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_canonical()))
}

/// Returns the time `seconds` after 1970. An earlier time becomes 1970: such a certificate has expired anyway.
fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
