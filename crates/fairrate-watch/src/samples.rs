//! Samples of ports, kept by port in bounded memory.

use fairrate_results::{PortRow, ResultsError};
use serde::Serialize;

use crate::network::Network;

/// Largest number of samples in memory, 40 bytes each. Beyond it, every second time of sampling is left out.
pub const SAMPLES_MAX: usize = 6 << 20;

/// A sample of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    /// The number of its time.
    at: u32,
    queue_bytes: u32,
    drops: u32,
    marks: u32,
    sent_bytes: u64,
    paused_ns: u64,
}

/// A quantity of a port that the picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bits sent since the sample before, over what the link could have sent.
    Utilisation,
    /// Bytes waiting.
    Queue,
    /// Share of the time since the sample before for which the port was paused.
    Paused,
}

impl Quantity {
    /// Returns the quantity called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "utilisation" => Some(Self::Utilisation),
            "queue" => Some(Self::Queue),
            "paused" => Some(Self::Paused),
            _ => None,
        }
    }
}

/// The samples of all ports of a run.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The times of samples, in ns.
    times: Vec<u64>,
    /// The samples of each port, in order of time.
    ports: Vec<Vec<Sample>>,
    /// The numbers of the ports that have samples, ascending.
    sampled: Vec<u32>,
    /// The number of samples of all ports.
    len: usize,
    /// One time of sampling out of `stride` is kept.
    stride: u32,
    /// The number of times of sampling so far.
    n_times: u32,
    /// The time of the last row, and `true` if its samples are kept.
    present: Option<(u64, bool)>,
}

/// A port over time, a value for each of its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Name of the port.
    pub name: String,
    /// Rate of its link, in bit/s.
    pub rate_bps: u64,
    /// Times of the samples, in ns.
    pub t_ns: Vec<u64>,
    /// Utilisation since the sample before, or since the start.
    pub utilisation: Vec<f32>,
    /// Bytes waiting.
    pub queue: Vec<u32>,
    /// Share of the time since the sample before, or since the start, in which it was paused.
    pub paused: Vec<f32>,
    /// Packets dropped since the start.
    pub drops: Vec<u32>,
    /// Packets marked since the start.
    pub marks: Vec<u32>,
}

impl Samples {
    /// Collects the rows that `each` calls its argument with: those of ports of `network`, with about `samples_max` in
    /// memory.
    ///
    /// # Errors
    /// As `each`.
    pub fn collect(
        network: &Network,
        samples_max: usize,
        each: impl FnOnce(&mut dyn FnMut(PortRow)) -> Result<(), ResultsError>,
    ) -> Result<Self, ResultsError> {
        let ports = vec![Vec::new(); network.links.len() * 2];
        let mut samples = Self { ports, stride: 1, ..Self::default() };
        each(&mut |row| samples.add(network, &row, samples_max))?;
        let has_some = |(port, samples): (u32, &Vec<Sample>)| (!samples.is_empty()).then_some(port);
        samples.sampled = (0u32..).zip(&samples.ports).filter_map(has_some).collect();
        Ok(samples)
    }

    fn add(&mut self, network: &Network, row: &PortRow, samples_max: usize) {
        let Some(&port) = network.ports.get(&*row.port) else { return };
        match self.present {
            // Rows are in order of time; those of a damaged table that are not are left out.
            Some((present, _)) if row.t_ns < present => return,
            Some((present, _)) if row.t_ns == present => {}
            _ => self.begin(row.t_ns),
        }
        let at = (self.times.len().max(1) - 1) as u32;
        let series = &mut self.ports[port as usize];
        // A second link between the same two nodes has the same name, and is left out.
        let is_second = series.last().is_some_and(|last| last.at == at);
        if is_second || !self.present.is_some_and(|(_, is_kept)| is_kept) {
            return;
        }
        series.push(Sample {
            at,
            queue_bytes: clamped(row.qlen_bytes),
            drops: clamped(row.drops),
            marks: clamped(row.ecn_marks),
            sent_bytes: row.tx_bytes,
            paused_ns: row.pfc_pause_ns,
        });
        self.len += 1;
        if samples_max < self.len && 2 <= self.times.len() {
            self.halve();
        }
    }

