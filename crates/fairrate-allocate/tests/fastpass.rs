//! Fastpass's arbiter: matchings, their paths, and the order of pairs.

use std::collections::BTreeMap;

use fairrate_allocate::fastpass::{Fastpass, FastpassConfig, FastpassError, Order};
use proptest::prelude::*;

fn config(hosts: u16, order: Order, batch: u32) -> FastpassConfig {
    FastpassConfig { hosts, hosts_per_rack: 4, spines: 2, packets_per_link: 2, order, batch }
}

fn arbiter(hosts: u16, order: Order, batch: u32) -> Fastpass {
    Fastpass::new(config(hosts, order, batch)).unwrap()
}

/// Returns the pairs of each timeslot of the last batch.
fn slots(arbiter: &Fastpass, batch: u32) -> Vec<Vec<(u16, u16)>> {
    (0..batch).map(|slot| arbiter.grants(slot).map(|grant| (grant.src, grant.dst)).collect()).collect()
}

/// Three sources for one destination take turns, however much each requests.
#[test]
fn an_incast_takes_turns() {
    let mut arbiter = arbiter(4, Order::LeastRecent, 6);
    for (src, timeslots) in [(0, 3), (1, 1), (2, 9)] {
        arbiter.request(src, 3, timeslots);
    }
    assert_eq!(arbiter.allocate(), 6);
    assert_eq!(slots(&arbiter, 6), [0, 1, 2, 0, 2, 0].map(|src| vec![(src, 3)]));
    assert_eq!((arbiter.n_waiting(), arbiter.n_slots()), (1, 6));
    // Source 1 was allocated longer ago than source 2.
    arbiter.request(1, 3, 2);
    assert_eq!(arbiter.allocate(), 6);
    assert_eq!(slots(&arbiter, 6), [1, 2, 1, 2, 2, 2].map(|src| vec![(src, 3)]));
}

/// The same with the shortest first. Two timeslots of source 0 are requested later and are its last then, before 2 of
/// source 2's 9.
#[test]
fn the_shortest_comes_first() {
    let mut arbiter = arbiter(4, Order::ShortestRemaining, 6);
    for (src, timeslots) in [(0, 3), (1, 1), (2, 9)] {
        arbiter.request(src, 3, timeslots);
    }
    arbiter.allocate();
    assert_eq!(slots(&arbiter, 6), [1, 0, 0, 0, 2, 2].map(|src| vec![(src, 3)]));
    arbiter.request(0, 3, 1);
    arbiter.request(2, 3, 1);
    assert_eq!(arbiter.allocate(), 6);
    assert_eq!(slots(&arbiter, 6), [0, 2, 2, 2, 2, 2].map(|src| vec![(src, 3)]));
}

/// A batch fills a timeslot around the pairs that have one: 0 to 2 has the first, so 1 to 2 takes the second and 1 to 3
/// the first.
#[test]
fn the_earliest_timeslot_that_both_have_free() {
    let mut arbiter = arbiter(4, Order::LeastRecent, 3);
    for (src, dst) in [(0, 2), (1, 2), (1, 3)] {
        arbiter.request(src, dst, 1);
    }
    arbiter.allocate();
    assert_eq!(slots(&arbiter, 3), [vec![(0, 2), (1, 3)], vec![(1, 2)], vec![]]);
    assert_eq!(arbiter.n_waiting(), 0);
    arbiter.request(0, 1, 0);
    assert_eq!((arbiter.allocate(), arbiter.n_waiting()), (0, 0));
}

