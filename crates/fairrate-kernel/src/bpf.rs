//! Programs in the kernel: loaded, registered with TCP, kept by pins, and removed.

mod classes;
mod directory;
mod lock;
mod machine;
mod netns;
mod notes;
mod object;
mod pins;
mod ports;
mod sockets;
mod status;

use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::error::Error;
use crate::setup::{Algorithm, IN_KERNEL, PortProgram, PortSetting, Setup};
use directory::Directory;
use notes::{Note, Notes};
use pins::Pins;
use sockets::Mover;

pub use classes::{clear_classes, set_classes};
pub use machine::check;
pub use netns::Namespace;
pub use object::load_only;
pub use status::{Attached, InNamespace, status};

/// Attaches an algorithm, unless it is attached, and sets its parameters: in each of `namespaces`, whose default it
/// becomes, or, without namespaces, everywhere that has no others. Connections keep the parameters they were made with.
/// Attaches the algorithm's port program at `ports` of switches. Waits for other processes that attach or detach, but
/// not longer than `wait`.
///
/// # Errors
/// If the machine does not support it, or the kernel refuses the program.
pub fn attach(setup: &Setup, namespaces: &[Namespace], ports: &[PortSetting], wait: Duration) -> Result<(), Error> {
    let pins = Pins::lock(wait)?;
    tidy(&pins)?;
    let algorithm = setup.algorithm;
    let present = pins.of(algorithm)?;
    let is_new = present.is_none();
    let dir = match present {
        Some(dir) => dir,
        None => bring(&pins, setup).inspect_err(|_| {
            // A half-loaded algorithm is of no use. The first error is returned.
            let _ = pins.clear_stage();
        })?,
    };
    let result = settle(&pins, &dir, setup, namespaces, ports);
    if result.is_err() && is_new {
        let _ = withdraw(&pins, algorithm);
    }
    result
}

/// Loads an algorithm into the kernel.
fn bring(pins: &Pins, setup: &Setup) -> Result<Directory, Error> {
    let name = setup.algorithm.tcp_name;
    if names()?.split_whitespace().any(|n| n == name) {
        let help = format!("`bpftool struct_ops unregister name {name}` takes it out");
        return Err(Error::refused(
            format!("TCP has `{name}`, but its pins are gone: was /sys/fs/bpf unmounted?"),
            help,
        ));
    }
    let stage = pins.stage()?;
    object::register(setup.algorithm, &setup.params, &stage)?;
    pins.publish(setup.algorithm)?;
    Ok(stage)
}

/// Sets the parameters of a registered algorithm, makes it the default of namespaces, and attaches its program at ports
/// there.
fn settle(
    pins: &Pins,
    dir: &Directory,
    setup: &Setup,
    namespaces: &[Namespace],
    ports: &[PortSetting],
) -> Result<(), Error> {
    forget_gone(dir)?;
    let params = open(dir, "params")?;
    if params.value_size() as usize != setup.params.len() || !dir.has("marks") {
        return Err(of_another_version(setup.algorithm));
    }
    if namespaces.is_empty() {
        mark(dir, notes::ALL_OTHERS, setup)?;
        write(&params, &notes::ALL_OTHERS.to_ne_bytes(), &setup.params)?;
        Notes::open(dir)?.put(notes::ALL_OTHERS, &Note { setup: setup.text.clone(), ..Note::default() })?;
    }
    for namespace in namespaces {
        mark(dir, namespace.cookie(), setup)?;
        write(&params, &namespace.cookie().to_ne_bytes(), &setup.params)?;
        notes::take(pins, setup.algorithm, namespace, &setup.text)?;
    }
    ports.iter().try_for_each(|port| ports::attach(setup.algorithm, dir, port))
}

/// Sets the DSCP that connections get where the parameters with this key hold.
fn mark(dir: &Directory, key: u64, setup: &Setup) -> Result<(), Error> {
    let tos = setup.dscp.map_or(0, |dscp| u32::from(dscp.tos()));
    write(&open(dir, "marks")?, &key.to_ne_bytes(), &tos.to_ne_bytes())
}

