//! Algorithms in Python: a class each of whose objects controls a flow. It enters the simulator by the same interface
//! as any algorithm from outside the registry.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use fairrate_control::{
    ALGORITHMS, Ack, AlgorithmInfo, AlgorithmSpec, Allowance, Controller, CustomAlgorithm, FeedbackNeeds, FlowContext,
    HeaderWords, IntHop, Loss, Needs, NetworkNeeds, Notice, Param, Parameters, PortContext, PortScope, RawValue,
    Registry, SetParamError, Telemetry, Trimmed, WireNeeds,
};
use fairrate_units::{Bytes, Rate, Time};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::parameters::{Value, Values};
use crate::port;
use crate::scenario::algorithms;
use crate::views;

/// The first exception of an algorithm's code. After it, none of that code is called any more.
#[derive(Clone, Default)]
pub struct Failed(Arc<Mutex<Option<PyErr>>>);

impl Failed {
    /// Stores `error` if it is the first.
    pub fn note(&self, error: PyErr) {
        self.slot().get_or_insert(error);
    }
    /// Returns `true` if there was an exception.
    pub fn is_noted(&self) -> bool {
        self.slot().is_some()
    }
    /// Takes the first exception.
    pub fn take(&self) -> Option<PyErr> {
        self.slot().take()
    }
    fn slot(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.0.lock().expect("nothing panics with this lock held")
    }
}

/// An algorithm in Python, and the exception that its code raised.
#[pyclass(frozen, module = "fairrate._native")]
pub struct PlugIn {
    algorithm: CustomAlgorithm,
    failed: Failed,
}

impl PlugIn {
    /// Returns the algorithm in the simulator's form.
    pub fn algorithm(&self) -> CustomAlgorithm {
        self.algorithm.clone()
    }
    /// Returns all algorithms that a scenario may name, with this one.
    pub fn beside_others(&self) -> PyResult<Registry> {
        let all = algorithms().with_algorithm(self.algorithm());
        all.map_err(|e| PyValueError::new_err(e.to_string()))
    }
    /// Returns the store of its exceptions.
    pub fn failed(&self) -> Failed {
        self.failed.clone()
    }
}

/// The classes of an algorithm.
#[derive(Clone)]
struct Class {
    needs: Needs,
    sender: Arc<Made>,
    /// The class of its ports' agents, if it has one.
    port: Option<Arc<Made>>,
    values: Values,
    failed: Failed,
}

/// A class, and the names of its arguments that are parameters.
pub struct Made {
    class: Py<PyAny>,
    arguments: HashSet<String>,
}

impl Made {
    /// Returns a new object of the class.
    pub fn object<'py>(&self, py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyAny>> {
        values.call(self.class.bind(py), &self.arguments)
    }
}

impl Parameters for Class {
    fn params(&self) -> Vec<Param> {
        self.values.params()
    }
    fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError> {
        self.values.set(name, value)
    }
}

impl AlgorithmSpec for Class {
    type Controller = Sender;
    type Port = port::Agent;
    fn needs(&self) -> Needs {
        self.needs
    }
    fn build(&self, flow: &FlowContext) -> Sender {
        Sender::new(&self.sender, &self.values, flow, &self.failed)
    }
    fn build_port(&self, context: &PortContext) -> Option<port::Agent> {
        let class = self.port.as_ref()?;
        let made = Python::attach(|py| port::Agent::new(&class.object(py, &self.values)?, context, &self.failed));
        made.map_err(|error| self.failed.note(error)).ok()
    }
}

#[pymethods]
impl PlugIn {
    /// Creates an algorithm from a class, its name in results, its parameters with their defaults, and the names of
    /// those that are arguments of the class and of its ports' class.
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        class: Py<PyAny>,
        parameters: Vec<(String, Value)>,
        of_sender: HashSet<String>,
        of_port: HashSet<String>,
    ) -> PyResult<Self> {
        if ALGORITHMS.iter().any(|a| a.name == name) {
            return Err(PyValueError::new_err(format!("fairrate has an algorithm `{name}`; give yours another name")));
        }
        let bound = class.bind(py);
        let (needs, port) = (needs(bound)?, bound.getattr("port")?);
        let failed = Failed::default();
        let made = |class, arguments| Arc::new(Made { class, arguments });
        let port = (!port.is_none()).then(|| made(port.unbind(), of_port));
        let (sender, values) = (made(class, of_sender), Values::new(parameters));
        let spec = Class { needs, sender, port, values, failed: failed.clone() };
        Ok(Self { algorithm: CustomAlgorithm::new(*info(name), spec), failed })
    }
}

