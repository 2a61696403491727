//! TCP connections of this network namespace, observed and limited by a BPF program (`bpf/flowlets.bpf.c`), and sockets
//! of UDP that ask for a rate.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{
    Iter, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, RingBuffer, RingBufferBuilder,
};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CloneFlags, setns};
use nix::sys::time::TimeSpec;

use crate::agent::{Cookie, Event, Kind, Nanos};
use crate::attach::{Attached, attach};
use crate::config::Config;
use crate::namespaces::{Changes, Namespace};

/// The program, compiled.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/flowlets.bpf.o"));

/// The time without an acknowledgment after which a socket with a pending rate justifies a look at all sockets.
const LATE: Duration = Duration::from_millis(20);

/// Largest number of events taken at a time, so that a flood of them costs little memory.
const BATCH: usize = 4096;

/// The error when connections cannot be seen.
#[derive(Debug, thiserror::Error)]
pub enum FlowletsError {
    /// The kernel refused.
    #[error("{doing}: {cause}")]
    Kernel {
        /// The action that was refused.
        doing: &'static str,
        /// The kernel's error.
        cause: libbpf_rs::Error,
    },
    /// A file of the kernel cannot be read.
    #[error("reading {0}: {1}")]
    Io(&'static str, std::io::Error),
    /// Another network namespace cannot be entered.
    #[error(
        "entering a network namespace: {0}: a unit of systemd needs `RestrictNamespaces=net` and CAP_SYS_ADMIN for `namespaces`"
    )]
    Enter(std::io::Error),
    /// There is no hierarchy of control groups to attach the program to.
    #[error(
        "no control groups of version 2 are mounted: `mount -t cgroup2 none /sys/fs/cgroup`; `ip netns exec NAME` hides those \
         of the host, and `nsenter --net=/run/netns/NAME` does not"
    )]
    NoControlGroups,
}

pub(crate) fn kernel(doing: &'static str) -> impl Fn(libbpf_rs::Error) -> FlowletsError {
    move |cause| FlowletsError::Kernel { doing, cause }
}

/// The running program. When this value is dropped, the program is removed from the kernel, and the rates that were set
/// stay.
pub struct Flowlets {
    ring: MapHandle,
    events: RingBuffer<'static>,
    seen: Rc<RefCell<Vec<Event>>>,
    rates: MapHandle,
    groups: MapHandle,
    namespaces: MapHandle,
    /// This network namespace.
    own: File,
    lost: MapHandle,
    takes_over: MapHandle,
    tracked: MapHandle,
    attached: Attached,
    _object: Object,
}

/// The state of the connections with flowlets, after a look at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// Earliest time at which a flowlet may be over; `None`: there is none.
    pub soonest: Option<Nanos>,
    /// Number of flowlets under way.
    pub n_active: u32,
    /// Number of rates that have not come into force for [`LATE`].
    pub n_late: u32,
}

impl Flowlets {
    /// Begins to watch the connections of this network namespace that `config` covers.
    ///
    /// # Errors
    /// If the kernel does not accept the program: it needs BTF, control groups of version 2, and root.
    pub fn watch(config: &Config) -> Result<Self, FlowletsError> {
        let open = ObjectBuilder::default().open_memory(OBJECT);
        let mut open = open.map_err(kernel("reading the BPF program"))?;
        set(&mut open, config.flowlets.gap);
        size(&mut open, config).map_err(kernel("sizing the BPF program's maps"))?;
        let object = open.load().map_err(kernel("loading the BPF program"))?;
        fill(&object, config).map_err(kernel("telling the BPF program of the fabric"))?;
        let (ring, events, seen) = listen(&object).map_err(kernel("opening the events"))?;
        let map = |name| handle(&object, name).map_err(kernel("opening the BPF program's maps"));
        let (rates, groups, lost) = (map("rates")?, map("groups")?, map(".data.lost")?);
        let namespaces = map("namespaces")?;
        let own = own_netns()?.to_ne_bytes();
        namespaces.update(&own, &[1], MapFlags::ANY).map_err(kernel("naming the namespace"))?;
        let (takes_over, tracked, flows) = (map(".data.takes_over")?, map(".data.tracked")?, map("flows")?);
        let attached = attach(&object, &flows, config.udp)?;
        Ok(Self {
            ring,
            events,
            seen,
            rates,
            groups,
            namespaces,
            own: File::open(OWN).map_err(|e| FlowletsError::Io(OWN, e))?,
            lost,
            takes_over,
            tracked,
            attached,
            _object: object,
        })
    }

