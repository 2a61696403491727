//! The engine for real time against the equations in double precision, and against itself with other threads,
//! instructions and blocks.

use fairrate_allocate::{
    Aggregation, Clos, FlowKey, Gradient, Instructions, LinkId, Method, Ned, Normaliser, Num, NumConfig, Partition,
    Place, RateEngine, RealTime, Side,
};
use proptest::prelude::*;

use crate::common::Mmix;

const UNIT_BPS: f64 = 10e9;

const INSTRUCTIONS: [Instructions; 3] = [Instructions::Portable, Instructions::Avx2, Instructions::Avx512];
const AGGREGATIONS: [Aggregation; 2] = [Aggregation::Diagonals, Aggregation::Slices];

/// A flow as it was added, in units.
#[derive(Clone, Debug)]
struct Flow {
    path: Vec<usize>,
    weight: f64,
    demand: f64,
}

/// A reference model: the flows of an engine, and the result of an iteration for them.
struct Model {
    capacities: Vec<f64>,
    gamma: f64,
    flows: Vec<Option<Flow>>,
}

/// The outcome of an iteration: rates by key, prices by link, and the terms of which the prices were made.
struct Outcome {
    normalised: Vec<Option<f64>>,
    prices: Vec<f64>,
    terms: Vec<f64>,
}

impl Model {
    fn new(capacities: &[f64], gamma: f64) -> Self {
        Self { capacities: capacities.to_vec(), gamma, flows: Vec::new() }
    }

    fn add(&mut self, engine: &mut RealTime, flow: Flow) -> FlowKey {
        let links: Vec<LinkId> = flow.path.iter().map(|&link| LinkId(link as u32)).collect();
        let key = engine.add(&links, flow.weight, flow.demand * UNIT_BPS);
        assert_eq!(engine.rate_bps(key), 0.0);
        self.flows.resize(self.flows.len().max(key.index() + 1), None);
        assert!(self.flows[key.index()].replace(flow).is_none(), "a key of two flows");
        key
    }

    fn remove(&mut self, engine: &mut RealTime, key: FlowKey) {
        engine.remove(key);
        assert!(self.flows[key.index()].take().is_some());
    }

    fn flows(&self) -> impl Iterator<Item = (FlowKey, &Flow)> {
        (0..).zip(&self.flows).filter_map(|(key, flow)| Some((FlowKey(key), flow.as_ref()?)))
    }

    /// Applies equations 3, 4 and 9 at the given prices.
    fn iterate(&self, prices: &[f64]) -> Outcome {
        let n_links = self.capacities.len();
        let (mut load, mut slope) = (vec![0.0; n_links], vec![0.0; n_links]);
        let rate = |flow: &Flow| {
            let limit = flow.path.iter().map(|&link| 2.0 * self.capacities[link]).fold(flow.demand, f64::min);
            flow.weight / flow.path.iter().map(|&link| prices[link]).sum::<f64>().max(flow.weight / limit)
        };
        for (_, flow) in self.flows() {
            for &link in &flow.path {
                load[link] += rate(flow);
                slope[link] += rate(flow) * rate(flow) / flow.weight;
            }
        }
        let normalise = |flow: &Flow| {
            let ratio = flow.path.iter().map(|&link| load[link] / self.capacities[link]).fold(0.0, f64::max);
            (rate(flow) / ratio).min(flow.demand)
        };
        let normalised = self.flows.iter().map(|flow| flow.as_ref().map(normalise)).collect();
        let used = |link: usize| 0.0 < slope[link];
        let next =
            |link: usize| (prices[link] + self.gamma * (load[link] - self.capacities[link]) / slope[link]).max(0.0);
        let terms = |link: usize| prices[link] + self.gamma * (load[link] + self.capacities[link]) / slope[link];
        let prices = (0..n_links).map(|link| if used(link) { next(link) } else { prices[link] }).collect();
        let terms = (0..n_links).map(|link| if used(link) { terms(link) } else { 0.0 }).collect();
        Outcome { normalised, prices, terms }
    }

