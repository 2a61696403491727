"""Figures on matplotlib. Every function draws on ``ax``, or on new axes, and returns the axes.

    >>> with fairrate.plot.paper():
    ...     fairrate.plot.queue(result).figure.savefig("queue.pdf")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairrate import stats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fairrate._coexist import Coexistence
    from fairrate._result import Result
    from fairrate._metrics import Metric
    from fairrate._sweep import Sweep, SweepRun

PAPER: dict[str, Any] = {
    "figure.figsize": (3.33, 2.2),
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.4,
    "pdf.fonttype": 42,
}
"""Settings of matplotlib for a column of a two-column paper: 3.33 inches wide, fonts of 7 and 8 points, which PDFs embed."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that people with any colour vision tell apart (M. Okabe, K. Ito, 2008)."""

DASHES = ("-", "--", ":", "-.")
"""Styles of lines where there are more than colours: each for as many lines as there are :data:`COLOURS`."""


@contextmanager
def paper(**settings: Any) -> Iterator[None]:
    """Draws in :data:`PAPER` style; ``settings`` are matplotlib's, with ``_`` for the dot, as ``font_size=9``."""
    import matplotlib as mpl
    from cycler import cycler

    more = {key.replace("_", ".", 1): value for key, value in settings.items()}
    style: Any = {**PAPER, "axes.prop_cycle": cycler(color=COLOURS), **more}
    with mpl.rc_context(style):
        yield


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def queue(result: Result, port: str | None = None, *, ax: Axes | None = None, **line: Any) -> Axes:
    """The queue of a port over time, in KB (1,000 bytes) over ms; all probed ports without ``port``.

    ``line`` are arguments of matplotlib's ``plot``, as ``label="HPCC"``.

    Raises:
        KeyError: If no probe has sampled the port.
    """
    return _series(result.ports, "port", port, "qlen_bytes", 1e3, "queue (KB)", ax, line)


def rates(result: Result, flow: int | None = None, *, ax: Axes | None = None, **line: Any) -> Axes:
    """The pacing rates of flows over time, in Gb/s over ms; arguments as of :func:`queue`, for the number of a flow.

    Raises:
        KeyError: If no probe has sampled the flow.
    """
    return _series(result.rates, "flow", flow, "rate_bps", 1e9, "rate (Gb/s)", ax, line)


def windows(result: Result, flow: int | None = None, *, ax: Axes | None = None, **line: Any) -> Axes:
    """The congestion windows of flows over time, in KB (1,000 bytes) over ms; arguments as of :func:`rates`.

    Raises:
        KeyError: If no probe has sampled the flow.
    """
    return _series(result.rates, "flow", flow, "cwnd_bytes", 1e3, "window (KB)", ax, line)


def _series(
    table: Any, by: str, only: Any, column: str, unit: float, label: str, ax: Axes | None, line: Mapping[str, Any]
) -> Axes:
    import polars

    ax = _axes(ax)
    frame = polars.DataFrame(table)
    if only is not None:
        frame = frame.filter(polars.col(by) == only)
        if frame.is_empty():
            raise KeyError(f"no probe has sampled {by} {only!r}")
    for (name,), rows in frame.group_by([by], maintain_order=True):
        ax.plot(rows["t_ns"] / 1e6, rows[column] / unit, **{"label": str(name), **line})
    ax.set(xlabel="time (ms)", ylabel=label)
    # From zero up, without `auto`: further lines on the same axes still move the top.
    ax.set_ylim(bottom=0, auto=None)
    if "label" in line or frame[by].n_unique() > 1:
        ax.legend()
    return ax


def cdf(values: Any, *, ax: Axes | None = None, xlabel: str = "", **line: Any) -> Axes:
    """The share of values, 0 to 1, at or below each one; nulls are left out. Give ``label=`` and the same ``ax`` for several.

    Raises:
        ValueError: If there are no values.
    """
    ax = _axes(ax)
    known = sorted(float(x) for x in values if x is not None)
    if not known:
        raise ValueError("there are no values")
    shares = [(i + 1) / len(known) for i in range(len(known))]
    ax.step(known, shares, where="post", **line)
    ax.set(xlabel=xlabel, ylabel="CDF", ylim=(0, 1))
    if "label" in line:
        ax.legend()
    return ax


