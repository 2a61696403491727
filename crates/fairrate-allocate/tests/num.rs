//! Network utility maximisation: prices against the interior-point reference, churn, and networks at the edge.

use crate::common::{Draw, leaf_spine, logs, random, unit_bps};
use fairrate_allocate::{
    Flow, FlowKey, Gradient, Link, LinkId, Method, Ned, Network, Normaliser, Num, NumConfig, RateEngine, Utility,
    UtilityFunction, kkt_residual, objective, reference,
};
use proptest::prelude::*;

/// Relative tolerance; loads are sums of up to thousands of numbers of 16 digits.
const ROUNDING: f64 = 1e-12;
/// Enough for the slowest of the random networks, where a link's room is 10^-4 of its capacity.
const LIMIT: u32 = 200_000;

fn solve(network: &Network, utilities: &[Utility], config: NumConfig, tolerance: f64) -> Num {
    let mut num = Num::of_network(network, utilities, config).unwrap();
    let convergence = num.solve(LIMIT, tolerance);
    assert!(convergence.converged, "{convergence:?}");
    num
}

/// Returns the largest relative difference.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
}

/// Returns the largest (load - capacity) / capacity.
fn overload(network: &Network, rates_bps: &[f64]) -> f64 {
    let overload_bps = fairrate_allocate::overload(network, rates_bps);
    overload_bps.iter().zip(&network.links).map(|(over, link)| over / link.capacity_bps).fold(f64::MIN, f64::max)
}

/// Returns links of the given capacities in Gb/s and flows of weight 1 over them.
fn network(capacities_gbps: &[f64], flows: &[&[u32]]) -> Network {
    let links = capacities_gbps.iter().map(|c| Link { name: String::new(), capacity_bps: c * 1e9 }).collect();
    let flow = |path: &&[u32]| Flow::new("", path.iter().map(|&l| LinkId(l)).collect::<Vec<_>>());
    Network { links, flows: flows.iter().map(flow).collect() }
}

#[test]
fn ned_with_f_norm_finds_the_reference_on_200_networks() {
    for seed in 0..200 {
        let network = random(seed, 4);
        let (utilities, unit_bps) = (logs(&network), unit_bps(&network));
        let (best, residual) = reference(&network, &utilities, unit_bps).unwrap();
        assert!(residual.max() < 1e-9, "seed {seed}: {residual:?}");
        let mut num = Num::of_network(&network, &utilities, NumConfig::flowtune(unit_bps)).unwrap();
        for i in 0..20 {
            num.iterate();
            let over = overload(&network, &num.solution().rates_bps);
            assert!(over < ROUNDING, "seed {seed}: {over} in iteration {i}");
        }
        let convergence = num.solve(LIMIT, 1e-6);
        assert!(convergence.converged, "seed {seed}: {convergence:?}");
        let solution = num.solution();
        assert!(overload(&network, &solution.rates_bps) < ROUNDING, "seed {seed}");
        let off = difference(&solution.rates_bps, &best.rates_bps);
        assert!(off < 1e-3, "seed {seed}: {off}");
    }
}

#[test]
fn every_method_finds_the_reference_on_flowtunes_network() {
    let network = leaf_spine(1, 300);
    let (utilities, unit_bps) = (logs(&network), 10e9);
    let (best, _) = reference(&network, &utilities, unit_bps).unwrap();
    let flowtune = NumConfig::flowtune(unit_bps);
    let gamma = Num::of_network(&network, &utilities, flowtune).unwrap().safe_step();
    for method in [
        Method::Ned(Ned::default()),
        Method::Gradient(Gradient { gamma }),
        Method::Fgm,
        Method::NewtonLike { gamma: 0.2, window: 5 },
    ] {
        let num = solve(&network, &utilities, NumConfig { method, ..flowtune }, 1e-4);
        let off = difference(&num.solution().rates_bps, &best.rates_bps);
        assert!(off < 1e-3, "{method:?}: {off}");
    }
}

