//! Synchronous PERC: the paper's examples worked by hand, and its fixed point on random networks.

use fairrate_allocate::{AtCapacity, Flow, Link, LinkId, Network, NetworkError, SyncPerc, max_min, overload};
use fairrate_units::Rate;
use proptest::prelude::*;

/// More iterations than any network here needs.
const LIMIT: usize = 1_000;
const EQUAL: f64 = 1e-9;

fn network(capacities_gbps: &[u64], flows: &[&[u32]]) -> Network {
    let flow = |links: &&[u32]| Flow::new("", links.iter().map(|&l| LinkId(l)).collect::<Vec<_>>());
    Network {
        links: capacities_gbps.iter().map(|&gbps| Link::new("", Rate::from_gbps(gbps))).collect(),
        flows: flows.iter().map(flow).collect(),
    }
}

fn gbps(bps: &[f64]) -> Vec<f64> {
    bps.iter().map(|bps| bps / 1e9).collect()
}

/// Figure 7: A | B | C | D over links of 60, 30, 10 as A, B | B, C | C, D.
///
/// 1. All links advertise their capacity, so B demands 30 of link 1 and 60 of link 2, C 10 of link 2 and 30 of link 3.
///    Link 1: min(inf, f) + min(30, f) = 60, f = 30. Link 2: min(60, f) + min(10, f) = 30, f = 20. Link 3: f = 5.
/// 2. B demands 20 and 30, C 5 and 20: f = 40; 30 + 5 is more than 30, f = 25; f = 5. Link 1 carries 40 + 25 of 60.
/// 3. B demands 25 and 40: f = 35, 25, 5.
#[test]
fn the_chain_of_figure_7() {
    let chain = network(&[60, 30, 10], &[&[0], &[0, 1], &[1, 2], &[2]]);
    let iterations: Vec<_> = SyncPerc::new(&chain).unwrap().take(4).collect();
    let rates: Vec<_> = iterations.iter().map(|i| gbps(&i.rates_bps)).collect();
    let settled = vec![35.0, 25.0, 5.0, 5.0];
    assert_eq!(rates, [vec![30.0, 20.0, 5.0, 5.0], vec![40.0, 25.0, 5.0, 5.0], settled.clone(), settled]);
    let shares: Vec<_> = iterations.iter().map(|i| gbps(&i.shares_bps)).collect();
    assert_eq!(shares[..3], [vec![30.0, 20.0, 5.0], vec![40.0, 25.0, 5.0], vec![35.0, 25.0, 5.0]]);
    let over: Vec<_> = iterations.iter().map(|i| gbps(&overload(&chain, &i.rates_bps))).collect();
    assert_eq!(over[..3], [vec![-10.0, -5.0, 0.0], vec![5.0, 0.0, 0.0], vec![0.0, 0.0, 0.0]]);
    assert_eq!(SyncPerc::new(&chain).unwrap().settle(LIMIT).unwrap().iterations, 3);
}

/// Figure 3: A on link 1, B on both, and later C on link 2; B's bottleneck moves from link 1 to link 2 when C joins,
/// which any capacities with 2 C1 > C2 > C1 / 2 show. With 30 and 20:
///
/// - Before: A and B share link 1, 15 each; link 2 has demands of 15 and advertises 20.
/// - 1: B demands 15 of link 2, C infinity: f2 = 10 throttles B. Link 1 has heard nothing yet: A 15, B 10, C 10.
/// - 2: B demands 10 of link 1: f1 = 20.
#[test]
fn figure_3_takes_two_iterations() {
    let before = network(&[30, 20], &[&[0], &[0, 1]]);
    let settled = SyncPerc::new(&before).unwrap().settle(LIMIT).unwrap().last;
    assert_eq!(gbps(&settled.rates_bps), [15.0, 15.0]);
    assert_eq!(gbps(&settled.shares_bps), [15.0, 20.0]);

    let after = network(&[30, 20], &[&[0], &[0, 1], &[1]]);
    let mut perc = SyncPerc::new(&after).unwrap().from_shares(settled.shares_bps);
    let joined = perc.clone().settle(LIMIT).unwrap();
    assert_eq!(joined.iterations, 2);
    assert_eq!(gbps(&perc.next().unwrap().rates_bps), [15.0, 10.0, 10.0]);
    assert_eq!(gbps(&perc.next().unwrap().rates_bps), [20.0, 10.0, 10.0]);
    assert_eq!(joined.last.rates_bps, max_min(&after).unwrap().rates_bps);
}

/// Section 3.1: a link alone reaches C / N after one iteration; a link with room advertises its capacity.
#[test]
fn a_link_alone() {
    let one = network(&[40, 100], &[&[0], &[0], &[0], &[0]]);
    let settled = SyncPerc::new(&one).unwrap().settle(LIMIT).unwrap();
    assert_eq!((settled.iterations, gbps(&settled.last.shares_bps)), (1, vec![10.0, 100.0]));
    assert_eq!(gbps(&overload(&one, &settled.last.rates_bps)), [0.0, -100.0]);
}

/// A host that offers 10 of a link of 40 leaves 15 for each of the others, as by a link of its own.
#[test]
fn a_limited_flow_demands_no_more_than_it_has() {
    let mut limited = network(&[40], &[&[0], &[0], &[0]]);
    limited.flows[1].demand_bps = 10e9;
    let rates = |network: &Network| gbps(&SyncPerc::new(network).unwrap().settle(LIMIT).unwrap().last.rates_bps);
    assert_eq!(rates(&limited), [15.0, 10.0, 15.0]);
    assert_eq!(rates(&network(&[40, 10], &[&[0], &[0, 1], &[0]])), [15.0, 10.0, 15.0]);
}

