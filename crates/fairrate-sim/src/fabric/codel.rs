//! CoDel: drops from the head of a queue if packets have waited longer than a target for at least an interval.
//!
//! K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, "Controlled Delay Active Queue Management", RFC 8289.
//!
//! | RFC 8289             | here          | unit  |
//! |----------------------|---------------|-------|
//! | TARGET, INTERVAL     | `target_ps`, `interval_ps` | ps |
//! | MAXPACKET            | `max_packet`  | bytes |
//! | first_above_time_    | `above_until` | ps    |
//! | drop_next_           | `drop_next`   | ps    |
//! | count_, lastcount_   | `count`, `last_count` | |
//! | dropping_            | `dropping`    |       |
//!
//! Data of an algorithm that reads marks can be marked instead of dropped (section 5.1 leaves that to others; RFC 8290
//! section 5.4 has it). A drop needs more than a full packet behind it, so a queue never runs empty by drops.

use super::DropCause;
use super::discipline::{Verdicts, Waiting};
use crate::config::CoDelConfig;
use crate::ids::PacketIdx;
use crate::packet::{PacketKind, PacketPool};

/// The parameters shared by all queues of a port.
#[derive(Clone, Copy, Debug)]
pub struct CoDelRule {
    target_ps: u64,
    interval_ps: u64,
    max_packet: u64,
    marks: bool,
}

impl CoDelRule {
    /// Creates the parameters; `max_packet`: wire bytes of a full packet; `marks`: data is marked instead of dropped.
    pub fn new(config: &CoDelConfig, max_packet: u64, marks: bool) -> Self {
        let (target_ps, interval_ps) = (config.target.as_ps(), config.interval.as_ps());
        Self { target_ps, interval_ps, max_packet, marks }
    }

    /// Returns the time of the next drop, section 5.6: an interval over the square root of the number of drops later.
    fn control_law(&self, t_ps: u64, count: u32) -> u64 {
        t_ps.saturating_add((self.interval_ps as f64 / f64::from(count).sqrt()) as u64)
    }
}

/// CoDel's state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoDel {
    /// Time at which the waiting time will have been above target for an interval; `None`: it is not above target.
    above_until: Option<u64>,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// The packet at the head of a queue, and whether it may be dropped.
struct Head {
    packet: PacketIdx,
    ok_to_drop: bool,
}

impl CoDel {
    /// Takes the packet to send; the queue must not be empty. Section 5.5.
    pub fn pop(
        &mut self,
        rule: &CoDelRule,
        queue: &mut Waiting,
        pool: &mut PacketPool,
        now_ps: u64,
        verdicts: &mut Verdicts,
    ) -> PacketIdx {
        let mut head = self.take(rule, queue, pool, now_ps);
        if !self.dropping {
            if head.ok_to_drop {
                if !marked(rule, pool, head.packet, verdicts) {
                    verdicts.drop(head.packet, DropCause::Sojourn);
                    head = self.take(rule, queue, pool, now_ps);
                }
                self.begin(rule, now_ps);
            }
            return head.packet;
        }
        if !head.ok_to_drop {
            self.dropping = false;
        }
        while self.dropping && self.drop_next <= now_ps {
            self.count = self.count.saturating_add(1);
            if marked(rule, pool, head.packet, verdicts) {
                self.drop_next = rule.control_law(self.drop_next, self.count);
                break;
            }
            verdicts.drop(head.packet, DropCause::Sojourn);
            head = self.take(rule, queue, pool, now_ps);
            if head.ok_to_drop {
                self.drop_next = rule.control_law(self.drop_next, self.count);
            } else {
                self.dropping = false;
            }
        }
        head.packet
    }

    /// Begins a dropping state, with the drop rate at the end of the last one if that ended not long ago.
    fn begin(&mut self, rule: &CoDelRule, now_ps: u64) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now_ps.saturating_sub(self.drop_next) < 16 * rule.interval_ps;
        self.count = if 1 < delta && recent { delta } else { 1 };
        self.drop_next = rule.control_law(now_ps, self.count);
        self.last_count = self.count;
    }

    /// Takes the first packet and decides if it may be dropped. Section 5.4.
    fn take(&mut self, rule: &CoDelRule, queue: &mut Waiting, pool: &PacketPool, now_ps: u64) -> Head {
        let packet = queue.pop(pool);
        let sojourn = now_ps - pool.get(packet).arrival_ps;
        if sojourn < rule.target_ps || queue.bytes <= rule.max_packet {
            self.above_until = None;
            return Head { packet, ok_to_drop: false };
        }
        let until = *self.above_until.get_or_insert(now_ps.saturating_add(rule.interval_ps));
        Head { packet, ok_to_drop: until <= now_ps }
    }
}

