//! The laws of `bpf/laws`, compiled for this machine: the same C code that runs in the kernel. All numbers are
//! integers; a name ends with the number of bits behind the point (`q32`).
#![allow(unsafe_code)]
#![allow(missing_docs)] // The fields are those of the C headers, which describe them.

use bytemuck::{Pod, Zeroable};

/// Declares structs with the layout of their namesakes in C.
macro_rules! c_structs {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty,)* })+) => {
        $($(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
        pub struct $name { $(pub $field: $type,)* })+
    };
}

c_structs! {
    /// An acknowledgment as the laws get it; times in nanoseconds, the rest in bytes.
    AckInput {
        now_ns: u64, ack_seq: u64, snd_nxt: u64, rtt_ns: u64, cwnd_at_send: u64, newly_acked: u64, delivered: u64, in_flight: u64,
        ecn_marked: u32, app_limited: u32,
    }
    /// Parameters of the law of eq. (7) of PowerTCP.
    PowerParams {
        beta_bps: u64, line_bps: u64, gamma_q31: u32, one_minus_gamma_q31: u32, floor_q31: u32, per_ack: u32, initial_one: u32,
        idle_restart: u32,
    }
    /// State of that law.
    PowerState { cwnd_q16: u64, power_q32: u64, last_update_seq: u64, has_power: u32, reserved: u32, }
    /// Parameters of θ-PowerTCP.
    ThetaParams { law: PowerParams, tau_ns: u64, slack_q30: u32, min_seen: u32, }
    /// A flow under θ-PowerTCP.
    ThetaState { law: PowerState, prev_rtt_ns: u64, prev_at_ns: u64, base_ns: u64, has_prev: u32, reserved: u32, }
    /// Telemetry of an egress port.
    Hop { ts_ns: u64, tx_bytes: u64, qlen: u32, rate_kbps: u32, }
    /// Parameters of PowerTCP.
    PowerTcpParams { law: PowerParams, tau_ns: u64, target_q31: u32, reserved: u32, }
    /// A flow under PowerTCP.
    PowerTcpState { law: PowerState, last_ack_ns: u64, n_hops: u32, reserved: u32, prev: [Hop; HOPS_MOST], }
    /// Parameters of DCTCP.
    DctcpParams { g_q31: u32, initial_alpha_q31: u32, first_packets: u32, min_packets: u32, growth_q16: u32, slow_start: u32, }
    /// A flow under DCTCP.
    DctcpState {
        cwnd_q16: u64, ssthresh_q16: u64, alpha_q32: u64, acked: u64, marked: u64, window_end: u64, until_seq: u64, timed_out_ns: u64,
        full_until: u64, una: u64, snd_nxt: u64, is_recovering: u32, has_timed_out: u32,
    }
    /// Parameters of RoCC's congestion point.
    RoccPortParams {
        f_min: i64, f_max: i64, q_ref: i64, q_mid: i64, q_max: i64, alpha: i64, beta: i64, whole_below: i64, queue_unit: u64,
        fraction_bits: u64,
    }
    /// RoCC's congestion point.
    RoccPortState { f: i64, q_old: i64, }
    /// The state of RoCC's congestion point in the program at a port.
    RoccPoint { params: RoccPortParams, state: RoccPortState, period_ns: u64, ticked_ns: u64, n_ticks: u64, tell_until: u64, }
    /// Parameters of RoCC's reaction point.
    RoccParams { rate_unit_bps: u64, min_bps: u64, line_bps: u64, rise_ns: u64, }
    /// RoCC's reaction point.
    RoccState { rate_bps: u64, due_ns: u64, port: u64, }
    /// Parameters of RateMP.
    RateMpParams {
        alpha_bps: u64, line_bps: u64, kmax_ns: u64, base_rtt_window_ns: u64, min_rate_ns_q32: u64, g_q31: u32, initial_window: u32,
        handshake: u32, reserved: u32,
    }
    /// A subflow under RateMP.
    RateMpState {
        x_q32: u64, w_q32: u64, ss_q32: u64, beta_q63: u64, end: u64, rtt_ns: u64, base_ns: u64, smallest_ns: u64,
        last_smallest_ns: u64, since_ns: u64, n_acks: u32, n_marked: u32, in_slow_start: u32, reserved: u32,
    }
    /// The limits of a subflow under RateMP: packets in flight, and a pace in bit/s or 0.
    RateMpAllowance { cwnd: u64, paced_bps: u64, }
    /// A control packet of PERC. Rates are words.
    PercRecord { demand_bottleneck: u32, demand_others: u32, smallest: u32, second: u32, links: u32, seq_and_flags: u32, }
    /// A flow at a link of PERC.
    PercEntry { rate: u64, hosts: u64, seen_ns: u64, ports: u32, reserved: u32, }
    /// A link under PERC.
    PercLink { capacity: u64, timeout_ns: u64, lock: u32, n: u32, entries: [PercEntry; PERC_FLOWS], }
    /// Parameters of PERC.
    PercParams {
        line: u64, initial: u64, tau_ns: u64, wait_q16: u32, resend_q16: u32, first_rate_waits: u32, short_flows: u32,
    }
    /// A raise of a flow's rate that waits.
    PercRaise { due_ns: u64, rate: u64, }
    /// A flow under PERC.
    PercState {
        rate: u64, limit: u64, sent_ns: u64, patience_ns: u64, seq: u32, phase: u32, is_due: u32, is_joined: u32, smallest: u32,
        second: u32, link: u32, n_raises: u32, raises: [PercRaise; 8],
    }
}

