use crate::config::EcnConfig;
use crate::ids::PortId;
use crate::mrg32k3a::AutomaticStreams;
use crate::rng::{Purpose, Stream};
use fairrate_units::Rate;

/// ECN marking at one egress port: RED on the instantaneous queue of a class, or on the port's phantom queue. Every
/// port has a marker, so the rare phantom queue is boxed.
pub enum Marker {
    /// Marking on the queue itself.
    Real(Red),
    /// Marking on a phantom queue.
    Phantom(Box<(PhantomQueue, Red)>),
    /// Marking on an average of the queue.
    Average(Box<(Average, Red)>),
}

/// Marking decision for a given queue length.
pub struct Red {
    kmin: f64,
    kmax: f64,
    pmax: f64,
    stream: Stream,
}

impl Marker {
    /// Creates the marker of all classes of `port`, or of one `class`, whose thresholds scale with `rate` if the
    /// configuration says so, and with `share`.
    pub fn new(config: &EcnConfig, (rate, share): (Rate, f64), seed: u64, (port, class): (PortId, Option<u8>)) -> Self {
        let (kmin, kmax) = config.thresholds(rate);
        let entity = class.map_or(0, |class| 1 + u64::from(class)) << 32 | u64::from(port.0);
        let stream = Stream::new(seed, entity, Purpose::EcnMark);
        let red = Red { kmin: kmin * share, kmax: kmax * share, pmax: config.pmax, stream };
        match config.phantom {
            None if let Some(weight) = config.average => {
                Self::Average(Box::new((Average { weight, bytes: 0.0, count: -1.0 }, red)))
            }
            None => Self::Real(red),
            Some(share) => Self::Phantom(Box::new((PhantomQueue::new(rate, share), red))),
        }
    }

    /// Returns the shortest queue at which the marker must see a packet. At shorter ones it marks none and draws
    /// nothing.
    pub fn sees_from(&self) -> u32 {
        match self {
            // The cast saturates: no queue is that long.
            Self::Real(red) => (red.kmin.floor() + 1.0) as u32,
            Self::Phantom(_) | Self::Average(_) => 0,
        }
    }

    /// Returns the queue length that decides about a packet of `wire` bytes, where `qlen` is the real queue including
    /// the packet. Must be called for every packet of a flow, as all of them fill the phantom queue.
    #[inline]
    pub fn queue(&mut self, now_ps: u64, wire: u16, qlen: u32) -> u32 {
        match self {
            Self::Real(_) | Self::Average(_) => qlen,
            Self::Phantom(both) => both.0.join(now_ps, wire),
        }
    }

    /// Returns `true` if a packet at a queue of `qlen` bytes is to be marked. The random number comes from `shared`, or
    /// else from the marker's own stream.
    #[inline]
    pub fn draw(&mut self, qlen: u32, shared: Option<&mut AutomaticStreams>) -> bool {
        match self {
            Self::Real(red) => red.draw(qlen, shared),
            Self::Phantom(both) => both.1.draw(qlen, shared),
            Self::Average(both) => both.0.draw(&mut both.1, qlen, shared),
        }
    }
}

impl Red {
    #[inline]
    fn draw(&mut self, qlen: u32, shared: Option<&mut AutomaticStreams>) -> bool {
        let qlen = f64::from(qlen);
        if qlen <= self.kmin {
            return false;
        }
        if self.kmax < qlen {
            return true;
        }
        let p = self.pmax * (qlen - self.kmin) / (self.kmax - self.kmin);
        shared.map_or_else(|| self.stream.uniform(), AutomaticStreams::uniform) < p
    }
}

/// RED on a moving average of the queue, with marks spread out by their count: S. Floyd, V. Jacobson, "Random Early
/// Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1993, section 4; as in the OMNeT++ code of RoCC's
/// authors.
pub struct Average {
    weight: f64,
    bytes: f64,
    /// Packets since the last mark within the thresholds; -1 below them.
    count: f64,
}

