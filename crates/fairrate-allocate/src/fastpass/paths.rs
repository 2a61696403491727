//! Path selection: spines for the packets of a timeslot, so that no link has more than it carries.

use super::{FastpassConfig, FastpassError, NO_SPINE};

/// A packet between racks: its source rack, its destination rack, and its position among the timeslot's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    up: u16,
    down: u16,
    packet: u16,
}

/// Largest number of colours: they are bits of a word.
const COLOURS_MAX: usize = 64;

/// The selector of paths. It keeps its tables, so a timeslot allocates no memory.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Rack of each host.
    rack: Vec<u16>,
    /// Number of halvings after which the packets of a rack fit a word of colours.
    halvings: u32,
    /// Spines of a part.
    part_spines: u16,
    edges: Vec<Edge>,
    /// Room for edges in halves.
    halves: Vec<Edge>,
    /// Where each part of the edges begins, and where the last one ends.
    parts: Vec<u32>,
    next_parts: Vec<u32>,
    /// For each rack, the edge that has no mate at it yet: as source rack, as destination rack.
    single: Vec<[u16; 2]>,
    /// For each edge, its mate at its source's rack and at its destination's; without a mate, one more than the last
    /// edge.
    mates: Vec<[u16; 2]>,
    /// For each edge, `true` if it has been put into a half.
    walked: Vec<bool>,
    colours: Colours,
}

impl Paths {
    /// Creates the selector for a network.
    ///
    /// # Errors
    /// If the network or the batch cannot be arbitrated.
    pub fn new(config: &FastpassConfig) -> Result<Self, FastpassError> {
        config.check()?;
        let n_hosts = usize::from(config.hosts);
        let n_racks = n_hosts.div_ceil(usize::from(config.hosts_per_rack));
        // Colours are the packets of a rack; the check ensures that the spines carry as many.
        let (mut colours, mut part_spines, mut halvings) = (config.hosts_per_rack.min(config.hosts), config.spines, 0);
        while COLOURS_MAX < usize::from(colours) && part_spines % 2 == 0 {
            (colours, part_spines, halvings) = (colours.div_ceil(2), part_spines / 2, halvings + 1);
        }
        if COLOURS_MAX < usize::from(colours) {
            return Err(FastpassError::Colours { hosts_per_rack: config.hosts_per_rack, spines: config.spines });
        }
        Ok(Self {
            rack: (0..config.hosts).map(|host| host / config.hosts_per_rack).collect(),
            halvings,
            part_spines,
            edges: vec![Edge::default(); n_hosts],
            halves: vec![Edge::default(); n_hosts],
            parts: Vec::new(),
            next_parts: Vec::new(),
            single: vec![[0; 2]; n_racks],
            mates: vec![[0; 2]; n_hosts + 1],
            walked: vec![false; n_hosts + 1],
            colours: Colours::new(n_racks, usize::from(colours)),
        })
    }

    /// Writes the spine of each pair to `spines`, in the order of `pairs`; `u16::MAX` within a rack. The pairs are a
    /// matching of hosts.
    pub fn select(&mut self, pairs: impl Iterator<Item = (u16, u16)>, spines: &mut [u16]) {
        let mut n_edges = 0;
        for ((packet, (src, dst)), spine) in (0..).zip(pairs).zip(&mut *spines) {
            let (up, down) = (self.rack[usize::from(src)], self.rack[usize::from(dst)]);
            *spine = NO_SPINE;
            if up != down {
                self.edges[n_edges] = Edge { up, down, packet };
                n_edges += 1;
            }
        }
        self.parts.clear();
        self.parts.extend([0, n_edges as u32]);
        for _ in 0..self.halvings {
            self.halve();
        }
        let mut first_spine = 0;
        for part in self.parts.windows(2) {
            let edges = &self.edges[part[0] as usize..part[1] as usize];
            self.colours.clear();
            for i in 0..edges.len() {
                self.colours.add(edges, i as u16);
            }
            for (edge, colour) in edges.iter().zip(&self.colours.of) {
                spines[usize::from(edge.packet)] = first_spine + colour % self.part_spines;
            }
            first_spine += self.part_spines;
        }
    }

    /// Halves every part: the first half grows from the part's beginning, the second from its end.
    fn halve(&mut self) {
        self.next_parts.clear();
        self.next_parts.push(0);
        for part in 0..self.parts.len() - 1 {
            let (from, to) = (self.parts[part] as usize, self.parts[part + 1] as usize);
            self.pair_up(from, to);
            let middle = self.walk(from, to);
            self.next_parts.extend([middle as u32, to as u32]);
        }
        std::mem::swap(&mut self.edges, &mut self.halves);
        std::mem::swap(&mut self.parts, &mut self.next_parts);
    }

