//! A host's side of the protocol with the allocator (section 6.2), without sockets and clocks.

use std::collections::BTreeMap;

use fairrate_units::Time;

/// A message between an endpoint and the allocator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// From an endpoint: a flowlet of this flow begins.
    Start {
        /// The flow.
        flow: u32,
    },
    /// From an endpoint: the flowlet of this flow has ended.
    End {
        /// The flow.
        flow: u32,
    },
    /// From the allocator: the rate of a flow.
    Update {
        /// The flow.
        flow: u32,
        /// Bits on the wire per second.
        rate_bps: f64,
    },
    /// From the allocator: no change; rates stay in force.
    Alive,
    /// From the allocator: it has just started without any state, and asks for all flowlets.
    Hello,
}

impl Message {
    /// Returns the payload bytes of the message: 16, 4 and 6 in the paper (section 6.2), which has no other messages;
    /// the others have one byte here.
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Start { .. } => 16,
            Self::End { .. } => 4,
            Self::Update { .. } => 6,
            Self::Alive | Self::Hello => 1,
        }
    }
}

/// A rate that takes effect at a host, or (zero) expires there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// The flow.
    pub flow: u32,
    /// Bits on the wire per second; zero for a return to TCP.
    pub rate_bps: f64,
}

/// A host that sends flowlets.
///
/// Any message of the allocator keeps all rates of the host in force for a lifetime: an allocator without new rates
/// sends [`Message::Alive`] now and then. All messages arrive, in order (they travel over TCP), so after a silence of
/// the allocator the last rate sent is valid.
///
/// The rate of a flowlet that has ended stays in force for what follows, until a lifetime has passed since the last
/// message before its end: later ones confirm only rates of flowlets.
#[derive(Clone, Debug)]
pub struct Endpoint {
    lifetime: Time,
    /// Time of the allocator's last message.
    heard: Time,
    /// Set when the lifetime has passed since that message.
    silent: bool,
    /// Flowlets announced to the allocator.
    flowlets: BTreeMap<u32, Flowlet>,
    /// Flows without a flowlet whose last rate is in force, each with the time at which it expires.
    ended: BTreeMap<u32, Time>,
}

/// A flowlet that was announced to the allocator.
#[derive(Clone, Copy, Debug, Default)]
struct Flowlet {
    /// The last rate from the allocator; zero if it has sent none since it started.
    told_bps: f64,
    /// Set when a rate is in force at the host.
    is_granted: bool,
}

impl Endpoint {
    /// Returns a host without flowlets whose rates stay in force for `lifetime`.
    pub fn new(lifetime: Time) -> Self {
        Self { lifetime, heard: Time::ZERO, silent: false, flowlets: BTreeMap::new(), ended: BTreeMap::new() }
    }

    /// Sets the lifetime of rates from now on.
    pub fn set_lifetime(&mut self, lifetime: Time) {
        self.lifetime = lifetime;
    }

    /// Returns `true` if the allocator has been silent for a lifetime, so that none of its rates is in force.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Returns the allocator's last rate of a flowlet, or `None` if there is no such flowlet or it has no rate yet.
    pub fn rate_bps(&self, flow: u32) -> Option<f64> {
        self.flowlets.get(&flow).map(|flowlet| flowlet.told_bps).filter(|rate_bps| 0.0 < *rate_bps)
    }

    /// Begins a flowlet, when a flow that had nothing to send has data; returns the message to the allocator, or `None`
    /// if the flowlet is already announced. It begins with the rate of the flow's last flowlet if that is in force.
    pub fn begin(&mut self, flow: u32) -> Option<Message> {
        if self.flowlets.contains_key(&flow) {
            return None;
        }
        let is_granted = self.ended.remove(&flow).is_some();
        self.flowlets.insert(flow, Flowlet { told_bps: 0.0, is_granted });
        Some(Message::Start { flow })
    }

    /// Ends a flowlet, when its flow has had nothing to send for long enough; returns the message to the allocator, or
    /// `None` if there is no flowlet.
    pub fn end(&mut self, flow: u32) -> Option<Message> {
        let flowlet = self.flowlets.remove(&flow)?;
        if flowlet.is_granted {
            self.ended.insert(flow, self.heard.saturating_add(self.lifetime));
        }
        Some(Message::End { flow })
    }

    /// Forgets the rate of a flow without a flowlet, when it will send nothing more.
    pub fn forget(&mut self, flow: u32) {
        self.ended.remove(&flow);
    }

