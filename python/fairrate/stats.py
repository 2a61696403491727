"""The statistics of fairrate's reports, by the same code.

Values are any iterable of numbers; polars series and numpy arrays are. :func:`by_size` of a result has the same flows as
its report, too, and so the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairrate import _native
from fairrate._errors import ResultsError
from fairrate._result import Result

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        n: Seeds.
        mean: Arithmetic mean.
        low: Lower end of its 95 % bootstrap interval; ``None`` with fewer than two seeds.
        high: Upper end.
    """

    n: int
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Difference:
    """How a mean differs from another one, seed by seed.

    Attributes:
        n: Pairs.
        mean: Mean of the differences.
        low: Lower end of its 95 % bootstrap interval; ``None`` with fewer than two pairs.
        high: Upper end.
        ratio: The mean over the other one; ``None`` if that is zero.
        ratio_low: Lower end of the ratio's interval.
        ratio_high: Upper end.
        is_clear: Whether there are five pairs or more, and both the bootstrap's interval and Student's lie on one side of zero.
    """

    n: int
    mean: float
    low: float | None
    high: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    is_clear: bool


def percentile(values: Iterable[float], p: float) -> float | None:
    """The nearest-rank percentile: the smallest value with at least the share ``p`` (0 to 1) at or below it.

    Always a value that occurred; ``None`` without values.

    Raises:
        ValueError: If ``p`` is no share from 0 to 1.
    """
    return _native.percentile(_floats(values), _shares([p]))[0]


def percentiles(values: Iterable[float], p: Sequence[float]) -> list[float | None]:
    """Several :func:`percentile` of the same values.

    Raises:
        ValueError: If one of ``p`` is no share from 0 to 1.
    """
    return _native.percentile(_floats(values), _shares(p))


def mean(values: Iterable[float]) -> float | None:
    """The arithmetic mean; ``None`` without values."""
    return _native.mean(_floats(values))


def jain(shares: Iterable[float]) -> float | None:
    """Jain's fairness index: 1 when all shares are equal, 1/n when one takes everything; ``None`` if all are zero."""
    return _native.jain(_floats(shares))


def student_half_width(values: Iterable[float]) -> float | None:
    """Half the width of the 95 % interval of a mean by Student's t; ``None`` with fewer than two values."""
    return _native.student_half_width(_floats(values))


def estimate(values: Iterable[float]) -> Estimate | None:
    """The mean of one value a seed, with its 95 % bootstrap interval; ``None`` without values.

    Draws are seeded: the same values give the same interval.
    """
    found = _native.estimate(_floats(values))
    return None if found is None else Estimate(found[0], found[1], *(found[2] or (None, None)))


def difference(values: Iterable[float], base: Iterable[float]) -> Difference | None:
    """How ``values`` differ from ``base``, paired by their order, with a 95 % bootstrap interval; ``None`` without pairs.

    Raises:
        ValueError: If there are not as many of one as of the other.
    """
    found = _native.difference(list(zip(_floats(values), _floats(base), strict=True)))
    if found is None:
        return None
    n, mean, ends, ratio, ratio_ends, is_clear = found
    (low, high), (ratio_low, ratio_high) = ends or (None, None), ratio_ends or (None, None)
    return Difference(n, mean, low, high, ratio, ratio_low, ratio_high, is_clear)


SIZES_BYTES = (10_000, 100_000, 1_000_000)
"""Upper ends of the size buckets of reports: those of PowerTCP's text, with the gap between short and medium a bucket of its own."""


def by_size(
    flows: Result | Any,
    value: str = "slowdown",
    *,
    edges_bytes: Sequence[int] = SIZES_BYTES,
    p: Sequence[float] = (0.5, 0.95, 0.99, 0.999),
) -> polars.DataFrame:
    """Percentiles of a column of flows by their size.

    Of a :class:`fairrate.Result` it takes the flows of the report: those that start within the measuring window. An
    unfinished flow counts with its lower bound: the completion time or slowdown that it would have if it finished at the
    end of the run, and at least that of the flow alone. With the edges of reports the slowdowns are those of
    :attr:`Result.metrics`.

    Of a table or a data frame, as ``Result.flows`` and ``Sweep.flows()``, it takes finished flows alone, whenever they
    started: a table says neither the window nor the end of the run. Where ``unfinished`` is not 0, these numbers are too
    good.

    Args:
        flows: A result; or a table or data frame that has the columns ``bytes`` and ``value``.
        value: The column, as ``slowdown`` or ``fct_ns``.
        edges_bytes: Upper ends of the buckets, ascending, each in its bucket; a last bucket takes larger flows.
        p: Shares, 0 to 1.

    Returns:
        A row a bucket: ``above_bytes``, ``up_to_bytes`` (null: no end), ``flows`` (those that have a value),
        ``unfinished`` (those without one), ``mean``, ``p50`` and so on, and ``least_bound``: the least lower bound that
        counts (null: none does). With one, the mean is a lower bound, and so is each percentile that is not below it.
        Endless flows are in no bucket.

    Raises:
        ValueError: If one of ``p`` is no share from 0 to 1.
        ResultsError: If the result is of a run that has not ended: its window is not known.
    """
    return by_size_of(measured(flows, value) if isinstance(flows, Result) else _known(flows, value), edges_bytes, p)


