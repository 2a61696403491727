"""The state in which a trial ends at a rung, and the rule by which its runs end before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairrate.tune._goals import Goals
from fairrate.tune._trials import REUSED, SHOWN, is_behind, trial_of
from fairrate.tune._within import Ask, AtTimes, ByFronts, ByPruner, Values

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Verdicts:
    """The rules of a study.

    Attributes:
        study: The study of Optuna.
        goals: Objectives and constraints.
        seeds: All seeds.
        pruner: The pruner of the user; ``None``: that of the study.
        prunes: Whether to prune at all.
        times_ns: Simulated times in ns at which runs are judged while they go on.
        before: Number of the first trial of the batch. Runs are held to the trials before it, which have ended: neither the order of
            runs nor an interruption matters.
    """

    study: optuna.Study
    goals: Goals
    seeds: Sequence[int]
    pruner: Any
    prunes: bool
    times_ns: tuple[int, ...]
    before: int

    def of(self, trial: optuna.trial.Trial, rung: int) -> str | None:
        """Returns the state in which a trial ends at a rung; ``None``: it goes on."""
        frozen = self.study.get_trials(deepcopy=False)[trial.number]
        own = trial_of(frozen, self.goals)
        if own.reason is not None:
            return "FAIL"
        seeds, objectives = self.seeds[:rung], self.goals.objectives
        if len(objectives) == 1:
            self._report_shown(trial, seeds)
        # Not complete: pruners look at complete trials, and are not to be misled by its values.
        if own.broken or any(seed in own.stopped for seed in seeds):
            return "PRUNED"
        if rung == len(self.seeds):
            return "COMPLETE"
        losses = own.losses(objectives, seeds)
        if losses is None or not self.prunes:
            return None
        if len(objectives) == 1:
            step = rung * (len(self.times_ns) + 1)
            if step not in frozen.intermediate_values:
                value = own.mean(objectives[0].name, seeds)
                trial.report(float(value or 0.0), step)
            return "PRUNED" if self._should_prune(trial) else None
        # Only these seeds count, so that a trial is judged alike if it had gone further before an interruption.
        trials = [trial_of(other, self.goals) for other in self.study.get_trials(deepcopy=False)]
        others = [t for t in trials if t.number != own.number and all(t.breaks.get(s) == [] for s in seeds)]
        theirs = [found for t in others if (found := t.losses(objectives, seeds)) is not None]
        return "PRUNED" if is_behind(losses, theirs) else None

    def ask(self, trial: optuna.trial.Trial, seed: int) -> Ask:
        """Returns the questions to a run of a trial."""
        objectives = self.goals.objectives
        names = tuple(one.name for one in objectives)
        if len(objectives) == 1:
            # A value at a quarter of a run says nothing of one at its end, so the median is that of the same time.
            by = self._by_pruner(trial)
            return Ask(self.times_ns, names, AtTimes(by, names[0], self._first_step(seed), self.pruner is None))
        others = self.study.get_trials(deepcopy=False)[: self.before]
        kept = [other for other in others if not trial_of(other, self.goals).broken]
        shown: list[list[Values]] = [other.user_attrs.get(f"{SHOWN}{seed}", {}).get("values", []) for other in kept]
        at = range(len(self.times_ns))
        return Ask(self.times_ns, names, ByFronts(objectives, tuple(tuple(v[i] for v in shown if i < len(v)) for i in at)))

    def _first_step(self, seed: int) -> int:
        """Returns the step of the first question under a seed. The values at the end of n seeds have the step after their questions."""
        return self.seeds.index(seed) * (len(self.times_ns) + 1) + 1

    def _report_shown(self, trial: optuna.trial.Trial, seeds: Sequence[int]) -> None:
        """Reports to Optuna what runs have shown while they went on."""
        (one,) = self.goals.objectives
        there = self.study.get_trials(deepcopy=False)[trial.number].intermediate_values
        for seed in seeds:
            kept = trial.user_attrs.get(f"{SHOWN}{seed}", {}).get("values", [])
            for step, values in enumerate(kept, self._first_step(seed)):
                if step not in there and values[one.name] is not None:
                    trial.report(float(values[one.name]), step)

    def _by_pruner(self, trial: optuna.trial.Trial) -> ByPruner:
        every = self.study.get_trials(deepcopy=False)
        known = [(t.state.name, t.values[0] if t.values else None, dict(t.intermediate_values)) for t in every[: self.before]]
        own = dict(every[trial.number].intermediate_values)
        return ByPruner(self.study.pruner, self.study.direction.name, trial.number, own, known)

    def _should_prune(self, trial: optuna.trial.Trial) -> bool:
        if not self.times_ns or self.pruner is not None:
            return bool(trial.should_prune())
        # The median of the ends of seeds, with which values at other times have nothing to do.
        by = self._by_pruner(trial)
        each = len(self.times_ns) + 1
        by.steps = frozenset(each * n for n in range(1, len(self.seeds) + 1))
        return by.prunes()

    def take_over(self, trial: optuna.trial.Trial, seed: int, known: Sequence[optuna.trial.FrozenTrial]) -> bool:
        """Takes a complete run over from a trial of ``known`` with the same settings; returns ``False`` if there is none.

        A run that is judged at times is judged again by the values that it has shown, as if it were under way.
        """
        own, name = trial.user_attrs["settings"], f"seed {seed}"
        attrs = next((t.user_attrs for t in known if name in t.user_attrs and t.user_attrs["settings"] == own), None)
        if attrs is None:
            return False
        stopped_ns = None
        if self.times_ns:
            values, end_ns, judge = attrs[f"{SHOWN}{seed}"]["values"], attrs[name]["end_ns"], self.ask(trial, seed).judge
            for i, t_ns in enumerate(self.times_ns):
                if t_ns < end_ns and judge(i, values[i]):
                    values, stopped_ns = values[: i + 1], t_ns
                    break
            trial.set_user_attr(f"{SHOWN}{seed}", {"values": values, "stopped_ns": stopped_ns})
        if stopped_ns is None:
            trial.set_user_attr(name, attrs[name])
        trial.set_user_attr(REUSED, sorted({*trial.user_attrs.get(REUSED, []), seed}))
        return True
