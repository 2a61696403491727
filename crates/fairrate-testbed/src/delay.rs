//! The delays that are laid out, and the packets in transit over a link with such a delay.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::{Duration, Instant};

use fairrate_sim::topology::Link;
use fairrate_units::{Bytes, Rate, Time};

/// The shortest delay that is laid out. The threshold is our choice: in four runs with all processors in use, 99 of 100
/// packets were at most 80 to 122 us late.
pub const LEAST: Time = Time::from_us(500);
/// Time of packets that a line holds beyond its link's delay: the largest lateness of the machine before packets find
/// no room.
const SPARE: Time = Time::from_ms(50);
/// Length of the shortest packet with its header of [`HEADER`] bytes, and a margin. There is room for a link full of
/// such packets.
const LEAST_PACKET: usize = 64;
/// Length of the kernel's header before a packet: whether its checksum is computed, and where.
pub const HEADER: usize = 10;

/// Returns `true` if links of delay `delay` have it on Linux too; shorter delays are left out.
pub fn is_laid_out(delay: Time) -> bool {
    LEAST <= delay
}

/// Returns the largest memory, in bytes, of both directions of a link.
pub fn memory(link: &Link) -> Bytes {
    let of_packets = size_of::<(Instant, usize)>() as u64 * (room(link.delay, link.rate) / LEAST_PACKET) as u64;
    Bytes::new(2 * (room(link.delay, link.rate) as u64 + of_packets))
}

/// Returns the bytes of packets, with their headers, that a direction may hold.
fn room(delay: Time, rate: Rate) -> usize {
    let on_the_wire = rate.bytes_in(delay + SPARE).as_u64() as usize;
    on_the_wire + on_the_wire / LEAST_PACKET * HEADER
}

/// One direction of a link: packets in the order of their arrival, each kept for the same time. All memory is allocated
/// at the beginning.
#[derive(Debug)]
pub struct DelayLine {
    delay: Duration,
    bytes: VecDeque<u8>,
    /// Time at which each packet is due, and its length.
    packets: VecDeque<(Instant, usize)>,
    room: usize,
    most: usize,
    last_due: Option<Instant>,
}

impl DelayLine {
    /// Creates an empty line with this delay, for packets that arrive at `rate`.
    pub fn new(delay: Time, rate: Rate) -> Self {
        let room = room(delay, rate);
        let most = room / LEAST_PACKET;
        Self {
            delay: Duration::from_nanos(delay.as_ns()),
            bytes: VecDeque::with_capacity(room),
            packets: VecDeque::with_capacity(most),
            room,
            most,
            last_due: None,
        }
    }

    /// Returns the time for which a packet is kept.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Adds a packet that has arrived at `arrived`; returns `false` if there is no room for it.
    pub fn push(&mut self, arrived: Instant, packet: &[u8]) -> bool {
        if self.room < self.bytes.len() + packet.len() || self.packets.len() == self.most {
            return false;
        }
        // Clocks of arrivals may step back; packets keep their order.
        let due = self.last_due.map_or(arrived + self.delay, |last| last.max(arrived + self.delay));
        self.last_due = Some(due);
        self.bytes.extend(packet);
        self.packets.push_back((due, packet.len()));
        true
    }

    /// Returns the time at which the first packet is due.
    pub fn due(&self) -> Option<Instant> {
        self.packets.front().map(|(due, _)| *due)
    }

    /// Returns the first packet, in two parts; the second may be empty.
    pub fn first(&self) -> Option<[IoSlice<'_>; 2]> {
        let (_, length) = *self.packets.front()?;
        let (start, rest) = self.bytes.as_slices();
        let start = &start[..start.len().min(length)];
        Some([IoSlice::new(start), IoSlice::new(&rest[..length - start.len()])])
    }

    /// Removes the first packet.
    pub fn pop(&mut self) {
        if let Some((_, length)) = self.packets.pop_front() {
            self.bytes.drain(..length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(5);

    fn line() -> DelayLine {
        DelayLine::new(Time::from_ms(5), Rate::from_mbps(8))
    }

    fn first(line: &DelayLine) -> Vec<u8> {
        line.first().unwrap().concat_parts()
    }

    trait Parts {
        fn concat_parts(&self) -> Vec<u8>;
    }

    impl Parts for [IoSlice<'_>; 2] {
        fn concat_parts(&self) -> Vec<u8> {
            self.iter().flat_map(|part| part.iter().copied()).collect()
        }
    }

    #[test]
    fn packets_leave_in_order_after_the_delay() {
        let (mut line, t) = (line(), Instant::now());
        assert!(line.due().is_none() && line.first().is_none());
        assert!(line.push(t, b"one") && line.push(t + Duration::from_millis(1), b"another"));
        assert_eq!((line.due(), first(&line)), (Some(t + DELAY), b"one".to_vec()));
        line.pop();
        assert_eq!((line.due(), first(&line)), (Some(t + Duration::from_millis(6)), b"another".to_vec()));
        line.pop();
        assert!(line.due().is_none());
    }

    #[test]
    fn a_clock_that_steps_back_changes_no_order() {
        let (mut line, t) = (line(), Instant::now());
        line.push(t + Duration::from_millis(2), b"first");
        line.push(t, b"second");
        line.pop();
        assert_eq!(line.due(), Some(t + Duration::from_millis(7)));
    }

    #[test]
    fn a_full_line_takes_no_more_and_no_more_memory() {
        // 8 Mb/s for 55 ms are 55,000 bytes, and 10 bytes more for each 64 of them.
        let (mut line, t) = (line(), Instant::now());
        let memory = line.bytes.capacity();
        let taken = (0..1_000).take_while(|_| line.push(t, &[7; 1_000])).count();
        assert_eq!(taken, (55_000 + 55_000 / 64 * 10) / 1_000);
        for _ in 0..100 {
            line.pop();
            assert!(line.push(t, &[8; 1_000]));
            assert!(!line.push(t, &[9; 1_000]));
        }
        assert_eq!(first(&line), vec![8; 1_000]);
        assert_eq!(line.bytes.capacity(), memory);
    }

    #[test]
    fn packets_stay_whole_where_the_memory_ends() {
        let (mut line, t) = (line(), Instant::now());
        for i in 0..1_000_u32 {
            let packet: Vec<u8> = (0..700 + i % 13).map(|byte| (byte + i) as u8).collect();
            assert!(line.push(t, &packet));
            assert_eq!(first(&line), packet);
            line.pop();
        }
    }

    #[test]
    fn only_delays_that_the_machine_keeps_are_laid_out() {
        assert!(is_laid_out(LEAST) && !is_laid_out(LEAST.saturating_sub(Time::from_ns(1))));
    }
}
