use crate::fabric::N_CLASSES;
use crate::ids::{PacketIdx, PortIdx, SenderIdx};
use std::collections::VecDeque;

/// The state of a flow that decides whether the NIC may send from it. It is kept apart from the sender because the NIC
/// reads it for all of a host's flows at every packet.
#[derive(Clone, Copy, Debug)]
pub struct NicFlow {
    /// Earliest start of the next packet (pacing), in picoseconds.
    pub next_send_ps: u64,
    /// The sender, or [`SenderIdx::NONE`] if it is gone and the NIC keeps the flow for a while.
    pub sender: SenderIdx,
    /// Priority class.
    pub class: u8,
    /// `true` if there is data to send and the window lets it through.
    pub open: bool,
    /// `true` if there is data to send.
    pub has_data: bool,
}

impl NicFlow {
    /// Returns `true` if the flow may send at `now_ps`; `paused` has one bit for each paused class.
    #[inline]
    fn may_send(&self, now_ps: u64, paused: u8) -> bool {
        self.open && self.next_send_ps <= now_ps && paused & (1 << self.class) == 0
    }
}

/// A host's network interface, which picks the next packet: control packets first, then flows in turn. The fields that
/// every packet touches are in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Nic {
    /// Active flows in order of start.
    pub flows: Vec<NicFlow>,
    /// Time of the wake-up that counts, in picoseconds; `u64::MAX`: none pending.
    pub wake_ps: u64,
    /// Position after the flow that sent last, in fair turns.
    pub turn: usize,
    /// The host's egress port.
    pub port: PortIdx,
    /// The class of the flow that sent last.
    pub turn_class: u8,
    /// Notifications that have arrived and are processed later: time of processing in picoseconds and packet, in order
    /// of time.
    pub held: VecDeque<(u64, PacketIdx)>,
    /// For each other class, the position after the flow of it that sent last.
    pub turns: [u32; N_CLASSES],
}

impl Nic {
    /// Returns an idle interface on the egress port `port`.
    pub fn new(port: PortIdx) -> Self {
        Self {
            port,
            flows: Vec::new(),
            turn: 0,
            turn_class: 0,
            turns: [0; N_CLASSES],
            wake_ps: u64::MAX,
            held: VecDeque::new(),
        }
    }

    /// Returns the position of the flow that may send at `now_ps`: highest class first, in turn within a class.
    /// `paused` has one bit for each paused class.
    #[inline]
    pub fn pick(&self, now_ps: u64, paused: u8) -> Option<usize> {
        if let [flow] = &self.flows[..] {
            return flow.may_send(now_ps, paused).then_some(0);
        }
        let at = self.first_from(self.turn, now_ps, paused)?;
        // The turn is that of the class that sent last.
        let class = self.flows[at].class;
        if class == self.turn_class {
            return Some(at);
        }
        self.pick_from(self.turns[usize::from(class) % N_CLASSES] as usize, now_ps, !(1 << class))
    }

    /// Returns the same as [`Nic::pick`], where the turn of every class is at position `turn`.
    #[cold]
    #[inline(never)]
    pub fn pick_from(&self, turn: usize, now_ps: u64, paused: u8) -> Option<usize> {
        self.first_from(turn, now_ps, paused)
    }

    /// Returns the position of the flow that may send at `now_ps`: highest class first, and of these the first from
    /// position `turn` on.
    #[inline(always)] // Its loop is the NIC's search; left alone, it is called for every packet.
    fn first_from(&self, turn: usize, now_ps: u64, paused: u8) -> Option<usize> {
        let n = self.flows.len();
        let mut best: Option<usize> = None;
        for step in 0..n {
            let at = turn + step;
            let at = if at < n { at } else { at - n };
            let flow = &self.flows[at];
            if !flow.may_send(now_ps, paused) || best.is_some_and(|b| self.flows[b].class <= flow.class) {
                continue;
            }
            best = Some(at);
            if flow.class == 0 {
                break;
            }
        }
        best
    }

