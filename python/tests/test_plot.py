"""Figures: what is drawn, not how it looks."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.mark.parametrize("draw", [plot.queue, plot.rates, plot.windows])
def test_a_larger_line_on_the_same_axes_is_seen_whole(incast: Scenario, draw: Callable[..., Axes]) -> None:
    small = fairrate.run(incast, cc="powertcp")
    large = fairrate.run(incast.with_(**{"topology.host_rate": "100Gbps"}), cc="dctcp")
    axes = draw(small)
    assert draw(large, ax=axes) is axes
    highest = max(max(line.get_ydata()) for line in axes.lines)
    bottom, top = axes.get_ylim()
    assert bottom == 0 and highest <= top
    # Both are seen in the other order, too, and limits that the caller has set stay.
    axes = draw(large)
    assert draw(small, ax=axes).get_ylim()[1] >= highest
    axes.set_ylim(top=1)
    assert draw(large, ax=axes).get_ylim() == (0, 1)


def test_all_figures_show_all_of_a_second_set(sweep: fairrate.Sweep) -> None:
    axes = plot.cdf([1, 2], label="a")
    plot.cdf([50, 60], label="b", ax=axes)
    assert axes.get_xlim()[1] >= 60
    for draw in (plot.slowdown, lambda sweep, ax=None: plot.over(sweep, "switch.dt_alpha", "queue-p99", ax=ax)):
        axes = draw(sweep.where(line="powertcp"))
        draw(sweep.where(line="hpcc"), ax=axes)
        highest = max(max(line.get_ydata()) for line in axes.lines)
        lowest = min(min(line.get_ydata()) for line in axes.lines)
        bottom, top = axes.get_ylim()
        assert bottom <= lowest and highest <= top


def test_a_cdf_ends_at_one() -> None:
    axes = plot.cdf([3, None, 1, 2], label="x", xlabel="n")
    x, y = axes.lines[0].get_data()
    assert (list(x), list(y)) == ([1, 2, 3], [1 / 3, 2 / 3, 1])
    with pytest.raises(ValueError):
        plot.cdf([])


def test_slowdowns_and_bars(sweep: fairrate.Sweep) -> None:
    with pytest.raises(ValueError, match="write 0.99 for the percentile 99"):
        plot.slowdown(sweep, 99)
    axes = plot.slowdown(sweep, 0.5)
    assert [line.get_label() for line in axes.lines] == sweep.labels
    assert list(axes.lines[0].get_xdata()) == [30]
    bars = plot.bars(sweep, "slowdown-mean")
    want = [e.mean for e in sweep.estimates("slowdown-mean").values() if e]
    assert [bar.get_height() for bar in bars.patches] == want
    assert bars.get_ylabel() == "slowdown-mean" and plot.bars(sweep, "goodput").get_ylabel() == "goodput (Gb/s)"
    over = plot.over(sweep, "switch.dt_alpha", "goodput", ylabel="goodput (Gb/s)")
    lines = [line for line in over.lines if not str(line.get_label()).startswith("_")]
    assert [line.get_label() for line in lines] == ["powertcp", "hpcc"] and list(lines[0].get_xdata()) == [1.0, 2.0]


def test_intervals_over_a_key_are_over_seeds_alone() -> None:
    """Each value of a further key has a line of its own: a mean over both sizes would be of neither."""
    scenario = Scenario.load(Path(__file__).parents[2] / "examples/incast10.toml").with_(duration="1.1ms")
    grid = {"traffic.1.bytes": ["20KB", "30KB"], "switch.dt_alpha": [2.0, 1.0]}
    sweep = fairrate.sweep(scenario, ["powertcp", "hpcc"], grid=grid, seeds=[1, 2])
    axes = plot.over(sweep, "switch.dt_alpha", "slowdown-mean")
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    assert [line.get_label() for line in lines] == [f"{cc} bytes={size}" for size in ("20KB", "30KB") for cc in ("powertcp", "hpcc")]
    estimates = sweep.estimates("slowdown-mean")
    for line in lines:
        assert list(line.get_xdata()) == [1.0, 2.0]
        want = [estimates[f"{line.get_label()} dt_alpha={at}"] for at in ("1.0", "2.0")]
        assert list(line.get_ydata()) == [e.mean for e in want if e]
    assert len(axes.containers) == 8
    sizes = plot.over(sweep.where(line="hpcc"), "traffic.1.bytes", "slowdown-mean")
    assert [text.get_text() for text in sizes.get_legend().texts] == ["hpcc dt_alpha=2.0", "hpcc dt_alpha=1.0"]
    # In the order of the grid, where the alphabet has 100KB before 20KB.
    words = fairrate.sweep(scenario, ["hpcc"], grid={"traffic.1.bytes": ["9KB", "20KB", "100KB"]})
    (line,) = plot.over(words, "traffic.1.bytes", "goodput").lines
    assert list(line.get_xdata(orig=True)) == ["9KB", "20KB", "100KB"]
    with pytest.raises(KeyError, match=r"no key 'switch.alpha'; it has traffic.1.bytes, switch.dt_alpha"):
        plot.over(sweep, "switch.alpha", "slowdown-mean")


def test_the_largest_flows_are_drawn_and_lower_bounds_are_hollow() -> None:
    """Two flows of 9 MB take 3 ms each at 25 Gb/s: the one of 1 ms is done within 5 ms, that of 4.9 ms is not."""

    def incast(senders: list[str], size: str, start: str) -> dict[str, object]:
        return {"kind": "incast", "receiver": "h0", "senders": senders, "bytes": size, "start": start}

    traffic = [incast(["h1", "h2"], "9KB", "0s"), incast(["h1"], "9MB", "1ms"), incast(["h2"], "9MB", "4900us")]
    network = {"topology": {"kind": "star", "hosts": 4, "rate": "25Gbps"}, "transport": {"cc": "dctcp"}, "traffic": traffic}
    result = fairrate.run(Scenario.from_dict({"duration": "5ms", **network}, name="two-sizes"))
    assert [flow["finished"] for flow in result.flows.to_polars().sort("id").to_dicts()] == [True, True, True, False]
    table = fairrate.stats.by_size(result, edges_bytes=[10_000, 3_000_000], p=[0.5, 0.99])
    # The bound of the unfinished flow is 1, below the slowdown of the finished one.
    bound, finished = 1.0, result.flows.to_polars().sort("id")["slowdown"][2]
    assert table.rows()[-1] == (3_000_000, None, 1, 1, (bound + finished) / 2, bound, finished, bound)
    axes = plot.slowdown(result, 0.99)
    line, hollow = axes.lines
    assert list(line.get_xdata()) == [10, 9_000] and line.get_ydata()[1] == finished > 1
    assert list(hollow.get_xdata()) == [9_000] and hollow.get_markerfacecolor() == axes.get_facecolor()
    legend = axes.get_legend()
    assert legend is not None and [text.get_text() for text in legend.texts] == ["dctcp", "at least (unfinished flows)"]
    # Of finished flows alone no point is hollow.
    (whole,) = plot.slowdown({"all": fairrate.run(Scenario.from_dict({"duration": "20ms", **network}, name="two-sizes"))}).lines
    assert list(whole.get_xdata()) == [10, 9_000]


def test_the_paper_style_is_left_again() -> None:
    before = mpl.rcParams["font.size"]
    with plot.paper(font_size=6):
        assert (mpl.rcParams["font.size"], mpl.rcParams["pdf.fonttype"]) == (6, 42)
    assert mpl.rcParams["font.size"] == before