    /// Checks an iteration of the engine, from its own prices, against the equations. Sums may have lost 2^-14 of
    /// themselves.
    fn check_iteration(&self, engine: &mut RealTime) {
        const TOLERANCE: f64 = 1e-4;
        let prices = |engine: &RealTime| -> Vec<f64> {
            (0..self.capacities.len()).map(|link| engine.price(LinkId(link as u32))).collect()
        };
        let expected = self.iterate(&prices(engine));
        engine.iterate();
        for (link, (&price, next)) in prices(engine).iter().zip(expected.prices).enumerate() {
            assert!(price.is_finite() && 0.0 <= price, "link {link}: price {price}");
            // Prices are at most 10^15.
            let close = (price - next.min(1e15)).abs() <= TOLERANCE * expected.terms[link];
            assert!(close, "link {link}: price {price} for {next}");
        }
        for (key, flow) in self.flows() {
            let (rate, equation) = (engine.rate_bps(key) / UNIT_BPS, expected.normalised[key.index()].unwrap());
            let close = (rate / equation - 1.0).abs() <= TOLERANCE;
            assert!(close, "{key:?} {flow:?}: rate {rate} for {equation}");
            let capacity = flow.path.iter().map(|&link| self.capacities[link]).fold(flow.demand, f64::min);
            assert!(engine.rate_bps(key) <= capacity * UNIT_BPS);
        }
        assert_eq!(engine.n_flows(), self.flows().count());
    }
}

fn general(model: &Model) -> RealTime {
    let capacities_bps: Vec<f64> = model.capacities.iter().map(|capacity| capacity * UNIT_BPS).collect();
    RealTime::general(&capacities_bps, UNIT_BPS, model.gamma)
}

fn unlimited(path: &[usize], weight: f64) -> Flow {
    Flow { path: path.to_vec(), weight, demand: f64::INFINITY }
}

#[test]
fn one_link_is_a_logistic_map() {
    // Flows of weights 1, 1 and 2 on a link of 1: the price goes to 4, rates to 1/4, 1/4 and 1/2, and F-NORM gives
    // these from the first iteration on. The price rises by 0.4·(1 - p/4) of itself: from 1 to 1.3.
    let mut model = Model::new(&[1.0], 0.4);
    let mut engine = general(&model);
    let keys = [1.0, 1.0, 2.0].map(|weight| model.add(&mut engine, unlimited(&[0], weight)));
    engine.iterate();
    assert!((engine.price(LinkId(0)) - 1.3).abs() < 1e-6);
    for _ in 0..40 {
        model.check_iteration(&mut engine);
    }
    assert!((engine.price(LinkId(0)) - 4.0).abs() < 1e-5);
    assert!((engine.rate_bps(keys[2]) / 5e9 - 1.0).abs() < 1e-6);
}

#[test]
fn staircase_of_any_length() {
    // Flow i uses links 0 to i; paths of more than 8 links have a pass of their own.
    for gamma in [0.2, 0.4, 1.0, 1.5] {
        let mut model = Model::new(&[1.0; 12], gamma);
        let mut engine = general(&model);
        for i in 0..12 {
            model.add(&mut engine, unlimited(&(0..=i).collect::<Vec<_>>(), 1.0));
            for _ in 0..5 {
                model.check_iteration(&mut engine);
            }
        }
        for _ in 0..100 {
            engine.iterate();
        }
        for (key, _) in model.flows() {
            assert!((engine.rate_bps(key) / UNIT_BPS * 12.0 - 1.0).abs() < 1e-3);
        }
    }
}

#[test]
fn idle_links_keep_their_prices() {
    let mut model = Model::new(&[1.0, 1.0], 0.4);
    let mut engine = general(&model);
    engine.iterate();
    let keys = [0, 1, 2].map(|_| model.add(&mut engine, unlimited(&[0], 1.0)));
    for _ in 0..60 {
        engine.iterate();
    }
    let price = engine.price(LinkId(0));
    assert!((price - 3.0).abs() < 1e-5);
    for key in keys {
        model.remove(&mut engine, key);
    }
    for _ in 0..60 {
        engine.iterate();
    }
    assert_eq!((engine.price(LinkId(0)), engine.price(LinkId(1))), (price, 1.0));
    // The next flow begins with the present price, and F-NORM gives it the whole link at once.
    let key = model.add(&mut engine, unlimited(&[0, 1], 1.0));
    model.check_iteration(&mut engine);
    assert!((engine.rate_bps(key) / UNIT_BPS - 1.0).abs() < 1e-6);
}

