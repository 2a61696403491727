"""The program ``fairrate-tune``: ``fairrate tune`` where the package is installed."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from fairrate._errors import Error, ScenarioError, TuneError
from fairrate._scenario import Scenario
from fairrate.tune._held_out import HeldOut, seeds_of
from fairrate.tune._results import BEST, LEAST_FOR_IMPORTANCE, NEAREST, document, is_constant, losses_against_given, violations
from fairrate.tune._space import Parameter, full_key, parse_param
from fairrate.tune._study import BATCH, Study
from fairrate.tune._trials import Trial

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes, as those of ``fairrate``."""

EXAMPLE = """\
example:
  fairrate tune fabric.toml --cc dcqcn \\
    --param 'switch.ecn.kmin=20KB..2MB:log' --param 'switch.ecn.kmax=1.5..10:of=switch.ecn.kmin' \\
    --param dcqcn.ai --param 'transport.recovery=go-back-n|selective-repeat' \\
    --objective slowdown-p99:short --objective slowdown-p99:long --constraint pfc-pauses=0 \\
    --trials 60 --seeds 1..4 --held-out 11..20 --out tuned

The same command goes on where an interrupted one stopped. docs/tune.md explains what it does.
"""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="fairrate tune",
        description="Searches for settings of a scenario that make metrics small or large, and keep constraints.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("scenario", help="scenario file")
    add("--param", action="append", default=[], metavar="KEY=RANGE", help="KEY=LOW..HIGH[:log][:of=KEY], KEY=A|B|C, or KEY alone for the suggested range")
    add("--objective", action="append", default=[], metavar="METRIC", help="metric to make better; or min:METRIC, max:METRIC")
    add("--constraint", action="append", default=[], metavar="BOUND", help="METRIC=NUMBER, METRIC<=NUMBER or METRIC>=NUMBER")
    add("--allow-unfinished", action="store_true", help="leave out the constraint unfinished=0")
    add("--cc", metavar="NAME", help="algorithm in place of the scenario's, as dcqcn or dcqcn:hai=1Gbps")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="another value of a key, as switch.pfc=false")
    add("--trials", type=int, default=60, metavar="N", help="trials in all (60)")
    add("--seeds", metavar="SEEDS", help="seeds of a complete trial, as 1..4 (four)")
    add("--held-out", metavar="SEEDS", help="seeds of the table, as 11..20 (the ten above those of the trials)")
    add("--out", metavar="DIR", help="directory of the study (runs/NAME-tune)")
    add("--cache", metavar="DIR", help="directory in which complete runs are found and kept, as runs")
    add("--jobs", type=int, metavar="N", help="runs at the same time (one a core)")
    add("--threads", type=int, default=1, metavar="N", help="threads of a run (1)")
    add("--sampler", choices=["tpe", "random"], default="tpe", help="how values are drawn (tpe)")
    add("--seed", type=int, default=1, metavar="N", help="seed of the sampler (1)")
    add("--batch", type=int, default=BATCH, metavar="N", help=f"trials that are drawn at once ({BATCH})")
    add("--prune", metavar="TIMES", help="judge runs while they go on as well: at shares of the simulated time of the scenario as given, as "
        "25%%,50%%,75%%, or at simulated times, as 200us,1ms")
    add("--no-pruning", action="store_true", help="run every trial that keeps the constraints under all seeds")
    add("--quiet", action="store_true", help="no progress")
    add("--json", action="store_true", help="print tune.json in place of the table")
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code."""
    given = parser().parse_args(words)
    try:
        return _run(given)
    except (ScenarioError, TuneError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED


def _run(given: argparse.Namespace) -> int:
    if not given.objective:
        raise TuneError("there is no objective", suggestion="write --objective slowdown-p99:short, or another metric")
    if given.trials < 1 or (given.jobs is not None and given.jobs < 1) or not 1 <= given.threads <= 1024:
        raise TuneError("--trials, --jobs and --threads are at least 1")
    if given.no_pruning and given.prune is not None:
        raise TuneError("--prune and --no-pruning exclude each other", suggestion="leave one of them out")
    scenario = Scenario.load(given.scenario)
    if given.set:
        scenario = Scenario(scenario._native.with_sets([_change(text) for text in given.set]))
    params: dict[str, Parameter] = {}
    for text in given.param:
        key, parameter = parse_param(text)
        key = full_key(key)
        if key in params:
            raise TuneError(f"--param gives `{key}` twice", suggestion="leave one of them out")
        params[key] = parameter
    study = Study(
        scenario,
        params,
        given.objective,
        given.constraint,
        allow_unfinished=given.allow_unfinished,
        cc=given.cc,
        seeds=None if given.seeds is None else parse_seeds(given.seeds),
        dir=Path(given.out) if given.out else Path("runs") / f"{scenario.name}-tune",
        sampler=given.sampler,
        prune=given.prune if given.prune is not None else not given.no_pruning,
        seed=given.seed,
        batch=given.batch,
    )
    # Before the search, not after it.
    held_out = seeds_of(study, None if given.held_out is None else parse_seeds(given.held_out))
    return _search(study, given, held_out)


def _search(study: Study, given: argparse.Namespace, held_out: tuple[int, ...]) -> int:
    assert study.dir is not None
    how = {"jobs": given.jobs, "cache": given.cache, "threads": given.threads}
    table: HeldOut | None = None
    code = 0
    try:
        study.run(given.trials, progress=not given.quiet and sys.stderr.isatty(), **how)
        if study.best is not None or study.nearest is not None:
            table = study.held_out(held_out, **how)
        if study.best is None:
            code = FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
        print("interrupted: the same command goes on from here", file=sys.stderr)
    study.save(study.dir, table)
    if given.json:
        print(json.dumps(document(study, table), indent=1, ensure_ascii=False))
    else:
        print(summary(study, table))
    return code


def summary(study: Study, table: HeldOut | None) -> str:
    """Returns what the program prints."""
    kept = study.trials
    states = ", ".join(f"{sum(t.state == s for t in kept)} {s}" for s in dict.fromkeys(t.state for t in kept))
    lines = [f"{study.scenario.name}: {len(kept)} trials: {states or 'none'}"]
    lines.append(f"objectives {', '.join(map(str, study.goals.objectives))}")
    costs = study.costs
    if costs.stopped:
        ran = f"{costs.simulated_ns / 1e6:.4g} ms in {costs.runs + costs.stopped} runs"
        lines.append(f"simulated {ran}; {costs.stopped} of them were stopped while they went on, which saved about {costs.saved_ns / 1e6:.4g} ms")
    reused = sum(bool(trial.reused) for trial in kept)
    if reused:
        have = "trial has" if reused == 1 else "trials have"
        lines.append(f"{reused} {have} the settings of an earlier one, whose runs were not done again")
    if study.goals.constraints:
        lines.append(f"constraints {', '.join(map(str, study.goals.constraints))}")
    best = study.best
    if best is None:
        lines += ["", *_no_best(study)]
    else:
        front = study.front
        several = f"Pareto set: {len(front)} trials; {best.number} is nearest to the best of each"
        lines += ["", "Best trial" if len(front) == 1 else several]
        lines += [f"  {trial.number}: {_values(study, trial)}; {trial}" for trial in front]
        lines += [f"{sentence}." for sentence in losses_against_given(study, best)]
        lines += _given(study)
        lines += _infeasible(study)
    importance = study.importance()
    n_complete = sum(trial.state == "complete" for trial in kept)
    for one in study.goals.objectives:
        if n_complete >= LEAST_FOR_IMPORTANCE and is_constant(study, one):
            lines += ["", f"Importance for {one.name}: none, all {n_complete} complete trials have the same value"]
    for name, parts in importance.items():
        shares = ", ".join(f"{key} {100 * part:.0f} %" for key, part in sorted(parts.items(), key=lambda each: -each[1]))
        lines += ["", f"Importance for {name}: {shares}"]
    if table is not None:
        lines += ["", str(table)]
    scenario = [BEST] if best is not None else [NEAREST] if study.nearest is not None else []
    where = ", ".join([*scenario, "tune.json", "trials.csv", "pareto.svg"])
    return "\n".join([*lines, "", f"{study.dir}: {where}"])


def _values(study: Study, trial: Trial) -> str:
    """Returns a trial's means of the objectives, in words."""
    lower = {name for names in trial.bounds.values() for name in names}

    def one(name: str) -> str:
        mean = trial.mean(name)
        return f"{name} missing" if mean is None else f"{name} {'≥ ' if name in lower else ''}{mean:.4g}"

    return ", ".join(one(objective.name) for objective in study.goals.objectives)