def slowdown(
    results: Sweep | Mapping[str, Any] | Result,
    p: float = 0.99,
    *,
    edges_bytes: Sequence[int] = (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000),
    ax: Axes | None = None,
) -> Axes:
    """A percentile of the FCT slowdown by flow size, a line for each label of a sweep or of a dict of results.

    Flows are those of reports: they start within the measuring window, and unfinished ones count with their lower bounds,
    as in :func:`fairrate.stats.by_size`. Flows of all seeds of a label count together. Where a percentile is only a lower
    bound, its point is hollow. A bucket's point is at its upper end; that of the last bucket, which has none, is at the
    size of the label's largest flow. Buckets without flows have no point.

    Raises:
        ValueError: If ``p`` is no share from 0 to 1.
        ResultsError: If a run has not ended: its measuring window is not known.
    """
    import polars

    ax = _axes(ax)
    column = f"p{100 * p:g}"
    for label, runs in _results_by_label(results).items():
        flows = polars.concat([stats.measured(result, "slowdown") for result in runs])
        table = stats.by_size_of(flows, edges_bytes, (p,)).drop_nulls(column)
        table = table.with_columns(polars.col("up_to_bytes").fill_null(flows["bytes"].max()))
        (line,) = ax.plot(table["up_to_bytes"] / 1e3, table[column], marker="o", markersize=3, label=label)
        bounds = table.filter(polars.col("least_bound") <= polars.col(column))
        if not bounds.is_empty():
            style = {**HOLLOW, "color": line.get_color(), "markerfacecolor": ax.get_facecolor(), "gid": BOUNDS}
            above = line.get_zorder() + 0.1
            ax.plot(bounds["up_to_bytes"] / 1e3, bounds[column], label=f"_{BOUNDS}", zorder=above, **style)
    ax.set(xscale="log", yscale="log", xlabel="flow size (KB)", ylabel=f"FCT slowdown, {column}")
    handles, labels = ax.get_legend_handles_labels()
    if any(line.get_gid() == BOUNDS for line in ax.lines):
        from matplotlib.lines import Line2D

        handles.append(Line2D([], [], color="black", markerfacecolor="none", **HOLLOW))
        labels.append(BOUNDS)
    ax.legend(handles, labels)
    return ax


BOUNDS = "at least (unfinished flows)"
"""The words of the legend for hollow points."""

HOLLOW: dict[str, Any] = {"marker": "o", "markersize": 3, "linestyle": "none"}
"""Settings of matplotlib for hollow points."""


def _results_by_label(results: Any) -> dict[str, list[Result]]:
    if hasattr(results, "labels"):
        found: dict[str, list[Result]] = {label: [] for label in results.labels}
        for run in results:
            found[run.label].append(run.result)
        return found
    if isinstance(results, Mapping):
        return {label: [result] for label, result in results.items()}
    return {results.label: [results]}


def bars(sweep: Sweep, metric: Metric, *, ylabel: str | None = None, ax: Axes | None = None) -> Axes:
    """The mean over seeds of a metric, a bar a label, with 95 % bootstrap intervals.

    Raises:
        KeyError: If the metric is not known.
    """

    ax = _axes(ax)
    found = {label: e for label, e in sweep.estimates(metric).items() if e is not None}
    ax.bar(list(found), [e.mean for e in found.values()], color=[COLOURS[i % len(COLOURS)] for i in range(len(found))])
    _intervals(ax, list(range(len(found))), list(found.values()))
    ax.set_ylabel(ylabel or _label(metric))
    if max(map(len, found), default=0) > 10:
        ax.tick_params(axis="x", rotation=30)
    return ax


