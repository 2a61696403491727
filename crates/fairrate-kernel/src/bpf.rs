//! Programs in the kernel: loaded, registered with TCP, kept by pins, and taken out again.

mod machine;
mod netns;
mod object;
mod pins;
mod ports;

use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;

use crate::error::Error;
use crate::setup::{Algorithm, IN_KERNEL, PortProgram, PortSetting, Setup};

pub use machine::check;
pub use netns::Namespace;
pub use object::load_only;

/// What an algorithm's `namespaces` map has of a namespace that it is the default of.
const NOTE: usize = 256;
/// Of it, the name of the congestion control before.
const BEFORE: usize = 16;

/// An algorithm that is attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attached {
    /// Its name in scenarios.
    pub algorithm: &'static str,
    /// Its name for `TCP_CONGESTION`.
    pub tcp_name: &'static str,
    /// Established connections that it controls.
    pub sockets: u64,
    /// Namespaces that it is the default of.
    pub namespaces: Vec<Default>,
}

/// A namespace with a default congestion control of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Default {
    /// Its name, if it has one and is still there.
    pub name: Option<String>,
    /// The kernel's number of it.
    pub cookie: u64,
    /// As it was given: the algorithm with its parameters.
    pub setup: String,
}

/// Attaches an algorithm, unless it is, and gives it these parameters: in each of `namespaces`, whose default it becomes, or where
/// there are none everywhere that has no others. Connections keep the parameters they were made with. At `ports` of switches it puts
/// what it does there.
///
/// # Errors
/// If the machine cannot, or the kernel refuses the program.
pub fn attach(setup: &Setup, namespaces: &[Namespace], ports: &[PortSetting]) -> Result<(), Error> {
    let _lock = pins::lock()?;
    pins::clean()?;
    let algorithm = setup.algorithm;
    let is_new = !is_registered(algorithm)?;
    if is_new {
        if pins::dir(algorithm).is_some() {
            take_out(algorithm)?;
        }
        let stage = pins::stage()?;
        object::register(algorithm, &stage)?;
        put(&stage.join("params"), 0, &setup.params)?;
        pins::publish(&stage, algorithm)?;
    }
    if namespaces.is_empty() && !is_new {
        put(&pins::path(algorithm).join("params"), 0, &setup.params)?;
    }
    let result = settle(setup, namespaces, ports);
    if result.is_err() && is_new {
        // Half of it is of no use. The first error counts.
        let _ = withdraw(algorithm);
    }
    result
}

/// Makes an algorithm that is registered the default of namespaces, and puts what it does at ports there.
fn settle(setup: &Setup, namespaces: &[Namespace], ports: &[PortSetting]) -> Result<(), Error> {
    let algorithm = setup.algorithm;
    let dir = pins::path(algorithm);
    for namespace in namespaces {
        put(&dir.join("params"), namespace.cookie(), &setup.params)?;
        let before = namespace.default()?;
        let before = if before == algorithm.tcp_name { noted_before(&dir, namespace.cookie())? } else { before };
        put(&dir.join("namespaces"), namespace.cookie(), &note(&before, &setup.text))?;
        namespace.set_default(algorithm.tcp_name)?;
    }
    ports.iter().try_for_each(|port| ports::attach(algorithm, port))
}

/// Takes an algorithm out of the kernel. Namespaces get the default they had.
///
/// # Errors
/// If connections use it and `force` is not set; they keep it until they close.
pub fn detach(algorithm: Algorithm, force: bool) -> Result<(), Error> {
    let _lock = pins::lock()?;
    pins::clean()?;
    let Some(dir) = pins::dir(algorithm) else {
        let message = format!("`{}` is not attached", algorithm.name);
        return Err(Error::refused(message, "`fairrate-kernel status` tells what is"));
    };
    let n = n_sockets(&dir)?;
    if 0 < n && !force {
        let message = format!("{n} connections use `{}`", algorithm.name);
        return Err(Error::refused(message, "close them, or give --force: they keep it until they close"));
    }
    withdraw(algorithm)
}

