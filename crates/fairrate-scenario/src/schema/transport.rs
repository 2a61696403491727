//! `[transport]`: the transport protocol of hosts and the algorithm that controls it.

use fairrate_control::credits::CreditRule;
use fairrate_control::{AlgorithmConfig, Needs, Parameters, PortScope, Profile};
use fairrate_sim::{
    Balance, BaseRttRule, Entropy, EntropyScheme, Recovery, Stack, Transport, TransportConfig, WindowRule,
};
use fairrate_units::{Bytes, Time};

use super::algorithm::{self, Algorithms};
use super::files::Files;
use super::{routing, tcp};
use crate::reader::{OrWord, Output, Section};

/// The artifact puts data and acknowledgments into class 3; class 0 is PFC's own.
const DATA_CLASS: u8 = 3;
/// Class of packets that go ahead of data.
const CONTROL_CLASS: u8 = 1;

/// IRN's retransmission timeouts (SIGCOMM 2018, section 4.1), the second while few packets are in flight.
const IRN_RTO: Time = Time::from_us(320);
const IRN_RTO_LOW: Time = Time::from_us(100);

/// Reads `[transport]` and the algorithm's section in it.
pub(super) fn read(root: &mut Section<'_>, profile: Profile, files: &Files<'_>, algorithms: Algorithms) -> Stack {
    let by_hosts = routing::is_by_hosts(root);
    let s = root.child("transport", "`[transport]`");
    let (stack, out) = read_stack(s, profile, files, algorithms, (by_hosts, None));
    root.out.tables.push(("transport".into(), out));
    stack
}

/// Reads `s`, a section like `[transport]`, and the algorithm's section in it. `by_hosts`: hosts choose paths. `mtu`:
/// the default of this key, if it has another one than usual.
pub(super) fn read_stack(
    mut s: Section<'_>,
    profile: Profile,
    files: &Files<'_>,
    algorithms: Algorithms,
    (by_hosts, mtu): (bool, Option<Bytes>),
) -> (Stack, Output) {
    let (cc, registry) = algorithm::read_cc(&mut s, profile, files, algorithms);
    let config = read_config(&mut s, profile, &cc.needs(), by_hosts, mtu);
    check(&s, &config);
    check_reorder_window(&s, &config);
    let (cc, sections) = algorithm::read_algorithms(&mut s, profile, config.kind, cc, &registry);
    check_notifications(&s, config.kind, &cc);
    check_grants(&s, config.kind, &cc);
    check_uet(&s, config.kind, &cc);
    check_each_header(&s, &config, &cc);
    check_packets(&s, &config, &cc);
    let mut out = s.finish();
    out.tables.extend(sections);
    (Stack { transport: config, cc }, out)
}