def by_size_of(flows: polars.DataFrame, edges_bytes: Sequence[int], p: Sequence[float]) -> polars.DataFrame:
    """The table of :func:`by_size`, of flows with ``bytes``, ``value`` and ``bound``; the last two may be null."""
    import polars

    p = _shares(p)
    rows = []
    for above, up_to in zip([0, *edges_bytes], [*edges_bytes, None], strict=True):
        inside = polars.col("bytes") > above
        if up_to is not None:
            inside &= polars.col("bytes") <= up_to
        here = flows.filter(inside)
        bounds = here.filter(polars.col("value").is_null())["bound"]
        # In ascending order, as reports add them up: sums of another order have other last bits.
        values = polars.concat([here["value"].drop_nulls(), bounds.drop_nulls()]).sort().to_list()
        row: dict[str, Any] = {"above_bytes": above, "up_to_bytes": up_to}
        row |= {"flows": len(here) - len(bounds), "unfinished": len(bounds), "mean": mean(values)}
        names = (f"p{100 * share:g}" for share in p)
        row |= dict(zip(names, percentiles(values, p), strict=True))
        rows.append(row | {"least_bound": bounds.min()})
    return polars.DataFrame(rows, infer_schema_length=None, schema_overrides={"least_bound": polars.Float64})


def _known(flows: Any, value: str) -> polars.DataFrame:
    """The flows of a table, without bounds."""
    import polars

    frame = polars.DataFrame(flows).select("bytes", value=polars.col(value).cast(polars.Float64))
    return frame.drop_nulls("bytes").with_columns(bound=polars.lit(None, polars.Float64))


def measured(result: Result, value: str) -> polars.DataFrame:
    """The finite flows that start within the measuring window of a result, and lower bounds of the unfinished ones.

    Raises:
        ResultsError: If the run has not ended.
    """
    import polars

    if result.summary["state"] == "running":
        message = "the run has not ended, or was killed, so that its measuring window is not known"
        raise ResultsError(message, path=str(result.dir), suggestion="give the finished flows, as by_size(result.flows)")
    window, end_ns = result.summary["measured"], result.summary["sim_s"] * 1e9
    start_ns, ideal_ns = polars.col("start_ns"), polars.col("ideal_fct_ns")
    open_ns = end_ns - start_ns.cast(polars.Float64)
    least_ns = polars.max_horizontal(open_ns, ideal_ns.cast(polars.Float64))
    # As `at_least` in fairrate-report/src/load.rs. Columns that are not of completion times have no bounds.
    bounds = {"slowdown": (open_ns / ideal_ns.clip(1)).clip(1.0), "fct_ns": least_ns, "fct_ack_ns": least_ns}
    bound = bounds.get(value, polars.lit(None, polars.Float64))
    frame = polars.DataFrame(result.flows).filter(start_ns.is_between(window["from_ns"], window["until_ns"]))
    frame = frame.filter(polars.col("bytes").is_not_null() & (polars.col(value).is_not_null() | (open_ns >= 0)))
    return frame.select("bytes", value=polars.col(value).cast(polars.Float64), bound=bound)


def _floats(values: Iterable[float]) -> list[float]:
    return [float(x) for x in values]


def _shares(p: Iterable[float]) -> list[float]:
    """Returns shares as floats.

    Raises:
        ValueError: If one is not from 0 to 1.
    """
    found = [float(share) for share in p]
    for share in found:
        if not 0 <= share <= 1:
            instead = f": write {round(share / 100, 9):g} for the percentile {share:g}" if 1 < share <= 100 else ""
            raise ValueError(f"percentiles are shares from 0 to 1, which {share:g} is not{instead}")
    return found
