//! The cases of a study, as variants of `compare`: numbers of flows, round-trip times, classes, short flows, and groups
//! that come and go.

use fairrate_units::{Bytes, Time};

use super::study::{FAR, Plan, Side, bdp_bytes};

/// The size of short flows: that of the transfers with which DCTCP's authors measured the queue that long flows leave
/// to short ones (SIGCOMM 2010).
const SHORT_BYTES: u64 = 20_000;
/// Largest part of the bandwidth-delay product that a short flow is.
const SHORT_PART: f64 = 1.0 / 3.0;
/// Number of hosts that send short flows; each sends at its own times.
pub const SHORT_HOSTS: u16 = 8;
/// Name of the traffic block of long flows, in cases with short ones.
pub const LONG: &str = "long-flows";
/// Name of the other traffic block.
pub const SHORT: &str = "short-flows";

/// The loads of short flows, as `--short` has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads(pub Vec<f64>);

/// Reads `0.2,0.5`; nothing is no load.
pub fn loads(text: &str) -> Result<Loads, String> {
    let load = |text: &str| {
        let load = text.trim().parse().ok().filter(|load: &f64| (0.01..=0.9).contains(load));
        load.ok_or_else(|| "write loads from 0.01 to 0.9, as 0.2,0.5, or \"\" for none".to_owned())
    };
    let parts = text.split(',').filter(|_| !text.trim().is_empty());
    parts.map(load).collect::<Result<_, _>>().map(Loads)
}

/// The kind of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Long flows of both, all the time.
    Together,
    /// Long flows of both, of which those of one come after a third of the run and go after two.
    Change,
    /// Short flows of one algorithm beside long flows of one.
    Short(ShortCase),
}

/// A case with short flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortCase {
    /// Block name of the algorithm of the short flows.
    pub short: String,
    /// Block name of that of the long flows.
    pub long: String,
    /// Load of the short flows, in words.
    pub load: String,
}

impl ShortCase {
    /// Returns the label of the case.
    pub fn label(&self) -> String {
        format!("short {} beside {} ({})", self.short, self.long, self.load)
    }
}

/// The end of labels of cases in which a group comes and goes.
const CHANGE: &str = " comes and goes";

impl Kind {
    /// Returns the kind of the case with the label `label`.
    pub fn of(label: &str) -> Self {
        let short = || {
            let (short, rest) = label.strip_prefix("short ")?.split_once(" beside ")?;
            let (long, load) = rest.strip_suffix(')')?.split_once(" (")?;
            Some(ShortCase { short: short.to_owned(), long: long.to_owned(), load: load.to_owned() })
        };
        match short() {
            Some(case) => Self::Short(case),
            None if label.ends_with(CHANGE) => Self::Change,
            None => Self::Together,
        }
    }
}

/// Returns the cases.
pub fn variants(plan: &Plan, sides: [&Side; 2]) -> Vec<String> {
    let mut variants: Vec<String> = plan.flows.iter().flat_map(|flows| together(plan, sides, *flows)).collect();
    variants.extend(plan.flows.iter().flat_map(|flows| changes(plan, sides, *flows)));
    for load in &plan.short.0 {
        let pairs = [(0, 1), (1, 1), (1, 0), (0, 0)];
        variants.extend(pairs.map(|(short, long)| beside_long(plan, sides, *load, short, long)));
    }
    variants
}

/// Returns a variant of `compare`.
fn variant(label: &str, sides: [&Side; 2], keys: &str) -> String {
    format!("\"{label}\" = {}: {keys}", sides[0].cc)
}

/// Returns the hosts of the first `n` flows of the algorithm `side`, 0 or 1: every other node from 2 or 3 on, so that a
/// case has the same hosts whatever the other cases are.
fn hosts(side: usize, n: u16) -> String {
    let hosts: Vec<String> = (0..u32::from(n)).map(|i| (2 + 2 * i + side as u32).to_string()).collect();
    format!("[{}]", hosts.join(", "))
}

/// Returns the keys of the senders of long flows.
fn senders((n_a, n_b): (u16, u16)) -> String {
    format!("traffic.0.senders={}, traffic.1.senders={}", hosts(0, n_a), hosts(1, n_b))
}

/// An arrangement of round-trip times and classes in cases with long flows of both all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// The same round-trip time, in one class.
    Same,
    /// A longer one for the second algorithm, in one class.
    Far,
    /// A class for each, with weights by the numbers of flows.
    TwoClasses,
}

impl Arrangement {
    /// Returns the label of the case with `flows`.
    pub(super) fn label(self, (n_a, n_b): (u16, u16)) -> String {
        let end = match self {
            Self::Same => String::new(),
            Self::Far => format!(", {FAR} times the RTT"),
            Self::TwoClasses => ", two classes".to_owned(),
        };
        format!("{n_a}:{n_b}{end}")
    }

    /// Returns what the arrangement is, for people.
    pub(super) fn title(self, [_, b]: [&Side; 2]) -> String {
        match self {
            Self::Same => "One class, the same RTT".to_owned(),
            Self::Far => format!("One class, {FAR} times the RTT for {}", b.block),
            Self::TwoClasses => "A class for each, weights by flows".to_owned(),
        }
    }

