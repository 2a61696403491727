//! TCP connections of this network namespace, seen and paced by a BPF program (`bpf/flowlets.bpf.c`).

use std::io::Read;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::{
    Iter, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, RingBuffer, RingBufferBuilder,
};

use crate::agent::{Cookie, Event};

/// The program, compiled.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/flowlets.bpf.o"));

/// The part of it that walks over sockets.
const WALK: &str = "visit";

/// The kind of an event that begins a flowlet.
const BEGINS: u32 = 1;

/// Why connections cannot be seen.
#[derive(Debug, thiserror::Error)]
pub enum FlowletsError {
    /// The kernel refused.
    #[error("{doing}: {cause}")]
    Kernel {
        /// What was tried.
        doing: &'static str,
        /// Its answer.
        cause: libbpf_rs::Error,
    },
    /// A file of `/proc` cannot be read.
    #[error("reading {0}: {1}")]
    Io(&'static str, std::io::Error),
}

/// The program at work. When this goes, the program goes from the kernel, and rates that were given stay.
pub struct Flowlets {
    rates: MapHandle,
    /// The program's variables.
    variables: MapHandle,
    events: RingBuffer<'static>,
    seen: Arc<Mutex<Vec<Event>>>,
    walk: Link,
    _programs: Vec<Link>,
    _object: Object,
}

impl Flowlets {
    /// Begins to watch the TCP connections of this network namespace. A flowlet ends when a connection has had nothing to send for
    /// `gap`.
    ///
    /// # Errors
    /// If the kernel does not take the program: it needs BTF and the tracepoint `sock_send_length` (Linux 6.3), and its caller root.
    pub fn watch(gap: Duration) -> Result<Self, FlowletsError> {
        let failed = |doing| move |cause| FlowletsError::Kernel { doing, cause };
        let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(failed("reading the BPF program"))?;
        set(&mut open, gap, own_netns()?);
        let object = open.load().map_err(failed("loading the BPF program"))?;
        let (mut programs, mut walk) = (Vec::new(), None);
        for program in object.progs_mut() {
            let link = program.attach().map_err(failed("attaching the BPF program"))?;
            if program.name() == WALK { walk = Some(link) } else { programs.push(link) }
        }
        let map = |name: &str| object.maps().find(|map| map.name() == name).expect("the program has this map");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&seen);
        let (ring, mut builder) = (map("events"), RingBufferBuilder::new());
        let put = move |bytes: &[u8]| {
            into.lock().unwrap_or_else(PoisonError::into_inner).extend(event(bytes));
            0
        };
        builder.add(&ring, put).map_err(failed("opening the events"))?;
        let events = builder.build().map_err(failed("opening the events"))?;
        let rates = MapHandle::try_from(&map("rates")).map_err(failed("opening the rates"))?;
        let bss = object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bss = bss.expect("the program has a variable");
        let variables = MapHandle::try_from(&bss).map_err(failed("opening the variables"))?;
        let walk = walk.expect("the program walks over sockets");
        Ok(Self { rates, variables, events, seen, walk, _programs: programs, _object: object })
    }