    /// Returns the events since the last call, in order, at most [`BATCH`]. Waits for the first one up to `timeout`.
    ///
    /// # Errors
    /// If the kernel cannot be queried.
    pub fn events(&self, timeout: Duration) -> Result<Vec<Event>, FlowletsError> {
        let mut fds = [PollFd::new(self.ring.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(FlowletsError::Io("the kernel's events", e.into())),
        }
        let n = self.events.consume_raw_n(BATCH);
        if n < 0 {
            return Err(FlowletsError::Io("the kernel's events", std::io::Error::from_raw_os_error(-n)));
        }
        Ok(self.seen.take())
    }

    /// Returns the number of events lost so far for lack of room.
    ///
    /// # Errors
    /// If the kernel cannot be queried.
    pub fn lost(&self) -> Result<u64, FlowletsError> {
        let bytes = variable(&self.lost)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
    }

    /// Returns a handle to set rates with.
    ///
    /// # Errors
    /// If no file descriptor is available.
    pub fn pacer(&self) -> Result<Pacer, FlowletsError> {
        let rates = MapHandle::try_from(&self.rates).map_err(kernel("opening the rates"))?;
        Ok(Pacer { rates })
    }

    /// Changes the control groups that events name: removes `gone` and adds `come`.
    ///
    /// # Errors
    /// If the kernel cannot be queried.
    pub fn name_groups(&self, gone: &[u64], come: &[u64]) -> Result<(), FlowletsError> {
        let failed = kernel("naming control groups");
        for group in gone {
            delete(&self.groups, &group.to_ne_bytes()).map_err(&failed)?;
        }
        for group in come {
            self.groups.update(&group.to_ne_bytes(), &[1], MapFlags::ANY).map_err(&failed)?;
        }
        Ok(())
    }

    /// Changes the further network namespaces whose connections count.
    ///
    /// # Errors
    /// If the kernel cannot be queried.
    pub fn name_namespaces(&self, changes: &Changes) -> Result<(), FlowletsError> {
        let failed = kernel("naming namespaces");
        for number in &changes.gone {
            delete(&self.namespaces, &number.to_ne_bytes()).map_err(&failed)?;
        }
        for number in &changes.come {
            self.namespaces.update(&number.to_ne_bytes(), &[1], MapFlags::ANY).map_err(&failed)?;
        }
        Ok(())
    }

    /// Looks at the connections with flowlets, and no others: the ends found are among the next events.
    ///
    /// # Errors
    /// If the kernel cannot be queried.
    pub fn look_at_tracked(&self) -> Result<Tracked, FlowletsError> {
        walk(&self.attached.look_at_tracked)?;
        tracked(&variable(&self.tracked)?)
            .ok_or_else(|| FlowletsError::Io("the program's variables", std::io::ErrorKind::UnexpectedEof.into()))
    }

    /// Looks at all sockets of this network namespace and of `others`: rates of TCP come into force, and limits of
    /// ended flowlets are removed. Returns the flowlets under way.
    ///
    /// # Errors
    /// If the kernel cannot be queried.
    pub fn look_at_all(&self, others: &[Namespace]) -> Result<Vec<Event>, FlowletsError> {
        let mut bytes = Vec::new();
        for look in &self.attached.looks_at_all {
            bytes.extend(walk(look)?);
            for file in others.iter().filter_map(Namespace::open) {
                bytes.extend(walk_in(look, &file, &self.own)?);
            }
        }
        Ok(bytes.chunks_exact(EVENT).filter_map(event).collect())
    }

    /// Ends the takeover of limits that a dead agent left: from now on limits are those of programs.
    ///
    /// # Errors
    /// If the kernel cannot be queried.
    pub fn has_taken_over(&self) -> Result<(), FlowletsError> {
        let no = 0u32.to_ne_bytes();
        self.takes_over.update(&0u32.to_ne_bytes(), &no, MapFlags::ANY).map_err(kernel("setting a variable"))
    }
}

/// A handle that sets rates of connections.
pub struct Pacer {
    rates: MapHandle,
}

impl Pacer {
    /// Limits a connection to `rate_bps`; `None` removes the limit, so that its program and TCP decide. It comes into
    /// force within a round trip.
    ///
    /// # Errors
    /// If the largest number of connections is reached.
    pub fn pace(&self, cookie: Cookie, rate_bps: Option<f64>) -> Result<(), FlowletsError> {
        let result = match rate_bps {
            Some(rate) => self.rates.update(&cookie.to_ne_bytes(), &limit(rate).to_ne_bytes(), MapFlags::ANY),
            None => delete(&self.rates, &cookie.to_ne_bytes()),
        };
        result.map_err(kernel("setting a rate"))
    }
}

/// The bits of a rate below its first eleven, by which a new agent recognises the limits of a dead one. The program has
/// the same number.
const MARK: u32 = 0xb5a5_a5a5;

/// Converts a rate to the socket's format, in bytes a second: at most 34 Gb/s, and off by a thousandth because of
/// [`MARK`].
fn limit(rate_bps: f64) -> u32 {
    let bytes_per_s = (rate_bps / 8.0).clamp(1.0, f64::from(u32::MAX - 1)) as u32;
    let low = (1 << 21u32.saturating_sub(bytes_per_s.leading_zeros())) - 1;
    bytes_per_s & !low | MARK & low
}

fn delete(map: &MapHandle, key: &[u8]) -> libbpf_rs::Result<()> {
    match map.delete(key) {
        Err(cause) if cause.kind() != libbpf_rs::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

/// Runs an iterator and returns its output.
fn walk(link: &Link) -> Result<Vec<u8>, FlowletsError> {
    let mut output = Vec::new();
    let mut sockets = Iter::new(link).map_err(kernel("looking at sockets"))?;
    sockets.read_to_end(&mut output).map_err(|e| FlowletsError::Io("sockets", e))?;
    Ok(output)
}

/// Runs an iterator in another network namespace, and returns its output: it looks at the sockets of the namespace in
/// which it is begun. This thread enters it and comes back to `own`.
fn walk_in(link: &Link, namespace: &File, own: &File) -> Result<Vec<u8>, FlowletsError> {
    let enter = |file: &File| {
        let result = setns(file, CloneFlags::CLONE_NEWNET);
        result.map_err(|e| FlowletsError::Enter(e.into()))
    };
    enter(namespace)?;
    let output = walk(link);
    enter(own)?;
    output
}

fn variable(map: &MapHandle) -> Result<Vec<u8>, FlowletsError> {
    let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(kernel("reading a variable"))?;
    Ok(bytes.unwrap_or_default())
}

/// Fills in the program's settings.
fn set(open: &mut OpenObject, gap: Duration) {
    let mut maps = open.maps_mut();
    let settings = maps.find_map(|mut map| {
        let is_it = map.name().to_string_lossy().ends_with(".rodata");
        is_it.then(|| {
            let data = map.initial_value_mut().expect("constants have values");
            data[..8].copy_from_slice(&(gap.as_nanos() as u64).to_ne_bytes());
            data[8..16].copy_from_slice(&(LATE.as_nanos() as u64).to_ne_bytes());
        })
    });
    settings.expect("the program has constants");
}

/// Sets the sizes of maps that `config` needs.
fn size(open: &mut OpenObject, config: &Config) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        let room = match map.name().to_str() {
            Some("rates") => config.limits.flows as usize,
            Some("fabric") => config.fabric.len(),
            Some("servers") => 2 * config.allocator.servers.len(),
            // The namespaces before and after a change, and the own one.
            Some("namespaces") => 2 * config.namespaces.len() + 1,
            // The groups before and after a change.
            Some("groups") => 2 * config.weight.len(),
            _ => continue,
        };
        map.set_max_entries(room.max(1) as u32)?;
    }
    Ok(())
}

/// Writes the fabric and the allocators into the program's maps.
fn fill(object: &Object, config: &Config) -> libbpf_rs::Result<()> {
    let (fabric, servers) = (handle(object, "fabric")?, handle(object, "servers")?);
    for (address, bits) in config.fabric() {
        let key = [&u32::from(bits).to_ne_bytes()[..], &address.octets()].concat();
        fabric.update(&key, &[1], MapFlags::ANY)?;
    }
    for (address, port) in config.allocator.places() {
        let key = [&address.octets()[..], &u32::from(port).to_ne_bytes()].concat();
        servers.update(&key, &[1], MapFlags::ANY)?;
    }
    Ok(())
}

fn handle(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name).expect("the program has this map");
    MapHandle::try_from(&map)
}

