//! Max-min fairness: examples worked by hand, and the bottleneck condition on random networks.

use fairrate_allocate::{Allocation, Flow, Link, LinkId, MaxMin, Network, NetworkError, max_min};
use fairrate_units::Rate;
use proptest::prelude::*;

use crate::common::Mmix;

/// Relative tolerance; rates are sums and quotients of at most some thousand numbers of 16 digits.
const TOLERANCE: f64 = 1e-9;

/// Returns a network of links in Gb/s, and flows with their links and weights.
fn network(capacities_gbps: &[u64], flows: &[(&[u32], f64)]) -> Network {
    let link = |(i, gbps): (usize, &u64)| Link::new(format!("l{i}"), Rate::from_gbps(*gbps));
    let flow = |(i, (links, weight)): (usize, &(&[u32], f64))| {
        Flow::new(format!("f{i}"), links.iter().map(|&l| LinkId(l)).collect::<Vec<_>>()).weight(*weight)
    };
    Network {
        links: capacities_gbps.iter().enumerate().map(link).collect(),
        flows: flows.iter().enumerate().map(flow).collect(),
    }
}

fn rates_gbps(network: &Network) -> Vec<f64> {
    max_min(network).unwrap().rates_bps.iter().map(|rate| rate / 1e9).collect()
}

/// PERC (HotNets 2015), Figure 7: A, B on the first link, B, C on the second, C, D on the third. The third gives C and
/// D 5 each; the second then has 25 for B, the first 35 for A.
#[test]
fn the_chain_of_percs_figure_7() {
    let chain = network(&[60, 30, 10], &[(&[0], 1.0), (&[0, 1], 1.0), (&[1, 2], 1.0), (&[2], 1.0)]);
    assert_eq!(rates_gbps(&chain), [35.0, 25.0, 5.0, 5.0]);
    assert_eq!(max_min(&chain).unwrap().bottleneck, [0, 1, 2, 2].map(|link| Some(LinkId(link))));
}

/// A flow over all links of a parking lot has the share of the narrowest: 12 / 3 = 4, and 20 - 4, 10 - 4 for the flows
/// of one hop on the others.
#[test]
fn a_parking_lot() {
    let lot = network(&[20, 12, 10], &[(&[2, 0, 1], 1.0), (&[0], 1.0), (&[1], 1.0), (&[1], 1.0), (&[2], 1.0)]);
    assert_eq!(rates_gbps(&lot), [4.0, 16.0, 4.0, 4.0, 6.0]);
}

/// Weights 1, 2, 3 on 60: 10 for each unit. The flow of weight 2 has another link of 5, so the others have 55 / 4 for
/// each unit.
#[test]
fn weights() {
    let one = network(&[60], &[(&[0], 1.0), (&[0], 2.0), (&[0], 3.0)]);
    assert_eq!(rates_gbps(&one), [10.0, 20.0, 30.0]);
    let two = network(&[60, 5], &[(&[0], 1.0), (&[0, 1], 2.0), (&[0], 3.0)]);
    assert_eq!(rates_gbps(&two), [13.75, 5.0, 41.25]);
}

/// Figure 7's chain with 3 for D and 20 for B: the third link leaves C 7, the second would leave B 23, so B has its
/// demand, and the first leaves A 40. A demand equal to the rate a flow has anyway changes nothing.
#[test]
fn demands() {
    let mut chain = network(&[60, 30, 10], &[(&[0], 1.0), (&[0, 1], 1.0), (&[1, 2], 1.0), (&[2], 1.0)]);
    (chain.flows[1].demand_bps, chain.flows[3].demand_bps) = (20e9, 3e9);
    assert_eq!(rates_gbps(&chain), [40.0, 20.0, 7.0, 3.0]);
    assert_eq!(max_min(&chain).unwrap().bottleneck, [Some(LinkId(0)), None, Some(LinkId(2)), None]);
    chain.flows[0].demand_bps = 40e9;
    assert_eq!(rates_gbps(&chain), [40.0, 20.0, 7.0, 3.0]);
    // Weights 1 and 3 on 40: the second asks for 24, less than its 30.
    let mut one = network(&[40], &[(&[0], 1.0), (&[0], 3.0)]);
    one.flows[1].demand_bps = 24e9;
    assert_eq!(rates_gbps(&one), [16.0, 24.0]);
}

