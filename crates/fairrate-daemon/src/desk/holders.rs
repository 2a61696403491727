//! Identities, and the use that each makes of its quotas: agents and flows.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use super::kinds::Identity;

/// An identity that has agents.
#[derive(Debug)]
pub(super) struct Holder {
    pub identity: Identity,
    /// Positions of its agents.
    pub agents: Vec<usize>,
    /// Number of flows of all its agents.
    pub n_flows: usize,
}

/// The identities that have agents, by a number that stays the same as long as they have agents.
#[derive(Debug, Default)]
pub(super) struct Holders {
    places: HashMap<Identity, usize>,
    all: Vec<Option<Holder>>,
    free: Vec<usize>,
}

impl Holders {
    /// Returns the number of `identity`, which gets a number if it has none.
    pub fn place(&mut self, identity: &Identity) -> usize {
        if let Some(&place) = self.places.get(identity) {
            return place;
        }
        let holder = Holder { identity: identity.clone(), agents: Vec::new(), n_flows: 0 };
        let place = self.free.pop().unwrap_or(self.all.len());
        match self.all.get_mut(place) {
            Some(free) => *free = Some(holder),
            None => self.all.push(Some(holder)),
        }
        self.places.insert(identity.clone(), place);
        place
    }

    /// Removes an identity that has no agents any more.
    pub fn forget_if_empty(&mut self, place: usize) {
        if let Some(holder) = self.all[place].take_if(|holder| holder.agents.is_empty()) {
            self.places.remove(&holder.identity);
            self.free.push(place);
        }
    }
}

impl Index<usize> for Holders {
    type Output = Holder;

    fn index(&self, place: usize) -> &Holder {
        self.all[place].as_ref().expect("an agent's identity is there as long as the agent")
    }
}

impl IndexMut<usize> for Holders {
    fn index_mut(&mut self, place: usize) -> &mut Holder {
        self.all[place].as_mut().expect("an agent's identity is there as long as the agent")
    }
}