/// Returns the byte with the DSCP that an algorithm has given the connections of a namespace, from which it may have
/// been removed already; 0: none.
fn mark_in(dir: &Directory, cookie: u64) -> Result<u32, Error> {
    if !dir.has("marks") {
        return Ok(0);
    }
    let marks = open(dir, "marks")?;
    let tos = match read(&marks, &cookie.to_ne_bytes())? {
        Some(own) => Some(own),
        None => read(&marks, &notes::ALL_OTHERS.to_ne_bytes())?,
    };
    Ok(tos.and_then(|tos| tos.try_into().ok()).map_or(0, u32::from_ne_bytes))
}

fn of_another_version(algorithm: Algorithm) -> Error {
    let name = algorithm.name;
    let help = format!("`fairrate-kernel detach {name}` takes it out");
    Error::refused(format!("`{name}` was attached by another version of this program"), help)
}

/// The options of a detach.
#[derive(Clone, Debug)]
pub struct Detach<'a> {
    /// The algorithm; `None`: all that are attached.
    pub algorithm: Option<Algorithm>,
    /// Namespaces from which to remove it. It stays attached as long as other namespaces have it. If empty, it is
    /// removed from all of them, subject to `unused`.
    pub namespaces: &'a [Namespace],
    /// `true` if it is only removed when no other namespace has it, and it was not attached for all: another user may
    /// have attached it.
    pub unused: bool,
    /// `true` if it is removed although connections use it. They take the default of their namespace.
    pub force: bool,
    /// Longest wait for other processes that attach or detach.
    pub wait: Duration,
}

/// Removes algorithms from the kernel. Namespaces get the default they had. Returns messages about defaults that could
/// not be restored.
///
/// # Errors
/// If connections use an algorithm and `force` is not set.
pub fn detach(options: &Detach<'_>) -> Result<Vec<String>, Error> {
    // An algorithm that is not attached is not in use.
    let expected = options.algorithm.filter(|_| !options.unused);
    let not_attached = |algorithm: Algorithm| {
        let message = format!("`{}` is not attached", algorithm.name);
        Error::refused(message, "`fairrate-kernel status` tells what is")
    };
    if Pins::look()?.is_none() {
        return expected.map_or(Ok(Vec::new()), |algorithm| Err(not_attached(algorithm)));
    }
    let pins = Pins::lock(options.wait)?;
    tidy(&pins)?;
    let mut words = Vec::new();
    for algorithm in IN_KERNEL.into_iter().filter(|a| options.algorithm.is_none_or(|which| which == *a)) {
        match pins.of(algorithm)? {
            Some(dir) => words.extend(detach_one(&pins, algorithm, &dir, options)?),
            None if expected.is_some() => return Err(not_attached(algorithm)),
            None => {}
        }
    }
    Ok(words)
}

fn detach_one(pins: &Pins, algorithm: Algorithm, dir: &Directory, options: &Detach<'_>) -> Result<Vec<String>, Error> {
    forget_gone(dir)?;
    let notes = Notes::open(dir)?;
    let is_taken_from = |cookie: &u64| options.namespaces.iter().any(|n| n.cookie() == *cookie);
    let stays = (options.unused || !options.namespaces.is_empty())
        && (notes.get(notes::ALL_OTHERS)?.is_some() || !notes.of_namespaces()?.keys().all(is_taken_from));
    let n = n_sockets(dir)?;
    if !stays && 0 < n && !options.force {
        let message = format!("{n} connections use `{}`", algorithm.name);
        return Err(Error::refused(message, "close them, or give --force: they take the default of their namespace"));
    }
    let mut words = Vec::new();
    for namespace in options.namespaces {
        words.extend(notes::give_back(pins, algorithm, namespace)?);
        forget(dir, namespace.cookie())?;
        if algorithm.port != PortProgram::None {
            ports::detach_in(algorithm, dir, namespace)?;
        }
    }
    if !stays {
        words.extend(withdraw(pins, algorithm)?);
    }
    Ok(words)
}