    /// Returns the keys of the case with `flows`, but for its senders.
    fn keys(self, (n_a, n_b): (u16, u16)) -> String {
        // Each class may hold as much of the buffer as is free, so that none takes all.
        let of_class = |at: u8, weight: u16| format!(", class.{at}.weight={weight}.0, class.{at}.egress_alpha=1.0");
        match self {
            Self::Same => "topology.path=near.txt".to_owned(),
            Self::Far => "topology.path=far.txt".to_owned(),
            Self::TwoClasses => {
                format!("topology.path=near.txt, traffic.1.class=4{}{}", of_class(0, n_a), of_class(1, n_b))
            }
        }
    }
}

/// Returns the arrangements of a plan.
pub(super) fn arrangements(plan: &Plan, sides: [&Side; 2]) -> Vec<Arrangement> {
    let one: &[Arrangement] = if plan.has_one_class(sides) { &[Arrangement::Same, Arrangement::Far] } else { &[] };
    let two: &[Arrangement] = if plan.has_two_classes(sides) { &[Arrangement::TwoClasses] } else { &[] };
    [one, two].concat()
}

/// Returns the cases with long flows of both all the time.
fn together(plan: &Plan, sides: [&Side; 2], flows: (u16, u16)) -> Vec<String> {
    let case = |arrangement: Arrangement| {
        let keys = format!("{}, {}", senders(flows), arrangement.keys(flows));
        variant(&arrangement.label(flows), sides, &keys)
    };
    arrangements(plan, sides).into_iter().map(case).collect()
}

/// Returns the cases in which the flows of one algorithm come after a third of the run and go after two. The second
/// half of the time between is measured.
fn changes(plan: &Plan, sides: [&Side; 2], flows @ (n_a, n_b): (u16, u16)) -> Vec<String> {
    if !plan.has_one_class(sides) {
        return Vec::new();
    }
    let end = plan.end().as_ps();
    let at = |sixths: u64| Time::from_ps(end * sixths / 6);
    let case = |side: usize| {
        let label = format!("{n_a}:{n_b}, {}{CHANGE}", sides[side].block);
        let times = format!("traffic.{side}.start=\"{}\", traffic.{side}.stop=\"{}\"", at(2), at(4));
        let window = format!("measure.from=\"{}\", measure.until=\"{}\"", at(3), at(4));
        variant(&label, sides, &format!("{}, {times}, {window}", senders(flows)))
    };
    vec![case(1), case(0)]
}

/// Returns the case with short flows of the algorithm `short`, 0 or 1, beside long ones of the algorithm `long`.
fn beside_long(plan: &Plan, sides: [&Side; 2], load: f64, short: usize, long: usize) -> String {
    let transport = |side: usize| match side {
        0 => String::new(),
        _ => format!(", transport = {}", sides[1].inline()),
    };
    let (n_a, n_b) = plan.flows.first().copied().unwrap_or((4, 4));
    let n_long = if long == 0 { n_a } else { n_b };
    let jitter = plan.rtt;
    let long_flows = format!(
        "{{ name = \"{LONG}\", kind = \"incast\", receiver = 0, senders = {}, bytes = \"endless\", jitter = \"{jitter}\"{} }}",
        hosts(0, n_long),
        transport(long)
    );
    let size = (SHORT_PART * bdp_bytes(plan)).clamp(1_000.0, SHORT_BYTES as f64) as u64;
    let short_flows = format!(
        "{{ name = \"{SHORT}\", kind = \"poisson\", link_set = \"host-links\", sizes = \"fixed\", size = \"{}\", load = {}, \
         hosts = {}, receivers = [0]{} }}",
        Bytes::new(size),
        load / f64::from(SHORT_HOSTS),
        hosts(1, SHORT_HOSTS),
        transport(short)
    );
    let case = ShortCase {
        short: sides[short].block.clone(),
        long: sides[long].block.clone(),
        load: format!("{} %", (load * 1e4).round() / 1e2),
    };
    // Thousands of short flows are no samples that anybody reads.
    let probe = plan.queue_probe();
    let keys =
        format!("traffic.0={long_flows}, traffic.1={short_flows}, probe=[{probe}], measure.until=\"last-start\"");
    variant(&case.label(), sides, &keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read() {
        assert_eq!((loads(""), loads("0.2,0.5")), (Ok(Loads(Vec::new())), Ok(Loads(vec![0.2, 0.5]))));
        for wrong in ["0", "1", "x", "0.2,"] {
            assert!(loads(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_say_the_kind() {
        let case = ShortCase { short: "dctcp".into(), long: "bbr-1".into(), load: "30 %".into() };
        assert_eq!(Kind::of(&case.label()), Kind::Short(case));
        assert_eq!(Kind::of("4:4, cubic comes and goes"), Kind::Change);
        assert_eq!(Kind::of("4:4, two classes"), Kind::Together);
    }
}
