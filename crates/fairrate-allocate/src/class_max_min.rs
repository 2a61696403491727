//! Max-min fairness by class and then inside: every link shares its capacity among classes, and each class its part
//! among flows.
//!
//! A link serves strict classes first, in their order, and lets the others share the rest by weights, as a scheduler of
//! the fluid kind (generalised processor sharing: A. Parekh, R. Gallager, IEEE/ACM ToN 1993) would. Inside a class the
//! flows of the link have weighted max-min rates. A flow has the least of what its links would give it if it asked for
//! everything, while all others have the rates they have.
//!
//! With one class these are the rates of [`MaxMin`](crate::MaxMin). With several, a link has no single water level, so
//! links are visited in turn until nothing changes: each computes what it gives to every flow from what the other links
//! give, as switches do in distributed max-min algorithms.

use crate::network::LinkId;

/// Largest number of classes.
pub const MAX_CLASSES: usize = 8;

/// Rounds after which [`ClassMaxMin::solve`] gives up.
const MAX_ROUNDS: usize = 10_000;

/// Change of a rate that counts as none, as a part of the rate or of the capacity of a link: what strict classes leave
/// of one is a difference of large numbers.
const SAME: f64 = 1e-13;

/// A solver for one set of links and classes, and changing flows.
///
/// ```
/// use fairrate_allocate::{ClassMaxMin, LinkId};
///
/// // Class 1 is strict; classes 3 and 4 have weights 3 and 1.
/// let mut weights = [None; 8];
/// (weights[3], weights[4]) = (Some(3.0), Some(1.0));
/// let mut solver = ClassMaxMin::new([50e9], weights);
/// solver.add([LinkId(0)], 1, 1.0, 10e9);
/// solver.add([LinkId(0)], 3, 1.0, f64::INFINITY);
/// solver.add([LinkId(0)], 3, 2.0, f64::INFINITY);
/// solver.add([LinkId(0)], 4, 1.0, f64::INFINITY);
/// assert_eq!(solver.solve(), Some(&[10e9, 10e9, 20e9, 10e9][..]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClassMaxMin {
    capacities_bps: Vec<f64>,
    weights: [Option<f64>; MAX_CLASSES],
    flows: Vec<Flow>,
    rates_bps: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Flow {
    class: usize,
    weight: f64,
    demand_bps: f64,
    /// Its links, each with the rate that the link would give it.
    hops: Vec<(u32, f64)>,
}

impl ClassMaxMin {
    /// Creates a solver for links of the given capacities in bit/s, without flows. `weights` has the weight of each
    /// class that has one; classes without are strict, the lowest number first.
    pub fn new(capacities_bps: impl IntoIterator<Item = f64>, weights: [Option<f64>; MAX_CLASSES]) -> Self {
        Self { capacities_bps: capacities_bps.into_iter().collect(), weights, ..Self::default() }
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        self.flows.clear();
    }

    /// Adds a flow of `class`, with `weight` inside it, over `links`, each of them once, with a rate of at most
    /// `demand_bps` (infinity: no limit). Flows are numbered in the order in which they are added.
    ///
    /// # Panics
    /// If there is no link or class of that number (in [`ClassMaxMin::solve`]).
    pub fn add(&mut self, links: impl IntoIterator<Item = LinkId>, class: u8, weight: f64, demand_bps: f64) {
        let hops = links.into_iter().map(|link| (link.0, f64::INFINITY)).collect();
        self.flows.push(Flow { class: usize::from(class), weight, demand_bps, hops });
    }

