use std::ffi::{c_char, c_void};

/// Version of this interface. fairrate refuses a library that was built for another one.
pub const FAIRRATE_ABI: u32 = 1;

/// A number that is not there: an endless flow, no deadline, no window, no timer.
pub const FAIRRATE_NONE: u64 = u64::MAX;

/// Switches stamp telemetry into data packets, which acknowledgments bring back.
pub const FAIRRATE_NEEDS_TELEMETRY: u64 = 1;
/// Switches mark ECN on the flow's packets.
pub const FAIRRATE_NEEDS_ECN: u64 = 2;
/// A flow's first acknowledgment is only stored, so that it leads to no decision.
pub const FAIRRATE_FIRST_ACK_ONLY_STORED: u64 = 4;

/// The receiver reported a gap.
pub const FAIRRATE_LOSS_GAP: u32 = 0;
/// The retransmission timer expired.
pub const FAIRRATE_LOSS_TIMEOUT: u32 = 1;

/// What a sender knows of a flow before its first packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FairrateFlow {
    /// The rate of the sender's NIC.
    pub line_rate_bps: u64,
    /// The largest base round-trip time in the network (τ of the papers).
    pub base_rtt_ps: u64,
    /// The base round-trip time of this flow's own path.
    pub path_base_rtt_ps: u64,
    /// Payload bytes of a full packet.
    pub mtu_bytes: u64,
    /// Bytes a full packet has on the wire.
    pub wire_mtu_bytes: u64,
    /// Links between sender and receiver.
    pub n_hops: u64,
    /// The flow's weight; 1 unless the workload says otherwise.
    pub weight: f64,
    /// When the flow starts.
    pub start_ps: u64,
    /// Payload bytes of the flow, or FAIRRATE_NONE.
    pub size_bytes: u64,
    /// When its last byte should have arrived, from its start, or FAIRRATE_NONE.
    pub deadline_ps: u64,
    /// Seed of the flow's own random draws.
    pub seed: u64,
}

/// Telemetry of one egress port, stamped when a packet leaves its queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FairrateHop {
    /// Time of the dequeue.
    pub ts_ps: u64,
    /// Bytes that the port had sent before the packet.
    pub tx_bytes: u64,
    /// Bytes left in the port after the packet was removed.
    pub queue_bytes: u64,
    /// Rate of the port.
    pub rate_bps: f64,
}

/// One acknowledgment, as the sender sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FairrateAck {
    /// Arrival time of the acknowledgment.
    pub now_ps: u64,
    /// Next byte the receiver expects.
    pub ack_seq: u64,
    /// Next new byte the sender will send.
    pub snd_nxt: u64,
    /// Bytes acknowledged by this and no earlier acknowledgment.
    pub newly_acked: u64,
    /// Bytes delivered that no earlier acknowledgment reported, in order or not.
    pub delivered: u64,
    /// Bytes newly taken for lost.
    pub lost: u64,
    /// From the start of the acknowledged packet's transmission to now.
    pub rtt_ps: u64,
    /// The congestion window in force when the acknowledged packet was sent, in bytes.
    pub cwnd_at_send: u64,
    /// Bytes in flight after this acknowledgment.
    pub in_flight: u64,
    /// Delivery rate over the round trip that ends here; zero: not known.
    pub delivery_rate_bps: u64,
    /// Bytes that had been delivered when that round trip began, or FAIRRATE_NONE.
    pub prior_delivered: u64,
    /// Telemetry, one record a switch in path order.
    pub hops: *const FairrateHop,
    /// How many records.
    pub n_hops: usize,
    /// Whether the acknowledged packet carried an ECN mark.
    pub ecn_marked: bool,
    /// Whether it was sent when the application had no more to send.
    pub app_limited: bool,
}

/// What the sender may do until the next decision.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairrateAllowance {
    /// Most unacknowledged payload bytes, or FAIRRATE_NONE. Zero counts as one.
    pub cwnd_bytes: u64,
    /// Pacing rate, in bits on the wire per second; zero: nothing may be sent.
    pub rate_bps: u64,
    /// When on_timer wants to be called, or FAIRRATE_NONE. A time that is not to come counts as a nanosecond from now.
    pub timer_ps: u64,
}

/// A parameter, which scenarios set by its name in [transport.NAME].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FairrateParameter {
    /// Key in the scenario.
    pub name: *const c_char,
    /// Meaning and source.
    pub doc: *const c_char,
    /// Default.
    pub value: f64,
    /// Least value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
}

/// An algorithm. A library has one, and calls it fairrate_algorithm.
///
/// Functions may be called by several threads at once, each with a flow of its own. They must not unwind. A function that may
/// be null says so; then what was allowed last stays in force.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FairrateAlgorithm {
    /// FAIRRATE_ABI.
    pub abi: u32,
    /// Name in scenarios: letters, digits, dashes and underscores.
    pub name: *const c_char,
    /// Name in prose and plots.
    pub title: *const c_char,
    /// Where it was published.
    pub paper: *const c_char,
    /// Its idea in one line.
    pub idea: *const c_char,
    /// What it needs: the sum of FAIRRATE_NEEDS_..., or zero.
    pub needs: u64,
    /// Receivers answer marked packets with at most one notification (CNP) in this interval; zero: with none.
    pub cnp_interval_ps: u64,
    /// Bytes added to every data packet.
    pub data_overhead_bytes: u64,
    /// Bytes added to every acknowledgment.
    pub ack_overhead_bytes: u64,
    /// The parameters; may be null if there are none.
    pub parameters: *const FairrateParameter,
    /// How many parameters.
    pub n_parameters: usize,
    /// Makes the state of a flow. It gets a value for each parameter, in their order, and hands the state to all other functions.
    pub make: Option<unsafe extern "C" fn(flow: *const FairrateFlow, parameters: *const f64) -> *mut c_void>,
    /// Frees the state; may be null.
    pub free: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// The flow starts: the first window and rate.
    pub on_start: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64) -> FairrateAllowance>,
    /// An acknowledgment arrived.
    pub on_ack: Option<unsafe extern "C" fn(state: *mut c_void, ack: *const FairrateAck) -> FairrateAllowance>,
    /// The transport saw a loss, FAIRRATE_LOSS_...; may be null.
    pub on_loss: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64, loss: u32) -> FairrateAllowance>,
    /// A notification (CNP) arrived; may be null.
    pub on_cnp: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64) -> FairrateAllowance>,
    /// The time of timer_ps has come; may be null.
    pub on_timer: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64) -> FairrateAllowance>,
}

// SAFETY: it is read only, and its pointers lead to what a library never changes.
unsafe impl Sync for FairrateParameter {}
// SAFETY: as above.
unsafe impl Sync for FairrateAlgorithm {}