/// Prices of a converged allocator prove its rates, without the reference.
#[test]
fn prices_prove_the_rates() {
    let network = leaf_spine(2, 500);
    let utilities = logs(&network);
    let solution = solve(&network, &utilities, NumConfig::flowtune(10e9), 1e-9).solution();
    let residual = kkt_residual(&network, &utilities, &solution).unwrap();
    assert!(residual.max() < 1e-7, "{residual:?}");
    // If two parts in a thousand are moved from a flow to another, the rates are not the optimum any more, and the
    // proof fails.
    let mut moved = solution.clone();
    moved.rates_bps[0] *= 0.998;
    assert!(1e-3 < kkt_residual(&network, &utilities, &moved).unwrap().max());
    assert!(objective(&utilities, &moved) < objective(&utilities, &solution));
}

/// Two links of 1 and a flow over both beside one over each: rates 1/3, 2/3, 2/3 for logarithms. For alpha 2 prices are
/// `1 / x^2`, and `1 / x^2 = 2 / (1 - x)^2` gives `x = 1 / (1 + sqrt 2)`.
#[test]
fn alpha_fair_by_hand() {
    let network = network(&[1.0, 1.0], &[&[0, 1], &[0], &[1]]);
    for (alpha, long) in [(1.0, 1.0 / 3.0), (2.0, 1.0 / (1.0 + 2.0_f64.sqrt()))] {
        let utilities = vec![Utility::alpha_fair(1.0, alpha); 3];
        let want = [long, 1.0 - long, 1.0 - long].map(|x| x * 1e9);
        let (best, _) = reference(&network, &utilities, 1e9).unwrap();
        assert!(difference(&best.rates_bps, &want) < 1e-9, "{best:?}");
        let num = solve(&network, &utilities, NumConfig::flowtune(1e9), 1e-10);
        assert!(difference(&num.solution().rates_bps, &want) < 1e-9);
    }
}

/// Large alphas lead towards max-min: links of 10 and 40 Gb/s leave a flow over both 5, and the others 5 and 35.
#[test]
fn large_alphas_are_nearly_max_min() {
    let network = network(&[10.0, 40.0], &[&[0, 1], &[0], &[1]]);
    let (best, _) = reference(&network, &vec![Utility::alpha_fair(1.0, 16.0); 3], 10e9).unwrap();
    assert!(difference(&best.rates_bps, &[5e9, 5e9, 35e9]) < 1e-2, "{best:?}");
}

#[test]
fn alpha_fair_rates_are_the_references_on_random_networks() {
    for (seed, alpha) in [(100, 2.0), (103, 2.0), (111, 4.0), (133, 4.0), (141, 0.8)] {
        let network = random(seed, 4);
        let weights = network.flows.iter().map(|flow| flow.weight);
        let utilities: Vec<Utility> = weights.map(|weight| Utility::alpha_fair(weight, alpha)).collect();
        let (best, residual) = reference(&network, &utilities, unit_bps(&network)).unwrap();
        assert!(residual.max() < 1e-9, "seed {seed}: {residual:?}");
        let num = solve(&network, &utilities, NumConfig::flowtune(unit_bps(&network)), 1e-5);
        let off = difference(&num.solution().rates_bps, &best.rates_bps);
        assert!(off < 1e-3, "seed {seed}, alpha {alpha}: {off}");
    }
}

/// `log(1 + x)`: a flow wants nothing at prices of 1 and above.
#[derive(Debug)]
struct Satiable;

impl UtilityFunction for Satiable {
    fn value(&self, rate: f64) -> f64 {
        (1.0 + rate).ln()
    }
    fn derivative(&self, rate: f64) -> f64 {
        1.0 / (1.0 + rate)
    }
    fn inverse(&self, price: f64) -> f64 {
        1.0 / price - 1.0
    }
    fn inverse_slope(&self, price: f64) -> f64 {
        -1.0 / (price * price)
    }
}

