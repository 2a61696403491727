"""Results of a run."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from fairrate import _checks, _native
from fairrate._scenario import Scenario
from fairrate._table import Table
from fairrate._tables import Tables


class Result(Tables):
    """The results of a run: a directory as the command line writes it, and its tables.

    Each table is an attribute with the name of its file, as ``result.flows``; it is read when it is first asked for. A result without a directory of its own lies in a temporary one, which goes with
    it; :meth:`save` keeps it.
    """

    def __init__(self, dir: str | os.PathLike[str], label: str | None = None) -> None:
        """Opens a results directory; ``label`` is what figures call the run, its algorithm by default.

        Raises:
            ResultsError: If there are no results in it, or they are damaged.
        """
        self._dir = Path(dir)
        self.summary: dict[str, Any] = json.loads(_native.summary(self._dir))
        self.label = label if label is not None else str(self.summary["cc"])
        self._is_temporary = False

    @classmethod
    def _temporary(cls, dir: Path, label: str | None) -> Result:
        result = cls(dir, label)
        result._is_temporary = True
        weakref.finalize(result, shutil.rmtree, dir, ignore_errors=True)
        return result

    @property
    def dir(self) -> Path:
        """Where the results are."""
        return self._dir

    @cached_property
    def scenario(self) -> Scenario:
        """The resolved scenario."""
        return Scenario.load(self._dir / "scenario.toml")

    def trace(
        self,
        flows: int | Iterable[int] = (),
        ports: str | Iterable[str] = (),
        *,
        start: str = "0ns",
        until: str | None = None,
        limit: str | None = None,
    ) -> Table:
        """Runs the scenario again and returns the steps of its packets, as ``fairrate trace --out FILE.parquet`` writes them.

        The fingerprint is checked. The run uses one thread. The table is in memory: choose flows, ports or a time, or set a ``limit``.
        Ctrl-C ends it.

        Args:
            flows: Numbers of flows, as in the column ``id`` of :attr:`flows`; all by default.
            ports: Ports, as ``tor0->h16``, or nodes, as ``h16``, for all ports to them and from them; all by default.
            start: The trace begins at this time, as ``20us``.
            until: The trace ends before this time; by default with the run.
            limit: The largest size of the file of which the table is made, as ``100MB``: the trace ends with the last step that there is
                room for.

        Returns:
            A row a step, in order of time: ``time_ps``, ``event`` (``queued``, ``sent``, ``dropped`` and others), ``port``, ``flow``,
            ``kind``, ``seq``, ``answers``, ``payload_bytes``, ``size_bytes``, ``class``, ``queue_bytes``, ``marked``, ``cause``.
            docs/trace.md has their meaning. Times are picoseconds.

        Raises:
            ResultsError: If there is no such flow or port, or the run cannot be traced.
            ValueError: If a time or a size is not understood, or the number of a flow is below 0.
            TypeError: If the number of a flow is no whole number.
            KeyboardInterrupt: After Ctrl-C.
        """
        each = flows if isinstance(flows, Iterable) and not isinstance(flows, str) else [flows]
        wanted = [_checks.whole(flow, "a flow", 0, _checks.LARGEST_FLOW) for flow in each]
        at = [ports] if isinstance(ports, str) else list(ports)
        with tempfile.TemporaryDirectory(prefix="fairrate-") as directory:
            file = Path(directory) / "trace.parquet"
            _native.trace(self._dir, file, wanted, at, start, until, limit)
            return Table.read(file)

    def _table(self, name: str) -> Table:
        return Table(_native.Table.of_results(self._dir, name))

    @cached_property
    def metrics(self) -> dict[str, float | None]:
        """The numbers of the report by the names of ``fairrate compare --metric``, in the units of its figures:
        Gb/s, KB, %, and slowdowns as plain ratios. Slowdowns count unfinished flows, too: see :attr:`lower_bounds`.

        With several ``[[traffic]]`` blocks there are numbers of each, by its number and by its name if it has one:
        ``slowdown-p99:block1`` and ``slowdown-p99:incast``."""
        return {name: value for name, value, _, _ in self._measured}

    @cached_property
    def lower_bounds(self) -> frozenset[str]:
        """The names of those :attr:`metrics` that are only lower bounds: unfinished flows count in them with what they have
        taken so far. Reports mark these numbers with ≥."""
        return frozenset(name for name, _, is_bound, _ in self._measured if is_bound)

    @property
    def units(self) -> dict[str, str]:
        """The units of :attr:`metrics` by their names: Gb/s, KB (1,000 bytes), %, base RTTs, packets, flows, or 1 of plain ratios.

        Tables have units of their own: ``result.flows.units``.
        """
        return metric_units() | {name: unit for name, _, _, unit in self._measured}

    @cached_property
    def _measured(self) -> list[tuple[str, float | None, bool, str]]:
        return _native.metrics(self._dir)

    @property
    def fingerprint(self) -> str:
        """Hash of all events: equal exactly if two runs did the same."""
        return str(self.summary["fingerprint"])

    def save(self, dir: str | os.PathLike[str]) -> Result:
        """Writes the directory that the command line would have written, with its report; results there are replaced.

        Returns:
            The results at their new place.

        Raises:
            ResultsError: If the directory has something else in it, or cannot be written.
        """
        if Path(dir).resolve() != self._dir.resolve():
            _native.copy(self._dir, dir)
        _native.publish(dir, self.label, True)
        return Result(dir, self.label)

    def __repr__(self) -> str:
        s = self.summary
        return f"<fairrate.Result of {s['scenario']}: {self.label}, seed {s['seed']}, {s['state']}>"

    def _repr_html_(self) -> str:
        from html import escape

        s = self.summary
        rows = {
            "state": s["state"],
            "goodput": f"{s['goodput_bps'] / 1e9:.3g} Gb/s",
            "flows done": f"{s['finished_flows']:,} of {s['flows']:,}",
            "drops": f"{s['drops']:,}",
            **({"trims": f"{s['trims']:,}"} if s.get("trims") else {}),
            **({"returns": f"{s['returns']:,}"} if s.get("returns") else {}),
            "ECN marks": f"{s['ecn_marks']:,}",
            "PFC pauses": f"{s['pfc_pauses']:,}",
            "fingerprint": s["fingerprint"],
        }
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in rows.items())
        return f"<b>{escape(s['scenario'])}: {escape(self.label)}, seed {s['seed']}</b><table>{cells}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._is_temporary:
            return Result, (self._dir, self.label)
        # A temporary directory is of this machine and of this process, so its files go along.
        files = {p.name: p.read_bytes() for p in self._dir.iterdir() if p.is_file()}
        return _unpacked, (files, self.label)


def _unpacked(files: dict[str, bytes], label: str) -> Result:
    dir = temporary_directory()
    for name, content in files.items():
        (dir / name).write_bytes(content)
    return Result._temporary(dir, label)


def temporary_directory() -> Path:
    """A directory that goes with its result."""
    return Path(tempfile.mkdtemp(prefix="fairrate-"))


def metric_units() -> dict[str, str]:
    """The unit of every metric by its name, and by its name without ``:all``."""
    units = dict(_native.metric_units())
    return units | {name.removesuffix(":all"): unit for name, unit in units.items()}


def summary_unit(name: str) -> str:
    """The unit of a number of ``summary.json``, by its name."""
    for end, unit in (("_ns", "ns"), ("_s", "s"), ("_bps", "bit/s"), ("_bytes", "B")):
        if name.endswith(end):
            return unit
    return "B" if name.startswith("bytes_") else "1"


def load(dir: str | os.PathLike[str]) -> Result:
    """Opens a results directory, of the command line or of :meth:`Result.save`.

    Raises:
        ResultsError: If there are no results in it, or they are damaged.
    """
    return Result(dir)