type Seen = Rc<RefCell<Vec<Event>>>;

fn listen(object: &Object) -> libbpf_rs::Result<(MapHandle, RingBuffer<'static>, Seen)> {
    let seen = Seen::default();
    let (into, ring, mut builder) = (Rc::clone(&seen), handle(object, "events")?, RingBufferBuilder::new());
    let put = move |bytes: &[u8]| {
        into.borrow_mut().extend(event(bytes));
        0
    };
    builder.add(&ring, put)?;
    let events = builder.build()?;
    Ok((ring, events, seen))
}

/// This thread's network namespace.
const OWN: &str = "/proc/thread-self/ns/net";

/// Returns the inode of this thread's network namespace.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn own_netns() -> Result<u32, FlowletsError> {
    let file = std::fs::metadata(OWN).map_err(|e| FlowletsError::Io(OWN, e))?;
    Ok(file.ino() as u32)
}

/// Size of the program's `struct event` in bytes.
const EVENT: usize = 72;

/// Returns an address that the program has written: IPv4 addresses are mapped into IPv6's.
fn address(bytes: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
}

/// Reads the program's `struct event`; returns `None` if the bytes are not one.
fn event(bytes: &[u8]) -> Option<Event> {
    let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let address_at = |at: usize| Some(address(bytes.get(at..at + 16)?.try_into().ok()?));
    let kind = match u32::from_ne_bytes(bytes.get(64..68)?.try_into().ok()?) {
        1 => Kind::Begins,
        2 => Kind::Ends,
        3 => Kind::GoesOn,
        _ => return None,
    };
    Some(Event {
        cookie: u64_at(0)?,
        time: u64_at(8)?,
        group: u64_at(16)?,
        owner: u64_at(24)?,
        source: address_at(32)?,
        destination: address_at(48)?,
        kind,
    })
}

