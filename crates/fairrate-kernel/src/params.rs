//! Conversion of a scenario's parameters to the integers of the laws. Settings that the laws do not support are
//! refused.

use fairrate_control::dctcp::{DctcpConfig, DctcpForm, DctcpInitialWindow};
use fairrate_control::perc::{PercConfig, PercShare, ShortFlows};
use fairrate_control::powertcp::PowerTcpConfig;
use fairrate_control::ratemp::{
    RateMpBaseRtt, RateMpBetaRounds, RateMpCapacity, RateMpConfig, RateMpLowRateStep, RateMpWindow,
};
use fairrate_control::rocc::{Arithmetic, InitialRate, RateAt, RoccConfig};
use fairrate_control::theta_powertcp::{
    BaseRtt, FirstAck, InitialPower, Reference, ThetaPowerTcpConfig, UpdateInterval,
};
use fairrate_control::{IntCounter, IntFormat, ParamType};
use fairrate_units::{Rate, Time};

use crate::error::Error;
use crate::laws::{
    DctcpParams, PercLink, PercParams, PowerParams, PowerTcpParams, RateMpParams, RoccParams, RoccPortParams,
    ThetaParams,
};

/// The properties of the network that an algorithm needs; a scenario defines them, and on a machine the user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Rate of the host's NIC: HostBw.
    pub line_rate: Rate,
    /// The network's base round-trip time τ; `None`: the smallest that a flow has seen.
    pub tau: Option<Time>,
}

const ONE_Q31: f64 = 2_147_483_648.0;
const ONE_Q32: f64 = 4_294_967_296.0;
const ONE_Q16: f64 = 65_536.0;
/// Longest wait of a raise, in base RTTs: one comes a round trip, and the law has room for 8.
const MOST_WAIT: f64 = 6.0;
/// Largest factor of a time in round trips.
const MOST_TIMES: f64 = 10_000.0;
/// Shortest time after which a link forgets a flow: control packets ride on data, and a slow flow has few. The authors'
/// implementation has 5 s.
const LEAST_TIMEOUT: Time = Time::from_ms(1_000);

/// Largest sum of the gains of RoCC's congestion point: its product with 2^20 units fits the law's 63 bits.
const MOST_GAIN: i128 = 3 << 40;
/// Largest rate in steps, which the law shifts by 37 bits.
const MOST_STEPS: i128 = 1 << 25;

/// Returns θ-PowerTCP's parameters.
///
/// # Errors
/// If the kernel does not support them.
pub fn theta(config: &ThetaPowerTcpConfig, path: &Path) -> Result<ThetaParams, Error> {
    let needs = Needs("θ-PowerTCP");
    needs.only("reference", &config.reference, &Reference::WindowAtSend)?;
    needs.only("first_ack", &config.first_ack, &FirstAck::Store)?;
    let one_minus_gamma = complement(config.gamma);
    Ok(ThetaParams {
        law: PowerParams {
            beta_bps: config.beta.as_bps(),
            line_bps: path.line_rate.as_bps(),
            gamma_q31: q31(config.gamma),
            one_minus_gamma_q31: q31(one_minus_gamma),
            floor_q31: q31(config.current_floor),
            per_ack: (config.update == UpdateInterval::PerAck).into(),
            initial_one: (config.initial_power == InitialPower::One).into(),
            idle_restart: config.idle_restart.into(),
        },
        tau_ns: path.tau.map_or(0, Time::as_ns),
        slack_q30: (config.base_rtt_slack * ONE_Q31 / 2.0).round() as u32,
        min_seen: (config.base_rtt == BaseRtt::MinSeen).into(),
    })
}

