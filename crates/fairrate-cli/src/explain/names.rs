//! The names of a run's flows, ports and causes, as people read them.

use fairrate_explain::{Behind, How, Loss, Slow};
use fairrate_report::format;
use fairrate_sim::{FlowId, FlowSpec, PortId, SimConfig};
use fairrate_units::Time;

/// The name of packets of the flow itself.
pub const ITSELF: &str = "itself";

/// The names of a run.
pub struct Names<'a> {
    config: &'a SimConfig,
    /// The names of traffic blocks; empty for those without one.
    blocks: &'a [String],
}

impl<'a> Names<'a> {
    /// Returns the names of runs of `config`, whose traffic blocks are called `blocks`.
    pub fn new(config: &'a SimConfig, blocks: &'a [String]) -> Self {
        Self { config, blocks }
    }

    /// Returns the name of a node.
    pub fn node(&self, node: fairrate_sim::NodeId) -> String {
        self.config.topology.nodes.get(node.index()).map_or_else(|| node.0.to_string(), |node| node.name.clone())
    }

    /// Returns the name of an egress port, as `tor0->h16`.
    pub fn port(&self, port: PortId) -> String {
        self.config.topology.port_name(port)
    }

    /// Returns the flow of the workload with the number `flow`; `None` for connections of an allocator.
    pub fn spec(&self, flow: FlowId) -> Option<&'a FlowSpec> {
        self.config.flows.get(flow.index())
    }

    /// Returns the number of a flow in tables: its id in the flow list, or its position.
    pub fn number(&self, flow: FlowId) -> u32 {
        self.spec(flow).map(|spec| spec.id).filter(|&id| id != FlowSpec::NO_ID).unwrap_or(flow.0)
    }

    /// Returns the flow with this number in tables.
    pub fn flow(&self, number: u32) -> Option<FlowId> {
        (0..self.config.flows.len() as u32).map(FlowId).find(|&flow| self.number(flow) == number)
    }

    /// Returns the traffic block of a flow; `None` for connections of an allocator.
    pub fn block_of(&self, flow: FlowId) -> Option<u32> {
        self.spec(flow).map(|spec| spec.group)
    }

    /// Returns the name of a traffic block, if it has one.
    pub fn block_name(&self, block: u32) -> Option<&'a str> {
        self.blocks.get(block as usize).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns the name of a traffic block, or its number.
    pub fn block(&self, block: u32) -> String {
        self.block_name(block).map_or_else(|| block.to_string(), str::to_owned)
    }

    /// Returns the name of a flow that others waited for.
    pub fn behind(&self, behind: Behind) -> String {
        match behind {
            Behind::Itself => ITSELF.to_owned(),
            Behind::Flow(flow) if self.spec(flow).is_none() => "the allocator".to_owned(),
            Behind::Flow(flow) => format!("flow {}", self.number(flow)),
        }
    }

    /// Returns the traffic block of packets that others waited for, as `block burst`.
    pub fn block_behind(&self, behind: Behind) -> String {
        match behind {
            Behind::Itself => ITSELF.to_owned(),
            Behind::Flow(flow) => match self.block_of(flow) {
                None => "the allocator".to_owned(),
                Some(block) => format!("block {}", self.block(block)),
            },
        }
    }

    /// Returns the times within `span` for which the link of `port` is down, and those for which it is slow.
    pub fn faults(&self, port: PortId, span: (Time, Time)) -> (Vec<(Time, Time)>, Vec<Slow>) {
        let (from, to) = span;
        (fairrate_explain::outages(self.config, port, from, to), fairrate_explain::slow(self.config, port, from, to))
    }

    /// Returns the times within `span` for which the link of `port` is down, as `from 100 µs to 300 µs`.
    pub fn outages(&self, port: PortId, span: (Time, Time)) -> String {
        let (all, _) = self.faults(port, span);
        let mut words: Vec<String> = all.iter().take(3).map(|&(down, up)| during(down, up)).collect();
        if words.len() < all.len() {
            words.push(format!("{} times more", all.len() - words.len()));
        }
        words.join(", ")
    }

    /// Returns the times within `span` for which the link of `port` is slow, as
    /// `at 25 % of its rate from 100 µs to 300 µs`.
    pub fn slow(&self, port: PortId, span: (Time, Time)) -> String {
        let (_, all) = self.faults(port, span);
        let words = |slow: &Slow| {
            let share = format::percent(slow.share);
            if slow.from == Time::ZERO && slow.to == Time::MAX {
                format!("at {share} of its rate")
            } else {
                format!("at {share} of its rate {}", during(slow.from, slow.to))
            }
        };
        all.iter().map(words).collect::<Vec<_>>().join(", ")
    }

    /// Returns the place and cause of a loss, as `a drop at tor0->h16 (buffer full)`.
    pub fn loss(&self, loss: Loss) -> String {
        let port = self.port(loss.port);
        match loss.how {
            How::Trimmed => format!("a cut to the header at {port}"),
            How::Returned => format!("a header sent back at {port}"),
            How::Dropped(cause) => format!("a drop at {port} ({})", cause.words()),
        }
    }
}

/// Returns two times in words, of which the second may be [`Time::MAX`].
fn during(from: Time, to: Time) -> String {
    let time = |t: Time| format::time_ns(t.as_ns_f64());
    if to == Time::MAX { format!("from {} on", time(from)) } else { format!("from {} to {}", time(from), time(to)) }
}
