//! User-defined algorithms, outside the table. They have names, parameters and defaults as the built-in algorithms do,
//! and scenarios name them the same way.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::config::{Param, Parameters, Profile, RawValue, SetParamError};
use crate::controller::{AlgorithmSpec, Controller, FlowContext, MadeFor};
use crate::coupled::{CoupledController, CoupledSpec};
use crate::needs::Needs;
use crate::port::{PortAgent, PortContext};
use crate::registry::{ALGORITHMS, AlgorithmConfig, AlgorithmInfo};

/// A user-defined algorithm with its parameters, as a variant of [`AlgorithmConfig`].
///
/// Its controllers are called through a pointer. A built-in algorithm added as a user-defined one gives bit-identical
/// results.
pub struct CustomAlgorithm {
    info: AlgorithmInfo,
    spec: Box<dyn AnySpec>,
}

impl CustomAlgorithm {
    /// Returns an algorithm for single flows. Each subflow of a connection has a separate controller.
    pub fn new<S>(info: AlgorithmInfo, spec: S) -> Self
    where
        S: AlgorithmSpec<Controller: Send + 'static, Port: Send + 'static> + Send + Sync + 'static,
    {
        Self { info, spec: Box::new(Held { spec, connect: None }) }
    }

    /// Returns an algorithm that couples the subflows of a connection.
    pub fn coupled<S>(info: AlgorithmInfo, spec: S) -> Self
    where
        S: CoupledSpec<Controller: Send + 'static, Port: Send + 'static, Connection: Send + 'static>
            + Send
            + Sync
            + 'static,
    {
        let connect: Connect<S> = |spec, subflows| Box::new(spec.build_connection(subflows));
        Self { info, spec: Box::new(Held { spec, connect: Some(connect) }) }
    }

    /// Returns the algorithm's listing.
    pub fn info(&self) -> &AlgorithmInfo {
        &self.info
    }

    pub(crate) fn over_tcp(self) -> Self {
        Self { info: self.info, spec: self.spec.over_tcp() }
    }

    pub(crate) fn needs(&self) -> Needs {
        self.spec.needs()
    }

    pub(crate) fn made_for(&self) -> &'static [MadeFor] {
        self.spec.made_for()
    }

    pub(crate) fn build(&self, flow: &FlowContext) -> Box<dyn Controller + Send> {
        self.spec.build(flow)
    }

    pub(crate) fn build_connection(&self, subflows: &[FlowContext]) -> Option<Box<dyn CoupledController + Send>> {
        self.spec.build_connection(subflows)
    }

    pub(crate) fn build_port(&self, port: &PortContext) -> Option<Box<dyn PortAgent + Send>> {
        self.spec.build_port(port)
    }
}

impl Parameters for CustomAlgorithm {
    fn params(&self) -> Vec<Param> {
        self.spec.params()
    }
    fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
        self.spec.set(name, value)
    }
}

impl Clone for CustomAlgorithm {
    fn clone(&self) -> Self {
        Self { info: self.info, spec: self.spec.boxed_clone() }
    }
}

impl fmt::Debug for CustomAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomAlgorithm")
            .field("info", &self.info)
            .field("params", &self.params())
            .finish_non_exhaustive()
    }
}

/// Two algorithms are equal if their names, types and parameters are.
impl PartialEq for CustomAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        let type_of = |custom: &Self| custom.spec.as_any().type_id();
        self.info.name == other.info.name && type_of(self) == type_of(other) && self.params() == other.params()
    }
}

/// An [`AlgorithmSpec`] whose concrete type is erased.
trait AnySpec: Parameters + Send + Sync {
    fn over_tcp(self: Box<Self>) -> Box<dyn AnySpec>;
    fn needs(&self) -> Needs;
    fn made_for(&self) -> &'static [MadeFor];
    fn build(&self, flow: &FlowContext) -> Box<dyn Controller + Send>;
    fn build_connection(&self, subflows: &[FlowContext]) -> Option<Box<dyn CoupledController + Send>>;
    fn build_port(&self, port: &PortContext) -> Option<Box<dyn PortAgent + Send>>;
    fn boxed_clone(&self) -> Box<dyn AnySpec>;
    fn as_any(&self) -> &dyn Any;
}

