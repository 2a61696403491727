use fairrate_units::Time;

use super::prr::{MarkReduction, Prr};
use super::{Acked, LossDetection, RttEstimator, Scoreboard};
use crate::transport::MptcpConfig;

/// Parameters of TCP senders and receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Smallest retransmission timeout.
    pub rto_min: Time,
    /// Largest retransmission timeout, and the one before the first round-trip time is measured.
    pub rto_max: Time,
    /// Granularity of the clock: lower bound of four deviations of the round-trip time (RFC 6298: G).
    pub clock_granularity: Time,
    /// Method of loss detection.
    pub loss_detection: LossDetection,
    /// Set when senders probe for lost last segments (TLP, RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// Delayed acknowledgments: receivers acknowledge every n-th segment, or after a time; `None`: every segment.
    pub delayed_ack: Option<DelayedAck>,
    /// Set when a connection begins with a handshake of one round trip.
    pub handshake: bool,
    /// Set when controllers are informed that a flow sends again after it was idle for longer than a retransmission
    /// timeout.
    pub idle_restart: bool,
    /// Set when, during recovery, the bytes in flight fall to the window gradually (PRR, RFC 9937), for algorithms with
    /// windows of TCP.
    pub prr: bool,
    /// Arithmetic of PRR after a mark.
    pub mark_reduction: MarkReduction,
    /// The smallest window in segments, whatever the algorithm decides.
    pub min_window: u32,
    /// Number of bytes a receiver takes beyond what is acknowledged; `u64::MAX`: any number.
    pub receive_window: u64,
    /// Method by which receivers echo ECN marks.
    pub ecn_echo: EcnEcho,
    /// Number of paths of a flow, and the rules of their use.
    pub multipath: MptcpConfig,
}

/// Limits of delayed acknowledgments (RFC 1122 section 4.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Largest number of segments in one acknowledgment.
    pub every: u32,
    /// Longest delay of an acknowledgment.
    pub timeout: Time,
}

/// The methods by which receivers echo ECN marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnEcho {
    /// Echo in every acknowledgment of whether its segments were marked (DCTCP, RFC 8257 section 3.2).
    Accurate,
    /// Echo of a mark in every acknowledgment until the sender signals that it has reduced its window (RFC 3168).
    Classic,
}

/// The result of a sender's timer event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// No timer that is due.
    Nothing,
    /// Permission to send: a probe, or data now considered lost. The field is `true` if a recovery begins.
    MaySend(bool),
    /// Expiry of the retransmission timer: everything in flight is considered lost.
    Timeout,
}

/// The state in which a sender sends less than its window allows, or repairs losses before new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No restriction.
    Open,
    /// Reduction after a mark: the bytes in flight fall to the window that the controller has set (Linux: CWR).
    Reducing,
    /// Repair of losses.
    Recovery,
    /// Repair of the losses found by a timeout.
    AfterTimeout,
}

/// The reliability of one TCP sender: the next segment to send, lost segments, timers. The congestion controller
/// decides how much may be sent.
#[derive(Clone, Debug)]
pub struct TcpSender {
    board: Scoreboard,
    rtt: RttEstimator,
    receive_window: u64,
    tail_loss_probe: bool,
    ack_delay_ps: u64,
    idle_restart: bool,
    mss: u64,
    /// The arithmetic of PRR after a mark; `None`: no PRR.
    use_prr: Option<MarkReduction>,
    phase: Phase,
    /// The byte whose acknowledgment ends the phase; after a reduction, a later byte must be acknowledged.
    phase_end: u64,
    /// State of PRR while the bytes in flight fall to the window gradually.
    prr: Option<Prr>,
    /// Time at which the last segment was sent; `u64::MAX` if none was.
    last_sent_ps: u64,
    rto_ps: u64,
    probe_ps: u64,
    /// Set when a probe must be sent, whatever the window.
    probe_due: bool,
    /// Set when a probe has been sent and nothing has been acknowledged since.
    probed: bool,
    /// Time at which the handshake began; `u64::MAX` if it has not begun, or was repeated.
    connect_ps: u64,
    /// `true` if the handshake is complete.
    pub connected: bool,
    /// Time of the pending timer event; `u64::MAX` if none is pending.
    pub scheduled_ps: u64,
    /// Set when the next segment must signal that the window was reduced (CWR).
    pub tell_reduced: bool,
}

