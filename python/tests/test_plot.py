"""Figures: what is drawn, not how it looks."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.axes import Axes

import fairrate
from fairrate import Scenario, plot


@pytest.fixture(scope="module")
def sweep() -> fairrate.Sweep:
    scenario = Scenario.load(Path(__file__).parents[2] / "examples/incast10.toml").with_(duration="1.1ms")
    grid = {"traffic.1.bytes": ["20KB"], "switch.dt_alpha": [1.0, 2.0]}
    return fairrate.sweep(scenario, ["powertcp", "hpcc"], grid=grid, seeds=[1, 2])


def test_series_over_time(incast: Scenario) -> None:
    result = fairrate.run(incast)
    axes = plot.queue(result, "tor0->h16")
    assert isinstance(axes, Axes) and axes.get_xlabel() == "time (ms)" and axes.get_ylabel() == "queue (KB)"
    x, y = axes.lines[0].get_data()
    assert max(y) == pytest.approx(result.ports.to_polars()["qlen_bytes"].max() / 1e3) and max(x) <= 1.2
    assert len(plot.rates(result).lines) == 11
    assert plot.windows(result, 0, ax=axes) is axes and len(axes.lines) == 2
    with pytest.raises(KeyError):
        plot.queue(result, "tor9->h1")


def test_a_larger_line_that_comes_later_is_seen_whole(incast: Scenario) -> None:
    runs = [fairrate.run(incast, cc=cc) for cc in ("powertcp", "dctcp")]
    peaks = [run.ports.to_polars()["qlen_bytes"].max() / 1e3 for run in runs]
    assert 1.5 * peaks[0] < peaks[1], "the second line has to be the larger one"
    axes = plot.queue(runs[0], "tor0->h16", label="first")
    plot.queue(runs[1], "tor0->h16", ax=axes, label="second")
    low, high = axes.get_ylim()
    assert low == 0 and peaks[1] <= high
    for draw in (plot.rates, plot.windows):
        axes = draw(runs[0])
        draw(runs[1], ax=axes)
        highest = max(float(max(line.get_ydata(), default=0)) for line in axes.lines)
        assert axes.get_ylim()[0] == 0 and highest <= axes.get_ylim()[1]


def test_a_cdf_ends_at_one() -> None:
    axes = plot.cdf([3, None, 1, 2], label="x", xlabel="n")
    x, y = axes.lines[0].get_data()
    assert (list(x), list(y)) == ([1, 2, 3], [1 / 3, 2 / 3, 1])
    with pytest.raises(ValueError):
        plot.cdf([])


def test_slowdowns_and_bars(sweep: fairrate.Sweep) -> None:
    axes = plot.slowdown(sweep, 0.5)
    assert [line.get_label() for line in axes.lines] == sweep.labels
    assert list(axes.lines[0].get_xdata()) == [30]
    bars = plot.bars(sweep, "slowdown-mean")
    want = [e.mean for e in sweep.estimates("slowdown-mean").values() if e]
    assert [bar.get_height() for bar in bars.patches] == want
    over = plot.over(sweep, "switch.dt_alpha", "goodput", ylabel="goodput (Gb/s)")
    lines = [line for line in over.lines if not str(line.get_label()).startswith("_")]
    assert [line.get_label() for line in lines] == ["powertcp", "hpcc"] and list(lines[0].get_xdata()) == [1.0, 2.0]


def test_the_paper_style_is_left_again() -> None:
    before = mpl.rcParams["font.size"]
    with plot.paper(font_size=6):
        assert (mpl.rcParams["font.size"], mpl.rcParams["pdf.fonttype"]) == (6, 42)
    assert mpl.rcParams["font.size"] == before
