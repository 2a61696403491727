//! Checks of the configuration's values.

use std::time::Duration;

use super::place::Fault;
use super::{Config, Engine, Limits};
use crate::lease::LEAST_LEASE;

/// Checks the values of a configuration; the error is the first invalid value.
pub(super) fn check(config: &Config) -> Result<(), Fault> {
    let fail = |key: &str, what: &str| Err(Fault::new(key, what));
    check_security(config)?;
    if config.scenario.is_some() == config.topology.is_some() {
        return fail("scenario", "name the network once: by `[topology]` or by `scenario = \"file.toml\"`");
    }
    if config.hosts.is_empty() == config.host.is_empty() {
        return fail("hosts", "name the hosts' addresses once: by `hosts = \"10.0.0.1+\"` or by `[[host]]`");
    }
    if config.lease < LEAST_LEASE {
        return fail("lease", "`lease` is below 10 ms: write a time such as \"500ms\"");
    }
    if LONGEST_LEASE < config.lease {
        return fail(
            "lease",
            "`lease` is above an hour, for which rates of a dead allocator would hold: write \"500ms\"",
        );
    }
    check_engine(&config.engine)?;
    for (key, time) in [("engine.interval", config.engine.interval), ("engine.batch", config.engine.batch)] {
        if config.lease / 8 < time {
            let what = format!("`{key}` is above an eighth of `lease`: rates would end before they are told");
            return fail(key, &what);
        }
    }
    check_limits(&config.limits, config.lease)
}

fn check_security(config: &Config) -> Result<(), Fault> {
    let fail = |key: &str, what: &str| Err(Fault::new(key, what));
    if config.insecure && config.keys.is_some() {
        return fail("insecure", "`insecure = true` and `[keys]` exclude each other: remove one");
    }
    if config.insecure_beyond_loopback && !config.insecure {
        return fail("insecure_beyond_loopback", "it means nothing without `insecure = true`: remove it");
    }
    if !config.insecure && config.keys.is_none() {
        let what =
            "there is no `[keys]`: make keys with `fairrate-allocator keys`, or set `insecure = true` for a test";
        return fail("insecure", what);
    }
    if config.insecure && !config.listen.ip().is_loopback() && !config.insecure_beyond_loopback {
        let what = "with `insecure = true` whoever can connect to this address may speak for every host: listen on 127.0.0.1, \
                    make keys with `fairrate-allocator keys`, or set `insecure_beyond_loopback = true` in a test network";
        return fail("listen", what);
    }
    Ok(())
}

fn check_engine(engine: &Engine) -> Result<(), Fault> {
    let Engine { gamma, alpha, threshold, .. } = engine;
    if engine.interval.is_zero() {
        return Err(Fault::new("engine.interval", "`engine.interval` is 0: write \"10us\""));
    }
    if engine.rest_after == 0 {
        let what = "`engine.rest_after` is 0, with which nothing is ever computed: write 2000";
        return Err(Fault::new("engine.rest_after", what));
    }
    if !(0.0 < *gamma && *gamma < 2.0) {
        let what = format!("NED does not converge with `engine.gamma = {gamma}`: write 0.2 to 1.5");
        return Err(Fault::new("engine.gamma", what));
    }
    if !(0.25..=8.0).contains(alpha) {
        return Err(Fault::new("engine.alpha", format!("`engine.alpha = {alpha}`: write a number from 0.25 to 8")));
    }
    if !(0.0..=0.5).contains(threshold) {
        let what = format!("`engine.threshold = {threshold}`: write a number from 0 to 0.5");
        return Err(Fault::new("engine.threshold", what));
    }
    Ok(())
}

/// The longest lease. It also fits what messages have for it.
const LONGEST_LEASE: Duration = Duration::from_hours(1);

/// Number of stamps that an agent sends in a lease, and as many messages again for its flows.
const LEAST_MESSAGES_A_LEASE: f64 = 32.0;

fn check_limits(limits: &Limits, lease: Duration) -> Result<(), Fault> {
    for (key, limit) in [
        ("agents", limits.agents),
        ("connections", limits.connections),
        ("sessions_per_agent", limits.sessions_per_agent),
        ("flows_per_agent", limits.flows_per_agent),
        ("updates_per_second", limits.updates_per_second as usize),
    ] {
        if limit == 0 {
            let what = "a limit of 0 lets nobody in: write a number above 0 in `[limits]`";
            return Err(Fault::new(format!("limits.{key}"), what));
        }
    }
    let least = (LEAST_MESSAGES_A_LEASE / lease.as_secs_f64()).ceil();
    if f64::from(limits.updates_per_second) < least {
        let what = format!("agents without flows send nearly as many messages: write at least {least}");
        return Err(Fault::new("limits.updates_per_second", what));
    }
    Ok(())
}
