//! A host's side of the conversation with the allocator (section 6.2), without sockets and clocks.

use std::collections::BTreeMap;

use fairrate_units::Time;

/// What endpoints and allocator tell each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// Endpoint: a flowlet of this flow begins.
    Start {
        /// The flow.
        flow: u32,
    },
    /// Endpoint: it is over.
    End {
        /// The flow.
        flow: u32,
    },
    /// Allocator: send at this rate.
    Update {
        /// The flow.
        flow: u32,
        /// Bits on the wire per second.
        rate_bps: f64,
    },
    /// Allocator: nothing new; rates hold.
    Alive,
    /// Allocator: it knows nothing (it has just started), and wants to hear of all flowlets.
    Hello,
}

impl Message {
    /// Payload bytes: 16, 4 and 6 in the paper (section 6.2), which has no other messages; those are a byte here.
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Start { .. } => 16,
            Self::End { .. } => 4,
            Self::Update { .. } => 6,
            Self::Alive | Self::Hello => 1,
        }
    }
}

/// A rate that comes into force at a host, or (zero) goes out of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// The flow.
    pub flow: u32,
    /// Bits on the wire per second; zero: back to TCP.
    pub rate_bps: f64,
}

/// A host that sends flowlets.
///
/// Any message of the allocator keeps all rates of the host alive for a lifetime: an allocator that has nothing new to
/// say says so now and then. Messages come in order and all of them (they travel over TCP), so the rate told last is the
/// one that holds when the allocator is heard again after a silence.
#[derive(Clone, Debug)]
pub struct Endpoint {
    lifetime: Time,
    /// When the allocator was heard last.
    heard: Time,
    /// Whether the lifetime has passed since.
    silent: bool,
    /// Flowlets the allocator was told of.
    flowlets: BTreeMap<u32, Flowlet>,
}

/// A flowlet that the allocator was told of.
#[derive(Clone, Copy, Debug, Default)]
struct Flowlet {
    /// The rate it gave last; zero: none since it began to work.
    told_bps: f64,
    /// Whether a rate is in force at the host.
    is_granted: bool,
}

impl Endpoint {
    /// A host without flowlets; rates hold for `lifetime`.
    pub fn new(lifetime: Time) -> Self {
        Self { lifetime, heard: Time::ZERO, silent: false, flowlets: BTreeMap::new() }
    }

    /// From now on rates hold for `lifetime`.
    pub fn set_lifetime(&mut self, lifetime: Time) {
        self.lifetime = lifetime;
    }

    /// Whether the allocator has been silent for a lifetime, so that none of its rates is in force.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// What the allocator gave a flowlet last; `None`: there is no such flowlet, or it has no rate yet.
    pub fn rate_bps(&self, flow: u32) -> Option<f64> {
        self.flowlets.get(&flow).map(|flowlet| flowlet.told_bps).filter(|rate_bps| 0.0 < *rate_bps)
    }

    /// A flow that had nothing to send has something: what to tell the allocator, unless it knows.
    pub fn begin(&mut self, flow: u32) -> Option<Message> {
        if self.flowlets.contains_key(&flow) {
            return None;
        }
        self.flowlets.insert(flow, Flowlet::default());
        Some(Message::Start { flow })
    }

    /// A flow has had nothing to send for long enough: what to tell the allocator, unless it knows.
    pub fn end(&mut self, flow: u32) -> Option<Message> {
        self.flowlets.remove(&flow).map(|_| Message::End { flow })
    }

    /// A message of the allocator has arrived: rates that are in force from now on into `grants`, messages to answer with
    /// into `answers`.
    pub fn on_message(&mut self, now: Time, message: Message, grants: &mut Vec<Grant>, answers: &mut Vec<Message>) {
        self.heard = now;
        let mut before = std::mem::take(&mut self.silent);
        if message == Message::Hello {
            // An earlier allocator's rates stay in force until they expire, or this one gives others.
            self.flowlets.values_mut().for_each(|flowlet| flowlet.told_bps = 0.0);
            answers.extend(self.flowlets.keys().map(|&flow| Message::Start { flow }));
            before = false;
        }
        if let Message::Update { flow, rate_bps } = message
            && let Some(flowlet) = self.flowlets.get_mut(&flow)
        {
            flowlet.told_bps = rate_bps;
            if !before {
                flowlet.is_granted = true;
                grants.push(Grant { flow, rate_bps });
            }
        }
        if before {
            for (&flow, flowlet) in self.flowlets.iter_mut().filter(|(_, flowlet)| 0.0 < flowlet.told_bps) {
                flowlet.is_granted = true;
                grants.push(Grant { flow, rate_bps: flowlet.told_bps });
            }
        }
    }