    /// Handles a message of the allocator: adds the rates in force from now on to `grants`, and the reply messages to
    /// `answers`.
    pub fn on_message(&mut self, now: Time, message: Message, grants: &mut Vec<Grant>, answers: &mut Vec<Message>) {
        self.heard = now;
        let mut before = std::mem::take(&mut self.silent);
        if message == Message::Hello {
            // An earlier allocator's rates stay in force until they expire, or this allocator gives others.
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

    /// Returns the time at which rates expire without a message, or [`Time::MAX`] if there are none.
    pub fn deadline(&self) -> Time {
        self.ended.values().fold(self.silence(), |earliest, at| earliest.min(*at))
    }

    /// Returns the time at which the rates of flowlets expire without a message, or [`Time::MAX`] if there are none.
    fn silence(&self) -> Time {
        if self.silent || self.flowlets.is_empty() { Time::MAX } else { self.heard.saturating_add(self.lifetime) }
    }

    /// Expires the rates of flowlets that have ended once their time is over, and all others if the allocator has been
    /// silent for a lifetime; adds them to `grants` with rate zero.
    pub fn on_timer(&mut self, now: Time, grants: &mut Vec<Grant>) {
        let lapsed = self.ended.extract_if(.., |_, at| *at <= now);
        grants.extend(lapsed.map(|(flow, _)| Grant { flow, rate_bps: 0.0 }));
        if now < self.silence() {
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
        // The first message after a silence puts all rates into force again, including its own.
        let (grants, _) = hear(&mut endpoint, US(300), Message::Update { flow: 8, rate_bps: 1e9 });
        assert_eq!((endpoint.deadline(), grants), (US(400), vec![rate(7, 3e9), rate(8, 1e9)]));
        assert_eq!(endpoint.end(7), Some(Message::End { flow: 7 }));
        assert_eq!(endpoint.end(7), None);
        assert_eq!(hear(&mut endpoint, US(310), Message::Update { flow: 7, rate_bps: 4e9 }).0, [], "too late");
    }

    #[test]
    fn rates_of_flowlets_that_ended_expire_alone() {
        let mut endpoint = Endpoint::new(US(100));
        let rate = |flow, rate_bps| Grant { flow, rate_bps };
        (1..=4).for_each(|flow| assert_eq!(endpoint.begin(flow), Some(Message::Start { flow })));
        (1..=3).for_each(|flow| {
            assert_eq!(hear(&mut endpoint, US(20), Message::Update { flow, rate_bps: 3e9 }).0, [rate(flow, 3e9)]);
        });
        (1..=3).for_each(|flow| assert_eq!(endpoint.end(flow), Some(Message::End { flow })));
        // What comes after its end confirms no rate of flow 1; flow 2 is over, and flow 3 has a flowlet again in time.
        endpoint.forget(2);
        assert_eq!(hear(&mut endpoint, US(90), Message::Alive).0, []);
        assert_eq!(endpoint.begin(3), Some(Message::Start { flow: 3 }));
        let mut grants = Vec::new();
        assert_eq!(endpoint.deadline(), US(120));
        endpoint.on_timer(US(120), &mut grants);
        assert_eq!((endpoint.deadline(), &grants[..]), (US(190), &[rate(1, 0.0)][..]));
        // The rate that flow 3 began with expires in the allocator's silence, and there is none of it to come back to.
        grants.clear();
        endpoint.on_timer(US(190), &mut grants);
        assert_eq!((endpoint.deadline(), &grants[..]), (Time::MAX, &[rate(3, 0.0)][..]));
        assert_eq!(hear(&mut endpoint, US(300), Message::Alive).0, []);
        // A flowlet that had no rate in force leaves none.
        endpoint.end(3);
        assert_eq!(endpoint.deadline(), US(400), "flow 4 has a flowlet still");
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
        // The allocator has restarted before its silence was detected, gives one flowlet a rate, and is silent.
        assert_eq!(hear(&mut endpoint, US(50), Message::Hello).0, []);
        assert_eq!(hear(&mut endpoint, US(60), Message::Update { flow: 2, rate_bps: 5e9 }).0, [rate(2, 5e9)]);
        let mut grants = Vec::new();
        endpoint.on_timer(US(160), &mut grants);
        assert_eq!(grants, [rate(1, 0.0), rate(2, 0.0)]);
        // The first message after that restores only the rate of this allocator.
        assert_eq!(hear(&mut endpoint, US(300), Message::Alive).0, [rate(2, 5e9)]);
    }
}