    /// Begins the time `t_ns`.
    fn begin(&mut self, t_ns: u64) {
        let is_kept = self.n_times.is_multiple_of(self.stride);
        self.n_times += 1;
        self.present = Some((t_ns, is_kept));
        if is_kept {
            self.times.push(t_ns);
        }
    }

    /// Leaves out every second time.
    fn halve(&mut self) {
        self.stride *= 2;
        let is_last_kept = !self.times.len().is_multiple_of(2);
        let mut place = 0..self.times.len();
        self.times.retain(|_| place.next().is_some_and(|i| i.is_multiple_of(2)));
        for series in &mut self.ports {
            series.retain(|sample| sample.at.is_multiple_of(2));
            for sample in series {
                sample.at /= 2;
            }
        }
        self.len = self.ports.iter().map(Vec::len).sum();
        self.present = self.present.map(|(t_ns, is_kept)| (t_ns, is_kept && is_last_kept));
    }

    /// Returns the times of samples, in ns.
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// Returns the numbers of the ports that have samples, ascending.
    pub fn sampled(&self) -> &[u32] {
        &self.sampled
    }

    /// Returns the longest queue of all samples, in bytes.
    pub fn largest_queue(&self) -> u32 {
        self.ports.iter().flatten().map(|sample| sample.queue_bytes).max().unwrap_or(0)
    }

    /// Returns the number of times of sampling of which one is kept.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Returns `quantity` of all sampled ports at the times `from` up to `from + n`, in the order of
    /// [`Samples::sampled`] and time by time, as little-endian numbers of 32 bits. A port that has no sample yet has
    /// NaN.
    pub fn frames(&self, network: &Network, quantity: Quantity, from: usize, n: usize) -> Vec<u8> {
        let until = from.saturating_add(n).min(self.times.len());
        let from = from.min(until);
        let width = self.sampled.len();
        let mut out = vec![0; (until - from) * width * 4];
        for (column, &port) in self.sampled.iter().enumerate() {
            let samples = &self.ports[port as usize];
            let mut next = samples.partition_point(|sample| (sample.at as usize) < from);
            for at in from..until {
                while samples.get(next).is_some_and(|sample| sample.at as usize <= at) {
                    next += 1;
                }
                let value = match next {
                    0 => f32::NAN,
                    after => self.value(network, port as usize, after - 1, quantity),
                };
                let place = 4 * ((at - from) * width + column);
                out[place..place + 4].copy_from_slice(&value.to_le_bytes());
            }
        }
        out
    }

    /// Returns `quantity` of a port at its sample `i`. Counters are 0 at the start of the run, which is before the
    /// first one.
    fn value(&self, network: &Network, port: usize, i: usize, quantity: Quantity) -> f32 {
        let samples = &self.ports[port];
        let sample = samples[i];
        if quantity == Quantity::Queue {
            return sample.queue_bytes as f32;
        }
        let (before, since) = match i.checked_sub(1).map(|before| samples[before]) {
            Some(before) => (before, self.times[before.at as usize]),
            None => (Sample::default(), 0),
        };
        let t_ns = self.times[sample.at as usize].saturating_sub(since) as f64;
        let share = match quantity {
            _ if t_ns == 0.0 => 0.0,
            Quantity::Utilisation => {
                let bits = 8.0 * sample.sent_bytes.saturating_sub(before.sent_bytes) as f64;
                bits / (network.rate(port) as f64 * t_ns / 1e9)
            }
            _ => sample.paused_ns.saturating_sub(before.paused_ns) as f64 / t_ns,
        };
        share as f32
    }

    /// Returns the port with the number `port` over time; without samples it has no times.
    pub fn series(&self, network: &Network, port: usize) -> Series {
        let samples = &self.ports[port];
        let values = |quantity| (0..samples.len()).map(|i| self.value(network, port, i, quantity)).collect();
        Series {
            name: network.port_name(port),
            rate_bps: network.rate(port),
            t_ns: samples.iter().map(|sample| self.times[sample.at as usize]).collect(),
            utilisation: values(Quantity::Utilisation),
            queue: samples.iter().map(|sample| sample.queue_bytes).collect(),
            paused: values(Quantity::Paused),
            drops: samples.iter().map(|sample| sample.drops).collect(),
            marks: samples.iter().map(|sample| sample.marks).collect(),
        }
    }
}