/// Returns PowerTCP's parameters.
///
/// # Errors
/// If the kernel does not support them.
pub fn powertcp(config: &PowerTcpConfig, path: &Path) -> Result<PowerTcpParams, Error> {
    use fairrate_control::powertcp::RateChange;
    let needs = Needs("PowerTCP");
    needs.only("reference", &config.reference, &Reference::WindowAtSend)?;
    needs.only("first_ack", &config.first_ack, &FirstAck::Store)?;
    needs.only("int_counter", &config.int_counter, &IntCounter::Transmitted)?;
    needs.only("int_format", &config.int_format, &IntFormat::Exact)?;
    needs.only("rate_change", &config.rate_change, &RateChange::Smooth)?;
    Ok(PowerTcpParams {
        law: PowerParams {
            beta_bps: config.beta.as_bps(),
            line_bps: path.line_rate.as_bps(),
            gamma_q31: q31(config.gamma),
            one_minus_gamma_q31: q31(complement(config.gamma)),
            floor_q31: q31(config.lambda_floor),
            per_ack: (config.update == UpdateInterval::PerAck).into(),
            initial_one: (config.initial_power == InitialPower::One).into(),
            idle_restart: config.idle_restart.into(),
        },
        tau_ns: path.tau.map_or(0, Time::as_ns),
        target_q31: q31(config.target_utilization).max(1),
        reserved: 0,
    })
}

/// Returns DCTCP's parameters. The first window of a bandwidth-delay product is left to the caller.
///
/// # Errors
/// If the kernel does not support them.
pub fn dctcp(config: &DctcpConfig) -> Result<DctcpParams, Error> {
    let needs = Needs("DCTCP");
    needs.only("form", &config.form, &DctcpForm::Window)?;
    needs.only("pacing", &config.pacing, &false)?;
    Ok(DctcpParams {
        g_q31: q31(config.g),
        initial_alpha_q31: q31(config.initial_alpha),
        first_packets: match config.initial_window {
            DctcpInitialWindow::Bdp => 0,
            DctcpInitialWindow::TenMtu => 10,
            DctcpInitialWindow::TwoMtu => 2,
        },
        min_packets: config.min_window,
        growth_q16: (config.ai_packets * 65_536.0).round() as u32,
        slow_start: config.slow_start.into(),
    })
}

/// Returns RoCC's parameters at a port with rate `rate`.
///
/// # Errors
/// If the kernel does not support them, or the port's numbers exceed the law's range.
pub fn rocc_port(config: &RoccConfig, rate: Rate) -> Result<RoccPortParams, Error> {
    let needs = Needs("RoCC");
    needs.only("arithmetic", &config.arithmetic, &Arithmetic::Fixed)?;
    needs.only("rate_at", &config.rate_at, &RateAt::Switch)?;
    needs.only("initial", &config.initial, &InitialRate::Max)?;
    let c = config.fixed_point(rate);
    if MOST_GAIN < c.alpha + c.beta || MOST_STEPS < c.f_max {
        let help = "give a larger `rate_unit`, or smaller `alpha`, `beta` or `fraction_bits`".to_owned();
        return Err(Error::NotInKernel { algorithm: "RoCC", setting: format!("room for a port of {rate}"), help });
    }
    let narrow = |x: i128| i64::try_from(x).unwrap_or(i64::MAX >> 2);
    Ok(RoccPortParams {
        f_min: narrow(c.f_min),
        f_max: narrow(c.f_max),
        q_ref: narrow(c.q_ref),
        q_mid: narrow(c.q_mid),
        q_max: narrow(c.q_max),
        alpha: narrow(c.alpha),
        beta: narrow(c.beta),
        whole_below: narrow(c.whole_below),
        queue_unit: config.queue_unit.as_u64(),
        fraction_bits: config.fraction_bits.into(),
    })
}

/// Returns RoCC's parameters at a sender.
pub fn rocc(config: &RoccConfig, path: &Path) -> RoccParams {
    RoccParams {
        rate_unit_bps: config.rate_unit.as_bps(),
        min_bps: config.min_rate.min(path.line_rate).as_bps(),
        line_bps: path.line_rate.as_bps(),
        rise_ns: config.rise_interval.as_ns(),
    }
}