    /// What has happened since the last call, in order. Waits for something up to `timeout`, in milliseconds, one at least.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub fn events(&self, timeout: Duration) -> Result<Vec<Event>, FlowletsError> {
        let failed = |cause| FlowletsError::Kernel { doing: "waiting for events", cause };
        match self.events.poll(timeout.max(Duration::from_millis(1))) {
            Err(cause) if cause.kind() != libbpf_rs::ErrorKind::Interrupted => return Err(failed(cause)),
            _ => {}
        }
        Ok(std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Wants a connection paced at a rate from the next walk on; `None`: as TCP likes. A rate is told to TCP in whole bytes a second,
    /// up to 34 Gb/s.
    ///
    /// # Errors
    /// If there are too many connections.
    pub fn pace(&self, cookie: Cookie, rate_bps: Option<f64>) -> Result<(), FlowletsError> {
        let failed = |cause| FlowletsError::Kernel { doing: "setting a rate", cause };
        let key = cookie.to_ne_bytes();
        match rate_bps {
            Some(rate) => {
                let bytes_a_second = (rate / 8.0).clamp(1.0, f64::from(u32::MAX - 1)) as u32;
                self.rates.update(&key, &bytes_a_second.to_ne_bytes(), MapFlags::ANY).map_err(failed)
            }
            None => match self.rates.delete(&key) {
                Err(cause) if cause.kind() != libbpf_rs::ErrorKind::NotFound => Err(failed(cause)),
                _ => Ok(()),
            },
        }
    }

    /// Flowlets so far that could not be told of, as there were too many connections or events.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub fn missed(&self) -> Result<u64, FlowletsError> {
        let failed = |cause| FlowletsError::Kernel { doing: "reading a counter", cause };
        let bytes = self.variables.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        let first = bytes.as_deref().and_then(|bytes| bytes.first_chunk());
        Ok(first.map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
    }

    /// Walks over all sockets: rates come into force, ends of flowlets are found.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub fn walk(&self) -> Result<(), FlowletsError> {
        let failed = |cause| FlowletsError::Kernel { doing: "walking over sockets", cause };
        let mut nothing = Vec::new();
        Iter::new(&self.walk)
            .map_err(failed)?
            .read_to_end(&mut nothing)
            .map_err(|e| FlowletsError::Io("the sockets", e))?;
        Ok(())
    }
}

/// Fills in the program's settings.
fn set(open: &mut OpenObject, gap: Duration, netns: u32) {
    let mut maps = open.maps_mut();
    let settings = maps.find_map(|mut map| {
        let is_it = map.name().to_string_lossy().ends_with(".rodata");
        is_it.then(|| {
            let data = map.initial_value_mut().expect("constants have values");
            data[..8].copy_from_slice(&(gap.as_nanos() as u64).to_ne_bytes());
            data[8..12].copy_from_slice(&netns.to_ne_bytes());
        })
    });
    settings.expect("the program has constants");
}

/// The inode of this thread's network namespace.
fn own_netns() -> Result<u32, FlowletsError> {
    const PATH: &str = "/proc/thread-self/ns/net";
    let file = std::fs::metadata(PATH).map_err(|e| FlowletsError::Io(PATH, e))?;
    Ok(file.ino() as u32)
}

/// Reads `struct event` of the program; `None` if it is none.
fn event(bytes: &[u8]) -> Option<Event> {
    let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let address_at = |at: usize| {
        let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(octets).to_canonical())
    };
    let kind = u32::from_ne_bytes(bytes.get(52..56)?.try_into().ok()?);
    Some(Event {
        cookie: u64_at(0)?,
        cgroup: u64_at(8)?,
        source: SocketAddr::new(address_at(16)?, u16_at(48)?),
        destination: SocketAddr::new(address_at(32)?, u16_at(50)?),
        begins: kind == BEGINS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_the_program_lays_it_out() {
        let mut bytes = [0u8; 56];
        bytes[..8].copy_from_slice(&7u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&9u64.to_ne_bytes());
        bytes[16..32].copy_from_slice(&"::ffff:10.0.0.1".parse::<Ipv6Addr>().unwrap().octets());
        bytes[32..48].copy_from_slice(&"fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        bytes[48..50].copy_from_slice(&5000u16.to_ne_bytes());
        bytes[50..52].copy_from_slice(&80u16.to_ne_bytes());
        bytes[52..56].copy_from_slice(&BEGINS.to_ne_bytes());
        let expected = Event {
            cookie: 7,
            cgroup: 9,
            source: "10.0.0.1:5000".parse().unwrap(),
            destination: "[fd00::2]:80".parse().unwrap(),
            begins: true,
        };
        assert_eq!(event(&bytes), Some(expected));
        assert_eq!(event(&bytes[..55]), None);
    }
}
