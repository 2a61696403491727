//! The windows in which goodput is measured around the first failure of a link.

use fairrate_sim::topology::Topology;
use fairrate_sim::{FailureWindows, FaultConfig, Flap, StopRule};
use fairrate_units::{Bytes, Rate, Time};

/// The shortest window, which holds a few round trips of a datacenter.
const SHORTEST: Time = Time::from_us(20);
/// Least number of full packets that the slowest host sends in a window: a packet more or less is then 4 % of it.
const PACKETS: u64 = 25;
/// Largest number of windows before the failure.
const MOST_BEFORE: u64 = 200;
/// Largest number of windows after it.
const MOST_AFTER: u64 = 2_000;

/// Returns the windows around the first time at which a link of `faults` goes down, in a run of flows that are measured
/// from `from`, with packets of `packet` bytes. `None` if no link goes down, or not after a window of the second half
/// of the time before.
pub(super) fn windows(
    topology: &Topology,
    faults: &[FaultConfig],
    packet: Bytes,
    from: Time,
    end: &StopRule,
) -> Option<FailureWindows> {
    let begins = |fault: &FaultConfig| fault.flap.map(|Flap { down_at, .. }| down_at).filter(|at| *at < fault.stop);
    let end = end.at.unwrap_or(Time::MAX);
    let down_at = faults.iter().filter_map(begins).min().filter(|at| *at < end)?;
    let slowest: Rate = topology.host_links().map(|(_, link)| link.rate).min()?;
    let packets = slowest.tx_time(packet).as_ps().saturating_mul(PACKETS);
    let share = if end < Time::MAX { (end - down_at).as_ps() / MOST_AFTER } else { 0 };
    // Whole microseconds are read more easily.
    let window = SHORTEST.as_ps().max(packets).max(share).next_multiple_of(Time::from_us(1).as_ps());
    let from = if from < down_at { from } else { Time::ZERO };
    let n_before = ((down_at - from).as_ps() / 2 / window).min(MOST_BEFORE);
    let n_after = ((end - down_at).as_ps() / window).min(MOST_AFTER);
    let window = Time::from_ps(window);
    (0 < n_before && 0 < n_after).then_some(FailureWindows { down_at, window, n_before, n_after })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fairrate_sim::FailureWindows;
    use fairrate_units::Time;

    use crate::{Overrides, Scenario};

    fn windows(rest: &str) -> Option<FailureWindows> {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 3\nrate = \"25Gbps\"\n[transport]\nrto = \"1ms\"\n[[traffic]]\n\
             kind = \"incast\"\nreceiver = \"h0\"\nsenders = 2\nbytes = \"1MB\"\n{rest}"
        );
        let (text, overrides) = (format!("duration = \"10ms\"\n{text}"), Overrides::default());
        Scenario::from_toml(&text, "x.toml", Path::new("."), &overrides).unwrap().window().failure
    }

    /// A fault that only loses packets has no windows. A link that goes down at 1 ms has 500 us before it, which is 25
    /// windows of 20 us, and 9 ms after it, which is 450. Before a failure at 30 us there is no whole window in the
    /// second half of the time.
    #[test]
    fn windows_are_those_around_the_first_failure() {
        assert_eq!(windows(""), None);
        let fault = |keys: &str| format!("[[fault]]\nlinks = [\"h1->sw0\"]\n{keys}\n");
        assert_eq!(windows(&fault("loss = 0.1")), None);
        assert_eq!(windows(&fault("down_at = \"30us\"")), None);
        let of = |n_before, n_after, ms| {
            let (down_at, window) = (Time::from_ms(ms), Time::from_us(20));
            Some(FailureWindows { down_at, window, n_before, n_after })
        };
        let (late, early) = (fault("down_at = \"2ms\""), fault("down_at = \"1ms\"\nup_at = \"2ms\""));
        assert_eq!(windows(&(late + &early)), of(25, 450, 1));
        // From 800 us on: 100 us before.
        assert_eq!(windows(&(early + "[measure]\nfrom = \"800us\"\n")), of(5, 450, 1));
    }
}