impl TcpSender {
    /// Returns a sender that has sent nothing. Without a handshake, its connection is established, and the round-trip
    /// time of the idle path, `path_rtt`, is its first sample.
    pub fn new(config: &TcpConfig, mss: u64, path_rtt: Time) -> Self {
        let mut tcp = Self {
            board: Scoreboard::new(mss, config.loss_detection),
            rtt: RttEstimator::new(config.rto_min, config.rto_max, config.clock_granularity),
            receive_window: config.receive_window.max(mss),
            tail_loss_probe: config.tail_loss_probe,
            ack_delay_ps: config.delayed_ack.map_or(0, |d| d.timeout.as_ps()),
            idle_restart: config.idle_restart,
            mss,
            use_prr: config.prr.then_some(config.mark_reduction),
            phase: Phase::Open,
            phase_end: 0,
            prr: None,
            last_sent_ps: u64::MAX,
            rto_ps: u64::MAX,
            probe_ps: u64::MAX,
            probe_due: false,
            probed: false,
            connect_ps: u64::MAX,
            connected: !config.handshake,
            scheduled_ps: u64::MAX,
            tell_reduced: false,
        };
        if tcp.connected {
            tcp.note_rtt(path_rtt.as_ps());
        }
        tcp
    }

    /// Returns a sender like [`TcpSender::new`] whose first byte has number `seq`.
    pub fn starting_at(config: &TcpConfig, mss: u64, path_rtt: Time, seq: u64) -> Self {
        Self { board: Scoreboard::starting_at(mss, config.loss_detection, seq), ..Self::new(config, mss, path_rtt) }
    }

    /// Switches loss detection off except for the retransmission timer, whose timeout is always `rto`.
    pub fn rely_on_timeouts(&mut self, rto: Time) {
        self.rtt = RttEstimator::new(rto, rto, Time::ZERO);
        self.tail_loss_probe = false;
        self.board.stop_detecting();
    }

    fn note_rtt(&mut self, rtt_ps: u64) {
        self.rtt.sample(rtt_ps);
        self.board.note_rtt(rtt_ps);
    }

    /// Returns the bytes in flight.
    pub fn pipe(&self) -> u64 {
        self.board.pipe()
    }

    /// Returns the smoothed round-trip time in picoseconds, if there is a sample.
    pub fn srtt_ps(&self) -> Option<u64> {
        self.rtt.srtt_ps()
    }