    /// Computes the rates of the flows in bit/s; `None` if they still change after 10,000 rounds.
    pub fn solve(&mut self) -> Option<&[f64]> {
        let mut users: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.capacities_bps.len()];
        for (i, flow) in self.flows.iter().enumerate() {
            for (hop, &(link, _)) in flow.hops.iter().enumerate() {
                users[link as usize].push((i, hop));
            }
        }
        self.rates_bps = self.flows.iter().map(|flow| flow.demand_bps).collect();
        let used: Vec<usize> = (0..users.len()).filter(|&link| !users[link].is_empty()).collect();
        for _ in 0..MAX_ROUNDS {
            let mut is_settled = true;
            for &link in &used {
                is_settled &= !self.visit(link, &users[link]);
            }
            if is_settled {
                return Some(&self.rates_bps);
            }
        }
        None
    }

    /// Returns the rates of the last solution in bit/s; those after the last round if they still changed.
    pub fn rates_bps(&self) -> &[f64] {
        &self.rates_bps
    }

    /// Computes what `link` gives to its `users`, each a flow and the place of the link among its hops; returns `true`
    /// if a rate has changed.
    fn visit(&mut self, link: usize, users: &[(usize, usize)]) -> bool {
        let mut classes: [Class; MAX_CLASSES] = std::array::from_fn(|_| Class::default());
        for (at, &(i, hop)) in users.iter().enumerate() {
            let flow = &self.flows[i];
            let others = flow.hops.iter().enumerate().filter(|&(other, _)| other != hop).map(|(_, &(_, rate))| rate);
            classes[flow.class].add(at, others.fold(flow.demand_bps, f64::min), flow.weight);
        }
        let budgets = self.budgets(link, &classes);
        let mut has_changed = false;
        for (class, budget) in classes.iter_mut().zip(budgets) {
            class.sort();
            for (at, given) in class.shares(budget) {
                let (i, hop) = users[at];
                let flow = &mut self.flows[i];
                flow.hops[hop].1 = given;
                let rate = flow.hops.iter().fold(flow.demand_bps, |least, &(_, rate)| least.min(rate));
                let before = std::mem::replace(&mut self.rates_bps[i], rate);
                let scale = before.max(rate).max(self.capacities_bps[link]);
                has_changed |= SAME * scale < (before - rate).abs() || before.is_finite() != rate.is_finite();
            }
        }
        has_changed
    }

    /// Returns what each class would get of a link if it asked for everything, in bit/s.
    fn budgets(&self, link: usize, classes: &[Class; MAX_CLASSES]) -> [f64; MAX_CLASSES] {
        let mut budgets = [0.0; MAX_CLASSES];
        let mut room = self.capacities_bps[link];
        for (class, of) in classes.iter().enumerate().filter(|&(class, _)| self.weights[class].is_none()) {
            budgets[class] = room;
            room = (room - of.demand).max(0.0);
        }
        let weighted =
            || self.weights.iter().zip(classes).enumerate().filter_map(|(c, (w, of))| Some((c, (*w)?, of.demand)));
        for (class, weight, _) in weighted() {
            let others = weighted().filter(|&(other, _, demand)| other != class && 0.0 < demand);
            let mut others: Vec<(f64, f64)> = others.map(|(_, weight, demand)| (demand, weight)).collect();
            others.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
            budgets[class] = weight * level(&others, weight, room);
        }
        budgets
    }
}

/// Returns the level up to which all shares of `room` rise together: those with a limit, given as pairs of limit and
/// weight in the order of limit / weight, and one of `weight` without.
fn level(limited: &[(f64, f64)], weight: f64, room: f64) -> f64 {
    let mut weights = weight + limited.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut room = room;
    for &(limit, of) in limited {
        if room / weights <= limit / of {
            break;
        }
        (room, weights) = (room - limit, weights - of);
    }
    room.max(0.0) / weights
}

/// The flows of a class at a link.
#[derive(Default)]
struct Class {
    /// For each flow its place, what the other links give it, and its weight.
    flows: Vec<(usize, f64, f64)>,
    /// The sum of what the other links give.
    demand: f64,
}

impl Class {
    fn add(&mut self, at: usize, limit: f64, weight: f64) {
        self.flows.push((at, limit, weight));
        self.demand += limit;
    }

