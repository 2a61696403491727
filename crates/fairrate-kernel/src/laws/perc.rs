//! PERC's law for links and for flows.

use bytemuck::Zeroable as _;

use super::{PERC_FLOWS, PercEntry, PercLink, PercParams, PercRecord, PercState};

mod native {
    use super::{PercLink, PercParams, PercRecord, PercState};

    unsafe extern "C" {
        pub fn fr_native_perc_on_record(link: *mut PercLink, flow: u64, now: u64, id: u32, record: *mut PercRecord);
        pub fn fr_native_perc_answer(link: *mut PercLink, flow: u64, now: u64, demand: u64) -> u64;
        pub fn fr_native_perc_word(rate: u64) -> u32;
        pub fn fr_native_perc_rate(word: u32) -> u64;
        pub fn fr_native_perc_start(s: *mut PercState, p: *const PercParams, rtt: u64);
        pub fn fr_native_perc_ask(
            s: *mut PercState,
            p: *const PercParams,
            now: u64,
            rtt: u64,
            unsent: u64,
            mtu: u64,
            wire: u64,
            record: *mut PercRecord,
        ) -> i32;
        pub fn fr_native_perc_returned(
            s: *mut PercState,
            p: *const PercParams,
            now: u64,
            rtt: u64,
            record: *const PercRecord,
        );
        pub fn fr_native_perc_tick(s: *mut PercState, now: u64);
    }
}

/// The flag of a control packet whose flow leaves.
pub const PERC_EXIT: u32 = 1;

/// Returns the word of a record for a rate in 2^-16 bit/s, rounded down.
pub fn word(rate: u64) -> u32 {
    // SAFETY: the function takes a number and returns one.
    unsafe { native::fr_native_perc_word(rate) }
}

/// Returns the rate in 2^-16 bit/s that a word of a record stands for.
pub fn rate(word: u32) -> u64 {
    // SAFETY: as above.
    unsafe { native::fr_native_perc_rate(word) }
}

impl PercLink {
    /// Creates a link without flows, with a capacity in 2^-16 bit/s, that forgets a flow after `timeout_ns`.
    pub fn new(capacity: u64, timeout_ns: u64) -> Self {
        Self { capacity, timeout_ns, lock: 0, n: 0, entries: [PercEntry::zeroed(); PERC_FLOWS] }
    }
    /// Handles a control packet of `flow` as the link with the number `id`.
    pub fn on_record(&mut self, flow: u64, now_ns: u64, id: u32, record: &mut PercRecord) {
        // SAFETY: the pointers are to structs of the layout that C declares, and C keeps none.
        unsafe { native::fr_native_perc_on_record(self, flow, now_ns, id, record) };
    }
    /// Stores the `demand` of `flow`; returns the link's answer. Both are in 2^-16 bit/s.
    pub fn answer(&mut self, flow: u64, now_ns: u64, demand: u64) -> u64 {
        // SAFETY: as above.
        unsafe { native::fr_native_perc_answer(self, flow, now_ns, demand) }
    }
}

/// A flow under PERC with its parameters.
#[derive(Clone, Debug)]
pub struct Perc {
    params: PercParams,
    state: PercState,
    rtt_ns: u64,
    mtu: u64,
    wire: u64,
}

impl Perc {
    /// Creates a flow with packets of `mtu` bytes, of `wire` bytes on the wire, on a path with this base round-trip
    /// time.
    pub fn new(params: PercParams, mtu: u64, wire: u64, rtt_ns: u64) -> Self {
        let mut state = PercState::zeroed();
        // SAFETY: as above.
        unsafe { native::fr_native_perc_start(&raw mut state, &raw const params, rtt_ns) };
        Self { params, state, rtt_ns, mtu, wire }
    }
    /// Returns the control packet that leaves now, if any; `unsent` is the number of payload bytes not yet sent.
    pub fn ask(&mut self, now_ns: u64, unsent: u64) -> Option<PercRecord> {
        let mut record = PercRecord::zeroed();
        let (s, p, r) = (&raw mut self.state, &raw const self.params, &raw mut record);
        // SAFETY: as above.
        let asks = unsafe { native::fr_native_perc_ask(s, p, now_ns, self.rtt_ns, unsent, self.mtu, self.wire, r) };
        (asks != 0).then_some(record)
    }
    /// Handles a control packet that has come back.
    pub fn returned(&mut self, now_ns: u64, record: &PercRecord) {
        let (s, p) = (&raw mut self.state, &raw const self.params);
        // SAFETY: as above.
        unsafe { native::fr_native_perc_returned(s, p, now_ns, self.rtt_ns, record) };
    }
    /// Applies what is due at `now_ns`.
    pub fn tick(&mut self, now_ns: u64) {
        // SAFETY: as above.
        unsafe { native::fr_native_perc_tick(&raw mut self.state, now_ns) };
    }
    /// Returns the flow's rate in 2^-16 bit/s.
    pub fn rate(&self) -> u64 {
        self.state.rate
    }
}