/// The smallest network on which the printed rules never settle: two flows on the same two links.
#[test]
fn two_flows_on_two_equal_links_never_settle_as_printed() {
    let tie = network(&[10, 10], &[&[0, 1], &[0, 1]]);
    let mut printed = SyncPerc::new(&tie).unwrap();
    let rates: Vec<_> = printed.by_ref().take(4).map(|i| gbps(&i.rates_bps)).collect();
    assert_eq!(rates, [[5.0, 5.0], [10.0, 10.0], [5.0, 5.0], [10.0, 10.0]]);
    assert_eq!(printed.settle(LIMIT), None);
    let mut resolved = SyncPerc::new(&tie).unwrap().at_capacity(AtCapacity::LargestDemand);
    let settled = resolved.settle(LIMIT).unwrap();
    assert_eq!((settled.iterations, gbps(&settled.last.rates_bps)), (1, vec![5.0, 5.0]));
    // A single flow demands the share that the other link advertises, and settles either way.
    let alone = network(&[10, 10], &[&[0, 1]]);
    assert_eq!(gbps(&SyncPerc::new(&alone).unwrap().settle(LIMIT).unwrap().last.rates_bps), [10.0]);
}

#[test]
fn weights_are_an_error() {
    let mut weighted = network(&[10], &[&[0], &[0]]);
    weighted.flows[1].weight = 2.0;
    assert_eq!(SyncPerc::new(&weighted).unwrap_err(), NetworkError::Weighted { flow: 1, weight: 2.0 });
}

/// Draws networks with capacities of real links, which tie, or any.
fn networks(ties: bool) -> impl Strategy<Value = Network> {
    let capacity = if ties {
        proptest::sample::select(vec![10e9, 25e9, 40e9, 100e9]).boxed()
    } else {
        (9.0..11.0_f64).prop_map(|digits| 10.0_f64.powf(digits)).boxed()
    };
    proptest::collection::vec(capacity, 1..=12).prop_flat_map(|capacities| {
        let n = capacities.len() as u32;
        let path = proptest::collection::btree_set((0..n).prop_map(LinkId), 1..=4);
        // Every fifth flow has a demand.
        let demand = prop_oneof![4 => Just(f64::INFINITY), 1 => 0.1e9..50e9_f64];
        let flow = (path, demand).prop_map(|(links, bps)| Flow::new("", Vec::from_iter(links)).demand_bps(bps));
        let flows = proptest::collection::vec(flow, 0..40);
        flows.prop_map(move |flows| Network {
            links: capacities.iter().map(|&capacity_bps| Link { name: String::new(), capacity_bps }).collect(),
            flows,
        })
    })
}

/// Returns the number of different rates, which is the number of levels of bottlenecks.
fn n_levels(rates_bps: &[f64]) -> usize {
    let mut sorted = rates_bps.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup_by(|a, b| *a - *b <= EQUAL * *b);
    sorted.len()
}

fn assert_rates(network: &Network, rates_bps: &[f64]) {
    for (rate_bps, want) in rates_bps.iter().zip(max_min(network).unwrap().rates_bps) {
        assert!((rate_bps - want).abs() <= EQUAL * want, "{rate_bps} or {want} on {network:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    /// In at most two iterations for each level of bottlenecks after the first, which takes one: no proof is known to
    /// us.
    #[test]
    fn without_ties_the_printed_rules_settle_at_max_min_rates(network in networks(false)) {
        let settled = SyncPerc::new(&network).unwrap().settle(LIMIT).expect("it settles");
        assert_rates(&network, &settled.last.rates_bps);
        let levels = n_levels(&settled.last.rates_bps);
        prop_assert!(settled.iterations <= (2 * levels).saturating_sub(1), "{} for {levels}", settled.iterations);
        for (over, link) in overload(&network, &settled.last.rates_bps).iter().zip(&network.links) {
            prop_assert!(*over <= EQUAL * link.capacity_bps);
        }
    }

    #[test]
    fn with_ties_the_smallest_solution_settles_at_max_min_rates(network in networks(true)) {
        let perc = SyncPerc::new(&network).unwrap().at_capacity(AtCapacity::LargestDemand);
        assert_rates(&network, &perc.clone().settle(LIMIT).expect("it settles").last.rates_bps);
    }

    /// The result is the same from the shares that other flows left.
    #[test]
    fn the_first_shares_do_not_matter(
        network in networks(true),
        shares_gbps in proptest::collection::vec(0.1..100.0_f64, 12),
    ) {
        let shares_bps = shares_gbps[..network.links.len()].iter().map(|gbps| gbps * 1e9).collect();
        let perc = SyncPerc::new(&network).unwrap().at_capacity(AtCapacity::LargestDemand);
        assert_rates(&network, &perc.from_shares(shares_bps).settle(LIMIT).expect("it settles").last.rates_bps);
    }

    /// Where the printed rules settle, they settle at max-min rates.
    #[test]
    fn with_ties_the_printed_rules_settle_at_max_min_rates_or_never(network in networks(true)) {
        if let Some(settled) = SyncPerc::new(&network).unwrap().settle(LIMIT) {
            assert_rates(&network, &settled.last.rates_bps);
        }
    }
}