/// On a link of 10, `1 / (1 + x) = 1 / y` and `x + y = 10` give 4.5 and 5.5.
#[test]
fn a_utility_of_ones_own_beside_a_logarithm() {
    let network = network(&[10.0], &[&[0], &[0]]);
    let utilities = [Utility::custom(Satiable), Utility::log(1.0)];
    let (best, _) = reference(&network, &utilities, 1e9).unwrap();
    assert!(difference(&best.rates_bps, &[4.5e9, 5.5e9]) < 1e-9, "{best:?}");
    let num = solve(&network, &utilities, NumConfig::flowtune(1e9), 1e-10);
    assert!(difference(&num.solution().rates_bps, &[4.5e9, 5.5e9]) < 1e-9);
}

/// With N flows of weight 1 on a link of capacity 1, `H = -N / p^2` and `p* = N`, so that
/// `p' = p (1 + gamma (1 - p / N))`: a logistic map, which converges for gamma below 2.
#[test]
fn prices_of_a_single_link_follow_a_logistic_map() {
    for gamma in [0.2, 0.4, 1.0, 1.5] {
        let method = Method::Ned(Ned { gamma });
        let mut num = Num::new([10e9], NumConfig { method, ..NumConfig::flowtune(10e9) });
        for _ in 0..5 {
            num.add(&[LinkId(0)], 1.0, f64::INFINITY);
        }
        let mut price = 1.0;
        for _ in 0..80 {
            num.iterate();
            price *= 1.0 + gamma * (1.0 - price / 5.0);
            assert!((num.solution().prices[0] / price - 1.0).abs() < ROUNDING, "{gamma}");
        }
        assert!((price - 5.0).abs() < 1e-3);
    }
}

/// Adds a flow as soon as rates have settled, with gamma 0.4 and no normaliser. The price starts at `(N - 1) / N` of
/// the optimum, and the rate is within 10 % when the price is above 1 / 1.1 = 0.909 of it. From 1/2: 0.6, 0.696, 0.781,
/// 0.849, 0.900, 0.936, rates of the seventh iteration; from 2/3 the fifth, from 3/4 the fourth, from 4/5 the third.
/// F-NORM's rates are right at once.
#[test]
fn a_staircase_of_flows() {
    for (normaliser, want) in [(Normaliser::None, [1, 7, 5, 4, 3]), (Normaliser::F_NORM, [1; 5])] {
        let mut num = Num::new([10e9], NumConfig { normaliser, ..NumConfig::flowtune(10e9) });
        for (n, want) in (1..).zip(want) {
            let newest = num.add(&[LinkId(0)], 1.0, f64::INFINITY);
            let mut iterations = 0;
            while iterations == 0 || 0.1 < (num.rate_bps(newest) * f64::from(n) / 10e9 - 1.0).abs() {
                num.iterate();
                iterations += 1;
            }
            assert_eq!(iterations, want, "{n} flows, {normaliser:?}");
            num.solve(100, 1e-12);
        }
    }
}

/// Six links in a row count six times the step of one: `q' = q (1 + 2.4 (1 - q / q*))` at 0.4, beyond 2. The allocator
/// reports it; at 0.2 the factor is 1.2.
#[test]
fn what_does_not_converge_is_told() {
    let network = network(&[10.0; 6], &[&[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 5]]);
    let mut num = Num::of_network(&network, &logs(&network), NumConfig::flowtune(10e9)).unwrap();
    let convergence = num.solve(10_000, 1e-3);
    assert!(
        !convergence.converged && convergence.iterations == 10_000 && 1e-2 < convergence.residual,
        "{convergence:?}"
    );
    // F-NORM makes the rates of even these prices fit, and on one bottleneck they are right.
    assert!(difference(&num.solution().rates_bps, &[5e9, 5e9]) < ROUNDING);
    let method = Method::Ned(Ned { gamma: 0.2 });
    solve(&network, &logs(&network), NumConfig { method, ..NumConfig::flowtune(10e9) }, 1e-9);
}

