//! Training jobs against closed forms: computation alone, pipelines, reductions of gradients, and their overlap.

use crate::common::{algorithm, config, run};
use fairrate_sim::topology::{Star, Topology};
use fairrate_sim::workload::{
    CollectiveAlgorithm, ComputeTime, Job, Model, Op, Pace, Parallelism, Recompute, Training, collective_of,
};
use fairrate_sim::{
    FaultConfig, JobBook, JobIteration, NodeId, ProcessGroup, Recorder, SimConfig, Simulation, Switching,
};
use fairrate_units::{Bytes, Rate, Time};

const MTU: u64 = 1_000;
const HEADER: u64 = 48;
/// One-way delay of a link, in picoseconds.
const DELAY: u64 = 1_000_000;
/// Picoseconds of a byte at 100 Gb/s.
const BYTE: u64 = 80;
/// An acknowledgment of 60 bytes.
const ACK: u64 = 60 * BYTE;

/// Returns a small dense model of four layers.
fn model() -> Model {
    Model {
        layers: 4,
        hidden: 16,
        ffn: 64,
        heads: 4,
        kv_heads: 4,
        vocabulary: 48,
        sequence: 32,
        micro_batch: 1,
        dtype_bytes: 2,
        gradient_bytes: 4,
        gated: false,
        experts: 0,
        top_k: 0,
        imbalance: 1.0,
    }
}

/// Returns a job of one iteration in which a layer takes 3 ms forward and 6 ms backward.
fn training(tp: u32, dp: u32, pp: u32) -> Training {
    Training {
        model: model(),
        parallelism: Parallelism { tp, cp: 1, dp, ep: 1, pp, sequence_parallel: 1 < tp },
        microbatches: 1,
        virtual_stages: 1,
        recompute: Recompute::None,
        compute: ComputeTime::PerLayer { forward: Time::from_ms(3), backward: Time::from_ms(6) },
        optimizer: Time::ZERO,
        overlap: false,
        distributed_optimizer: false,
        tp_channels: 1,
        channels: 1,
        chunks: 1,
        hierarchy: false,
        merged_rings: false,
        iterations: 1,
        start: Time::ZERO,
        hosts: None,
        pace: Pace::EVEN,
    }
}

/// Returns a run on a star of 100 Gb/s and 1 us at line rate, with an acknowledgment a message.
fn on_star(training: &Training) -> SimConfig {
    let hosts = training.n_ranks();
    on(Star { hosts, rate: Rate::from_gbps(100), delay: Time::from_ps(DELAY) }.build(), training)
}

fn on(topology: Topology, training: &Training) -> SimConfig {
    let workload = training.generate(&topology, 1, 0).expect("it goes with this star");
    let mut c = config(topology, algorithm("line-rate"), workload.flows);
    (c.tasks, c.dependencies, c.jobs) = (workload.tasks, workload.dependencies.into(), workload.jobs);
    c.transport.ack_every = Some(Bytes::MAX);
    c.fabric.buffer = Bytes::new(1 << 30);
    c.transport.rto = Some(Time::from_ms(400));
    c
}

/// Returns the iterations of a run that was recorded.
fn iterations_of(c: &SimConfig, told: &Recorder) -> Vec<JobIteration> {
    let mut book = JobBook::new(c).expect("there is a job");
    for outcome in &told.tasks {
        book.note(outcome);
    }
    book.take_complete()
}

fn iterations(training: &Training) -> Vec<JobIteration> {
    let c = on_star(training);
    let (told, totals) = run(c.clone());
    assert_eq!(totals.drops.total(), 0);
    let bytes: u64 = c.flows.iter().map(|flow| flow.bytes.as_u64()).sum();
    let arrived: u64 = told.flows.iter().map(|outcome| outcome.delivered_bytes).sum();
    assert_eq!((arrived, told.tasks.len()), (bytes, c.tasks.len()), "all messages have arrived, and all tasks ended");
    iterations_of(&c, &told)
}

/// Returns the time of the only iteration.
fn time(training: &Training) -> Time {
    let all = iterations(training);
    assert_eq!(all.len(), 1);
    all[0].end - all[0].start
}

/// Returns the time of a ring of `n` ranks that all-reduces `bytes`.
fn steps(n: u64, bytes: u64) -> (u64, u64) {
    assert_eq!(bytes % n, 0);
    let part = bytes / n;
    let (first, wire) = (part.min(MTU) + HEADER, part + part.div_ceil(MTU) * HEADER);
    (2 * (n - 1), (wire + first) * BYTE + 2 * DELAY)
}

