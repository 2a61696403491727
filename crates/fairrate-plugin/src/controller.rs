//! Calls between fairrate and a library, with the conversion of values.

use std::ffi::c_void;

use fairrate_control::{Ack, Allowance, Controller, FlowContext, IntHop, Loss, Notice, Trimmed};
use fairrate_units::{Bytes, Rate, Time};

use crate::abi::{
    FAIRRATE_LOSS_GAP, FAIRRATE_LOSS_TIMEOUT, FAIRRATE_NONE, FairrateAck, FairrateAlgorithm, FairrateAllowance,
    FairrateFlow, FairrateHop,
};

/// A flow controlled by a library's algorithm.
#[derive(Debug)]
pub struct PluginController {
    table: &'static FairrateAlgorithm,
    state: *mut c_void,
    /// The library's last allowance.
    allowed: Allowance,
    /// Telemetry records of one acknowledgment, kept so that none is allocated for each.
    hops: Vec<FairrateHop>,
}

// SAFETY: the interface allows a flow to move from thread to thread, with one thread at a time.
unsafe impl Send for PluginController {}

impl PluginController {
    /// Creates the controller of a flow. `table` has its required functions, and `parameters` a value for each of its
    /// parameters.
    pub(crate) fn new(table: &'static FairrateAlgorithm, flow: &FairrateFlow, parameters: &[f64]) -> Self {
        let make = table.make.expect("it was checked when the library was opened");
        // SAFETY: both pointers are valid for the call, and to what the function expects.
        let state = unsafe { make(flow, parameters.as_ptr()) };
        let allowed = Allowance { cwnd: Bytes::MAX, rate: Rate::from_bps(flow.line_rate_bps), timer: Time::MAX };
        Self { table, state, allowed, hops: Vec::new() }
    }

    /// Stores the library's allowance, in force from now on, and returns it.
    fn allow(&mut self, now: Time, allowance: FairrateAllowance) -> Allowance {
        let FairrateAllowance { cwnd_bytes, rate_bps, timer_ps } = allowance;
        let timer = Time::from_ps(timer_ps);
        let timer = if timer <= now { now.saturating_add(Time::from_ns(1)) } else { timer };
        self.allowed = Allowance { cwnd: Bytes::new(cwnd_bytes.max(1)), rate: Rate::from_bps(rate_bps), timer };
        self.allowed
    }

    /// Calls a function that may be missing; without it the allowance stays, except for a timer that has expired.
    fn call(
        &mut self,
        now: Time,
        call: impl FnOnce(&FairrateAlgorithm, *mut c_void) -> Option<FairrateAllowance>,
    ) -> Allowance {
        match call(self.table, self.state) {
            Some(allowance) => self.allow(now, allowance),
            None if self.allowed.timer <= now => Allowance { timer: Time::MAX, ..self.allowed },
            None => self.allowed,
        }
    }
}

