"""A laboratory for datacenter congestion control.

    >>> import fairrate
    >>> scenario = fairrate.Scenario.load("incast.toml")  # `fairrate new incast.toml` writes one
    >>> result = fairrate.run(scenario, cc="hpcc")
    >>> result.flows.to_polars()

Times are nanoseconds (``_ns``), rates bits per second (``_bps``) and sizes bytes (``_bytes``) wherever a name ends so. Metrics have
the units of reports (Gb/s, KB, %): :attr:`Result.units` and :attr:`Sweep.units` name them. In tables of results, times are whole
numbers.
"""

from fairrate import plot, stats, tune
from fairrate._coexist import Coexistence, coexist
from fairrate._controller import Configured, Controller, Needs, PortAgent
from fairrate._errors import Error, ResultsError, RunError, ScenarioError, SweepError, TuneError
from fairrate._explain import explain
from fairrate._native import SOURCES as __sources__
from fairrate._native import VERSION as __version__
from fairrate._native import Ack, Allowance, Flow, IntHop, Packet, Port
from fairrate._picture import picture, points
from fairrate._report import report
from fairrate._result import Result, load
from fairrate._run import run
from fairrate._scenario import Scenario, json_schema
from fairrate._sweep import Sweep, SweepRun, sweep
from fairrate._table import Table

__all__ = [
    "Ack",
    "Allowance",
    "Coexistence",
    "Configured",
    "Controller",
    "Error",
    "Flow",
    "IntHop",
    "Needs",
    "Packet",
    "Port",
    "PortAgent",
    "Result",
    "ResultsError",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepError",
    "SweepRun",
    "Table",
    "TuneError",
    "__sources__",
    "__version__",
    "coexist",
    "explain",
    "json_schema",
    "load",
    "picture",
    "plot",
    "points",
    "report",
    "run",
    "stats",
    "sweep",
    "tune",
]