/// Returns the listing of a name, made once in a process, as listings live as long as the process.
fn info(name: &str) -> &'static AlgorithmInfo {
    static KNOWN: OnceLock<Mutex<HashMap<String, &'static AlgorithmInfo>>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let mut known = known.lock().expect("nothing panics with this lock held");
    known.entry(name.to_owned()).or_insert_with(|| {
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        Box::leak(Box::new(AlgorithmInfo { name, title: name, paper: "none", idea: "an algorithm in Python" }))
    })
}

/// Reads the needs of the class: `fairrate.Needs`.
fn needs(class: &Bound<'_, PyAny>) -> PyResult<Needs> {
    let given = class.getattr("needs")?;
    let bytes = |name: &str| given.getattr(name)?.extract().map(Bytes::new);
    let flag = |name: &str| given.getattr(name)?.extract::<bool>();
    let interval: Option<f64> = given.getattr("cnp_interval_ns")?.extract()?;
    let control: Option<u64> = given.getattr("control_bytes")?.extract()?;
    if control == Some(0) {
        return Err(PyValueError::new_err("`control_bytes` is 0; give the size of a packet, or leave it out for none"));
    }
    let ports: String = given.getattr("ports")?.extract()?;
    Ok(Needs {
        network: NetworkNeeds {
            telemetry: flag("telemetry")?.then_some(Telemetry::EXACT),
            ecn: flag("ecn")?,
            ports: match ports.as_str() {
                "none" => PortScope::None,
                "switches" => PortScope::Switches,
                "all" => PortScope::All,
                other => return Err(PyValueError::new_err(format!("`ports` is none, switches or all, not {other}"))),
            },
            ..NetworkNeeds::NOTHING
        },
        wire: WireNeeds {
            data_overhead: bytes("data_overhead_bytes")?,
            ack_overhead: bytes("ack_overhead_bytes")?,
            control: control.map(Bytes::new),
            header: HeaderWords {
                fixed: given.getattr("header_words")?.extract()?,
                per_hop: given.getattr("header_words_per_hop")?.extract()?,
            },
            ..WireNeeds::NOTHING
        },
        feedback: FeedbackNeeds {
            cnp_interval: interval.map(|ns| time("cnp_interval_ns", ns)).transpose()?,
            first_ack_only_stored: flag("first_ack_only_stored")?,
            ..FeedbackNeeds::NOTHING
        },
        ..Needs::NOTHING
    })
}

/// Converts a time in nanoseconds to a [`Time`] in picoseconds; `what` names it in errors.
pub fn time(what: &str, ns: f64) -> PyResult<Time> {
    if ns.is_nan() || ns < 0.0 {
        return Err(PyValueError::new_err(format!("`{what}` is {ns}, and no time")));
    }
    Ok(Time::from_ps((ns * 1e3) as u64))
}

/// Permission of a flow: what it may do from now until the next decision.
///
/// Fractions of bytes and of bit/s are cut.
///
/// Args:
///     cwnd_bytes: Most unacknowledged payload, in bytes; ``None``: no window.
///     rate_bps: Pacing rate, in bits on the wire per second; ``None``: that of the link; 0: nothing may be sent.
///     timer_ns: When to call ``on_timer``, in nanoseconds since the run began; ``None``: never.
///
/// Raises:
///     ValueError: If a number is negative or NaN.
#[pyclass(frozen, get_all, module = "fairrate._native", name = "Allowance")]
pub struct PyAllowance {
    /// Most unacknowledged payload, in bytes, at least 1; ``None``: no window.
    cwnd_bytes: Option<f64>,
    /// Pacing rate, in bits on the wire per second, at most that of the link; ``None``: that of the link; 0:
    /// nothing may be sent.
    rate_bps: Option<f64>,
    /// Time at which to call ``on_timer``, in nanoseconds since the run began, not from now; ``None``: never.
    timer_ns: Option<f64>,
}

#[pymethods]
impl PyAllowance {
    #[new]
    #[pyo3(signature = (cwnd_bytes=None, rate_bps=None, timer_ns=None))]
    fn new(cwnd_bytes: Option<f64>, rate_bps: Option<f64>, timer_ns: Option<f64>) -> PyResult<Self> {
        for (name, value) in [("cwnd_bytes", cwnd_bytes), ("rate_bps", rate_bps), ("timer_ns", timer_ns)] {
            if value.is_some_and(|x| x.is_nan() || x < 0.0) {
                return Err(PyValueError::new_err(format!("`{name}` is {}", value.unwrap_or_default())));
            }
        }
        Ok(Self { cwnd_bytes, rate_bps, timer_ns })
    }