/// Four layers forward and backward, and nothing else; the update takes 1 ms.
#[test]
fn a_rank_alone_computes() {
    let all = iterations(&Training { optimizer: Time::from_ms(1), iterations: 3, ..training(1, 1, 1) });
    let took: Vec<Time> = all.iter().map(|iteration| iteration.end - iteration.start).collect();
    assert_eq!(took, [Time::from_ms(37); 3]);
    assert_eq!(all[1].ranks[0].compute, Time::from_ms(37));
    assert_eq!(all[1].ranks[0].exposed, Time::ZERO);
}

/// Two copies, one of which is a tenth slower: what it computes takes a tenth longer, and the other one waits for it.
#[test]
fn a_straggler_holds_up_the_other_copy() {
    let usual = &iterations(&training(1, 2, 1))[0];
    let slow = Pace { stragglers: vec![NodeId(1)], factor: 1.1, ..Pace::EVEN };
    let slow = &iterations(&Training { pace: slow, ..training(1, 2, 1) })[0];
    assert_eq!([0, 1].map(|rank| usual.ranks[rank].compute), [Time::from_ms(36); 2]);
    assert_eq!([0, 1].map(|rank| slow.ranks[rank].compute), [Time::from_ms(36), Time::from_us(39_600)]);
    let later = (slow.end - slow.start) - (usual.end - usual.start);
    // Half of what it needs for the sum of gradients has come meanwhile.
    let exposed = usual.ranks[1].exposed;
    assert!(later <= Time::from_us(3_600) && Time::from_us(3_600) - exposed <= later, "{later} of {exposed}");
    assert!(Time::from_us(3_000) < slow.ranks[0].exposed);
}

/// A pipeline of p stages and m micro-batches takes m + p - 1 times what a stage takes for one, and two messages of
/// some microseconds for each hop at most m + p times.
#[test]
fn a_pipeline_takes_m_and_p_less_one_stage_times() {
    for (pp, microbatches) in [(2, 1), (2, 2), (4, 1), (4, 3), (4, 8), (1, 5)] {
        let job = Training { microbatches, ..training(1, 1, pp) };
        let stage = Time::from_ms(9 * u64::from(4 / pp));
        let least = stage * u64::from(microbatches + pp - 1);
        let took = time(&job);
        let messages = Time::from_us(10) * u64::from(2 * (microbatches + pp));
        assert!(least <= took && took <= least + messages, "{pp} stages, {microbatches}: {took} for {least}");
        let all = iterations(&job);
        for rank in &all[0].ranks {
            let sum = rank.compute + rank.exposed + rank.pipeline + rank.idle;
            assert_eq!((rank.compute, sum), (stage * u64::from(microbatches), rank.end - rank.start));
        }
        assert_eq!(all[0].ranks[0].idle, Time::ZERO, "the first stage waits for messages only");
    }
}

/// With v parts of the model in each of p stages the pipeline fills and drains in a v-th of the time (Narayanan et al.,
/// section 2.2.2): m times what a stage takes for a micro-batch, and p - 1 times a v-th of that.
#[test]
fn interleaved_stages_fill_and_drain_faster() {
    let model = Model { layers: 8, ..model() };
    for (pp, virtual_stages, microbatches) in [(2, 2, 2), (2, 2, 8), (4, 2, 8), (2, 4, 4), (4, 2, 4)] {
        let job = Training { model: model.clone(), virtual_stages, microbatches, ..training(1, 1, pp) };
        let stage = Time::from_ms(9 * u64::from(8 / pp));
        let chunk = Time::from_ps(stage.as_ps() / u64::from(virtual_stages));
        let least = stage * u64::from(microbatches) + chunk * u64::from(pp - 1);
        let took = time(&job);
        let messages = Time::from_us(10) * u64::from(2 * (microbatches + pp) * virtual_stages);
        let of = format!("{pp} stages of {virtual_stages}, {microbatches}");
        assert!(least <= took && took <= least + messages, "{of}: {took} for {least}");
        assert!(iterations(&job)[0].ranks.iter().all(|rank| rank.compute == stage * u64::from(microbatches)), "{of}");
    }
}

