//! `cc` and `[transport.NAME]`: the algorithm that controls the flows, and its parameters.

use std::path::Path;

use fairrate_control::{
    AlgorithmConfig, AlgorithmInfo, CustomAlgorithm, LibraryError, Parameters, Profile, RawValue, Registry,
    SetParamError, names_library,
};
use fairrate_sim::Transport;

use super::Files;
use crate::error::Site;
use crate::reader::{Output, Section};
use crate::scalar::quote;
use crate::tree::{Node, Table, Value};

/// The algorithms that a scenario can name.
#[derive(Clone)]
pub(crate) struct Algorithms {
    registry: Registry,
    /// The library that the file names, for a command line that names another algorithm.
    unused_library: Option<String>,
}

impl Algorithms {
    /// Returns the algorithms of `registry`, with the library that `file` names before the command line changes it.
    pub fn new(registry: &Registry, file: &Table) -> Self {
        let transport = file.get("transport").map(|entry| &entry.node.value);
        let cc = match transport {
            Some(Value::Table(transport)) => transport.get("cc").map(|entry| &entry.node.value),
            _ => None,
        };
        let unused_library = match cc {
            Some(Value::Text(name)) if names_library(name) => Some(name.clone()),
            _ => None,
        };
        Self { registry: registry.clone(), unused_library }
    }
}

/// Returns the algorithm with its defaults, and a registry of all algorithms that may have sections. The default is
/// PowerTCP, from which fairrate started.
pub(super) fn read_cc(
    s: &mut Section<'_>,
    profile: Profile,
    files: &Files<'_>,
    algorithms: Algorithms,
) -> (AlgorithmConfig, Registry) {
    let Algorithms { mut registry, unused_library } = algorithms;
    let site = s.site_of("cc");
    let name = s.given::<String>("cc").map_or_else(|| "powertcp".to_owned(), |field| field.value);
    if names_library(&name) {
        if let Some(library) = read_library(s, &name, site, files, &registry) {
            registry = with_library(s, site, registry, &library);
            return (AlgorithmConfig::Custom(library), registry);
        }
    } else {
        s.out.push("cc", quote(&name));
        if let Some(library) = unused_library.and_then(|path| registry.open(&files.library_path(&path)?).ok()) {
            // If the name is taken, the section belongs to the other algorithm.
            registry = registry.clone().with_library(library).unwrap_or(registry);
        }
        if let Some(config) = registry.config(&name, profile) {
            return (config, registry);
        }
        if s.node("cc").is_some_and(|n| matches!(n.value, Value::Text(_))) {
            s.unknown_word("cc", &name, site, &registry.names());
        }
    }
    (AlgorithmConfig::by_name("line-rate", profile).expect("`line-rate` is in the table"), registry)
}

/// Loads the algorithm of a shared library, which is attached to the results.
fn read_library(
    s: &mut Section<'_>,
    path: &str,
    site: Site,
    files: &Files<'_>,
    registry: &Registry,
) -> Option<CustomAlgorithm> {
    let opened = files.library(path).and_then(|(full, bytes)| Ok((registry.open(&full)?, bytes)));
    match opened {
        Ok((library, bytes)) => {
            let extension = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or("so");
            let name = files.attach(library.info().name, extension, bytes);
            s.out.push("cc", quote(&format!("./{name}")));
            Some(library)
        }
        Err(LibraryError { message, help }) => {
            s.report.problem("scenario::bad_library", site, message, "this library", help);
            None
        }
    }
}

fn with_library(s: &Section<'_>, site: Site, registry: Registry, library: &CustomAlgorithm) -> Registry {
    registry.clone().with_library(library.clone()).unwrap_or_else(|error| {
        let message = format!("the library's algorithm cannot have its name: {error}");
        s.report.problem("scenario::bad_library", site, message, "this library", "change the name in the library");
        registry
    })
}

/// Reads the sections of all algorithms in the file, so that a slip in any of them is found and none is lost when
/// another algorithm is chosen later. Returns the configuration of the chosen algorithm, and the sections for the
/// resolved scenario.
pub(super) fn read_algorithms(
    s: &mut Section<'_>,
    profile: Profile,
    kind: Transport,
    cc: AlgorithmConfig,
    registry: &Registry,
) -> (AlgorithmConfig, Vec<(String, Output)>) {
    let chosen = cc.info().name;
    let (mut cc, mut sections) = (cc, Vec::new());
    for info in registry.infos() {
        if !is_free(s, info, info.name == chosen) {
            continue;
        }
        let given = s.has(info.name);
        let Some(mut config) = registry.config(info.name, profile) else { continue };
        if matches!(kind, Transport::Tcp(_)) {
            config = config.over_tcp();
        }
        if given {
            let section = s.child(info.name, &format!("`[transport.{}]`", info.name));
            read_parameters(section, &mut config);
        }
        // A library that is not used is not part of the resolved scenario, nor are its parameters.
        if info.name == chosen || given && !registry.is_library(info.name) {
            let mut out = Output::default();
            config.params().into_iter().for_each(|p| out.push(p.name, p.toml));
            sections.push((info.name.to_owned(), out));
        }
        if info.name == chosen {
            cc = config;
        }
    }
    (cc, sections)
}

/// Returns `true` if no other key of `[transport]` has the name of the algorithm. To be called when all other keys have
/// been read.
fn is_free(s: &Section<'_>, info: &AlgorithmInfo, is_chosen: bool) -> bool {
    let is_free = !s.is_known(info.name);
    if is_chosen && !is_free {
        let message = format!("no algorithm can be called `{}`: `[transport]` has such a key", info.name);
        s.problem_at("scenario::bad_library", "cc", message, "give the algorithm another name");
    }
    is_free
}

fn read_parameters(mut section: Section<'_>, config: &mut AlgorithmConfig) {
    let params = config.params();
    let names: Vec<&str> = params.iter().map(|p| p.name).collect();
    for key in section.keys().collect::<Vec<_>>() {
        let Some(param) = params.iter().find(|p| p.name == key) else { continue };
        let Some(node) = section.node(key) else { continue };
        let Some(raw) = raw_value(node) else {
            let message = format!("`{key}` cannot be {}", node.value.describe());
            section.problem_at("scenario::wrong_type", key, message, format!("write it as `{key} = {}`", param.toml));
            continue;
        };
        if let Err(SetParamError::Invalid { message, help }) = config.set(key, raw) {
            section.problem_at("scenario::bad_parameter", key, format!("`{key}`: {message}"), help);
        }
    }
    for name in &names {
        section.node(name);
    }
    if names.is_empty() {
        if let Some(key) = section.keys().next() {
            let message = format!("{} has no parameters", section.name);
            section.problem_at("scenario::unknown_key", key, message, format!("remove `{key}`"));
        }
        return;
    }
    section.finish();
}

fn raw_value(node: &Node) -> Option<RawValue<'_>> {
    match &node.value {
        Value::Text(text) => Some(RawValue::Text(text)),
        Value::Integer(n) => Some(RawValue::Integer(*n)),
        Value::Float(x) => Some(RawValue::Float(*x)),
        Value::Bool(b) => Some(RawValue::Bool(*b)),
        Value::Date(_) | Value::Array(_) | Value::Table(_) => None,
    }
}
