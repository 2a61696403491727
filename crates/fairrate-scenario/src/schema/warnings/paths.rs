//! Warnings about the choice of paths, and about transports that meet what follows from it.

use fairrate_sim::routing::Routes;
use fairrate_sim::topology::Tier;
use fairrate_sim::{
    Balance, EntropyScheme, FaultConfig, Flap, Pfc, QueueRule, Rehash, SimConfig, Transport, TransportConfig,
};
use fairrate_units::Time;

use crate::schema::routing::knows_paths;

/// The shortest failure of a link to which networks usually react.
const NOTICEABLE: Time = Time::from_ms(1);
/// Number of base RTTs within which what is only late arrives, with queues on its way.
const PATIENCE: u64 = 10;

/// Returns the warnings about paths.
pub(super) fn warnings(config: &SimConfig) -> impl Iterator<Item = String> {
    let all =
        [disorder(config), patience(config), one_path(config), no_marks(config), no_hash(config), no_reaction(config)];
    all.into_iter().flatten()
}

/// Returns a warning if links are down for long and no switch reacts, though there are other paths.
fn no_reaction(config: &SimConfig) -> Option<String> {
    let lasts = |flap: &Flap| NOTICEABLE <= flap.up_at - flap.down_at;
    let is_long = config.faults.iter().any(|fault| fault.flap.as_ref().is_some_and(lasts));
    let topology = &config.topology;
    let n_switches = topology.nodes.iter().filter(|node| Tier::Nic < node.tier).count();
    (is_long
        && config.fabric.reroute.is_none()
        && topology.circuits.is_none()
        && 2 < n_switches
        && !knows_paths(&config.cc.needs()))
    .then(|| {
        "links go down, and no switch reacts: flows on them wait until they are up again; with \
             `routing.reroute_delay=\"1ms\"` switches send them another way after that time"
            .to_owned()
    })
}

/// Returns the time within which what is only late arrives, in whole tens of microseconds, and the largest base RTT in
/// whole nanoseconds.
fn patient(config: &SimConfig) -> (Time, Time) {
    let base_rtt = config.base_rtt(&Routes::new(&config.topology));
    let ten = Time::from_us(10).as_ps();
    let rounded = Time::from_ns(base_rtt.as_ps().div_ceil(1_000));
    (Time::from_ps((PATIENCE * base_rtt.as_ps()).next_multiple_of(ten)), rounded)
}

/// Returns a warning if packets overtake each other, and receivers take that for losses. TCP tells the two apart by
/// time, and a transport with grants has no such reports.
fn disorder(config: &SimConfig) -> Option<String> {
    let can_wait = config.transport.kind == Transport::Rdma && config.cc.needs().feedback.grants.is_none();
    (config.may_reorder() && can_wait && config.transport.reorder_window == Time::ZERO).then(|| {
        let (window, base_rtt) = patient(config);
        format!(
            "packets of a flow take several paths and overtake each other, and receivers take every gap for a loss; with \
             `transport.recovery=\"selective-repeat\"` and, for instance, `transport.reorder_window=\"{window}\"` they wait for what \
             is late (the largest base RTT is {base_rtt})"
        )
    })
}

/// Returns a warning if packets can be lost, and receivers wait for them much longer than what is only late takes.
fn patience(config: &SimConfig) -> Option<String> {
    let TransportConfig { kind, reorder_window, rto, .. } = config.transport;
    let rto = rto.filter(|_| kind == Transport::Rdma && Time::ZERO < reorder_window && loses(config))?;
    let (window, base_rtt) = patient(config);
    (window < reorder_window).then(|| {
        format!(
            "a `reorder_window` of {reorder_window} is more than {PATIENCE} of the largest base RTT, {base_rtt}: a receiver reports a gap \
             only with a packet that comes later than that, so what is lost in the last {reorder_window} of a flow waits for the `rto` of \
             {rto}; try `transport.reorder_window=\"{window}\"`"
        )
    })
}

/// Returns `true` if a switch or a link may lose data.
fn loses(config: &SimConfig) -> bool {
    let by_fault =
        |fault: &FaultConfig| 0.0 < fault.loss + fault.corrupt || fault.burst.is_some() || fault.flap.is_some();
    let limit = &config.fabric.queue;
    config.fabric.pfc == Pfc::Off || limit.rule != QueueRule::Fifo || config.faults.iter().any(by_fault)
}

/// Returns a warning if an algorithm for packets that take many paths has one path a flow.
fn one_path(config: &SimConfig) -> Option<String> {
    let is_made_for_many = config.cc.needs().feedback.uet && !config.fabric.balance.is_by_packet();
    (is_made_for_many && Routes::new(&config.topology).has_choice()).then(|| {
        format!(
            "`{}` is made for packets that take many paths, and under this `balance` each flow has one by a hash, which others may share; usual is \
             `routing.balance=\"host\"`, with `transport.entropy=\"mixed\"` by default",
            config.cc.info().name
        )
    })
}

/// Returns a warning if hosts choose paths by marks, and no switch marks packets.
fn no_marks(config: &SimConfig) -> Option<String> {
    let scheme = config.transport.entropy?.scheme;
    let by_queue = match config.fabric.queue.rule {
        QueueRule::Red(red) => red.ecn,
        QueueRule::CoDel(codel) => codel.ecn,
        QueueRule::SfqCoDel(sfq) => sfq.codel.ecn,
        QueueRule::Fifo | QueueRule::PFabric => false,
    };
    let has_marks = config.fabric.ecn.is_some() || by_queue && config.cc.needs().network.ecn;
    let trims = config.fabric.admission.trim.is_some();
    let (name, left) = match scheme {
        // EQDS's learns from packets that are cut: csg-htsim marks none.
        EntropyScheme::BitmapOnce if trims => return None,
        EntropyScheme::Oblivious | EntropyScheme::Permutation => return None,
        EntropyScheme::BitmapOnce => ("bitmap-once", "it learns from timeouts alone"),
        EntropyScheme::Bitmap if trims => ("bitmap", "it learns from packets that are cut and from timeouts alone"),
        EntropyScheme::Mixed if trims => ("mixed", "it learns from packets that are cut and from timeouts alone"),
        EntropyScheme::Bitmap => ("bitmap", "it learns from timeouts alone"),
        EntropyScheme::Mixed => ("mixed", "it learns from timeouts alone, and sends every value that comes back again"),
        EntropyScheme::Reps => ("reps", "every value that comes back is good to it"),
        EntropyScheme::RepsLegacy => ("reps-legacy", "every value that comes back is good to it"),
        EntropyScheme::Plb => ("plb", "a flow changes its path after timeouts alone"),
    };
    (!has_marks).then(|| {
        format!(
            "`entropy = \"{name}\"` learns from ECN marks, and no switch sets any: {left}; set thresholds, as \
             `switch.ecn={{ kmin = \"100KB\", kmax = \"400KB\", pmax = 0.2 }}`, or write `transport.entropy=\"oblivious\"`"
        )
    })
}

/// Returns a warning if `rehash` is set, and no switch hashes.
fn no_hash(config: &SimConfig) -> Option<String> {
    let hashes = matches!(config.fabric.balance, Balance::Ecmp | Balance::Wcmp | Balance::Host);
    let is_set = config.fabric.reroute.is_some_and(|reroute| reroute.rehash == Rehash::Resilient);
    (is_set && !hashes).then(|| {
        "`rehash = \"resilient\"` has no effect: under this `balance` no switch hashes flows, so no flow keeps a port".to_owned()
    })
}
