"""Running a scenario."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fairrate import _checks, _native
from fairrate._controller import Algorithm, class_of, plug_in, written
from fairrate._result import Result, temporary_directory
from fairrate._scenario import ScenarioLike, scenario_of


def run(
    scenario: ScenarioLike,
    *,
    cc: Algorithm | None = None,
    threads: int = 1,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Result:
    """Runs a scenario to its end.

    Other Python threads go on meanwhile. Ctrl-C ends the run after some hundredths of a second.

    Args:
        scenario: What to run, or the path of its file.
        cc: Algorithm in place of the scenario's: a name, as ``"hpcc"``, with other parameters, as ``"hpcc:eta=0.9"``, the path of a
            library, or a class of :class:`fairrate.Controller`, with other parameters as ``Aimd.with_(gain=0.5)``.
        threads: Threads at most; results are the same bits for any number.
        progress: Whether to show a bar on stderr, or in the notebook.
        out: Results directory, which then stays. Without it the results are in a temporary one until they are saved.

    Raises:
        ScenarioError: If the scenario cannot be run so.
        ResultsError: If ``out`` has something else in it, or cannot be written.
        RunError: If the run failed.
        ValueError: If ``threads`` is not from 1 to 1024.
        Exception: What the code of ``cc`` raised.
        KeyboardInterrupt: After Ctrl-C. What there was is in ``out`` and valid.
    """
    native, label = scenario_of(scenario)._native, None
    if cc is not None:
        controller = class_of(cc)
        own = [plug_in(controller)] if controller is not None else []
        (column,) = _native.columns([written(cc)], [], [], False, own)
        native = native.with_plug_in(own[0], column.sets) if own else native.with_sets(column.sets)
        # With parameters of its own it is called as it is written.
        label = column.label if column.label != native.cc else None
    for message in native.warnings:
        warnings.warn(message, stacklevel=2)
    return run_labelled(native, label, [], threads, progress, out)


def run_labelled(
    scenario: _native.Scenario,
    label: str | None,
    tags: list[tuple[str, int | float | str]],
    threads: int,
    progress: bool,
    out: str | os.PathLike[str] | None,
) -> Result:
    """Runs a scenario whose tables say ``label`` and ``tags`` in every row."""
    threads = _checks.threads_of(threads)
    dir = Path(out) if out is not None else temporary_directory()
    try:
        with _Bar(scenario, progress) as watch:
            _native.run(scenario, dir, _labelled(label, tags), threads, watch)
    except BaseException:
        if out is None:
            shutil.rmtree(dir, ignore_errors=True)
        raise
    return Result(dir, label) if out is not None else Result._temporary(dir, label)


Tags = list[tuple[str, int | float | str]]

Questions = tuple[list[int], list[str], Callable[[int, Sequence[float | None]], bool]]
"""Times in ns, ascending; metrics; a function of the number of a question and the values, which says if the run goes on."""


def run_asked(scenario: _native.Scenario, label: str | None, tags: Tags, threads: int, questions: Questions) -> Result | None:
    """Runs a scenario that is asked at simulated times; ``None`` if an answer has stopped it."""
    dir = temporary_directory()
    try:
        ended = _native.run(scenario, dir, _labelled(label, tags), threads, None, questions)
    except BaseException:
        shutil.rmtree(dir, ignore_errors=True)
        raise
    if ended == "stopped":
        shutil.rmtree(dir, ignore_errors=True)
        return None
    return Result._temporary(dir, label)


def _labelled(label: str | None, tags: Tags) -> Tags:
    return tags if label is None else [("label", label), *tags]


class _Bar:
    """A bar by simulated time, or by flows where no time limits the run."""

    def __init__(self, scenario: _native.Scenario, wanted: bool) -> None:
        self._scenario = scenario
        self._wanted = wanted
        self._bar: Any = None

    def __enter__(self) -> Callable[[float, int], object] | None:
        if not self._wanted:
            return None
        from tqdm.auto import tqdm

        duration_ns = self._scenario.duration_ns
        total = duration_ns / 1e6 if duration_ns else self._scenario.n_flows
        label = f"{self._scenario.name} {self._scenario.cc}"
        self._bar = tqdm(total=total, desc=label, unit="ms" if duration_ns else "flows", leave=False)

        def watch(now_ns: float, flows_done: int) -> None:
            self._bar.update((now_ns / 1e6 if duration_ns else flows_done) - self._bar.n)

        return watch

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
