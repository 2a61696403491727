use fairrate_units::Time;

use super::prr::Prr;
use super::{Acked, RttEstimator, Scoreboard};
use crate::transport::MptcpConfig;

/// How TCP senders and receivers behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Least retransmission timeout.
    pub rto_min: Time,
    /// Largest, and that before the first round-trip time is known.
    pub rto_max: Time,
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
    /// While recovering, if it is used.
    prr: Option<Prr>,
    /// When the last segment was sent; `u64::MAX`: none was.
    last_sent_ps: u64,
    /// Recovery ends when this byte is acknowledged.
    recover: Option<u64>,
    rto_ps: u64,
    probe_ps: u64,
    /// A probe is to be sent, whatever the window.
    probe_due: bool,
    /// A probe is on its way, and nothing has been acknowledged since.
    probed: bool,
    /// Whether the handshake is over.
    pub connected: bool,
    /// When the pending timer event comes; `u64::MAX`: none is pending.
    pub scheduled_ps: u64,
    /// Whether the next segment says that the window was reduced (CWR).
    pub tell_reduced: bool,
}

impl TcpSender {
    /// A sender that has sent nothing.
    pub fn new(config: &TcpConfig, mss: u64) -> Self {
        Self {
            board: Scoreboard::new(mss),
            rtt: RttEstimator::new(config.rto_min, config.rto_max),
            receive_window: config.receive_window.max(mss),
            tail_loss_probe: config.tail_loss_probe,
            ack_delay_ps: config.delayed_ack.map_or(0, |d| d.timeout.as_ps()),
            idle_restart: config.idle_restart,
            mss,
            use_prr: config.prr,
            prr: None,
            last_sent_ps: u64::MAX,
            recover: None,
            rto_ps: u64::MAX,
            probe_ps: u64::MAX,
            probe_due: false,
            probed: false,
            connected: !config.handshake,
            scheduled_ps: u64::MAX,
            tell_reduced: false,
        }
    }

    /// The same for a connection whose first byte has this number.
    pub fn starting_at(config: &TcpConfig, mss: u64, seq: u64) -> Self {
        Self { board: Scoreboard::starting_at(mss, seq), ..Self::new(config, mss) }
    }