/// A layer is computed forward twice, or attention alone: 4·b·s·s·h operations.
#[test]
fn what_was_not_kept_is_computed_once_more() {
    assert_eq!(time(&Training { recompute: Recompute::Full, ..training(1, 1, 1) }), Time::from_ms(48));
    let compute = ComputeTime::Tflops(1e-3);
    let kept = time(&Training { compute, ..training(1, 1, 1) });
    let selective = time(&Training { compute, recompute: Recompute::Selective, ..training(1, 1, 1) });
    assert_eq!(selective - kept, Time::from_ns(4 * 4 * 32 * 32 * 16));
    // With tensor parallelism the collectives of a layer come once more too.
    let messages = |recompute| {
        let job = Training { compute, recompute, ..training(2, 1, 1) }.job(1, 0).expect("it is one");
        job.expected_flows()
    };
    assert!(messages(Recompute::None) < messages(Recompute::Full));
    assert_eq!(messages(Recompute::None), messages(Recompute::Selective));
}

/// The busiest of four ranks that share experts gets twice the mean of tokens: it computes experts for twice the time,
/// and sends back and gets twice as much as the mean. With tensor parallelism all of its tensor group do.
#[test]
fn some_experts_have_more_to_do() {
    let model = Model { layers: 1, experts: 8, top_k: 2, imbalance: 2.0, ..model() };
    for tp in [1, 2] {
        let job = training(tp, 4, 1);
        let parallelism = Parallelism { ep: 4, ..job.parallelism.clone() };
        let job = Training { model: model.clone(), parallelism, ..job };
        let ranks = iterations(&job).remove(0).ranks;
        let compute: Vec<u64> = ranks.iter().map(|rank| rank.compute.as_ps()).collect();
        // Half of 9 ms is attention.
        let most = Time::from_us(13_500).as_ps();
        let is_near = |a: u64, b: u64| a.abs_diff(b) <= 8;
        assert!(is_near(*compute.iter().max().expect("there are ranks"), most), "{compute:?}");
        assert!(is_near(compute.iter().sum(), u64::from(4 * tp) * Time::from_ms(9).as_ps()), "{compute:?}");
        let c = on_star(&job);
        // 32 tokens of 16 numbers of two bytes, for two experts each, divided by `tp`.
        let dispatch = 32 * 2 * 16 * 2 / u64::from(tp);
        let busiest = compute.iter().position(|&ps| is_near(ps, most)).expect("there is one");
        let first =
            c.jobs[0].operations.iter().filter(|operation| c.jobs[0].names[operation.name as usize] == "dispatch");
        assert_eq!(
            first.clone().count(),
            2 * tp as usize,
            "there and back in each pass, for each place in tensor groups"
        );
        assert!(first.clone().all(|operation| operation.bytes.as_u64() == dispatch));
        // Half of all tokens of the other three go to the busiest rank. (With two tensor places other messages are of
        // that size too.)
        if tp == 1 {
            assert_eq!(messages_to(&c, busiest as u32, dispatch / 2), 2 * 3, "{busiest}");
        }
    }
}

/// Returns the number of messages of `bytes` to a rank.
fn messages_to(c: &SimConfig, rank: u32, bytes: u64) -> u64 {
    let host = c.jobs[0].ranks[rank as usize];
    c.flows.iter().filter(|flow| flow.dst == host && flow.bytes.as_u64() == bytes).count() as u64
}

/// Data parallelism alone: computation, and then all-reduces of the gradients of the output, the layers and the
/// embedding, the steps of which wait for each other.
#[test]
fn data_parallelism_is_computation_and_all_reduces() {
    for n in [2_u32, 4, 8] {
        let took = time(&training(1, n, 1)).as_ps();
        // 48 x 16 and a norm; four projections of 16 x 16, two matrices of 16 x 64 and two norms; 48 x 16: each of four
        // bytes.
        let layer = 4 * 256 + 2 * 1_024 + 32;
        let buckets = [4 * (768 + 16), 4 * layer, 4 * layer, 4 * layer, 4 * layer, 4 * 768];
        let steps = buckets.map(|bytes| steps(n.into(), bytes));
        let (k, sum) = steps.iter().fold((0, 0), |(k, sum), (n, one)| (k + n, sum + n * one));
        assert_eq!(took, Time::from_ms(36).as_ps() + sum + (k - 1) * ACK, "{n} ranks");
    }
}

#[test]
fn overlap_hides_gradients_behind_the_backward_pass() {
    let large = Model { hidden: 512, ffn: 2_048, ..model() };
    for (distributed_optimizer, tp) in [(false, 1), (true, 1), (true, 2)] {
        let job = Training { model: large.clone(), distributed_optimizer, ..training(tp, 4, 1) };
        let with = Training { overlap: true, ..job.clone() };
        let (without, with) = (&iterations(&job)[0], &iterations(&with)[0]);
        assert!(with.end < without.end, "{} with overlap, {} without", with.end, without.end);
        assert!(with.ranks[0].exposed < without.ranks[0].exposed);
        assert_eq!(with.ranks[0].compute, without.ranks[0].compute);
    }
}

