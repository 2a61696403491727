//! Critical paths of iterations against numbers worked by hand, and their sums.

use std::path::Path;

use fairrate_explain::{CriticalPaths, Doing, Iterated, Milestones, NoPath, Stage};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{JobBook, JobIteration, Observation, Recorder, SimConfig, Simulation, Sink};
use fairrate_units::Time;

/// A sink with the times of iterations beside the milestones.
struct Timed(Milestones, JobBook);

impl Sink for Timed {
    fn flow(&mut self, outcome: &fairrate_sim::FlowOutcome) {
        self.0.flow(outcome);
    }
    fn observe(&mut self, observation: &Observation) {
        self.0.observe(observation);
        if let Observation::Task(outcome) = observation {
            self.1.note(outcome);
        }
    }
}

/// Returns the configuration of a scenario, its iterations, and the critical path of each.
fn paths(toml: &str) -> (SimConfig, Vec<(JobIteration, Vec<Stage>)>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let scenario = Scenario::from_toml(toml, "test.toml", &dir, &Overrides::default());
    let c = scenario.expect("the scenario is right").into_sim_config();
    let mut timed = Timed(Milestones::new(&c), JobBook::new(&c).expect("there is a job"));
    let mut simulation = Simulation::new(c.clone());
    simulation.run(&mut timed).expect("the run does not stall");
    simulation.unfinished().iter().for_each(|outcome| timed.0.flow(outcome));
    let iterations = timed.1.take_complete();
    let path = |iteration: JobIteration| {
        let paths = CriticalPaths::new(&timed.0, &c);
        let path = paths.path(Iterated::Job(iteration.job), iteration.iteration).expect("it is complete");
        (iteration, path)
    };
    (c.clone(), iterations.into_iter().map(path).collect())
}

/// Ranks compute for 20 and 25 us, and all-reduce 1 MB by a ring of two channels: two steps of 250 kB each. Then one
/// sends 5 kB to the other. The slower rank begins the ring; the message to the first one and the way back end last,
/// and then the result.
#[test]
fn a_path_goes_by_what_came_last() {
    let (c, all) = paths(
        "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gbps\"\n[transport]\ncc = \"line-rate\"\n\
         ack_every = \"message\"\nrto = \"100ms\"\n[[traffic]]\nkind = \"trace\"\npath = \"operations.csv\"\n",
    );
    let [(iteration, path)] = &all[..] else { panic!("{}", all.len()) };
    assert_eq!(
        path[0],
        Stage {
            doing: Doing::Computes,
            rank: 1,
            operation: path[0].operation,
            start: Time::ZERO,
            end: Time::from_us(25)
        }
    );
    let last = path.last().expect("there are stages");
    let result = c.flows.iter().position(|flow| flow.bytes.as_u64() == 5_000).expect("it is there");
    assert_eq!(
        (last.doing, last.rank, last.end),
        (Doing::Moves(fairrate_sim::FlowId(result as u32)), 0, iteration.end)
    );
    let ranks: Vec<u32> = path.iter().map(|stage| stage.rank).collect();
    assert!(ranks.starts_with(&[1, 1]) && ranks.ends_with(&[0]), "{path:#?}");
    assert!((3..=6).contains(&path.len()), "{path:#?}");
}

#[test]
fn stages_add_up_to_the_time_of_an_iteration() {
    let job = "[[traffic]]\nkind = \"training\"\nlayers = 4\nhidden = 256\nheads = 4\nvocabulary = 512\nsequence = 128\n\
               tp = 4\npp = 2\ndp = 4\nmicrobatches = 3\ntflops = 20.0\niterations = 3\nexperts = 4\nep = 2\n";
    for (topology, rest) in [
        ("kind = \"rail\"\nservers = 8\ngpus_per_server = 4\nspines = 2", "overlap = false\n"),
        ("kind = \"dcn+\"\nservers = 8\ngpus_per_server = 4\nspines = 2\nservers_per_leaf = 2", "hierarchy = true\n"),
        ("kind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 8", "chunks = 2\n"),
        ("kind = \"rail\"\nservers = 8\ngpus_per_server = 4\nspines = 2", "merged_rings = true\n"),
    ] {
        let cc = if rest.contains("merged") { "ideal" } else { "dcqcn" };
        let (_, all) = paths(&format!("[topology]\n{topology}\n[transport]\ncc = \"{cc}\"\n{job}{rest}"));
        assert_eq!(all.len(), 3);
        for (iteration, path) in all {
            assert_eq!(path.first().map(|stage| stage.start), Some(iteration.start), "{topology}");
            assert_eq!(path.last().map(|stage| stage.end), Some(iteration.end), "{topology}");
            assert!(path.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start < pair[0].end));
            assert!(path.iter().any(|stage| stage.doing == Doing::Computes), "{topology}");
            assert!(path.iter().any(|stage| matches!(stage.doing, Doing::Moves(_))), "{topology}");
            assert!(path.iter().all(|stage| !matches!(stage.doing, Doing::Waits)), "{topology}");
        }
    }
}