    /// Returns the first bytes of the segments not reported as arrived.
    pub fn undelivered(&self) -> impl Iterator<Item = u64> + '_ {
        self.board.undelivered()
    }

    /// Returns `true` if a segment waits to be sent again, or a probe is due.
    pub fn has_lost(&self) -> bool {
        self.board.has_lost() || self.probe_due
    }

    /// Returns `true` if a segment may be sent, with `unacked` bytes sent and not acknowledged; `has_new` is set if
    /// there is new data. The window must have room for a whole segment (RFC 6675), but one segment may always be in
    /// flight.
    pub fn is_open(&self, cwnd: u64, unacked: u64, has_new: bool) -> bool {
        if !self.connected {
            return false;
        }
        let pipe = self.board.pipe();
        let fits = self.prr.map_or(pipe.saturating_add(self.mss) <= cwnd, |prr| prr.has_budget());
        let may_send_new = has_new && unacked < self.receive_window;
        self.probe_due || ((fits || pipe == 0) && (self.board.has_lost() || may_send_new))
    }

    /// Returns the segment to send again now, if any: a lost one, or a probe that is not new data.
    pub fn resend(&mut self, now_ps: u64, has_new: bool) -> Option<(u64, u64)> {
        let probe = std::mem::take(&mut self.probe_due);
        self.probed |= probe;
        let again = match self.board.send_lost(now_ps) {
            None if probe && !has_new => self.board.send_probe(now_ps),
            again => again,
        };
        if let Some((seq, len)) = again {
            self.sent(len, now_ps);
            if seq == self.board.una() {
                // The segment on which the timer waits is sent again (RFC 6675 section 6).
                self.restart_timer(now_ps);
            }
        }
        again
    }

    /// Records a new segment of `len` bytes; `last` is set if there is no more data to send.
    pub fn send_new(&mut self, len: u64, last: bool, now_ps: u64) {
        self.board.send_new(len, last, now_ps);
        self.sent(len, now_ps);
    }

    /// Records that after the segment just sent there is no more data to send.
    pub fn note_last(&mut self) {
        self.board.note_last();
    }

    /// Returns the number of retransmission timeouts that have passed since the last segment, if nothing is in flight
    /// and idle flows restart; otherwise 0. A timeout that ends exactly now is not counted (as in Linux).
    pub fn idle_timeouts(&self, now_ps: u64) -> u32 {
        if !self.idle_restart || !self.board.is_empty() {
            return 0;
        }
        let idle_ps = now_ps.saturating_sub(self.last_sent_ps);
        u32::try_from(idle_ps.saturating_sub(1) / self.rtt.rto_ps()).unwrap_or(u32::MAX)
    }

    fn sent(&mut self, len: u64, now_ps: u64) {
        self.last_sent_ps = now_ps;
        if let Some(prr) = &mut self.prr {
            prr.on_sent(len);
        }
        if self.rto_ps == u64::MAX {
            self.restart_timer(now_ps);
        }
        self.plan_probe(now_ps);
    }

    fn restart_timer(&mut self, now_ps: u64) {
        self.rto_ps = now_ps.saturating_add(self.rtt.rto_ps());
    }

    /// Plans the probe of RFC 8985 section 7.2: after two silent round trips, plus the longest delay of a lone
    /// segment's acknowledgment, but not after the timeout, which the probe then replaces.
    fn plan_probe(&mut self, now_ps: u64) {
        self.probe_ps = u64::MAX;
        let quiet = matches!(self.phase, Phase::Open | Phase::Reducing)
            && !self.board.has_lost()
            && !self.board.has_sacked()
            && !self.board.is_empty();
        let Some(srtt) = self.rtt.srtt_ps().filter(|_| self.tail_loss_probe && !self.probed && quiet) else { return };
        let ack_delay_ps = if self.board.is_single() { self.ack_delay_ps } else { 0 };
        self.probe_ps = now_ps.saturating_add(2 * srtt).saturating_add(ack_delay_ps).min(self.rto_ps);
    }

    /// Takes an acknowledgment; returns its effect, and `true` if a recovery begins.
    pub fn on_ack(&mut self, ack: u64, sacks: &[(u64, u64)], snd_nxt: u64, now_ps: u64) -> (Acked, bool) {
        let acked = self.board.on_ack(ack, sacks, self.is_repairing(), now_ps);
        if let Some(rtt_ps) = acked.rtt_ps {
            self.rtt.sample(rtt_ps);
        }
        self.leave_phase(ack);
        if 0 < acked.delivered {
            self.probed = false;
        }
        let flight = self.board.pipe() + acked.delivered + acked.lost;
        let begins = self.note_loss(acked.lost, flight, snd_nxt);
        if let Some(prr) = &mut self.prr {
            prr.on_ack(acked.delivered, is_safe(&acked));
        }
        if self.board.is_empty() {
            // The probe that pacing has delayed has no segment to send again.
            (self.rto_ps, self.probe_due) = (u64::MAX, false);
        } else if 0 < acked.cumulative {
            // RFC 6298 (5.3): data that arrives behind a hole does not postpone the hole's timeout.
            self.restart_timer(now_ps);
        }
        self.plan_probe(now_ps);
        (acked, begins)
    }

    /// Returns `true` while losses are being repaired.
    fn is_repairing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::AfterTimeout)
    }

    fn leave_phase(&mut self, ack: u64) {
        let is_over = match self.phase {
            Phase::Open => return,
            // The first byte beyond `phase_end` signals the reduction to the receiver.
            Phase::Reducing => self.phase_end < ack || (self.phase_end == ack && self.board.is_empty()),
            Phase::Recovery | Phase::AfterTimeout => self.phase_end <= ack,
        };
        if is_over {
            (self.phase, self.prr) = (Phase::Open, None);
        }
    }

    /// Records `lost` bytes newly found lost, with `flight` bytes in flight before; returns `true` if a recovery
    /// begins.
    fn note_loss(&mut self, lost: u64, flight: u64, snd_nxt: u64) -> bool {
        let begins = 0 < lost && !self.is_repairing();
        if begins {
            // A reduction after a mark continues with its own PRR.
            if self.phase == Phase::Open {
                self.prr = self.use_prr.map(|_| Prr::new(self.mss, flight));
            }
            (self.phase, self.phase_end) = (Phase::Recovery, snd_nxt);
        }
        begins
    }

    /// Starts a reduction after the controller has reduced the window on a mark that this acknowledgment echoes: the
    /// bytes in flight fall to the window while acknowledgments arrive (Linux; RFC 9937 section 5 for marks as for
    /// losses).
    pub fn on_reduced(&mut self, acked: &Acked, snd_nxt: u64) {
        self.tell_reduced = true;
        if let Some(form) = self.use_prr.filter(|_| self.phase == Phase::Open) {
            let (pipe, safe) = (self.board.pipe(), is_safe(acked));
            let prr = Prr::after_mark(self.mss, pipe, acked.delivered, safe, form);
            (self.phase, self.phase_end, self.prr) = (Phase::Reducing, snd_nxt, Some(prr));
        }
    }

    /// Applies the window the controller has set: sets how much a recovery may send until the next acknowledgment.
    #[inline]
    pub fn settle(&mut self, cwnd: u64) {
        if let Some(prr) = &mut self.prr {
            prr.settle(cwnd, self.board.pipe());
        }
    }

    /// Returns the next time at which [`TcpSender::on_timer`] has work, in picoseconds.
    pub fn deadline_ps(&self) -> u64 {
        self.rto_ps.min(self.probe_ps).min(self.board.reorder_ps())
    }

    /// Starts the handshake, or repeats it; an attempt ends after a timeout.
    pub fn on_connect(&mut self, now_ps: u64) {
        let is_first = self.rto_ps == u64::MAX;
        self.connect_ps = if is_first { now_ps } else { u64::MAX };
        self.restart_timer(now_ps);
        self.rtt.back_off();
    }

    /// Completes the handshake. Its round-trip time is the first sample, unless it took several attempts.
    pub fn on_connected(&mut self, now_ps: u64) {
        (self.connected, self.rto_ps) = (true, u64::MAX);
        if self.connect_ps == u64::MAX {
            self.rtt.start_over();
        } else {
            self.note_rtt(now_ps - self.connect_ps);
        }
    }

    /// Runs the timer that is due, if any; returns its result.
    pub fn on_timer(&mut self, snd_nxt: u64, now_ps: u64) -> Expired {
        if self.rto_ps <= now_ps && now_ps < self.probe_ps {
            return self.time_out(snd_nxt, now_ps);
        }
        if self.board.reorder_ps() <= now_ps {
            let lost = self.board.on_reorder_timer(self.is_repairing(), now_ps);
            let begins = self.note_loss(lost, self.board.pipe() + lost, snd_nxt);
            if let Some(prr) = &mut self.prr {
                prr.on_loss();
            }
            self.plan_probe(now_ps);
            return Expired::MaySend(begins);
        }
        if self.probe_ps <= now_ps {
            (self.probe_ps, self.probe_due) = (u64::MAX, true);
            // RFC 8985 section 7.3: the timeout counts from the probe on.
            self.restart_timer(now_ps);
            return Expired::MaySend(false);
        }
        Expired::Nothing
    }

    fn time_out(&mut self, snd_nxt: u64, now_ps: u64) -> Expired {
        self.rtt.back_off();
        self.board.on_timeout();
        self.restart_timer(now_ps);
        // Losses among segments sent again do not start a recovery (RFC 6582 section 4).
        (self.phase, self.phase_end, self.prr) = (Phase::AfterTimeout, snd_nxt, None);
        // The segments sent now take the place of probes (RFC 8985 section 7.2: none during recovery).
        (self.probe_ps, self.probe_due, self.probed) = (u64::MAX, false, true);
        Expired::Timeout
    }
}

/// Returns `true` if an acknowledgment is safe (RFC 9937 section 6.2): for new data in order, with no further loss.
fn is_safe(acked: &Acked) -> bool {
    0 < acked.cumulative && acked.lost == 0
}

#[cfg(test)]
pub mod tests;