    fn __repr__(&self) -> String {
        let shown = |x: Option<f64>| x.map_or_else(|| "None".to_owned(), |x| x.to_string());
        let (cwnd, rate, timer) = (shown(self.cwnd_bytes), shown(self.rate_bps), shown(self.timer_ns));
        format!("Allowance(cwnd_bytes={cwnd}, rate_bps={rate}, timer_ns={timer})")
    }
}

impl PyAllowance {
    fn of(&self, line_rate: Rate) -> Allowance {
        Allowance {
            // Fractions are cut, as the algorithms of the registry cut them.
            cwnd: self.cwnd_bytes.map_or(Bytes::MAX, |bytes| Bytes::new((bytes as u64).max(1))),
            rate: self.rate_bps.map_or(line_rate, |bps| Rate::from_bps_f64(bps).min(line_rate)),
            timer: self.timer_ns.map_or(Time::MAX, |ns| Time::from_ps((ns * 1e3) as u64)),
        }
    }
}

/// The methods of an object; methods that its class does not have cost nothing.
struct Methods {
    on_ack: Py<PyAny>,
    on_loss: Option<Py<PyAny>>,
    on_cnp: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    on_sent: Option<Py<PyAny>>,
    on_idle: Option<Py<PyAny>>,
    on_notice: Option<Py<PyAny>>,
    on_control: Option<Py<PyAny>>,
    stamp: Option<Py<PyAny>>,
    control_packet: Option<Py<PyAny>>,
}

/// Returns method `name` of `object` if its class, not `base`, defines it.
pub fn own_method(object: &Bound<'_, PyAny>, base: &str, name: &str) -> PyResult<Option<Py<PyAny>>> {
    let base = object.py().import("fairrate._controller")?.getattr(base)?;
    let is_own = base
        .getattr_opt(name)?
        .is_none_or(|theirs| object.get_type().getattr(name).is_ok_and(|ours| !ours.is(&theirs)));
    if is_own { Ok(object.getattr_opt(name)?.map(Bound::unbind)) } else { Ok(None) }
}

impl Methods {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let own = |name: &str| own_method(object, "Controller", name);
        Ok(Self {
            on_ack: own("on_ack")?.ok_or_else(|| missing(object, "on_ack"))?,
            on_loss: own("on_loss")?,
            on_cnp: own("on_cnp")?,
            on_timer: own("on_timer")?,
            on_sent: own("on_sent")?,
            on_idle: own("on_idle")?,
            on_notice: own("on_notice")?,
            on_control: own("on_control")?,
            stamp: own("stamp")?,
            control_packet: own("control_packet")?,
        })
    }
}

fn missing(object: &Bound<'_, PyAny>, method: &str) -> PyErr {
    let class = object.get_type().qualname().map_or_else(|_| "the class".to_owned(), |name| name.to_string());
    PyNotImplementedError::new_err(format!("{class} has no `{method}`"))
}

/// The control of a flow by an object of Python.
struct Sender {
    flow: FlowContext,
    object: Option<(Py<PyAny>, Methods)>,
    in_force: Allowance,
    failed: Failed,
}

impl Sender {
    fn new(class: &Made, values: &Values, flow: &FlowContext, failed: &Failed) -> Self {
        let made = Python::attach(|py| {
            let object = class.object(py, values)?;
            let methods = Methods::of(&object)?;
            Ok((object.unbind(), methods))
        });
        let object = made.map_err(|error| failed.note(error)).ok();
        let in_force = Allowance { cwnd: Bytes::MAX, rate: flow.line_rate, timer: Time::MAX };
        Self { flow: *flow, object, in_force, failed: failed.clone() }
    }

    /// Calls Python, unless its code has failed before; the returned allowance is in force from now on.
    fn ask(&mut self, call: impl FnOnce(Python<'_>, &Py<PyAny>, &Methods) -> PyResult<Option<Py<PyAny>>>) -> Allowance {
        if let Some((object, methods)) = self.object.as_ref().filter(|_| !self.failed.is_noted()) {
            let line_rate = self.flow.line_rate;
            let asked = Python::attach(|py| {
                let Some(answer) = call(py, object, methods)? else { return Ok(None) };
                let answer = answer.bind(py);
                if answer.is_none() {
                    return Ok(None);
                }
                Ok(Some(answer.cast::<PyAllowance>()?.get().of(line_rate)))
            });
            match asked {
                Ok(Some(allowance)) => self.in_force = allowance,
                Ok(None) => {}
                Err(error) => self.failed.note(error),
            }
        }
        self.in_force
    }
}

fn call_at(py: Python<'_>, method: Option<&Py<PyAny>>, now: Time) -> PyResult<Option<Py<PyAny>>> {
    method.map(|method| method.call1(py, (now.as_ns_f64(),))).transpose()
}

impl Sender {
    /// Calls a method that may be missing and may return no decision; without a decision nothing changes.
    fn ask_if<A: for<'py> pyo3::call::PyCallArgs<'py>>(
        &mut self,
        method: impl Fn(&Methods) -> &Option<Py<PyAny>>,
        arguments: A,
    ) -> Option<Allowance> {
        method(&self.object.as_ref()?.1).as_ref()?;
        Some(self.ask(|py, _, methods| method(methods).as_ref().map(|call| call.call1(py, arguments)).transpose()))
    }