    /// Returns the classes in which a flow may send at `now_ps`, one bit for each; `paused` has one for each paused
    /// class.
    pub fn classes_that_may_send(&self, now_ps: u64, paused: u8) -> u8 {
        let may_send = |flow: &&NicFlow| flow.open && flow.next_send_ps <= now_ps;
        self.flows.iter().filter(may_send).fold(0, |all, flow| all | 1 << flow.class) & !paused
    }

    /// Records that the flow at `at`, of `class`, has sent: the turn passes to the next one.
    #[inline]
    pub fn sent(&mut self, at: usize, class: u8) {
        if class != self.turn_class {
            self.keep_turn(class);
        }
        self.turn = if at + 1 < self.flows.len() { at + 1 } else { 0 };
    }

    /// Keeps the turn of the class that sent last, as `class` sends now.
    #[cold]
    #[inline(never)]
    fn keep_turn(&mut self, class: u8) {
        self.turns[usize::from(self.turn_class) % N_CLASSES] = self.turn as u32;
        self.turn_class = class;
    }

    /// Returns the earliest time at which a flow may send; `u64::MAX` if no flow may send before its state changes.
    #[inline]
    pub fn next_send_ps(&self, paused: u8) -> u64 {
        let may_send = |flow: &NicFlow| flow.open && paused & (1 << flow.class) == 0;
        if let [flow] = &self.flows[..] {
            return if may_send(flow) { flow.next_send_ps } else { u64::MAX };
        }
        self.flows.iter().filter(|f| may_send(f)).map(|f| f.next_send_ps).min().unwrap_or(u64::MAX)
    }

    /// Removes the flow at `at`; the flows behind it move up by one position.
    pub fn remove(&mut self, at: usize) {
        self.flows.remove(at);
        if at < self.turn {
            self.turn -= 1;
        }
        self.turns.iter_mut().for_each(|turn| *turn -= u32::from(at < *turn as usize));
        if self.flows.len() <= self.turn {
            self.turn = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(flows: &[(u64, u8, bool)]) -> Nic {
        let flow = |&(next_send_ps, class, open): &(u64, u8, bool)| NicFlow {
            next_send_ps,
            sender: SenderIdx(0),
            class,
            open,
            has_data: open,
        };
        Nic { flows: flows.iter().map(flow).collect(), ..Nic::new(PortIdx(0)) }
    }

    #[test]
    fn flows_take_turns_and_classes_do_not() {
        let mut nic = nic(&[(0, 3, true), (0, 3, true), (9, 3, true), (0, 3, false)]);
        assert_eq!(nic.pick(5, 0), Some(0));
        nic.sent(0, 3);
        assert_eq!(nic.pick(5, 0), Some(1));
        nic.sent(1, 3);
        assert_eq!(nic.pick(5, 0), Some(0), "one is paced and one closed");
        nic.flows[2] = NicFlow { class: 1, ..nic.flows[0] };
        assert_eq!(nic.pick(5, 0), Some(2));
        assert_eq!(nic.pick(5, 1 << 1), Some(0), "a paused class is passed over");
        assert_eq!(nic.next_send_ps(1 << 3 | 1 << 1), u64::MAX);
    }

    /// A flow of a higher class sends after each of the others.
    #[test]
    fn other_classes_do_not_take_turns_away() {
        let mut nic = nic(&[(0, 3, true), (0, 1, true), (0, 3, true)]);
        let mut sent = [0; 3];
        for step in 0..12 {
            nic.flows[1].open = step % 2 == 1;
            let at = nic.pick(0, 0).expect("some may send");
            sent[at] += 1;
            nic.sent(at, nic.flows[at].class);
        }
        assert_eq!(sent, [3, 6, 3]);
    }

    #[test]
    fn removal_keeps_the_turn() {
        let mut nic = nic(&[(0, 3, true), (0, 3, true), (0, 3, true)]);
        nic.sent(1, 3);
        nic.remove(0);
        assert_eq!(nic.pick(0, 0), Some(1), "still the turn of the third flow");
        nic.remove(1);
        assert_eq!(nic.pick(0, 0), Some(0));
    }
}
