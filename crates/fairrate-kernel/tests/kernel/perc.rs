//! PERC's program at a port: control packets that it answers, and packets that are made to harm it.
//!
//! The kernel runs the program on single packets (`BPF_PROG_TEST_RUN`), as if they left the loopback device of a
//! namespace.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

use bytemuck::{bytes_of, pod_read_unaligned};
use fairrate_kernel::laws::{PERC_EXIT, PERC_FLOWS, PercLink, PercRecord, perc_rate, perc_word};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::traffic::{Network, inside, succeed};
use crate::{clean, command, done, machine, refused};

const PINS: &str = "/sys/fs/bpf/fairrate/perc";
/// The link's rate, 100 Mb/s, in 2^-16 bit/s.
const CAPACITY: u64 = 100_000_000 << 16;
const INFINITE: u32 = u32::MAX;
/// Position of the option in [`packet`], and of its words.
const OPTION: usize = 54;
const WORDS: usize = OPTION + 4;

/// A namespace whose loopback device has PERC's program; it is removed with this value.
struct Port(String);

impl Port {
    fn new() -> Self {
        let name = format!("frp{}", std::process::id());
        succeed(&format!("ip netns add {name}"));
        done(&format!("attach perc --netns {name} --switch-port {name}/lo:100Mbps"));
        Self(name)
    }