#[test]
fn links_without_flows_and_no_flows_at_all() {
    assert_eq!(rates_gbps(&network(&[10, 1, 40], &[(&[2], 7.0)])), [40.0]);
    assert_eq!(max_min(&network(&[10], &[])), Ok(Allocation::default()));
    assert_eq!(max_min(&Network::default()), Ok(Allocation::default()));
}

#[test]
fn of_several_bottlenecks_the_first_is_named() {
    let tie = network(&[10, 10, 10], &[(&[2, 1], 1.0)]);
    assert_eq!(max_min(&tie).unwrap().bottleneck, [Some(LinkId(1))]);
}

/// The heavy flow has 10^12 shares of the first link's 100 Gb/s, the light one beside it one share, 0.1 bit/s.
#[test]
fn shares_of_very_unequal_weights_are_exact() {
    let network = network(&[100, 10], &[(&[0], 1e6), (&[0, 1], 1e-6), (&[1], 1e-6)]);
    let allocation = max_min(&network).unwrap();
    let want = [1e11 - 0.1, 0.1, 1e10 - 0.1];
    for (rate_bps, want) in allocation.rates_bps.iter().zip(want) {
        assert!((rate_bps - want).abs() <= 1e-11 * want, "{allocation:?}");
    }
}

#[test]
fn what_has_no_allocation_is_an_error() {
    let error = |flows: &[(&[u32], f64)]| max_min(&network(&[10, 10], flows)).unwrap_err();
    assert_eq!(error(&[(&[0], 1.0), (&[], 1.0)]), NetworkError::NoLinks { flow: 1 });
    assert_eq!(error(&[(&[0, 2], 1.0)]), NetworkError::UnknownLink { flow: 0, link: LinkId(2), n_links: 2 });
    assert_eq!(error(&[(&[0, 1, 0], 1.0)]), NetworkError::RepeatedLink { flow: 0, link: LinkId(0) });
    for weight in [0.0, -1.0, f64::INFINITY, 1e-7] {
        assert_eq!(error(&[(&[0], weight)]), NetworkError::Weight { flow: 0, weight });
    }
    assert!(matches!(error(&[(&[0], f64::NAN)]), NetworkError::Weight { flow: 0, .. }));
    for demand_bps in [0.0, -1.0, 1e19, f64::NEG_INFINITY] {
        let mut asking = network(&[10], &[(&[0], 1.0)]);
        asking.flows[0].demand_bps = demand_bps;
        assert_eq!(max_min(&asking), Err(NetworkError::Demand { flow: 0, demand_bps }));
    }
    assert_eq!(max_min(&network(&[10, 0], &[])), Err(NetworkError::Capacity { link: 1, capacity_bps: 0.0 }));
    let text = error(&[(&[], 1.0)]).to_string();
    assert_eq!(text, "flow #0 uses no link, so nothing limits its rate");
}

