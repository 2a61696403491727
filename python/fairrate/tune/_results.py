"""Tables, figures and files of a study."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairrate._errors import TuneError
from fairrate.tune._goals import Objective, nature
from fairrate.tune._held_out import HeldOut
from fairrate.tune._place import SCHEMA, claimed
from fairrate.tune._space import SUFFIXES, Axis, number
from fairrate.tune._trials import Trial, dominates

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

    from fairrate.tune._study import Study

LEAST_FOR_LOG = 10
"""The ratio of the values of an axis from which on its scale is logarithmic."""

BEST, NEAREST = "best.toml", "nearest.toml"
"""Files of the best trial, and of the nearest one if none keeps the constraints."""

LEAST_FOR_IMPORTANCE = 4
"""Complete trials from which on an importance is worked out."""


def frame(study: Study) -> polars.DataFrame:
    """Returns a row a trial."""
    import polars

    kinds = {axis.key: _kind(axis, study.params) for axis in study.params}

    def row(trial: Trial) -> dict[str, Any]:
        known: dict[str, Any] = {"trial": trial.number, "state": trial.state, "seeds": len(trial.runs)}
        for key, kind in kinds.items():
            value = trial.settings.get(key)
            base = value if kind == "choice" else number(value)
            known[key + SUFFIXES.get(kind, "")] = round(base) if kind in ("size", "rate", "whole") and base is not None else base
        known |= {name: trial.mean(name) if trial.runs else None for name in study.goals.metrics}
        known |= {"stopped_ns": min(trial.stopped.values(), default=None)}
        return known | {"broken": "; ".join(trial.broken)}

    return polars.DataFrame([row(trial) for trial in study.trials], infer_schema_length=None)


def _kind(axis: Axis, params: list[Axis]) -> str:
    return axis.kind if axis.of is None else next(other.kind for other in params if other.key == axis.of)


def importance(study: Study) -> dict[str, dict[str, float]]:
    """Returns the importance of parameters by objective, without objectives that all complete trials have one value of."""
    import optuna

    if sum(trial.state == "complete" for trial in study.trials) < LEAST_FOR_IMPORTANCE:
        return {}

    def of(i: int, one: Objective) -> Callable[[optuna.trial.FrozenTrial], float]:
        return lambda trial: one.loss(trial.values[i])

    found: dict[str, dict[str, float]] = {}
    with warnings.catch_warnings():
        # It is experimental, and says that small values are good, as they are here.
        warnings.simplefilter("ignore")
        for i, one in enumerate(study.goals.objectives):
            if is_constant(study, one):
                # The evaluator gives equal parts to all parameters then.
                continue
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            try:
                parts = optuna.importance.get_param_importances(study.optuna_study, evaluator=evaluator, target=of(i, one))
            except (RuntimeError, ValueError):
                # Too few trials have other values.
                continue
            found[one.name] = {key: round(float(part), 6) for key, part in parts.items()}
    return found


def is_constant(study: Study, one: Objective) -> bool:
    """Returns ``True`` if all complete trials have the same value of an objective."""
    return len({trial.mean(one.name) for trial in study.trials if trial.state == "complete"}) == 1


def plot(study: Study, ax: Axes | None) -> Axes:
    """Draws the first two objectives, or the best value over the trials."""
    from fairrate.plot import _axes

    ax = _axes(ax)
    if len(study.goals.objectives) == 1:
        _history(study, ax)
    else:
        _pareto(study, ax)
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return ax


def _label(one: Objective) -> str:
    unit = (nature(one.name) or ("", ""))[1]
    return f"{one.name} ({unit})" if unit else one.name


def _points(study: Study, objectives: tuple[Objective, ...], state: str) -> list[tuple[list[float], Trial]]:
    found = ((trial.losses(objectives), trial) for trial in study.trials if trial.state == state and trial.runs)
    return [(losses, trial) for losses, trial in found if losses is not None]


STYLES: dict[str, dict[str, Any]] = {
    "infeasible": {"marker": "x", "color": "#D55E00", "linewidths": 0.8},
    "pruned": {"marker": "o", "facecolors": "none", "edgecolors": "#999999", "linewidths": 0.8},
    "complete": {"marker": "o", "color": "#0072B2"},
}
"""Marks of trials by their state."""


def _pareto(study: Study, ax: Axes) -> None:
    shown = study.goals.objectives[:2]
    every: list[list[float]] = []
    for state, style in STYLES.items():
        points = [[one.loss(x) for one, x in zip(shown, losses, strict=True)] for losses, _ in _points(study, shown, state)]
        every += points
        if points:
            ax.scatter([x for x, _ in points], [y for _, y in points], s=12, label=state, **style)
    complete = [losses for losses, _ in _points(study, shown, "complete")]
    front = sorted(point for point in complete if not any(dominates(other, point) for other in complete))
    if front:
        corners = [[one.loss(x) for one, x in zip(shown, point, strict=True)] for point in front]
        ax.step([x for x, _ in corners], [y for _, y in corners], where="post", color="#0072B2", linewidth=1, label="Pareto set")
    given = study.given
    if given is not None:
        x, y = (given.mean(one.name) or 0.0 for one in shown)
        every.append([x, y])
        ax.scatter([x], [y], marker="*", s=50, color="black", label="as given")
    for values, scale in zip(zip(*every, strict=True), (ax.set_xscale, ax.set_yscale), strict=False):
        if 0 < min(values) and LEAST_FOR_LOG * min(values) < max(values):
            scale("log")
    ax.set(xlabel=_label(shown[0]), ylabel=_label(shown[1]))


def _history(study: Study, ax: Axes) -> None:
    (one,) = study.goals.objectives
    for state, style in STYLES.items():
        points = [(trial.number, one.loss(losses[0])) for losses, trial in _points(study, (one,), state)]
        if points:
            ax.scatter([x for x, _ in points], [y for _, y in points], s=12, label=state, **style)
    best: list[tuple[int, float]] = []
    for losses, trial in _points(study, (one,), "complete"):
        best.append((trial.number, min(losses[0], best[-1][1]) if best else losses[0]))
    if best:
        values = [one.loss(y) for _, y in best]
        ax.step([x for x, _ in best], values, where="post", color="#0072B2", linewidth=1, label="best so far")
    ax.set(xlabel="trial", ylabel=_label(one))


def save(study: Study, dir: Path, table: HeldOut | None) -> None:
    """Writes the files of a study."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from fairrate import plot as figures

    claimed(dir)
    (dir / "tune.json").write_text(json.dumps(document(study, table), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    study.frame().write_csv(dir / "trials.csv")
    with figures.paper(), mpl.rc_context({"svg.hashsalt": "fairrate"}):
        fig, ax = plt.subplots()
        study.plot(ax=ax)
        fig.savefig(dir / "pareto.svg", metadata={"Date": None})
        plt.close(fig)
    best, least = study.best, study.nearest
    if best is not None:
        head = f"# Trial {best.number} of a search with fairrate tune: {best}\n"
        head += "".join(f"# {sentence}.\n" for sentence in losses_against_given(study, best))
        _save_scenario(study, best, dir, BEST, head)
        # A search that went on has found what it lacked.
        (dir / NEAREST).unlink(missing_ok=True)
    elif least is not None:
        head = f"# No trial of this search with fairrate tune keeps every constraint. Trial {least.number} is nearest: {least}\n"
        head += "".join(f"# It breaks {one}.\n" for one in violations(study, least))
        _save_scenario(study, least, dir, NEAREST, head)


def _save_scenario(study: Study, trial: Trial, dir: Path, file: str, head: str) -> None:
    """Writes the scenario with a trial's settings, and the files that it names."""
    scenario = study.with_(trial)
    for name, content in scenario._native.files:
        if (dir / name).resolve().parent != dir.resolve() or name in ("tune.json", "trials.csv", BEST, NEAREST):
            raise TuneError(f"the scenario's file `{name}` cannot lie beside `{file}`", path=str(dir))
        (dir / name).write_bytes(content)
    (dir / file).write_text(head + scenario.resolved, encoding="utf-8")


def losses_against_given(study: Study, trial: Trial) -> list[str]:
    """Returns, a sentence each, the objectives in which a trial is worse than the scenario as given."""
    given, found = study.given, []
    for one in study.goals.objectives:
        before, after = given.mean(one.name) if given else None, trial.mean(one.name)
        if before is None or after is None or one.loss(after) <= one.loss(before):
            continue
        by = f"{100 * abs(after - before) / abs(before):.2g} % " if before else ""
        found.append(f"Trial {trial.number} is {by}worse in {_label(one)} than the scenario as given: {after:.4g} against {before:.4g}")
    return found


def violations(study: Study, trial: Trial) -> list[str]:
    """Returns the constraints that a trial broke, each with its worst value over the seeds."""
    bounds = {str(c): c for c in study.goals.constraints}
    found = []
    for text in trial.broken:
        if text not in bounds:
            found.append(f"`{text}`")
            continue
        one = bounds[text]
        broke = [seed for seed, names in trial.breaks.items() if text in names]
        seed = max(broke, key=lambda seed: one.excess(trial.runs[seed][one.name]))
        value = trial.runs[seed][one.name]
        unit = (nature(one.name) or ("", ""))[1]
        measured = "missing" if value is None else f"{value:.4g} {unit}".rstrip()
        if value is not None and one.bound:
            measured += f", {100 * abs(value - one.bound) / abs(one.bound):.3g} % off,"
        found.append(f"`{text}`: {one.name} is {measured} under seed {seed} (broken under {len(broke)} of {len(trial.runs)} seeds)")
    return found


def document(study: Study, table: HeldOut | None) -> dict[str, Any]:
    """Returns the content of ``tune.json``."""
    best, least, given = study.best, study.nearest, study.given
    return {
        "schema": SCHEMA,
        "problem": study.kept("problem"),
        "trials": [_trial(trial) for trial in study.trials],
        "front": [trial.number for trial in study.front],
        "best": None if best is None else best.number,
        "nearest": None if least is None else least.number,
        "given": None if given is None else {"runs": given.runs, "broken": given.broken},
        "importance": study.importance(),
        "costs": asdict(study.costs),
        "held_out": None if table is None else {
            "seeds": list(table.seeds),
            "rows": table.frame().to_dicts(),
            "broken": {str(of if of is not None else "given"): table.broken(of) for of in table.runs},
        },
    }


def _trial(trial: Trial) -> dict[str, Any]:
    known = {"number": trial.number, "state": trial.state, "settings": trial.settings, "runs": trial.runs}
    stopped = {"stopped_ns": trial.stopped} if trial.stopped else {}
    reused = {"reused": sorted(trial.reused)} if trial.reused else {}
    return known | stopped | reused | {"broken": trial.broken, **({"reason": trial.reason} if trial.reason else {})}