    /// Gives each edge of a part a mate at either end, except one edge where their number is odd. An edge that waits
    /// for a mate would be an unpredictable branch; instead the code always writes, and unwanted writes go to a place
    /// that is never read.
    fn pair_up(&mut self, from: usize, to: usize) {
        let nobody = (to - from) as u16;
        self.single.fill([nobody; 2]);
        for (i, edge) in (0..).zip(&self.edges[from..to]) {
            let mates = [edge.up, edge.down].map(usize::from);
            for side in [0, 1] {
                let single = &mut self.single[mates[side]][side];
                let mate = *single;
                *single = if mate == nobody { i } else { nobody };
                self.mates[usize::from(i)][side] = mate;
                self.mates[usize::from(mate)][side] = i;
            }
        }
        self.walked[..to - from].fill(false);
        // The index that stands for "no mate" counts as walked, so it ends a walk.
        self.walked[to - from] = true;
    }

    /// Puts mates into different halves; returns the beginning of the second half. Mates at sources and mates at
    /// destinations alternate along a chain, so a chain that closes is of even length.
    fn walk(&mut self, from: usize, to: usize) -> usize {
        // Places of the next edge of the first and of the second half.
        let (mut low, mut high) = (from, to);
        let edges = &self.edges[from..to];
        for start in 0..to - from {
            if self.walked[start] {
                continue;
            }
            self.walked[start] = true;
            self.halves[low] = edges[start];
            low += 1;
            // Walks from the start in both directions; the second edge of either direction is in the start's half
            // again.
            for first_side in [0, 1] {
                let (mut at, mut side) = (start, first_side);
                loop {
                    at = usize::from(self.mates[at][side]);
                    if self.walked[at] {
                        break;
                    }
                    self.walked[at] = true;
                    if side == first_side {
                        high -= 1;
                        self.halves[high] = edges[at];
                    } else {
                        self.halves[low] = edges[at];
                        low += 1;
                    }
                    side = 1 - side;
                }
            }
        }
        low
    }
}

/// A colouring that gets one edge at a time and uses at most as many colours as a rack has edges.
#[derive(Clone, Debug)]
struct Colours {
    /// Number of colours, which is the number of places of a rack; at most [`COLOURS_MAX`].
    per_rack: usize,
    /// For each rack, the bits of its free colours: as source, as destination.
    free: Vec<[u64; 2]>,
    /// For each rack and colour, the edge that has the colour, where it is not free.
    at: Vec<[u16; 2]>,
    /// Colours of edges.
    of: Vec<u16>,
}

impl Colours {
    fn new(n_racks: usize, per_rack: usize) -> Self {
        Self { per_rack, free: vec![[0; 2]; n_racks], at: vec![[0; 2]; n_racks * per_rack], of: Vec::new() }
    }

    fn clear(&mut self) {
        self.free.fill([u64::MAX >> (COLOURS_MAX - self.per_rack); 2]);
        self.of.clear();
    }

    /// Colours the edge with index `edge`, the next one. If no colour is free at both ends, the path that begins at the
    /// destination's rack and alternates between a colour free at the source's and one free at the destination's is
    /// flipped: it cannot return to the source's rack, since it reaches sources over the colour that is free there.
    fn add(&mut self, edges: &[Edge], edge: u16) {
        let Edge { up, down, .. } = edges[usize::from(edge)];
        let (up, down) = (usize::from(up), usize::from(down));
        let (up_free, down_free) = (self.free[up][0], self.free[down][1]);
        let common = up_free & down_free;
        let colour = if common != 0 {
            common.trailing_zeros()
        } else {
            self.flip(edges, down, up_free.trailing_zeros(), down_free.trailing_zeros());
            up_free.trailing_zeros()
        };
        self.free[up][0] &= !(1 << colour);
        self.free[down][1] &= !(1 << colour);
        self.at[up * self.per_rack + colour as usize][0] = edge;
        self.at[down * self.per_rack + colour as usize][1] = edge;
        self.of.push(colour as u16);
    }

    /// Exchanges colours `first` and `second` along the path that leaves destination rack `rack` over `first`; `second`
    /// is free there.
    fn flip(&mut self, edges: &[Edge], rack: usize, first: u32, second: u32) {
        let (mut rack, mut side, mut from, mut to) = (rack, 1, first, second);
        // Only at the path's ends does it change which of the two colours are in use.
        self.free[rack][side] ^= 1 << from | 1 << to;
        let mut edge = self.at[rack * self.per_rack + from as usize][side];
        loop {
            // The edge gets the colour `to` at both ends; at the far one it takes the place of the path's next edge.
            self.of[usize::from(edge)] = to as u16;
            self.at[rack * self.per_rack + to as usize][side] = edge;
            let Edge { up, down, .. } = edges[usize::from(edge)];
            (side, rack) = (1 - side, usize::from(if side == 1 { up } else { down }));
            let place = &mut self.at[rack * self.per_rack + to as usize][side];
            let next = std::mem::replace(place, edge);
            if self.free[rack][side] & 1 << to != 0 {
                self.free[rack][side] ^= 1 << from | 1 << to;
                return;
            }
            edge = next;
            (from, to) = (to, from);
        }
    }
}
