"""One scenario under several algorithms, seeds and points of a grid."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from fairrate import _checks, _native, stats
from fairrate._controller import Algorithm, Controller, class_of, name_of, plug_in, written
from fairrate._errors import ScenarioError, SweepError
from fairrate._metrics import Metric, check_names, metric_name, value_of
from fairrate._result import Result, metric_units, summary_unit
from fairrate._run import run_labelled
from fairrate._scenario import Scenario, ScenarioLike, scenario_of, toml
from fairrate._workers import MOST_TRIES, Workers

if TYPE_CHECKING:
    import polars

Tags = list[tuple[str, int | float | str]]


@dataclass(frozen=True)
class Place:
    """Where a run is on the grid, in the words of reports.

    Attributes:
        point: Its point in words, as ``load=0.6``; empty without a grid.
        grid: Its point, as pairs of dotted key and value as written.
        place: Its position on a line of a figure, as pairs of short key and plain value.
    """

    point: str = ""
    grid: tuple[tuple[str, str], ...] = ()
    place: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class SweepRun:
    """A run of a sweep.

    Attributes:
        label: Algorithm with its changes and its point of the grid: what the run has in common with those of other seeds.
        line: Algorithm with its changes alone.
        cc: Name of the algorithm.
        seed: Its seed.
        grid: Its point of the grid, by dotted key.
        result: What came out.
        taken_over: Whether it was there already.
        place: Its point of the grid in the words of reports, for :func:`fairrate.report`.
    """

    label: str
    line: str
    cc: str
    seed: int
    grid: dict[str, Any]
    result: Result = field(repr=False)
    taken_over: bool = False
    place: Place = field(default=Place(), repr=False)


class Sweep(Sequence[SweepRun]):
    """The runs of a sweep, in the order of grid, algorithms and seeds."""

    heat_maps: str | None = None
    """The layout of the heat maps of its report, as ``compare.json`` has it, where it is a study of :func:`fairrate.coexist`."""

    def __init__(self, runs: Iterable[SweepRun], refused: Mapping[str, str] | None = None) -> None:
        self._runs = list(runs)
        self._refused = dict(refused or {})

    @property
    def refused(self) -> dict[str, str]:
        """The columns that were left out by ``skip_refused``, each with the reason."""
        return dict(self._refused)

    @overload
    def __getitem__(self, index: int) -> SweepRun: ...
    @overload
    def __getitem__(self, index: slice) -> Sweep: ...
    def __getitem__(self, index: int | slice) -> SweepRun | Sweep:
        return Sweep(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[SweepRun]:
        return iter(self._runs)

    @property
    def labels(self) -> list[str]:
        """The columns, each once."""
        return list(dict.fromkeys(run.label for run in self._runs))

    def where(self, **conditions: Any) -> Sweep:
        """The runs with these values of ``label``, ``line``, ``cc``, ``seed`` or, by dotted key, of the grid.

        Raises:
            AttributeError: If there is no such key.
        """

        def has(run: SweepRun, key: str, value: Any) -> bool:
            return bool((run.grid[key] if key in run.grid else getattr(run, key)) == value)

        return Sweep(run for run in self._runs if all(has(run, *c) for c in conditions.items()))

    def values(self, metric: Metric) -> dict[str, dict[int, float]]:
        """A metric by label and seed, in the unit that :attr:`units` says; runs that have no such number are left out.

        Raises:
            KeyError: If the metric is not known.
        """
        found: dict[str, dict[int, float]] = {label: {} for label in self.labels}
        for run in self._runs:
            value = value_of(run.result, metric)
            if value is not None:
                found[run.label][run.seed] = value
        return found

    def estimates(self, metric: Metric) -> dict[str, stats.Estimate | None]:
        """The mean over seeds of a metric, with its bootstrap interval, by label; ``None`` of a label without such a number.

        Raises:
            KeyError: If the metric is not known.
        """
        return {label: stats.estimate(by_seed.values()) for label, by_seed in self.values(metric).items()}

    def difference(self, label: str, base: str, metric: Metric) -> stats.Difference | None:
        """How the mean of a metric of ``label`` differs from that of ``base``, paired by seed; ``None`` without pairs.

        Raises:
            KeyError: If there is no such label or metric.
        """
        values = self.values(metric)
        for name in (label, base):
            if name not in values:
                raise KeyError(f"no run is called {name!r}; there are {', '.join(values)}")
        seeds = [seed for seed in values[label] if seed in values[base]]
        return stats.difference([values[label][s] for s in seeds], [values[base][s] for s in seeds])

    def frame(self, *metrics: Metric) -> polars.DataFrame:
        """A row a run: its label, algorithm, seed and point of the grid, its fingerprint, and the metrics asked for.

        Args:
            metrics: Names of :attr:`Result.metrics` or of numbers of ``summary.json``, or functions of a result, whose column has the
                name of the function.

        Returns:
            A data frame with a column a metric; :attr:`units` has the units. A run without such a number has a null.

        Raises:
            KeyError: If a metric is not known.
            ValueError: If two columns have the same name, as those of two lambdas have.
        """
        import polars

        check_names(metrics, {"label", "cc", "seed", "fingerprint", *(key for run in self._runs for key in run.grid)})

        def row(run: SweepRun) -> dict[str, Any]:
            known = {"label": run.label, "cc": run.cc, "seed": run.seed, **run.grid, "fingerprint": run.result.fingerprint}
            return known | {metric_name(m): value_of(run.result, m) for m in metrics}

        return polars.DataFrame([row(run) for run in self._runs])

    @property
    def units(self) -> dict[str, str]:
        """The unit of every column that has one, by its name: of :meth:`frame`, :meth:`flows`, :meth:`ports` and :meth:`rates`.

        Metrics are in Gb/s, KB (1,000 bytes), µs, %, base RTTs, packets, flows, or 1 of plain ratios; tables in ns, B and bit/s.
        Columns that name a run, as ``label`` and the keys of the grid, have none.
        """
        found = metric_units()
        for run in self._runs[:1]:
            numbers = (name for name, value in run.result.summary.items() if isinstance(value, int | float))
            found |= {name: summary_unit(name) for name in numbers if name != "seed"}
            for table in ("flows", "ports", "rates"):
                found |= dict(_native.Table.units_of(run.result.dir / f"{table}.parquet"))
        # Points of the grid may have traffic blocks of their own.
        for run in {run.label: run for run in self._runs}.values():
            found |= run.result.units
        return found

    def flows(self) -> polars.DataFrame:
        """The flows of all runs. Columns ``label``, ``cc``, ``seed`` and those of the grid say which run a row is of."""
        return self._stacked(lambda result: result.flows)

    def ports(self) -> polars.DataFrame:
        """The samples of ports of all runs, as :meth:`flows`."""
        return self._stacked(lambda result: result.ports)

    def rates(self) -> polars.DataFrame:
        """The samples of flows of all runs, as :meth:`flows`."""
        return self._stacked(lambda result: result.rates)

    def _stacked(self, table: Callable[[Result], Any]) -> polars.DataFrame:
        import polars

        def part(run: SweepRun) -> polars.DataFrame:
            tags = {"label": run.label, "cc": run.cc, "seed": run.seed, **run.grid}
            frame = polars.DataFrame(table(run.result))
            return frame.with_columns(**{key: polars.lit(value) for key, value in tags.items()})

        return polars.concat([part(run) for run in self._runs], how="diagonal_relaxed")

    def __repr__(self) -> str:
        return f"<fairrate.Sweep of {len(self)} runs: {', '.join(self.labels)}>"

    def _repr_html_(self) -> Any:
        return self.frame()._repr_html_()


@dataclass
class _Plan:
    """A run that is to be done."""

    scenario: Scenario
    controller: type[Controller] | None
    column: _native.Column
    label: str
    line: str
    seed: int
    dir: Path | None
    found: Path | None
    # Questions that may stop it, with a method `run`.
    ask: Any = None
    tries: int = 0

    @property
    def tags(self) -> Tags:
        return list(self.column.tags)

    @property
    def by_value(self) -> Scenario | _OfClass:
        """The scenario as workers get it."""
        if self.controller is None:
            return self.scenario
        native = self.scenario._native
        return _OfClass(self.controller, native.resolved, native.name, native.files)

    def run(self, result: Result, taken_over: bool) -> SweepRun:
        column, cc = self.column, self.scenario.cc
        place = Place(column.point, tuple(column.grid), tuple(column.place))
        return SweepRun(self.label, self.line, cc, self.seed, dict(column.tags), result, taken_over, place)


def sweep(
    scenario: ScenarioLike,
    cc: Sequence[Algorithm] = (),
    *,
    variants: Sequence[str] = (),
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: Iterable[int] | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    threads: int = 1,
    progress: bool = False,
    skip_refused: bool = False,
) -> Sweep:
    """Runs a scenario under every algorithm, at every point of a grid, with every seed. All see the same flows.

    Every run is checked before the first one starts. Runs go on processes of this machine; a process that is killed costs the run
    it was at, which is done again.

    Args:
        scenario: What to run, or the path of its file.
        cc: Algorithms, as ``"powertcp"`` or ``"powertcp:gamma=0.5"``, and classes of :class:`fairrate.Controller`, as ``Aimd`` or
            ``Aimd.with_(gain=0.5)``, whose runs are not kept in a cache; the scenario's if there is none.
        variants: Algorithms with other keys of the scenario, as ``'swift: switch.pfc=false, transport.rto="1ms"'``, besides ``cc``; with
            a label of its own, as ``"lossy = swift: switch.pfc=false"``.
        grid: Values by dotted key, as ``{"traffic.0.load": [0.4, 0.6]}``; several keys multiply. Parameters of a class in ``cc`` are
            keys too, as ``transport.Aimd.gain``.
        seeds: Seeds; the scenario's if there are none.
        executor: Where to run instead: any ``concurrent.futures.Executor``, or ``client.get_executor()`` of dask. Results travel back
            by value, so that workers need none of this machine's files.
        jobs: Runs at the same time; so many that every thread of a run has a core, by default.
        cache: Directory of results. Complete runs of the same scenario by the same fairrate in it are taken over, whichever command
            made them, and new ones go where ``fairrate compare`` looks for them.
        threads: Threads of a run.
        progress: Whether to show a bar on stderr, or in the notebook.
        skip_refused: Whether to go on without algorithms, variants and points of the grid that the scenario refuses; :attr:`Sweep.refused`
            has them.

    Raises:
        ScenarioError: If runs cannot be done so; it names all of them. Nothing was run.
        ValueError: If ``jobs`` or ``threads`` is out of range.
        TypeError: If one of them, or a seed, is no whole number.
        SweepError: If runs failed, once all others are done.
        KeyboardInterrupt: After Ctrl-C. Complete runs are in the cache.
    """
    threads, jobs = _checks.threads_of(threads), _checks.jobs_of(jobs)
    scenario = scenario_of(scenario)
    places = _native.Cache(cache, scenario.name) if cache is not None else None
    plans, refused = _plans(scenario, cc, variants, grid or {}, seeds, places, skip_refused)
    done = {id(plan): plan.run(Result(plan.found, plan.label), True) for plan in plans if plan.found is not None}
    failures: list[tuple[str, int, BaseException]] = []
    with _Bar(len(plans), len(done), progress) as advance:
        for plan, outcome in _run_all([p for p in plans if p.found is None], executor, jobs, threads):
            if isinstance(outcome, BaseException):
                failures.append((plan.label, plan.seed, outcome))
            else:
                done[id(plan)] = plan.run(_kept(plan, outcome), False)
            advance()
    got = Sweep((done[id(plan)] for plan in plans if id(plan) in done), refused)
    if failures:
        first = f"{failures[0][0]} seed {failures[0][1]}: {failures[0][2]}"
        message = f"{len(failures)} of {len(plans)} runs failed; the first: {first}"
        raise SweepError(message, code="run::failed", failures=failures, sweep=got)
    return got


def _plans(
    scenario: Scenario,
    cc: Sequence[Algorithm],
    variants: Sequence[str],
    grid: Mapping[str, Sequence[Any]],
    seeds: Iterable[int] | None,
    places: _native.Cache | None,
    skip_refused: bool = False,
) -> tuple[list[_Plan], dict[str, str]]:
    if isinstance(cc, str):
        raise ScenarioError(f"`cc` is a list of algorithms, not {cc!r}", suggestion=f"write cc=[{cc!r}]")
    if isinstance(variants, str):
        raise ScenarioError(f"`variants` is a list, not {variants!r}", suggestion=f"write variants=[{variants!r}]")
    for key, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            message = f"the grid has a list of values for each key, not {values!r}"
            raise ScenarioError(message, key=key, suggestion=f"write [{values!r}]")
    axes = [(key, [toml(value, key) for value in values]) for key, values in grid.items()]
    for key, texts in axes:
        if not texts:
            raise ScenarioError("the grid has no value for this key", key=key, suggestion="give at least one, or leave the key out")
    wanted: list[int | None] = [*_checks.seeds_of(seeds)] if seeds is not None else [None]
    classes = _classes(cc)
    own = {name: plug_in(controller) for name, controller in classes.items()}
    plans: list[_Plan] = []
    refused: dict[str, ScenarioError] = {}
    columns = _native.columns([written(c) for c in cc], list(variants), axes, seeds is not None, list(own.values()))
    for column in columns:
        controller = classes.get(column.cc or "")
        # The other algorithms do not know parameters of a class.
        others = tuple(f"transport.{name}." for name in classes if name != column.cc)
        sets = [(key, value) for key, value in column.sets if not key.startswith(others)]
        base, of_column = scenario._native, []
        try:
            for seed in wanted:
                all_sets = [*sets, *([("seed", toml(seed))] if seed is not None else [])]
                native = base.with_sets(all_sets) if controller is None else base.with_plug_in(own[column.cc or ""], all_sets)
                one = Scenario(native)
                label, line, name = column.names(one.cc, seed)
                dir, found = places.place(name, native) if places is not None and controller is None else (None, None)
                of_column.append(_Plan(one, controller, column, label, line, one.seed, dir, found))
        except ScenarioError as error:
            refused[column.label or column.cc or scenario.cc] = error
            continue
        plans += of_column
    if refused and not (skip_refused and plans):
        raise _refusal(refused, len(columns))
    left_out = {label: error.message for label, error in refused.items()}
    told = [f"left out: {label}: {reason}" for label, reason in left_out.items()]
    for message in dict.fromkeys([*told, *(m for plan in plans for m in plan.scenario.warnings)]):
        warnings.warn(message, stacklevel=3)
    return plans, left_out


def _refusal(refused: Mapping[str, ScenarioError], n_columns: int) -> ScenarioError:
    """The error of a sweep some of whose columns are refused; the scenario's own if all are, for the same reason."""
    first = next(iter(refused.values()))
    if len(refused) == 1 == n_columns or (len(refused) == n_columns and len({e.message for e in refused.values()}) == 1):
        return first
    each = "; ".join(f"{label}: {error.message}" for label, error in refused.items())
    leave = ["leave them out, or go on without them by skip_refused=True"] if len(refused) < n_columns else []
    help = "; ".join([*([first.suggestion] if first.suggestion else []), *leave])
    place = {"key": first.key, "path": first.path, "line": first.line, "column": first.column}
    message = f"{len(refused)} of {n_columns} columns are refused: {each}"
    return ScenarioError(message, code="sweep::refused", suggestion=help, others=list(refused.values()), **place)