fn read_config(
    s: &mut Section<'_>,
    profile: Profile,
    needs: &Needs,
    by_hosts: bool,
    usual_mtu: Option<Bytes>,
) -> TransportConfig {
    let overhead = |word: OrWord<Bytes>| match word {
        OrWord::Word(_) => None,
        OrWord::Value(bytes) => Some(bytes),
    };
    let omnet = profile == Profile::RoccOmnet;
    let notices = needs.network.ports != PortScope::None;
    let reaction_delay = if omnet && notices { Time::from_us(15) } else { Time::ZERO };
    let none_of = if omnet { OrWord::Value(Bytes::ZERO) } else { OrWord::Word(0) };
    let (mtu, header, ack) = match profile {
        // Frames of 1518 B. RoCC's and DCQCN's receivers send no acknowledgments there, so they are as small as can be.
        Profile::RoccOmnet => (1_472, 46, if needs.network.telemetry.is_some() { 64 } else { 1 }),
        // As in PowerTCP's public code for its evaluation: 1000 B of payload; Ethernet 14, IP 20, UDP 8 and sequence
        // number and class 6; acknowledgments of the smallest frame without its checksum.
        Profile::Paper | Profile::Ns3 => (1_000, 48, 60),
    };
    let kind = read_kind(s, needs);
    let is_uet = matches!(kind, Transport::Uet { .. });
    // uet-htsim's and csg-htsim's headers.
    let (mtu, header, ack) = if is_uet { (needs.datagrams.mtu.as_u64(), 64, 64) } else { (mtu, header, ack) };
    let repairs = [("go-back-n", Repair::GoBackN), ("selective-repeat", Repair::SelectiveRepeat), ("irn", Repair::Irn)];
    let repair = s.choice("recovery", &repairs, Repair::GoBackN).value;
    let is_irn = repair == Repair::Irn;
    TransportConfig {
        kind,
        mtu: s.get("mtu", usual_mtu.unwrap_or(Bytes::new(mtu))).value,
        header: s.get("header", Bytes::new(header)).value,
        ack: s.get("ack", Bytes::new(ack)).value,
        data_overhead: overhead(s.value_or("data_overhead", &["algorithm"], none_of).value),
        ack_overhead: overhead(s.value_or("ack_overhead", &["algorithm"], none_of).value),
        // A RoCE congestion notification is a smallest frame.
        cnp: s.get("cnp", Bytes::new(64)).value,
        data_class: class(s, "data_class", DATA_CLASS),
        ack_class: class(s, "ack_class", if is_uet { CONTROL_CLASS } else { DATA_CLASS }),
        // Notices of switches and control packets of flows have priority over everything but PFC frames.
        control_class: class(
            s,
            "control_class",
            if omnet && !is_uet || needs.wire.control_with_data { DATA_CLASS } else { CONTROL_CLASS },
        ),
        // RoCC section VI has 15 us; most papers have no reaction delay.
        reaction_delay: s.get("reaction_delay", reaction_delay).value,
        recovery: if repair == Repair::GoBackN { Recovery::GoBackN } else { Recovery::SelectiveRepeat },
        rto: read_rto(s, profile, is_uet.then_some(needs.datagrams.rto).or(is_irn.then_some(IRN_RTO))),
        rto_low: read_rto_low(s, is_irn),
        // L2 NACK interval of the artifact.
        nack_interval: s.get("nack_interval", Time::from_us(500)).value,
        // RoCE and IRN take every gap for a loss at once.
        reorder_window: s.get("reorder_window", Time::ZERO).value,
        ack_every: read_ack_every(s, kind),
        entropy: read_entropy(s, by_hosts.then(|| usual_entropy(kind, needs))),
        window: read_window(s, omnet.then(|| omnet_window(needs)).or(is_irn.then_some(WindowRule::Bdp))),
        // ns-3's RDMA stack sends while less than a window is in flight, and so may exceed the window.
        window_overshoot: s.get("window_overshoot", profile == Profile::Ns3).value,
        base_rtt: read_base_rtt(s, profile),
    }
}

/// Returns the rule by which hosts choose paths if none is given: uet-htsim's default, and EQDS's and NDP's own; for
/// TCP the one that keeps order; otherwise the one that needs nothing from the network.
fn usual_entropy(kind: Transport, needs: &Needs) -> EntropyScheme {
    match kind {
        Transport::Uet { .. } => match needs.feedback.credit.map(|credits| credits.rule) {
            Some(CreditRule::Whole { .. }) => EntropyScheme::BitmapOnce,
            Some(CreditRule::Arrivals) => EntropyScheme::Permutation,
            Some(CreditRule::Wanted { .. }) | None => EntropyScheme::Mixed,
        },
        Transport::Tcp(_) if needs.network.ecn => EntropyScheme::Plb,
        Transport::Rdma | Transport::Tcp(_) => EntropyScheme::Oblivious,
    }
}

