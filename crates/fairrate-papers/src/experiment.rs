//! What a figure runs: scenarios, and calculations without packets.

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{Progress, SimConfig};

use crate::points::Point;
use crate::record::Record;
use crate::rtts::Rtts;

/// What is read from a run.
type Read = Box<dyn Fn(&Record) -> Point + Send + Sync>;

/// One run of a figure.
pub struct Run {
    /// What it is of, as `incast10`: runs of a name are drawn and compared together.
    pub name: String,
    /// Its line, as `powertcp`.
    pub line: String,
    /// Its seed, if anything is random.
    pub seed: Option<u64>,
    /// Whether other figures of the paper have it too. It is then made and read by what they share, and is not done twice.
    pub is_shared: bool,
    /// How it comes to a point.
    pub work: Work,
}

/// How a run comes to a point.
pub enum Work {
    /// By a simulation.
    Scenario {
        /// The scenario.
        toml: &'static str,
        /// The files it names, each with its text.
        files: Vec<(&'static str, &'static str)>,
        /// What is changed in it.
        overrides: Overrides,
        /// Which round-trip times are counted.
        rtts: Option<Rtts>,
        /// What is read from it.
        read: Read,
    },
    /// By a short calculation, or a measurement of this machine: made anew each time.
    Calculation(Box<dyn Fn() -> Point + Send + Sync>),
    /// By a longer calculation, whose point is kept as a simulation's.
    Model {
        /// All that it depends on, as text.
        inputs: String,
        /// Calculates.
        point: Box<dyn Fn() -> Point + Send + Sync>,
    },
}

impl Run {
    /// A simulation under an algorithm, with keys set. The line's name is the algorithm's.
    pub fn of(
        name: &str,
        toml: &'static str,
        cc: &str,
        sets: &[(&str, &str)],
        read: impl Fn(&Record) -> Point + Send + Sync + 'static,
    ) -> Self {
        let sets = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..Overrides::default() };
        let work = Work::Scenario { toml, overrides, files: Vec::new(), rtts: None, read: Box::new(read) };
        Self { name: name.to_owned(), line: cc.to_owned(), seed: None, is_shared: false, work }
    }

    /// A calculation.
    pub fn calculated(name: &str, line: &str, point: impl Fn() -> Point + Send + Sync + 'static) -> Self {
        Self {
            name: name.to_owned(),
            line: line.to_owned(),
            seed: None,
            is_shared: false,
            work: Work::Calculation(Box::new(point)),
        }
    }

    /// A calculation of seconds. What it depends on stands in `inputs`, so that it is not done again.
    pub fn modelled(name: &str, line: &str, inputs: String, point: impl Fn() -> Point + Send + Sync + 'static) -> Self {
        let work = Work::Model { inputs, point: Box::new(point) };
        Self { name: name.to_owned(), line: line.to_owned(), seed: None, is_shared: false, work }
    }

    /// The same under another name of its line.
    #[must_use]
    pub fn called(self, line: &str) -> Self {
        Self { line: line.to_owned(), ..self }
    }

    /// The same with a file that the scenario names, in the place of one of this name that it has.
    #[must_use]
    pub fn with_file(mut self, name: &'static str, text: &'static str) -> Self {
        if let Work::Scenario { files, .. } = &mut self.work {
            files.retain(|(other, _)| *other != name);
            files.push((name, text));
        }
        self
    }

    /// The same from a seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        if let Work::Scenario { overrides, .. } = &mut self.work {
            overrides.seed = Some(seed);
        }
        Self { seed: Some(seed), ..self }
    }

    /// The same as a run that other figures of the paper have too.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// The same with these round-trip times counted.
    #[must_use]
    pub fn counting(mut self, which: Rtts) -> Self {
        if let Work::Scenario { rtts, .. } = &mut self.work {
            *rtts = Some(which);
        }
        self
    }

    /// What progress calls it.
    pub fn label(&self) -> String {
        let seed = self.seed.map_or(String::new(), |seed| format!(" seed {seed}"));
        format!("{} {}{seed}", self.name, self.line)
    }

    /// The scenario, if it is a simulation.
    ///
    /// # Errors
    /// What the scenario's reader says.
    pub fn scenario(&self) -> Result<Option<Scenario>, String> {
        let Work::Scenario { toml, files, overrides, .. } = &self.work else { return Ok(None) };
        let scenario = Scenario::from_texts(toml, &self.name, files, overrides);
        scenario.map(Some).map_err(|e| format!("{}: {e}", self.label()))
    }

    /// Comes to the point; `None` if `go_on` says no, which is asked now and then.
    ///
    /// # Errors
    /// If the scenario is wrong, or the run stalls.
    pub fn point(&self, go_on: impl FnMut(&Progress) -> bool) -> Result<Option<Point>, String> {
        match &self.work {
            Work::Calculation(point) | Work::Model { point, .. } => Ok(Some(point())),
            Work::Scenario { read, rtts, .. } => {
                let scenario = self.scenario()?.expect("it is a simulation");
                let config: SimConfig = scenario.into_sim_config();
                let record = Record::of(config, rtts.clone(), go_on).map_err(|e| format!("{}: {e}", self.label()))?;
                Ok(record.map(|record| read(&record)))
            }
        }
    }
}
