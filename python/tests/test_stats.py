"""Statistics: numbers worked by hand."""

from __future__ import annotations

import numpy
import polars
import pytest

import fairrate
from fairrate import Scenario, stats


def test_percentiles_are_nearest_rank() -> None:
    # ceil(.3 * 5) = 2, ceil(.5 * 5) = 3.
    values = [35.0, 20, 15, 50, 40]
    assert stats.percentiles(values, [0.3, 0.5, 1]) == [20, 35, 50]
    assert stats.percentile(polars.Series(values), 0.5) == 35 == stats.percentile(numpy.array(values), 0.5)
    assert stats.percentile([], 0.5) is None


@pytest.mark.parametrize("p", [99, 1.0001, -0.1, float("nan"), float("inf")])
def test_a_percentile_is_a_share(p: float) -> None:
    """A share is from 0 to 1: 99 is none, and the percentile of it was the largest value, without a word."""
    flows = polars.DataFrame({"bytes": [1, 2], "slowdown": [1.0, 2.0]})
    calls = [
        lambda: stats.percentile([1, 2], p),
        lambda: stats.percentiles([1, 2], [0.5, p]),
        lambda: stats.percentiles([], [p]),
        lambda: stats.by_size(flows, p=[p]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"shares from 0 to 1, which {p:g} is not"):
            call()
    with pytest.raises(ValueError, match="which 99.9 is not: write 0.999 for the percentile 99.9"):
        stats.percentile([1], 99.9)
    assert stats.percentiles([1, 2], [0, 1]) == [1, 2]


def test_jain_and_means() -> None:
    # (1 + 2 + 3)^2 / (3 * 14).
    assert stats.jain([1, 2, 3]) == 36 / 42
    assert (stats.jain([]), stats.mean([]), stats.mean([1, 2])) == (None, None, 1.5)
    # t of one degree of freedom, 12.706, times the standard error, 1.
    assert stats.student_half_width([1, 3]) == pytest.approx(12.706)


def test_estimates_and_differences() -> None:
    # Means of two draws from {1, 3}: 1 in a quarter of cases, 3 in another.
    assert stats.estimate([1, 3]) == stats.Estimate(2, 2.0, 1.0, 3.0)
    assert stats.estimate([4]) == stats.Estimate(1, 4.0, None, None) and stats.estimate([]) is None
    got = stats.difference([11, 23, 32], [10, 20, 30])
    assert got is not None
    assert (got.n, got.mean, got.ratio, got.low, got.high, got.is_clear) == (3, 2.0, 1.1, 1.0, 3.0, False)
    with pytest.raises(ValueError):
        stats.difference([1], [1, 2])


def test_by_size() -> None:
    flows = polars.DataFrame({"bytes": [10_000, 10_001, None, 5], "slowdown": [2.0, 3.0, 4.0, None]})
    table = stats.by_size(flows, p=(0.5,), edges_bytes=[10_000])
    assert table.rows() == [(0, 10_000, 1, 2.0, 2.0), (10_000, None, 1, 3.0, 3.0)]


def test_by_size_is_what_the_summary_says(incast: Scenario) -> None:
    result = fairrate.run(incast.with_({"traffic.1.bytes": "20KB"}))
    table = stats.by_size(result.flows)
    for row, bucket in zip(table.iter_rows(named=True), result.summary["fct"], strict=False):
        assert row["flows"] == bucket["flows"]
        if bucket["slowdown"]:
            assert (row["p99"], row["p99.9"]) == (bucket["slowdown"]["p99"], bucket["slowdown"]["p99.9"])