/// Reads `entropy`, which is `usual` if it is not given, and `entropy_values`. uet-htsim has 64 values by default.
fn read_entropy(s: &mut Section<'_>, usual: Option<EntropyScheme>) -> Option<Entropy> {
    let schemes: Vec<(&'static str, Option<EntropyScheme>)> =
        std::iter::once(("none", None)).chain(EntropyScheme::ALL.map(|scheme| (scheme.name(), Some(scheme)))).collect();
    let scheme = s.choice("entropy", &schemes, usual).value;
    let values = s.get::<u16>("entropy_values", 64).value;
    if !values.is_power_of_two() || 1 << 15 < values {
        let message = format!("{values} entropy values");
        let help = "write a power of two up to 32768, as `entropy_values = 64`";
        s.problem_at("scenario::out_of_range", "entropy_values", message, help);
        return None;
    }
    scheme.map(|scheme| Entropy { scheme, values })
}

/// Checks that hosts choose paths if, and only if, switches go by their choices, and that what a scheme needs comes
/// back.
pub(super) fn check_entropy(root: &Section<'_>, config: &TransportConfig, cc: &AlgorithmConfig, balance: Balance) {
    let at = |section: &'static str| if root.has(section) { section } else { "topology" };
    let problem = |section, message: &str, help: &str| {
        root.problem_at("scenario::conflict", at(section), message, help);
    };
    match (config.entropy, balance) {
        (None, Balance::Host) => {
            let message = "hosts are to choose paths, and `entropy = \"none\"` gives them no way to";
            problem(
                "transport",
                message,
                "remove `entropy`, or write for instance `entropy = \"reps\"` in `[transport]`",
            );
        }
        (Some(_), balance) if balance != Balance::Host => {
            let message = "packets carry values for switches to hash, and switches do not look at them";
            problem("transport", message, "write `balance = \"host\"` in `[routing]`");
        }
        (Some(entropy), _) if cc.needs().feedback.grants.is_some() && entropy.scheme != EntropyScheme::Oblivious => {
            let message =
                format!("receivers of `{}` do not acknowledge packets, so no value comes back", cc.info().name);
            problem("transport", &message, "write `entropy = \"oblivious\"`");
        }
        _ => {}
    }
}

/// Checks that each packet has an acknowledgment of its own if the algorithm needs every header.
fn check_each_header(s: &Section<'_>, config: &TransportConfig, cc: &AlgorithmConfig) {
    let (key, help) = match &config.kind {
        _ if !cc.needs().feedback.each_header => return,
        Transport::Rdma if config.ack_every.is_some() => ("ack_every", "remove `ack_every`"),
        Transport::Tcp(tcp) if tcp.delayed_ack.is_some() => ("tcp", "remove `delayed_ack`"),
        _ => return,
    };
    let name = cc.info().name;
    let message = format!("`{name}` needs an acknowledgment of each packet, as each brings feedback of its own");
    s.problem_at("scenario::conflict", key, message, help);
}

/// Checks that only receivers that keep what comes out of order wait for what is missing.
fn check_reorder_window(s: &Section<'_>, config: &TransportConfig) {
    if Time::ZERO < config.reorder_window && (config.recovery, config.kind) == (Recovery::GoBackN, Transport::Rdma) {
        let message = "go-back-N keeps nothing that comes out of order, so it has nothing to wait for";
        let help = "set `recovery = \"selective-repeat\"`, or remove `reorder_window`";
        s.problem_at("scenario::conflict", "reorder_window", message, help);
    }
}

/// The words of `recovery`. IRN is selective repeat with a window and two timeouts, which are keys of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repair {
    GoBackN,
    SelectiveRepeat,
    Irn,
}

/// The protocols.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Rdma,
    Tcp,
    Uet,
}

