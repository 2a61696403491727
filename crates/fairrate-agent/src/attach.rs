//! Attachment of the BPF program's parts to the kernel.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{Link, MapHandle, Object};

use crate::cgroups;
use crate::flowlets::{FlowletsError, kernel};

/// The parts of the program, attached until this value is dropped.
pub(crate) struct Attached {
    /// The iterators over all sockets: over those of TCP, and over those of UDP if they may ask for rates.
    pub looks_at_all: Vec<Link>,
    /// The iterator over tracked sockets.
    pub look_at_tracked: Link,
    _others: Vec<Link>,
}

/// Attaches the program whose map of connections is `flows`; with `udp`, its parts for UDP too.
///
/// # Errors
/// If the kernel refuses, or no control groups of version 2 are mounted.
pub(crate) fn attach(object: &Object, flows: &MapHandle, udp: bool) -> Result<Attached, FlowletsError> {
    let failed = kernel("attaching the BPF program");
    let root = root_of_groups()?;
    let program = |name: &str| object.progs_mut().find(|program| program.name() == name).expect("it has this program");
    let plain = |name: &str| program(name).attach().map_err(&failed);
    let to_groups = |name: &str| program(name).attach_cgroup(root.as_raw_fd()).map_err(&failed);
    let mut looks_at_all = vec![plain("look_at_all")?];
    let look_at_tracked = program("look_at_tracked").attach_iter(flows.as_fd()).map_err(&failed)?;
    // The programs that end flowlets are attached before those that begin them.
    let mut others = vec![plain("changes_state")?];
    if udp {
        looks_at_all.push(plain("look_at_askers")?);
        others.extend([to_groups("closes")?, to_groups("asks")?]);
    }
    others.extend([to_groups("steers")?, plain("writes")?]);
    Ok(Attached { looks_at_all, look_at_tracked, _others: others })
}

/// Opens the root of the control groups of version 2, to which the program is attached.
///
/// # Errors
/// If they are not mounted, or their root cannot be opened.
pub fn root_of_groups() -> Result<File, FlowletsError> {
    let root = cgroups::root().map_err(|e| FlowletsError::Io("/proc/self/mountinfo", e))?;
    let root = root.ok_or(FlowletsError::NoControlGroups)?;
    File::open(root).map_err(|e| FlowletsError::Io("the root of control groups", e))
}
