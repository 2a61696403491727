//! `bench --predict`: the speed-up that a core for each part of a network would give, from a run on one core.
//!
//! A network that is cut into N parts is simulated on one thread. The time of each part in each window of simulated
//! time is measured. The critical path is the longest part of each window, the leader's work between windows, and the
//! meetings of the threads, whose cost is measured too. It is the shortest time in which N cores could do the same.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use fairrate_sim::{CriticalPath, Meeting, SimConfig, Simulation, Work};
use serde::Serialize;

use crate::aligned;

/// The explanation of the table's columns.
pub const LEGEND: &str = "\
Times are in ms, and each is the least of all runs. One core: the run in one part. Parts: the work of all parts together. Path: the
critical path, which is the sum of the next five columns. Even: one core's time divided by N. Cut: what the parts do more than
that, divided by N. Uneven: waiting for the longest part of each window, and windows that the leader does alone. Leader: its
work between windows. Meet: meetings of the threads, `meetings` in number, at `us` each (of the threads that are awake, and if some sleep,
which `wakes` counts). Load: the largest part's work by the mean. Events: those of the part with the most of each window by the mean, which
other programs do not disturb. It leaves out that cores share memory, and that each has caches of its own.
";

/// The prediction for a job under an algorithm, with a core for each part.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Name of the job.
    pub job: String,
    /// The algorithm; with `/tcp` behind it, over TCP.
    pub cc: String,
    /// Number of parts asked for.
    pub asked: usize,
    /// Number of parts, which is the number of cores.
    pub parts: usize,
    /// Number of packets put onto links.
    pub packet_hops: u64,
    /// Number of rounds, which are windows of simulated time or pieces of one.
    pub rounds: usize,
    /// Seconds of the run in one part.
    pub serial_s: f64,
    /// Seconds of the work of all parts together.
    pub work_s: f64,
    /// Seconds of the critical path.
    pub path_s: f64,
    /// `serial_s` divided by the number of parts.
    pub even_s: f64,
    /// The work of all parts beyond that of one, divided by their number.
    pub cut_s: f64,
    /// The longest part of each round beyond the mean, and rounds that the leader does alone.
    pub uneven_s: f64,
    /// The leader's time between rounds.
    pub leader_s: f64,
    /// Seconds of meetings.
    pub meetings_s: f64,
    /// Number of meetings.
    pub meetings: u64,
    /// Number of meetings to which a thread has to be woken.
    pub wakes: u64,
    /// Number of threads with which meetings were measured.
    pub meeting_threads: usize,
    /// Microseconds of a meeting of threads that are awake.
    pub meeting_us: f64,
    /// Microseconds of a meeting to which threads have to be woken.
    pub meeting_asleep_us: f64,
    /// The largest part's work divided by the mean of all parts.
    pub largest_part: f64,
    /// The events of the part with the most of each shared round divided by those of the mean part, which no other
    /// program disturbs.
    pub uneven_events: f64,
    /// Serial time divided by the critical path.
    pub speedup: f64,
}

/// Measurements of a run in one part and in each of several other numbers of parts.
pub(crate) struct Measured {
    asked: Vec<usize>,
    /// The least times of all runs, by number of parts asked for.
    works: BTreeMap<usize, Work>,
}

impl Measured {
    /// Creates measurements in the `asked` numbers of parts.
    pub(crate) fn new(asked: &[usize]) -> Self {
        Self { asked: asked.to_vec(), works: BTreeMap::new() }
    }

    /// Runs `config` once in one part and in each number of parts, unless none is asked for; returns the fingerprint
    /// and the number of packet-hops of each run.
    ///
    /// # Errors
    /// If a run fails, or has no packets.
    pub(crate) fn run(&mut self, config: &SimConfig) -> Result<Vec<(u64, u64)>, String> {
        let mut prints = Vec::new();
        let parts: BTreeSet<usize> = self.asked.iter().copied().collect();
        for parts in parts.first().map(|_| 1).into_iter().chain(parts.into_iter().filter(|&n| n != 1)) {
            let mut simulation = Simulation::measured(config.clone(), parts);
            simulation.run(&mut ()).map_err(|error| error.to_string())?;
            let work = simulation.work().ok_or("flows are fluids, which have no parts")?;
            match self.works.entry(parts) {
                Entry::Occupied(mut least) => least.get_mut().keep_least(&work),
                Entry::Vacant(none) => _ = none.insert(work),
            }
            let totals = simulation.totals();
            prints.push((totals.fingerprint, totals.packet_hops));
        }
        Ok(prints)
    }

