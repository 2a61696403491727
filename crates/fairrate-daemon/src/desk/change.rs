//! Changes of the network while flows are under way.
//!
//! Rates in force stay counted, on the paths that their flows have now. Where their sum is above a link's rate, no rate
//! grows until enough others have fallen and their agents have acknowledged that. A flow without a path is kept, and
//! its rate is taken back.

use fairrate_allocate::{AllocatorService, LinkId, RateEngine};

use super::{Desk, Paths, Urgency};
use crate::rate::WireRate;

/// The network that a desk has from now on.
pub struct Change {
    /// An optimiser without flows, if links have other numbers than before.
    pub engine: Option<Box<dyn RateEngine>>,
    /// The part of each link's rate that the optimiser gives out.
    pub free_bps: Vec<f64>,
    /// Rate of each link.
    pub capacities_bps: Vec<f64>,
    /// Largest rate that each link may have had: rates reported by agents may be of that time.
    pub bounds_bps: Vec<f64>,
    /// Paths between addresses.
    pub paths: Paths,
}

impl Desk {
    /// Changes the network under all flows. Agents keep their connections and their rates in force.
    pub fn change(&mut self, change: Change) {
        let Change { engine, free_bps, capacities_bps, bounds_bps, paths } = change;
        self.paths = paths;
        let is_renumbered = engine.is_some();
        if let Some(engine) = engine {
            self.service = AllocatorService::new(engine, self.config.threshold);
        } else {
            let engine = self.service.engine_mut();
            (0..).zip(&free_bps).for_each(|(link, &bps)| engine.set_capacity(LinkId(link), bps));
        }
        self.links.change(&capacities_bps, &bounds_bps, is_renumbered);
        for at in 0..self.agents.len() {
            let places = self.agents[at].as_ref().map_or_else(Vec::new, |agent| agent.flows.live_places());
            for place in places {
                self.find_path(at, place, is_renumbered);
            }
            if let Some(id) = self.agents[at].as_ref().and_then(|agent| agent.connection) {
                self.list(id, Urgency::Now);
            }
        }
    }

    /// Changes the bounds of agents and flows, and the number of hosts with agents. Agents and flows beyond them stay.
    pub fn set_bounds(&mut self, max_agents: usize, max_flows: usize, quorum: usize) {
        (self.config.max_agents, self.config.max_flows, self.config.quorum) = (max_agents, max_flows, quorum);
        self.term.set_quorum(quorum);
    }

    /// Gives a flow its path in the network as it is now.
    fn find_path(&mut self, at: usize, place: u32, is_renumbered: bool) {
        let Some(agent) = &mut self.agents[at] else { return };
        let slot = agent.flows.slot(place);
        let (number, start) = (slot.number, slot.start);
        self.path.clear();
        (self.paths)(start.src, start.dst, &mut self.path);
        slot.is_waiting = false;
        if self.path.is_empty() {
            if !std::mem::replace(&mut slot.is_parked, true) {
                (slot.rate, slot.waits_since) = (WireRate::NONE, None);
                slot.must_clear = slot.sent != WireRate::NONE || 0 < self.links.kbps(number);
                self.n_parked += 1;
                self.service.end(number);
            }
        } else if slot.is_parked || is_renumbered || !self.links.has_path(number, &self.path) {
            if std::mem::take(&mut slot.is_parked) {
                slot.must_clear = false;
                self.n_parked -= 1;
            }
            self.service.end(number);
            self.service.start(number, &self.path, start.weight.as_f64(), f64::INFINITY);
            self.links.reroute(number, &self.path);
        }
        agent.flows.note_changed(place);
    }
}
