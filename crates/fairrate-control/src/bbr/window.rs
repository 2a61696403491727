//! BBR's window: the model's window, its reduction by losses during a recovery, and room for aggregation (Linux's
//! `tcp_bbr.c`).

use super::{MIN_WINDOW, Mode, Model, Sample};
use crate::controller::Ack;

/// Largest compensation for aggregation, in seconds of the bandwidth (Linux: 100 ms).
const AGGREGATION_MOST_S: f64 = 0.1;
/// Number of packets after which an epoch of aggregation restarts (Linux: `bbr_ack_epoch_acked_reset_thresh`).
const AGGREGATION_EPOCH: f64 = 1_048_576.0;

impl Model {
    /// Saves the window to restore after a recovery or PROBE_RTT.
    pub(super) fn save_cwnd(&mut self) {
        let is_whole = self.repair.is_none() && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_whole { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// Reduces the window by losses, and restores it at the end of a recovery. Returns `true` during packet
    /// conservation.
    fn repair(&mut self, ack: &Ack<'_>, s: &Sample) -> bool {
        if 0.0 < s.lost {
            // An acknowledgment should release at most twice what it delivers.
            self.cwnd = (self.cwnd - s.lost).max(self.mss);
        }
        let Some(mut repair) = self.repair else { return false };
        if repair.is_new {
            // The first round of the recovery begins now.
            self.round.end = self.round_end(ack);
            self.cwnd = self.in_flight + s.acked;
            (repair.is_new, repair.conserves) = (false, true);
        } else if repair.until <= ack.ack_seq {
            self.repair = None;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            return false;
        } else if s.round_begins {
            repair.conserves = false;
        }
        if repair.conserves {
            self.cwnd = self.cwnd.max(self.in_flight + s.acked);
        }
        self.repair = Some(repair);
        repair.conserves
    }

    pub(super) fn set_cwnd(&mut self, ack: &Ack<'_>, s: &Sample) {
        if 0.0 < s.acked && !self.repair(ack, s) {
            let target = self.inflight(self.cwnd_gain()) + self.aggregation_room();
            let first = f64::from(self.config.initial_window) * self.mss;
            if self.pipe_is_full {
                self.cwnd = (self.cwnd + s.acked).min(target);
            } else if self.cwnd < target || (self.delivered as f64) < first {
                self.cwnd += s.acked;
            }
            self.cwnd = self.cwnd.max(MIN_WINDOW * self.mss);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_WINDOW * self.mss);
        }
    }

    /// Returns the room in the window for aggregated acknowledgments, in bytes, once the pipe is full.
    pub(super) fn aggregation_room(&self) -> f64 {
        if !self.pipe_is_full {
            return 0.0;
        }
        let most = self.bandwidth.max() * AGGREGATION_MOST_S;
        (self.config.extra_acked_gain * self.aggregation.max()).min(most)
    }

    pub(super) fn update_aggregation(&mut self, s: &Sample) {
        if s.acked <= 0.0 || self.config.extra_acked_gain <= 0.0 {
            return;
        }
        if s.round_begins {
            self.aggregation.begin_round();
        }
        self.aggregation.take(s.now, s.acked, self.bandwidth.max(), self.cwnd, AGGREGATION_EPOCH * self.mss);
    }
}
