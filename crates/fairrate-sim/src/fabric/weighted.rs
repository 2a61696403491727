//! Classes that share a link by weights: deficit weighted round robin (DWRR). M. Shreedhar, G. Varghese, "Efficient
//! Fair Queuing Using Deficit Round-Robin", IEEE/ACM ToN 1996.
//!
//! Active classes stand in a circle. A class whose turn it is may send a quantum more, and sends packets as long as
//! they fit into what it may send; then the turn passes. A class that has nothing to send, or may not send, leaves the
//! circle and keeps nothing; it joins again at the end. So while two classes are active, what one has sent differs from
//! what its weight says by less than a quantum and a packet.

use super::port::N_CLASSES;

/// The quantum of each class with a weight, by class; 0 for the others, which are strict.
pub type Quanta = [u32; N_CLASSES];

/// The classes of one port, or of one host, that share it by weights.
#[derive(Clone, Copy, Debug)]
pub struct WeightedClasses {
    /// Bytes that a class may send more in its turn.
    quanta: Quanta,
    /// Bytes that a class may send now; below zero after a packet that was longer.
    deficits: [i64; N_CLASSES],
    /// The classes in the order of their turns: the first `n` entries.
    circle: [u8; N_CLASSES],
    n: u8,
    /// Set if the first class of the circle has got the quantum of its turn.
    has_begun: bool,
    /// Bit c: class c has a weight.
    weighted: u8,
    /// Bit c: class c is in the circle.
    members: u8,
    /// Bit c: telemetry of packets of class c tells of that class alone.
    own_telemetry: u8,
    /// Bytes of each class that the port has sent.
    sent: [u64; N_CLASSES],
    round: Round,
}

/// The bytes that a port sends in a round, as MQ-ECN estimates them: W. Bai et al., "Enabling ECN in Multi-Service
/// Multi-Queue Data Centers", NSDI 2016, as its public ns-2 code has it. They have a time; while classes wait, the port
/// sends, and its bytes say the same.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Moving average.
    bytes: f64,
    /// Bytes that the port had sent as the turn of each class began.
    begun_at: [u64; N_CLASSES],
}

/// Weight of the past in the average of rounds, in that code.
const PAST: f64 = 0.75;

impl WeightedClasses {
    /// Returns classes with nothing to send; `own_telemetry` has one bit for each class whose telemetry tells of it
    /// alone.
    pub fn new(quanta: Quanta, own_telemetry: u8) -> Self {
        let weighted =
            (0..).zip(quanta).filter(|&(_, quantum)| 0 < quantum).fold(0, |all, (class, _)| all | 1 << class);
        Self {
            quanta,
            deficits: [0; N_CLASSES],
            circle: [0; N_CLASSES],
            n: 0,
            has_begun: false,
            weighted,
            members: 0,
            own_telemetry,
            sent: [0; N_CLASSES],
            round: Round::default(),
        }
    }

    /// Lets `class` join the end of the circle if it has a weight and is not in it. `sent`: the bytes that the port has
    /// sent so far.
    #[inline]
    pub fn join(&mut self, class: u8, sent: u64) {
        if self.weighted & !self.members & 1 << class != 0 {
            self.circle[usize::from(self.n)] = class;
            (self.n, self.members) = (self.n + 1, self.members | 1 << class);
            self.round.begun_at[usize::from(class)] = sent;
        }
    }

    /// Takes `class` out of the circle if it is in it: it keeps nothing of what it might have sent.
    pub fn leave(&mut self, class: u8) {
        let Some(at) = self.circle[..usize::from(self.n)].iter().position(|&member| member == class) else { return };
        self.circle.copy_within(at + 1..usize::from(self.n), at);
        (self.n, self.members) = (self.n - 1, self.members & !(1 << class));
        self.deficits[usize::from(class)] = 0;
        self.has_begun &= 0 < at;
    }

