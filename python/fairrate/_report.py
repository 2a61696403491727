"""Reports of runs that are there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairrate import _native
from fairrate._errors import ResultsError, ScenarioError
from fairrate._result import Result
from fairrate._sweep import Place, Sweep

_Path = str | os.PathLike[str]
_Results = Result | Iterable[Result | _Path]


def report(
    results: Sweep | Result | _Path | Iterable[Result | _Path] | Mapping[str, _Results],
    out: _Path | None = None,
    *,
    metrics: Sequence[str] = (),
) -> Path:
    """Writes the HTML report of runs that are done, as ``fairrate compare`` does; nothing is run.

    ``out`` becomes a directory of ``fairrate compare``: ``report.html`` opens without a network, ``figures`` has every figure as
    SVG and its points as CSV, ``compare.json`` the numbers, and each run has a directory of its own. Results that are elsewhere are
    copied there, those of a sweep without a cache too. ``fairrate report OUT`` and ``fairrate.report(out)`` draw it anew.

    Args:
        results: A sweep; results or their directories, which are told apart by :attr:`Result.label` and seed; a dict of label and
            results; or one results directory, of a run or of a comparison.
        out: Where the report goes. A directory that has a report is written over. Without it a results directory gets its report
            anew, in place.
        metrics: Names of :attr:`Result.metrics` to draw over the grid; the usual ones by default.

    Returns:
        The path of ``report.html``.

    Raises:
        ResultsError: If there are no results, they are damaged, or ``out`` has something else in it.
        ScenarioError: If a metric is not known, or two runs have the same label and seed.
        OSError: If a file cannot be written.
    """
    if isinstance(metrics, str):
        raise ScenarioError(f"`metrics` is a list, not {metrics!r}", suggestion=f"write metrics=[{metrics!r}]")
    if isinstance(results, str | os.PathLike):
        if out is None or _is_same(results, out):
            _native.rewrite_report(results, list(metrics))
            return Path(results) / "report.html"
        runs = _runs_below(Path(results))
    else:
        runs = [_of_run(*each) for each in _labelled(results)]
    if out is None:
        raise ScenarioError("there is no directory for the report", suggestion='give one, as report(sweep, "report")')
    if not runs:
        raise ResultsError("there are no results to report on", suggestion="give a sweep or results with a run at least")
    _check_labels(runs)
    refused = list(results.refused.items()) if isinstance(results, Sweep) else []
    heat_maps = results.heat_maps if isinstance(results, Sweep) else None
    _native.write_report(out, _scenario_name(runs[0]), runs, list(metrics), refused, heat_maps)
    return Path(out) / "report.html"


def _is_same(a: _Path, b: _Path) -> bool:
    return Path(a).resolve() == Path(b).resolve()


def _labelled(results: Sweep | Result | Iterable[Result | _Path] | Mapping[str, _Results]) -> Iterator[tuple[Result, str, str, Place]]:
    """Every result with its label, its line and its point of the grid."""
    if isinstance(results, Sweep):
        for run in results:
            yield run.result, run.label, run.line, run.place
    elif isinstance(results, Mapping):
        for label, some in results.items():
            for result in _opened(some):
                yield result, label, label, Place()
    else:
        for result in _opened(results):
            yield result, result.label, result.label, Place()


def _opened(results: _Results) -> Iterator[Result]:
    for each in [results] if isinstance(results, Result | str | os.PathLike) else results:
        if not isinstance(each, Result | str | os.PathLike):
            raise TypeError(f"{type(each).__name__} is no result; give a fairrate.Sweep, fairrate.Result or a directory of results")
        yield each if isinstance(each, Result) else Result(each)


def _of_run(result: Result, label: str, line: str, place: Place) -> _native.RunOfReport:
    return {
        "source": result.dir,
        "label": label,
        "seed": int(result.summary["seed"]),
        "line": line,
        "point": place.point,
        "grid": list(place.grid),
        "place": list(place.place),
    }


def _runs_below(dir: Path) -> list[_native.RunOfReport]:
    """The complete runs of a comparison, or the one run of a results directory."""
    return _native.runs_of_comparison(dir) if (dir / "compare.json").exists() else [_of_run(*each) for each in _labelled([dir])]


def _check_labels(runs: Sequence[_native.RunOfReport]) -> None:
    seen: set[tuple[str, int]] = set()
    for run in runs:
        key = run["label"], run["seed"]
        if key in seen:
            message = f"two runs are called {run['label']!r} with seed {run['seed']}"
            raise ScenarioError(message, suggestion='tell them apart by a dict, as report({"before": a, "after": b}, "report")')
        seen.add(key)


def _scenario_name(run: _native.RunOfReport) -> str:
    return str(Result(run["source"]).summary["scenario"])