/// Within a rack there is no spine; four packets from one rack to another take both spines twice.
#[test]
fn spines() {
    let mut arbiter = arbiter(8, Order::LeastRecent, 1);
    for host in 0..4 {
        arbiter.request(host, 4 + host, 1);
    }
    arbiter.request(5, 6, 1);
    arbiter.request(4, 0, 1);
    arbiter.allocate();
    let mut taken: Vec<_> = arbiter.grants(0).map(|grant| (grant.src / 4, grant.spine)).collect();
    taken.sort_unstable();
    assert_eq!(taken, [(0, Some(0)), (0, Some(0)), (0, Some(1)), (0, Some(1)), (1, Some(0))]);
    let mut arbiter = Fastpass::new(config(8, Order::LeastRecent, 1)).unwrap();
    arbiter.request(5, 6, 1);
    arbiter.allocate();
    assert_eq!(arbiter.grants(0).map(|grant| grant.spine).collect::<Vec<_>>(), [None]);
}

#[test]
fn what_cannot_be_arbitrated() {
    let good = config(8, Order::LeastRecent, 8);
    let error = |config| Fastpass::new(config).unwrap_err();
    let message = |config| error(config).to_string();
    assert_eq!(error(FastpassConfig { hosts: 1, ..good }), FastpassError::Hosts { hosts: 1 });
    assert_eq!(message(FastpassConfig { hosts: 7_000, ..good }), "7000 hosts; there must be 2 to 6144");
    assert_eq!(message(FastpassConfig { batch: 65, ..good }), "a batch of 65 timeslots; it must have 1 to 64");
    assert_eq!(
        message(FastpassConfig { spines: 1, ..good }),
        "racks of 4 hosts whose links carry 2 packets in a timeslot"
    );
    assert!(Fastpass::new(FastpassConfig { hosts_per_rack: 0, ..good }).is_err());
    assert!(Fastpass::new(FastpassConfig { packets_per_link: 0, ..good }).is_err());
}

/// The procedure slot by slot, as in the paper: a list of pairs by age.
#[derive(Default)]
struct SlotBySlot {
    /// (last timeslot, source, destination), oldest first.
    waiting: Vec<(u64, u16, u16)>,
    demand: BTreeMap<(u16, u16), u32>,
    last: BTreeMap<(u16, u16), u64>,
    now: u64,
}

impl SlotBySlot {
    /// Adds the demand at the beginning of a batch, at its age, after waiting pairs of the same age.
    fn request_all(&mut self, requests: &[(u16, u16, u32)]) {
        let mut fresh = Vec::new();
        for &(src, dst, timeslots) in requests {
            let demand = self.demand.entry((src, dst)).or_default();
            if *demand == 0 {
                fresh.push((self.last.get(&(src, dst)).copied().unwrap_or(0), src, dst));
            }
            *demand += timeslots;
        }
        fresh.sort_unstable();
        for pair in fresh {
            let at = self.waiting.iter().rposition(|old| old.0 <= pair.0).map_or(0, |i| i + 1);
            self.waiting.insert(at, pair);
        }
    }

    fn slot(&mut self) -> Vec<(u16, u16)> {
        self.now += 1;
        let (mut granted, mut left) = (Vec::new(), Vec::new());
        for &(last, src, dst) in &self.waiting {
            if granted.iter().any(|&(s, d)| s == src || d == dst) {
                left.push((last, src, dst));
            } else {
                granted.push((src, dst));
            }
        }
        for &(src, dst) in &granted {
            let demand = self.demand.get_mut(&(src, dst)).unwrap();
            *demand -= 1;
            if *demand != 0 {
                left.push((self.now, src, dst));
            }
            self.last.insert((src, dst), self.now);
        }
        self.waiting = left;
        granted
    }
}

/// Sources, destinations and timeslots requested before a batch.
type Requests = Vec<(u16, u16, u32)>;

/// Returns hosts, requests before each of some batches, and the batch.
fn traffic() -> impl Strategy<Value = (u16, Vec<Requests>, u32)> {
    (2_u16..14, 1_u32..=64).prop_flat_map(|(hosts, batch)| {
        let request = (0..hosts, 1..hosts, 1_u32..40).prop_map(move |(src, by, n)| (src, (src + by) % hosts, n));
        (Just(hosts), prop::collection::vec(prop::collection::vec(request, 0..20), 1..5), Just(batch))
    })
}

