//! Controllers that forward their calls to others. The two macros here have every method of [`Controller`] and
//! [`CoupledController`], so that a wrapper forwards all of them: for a missing method the trait's default would run in
//! place of the algorithm.
//!
//! [`Recorder`] is for tests that every method is forwarded.
//!
//! [`Controller`]: crate::Controller
//! [`CoupledController`]: crate::CoupledController

use std::sync::{Arc, Mutex, PoisonError};

#[doc(hidden)]
pub use fairrate_units::{Bytes, Time};

use fairrate_units::Rate;

use crate::controller::{Ack, Allowance, Controller, Loss, Trimmed};
use crate::coupled::{CoupledController, PathState};
use crate::int::{IntHop, PortRate};
use crate::port::{NOTICE_VALUES, Notice};

/// Writes the methods of an `impl Controller` that forward each call. The arms are those of a `match` on `self`: a
/// pattern, and the controller that it binds. A controller that is a [`CoupledController`] is followed by `at` and the
/// number of the subflow.
///
/// `but on_ack` omits that method, which is then written by hand; `but on_start, on_ack` omits both. With
/// `noting METHOD` every decision goes through that method, which gets and returns an `Allowance` or an
/// `Option<Allowance>`.
///
/// ```
/// use fairrate_control::{Ack, Allowance, Controller, forward_controller};
///
/// /// A wrapper that hides ECN marks from a controller.
/// struct Blind<C>(C);
///
/// impl<C: Controller> Controller for Blind<C> {
///     fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
///         self.0.on_ack(&Ack { ecn_marked: false, ..*ack })
///     }
///     forward_controller!(self => { Self(c) => c }, but on_ack);
/// }
/// ```
#[macro_export]
macro_rules! forward_controller {
    ($self:ident => $arms:tt) => {
        $crate::forward_controller!(@on_start $self => $arms);
        $crate::forward_controller!($self => $arms, but on_start);
    };
    ($self:ident => $arms:tt, but on_start) => {
        $crate::forward_controller!(@on_ack $self => $arms);
        $crate::forward_controller!(@later $self => $arms);
    };
    ($self:ident => $arms:tt, but on_ack) => {
        $crate::forward_controller!(@on_start $self => $arms);
        $crate::forward_controller!(@later $self => $arms);
    };
    ($self:ident => $arms:tt, but on_start, on_ack, noting $note:ident) => {
        $crate::forward_controller!(@later $self => $arms, $note);
    };
    (@on_start $self:ident => { $($pattern:pat => $to:ident $(at $subflow:expr)?),+ $(,)? }) => {
        fn on_start(&mut $self, now: $crate::forward::Time) -> $crate::Allowance {
            match $self { $($pattern => $to.on_start(now $(, $subflow)?)),+ }
        }
    };
    (@on_ack $self:ident => { $($pattern:pat => $to:ident $(at $subflow:expr)?),+ $(,)? }) => {
        #[inline]
        fn on_ack(&mut $self, ack: &$crate::Ack<'_>) -> $crate::Allowance {
            match $self { $($pattern => $to.on_ack($($subflow,)? ack)),+ }
        }
    };
    (@later $self:ident => { $($pattern:pat => $to:ident $(at $subflow:expr)?),+ $(,)? } $(, $note:ident)?) => {
        fn on_loss(&mut $self, now: $crate::forward::Time, loss: $crate::Loss) -> $crate::Allowance {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_loss($($subflow,)? now, loss)),+ } $(, $note)?)
        }
        fn on_outstanding(&mut $self, in_flight: u64, snd_nxt: u64) {
            match $self { $($pattern => $to.on_outstanding($($subflow,)? in_flight, snd_nxt)),+ }
        }
        fn on_trimmed(&mut $self, trimmed: &$crate::Trimmed) -> $crate::Allowance {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_trimmed($($subflow,)? trimmed)),+ } $(, $note)?)
        }
        fn on_cnp(&mut $self, now: $crate::forward::Time) -> $crate::Allowance {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_cnp($($subflow,)? now)),+ } $(, $note)?)
        }
        fn on_timer(&mut $self, now: $crate::forward::Time) -> $crate::Allowance {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_timer($($subflow,)? now)),+ } $(, $note)?)
        }
        #[inline]
        fn on_sent(
            &mut $self,
            now: $crate::forward::Time,
            bytes: $crate::forward::Bytes,
        ) -> Option<$crate::Allowance> {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_sent($($subflow,)? now, bytes)),+ } $(, $note)?)
        }
        fn on_idle(&mut $self, now: $crate::forward::Time, timeouts: u32) -> Option<$crate::Allowance> {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_idle($($subflow,)? now, timeouts)),+ } $(, $note)?)
        }
        fn on_notice(&mut $self, now: $crate::forward::Time, notice: &$crate::Notice) -> Option<$crate::Allowance> {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_notice($($subflow,)? now, notice)),+ } $(, $note)?)
        }
        fn on_control(&mut $self, now: $crate::forward::Time, header: &[f64]) -> Option<$crate::Allowance> {
            $crate::forward_controller!(@noted $self, match $self { $($pattern => $to.on_control($($subflow,)? now, header)),+ } $(, $note)?)
        }
        #[inline]
        fn stamp(&mut $self, now: $crate::forward::Time, header: &mut [f64]) {
            match $self { $($pattern => $to.stamp($($subflow,)? now, header)),+ }
        }
        #[inline]
        fn control_packet(&mut $self, now: $crate::forward::Time, unsent: u64, header: &mut [f64]) -> bool {
            match $self { $($pattern => $to.control_packet($($subflow,)? now, unsent, header)),+ }
        }
        fn timer_lead(&$self) -> $crate::forward::Time {
            match $self { $($pattern => $to.timer_lead($($subflow)?)),+ }
        }
        fn last_telemetry(&$self) -> &[$crate::IntHop] {
            match $self { $($pattern => $to.last_telemetry($($subflow)?)),+ }
        }
    };
    (@noted $self:ident, $decision:expr) => {
        $decision
    };
    (@noted $self:ident, $decision:expr, $note:ident) => {{
        let decision = $decision;
        $self.$note(decision)
    }};
}

