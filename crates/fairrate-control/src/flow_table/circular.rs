//! A circular flow table that is updated lazily and read round robin: that of RoCC's section IV-C, for hardware.
//!
//! The paper has one sentence: the table "performs table updates in a lazy fashion. The flow table uses a circular
//! array to store the flow identifiers, and round robin for retrieving them". Readings: a new flow is written over the
//! oldest entry; an entry counts the readings since its last packet, and is dropped by the reader, not by a clock.
//! `hardware/rtl/flow_table.sv` is the same table in registers.

use super::ByFlow;

/// An entry of the circle.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The flow; `None` if the entry is empty.
    flow: Option<u32>,
    /// Number of readings since the flow's last packet.
    readings: u32,
}

/// The table.
#[derive(Clone, Debug)]
pub struct CircularTable {
    entries: Vec<Entry>,
    /// The entry of each flow.
    places: ByFlow<usize>,
    most_readings: u32,
    /// The entry that the next new flow takes.
    head: usize,
    /// The entry that is read next.
    cursor: usize,
}

impl CircularTable {
    /// Returns an empty table of `size` entries, which drops a flow after `most_readings` readings without a packet.
    /// Both are at least 1.
    pub fn new(size: usize, most_readings: u32) -> Self {
        let entries = vec![Entry::default(); size.max(1)];
        Self { entries, places: ByFlow::default(), most_readings: most_readings.max(1), head: 0, cursor: 0 }
    }

    /// Records a packet of `flow`.
    pub fn add(&mut self, flow: u32) {
        if let Ok(at) = self.places.find(flow) {
            self.entries[self.places.0[at].1].readings = 0;
            return;
        }
        if let Some(old) = self.entries[self.head].flow {
            self.remove(old);
        }
        self.entries[self.head] = Entry { flow: Some(flow), readings: 0 };
        let at = self.places.find(flow).expect_err("the flow is new");
        self.places.0.insert(at, (flow, self.head));
        self.head = (self.head + 1) % self.entries.len();
    }

    /// Reads the next entry. Returns its flow, if there is one that has not been read too often.
    pub fn get(&mut self) -> Option<u32> {
        let n_entries = self.entries.len();
        let entry = &mut self.entries[self.cursor];
        self.cursor = (self.cursor + 1) % n_entries;
        let flow = entry.flow?;
        if entry.readings < self.most_readings {
            entry.readings += 1;
            return Some(flow);
        }
        entry.flow = None;
        self.remove(flow);
        None
    }

    /// Reads every entry once, and calls `tell` with the flows.
    pub fn get_all(&mut self, mut tell: impl FnMut(u32)) {
        for _ in 0..self.entries.len() {
            if let Some(flow) = self.get() {
                tell(flow);
            }
        }
    }

    /// Returns `true` if the table has no flow.
    pub fn is_empty(&self) -> bool {
        self.places.0.is_empty()
    }

    fn remove(&mut self, flow: u32) {
        if let Ok(at) = self.places.find(flow) {
            self.places.0.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn add(table: &mut CircularTable, flows: &[u32]) {
        for &flow in flows {
            table.add(flow);
        }
    }

    fn all(table: &mut CircularTable) -> Vec<u32> {
        let mut flows = Vec::new();
        table.get_all(|flow| flows.push(flow));
        flows
    }

    #[test]
    fn the_oldest_entry_makes_room_and_the_reader_drops_silent_flows() {
        let mut table = CircularTable::new(3, 2);
        add(&mut table, &[7, 3, 7]);
        assert_eq!(all(&mut table), [7, 3], "in the order of the circle");
        // Full: 4 takes the third entry, and 9 that of flow 7, though flow 7 was seen after flow 3.
        add(&mut table, &[4, 9]);
        assert_eq!(all(&mut table), [9, 3, 4]);
        // Flow 3 has been read twice without a packet, the others once.
        assert_eq!(all(&mut table), [9, 4]);
        table.add(4);
        assert_eq!(all(&mut table), [4]);
        assert!(!table.is_empty());
        assert_eq!(all(&mut table), [4]);
        assert!(all(&mut table).is_empty() && table.is_empty());
    }

    #[test]
    fn a_reader_that_stops_halfway_goes_on_there() {
        let mut table = CircularTable::new(4, 3);
        add(&mut table, &[1, 2, 3]);
        let read: Vec<Option<u32>> = (0..6).map(|_| table.get()).collect();
        assert_eq!(read, [Some(1), Some(2), Some(3), None, Some(1), Some(2)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The index of flows gives the same table as a search through the circle.
        #[test]
        fn the_index_changes_nothing(steps in prop::collection::vec(prop::option::of(0_u32..12), 0..200)) {
            let mut table = CircularTable::new(5, 2);
            let mut circle = [None::<(u32, u32)>; 5];
            let (mut head, mut cursor) = (0, 0);
            for step in steps {
                if let Some(flow) = step {
                    table.add(flow);
                    if let Some(entry) = circle.iter_mut().flatten().find(|entry| entry.0 == flow) {
                        entry.1 = 0;
                    } else {
                        circle[head] = Some((flow, 0));
                        head = (head + 1) % 5;
                    }
                } else {
                    circle[cursor] = circle[cursor].filter(|entry| entry.1 < 2).map(|(flow, read)| (flow, read + 1));
                    prop_assert_eq!(table.get(), circle[cursor].map(|entry| entry.0));
                    cursor = (cursor + 1) % 5;
                }
                prop_assert_eq!(table.is_empty(), circle.iter().flatten().next().is_none());
            }
        }
    }
}