/// Keys of [`SlotBySlot`]'s waiting list never fall, so its insertion is well defined; the arbiter allocates the same.
fn same_as_slot_by_slot(hosts: u16, batches: &[Requests], batch: u32) -> Result<(), TestCaseError> {
    let (mut arbiter, mut model) = (arbiter(hosts, Order::LeastRecent, batch), SlotBySlot::default());
    for requests in batches {
        for &(src, dst, n) in requests {
            arbiter.request(src, dst, n);
        }
        model.request_all(requests);
        let granted = arbiter.allocate();
        let mut expected = 0;
        for (slot, ours) in slots(&arbiter, batch).into_iter().enumerate() {
            let (mut ours, mut theirs) = (ours, model.slot());
            expected += theirs.len();
            ours.sort_unstable();
            theirs.sort_unstable();
            prop_assert_eq!(ours, theirs, "timeslot {}", slot);
        }
        prop_assert_eq!(granted, expected);
        prop_assert_eq!(arbiter.n_waiting(), model.waiting.len());
    }
    Ok(())
}

/// Allocates until all is served. Each timeslot must be a maximal matching, with paths within the links' capacities.
fn serves_all(config: FastpassConfig, batches: &[Requests]) -> Result<(), TestCaseError> {
    let mut arbiter = Fastpass::new(config).unwrap();
    let mut left: BTreeMap<(u16, u16), u32> = BTreeMap::new();
    let (mut asked, mut served) = (0_u64, 0_u64);
    let mut requests = batches.iter();
    loop {
        let now = requests.next();
        for &(src, dst, n) in now.into_iter().flatten() {
            arbiter.request(src, dst, n);
            *left.entry((src, dst)).or_default() += n;
            asked += u64::from(n);
        }
        served += arbiter.allocate() as u64;
        for slot in 0..config.batch {
            let (mut senders, mut receivers) = (vec![0; 64], vec![0; 64]);
            let mut loads: BTreeMap<(bool, u16, u16), u16> = BTreeMap::new();
            for grant in arbiter.grants(slot) {
                senders[usize::from(grant.src)] += 1;
                receivers[usize::from(grant.dst)] += 1;
                *left.get_mut(&(grant.src, grant.dst)).unwrap() -= 1;
                let racks = [grant.src, grant.dst].map(|host| host / config.hosts_per_rack);
                prop_assert_eq!(grant.spine.is_none(), racks[0] == racks[1]);
                for (up, rack) in [(true, racks[0]), (false, racks[1])] {
                    let Some(spine) = grant.spine else { continue };
                    prop_assert!(spine < config.spines);
                    *loads.entry((up, rack, spine)).or_default() += 1;
                }
            }
            prop_assert!(senders.iter().chain(&receivers).all(|&n| n <= 1));
            prop_assert!(loads.values().all(|&load| load <= config.packets_per_link), "{:?}", loads);
            let idle = |&(src, dst): &(u16, u16)| senders[usize::from(src)] + receivers[usize::from(dst)] == 0;
            prop_assert!(!left.iter().any(|(pair, &n)| n != 0 && idle(pair)), "timeslot {} is not maximal", slot);
        }
        if now.is_none() && arbiter.n_waiting() == 0 {
            prop_assert_eq!(asked, served);
            return Ok(());
        }
    }
}

