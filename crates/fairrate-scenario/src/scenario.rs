use std::hash::Hasher as _;
use std::path::Path;

use fairrate_control::Registry;
use fairrate_sim::SimConfig;
use fairrate_text::nearest;
use twox_hash::XxHash64;

use crate::constants;
use crate::error::{Report, ScenarioError, Site};
use crate::overrides::{self, Overrides};
use crate::schema::{self, Algorithms, Attachment, Extent, Files, Place, Window};
use crate::tree;

/// A runnable scenario: the complete input of a run, with every default filled in.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    description: String,
    blocks: Vec<String>,
    config: SimConfig,
    window: Window,
    warnings: Vec<String>,
    resolved: String,
    attachments: Vec<Attachment>,
    is_own: bool,
}

impl Scenario {
    /// Returns a reader of scenarios that may name the algorithms of `registry`:
    ///
    /// ```
    /// use fairrate_control::dctcp::DctcpConfig;
    /// use fairrate_control::{AlgorithmInfo, Registry};
    /// use fairrate_scenario::{Overrides, Scenario};
    ///
    /// let info = AlgorithmInfo { name: "mine", title: "Mine", paper: "none", idea: "DCTCP under another name" };
    /// let registry = Registry::new().with(info, DctcpConfig::new)?;
    /// let text = r#"
    ///     duration = "1ms"
    ///     [topology]
    ///     kind = "star"
    ///     [transport]
    ///     cc = "mine"
    ///     mine.g = 0.1
    ///     [[traffic]]
    ///     kind = "permutation"
    ///     bytes = "1MB"
    /// "#;
    /// let scenario = Scenario::with_algorithms(&registry).from_texts(text, "mine.toml", &[], &Overrides::default())?;
    /// assert_eq!(scenario.sim_config().cc.info().title, "Mine");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_algorithms(registry: &Registry) -> Reader<'_> {
        Reader { registry, extent: Extent::Whole }
    }

    /// Reads a scenario file; its algorithm must be a built-in one.
    ///
    /// # Errors
    /// As [`Reader::load`].
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, ScenarioError> {
        Self::with_algorithms(&Registry::new()).load(path, overrides)
    }

    /// Reads a scenario from its text; its algorithm must be a built-in one.
    ///
    /// # Errors
    /// As [`Reader::from_toml`].
    pub fn from_toml(
        text: &str,
        file_name: &str,
        base_dir: &Path,
        overrides: &Overrides,
    ) -> Result<Self, ScenarioError> {
        Self::with_algorithms(&Registry::new()).from_toml(text, file_name, base_dir, overrides)
    }

    /// Reads a scenario and the files it names from texts; its algorithm must be a built-in one.
    ///
    /// # Errors
    /// As [`Reader::from_texts`].
    pub fn from_texts(
        text: &str,
        file_name: &str,
        files: &[(&str, &str)],
        overrides: &Overrides,
    ) -> Result<Self, ScenarioError> {
        Self::with_algorithms(&Registry::new()).from_texts(text, file_name, files, overrides)
    }

    /// Returns the name of the run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the `[[traffic]]` blocks, in their order; empty for those without one.
    pub fn traffic_blocks(&self) -> &[String] {
        &self.blocks
    }

    /// Returns the description of the scenario; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the configuration of the simulation.
    pub fn sim_config(&self) -> &SimConfig {
        &self.config
    }

    /// Returns the configuration of the simulation by value.
    pub fn into_sim_config(self) -> SimConfig {
        self.config
    }

    /// Returns the warnings: settings that are allowed and likely not meant, each in a sentence.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the measuring window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns the scenario as TOML with every default filled in. It names files of [`Scenario::files`], which belong
    /// beside it.
    pub fn to_toml(&self) -> String {
        self.resolved.clone()
    }

    /// Returns name and content of the files that belong beside the resolved scenario: topology, flow lists, sizes, and
    /// a library with the algorithm.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.attachments.iter().map(|a| (a.name.as_str(), a.content.as_slice()))
    }

    /// Returns `true` if the algorithm is one that the program registered besides the built-in ones, and not from a
    /// library. The behaviour of such an algorithm is in no hash.
    pub fn is_of_own_algorithm(&self) -> bool {
        self.is_own
    }

    /// Returns a hash of the resolved scenario and its files.
    pub fn hash(&self) -> u64 {
        let parts = self.attachments.iter().flat_map(|a| [a.name.as_bytes(), a.content.as_slice()]);
        let mut hash = XxHash64::with_seed(0);
        for part in std::iter::once(self.resolved.as_bytes()).chain(parts) {
            // With its length, so that moving text from one part to the next changes the hash.
            hash.write(&(part.len() as u64).to_le_bytes());
            hash.write(part);
        }
        hash.finish()
    }
}