#[test]
fn a_capacity_that_changes_limits_flows_at_once() {
    let mut model = Model::new(&[1.0, 4.0], 0.4);
    let mut engine = general(&model);
    let key = model.add(&mut engine, unlimited(&[0, 1], 1.0));
    model.check_iteration(&mut engine);
    for capacity in [0.5, 1e-3, 2.0, 1.0] {
        model.capacities[0] = capacity;
        engine.set_capacity(LinkId(0), capacity * UNIT_BPS);
        model.check_iteration(&mut engine);
        assert!(engine.rate_bps(key) <= capacity * UNIT_BPS);
    }
    // A link that is down.
    engine.set_capacity(LinkId(0), 0.0);
    engine.iterate();
    assert_eq!(engine.rate_bps(key), 0.0);
    engine.set_capacity(LinkId(0), UNIT_BPS);
    engine.iterate();
    assert!((engine.rate_bps(key) / UNIT_BPS - 1.0).abs() < 1e-6);
}

#[test]
fn what_an_elephant_leaves_is_no_rounding_error() {
    // The elephant has 10^12 times the weight. If its load were subtracted in single precision, nothing of the mice
    // would be left in the sums.
    let mut model = Model::new(&[1.0], 0.4);
    let mut engine = general(&model);
    let elephant = model.add(&mut engine, unlimited(&[0], 1e6));
    for _ in 0..3 {
        model.add(&mut engine, unlimited(&[0], 1e-6));
    }
    for _ in 0..100 {
        model.check_iteration(&mut engine);
    }
    model.remove(&mut engine, elephant);
    for _ in 0..100 {
        model.check_iteration(&mut engine);
    }
    assert!((engine.price(LinkId(0)) * 1e6 - 3.0).abs() < 1e-4);
}

#[test]
#[should_panic(expected = "blocks 0 and 1")]
fn a_path_through_two_blocks_is_refused() {
    let places = [0, 1].map(|block| Place { side: Side::Up, block });
    let partition = Partition { n_blocks: 2, places: places.to_vec() };
    let mut engine = RealTime::partitioned(&[1e9; 2], 1e9, 0.4, &partition, 1, Aggregation::Slices);
    engine.add(&[LinkId(0), LinkId(1)], 1.0, f64::INFINITY);
}

const TWO_TIERS: Clos =
    Clos { pods: 1, racks: 16, servers: 5, spines: 3, cores: 0, server_bps: UNIT_BPS, fabric_bps: 2.0 * UNIT_BPS };

const THREE_TIERS: Clos =
    Clos { pods: 8, racks: 3, servers: 2, spines: 2, cores: 3, server_bps: UNIT_BPS, fabric_bps: UNIT_BPS };

/// Adds and removes the same flows at all engines, in each of some iterations; calls `check` with all engines after
/// each.
fn drive(clos: &Clos, engines: &mut [RealTime], mut check: impl FnMut(&[RealTime], &[(FlowKey, Flow)])) {
    let mut draws = Mmix(7);
    let mut flows = Vec::new();
    for iteration in 0..40 {
        for _ in 0..if iteration % 5 == 0 { 60 } else { 4 } {
            let (src, dst) = (draws.below(clos.n_servers()), draws.below(clos.n_servers()));
            if src == dst {
                continue;
            }
            let path = clos.path(src, dst, draws.below(1 << 20));
            let weight = f64::from(1 + draws.below(8)) / 2.0;
            let demand = if draws.below(4) == 0 { 0.125 } else { f64::INFINITY };
            let keys: Vec<FlowKey> = engines.iter_mut().map(|e| e.add(&path, weight, demand * UNIT_BPS)).collect();
            assert!(keys.iter().all(|&key| key == keys[0]), "keys depend on the engine");
            let path = path.iter().map(|link| link.index()).collect();
            flows.push((keys[0], Flow { path, weight, demand }));
        }
        for _ in 0..draws.below(20).min(flows.len() as u32) {
            let (key, _) = flows.swap_remove(draws.below(flows.len() as u32) as usize);
            for engine in engines.iter_mut() {
                engine.remove(key);
            }
        }
        if iteration == 17 {
            let link = LinkId(draws.below(clos.n_links()));
            for engine in engines.iter_mut() {
                engine.set_capacity(link, UNIT_BPS / 2.0);
            }
        }
        engines.iter_mut().for_each(RateEngine::iterate);
        check(engines, &flows);
    }
}