/// A function that builds the controller of a connection.
type Connect<S> = fn(&S, &[FlowContext]) -> Box<dyn CoupledController + Send>;

struct Held<S> {
    spec: S,
    connect: Option<Connect<S>>,
}

impl<S: Parameters> Parameters for Held<S> {
    fn params(&self) -> Vec<Param> {
        self.spec.params()
    }
    fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
        self.spec.set(name, value)
    }
}

impl<S> AnySpec for Held<S>
where
    S: AlgorithmSpec<Controller: Send + 'static, Port: Send + 'static> + Send + Sync + 'static,
{
    fn over_tcp(self: Box<Self>) -> Box<dyn AnySpec> {
        Box::new(Self { spec: self.spec.over_tcp(), connect: self.connect })
    }
    fn needs(&self) -> Needs {
        self.spec.needs()
    }
    fn made_for(&self) -> &'static [MadeFor] {
        self.spec.made_for()
    }
    fn build(&self, flow: &FlowContext) -> Box<dyn Controller + Send> {
        Box::new(self.spec.build(flow))
    }
    fn build_connection(&self, subflows: &[FlowContext]) -> Option<Box<dyn CoupledController + Send>> {
        self.connect.map(|connect| connect(&self.spec, subflows))
    }
    fn build_port(&self, port: &PortContext) -> Option<Box<dyn PortAgent + Send>> {
        Some(Box::new(self.spec.build_port(port)?))
    }
    fn boxed_clone(&self) -> Box<dyn AnySpec> {
        Box::new(Self { spec: self.spec.clone(), connect: self.connect })
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The reason why a library provides no algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryError {
    /// Description of the fault.
    pub message: String,
    /// Advice on how to correct it.
    pub help: String,
}

/// A function that loads an algorithm from a shared library.
pub type OpenLibrary = fn(&Path) -> Result<CustomAlgorithm, LibraryError>;

/// The reason why an algorithm cannot have a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// Another algorithm has the name.
    Taken(String),
    /// The name has other characters than letters, digits, dashes and underscores, or begins with a dash, or is empty
    /// or longer than 60 characters.
    BadName(String),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(name) => write!(f, "there is an algorithm `{name}` already"),
            Self::BadName(name) => {
                write!(
                    f,
                    "`{name}` is no name for an algorithm; take letters, digits, dashes and underscores, as in `my-hull`"
                )
            }
        }
    }
}

impl std::error::Error for RegistryError {}

/// A function that returns a user-defined algorithm with the defaults of a profile.
type Defaults = Arc<dyn Fn(Profile) -> CustomAlgorithm + Send + Sync>;

#[derive(Clone)]
struct Entry {
    info: AlgorithmInfo,
    defaults: Defaults,
    origin: Origin,
}

/// The place that a user-defined algorithm comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The program itself.
    Program,
    /// A shared library.
    Library,
}

/// The algorithms that scenarios can name: the built-in ones and the user-defined ones.
///
/// ```
/// use fairrate_control::dctcp::DctcpConfig;
/// use fairrate_control::{AlgorithmInfo, Parameters, Profile, Registry};
///
/// let info = AlgorithmInfo { name: "mine", title: "Mine", paper: "none", idea: "DCTCP under another name" };
/// let registry = Registry::new().with(info, DctcpConfig::new)?;
/// assert_eq!(registry.names().last(), Some(&"mine"));
/// let config = registry.config("mine", Profile::Paper).expect("it was added");
/// assert!(config.params().iter().any(|p| p.name == "g"));
/// # Ok::<(), fairrate_control::RegistryError>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    own: Vec<Entry>,
    open: Option<OpenLibrary>,
}

impl Registry {
    /// Returns the registry of the built-in algorithms.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an algorithm for single flows; `defaults` returns its defaults in a profile.
    ///
    /// # Errors
    /// If its name is taken or is not valid.
    pub fn with<S>(self, info: AlgorithmInfo, defaults: fn(Profile) -> S) -> Result<Self, RegistryError>
    where
        S: AlgorithmSpec<Controller: Send + 'static, Port: Send + 'static> + Send + Sync + 'static,
    {
        self.add(info, Arc::new(move |profile| CustomAlgorithm::new(info, defaults(profile))), Origin::Program)
    }