    /// Losses are found by the retransmission timer alone, which is always `rto`.
    pub fn rely_on_timeouts(&mut self, rto: Time) {
        self.rtt = RttEstimator::new(rto, rto);
        self.tail_loss_probe = false;
        self.board.stop_detecting();
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
    /// At least one segment always may be in flight.
    pub fn is_open(&self, cwnd: u64, unacked: u64, has_new: bool) -> bool {
        if !self.connected {
            return false;
        }
        let pipe = self.board.pipe();
        let room = self.prr.map_or(pipe < cwnd, |prr| prr.has_budget()) || pipe == 0;
        let may_send_new = has_new && unacked < self.receive_window;
        self.probe_due || (room && (self.board.has_lost() || may_send_new))
    }

    /// The segment to send again now, if any: lost, or a probe that is not new data.
    pub fn resend(&mut self, now_ps: u64, has_new: bool) -> Option<(u64, u64)> {
        let probe = std::mem::take(&mut self.probe_due);
        self.probed |= probe;
        let again = match self.board.send_lost(now_ps) {
            None if probe && !has_new => self.board.send_probe(now_ps),
            again => again,
        };
        if let Some((_, len)) = again {
            self.sent(len, now_ps);
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
            self.rto_ps = now_ps.saturating_add(self.rtt.rto_ps());
        }
        self.plan_probe(now_ps);
    }

    /// RFC 8985 section 7.2: two round trips of silence, and as long as a lone segment's acknowledgment may wait.
    fn plan_probe(&mut self, now_ps: u64) {
        self.probe_ps = u64::MAX;
        let quiet = self.recover.is_none() && !self.board.has_lost() && !self.probed && !self.board.is_empty();
        let Some(srtt) = self.rtt.srtt_ps().filter(|_| self.tail_loss_probe && quiet) else { return };
        let at = now_ps.saturating_add(2 * srtt).saturating_add(self.ack_delay_ps);
        if at < self.rto_ps {
            self.probe_ps = at;
        }
    }

    /// Takes an acknowledgment. True if a recovery begins with it.
    pub fn on_ack(&mut self, ack: u64, sacks: &[(u64, u64)], snd_nxt: u64, now_ps: u64) -> (Acked, bool) {
        let acked = self.board.on_ack(ack, sacks, now_ps);
        if let Some(rtt_ps) = acked.rtt_ps {
            self.rtt.sample(rtt_ps);
        }
        if self.recover.is_some_and(|recover| recover <= ack) {
            (self.recover, self.prr) = (None, None);
        }
        if 0 < acked.delivered {
            self.probed = false;
        }
        let flight = self.board.pipe() + acked.delivered + acked.lost;
        let begins = self.note_loss(acked.lost, flight, snd_nxt);
        if let Some(prr) = &mut self.prr {
            prr.on_ack(acked.delivered, 0 < acked.cumulative && acked.lost == 0);
        }
        if self.board.is_empty() {
            // A probe that pacing has held back finds nothing to send again.
            (self.rto_ps, self.probe_due) = (u64::MAX, false);
        } else if 0 < acked.cumulative || (0 < acked.delivered && self.board.detects()) {
            // Where nothing else finds losses, what arrives behind one must not put its timeout off.
            self.rto_ps = now_ps.saturating_add(self.rtt.rto_ps());
        }
        self.plan_probe(now_ps);
        (acked, begins)
    }

    /// So many bytes of those that were in flight before are newly lost. True if a recovery begins.
    fn note_loss(&mut self, lost: u64, flight: u64, snd_nxt: u64) -> bool {
        let begins = 0 < lost && self.recover.is_none();
        if begins {
            self.recover = Some(snd_nxt);
            self.prr = self.use_prr.then(|| Prr::new(self.mss, flight));
        }
        begins
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
        self.rto_ps = now_ps.saturating_add(self.rtt.rto_ps());
        self.rtt.back_off();
    }

    /// The handshake is over.
    pub fn on_connected(&mut self) {
        (self.connected, self.rto_ps) = (true, u64::MAX);
    }

    /// Does what is due.
    pub fn on_timer(&mut self, snd_nxt: u64, now_ps: u64) -> Expired {
        if self.rto_ps <= now_ps {
            self.rtt.back_off();
            self.board.on_timeout();
            self.rto_ps = now_ps.saturating_add(self.rtt.rto_ps());
            // What is sent now is a probe itself (RFC 8985 section 7.2: none during recovery).
            (self.recover, self.prr) = (None, None);
            (self.probe_ps, self.probe_due, self.probed) = (u64::MAX, false, true);
            return Expired::Timeout;
        }
        if self.board.reorder_ps() <= now_ps {
            let lost = self.board.on_reorder_timer(now_ps);
            let begins = self.note_loss(lost, self.board.pipe() + lost, snd_nxt);
            if let Some(prr) = &mut self.prr {
                prr.on_ack(0, false);
            }
            self.plan_probe(now_ps);
            return Expired::MaySend(begins);
        }
        if self.probe_ps <= now_ps {
            (self.probe_ps, self.probe_due) = (u64::MAX, true);
            return Expired::MaySend(false);
        }
        Expired::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: TcpConfig = TcpConfig {
        rto_min: Time::from_us(100),
        rto_max: Time::from_ms(10),
        tail_loss_probe: true,
        delayed_ack: None,
        handshake: false,
        idle_restart: true,
        prr: true,
        receive_window: u64::MAX,
        ecn_echo: EcnEcho::Accurate,
        multipath: MptcpConfig::SINGLE,
    };
    const US: u64 = 1_000_000;

    #[test]
    fn a_lost_tail_is_probed_and_then_recovered() {
        let mut tcp = TcpSender::new(&CONFIG, 1_000);
        (0..3).for_each(|i| tcp.send_new(1_000, false, i * US));
        tcp.on_ack(1_000, &[], 3_000, 10 * US);
        // Two round trips of 10 us after the acknowledgment, before the timeout of 100 us.
        assert_eq!(tcp.deadline_ps(), 30 * US);
        assert_eq!(tcp.on_timer(3_000, 30 * US), Expired::MaySend(false));
        assert!(tcp.is_open(0, 2_000, false), "a probe needs no window");
        assert_eq!(tcp.resend(30 * US, false), Some((2_000, 1_000)));
        // It arrives, and so the one before is lost: recovery begins, once.
        let (acked, begins) = tcp.on_ack(1_000, &[(2_000, 3_000)], 3_000, 40 * US);
        assert_eq!((acked.lost, begins), (1_000, true));
        assert_eq!(tcp.resend(40 * US, false), Some((1_000, 1_000)));
        let (acked, begins) = tcp.on_ack(3_000, &[], 3_000, 50 * US);
        assert_eq!((acked.cumulative, begins, tcp.deadline_ps()), (2_000, false, u64::MAX));
    }

    #[test]
    fn a_probe_that_waits_for_its_turn_is_dropped_once_all_has_arrived() {
        let mut tcp = TcpSender::new(&CONFIG, 1_000);
        tcp.send_new(1_000, false, 0);
        tcp.on_ack(1_000, &[], 1_000, 10 * US);
        tcp.send_new(1_000, false, 10 * US);
        assert_eq!(tcp.on_timer(2_000, 30 * US), Expired::MaySend(false));
        assert!(tcp.is_open(0, 1_000, false) && tcp.has_lost());
        tcp.on_ack(2_000, &[], 2_000, 31 * US);
        assert!(!tcp.is_open(u64::MAX, 0, false) && !tcp.has_lost());
        assert_eq!(tcp.resend(32 * US, false), None);
    }

    #[test]
    fn timeouts_double() {
        let mut tcp = TcpSender::new(&CONFIG, 1_000);
        tcp.send_new(1_000, false, 0);
        // No round-trip time is known: the largest timeout.
        assert_eq!(tcp.deadline_ps(), 10_000 * US);
        tcp.on_ack(1_000, &[], 1_000, 10 * US);
        tcp.send_new(1_000, false, 20 * US);
        tcp.on_timer(2_000, 40 * US);
        assert_eq!(tcp.resend(40 * US, false), Some((1_000, 1_000)));
        assert_eq!(tcp.on_timer(2_000, 120 * US), Expired::Timeout);
        assert_eq!(tcp.resend(120 * US, false), Some((1_000, 1_000)));
        assert_eq!(tcp.on_timer(2_000, 200 * US), Expired::Nothing);
        assert_eq!(tcp.on_timer(2_000, 320 * US), Expired::Timeout);
    }

    #[test]
    fn idle_time_is_counted_in_timeouts() {
        let mut tcp = TcpSender::new(&CONFIG, 1_000);
        assert_eq!(tcp.idle_timeouts(50 * US), 0, "it has not sent yet");
        tcp.send_new(1_000, false, 50 * US);
        assert_eq!(tcp.idle_timeouts(9_000 * US), 0, "something is in flight");
        tcp.on_ack(1_000, &[], 1_000, 60 * US);
        // The timeout is its floor, 100 us, since the sending at 50 us.
        assert_eq!([150, 151, 250, 251].map(|us| tcp.idle_timeouts(us * US)), [0, 1, 1, 2]);
        let mut off = TcpSender::new(&TcpConfig { idle_restart: false, ..CONFIG }, 1_000);
        off.send_new(1_000, false, 0);
        off.on_ack(1_000, &[], 1_000, 10 * US);
        assert_eq!(off.idle_timeouts(9_000 * US), 0);
    }

    #[test]
    fn the_receive_window_closes() {
        let tcp = TcpSender::new(&TcpConfig { receive_window: 5_000, ..CONFIG }, 1_000);
        assert!(tcp.is_open(u64::MAX, 4_000, true));
        assert!(!tcp.is_open(u64::MAX, 5_000, true));
    }
}