/// Checks that all engines give the same bits.
fn assert_same_bits(clos: &Clos, engines: &mut [RealTime]) {
    let n_links = clos.n_links();
    drive(clos, engines, |engines, flows| {
        for (number, engine) in engines.iter().enumerate().skip(1) {
            for (key, _) in flows {
                let [rate, expected] = [engine, &engines[0]].map(|engine| engine.rate_bps(*key).to_bits());
                assert_eq!(rate, expected, "{key:?} of engine {number}");
            }
            for link in (0..n_links).map(LinkId) {
                assert_eq!(
                    engine.price(link).to_bits(),
                    engines[0].price(link).to_bits(),
                    "{link:?} of engine {number}"
                );
            }
        }
    });
}

fn clos_engine(clos: &Clos, n_blocks: u32, n_threads: usize, aggregation: Aggregation) -> RealTime {
    RealTime::partitioned(&clos.capacities_bps(), UNIT_BPS, 0.4, &clos.partition(n_blocks), n_threads, aggregation)
}

#[test]
fn instructions_do_not_matter() {
    for clos in [TWO_TIERS, THREE_TIERS] {
        for n_blocks in [1, 2] {
            let engine = |most| clos_engine(&clos, n_blocks, 1, Aggregation::Slices).at_most(most);
            let mut engines = INSTRUCTIONS.map(engine);
            assert_eq!(engines[0].instructions(), Instructions::Portable);
            assert_same_bits(&clos, &mut engines);
        }
    }
}

#[test]
fn numbers_of_links_may_be_long() {
    // Links 10,000 apart in one engine and side by side in the other: more than 2^16 numbers, and the same bits.
    let engine = |n_links: usize, most| RealTime::general(&vec![UNIT_BPS; n_links], UNIT_BPS, 0.4).at_most(most);
    let mut sparse = INSTRUCTIONS.map(|most| engine(90_001, most));
    let mut dense = engine(10, Instructions::Portable);
    let mut draws = Mmix(5);
    let mut keys = Vec::new();
    for _ in 0..100 {
        let first = draws.below(10);
        let path: Vec<u32> = (0..=draws.below(4)).map(|hop| (first + hop * 2) % 10).collect();
        let path = |apart: u32| path.iter().map(|link| LinkId(link * apart)).collect::<Vec<_>>();
        keys.push(dense.add(&path(1), 1.0, f64::INFINITY));
        for engine in &mut sparse {
            engine.add(&path(10_000), 1.0, f64::INFINITY);
        }
        dense.iterate();
        for engine in &mut sparse {
            engine.iterate();
            assert!(keys.iter().all(|&key| engine.rate_bps(key).to_bits() == dense.rate_bps(key).to_bits()));
        }
    }
}

#[test]
fn threads_and_kinds_of_aggregation_do_not_matter() {
    for clos in [TWO_TIERS, THREE_TIERS] {
        for (n_blocks, threads) in [(1, &[1, 2][..]), (2, &[1, 2, 3, 4, 9]), (4, &[1, 3]), (8, &[1, 4])] {
            let engine = |aggregation, &n_threads| clos_engine(&clos, n_blocks, n_threads, aggregation);
            let all = AGGREGATIONS.iter().flat_map(|&kind| threads.iter().map(move |n| engine(kind, n)));
            assert_same_bits(&clos, &mut all.collect::<Vec<_>>());
        }
    }
}

#[test]
fn blocks_matter_only_for_rounding() {
    for clos in [TWO_TIERS, THREE_TIERS] {
        let mut engines: Vec<RealTime> = [1, 2, 4, 8].map(|n| clos_engine(&clos, n, 1, Aggregation::Diagonals)).into();
        // Without tiles, and in another order of hops.
        engines.push(RealTime::general(&clos.capacities_bps(), UNIT_BPS, 0.4));
        drive(&clos, &mut engines, |engines, flows| {
            for (key, _) in flows {
                let rates: Vec<f64> = engines.iter().map(|engine| engine.rate_bps(*key)).collect();
                let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
                assert!(high / low < 1.0 + 1e-4, "{key:?}: {rates:?}");
            }
        });
    }
}