    /// Returns the predictions, in the order in which they were asked for.
    pub(crate) fn predictions(&self, job: &str, cc: &str, packet_hops: u64) -> Vec<Prediction> {
        let Some(serial) = self.works.get(&1) else { return Vec::new() };
        let works = self.asked.iter().filter_map(|&asked| Some((asked, self.works.get(&asked)?)));
        works.map(|(asked, work)| prediction((job, cc), asked, packet_hops, (serial, work))).collect()
    }
}

fn prediction((job, cc): (&str, &str), asked: usize, packet_hops: u64, (serial, work): (&Work, &Work)) -> Prediction {
    let parts = work.n_parts();
    let meeting = Meeting::measure(parts);
    let path = work.critical_path(&meeting);
    let CriticalPath { leader_ns, alone_ns, longest_ns, meetings_ns, n_meetings, n_wakes } = path;
    let of_parts: Vec<f64> = work.of_parts().iter().map(std::time::Duration::as_secs_f64).collect();
    let (n, work_s, serial_s) = (parts as f64, of_parts.iter().sum::<f64>(), serial.total().as_secs_f64());
    let [leader_s, meetings_s, rounds_s] = [leader_ns, meetings_ns, alone_ns + longest_ns].map(|ns| ns as f64 * 1e-9);
    let path_s = path.length().as_secs_f64();
    Prediction {
        job: job.to_owned(),
        cc: cc.to_owned(),
        asked,
        parts,
        packet_hops,
        rounds: work.n_rounds(),
        serial_s,
        work_s,
        path_s,
        even_s: serial_s / n,
        cut_s: (work_s - serial_s) / n,
        uneven_s: rounds_s - work_s / n,
        leader_s,
        meetings_s,
        meetings: n_meetings,
        wakes: n_wakes,
        meeting_threads: meeting.n_measured,
        meeting_us: meeting.awake.as_secs_f64() * 1e6,
        meeting_asleep_us: meeting.asleep.as_secs_f64() * 1e6,
        largest_part: of_parts.iter().copied().fold(0.0, f64::max) * n / work_s,
        uneven_events: work.uneven_events(),
        speedup: serial_s / path_s,
    }
}

/// Returns the predictions in columns.
#[must_use]
pub fn table(predictions: &[Prediction]) -> String {
    let titles = [
        "job", "cc", "N", "one core", "parts", "path", "even", "cut", "uneven", "leader", "meet", "meetings", "us",
        "wakes", "us", "load", "events", "speed-up",
    ];
    let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
    let line = |row: &Prediction| {
        [
            row.job.clone(),
            row.cc.clone(),
            row.parts.to_string(),
            ms(row.serial_s),
            ms(row.work_s),
            ms(row.path_s),
            ms(row.even_s),
            ms(row.cut_s),
            ms(row.uneven_s),
            ms(row.leader_s),
            ms(row.meetings_s),
            row.meetings.to_string(),
            format!("{:.1}", row.meeting_us),
            row.wakes.to_string(),
            format!("{:.1}", row.meeting_asleep_us),
            format!("{:.2}", row.largest_part),
            format!("{:.2}", row.uneven_events),
            format!("{:.2}", row.speedup),
        ]
    };
    aligned(&titles, predictions.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::config;

    /// Ten flows of 20 KB on a fat-tree of 16 hosts.
    #[test]
    fn predictions_add_up_and_one_core_predicts_one() {
        let text = "[topology]\nkind = \"fat-tree-k\"\nk = 4\n[[traffic]]\nkind = \"permutation\"\nbytes = \"20KB\"\n";
        let config = config("small", text, "powertcp").expect("it reads");
        let mut measured = Measured::new(&[4, 1, 9_999]);
        let results: Vec<_> = (0..2).flat_map(|_| measured.run(&config).expect("it runs")).collect();
        assert!(results.len() == 6 && results.iter().all(|result| *result == results[0]), "the same bits in all parts");
        let predictions = measured.predictions("small", "powertcp", results[0].1);
        let [four, one, all] = &predictions[..] else { panic!("a prediction for each number") };
        assert_eq!((one.parts, one.speedup, one.meetings), (1, 1.0, 0));
        assert!((four.asked, four.parts, all.asked) == (4, 4, 9_999) && all.parts < 100);
        for p in &predictions {
            let sum = p.even_s + p.cut_s + p.uneven_s + p.leader_s + p.meetings_s;
            assert!((sum - p.path_s).abs() < 1e-9 && 1.0 <= p.largest_part && p.serial_s == one.path_s);
        }
        assert!(Measured::new(&[]).run(&config).is_ok_and(|results| results.is_empty()));
        assert_eq!(table(&predictions).lines().count(), 1 + predictions.len());
    }
}