    /// Sorts the flows by limit / weight.
    fn sort(&mut self) {
        self.flows.sort_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)).then(a.0.cmp(&b.0)));
    }

    /// Returns what each flow gets of `budget` if it asks for everything, with its place. The flows are sorted.
    fn shares(&self, budget: f64) -> Vec<(usize, f64)> {
        // Sums of limits of the first n flows, and of the weights of the others.
        let mut before = vec![(0.0, self.flows.iter().map(|flow| flow.2).sum::<f64>())];
        for &(_, limit, weight) in &self.flows {
            let &(limits, weights) = before.last().expect("there is a first");
            before.push((limits + limit, weights - weight));
        }
        let share = |(place, &(at, limit, weight)): (usize, &(usize, f64, f64))| {
            // Without its own limit the flow is one of the others, wherever it is in the order. The level lies behind
            // the last of the flows whose limits it exceeds.
            let level_behind = |n: usize| {
                let (limits, weights) = before[n];
                let (limits, weights) = if place < n { (limits - limit, weights + weight) } else { (limits, weights) };
                (budget - limits).max(0.0) / weights
            };
            let exceeds = |n: usize| self.flows[n].1 / self.flows[n].2 < level_behind(n);
            let (mut from, mut to) = (0, self.flows.len());
            while from < to {
                let middle = from + (to - from) / 2;
                if exceeds(middle) {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            (at, weight * level_behind(from))
        };
        self.flows.iter().enumerate().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MaxMin;

    const STRICT: [Option<f64>; MAX_CLASSES] = [None; MAX_CLASSES];

    fn weights(of: &[(usize, f64)]) -> [Option<f64>; MAX_CLASSES] {
        let mut weights = STRICT;
        for &(class, weight) in of {
            weights[class] = Some(weight);
        }
        weights
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs()))
    }

    /// Class 3 is limited elsewhere, so class 4 gets what it leaves: with 3 : 1 of 40 it could have 30, and has 12.
    #[test]
    fn what_a_class_leaves_goes_to_the_others() {
        let mut solver = ClassMaxMin::new([40.0, 12.0], weights(&[(3, 3.0), (4, 1.0)]));
        solver.add([LinkId(0), LinkId(1)], 3, 1.0, f64::INFINITY);
        solver.add([LinkId(0)], 4, 1.0, f64::INFINITY);
        solver.add([LinkId(0)], 4, 3.0, f64::INFINITY);
        assert!(close(solver.solve().expect("it settles"), &[12.0, 7.0, 21.0]));
    }

    /// Strict classes leave nothing, or the rest, to those after them.
    #[test]
    fn strict_classes_go_first() {
        let mut solver = ClassMaxMin::new([10.0], weights(&[(5, 1.0), (6, 1.0)]));
        for (class, demand) in [(1, 2.0), (2, 3.0), (5, f64::INFINITY), (6, 1.0)] {
            solver.add([LinkId(0)], class, 1.0, demand);
        }
        assert!(close(solver.solve().expect("it settles"), &[2.0, 3.0, 4.0, 1.0]));
        let mut solver = ClassMaxMin::new([10.0], STRICT);
        solver.add([LinkId(0)], 2, 1.0, f64::INFINITY);
        solver.add([LinkId(0)], 1, 1.0, f64::INFINITY);
        assert!(close(solver.solve().expect("it settles"), &[0.0, 10.0]));
    }

    /// Two links in a row, each with a flow of its own in the other class: the long flow gets half of the smaller link.
    #[test]
    fn a_flow_has_the_least_of_its_links() {
        let mut solver = ClassMaxMin::new([10.0, 6.0], weights(&[(3, 1.0), (4, 1.0)]));
        solver.add([LinkId(0), LinkId(1)], 3, 1.0, f64::INFINITY);
        solver.add([LinkId(0)], 4, 1.0, f64::INFINITY);
        solver.add([LinkId(1)], 4, 1.0, f64::INFINITY);
        assert!(close(solver.solve().expect("it settles"), &[3.0, 7.0, 3.0]));
    }

    /// Links, class, weight and demand of a flow.
    type Wish = (Vec<u32>, u8, f64, f64);

    /// A random network: capacities and flows.
    fn network() -> impl Strategy<Value = (Vec<f64>, Vec<Wish>)> {
        let flow = (
            proptest::collection::btree_set(0u32..6, 1..4),
            2u8..6,
            0.5f64..4.0,
            prop_oneof![Just(f64::INFINITY), 1.0f64..60.0],
        );
        let flow = flow.prop_map(|(links, class, weight, demand)| (links.into_iter().collect(), class, weight, demand));
        (proptest::collection::vec(10.0f64..100.0, 6), proptest::collection::vec(flow, 1..14))
    }

    proptest! {
        /// With all flows in one class the rates are those of water-filling.
        #[test]
        fn one_class_has_the_rates_of_max_min((capacities, flows) in network(), is_weighted in any::<bool>()) {
            let mut plain = MaxMin::new(capacities.iter().copied());
            let classes = if is_weighted { weights(&[(3, 2.0)]) } else { STRICT };
            let mut by_class = ClassMaxMin::new(capacities, classes);
            for (links, _, weight, demand) in flows {
                plain.add(links.iter().copied().map(LinkId), weight, demand);
                by_class.add(links.into_iter().map(LinkId), 3, weight, demand);
            }
            let rates = by_class.solve().expect("it settles");
            prop_assert!(close(rates, plain.solve()), "{:?} {:?}", rates, plain.solve());
        }

        /// No link has more than its capacity; every flow has its demand, or a full link on which its class has all
        /// that its weight gives it, and it as much of that as any other flow.
        #[test]
        fn every_flow_has_a_bottleneck((capacities, flows) in network()) {
            let of_class = weights(&[(3, 1.0), (4, 2.5), (5, 7.0)]);
            let mut solver = ClassMaxMin::new(capacities.clone(), of_class);
            for (links, class, weight, demand) in &flows {
                solver.add(links.iter().copied().map(LinkId), *class, *weight, *demand);
            }
            let rates = solver.solve().expect("it settles").to_vec();
            let on = |link: u32| flows.iter().zip(&rates).filter(move |(flow, _)| flow.0.contains(&link));
            let total = |link: u32, class: u8| on(link).filter(|(flow, _)| flow.1 == class).map(|(_, rate)| rate).sum::<f64>();
            for (link, capacity) in (0u32..).zip(&capacities) {
                let used: f64 = on(link).map(|(_, rate)| rate).sum();
                prop_assert!(used <= capacity * (1.0 + 1e-9), "link {link} of {capacity} carries {used}");
            }
            for ((links, class, weight, demand), rate) in flows.iter().zip(&rates) {
                let is_bottleneck = |&link: &u32| {
                    let used: f64 = on(link).map(|(_, rate)| rate).sum();
                    let slack = 1e-6 * capacities[link as usize];
                    let is_full = capacities[link as usize] - slack <= used;
                    let first = on(link)
                        .filter(|(flow, _)| flow.1 == *class)
                        .all(|(flow, other)| other / flow.2 <= rate / weight + slack);
                    let others = (2u8..6).filter(|other| other != class && 0.0 < total(link, *other));
                    let has_share = others.into_iter().all(|other| match (of_class[usize::from(*class)], of_class[usize::from(other)]) {
                        // Strict classes go before those with weights, whatever these have.
                        (None, _) | (Some(_), None) => true,
                        (Some(own), Some(theirs)) => total(link, other) / theirs <= total(link, *class) / own + slack,
                    });
                    is_full && first && has_share || of_class[usize::from(*class)].is_none() && first && {
                        capacities[link as usize] - slack <= total(link, *class)
                    }
                };
                let is_limited = demand - rate <= 1e-6 * demand.min(1e9) || links.iter().any(is_bottleneck);
                prop_assert!(is_limited, "class {class} {links:?} has {rate} of {demand}: {rates:?}");
            }
        }
    }
}