    /// Adds an algorithm that couples the subflows of a connection; `defaults` returns its defaults in a profile.
    ///
    /// # Errors
    /// If its name is taken or is not valid.
    pub fn with_coupled<S>(self, info: AlgorithmInfo, defaults: fn(Profile) -> S) -> Result<Self, RegistryError>
    where
        S: CoupledSpec<Controller: Send + 'static, Port: Send + 'static, Connection: Send + 'static>
            + Send
            + Sync
            + 'static,
    {
        self.add(info, Arc::new(move |profile| CustomAlgorithm::coupled(info, defaults(profile))), Origin::Program)
    }

    /// Adds an algorithm whose defaults are the same in all profiles.
    ///
    /// # Errors
    /// If its name is taken or is not valid.
    pub fn with_algorithm(self, algorithm: CustomAlgorithm) -> Result<Self, RegistryError> {
        self.add(algorithm.info, Arc::new(move |_| algorithm.clone()), Origin::Program)
    }

    /// Adds the algorithm of a shared library. It replaces an algorithm of the same name from another library.
    ///
    /// # Errors
    /// If its name is taken by an algorithm that is not from a library, or is not valid.
    pub fn with_library(mut self, library: CustomAlgorithm) -> Result<Self, RegistryError> {
        self.own.retain(|entry| entry.origin != Origin::Library || entry.info.name != library.info.name);
        self.add(library.info, Arc::new(move |_| library.clone()), Origin::Library)
    }

    /// Lets scenarios name shared libraries, which `open` loads.
    #[must_use]
    pub fn with_libraries(self, open: OpenLibrary) -> Self {
        Self { open: Some(open), ..self }
    }

    /// Returns a copy that loads no libraries, for scenarios that are read and not run.
    #[must_use]
    pub fn without_libraries(&self) -> Self {
        Self { open: None, ..self.clone() }
    }

    fn add(mut self, info: AlgorithmInfo, defaults: Defaults, origin: Origin) -> Result<Self, RegistryError> {
        let name = info.name;
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || 60 < name.len() || name.starts_with('-') || !name.chars().all(is_fit) {
            return Err(RegistryError::BadName(name.to_owned()));
        }
        if self.infos().any(|known| known.name == name) {
            return Err(RegistryError::Taken(name.to_owned()));
        }
        self.own.push(Entry { info, defaults, origin });
        Ok(self)
    }

    /// Returns the listings of all algorithms, the built-in ones first.
    pub fn infos(&self) -> impl Iterator<Item = &AlgorithmInfo> {
        ALGORITHMS.iter().chain(self.own_infos())
    }

    /// Returns the listings of the user-defined algorithms.
    pub fn own_infos(&self) -> impl Iterator<Item = &AlgorithmInfo> {
        self.own.iter().map(|entry| &entry.info)
    }

    /// Returns `true` if the algorithm called `name` was added from a shared library.
    pub fn is_library(&self, name: &str) -> bool {
        self.own.iter().any(|entry| entry.origin == Origin::Library && entry.info.name == name)
    }

    /// Returns the names of all algorithms.
    pub fn names(&self) -> Vec<&'static str> {
        self.infos().map(|info| info.name).collect()
    }

    /// Returns the algorithm called `name` with the defaults of `profile`, or `None` if there is no such algorithm.
    pub fn config(&self, name: &str, profile: Profile) -> Option<AlgorithmConfig> {
        let own = || self.own.iter().find(|entry| entry.info.name == name);
        AlgorithmConfig::by_name(name, profile).or_else(|| Some(AlgorithmConfig::Custom((own()?.defaults)(profile))))
    }

    /// Loads the algorithm of the shared library at `path`.
    ///
    /// # Errors
    /// If the registry loads no libraries, or `path` is not a library or contains no algorithm.
    pub fn open(&self, path: &Path) -> Result<CustomAlgorithm, LibraryError> {
        let open = self.open.ok_or_else(|| LibraryError {
            message: "no libraries are loaded here".to_owned(),
            help: "run the scenario with `fairrate run`, or allow libraries with `Registry::with_libraries`".to_owned(),
        })?;
        open(path)
    }
}

