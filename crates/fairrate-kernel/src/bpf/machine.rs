//! The requirements on this machine.

use std::fs;
use std::path::Path;

use nix::sys::statfs::CGROUP2_SUPER_MAGIC;
use nix::unistd::geteuid;

use super::directory::Directory;
use crate::error::Error;

/// Checks that programs can be loaded here; `btf` is the kernel's description of its types, `/sys/kernel/btf/vmlinux`.
///
/// # Errors
/// If the user is not root, the kernel does not describe its types, or TCP takes no programs.
pub fn check(btf: &Path) -> Result<(), Error> {
    if !geteuid().is_root() {
        return Err(Error::refused("this needs root", "run it with sudo"));
    }
    if !btf.exists() {
        let message = format!("this kernel does not describe its types: there is no {}", btf.display());
        return Err(Error::refused(
            message,
            "use a kernel built with CONFIG_DEBUG_INFO_BTF, as those of Debian 12 are",
        ));
    }
    let types = libbpf_rs::btf::Btf::from_path(btf).map_err(|e| Error::system("read the kernel's types", e))?;
    if types.type_by_name::<libbpf_rs::btf::types::Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        let help = "use Linux 5.6 or later with CONFIG_BPF_JIT; this was tried on 6.18";
        return Err(Error::refused("TCP of this kernel takes no programs (struct_ops)", help));
    }
    Ok(())
}

/// Returns the root of the control groups (version 2), which contains all processes.
pub(super) fn control_groups() -> Result<Directory, Error> {
    let mounts = fs::read_to_string("/proc/mounts").map_err(|e| Error::system("read /proc/mounts", e))?;
    let found = mounts.lines().map(|l| l.split(' ').collect::<Vec<_>>()).find(|m| m.get(2) == Some(&"cgroup2"));
    let help = "mount it: `mount -t cgroup2 none /sys/fs/cgroup/unified`";
    let missing = || Error::refused("no control groups of version 2 are mounted", help);
    let mount = found.ok_or_else(missing)?;
    Directory::mounted(Path::new(mount[1]), CGROUP2_SUPER_MAGIC)?.ok_or_else(missing)
}

/// Returns `true` if `cong_control` has the four arguments of Linux 6.10 and later.
pub(super) fn has_four_arguments() -> bool {
    use libbpf_rs::btf::ReferencesType;
    use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
    let proto = || {
        let types = libbpf_rs::btf::Btf::from_vmlinux().ok()?;
        let ops: Struct<'_> = types.type_by_name("tcp_congestion_ops")?;
        let member = ops.iter().find(|m| m.name.is_some_and(|n| n == "cong_control"))?;
        let pointer: Ptr<'_> = types.type_by_id(member.ty)?;
        let function: FuncProto<'_> = pointer.referenced_type().try_into().ok()?;
        Some(function.len() == 4)
    };
    proto().unwrap_or(true)
}