/// Gives namespaces the default they had, and takes the algorithm out.
fn withdraw(algorithm: Algorithm) -> Result<(), Error> {
    for namespace in netns::all() {
        if namespace.default()? == algorithm.tcp_name {
            let before = noted_before(&pins::path(algorithm), namespace.cookie())?;
            namespace.set_default(&before).or_else(|_| namespace.set_default("reno"))?;
        }
    }
    take_out(algorithm)
}

/// Removes all of an algorithm, its programs at ports first.
fn take_out(algorithm: Algorithm) -> Result<(), Error> {
    if algorithm.port != PortProgram::None {
        ports::detach_all(algorithm)?;
    }
    pins::remove(&pins::path(algorithm))
}

/// What is attached.
///
/// # Errors
/// If the pins cannot be read.
pub fn status() -> Result<Vec<Attached>, Error> {
    let mut attached = Vec::new();
    let known = netns::all();
    for algorithm in IN_KERNEL {
        let Some(dir) = pins::dir(algorithm).filter(|_| is_registered(algorithm).unwrap_or(false)) else { continue };
        let map = open(&dir.join("namespaces"))?;
        let mut namespaces = Vec::new();
        for key in map.keys() {
            let value =
                map.lookup(&key, MapFlags::ANY).map_err(|e| Error::system("read a map", e))?.unwrap_or_default();
            let cookie = u64::from_ne_bytes(key.try_into().unwrap_or_default());
            let name = known.iter().find(|n| n.cookie() == cookie).and_then(Namespace::name);
            namespaces.push(Default { name, cookie, setup: text(value.get(BEFORE..).unwrap_or_default()) });
        }
        namespaces.sort_by_key(|n| n.cookie);
        let (algorithm, tcp_name) = (algorithm.name, algorithm.tcp_name);
        attached.push(Attached { algorithm, tcp_name, sockets: n_sockets(&dir)?, namespaces });
    }
    Ok(attached)
}

fn is_registered(algorithm: Algorithm) -> Result<bool, Error> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let names = names.map_err(|e| Error::system("read the congestion controls of TCP", e))?;
    Ok(pins::dir(algorithm).is_some() && names.split_whitespace().any(|n| n == algorithm.tcp_name))
}

/// Takes a pinned congestion control out of TCP's list. Connections that have it keep it.
fn unregister(ops: &Path) -> Result<(), Error> {
    // Where it was never registered there is nothing to delete.
    let _ = open(ops)?.delete(&0_u32.to_ne_bytes());
    Ok(())
}

fn n_sockets(dir: &Path) -> Result<u64, Error> {
    let value = open(&dir.join("sockets"))?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(|e| Error::system("count the connections", e))?.unwrap_or_default();
    Ok(u64::from_ne_bytes(value.try_into().unwrap_or_default()))
}

fn open(path: &Path) -> Result<MapHandle, Error> {
    MapHandle::from_pinned_path(path).map_err(|e| Error::system(&format!("open {}", path.display()), e))
}

fn put(path: &Path, key: u64, value: &[u8]) -> Result<(), Error> {
    let result = open(path)?.update(&key.to_ne_bytes(), value, MapFlags::ANY);
    result.map_err(|e| Error::system(&format!("write to {}", path.display()), e))
}

fn note(before: &str, setup: &str) -> Vec<u8> {
    let mut note = vec![0; NOTE];
    for (at, text, room) in [(0, before, BEFORE), (BEFORE, setup, NOTE - BEFORE)] {
        let n = text.len().min(room - 1);
        note[at..at + n].copy_from_slice(&text.as_bytes()[..n]);
    }
    note
}

fn noted_before(dir: &Path, cookie: u64) -> Result<String, Error> {
    let value = open(&dir.join("namespaces"))?.lookup(&cookie.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(|e| Error::system("read a map", e))?;
    Ok(value.map_or_else(|| "reno".to_owned(), |v| text(&v[..BEFORE])))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()).into_owned()
}
