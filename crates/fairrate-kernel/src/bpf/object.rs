//! Loading of compiled programs into the kernel.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, PrintLevel, set_print};

use super::directory::Directory;
use super::machine;
use crate::error::Error;
use crate::setup::Algorithm;

/// Maps that are pinned beside the congestion control itself, which is `ops`.
const MAPS: [&str; 7] = ["params", "marks", "namespaces", "sockets", "ports", "points", "connections"];

/// The messages of libbpf, which has one printer in a process.
static SAID: Mutex<String> = Mutex::new(String::new());

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")).as_slice()
    };
}

/// The program that moves sockets.
pub(super) const MOVER: &[u8] = object!("move");

fn bytes(algorithm: Algorithm) -> &'static [u8] {
    match algorithm.name {
        "dctcp" => object!("dctcp"),
        "perc" => object!("perc"),
        "powertcp" => object!("powertcp"),
        "ratemp" => object!("ratemp"),
        "rocc" => object!("rocc"),
        _ => object!("theta"),
    }
}

/// Loads an algorithm with the parameters of all namespaces that have no others, pins its maps in `stage` and registers
/// it with TCP. A process that dies in between leaves only pins in `stage`.
pub(super) fn register(algorithm: Algorithm, params: &[u8], stage: &Directory) -> Result<(), Error> {
    let ops = ops(algorithm);
    let mut object = load(bytes(algorithm), &ops)?;
    pin_programs(algorithm, &object, stage)?;
    let mut ops_map = None;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let pin = if name == ops { "ops" } else { &name };
        if name == "params" {
            // Written before a connection can read them.
            let written = map.update(&0_u64.to_ne_bytes(), params, MapFlags::ANY);
            written.map_err(|e| Error::system("write the parameters", e))?;
        }
        if name == ops || MAPS.contains(&name.as_str()) {
            map.pin(stage.pin(pin)).map_err(|e| Error::system(&format!("pin the map `{name}`"), e))?;
        }
        if name == ops {
            ops_map = Some(map);
        }
    }
    let mut map = ops_map.ok_or_else(|| Error::refused("the program has no congestion control", "build it again"))?;
    let mut link =
        map.attach_struct_ops().map_err(|e| Error::system(&format!("register `{}`", algorithm.tcp_name), e))?;
    // Otherwise it would end with this process.
    link.disconnect();
    Ok(())
}

/// Pins the program for switch ports as `port`, and the program for all connections, attached to the root of the
/// control groups, as `options`.
fn pin_programs(algorithm: Algorithm, object: &Object, stage: &Directory) -> Result<(), Error> {
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let pinned = match name.strip_prefix(algorithm.tcp_name) {
            Some("_port") => program.pin(stage.pin("port")),
            Some("_options") => {
                let root = machine::control_groups()?;
                program.attach_cgroup(root.as_fd().as_raw_fd()).and_then(|mut link| link.pin(stage.pin("options")))
            }
            _ => Ok(()),
        };
        pinned.map_err(|e| Error::system(&format!("attach the program `{name}`"), e))?;
    }
    Ok(())
}

/// Returns the name of the object's congestion control that fits the running kernel.
fn ops(algorithm: Algorithm) -> String {
    let old = if machine::has_four_arguments() { "" } else { "_old" };
    format!("{}{old}", algorithm.tcp_name)
}

/// Loads an object, for tests: a refusal by the verifier is an error.
///
/// # Errors
/// If the kernel refuses it.
pub fn load_only(object: &[u8], ops: &str) -> Result<(), Error> {
    load(object, ops).map(drop)
}

/// Loads an object; `ops` selects one of its congestion controls.
pub(super) fn load(object: &[u8], ops: &str) -> Result<Object, Error> {
    said().clear();
    set_print(Some((PrintLevel::Warn, |_, text| said().push_str(&text))));
    let open = ObjectBuilder::default().open_memory(object);
    let mut open = open.map_err(|e| Error::system("read the compiled program", e))?;
    for mut map in open.maps_mut() {
        if map.map_type() == libbpf_rs::MapType::StructOps && map.name() != ops {
            map.set_autocreate(false).map_err(|e| Error::system("choose the congestion control", e))?;
        }
    }
    let loaded = open.load();
    set_print(None);
    loaded.map_err(|e| refused(&said(), &e))
}

fn said() -> std::sync::MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error with the last lines of the verifier's log, which describe the refusal.
fn refused(said: &str, error: &libbpf_rs::Error) -> Error {
    let Some((_, log)) = said.split_once("BEGIN PROG LOAD LOG --") else {
        let said = said.trim();
        return Error::refused(format!("cannot load the program: {error}\n{said}"), "this was tried on Linux 6.18");
    };
    let log = log.split("-- END PROG LOAD LOG").next().unwrap_or(log);
    let told = |l: &&str| {
        !l.trim().is_empty()
            && !l.starts_with("verification time")
            && !l.starts_with("stack depth")
            && !l.starts_with("processed ")
    };
    let lines: Vec<&str> = log.lines().filter(told).collect();
    let last = lines[lines.len().saturating_sub(4)..].join("\n  ");
    let message = format!("the kernel's verifier refuses the program; the end of its log:\n  {last}");
    Error::refused(message, "report it with `uname -r`; this was tried on Linux 6.18")
}