/// Returns a job with all kinds of parallelism: 2 x 2 x 2 x 2 ranks, four of which share the experts.
fn mixed() -> Training {
    let parallelism = Parallelism { tp: 2, cp: 2, dp: 2, ep: 4, pp: 2, sequence_parallel: true };
    let model = Model { experts: 8, top_k: 2, gated: true, kv_heads: 2, hidden: 64, ..model() };
    let compute = ComputeTime::Tflops(1.0);
    let job = Training { model, parallelism, microbatches: 3, iterations: 2, overlap: true, ..training(1, 1, 1) };
    Training { distributed_optimizer: true, compute, tp_channels: 2, chunks: 2, ..job }
}

#[test]
fn results_are_the_same_bits_on_any_number_of_threads() {
    let c = on(crate::common::four_spines(4), &mixed());
    let run = |threads, switching| {
        let mut told = Recorder::default();
        let mut simulation = Simulation::with_switching(c.clone(), threads, switching);
        simulation.run(&mut told).expect("it runs");
        (told, simulation.totals().fingerprint)
    };
    let one = run(1, Switching::Events);
    assert_eq!(iterations_of(&c, &one.0).len(), 2);
    for threads in [1, 2, 3] {
        for switching in [Switching::Events, Switching::Spans] {
            let other = run(threads, switching);
            assert_eq!((&other.0.tasks, other.1), (&one.0.tasks, one.1), "{threads} threads, {switching:?}");
        }
    }
    let fluid = SimConfig { cc: algorithm("ideal"), ..c.clone() };
    let (told, _) = crate::common::run(fluid.clone());
    assert_eq!(iterations_of(&fluid, &told).len(), 2);
}

