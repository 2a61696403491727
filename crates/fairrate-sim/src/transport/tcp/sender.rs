use fairrate_units::Time;

use super::prr::Prr;
use super::{Acked, LossDetection, RttEstimator, Scoreboard};
use crate::transport::MptcpConfig;

/// How TCP senders and receivers behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Least retransmission timeout.
    pub rto_min: Time,
    /// Largest, and that before the first round-trip time is known.
    pub rto_max: Time,
    /// Granularity of the clock: what four deviations of the round-trip time count as at least (RFC 6298: G).
    pub clock_granularity: Time,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// Probes for lost last segments (TLP, RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// Receivers acknowledge every n-th segment, or after a time; `None`: every segment.
    pub delayed_ack: Option<DelayedAck>,
    /// A connection begins with a handshake of one round trip.
    pub handshake: bool,
    /// Controllers are told when a flow sends again after it was idle for longer than a retransmission timeout.
    pub idle_restart: bool,
    /// During recovery, what is in flight comes down to the window bit by bit (PRR, RFC 9937), for algorithms with windows
    /// of TCP.
    pub prr: bool,
    /// The least window in segments, whatever the algorithm says.
    pub min_window: u32,
    /// Bytes a receiver takes beyond what is acknowledged; `u64::MAX`: any number.
    pub receive_window: u64,
    /// How receivers echo ECN marks.
    pub ecn_echo: EcnEcho,
    /// Over how many paths, and how.
    pub multipath: MptcpConfig,
}

/// Acknowledgments that wait (RFC 1122 section 4.2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// At the latest with this segment in a row.
    pub every: u32,
    /// At the latest after this time.
    pub timeout: Time,
}

/// How receivers echo ECN marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnEcho {
    /// Every acknowledgment tells whether its segments were marked (DCTCP, RFC 8257 section 3.2).
    Accurate,
    /// From a mark on, every acknowledgment tells of it until the sender says that it has reduced (RFC 3168).
    Classic,
}

/// What the timer of a sender asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// Nothing yet.
    Nothing,
    /// Something more may be sent: a probe, or what is newly taken for lost. True if a recovery begins.
    MaySend(bool),
    /// The retransmission timer: all in flight is lost.
    Timeout,
}

/// Why a sender sends less than its window lets it, or nothing new but repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It does not.
    Open,
    /// The controller has reduced the window on a mark, and what is in flight comes down to it (Linux: CWR).
    Reducing,
    /// Losses are repaired.
    Recovery,
    /// What a timeout has taken for lost is repaired.
    AfterTimeout,
}

/// The reliability of one TCP sender: what to send next, what is lost, when to look again. What may be sent is the
/// congestion controller's.
#[derive(Clone, Debug)]
pub struct TcpSender {
    board: Scoreboard,
    rtt: RttEstimator,
    receive_window: u64,
    tail_loss_probe: bool,
    ack_delay_ps: u64,
    idle_restart: bool,
    mss: u64,
    use_prr: bool,
    phase: Phase,
    /// The phase ends when this byte is acknowledged; after a reduction, when one beyond it is.
    phase_end: u64,
    /// While what is in flight comes down to the window, if that is done bit by bit.
    prr: Option<Prr>,
    /// When the last segment was sent; `u64::MAX`: none was.
    last_sent_ps: u64,
    rto_ps: u64,
    probe_ps: u64,
    /// A probe is to be sent, whatever the window.
    probe_due: bool,
    /// A probe is on its way, and nothing has been acknowledged since.
    probed: bool,
    /// When the handshake began; `u64::MAX`: it has not, or has begun again.
    connect_ps: u64,
    /// Whether the handshake is over.
    pub connected: bool,
    /// When the pending timer event comes; `u64::MAX`: none is pending.
    pub scheduled_ps: u64,
    /// Whether the next segment says that the window was reduced (CWR).
    pub tell_reduced: bool,
}

