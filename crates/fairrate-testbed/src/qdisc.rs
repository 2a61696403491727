//! Counters of queueing disciplines, by netlink.

use std::collections::HashMap;

use fairrate_sim::PortId;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::failure::Failure;
use crate::namespaces::inside;
use crate::plan::device;

/// Room for one part of an answer.
const BUFFER: usize = 64 * 1024;

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Bytes in the queue, including the packet sent next.
    pub backlog_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped.
    pub drops: u64,
}

/// The queues of some ports of one namespace. The socket stays in the namespace, whatever thread uses it.
pub struct Queues {
    socket: Socket,
    ports: HashMap<i32, PortId>,
    buffer: Vec<u8>,
}

impl Queues {
    /// Opens the queues of `ports`, whose devices are in `namespace`.
    ///
    /// # Errors
    /// If the namespace or a device does not exist.
    pub fn open(namespace: &str, ports: &[PortId]) -> Result<Self, Failure> {
        inside(namespace, || {
            let failed = |e| Failure::system("opening a netlink socket", e);
            let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed)?;
            socket.bind_auto().map_err(failed)?;
            socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
            let index = |&port: &PortId| {
                let index = nix::net::if_::if_nametoindex(device(port).as_str());
                Ok((index.map_err(|e| Failure::system("finding a device", e))?.cast_signed(), port))
            };
            let ports = ports.iter().map(index).collect::<Result<_, Failure>>()?;
            Ok(Self { socket, ports, buffer: Vec::with_capacity(BUFFER) })
        })
    }

    /// Passes the present counters of each port to `each`.
    ///
    /// # Errors
    /// If the kernel does not answer, or answers in an unknown format.
    pub fn read(&mut self, mut each: impl FnMut(PortId, PortCounters)) -> Result<(), Failure> {
        let failed = |e| Failure::system("asking for queues", e);
        self.socket.send(&request(), 0).map_err(failed)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0).map_err(failed)?;
            let mut rest = &self.buffer[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest);
                let message = message.map_err(|e| Failure::system("reading queues", e))?;
                match &message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(e) => return Err(Failure::system("asking for queues", e.to_io())),
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(queue)) => {
                        if let Some(port) = self.ports.get(&queue.header.index).filter(|_| is_root(queue)) {
                            each(*port, counters(queue));
                        }
                    }
                    _ => {}
                }
                // Messages are aligned to four bytes.
                let length = (message.header.length as usize).next_multiple_of(4).clamp(4, rest.len());
                rest = &rest[length..];
            }
        }
    }
}

fn is_root(queue: &TcMessage) -> bool {
    queue.header.parent == TcHandle::ROOT
}

fn request() -> Vec<u8> {
    let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(ask));
    message.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn counters(queue: &TcMessage) -> PortCounters {
    let mut counters = PortCounters::default();
    let all = queue.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Stats2(all) => Some(all),
        _ => None,
    });
    for part in all.flatten() {
        match part {
            TcStats2::Basic(basic) => {
                (counters.tx_bytes, counters.tx_packets) = (basic.bytes, u64::from(basic.packets));
            }
            TcStats2::Queue(queue) => {
                (counters.backlog_bytes, counters.drops) = (u64::from(queue.backlog), u64::from(queue.drops));
            }
            _ => {}
        }
    }
    counters
}