/// Checks an allocation against the definition: no link above its capacity and no flow above its demand; every flow
/// that has less than its demand has a full link on which no flow has a larger share. That makes it the only max-min
/// fair allocation.
fn assert_max_min(network: &Network, allocation: &Allocation) {
    let shares = || network.flows.iter().zip(&allocation.rates_bps).map(|(flow, rate_bps)| rate_bps / flow.weight);
    let mut used_bps = vec![0.0; network.links.len()];
    let mut largest = vec![0.0_f64; network.links.len()];
    for ((flow, rate_bps), share) in network.flows.iter().zip(&allocation.rates_bps).zip(shares()) {
        assert!(0.0 < *rate_bps && *rate_bps <= flow.demand_bps * (1.0 + TOLERANCE), "{rate_bps} for {flow:?}");
        for link in &flow.links {
            used_bps[link.index()] += rate_bps;
            largest[link.index()] = largest[link.index()].max(share);
        }
    }
    for (used, link) in used_bps.iter().zip(&network.links) {
        assert!(*used <= link.capacity_bps * (1.0 + TOLERANCE), "{used} on {link:?}");
    }
    for ((flow, share), bottleneck) in network.flows.iter().zip(shares()).zip(&allocation.bottleneck) {
        let Some(bottleneck) = bottleneck else {
            assert_eq!(share, flow.demand_bps / flow.weight);
            continue;
        };
        assert!(flow.links.contains(bottleneck), "{flow:?}, {bottleneck:?}");
        let (l, link) = (bottleneck.index(), &network.links[bottleneck.index()]);
        assert!(
            (used_bps[l] - link.capacity_bps).abs() <= TOLERANCE * link.capacity_bps,
            "{} on {link:?}",
            used_bps[l]
        );
        assert!(largest[l] * (1.0 - TOLERANCE) <= share, "{share} of {} on {link:?}", largest[l]);
    }
}

/// Computes the allocation by rounds, in time flows x links x rounds: raise all open flows until the first link is full
/// or the first flow has its demand, settle the flows of the full links and those with their demand, and repeat.
fn by_rounds(network: &Network) -> Vec<f64> {
    let mut rates_bps: Vec<Option<f64>> = vec![None; network.flows.len()];
    while rates_bps.iter().any(Option::is_none) {
        let level = |l: usize| {
            let (mut room, mut weight) = (network.links[l].capacity_bps, 0.0);
            for (flow, rate_bps) in network.flows.iter().zip(&rates_bps) {
                if flow.links.contains(&LinkId(l as u32)) {
                    match rate_bps {
                        Some(rate_bps) => room -= rate_bps,
                        None => weight += flow.weight,
                    }
                }
            }
            if weight == 0.0 { f64::INFINITY } else { room / weight }
        };
        let levels: Vec<f64> = (0..network.links.len()).map(level).collect();
        let open = network.flows.iter().zip(&rates_bps).filter(|(_, rate_bps)| rate_bps.is_none());
        let demands = open.map(|(flow, _)| flow.demand_bps / flow.weight);
        let lowest = levels.iter().copied().chain(demands).fold(f64::INFINITY, f64::min);
        let is_full = |link: &LinkId| levels[link.index()] == lowest;
        for (flow, rate_bps) in network.flows.iter().zip(&mut rates_bps) {
            let has_all = flow.demand_bps / flow.weight == lowest;
            if rate_bps.is_none() && (has_all || flow.links.iter().any(is_full)) {
                *rate_bps = Some(flow.weight * lowest);
            }
        }
    }
    rates_bps.into_iter().flatten().collect()
}

/// Draws capacities of real links, which tie, or any.
fn capacity_bps() -> impl Strategy<Value = f64> {
    prop_oneof![
        proptest::sample::select(vec![10e9, 25e9, 40e9, 100e9, 400e9]),
        (6.0..12.0_f64).prop_map(|digits| 10.0_f64.powf(digits)),
    ]
}

/// Draws mostly 1 or small whole numbers, which tie, or any within six digits.
fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => Just(1.0),
        1 => (1_u32..5).prop_map(f64::from),
        1 => (-3.0..3.0_f64).prop_map(|digits| 10.0_f64.powf(digits)),
    ]
}

/// Draws a demand, mostly none.
fn demand_bps() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(f64::INFINITY), 1 => capacity_bps()]
}