def _classes(cc: Sequence[Algorithm]) -> dict[str, type[Controller]]:
    """The classes among algorithms, by the name that results call them by."""
    found: dict[str, type[Controller]] = {}
    for controller in filter(None, map(class_of, cc)):
        name = name_of(controller)
        if found.setdefault(name, controller) is not controller:
            raise ScenarioError(f"two classes are called `{name}`", suggestion="give one of them another name")
    return found


@dataclass(frozen=True)
class _OfClass:
    """A scenario under an algorithm in Python, as a worker gets it: by value, with the class."""

    controller: type[Controller]
    text: str
    name: str
    files: list[tuple[str, bytes]]


def _work(
    scenario: Scenario | _OfClass, label: str, tags: Tags, threads: int, out: Path | None, ask: Any = None
) -> Any:
    """What a worker does. A run that is asked for something has no place of its own: it may be stopped."""
    if isinstance(scenario, _OfClass):
        algorithm = plug_in(scenario.controller)
        native = _native.Scenario.with_files(scenario.text, scenario.name, scenario.files, algorithm)
    else:
        native = scenario._native
    if ask is not None:
        return ask.run(native, label, tags, threads)
    result = run_labelled(native, label, tags, threads, False, out)
    if out is not None:
        _native.publish(out, label, False)
    return result


