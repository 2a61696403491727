//! Algorithms as the command line and Python write them: with parameters, or with other keys of the scenario.

use std::path::{Path, PathBuf};

use fairrate_control::{
    AlgorithmConfig, CustomAlgorithm, Parameters, Profile, Registry, constant_sets_of, names_library,
};
use fairrate_scenario::Overrides;
use fairrate_text::did_you_mean;

use super::{ColumnsError, in_words, label, split_values};

/// An algorithm, perhaps with other parameters than the scenario's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its own label, or the algorithm as written, with colons between parameters, and the changed keys.
    pub(super) label: String,
    /// Name of the algorithm, or the path of its library; empty for the scenario's own.
    pub cc: String,
    /// Keys of the scenario and their values: the algorithm's parameters.
    pub sets: Vec<(String, String)>,
}

impl Variant {
    /// Returns a variant called `label`: an algorithm, or the scenario's own if `cc` is empty, and keys of the scenario
    /// with their values.
    pub fn called(label: &str, cc: &str, sets: &[(&str, &str)]) -> Self {
        let sets = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self { label: label.to_owned(), cc: cc.to_owned(), sets }
    }
}

/// Joins the pieces of a list of algorithms that was split at its commas: a piece `KEY=VALUE` is another parameter of
/// the algorithm before it, as in `dcqcn:ai=200Mbps,hai=2Gbps`.
pub fn joined(pieces: &[String]) -> Vec<String> {
    let mut ccs: Vec<String> = Vec::new();
    for piece in pieces {
        match ccs.last_mut() {
            Some(cc) if cc.contains(':') && is_parameter(piece) => *cc = format!("{cc},{piece}"),
            _ => ccs.push(piece.clone()),
        }
    }
    ccs
}

/// Returns `true` if `piece` sets a parameter and names no algorithm, whose name has no equals sign.
fn is_parameter(piece: &str) -> bool {
    let first = piece.split(':').next().unwrap_or_default();
    first.contains('=') && !names_library(first.trim())
}

/// Splits an algorithm as written into its name and its parameters, which follow colons or commas.
fn parts_of(text: &str) -> Result<(&str, Vec<&str>), ColumnsError> {
    let (name, parameters) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let (name, mut parts) = (name.trim(), Vec::new());
    for part in parameters.into_iter().flat_map(|rest| rest.split(':')) {
        // A comma before anything but `KEY=` is part of a value.
        let mut start = 0;
        for (at, _) in part.match_indices(',').filter(|(at, _)| is_parameter(&part[at + 1..])) {
            parts.push(part[start..at].trim());
            start = at + 1;
        }
        parts.push(part[start..].trim());
    }
    if is_parameter(name) && !name.contains(',') {
        let message = format!("`{name}` is no algorithm");
        let help = format!("parameters follow their algorithm after a colon, as `NAME:{name}`");
        return Err(ColumnsError::Usage { message, help });
    }
    match name.split_once(',') {
        Some((first, rest)) if !names_library(name) => {
            let first = first.trim();
            let (message, help) = if is_parameter(rest) {
                let help = format!("write `{first}:{}`; further parameters follow colons or commas", rest.trim());
                (format!("parameters of `{first}` follow a colon"), help)
            } else {
                let help = format!("give one, as `{first}`; `fairrate compare` runs several");
                (format!("`{name}` are several algorithms"), help)
            };
            Err(ColumnsError::Usage { message, help })
        }
        _ => Ok((name, parts)),
    }
}

/// Checks that an algorithm has constants of this name.
fn check_set(name: &str, set: &str, registry: &Registry) -> Result<(), ColumnsError> {
    let sets = constant_sets_of(name, registry);
    let names: Vec<&str> = sets.iter().map(|set| set.name).collect();
    match names.contains(&set) {
        true => Ok(()),
        false if names.is_empty() => Err(ColumnsError::Usage {
            message: format!("`{name}` has no named constants"),
            help: "`fairrate list constants` has all".to_owned(),
        }),
        false => Err(ColumnsError::unknown_name("set of constants", set, &names)),
    }
}

/// Reads `NAME` or `NAME:KEY=VALUE:KEY=VALUE`. NAME may be the path of a library, or be followed by `@SET` for a named
/// set of constants, and every colon but the first may be a comma.
///
/// # Errors
/// If the algorithm, a set or a parameter is not known, or the library cannot be loaded.
pub fn parse_variant(text: &str, registry: &Registry) -> Result<Variant, ColumnsError> {
    let (written, parts) = parts_of(text)?;
    let (cc, defaults) = if names_library(written) {
        let (path, library) = open(written, registry)?;
        (path.display().to_string(), AlgorithmConfig::Custom(library))
    } else {
        let (name, set) = written.split_once('@').map_or((written, None), |(name, set)| (name, Some(set)));
        let known = || ColumnsError::unknown_name("algorithm", name, &registry.names());
        let config = registry.config(name, Profile::Paper).ok_or_else(known)?;
        if let Some(set) = set {
            check_set(name, set, registry)?;
        }
        (written.to_owned(), config)
    };
    let name = defaults.info().name;
    let names: Vec<&str> = defaults.params().iter().map(|p| p.name).collect();
    let mut sets = Vec::new();
    for part in &parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if !names.contains(&key) {
            return Err(ColumnsError::unknown_name("parameter", key, &names));
        }
        sets.push((format!("transport.{name}.{key}"), value.to_owned()));
    }
    let shown = if names_library(written) { name } else { written };
    let label = std::iter::once(shown).chain(parts).collect::<Vec<_>>().join(":");
    Ok(Variant { label, cc, sets })
}