mod perc;

pub use perc::{PERC_EXIT, Perc, rate as perc_rate, word as perc_word};

/// Number of flows that a link remembers under PERC.
pub const PERC_FLOWS: usize = 256;

/// Largest number of telemetry records of a packet.
pub const HOPS_MOST: usize = 5;

mod native {
    use super::{
        AckInput, DctcpParams, DctcpState, Hop, PowerTcpParams, PowerTcpState, RateMpAllowance, RateMpParams,
        RateMpState, RoccParams, RoccPortParams, RoccPortState, RoccState, ThetaParams, ThetaState,
    };

    unsafe extern "C" {
        pub fn fr_native_theta_start(s: *mut ThetaState, p: *const ThetaParams, mtu: u64, tau: u64);
        pub fn fr_native_theta_on_ack(
            s: *mut ThetaState,
            p: *const ThetaParams,
            ack: *const AckInput,
            mtu: u64,
            tau: u64,
        );
        pub fn fr_native_powertcp_start(s: *mut PowerTcpState, p: *const PowerTcpParams, mtu: u64, tau: u64, now: u64);
        pub fn fr_native_powertcp_on_ack(
            s: *mut PowerTcpState,
            p: *const PowerTcpParams,
            ack: *const AckInput,
            hops: *const Hop,
            n_hops: u32,
            mtu: u64,
            tau: u64,
        );
        pub fn fr_native_dctcp_start(s: *mut DctcpState, p: *const DctcpParams, first: u64, mtu: u64);
        pub fn fr_native_dctcp_on_ack(s: *mut DctcpState, p: *const DctcpParams, ack: *const AckInput, mtu: u64);
        pub fn fr_native_dctcp_on_gap(s: *mut DctcpState, p: *const DctcpParams, mtu: u64);
        pub fn fr_native_dctcp_on_timeout(s: *mut DctcpState, p: *const DctcpParams, now: u64, mtu: u64);
        pub fn fr_native_rocc_port_tick(s: *mut RoccPortState, p: *const RoccPortParams, queue: u64) -> u64;
        pub fn fr_native_rocc_on_notice(s: *mut RoccState, p: *const RoccParams, now: u64, told: u64, port: u64);
        pub fn fr_native_rocc_rate(s: *mut RoccState, p: *const RoccParams, now: u64) -> u64;
        pub fn fr_native_ratemp_start(s: *mut RateMpState, p: *const RateMpParams, path_rtt: u64, now: u64);
        pub fn fr_native_ratemp_on_ack(
            s: *mut RateMpState,
            p: *const RateMpParams,
            ack: *const AckInput,
            total_q32: u64,
            mtu: u64,
            wire_bits: u64,
        );
        pub fn fr_native_ratemp_allowed(
            s: *const RateMpState,
            p: *const RateMpParams,
            wire_bits: u64,
        ) -> RateMpAllowance;
        pub fn fr_native_ratemp_packets_q32(s: *const RateMpState) -> u64;
        pub fn fr_native_ratemp_on_gap(s: *mut RateMpState);
        pub fn fr_native_ratemp_on_timeout(s: *mut RateMpState);
    }
}

