"""Trials, fronts, and the rule that ends a trial before all of its seeds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairrate.tune._goals import Goals, Objective

if TYPE_CHECKING:
    import optuna

LEAST_TRIALS = 5
"""Trials that must have reached a rung before one is pruned there."""


SHOWN = "shown "
"""The beginning of the names under which a trial keeps what its runs have shown while they went on."""

REUSED = "reused"
"""The name under which a trial keeps the seeds whose run is that of another trial."""


@dataclass(frozen=True)
class Trial:
    """Some settings and their measurements.

    Attributes:
        number: Its number, from 0.
        state: ``complete``: it kept every constraint under all seeds; ``pruned``: others were better under its first seeds, or
            while a run went on;
            ``infeasible``: it broke a constraint; ``refused``: there is no such scenario; ``failed``: a run failed; ``running``.
        settings: Values by key, as a scenario has them.
        runs: Values of metrics by seed.
        bounds: Metrics by seed that are only lower bounds.
        breaks: The constraints it broke, by seed.
        excess: How far it is off all constraints together; at most 0 if it keeps them.
        reason: Why it was refused or failed.
        ends: Simulated time of its complete runs by seed, in ns.
        stopped: Simulated time by seed, in ns, at which a run of it was stopped, since others were better then.
        reused: Seeds whose run is that of another trial with the same settings. It was not done again.
    """

    number: int
    state: str
    settings: dict[str, Any]
    runs: dict[int, dict[str, float | None]]
    bounds: dict[int, list[str]] = field(default_factory=dict, repr=False)
    breaks: dict[int, list[str]] = field(default_factory=dict, repr=False)
    excess: float = 0.0
    reason: str | None = None
    ends: dict[int, float] = field(default_factory=dict, repr=False)
    stopped: dict[int, float] = field(default_factory=dict, repr=False)
    reused: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def broken(self) -> list[str]:
        """The constraints it broke under some seed."""
        return list(dict.fromkeys(name for names in self.breaks.values() for name in names))

    def mean(self, metric: str, seeds: Iterable[int] | None = None) -> float | None:
        """Returns the mean of a metric over its seeds, or over some of them; ``None`` if a value is missing."""
        over = list(self.runs) if seeds is None else [seed for seed in seeds if seed in self.runs]
        values = [self.runs[seed].get(metric) for seed in over]
        known = [value for value in values if value is not None]
        return statistics.fmean(known) if known and len(known) == len(values) else None

    def losses(self, objectives: Sequence[Objective], seeds: Iterable[int] | None = None) -> list[float] | None:
        """Returns its means, each the smaller the better; ``None`` if one is missing."""
        means = [(one, self.mean(one.name, seeds)) for one in objectives]
        found = [one.loss(mean) for one, mean in means if mean is not None]
        return found if len(found) == len(means) else None

    def __str__(self) -> str:
        return ", ".join(f"{key}={plain(value)}" for key, value in self.settings.items())


def plain(value: Any) -> str:
    """Returns a value as ``--set`` takes it: ``true``, not ``True``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def trial_of(frozen: optuna.trial.FrozenTrial, goals: Goals) -> Trial:
    """Reads a trial from Optuna's record of it."""
    attrs = frozen.user_attrs
    kept: dict[str, Any] = {k[5:]: v for k, v in attrs.items() if k.startswith("seed ")}
    runs = {int(seed): dict(run["values"]) for seed, run in kept.items()}
    bounds = {int(seed): list(run["bounds"]) for seed, run in kept.items()}
    order = sorted(runs)
    excesses = [goals.excesses(runs[seed], bounds[seed]) for seed in order]
    breaks = {seed: [c for c, excess in each.items() if excess > 0] for seed, each in zip(order, excesses, strict=True)}
    broken = {c for names in breaks.values() for c in names}
    worst = [max(each.get(c, 0.0) for each in excesses) for c in sorted(broken)]
    ends = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    state = ends.get(frozen.state.name, "running")
    if "refused" in attrs:
        state = "refused"
    elif broken and state != "running":
        state = "infeasible"
    return Trial(
        frozen.number,
        state,
        dict(attrs.get("settings", {})),
        {seed: runs[seed] for seed in order},
        {seed: bounds[seed] for seed in order},
        breaks,
        sum(worst),
        attrs.get("refused") or attrs.get("failed"),
        {seed: kept[str(seed)]["end_ns"] for seed in order},
        {int(k[6:]): v["stopped_ns"] for k, v in attrs.items() if k.startswith(SHOWN) and v["stopped_ns"] is not None},
        frozenset(attrs.get(REUSED, [])),
    )