impl Average {
    fn draw(&mut self, red: &mut Red, qlen: u32, shared: Option<&mut AutomaticStreams>) -> bool {
        let qlen = f64::from(qlen);
        // The time that a queue was empty hardly counts in their code, where it is in seconds.
        if 0.0 < qlen {
            self.bytes += self.weight * (qlen - self.bytes);
        }
        if red.kmax <= self.bytes.max(if self.bytes < red.kmin { qlen } else { 0.0 }) {
            self.count = 0.0;
            return true;
        }
        if self.bytes < red.kmin {
            self.count = -1.0;
            return false;
        }
        self.count += 1.0;
        let p = red.pmax * (self.bytes - red.kmin) / (red.kmax - red.kmin);
        // Negative once count times p is above 1: then nothing is marked until the average leaves the thresholds.
        let p = p / (1.0 - self.count * p);
        let marks = shared.map_or_else(|| red.stream.uniform(), AutomaticStreams::uniform) < p;
        if marks {
            self.count = 0.0;
        }
        marks
    }
}

/// The queue that would build up at a slower link with the same arrivals. M. Alizadeh et al., "Less is More: Trading a
/// little Bandwidth for Ultra-Low Latency in the Data Center" (HULL), NSDI 2012, section 3.1.
pub struct PhantomQueue {
    rate_bps: u64,
    /// Backlog in bits times 10^12: a rate of 1 bit/s drains one unit per picosecond.
    backlog: u128,
    /// Time to which `backlog` refers.
    at_ps: u64,
}

/// A byte of backlog, in the units of `backlog`.
const BYTE: u128 = 8_000_000_000_000;

impl PhantomQueue {
    /// Creates an empty queue that drains at `share` of `rate`.
    fn new(rate: Rate, share: f64) -> Self {
        Self { rate_bps: Rate::from_bps_f64(rate.as_bps_f64() * share).as_bps(), backlog: 0, at_ps: 0 }
    }