def _kept(plan: _Plan, result: Result) -> Result:
    """The result where the cache has it."""
    if plan.dir is None or result.dir == plan.dir:
        return result
    _native.copy(result.dir, plan.dir)
    _native.publish(plan.dir, plan.label, False)
    return Result(plan.dir, plan.label)


def _run_all(
    plans: list[_Plan], executor: Executor | None, jobs: int | None, threads: int
) -> Iterator[tuple[_Plan, Any]]:
    if not plans:
        return
    workers = None
    if executor is None:
        executor = workers = Workers(min(jobs or max(1, (os.cpu_count() or 1) // threads), len(plans)))
    is_local = isinstance(executor, Workers)

    def submit(plan: _Plan) -> Future[Any]:
        plan.tries += 1
        out = plan.dir if is_local else None
        return executor.submit(_work, plan.by_value, plan.label, plan.tags, threads, out, plan.ask)

    pending = {submit(plan): plan for plan in plans}
    try:
        while pending:
            future = next(as_completed(pending))
            plan = pending.pop(future)
            error = future.exception()
            if _is_lost(error) and not is_local and plan.tries < MOST_TRIES:
                pending[submit(plan)] = plan
                continue
            yield plan, error if error is not None else future.result()
    except BaseException:
        for future in pending:
            future.cancel()
        raise
    finally:
        if workers is not None:
            workers.shutdown(cancel_futures=bool(pending))


def _is_lost(error: BaseException | None) -> bool:
    """Whether a worker died, rather than its run. Dask has an exception of its own for it."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


class _Bar:
    """A bar over all runs."""

    def __init__(self, n: int, done: int, wanted: bool) -> None:
        self._bar: Any = None
        if wanted:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=n, initial=done, desc="runs", unit="run")

    def __enter__(self) -> Callable[[], None]:
        return lambda: self._bar.update(1) if self._bar is not None else None

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
