//! Accounts of completion times, and of flows that have not finished, add up, whatever the run.

use fairrate_explain::{Explanation, Observer, Piece, Reason, supports};
use fairrate_sim::{FlowId, FlowOutcome, SimConfig};
use fairrate_units::Time;

use super::check::Run;

/// The accounts of all flows that can be explained.
pub struct Explainer {
    /// The sink that a run needs to be explained.
    pub observer: Observer,
    /// The flows, ascending.
    flows: Vec<FlowId>,
}

impl Explainer {
    /// Returns the accounts of a run that has not begun.
    ///
    /// # Errors
    /// If a flow cannot be explained although it is supported.
    pub fn new(config: &SimConfig) -> Result<Self, String> {
        let flows = (0..config.flows.len() as u32).map(FlowId);
        let flows: Vec<FlowId> = flows.filter(|&flow| supports(config, flow).is_ok()).collect();
        let observer = Observer::new(config, &flows).map_err(|(flow, why)| format!("flow {}: {why:?}", flow.0))?;
        Ok(Self { observer, flows })
    }

    /// Checks that every finished flow that can be explained is, that both of its accounts add up to its completion
    /// time, and that nothing in them is unknown.
    ///
    /// # Errors
    /// The property that does not hold.
    pub fn check(mut self, run: &Run) -> Result<(), String> {
        for outcome in &run.unfinished {
            self.observer.add_outcome(outcome);
        }
        let outcomes = run.recorder.flows.iter().chain(&run.unfinished);
        let mut observed = outcomes.filter(|o| self.flows.binary_search(&o.flow).is_ok());
        observed.try_for_each(|outcome| match outcome.fct {
            Some(_) => check_flow(&self.observer, outcome),
            None => check_open(&self.observer, outcome, run.totals.end),
        })
    }
}

/// Checks that a flow that has not finished is explained until the end of the run, if it has started.
fn check_open(observer: &Observer, outcome: &FlowOutcome, end: Time) -> Result<(), String> {
    let id = outcome.flow.0;
    if end <= outcome.start {
        return Ok(());
    }
    let explanation =
        observer.explain_open(outcome.flow, end).ok_or_else(|| format!("open flow {id} has no account"))?;
    if explanation.start + explanation.fct != end || explanation.is_finished {
        return Err(format!("open flow {id} is not explained until the end: {outcome:?}"));
    }
    for (name, pieces) in [("chain", &explanation.chain), ("sender's account", &explanation.sender)] {
        adds_up(&explanation, pieces).map_err(|error| format!("the {name} of open flow {id} {error}: {outcome:?}"))?;
    }
    Ok(())
}

fn check_flow(observer: &Observer, outcome: &FlowOutcome) -> Result<(), String> {
    let id = outcome.flow.0;
    let explanation = observer.explain(outcome.flow).ok_or_else(|| format!("flow {id} has no account"))?;
    if Some(explanation.fct) != outcome.fct || explanation.start != outcome.start {
        return Err(format!("flow {id} is explained as another one: {outcome:?}"));
    }
    for (name, pieces) in [("chain", &explanation.chain), ("sender's account", &explanation.sender)] {
        adds_up(&explanation, pieces).map_err(|error| format!("the {name} of flow {id} {error}: {outcome:?}"))?;
        if let Some(piece) = pieces.iter().find(|piece| piece.reason == Reason::Unknown) {
            return Err(format!("the {name} of flow {id} does not know {piece:?}: {outcome:?}"));
        }
    }
    Ok(())
}

/// Checks that pieces follow each other without gap from the start of a flow to its end.
fn adds_up(explanation: &Explanation, pieces: &[Piece]) -> Result<(), String> {
    let mut at = explanation.start;
    for piece in pieces {
        if piece.from != at || piece.to <= piece.from {
            return Err(format!("does not go on at {at}: {piece:?}"));
        }
        at = piece.to;
    }
    let end = explanation.start + explanation.fct;
    let sum = pieces.iter().fold(Time::ZERO, |sum, piece| sum + (piece.to - piece.from));
    if at != end || sum != explanation.fct {
        return Err(format!("ends at {at} in place of {end}"));
    }
    Ok(())
}