/// Writes the methods of an `impl CoupledController` that forward each call, as [`forward_controller!`] does.
#[macro_export]
macro_rules! forward_coupled {
    ($self:ident => { $($pattern:pat => $to:ident),+ $(,)? }) => {
        fn on_start(&mut $self, now: $crate::forward::Time, subflow: usize) -> $crate::Allowance {
            match $self { $($pattern => $to.on_start(now, subflow)),+ }
        }
        #[inline]
        fn on_ack(&mut $self, subflow: usize, ack: &$crate::Ack<'_>) -> $crate::Allowance {
            match $self { $($pattern => $to.on_ack(subflow, ack)),+ }
        }
        fn on_loss(&mut $self, subflow: usize, now: $crate::forward::Time, loss: $crate::Loss) -> $crate::Allowance {
            match $self { $($pattern => $to.on_loss(subflow, now, loss)),+ }
        }
        fn on_outstanding(&mut $self, subflow: usize, in_flight: u64, snd_nxt: u64) {
            match $self { $($pattern => $to.on_outstanding(subflow, in_flight, snd_nxt)),+ }
        }
        fn on_trimmed(&mut $self, subflow: usize, trimmed: &$crate::Trimmed) -> $crate::Allowance {
            match $self { $($pattern => $to.on_trimmed(subflow, trimmed)),+ }
        }
        fn on_cnp(&mut $self, subflow: usize, now: $crate::forward::Time) -> $crate::Allowance {
            match $self { $($pattern => $to.on_cnp(subflow, now)),+ }
        }
        fn on_timer(&mut $self, subflow: usize, now: $crate::forward::Time) -> $crate::Allowance {
            match $self { $($pattern => $to.on_timer(subflow, now)),+ }
        }
        fn on_sent(
            &mut $self,
            subflow: usize,
            now: $crate::forward::Time,
            bytes: $crate::forward::Bytes,
        ) -> Option<$crate::Allowance> {
            match $self { $($pattern => $to.on_sent(subflow, now, bytes)),+ }
        }
        fn on_idle(
            &mut $self,
            subflow: usize,
            now: $crate::forward::Time,
            timeouts: u32,
        ) -> Option<$crate::Allowance> {
            match $self { $($pattern => $to.on_idle(subflow, now, timeouts)),+ }
        }
        fn on_notice(
            &mut $self,
            subflow: usize,
            now: $crate::forward::Time,
            notice: &$crate::Notice,
        ) -> Option<$crate::Allowance> {
            match $self { $($pattern => $to.on_notice(subflow, now, notice)),+ }
        }
        fn on_control(
            &mut $self,
            subflow: usize,
            now: $crate::forward::Time,
            header: &[f64],
        ) -> Option<$crate::Allowance> {
            match $self { $($pattern => $to.on_control(subflow, now, header)),+ }
        }
        fn stamp(&mut $self, subflow: usize, now: $crate::forward::Time, header: &mut [f64]) {
            match $self { $($pattern => $to.stamp(subflow, now, header)),+ }
        }
        fn control_packet(
            &mut $self,
            subflow: usize,
            now: $crate::forward::Time,
            unsent: u64,
            header: &mut [f64],
        ) -> bool {
            match $self { $($pattern => $to.control_packet(subflow, now, unsent, header)),+ }
        }
        fn timer_lead(&$self, subflow: usize) -> $crate::forward::Time {
            match $self { $($pattern => $to.timer_lead(subflow)),+ }
        }
        fn last_telemetry(&$self, subflow: usize) -> &[$crate::IntHop] {
            match $self { $($pattern => $to.last_telemetry(subflow)),+ }
        }
        fn on_path(&mut $self, subflow: usize, now: $crate::forward::Time, state: $crate::PathState) {
            match $self { $($pattern => $to.on_path(subflow, now, state)),+ }
        }
    };
}

