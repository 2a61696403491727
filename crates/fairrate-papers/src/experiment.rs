//! The runs of a figure: scenarios, and calculations without packets.

use std::path::Path;
use std::sync::Arc;

use fairrate_experiment::Watch;
use fairrate_experiment::cache::Key;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::Progress;

use crate::points::Point;
use crate::rates::Rates;
use crate::record::{Counted, Record};
use crate::rtts::Rtts;

/// The function that makes a point from a run's record.
type Read = Arc<dyn Fn(&Record) -> Point + Send + Sync>;

/// One run of a figure.
pub struct Run {
    /// Name of the experiment, as `incast10`: runs of the same name are drawn and compared together.
    pub name: String,
    /// Name of the line in the plot, as `powertcp`.
    pub line: String,
    /// The seed, if the run is random.
    pub seed: Option<u64>,
    /// Set when other figures of the paper have this run too. Its key then has the sources that the figures share, and
    /// it is run only once.
    pub is_shared: bool,
    /// The work that gives the run's point.
    pub work: Work,
}

/// The work that gives a run's point.
pub enum Work {
    /// A simulation.
    Scenario {
        /// The scenario.
        toml: &'static str,
        /// The files the scenario names, each with its text.
        files: Vec<(&'static str, &'static str)>,
        /// Changes to the scenario.
        overrides: Overrides,
        /// The distributions that are counted.
        counted: Counted,
        /// The function that makes the point from the record.
        read: Read,
    },
    /// A short calculation, or a measurement of this machine: repeated each time.
    Calculation(Box<dyn Fn() -> Point + Send + Sync>),
    /// A longer calculation, whose point is kept as a simulation's is.
    Model {
        /// All inputs of the calculation, as text.
        inputs: String,
        /// The function that calculates the point.
        point: Box<dyn Fn() -> Point + Send + Sync>,
    },
}

impl Run {
    /// Returns a simulation of `toml` under the algorithm `cc`, with the keys of `sets`. The line has the algorithm's
    /// name.
    pub fn of(
        name: &str,
        toml: &'static str,
        cc: &str,
        sets: &[(&str, &str)],
        read: impl Fn(&Record) -> Point + Send + Sync + 'static,
    ) -> Self {
        let sets = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..Overrides::default() };
        let work =
            Work::Scenario { toml, overrides, files: Vec::new(), counted: Counted::default(), read: Arc::new(read) };
        Self { name: name.to_owned(), line: cc.to_owned(), seed: None, is_shared: false, work }
    }

    /// Returns a run that calculates its point, each time anew.
    pub fn calculated(name: &str, line: &str, point: impl Fn() -> Point + Send + Sync + 'static) -> Self {
        Self {
            name: name.to_owned(),
            line: line.to_owned(),
            seed: None,
            is_shared: false,
            work: Work::Calculation(Box::new(point)),
        }
    }

    /// Returns a run that takes seconds to calculate its point. `inputs` names everything it depends on, so that the
    /// point can be kept.
    pub fn modelled(name: &str, line: &str, inputs: String, point: impl Fn() -> Point + Send + Sync + 'static) -> Self {
        let work = Work::Model { inputs, point: Box::new(point) };
        Self { name: name.to_owned(), line: line.to_owned(), seed: None, is_shared: false, work }
    }

    /// Returns the run with `line` as the name of its line.
    #[must_use]
    pub fn called(self, line: &str) -> Self {
        Self { line: line.to_owned(), ..self }
    }

    /// Returns the run with a file that the scenario names, in place of the run's file of the same name.
    #[must_use]
    pub fn with_file(mut self, name: &'static str, text: &'static str) -> Self {
        if let Work::Scenario { files, .. } = &mut self.work {
            files.retain(|(other, _)| *other != name);
            files.push((name, text));
        }
        self
    }

    /// Returns the same simulation under the algorithm `cc`, without the parameters of the other one; `None` if the run
    /// is a calculation.
    pub fn under(&self, cc: &str) -> Option<Self> {
        let Work::Scenario { toml, files, overrides, counted, read } = &self.work else { return None };
        let parameters = overrides.cc.as_ref().map(|cc| format!("transport.{cc}."));
        let is_other = |key: &str| parameters.as_ref().is_none_or(|parameters| !key.starts_with(parameters));
        let sets = overrides.sets.iter().filter(|(key, _)| is_other(key)).cloned().collect();
        let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..overrides.clone() };
        let (files, counted, read) = (files.clone(), counted.clone(), Arc::clone(read));
        let work = Work::Scenario { toml, files, overrides, counted, read };
        Some(Self { name: self.name.clone(), line: cc.to_owned(), work, ..*self })
    }

    /// Returns the run with the given seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        if let Work::Scenario { overrides, .. } = &mut self.work {
            overrides.seed = Some(seed);
        }
        Self { seed: Some(seed), ..self }
    }

    /// Returns the run marked as shared with other figures of the paper.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Returns the run with the round-trip times `which` counted.
    #[must_use]
    pub fn counting(mut self, which: Rtts) -> Self {
        if let Work::Scenario { counted, .. } = &mut self.work {
            counted.rtts = Some(which);
        }
        self
    }

    /// Returns the run with the rates of its sources counted, at packets and notifications, as far as they are limited
    /// by `rates`.
    #[must_use]
    pub fn counting_rates(mut self, rates: Rates) -> Self {
        if let Work::Scenario { counted, .. } = &mut self.work {
            counted.rates = Some(Box::new(rates));
        }
        self
    }

    /// Returns the run's name in progress messages.
    pub fn label(&self) -> String {
        let seed = self.seed.map_or(String::new(), |seed| format!(" seed {seed}"));
        format!("{} {}{seed}", self.name, self.line)
    }

    /// Returns the scenario, or `None` if the run is not a simulation.
    ///
    /// # Errors
    /// The scenario reader's error.
    pub fn scenario(&self) -> Result<Option<Scenario>, String> {
        let Work::Scenario { toml, files, overrides, .. } = &self.work else { return Ok(None) };
        let scenario = Scenario::from_texts(toml, &self.name, files, overrides);
        scenario.map(Some).map_err(|e| e.to_string())
    }

    /// Returns the key of the run's result. A short calculation, which is repeated each time, has none.
    pub fn key(&self) -> Option<Key> {
        match &self.work {
            Work::Scenario { .. } => Key::of(&self.scenario().ok()??),
            Work::Model { inputs, .. } => Some(Key::of_inputs(inputs)),
            Work::Calculation(_) => None,
        }
    }

    /// Does the work and returns the point, or `None` if `go_on`, which is called now and then, returns `false`.
    ///
    /// # Errors
    /// If the scenario is wrong, or the run fails.
    pub fn point(&self, mut go_on: impl FnMut(&Progress) -> bool) -> Result<Option<Point>, String> {
        self.watched(None, &mut go_on)
    }

    /// Does the work and returns the point, or `None` if `watch` interrupts it. A simulation writes its results to
    /// `dir`, if given.
    ///
    /// # Errors
    /// If the scenario is wrong, the run fails, or results cannot be written.
    pub fn watched(&self, dir: Option<&Path>, watch: &mut dyn Watch) -> Result<Option<Point>, String> {
        match &self.work {
            Work::Calculation(point) | Work::Model { point, .. } => Ok(Some(point())),
            Work::Scenario { read, counted, .. } => {
                let scenario = self.scenario()?.expect("it is a simulation");
                let record = Record::of(scenario, counted.clone(), dir, &self.line, watch)?;
                Ok(record.map(|record| read(&record)))
            }
        }
    }
}