/// Two links of 10 with three flows on the first, one of which uses the second too; prices of 1 make rates of 1, 1 and
/// 1/2 in units of 10 Gb/s: loads of 2.5 and 0.5.
#[test]
fn normalisers_by_hand() {
    let granted = |normaliser, demand_bps| {
        let mut num = Num::new([10e9, 10e9], NumConfig { normaliser, ..NumConfig::flowtune(10e9) });
        let keys = [
            num.add(&[LinkId(0)], 1.0, f64::INFINITY),
            num.add(&[LinkId(0), LinkId(1)], 1.0, f64::INFINITY),
            num.add(&[LinkId(0)], 1.0, f64::INFINITY),
        ];
        let short = num.add(&[LinkId(1)], 1.0, demand_bps);
        num.remove(short);
        num.iterate();
        keys.map(|key| num.rate_bps(key) / 1e9)
    };
    assert_eq!(granted(Normaliser::None, 1e9), [10.0, 5.0, 10.0]);
    assert_eq!(granted(Normaliser::U_NORM, 1e9), [4.0, 2.0, 4.0]);
    assert_eq!(granted(Normaliser::F_NORM, 1e9), [4.0, 2.0, 4.0]);
    // A single flow of weight 1/2 takes 5 of 10 at a price of 1. Equation 9 gives it all, up to its demand.
    let alone = |normaliser, demand_bps| {
        let mut num = Num::new([10e9], NumConfig { normaliser, ..NumConfig::flowtune(10e9) });
        let key = num.add(&[LinkId(0)], 0.5, demand_bps);
        num.iterate();
        num.rate_bps(key) / 1e9
    };
    assert_eq!(alone(Normaliser::F_NORM, f64::INFINITY), 10.0);
    assert_eq!(alone(Normaliser::F_NORM, 7e9), 7.0);
    assert_eq!(alone(Normaliser::Flow { scales_up: false, bounded: false }, f64::INFINITY), 5.0);
    assert_eq!(alone(Normaliser::Uniform { scales_up: false }, f64::INFINITY), 5.0);
}

/// Two links of 10, a flow over both and one over the first. Prices of 1/2 on the first and 0 on the second make rates
/// of 2 in units of 10 Gb/s (the most a flow may want): a ratio of 4 gives 5 Gb/s each with either form. A third flow
/// over the first link with weight 1/2 wants 1. As written the ratio is 5: 4, 4 and 2 Gb/s. Bounded, all three count
/// with 1, and the ratio is 3. Prices follow the same loads with both.
#[test]
fn bounded_ratios_count_what_flows_can_be_told() {
    let run = |normaliser| {
        let mut num = Num::new([10e9, 10e9], NumConfig { normaliser, ..NumConfig::flowtune(10e9) });
        let keys = [(&[LinkId(0), LinkId(1)][..], 1.0), (&[LinkId(0)], 1.0), (&[LinkId(0)], 0.5)]
            .map(|(path, weight)| num.add(path, weight, f64::INFINITY));
        num.set_prices(&[0.5, 0.0]);
        num.iterate();
        (keys.map(|key| (num.rate_bps(key) / 1e6).round() / 1e3), num.solution().prices)
    };
    let (literal, prices) = run(Normaliser::F_NORM);
    assert_eq!(literal, [4.0, 4.0, 2.0]);
    let (bounded, bounded_prices) = run(Normaliser::F_NORM_BOUNDED);
    assert_eq!(bounded, [3.333, 3.333, 3.333]);
    assert_eq!(prices, bounded_prices);
    // A demand bounds too: a flow with a demand of 1 leaves 9 of 10 Gb/s, and rates scale up to that.
    let mut num = Num::new([10e9], NumConfig { normaliser: Normaliser::F_NORM_BOUNDED, ..NumConfig::flowtune(10e9) });
    let (small, large) = (num.add(&[LinkId(0)], 1.0, 1e9), num.add(&[LinkId(0)], 1.0, f64::INFINITY));
    num.solve(1_000, 1e-9);
    assert!((num.rate_bps(small) - 1e9).abs() < 10.0 && (num.rate_bps(large) - 9e9).abs() < 10.0);
}

