//! The load: every host begins messages to others at random times, each on a connection of its own.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fairrate_sim::rng::{Purpose, Stream};
use socket2::{Domain, Socket, Type};

use crate::network::{LINK_MBPS, Network, PAYLOAD_SHARE};
use crate::rack::{Rack, at};

const PORT: u16 = 5_002;
/// Smallest and largest message in bytes. The logarithm of a message's size is uniform.
const SIZES: (f64, f64) = (20e3, 2e6);
/// Time after which a connection that the network refuses is tried again.
const AGAIN: Duration = Duration::from_millis(200);
/// Stack of the thread of a connection.
const STACK: usize = 1 << 18;

/// A connection that sends a message.
pub struct Flow {
    pub socket: TcpStream,
    pub src: u32,
    pub dst: u32,
    /// Time of the first byte.
    pub began: Instant,
    /// `true` once the socket has all bytes.
    pub is_written: AtomicBool,
}

/// Bytes and connections since they were last taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Payload bytes of messages whose time has come.
    pub offered: u64,
    /// Payload bytes received.
    pub received: u64,
    /// Messages that arrived in whole.
    pub done: u64,
    /// Messages whose connection broke.
    pub broken: u64,
}

/// The load and its open connections.
#[derive(Default)]
pub struct Load {
    flows: Mutex<BTreeMap<u64, Arc<Flow>>>,
    next: AtomicU64,
    offered: AtomicU64,
    received: AtomicU64,
    done: AtomicU64,
    broken: AtomicU64,
    is_over: AtomicBool,
}

impl Load {
    /// Starts receivers and senders at all hosts of `network`. Each sends `share` of what its link carries.
    pub fn start(network: &Network, seed: u64, share: f64) -> Arc<Self> {
        let load = Arc::new(Self::default());
        for host in 0..network.hosts() {
            let listener = network.at(host, || TcpListener::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT)));
            let receiving = Arc::clone(&load);
            thread::spawn(move || receiving.receive(&listener));
            let (sending, namespace, hosts) = (Arc::clone(&load), network.namespace(host), network.hosts());
            // Threads that are started inside are in the namespace too.
            thread::spawn(move || {
                at(&namespace, || {
                    sending.send(host, hosts, seed, share);
                    Ok(())
                })
            });
        }
        load
    }

    /// Begins no more messages.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns the connections that are open, by number.
    pub fn flows(&self) -> Vec<(u64, Arc<Flow>)> {
        self.lock().iter().map(|(number, flow)| (*number, Arc::clone(flow))).collect()
    }

    /// Returns what has happened since the last call.
    pub fn take(&self) -> Count {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Count {
            offered: take(&self.offered),
            received: take(&self.received),
            done: take(&self.done),
            broken: take(&self.broken),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Flow>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Begins messages from `src`, one thread each, until the load is over.
    fn send(self: &Arc<Self>, src: u32, hosts: u32, seed: u64, share: f64) {
        let mut draw = Stream::new(seed, src.into(), Purpose::Test);
        let (least, most) = SIZES;
        let mean_bytes = (most - least) / (most / least).ln();
        let bytes_per_s = share * PAYLOAD_SHARE * f64::from(LINK_MBPS) * 1e6 / 8.0;
        let mut due = Instant::now();
        while !self.is_over() {
            due += Duration::from_secs_f64(draw.exponential(mean_bytes / bytes_per_s));
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let bytes = (least * (most / least).powf(draw.uniform())) as u64;
            let other = draw.below(u64::from(hosts) - 1) as u32;
            let dst = if other < src { other } else { other + 1 };
            self.offered.fetch_add(bytes, Ordering::Relaxed);
            let load = Arc::clone(self);
            let message = move || {
                let count = if load.message(src, dst, bytes).is_ok() { &load.done } else { &load.broken };
                count.fetch_add(1, Ordering::Relaxed);
            };
            thread::Builder::new().stack_size(STACK).spawn(message).expect("a thread can be started");
        }
    }

    /// Sends a message of `bytes`, whose first eight have its length, and waits until all of it has arrived.
    fn message(&self, src: u32, dst: u32, bytes: u64) -> std::io::Result<()> {
        let connect = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_tcp_congestion(b"cubic")?;
            socket.connect(&SocketAddrV4::new(Rack::address(dst), PORT).into()).map(|()| socket)
        };
        let socket = loop {
            match connect() {
                // While a link is down the switch says that the host cannot be reached.
                Err(_) if !self.is_over() => thread::sleep(AGAIN),
                tried => break tried?,
            }
        };
        let flow = Flow { socket: socket.into(), src, dst, began: Instant::now(), is_written: AtomicBool::new(false) };
        let (flow, number) = (Arc::new(flow), self.next.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(number, Arc::clone(&flow));
        let sent = Self::write(&flow, bytes);
        self.lock().remove(&number);
        sent
    }

    fn write(flow: &Flow, bytes: u64) -> std::io::Result<()> {
        let mut socket = &flow.socket;
        let mut block = [0; 1 << 14];
        block[..8].copy_from_slice(&bytes.to_be_bytes());
        let mut left = bytes as usize;
        while 0 < left {
            let n = left.min(block.len());
            socket.write_all(&block[..n])?;
            left -= n;
        }
        flow.is_written.store(true, Ordering::Relaxed);
        // The receiver says that it has all of it.
        socket.read_exact(&mut [0])
    }

    fn receive(self: &Arc<Self>, listener: &TcpListener) {
        for from in listener.incoming().map_while(Result::ok) {
            let load = Arc::clone(self);
            let take = move || drop(load.read(from));
            thread::Builder::new().stack_size(STACK).spawn(take).expect("a thread can be started");
        }
    }

    fn read(&self, mut from: TcpStream) -> std::io::Result<()> {
        let mut first = [0; 8];
        from.read_exact(&mut first)?;
        self.received.fetch_add(8, Ordering::Relaxed);
        let mut left = u64::from_be_bytes(first) as usize - 8;
        let mut buffer = [0; 1 << 14];
        while 0 < left {
            let n = from.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            self.received.fetch_add(n as u64, Ordering::Relaxed);
            left -= n.min(left);
        }
        from.write_all(&[0])
    }
}