/// Marks a packet instead of dropping it, if that is allowed; returns `true` if it did.
fn marked(rule: &CoDelRule, pool: &mut PacketPool, packet: PacketIdx, verdicts: &mut Verdicts) -> bool {
    let p = pool.get_mut(packet);
    let marks = rule.marks && p.kind == PacketKind::Data;
    if marks {
        p.set_marked(true);
        verdicts.marks += 1;
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use fairrate_units::Time;

    const US: u64 = 1_000_000;

    fn rule(marks: bool) -> CoDelRule {
        let config = CoDelConfig { target: Time::from_us(20), interval: Time::from_us(200), ecn: marks };
        CoDelRule::new(&config, 1_048, marks)
    }

    struct Bench {
        pool: PacketPool,
        queue: Waiting,
        codel: CoDel,
        verdicts: Verdicts,
        rule: CoDelRule,
    }

    impl Bench {
        fn new(marks: bool) -> Self {
            let pool = PacketPool::new(0, 0);
            let (queue, codel, verdicts) = (Waiting::EMPTY, CoDel::default(), Verdicts::default());
            Self { pool, queue, codel, verdicts, rule: rule(marks) }
        }

        fn push(&mut self, now_ps: u64) {
            let p = Packet { wire: 1_048, arrival_ps: now_ps, ..Packet::new(PacketKind::Data) };
            let packet = self.pool.take(p);
            self.queue.push(&mut self.pool, packet);
        }

        /// Sends one packet; returns the number of packets dropped before it.
        fn pop(&mut self, now_ps: u64) -> usize {
            let packet = self.codel.pop(&self.rule, &mut self.queue, &mut self.pool, now_ps, &mut self.verdicts);
            self.pool.release(packet);
            let dropped = std::mem::take(&mut self.verdicts.dropped);
            for &(packet, _) in &dropped {
                self.pool.release(packet);
            }
            dropped.len()
        }
    }

    /// Packets come every 10 us and leave every 10 us after having waited for 100 us, above the target of 20 us. The
    /// first is seen above at 100 us, so the first drop is at 300 us. The next ones follow after 200/sqrt(1),
    /// 200/sqrt(2) = 141.4, 200/sqrt(3) = 115.5, 100 us and so on: at 500, 641.4, 756.9, 856.9, 946.3 us, and are seen
    /// at the next departure.
    #[test]
    fn drops_come_an_interval_over_the_root_of_their_number_apart() {
        for marks in [false, true] {
            let mut bench = Bench::new(marks);
            let mut at = Vec::new();
            for step in 0..100 {
                let now = 10 * step * US;
                bench.push(now);
                if 10 <= step {
                    let before = bench.verdicts.marks;
                    let n = bench.pop(now);
                    assert!(n <= 1 && (!marks || n == 0));
                    if n == 1 || before < bench.verdicts.marks {
                        at.push(now / US);
                        // A dropped packet is missing: let the next one wait as long.
                        if !marks {
                            bench.push(now);
                        }
                    }
                }
            }
            assert_eq!(at, [300, 500, 650, 760, 860, 950], "{marks}");
        }
    }

    #[test]
    fn a_short_wait_or_a_single_packet_ends_it() {
        let mut bench = Bench::new(false);
        (0..40).for_each(|_| bench.push(0));
        assert_eq!((bench.pop(30 * US), bench.pop(229 * US), bench.pop(230 * US)), (0, 0, 1));
        assert!(bench.codel.dropping);
        // A packet that has waited for less than the target.
        while !bench.queue.is_empty() {
            let packet = bench.queue.pop(&bench.pool);
            bench.pool.release(packet);
        }
        (0..3).for_each(|_| bench.push(990 * US));
        assert_eq!(bench.pop(1_000 * US), 0);
        assert!(!bench.codel.dropping && bench.codel.above_until.is_none());
        // The last packet is never dropped, nor the one before it, however long they wait.
        assert_eq!((bench.pop(9_000 * US), bench.pop(19_000 * US)), (0, 0));
        assert!(bench.queue.is_empty());
    }

    #[test]
    fn a_new_dropping_state_begins_near_where_the_last_one_ended() {
        let mut codel = CoDel { drop_next: 1_000 * US, count: 9, last_count: 4, ..CoDel::default() };
        // Five drops in the last state; 16 intervals are 3.2 ms. 200/sqrt(5) = 89.44 us.
        codel.begin(&rule(false), 4_199 * US);
        assert_eq!((codel.count, codel.drop_next / 10_000), (5, 428_844));
        (codel.drop_next, codel.count, codel.last_count) = (1_000 * US, 9, 4);
        codel.begin(&rule(false), 4_200 * US);
        assert_eq!((codel.count, codel.drop_next), (1, 4_400 * US));
    }
}
