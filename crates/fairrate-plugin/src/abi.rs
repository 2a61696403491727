use std::ffi::{c_char, c_void};

/// Version of this interface. fairrate refuses a library that was built for another one.
pub const FAIRRATE_ABI: u32 = 1;

/// Value that means "none": an endless flow, no deadline, no window limit, no timer.
pub const FAIRRATE_NONE: u64 = u64::MAX;

/// Flag for the field needs: switches stamp telemetry into data packets, and acknowledgments return it to the sender.
pub const FAIRRATE_NEEDS_TELEMETRY: u64 = 1;
/// Flag for the field needs: switches mark ECN on the flow's packets.
pub const FAIRRATE_NEEDS_ECN: u64 = 2;
/// Flag for the field needs: a flow's first acknowledgment is only stored, so that it leads to no decision.
pub const FAIRRATE_FIRST_ACK_ONLY_STORED: u64 = 4;

/// Kind of loss: the receiver reported a gap.
pub const FAIRRATE_LOSS_GAP: u32 = 0;
/// Kind of loss: the retransmission timer expired.
pub const FAIRRATE_LOSS_TIMEOUT: u32 = 1;

/// Properties of a flow that its sender has before the first packet.
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
    /// Bytes of a full packet on the wire.
    pub wire_mtu_bytes: u64,
    /// Links between sender and receiver.
    pub n_hops: u64,
    /// The flow's weight; 1 unless the workload says otherwise.
    pub weight: f64,
    /// Start time of the flow.
    pub start_ps: u64,
    /// Payload bytes of the flow, or FAIRRATE_NONE.
    pub size_bytes: u64,
    /// Time from the flow's start by which its last byte should have arrived, or FAIRRATE_NONE.
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
    /// Time from the start of the acknowledged packet's transmission to now.
    pub rtt_ps: u64,
    /// The congestion window in force when the acknowledged packet was sent, in bytes.
    pub cwnd_at_send: u64,
    /// Bytes in flight after this acknowledgment.
    pub in_flight: u64,
    /// Delivery rate over the round trip that ends here; zero: not known.
    pub delivery_rate_bps: u64,
    /// Bytes that had been delivered when that round trip began, or FAIRRATE_NONE.
    pub prior_delivered: u64,
    /// Telemetry records in path order, one for each switch.
    pub hops: *const FairrateHop,
    /// Number of records in hops.
    pub n_hops: usize,
    /// Set when the acknowledged packet carried an ECN mark.
    pub ecn_marked: bool,
    /// Set when the acknowledged packet was sent while the application had no more to send.
    pub app_limited: bool,
}

/// Limits on the sender until the next decision.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairrateAllowance {
    /// Largest number of unacknowledged payload bytes, or FAIRRATE_NONE. Zero counts as one byte.
    pub cwnd_bytes: u64,
    /// Pacing rate, in bits on the wire per second; zero: nothing may be sent.
    pub rate_bps: u64,
    /// Time of the next call of on_timer, or FAIRRATE_NONE. A time that is not in the future counts as a nanosecond
    /// from now.
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

/// An algorithm. A library defines a single one, under the name fairrate_algorithm.
///
/// Functions may be called by several threads at once, each with a flow of its own. They must not unwind. The comment
/// of a function that may be null says so; without that function, the last allowance stays in force.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FairrateAlgorithm {
    /// FAIRRATE_ABI.
    pub abi: u32,
    /// Name in scenarios: letters, digits, dashes and underscores.
    pub name: *const c_char,
    /// Name in prose and plots.
    pub title: *const c_char,
    /// Publication that describes it.
    pub paper: *const c_char,
    /// Its idea in one line.
    pub idea: *const c_char,
    /// Sum of the flags that apply, FAIRRATE_NEEDS_... and FAIRRATE_FIRST_ACK_ONLY_STORED, or zero.
    pub needs: u64,
    /// Interval in which a receiver answers marked packets with at most one notification (CNP); zero: with none.
    pub cnp_interval_ps: u64,
    /// Bytes added to every data packet.
    pub data_overhead_bytes: u64,
    /// Bytes added to every acknowledgment.
    pub ack_overhead_bytes: u64,
    /// The parameters; may be null if there are none.
    pub parameters: *const FairrateParameter,
    /// Number of parameters.
    pub n_parameters: usize,
    /// Creates and returns a flow's state, which all other functions get. parameters has a value for each parameter, in
    /// order.
    pub make: Option<unsafe extern "C" fn(flow: *const FairrateFlow, parameters: *const f64) -> *mut c_void>,
    /// Frees the state; may be null.
    pub free: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Called when the flow starts; returns the first window and rate.
    pub on_start: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64) -> FairrateAllowance>,
    /// Called when an acknowledgment arrives.
    pub on_ack: Option<unsafe extern "C" fn(state: *mut c_void, ack: *const FairrateAck) -> FairrateAllowance>,
    /// Called when the transport detects a loss, of kind FAIRRATE_LOSS_...; may be null.
    pub on_loss: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64, loss: u32) -> FairrateAllowance>,
    /// Called when a notification (CNP) arrives; may be null.
    pub on_cnp: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64) -> FairrateAllowance>,
    /// Called when the time timer_ps is reached; may be null.
    pub on_timer: Option<unsafe extern "C" fn(state: *mut c_void, now_ps: u64) -> FairrateAllowance>,
}

// SAFETY: the value is only read, and its pointers lead to data that a library never changes.
unsafe impl Sync for FairrateParameter {}
// SAFETY: as above.
unsafe impl Sync for FairrateAlgorithm {}