/// The calls that reached a [`Recorder`]: the method's name, and the subflow if the recorder controls a connection.
pub type Calls = Arc<Mutex<Vec<(&'static str, Option<usize>)>>>;

/// A controller of a flow or of a connection that records every call. Its windows are 1, 2, 3 ... bytes: one byte more
/// with each call.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The calls so far, shared by all clones.
    pub calls: Calls,
}

impl Recorder {
    fn note(&self, method: &'static str, subflow: Option<usize>) -> Allowance {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push((method, subflow));
        Allowance { cwnd: Bytes::new(calls.len() as u64), rate: Rate::from_gbps(1), timer: Time::MAX }
    }

    /// Returns the calls since the last `take`, and clears them.
    pub fn take(&self) -> Vec<(&'static str, Option<usize>)> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes the methods of a [`Recorder`]: for a flow, or for the subflows of a connection.
macro_rules! record {
    ($($subflow:ident)?) => {
        fn on_ack(&mut self, $($subflow: usize,)? _: &Ack<'_>) -> Allowance {
            self.note("on_ack", record!(@of $($subflow)?))
        }
        fn on_loss(&mut self, $($subflow: usize,)? _: Time, _: Loss) -> Allowance {
            self.note("on_loss", record!(@of $($subflow)?))
        }
        fn on_outstanding(&mut self, $($subflow: usize,)? _: u64, _: u64) {
            self.note("on_outstanding", record!(@of $($subflow)?));
        }
        fn on_trimmed(&mut self, $($subflow: usize,)? _: &Trimmed) -> Allowance {
            self.note("on_trimmed", record!(@of $($subflow)?))
        }
        fn on_cnp(&mut self, $($subflow: usize,)? _: Time) -> Allowance {
            self.note("on_cnp", record!(@of $($subflow)?))
        }
        fn on_timer(&mut self, $($subflow: usize,)? _: Time) -> Allowance {
            self.note("on_timer", record!(@of $($subflow)?))
        }
        fn on_sent(&mut self, $($subflow: usize,)? _: Time, _: Bytes) -> Option<Allowance> {
            Some(self.note("on_sent", record!(@of $($subflow)?)))
        }
        fn on_idle(&mut self, $($subflow: usize,)? _: Time, _: u32) -> Option<Allowance> {
            Some(self.note("on_idle", record!(@of $($subflow)?)))
        }
        fn on_notice(&mut self, $($subflow: usize,)? _: Time, _: &Notice) -> Option<Allowance> {
            Some(self.note("on_notice", record!(@of $($subflow)?)))
        }
        fn on_control(&mut self, $($subflow: usize,)? _: Time, _: &[f64]) -> Option<Allowance> {
            Some(self.note("on_control", record!(@of $($subflow)?)))
        }
        fn stamp(&mut self, $($subflow: usize,)? _: Time, header: &mut [f64]) {
            header[0] = self.note("stamp", record!(@of $($subflow)?)).cwnd.as_f64();
        }
        fn control_packet(&mut self, $($subflow: usize,)? _: Time, _: u64, header: &mut [f64]) -> bool {
            header[0] = self.note("control_packet", record!(@of $($subflow)?)).cwnd.as_f64();
            true
        }
        fn timer_lead(&self $(, $subflow: usize)?) -> Time {
            Time::from_ps(self.note("timer_lead", record!(@of $($subflow)?)).cwnd.as_u64())
        }
        // As many records as there were calls: a few, once a test.
        fn last_telemetry(&self $(, $subflow: usize)?) -> &[IntHop] {
            let hop = IntHop { ts: Time::ZERO, tx_bytes: 0, qlen: 0, rate: PortRate::new(Rate::from_gbps(1)) };
            let n_calls = self.note("last_telemetry", record!(@of $($subflow)?)).cwnd.as_u64();
            vec![hop; n_calls as usize].leak()
        }
    };
    (@of) => { None };
    (@of $subflow:ident) => { Some($subflow) };
}

impl Controller for Recorder {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.note("on_start", None)
    }
    record!();
}

impl CoupledController for Recorder {
    fn on_start(&mut self, _: Time, subflow: usize) -> Allowance {
        self.note("on_start", Some(subflow))
    }
    record!(subflow);
    fn on_path(&mut self, subflow: usize, _: Time, _: PathState) {
        self.note("on_path", Some(subflow));
    }
}

/// Calls every method of `controller` once, in the order of the trait. Returns the name of each method and the number
/// in its answer, which is a [`Recorder`]'s count of calls.
pub fn call_all(controller: &mut impl Controller) -> Vec<(&'static str, u64)> {
    let now = Time::from_us(1);
    let ack = some_ack(now);
    let notice = Notice { flow: 0, port: 0, values: [0.0; NOTICE_VALUES] };
    let trimmed = Trimmed { now, bytes: Bytes::new(1), rtt: None, last_hop: false, in_flight: 0 };
    let decided = |allowance: Allowance| allowance.cwnd.as_u64();
    let maybe = |allowance: Option<Allowance>| allowance.map_or(0, decided);
    let mut answers = vec![
        ("on_start", decided(controller.on_start(now))),
        ("on_ack", decided(controller.on_ack(&ack))),
        ("on_loss", decided(controller.on_loss(now, Loss::Gap))),
        ("on_trimmed", decided(controller.on_trimmed(&trimmed))),
        ("on_cnp", decided(controller.on_cnp(now))),
        ("on_timer", decided(controller.on_timer(now))),
        ("on_sent", maybe(controller.on_sent(now, Bytes::new(1)))),
        ("on_idle", maybe(controller.on_idle(now, 1))),
        ("on_notice", maybe(controller.on_notice(now, &notice))),
        ("on_control", maybe(controller.on_control(now, &[0.0]))),
    ];
    // It answers nothing: the counts of the calls after it show that it has come.
    controller.on_outstanding(1, 2);
    answers.push(("on_outstanding", answers.len() as u64 + 1));
    let (mut stamped, mut asked) = ([0.0], [0.0]);
    controller.stamp(now, &mut stamped);
    answers.push(("stamp", stamped[0] as u64));
    let leaves = controller.control_packet(now, 0, &mut asked);
    answers.push(("control_packet", if leaves { asked[0] as u64 } else { 0 }));
    answers.push(("timer_lead", controller.timer_lead().as_ps()));
    answers.push(("last_telemetry", controller.last_telemetry().len() as u64));
    answers
}

fn some_ack(now: Time) -> Ack<'static> {
    Ack {
        now,
        ack_seq: 1,
        snd_nxt: 1,
        newly_acked: 1,
        delivered: 1,
        lost: 0,
        rtt: now,
        cwnd_at_send: 1,
        in_flight: 0,
        delivery_rate: Rate::ZERO,
        prior_delivered: None,
        penalty: 0,
        app_limited: false,
        ecn_marked: false,
        int: &[],
        path: 0,
        header: &[],
    }
}