def _given(study: Study) -> list[str]:
    """Returns the values of the scenario as given, and the constraints that it breaks."""
    given = study.given
    if given is None:
        return []
    lines = ["", f"As given: {_values(study, given)}"]
    return lines + [f"  it breaks {one}" for one in violations(study, given)]


def _no_best(study: Study) -> list[str]:
    least = study.nearest
    if least is None:
        return ["No trial is complete", *_given(study)]
    lines = ["No trial keeps every constraint: no setting that was tried is a solution, and there is no best.toml", *_given(study), ""]
    lines.append(f"Nearest, trial {least.number}: {_values(study, least)}; {least}")
    lines += [f"  it breaks {one}" for one in violations(study, least)]
    unfinished = None if study.given is None else study.given.mean("unfinished")
    if unfinished:
        lines.append(f"The scenario as given leaves {unfinished:,.0f} flows unfinished.")
        lines.append('Let flows drain: stop = "all-flows-done" with a longer duration, and `stop` in the traffic.')
    return lines


def _infeasible(study: Study) -> list[str]:
    """Returns how far trials were off the constraints, a line a constraint: how many broke it, and the nearest of them."""
    tried = [trial for trial in study.trials if trial.state == "infeasible"]
    lines = [""] if tried else []
    for name in dict.fromkeys(name for trial in tried for name in trial.broken):
        broke = [trial for trial in tried if name in trial.broken]
        least = min(broke, key=lambda trial: (trial.excess, trial.number))
        how = next(one for one in violations(study, least) if one.startswith(f"`{name}`"))
        lines.append(f"{len(broke)} of {len(study.trials)} trials break {how} (trial {least.number}, the nearest)")
    return lines


def _change(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise TuneError(f"`{text}` of --set changes no key", suggestion="write KEY=VALUE, as switch.pfc=false")
    return key.strip(), value.strip()


def parse_seeds(text: str) -> list[int]:
    """Reads ``3``, ``1..5`` or ``1,4,7``.

    Raises:
        TuneError: If the text has another form.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        last = last.removeprefix("=") if dots else first
        if not first.isdigit() or not last.isdigit() or not 0 <= int(last) - int(first) < 10_000:
            raise TuneError(f"`{part}` is no seed", suggestion="write 3, 1..5 or 1,4,7")
        found += range(int(first), int(last) + 1)
    return list(dict.fromkeys(found))


def entry() -> None:
    """Runs the program as a script."""
    warnings.filterwarnings("ignore", category=UserWarning, module=r"fairrate\..*")
    # As Ctrl-C, so that the best so far is printed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())


if __name__ == "__main__":
    entry()