def over(sweep: Sweep, key: str, metric: Metric, *, ylabel: str | None = None, ax: Axes | None = None) -> Axes:
    """The mean over seeds of a metric over a key of the grid, with 95 % bootstrap intervals.

    There is a line for each algorithm with its changes and, where the grid has further keys with several values, for each
    combination of these, which its label has: ``hpcc bytes=20KB``. Numbers ascend; words are in the order of the grid.

    Raises:
        KeyError: If the metric or the key is not known.
    """
    from fairrate._metrics import value_of

    ax = _axes(ax)
    for i, (name, runs) in enumerate(_lines_over(sweep, key).items()):
        points = []
        for at in dict.fromkeys(run.grid[key] for run in runs):
            by_seed = (value_of(run.result, metric) for run in runs if run.grid[key] == at)
            found = stats.estimate(value for value in by_seed if value is not None)
            if found is not None:
                points.append((at, found))
        # Words, as 20KB and 100KB, stand in the order of the grid: that of the alphabet is another one.
        if all(isinstance(at, int | float) for at, _ in points):
            points.sort(key=lambda point: point[0])
        colour = COLOURS[i % len(COLOURS)]
        style: dict[str, Any] = {"marker": "o", "markersize": 3, "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}
        ax.plot([at for at, _ in points], [e.mean for _, e in points], color=colour, label=name, **style)
        _intervals(ax, [at for at, _ in points], [e for _, e in points], colour)
    ax.set(xlabel=key, ylabel=ylabel or _label(metric))
    ax.legend()
    return ax


def _lines_over(sweep: Sweep, key: str) -> dict[str, list[SweepRun]]:
    """The runs of a sweep by line and by the values of the further keys of the grid that have several.

    Raises:
        KeyError: If a run has no such key.
    """
    values: dict[str, set[Any]] = {}
    for run in sweep:
        if key not in run.grid:
            raise KeyError(f"the grid has no key {key!r}; it has {', '.join(run.grid) or 'none'}")
        for other, value in run.grid.items():
            values.setdefault(other, set()).add(value)
    several = [other for other, found in values.items() if other != key and len(found) > 1]
    ends = [other.rpartition(".")[2] for other in several]
    short = {other: end if ends.count(end) == 1 else other for other, end in zip(several, ends, strict=True)}
    lines: dict[str, list[SweepRun]] = {}
    for run in sweep:
        further = [f"{short[other]}={run.grid[other]}" for other in several if other in run.grid]
        lines.setdefault(" ".join([run.line, *further]), []).append(run)
    return lines


SHARES = ("#2166ac", "#67a9cf", "#d1e5f0", "#ffffff", "#fddbc7", "#ef8a62", "#b2182b")
"""Colours of :func:`heat_map`, from less than a quarter of a fair share to more than four times, as in reports."""


def heat_map(found: Coexistence, map: str | None = None, *, ax: Axes | None = None) -> Axes:
    """What a flow of the first of two algorithms gets of its fair share, in per cent: numbers of flows down, buffers across. Blue is less,
    red is more and white is fair; ``?`` stands where the interval does not decide.

    ``map`` is one of those in :attr:`Coexistence.shares`; the first one without it.

    Raises:
        KeyError: If there is no such map.
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap

    shares = found.shares
    maps = shares["map"].unique(maintain_order=True).to_list()
    title = map or maps[0]
    if title not in maps:
        raise KeyError(f"{title!r} is none of {maps}")
    here = shares.filter(shares["map"] == title)
    down, across = (here[name].unique(maintain_order=True).to_list() for name in ("flows", "times"))
    cells = [here.filter(here["flows"] == flows).to_dicts() for flows in down]
    grid = [[float("nan") if cell["share"] is None else cell["share"] for cell in row] for row in cells]
    ax = _axes(ax)
    norm = BoundaryNorm([0, 0.25, 0.5, 0.9, 1.1, 2, 4, 1e9], len(SHARES))
    ax.imshow(grid, cmap=ListedColormap(SHARES), norm=norm, aspect="auto")
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            mark = "?" if cell["verdict"] == "undecided" else ""
            text = "-" if cell["share"] is None else f"{100 * cell['share']:.3g}{mark}"
            is_dark = cell["share"] is not None and not 0.25 <= cell["share"] <= 4
            ax.text(j, i, text, ha="center", va="center", color="white" if is_dark else "black")
    ax.set_xticks(range(len(across)), [f"{times:g}" for times in across])
    ax.set_yticks(range(len(down)), down)
    ax.set(xlabel="buffer (times of what the path holds)", ylabel=f"flows, {':'.join(found.blocks)}", title=title)
    ax.grid(visible=False)
    return ax


def _label(metric: Metric) -> str:
    """The name of a metric, with its unit if it has one."""
    from fairrate._result import metric_units, summary_unit
    from fairrate._metrics import metric_name

    name = metric_name(metric)
    unit = metric_units().get(name, summary_unit(name))
    return name if unit == "1" or callable(metric) else f"{name} ({unit})"


def _intervals(ax: Axes, places: Sequence[Any], estimates: Sequence[stats.Estimate], colour: str = "black") -> None:
    for place, e in zip(places, estimates, strict=True):
        if e.low is not None and e.high is not None:
            ends = [[e.mean - e.low], [e.high - e.mean]]
            ax.errorbar([place], [e.mean], yerr=ends, color=colour, capsize=2, linewidth=1, fmt="none")