/// A flow under θ-PowerTCP with its parameters.
#[derive(Clone, Debug)]
pub struct Theta {
    params: ThetaParams,
    state: ThetaState,
    mtu: u64,
    tau_ns: u64,
}

impl Theta {
    /// Creates a flow with packets of `mtu` bytes that starts with the window HostBw·τ.
    pub fn new(params: ThetaParams, mtu: u64, tau_ns: u64) -> Self {
        let mut state = ThetaState::zeroed();
        // SAFETY: the pointers are to structs of the layout that C declares, and C keeps none.
        unsafe { native::fr_native_theta_start(&raw mut state, &raw const params, mtu, tau_ns) };
        Self { params, state, mtu, tau_ns }
    }
    /// Runs Alg. 2; returns the window in bytes.
    pub fn on_ack(&mut self, ack: &AckInput) -> f64 {
        // SAFETY: as above.
        unsafe {
            native::fr_native_theta_on_ack(&raw mut self.state, &raw const self.params, ack, self.mtu, self.tau_ns);
        };
        self.cwnd()
    }
    /// Returns the window in bytes.
    pub fn cwnd(&self) -> f64 {
        from_q16(self.state.law.cwnd_q16)
    }
}

/// A flow under PowerTCP with its parameters.
#[derive(Clone, Debug)]
pub struct PowerTcp {
    params: PowerTcpParams,
    state: PowerTcpState,
    mtu: u64,
    tau_ns: u64,
}

impl PowerTcp {
    /// Creates a flow with packets of `mtu` bytes that starts with the window HostBw·τ.
    pub fn new(params: PowerTcpParams, mtu: u64, tau_ns: u64, now_ns: u64) -> Self {
        let mut state = PowerTcpState::zeroed();
        // SAFETY: as above.
        unsafe { native::fr_native_powertcp_start(&raw mut state, &raw const params, mtu, tau_ns, now_ns) };
        Self { params, state, mtu, tau_ns }
    }
    /// Runs Alg. 1 with the telemetry of one packet, of which the first [`HOPS_MOST`] records count; returns the window
    /// in bytes.
    pub fn on_ack(&mut self, ack: &AckInput, hops: &[Hop]) -> f64 {
        let n = hops.len().min(HOPS_MOST) as u32;
        let (s, p) = (&raw mut self.state, &raw const self.params);
        // SAFETY: as above; C reads `n` records.
        unsafe { native::fr_native_powertcp_on_ack(s, p, ack, hops.as_ptr(), n, self.mtu, self.tau_ns) };
        self.cwnd()
    }
    /// Returns the window in bytes.
    pub fn cwnd(&self) -> f64 {
        from_q16(self.state.law.cwnd_q16)
    }
}

/// A flow under DCTCP with its parameters.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: DctcpParams,
    state: DctcpState,
    mtu: u64,
}

impl Dctcp {
    /// Creates a flow with packets of `mtu` bytes and a first window of `first` bytes, unless the parameters have one.
    pub fn new(params: DctcpParams, mtu: u64, first: u64) -> Self {
        let mut state = DctcpState::zeroed();
        // SAFETY: as above.
        unsafe { native::fr_native_dctcp_start(&raw mut state, &raw const params, first, mtu) };
        Self { params, state, mtu }
    }
    /// Handles an acknowledgment; returns the window in bytes.
    pub fn on_ack(&mut self, ack: &AckInput) -> f64 {
        // SAFETY: as above.
        unsafe { native::fr_native_dctcp_on_ack(&raw mut self.state, &raw const self.params, ack, self.mtu) };
        self.cwnd()
    }
    /// Handles a gap; returns the window in bytes.
    pub fn on_gap(&mut self) -> f64 {
        // SAFETY: as above.
        unsafe { native::fr_native_dctcp_on_gap(&raw mut self.state, &raw const self.params, self.mtu) };
        self.cwnd()
    }
    /// Handles a timeout; returns the window in bytes.
    pub fn on_timeout(&mut self, now_ns: u64) -> f64 {
        // SAFETY: as above.
        unsafe { native::fr_native_dctcp_on_timeout(&raw mut self.state, &raw const self.params, now_ns, self.mtu) };
        self.cwnd()
    }
    /// Returns the window in bytes.
    pub fn cwnd(&self) -> f64 {
        from_q16(self.state.cwnd_q16)
    }
}