/// Restores the default of namespaces, and removes the algorithm.
fn withdraw(pins: &Pins, algorithm: Algorithm) -> Result<Vec<String>, Error> {
    let mut words = notes::give_all_back(pins, algorithm)?;
    words.extend(take_out(pins, algorithm)?);
    Ok(words)
}

/// Removes all of an algorithm: first from TCP's list, then from its connections, which take another algorithm, and at
/// last its programs. If this process dies in between, [`tidy`] does the rest.
fn take_out(pins: &Pins, algorithm: Algorithm) -> Result<Option<String>, Error> {
    let Some(dir) = pins.of(algorithm)? else { return Ok(None) };
    if dir.has("ops") {
        unregister(&dir)?;
    }
    let moved = Mover::new().and_then(|mover| mover.move_all(algorithm, &dir));
    let left = n_sockets(&dir).unwrap_or(0);
    if algorithm.port != PortProgram::None && dir.has("ports") && dir.has("port") {
        ports::detach_all(algorithm, &dir)?;
    }
    pins.remove(algorithm)?;
    let why = moved.err().map(|e| format!(": {e}")).unwrap_or_default();
    let words = format!("{left} connections keep `{}` and the window they have until they close{why}", algorithm.name);
    Ok((0 < left).then_some(words))
}

/// Removes the remains of processes that died: an algorithm half attached, or half removed.
fn tidy(pins: &Pins) -> Result<(), Error> {
    pins.clear_stage()?;
    for algorithm in IN_KERNEL {
        if pins.of(algorithm)?.is_some() && !is_registered(pins, algorithm)? {
            take_out(pins, algorithm)?;
        }
    }
    Ok(())
}

/// Forgets namespaces that no longer exist.
fn forget_gone(dir: &Directory) -> Result<(), Error> {
    let notes = Notes::open(dir)?;
    let living = notes.living()?;
    let noted = notes.of_namespaces()?;
    let gone = noted.keys().filter(|cookie| !living.contains_key(cookie));
    gone.copied().try_for_each(|cookie| {
        let _ = open(dir, "marks").map(|marks| marks.delete(&cookie.to_ne_bytes()));
        forget(dir, cookie)
    })
}

/// Forgets parameters and default of a namespace.
fn forget(dir: &Directory, cookie: u64) -> Result<(), Error> {
    // There may be none.
    let _ = open(dir, "params")?.delete(&cookie.to_ne_bytes());
    Notes::open(dir)?.remove(cookie);
    Ok(())
}

/// Returns `true` if TCP has an algorithm by its name, and its pins exist.
fn is_registered(pins: &Pins, algorithm: Algorithm) -> Result<bool, Error> {
    let is_pinned = pins.of(algorithm)?.is_some_and(|dir| dir.has("ops"));
    Ok(is_pinned && names()?.split_whitespace().any(|n| n == algorithm.tcp_name))
}

/// Returns the names of all congestion controls of TCP.
fn names() -> Result<String, Error> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.map_err(|e| Error::system("read the congestion controls of TCP", e))
}

/// Removes a pinned congestion control from TCP's list. Connections that use it keep it.
fn unregister(dir: &Directory) -> Result<(), Error> {
    // If it was never registered, there is nothing to delete.
    let _ = open(dir, "ops")?.delete(&0_u32.to_ne_bytes());
    Ok(())
}

/// Returns the number of established connections that an algorithm controls.
fn n_sockets(dir: &Directory) -> Result<u64, Error> {
    let value = read(&open(dir, "sockets")?, &0_u32.to_ne_bytes())?.unwrap_or_default();
    Ok(u64::from_ne_bytes(value.try_into().unwrap_or_default()))
}

/// Opens a pinned map.
fn open(dir: &Directory, map: &str) -> Result<MapHandle, Error> {
    let path = dir.path().join(map);
    MapHandle::from_pinned_path(dir.pin(map)).map_err(|e| Error::system(&format!("open {}", path.display()), e))
}

fn read(map: &MapHandle, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    map.lookup(key, MapFlags::ANY).map_err(|e| Error::system("read a map of the kernel", e))
}

fn write(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|e| Error::system("write to a map of the kernel", e))
}