/// Returns RateMP's parameters.
///
/// # Errors
/// If the kernel does not support them.
pub fn ratemp(config: &RateMpConfig, path: &Path) -> Result<RateMpParams, Error> {
    let needs = Needs("RateMP");
    needs.only("window", &config.window, &RateMpWindow::BaseRtt)?;
    needs.only("low_rate_step", &config.low_rate_step, &RateMpLowRateStep::RoundTrip)?;
    needs.only("beta_rounds", &config.beta_rounds, &RateMpBetaRounds::Acknowledged)?;
    let capacity = match config.capacity {
        RateMpCapacity::LineRate => path.line_rate,
        RateMpCapacity::Rate(rate) => rate,
    };
    Ok(RateMpParams {
        alpha_bps: (config.alpha * capacity.as_bps_f64()).round() as u64,
        line_bps: path.line_rate.as_bps(),
        kmax_ns: (config.kmax.as_f64() / capacity.as_bytes_per_sec() * 1e9).round() as u64,
        base_rtt_window_ns: config.base_rtt_window.as_ns(),
        min_rate_ns_q32: (config.min_rate * 1e9 * ONE_Q32).round() as u64,
        g_q31: q31(config.g),
        initial_window: config.initial_window,
        handshake: (config.base_rtt == RateMpBaseRtt::Handshake).into(),
        reserved: 0,
    })
}

/// Returns PERC's parameters. Control packets have two values (section 5), which carry the demands of `header =
/// "per-hop"`; they ride on data, so `control_packet` and `charge_control` have no meaning.
///
/// # Errors
/// If the kernel does not support them.
pub fn perc(config: &PercConfig, path: &Path) -> Result<PercParams, Error> {
    let base = &config.base;
    Needs("PERC").only("share", &config.share, &PercShare::Asking)?;
    for (name, value, most) in [("increase_wait", base.increase_wait, MOST_WAIT), ("resend", base.resend, MOST_TIMES)] {
        if most < value {
            let help = format!("give at most {most} round trips");
            return Err(Error::NotInKernel { algorithm: "PERC", setting: format!("{name} = {value}"), help });
        }
    }
    let line = path.line_rate.as_bps() << 16;
    Ok(PercParams {
        line,
        initial: (base.initial_rate * line as f64) as u64,
        tau_ns: path.tau.map_or(0, Time::as_ns),
        wait_q16: (base.increase_wait * ONE_Q16).round() as u32,
        resend_q16: (base.resend * ONE_Q16).round() as u32,
        first_rate_waits: base.first_rate_waits.into(),
        short_flows: match base.short_flows {
            ShortFlows::Off => 0,
            ShortFlows::Advertise => 1,
            ShortFlows::Pace => 2,
        },
    })
}

/// Returns PERC's link at a port with rate `rate`, where the network's base round-trip time is `tau`.
pub fn perc_link(config: &PercConfig, rate: Rate, tau: Time) -> PercLink {
    let usable = rate.as_bps_f64() * (1.0 - config.base.headroom);
    let timeout = tau.as_ns() as f64 * config.base.state_timeout;
    PercLink::new((usable * ONE_Q16) as u64, LEAST_TIMEOUT.as_ns().max(timeout as u64))
}

/// An algorithm that supports only one value of some parameters.
struct Needs(&'static str);

impl Needs {
    fn only<T: ParamType + PartialEq>(&self, name: &str, value: &T, only: &T) -> Result<(), Error> {
        if value == only {
            return Ok(());
        }
        let setting = format!("{name} = {}", value.to_toml());
        Err(Error::NotInKernel { algorithm: self.0, setting, help: format!("it has {name} = {}", only.to_toml()) })
    }
}

/// Returns a part of 1, with 31 bits behind the point.
fn q31(part: f64) -> u32 {
    (part * ONE_Q31).round() as u32
}

/// Returns 1 - γ as in PowerTCP's Rust law.
fn complement(gamma: f64) -> f64 {
    ((1.0 - gamma) * 1e9).round() / 1e9
}