    /// When rates expire if nothing is heard; [`Time::MAX`]: there are none.
    pub fn deadline(&self) -> Time {
        if self.silent || self.flowlets.is_empty() { Time::MAX } else { self.heard.saturating_add(self.lifetime) }
    }

    /// If the allocator has been silent for a lifetime, all its rates go out of force.
    pub fn on_timer(&mut self, now: Time, grants: &mut Vec<Grant>) {
        if now < self.deadline() {
            return;
        }
        self.silent = true;
        for (&flow, flowlet) in &mut self.flowlets {
            if std::mem::take(&mut flowlet.is_granted) {
                grants.push(Grant { flow, rate_bps: 0.0 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    fn hear(endpoint: &mut Endpoint, now: Time, message: Message) -> (Vec<Grant>, Vec<Message>) {
        let (mut grants, mut answers) = (Vec::new(), Vec::new());
        endpoint.on_message(now, message, &mut grants, &mut answers);
        (grants, answers)
    }

    #[test]
    fn rates_hold_for_a_lifetime_and_come_back() {
        let mut endpoint = Endpoint::new(US(100));
        assert_eq!(endpoint.deadline(), Time::MAX);
        assert_eq!(endpoint.begin(7), Some(Message::Start { flow: 7 }));
        assert_eq!(endpoint.begin(7), None);
        endpoint.begin(8);
        let rate = |flow, rate_bps| Grant { flow, rate_bps };
        assert_eq!(hear(&mut endpoint, US(20), Message::Update { flow: 7, rate_bps: 3e9 }).0, [rate(7, 3e9)]);
        assert_eq!(hear(&mut endpoint, US(50), Message::Alive).0, []);
        let mut grants = Vec::new();
        endpoint.on_timer(US(149), &mut grants);
        assert_eq!((endpoint.deadline(), grants.len()), (US(150), 0));
        endpoint.on_timer(US(150), &mut grants);
        assert_eq!((endpoint.deadline(), grants), (Time::MAX, vec![rate(7, 0.0)]));
        // The first words after a silence put all rates into force again, with what they say.
        let (grants, _) = hear(&mut endpoint, US(300), Message::Update { flow: 8, rate_bps: 1e9 });
        assert_eq!((endpoint.deadline(), grants), (US(400), vec![rate(7, 3e9), rate(8, 1e9)]));
        assert_eq!(endpoint.end(7), Some(Message::End { flow: 7 }));
        assert_eq!(endpoint.end(7), None);
        assert_eq!(hear(&mut endpoint, US(310), Message::Update { flow: 7, rate_bps: 4e9 }).0, [], "too late");
    }

    #[test]
    fn a_new_allocator_hears_of_all_flowlets() {
        let mut endpoint = Endpoint::new(US(100));
        endpoint.begin(2);
        endpoint.begin(1);
        hear(&mut endpoint, US(10), Message::Update { flow: 1, rate_bps: 3e9 });
        endpoint.on_timer(US(110), &mut Vec::new());
        let (grants, answers) = hear(&mut endpoint, US(5_000), Message::Hello);
        assert_eq!((grants, answers), (vec![], vec![Message::Start { flow: 1 }, Message::Start { flow: 2 }]));
    }

    #[test]
    fn rates_of_an_allocator_that_began_anew_expire_unless_it_gives_others() {
        let mut endpoint = Endpoint::new(US(100));
        endpoint.begin(1);
        endpoint.begin(2);
        let rate = |flow, rate_bps| Grant { flow, rate_bps };
        hear(&mut endpoint, US(10), Message::Update { flow: 1, rate_bps: 3e9 });
        hear(&mut endpoint, US(10), Message::Update { flow: 2, rate_bps: 3e9 });
        // It has begun anew before its silence was noticed, gives one of them a rate, and is gone.
        assert_eq!(hear(&mut endpoint, US(50), Message::Hello).0, []);
        assert_eq!(hear(&mut endpoint, US(60), Message::Update { flow: 2, rate_bps: 5e9 }).0, [rate(2, 5e9)]);
        let mut grants = Vec::new();
        endpoint.on_timer(US(160), &mut grants);
        assert_eq!(grants, [rate(1, 0.0), rate(2, 0.0)]);
        // What is heard first after that brings back what this one gave, and no more.
        assert_eq!(hear(&mut endpoint, US(300), Message::Alive).0, [rate(2, 5e9)]);
    }
}
