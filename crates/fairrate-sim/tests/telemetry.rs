//! The telemetry of a port.

use crate::common::{algorithm, config, flow, run};
use fairrate_sim::StopRule;
use fairrate_sim::topology::Dumbbell;
use fairrate_units::{Rate, Time};

/// HPCC's η and headers leave a tenth of the link free; more would be free if telemetry reported less than the link's
/// rate.
#[test]
fn rates_need_not_be_whole_megabits() {
    for bps in [500_000, 1_500_000, 1_999_999_999] {
        let (rate, delay) = (Rate::from_bps(bps), Time::from_us(1));
        let (host_rate, host_delay, bottleneck_rate, bottleneck_delay) = (rate, delay, rate, delay);
        let topology = Dumbbell { left: 1, right: 1, host_rate, host_delay, bottleneck_rate, bottleneck_delay }.build();
        for cc in ["hpcc", "powertcp"] {
            let mut c = config(topology.clone(), algorithm(cc), vec![flow(0, 1, u64::MAX, Time::ZERO)]);
            c.transport.rto = None;
            let end = Time::from_ps(rate.tx_time(fairrate_units::Bytes::new(2_000_000)).as_ps());
            c.stop = StopRule { at: Some(end), when_flows_done: false };
            let (_, totals) = run(c);
            let used = totals.delivered_bytes as f64 / 2e6;
            assert!(0.9 < used, "{cc} at {rate}: {used}");
        }
    }
}
