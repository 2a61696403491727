//! The marker that `dcqcn-pi` and `pacc` share: a PI controller adjusts a probability until the queue is at a
//! reference. C. Hollot, V. Misra, D. Towsley, W. Gong, "On Designing Improved Controllers for AQM Routers Supporting
//! TCP Flows", INFOCOM 2001, in the form of Y. Zhu et al., "ECN or Delay", CoNEXT 2016, §5.

use fairrate_units::Bytes;

use crate::draws::Draws;
use crate::port::PortContext;

/// Bytes of a packet, the unit in which the gains measure the queue.
const PACKET: f64 = 1_000.0;

/// The PI controller of one egress port.
#[derive(Clone, Debug)]
pub(crate) struct PiMarker {
    a: f64,
    b: f64,
    /// Reference queue, in packets of 1,000 bytes.
    q_ref: f64,
    /// The queue at the previous packet, in the same unit.
    q_old: f64,
    p: f64,
    draws: Draws,
}

impl PiMarker {
    /// Creates the controller of `port` with the gains `a` and `b`, per packet of 1,000 bytes and update, and the
    /// reference queue `q_ref` in bytes.
    pub(crate) fn new(a: f64, b: f64, q_ref: f64, port: &PortContext) -> Self {
        Self { a, b, q_ref: q_ref / PACKET, q_old: 0.0, p: 0.0, draws: Draws::new(port.seed, port.port) }
    }

    /// Updates p ← p + a (q - q_ref) - b (q_old - q_ref), limited to [0, 1] (§5). The excess beyond a bound is
    /// discarded, so that p leaves a bound as soon as the queue turns.
    fn update(&mut self, q: f64) {
        let p = self.p + self.a * (q - self.q_ref) - self.b * (self.q_old - self.q_ref);
        self.p = p.clamp(0.0, 1.0);
        self.q_old = q;
    }

    /// Updates p and returns `true`, with probability p, if the packet that brings the queue to `queue` is selected.
    pub(crate) fn selects(&mut self, queue: Bytes) -> bool {
        self.update(queue.as_f64() / PACKET);
        self.draws.uniform() < self.p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::port_40g;

    #[test]
    fn the_probability_by_hand() {
        let mut pi = PiMarker::new(0.002, 0.001, 200_000.0, &port_40g());
        // 0 - 0.001 (0 - 200) + 0.002 (100 - 200) = 0.2 - 0.2.
        pi.update(100.0);
        assert!(pi.p.abs() < 1e-15, "{}", pi.p);
        // 0 - 0.001 (100 - 200) + 0.002 (250 - 200) = 0.1 + 0.1.
        pi.update(250.0);
        assert!((pi.p - 0.2).abs() < 1e-15, "{}", pi.p);
        // 0.2 - 0.001 (250 - 200) + 0.002 (200 - 200) = 0.15; and it stays there while the queue does.
        pi.update(200.0);
        pi.update(200.0);
        assert!((pi.p - 0.15).abs() < 1e-15, "{}", pi.p);
    }

    #[test]
    fn the_bounds_store_nothing() {
        let mut pi = PiMarker::new(0.002, 0.001, 200_000.0, &port_40g());
        // Each update adds 0.8 after the first 2.0: p is 1 and no more.
        (0..100).for_each(|_| pi.update(1_000.0));
        assert!((pi.p - 1.0).abs() < 1e-15);
        // 1 - 0.001 x 800 + 0.002 x (100 - 200) = 0: one short queue is enough.
        pi.update(100.0);
        assert!(pi.p.abs() < 1e-12, "{}", pi.p);
        // Below the reference p falls to 0 and no further: -0.1 per update.
        (0..100).for_each(|_| pi.update(100.0));
        assert!(pi.p.abs() < 1e-15);
        pi.update(300.0);
        assert!((pi.p - 0.3).abs() < 1e-15, "{}", pi.p);
    }

    #[test]
    fn a_share_p_of_the_packets_is_selected() {
        // With equal gains p is b times the queue: 0.05 at 50 KB, 500 of 10,000 with a standard error of 22.
        let mut pi = PiMarker::new(0.001, 0.001, 200_000.0, &port_40g());
        let mut count = |kb: u64| (0..10_000).filter(|_| pi.selects(Bytes::new(kb * 1_000))).count();
        let (at_50_kb, at_0, at_1_mb) = (count(50), count(0), count(1_001));
        assert!((430..570).contains(&at_50_kb), "{at_50_kb}");
        assert_eq!((at_0, at_1_mb), (0, 10_000));
    }
}