/// Reads `kind` and `[transport.uet]`: RDMA, as in the papers' RoCE fabrics, TCP, or Ultra Ethernet, which some
/// algorithms need.
fn read_kind(s: &mut Section<'_>, needs: &Needs) -> Transport {
    let kinds = [("rdma", Protocol::Rdma), ("tcp", Protocol::Tcp), ("uet", Protocol::Uet)];
    let protocol = s.choice("kind", &kinds, if needs.feedback.uet { Protocol::Uet } else { Protocol::Rdma }).value;
    let mut u = s.child("uet", "`[transport.uet]`");
    let ack_every = u.get("ack_every", needs.datagrams.ack_every).value;
    let out = u.finish();
    if protocol == Protocol::Uet || s.has("uet") {
        s.out.tables.push(("uet".into(), out));
    }
    let tcp = tcp::read(s, protocol == Protocol::Tcp);
    match protocol {
        Protocol::Rdma => Transport::Rdma,
        Protocol::Tcp => Transport::Tcp(tcp),
        Protocol::Uet => Transport::Uet { ack_every },
    }
}

/// Reads the rule of windows.
fn read_window(s: &mut Section<'_>, default: Option<WindowRule>) -> WindowRule {
    const WORDS: [&str; 4] = ["algorithm", "rate-scaled", "bdp", "none"];
    const RULES: [WindowRule; 4] = [WindowRule::Algorithm, WindowRule::RateScaled, WindowRule::Bdp, WindowRule::None];
    let default = match default.unwrap_or(WindowRule::Algorithm) {
        WindowRule::Fixed(bytes) => OrWord::Value(bytes),
        rule => OrWord::Word(RULES.iter().position(|&of| of == rule).expect("all others have a word")),
    };
    match s.value_or::<Bytes>("window", &WORDS, default).value {
        OrWord::Word(word) => RULES[word],
        OrWord::Value(bytes) => WindowRule::Fixed(bytes),
    }
}

/// Returns the window of the OMNeT++ code of RoCC's authors. With loss recovery, which their HPCC has, a flow's queue
/// at its NIC holds 100 KB of frames until they are acknowledged, and that is 66 of them.
fn omnet_window(needs: &Needs) -> WindowRule {
    if needs.network.telemetry.is_some() { WindowRule::Fixed(Bytes::new(66 * 1_472)) } else { WindowRule::None }
}

/// Reads the retransmission timeout. The artifact has none. The default of the paper profile is 4 ms, InfiniBand's
/// smallest common setting, far above any RTT here.
/// `of_uet`: that of Ultra Ethernet's transport, if it is in use.
fn read_rto(s: &mut Section<'_>, profile: Profile, of_uet: Option<Time>) -> Option<Time> {
    let default = match profile {
        _ if let Some(rto) = of_uet => OrWord::Value(rto),
        Profile::Paper => OrWord::Value(Time::from_ms(4)),
        // It has no loss recovery.
        Profile::RoccOmnet => OrWord::Value(Time::from_ms(900)),
        Profile::Ns3 => OrWord::Word(0),
    };
    match s.value_or::<Time>("rto", &["none"], default).value {
        OrWord::Word(_) => None,
        OrWord::Value(rto) => Some(rto),
    }
}

/// Reads after how much payload an RDMA receiver acknowledges.
fn read_ack_every(s: &mut Section<'_>, kind: Transport) -> Option<Bytes> {
    let every = match s.value_or::<Bytes>("ack_every", &["packet", "message"], OrWord::Word(0)).value {
        OrWord::Word(0) => return None,
        OrWord::Word(_) => Bytes::MAX,
        OrWord::Value(every) => every,
    };
    if kind != Transport::Rdma {
        let help = "remove it; `ack_every` in `[transport.uet]` and `delayed_ack` in `[transport.tcp]` are those transports' own";
        s.problem_at("scenario::conflict", "ack_every", "only RDMA's acknowledgments are coalesced by this", help);
    }
    Some(every)
}

/// Reads the retransmission timeout while few packets are in flight.
fn read_rto_low(s: &mut Section<'_>, is_irn: bool) -> Option<Time> {
    let default = if is_irn { OrWord::Value(IRN_RTO_LOW) } else { OrWord::Word(0) };
    match s.value_or::<Time>("rto_low", &["none"], default).value {
        OrWord::Word(_) => None,
        OrWord::Value(rto) => Some(rto),
    }
}