/// RoCC's congestion point with its parameters.
#[derive(Clone, Debug)]
pub struct RoccPort {
    params: RoccPortParams,
    state: RoccPortState,
}

impl RoccPort {
    /// Creates a port whose fair rate is Fmax.
    pub fn new(params: RoccPortParams) -> Self {
        Self { params, state: RoccPortState { f: params.f_max, q_old: 0 } }
    }
    /// Ends a period with `queue_bytes` queued; returns the rate in the notices to flows, in rate units.
    pub fn tick(&mut self, queue_bytes: u64) -> u64 {
        // SAFETY: as above.
        unsafe { native::fr_native_rocc_port_tick(&raw mut self.state, &raw const self.params, queue_bytes) }
    }
}

/// RoCC's reaction point with its parameters.
#[derive(Clone, Debug)]
pub struct Rocc {
    params: RoccParams,
    state: RoccState,
}

impl Rocc {
    /// Creates a flow without limiter.
    pub fn new(params: RoccParams) -> Self {
        Self { params, state: RoccState::zeroed() }
    }
    /// Handles a notice of `port` with a rate of `told` rate units.
    pub fn on_notice(&mut self, now_ns: u64, told: u64, port: u32) {
        // SAFETY: as above.
        unsafe {
            native::fr_native_rocc_on_notice(&raw mut self.state, &raw const self.params, now_ns, told, port.into());
        };
    }
    /// Returns the rate at `now_ns`, in bit/s.
    pub fn rate(&mut self, now_ns: u64) -> u64 {
        // SAFETY: as above.
        unsafe { native::fr_native_rocc_rate(&raw mut self.state, &raw const self.params, now_ns) }
    }
}

/// A subflow under RateMP with its parameters.
#[derive(Clone, Debug)]
pub struct RateMp {
    params: RateMpParams,
    state: RateMpState,
    mtu: u64,
    wire_bits: u64,
}

impl RateMp {
    /// Creates a subflow with packets of `mtu` bytes, of `wire_bits` on the wire, on a path with this base round-trip
    /// time.
    pub fn new(params: RateMpParams, mtu: u64, wire_bits: u64, path_rtt_ns: u64, now_ns: u64) -> Self {
        let mut state = RateMpState::zeroed();
        // SAFETY: as above.
        unsafe { native::fr_native_ratemp_start(&raw mut state, &raw const params, path_rtt_ns, now_ns) };
        Self { params, state, mtu, wire_bits }
    }
    /// Runs Algorithm 1; `total_q32` is the sum of the connection's rates in packets/s before this acknowledgment.
    pub fn on_ack(&mut self, ack: &AckInput, total_q32: u64) {
        let (s, p) = (&raw mut self.state, &raw const self.params);
        // SAFETY: as above.
        unsafe { native::fr_native_ratemp_on_ack(s, p, ack, total_q32, self.mtu, self.wire_bits) };
    }
    /// Handles a gap.
    pub fn on_gap(&mut self) {
        // SAFETY: as above.
        unsafe { native::fr_native_ratemp_on_gap(&raw mut self.state) };
    }
    /// Handles a timeout.
    pub fn on_timeout(&mut self) {
        // SAFETY: as above.
        unsafe { native::fr_native_ratemp_on_timeout(&raw mut self.state) };
    }
    /// Returns the limits of the subflow.
    pub fn allowance(&self) -> RateMpAllowance {
        // SAFETY: as above.
        unsafe { native::fr_native_ratemp_allowed(&raw const self.state, &raw const self.params, self.wire_bits) }
    }
    /// Returns its window out of slow start, in packets, before it is cut to whole ones.
    pub fn packets(&self) -> f64 {
        // SAFETY: as above.
        let packets_q32 = unsafe { native::fr_native_ratemp_packets_q32(&raw const self.state) };
        packets_q32 as f64 / 4_294_967_296.0
    }
    /// Returns its rate, in packets/s with 32 bits behind the point.
    pub fn rate_q32(&self) -> u64 {
        self.state.x_q32
    }
}

fn from_q16(x: u64) -> f64 {
    x as f64 / 65_536.0
}
