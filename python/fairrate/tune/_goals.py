"""Objectives and constraints of a study."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fairrate import _native
from fairrate._errors import TuneError
from fairrate._result import Result
from fairrate._metrics import Metric, metric_name, value_of
from fairrate.tune._space import quantity

STATISTICS = ("mean", "p50", "p95", "p99", "p99.9", "max")
SIZES = ("all", "short", "10-100KB", "medium", "long")

NATURES: dict[str, tuple[str, str]] = {
    **{f"slowdown-{statistic}:{size}": ("min", "") for statistic in STATISTICS for size in SIZES},
    **{f"unfinished-share:{size}": ("min", "%") for size in SIZES},
    "completion:all": ("min", "µs"),
    **{f"query-{statistic}:all": ("min", "µs") for statistic in STATISTICS},
    "goodput": ("max", "Gb/s"),
    "utilisation": ("max", "%"),
    "queue-mean": ("min", "KB"),
    "queue-p99": ("min", "KB"),
    "queue-peak": ("min", "KB"),
    "jain": ("max", ""),
    "collective-time": ("min", "µs"),
    "iteration-time": ("min", "µs"),
    "exposed-time": ("min", "µs"),
    "busbw": ("max", "GB/s"),
    "convergence-p50": ("min", "base RTTs"),
    "convergence-p99": ("min", "base RTTs"),
    "recovery": ("min", "µs"),
    "settled": ("max", "%"),
    "pfc-pauses": ("min", "frames"),
    "drops": ("min", "packets"),
    "trims": ("min", "packets"),
    "returns": ("min", "packets"),
    "ecn-marks": ("min", "packets"),
    "sent-again": ("min", "KB"),
    "control-traffic": ("min", "%"),
    "flows-done": ("max", "flows"),
    "unfinished": ("min", "flows"),
    "deadlines-missed": ("min", "%"),
}
"""The better direction and the unit of every metric, by its name."""

NATURES_OF_BLOCKS: dict[str, tuple[str, str]] = {
    "goodput": ("max", "Gb/s"),
    "share": ("max", "%"),
    "fair-share": ("max", "%"),
    "rest": ("max", "%"),
    "level-come": ("max", "%"),
    "settle-come": ("min", "µs"),
    "level-go": ("max", "%"),
    "settle-go": ("min", "µs"),
    "jain": ("max", ""),
    "drops": ("min", "packets"),
    "marked": ("min", "packets"),
    "sent-again": ("min", "KB"),
}
"""The same of what a traffic block gets beside others, as ``share:old``."""

SCALES = {"Gb/s": ("rate", 1e9), "KB": ("size", 1e3), "µs": ("time", 1e3)}
"""Kind and size of the units of metrics in which a bound may have another unit."""


def nature(metric: str) -> tuple[str, str] | None:
    """Returns the better direction and the unit of a metric, or ``None`` if none is called so.

    Metrics of a traffic block, as ``slowdown-p99:incast``, are like those of all flows, whatever name the block may have.
    """
    name, colon, _ = metric.partition(":")
    of_block = NATURES_OF_BLOCKS.get(name) if colon else None
    return NATURES.get(metric) or of_block or NATURES.get(re.sub(r":[\w-]+$", ":all", metric))


def full_name(metric: str) -> str:
    """Returns a metric's name with its size, as ``slowdown-p99:all`` for ``slowdown-p99``."""
    return f"{metric}:all" if f"{metric}:all" in NATURES else metric


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name, NATURES, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"there are {', '.join(n for n in NATURES if ':' not in n)}, slowdown-{'|'.join(STATISTICS)}[:{'|'.join(SIZES)}]."


@dataclass(frozen=True)
class Objective:
    """A metric to make small or large: its mean over the seeds.

    Attributes:
        metric: Name of a metric, or a function of a result.
        direction: ``min`` or ``max``.
    """

    metric: Metric
    direction: str

    @classmethod
    def of(cls, given: Objective | Metric) -> Objective:
        """Reads ``slowdown-p99:short``, ``max:goodput_bps`` or a function, which is made small.

        A name without ``min:`` or ``max:`` has the direction of the metric's nature.

        Raises:
            TuneError: If there is no such metric.
        """
        if isinstance(given, Objective):
            if given.direction not in ("min", "max"):
                raise _bad(f"`{given.direction}` is no direction", "write `min` or `max`")
            return given
        if not isinstance(given, str):
            return cls(given, "min")
        direction, colon, name = given.partition(":")
        if colon and direction in ("min", "max"):
            return cls(full_name(name.strip()), direction)
        name = full_name(given.strip())
        known = nature(name)
        if known is None:
            more = "For a number of summary.json write min:NAME or max:NAME"
            raise _bad(f"no metric is called `{given}`", f"{_suggestion(given)} {more}")
        return cls(name, known[0])

    @property
    def name(self) -> str:
        """The metric's name."""
        return metric_name(self.metric)

    def loss(self, value: float) -> float:
        """Returns a number that is the smaller, the better the value."""
        return value if self.direction == "min" else -value

    def __str__(self) -> str:
        return f"{self.direction}:{self.name}"