    /// Returns the class that sends next, among those whose bit is set in `may_send`, of which there is one at least:
    /// the first strict one, or the one whose turn it is. A class may send if the first packet it has, of `first_wire`
    /// bytes, fits into what it may send.
    #[inline]
    pub fn choose(&mut self, may_send: u8, sent: u64, first_wire: impl Fn(u8) -> u32) -> u8 {
        let strict = may_send & !self.weighted;
        if strict != 0 {
            return strict.trailing_zeros() as u8;
        }
        let mut missing = may_send & !self.members;
        while missing != 0 {
            self.join(missing.trailing_zeros() as u8, sent);
            missing &= missing - 1;
        }
        loop {
            let class = self.circle[0];
            if may_send >> class & 1 == 0 {
                self.leave(class);
                continue;
            }
            let deficit = &mut self.deficits[usize::from(class)];
            if !self.has_begun {
                *deficit += i64::from(self.quanta[usize::from(class)]);
                self.has_begun = true;
            }
            if i64::from(first_wire(class)) <= *deficit {
                return class;
            }
            self.pass_on(class, sent);
        }
    }

    /// Ends the turn of `class`, the first of the circle.
    fn pass_on(&mut self, class: u8, sent: u64) {
        self.round.end(class, sent);
        self.round.begun_at[usize::from(class)] = sent;
        self.circle[..usize::from(self.n)].rotate_left(1);
        self.has_begun = false;
    }

    /// Records that `class` sends `wire` bytes.
    #[inline]
    pub fn take(&mut self, class: u8, wire: u32) {
        if self.members >> class & 1 == 0 {
            return;
        }
        self.deficits[usize::from(class)] -= i64::from(wire);
        self.sent[usize::from(class)] += u64::from(wire);
    }

    /// Ends the turn of `class`, which has sent its last packet; the port has sent `sent` bytes in all, with that one.
    pub fn run_out(&mut self, class: u8, sent: u64) {
        if self.members >> class & 1 == 0 {
            return;
        }
        self.round.end(class, sent);
        self.leave(class);
    }

    /// Returns the bytes of `class` that the port has sent, if telemetry tells of the class alone.
    #[inline]
    pub fn telemetry_of(&self, class: u8) -> Option<u64> {
        (self.own_telemetry >> class & 1 == 1).then(|| self.sent[usize::from(class)])
    }

    /// Shortens the estimate of a round if no class with a weight has waited for the time of `n_packets` full packets.
    pub fn note_idle(&mut self, n_packets: u64) {
        if self.members == 0 {
            self.round.bytes *= PAST.powi(n_packets.min(1_000) as i32);
        }
    }

    /// Returns the factor by which the round is longer than the turn of `class`, at least 1: then the class has that
    /// part of the link.
    pub fn rounds_per_turn(&self, class: u8) -> f64 {
        match self.quanta[usize::from(class)] {
            0 => 1.0,
            quantum => (self.round.bytes / f64::from(quantum)).max(1.0),
        }
    }
}

impl Round {
    /// Adds a sample: the turn of `class` ends, and with it a round since its last turn began.
    fn end(&mut self, class: u8, sent: u64) {
        let sample = (sent - self.begun_at[usize::from(class)]) as f64;
        self.bytes = PAST * self.bytes + (1.0 - PAST) * sample;
    }
}

