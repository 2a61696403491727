"""Reports of runs that are there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fairrate
from fairrate import Ack, Allowance, Controller, Flow, Needs, Scenario

GRID = {"switch.dt_alpha": [0.5, 1.0]}


class Aimd(Controller):
    """Additive increase, multiplicative decrease on ECN marks."""

    needs = Needs(ecn=True)

    def __init__(self, left: float = 0.5) -> None:
        self.left = left

    def on_start(self, flow: Flow) -> Allowance:
        self.packet, self.cut_until = flow.mtu_bytes, 0
        self.cwnd = flow.line_rate_bps * flow.base_rtt_s / 8
        return Allowance(cwnd_bytes=self.cwnd)

    def on_ack(self, ack: Ack) -> Allowance:
        if not ack.ecn_marked:
            self.cwnd += self.packet * ack.newly_acked / self.cwnd
        elif self.cut_until < ack.ack_seq:
            self.cwnd, self.cut_until = max(self.cwnd * self.left, self.packet), ack.snd_nxt
        return Allowance(cwnd_bytes=self.cwnd)


@pytest.fixture
def small(examples: Path) -> Scenario:
    return Scenario.load(examples / "incast10.toml").with_(duration="1.1ms")


def index(dir: Path) -> Any:
    return json.loads((dir / "compare.json").read_text())


def pictures(dir: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (dir / "figures").iterdir()}


def test_it_is_the_report_of_compare(small: Scenario, examples: Path, cli: Path, tmp_path: Path) -> None:
    sweep = fairrate.sweep(small, ["powertcp", "hpcc"], grid=GRID, seeds=[1, 2], cache=tmp_path / "runs")
    theirs = tmp_path / "runs/incast10-compare"
    command = [cli, "compare", examples / "incast10.toml", "--cc=powertcp,hpcc", "--grid=switch.dt_alpha=0.5,1.0",
               "--seeds=1..2", "--set=duration=1.1ms", f"--out={theirs}", "--metric=queue-p99"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "8 of 8 runs are complete already" in done.stderr
    page, figures, runs = (theirs / "report.html").read_text(), pictures(theirs), index(theirs)
    # Elsewhere, with copies of the runs, and where they are.
    for out in (tmp_path / "mine", theirs):
        assert fairrate.report(sweep, out, metrics=["queue-p99"]) == out / "report.html"
        assert (out / "report.html").read_text() == page and pictures(out) == figures
        mine = index(out)
        assert mine["statistics"] == runs["statistics"] and mine["metrics"] == runs["metrics"]
    assert mine == runs
    # The command line takes the copies for its own.
    again = subprocess.run([cli, "report", tmp_path / "mine"], check=True, capture_output=True, text=True)
    assert again.stdout.strip() == str(tmp_path / "mine/report.html")
    assert (tmp_path / "mine/report.html").read_text() == page
    # A comparison's directory stands for its runs.
    assert fairrate.report(theirs, tmp_path / "third", metrics=["queue-p99"]).read_text() == page


def test_runs_in_memory_are_written_with_it(small: Scenario, tmp_path: Path) -> None:
    sweep = fairrate.sweep(small, ["hpcc", Aimd, Aimd.with_(left=0.8)], seeds=[1, 2])
    out = tmp_path / "report"
    page = fairrate.report(sweep, out).read_text()
    for name in ("HPCC", "Aimd", "Aimd left=0.8"):
        assert f">{name}<" in page
    runs = index(out)["runs"]
    assert [(run["label"], run["seed"], run["state"]) for run in runs[2:4]] == [("Aimd", 1, "complete"), ("Aimd", 2, "complete")]
    for run, of_sweep in zip(runs, sweep, strict=True):
        kept = fairrate.load(out / run["dir"])
        assert kept.fingerprint == of_sweep.result.fingerprint == run["fingerprint"]
        assert (out / run["dir"] / "report.html").exists()
    # Again, with fewer runs, over the first one; then in place.
    fairrate.report(sweep.where(seed=1), out)
    assert len(index(out)["runs"]) == 3
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    assert fairrate.report(out).read_text() == before


def test_results_and_directories(small: Scenario, tmp_path: Path) -> None:
    hpcc, dctcp = fairrate.run(small, cc="hpcc"), fairrate.run(small, cc="dctcp", out=tmp_path / "dctcp")
    page = fairrate.report([hpcc, tmp_path / "dctcp"], tmp_path / "a").read_text()
    assert ">HPCC<" in page and ">DCTCP<" in page
    labelled = fairrate.report({"mine": hpcc, "theirs": [dctcp]}, tmp_path / "b").read_text()
    assert ">mine<" in labelled and ">theirs<" in labelled
    assert [run["label"] for run in index(tmp_path / "b")["runs"]] == ["mine", "theirs"]
    one = fairrate.report(dctcp, tmp_path / "c")
    assert one.exists() and len(index(tmp_path / "c")["runs"]) == 1
    assert fairrate.report(tmp_path / "dctcp") == tmp_path / "dctcp/report.html"


def test_what_cannot_be_reported_on(small: Scenario, tmp_path: Path) -> None:
    result = fairrate.run(small, cc="hpcc")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("")
    with pytest.raises(fairrate.ResultsError, match="holds something else than results") as caught:
        fairrate.report(result, mine)
    assert caught.value.path == str(mine) and [path.name for path in mine.iterdir()] == ["thesis.tex"]
    with pytest.raises(fairrate.ScenarioError, match="two runs are called 'hpcc' with seed 1"):
        fairrate.report([result, result], tmp_path / "a")
    with pytest.raises(fairrate.ResultsError, match="no results"):
        fairrate.report([], tmp_path / "a")
    with pytest.raises(fairrate.ScenarioError, match="`queue-p9`") as unknown:
        fairrate.report(result, tmp_path / "a", metrics=["queue-p9"])
    assert "did you mean `queue-p9" in unknown.value.suggestion
    with pytest.raises(fairrate.ScenarioError, match="no directory for the report"):
        fairrate.report(result)
    with pytest.raises(fairrate.ResultsError, match="no results"):
        fairrate.report(tmp_path / "nothing")
    with pytest.raises(TypeError, match="int is no result"):
        fairrate.report([3], tmp_path / "a")  # type: ignore[list-item]
    assert not (tmp_path / "a").exists()