    /// Adds a packet of `wire` bytes; returns the bytes in the queue then, rounded up.
    fn join(&mut self, now_ps: u64, wire: u16) -> u32 {
        let drained = u128::from(self.rate_bps) * u128::from(now_ps - self.at_ps);
        self.at_ps = now_ps;
        self.backlog = self.backlog.saturating_sub(drained) + u128::from(wire) * BYTE;
        u32::try_from(self.backlog.div_ceil(BYTE)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MarkAt, MarkBy, MarkDraws, NonEct};
    use fairrate_units::Bytes;

    fn config(kmin: u64, kmax: u64) -> EcnConfig {
        let per_rate = Some(Rate::from_gbps(25));
        EcnConfig {
            phantom: None,
            kmin: Bytes::new(kmin),
            kmax: Bytes::new(kmax),
            pmax: 0.2,
            kmin_per: per_rate,
            kmax_per: per_rate,
            average: None,
            at: MarkAt::Dequeue,
            draws: MarkDraws::PerPort,
            to_hosts: true,
            non_ect: NonEct::Mark,
            by: MarkBy::Class,
        }
    }

    #[test]
    fn thresholds_scale_with_the_rate_and_probability_is_linear() {
        let mut marker = Marker::new(&config(100_000, 400_000), (Rate::from_gbps(100), 1.0), 1, (PortId(0), None));
        assert!(!marker.draw(400_000, None));
        assert!(marker.draw(1_600_001, None));
        // Half way between 400 KB and 1.6 MB: p = 0.1, so 10,000 draws give 1,000 with standard error 30.
        let marks = (0..10_000).filter(|_| marker.draw(1_000_000, None)).count();
        assert!((850..1_150).contains(&marks), "{marks}");
    }

    #[test]
    fn a_step_marks_everything_above_k() {
        let mut marker = Marker::new(&config(30_000, 30_000), (Rate::from_gbps(25), 1.0), 1, (PortId(0), None));
        assert!(!marker.draw(30_000, None) && marker.draw(30_001, None));
    }

    #[test]
    fn an_average_follows_the_queue() {
        let averaged = EcnConfig { average: Some(0.2), kmin_per: None, kmax_per: None, ..config(30_000, 40_000) };
        let mut marker = Marker::new(&averaged, (Rate::from_gbps(25), 1.0), 1, (PortId(0), None));
        assert_eq!(marker.sees_from(), 0);
        // Below kmin a queue above kmax is marked at once, and the average is as it was.
        assert!([30_000, 30_000].into_iter().all(|qlen| !marker.draw(qlen, None)), "6 and 10.8 KB");
        assert!(marker.draw(60_000, None), "the average is 20.64 KB, and the queue is above kmax");
        assert!(marker.draw(200_000, None), "the average is 56.5 KB");
        // It falls below kmin in three packets of an empty port's 1 KB.
        let marks = (0..4).filter(|_| marker.draw(1_000, None)).count();
        assert!(marks <= 3 && !marker.draw(1_000, None));
    }

    /// Between its thresholds a mark comes the sooner the longer there was none: after 1/p packets at the latest, or
    /// never until the average leaves them.
    #[test]
    fn marks_on_an_average_are_spread_out() {
        let averaged =
            EcnConfig { average: Some(1.0), pmax: 0.1, kmin_per: None, kmax_per: None, ..config(0, 200_000) };
        let gaps = |seed| {
            let mut marker = Marker::new(&averaged, (Rate::from_gbps(25), 1.0), seed, (PortId(0), None));
            (0..1_000).map(|_| marker.draw(100_000, None)).collect::<Vec<_>>()
        };
        // p = 0.05: up to the 19th packet after a mark pb/(1 - count pb) is below 1.
        for marks in (1..20).map(gaps) {
            let at: Vec<usize> = marks.iter().enumerate().filter(|(_, mark)| **mark).map(|(i, _)| i).collect();
            assert!(at.windows(2).all(|pair| pair[1] - pair[0] <= 20), "{at:?}");
        }
    }

    /// Returns the lengths of the phantom queue of a port of 10 Gb/s after each packet of 1,000 bytes, which arrive
    /// every `gap_ps`.
    fn phantom_lengths(share: f64, gap_ps: u64, n: u64) -> Vec<u32> {
        let config = EcnConfig { phantom: Some(share), ..config(0, 0) };
        let mut marker = Marker::new(&config, (Rate::from_gbps(10), 1.0), 1, (PortId(0), None));
        (0..n).map(|i| marker.queue(i * gap_ps, 1_000, 1_000)).collect()
    }

    #[test]
    fn a_phantom_queue_grows_by_what_comes_beyond_its_share() {
        // Line rate: 800 ns a packet, in which 0.95 x 1,000 bytes drain. 50 bytes more with each packet.
        assert_eq!(phantom_lengths(0.95, 800_000, 4), [1_000, 1_050, 1_100, 1_150]);
        // After 10,000 packets: 1,000 + 9,999 x 50, exactly.
        assert_eq!(phantom_lengths(0.95, 800_000, 10_000).last(), Some(&500_950));
        // 0.96 of the line rate: 833.333 ns a packet, in which 989.583 bytes drain; 1,000 + 999 x 10.417.
        assert_eq!(phantom_lengths(0.95, 833_333, 1_000).last(), Some(&11_407));
    }

    #[test]
    fn below_its_share_a_phantom_queue_holds_a_packet() {
        // 0.95 of the line rate is 842.105 ns a packet.
        assert!(phantom_lengths(0.95, 842_106, 10_000).iter().all(|&qlen| qlen == 1_000));
        // Two at once after a long silence: the first finds nothing, the second the first.
        let config = EcnConfig { phantom: Some(0.5), ..config(1_500, 1_500) };
        let mut marker = Marker::new(&config, (Rate::from_gbps(25), 1.0), 1, (PortId(0), None));
        let first = marker.queue(3_600_000_000_000_000, 1_000, 1_000);
        let second = marker.queue(3_600_000_000_000_000, 1_000, 2_000);
        assert_eq!((first, second), (1_000, 2_000));
        assert!(!marker.draw(first, None) && marker.draw(second, None));
    }

    #[test]
    fn without_a_phantom_queue_the_real_one_counts() {
        let mut marker = Marker::new(&config(0, 0), (Rate::from_gbps(25), 1.0), 1, (PortId(0), None));
        assert_eq!([marker.queue(5, 1_000, 7), marker.queue(5, 1_000, 9)], [7, 9]);
    }
}