fn clamped(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use fairrate_sim::topology::Star;
    use fairrate_units::{Rate, Time};

    use super::*;

    fn star() -> Network {
        let star = Star { hosts: 2, rate: Rate::from_gbps(10), delay: Time::from_us(1) };
        Network::of("star", &star.build())
    }

    fn row(t_ns: u64, port: &str, qlen_bytes: u64, tx_bytes: u64, pfc_pause_ns: u64) -> PortRow {
        let (node, drops, ecn_marks) = (0, 0, 0);
        PortRow { t_ns, node, port: port.to_owned().into(), qlen_bytes, tx_bytes, drops, ecn_marks, pfc_pause_ns }
    }

    fn collect(rows: &[PortRow], samples_max: usize) -> Samples {
        let each = |add: &mut dyn FnMut(PortRow)| {
            rows.iter().cloned().for_each(add);
            Ok(())
        };
        Samples::collect(&star(), samples_max, each).expect("there is no error")
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    /// At 10 Gb/s, 1 us holds 1,250 bytes: 625 are half of it, and 250 ns are a quarter.
    #[test]
    fn shares_are_of_the_time_since_the_sample_before() {
        let rows = [row(0, "h0->sw0", 9, 0, 0), row(1_000, "h0->sw0", 7, 625, 250), row(3_000, "h0->sw0", 0, 625, 250)];
        let (samples, network) = (collect(&rows, 100), star());
        let of = |quantity| floats(&samples.frames(&network, quantity, 0, 9));
        let used = of(Quantity::Utilisation);
        assert_eq!(used, [0.0, 0.5, 0.0]);
        assert_eq!(of(Quantity::Paused), [0.0, 0.25, 0.0]);
        assert_eq!(of(Quantity::Queue), [9.0, 7.0, 0.0]);
    }

    #[test]
    fn a_port_keeps_its_value_until_its_next_sample() {
        let rows = [
            row(0, "h0->sw0", 1, 0, 0),
            row(10, "h0->sw0", 2, 0, 0),
            row(10, "sw0->h1", 8, 0, 0),
            row(20, "h0->sw0", 3, 0, 0),
        ];
        let samples = collect(&rows, 100);
        let got = floats(&samples.frames(&star(), Quantity::Queue, 0, 3));
        assert!(got[1].is_nan());
        assert_eq!((got[0], &got[2..]), (1.0, &[2.0, 8.0, 3.0, 8.0][..]));
    }

    /// 64 samples where 10 fit: one time in 8 is kept, and shares are of the time between those.
    #[test]
    fn samples_beyond_the_limit_are_thinned_evenly() {
        let rows: Vec<PortRow> = (0..64).map(|i| row(1_000 * i, "h0->sw0", i, 125 * i, 0)).collect();
        let samples = collect(&rows, 10);
        assert_eq!(samples.stride(), 8);
        assert_eq!(samples.times(), (0..8).map(|i| 8_000 * i).collect::<Vec<_>>());
        let queue = floats(&samples.frames(&star(), Quantity::Queue, 0, 9));
        assert_eq!(queue, [0.0, 8.0, 16.0, 24.0, 32.0, 40.0, 48.0, 56.0]);
        let used = floats(&samples.frames(&star(), Quantity::Utilisation, 1, 9));
        assert!(used.iter().all(|share| (share - 0.1).abs() < 1e-6), "{used:?}");
    }

    #[test]
    fn rows_of_unknown_ports_and_out_of_order_are_left_out() {
        let rows = [
            row(5, "h0->sw0", 1, 0, 0),
            row(6, "host-rx->h1", 2, 0, 0),
            row(4, "h0->sw0", 3, 0, 0),
            row(5, "h0->sw0", 4, 0, 0),
        ];
        let samples = collect(&rows, 100);
        assert_eq!((samples.times(), samples.sampled()), (&[5][..], &[0][..]));
        assert_eq!(floats(&samples.frames(&star(), Quantity::Queue, 0, 1)), [1.0]);
    }
}
