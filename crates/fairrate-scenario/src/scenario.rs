use std::path::Path;

use fairrate_sim::SimConfig;

use crate::error::{Report, ScenarioError, Site};
use crate::overrides::{self, Overrides};
use crate::schema::{self, Attachment, Files, Place};
use crate::tree;

/// A runnable scenario: everything a run is made from, every default filled in.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    description: String,
    config: SimConfig,
    resolved: String,
    attachments: Vec<Attachment>,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// If the file or one it names cannot be read, or anything in them is wrong.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, ScenarioError> {
        let shown = path.display().to_string();
        let text = schema::read_text(path).map_err(|why| {
            let help = "give the path of a scenario file, such as `examples/incast.toml`".to_owned();
            ScenarioError::without_place("scenario::unreadable_file", format!("cannot read `{shown}`: {why}"), help)
        })?;
        Self::from_toml(&text, &shown, path.parent().unwrap_or(Path::new("")), overrides)
    }

    /// Reads a scenario from its text. `file_name` is what errors call it, and its stem the default name of the
    /// scenario; paths in the text are relative to `base_dir`.
    ///
    /// # Errors
    /// If anything in it or in the files it names is wrong.
    pub fn from_toml(
        text: &str,
        file_name: &str,
        base_dir: &Path,
        overrides: &Overrides,
    ) -> Result<Self, ScenarioError> {
        Self::of(text, file_name, Place::Dir(base_dir), overrides)
    }

    /// The same of a scenario whose files are texts too, each with the path that the scenario has for it: nothing is read from
    /// disk.
    ///
    /// # Errors
    /// If anything in it or in these files is wrong.
    pub fn from_texts(
        text: &str,
        file_name: &str,
        files: &[(&str, &str)],
        overrides: &Overrides,
    ) -> Result<Self, ScenarioError> {
        Self::of(text, file_name, Place::Texts(files), overrides)
    }

    fn of(text: &str, file_name: &str, place: Place<'_>, overrides: &Overrides) -> Result<Self, ScenarioError> {
        let report = Report::default();
        let source = report.add_source(file_name, text.to_owned());
        let table = tree::parse(text, source, &report);
        report.check()?;
        let mut table = table.unwrap_or_default();
        overrides::apply(&mut table, overrides, &report);
        report.check()?;
        let name = Path::new(file_name).file_stem().and_then(|s| s.to_str()).unwrap_or("scenario");
        let files = Files::new(place);
        let plug_in = overrides.plug_in.as_deref();
        let read = schema::read(&table, Site::new(source, 0..0), name, &files, plug_in, &report)?;
        let mut resolved = String::from("# The resolved scenario: every default filled in, runnable as it is.\n");
        read.output.render("", &mut resolved);
        Ok(Self {
            name: read.name,
            description: read.description,
            config: read.config,
            resolved,
            attachments: files.into_attachments(),
        })
    }

    /// What the run is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is about; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The simulation it describes.
    pub fn sim_config(&self) -> &SimConfig {
        &self.config
    }

    /// The simulation it describes.
    pub fn into_sim_config(self) -> SimConfig {
        self.config
    }

    /// The scenario with every default filled in. Files it names are those of [`Scenario::files`], beside it.
    pub fn to_toml(&self) -> String {
        self.resolved.clone()
    }

    /// Name and content of the files that belong beside the resolved scenario: topology, flow lists, sizes.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attachments.iter().map(|a| (a.name.as_str(), a.text.as_str()))
    }

    /// Hash of the resolved scenario and its files.
    pub fn hash(&self) -> u64 {
        let parts = self.attachments.iter().flat_map(|a| [a.name.as_str(), a.text.as_str()]);
        std::iter::once(self.resolved.as_str()).chain(parts).fold(FNV_OFFSET, |hash, part| {
            let hash = part.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
            // An end mark, so that text cannot move from one part to the next unseen.
            (hash ^ 0xff).wrapping_mul(FNV_PRIME)
        })
    }
}

/// The 64-bit FNV-1a hash: stable across builds and platforms, unlike the standard library's.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