#[test]
fn the_engine_in_double_precision_gives_the_same() {
    let clos = TWO_TIERS;
    let mut engines: [Box<dyn RateEngine>; 2] = [
        Box::new(Num::new(clos.capacities_bps(), NumConfig::flowtune(UNIT_BPS))),
        Box::new(clos_engine(&clos, 2, 1, Aggregation::Slices)),
    ];
    let mut draws = Mmix(3);
    let mut flows = Vec::new();
    for _ in 0..60 {
        for _ in 0..10 {
            let (src, dst) = (draws.below(40), 40 + draws.below(40));
            let path = clos.path(src, dst, draws.below(1 << 20));
            let weight = f64::from(1 + draws.below(8)) / 2.0;
            flows.push(engines.each_mut().map(|engine| engine.add(&path, weight, f64::INFINITY)));
        }
        let gone = flows.swap_remove(draws.below(flows.len() as u32) as usize);
        engines.iter_mut().zip(gone).for_each(|(engine, key)| engine.remove(key));
        for engine in &mut engines {
            engine.iterate();
        }
        for &[plain, fast] in &flows {
            let (plain, fast) = (engines[0].rate_bps(plain), engines[1].rate_bps(fast));
            assert!((fast / plain - 1.0).abs() < 1e-4, "{fast} for {plain}");
        }
    }
}

#[test]
fn gradient_and_raw_rates_are_those_of_the_engine_in_double_precision() {
    let clos = TWO_TIERS;
    let gradient = Method::Gradient(Gradient { gamma: 0.01 });
    let cases = [
        (gradient, Normaliser::F_NORM, 0.01),
        (gradient, Normaliser::None, 0.01),
        (Method::Ned(Ned { gamma: 0.4 }), Normaliser::None, 0.4),
    ];
    for (method, normaliser, gamma) in cases {
        let mut plain = Num::new(clos.capacities_bps(), NumConfig { method, normaliser, unit_bps: UNIT_BPS });
        let engine = |most| {
            let engine = RealTime::general(&clos.capacities_bps(), UNIT_BPS, gamma).at_most(most);
            let engine = if method == gradient { engine.gradient() } else { engine };
            if normaliser == Normaliser::None { engine.raw() } else { engine }
        };
        let mut engines = INSTRUCTIONS.map(engine);
        let mut draws = Mmix(11);
        for _ in 0..300 {
            let path = clos.path(draws.below(40), 40 + draws.below(40), draws.below(1 << 20));
            plain.add(&path, 1.0, f64::INFINITY);
            for engine in &mut engines {
                engine.add(&path, 1.0, f64::INFINITY);
            }
        }
        for _ in 0..50 {
            plain.iterate();
            for engine in &mut engines {
                engine.iterate();
                for key in (0..300).map(FlowKey) {
                    let (rate, expected) = (engine.rate_bps(key), plain.rate_bps(key));
                    assert!((rate / expected - 1.0).abs() < 1e-4, "{method:?}, {normaliser:?}: {rate} for {expected}");
                }
            }
        }
    }
}

#[test]
fn no_link_gets_more_than_it_has() {
    let mut engines = [clos_engine(&THREE_TIERS, 4, 2, Aggregation::Diagonals)];
    drive(&THREE_TIERS, &mut engines, |engines, flows| {
        let mut loads = vec![0.0; THREE_TIERS.n_links() as usize];
        for (key, flow) in flows {
            flow.path.iter().for_each(|&link| loads[link] += engines[0].rate_bps(*key));
        }
        assert!(loads.iter().all(|&load| load <= UNIT_BPS * (1.0 + 1e-5)));
    });
}

/// An action on an engine between two iterations.
#[derive(Clone, Debug)]
enum Act {
    Add(Flow),
    Remove(prop::sample::Index),
    SetCapacity(usize, f64),
    Iterate(usize),
}

const N_LINKS: usize = 40;