def given_trial(kept: Mapping[str, dict[str, float | None]], bounds: Mapping[str, list[str]], goals: Goals) -> Trial:
    """Returns the scenario as given as a trial without settings, from its values and bounds by seed."""
    runs = {int(seed): values for seed, values in kept.items()}
    lower = {int(seed): list(names) for seed, names in bounds.items()}
    excesses = {seed: goals.excesses(values, lower.get(seed, [])) for seed, values in runs.items()}
    breaks = {seed: [name for name, excess in each.items() if excess > 0] for seed, each in excesses.items()}
    broken = sorted({name for names in breaks.values() for name in names})
    excess = sum(max(each.get(name, 0.0) for each in excesses.values()) for name in broken)
    return Trial(-1, "infeasible" if broken else "complete", {}, runs, lower, breaks, excess)


def nearest(trials: Iterable[Trial]) -> Trial | None:
    """Returns the infeasible trial that is least off all constraints together."""
    return min((t for t in trials if t.state == "infeasible"), key=lambda t: (t.excess, t.number), default=None)


def written(settings: Mapping[str, Any]) -> str:
    """Returns settings as a text that equal settings share."""
    return json.dumps(settings, sort_keys=True)


def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
    """Returns ``True`` if ``a`` is nowhere worse than ``b`` and somewhere better; small is good."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and any(x < y for x, y in zip(a, b, strict=True))


def layers(losses: Sequence[Sequence[float]]) -> list[int]:
    """Returns the front that each point is on: 0 if nothing dominates it, 1 if only points of front 0 do, and so on."""
    found = [-1] * len(losses)
    left, layer = set(range(len(losses))), 0
    while left:
        front = {i for i in left if not any(dominates(losses[j], losses[i]) for j in left)}
        for i in front:
            found[i] = layer
        left -= front
        layer += 1
    return found


def is_behind(own: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
    """Returns ``True`` if more than half of the ``others`` are on better fronts than ``own``.

    For one objective: if it is worse than their median. With fewer than :data:`LEAST_TRIALS` others nothing is behind.
    """
    if len(others) < LEAST_TRIALS:
        return False
    mine, *theirs = layers([own, *others])
    return sum(layer < mine for layer in theirs) > len(theirs) / 2


def front(trials: Iterable[Trial], objectives: Sequence[Objective]) -> list[Trial]:
    """Returns the complete trials that no other one dominates, best in the first objective first.

    Of trials with the same settings it has the first.
    """
    found = [(losses, t) for t in trials if t.state == "complete" and (losses := t.losses(objectives)) is not None]
    on = layers([losses for losses, _ in found])
    best = [(losses, t) for (losses, t), layer in zip(found, on, strict=True) if layer == 0]
    once: dict[str, Trial] = {}
    for _, trial in sorted(best, key=lambda each: (each[0], each[1].number)):
        once.setdefault(written(trial.settings), trial)
    return list(once.values())


def compromise(trials: Sequence[Trial], objectives: Sequence[Objective]) -> Trial | None:
    """Returns the trial of a front that is nearest to the best value of every objective, each scaled to the front's extent."""
    losses = {t.number: t.losses(objectives) or [] for t in trials}
    if not trials:
        return None
    ends = [(min(column), max(column)) for column in zip(*losses.values(), strict=True)]

    def distance(trial: Trial) -> float:
        parts = ((x - low) / (high - low) if low < high else 0.0 for x, (low, high) in zip(losses[trial.number], ends, strict=True))
        return sum(part * part for part in parts)

    return min(trials, key=lambda t: (distance(t), t.number))