fn read_base_rtt(s: &mut Section<'_>, profile: Profile) -> BaseRttRule {
    let default = match profile {
        Profile::Paper | Profile::RoccOmnet => OrWord::Word(0),
        Profile::Ns3 => OrWord::Word(1),
    };
    match s.value_or::<Time>("base_rtt", &["exact", "payload-only"], default).value {
        OrWord::Word(0) => BaseRttRule::Exact,
        OrWord::Word(_) => BaseRttRule::PayloadOnly,
        OrWord::Value(rtt) => BaseRttRule::Fixed(rtt),
    }
}

/// Reads a priority class for packets of hosts: 1 to 7, as 0 is reserved for PFC frames.
pub(super) fn class(s: &mut Section<'_>, key: &str, default: u8) -> u8 {
    let class = s.get(key, default);
    check_class(s, key, class.value);
    class.value
}

/// Reports a class that hosts cannot use.
pub(super) fn check_class(s: &Section<'_>, key: &str, class: u8) {
    let help = format!("write a class from 1 (highest) to 7, as `{key} = 3`");
    match class {
        0 => s.problem_at("scenario::out_of_range", key, "class 0 is reserved for PFC frames", help),
        1..=7 => {}
        _ => s.problem_at("scenario::out_of_range", key, format!("there is no class {class}"), help),
    }
}

fn check(s: &Section<'_>, config: &TransportConfig) {
    let out_of = |key: &str, bytes: Bytes, lo: u64, hi: u64| {
        if !(lo..=hi).contains(&bytes.as_u64()) {
            let message = format!("`{key}` of {bytes} is out of range");
            let help = format!("write a size from {} to {}", Bytes::new(lo), Bytes::new(hi));
            s.problem_at("scenario::out_of_range", key, message, help);
        }
    };
    out_of("mtu", config.mtu, 64, TransportConfig::MAX_PACKET.as_u64());
    out_of("header", config.header, 0, 1_024);
    out_of("ack", config.ack, 1, 1_024);
    out_of("cnp", config.cnp, 1, 1_024);
    out_of("data_overhead", config.data_overhead.unwrap_or_default(), 0, 1_024);
    out_of("ack_overhead", config.ack_overhead.unwrap_or_default(), 0, 1_024);
    if let Transport::Tcp(tcp) = &config.kind
        && tcp.receive_window < config.mtu.as_u64()
    {
        let window = Bytes::new(tcp.receive_window);
        let message = format!("a `receive_window` of {window} is less than a packet, whose `mtu` is {}", config.mtu);
        let help = "let it be at least `mtu`: senders do not cut packets to fit it";
        s.problem_at("scenario::conflict", "tcp", message, help);
    }
    let positive = |key: &str, time: Option<Time>| {
        if time == Some(Time::ZERO) {
            let help = format!("write a time above zero, as `{key} = \"100us\"`");
            s.problem_at("scenario::out_of_range", key, format!("`{key}` is zero"), help);
        }
    };
    positive("rto", config.rto);
    positive("rto_low", config.rto_low);
    if config.ack_every.is_some() && config.rto.is_none() {
        let message = "a flow that stops waits for an acknowledgment of its last packets, and there is no timeout";
        s.problem_at("scenario::conflict", "ack_every", message, "set `rto`, for instance `rto = \"4ms\"`");
    }
    if let Some(low) = config.rto_low
        && config.rto.is_none_or(|rto| rto < low)
    {
        let rto = config.rto.map_or_else(|| "no `rto`".to_owned(), |rto| format!("`rto` of {rto}"));
        let message = format!("`rto_low` of {low} beside {rto}");
        let key = if s.has("rto_low") { "rto_low" } else { "rto" };
        s.problem_at(
            "scenario::conflict",
            key,
            message,
            "let `rto_low` be at most `rto`, or write `rto_low = \"none\"`",
        );
    }
    if Time::from_ms(1_000) < config.reaction_delay {
        let message = format!("`reaction_delay` of {} is out of range", config.reaction_delay);
        s.problem_at("scenario::out_of_range", "reaction_delay", message, "write a time up to a second, as \"15us\"");
    }
    if let BaseRttRule::Fixed(rtt) = config.base_rtt {
        positive("base_rtt", Some(rtt));
    }
}

