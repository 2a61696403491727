//! Closed forms on an idle network.

mod common;

use common::{algorithm, config, flow, run};
use fairrate_sim::topology::Star;
use fairrate_units::{Rate, Time};

#[test]
fn a_flow_alone_takes_its_ideal_time() {
    let star = Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    for bytes in [1, 999, 1_000, 1_001, 20_500] {
        let (recorder, totals) =
            run(config(star.clone(), algorithm("line-rate"), vec![flow(0, 1, bytes, Time::from_us(3))]));
        assert_eq!(recorder.flows[0].fct, Some(recorder.flows[0].ideal_fct), "{bytes} bytes");
        assert_eq!(totals.delivered_bytes, totals.sent_bytes);
    }
}
