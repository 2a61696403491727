use super::{DelayedAck, EcnEcho, TcpConfig};
use crate::ids::PacketIdx;

/// Largest number of ranges in a selective acknowledgment (RFC 2018: three beside a timestamp).
pub const MAX_SACKS: usize = 3;

/// A segment that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub segment: PacketIdx,
    /// Set if it has experienced congestion.
    pub marked: bool,
    /// Set if it signals that its sender has reduced its window.
    pub reduced: bool,
    /// Set if it was the expected one and no hole remains.
    pub in_order: bool,
}

/// A receiver's state of delayed acknowledgments and ECN echo.
#[derive(Clone, Copy, Debug)]
pub struct TcpReceiver {
    /// Number of segments since the last acknowledgment.
    pending: u32,
    /// The latest of them, which is kept, as it is what their acknowledgment is made of, with its header and telemetry;
    /// [`PacketIdx::NONE`] if there are none.
    latest: PacketIdx,
    /// `true` if the pending segments were marked (accurate), or a mark is not yet answered by a reduction (classic).
    echo: bool,
    /// Latest time at which the pending segments are acknowledged, in picoseconds; `u64::MAX` if none are pending.
    pub due_ps: u64,
}

impl Default for TcpReceiver {
    fn default() -> Self {
        Self { pending: 0, latest: PacketIdx::NONE, echo: false, due_ps: u64::MAX }
    }
}

/// The acknowledgments to send for an arriving segment, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replies {
    /// The latest of the earlier segments, if an acknowledgment of these alone is sent first because the mark changes.
    /// Its mark is the opposite of `echo`.
    pub before: Option<PacketIdx>,
    /// The latest of the earlier segments, if it is no longer kept because an acknowledgment of this one is also its.
    pub superseded: Option<PacketIdx>,
    /// `true` if an acknowledgment of this segment is sent now, otherwise the segment is kept.
    pub now: bool,
    /// Set when that acknowledgment echoes a mark.
    pub echo: bool,
}

impl TcpReceiver {
    /// Takes a segment.
    pub fn on_data(&mut self, config: &TcpConfig, arrived: Arrived, now_ps: u64) -> Replies {
        let Arrived { segment, marked, reduced, in_order } = arrived;
        let earlier = Some(std::mem::replace(&mut self.latest, segment)).filter(|_| 0 < self.pending);
        // RFC 8257 section 3.2: all segments of one acknowledgment have the same mark.
        let is_change = config.ecn_echo == EcnEcho::Accurate && marked != self.echo && earlier.is_some();
        let (before, superseded) = if is_change { (earlier, None) } else { (None, earlier) };
        self.echo = match config.ecn_echo {
            EcnEcho::Classic => marked || (self.echo && !reduced),
            EcnEcho::Accurate => marked,
        };
        self.pending = if is_change { 1 } else { self.pending + 1 };
        let now = match config.delayed_ack {
            Some(DelayedAck { every, timeout }) if in_order && self.pending < every => {
                if self.pending == 1 {
                    self.due_ps = now_ps.saturating_add(timeout.as_ps());
                }
                false
            }
            _ => {
                self.acknowledged();
                true
            }
        };
        Replies { before, superseded, now, echo: self.echo }
    }

    /// Returns `true` if segments wait for an acknowledgment that is due.
    pub fn is_due(&self, now_ps: u64) -> bool {
        0 < self.pending && self.due_ps <= now_ps
    }

    /// Acknowledges the pending segments now, if any; returns the latest and the mark to echo.
    pub fn take(&mut self) -> Option<(PacketIdx, bool)> {
        if self.pending == 0 {
            return None;
        }
        let latest = self.latest;
        self.acknowledged();
        Some((latest, self.echo))
    }

    fn acknowledged(&mut self) {
        (self.pending, self.latest, self.due_ps) = (0, PacketIdx::NONE, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Time;

    use super::*;
    use crate::transport::MptcpConfig;

    fn config(delayed_ack: Option<DelayedAck>, ecn_echo: EcnEcho) -> TcpConfig {
        TcpConfig {
            rto_min: Time::from_us(100),
            rto_max: Time::from_ms(10),
            clock_granularity: Time::from_us(1),
            loss_detection: crate::transport::LossDetection::Rack,
            tail_loss_probe: true,
            delayed_ack,
            handshake: false,
            idle_restart: true,
            prr: true,
            mark_reduction: crate::transport::MarkReduction::Rfc9937,
            min_window: 0,
            receive_window: u64::MAX,
            ecn_echo,
            multipath: MptcpConfig::SINGLE,
        }
    }

    fn plain(n: u32) -> Arrived {
        Arrived { segment: PacketIdx(n), marked: false, reduced: false, in_order: true }
    }

    #[test]
    fn acknowledgments_wait_for_a_second_segment_a_hole_or_the_timer() {
        let delayed = DelayedAck { every: 2, timeout: Time::from_us(5) };
        let config = config(Some(delayed), EcnEcho::Accurate);
        let mut rx = TcpReceiver::default();
        let data =
            |rx: &mut TcpReceiver, n, in_order| rx.on_data(&config, Arrived { in_order, ..plain(n) }, u64::from(n)).now;
        assert_eq!([data(&mut rx, 0, true), data(&mut rx, 1, true), data(&mut rx, 2, true)], [false, true, false]);
        assert!(data(&mut rx, 4, false));
        assert!(!data(&mut rx, 5, true));
        assert!(!rx.is_due(5_000_004) && rx.is_due(5_000_005));
        assert_eq!(rx.take(), Some((PacketIdx(5), false)));
        assert!(!rx.is_due(u64::MAX - 1) && rx.take().is_none());
    }

    #[test]
    fn a_change_of_marks_is_told_at_once() {
        let delayed = DelayedAck { every: 4, timeout: Time::from_us(5) };
        let config = config(Some(delayed), EcnEcho::Accurate);
        let mut rx = TcpReceiver::default();
        rx.on_data(&config, plain(0), 0);
        let replies = rx.on_data(&config, Arrived { marked: true, ..plain(1) }, 1);
        assert_eq!(replies, Replies { before: Some(PacketIdx(0)), superseded: None, now: false, echo: true });
        assert_eq!(rx.take(), Some((PacketIdx(1), true)));
    }

    #[test]
    fn a_segment_is_kept_until_it_is_answered_or_superseded() {
        let delayed = DelayedAck { every: 3, timeout: Time::from_us(5) };
        let config = config(Some(delayed), EcnEcho::Accurate);
        let mut rx = TcpReceiver::default();
        let mut replies = |n| {
            let Replies { superseded, now, .. } = rx.on_data(&config, plain(n), 0);
            (superseded.map(|packet| packet.0), now)
        };
        let got = [replies(0), replies(1), replies(2), replies(3)];
        assert_eq!(got, [(None, false), (Some(0), false), (Some(1), true), (None, false)]);
    }

    #[test]
    fn a_classic_echo_lasts_until_the_sender_has_reduced() {
        let config = config(None, EcnEcho::Classic);
        let mut rx = TcpReceiver::default();
        let mut echo =
            |n, marked, reduced| rx.on_data(&config, Arrived { marked, reduced, ..plain(n) }, u64::from(n)).echo;
        assert!(!echo(0, false, false) && echo(1, true, false) && echo(2, false, false));
        assert!(!echo(3, false, true) && !echo(4, false, false));
        assert!(echo(5, true, true), "a mark on the segment that tells of the reduction counts");
    }
}