impl TcpSender {
    /// A sender that has sent nothing. Without a handshake its connection stands, and a handshake has measured the round-trip
    /// time of the idle path, `path_rtt`.
    pub fn new(config: &TcpConfig, mss: u64, path_rtt: Time) -> Self {
        let mut tcp = Self {
            board: Scoreboard::new(mss, config.loss_detection),
            rtt: RttEstimator::new(config.rto_min, config.rto_max, config.clock_granularity),
            receive_window: config.receive_window.max(mss),
            tail_loss_probe: config.tail_loss_probe,
            ack_delay_ps: config.delayed_ack.map_or(0, |d| d.timeout.as_ps()),
            idle_restart: config.idle_restart,
            mss,
            use_prr: config.prr,
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

    /// The same for a connection whose first byte has this number.
    pub fn starting_at(config: &TcpConfig, mss: u64, path_rtt: Time, seq: u64) -> Self {
        Self { board: Scoreboard::starting_at(mss, config.loss_detection, seq), ..Self::new(config, mss, path_rtt) }
    }

    /// Losses are found by the retransmission timer alone, which is always `rto`.
    pub fn rely_on_timeouts(&mut self, rto: Time) {
        self.rtt = RttEstimator::new(rto, rto, Time::ZERO);
        self.tail_loss_probe = false;
        self.board.stop_detecting();
    }

    fn note_rtt(&mut self, rtt_ps: u64) {
        self.rtt.sample(rtt_ps);
        self.board.note_rtt(rtt_ps);
    }

    /// Bytes in flight.
    pub fn pipe(&self) -> u64 {
        self.board.pipe()
    }

    /// Smoothed round-trip time in picoseconds, if there is a sample.
    pub fn srtt_ps(&self) -> Option<u64> {
        self.rtt.srtt_ps()
    }

    /// First bytes of the segments that are not known to have arrived.
    pub fn undelivered(&self) -> impl Iterator<Item = u64> + '_ {
        self.board.undelivered()
    }

    /// Whether something waits to be sent again.
    pub fn has_lost(&self) -> bool {
        self.board.has_lost() || self.probe_due
    }

    /// Whether a segment may go: `unacked` bytes are sent and not acknowledged, `has_new` says whether there is new data.
    /// The window must have room for a whole segment (RFC 6675), but one may always be in flight.
    pub fn is_open(&self, cwnd: u64, unacked: u64, has_new: bool) -> bool {
        if !self.connected {
            return false;
        }
        let pipe = self.board.pipe();
        let fits = self.prr.map_or(pipe.saturating_add(self.mss) <= cwnd, |prr| prr.has_budget());
        let may_send_new = has_new && unacked < self.receive_window;
        self.probe_due || ((fits || pipe == 0) && (self.board.has_lost() || may_send_new))
    }

    /// The segment to send again now, if any: lost, or a probe that is not new data.
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
                // What the timer waits for is on its way again (RFC 6675 section 6).
                self.restart_timer(now_ps);
            }
        }
        again
    }

    /// Notes a new segment of `len` bytes; `last`: there is nothing more to send.
    pub fn send_new(&mut self, len: u64, last: bool, now_ps: u64) {
        self.board.send_new(len, last, now_ps);
        self.sent(len, now_ps);
    }

    /// The segment just sent turns out to leave nothing more to send.
    pub fn note_last(&mut self) {
        self.board.note_last();
    }

    /// Retransmission timeouts that have passed since the last segment, if nothing is in flight and flows that were idle
    /// restart; a timeout that ends now has not passed (as Linux counts).
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

    /// RFC 8985 section 7.2: two round trips of silence, and as long as a lone segment's acknowledgment may wait; but no
    /// later than the timeout, whose place the probe then takes.
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

    /// Takes an acknowledgment. True if a recovery begins with it.
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
            // A probe that pacing has held back finds nothing to send again.
            (self.rto_ps, self.probe_due) = (u64::MAX, false);
        } else if 0 < acked.cumulative {
            // RFC 6298 (5.3): what arrives behind a hole does not put its timeout off.
            self.restart_timer(now_ps);
        }
        self.plan_probe(now_ps);
        (acked, begins)
    }

    /// Losses are being repaired.
    fn is_repairing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::AfterTimeout)
    }

    fn leave_phase(&mut self, ack: u64) {
        let is_over = match self.phase {
            Phase::Open => return,
            // The first byte beyond tells the receiver of the reduction.
            Phase::Reducing => self.phase_end < ack || (self.phase_end == ack && self.board.is_empty()),
            Phase::Recovery | Phase::AfterTimeout => self.phase_end <= ack,
        };
        if is_over {
            (self.phase, self.prr) = (Phase::Open, None);
        }
    }

    /// So many bytes of those that were in flight before are newly lost. True if a recovery begins.
    fn note_loss(&mut self, lost: u64, flight: u64, snd_nxt: u64) -> bool {
        let begins = 0 < lost && !self.is_repairing();
        if begins {
            // A reduction on a mark goes on as it has begun.
            if self.phase == Phase::Open {
                self.prr = self.use_prr.then(|| Prr::new(self.mss, flight));
            }
            (self.phase, self.phase_end) = (Phase::Recovery, snd_nxt);
        }
        begins
    }

    /// The controller has reduced the window on a mark that this acknowledgment echoes: what is in flight comes down to it
    /// while acknowledgments arrive (Linux; RFC 9937 section 5 for marks as for losses).
    pub fn on_reduced(&mut self, acked: &Acked, snd_nxt: u64) {
        self.tell_reduced = true;
        if self.use_prr && self.phase == Phase::Open {
            let mut prr = Prr::new(self.mss, self.board.pipe() + acked.delivered);
            prr.on_ack(acked.delivered, is_safe(acked));
            (self.phase, self.phase_end, self.prr) = (Phase::Reducing, snd_nxt, Some(prr));
        }
    }

    /// The controller has set the window: what a recovery may send until the next acknowledgment.
    #[inline]
    pub fn settle(&mut self, cwnd: u64) {
        if let Some(prr) = &mut self.prr {
            prr.settle(cwnd, self.board.pipe());
        }
    }

    /// When [`TcpSender::on_timer`] has something to do, in picoseconds.
    pub fn deadline_ps(&self) -> u64 {
        self.rto_ps.min(self.probe_ps).min(self.board.reorder_ps())
    }

    /// The handshake begins, or begins again: it is given up after a timeout.
    pub fn on_connect(&mut self, now_ps: u64) {
        let is_first = self.rto_ps == u64::MAX;
        self.connect_ps = if is_first { now_ps } else { u64::MAX };
        self.restart_timer(now_ps);
        self.rtt.back_off();
    }

    /// The handshake is over. Its round-trip time is the first sample, unless it took several attempts.
    pub fn on_connected(&mut self, now_ps: u64) {
        (self.connected, self.rto_ps) = (true, u64::MAX);
        if self.connect_ps == u64::MAX {
            self.rtt.start_over();
        } else {
            self.note_rtt(now_ps - self.connect_ps);
        }
    }

    /// Does what is due.
    pub fn on_timer(&mut self, snd_nxt: u64, now_ps: u64) -> Expired {
        if self.rto_ps <= now_ps && now_ps < self.probe_ps {
            return self.time_out(snd_nxt, now_ps);
        }
        if self.board.reorder_ps() <= now_ps {
            let lost = self.board.on_reorder_timer(self.is_repairing(), now_ps);
            let begins = self.note_loss(lost, self.board.pipe() + lost, snd_nxt);
            if let Some(prr) = &mut self.prr {
                prr.on_ack(0, false);
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
        // Losses among what is sent again are no news (RFC 6582 section 4).
        (self.phase, self.phase_end, self.prr) = (Phase::AfterTimeout, snd_nxt, None);
        // What is sent now is a probe itself (RFC 8985 section 7.2: none during recovery).
        (self.probe_ps, self.probe_due, self.probed) = (u64::MAX, false, true);
        Expired::Timeout
    }
}

/// RFC 9937 section 6.2: an acknowledgment of new data in order that shows no further loss.
fn is_safe(acked: &Acked) -> bool {
    0 < acked.cumulative && acked.lost == 0
}

#[cfg(test)]
pub mod tests;
