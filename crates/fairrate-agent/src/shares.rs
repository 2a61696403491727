//! Sharing of a limited number of places among owners.

use std::collections::{BTreeSet, HashMap};

/// The owner of places: a control group near the root, or a user.
pub type Owner = u64;

/// The places and their owners. An owner with few places gets one as long as another has more, so that no owner can
/// take all.
#[derive(Debug)]
pub struct Shares {
    room: usize,
    n_taken: usize,
    of: HashMap<Owner, BTreeSet<u32>>,
    /// Owners ordered by their number of places.
    ranks: BTreeSet<(usize, Owner)>,
}

/// The answer to a request for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// There is a free place.
    Free,
    /// The request gets the place of this flow, whose owner has more places.
    Instead(u32),
    /// No other owner has enough more places to have to give one up.
    Refused,
}

impl Shares {
    /// Creates `room` places, all of them free.
    pub fn new(room: usize) -> Self {
        Self { room, n_taken: 0, of: HashMap::new(), ranks: BTreeSet::new() }
    }

    /// Returns the admission of a further flow of `owner`.
    pub fn ask(&self, owner: Owner) -> Admission {
        if self.n_taken < self.room {
            return Admission::Free;
        }
        let own = self.of.get(&owner).map_or(0, BTreeSet::len);
        let most = self.ranks.last().filter(|(most, _)| own + 1 < *most);
        let last = most.and_then(|(_, of)| self.of.get(of)?.last());
        last.map_or(Admission::Refused, |flow| Admission::Instead(*flow))
    }

    /// Takes a place for `flow`.
    pub fn take(&mut self, owner: Owner, flow: u32) {
        self.change(owner, |flows| flows.insert(flow));
    }

    /// Releases the place of `flow`.
    pub fn give_back(&mut self, owner: Owner, flow: u32) {
        self.change(owner, |flows| flows.remove(&flow));
    }

    fn change(&mut self, owner: Owner, change: impl FnOnce(&mut BTreeSet<u32>) -> bool) {
        let flows = self.of.entry(owner).or_default();
        let before = flows.len();
        change(flows);
        let after = flows.len();
        self.n_taken = self.n_taken + after - before;
        self.ranks.remove(&(before, owner));
        if after == 0 {
            self.of.remove(&owner);
        } else {
            self.ranks.insert((after, owner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_gives_way_until_shares_are_equal() {
        let mut shares = Shares::new(4);
        for flow in 0..4 {
            assert_eq!(shares.ask(1), Admission::Free);
            shares.take(1, flow);
        }
        assert_eq!(shares.ask(1), Admission::Refused);
        for (flow, gives_way) in [(10, 3), (11, 2)] {
            assert_eq!(shares.ask(2), Admission::Instead(gives_way));
            shares.give_back(1, gives_way);
            shares.take(2, flow);
        }
        assert_eq!([1, 2].map(|owner| shares.ask(owner)), [Admission::Refused; 2]);
        // A third owner gets a place of one of them; after that no owner has two more places than another.
        assert_eq!(shares.ask(3), Admission::Instead(11));
        shares.give_back(2, 11);
        shares.take(3, 20);
        assert_eq!([1, 2, 3].map(|owner| shares.ask(owner)), [Admission::Refused; 3]);
        for (owner, flow) in [(1, 0), (1, 1), (2, 10), (3, 20)] {
            shares.give_back(owner, flow);
        }
        assert_eq!((shares.n_taken, shares.of.len(), shares.ranks.len()), (0, 0, 0));
    }
}
