//! Programs at the ports of switches: the device of a port, and the program attached there.

use std::os::fd::AsFd;
use std::process::Command;

use bytemuck::{Pod, Zeroable, bytes_of, pod_read_unaligned};
use libbpf_rs::{MapCore, MapHandle, TC_EGRESS, TC_INGRESS, TcHook};

use super::classes::has_class;
use super::directory::Directory;
use super::netns::{self, Namespace};
use super::{of_another_version, open, read, write};
use crate::error::Error;
use crate::setup::{Algorithm, PortSetting};

/// Priority that only these programs have among the programs of a device.
const PRIORITY: u32 = 3905;

/// `struct port_key` of the programs.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Key {
    cookie: u64,
    ifindex: u64,
}

/// `struct port` of the programs.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Port {
    tx_bytes: u64,
    setting: u64,
    id: u32,
    made_clsact: u32,
    queue: u32,
    tos: u32,
}

/// Attaches the algorithm's program at a port of a switch, or changes the setting of a program that is attached.
///
/// # Errors
/// If there is no such device, or it is not an end of a veth pair where the program has to be at the other end.
pub(super) fn attach(algorithm: Algorithm, dir: &Directory, port: &PortSetting) -> Result<(), Error> {
    let (namespace, device) = place(algorithm, port)?;
    let key = Key { cookie: namespace.cookie(), ifindex: device.ifindex };
    let ports = open(dir, "ports")?;
    if ports.value_size() as usize != size_of::<Port>() {
        return Err(of_another_version(algorithm));
    }
    if let Some(class) = port.class {
        has_class(&Namespace::named(&port.namespace)?, &port.device, class)?;
    }
    let (queue, tos) = port.class.map_or((0, 0), |class| (class.queue(), u32::from(class.tos())));
    let value = match read(&ports, bytes_of(&key))? {
        Some(bytes) => Port { setting: port.setting, queue, tos, ..pod_read_unaligned(&bytes) },
        None => Port {
            queue,
            tos,
            tx_bytes: 0,
            setting: port.setting,
            id: free_id(&ports)?,
            made_clsact: u32::from(!namespace.inside(|| has_clsact(&device.name))?),
        },
    };
    // The entry is written first, since `detach` finds the program by it.
    write(&ports, bytes_of(&key), bytes_of(&value))?;
    if let Some(point) = &port.point {
        write(&open(dir, "points")?, bytes_of(&key), point)?;
    }
    with_hook(algorithm, dir, &namespace, &key, |hook| {
        hook.create()?;
        hook.replace(true).attach().map(drop)
    })
}

/// Returns the smallest number that no port has.
fn free_id(ports: &MapHandle) -> Result<u32, Error> {
    let taken: Vec<u32> = all(ports)?.iter().map(|(_, port)| port.id).collect();
    Ok((1..u32::MAX).find(|id| !taken.contains(id)).unwrap_or(u32::MAX))
}

/// Returns all ports with their devices.
fn all(ports: &MapHandle) -> Result<Vec<(Key, Port)>, Error> {
    let entry = |key: Vec<u8>| Ok((pod_read_unaligned(&key), read(ports, &key)?));
    let entries = ports.keys().map(entry).collect::<Result<Vec<(Key, Option<Vec<u8>>)>, Error>>()?;
    Ok(entries.into_iter().filter_map(|(key, port)| Some((key, pod_read_unaligned(&port?)))).collect())
}

/// Removes the algorithm's programs from all ports that still exist.
pub(super) fn detach_all(algorithm: Algorithm, dir: &Directory) -> Result<(), Error> {
    let all = all(&open(dir, "ports")?)?;
    let namespaces = netns::find(&all.iter().map(|(key, _)| (key.cookie, String::new())).collect())?;
    for (key, port) in &all {
        // A removed namespace took its devices with it, and a removed device its program.
        if let Some(namespace) = namespaces.get(&key.cookie) {
            let _ = detach(algorithm, dir, namespace, key, port);
        }
    }
    Ok(())
}

/// Removes the algorithm's programs from the ports whose programs are in `namespace`.
pub(super) fn detach_in(algorithm: Algorithm, dir: &Directory, namespace: &Namespace) -> Result<(), Error> {
    let ports = open(dir, "ports")?;
    for (key, port) in all(&ports)?.iter().filter(|(key, _)| key.cookie == namespace.cookie()) {
        let _ = detach(algorithm, dir, namespace, key, port);
        // There may be no congestion point.
        let _ = ports.delete(bytes_of(key));
        let _ = open(dir, "points").map(|points| points.delete(bytes_of(key)));
    }
    Ok(())
}