/// A link without flows, a link whose flow is limited by its demand, and a link with a single flow.
#[test]
fn links_with_room_have_no_price_and_idle_ones_keep_theirs() {
    let mut num = Num::new([10e9, 10e9, 10e9], NumConfig::flowtune(10e9));
    let limited = num.add(&[LinkId(1)], 1.0, 3e9);
    let alone = num.add(&[LinkId(2)], 1e-6, f64::INFINITY);
    assert!(num.solve(1_000, 1e-9).converged);
    assert_eq!((num.rate_bps(limited), num.rate_bps(alone)), (3e9, 10e9));
    let prices = num.solution().prices;
    assert_eq!((prices[0], prices[1]), (1.0, 0.0));
    num.remove(alone);
    num.iterate();
    assert_eq!(num.solution().prices[2], prices[2]);
    assert_eq!((num.n_flows(), num.rate_bps(alone)), (1, 0.0));
}

#[test]
fn no_flows_and_no_links() {
    let mut none = Num::new([], NumConfig::flowtune(1.0));
    assert!(none.solve(3, 0.0).converged);
    assert_eq!(none.residual(), 0.0);
    let empty = Network::default();
    let (best, residual) = reference(&empty, &[], 1.0).unwrap();
    assert!(best.rates_bps.is_empty() && residual.max() == 0.0);
    let idle = network(&[10.0], &[]);
    assert_eq!(reference(&idle, &[], 1e9).unwrap().0.prices, [0.0]);
}

/// Prices at which rates have no digits, from which every method but the gradient's tiny steps recovers.
#[test]
fn from_any_prices() {
    let network = network(&[10.0, 40.0], &[&[0, 1], &[0], &[1]]);
    let (best, _) = reference(&network, &logs(&network), 10e9).unwrap();
    let methods = [Method::Ned(Ned::default()), Method::Fgm, Method::NewtonLike { gamma: 0.2, window: 2 }];
    for prices in [[0.0, 0.0], [1e300, 1e-300], [f64::MAX, f64::MAX], [1e-320, 1e200], [f64::INFINITY, 1.0]] {
        for method in methods {
            // FGM's momentum and the estimates of the Newton-like method have no way back from infinity.
            if method != methods[0] && prices.iter().any(|price| 1e100 < *price) {
                continue;
            }
            let config = NumConfig { method, ..NumConfig::flowtune(10e9) };
            let mut num = Num::of_network(&network, &logs(&network), config).unwrap();
            num.set_prices(&prices);
            for _ in 0..2_000 {
                num.iterate();
                let solution = num.solution();
                assert!(solution.rates_bps.iter().all(|rate| rate.is_finite() && 0.0 <= *rate), "{solution:?}");
                assert!(overload(&network, &solution.rates_bps) < ROUNDING, "{solution:?}");
                assert!(!solution.prices.iter().any(|price| price.is_nan()), "{solution:?}");
            }
            let off = difference(&num.solution().rates_bps, &best.rates_bps);
            assert!(off < 1e-6, "{method:?} from {prices:?}: {off}");
        }
    }
}

/// The lightest flow that networks may have beside the heaviest.
#[test]
fn very_unequal_weights() {
    let mut network = network(&[100.0, 10.0], &[&[0], &[0, 1], &[1]]);
    for (flow, weight) in network.flows.iter_mut().zip([1e6, 1e-6, 1e-6]) {
        flow.weight = weight;
    }
    let utilities = logs(&network);
    let (best, _) = reference(&network, &utilities, 10e9).unwrap();
    let num = solve(&network, &utilities, NumConfig::flowtune(10e9), 1e-13);
    assert!(difference(&num.solution().rates_bps, &best.rates_bps) < 1e-6);
}

#[test]
#[should_panic(expected = "weights are above 0")]
fn a_weight_of_zero_is_refused() {
    Num::new([10e9], NumConfig::flowtune(10e9)).add(&[LinkId(0)], 0.0, f64::INFINITY);
}

