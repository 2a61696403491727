//! What is attached.

use serde::Serialize;

use super::netns::Namespace;
use super::notes::{ALL_OTHERS, Notes};
use super::pins::Pins;
use super::{is_registered, n_sockets};
use crate::error::Error;
use crate::setup::IN_KERNEL;

/// An algorithm that is attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attached {
    /// Its name in scenarios.
    pub algorithm: &'static str,
    /// Its name for `TCP_CONGESTION`.
    pub tcp_name: &'static str,
    /// Established connections that it controls.
    pub sockets: u64,
    /// The algorithm with its parameters where it was attached for all namespaces that are not below.
    pub for_others: Option<String>,
    /// Namespaces that it was made the default of.
    pub namespaces: Vec<InNamespace>,
}

/// A namespace that an algorithm was made the default of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InNamespace {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The kernel's number of it.
    pub cookie: u64,
    /// The congestion control that is its default now; `None`: the namespace is gone.
    pub default: Option<String>,
    /// As it was given: the algorithm with its parameters.
    pub setup: String,
}

/// Returns what is attached. Makes and changes nothing.
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