fn detach(algorithm: Algorithm, dir: &Directory, namespace: &Namespace, key: &Key, port: &Port) -> Result<(), Error> {
    with_hook(algorithm, dir, namespace, key, |hook| {
        hook.detach()?;
        if port.made_clsact == 0 { Ok(()) } else { hook.attach_point(TC_INGRESS | TC_EGRESS).destroy() }
    })
}

fn with_hook(
    algorithm: Algorithm,
    dir: &Directory,
    namespace: &Namespace,
    key: &Key,
    f: impl FnOnce(&mut TcHook) -> libbpf_rs::Result<()> + Send,
) -> Result<(), Error> {
    let fd = libbpf_rs::Program::fd_from_pinned_path(dir.pin("port"));
    let fd = fd.map_err(|e| Error::system("open the port's program", e))?;
    let at = if algorithm.port.is_before_the_queue() { TC_EGRESS } else { TC_INGRESS };
    namespace.inside(|| {
        let mut hook = TcHook::new(fd.as_fd());
        hook.ifindex(key.ifindex as i32).attach_point(at).handle(1).priority(PRIORITY);
        f(&mut hook).map_err(std::io::Error::other)
    })
}

/// A network device.
pub(super) struct Device {
    name: String,
    ifindex: u64,
}

/// The other end of a link.
pub(super) enum Peer {
    /// In the same namespace, with this name.
    Here(String),
    /// In the namespace with this number, with this index.
    There { namespace: u64, ifindex: u64 },
}

/// Returns the place of a port's program: marks are set before the queue, stamps at the end of the link.
fn place(algorithm: Algorithm, port: &PortSetting) -> Result<(Namespace, Device), Error> {
    let namespace = Namespace::named(&port.namespace)?;
    let (device, peer) = namespace.inside(|| device(&port.device)).map_err(|_| {
        let message = format!("`{}` has no device `{}`", port.namespace, port.device);
        Error::refused(message, format!("`ip -n {} link` lists them", port.namespace))
    })?;
    if algorithm.port.is_before_the_queue() {
        return Ok((namespace, device));
    }
    let no_peer = || {
        let message = format!("`{}` is no end of a veth pair whose other end is in a named namespace", port.device);
        Error::refused(
            message,
            "telemetry is stamped where a port's link ends; make the pair with `ip link add type veth`",
        )
    };
    match peer.ok_or_else(no_peer)? {
        Peer::Here(name) => {
            let (device, _) = namespace.inside(|| self::device(&name))?;
            Ok((namespace, device))
        }
        Peer::There { namespace: id, ifindex } => {
            let name = namespace.inside(|| namespace_name(id))?.ok_or_else(no_peer)?;
            let namespace = Namespace::named(&name)?;
            let name = namespace.inside(|| name_of(ifindex)).map_err(|_| no_peer())?;
            Ok((namespace, Device { name, ifindex }))
        }
    }
}

/// Returns the JSON output of `ip` or `tc`.
pub(super) fn json_of(program: &str, args: &[&str]) -> std::io::Result<serde_json::Value> {
    let output = Command::new(program).args(args).output()?;
    if !output.status.success() {
        return Err(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(std::io::Error::other)
}

/// Returns a device of the present namespace, and the other end of its link.
pub(super) fn device(name: &str) -> std::io::Result<(Device, Option<Peer>)> {
    let link = &json_of("ip", &["-j", "link", "show", "dev", name])?[0];
    let ifindex = link["ifindex"].as_u64().ok_or_else(|| std::io::Error::other("no such device"))?;
    let here = link["link"].as_str().map(|name| Peer::Here(name.to_owned()));
    let there = link["link_index"].as_u64().zip(link["link_netnsid"].as_u64());
    let there = there.map(|(ifindex, namespace)| Peer::There { namespace, ifindex });
    Ok((Device { name: name.to_owned(), ifindex }, there.or(here)))
}

fn name_of(ifindex: u64) -> std::io::Result<String> {
    let links = json_of("ip", &["-j", "link"])?;
    let found = links.as_array().into_iter().flatten().find(|l| l["ifindex"].as_u64() == Some(ifindex));
    let name = found.and_then(|l| l["ifname"].as_str()).map(str::to_owned);
    name.ok_or_else(|| std::io::Error::other("no such device"))
}

fn namespace_name(id: u64) -> std::io::Result<Option<String>> {
    let all = json_of("ip", &["-j", "netns", "list-id"])?;
    let found = all.as_array().into_iter().flatten().find(|n| n["nsid"].as_u64() == Some(id));
    Ok(found.and_then(|n| n["name"].as_str()).map(str::to_owned))
}

fn has_clsact(device: &str) -> std::io::Result<bool> {
    let qdiscs = json_of("tc", &["-j", "qdisc", "show", "dev", device])?;
    Ok(qdiscs.as_array().into_iter().flatten().any(|q| q["kind"] == "clsact"))
}