    /// Has the program handle a packet `n` times; returns the packet afterwards, and the nanoseconds that each time
    /// took.
    fn handle(&self, packet: &[u8], n: i32) -> (Vec<u8>, u32) {
        let run = || {
            let fd = Program::fd_from_pinned_path(format!("{PINS}/port")).map_err(std::io::Error::other)?;
            let mut out = vec![0_u8; 2_048];
            let mut options = libbpf_sys::bpf_test_run_opts {
                sz: std::mem::size_of::<libbpf_sys::bpf_test_run_opts>() as u64,
                data_in: packet.as_ptr().cast(),
                data_size_in: packet.len() as u32,
                data_out: out.as_mut_ptr().cast(),
                data_size_out: out.len() as u32,
                repeat: n,
                ..Default::default()
            };
            // SAFETY: the pointers are to buffers of the sizes given, which outlive the call.
            let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(fd.as_raw_fd(), &raw mut options) };
            if result != 0 {
                return Err(std::io::Error::last_os_error());
            }
            out.truncate(options.data_size_out as usize);
            Ok((out, options.duration))
        };
        inside(&self.0, run).expect("the program runs on any packet")
    }

    /// Returns the program's table.
    fn link() -> PercLink {
        let points = MapHandle::from_pinned_path(format!("{PINS}/points")).expect("it is attached");
        let key = points.keys().next().expect("one port has it");
        let value = points.lookup(&key, MapFlags::ANY).expect("it is a map").expect("the key is there");
        pod_read_unaligned(&value)
    }

    /// Sends a control packet of the flow with this source; returns the answer as the link gave it.
    fn ask(&self, source: u32, demand: u32, flags: u32) -> PercRecord {
        let (packet, _) = self.handle(&packet(source, 5_000, demand, flags), 1);
        assert_eq!(checksum(&packet), 0, "the packet's checksum is right");
        pod_read_unaligned(&packet[WORDS..WORDS + 24])
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _ = command("detach perc --unused --force").output();
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Returns a packet of TCP with a control packet, from the host `source`.
fn packet(source: u32, port: u16, demand: u32, flags: u32) -> Vec<u8> {
    let mut p = vec![0; 14];
    p[12..14].copy_from_slice(&[8, 0]);
    p.extend([0x45, 0, 0, 100, 0, 1, 0x40, 0, 64, 6, 0, 0]);
    p.extend(source.to_be_bytes());
    p.extend([10, 9, 0, 1]);
    p.extend(port.to_be_bytes());
    p.extend([0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, (12 << 4), 0x10, 1, 0, 0, 0, 0, 0]);
    let record = PercRecord {
        demand_bottleneck: demand,
        demand_others: demand,
        smallest: INFINITE,
        second: INFINITE,
        links: INFINITE,
        seq_and_flags: 1 << 8 | flags,
    };
    p.extend([253, 28, 0xfa, 0x1a]);
    p.extend(bytes_of(&record));
    p.extend([7; 32]);
    let sum = checksum(&p);
    p[50..52].copy_from_slice(&sum.to_be_bytes());
    p
}

/// Returns TCP's checksum over a packet; 0 if the packet's own is right.
fn checksum(packet: &[u8]) -> u16 {
    let pseudo = [0, 6, 0, (packet.len() - 34) as u8];
    let bytes = [&packet[26..34], &pseudo, &packet[34..]].concat();
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn is_capacity_over(word: u32, n: u64) -> bool {
    word == perc_word(CAPACITY / n)
}

/// Checks that a table is one that honest flows could have made.
#[track_caller]
fn is_sound(link: &PercLink) {
    let n = link.n as usize;
    assert!(n <= PERC_FLOWS && link.lock == 0 && link.capacity == CAPACITY);
    let entries = &link.entries[..n];
    assert!(entries.windows(2).all(|pair| pair[0].rate <= pair[1].rate) && entries.iter().all(|e| e.rate <= CAPACITY));
    let mut flows: Vec<(u64, u32)> = entries.iter().map(|e| (e.hosts, e.ports)).collect();
    flows.sort_unstable();
    flows.dedup();
    assert_eq!(flows.len(), n, "each flow is there once");
}

#[test]
fn a_port_answers_and_forgets() {
    let Some(_machine) = machine() else { return };
    let port = Port::new();
    // Alone 100 Mb/s, then half; with a demand of 10 Mb/s the other has 90.
    assert!(is_capacity_over(port.ask(1, INFINITE, 0).smallest, 1));
    let second = port.ask(2, INFINITE, 0);
    assert!(is_capacity_over(second.smallest, 2));
    assert_eq!((second.second, second.links & 0xffff), (INFINITE, 1), "the port has number 1");
    port.ask(2, perc_word(CAPACITY / 10), 0);
    assert_eq!(port.ask(1, INFINITE, 0).smallest, perc_word(CAPACITY / 10 * 9));
    assert_eq!(Port::link().n, 2);
    // The second leaves.
    port.ask(2, 0, PERC_EXIT);
    assert!(is_capacity_over(port.ask(1, INFINITE, 0).smallest, 1));
    // The first is never heard of again: after a second it counts no more.
    thread::sleep(Duration::from_millis(1_100));
    assert!(is_capacity_over(port.ask(3, INFINITE, 0).smallest, 1));
    assert_eq!(Port::link().n, 1);
    // A lower answer of another link stays; the link's own is then the second.
    let mut from_other = packet(3, 5_000, INFINITE, 0);
    from_other[WORDS + 8..WORDS + 12].copy_from_slice(&perc_word(CAPACITY / 50).to_le_bytes());
    let (after, _) = port.handle(&from_other, 1);
    let record: PercRecord = pod_read_unaligned(&after[WORDS..WORDS + 24]);
    assert_eq!((record.smallest, record.second), (perc_word(CAPACITY / 50), perc_word(CAPACITY)));
    done("detach perc --force");
    drop(port);
    assert!(clean::is_clean());
}

/// Packets that are cut, changed at random places, or changed on purpose, from hosts that lie.
#[test]
fn no_packet_harms_the_table() {
    let Some(_machine) = machine() else { return };
    let port = Port::new();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut draw = move |n: u64| random.next_u64() % n;
    for round in 0..20_000 {
        let (source, from) = (0x0a00_0000 + draw(4) as u32, draw(100) as u16);
        let demand = [0, 1, INFINITE, draw(1 << 32) as u32][draw(4) as usize];
        let mut p = packet(source, from, demand, draw(4) as u32);
        for _ in 0..draw(4) {
            let at = draw(p.len() as u64) as usize;
            p[at] = draw(256) as u8;
        }
        match draw(8) {
            // A part of a packet: what looks like a header of TCP is data.
            0 => p[21] = 1 + draw(255) as u8,
            // Lengths of headers and options that lie.
            1 => p[14] = 0x40 | draw(16) as u8,
            2 => p[46] = (draw(16) as u8) << 4,
            3 => p[OPTION + 1] = draw(256) as u8,
            // The kernel has checked that there is a header of IP.
            4 => p.truncate(34 + draw(80) as usize),
            _ => {}
        }
        let before = p.clone();
        let (after, _) = port.handle(&p, 1);
        assert_eq!(after.len(), before.len());
        // Nothing is written but answers and the checksum.
        let differs = |at: &usize| before[*at] != after[*at];
        let n = (0..before.len()).filter(differs).count();
        assert!(n <= 24 + 2, "round {round}: {n} bytes are changed");
        if round % 500 == 0 {
            is_sound(&Port::link());
        }
    }
    is_sound(&Port::link());
    // The liars are flows like others, and together no more than their number: an honest flow gets its part.
    let answer = port.ask(0x0a00_00ff, INFINITE, 0);
    let n = u64::from(Port::link().n);
    assert!(CAPACITY / n <= perc_rate(answer.smallest) + (CAPACITY >> 20), "{n} flows: {answer:?}");
    done("detach perc --force");
    drop(port);
    assert!(clean::is_clean());
}

/// A host with a thousand connections takes no more than its part of the table, and the longest answer is short.
#[test]
fn a_full_table_answers_fast_and_keeps_room() {
    let Some(_machine) = machine() else { return };
    let port = Port::new();
    for from in 0..1_000 {
        port.handle(&packet(0x0a00_0001, from, INFINITE, 0), 1);
    }
    let n = Port::link().n as usize;
    assert_eq!(n, PERC_FLOWS / 2 + 1, "a sender has no more once half of the table is taken");
    for source in 0..200 {
        port.handle(&packet(0x0a00_0100 + source, 1, perc_word(u64::from(source + 1) << 30), 0), 1);
    }
    let full = Port::link();
    is_sound(&full);
    assert_eq!(full.n as usize, PERC_FLOWS);
    assert_eq!(port.ask(0x0b00_0000, INFINITE, 0).smallest, perc_word(CAPACITY >> 10), "without room, a small part");
    let (_, ns) = port.handle(&packet(0x0a00_0100, 1, 1, 0), 20_000);
    println!("perc: a control packet at a full table takes {ns} ns");
    assert!(ns < 200_000, "{ns} ns");
    done("detach perc --force");
    drop(port);
    assert!(clean::is_clean());
}

#[test]
fn a_flow_is_in_the_table_while_it_sends() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    let hosts = format!("--netns {0} --netns {1}", net.name("1"), net.name("2"));
    done(&format!("attach perc --line-rate 1Gbps {hosts} --switch-port {}:100Mbps", net.port()));
    let watched = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            (0..400).any(|_| {
                thread::sleep(Duration::from_millis(1));
                Port::link().n == 1
            })
        });
        let began = std::time::Instant::now();
        net.send("fr_perc", 4_000_000);
        // 4 MB take 0.34 s at 100 Mb/s of the wire; from one Gb/s they would not fit the queue of 500 KB.
        let took = began.elapsed();
        assert!((300..3_000).contains(&took.as_millis()), "{took:?}");
        watcher.join().expect("no panic")
    });
    assert!(watched, "it was there");
    assert_eq!(Port::link().n, 0, "it has left");
    done("detach perc --force");
    drop(net);
    assert!(clean::is_clean());
}

#[test]
fn settings_that_the_kernel_lacks_are_refused() {
    let Some(_machine) = machine() else { return };
    let message = refused("attach perc:share=printed");
    assert!(message.contains("the kernel's PERC has no `share = \"printed\"`"), "{message}");
    let message = refused("attach perc:increase_wait=7");
    assert!(message.contains("give at most 6 round trips"), "{message}");
    assert!(clean::is_clean());
}
