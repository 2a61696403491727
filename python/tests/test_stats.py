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
    """A data frame has finished flows alone: the third is endless, and the fourth, of 5 bytes, counts as unfinished."""
    flows = polars.DataFrame({"bytes": [10_000, 10_001, None, 5], "slowdown": [2.0, 3.0, 4.0, None]})
    table = stats.by_size(flows, p=(0.5,), edges_bytes=[10_000])
    assert table.columns == ["above_bytes", "up_to_bytes", "flows", "unfinished", "mean", "p50", "least_bound"]
    assert table.rows() == [(0, 10_000, 1, 1, 2.0, 2.0, None), (10_000, None, 1, 0, 3.0, 3.0, None)]


@pytest.fixture(scope="module")
def cut() -> fairrate.Result:
    """A run with a measuring window, which ends when flows are under way."""
    return fairrate.run(
        Scenario.from_dict(
            {
                "duration": "2ms",
                "topology": {"kind": "star", "hosts": 8, "rate": "25Gbps"},
                "transport": {"cc": "dctcp"},
                "traffic": [{"kind": "poisson", "sizes": "websearch", "load": 0.8, "link_set": "host-links"}],
                "measure": {"from": "500us", "until": "1900us"},
            },
            name="cut",
        )
    )


SIZES = ["short", "10-100KB", "medium", "long"]


def test_by_size_of_a_result_is_what_its_report_says(cut: fairrate.Result) -> None:
    """Flows start within the window, and unfinished ones count with their bounds: the numbers are those of metrics, to the bit."""
    table = stats.by_size(cut)
    for row, size in zip(table.iter_rows(named=True), SIZES, strict=True):
        for statistic in ("mean", "p50", "p95", "p99", "p99.9"):
            name = f"slowdown-{statistic}:{size}"
            assert row[statistic] == cut.metrics[name], name
            is_bound = row["least_bound"] is not None and (statistic == "mean" or row["least_bound"] <= row[statistic])
            assert is_bound == (name in cut.lower_bounds), name
    # Without them the numbers were of other flows.
    finished = stats.by_size(cut.flows)
    assert table["unfinished"].sum() > 0 and finished["flows"].sum() > table["flows"].sum()
    assert finished["p99"][-1] != table["p99"][-1] and finished["least_bound"].null_count() == 4


@pytest.mark.parametrize("value", ["slowdown", "fct_ns"])
def test_by_size_is_what_the_summary_says(cut: fairrate.Result, value: str) -> None:
    table = stats.by_size(cut, value)
    for row, bucket in zip(table.iter_rows(named=True), cut.summary["fct"], strict=False):
        assert (row["flows"], row["unfinished"]) == (bucket["flows"], bucket["unfinished"]) and row["flows"] > 0
        # The summary has the end of the run in picoseconds, tables have nanoseconds.
        got = [row[name] for name in ("mean", "p50", "p99", "p99.9")]
        assert got == pytest.approx([bucket[value][name] for name in ("mean", "p50", "p99", "p99.9")], rel=1e-3)


def test_a_run_that_has_not_ended_has_no_window(incast: Scenario) -> None:
    result = fairrate.run(incast)
    result.summary["state"] = "running"
    with pytest.raises(fairrate.ResultsError, match="has not ended"):
        stats.by_size(result)