/// Returns `true` if `name`, given as the name of an algorithm, is the path of a shared library.
pub fn names_library(name: &str) -> bool {
    let is_library = |extension| [Some("so"), Some("dylib"), Some("dll")].contains(&extension);
    name.contains(['/', '\\']) || is_library(Path::new(name).extension().and_then(|e| e.to_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dctcp::DctcpConfig;
    use crate::lia::LiaConfig;
    use crate::test_flow::flow_25g;

    fn info(name: &'static str) -> AlgorithmInfo {
        AlgorithmInfo { name, title: "Mine", paper: "none", idea: "none" }
    }

    #[test]
    fn own_algorithms_have_the_profiles_defaults_and_checked_parameters() {
        let registry = Registry::new().with(info("mine"), DctcpConfig::new).unwrap();
        for profile in [Profile::Paper, Profile::Ns3] {
            let mine = registry.config("mine", profile).unwrap();
            assert_eq!(mine.params(), DctcpConfig::new(profile).params());
            assert_eq!(mine.needs(), DctcpConfig::new(profile).needs());
            assert_eq!(mine.over_tcp().params(), DctcpConfig::new(profile).over_tcp().params());
        }
        let mut mine = registry.config("mine", Profile::Paper).unwrap();
        let before = mine.clone();
        assert_eq!(mine.set("g", RawValue::Float(0.5)), Ok(()));
        assert_ne!(mine, before);
        assert!(matches!(mine.set("g", RawValue::Float(5.0)), Err(SetParamError::Invalid { .. })));
        assert_eq!(mine.set("h", RawValue::Float(0.5)), Err(SetParamError::UnknownName));
        assert_eq!((mine.info().name, mine.info().title), ("mine", "Mine"));
    }

    #[test]
    fn only_coupled_ones_have_connections() {
        let registry = Registry::new().with(info("single"), LiaConfig::new).unwrap();
        let registry = registry.with_coupled(info("coupled"), LiaConfig::new).unwrap();
        let has_connection =
            |name| registry.config(name, Profile::Paper).unwrap().build_connection(&[flow_25g()]).is_some();
        assert_eq!([has_connection("single"), has_connection("coupled")], [false, true]);
    }

    #[test]
    fn names_are_taken_once_and_are_names() {
        let add = |name| Registry::new().with(info(name), DctcpConfig::new).err();
        assert_eq!(add("hpcc"), Some(RegistryError::Taken("hpcc".into())));
        for bad in ["", "My Own", "a b", "-a", "a:b", "a/b", "ä"] {
            assert_eq!(add(bad), Some(RegistryError::BadName(bad.into())));
        }
        let twice = Registry::new().with(info("x"), DctcpConfig::new).unwrap().with(info("x"), DctcpConfig::new);
        assert_eq!(twice.err(), Some(RegistryError::Taken("x".into())));
    }

    #[test]
    fn a_library_takes_the_place_of_another_one_alone() {
        let library = |g| CustomAlgorithm::new(info("x"), DctcpConfig { g, ..DctcpConfig::default() });
        let registry = Registry::new().with_library(library(0.5)).unwrap().with_library(library(0.25)).unwrap();
        let config = registry.config("x", Profile::Paper).unwrap();
        assert_eq!(config, AlgorithmConfig::Custom(library(0.25)));
        assert!(registry.is_library("x") && !registry.is_library("dctcp"));
        let own = Registry::new().with(info("x"), DctcpConfig::new).unwrap();
        assert_eq!(own.with_library(library(0.5)).err(), Some(RegistryError::Taken("x".into())));
    }

    #[test]
    fn libraries_are_opened_only_where_they_are_allowed() {
        let open: OpenLibrary = |path| {
            let message = path.display().to_string();
            Err(LibraryError { message, help: String::new() })
        };
        let registry = Registry::new().with_libraries(open);
        let message = |registry: &Registry| registry.open(Path::new("x.so")).unwrap_err().message;
        assert_eq!(message(&registry), "x.so");
        assert_eq!(message(&registry.without_libraries()), "no libraries are loaded here");
        assert!(names_library("x.so") && names_library("./x") && !names_library("hpcc"));
    }
}
