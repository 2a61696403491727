"""Found settings beside the scenario as given, under seeds that no trial has seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairrate import _checks, stats
from fairrate._errors import TuneError
from fairrate.tune._goals import Goals, nature
from fairrate.tune._runs import Runs
from fairrate.tune._trials import Trial

if TYPE_CHECKING:
    import polars

    from fairrate.tune._study import Study

GIVEN = "as given"
GIVEN_BOUNDS = "as given, bounds"
"""Names under which a study keeps what the scenario as given measures: values, and metrics that are only lower bounds."""


@dataclass(frozen=True)
class HeldOut:
    """A comparison on held-out seeds.

    Attributes:
        seeds: The seeds.
        trials: The trials that were compared.
        runs: Values of metrics by trial (``None``: the scenario as given) and seed.
        bounds: The same of metrics that are only lower bounds.
        goals: The objectives and constraints.
    """

    seeds: tuple[int, ...]
    trials: tuple[Trial, ...]
    runs: Mapping[int | None, Mapping[int, Mapping[str, float | None]]]
    bounds: Mapping[int | None, Mapping[int, list[str]]]
    goals: Goals

    def estimate(self, trial: int | None, metric: str) -> stats.Estimate | None:
        """Returns the mean of a metric of a trial, or of the scenario as given, with its 95 % bootstrap interval."""
        return stats.estimate(v for run in self.runs[trial].values() if (v := run[metric]) is not None)

    def difference(self, trial: int, metric: str) -> stats.Difference | None:
        """Returns how a trial differs from the scenario as given, paired by seed."""
        pairs = [(self.runs[trial][s][metric], self.runs[None][s][metric]) for s in self.seeds]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        return stats.difference([a for a, _ in known], [b for _, b in known])

    def broken(self, trial: int | None) -> dict[str, list[int]]:
        """Returns the constraints that a trial breaks, each with the seeds under which it does."""
        found: dict[str, list[int]] = {}
        for seed, values in self.runs[trial].items():
            for name, excess in self.goals.excesses(dict(values), self.bounds[trial][seed]).items():
                if excess > 0:
                    found.setdefault(name, []).append(seed)
        return found

    def frame(self) -> polars.DataFrame:
        """A row a metric and trial: its mean with interval, that of the scenario as given, and the ratio of both with interval."""
        import polars

        rows: list[dict[str, Any]] = []
        for trial in self.trials:
            for metric in self.goals.metrics:
                row: dict[str, Any] = {"trial": trial.number, "metric": metric, "unit": (nature(metric) or ("", ""))[1]}
                for name, of in (("given", None), ("found", trial.number)):
                    e = self.estimate(of, metric)
                    row |= {name: e and e.mean, f"{name}_low": e and e.low, f"{name}_high": e and e.high}
                d = self.difference(trial.number, metric)
                row |= {"ratio": d and d.ratio, "ratio_low": d and d.ratio_low, "ratio_high": d and d.ratio_high}
                rows.append(row | {"is_clear": bool(d and d.is_clear)})
        return polars.DataFrame(rows, infer_schema_length=None)

    def __str__(self) -> str:
        head = f"Held-out seeds {_span(self.seeds)}: means with 95 % intervals; * the paired difference is clear"
        lines = [head]
        for trial in self.trials:
            kept = " (keeps not every constraint)" if trial.state == "infeasible" else ""
            lines += ["", f"trial {trial.number}{kept}: {trial}"]
            cells = [["", GIVEN, f"trial {trial.number}", "change"]]
            cells += [self._row(trial.number, metric) for metric in self.goals.metrics]
            widths = [max(len(row[i]) for row in cells) for i in range(4)]
            for name, *numbers in cells:
                lines.append("  ".join([name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(numbers, widths[1:], strict=True))]))
        for of in (None, *(t.number for t in self.trials)):
            for name, seeds in self.broken(of).items():
                who = "the scenario as given" if of is None else f"trial {of}"
                lines.append(f"{who} breaks `{name}` under {len(seeds)} of {len(self.seeds)} seeds")
        return "\n".join(line.rstrip() for line in lines)

    def _row(self, trial: int, metric: str) -> list[str]:
        unit = (nature(metric) or ("", ""))[1]
        name = f"{metric} ({unit})" if unit else metric
        return [name, self._cell(None, metric), self._cell(trial, metric), _change(self.difference(trial, metric))]

    def _cell(self, of: int | None, metric: str) -> str:
        e = self.estimate(of, metric)
        if e is None:
            return "-"
        least = "≥ " if any(metric in names for names in self.bounds[of].values()) else ""
        interval = "" if e.low is None or e.high is None else f" [{_short(e.low)}, {_short(e.high)}]"
        return f"{least}{_short(e.mean)}{interval}"


def _change(d: stats.Difference | None) -> str:
    if d is None:
        return "-"
    star = " *" if d.is_clear else ""
    if d.ratio is None or d.ratio_low is None or d.ratio_high is None:
        return f"{d.mean:+.3g}{star}" if d.mean else "0"
    percent = [100 * (x - 1) for x in (d.ratio, d.ratio_low, d.ratio_high)]
    return f"{percent[0]:+.3g} % [{percent[1]:+.3g}, {percent[2]:+.3g}]{star}"


def _short(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def _span(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}..{seeds[-1]}"
    return ", ".join(map(str, seeds))


def chosen(study: Study, most: int) -> list[Trial]:
    """Returns the best trial, and further ones from the ends of the front inwards; the nearest one if none keeps the constraints."""
    on, best = study.front, study.best
    if best is None:
        least = study.nearest
        return [] if least is None else [least]
    inward = [t for pair in zip(on, reversed(on), strict=True) for t in pair]
    found = {t.number: t for t in [best, *inward]}
    return list(found.values())[: max(most, 1)]


def seeds_of(study: Study, seeds: Iterable[int] | None) -> tuple[int, ...]:
    """Returns the seeds of a comparison.

    Raises:
        TuneError: If a trial has seen one of them, or there are none.
    """
    first = max(study.seeds) + 1
    wanted = tuple(dict.fromkeys(_checks.seeds_of(seeds))) if seeds is not None else tuple(range(first, first + 10))
    seen = sorted(set(wanted) & set(study.seeds))
    if seen or not wanted:
        few = "there are no held-out seeds"
        message = f"the trials have seen {', '.join(map(str, seen))} of the held-out seeds" if seen else few
        raise TuneError(message, code="tune::seen_seeds", suggestion=f"give others, as {first} to {first + 9}")
    return wanted


def held_out(study: Study, seeds: Iterable[int] | None, most: int, runs: Runs) -> HeldOut:
    """Does the runs of a comparison that the study has not kept."""
    wanted = seeds_of(study, seeds)
    trials = chosen(study, most)
    todo: list[tuple[int | None, dict[str, Any], int]] = [(None, {}, s) for s in wanted]
    todo += [(t.number, t.settings, s) for t in trials for s in wanted]
    names = [f"held out {'given' if of is None else of} {s}" for of, _, s in todo]
    missing = [i for i, name in enumerate(names) if study.kept(name) is None]

    def note(at: int, outcome: Any) -> None:
        if isinstance(outcome, BaseException):
            raise outcome
        values, bounds = study.goals.measure(outcome)
        study.keep(names[missing[at]], {"values": values, "bounds": bounds})

    runs.all([(study.scenario, todo[i][1], todo[i][2]) for i in missing], note)
    values: dict[int | None, dict[int, Any]] = {}
    bounds: dict[int | None, dict[int, Any]] = {}
    for (of, _, seed), name in zip(todo, names, strict=True):
        kept = study.kept(name)
        values.setdefault(of, {})[seed] = kept["values"]
        bounds.setdefault(of, {})[seed] = kept["bounds"]
    return HeldOut(wanted, tuple(trials), values, bounds, study.goals)