fn acts(weights: std::ops::Range<f64>, most_hops: usize) -> impl Strategy<Value = Vec<Act>> {
    // Powers of ten, so that small numbers are as frequent as large ones.
    let weight = weights.prop_map(power_of_ten);
    let demand = prop_oneof![Just(f64::INFINITY), 0.01..2.0_f64];
    let path = prop::sample::subsequence((0..N_LINKS).collect::<Vec<_>>(), 1..=most_hops).prop_shuffle();
    let flow = (path, weight, demand).prop_map(|(path, weight, demand)| Flow { path, weight, demand });
    let act = prop_oneof![
        6 => flow.prop_map(Act::Add),
        3 => any::<prop::sample::Index>().prop_map(Act::Remove),
        1 => (0..N_LINKS, 0.1..4.0_f64).prop_map(|(link, capacity)| Act::SetCapacity(link, capacity)),
        4 => (1..4_usize).prop_map(Act::Iterate),
    ];
    prop::collection::vec(act, 1..80)
}

/// Returns 10 to a whole power near the exponent, times 1 to 10.
fn power_of_ten(exponent: f64) -> f64 {
    let whole = exponent.floor();
    10_f64.powi(whole as i32) * (1.0 + 9.0 * (exponent - whole))
}

fn act_out(model: &mut Model, engine: &mut RealTime, acts: &[Act], mut iterate: impl FnMut(&Model, &mut RealTime)) {
    for act in acts {
        let keys: Vec<FlowKey> = model.flows().map(|(key, _)| key).collect();
        match act {
            Act::Add(flow) => _ = model.add(engine, flow.clone()),
            Act::Remove(_) if keys.is_empty() => {}
            Act::Remove(index) => model.remove(engine, *index.get(&keys)),
            Act::SetCapacity(link, capacity) => {
                model.capacities[*link] = *capacity;
                engine.set_capacity(LinkId(*link as u32), capacity * UNIT_BPS);
            }
            Act::Iterate(times) => (0..*times).for_each(|_| iterate(model, engine)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every iteration gives the result of the equations, whatever happened before.
    #[test]
    fn every_iteration_is_the_equations(acts in acts(-2.0..2.0, 10), gamma in 0.1..1.5_f64) {
        let mut model = Model::new(&[1.0; N_LINKS], gamma);
        let mut engine = general(&model);
        act_out(&mut model, &mut engine, &acts, Model::check_iteration);
    }

    /// Weights from 10^-6 to 10^6 on the same links give finite numbers.
    #[test]
    fn extreme_weights_give_numbers(acts in acts(-6.0..6.0, 10), gamma in 0.1..1.5_f64) {
        let mut model = Model::new(&[1.0; N_LINKS], gamma);
        let mut engine = general(&model);
        act_out(&mut model, &mut engine, &acts, |model, engine| {
            engine.iterate();
            for (key, flow) in model.flows() {
                let rate_bps = engine.rate_bps(key);
                assert!(0.0 <= rate_bps && rate_bps.is_finite(), "{flow:?} has {rate_bps}");
                assert!(rate_bps <= flow.demand * UNIT_BPS);
            }
            for link in 0..N_LINKS {
                let price = engine.price(LinkId(link as u32));
                assert!(price.is_finite() && 0.0 <= price, "link {link} has {price}");
            }
        });
    }

    /// Earlier flows do not matter in the end. Prices of links that are just full fall slowly, in the order of 1 /
    /// iterations: hence the many iterations, and a tolerance of a percent. Paths are no longer than 4: links with the
    /// same flows all take a step for the same excess, and where 0.4 times their number is above 2, NED oscillates and
    /// does not settle.
    #[test]
    fn rates_forget(acts in acts(-0.5..0.5, 4)) {
        let mut model = Model::new(&[1.0; N_LINKS], 0.4);
        let mut engine = general(&model);
        act_out(&mut model, &mut engine, &acts, |_, engine| engine.iterate());
        let mut fresh_model = Model::new(&model.capacities, 0.4);
        let mut fresh = general(&fresh_model);
        let keys: Vec<_> = model.flows().map(|(key, flow)| (key, flow.clone())).collect();
        let pairs: Vec<_> = keys.into_iter().map(|(key, flow)| (key, fresh_model.add(&mut fresh, flow))).collect();
        for _ in 0..3_000 {
            engine.iterate();
            fresh.iterate();
        }
        for (old, new) in pairs {
            let (old, new) = (engine.rate_bps(old), fresh.rate_bps(new));
            prop_assert!((old / new - 1.0).abs() < 0.01, "{old} and {new}");
        }
    }
}
