//! `my-d2tcp`: D2TCP's sender. B. Vamanan, J. Hasan, T. N. Vijaykumar, "Deadline-Aware Datacenter TCP (D2TCP)", SIGCOMM
//! 2012, §3, on DCTCP's window (RFC 8257).
//!
//! | paper | here        | unit                    |
//! |-------|-------------|-------------------------|
//! | W     | `cwnd`      | bytes                   |
//! | α     | `alpha`     | 1                       |
//! | p     | `penalty`   | 1                       |
//! | d     | `urgency`   | 1                       |
//! | Tc    | `needed_s`  | s; B / (3/4 W) round trips |
//! | D     | `remaining_s` | s                     |
//!
//! It is written on fairrate's public interface alone. On a lossless fabric it does what the built-in `d2tcp` does, to
//! the bit: `tests/bits.rs` holds it to that. The built-in one also has a form for TCP, and the ns-3 artifact's.

use fairrate_control::{
    Ack, AlgorithmInfo, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, MarkedQueue, Needs, NetworkNeeds,
    NoPort, RedDefault, algorithm_config, choice,
};
use fairrate_units::{Bytes, Rate, Time};

/// The name in listings and results.
pub const MY_D2TCP: AlgorithmInfo = AlgorithmInfo {
    name: "my-d2tcp",
    title: "my D2TCP",
    paper: "Vamanan et al., SIGCOMM 2012",
    idea: "DCTCP whose cut goes by deadlines, in a crate of its own",
};

choice! {
    /// The first window.
    pub enum FirstWindow {
        /// Line rate times base RTT.
        Bdp = "bdp",
        /// Ten packets.
        TenMtu = "10mtu",
    }
}

algorithm_config! {
    /// Parameters of my D2TCP.
    pub struct MyD2tcpConfig {
        /// Smallest exponent, of flows whose deadline is far (paper section 3: 0.5).
        d_min: f64 = 0.5, in 0.01..=1.0;
        /// Largest exponent, of flows whose deadline is near (paper section 3: 2).
        d_max: f64 = 2.0, in 1.0..=100.0;
        /// Exponent once the deadline has passed (public ns-3 code: 0.5).
        d_late: f64 = 0.5, in 0.01..=100.0;
        /// Gain of alpha's average (RFC 8257 section 4.2: 1/16).
        g: f64 = 1.0 / 16.0, in 0.0..=1.0;
        /// First window (ours: a bandwidth-delay product).
        first_window: FirstWindow = FirstWindow::Bdp;
    }
}

/// DCTCP's step: 30 KB at 10 Gb/s, in proportion elsewhere.
const STEP: RedDefault = RedDefault {
    kmin: Bytes::new(30_000),
    kmax: Bytes::new(30_000),
    pmax: 1.0,
    per_rate: Some(Rate::from_gbps(10)),
    queue: MarkedQueue::Joined,
};

impl AlgorithmSpec for MyD2tcpConfig {
    type Controller = MyD2tcp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { network: NetworkNeeds { ecn: true, red: Some(STEP), ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> MyD2tcp {
        let mtu = flow.mtu.as_f64();
        let first = match self.first_window {
            FirstWindow::Bdp => flow.line_rate.bytes_in(flow.base_rtt).as_f64(),
            FirstWindow::TenMtu => 10.0 * mtu,
        };
        let is_finite = flow.size < Bytes::MAX;
        MyD2tcp {
            line_rate: flow.line_rate,
            mtu,
            size: flow.size.as_u64(),
            due: flow.deadline.filter(|_| is_finite).map(|deadline| flow.start.saturating_add(deadline)),
            cwnd: first.max(2.0 * mtu),
            alpha: 1.0,
            acked: 0,
            marked: 0,
            window_end: 0,
            recovery_end: None,
            snd_nxt: 0,
            config: self.clone(),
        }
    }
}

/// A flow under my D2TCP.
#[derive(Clone, Debug)]
pub struct MyD2tcp {
    config: MyD2tcpConfig,
    line_rate: Rate,
    mtu: f64,
    size: u64,
    /// Time at which the last byte should have arrived.
    due: Option<Time>,
    cwnd: f64,
    alpha: f64,
    /// Bytes delivered in this window, and how many of them were marked.
    acked: u64,
    marked: u64,
    window_end: u64,
    /// Until this byte is acknowledged, the window neither falls nor grows.
    recovery_end: Option<u64>,
    snd_nxt: u64,
}

impl MyD2tcp {
    /// α ← (1 - g) α + g F, once a window (paper eq. 1).
    fn update_alpha(&mut self) {
        if 0 < self.acked {
            let fraction = self.marked as f64 / self.acked as f64;
            self.alpha = (1.0 - self.config.g) * self.alpha + self.config.g * fraction;
        }
        (self.acked, self.marked) = (0, 0);
    }

    /// d = Tc / D, within bounds (paper section 3.2).
    fn urgency(&self, ack: &Ack<'_>, due: Time) -> f64 {
        let remaining_s = due.saturating_sub(ack.now).as_secs_f64();
        if remaining_s == 0.0 {
            return self.config.d_late;
        }
        let left = self.size.saturating_sub(ack.ack_seq) as f64;
        // DCTCP's sawtooth has 3/4 of its peak on average.
        let window = (self.cwnd as u64) as f64;
        let needed_s = left / (0.75 * window.max(1.0)) * ack.rtt.as_secs_f64();
        (needed_s / remaining_s).max(self.config.d_min).min(self.config.d_max)
    }

    /// p = α^d; without a deadline d is 1 (paper eq. 2).
    fn penalty(&self, ack: &Ack<'_>) -> f64 {
        self.due.map_or(self.alpha, |due| libm::pow(self.alpha, self.urgency(ack, due)))
    }

    /// W ← W (1 - p/2) (paper eq. 3).
    fn cut(&mut self, penalty: f64) {
        self.cwnd = (self.cwnd * (1.0 - penalty / 2.0)).max(2.0 * self.mtu);
        self.recovery_end = Some(self.snd_nxt);
    }

    /// W ← W + 1 a round trip, while the window limits the flow.
    fn grow(&mut self, ack: &Ack<'_>) {
        let newly_acked = ack.newly_acked as f64;
        let in_flight = ack.snd_nxt.saturating_sub(ack.ack_seq) as f64;
        if self.cwnd <= in_flight + newly_acked + self.mtu {
            self.cwnd += self.mtu * (newly_acked / self.cwnd).min(1.0);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::new(self.cwnd as u64), rate: self.line_rate, timer: Time::MAX }
    }
}

impl Controller for MyD2tcp {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.snd_nxt = ack.snd_nxt;
        self.acked += ack.delivered;
        self.marked += if ack.ecn_marked { ack.delivered } else { 0 };
        if self.window_end < ack.ack_seq {
            self.update_alpha();
            self.window_end = ack.snd_nxt;
        }
        self.recovery_end = self.recovery_end.filter(|end| ack.ack_seq <= *end);
        match (self.recovery_end, ack.ecn_marked) {
            (Some(_), _) => {}
            (None, true) => self.cut(self.penalty(ack)),
            (None, false) => self.grow(ack),
        }
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.cut(1.0);
        self.allowance()
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
}
