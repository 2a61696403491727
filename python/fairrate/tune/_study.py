"""Studies: the search for settings, on Optuna."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairrate import _checks, _native
from fairrate._errors import Error, ScenarioError, TuneError
from fairrate._metrics import Metric
from fairrate._result import Result
from fairrate._scenario import Scenario, ScenarioLike, scenario_of
from fairrate.tune import _optuna, _results
from fairrate.tune._goals import Constraint, Goals, Objective, constraints_of
from fairrate.tune._held_out import GIVEN, GIVEN_BOUNDS, HeldOut, held_out
from fairrate.tune._place import checked, claimed, lock, problem_of
from fairrate.tune._runs import Runs
from fairrate.tune._space import Axis, Parameters, axes, settings
from fairrate.tune._trials import SHOWN, Trial, compromise, front, given_trial, nearest, trial_of, written
from fairrate.tune._verdicts import Verdicts
from fairrate.tune._within import Asked, Costs, check_objectives, check_pruner, costs_of, moments_of, times_of

if TYPE_CHECKING:
    import optuna
    import polars
    from matplotlib.axes import Axes

BATCH = 4
"""Trials that are drawn before the first of them is judged. Not the number of jobs: results must not depend on that."""

REFUSED = 10.0
"""The distance from all constraints of settings that no scenario can have."""

TIMES = "times of questions"
"""The name under which a study keeps the simulated times at which runs are judged, in ns."""

Sampler = str | Callable[[int], Any]
"""``tpe``, ``random``, or a function of a seed that makes a sampler of Optuna."""


class Study:
    """A search for settings of a scenario that make metrics small or large, and keep constraints.

    All trials see the same flows. A trial goes up a ladder of rungs: it runs under one seed, two seeds, four, and so on up to all.
    At each rung it ends if it broke a constraint (``infeasible``) or if others were better (``pruned``). With times in ``prune`` a run
    ends at one of them if others were better then.
    """

    def __init__(
        self,
        scenario: ScenarioLike,
        params: Parameters,
        objectives: Sequence[Objective | Metric],
        constraints: Iterable[Constraint | str] = (),
        *,
        allow_unfinished: bool = False,
        cc: str | None = None,
        seeds: Iterable[int] | None = None,
        dir: str | os.PathLike[str] | None = None,
        sampler: Sampler = "tpe",
        pruner: Any = None,
        prune: bool | str | Sequence[str] = True,
        seed: int = 1,
        batch: int = BATCH,
    ) -> None:
        """Makes a study, or opens the one in ``dir``. Runs nothing.

        Args:
            scenario: What to tune, or the path of its file.
            params: Ranges and choices by key, as ``{"switch.ecn.kmin": Range("20KB", "2MB", log=True)}``. ``None`` is the suggested
                range of an algorithm's parameter, and a tenth to ten times the scenario's value for other keys. A list of keys,
                as ``["dcqcn.ai", "dcqcn.g"]``, is short for ``None`` for each.
            objectives: Metrics, each as ``"slowdown-p99:short"`` or ``"max:goodput"``, or functions of a result to make small.
            constraints: Bounds that a setting has to keep under every seed, as ``"pfc-pauses=0"`` or ``"goodput>=50Gbps"``.
            allow_unfinished: Leaves out the constraint ``unfinished=0``, which a study otherwise has. An objective that is only a
                lower bound, since flows did not finish, breaks a constraint all the same.
            cc: Algorithm in place of the scenario's, as ``"dcqcn"`` or ``"dcqcn:hai=1Gbps"``.
            seeds: Seeds of a complete trial; four from the scenario's on by default.
            dir: Directory in which the study is kept. A study of the same problem in it goes on.
            sampler: ``"tpe"``, ``"random"``, or a function that makes a sampler of Optuna from a seed.
            pruner: A pruner of Optuna, for one objective; its median pruner by default. With several objectives a trial is pruned
                if more than half of the trials at its rung are on better fronts.
            prune: Whether to prune at all; or the simulated times at which runs are judged while they go on as well, as
                ``"25%,50%,75%"`` of the time that the scenario as given takes, or ``["200us", "1ms"]``. Objectives are then slowdowns,
                query times and shares of unfinished flows.
            seed: Seed of the sampler.
            batch: Trials that are drawn before the first of them is judged.

        Raises:
            TuneError: If a parameter, an objective or a constraint is wrong, or another study or something else is in ``dir``.
            ScenarioError: If the scenario refuses a parameter or a seed.
            TypeError: If a seed is no whole number.
            Error: If Optuna is not installed.
        """
        _optuna.require()
        self._lock: Any = None
        self.scenario = _with_cc(scenario_of(scenario), cc)
        self.seeds = tuple(dict.fromkeys(_checks.seeds_of(seeds))) if seeds is not None else tuple(self.scenario.seed + i for i in range(4))
        if not self.seeds or not objectives or isinstance(objectives, str):
            raise TuneError("a study needs a list of objectives and of seeds", suggestion="write objectives=['slowdown-p99']")
        if batch < 1:
            raise TuneError(f"a batch of {batch} trials is none", suggestion="give 1 or more")
        self._axes = axes(self.scenario, params)
        given = tuple(Objective.of(one) for one in objectives)
        self.goals = Goals(given, tuple(constraints_of(constraints, allow_unfinished)))
        self.goals.check(self.scenario._native.traffic_blocks)
        self.dir = None if dir is None else Path(dir)
        self._sampler, self._pruner, self._seed, self._batch = sampler, pruner, seed, batch
        self._prunes, self._moments = prune is not False, moments_of(prune)
        if self._moments:
            check_objectives(given, self.scenario)
            check_pruner(pruner)
        self._sampler_of(0)
        with _optuna.quiet():
            self._study = self._opened()

    def run(
        self,
        trials: int,
        *,
        executor: Executor | None = None,
        jobs: int | None = None,
        cache: str | os.PathLike[str] | None = None,
        threads: int = 1,
        progress: bool = False,
    ) -> Study:
        """Goes on until there are ``trials`` trials, those before included.

        Trials that an interruption left open are done first. The same trials come out for any number of jobs.

        Args:
            trials: Trials in all.
            executor: Where to run, as for :func:`fairrate.sweep`; processes of this machine by default.
            jobs: Runs at the same time; by default as many as there are cores.
            cache: Directory of results, as for :func:`fairrate.sweep`. Without it only the numbers of runs are kept.
            threads: Threads of a run.
            progress: Whether to show a bar on stderr, or in the notebook.

        Returns:
            The study itself.

        Raises:
            TuneError: If the scenario as given has no such metric, or another process works in the directory.
            ValueError: If ``trials``, ``jobs`` or ``threads`` is out of range.
            TypeError: If one of them is no whole number.
            KeyboardInterrupt: After Ctrl-C. The study is valid, and goes on with another call.
        """
        trials = _checks.whole(trials, "`trials`", 0)
        with self._alone(), Runs(executor, jobs, cache, threads) as runs, _bar(self, trials, progress) as show:
            self._measure_base(runs)
            while (batch := self._next_batch(trials)) and self._climb(batch, runs):
                show()
        return self

    @property
    def trials(self) -> list[Trial]:
        """All trials, in the order of their numbers."""
        return [trial_of(frozen, self.goals) for frozen in self._study.get_trials(deepcopy=False)]

    @property
    def front(self) -> list[Trial]:
        """The Pareto set: complete trials that are not worse than another one in everything.

        It is the best trial, for one objective. Equal settings are in it once, as the first trial that has them.
        """
        return front(self.trials, self.goals.objectives)

    @property
    def best(self) -> Trial | None:
        """The best trial, or of several objectives the one of :attr:`front` that is nearest to the best of each.

        ``None`` as long as no trial is complete.
        """
        return compromise(self.front, self.goals.objectives)

    @property
    def given(self) -> Trial | None:
        """The scenario as given, as a trial without settings, with the constraints it breaks; ``None`` before the first run."""
        kept = self.kept(GIVEN)
        return None if kept is None else given_trial(kept, self.kept(GIVEN_BOUNDS) or {}, self.goals)

    @property
    def nearest(self) -> Trial | None:
        """The infeasible trial that is least off all constraints together; ``None`` if every trial kept them."""
        return nearest(self.trials)

    @property
    def costs(self) -> Costs:
        """The simulated time of the trials, and what pruning within runs has saved."""
        return costs_of(self.trials)

    @property
    def optuna_study(self) -> optuna.Study:
        """The study of Optuna below."""
        return self._study

    @property
    def params(self) -> list[Axis]:
        """The parameters, checked."""
        return list(self._axes)

    def with_(self, trial: Trial) -> Scenario:
        """Returns the scenario with a trial's settings."""
        return self.scenario.with_(trial.settings)

    def frame(self) -> polars.DataFrame:
        """A row a trial: its state, its number of seeds, its settings, the mean of every metric, the simulated time at which a run was
        stopped, and the constraints it broke.

        Settings are in bytes (``_bytes``), bits per second (``_bps``) and nanoseconds (``_ns``); metrics in the units of figures.
        """
        return _results.frame(self)

    def importance(self) -> dict[str, dict[str, float]]:
        """Returns the importance of every parameter for each objective, between 0 and 1, by PED-ANOVA of the complete trials.

        Empty with fewer than four complete trials. An objective that has the same value in all of them is left out.
        """
        return _results.importance(self)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draws the trials by their first two objectives with the Pareto set; for one objective, the best value over the trials."""
        return _results.plot(self, ax)

    def held_out(
        self,
        seeds: Iterable[int] | None = None,
        *,
        most: int = 3,
        executor: Executor | None = None,
        jobs: int | None = None,
        cache: str | os.PathLike[str] | None = None,
        threads: int = 1,
    ) -> HeldOut:
        """Runs the found settings and the scenario as given under seeds that no trial has seen.

        Without a best trial it is :attr:`nearest` that is run.

        Args:
            seeds: The seeds; ten from 1 above the largest one of the trials by default.
            most: Trials of the Pareto set at most; :attr:`best` and the ends of the front are among them.
            executor: As for :meth:`run`, and the others likewise.

        Raises:
            TuneError: If a seed is one of the trials'.
        """
        with self._alone(), Runs(executor, jobs, cache, threads) as runs:
            return held_out(self, seeds, most, runs)

    def save(self, dir: str | os.PathLike[str], table: HeldOut | None = None) -> None:
        """Writes ``tune.json``, ``trials.csv``, ``pareto.svg``, and ``best.toml`` if there is a best trial.

        Without one it writes ``nearest.toml``, whose first lines name the constraints that it breaks.

        Raises:
            TuneError: If the directory contains something else than a study.
        """
        _results.save(self, Path(dir), table)

    def __repr__(self) -> str:
        kept = self.trials
        states = ", ".join(f"{sum(t.state == s for t in kept)} {s}" for s in dict.fromkeys(t.state for t in kept))
        return f"<fairrate.tune.Study of {self.scenario.name}: {len(kept)} trials{f' ({states})' if states else ''}>"

    def kept(self, name: str) -> Any:
        """Returns a value that the study has kept; ``None`` if there is none."""
        return self._study.user_attrs.get(name)

    def keep(self, name: str, value: Any) -> None:
        """Keeps a value in the study."""
        self._study.set_user_attr(name, value)

    def _opened(self) -> optuna.Study:
        import optuna

        storage: Any = None
        if self.dir is not None:
            claimed(self.dir)
            storage = f"sqlite:///{self.dir.resolve() / 'study.db'}"
        one = len(self.goals.objectives) == 1
        ways: list[Any] = ["minimize" if o.direction == "min" else "maximize" for o in self.goals.objectives]
        # The problem is held to the one that is kept before anything else, the directions included.
        problem = problem_of(self._axes, self.goals, self.scenario, self.seeds, self._about_search())
        if storage is not None:
            checked(storage, problem, self.dir)
        pruner = self._pruner or optuna.pruners.MedianPruner(n_startup_trials=5)
        study = optuna.create_study(
            storage=storage,
            study_name="fairrate",
            load_if_exists=True,
            directions=ways,
            pruner=pruner if one and self._prunes else optuna.pruners.NopPruner(),
        )
        if "problem" not in study.user_attrs:
            study.set_user_attr("problem", problem)
        return study

    def _about_search(self) -> dict[str, Any]:
        sampler = self._sampler if isinstance(self._sampler, str) else getattr(self._sampler, "__name__", "sampler")
        pruner = type(self._pruner).__name__ if self._pruner is not None else "default"
        within = {"times": [str(moment) for moment in self._moments]} if self._moments else {}
        pruning = pruner if self._prunes else "none"
        return {"sampler": sampler, "pruning": pruning, "seed": self._seed, "batch": self._batch} | within

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other processes out of the directory, and Optuna from reporting every step."""
        with lock(self.dir), _optuna.quiet():
            yield

    def _sampler_of(self, number: int) -> Any:
        """Makes the sampler of a trial. Each has a seed of its own, so that a study that goes on draws what it would have drawn."""
        import optuna

        seed = (self._seed * 1_000_003 + number) % 2**32
        if callable(self._sampler):
            return self._sampler(seed)
        if self._sampler == "random":
            return optuna.samplers.RandomSampler(seed=seed)
        if self._sampler != "tpe":
            raise TuneError(f"there is no sampler `{self._sampler}`", suggestion="there are `tpe` and `random`")
        options: dict[str, Any] = {"seed": seed, "multivariate": True, "constant_liar": True}
        if not _optuna.has_set_constraint():
            options["constraints_func"] = lambda trial: trial.user_attrs["excess"]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            return optuna.samplers.TPESampler(**options)

    def _measure_base(self, runs: Runs) -> None:
        """Runs the scenario as given under all seeds: an objective that one of them lacks is found before any trial."""
        if self.kept(GIVEN) is not None:
            return
        outcomes = runs.all([(self.scenario, {}, seed) for seed in self.seeds])
        given: dict[str, dict[str, float | None]] = {}
        bounds: dict[str, list[str]] = {}
        for seed, outcome in zip(self.seeds, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            assert isinstance(outcome, Result)
            given[str(seed)], bounds[str(seed)] = self.goals.measure(outcome)
            for one in self.goals.objectives:
                if given[str(seed)][one.name] is None:
                    message = f"`{self.scenario.name}` has no `{one.name}` under seed {seed}"
                    help = "it may lack flows of that size, a probe or deadlines; let flows arrive for longer"
                    raise TuneError(message, suggestion=help)
        self.keep(GIVEN_BOUNDS, bounds)
        if self._moments:
            first = outcomes[0]
            assert isinstance(first, Result)
            self.keep(TIMES, times_of(self._moments, first.summary["sim_s"] * 1e9))
        self.keep(GIVEN, given)

    def _next_batch(self, most: int) -> list[optuna.trial.Trial]:
        """Returns the trials that an interruption left open, and new ones up to a whole batch."""
        import optuna

        known = self._study.get_trials(deepcopy=False)
        batch: list[optuna.trial.Trial] = []
        for frozen in known:
            if frozen.state != optuna.trial.TrialState.RUNNING:
                continue
            if "settings" in frozen.user_attrs:
                batch.append(optuna.trial.Trial(self._study, frozen._trial_id))
            else:
                # It was cut off while it was drawn.
                self._study.tell(frozen.number, state=optuna.trial.TrialState.FAIL)
        first = batch[0].number if batch else len(known)
        for number in range(len(known), min(first - first % self._batch + self._batch, most)):
            self._study.sampler = self._sampler_of(number)
            trial = self._study.ask({axis.key: axis.distribution() for axis in self._axes})
            trial.set_user_attr("settings", settings(self._axes, trial.params))
            batch.append(trial)
        return batch

    def _climb(self, batch: list[optuna.trial.Trial], runs: Runs) -> bool:
        """Takes trials up the rungs until each has ended."""
        alive = {trial.number: trial for trial in batch if self._is_possible(trial)}
        first, times_ns = batch[0].number, tuple(self.kept(TIMES) or ())
        before = first - first % self._batch
        verdicts = Verdicts(self._study, self.goals, self.seeds, self._pruner, self._prunes, times_ns, before)
        for rung in rungs(len(self.seeds)):
            self._measure(list(alive.values()), self.seeds[:rung], runs, verdicts)
            # Judged in the order of their numbers, whichever was done first.
            judged = {number: verdicts.of(trial, rung) for number, trial in alive.items()}
            for number, verdict in judged.items():
                if verdict is not None:
                    self._end(alive.pop(number), verdict)
        return True

    def _is_possible(self, trial: optuna.trial.Trial) -> bool:
        """Ends a trial whose settings no scenario can have together."""
        try:
            self.scenario.with_(trial.user_attrs["settings"])
        except ScenarioError as error:
            trial.set_user_attr("refused", error.message)
            self._end(trial, "PRUNED")
            return False
        return True

    def _measure(
        self, trials: list[optuna.trial.Trial], seeds: Sequence[int], runs: Runs, verdicts: Verdicts
    ) -> None:
        """Runs trials under those of the seeds that they lack. Equal settings are run once under a seed."""
        left = [(t, s) for t in trials for s in seeds if not _has_run(t, s)]
        while left:
            known = self._study.get_trials(deepcopy=False)
            left = [(t, s) for t, s in left if not verdicts.take_over(t, s, known)]
            first: dict[tuple[str, int], tuple[optuna.trial.Trial, int]] = {}
            for trial, seed in left:
                first.setdefault((written(trial.user_attrs["settings"]), seed), (trial, seed))
            self._simulate(list(first.values()), runs, verdicts)
            left = [each for each in left if each not in first.values()]

    def _simulate(self, lacking: list[tuple[optuna.trial.Trial, int]], runs: Runs, verdicts: Verdicts) -> None:
        """Runs each trial under the seed beside it."""
        wanted = [(self.scenario, t.user_attrs["settings"], s) for t, s in lacking]

        def note(i: int, outcome: Any) -> None:
            trial, seed = lacking[i]
            if isinstance(outcome, Error):
                trial.set_user_attr("failed", f"seed {seed}: {outcome.message}")
                return
            if isinstance(outcome, BaseException):
                raise outcome
            result = outcome
            if isinstance(outcome, Asked):
                result = outcome.result
                stopped_ns = verdicts.times_ns[len(outcome.values) - 1] if result is None else None
                trial.set_user_attr(f"{SHOWN}{seed}", {"values": outcome.values, "stopped_ns": stopped_ns})
            if result is not None:
                values, bounds = self.goals.measure(result)
                end_ns = result.summary["sim_s"] * 1e9
                trial.set_user_attr(f"seed {seed}", {"values": values, "bounds": bounds, "end_ns": end_ns})

        runs.all(wanted, note, [verdicts.ask(t, s) for t, s in lacking] if verdicts.times_ns else [])

    def _end(self, trial: optuna.trial.Trial, state: str) -> None:
        import optuna

        own = trial_of(self._study.get_trials(deepcopy=False)[trial.number], self.goals)
        # The sampler keeps away from what is refused as from what breaks constraints.
        excess = REFUSED if "refused" in trial.user_attrs else own.excess
        if _optuna.has_set_constraint():
            trial.set_constraint("constraints", excess)
        else:
            trial.set_user_attr("excess", [excess])
        self._study.sampler = self._sampler_of(trial.number)
        values = None
        if state == "COMPLETE":
            values = [mean for one in self.goals.objectives if (mean := own.mean(one.name)) is not None]
        self._study.tell(trial.number, values, state=optuna.trial.TrialState[state])


def _has_run(trial: optuna.trial.Trial, seed: int) -> bool:
    """Returns ``True`` if a trial has been run under a seed, to the end or until it was stopped."""
    attrs = trial.user_attrs
    return f"seed {seed}" in attrs or attrs.get(f"{SHOWN}{seed}", {}).get("stopped_ns") is not None


def rungs(n: int) -> list[int]:
    """Returns the numbers of seeds after which trials are judged: 1, 2, 4 and so on, and ``n``."""
    found = [1]
    while found[-1] * 2 < n:
        found.append(found[-1] * 2)
    return found if n == 1 else [*found, n]


def _with_cc(scenario: Scenario, cc: str | None) -> Scenario:
    if cc is None:
        return scenario
    (column,) = _native.columns([cc], [], [], False, [])
    return Scenario(scenario._native.with_sets(column.sets))


@contextlib.contextmanager
def _bar(study: Study, trials: int, wanted: bool) -> Iterator[Callable[[], None]]:
    if not wanted:
        yield lambda: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=trials, initial=min(len(study.trials), trials), desc="trials", unit="trial") as bar:

        def show() -> None:
            best = study.best
            if best is not None:
                bar.set_postfix({o.name: f"{best.mean(o.name):.4g}" for o in study.goals.objectives})
            bar.update(len(study.trials) - bar.n)

        yield show