/// A reader of scenarios that may name the algorithms of a [`Registry`]: [`Scenario::with_algorithms`].
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    registry: &'a Registry,
    extent: Extent,
}

impl Reader<'_> {
    /// Returns a reader that leaves out the flows, and probes, which may name them. Its scenarios have a network,
    /// faults and algorithms, in little time and memory however many flows there are, and cannot be run: they are for
    /// readers of results.
    #[must_use]
    pub fn without_flows(self) -> Self {
        Self { extent: Extent::WithoutFlows, ..self }
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// If the file or one it names cannot be read, or anything in them is wrong.
    pub fn load(self, path: &Path, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        let shown = path.display().to_string();
        let text = schema::read_text(path).map_err(|why| {
            let message = format!("cannot read `{shown}`: {why}");
            ScenarioError::of_file(path, "scenario::unreadable_file", message, help_for_unreadable(path))
        })?;
        self.from_toml(&text, &shown, path.parent().unwrap_or(Path::new("")), overrides)
    }

    /// Reads a scenario from its text. Errors call it `file_name`, whose stem is the default name of the scenario;
    /// paths in the text are relative to `base_dir`.
    ///
    /// # Errors
    /// If anything in it or in the files it names is wrong.
    pub fn from_toml(
        self,
        text: &str,
        file_name: &str,
        base_dir: &Path,
        overrides: &Overrides,
    ) -> Result<Scenario, ScenarioError> {
        self.read(text, file_name, Place::Dir(base_dir), overrides)
    }

    /// Reads a scenario from its text and the files it names from `files`, pairs of a path as in the scenario and a
    /// text. Nothing is read from disk.
    ///
    /// # Errors
    /// If anything in the scenario or in `files` is wrong.
    pub fn from_texts(
        self,
        text: &str,
        file_name: &str,
        files: &[(&str, &str)],
        overrides: &Overrides,
    ) -> Result<Scenario, ScenarioError> {
        self.read(text, file_name, Place::Texts(files), overrides)
    }

    fn read(
        self,
        text: &str,
        file_name: &str,
        place: Place<'_>,
        overrides: &Overrides,
    ) -> Result<Scenario, ScenarioError> {
        let report = Report::default();
        let source = report.add_source(file_name, text.to_owned());
        let table = tree::parse(text, source, &report);
        report.check()?;
        let mut table = table.unwrap_or_default();
        let algorithms = Algorithms::new(self.registry, &table);
        overrides::apply(&mut table, overrides, &report);
        report.check()?;
        let name = Path::new(file_name).file_stem().and_then(|s| s.to_str()).unwrap_or("scenario");
        let files = Files::new(place);
        let start = Site::new(source, 0..0);
        constants::expand(&mut table, start, place, self.registry, &report);
        report.check()?;
        let read = schema::read(&table, start, name, &files, &algorithms, self.extent, &report)?;
        let mut resolved = String::from("# The resolved scenario: every default filled in, runnable as it is.\n");
        read.output.render("", &mut resolved);
        let cc = read.config.cc.info().name;
        let is_own = self.registry.own_infos().any(|own| own.name == cc) && !self.registry.is_library(cc);
        Ok(Scenario {
            is_own,
            name: read.name,
            description: read.description,
            blocks: read.blocks,
            config: read.config,
            window: read.window,
            warnings: read.warnings,
            resolved,
            attachments: files.into_attachments(),
        })
    }
}

/// Returns the remedy for a scenario file that cannot be read: the TOML file beside it with the nearest name, if there
/// is one.
fn help_for_unreadable(path: &Path) -> String {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|end| end == "toml"));
    names.sort();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(name) if !path.exists() => format!("did you mean `{}`?", path.with_file_name(name).display()),
        _ => "give the path of a scenario file; `fairrate new FILE` writes one".to_owned(),
    }
}
