//! The share of a part in a network: the links that touch its nodes, and tables of its own flows and hosts.
//!
//! Each part numbers its own links, flows and hosts densely; other parts need not know these local indices ("places").
//! Data that is visible outside (results, the fingerprint, mail, random streams) uses the numbers in the network.
//! Places are in the order of these numbers, so that ties between a part's own events have the same order with either.

use std::ops::{Index, IndexMut};

use crate::ids::{NodeId, Number, PortId, PortIdx};
use crate::table::Table;
use crate::topology::Topology;

/// The links that touch the nodes of a part, in the network's order: link `i` has the part's ports `2 i` and `2 i + 1`.
/// One of the two may belong to a node of another part, from which packets come in.
#[derive(Clone, Default)]
pub(crate) struct Links {
    /// Number in the network, by place; empty: all links have their own numbers.
    numbers: Vec<u32>,
}

impl Links {
    /// Returns the links of part `number`, where `part_of` has the part of each node.
    pub(super) fn of_part(topology: &Topology, part_of: &Table<NodeId, u16>, number: u16) -> Self {
        let touches = |link: &crate::topology::Link| [link.a, link.b].iter().any(|&n| part_of[n] == number);
        let mut numbers: Vec<u32> =
            (0..).zip(&topology.links).filter(|(_, link)| touches(link)).map(|(i, _)| i).collect();
        numbers.shrink_to_fit();
        Self { numbers }
    }

    /// Returns `true` if these are all links of the network.
    #[inline]
    pub(super) fn are_all(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns a port's number in the network.
    #[inline]
    pub(crate) fn id_of(&self, port: PortIdx) -> PortId {
        PortId(self.numbers.get(port.index() / 2).map_or(port.0, |link| 2 * link + port.0 % 2))
    }

    /// Returns a port's place in the part, if its link touches the part.
    pub(crate) fn place_of(&self, id: PortId) -> Option<PortIdx> {
        if self.numbers.is_empty() {
            return Some(PortIdx(id.0));
        }
        let place = self.numbers.binary_search(&(id.0 / 2)).ok()?;
        Some(PortIdx(2 * place as u32 + id.0 % 2))
    }

    /// Returns the numbers of the part's ports, in a network with `n_ports` ports.
    pub(super) fn port_ids(&self, n_ports: usize) -> impl Iterator<Item = PortId> + '_ {
        let n = if self.numbers.is_empty() { n_ports } else { 2 * self.numbers.len() };
        (0..n as u32).map(|port| self.id_of(PortIdx(port)))
    }
}

/// A table of a part's own flows or hosts, indexed by their numbers in the network.
pub(crate) struct Own<I, T> {
    /// Place by number; empty: all are the part's own.
    places: Table<I, u32>,
    values: Vec<T>,
}

impl<I: Number, T> Own<I, T> {
    /// Creates a table of all `n` numbers, with `value` of each.
    pub(super) fn all(n: usize, value: impl FnMut(I) -> T) -> Self {
        Self { places: Table::default(), values: (0..n).map(I::from_index).map(value).collect() }
    }

    /// Creates a table of those of `n` numbers for which `is_own` is true, with `value` of each.
    pub(super) fn some(n: usize, is_own: impl Fn(I) -> bool, value: impl FnMut(I) -> T) -> Self {
        let mut n_own = 0;
        let place = |number| {
            let own = is_own(number);
            n_own += u32::from(own);
            if own { n_own - 1 } else { u32::MAX }
        };
        let numbers = || (0..n).map(I::from_index);
        let places = numbers().map(place).collect();
        let mut values = Vec::with_capacity(n_own as usize);
        values.extend(numbers().filter(|&number| is_own(number)).map(value));
        Self { places, values }
    }

    /// Creates a table with the same numbers and default values.
    pub(crate) fn alike<U: Default>(&self) -> Own<I, U> {
        Own { places: self.places.clone(), values: self.values.iter().map(|_| U::default()).collect() }
    }

    /// Creates a table with the same numbers and `value` of each.
    pub(crate) fn with<U>(&self, value: impl FnMut(I) -> U) -> Own<I, U> {
        Own { places: self.places.clone(), values: self.iter().map(|(number, _)| number).map(value).collect() }
    }

    #[inline]
    fn place(&self, number: I) -> usize {
        self.places.get(number).map_or(number.index(), |&place| place as usize)
    }

    /// Returns `true` if `number` is the part's own.
    #[inline]
    pub(crate) fn has(&self, number: I) -> bool {
        self.place(number) < self.values.len()
    }

    /// Returns all values with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let n = if self.places.is_empty() { self.values.len() } else { self.places.len() };
        (0..n).map(I::from_index).filter_map(|number| Some((number, self.values.get(self.place(number))?)))
    }
}

impl<I: Number, T> Index<I> for Own<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, number: I) -> &T {
        &self.values[self.place(number)]
    }
}

impl<I: Number, T> IndexMut<I> for Own<I, T> {
    #[inline]
    fn index_mut(&mut self, number: I) -> &mut T {
        let place = self.place(number);
        &mut self.values[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::HostId;

    #[test]
    fn a_part_has_its_own_and_knows_their_numbers() {
        let links = Links { numbers: vec![2, 3, 7] };
        assert_eq!([0, 3, 4].map(|port| links.id_of(PortIdx(port))), [PortId(4), PortId(7), PortId(14)]);
        assert_eq!((links.place_of(PortId(15)), links.place_of(PortId(8))), (Some(PortIdx(5)), None));
        let all = Links::default();
        assert_eq!((all.id_of(PortIdx(9)), all.place_of(PortId(9))), (PortId(9), Some(PortIdx(9))));
        let own = Own::some(5, |n: HostId| n.0 % 2 == 1, |n| 10 * n.0);
        assert_eq!(own.iter().map(|(n, &v)| (n.0, v)).collect::<Vec<_>>(), [(1, 10), (3, 30)]);
        assert!(own.has(HostId(3)) && !own.has(HostId(2)) && own[HostId(3)] == 30);
        let all = Own::all(2, |n: HostId| n.0);
        assert_eq!(all.iter().map(|(n, &v)| (n.0, v)).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
        assert!(all.has(HostId(1)) && !all.has(HostId(2)));
    }
}