// All methods are listed, so that a new one is not forgotten. The interface has no function for those that do nothing:
// its algorithms have no headers, control packets or ports, do not count what they send, and know of what is in flight
// by acknowledgments.
#[deny(clippy::missing_trait_methods)]
impl Controller for PluginController {
    // SAFETY of all calls: the state is what the table's `make` returned, is not freed yet, and is not shared.
    fn on_start(&mut self, now: Time) -> Allowance {
        self.call(now, |table, state| table.on_start.map(|f| unsafe { f(state, now.as_ps()) }))
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.hops.clear();
        self.hops.extend(ack.int.iter().map(hop_of));
        let given = ack_of(ack, &self.hops);
        self.call(ack.now, |table, state| table.on_ack.map(|f| unsafe { f(state, &raw const given) }))
    }
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance {
        let loss = match loss {
            Loss::Gap => FAIRRATE_LOSS_GAP,
            Loss::Timeout => FAIRRATE_LOSS_TIMEOUT,
        };
        self.call(now, |table, state| table.on_loss.map(|f| unsafe { f(state, now.as_ps(), loss) }))
    }
    fn on_trimmed(&mut self, trimmed: &Trimmed) -> Allowance {
        self.on_loss(trimmed.now, Loss::Gap)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.call(now, |table, state| table.on_cnp.map(|f| unsafe { f(state, now.as_ps()) }))
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        self.call(now, |table, state| table.on_timer.map(|f| unsafe { f(state, now.as_ps()) }))
    }
    fn on_sent(&mut self, _: Time, _: Bytes) -> Option<Allowance> {
        None
    }
    fn on_idle(&mut self, _: Time, _: u32) -> Option<Allowance> {
        None
    }
    fn on_notice(&mut self, _: Time, _: &Notice) -> Option<Allowance> {
        None
    }
    fn on_control(&mut self, _: Time, _: &[f64]) -> Option<Allowance> {
        None
    }
    fn on_outstanding(&mut self, _: u64, _: u64) {}
    fn stamp(&mut self, _: Time, _: &mut [f64]) {}
    fn control_packet(&mut self, _: Time, _: u64, _: &mut [f64]) -> bool {
        false
    }
    fn timer_lead(&self) -> Time {
        Time::MAX
    }
    fn last_telemetry(&self) -> &[IntHop] {
        &[]
    }
}

impl Drop for PluginController {
    fn drop(&mut self) {
        if let Some(free) = self.table.free {
            // SAFETY: the state is what `make` returned, and this is its last use.
            unsafe { free(self.state) };
        }
    }
}

/// Converts a flow's context to the interface's type.
pub(crate) fn flow_of(flow: &FlowContext) -> FairrateFlow {
    FairrateFlow {
        line_rate_bps: flow.line_rate.as_bps(),
        base_rtt_ps: flow.base_rtt.as_ps(),
        path_base_rtt_ps: flow.path_base_rtt.as_ps(),
        mtu_bytes: flow.mtu.as_u64(),
        wire_mtu_bytes: flow.wire_mtu.as_u64(),
        n_hops: u64::from(flow.n_hops),
        weight: flow.weight,
        start_ps: flow.start.as_ps(),
        size_bytes: flow.size.as_u64(),
        deadline_ps: flow.deadline.map_or(FAIRRATE_NONE, Time::as_ps),
        seed: flow.seed,
    }
}

fn hop_of(hop: &IntHop) -> FairrateHop {
    FairrateHop {
        ts_ps: hop.ts.as_ps(),
        tx_bytes: hop.tx_bytes,
        queue_bytes: u64::from(hop.qlen),
        rate_bps: hop.rate.as_bps_f64(),
    }
}

