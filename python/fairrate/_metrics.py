"""Metrics of results: numbers by name, and functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from fairrate._result import Result

Metric = str | Callable[[Result], float | None]
"""A name of :attr:`Result.metrics` or of ``summary``, or a function of a result."""


def metric_name(metric: Metric) -> str:
    """What a metric is called."""
    return metric if isinstance(metric, str) else getattr(metric, "__name__", "metric")


def check_names(metrics: Iterable[Metric], columns: set[str]) -> None:
    """Holds the names of functions to be different from each other and from those of ``columns``.

    Raises:
        ValueError: If they are not.
    """
    known: dict[str, Metric] = {}
    for metric in metrics:
        name = metric_name(metric)
        if (callable(metric) and name in columns) or known.setdefault(name, metric) != metric:
            raise ValueError(f"two columns are called {name!r}; define the function by `def`, under another name")


def value_of(result: Result, metric: Metric) -> float | None:
    """A metric of a result; ``None``: it has no such number."""
    if callable(metric):
        return metric(result)
    known = result.metrics
    for name in (metric, f"{metric}:all"):
        if name in known:
            return known[name]
    value = result.summary.get(metric)
    if isinstance(value, int | float):
        return float(value)
    near = difflib.get_close_matches(metric, known, n=1)
    hint = f"did you mean {near[0]!r}? There" if near else "there"
    raise KeyError(f"no metric is called {metric!r}; {hint} are {', '.join(known)}, and the numbers of summary.json")
