//! The measurement of the parts of a run: its accounts, not its times.

use std::time::Duration;

use crate::common::{Recorder, algorithm, config, four_spines};
use fairrate_sim::workload::Permutation;
use fairrate_sim::{Meeting, RunTotals, SimConfig, Simulation, StopRule, Work};
use fairrate_units::{Bytes, Time};

fn permutation() -> SimConfig {
    let topology = four_spines(8);
    let permutation = Permutation { bytes: Bytes::new(200_000), start: Time::from_us(1), hosts: None };
    let flows = permutation.generate(&topology, 3, 0).expect("enough hosts");
    let mut c = config(topology, algorithm("powertcp"), flows);
    c.stop = StopRule { at: None, when_flows_done: true };
    c
}

fn measured(parts: usize) -> (Work, RunTotals, usize) {
    let (mut simulation, mut recorder) = (Simulation::measured(permutation(), parts), Recorder::default());
    simulation.run(&mut recorder).expect("no stall");
    (simulation.work().expect("a measurement"), simulation.totals(), recorder.flows.len())
}

/// Meetings that cost nothing.
fn free(n_threads: usize) -> Meeting {
    let spin = Duration::from_secs(1);
    Meeting { n_threads, n_measured: n_threads, awake: Duration::ZERO, asleep: Duration::ZERO, spin }
}

#[test]
fn the_work_of_all_parts_is_the_run() {
    let mut simulation = Simulation::new(permutation());
    simulation.run(&mut ()).expect("no stall");
    assert!(simulation.work().is_none(), "only what is asked for is measured");
    let totals = simulation.totals();
    for parts in [1, 2, 4, 8] {
        let (work, of_parts, n_flows) = measured(parts);
        assert_eq!((work.n_parts(), work.of_parts().len()), (parts, parts));
        // The same bits, and every event in a round.
        assert_eq!((of_parts, work.n_events(), n_flows as u64), (totals, totals.events, totals.flows_done));
        assert_eq!(work.total(), work.of_parts().iter().sum::<Duration>() + work.between());
        // The leader's time counts whole. Of the parts' time at least an even share is on the path, and at most all.
        let path = work.critical_path(&free(parts));
        let (leader, rounds) =
            (Duration::from_nanos(path.leader_ns), Duration::from_nanos(path.alone_ns + path.longest_ns));
        let all: Duration = work.of_parts().iter().sum();
        assert_eq!((leader, path.meetings_ns, path.length()), (work.between(), 0, leader + rounds));
        assert!(all <= rounds * parts as u32 && rounds <= all, "{rounds:?} of {all:?}");
        assert!(path.n_meetings <= work.n_rounds() as u64 && (0 < path.n_meetings) == (1 < parts));
    }
}

/// One core does all in one part, so its path is the run: a speed-up of 1.
#[test]
fn one_part_predicts_one() {
    let (work, ..) = measured(1);
    assert_eq!(work.critical_path(&free(1)).length(), work.total());
}

#[test]
fn the_least_of_several_runs_is_kept() {
    let ((mut least, ..), (other, ..)) = (measured(4), measured(4));
    let (before, rounds) = (least.of_parts(), least.n_rounds());
    least.keep_least(&other);
    assert_eq!(least.n_rounds(), rounds, "the rounds are those of any run");
    let of_others = before.iter().zip(other.of_parts()).map(|(&one, other)| one.min(other));
    assert!(least.of_parts().iter().zip(of_others).all(|(&least, one)| least <= one));
}

#[test]
fn threads_meet() {
    let meeting = Meeting::measure(2);
    assert!(meeting.n_threads == 2 && (1..=2).contains(&meeting.n_measured));
    let more = Meeting::measure(4_096);
    assert!(more.n_measured < 4_096 && meeting.awake <= more.awake.max(meeting.awake));
}
