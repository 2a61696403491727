//! Clients and servers over loopback.

use std::time::Duration;

use crate::common::{ALONE_BPS, INSECURE, Running, client, host, is_near, until};

#[test]
fn rates_are_shares_by_weight_and_follow_flows() {
    let server = Running::start(INSECURE, 1);
    let (first, second) = (client(&[server.address]), client(&[server.address]));
    first.begin(1, host(1), host(3), 1.0);
    until("a flow alone has the link", || is_near(first.rate_bps(1), ALONE_BPS));
    second.begin(1, host(2), host(3), 2.0);
    until("weights are 1 to 2", || {
        is_near(first.rate_bps(1), ALONE_BPS / 3.0) && is_near(second.rate_bps(1), ALONE_BPS * 2.0 / 3.0)
    });
    let grants = first.grants(Duration::from_secs(1));
    assert!(grants.iter().any(|grant| grant.flow == 1), "the program is told");
    second.end(1);
    until("the flow is alone again", || is_near(first.rate_bps(1), ALONE_BPS));
    assert_eq!(second.rate_bps(1), None);
    drop(second);
    until("who leaves is forgotten at once", || server.metric("fairrate_agents") == 1.0);
    server.stop();
}

/// A long flow over two links, each with one other flow: it has C / (1 + 2^(1 / α)), and the others have the rest.
#[test]
fn alpha_says_what_is_fair() {
    for alpha in [0.5, 1.0, 2.0, 8.0] {
        let server = Running::start(&format!("{INSECURE}[engine]\nalpha = {alpha:?}\n"), 1);
        let client = client(&[server.address]);
        for (flow, src, dst) in [(1, 1, 2), (2, 1, 3), (3, 4, 2)] {
            client.begin(flow, host(src), host(dst), 1.0);
        }
        let long = ALONE_BPS / (1.0 + 2.0_f64.powf(1.0 / alpha));
        until("rates are fair", || {
            is_near(client.rate_bps(1), long) && [2, 3].iter().all(|&f| is_near(client.rate_bps(f), ALONE_BPS - long))
        });
        // Weights are shares of a bottleneck for every alpha.
        client.end(2);
        client.end(3);
        client.begin(4, host(4), host(2), 3.0);
        until("weights are 1 to 3", || {
            is_near(client.rate_bps(1), ALONE_BPS / 4.0) && is_near(client.rate_bps(4), ALONE_BPS * 0.75)
        });
        server.stop();
    }
}

#[test]
fn flows_without_a_path_have_no_rate() {
    let server = Running::start(INSECURE, 1);
    let client = client(&[server.address]);
    client.begin(1, host(1), host(1), 1.0);
    client.begin(2, host(1), host(200), 1.0);
    client.begin(3, host(1), host(2), 1.0);
    until("the flow with a path has a rate", || client.rate_bps(3).is_some());
    assert_eq!((client.rate_bps(1), client.rate_bps(2)), (None, None));
    until("they are counted", || server.metric("fairrate_refused_total{why=\"no-path\"}") == 2.0);
    server.stop();
}

#[test]
fn a_restarted_server_hears_of_all_flows() {
    let first = Running::start(INSECURE, 1);
    let at_same_address = INSECURE.replace("127.0.0.1:0", &first.address.to_string());
    let client = client(&[first.address]);
    (0..100).for_each(|flow| client.begin(flow, host(1 + (flow % 7) as u8), host(8), 1.0));
    until("all have a rate", || (0..100).all(|flow| client.rate_bps(flow).is_some()));
    first.stop();
    until("rates end with the lease", || (0..100).all(|flow| client.rate_bps(flow).is_none()));
    let grants = client.grants(Duration::ZERO);
    assert!(grants.len() == 100 && grants.iter().all(|grant| grant.rate_bps == 0.0), "the program is told");
    let second = Running::start(&at_same_address, 2);
    until("all have a rate again", || (0..100).all(|flow| client.rate_bps(flow).is_some()));
    second.stop();
}

#[test]
fn a_standby_takes_over() {
    let (primary, standby) = (Running::start(INSECURE, 1), Running::start(INSECURE, 2));
    let client = client(&[primary.address, standby.address]);
    client.begin(1, host(1), host(2), 1.0);
    until("both know the flow", || {
        [&primary, &standby].iter().all(|server| server.metric("fairrate_flows") == 1.0) && client.rate_bps(1).is_some()
    });
    primary.stop();
    client.begin(2, host(1), host(2), 1.0);
    until("the standby's rates are in force", || {
        is_near(client.rate_bps(1), ALONE_BPS / 2.0) && is_near(client.rate_bps(2), ALONE_BPS / 2.0)
    });
    standby.stop();
}