proptest! {
    #[test]
    fn a_batch_is_the_procedure_slot_by_slot((hosts, batches, batch) in traffic()) {
        same_as_slot_by_slot(hosts, &batches, batch)?;
    }

    #[test]
    fn matchings_are_maximal_and_paths_fit(
        (hosts, batches, batch) in traffic(),
        order in prop::sample::select(vec![Order::LeastRecent, Order::ShortestRemaining]),
        (spines, hosts_per_rack) in (1_u16..=7, 1_u16..=6),
    ) {
        let packets_per_link = hosts_per_rack.div_ceil(spines);
        serves_all(FastpassConfig { hosts, hosts_per_rack, spines, packets_per_link, order, batch }, &batches)?;
    }

    /// Many hosts in few racks, all sending: every rack has as many packets as its links carry.
    #[test]
    fn full_racks_have_paths(
        (spines, packets_per_link, racks) in (1_u16..=12, 1_u16..=4, 2_u16..=8),
        shifts in prop::collection::vec(1_u16..1_000, 1..4),
    ) {
        let hosts_per_rack = spines * packets_per_link;
        let hosts = hosts_per_rack * racks;
        prop_assume!(hosts <= 64);
        let config =
            FastpassConfig { hosts, hosts_per_rack, spines, packets_per_link, order: Order::LeastRecent, batch: 3 };
        // Multiples of a number prime to the number of hosts are a permutation that does not keep racks together.
        let step = (3..1_000).find(|step| gcd(*step, hosts) == 1).unwrap();
        let requests: Vec<_> = shifts
            .iter()
            .flat_map(|&shift| (0..hosts).map(move |src| (src, (src * step + shift) % hosts, 1)))
            .filter(|(src, dst, _)| src != dst)
            .collect();
        serves_all(config, &[requests])?;
    }

    /// A pair that always wants more waits at most as many timeslots as others share its source or its destination: a
    /// pair that goes first is behind it from then on. Pairs that all share one host therefore differ by a timeslot.
    #[test]
    fn nobody_waits_longer_than_others_before_it(
        hosts in 3_u16..12,
        pairs in prop::collection::btree_set((0_u16..12, 1_u16..12), 1..40),
        batch in 1_u32..=64,
    ) {
        let pairs: std::collections::BTreeSet<(u16, u16)> = pairs
            .into_iter()
            .map(|(src, by)| (src % hosts, (src % hosts + 1 + by % (hosts - 1)) % hosts))
            .filter(|(src, dst)| src != dst)
            .collect();
        let mut arbiter = arbiter(hosts, Order::LeastRecent, batch);
        for &(src, dst) in &pairs {
            arbiter.request(src, dst, u32::MAX);
        }
        let mut last: BTreeMap<(u16, u16), u64> = pairs.iter().map(|&pair| (pair, 0)).collect();
        for start in (0..).map(|i| i * u64::from(batch)).take_while(|&start| start < 200) {
            arbiter.allocate();
            for (now, pairs) in (start + 1..).zip(slots(&arbiter, batch)) {
                for pair in pairs {
                    last.insert(pair, now);
                }
                for (&(src, dst), &since) in &last {
                    let rivals = last.keys().filter(|&&(s, d)| (s == src) != (d == dst)).count() as u64;
                    prop_assert!(now - since <= rivals, "{} to {}", src, dst);
                }
            }
        }
    }

    #[test]
    fn pairs_of_one_host_differ_by_a_timeslot(n in 1_u16..12, out: bool, batches in 1_u32..8, batch in 1_u32..=64) {
        let mut arbiter = arbiter(n + 1, Order::LeastRecent, batch);
        for other in 1..=n {
            let (src, dst) = if out { (0, other) } else { (other, 0) };
            arbiter.request(src, dst, u32::MAX);
        }
        let mut counts = vec![0_u32; usize::from(n) + 1];
        for _ in 0..batches {
            arbiter.allocate();
            slots(&arbiter, batch).into_iter().flatten().for_each(|(src, dst)| counts[usize::from(src + dst)] += 1);
        }
        let (low, high) = (counts[1..].iter().min(), counts[1..].iter().max());
        prop_assert!(high.unwrap() - low.unwrap() <= 1, "{:?}", counts);
    }
}

fn gcd(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { gcd(b, a % b) }
}
