//! The state of attached algorithms.

use serde::Serialize;

use super::netns::Namespace;
use super::notes::{ALL_OTHERS, Notes};
use super::pins::Pins;
use super::{is_registered, n_sockets};
use crate::error::Error;
use crate::setup::IN_KERNEL;

/// An attached algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attached {
    /// Its name in scenarios.
    pub algorithm: &'static str,
    /// Its name for `TCP_CONGESTION`.
    pub tcp_name: &'static str,
    /// Number of established connections that it controls.
    pub sockets: u64,
    /// The algorithm with its parameters, if it was attached for all namespaces that are not listed.
    pub for_others: Option<String>,
    /// Namespaces whose default it became.
    pub namespaces: Vec<InNamespace>,
}

/// A namespace whose default an algorithm became.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InNamespace {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The kernel's number of the namespace.
    pub cookie: u64,
    /// Present default congestion control; `None`: the namespace no longer exists.
    pub default: Option<String>,
    /// The algorithm with its parameters, as text.
    pub setup: String,
}

/// Returns the attached algorithms, without changing anything.
///
/// # Errors
/// If the pins cannot be read, or others than root can change them.
pub fn status() -> Result<Vec<Attached>, Error> {
    let Some(pins) = Pins::look()? else { return Ok(Vec::new()) };
    let mut attached = Vec::new();
    for algorithm in IN_KERNEL {
        let Some(dir) = pins.of(algorithm)? else { continue };
        if !is_registered(&pins, algorithm)? {
            continue;
        }
        let notes = Notes::open(&dir)?;
        let living = notes.living()?;
        let mut namespaces = Vec::new();
        for (cookie, note) in notes.of_namespaces()? {
            let namespace = living.get(&cookie);
            let (name, default) = (namespace.and_then(Namespace::name), namespace.map(Namespace::default).transpose()?);
            namespaces.push(InNamespace { name, cookie, default, setup: note.setup });
        }
        attached.push(Attached {
            algorithm: algorithm.name,
            tcp_name: algorithm.tcp_name,
            sockets: n_sockets(&dir)?,
            for_others: notes.get(ALL_OTHERS)?.map(|note| note.setup),
            namespaces,
        });
    }
    Ok(attached)
}