    /// Lets a method write a header, which it gets as its last argument, after the time and perhaps the bytes that are
    /// not sent yet (`None` for an endless flow). Returns its answer.
    fn write(
        &self,
        method: impl Fn(&Methods) -> &Option<Py<PyAny>>,
        now: Time,
        unsent: Option<u64>,
        header: &mut [f64],
    ) -> Option<bool> {
        let call = method(&self.object.as_ref()?.1).as_ref().filter(|_| !self.failed.is_noted())?;
        let written = Python::attach(|py| {
            let (now, words) = (now.as_ns_f64(), PyList::new(py, header.iter())?);
            let answer = match unsent {
                None => call.call1(py, (now, &words)),
                Some(bytes) => call.call1(py, (now, (bytes != u64::MAX).then_some(bytes), &words)),
            }?;
            let answer = answer.bind(py);
            let says_yes = !answer.is_none() && answer.extract::<bool>()?;
            views::copy_words(&words, header)?;
            Ok(says_yes)
        });
        written.map_err(|error| self.failed.note(error)).ok()
    }
}

// All methods are listed, so that a new one is not forgotten.
#[deny(clippy::missing_trait_methods)]
impl Controller for Sender {
    fn on_start(&mut self, _: Time) -> Allowance {
        let flow = views::Flow::of(&self.flow);
        self.ask(|py, object, _| object.call_method1(py, "on_start", (flow,)).map(Some))
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let seen = views::Ack::of(ack);
        self.ask(|py, _, methods| methods.on_ack.call1(py, (seen,)).map(Some))
    }
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance {
        let kind = if loss == Loss::Timeout { "timeout" } else { "gap" };
        self.ask(|py, _, methods| {
            methods.on_loss.as_ref().map(|method| method.call1(py, (now.as_ns_f64(), kind))).transpose()
        })
    }
    fn on_trimmed(&mut self, trimmed: &Trimmed) -> Allowance {
        self.on_loss(trimmed.now, Loss::Gap)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.ask(|py, _, methods| call_at(py, methods.on_cnp.as_ref(), now))
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        // The timer fires once.
        self.in_force.timer = Time::MAX;
        self.ask(|py, _, methods| call_at(py, methods.on_timer.as_ref(), now))
    }
    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<Allowance> {
        self.ask_if(|methods| &methods.on_sent, (now.as_ns_f64(), bytes.as_u64()))
    }
    fn on_idle(&mut self, now: Time, timeouts: u32) -> Option<Allowance> {
        self.ask_if(|methods| &methods.on_idle, (now.as_ns_f64(), timeouts))
    }
    fn on_notice(&mut self, now: Time, notice: &Notice) -> Option<Allowance> {
        self.ask_if(|methods| &methods.on_notice, (now.as_ns_f64(), notice.port, notice.values.to_vec()))
    }
    fn on_control(&mut self, now: Time, header: &[f64]) -> Option<Allowance> {
        self.ask_if(|methods| &methods.on_control, (now.as_ns_f64(), header.to_vec()))
    }
    /// Does nothing: algorithms in Python go by what the last acknowledgment left in flight.
    fn on_outstanding(&mut self, _: u64, _: u64) {}
    fn stamp(&mut self, now: Time, header: &mut [f64]) {
        self.write(|methods| &methods.stamp, now, None, header);
    }
    fn control_packet(&mut self, now: Time, unsent: u64, header: &mut [f64]) -> bool {
        self.write(|methods| &methods.control_packet, now, Some(unsent), header).unwrap_or(false)
    }
    /// Returns [`Time::MAX`]: Python has no access to ns-3's order of simultaneous events.
    fn timer_lead(&self) -> Time {
        Time::MAX
    }
    fn last_telemetry(&self) -> &[IntHop] {
        &[]
    }
}
