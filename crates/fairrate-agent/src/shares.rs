//! Who may have how many of a limited number of places.

use std::collections::{BTreeSet, HashMap};

/// Somebody who has places: a control group near the root, or a user.
pub type Owner = u64;

/// Places and who has them. Whoever has few gets one as long as somebody has more: so nobody can take all.
#[derive(Debug)]
pub struct Shares {
    room: usize,
    n_taken: usize,
    of: HashMap<Owner, BTreeSet<u32>>,
    /// Owners by how many places they have.
    ranks: BTreeSet<(usize, Owner)>,
}

/// The answer to whoever wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// There is room.
    Free,
    /// This flow of somebody who has more gives way.
    Instead(u32),
    /// Nobody has so much more that one has to give way.
    Refused,
}

impl Shares {
    /// `room` places, which nobody has.
    pub fn new(room: usize) -> Self {
        Self { room, n_taken: 0, of: HashMap::new(), ranks: BTreeSet::new() }
    }

    /// Asks for a place for a flow of `owner`.
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

    /// Gives the place of `flow` back.
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
        // A third one gets a place of one of them, and then there is nobody with two more than somebody.
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
