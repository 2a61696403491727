use super::{DelayedAck, EcnEcho, TcpConfig};

/// Largest number of ranges in a selective acknowledgment (RFC 2018: three beside a timestamp).
pub const MAX_SACKS: usize = 3;

/// The fields of a segment that its acknowledgment repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Time at which the segment was sent, in picoseconds.
    pub sent_ps: u64,
    /// Its first byte.
    pub seq: u64,
    /// Its payload.
    pub payload: u16,
    /// The sender's window at that time.
    pub cwnd_at_send: u32,
}

/// A segment that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub segment: Answered,
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
    /// Number of segments since the last acknowledgment, and the latest segment.
    pending: u32,
    latest: Option<Answered>,
    /// `true` if the pending segments were marked (accurate), or a mark is not yet answered by a reduction (classic).
    echo: bool,
    /// Latest time at which the pending segments are acknowledged, in picoseconds; `u64::MAX` if none are pending.
    pub due_ps: u64,
}

impl Default for TcpReceiver {
    fn default() -> Self {
        Self { pending: 0, latest: None, echo: false, due_ps: u64::MAX }
    }
}

/// The acknowledgments to send for an arriving segment, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replies {
    /// The latest of the earlier segments, if an acknowledgment of these alone is sent first because the mark changes.
    /// Its mark is the opposite of `echo`.
    pub before: Option<Answered>,
    /// `true` if an acknowledgment of this segment is sent now.
    pub now: bool,
    /// Set when that acknowledgment echoes a mark.
    pub echo: bool,
}

impl TcpReceiver {
    /// Takes a segment.
    pub fn on_data(&mut self, config: &TcpConfig, arrived: Arrived, now_ps: u64) -> Replies {
        let Arrived { segment, marked, reduced, in_order } = arrived;
        let mut replies = Replies::default();
        match config.ecn_echo {
            EcnEcho::Classic => self.echo = marked || (self.echo && !reduced),
            EcnEcho::Accurate => {
                // RFC 8257 section 3.2: all segments of one acknowledgment have the same mark.
                if marked != self.echo && 0 < self.pending {
                    replies.before = self.latest;
                    self.pending = 0;
                }
                self.echo = marked;
            }
        }
        replies.echo = self.echo;
        self.pending += 1;
        self.latest = Some(segment);
        match config.delayed_ack {
            Some(DelayedAck { every, timeout }) if in_order && self.pending < every => {
                if self.pending == 1 {
                    self.due_ps = now_ps.saturating_add(timeout.as_ps());
                }
            }
            _ => {
                replies.now = true;
                self.acknowledged();
            }
        }
        replies
    }

    /// Returns `true` if segments wait for an acknowledgment that is due.
    pub fn is_due(&self, now_ps: u64) -> bool {
        0 < self.pending && self.due_ps <= now_ps
    }

    /// Acknowledges the pending segments now, if any; returns the latest and the mark to echo.
    pub fn take(&mut self) -> Option<(Answered, bool)> {
        let latest = self.latest.filter(|_| 0 < self.pending)?;
        self.acknowledged();
        Some((latest, self.echo))
    }

    fn acknowledged(&mut self) {
        (self.pending, self.due_ps) = (0, u64::MAX);
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

    fn segment(n: u64) -> Answered {
        Answered { sent_ps: n, seq: 1_000 * n, payload: 1_000, cwnd_at_send: 0 }
    }

    fn plain(n: u64) -> Arrived {
        Arrived { segment: segment(n), marked: false, reduced: false, in_order: true }
    }

    #[test]
    fn acknowledgments_wait_for_a_second_segment_a_hole_or_the_timer() {
        let delayed = DelayedAck { every: 2, timeout: Time::from_us(5) };
        let config = config(Some(delayed), EcnEcho::Accurate);
        let mut rx = TcpReceiver::default();
        let data = |rx: &mut TcpReceiver, n, in_order| rx.on_data(&config, Arrived { in_order, ..plain(n) }, n).now;
        assert_eq!([data(&mut rx, 0, true), data(&mut rx, 1, true), data(&mut rx, 2, true)], [false, true, false]);
        assert!(data(&mut rx, 4, false));
        assert!(!data(&mut rx, 5, true));
        assert!(!rx.is_due(5_000_004) && rx.is_due(5_000_005));
        assert_eq!(rx.take(), Some((segment(5), false)));
        assert!(!rx.is_due(u64::MAX - 1) && rx.take().is_none());
    }

    #[test]
    fn a_change_of_marks_is_told_at_once() {
        let delayed = DelayedAck { every: 4, timeout: Time::from_us(5) };
        let config = config(Some(delayed), EcnEcho::Accurate);
        let mut rx = TcpReceiver::default();
        rx.on_data(&config, plain(0), 0);
        let replies = rx.on_data(&config, Arrived { marked: true, ..plain(1) }, 1);
        assert_eq!(replies, Replies { before: Some(segment(0)), now: false, echo: true });
        assert_eq!(rx.take(), Some((segment(1), true)));
    }

    #[test]
    fn a_classic_echo_lasts_until_the_sender_has_reduced() {
        let config = config(None, EcnEcho::Classic);
        let mut rx = TcpReceiver::default();
        let mut echo = |n, marked, reduced| rx.on_data(&config, Arrived { marked, reduced, ..plain(n) }, n).echo;
        assert!(!echo(0, false, false) && echo(1, true, false) && echo(2, false, false));
        assert!(!echo(3, false, true) && !echo(4, false, false));
        assert!(echo(5, true, true), "a mark on the segment that tells of the reduction counts");
    }
}
