"""Pruning within runs: a run is asked for the objectives at fixed simulated times, and ends there if others were better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fairrate import _native
from fairrate._errors import TuneError
from fairrate._result import Result
from fairrate._run import run_asked
from fairrate._scenario import Scenario
from fairrate.tune import _optuna
from fairrate.tune._goals import Objective
from fairrate.tune._space import quantity
from fairrate.tune._trials import Trial, is_behind

Values = Mapping[str, float | None]
"""Values of objectives by name."""

OWN_NOTES = ("SuccessiveHalvingPruner", "HyperbandPruner")
"""Pruners of Optuna that keep notes in the study, which a run under way cannot write."""


@dataclass(frozen=True)
class Moment:
    """A time at which a run is asked.

    Attributes:
        share: The time as a share of the simulated time of the scenario as given, or
        ns: The time itself, in ns.
    """

    share: float | None
    ns: float | None

    @classmethod
    def of(cls, text: str) -> Moment:
        """Reads ``25%`` or ``200us``.

        Raises:
            TuneError: If it is neither a share between 0 and 100 % nor a time above zero.
        """
        read = quantity(text)
        if read is not None and read.kind == "time" and read.value >= 1:
            return cls(None, read.value)
        number = text.strip().removesuffix("%")
        try:
            share = float(number) / 100 if number != text.strip() else math.nan
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            raise TuneError(
                f"`{text}` is no time at which runs can be judged",
                code="tune::bad_moment",
                suggestion="write shares of the simulated time of the scenario as given, as 25%,50%,75%, or times, as 200us,1ms",
            )
        return cls(share, None)

    def __str__(self) -> str:
        return f"{100 * self.share:g}%" if self.share is not None else f"{self.ns:g}ns"


def moments_of(prune: bool | str | Sequence[str]) -> tuple[Moment, ...]:
    """Returns the times of the argument ``prune`` of a study; none if it only says whether to prune.

    Raises:
        TuneError: If one of them is no time.
    """
    if isinstance(prune, bool):
        return ()
    texts = prune.split(",") if isinstance(prune, str) else list(prune)
    if not texts:
        raise TuneError("there are no times at which runs can be judged", suggestion="write 25%,50%,75%")
    return tuple(Moment.of(text) for text in texts)


def times_of(moments: Iterable[Moment], end_ns: float) -> tuple[int, ...]:
    """Returns times in whole ns, ascending; ``end_ns`` is the simulated time of the scenario as given."""
    found = {round(m.share * end_ns if m.share is not None else m.ns or 0.0) for m in moments}
    return tuple(sorted(t_ns for t_ns in found if t_ns > 0))


def check_objectives(objectives: Iterable[Objective], scenario: Scenario) -> None:
    """Checks that a run under way has the objectives.

    Raises:
        TuneError: If one of them is known only at the end.
    """
    for one in objectives:
        if callable(one.metric) or _native.not_of_flows(scenario._native, [one.name]) is not None:
            raise TuneError(
                f"`{one.name}` is known only at the end of a run, so that no run can be judged before",
                code="tune::not_of_flows",
                suggestion="runs are judged by slowdowns, query times and shares of unfinished flows; "
                "leave out the times of `prune` (--prune) for other objectives",
            )


def check_pruner(pruner: Any) -> None:
    """Checks that a pruner of Optuna can judge a run under way.

    Raises:
        TuneError: If it keeps notes of its own.
    """
    if type(pruner).__name__ in OWN_NOTES:
        raise TuneError(
            f"`{type(pruner).__name__}` keeps notes of its own, and cannot judge runs under way",
            code="tune::bad_pruner",
            suggestion="take a pruner that looks at values alone, as MedianPruner or PercentilePruner, or leave out the times of `prune`",
        )


class Judge(Protocol):
    """A rule that ends a run under way."""

    def __call__(self, question: int, values: Values) -> bool:
        """Returns ``True`` if the run ends, after the values at the time with the number ``question``."""


@dataclass(frozen=True)
class ByFronts:
    """The rule of several objectives: more than half of the others are on better fronts.

    Attributes:
        objectives: The objectives.
        others: Values of the other trials under the same seed, by question.
    """

    objectives: tuple[Objective, ...]
    others: tuple[tuple[Values, ...], ...]

    def __call__(self, question: int, values: Values) -> bool:
        own = _losses(self.objectives, values)
        theirs = [found for other in self.others[question] if (found := _losses(self.objectives, other)) is not None]
        return own is not None and is_behind(own, theirs)


def _losses(objectives: Iterable[Objective], values: Values) -> list[float] | None:
    found = [(one, values[one.name]) for one in objectives]
    known = [one.loss(value) for one, value in found if value is not None]
    return known if len(known) == len(found) else None


@dataclass
class ByPruner:
    """A pruner of Optuna.

    Attributes:
        pruner: The pruner.
        direction: ``MINIMIZE`` or ``MAXIMIZE``.
        number: Number of the trial.
        own: Its values by step, so far.
        others: State, value and values by step of the trials before it, in the order of their numbers.
        steps: The steps that the pruner sees; ``None``: all.
    """

    pruner: Any
    direction: str
    number: int
    own: dict[int, float]
    others: list[tuple[str, float | None, dict[int, float]]]
    steps: frozenset[int] | None = None

    def prunes(self) -> bool:
        """Returns ``True`` if the pruner ends the trial."""
        import optuna

        def seen(values: Mapping[int, float]) -> dict[int, float]:
            return {step: value for step, value in values.items() if self.steps is None or step in self.steps}

        def made(state: str, value: float | None, values: Mapping[int, float]) -> optuna.trial.FrozenTrial:
            found = optuna.trial.TrialState[state]
            return optuna.trial.create_trial(state=found, value=value if state == "COMPLETE" else None, intermediate_values=seen(values))

        with _optuna.quiet():
            study = optuna.create_study(direction=optuna.study.StudyDirection[self.direction], pruner=self.pruner)
            for other in self.others:
                study.add_trial(made(*other))
            # Those of the same batch have shown nothing yet.
            for _ in range(len(self.others), self.number):
                study.add_trial(made("RUNNING", None, {}))
            study.add_trial(made("RUNNING", None, self.own))
            return bool(self.pruner.prune(study, study.get_trials(deepcopy=False)[self.number]))


@dataclass
class AtTimes:
    """A pruner of Optuna as the rule of one objective.

    Attributes:
        by: The pruner, with the trial's values before this run.
        name: The objective.
        first: The step of the first question.
        alone: Whether the pruner sees values at the same time under the same seed alone.
    """

    by: ByPruner
    name: str
    first: int
    alone: bool

    def __call__(self, question: int, values: Values) -> bool:
        value = values[self.name]
        if value is None:
            return False
        step = self.first + question
        self.by.own[step] = value
        self.by.steps = frozenset([step]) if self.alone else None
        return self.by.prunes()


@dataclass(frozen=True)
class Asked:
    """A run that was asked.

    Attributes:
        result: What came out; ``None`` if it was stopped.
        values: The objectives at each time; of a run that was stopped, up to the last one.
    """

    result: Result | None
    values: list[dict[str, float | None]]


@dataclass(frozen=True)
class Ask:
    """The questions to a run.

    Attributes:
        times_ns: Times in ns, ascending.
        names: Metrics.
        judge: The rule.
    """

    times_ns: tuple[int, ...]
    names: tuple[str, ...]
    judge: Judge

    def run(self, native: _native.Scenario, label: str | None, tags: list[tuple[str, int | float | str]], threads: int) -> Asked:
        """Runs a scenario until a question ends it."""
        values: list[dict[str, float | None]] = []

        def goes_on(question: int, found: Sequence[float | None]) -> bool:
            values.append(dict(zip(self.names, found, strict=True)))
            return not self.judge(question, values[-1])

        result = run_asked(native, label, tags, threads, (list(self.times_ns), list(self.names), goes_on))
        return Asked(None, values) if result is None else self.of(native, result, values)

    def of(self, native: _native.Scenario, result: Result, values: Sequence[dict[str, float | None]] = ()) -> Asked:
        """Asks a complete run, from the first question after ``values`` on, as if it were under way."""
        found, end_ns = list(values), result.summary["sim_s"] * 1e9
        rest = self.times_ns[len(found) :]
        for t_ns, shown in zip(rest, _native.values_at(native, result.dir, rest, self.names), strict=True):
            found.append(dict(zip(self.names, shown, strict=True)))
            # Nothing is won by the end of a run that is over. Others are compared with its values.
            if t_ns < end_ns and self.judge(len(found) - 1, found[-1]):
                return Asked(None, found)
        return Asked(result, found)


@dataclass(frozen=True)
class Costs:
    """The simulated time of a study's trials.

    Attributes:
        runs: Runs that went to their end.
        stopped: Runs that ended at a question.
        simulated_ns: Simulated time of both, in ns.
        saved_ns: Simulated time that the stopped ones would have taken further, in ns: up to the mean end of the others under the
            same seed.
    """

    runs: int
    stopped: int
    simulated_ns: float
    saved_ns: float


def costs_of(trials: Sequence[Trial]) -> Costs:
    """Returns the costs of trials; runs that were taken over from another trial cost nothing."""
    ends: dict[int, list[float]] = {}
    for trial in trials:
        for seed, end_ns in trial.ends.items():
            if seed not in trial.reused:
                ends.setdefault(seed, []).append(end_ns)
    stops = [(seed, at_ns) for trial in trials for seed, at_ns in trial.stopped.items() if seed not in trial.reused]
    means = {seed: sum(each) / len(each) for seed, each in ends.items()}
    simulated = sum(sum(each) for each in ends.values()) + sum(at_ns for _, at_ns in stops)
    saved = sum(max(means.get(seed, at_ns) - at_ns, 0.0) for seed, at_ns in stops)
    return Costs(sum(map(len, ends.values())), len(stops), float(simulated), float(saved))