/// Returns the changes of a single run: those of `sets`, the seed, and the algorithm `cc` with its parameters.
///
/// # Errors
/// As [`parse_variant`]; also if a parameter is in `sets` and with the algorithm.
pub fn overrides(
    cc: Option<&str>,
    sets: &[(String, String)],
    seed: Option<u64>,
    registry: &Registry,
) -> Result<Overrides, ColumnsError> {
    let variant = cc.map(|text| parse_variant(text, registry)).transpose()?.unwrap_or_default();
    if let Some((key, _)) = variant.sets.iter().find(|(key, _)| sets.iter().any(|(set, _)| set == key)) {
        let message = format!("`{key}` is set by --cc and --set");
        return Err(ColumnsError::Usage { message, help: "give its value in one place".to_owned() });
    }
    let sets = sets.iter().cloned().chain(variant.sets).collect();
    Ok(Overrides { sets, seed, cc: cc.is_some().then_some(variant.cc) })
}

/// Splits `NAME: KEY=VALUE, KEY=VALUE` into the algorithm as written and the rest.
fn split_changes(text: &str) -> Result<(&str, &str), ColumnsError> {
    let changes = text.match_indices(':').find(|(at, _)| text[at + 1..].starts_with(char::is_whitespace));
    changes.map(|(at, _)| (text[..at].trim(), text[at + 1..].trim())).filter(|(cc, _)| !cc.is_empty()).ok_or_else(
        || {
            let help = "write it as NAME: KEY=VALUE, as in `swift: switch.pfc=false, transport.rto=\"1ms\"`; a label may be before it, as in `lossy = swift: ...`".to_owned();
            ColumnsError::Usage { message: format!("`{text}` is no algorithm with changed keys"), help }
        },
    )
}

/// Reads `NAME: KEY=VALUE, KEY=VALUE`: an algorithm as for [`parse_variant`], and keys of the scenario with their
/// values. Commas inside of quotes or brackets are part of a value. With `LABEL =` before it, the variant is called so;
/// a label that has a colon is in quotes.
///
/// # Errors
/// If the algorithm or a parameter is not known, or a change has no key or no value.
pub fn parse_changes(text: &str, registry: &Registry) -> Result<Variant, ColumnsError> {
    let written = text;
    let (label, text) = label::split(text)?;
    let (cc, rest) = split_changes(text)?;
    let mut variant = parse_variant(cc, registry).map_err(|error| match label::hint(written, label) {
        Some(hint) => error.with_hint(&hint),
        None => error,
    })?;
    let wrong = |message: String| ColumnsError::Usage {
        message,
        help: "keys are those of the scenario with dots, as in `switch.pfc=false`; several have commas between them"
            .to_owned(),
    };
    for change in split_values(rest).map_err(wrong)? {
        let (key, value) = change.split_once('=').map_or(("", ""), |(key, value)| (key.trim(), value.trim()));
        if key.is_empty() || value.is_empty() {
            return Err(wrong(format!("`{change}` changes no key")));
        }
        if variant.sets.iter().any(|(other, _)| other == key) {
            return Err(wrong(format!("`{key}` is set twice by `{text}`")));
        }
        let short = key.rsplit('.').next().unwrap_or(key);
        let value_in_words = in_words(value).map_or_else(String::new, |words| format!("={words}"));
        variant.label = format!("{} {short}{value_in_words}", variant.label);
        variant.sets.push((key.to_owned(), value.to_owned()));
    }
    if let Some(label) = label {
        label.clone_into(&mut variant.label);
    }
    Ok(variant)
}

/// Loads the library of this path, which is relative to the current directory; returns its full path and the algorithm.
fn open(written: &str, registry: &Registry) -> Result<(PathBuf, CustomAlgorithm), ColumnsError> {
    let path = std::path::absolute(written).map_err(|e| ColumnsError::Usage {
        message: format!("finding `{written}` failed: {e}"),
        help: "give the path of a library, as `./libmine.so`".to_owned(),
    })?;
    let near = || similar(&path).filter(|_| !path.exists());
    match registry.open(&path) {
        Ok(library) => Ok((path, library)),
        Err(error) => Err(ColumnsError::Usage { message: error.message, help: near().unwrap_or(error.help) }),
    }
}

/// Returns the question for a file beside `path` with nearly its name.
fn similar(path: &Path) -> Option<String> {
    let beside = std::fs::read_dir(path.parent()?).ok()?;
    let mut names: Vec<String> = beside.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    did_you_mean(path.file_name()?.to_str()?, names.iter().map(String::as_str))
}

/// Returns `registry` with the algorithms of the libraries among `ccs` and `changes` added, so that a scenario may have
/// parameters of any of them.
///
/// # Errors
/// If a library cannot be loaded, or its algorithm has a name that is taken.
pub fn with_libraries(ccs: &[String], changes: &[String], registry: &Registry) -> Result<Registry, ColumnsError> {
    let written = changes.iter().map(|text| label::split(text).map_or(text.as_str(), |(_, rest)| rest));
    let all = ccs.iter().map(String::as_str).chain(written);
    all.map(|text| text.split(':').next().unwrap_or_default().trim()).filter(|name| names_library(name)).try_fold(
        registry.clone(),
        |registry, path| {
            let (path, library) = open(path, &registry)?;
            registry.with_library(library).map_err(|error| ColumnsError::Usage {
                message: format!("the algorithm of `{}` cannot have its name: {error}", path.display()),
                help: "change the name in the library".to_owned(),
            })
        },
    )
}
