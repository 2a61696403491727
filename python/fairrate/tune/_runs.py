"""The runs of trials: on processes, an executor or from a cache, as those of sweeps."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from fairrate import _checks, _native, _sweep
from fairrate._result import Result
from fairrate._scenario import Scenario
from fairrate._workers import Workers
from fairrate.tune._within import Ask, Asked

Wanted = tuple[Scenario, Mapping[str, Any], int]
"""A scenario, its settings and a seed."""

Outcome = Result | Asked | BaseException
"""The end of a run: its result, for a run with questions with the answers, or the reason why there is none."""


class Runs:
    """Does runs, and keeps its processes between them."""

    def __init__(self, executor: Executor | None, jobs: int | None, cache: str | os.PathLike[str] | None, threads: int) -> None:
        threads, jobs = _checks.threads_of(threads), _checks.jobs_of(jobs)
        self._workers = None if executor is not None else Workers(jobs or max(1, (os.cpu_count() or 1) // threads))
        self._executor = executor if executor is not None else self._workers
        self._cache, self._threads = cache, threads
        self._places: _native.Cache | None = None

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=kind is not None)

    def all(
        self,
        wanted: Sequence[Wanted],
        note: Callable[[int, Outcome], None] = lambda i, outcome: None,
        asks: Sequence[Ask] = (),
    ) -> list[Outcome]:
        """Does runs, and calls ``note`` with the place and the outcome of each as soon as it is there.

        ``asks`` are the questions to each; the outcomes are then :class:`Asked`.
        """
        plans = [self._plan(*one) for one in wanted]
        for plan, ask in zip(plans, asks, strict=False):
            plan.ask = ask
        at = {id(plan): i for i, plan in enumerate(plans)}
        outcomes: dict[int, Outcome] = {}
        for i, plan in enumerate(plans):
            if plan.found is not None:
                result = Result(plan.found, plan.label)
                outcomes[i] = result if plan.ask is None else plan.ask.of(plan.scenario._native, result)
                note(i, outcomes[i])
        missing = [plan for plan in plans if plan.found is None]
        for plan, outcome in _sweep._run_all(missing, self._executor, None, self._threads):
            kept = _kept(plan, outcome)
            outcomes[at[id(plan)]] = kept
            note(at[id(plan)], kept)
        return [outcomes[i] for i in range(len(plans))]

    def _plan(self, scenario: Scenario, settings: Mapping[str, Any], seed: int) -> _sweep._Plan:
        if self._cache is not None and self._places is None:
            self._places = _native.Cache(self._cache, scenario.name)
        with warnings.catch_warnings():
            # The ranges of a parameter contain what a default would be warned of.
            warnings.simplefilter("ignore", UserWarning)
            grid = {key: [value] for key, value in settings.items()}
            (plan,), _ = _sweep._plans(scenario, (), (), grid, [seed], self._places)
        return plan


def _kept(plan: _sweep._Plan, outcome: Any) -> Outcome:
    """Returns an outcome whose complete run, if there is one, is in the cache."""
    if isinstance(outcome, Asked):
        return outcome if outcome.result is None else Asked(_sweep._kept(plan, outcome.result), outcome.values)
    found: Outcome = outcome if isinstance(outcome, BaseException) else _sweep._kept(plan, outcome)
    return found