/// In each algorithm and operation, iterations follow each other without gaps, and each begins with the computation
/// after the one before.
#[test]
fn stages_of_collectives_add_up_from_end_to_end() {
    for (op, rest) in [
        ("all-reduce", "channels = 2\nchunks = 3\n"),
        ("all-reduce", "algorithm = \"halving-doubling\"\n"),
        ("all-reduce", "algorithm = \"tree\"\nreduce_rate = \"200Gbps\"\n"),
        ("all-to-all", "algorithm = \"direct\"\n"),
        ("broadcast", "algorithm = \"chain\"\nchunks = 4\n"),
        ("all-reduce", "merged_rings = true\nchannels = 2\n"),
        ("all-reduce", "alpha = \"2us\"\nreduce_rate = \"200Gbps\"\n"),
        ("all-to-all", "alpha = \"2us\"\n"),
        ("all-reduce", "alpha = \"2us\"\nmerged_rings = true\n"),
    ] {
        let cc = if rest.contains("merged") { "ideal" } else { "dcqcn" };
        let toml = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 4\n[transport]\ncc = \"{cc}\"\n[[traffic]]\n\
             kind = \"collective\"\nop = \"{op}\"\nbytes = \"1MB\"\nrepeat = 3\ncompute = \"10us\"\n{rest}"
        );
        let scenario = Scenario::from_toml(&toml, "test.toml", Path::new("."), &Overrides::default());
        let c = scenario.expect("the scenario is right").into_sim_config();
        let mut milestones = Milestones::new(&c);
        let mut simulation = Simulation::new(c.clone());
        simulation.run(&mut milestones).expect("the run does not stall");
        simulation.unfinished().iter().for_each(|outcome| milestones.flow(outcome));
        let (paths, block) = (CriticalPaths::new(&milestones, &c), Iterated::Collective(0));
        assert_eq!(paths.complete(block), 0..3, "{op} {rest}");
        let mut end = c.collectives[0].start;
        for iteration in 0..3 {
            let path = paths.path(block, iteration).expect("it is complete");
            assert_eq!(path.first().map(|stage| stage.start), Some(end), "{op} {rest}");
            assert!(path.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start < pair[0].end));
            assert!(path.iter().all(|stage| stage.doing != Doing::Waits), "{op} {rest} {path:#?}");
            assert!(path.iter().any(|stage| matches!(stage.doing, Doing::Moves(_))), "{op} {rest}");
            let begins = path.iter().filter(|stage| stage.doing == Doing::Begins);
            let latency = begins.fold(Time::ZERO, |sum, stage| sum + (stage.end - stage.start));
            // A ring of eight ranks has 14 steps, and a direct exchange one.
            let steps = if op == "all-reduce" { 14 } else { 1 };
            let alpha = if rest.contains("alpha") { Time::from_us(2) } else { Time::ZERO };
            assert_eq!(latency, alpha * steps, "{op} {rest}");
            end = path.last().expect("there are stages").end;
        }
        assert_eq!(paths.path(block, 3), Err(NoPath::Incomplete), "{op} {rest}");
    }
}

/// Tables have no moments at which merged rings begin and end: they follow from the flows.
#[test]
fn tables_of_merged_rings_give_the_same_path() {
    let toml = "[topology]\nkind = \"star\"\nhosts = 5\n[transport]\ncc = \"ideal\"\n[[traffic]]\nkind = \"collective\"\n\
                op = \"reduce-scatter\"\nbytes = \"1MB\"\nrepeat = 2\ncompute = \"10us\"\nalpha = \"1us\"\nmerged_rings = true\n";
    let scenario = Scenario::from_toml(toml, "test.toml", Path::new("."), &Overrides::default());
    let c = scenario.expect("the scenario is right").into_sim_config();
    let (mut all, mut told) = (Milestones::new(&c), Recorder::default());
    Simulation::new(c.clone()).run(&mut all).expect("the run does not stall");
    Simulation::new(c.clone()).run(&mut told).expect("the run does not stall");
    let mut tables = Milestones::of_tables(&c);
    told.flows.iter().for_each(|outcome| tables.flow(outcome));
    let block = Iterated::Collective(0);
    assert!(CriticalPaths::new(&tables, &c).path(block, 1).is_err(), "moments are missing");
    tables.note_moments(&c);
    let (all, tables) = (CriticalPaths::new(&all, &c), CriticalPaths::new(&tables, &c));
    for iteration in [0, 1] {
        assert_eq!(tables.path(block, iteration), all.path(block, iteration));
    }
}
