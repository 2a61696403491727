//! Loading of an algorithm from a shared library.

use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::path::Path;

use fairrate_control::{
    AlgorithmInfo, AlgorithmSpec, CustomAlgorithm, FeedbackNeeds, FlowContext, LibraryError, Needs, NetworkNeeds,
    NoPort, Param, ParamKind, ParamType, Parameters, RawValue, SetParamError, Telemetry, WireNeeds,
};
use fairrate_units::{Bytes, Time};
use libloading::Library;

use crate::abi::{
    FAIRRATE_ABI, FAIRRATE_FIRST_ACK_ONLY_STORED, FAIRRATE_NEEDS_ECN, FAIRRATE_NEEDS_TELEMETRY, FairrateAlgorithm,
    FairrateParameter,
};
use crate::controller::{PluginController, flow_of};

/// The symbol that a library exports.
const SYMBOL: &str = "fairrate_algorithm";

/// Loads the algorithm of the shared library at `path`, which stays loaded.
///
/// Loading a library runs its code. Open only libraries that you would run.
///
/// # Errors
/// If there is no such file, it is not a library, it has no `fairrate_algorithm`, or that symbol is of another version
/// or has a wrong field.
pub fn open(path: &Path) -> Result<CustomAlgorithm, LibraryError> {
    let wrong = |message: String, help: &str| LibraryError {
        message: format!("`{}` {message}", path.display()),
        help: help.to_owned(),
    };
    if !path.is_file() {
        return Err(wrong("is no file".to_owned(), "paths of `--cc` are relative to the present directory"));
    }
    // SAFETY: this runs the library's initialisers, which the user who names a library accepts.
    let library = unsafe { Library::new(path) }.map_err(|error| {
        let help = "compile it for this machine, as with `cc -O2 -shared -fPIC -o libmine.so mine.c`";
        wrong(format!("cannot be loaded: {}", said(&error)), help)
    })?;
    // Controllers hold pointers into it for as long as the process runs.
    let library = ManuallyDrop::new(library);
    // SAFETY: the symbol is taken for a pointer only, and nothing is read yet.
    let symbol = unsafe { library.get::<*const FairrateAlgorithm>(SYMBOL) };
    let table = *symbol.map_err(|_| {
        let help = "define `const FairrateAlgorithm fairrate_algorithm = {...};`, as `include/fairrate.h` has it";
        wrong(format!("has no symbol `{SYMBOL}`"), help)
    })?;
    // SAFETY: every version of the table begins with its number, and the library stays loaded.
    let abi = unsafe { table.cast::<u32>().read() };
    if abi != FAIRRATE_ABI {
        let message = format!("is built for version {abi} of the interface, and this fairrate has {FAIRRATE_ABI}");
        return Err(wrong(message, "compile it again with this fairrate's `include/fairrate.h`"));
    }
    // SAFETY: the table is of the version that this type describes, is never changed, and stays where it is.
    let table: &'static FairrateAlgorithm = unsafe { &*table };
    // SAFETY: the same holds for its strings and parameters.
    let read = unsafe { read(table) };
    let (info, spec) = read.map_err(|what| wrong(what, "compare its table with `include/fairrate.h`"))?;
    Ok(CustomAlgorithm::new(info, spec))
}

/// Returns the message of the system's loader, without the path.
fn said(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let text = source.unwrap_or_else(|| error.to_string());
    text.rsplit_once(": ").map_or(text.clone(), |(_, last)| last.to_owned())
}

/// Reads a table of this version.
///
/// # Safety
/// Its strings must end with a zero, the number of its parameters must be right, and all of it must stay for ever.
unsafe fn read(table: &'static FairrateAlgorithm) -> Result<(AlgorithmInfo, PluginSpec), String> {
    // SAFETY: guaranteed by the caller.
    let string = |pointer, what| unsafe { text(pointer, what) };
    let info = AlgorithmInfo {
        name: string(table.name, "name")?,
        title: string(table.title, "title")?,
        paper: string(table.paper, "paper")?,
        idea: string(table.idea, "idea")?,
    };
    let required =
        [("make", table.make.is_none()), ("on_start", table.on_start.is_none()), ("on_ack", table.on_ack.is_none())];
    if let Some((function, _)) = required.iter().find(|(_, is_missing)| *is_missing) {
        return Err(format!("has no `{function}`"));
    }
    let given: &[FairrateParameter] = match (table.n_parameters, table.parameters.is_null()) {
        (0, _) => &[],
        (n, true) => return Err(format!("says that it has {n} parameters, and has none")),
        // SAFETY: guaranteed by the caller.
        (n, false) => unsafe { std::slice::from_raw_parts(table.parameters, n) },
    };
    let parameter = |given: &FairrateParameter| {
        let name = string(given.name, "name of a parameter")?;
        let doc = string(given.doc, "doc of a parameter")?;
        if !(given.least..=given.most).contains(&given.value) {
            return Err(format!("has a parameter `{name}` whose default is outside of its range"));
        }
        Ok(Parameter { name, doc, range: (given.least, given.most), value: given.value })
    };
    let parameters = given.iter().map(parameter).collect::<Result<_, _>>()?;
    Ok((info, PluginSpec { table, parameters }))
}

/// Reads a string of a table; `what` names it in the error.
///
/// # Safety
/// It must be null, or end with a zero and stay for ever.
unsafe fn text(pointer: *const c_char, what: &str) -> Result<&'static str, String> {
    if pointer.is_null() {
        return Err(format!("has no {what}"));
    }
    // SAFETY: guaranteed by the caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| format!("has a {what} that is no UTF-8"))
}

/// A parameter with its present value.
#[derive(Clone, Debug)]
struct Parameter {
    name: &'static str,
    doc: &'static str,
    range: (f64, f64),
    value: f64,
}

/// The configuration of a library's algorithm.
#[derive(Clone, Debug)]
struct PluginSpec {
    table: &'static FairrateAlgorithm,
    parameters: Vec<Parameter>,
}

impl Parameters for PluginSpec {
    fn params(&self) -> Vec<Param> {
        let param = |p: &Parameter| Param {
            name: p.name,
            kind: ParamKind::Float,
            toml: p.value.to_toml(),
            doc: p.doc,
            tune: None,
        };
        self.parameters.iter().map(param).collect()
    }
    fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
        let parameter = self.parameters.iter_mut().find(|p| p.name == name).ok_or(SetParamError::UnknownName)?;
        parameter.value = f64::from_raw(value, Some(parameter.range))?;
        Ok(())
    }
}

impl AlgorithmSpec for PluginSpec {
    type Controller = PluginController;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let table = self.table;
        let has = |need| table.needs & need != 0;
        Needs {
            network: NetworkNeeds {
                telemetry: has(FAIRRATE_NEEDS_TELEMETRY).then_some(Telemetry::EXACT),
                ecn: has(FAIRRATE_NEEDS_ECN),
                ..NetworkNeeds::NOTHING
            },
            wire: WireNeeds {
                data_overhead: Bytes::new(table.data_overhead_bytes),
                ack_overhead: Bytes::new(table.ack_overhead_bytes),
                ..WireNeeds::NOTHING
            },
            feedback: FeedbackNeeds {
                first_ack_only_stored: has(FAIRRATE_FIRST_ACK_ONLY_STORED),
                cnp_interval: (table.cnp_interval_ps != 0).then_some(Time::from_ps(table.cnp_interval_ps)),
                ..FeedbackNeeds::NOTHING
            },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> PluginController {
        let values: Vec<f64> = self.parameters.iter().map(|p| p.value).collect();
        PluginController::new(self.table, &flow_of(flow), &values)
    }
}