fn networks(n_links: usize, n_flows: std::ops::Range<usize>, max_hops: usize) -> impl Strategy<Value = Network> {
    let links = proptest::collection::vec(capacity_bps(), 1..=n_links);
    links.prop_flat_map(move |capacities| {
        let n = capacities.len() as u32;
        // Squared, so that some links are popular.
        let link = (0.0..1.0_f64).prop_map(move |x| LinkId((x * x * f64::from(n)) as u32));
        let path = proptest::collection::btree_set(link, 1..=max_hops);
        let flows = proptest::collection::vec((path.prop_map(Vec::from_iter), weight(), demand_bps()), n_flows.clone());
        flows.prop_map(move |flows| Network {
            links: capacities.iter().map(|&capacity_bps| Link { name: String::new(), capacity_bps }).collect(),
            flows: flows
                .into_iter()
                .map(|(links, weight, demand_bps)| Flow::new("", links).weight(weight).demand_bps(demand_bps))
                .collect(),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn small_networks_have_the_bottleneck_condition_and_the_rates_of_rounds(network in networks(12, 0..40, 4)) {
        let allocation = max_min(&network).unwrap();
        assert_max_min(&network, &allocation);
        for (rate_bps, want) in allocation.rates_bps.iter().zip(by_rounds(&network)) {
            prop_assert!((rate_bps - want).abs() <= 1e-6 * want, "{rate_bps} or {want}");
        }
    }

    /// A solver that has solved other networks before gives the same bits as a fresh one.
    #[test]
    fn a_used_solver_is_as_good_as_new(network in networks(12, 1..40, 4), first in 0_usize..40, again in 0_usize..40) {
        let capacities = || network.links.iter().map(|link| link.capacity_bps);
        let add = |solver: &mut MaxMin, flows: &[Flow]| {
            for flow in flows {
                solver.add(flow.links.iter().copied(), flow.weight, flow.demand_bps);
            }
        };
        let mut solver = MaxMin::new(capacities());
        for n in [first.min(network.flows.len()), again.min(network.flows.len())] {
            let (early, late) = network.flows.split_at(n);
            add(&mut solver, early);
            solver.solve();
            // Flows may be added to present ones, and solving twice gives the same result as solving once.
            add(&mut solver, late);
            solver.solve();
            let fresh = max_min(&network).unwrap();
            prop_assert_eq!(solver.solve(), &fresh.rates_bps);
            prop_assert_eq!(solver.bottlenecks(), &fresh.bottleneck);
            solver.clear();
            add(&mut solver, late);
            let rest = Network { flows: late.to_vec(), ..network.clone() };
            prop_assert_eq!(solver.solve(), max_min(&rest).unwrap().rates_bps);
            solver.clear();
        }
    }

    #[test]
    fn the_order_of_flows_and_links_does_not_matter(network in networks(12, 1..40, 4), turn in 0_usize..40) {
        let mut turned = network.clone();
        turned.flows.iter_mut().for_each(|flow| flow.links.reverse());
        let turn = turn % network.flows.len();
        turned.flows.rotate_left(turn);
        let mut again = max_min(&turned).unwrap().rates_bps;
        again.rotate_right(turn);
        for (rate_bps, again) in max_min(&network).unwrap().rates_bps.iter().zip(&again) {
            prop_assert!((rate_bps - again).abs() <= 1e-12 * again, "{rate_bps} or {again}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn up_to_5000_flows_have_the_bottleneck_condition(network in networks(600, 1..5_001, 8)) {
        let allocation = max_min(&network).unwrap();
        assert_max_min(&network, &allocation);
        prop_assert_eq!(max_min(&network), Ok(allocation));
    }
}

/// 5,000 flows of 6 hops on 1,000 links, by a linear congruence: the same network everywhere.
#[test]
fn five_thousand_flows() {
    let mut generator = Mmix(1);
    let mut draw = |bound: u32| u64::from(generator.below(bound));
    let links = (0..1_000).map(|_| Link::new("", Rate::from_gbps(10 + draw(390)))).collect();
    let mut flow = |_| {
        let mut path: Vec<LinkId> = (0..6).map(|_| LinkId(draw(1_000) as u32)).collect();
        path.sort();
        path.dedup();
        Flow::new("", path).weight((1 + draw(8)) as f64)
    };
    let network = Network { flows: (0..5_000).map(&mut flow).collect(), links };
    assert_max_min(&network, &max_min(&network).unwrap());
}