@dataclass(frozen=True)
class Constraint:
    """A bound that a metric has to keep under every seed.

    Attributes:
        metric: Name of a metric, or a function of a result.
        relation: ``<=``, ``>=`` or ``=``.
        bound: In the metric's unit, which is that of figures.
    """

    metric: Metric
    relation: str
    bound: float

    @classmethod
    def of(cls, given: Constraint | str) -> Constraint:
        """Reads ``pfc-pauses=0``, ``goodput>=50Gbps`` or ``queue-p99<=200``.

        Raises:
            TuneError: If it has another form, there is no such metric, or the bound is no finite number.
        """
        if isinstance(given, Constraint):
            if given.relation not in ("<=", ">=", "="):
                raise _bad(f"`{given.relation}` is no relation", "write `<=`, `>=` or `=`")
            if not math.isfinite(given.bound):
                raise _bad(f"`{given.bound:g}` is no bound of `{given.name}`", "give a finite number")
            return given
        found = re.fullmatch(r"\s*([^<>=\s]+)\s*(<=|>=|==?)\s*([^<>=]+?)\s*", given)
        if found is None:
            raise _bad(f"`{given}` is no constraint", "write METRIC=NUMBER, METRIC<=NUMBER or METRIC>=NUMBER, as pfc-pauses=0")
        name, relation, bound = full_name(found[1]), found[2].replace("==", "="), found[3]
        # The numbers of summary.json have underscores where metrics have hyphens.
        if nature(name) is None and "_" not in name:
            raise _bad(f"no metric is called `{name}`", _suggestion(name))
        return cls(name, relation, _bound(bound, name))

    @property
    def name(self) -> str:
        """The metric's name."""
        return metric_name(self.metric)

    def excess(self, value: float | None) -> float:
        """Returns how far a value is off the bound, on a scale that constraints share; at most 0 if it keeps it.

        A missing value breaks the constraint.
        """
        if value is None or math.isnan(value):
            return 1.0
        off = {"<=": value - self.bound, ">=": self.bound - value, "=": abs(value - self.bound)}[self.relation]
        relative = off / (abs(self.bound) or 1.0)
        return math.log1p(relative) if relative > 0 else relative

    def __str__(self) -> str:
        return f"{self.name}{self.relation}{self.bound:g}"


def _bound(text: str, name: str) -> float:
    unit = (nature(name) or ("", ""))[1]
    try:
        bound = float(text.removesuffix("%").strip() if unit == "%" else text)
    except ValueError:
        bound = math.nan
    if math.isfinite(bound):
        return bound
    read = quantity(text)
    if read is None or unit not in SCALES or read.kind != SCALES[unit][0]:
        raise _bad(f"`{text}` is no bound of `{name}`", f"write a number{f' of {unit}' if unit else ''}")
    return read.value / SCALES[unit][1]


UNFINISHED = Constraint("unfinished", "=", 0.0)
"""The constraint that every study has, unless it is told otherwise."""


def constraints_of(given: Iterable[Constraint | str], allow_unfinished: bool) -> list[Constraint]:
    """Reads constraints, and adds :data:`UNFINISHED` unless there is a bound on unfinished flows or they are allowed."""
    found = [Constraint.of(one) for one in given]
    bounded = any(c.name == "unfinished" or c.name.startswith("unfinished-share") for c in found)
    return found if bounded or allow_unfinished else [*found, UNFINISHED]


@dataclass(frozen=True)
class Goals:
    """The objectives and constraints of a study."""

    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]

    def check(self, blocks: list[str]) -> None:
        """Checks the flows that metrics are of, in a scenario whose traffic blocks have the names ``blocks``.

        Raises:
            TuneError: If a metric is of flows that are neither a size nor a block, or two functions have the same name.
        """
        known: dict[str, Metric] = {}
        both: tuple[Objective | Constraint, ...] = (*self.objectives, *self.constraints)
        for one in both:
            if known.setdefault(one.name, one.metric) != one.metric:
                raise _bad(f"two metrics are called `{one.name}`", "define functions by `def`, each under a name of its own")
        for name in self.metrics:
            remedy = _native.unknown_metric(name, blocks) if nature(name) else None
            if remedy is not None:
                raise _bad(f"no metric is called `{name}`", remedy)

    @property
    def metrics(self) -> dict[str, Metric]:
        """Every metric once, by its name."""
        found = {one.name: one.metric for one in self.objectives}
        return found | {one.name: one.metric for one in self.constraints}

    def measure(self, result: Result) -> tuple[dict[str, float | None], list[str]]:
        """Returns every metric of a result, and the names of those that are only lower bounds.

        Raises:
            TuneError: If the result has no such metric.
        """
        try:
            values = {name: value_of(result, metric) for name, metric in self.metrics.items()}
        except KeyError as error:
            raise _bad(str(error.args[0]), "the table of metrics is in docs/results.md") from None
        return values, sorted(result.lower_bounds & set(values))

    def excesses(self, values: dict[str, float | None], bounds: Iterable[str]) -> dict[str, float]:
        """Returns how far the values of a run are off every constraint, by the constraint's text.

        An objective that is missing, or only a lower bound, breaks a constraint of its own: a flow that never finishes may be
        slower by any factor.
        """
        found = {str(c): c.excess(values[c.name]) for c in self.constraints}
        lower = set(bounds)
        for objective in self.objectives:
            if values[objective.name] is None:
                found[f"{objective.name} has a value"] = 1.0
            elif objective.name in lower:
                found[f"{objective.name} is no mere lower bound"] = 1.0
        return found


def _bad(message: str, suggestion: str) -> TuneError:
    return TuneError(message, code="tune::bad_goal", suggestion=suggestion)
