"""Two algorithms that share a port."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairrate


def test_a_study_is_that_of_the_command(tmp_path: Path) -> None:
    found = fairrate.coexist(
        "dctcp", "cubic", rate="10Gbps", buffers=[10], flows=["1:1"], round_trips=200, seeds=[1, 2], jobs=1, cache=tmp_path
    )
    assert found.blocks == ("dctcp", "cubic")
    frame = found.frame
    cases = ["1:1", "1:1, 4 times the RTT", "1:1, two classes"]
    cases += ["1:1, cubic comes and goes", "1:1, dctcp comes and goes"]
    pairs = [("dctcp", "cubic"), ("cubic", "cubic"), ("cubic", "dctcp"), ("dctcp", "dctcp")]
    cases += [f"short {short} beside {long} (30 %)" for short, long in pairs]
    assert frame["case"].to_list() == [case for case in cases for _ in range(2)] and frame["seed"].to_list() == [1, 2] * 9
    apart = frame.filter(frame["case"] == "1:1, two classes")
    # A class for each: DWRR gives each half.
    assert apart["dctcp"].to_list() == pytest.approx([1, 1], abs=0.1)
    shorts = frame.filter(frame["case"].str.starts_with("short"))
    assert shorts["dctcp"].null_count() == len(shorts) and (shorts["slowdown-p99:block1"] >= 1).all()
    assert "of dctcp gets from" in found.verdict and "Short flows of cubic (30 %)" in found.verdict
    page = fairrate.report(found.sweep, tmp_path / "report").read_text()
    assert "Who takes what: dctcp beside cubic" in page and "A class for each, weights by flows" in page
    assert len(list((tmp_path / "report" / "figures").glob("share-*.svg"))) == 3


def test_shares_are_the_cells_of_the_heat_maps(tmp_path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    options = {"rate": "10Gbps", "buffers": [1, 10], "flows": ["1:1", "2:1"], "short": [], "round_trips": 200, "jobs": 1}
    found = fairrate.coexist("dctcp", "cubic", seeds=[1, 2], cache=tmp_path, **options)
    shares = found.shares
    assert shares.columns == ["map", "flows", "buffer", "times", "share", "low", "high", "verdict"]
    assert shares["flows"].to_list() == ["1:1", "1:1", "2:1", "2:1"] * 3 and shares["times"].to_list() == [1, 10] * 6
    cell = shares.row(1, named=True)
    frame = found.frame
    seeds = frame.filter((frame["case"] == "1:1") & (frame["buffer"] == cell["buffer"]))["dctcp"]
    assert cell["share"] == pytest.approx(seeds.mean()) and cell["low"] == pytest.approx(seeds.min())
    assert set(shares["verdict"]) <= {"less", "fair", "more", "undecided"}
    axes = fairrate.plot.heat_map(found, "A class for each, weights by flows")
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1:1", "2:1"] and len(axes.texts) == 4
    with pytest.raises(KeyError, match="no such map"):
        fairrate.plot.heat_map(found, "no such map")


def test_what_is_not_understood_says_so() -> None:
    with pytest.raises(fairrate.ResultsError, match="0:1"):
        fairrate.coexist("dctcp", "cubic", flows=["0:1"])
    with pytest.raises(fairrate.Error, match="dctpc"):
        fairrate.coexist("dctpc", "cubic")