/// Reads the program's `tracked`.
fn tracked(bytes: &[u8]) -> Option<Tracked> {
    let soonest = u64::from_ne_bytes(*bytes.first_chunk()?);
    let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let soonest = (soonest != u64::MAX).then_some(soonest);
    Some(Tracked { soonest, n_active: u32_at(8)?, n_late: u32_at(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_the_program_lays_it_out() {
        let mut bytes = [0u8; EVENT];
        for (at, value) in [(0, 7u64), (8, 8), (16, 9), (24, 10)] {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[42..48].copy_from_slice(&[255, 255, 10, 0, 0, 1]);
        bytes[48] = 0xfd;
        bytes[63] = 2;
        bytes[64..68].copy_from_slice(&1u32.to_ne_bytes());
        let expected = Event {
            cookie: 7,
            time: 8,
            group: 9,
            owner: 10,
            source: [10, 0, 0, 1].into(),
            destination: "fd00::2".parse().unwrap(),
            kind: Kind::Begins,
        };
        assert_eq!(event(&bytes), Some(expected));
        assert_eq!(event(&bytes[..67]), None);
        bytes[64] = 4;
        assert_eq!(event(&bytes), None);
    }

    #[test]
    fn a_limit_is_near_its_rate_and_marked() {
        for exponent in 1..32 {
            for factor in [1.0, 1.3, 1.999] {
                let bytes_per_s = (f64::from(1u32 << exponent) * factor).min(f64::from(u32::MAX - 1)).floor();
                let limit = limit(8.0 * bytes_per_s);
                assert!((f64::from(limit) / bytes_per_s - 1.0).abs() < 1.0 / 1024.0, "{bytes_per_s}: {limit}");
                let n_low = (limit.ilog2() + 1).saturating_sub(11);
                assert_eq!(limit.ilog2(), (bytes_per_s as u32).ilog2());
                assert_eq!((limit ^ MARK) & ((1 << n_low) - 1), 0);
            }
        }
        // 125,000 bytes a second have 17 bits, and the lowest 6 of them are the mark's.
        assert_eq!(limit(1e6), 0x1e840 & !0x3f | 0x25);
        assert_eq!((limit(0.0), limit(1e15)), (1, 0xffe0_0000 | MARK & 0x001f_ffff));
    }
}