fn ack_of(ack: &Ack<'_>, hops: &[FairrateHop]) -> FairrateAck {
    FairrateAck {
        now_ps: ack.now.as_ps(),
        ack_seq: ack.ack_seq,
        snd_nxt: ack.snd_nxt,
        newly_acked: ack.newly_acked,
        delivered: ack.delivered,
        lost: ack.lost,
        rtt_ps: ack.rtt.as_ps(),
        cwnd_at_send: ack.cwnd_at_send,
        in_flight: ack.in_flight,
        delivery_rate_bps: ack.delivery_rate.as_bps(),
        prior_delivered: ack.prior_delivered.unwrap_or(FAIRRATE_NONE),
        hops: hops.as_ptr(),
        n_hops: hops.len(),
        ecn_marked: ack.ecn_marked,
        app_limited: ack.app_limited,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_char, c_void};
    use std::ptr;
    use std::sync::atomic::{AtomicU64, Ordering};

    use fairrate_control::PortRate;

    use super::*;
    use crate::abi::FAIRRATE_ABI;

    /// A counter of freed states; a state counts what it receives.
    static FREED: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" fn make(flow: *const FairrateFlow, parameters: *const f64) -> *mut c_void {
        // SAFETY: the test hands over a flow and two parameters.
        let sum = unsafe { (*flow).mtu_bytes as f64 + *parameters + *parameters.add(1) };
        Box::into_raw(Box::new(sum as u64)).cast()
    }
    unsafe extern "C" fn free(state: *mut c_void) {
        // SAFETY: it is of `make`.
        drop(unsafe { Box::from_raw(state.cast::<u64>()) });
        FREED.fetch_add(1, Ordering::SeqCst);
    }
    unsafe extern "C" fn on_start(state: *mut c_void, now_ps: u64) -> FairrateAllowance {
        // SAFETY: it is of `make`.
        FairrateAllowance { cwnd_bytes: unsafe { *state.cast::<u64>() }, rate_bps: 7, timer_ps: now_ps + 2_000 }
    }
    unsafe extern "C" fn on_ack(_: *mut c_void, ack: *const FairrateAck) -> FairrateAllowance {
        // SAFETY: the test hands over an acknowledgment with its records.
        let queue = unsafe {
            let hops = std::slice::from_raw_parts((*ack).hops, (*ack).n_hops);
            hops.iter().map(|hop| hop.queue_bytes).sum()
        };
        FairrateAllowance { cwnd_bytes: queue, rate_bps: 8, timer_ps: 1 }
    }

    fn table() -> &'static FairrateAlgorithm {
        const NO_TEXT: *const c_char = ptr::null();
        Box::leak(Box::new(FairrateAlgorithm {
            abi: FAIRRATE_ABI,
            name: NO_TEXT,
            title: NO_TEXT,
            paper: NO_TEXT,
            idea: NO_TEXT,
            needs: 0,
            cnp_interval_ps: 0,
            data_overhead_bytes: 0,
            ack_overhead_bytes: 0,
            parameters: ptr::null(),
            n_parameters: 0,
            make: Some(make),
            free: Some(free),
            on_start: Some(on_start),
            on_ack: Some(on_ack),
            on_loss: None,
            on_cnp: None,
            on_timer: None,
        }))
    }

    fn allowed(cwnd: u64, rate: u64, timer: Time) -> Allowance {
        Allowance { cwnd: Bytes::new(cwnd), rate: Rate::from_bps(rate), timer }
    }

    #[test]
    fn calls_cross_the_border_and_missing_functions_change_nothing() {
        let flow = flow_of(&FlowContext::on(Rate::from_gbps(25), Time::from_us(8)));
        let mut controller = PluginController::new(table(), &flow, &[20.0, 3.0]);
        let at = Time::from_ns;
        let started = allowed(1_023, 7, at(12));
        assert_eq!(controller.on_start(at(10)), started);
        assert_eq!((controller.on_loss(at(11), Loss::Gap), controller.on_cnp(at(11))), (started, started));
        // A timer without a function fires once.
        assert_eq!(controller.on_timer(at(12)), Allowance { timer: Time::MAX, ..started });
        let hop = |qlen| IntHop { ts: at(1), tx_bytes: 0, qlen, rate: PortRate::new(Rate::from_gbps(25)) };
        let mut acknowledge = |int: &[IntHop]| {
            let (now, rtt, delivery_rate) = (at(20), at(9), Rate::ZERO);
            let (ack_seq, snd_nxt, newly_acked, delivered, lost, in_flight, cwnd_at_send) = (1, 1, 1, 1, 0, 0, 1);
            let (app_limited, ecn_marked, prior_delivered) = (false, false, None);
            controller.on_ack(&Ack {
                now,
                ack_seq,
                snd_nxt,
                newly_acked,
                delivered,
                lost,
                rtt,
                cwnd_at_send,
                in_flight,
                delivery_rate,
                prior_delivered,
                penalty: 0,
                app_limited,
                ecn_marked,
                int,
                path: 0,
                header: &[],
            })
        };
        // A timer in the past fires a nanosecond from now, and a window has at least a byte.
        assert_eq!(acknowledge(&[hop(5), hop(6)]), allowed(11, 8, at(21)));
        assert_eq!(acknowledge(&[]), allowed(1, 8, at(21)));
        drop(controller);
        assert_eq!(FREED.load(Ordering::SeqCst), 1);
    }
}
