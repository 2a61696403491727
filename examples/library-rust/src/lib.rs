//! `ecn-reno`: a packet more a round trip, and half the window on an ECN mark, at most once a window.
//!
//! DCTCP with α = 1 for ever does the same, which a test of fairrate holds this library to: `dctcp:g=0`.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use fairrate_plugin::abi::{
    FAIRRATE_ABI, FAIRRATE_NEEDS_ECN, FAIRRATE_NONE, FairrateAck, FairrateAlgorithm, FairrateAllowance, FairrateFlow,
    FairrateParameter,
};

/// A flow.
struct Flow {
    line_rate_bps: u64,
    mtu: f64,
    /// Share of the window that is left after a mark.
    decrease: f64,
    cwnd: f64,
    /// Until this byte is acknowledged, the window neither falls nor grows.
    recovery_end: Option<u64>,
    snd_nxt: u64,
}

impl Flow {
    fn new(flow: &FairrateFlow, decrease: f64) -> Self {
        // The same whole bytes as fairrate's own bandwidth-delay product.
        let bdp = u128::from(flow.line_rate_bps) * u128::from(flow.base_rtt_ps) / 8_000_000_000_000;
        let mtu = flow.mtu_bytes as f64;
        let cwnd = (bdp as f64).max(2.0 * mtu);
        Self { line_rate_bps: flow.line_rate_bps, mtu, decrease, cwnd, recovery_end: None, snd_nxt: 0 }
    }

    fn on_ack(&mut self, ack: &FairrateAck) {
        self.snd_nxt = ack.snd_nxt;
        self.recovery_end = self.recovery_end.filter(|end| ack.ack_seq <= *end);
        match (self.recovery_end, ack.ecn_marked) {
            (Some(_), _) => {}
            (None, true) => self.cut(),
            (None, false) => self.grow(ack),
        }
    }

    fn cut(&mut self) {
        self.cwnd = (self.cwnd * self.decrease).max(2.0 * self.mtu);
        self.recovery_end = Some(self.snd_nxt);
    }

    /// The window grows while it limits the flow.
    fn grow(&mut self, ack: &FairrateAck) {
        let newly_acked = ack.newly_acked as f64;
        let in_flight = ack.snd_nxt.saturating_sub(ack.ack_seq) as f64;
        if self.cwnd <= in_flight + newly_acked + self.mtu {
            self.cwnd += self.mtu * (newly_acked / self.cwnd).min(1.0);
        }
    }

    fn allowance(&self) -> FairrateAllowance {
        FairrateAllowance { cwnd_bytes: self.cwnd as u64, rate_bps: self.line_rate_bps, timer_ps: FAIRRATE_NONE }
    }
}

// SAFETY of the functions: fairrate hands over what `fairrate.h` says, and a state only to one of them at a time.

unsafe extern "C" fn make(flow: *const FairrateFlow, parameters: *const f64) -> *mut c_void {
    let (flow, decrease) = unsafe { (&*flow, *parameters) };
    Box::into_raw(Box::new(Flow::new(flow, decrease))).cast()
}

unsafe extern "C" fn free(state: *mut c_void) {
    drop(unsafe { Box::from_raw(state.cast::<Flow>()) });
}

unsafe extern "C" fn on_start(state: *mut c_void, _: u64) -> FairrateAllowance {
    unsafe { &*state.cast::<Flow>() }.allowance()
}

unsafe extern "C" fn on_ack(state: *mut c_void, ack: *const FairrateAck) -> FairrateAllowance {
    let (flow, ack) = unsafe { (&mut *state.cast::<Flow>(), &*ack) };
    flow.on_ack(ack);
    flow.allowance()
}

unsafe extern "C" fn on_loss(state: *mut c_void, _: u64, _: u32) -> FairrateAllowance {
    let flow = unsafe { &mut *state.cast::<Flow>() };
    flow.cut();
    flow.allowance()
}

const fn text(text: &'static CStr) -> *const c_char {
    text.as_ptr()
}

static PARAMETERS: [FairrateParameter; 1] = [FairrateParameter {
    name: text(c"decrease"),
    doc: text(c"what a mark leaves of the window (RFC 5681: 0.5)"),
    value: 0.5,
    least: 0.01,
    most: 1.0,
}];

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static fairrate_algorithm: FairrateAlgorithm = FairrateAlgorithm {
    abi: FAIRRATE_ABI,
    name: text(c"ecn-reno"),
    title: text(c"Reno on marks"),
    paper: text(c"RFC 5681, RFC 3168"),
    idea: text(c"a packet more a round trip, half the window on a mark"),
    needs: FAIRRATE_NEEDS_ECN,
    cnp_interval_ps: 0,
    data_overhead_bytes: 0,
    ack_overhead_bytes: 0,
    parameters: ptr::from_ref(&PARAMETERS).cast(),
    n_parameters: PARAMETERS.len(),
    make: Some(make),
    free: Some(free),
    on_start: Some(on_start),
    on_ack: Some(on_ack),
    on_loss: Some(on_loss),
    on_cnp: None,
    on_timer: None,
};