/// After a change of a converged allocator, prices begin at their old values: fewer iterations than from the start.
#[test]
fn a_change_takes_fewer_iterations_than_a_start() {
    let mut network = leaf_spine(3, 1_000);
    let mut num = solve(&network, &logs(&network), NumConfig::flowtune(10e9), 1e-6);
    num.remove(FlowKey(7));
    let added = num.add(&network.flows[8].links, 1.0, f64::INFINITY);
    assert_eq!(added, FlowKey(7));
    let warm = num.solve(LIMIT, 0.01).iterations;
    network.flows[7] = network.flows[8].clone();
    let cold = Num::of_network(&network, &logs(&network), NumConfig::flowtune(10e9)).unwrap().solve(LIMIT, 0.01);
    assert!(warm < cold.iterations, "{warm}, {cold:?}");
}

/// A change of an allocator: added flows, removed flows, capacities, and iterations in between.
#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u32>, f64, f64),
    Remove(prop::sample::Index),
    Capacity(u32, f64),
    Iterate(u8),
}

fn steps(n_links: u32) -> impl Strategy<Value = Vec<Step>> {
    let path = prop::collection::btree_set(0..n_links, 1..=4);
    let demand = prop_oneof![3 => Just(f64::INFINITY), 1 => 1e9..50e9_f64];
    let step = prop_oneof![
        4 => (path, 0.1..10.0_f64, demand).prop_map(|(path, w, d)| Step::Add(path.into_iter().collect(), w, d)),
        2 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => (0..n_links, 1e9..100e9_f64).prop_map(|(link, capacity)| Step::Capacity(link, capacity)),
        2 => (0..20_u8).prop_map(Step::Iterate),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_churn_leads_where_a_fresh_allocator_does(steps in steps(8)) {
        let mut network = network(&[10.0, 10.0, 25.0, 25.0, 40.0, 40.0, 100.0, 100.0], &[]);
        let config = NumConfig::flowtune(10e9);
        let mut num = Num::new(network.links.iter().map(|link| link.capacity_bps), config);
        let mut keys: Vec<FlowKey> = Vec::new();
        for step in steps {
            match step {
                Step::Add(path, weight, demand_bps) => {
                    let path: Vec<LinkId> = path.into_iter().map(LinkId).collect();
                    keys.push(num.add(&path, weight, demand_bps));
                    network.flows.push(Flow::new("", path).weight(weight).demand_bps(demand_bps));
                }
                Step::Remove(index) if !keys.is_empty() => {
                    let at = index.index(keys.len());
                    num.remove(keys.swap_remove(at));
                    network.flows.swap_remove(at);
                }
                Step::Remove(_) => {}
                Step::Capacity(link, capacity_bps) => {
                    num.set_capacity(LinkId(link), capacity_bps);
                    network.links[link as usize].capacity_bps = capacity_bps;
                }
                Step::Iterate(n) => (0..n).for_each(|_| num.iterate()),
            }
            num.iterate();
            let rates: Vec<f64> = keys.iter().map(|&key| num.rate_bps(key)).collect();
            prop_assert!(overload(&network, &rates) < ROUNDING);
            prop_assert_eq!(num.n_flows(), keys.len());
        }
        let mut fresh = Num::of_network(&network, &logs(&network), config).unwrap();
        prop_assert!(num.solve(1_000_000, 1e-6).converged && fresh.solve(1_000_000, 1e-6).converged);
        let rates: Vec<f64> = keys.iter().map(|&key| num.rate_bps(key)).collect();
        prop_assert!(difference(&rates, &fresh.solution().rates_bps) < 1e-4);
    }
}

/// The draws are those of the networks in the documentation.
#[test]
fn networks_are_drawn_as_documented() {
    let sizes = (0..200).map(|seed| random(seed, 4)).map(|n| (n.links.len(), n.flows.len()));
    assert_eq!(sizes.fold((0, 0), |(l, f), (links, flows)| (l.max(links), f.max(flows))), (120, 2_000));
    assert!((0.0..1.0).contains(&Draw::new(0).uniform()));
}