/// Reports an algorithm that reacts to notification packets (CNPs) over a transport whose receivers send none: it would
/// never slow down.
fn check_notifications(s: &Section<'_>, kind: Transport, cc: &AlgorithmConfig) {
    if !matches!(kind, Transport::Tcp(_)) || cc.needs().feedback.cnp_interval.is_none() {
        return;
    }
    let name = cc.info().name;
    let message = format!("`{name}` goes by congestion notification packets, which TCP receivers do not send");
    let echo = cc.params().iter().any(|p| p.name == "notification");
    let help = if echo {
        format!("set `kind = \"rdma\"`, or `notification = \"ack\"` in `[transport.{name}]`, or take `cc = \"dctcp\"`")
    } else {
        "set `kind = \"rdma\"`, or take `cc = \"dctcp\"`".to_owned()
    };
    s.problem_at("scenario::conflict", "kind", message, help);
}

/// Reports an algorithm that needs Ultra Ethernet over another transport, and one that does not over Ultra Ethernet,
/// where windows count headers and feedback is coalesced.
fn check_uet(s: &Section<'_>, kind: Transport, cc: &AlgorithmConfig) {
    let (name, needs) = (cc.info().name, cc.needs());
    let is_uet = matches!(kind, Transport::Uet { .. });
    if needs.feedback.uet && !is_uet {
        let message = format!("`{name}` goes by what receivers of Ultra Ethernet report");
        s.problem_at("scenario::conflict", "kind", message, "set `kind = \"uet\"`, or choose another `cc`");
    } else if is_uet && !needs.feedback.uet && name != "line-rate" {
        let message = format!("`{name}` is not made for Ultra Ethernet's acknowledgments");
        let help = "set `kind = \"rdma\"`, or `cc = \"nscc\"`; `cc = \"line-rate\"` sends without control";
        s.problem_at("scenario::conflict", "kind", message, help);
    }
}

/// Reports TCP under an algorithm with receiver grants, which is a transport of its own.
fn check_grants(s: &Section<'_>, kind: Transport, cc: &AlgorithmConfig) {
    if matches!(kind, Transport::Tcp(_)) && cc.needs().feedback.grants.is_some() {
        let message = format!("`{}` is a transport of its own", cc.info().name);
        s.problem_at("scenario::conflict", "kind", message, "set `kind = \"rdma\"`, or choose another `cc`");
    }
}

/// Reports packets that are longer than [`TransportConfig::MAX_PACKET`].
fn check_packets(s: &Section<'_>, config: &TransportConfig, cc: &AlgorithmConfig) {
    let (name, needs, most) = (cc.info().name, cc.needs(), TransportConfig::MAX_PACKET);
    let header = config.data_header(&needs);
    // An `mtu` above the maximum has been reported.
    if config.mtu <= most && most < config.mtu + header {
        let message =
            format!("`mtu` of {} makes packets of {} with the headers of `{name}`", config.mtu, config.mtu + header);
        let help = format!(
            "packets have at most {most}: set `mtu` to at most {}",
            Bytes::new(most.as_u64().saturating_sub(header.as_u64()))
        );
        s.problem_at("scenario::out_of_range", "mtu", message, help);
    }
    if needs.wire.control.is_some_and(|control| most < control) {
        let message = format!("control packets of `{name}` are longer than {most}");
        s.problem_at("scenario::out_of_range", name, message, "reduce `control_packet`, as `control_packet = \"40B\"`");
    }
}