/// The groups of collectives.md's job of 64 ranks: tensor groups of neighbours, experts on every eighth rank.
#[test]
fn groups_are_in_the_order_of_megatron() {
    let parallelism = Parallelism { tp: 8, cp: 1, dp: 8, ep: 4, pp: 1, sequence_parallel: true };
    let model = Model { heads: 32, kv_heads: 32, hidden: 4_096, experts: 8, top_k: 2, sequence: 4_096, ..model() };
    let job = Training { model, parallelism, ..training(1, 1, 1) }.job(1, 0).expect("it fits");
    let ranks = |name: &str| job.groups().iter().find(|group| group.name == name).expect("a group").ranks.clone();
    assert_eq!(ranks("tp1"), [8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(ranks("dp3"), [3, 11, 19, 27, 35, 43, 51, 59]);
    assert_eq!(ranks("ep3"), [3, 11, 19, 27]);
    assert_eq!(ranks("ep8"), [32, 40, 48, 56]);
    assert_eq!(ranks("edp0"), [0, 32]);
    assert_eq!(job.groups().len(), 8 + 8 + 16 + 32);
    let four = Parallelism { tp: 2, cp: 2, dp: 2, ep: 1, pp: 2, sequence_parallel: true };
    let job = Training { parallelism: four, ..training(1, 1, 1) }.job(1, 0).expect("it fits");
    let ranks = |name: &str| job.groups().iter().find(|group| group.name == name).expect("a group").ranks.clone();
    assert_eq!((ranks("cp0"), ranks("cp5")), (vec![0, 2], vec![9, 11]));
    assert_eq!((ranks("dp1"), ranks("dp2")), (vec![1, 3, 5, 7], vec![8, 10, 12, 14]));
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let refused = |job: Training| {
        let error = job.job(1, 0).expect_err("it is refused");
        format!("{}: {}", error.field, error.message)
    };
    let with = |change: fn(&mut Training)| {
        let mut job = mixed();
        change(&mut job);
        refused(job)
    };
    assert_eq!(refused(training(1, 1, 3)), "layers: `layers` 4 cannot be divided by `pp` 3");
    assert_eq!(refused(training(8, 1, 1)), "heads: `heads` 4 cannot be divided by `tp` 8");
    assert_eq!(
        with(|job| job.parallelism.ep = 3),
        "ep: `cp` x `dp`, which `ep` divides, 4 cannot be divided by `ep` 3"
    );
    assert_eq!(with(|job| job.model.top_k = 9), "top_k: a token goes to 9 of 8 experts");
    assert_eq!(with(|job| job.model.experts = 0), "ep: `ep = 4` divides no experts");
    assert_eq!(with(|job| job.model.sequence = 30), "sequence: `sequence` 30 cannot be divided by `cp` x `tp` 4");
    let topology = Star { hosts: 4, rate: Rate::from_gbps(100), delay: Time::from_us(1) }.build();
    let error = mixed().generate(&topology, 1, 0).expect_err("too few hosts").message;
    assert_eq!(error, "`tp`, `cp`, `dp` and `pp` make 2 x 2 x 2 x 2 = 16 ranks, and there are 4 hosts");
}

/// Two ranks arrive at an all-reduce 1 ms apart: it ends at both after the late one has come, and the early one waits,
/// exposed.
#[test]
fn ranks_arrive_at_a_collective_at_different_times() {
    let topology = Star { hosts: 2, rate: Rate::from_gbps(100), delay: Time::from_ps(DELAY) }.build();
    let mut job = Job::new(2, vec![ProcessGroup { name: "all".into(), ranks: vec![0, 1] }]);
    let ring = collective_of(Op::AllReduce, CollectiveAlgorithm::Ring, Bytes::new(2_000), 1, 1);
    let first = job.collective("sum", 0, 0, ring);
    for (rank, ms) in [(0, 1), (1, 2)] {
        let part = job.compute("work", 0, rank, Time::from_ms(ms));
        job.wait(Job::part(first, rank as usize), part);
    }
    let workload = job.generate(&topology, &[NodeId(0), NodeId(1)], 0, Time::ZERO, &Pace::EVEN).expect("it fits");
    let mut c = config(topology, algorithm("line-rate"), workload.flows);
    (c.tasks, c.dependencies, c.jobs) = (workload.tasks, workload.dependencies.into(), workload.jobs);
    c.transport.ack_every = Some(Bytes::MAX);
    let (told, _) = run(c.clone());
    let all = iterations_of(&c, &told);
    let message = 2 * (MTU + HEADER) * BYTE + 2 * DELAY;
    // The early rank's first message has come long ago: the late one needs it for its second step, which it starts
    // behind the first.
    let ends = [0, 1].map(|rank: usize| (all[0].ranks[rank].end - Time::from_ms(2)).as_ps());
    assert_eq!(ends[0], message + (MTU + HEADER) * BYTE);
    assert!(ends[0] <= ends[1] && ends[1] <= 2 * message + ACK, "{ends:?}");
    assert_eq!(all[0].ranks[0].exposed, all[0].ranks[0].end - Time::from_ms(1));
}

/// With merged rings a job of all dimensions has far fewer flows, and its iterations take as long within a thousandth.
#[test]
fn merged_rings_change_no_iteration_by_more_than_a_thousandth() {
    let parallelism = Parallelism { tp: 4, cp: 1, dp: 4, ep: 2, pp: 2, sequence_parallel: true };
    let model = Model { experts: 4, top_k: 2, hidden: 1_024, heads: 8, kv_heads: 8, ..model() };
    let each = Training { model, parallelism, microbatches: 2, iterations: 2, overlap: true, ..training(1, 1, 1) };
    let fluid = |training: &Training| {
        let c = SimConfig { cc: algorithm("ideal"), ..on_star(training) };
        let (told, _) = crate::common::run(c.clone());
        let times: Vec<u64> = iterations_of(&c, &told).iter().map(|it| (it.end - it.start).as_ps()).collect();
        (c.flows.len(), times)
    };
    let (n_each, times) = fluid(&each);
    let (n_merged, merged) = fluid(&Training { merged_rings: true, ..each.clone() });
    assert!(2 * n_merged < n_each, "{n_merged} in place of {n_each}");
    assert_eq!((times.len(), merged.len()), (2, 2));
    for (merged, each) in merged.iter().zip(times) {
        let ratio = *merged as f64 / each as f64;
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    }
}

/// All that is sent to rank 0 is lost: the error names its message by ranks and operation, and the operations that are
/// waited for.
#[test]
fn a_stall_names_the_operation_of_a_message() {
    let mut c = on_star(&training(2, 1, 2));
    c.transport.rto = None;
    let (to, hub) = (c.jobs[0].ranks[0], c.topology.nodes.len() as u32 - 1);
    let port = c.topology.port(NodeId(hub), to).expect("a link");
    c.faults = vec![FaultConfig { ports: vec![port], loss: 1.0, ..FaultConfig::NONE }];
    let error = Simulation::new(c).run(&mut Recorder::default()).expect_err("a message is lost").to_string();
    assert!(error.contains("(h1 to h0, rank 1 to rank 0 in `"), "{error}");
    assert!(error.contains(" (all-gather) of iteration 0) has 0 of "), "{error}");
    assert!(error.contains(" waits until rank "), "{error}");
}