/// Returns the quanta of classes with these weights, of which the smallest gets `least` bytes: at least the longest
/// packet, so that every class sends in each of its turns.
pub fn quanta(weights: [Option<f64>; N_CLASSES], least: u32) -> Quanta {
    let smallest = weights.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    weights.map(|weight| weight.map_or(0, |weight| (weight / smallest * f64::from(least)).round() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends `n` packets of classes that always have one, each of the length that `wire` gives; returns the bytes of
    /// each class after each packet.
    fn run(classes: &mut WeightedClasses, may_send: u8, n: usize, mut wire: impl FnMut(u8) -> u32) -> Vec<[u64; 8]> {
        let mut next: [u32; 8] = std::array::from_fn(|class| wire(class as u8));
        let mut bytes = [0; 8];
        let mut all = Vec::new();
        for _ in 0..n {
            let sent = bytes.iter().sum();
            let class = classes.choose(may_send, sent, |class| next[usize::from(class)]);
            classes.take(class, next[usize::from(class)]);
            bytes[usize::from(class)] += u64::from(next[usize::from(class)]);
            next[usize::from(class)] = wire(class);
            all.push(bytes);
        }
        all
    }

    #[test]
    fn strict_classes_go_first_and_weights_share_the_rest() {
        let mut weights = [None; 8];
        (weights[3], weights[5]) = (Some(1.0), Some(3.0));
        let mut classes = WeightedClasses::new(quanta(weights, 1_000), 0);
        assert_eq!(classes.choose(0b10_1010, 0, |_| 1_000), 1);
        let bytes = run(&mut classes, 0b10_1000, 400, |_| 1_000);
        assert_eq!((bytes[399][3], bytes[399][5]), (100_000, 300_000));
        // In the first round: one packet of class 3, and three of class 5.
        assert_eq!((bytes[3][3], bytes[3][5]), (1_000, 3_000));
    }

    #[test]
    fn a_class_that_leaves_keeps_nothing() {
        let mut weights = [None; 8];
        (weights[3], weights[4]) = (Some(1.0), Some(1.0));
        let mut classes = WeightedClasses::new(quanta(weights, 1_500), 0);
        assert_eq!(classes.choose(0b1_1000, 0, |_| 1_000), 3);
        classes.take(3, 1_000);
        classes.leave(3);
        // It joins behind the other one, and gets one quantum.
        classes.join(3, 0);
        assert_eq!(classes.choose(0b1_1000, 0, |_| 1_000), 4);
        classes.take(4, 1_000);
        classes.run_out(4, 1_000);
        assert_eq!((classes.choose(0b1000, 0, |_| 1_500), classes.deficits[3]), (3, 1_500));
    }

    proptest! {
        /// The bound of Shreedhar and Varghese: between two classes that always have packets, the normalised service
        /// differs by less than a turn of each and a packet.
        #[test]
        fn shares_go_by_weights_within_a_quantum_and_a_packet(
            seed in 0u64..u64::MAX,
            weights in proptest::collection::vec(1.0f64..20.0, 2..7),
            longest in 64u32..9_000,
        ) {
            let mut of_class = [None; 8];
            weights.iter().zip(1..).for_each(|(&weight, class): (_, usize)| of_class[class] = Some(weight));
            let all = quanta(of_class, longest);
            let mut classes = WeightedClasses::new(all, 0);
            let mut state = seed;
            let wire = |_: u8| {
                state = crate::rng::mix64(state);
                1 + (state % u64::from(longest)) as u32
            };
            let may_send = (1..=weights.len()).fold(0u8, |mask, class| mask | 1 << class);
            for bytes in run(&mut classes, may_send, 2_000, wire) {
                for (a, b) in (1..=weights.len()).flat_map(|a| (1..a).map(move |b| (a, b))) {
                    let turns = |class: usize| bytes[class] as f64 / f64::from(all[class]);
                    let bound = 1.0 + f64::from(longest) * (1.0 / f64::from(all[a]) + 1.0 / f64::from(all[b]));
                    prop_assert!((turns(a) - turns(b)).abs() <= bound, "{a} {b} {bytes:?} {all:?}");
                }
            }
        }

        /// Whatever joins, leaves and may send, a class that may send is chosen, strict ones first.
        #[test]
        fn some_class_that_may_send_is_chosen(steps in proptest::collection::vec((0u8..4, 0u8..8, any::<u8>()), 1..300)) {
            let mut weights = [None; 8];
            weights[3..].iter_mut().for_each(|weight| *weight = Some(2.0));
            let mut classes = WeightedClasses::new(quanta(weights, 1_000), 0);
            let mut sent = 0;
            for (what, class, may_send) in steps {
                match what {
                    0 => classes.join(class, sent),
                    1 => classes.leave(class),
                    _ if may_send == 0 => {}
                    _ => {
                        let chosen = classes.choose(may_send, sent, |_| 700);
                        prop_assert!(may_send >> chosen & 1 == 1);
                        prop_assert!(3 <= may_send.trailing_zeros() || chosen == may_send.trailing_zeros() as u8);
                        classes.take(chosen, 700);
                        sent += 700;
                        if what == 2 {
                            classes.run_out(chosen, sent);
                        }
                    }
                }
                prop_assert_eq!(u32::from(classes.n), classes.members.count_ones());
                prop_assert!(classes.deficits.iter().all(|&deficit| (0..=2_000).contains(&deficit)));
            }
        }
    }
}
