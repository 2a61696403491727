"""Two algorithms that share a port."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairrate import _native
from fairrate._scenario import Scenario
from fairrate._sweep import Sweep, sweep

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Coexistence:
    """What two algorithms do to each other.

    Attributes:
        sweep: All runs; ``fairrate.report(sweep, "out")`` writes their report.
        blocks: Names of the two traffic blocks, as in the metrics ``goodput:NAME``.
    """

    sweep: Sweep = field(repr=False)
    blocks: tuple[str, str]

    @property
    def frame(self) -> polars.DataFrame:
        """A row a run: ``case``, ``buffer``, ``seed``, and for each of the two blocks ``NAME``, the goodput of a flow of it over that
        of all flows: 1 is fair. Cases with short flows have no such share. Then the metrics of the study in the units of
        :attr:`Result.units`, with the numbers of the blocks, as ``slowdown-p99:block1`` of the short flows, ``rest:block0`` of the
        long ones, and ``settle-come:block0``, which is missing beside a ``level-come:block0`` where goodput did not settle."""
        import polars

        def row(run: Any) -> dict[str, Any]:
            metrics = run.result.metrics
            found = [metrics.get(f"fair-share:block{number}") for number in (0, 1)]
            shares = {name: None if x is None else x / 100 for name, x in zip(self.blocks, found, strict=True)}
            others = {name: metrics.get(name) for name in _native.coexistence_metrics() if not name.startswith("fair-share:")}
            return {"case": run.line, "buffer": str(run.grid["switch.buffer"]), "seed": run.seed, **shares, **others}

        return polars.DataFrame([row(run) for run in self.sweep], infer_schema_length=None)

    @property
    def shares(self) -> polars.DataFrame:
        """The cells of the heat maps that the report has, a row a cell: ``map``, the arrangement of round-trip times and classes, ``flows``
        of the two, as ``"1:10"``, ``buffer`` as in :attr:`frame` and ``times``, the same over what the path holds; ``share``, the goodput
        of a flow of the first over that of the mean flow, 1 is fair, as the mean over the seeds, with ``low`` and ``high``, its 95 %
        interval; and ``verdict``: ``"less"``, ``"fair"``, ``"more"`` or, where the interval reaches over 0.9 or 1.1, ``"undecided"``.
        :func:`fairrate.plot.heat_map` draws them."""
        import polars

        layout = json.loads(self.sweep.heat_maps or "{}")
        values: dict[tuple[str, str], list[float]] = {}
        for run in self.sweep:
            found = run.result.metrics.get("fair-share:block0")
            if found is not None:
                values.setdefault((run.line, str(run.grid["switch.buffer"])), []).append(found)
        rows = []
        for each in layout.get("maps", []):
            for flows, case in each["rows"]:
                for buffer, times in layout["columns"]:
                    share = _native.coexistence_share(values.get((case, buffer), []))
                    mean, low, high, verdict = share or (None, None, None, None)
                    per_cent = {"share": mean, "low": low, "high": high}
                    parts = {name: None if x is None else x / 100 for name, x in per_cent.items()}
                    place = {"map": each["title"], "flows": flows, "buffer": buffer, "times": float(times.removesuffix(" BDP"))}
                    rows.append({**place, **parts, "verdict": verdict})
        floats = dict.fromkeys(("times", "share", "low", "high"), polars.Float64)
        words = dict.fromkeys(("map", "flows", "buffer", "verdict"), polars.String)
        order = ("map", "flows", "buffer", "times", "share", "low", "high", "verdict")
        return polars.DataFrame(rows, schema={name: {**floats, **words}[name] for name in order})

    @property
    def verdict(self) -> str:
        """What the cases say, as ``fairrate coexist`` prints it."""
        cases: dict[str, tuple[str, str, dict[str, list[float]]]] = {}
        for run in self.sweep:
            _, _, values = cases.setdefault(run.label, (run.line, run.place.point, {}))
            for name in _native.coexistence_metrics():
                value = run.result.metrics.get(name)
                if value is not None:
                    values.setdefault(name, []).append(value)
        return _native.coexistence_verdict(list(self.blocks), list(cases.values()))


def coexist(
    a: str,
    b: str,
    *,
    rate: str = "25Gbps",
    rtt: str = "20us",
    buffers: Sequence[float] = (0.1, 0.3, 1, 3, 10),
    flows: Sequence[str] = ("4:4", "1:10", "10:1"),
    classes: Sequence[int] = (1, 2),
    short: Sequence[float] = (0.3,),
    round_trips: int = 4000,
    seeds: Iterable[int] = (1, 2, 3, 4, 5),
    sets: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Coexistence:
    """Runs two algorithms that share a port, as ``fairrate coexist`` does: with several numbers of flows, the same and another base RTT,
    one class and two, buffers of several sizes, short flows beside long ones, and flows that come and go.

    Args:
        a: An algorithm, as ``"dctcp"``, ``"dctcp:g=0.1"`` or, with a transport, ``"swift/tcp"``.
        b: The other one.
        rate: Rate of all links.
        rtt: Base round-trip time.
        buffers: Buffers, in times of what the path holds.
        flows: Numbers of flows of the two, as ``"1:10"``.
        classes: ``1``: both in one class; ``2``: one for each, with weights by their numbers of flows.
        short: Loads of the port by short flows of either algorithm beside long flows of either; empty for none.
        round_trips: Round trips that are simulated; the second half is measured.
        seeds: Seeds.
        sets: Further values by dotted key, as ``{"switch.pfc": True}``.
        executor: As in :func:`fairrate.sweep`.
        jobs: As in :func:`fairrate.sweep`.
        cache: As in :func:`fairrate.sweep`.
        progress: Whether to show a bar.

    Raises:
        ResultsError: If an algorithm or an option is not understood.
        ScenarioError: If the two do not go together.
        SweepError: If runs failed, once all others are done.
    """
    options = ["--rate", rate, "--rtt", rtt, "--round-trips", str(round_trips)]
    options += ["--buffers", ",".join(map(str, buffers)), "--flows", ",".join(flows)]
    options += ["--classes", ",".join(map(str, classes)), "--short", ",".join(map(str, short))]
    text, networks, variants, sizes, blocks, heat_maps = _native.coexistence(a, b, options)
    with tempfile.TemporaryDirectory() as place:
        for name, network in networks:
            (Path(place) / name).write_text(network)
        path = Path(place) / "coexist.toml"
        path.write_text(text)
        base = Scenario.load(path)
        if sets:
            base = base.with_(sets)
        runs = sweep(
            base,
            variants=variants,
            grid={"switch.buffer": sizes},
            seeds=seeds,
            executor=executor,
            jobs=jobs,
            cache=cache,
            progress=progress,
        )
    runs.heat_maps = heat_maps
    return Coexistence(runs, (blocks[0], blocks[1]))
