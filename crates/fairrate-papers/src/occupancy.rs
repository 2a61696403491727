//! The buffer occupancy of ToRs.

use fairrate_sim::NodeId;
use fairrate_units::Time;

use crate::record::Record;

/// The bytes that ToRs hold for all their sampled egress ports, in KB, at each sample until the last flow starts.
pub struct Occupancy {
    /// Samples of each ToR, in order of its name's number.
    pub tors: Vec<Vec<f64>>,
}

impl Occupancy {
    /// Reads a run whose probes have ports of ToRs, all with the same interval.
    pub fn of(record: &Record) -> Self {
        let topology = &record.config.topology;
        let last = record.config.flows.iter().map(|flow| flow.start).max().unwrap_or(Time::ZERO);
        let nodes: Vec<NodeId> = (0..).map_while(|i| topology.node(&format!("tor{i}"))).collect();
        let mut tors = vec![Vec::new(); nodes.len()];
        for at in record.ports.chunk_by(|a, b| a.t == b.t).take_while(|at| at[0].t <= last) {
            let mut held = vec![0.0; nodes.len()];
            for sample in at {
                let from = topology.from(sample.port);
                if let Some(tor) = nodes.iter().position(|node| *node == from) {
                    held[tor] += sample.qlen_bytes as f64 / 1e3;
                }
            }
            tors.iter_mut().zip(held).for_each(|(tor, held)| tor.push(held));
        }
        Self { tors }
    }

    /// Returns the samples of all ToRs, in KB, one ToR after the other.
    pub fn all(&self) -> impl Iterator<Item = f64> + '_ {
        self.tors.iter().flatten().copied()
    }

    /// Returns the largest value of each `samples` samples of the ToR `tor`.
    pub fn largest_of(&self, tor: usize, samples: usize) -> impl Iterator<Item = f64> + '_ {
        let of_tor = self.tors.get(tor).map_or(&[][..], Vec::as_slice);
        of_tor.chunks_exact(samples).map(|window| window.iter().copied().fold(0.0, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_windows_leaves_out_one_that_is_not_full() {
        let occupancy = Occupancy { tors: vec![vec![1.0, 5.0, 2.0, 3.0, 9.0], vec![0.0; 5]] };
        assert_eq!(occupancy.largest_of(0, 2).collect::<Vec<_>>(), [5.0, 3.0]);
        assert_eq!((occupancy.largest_of(2, 2).count(), occupancy.all().count()), (0, 10));
    }
}
