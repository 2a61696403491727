"""Accounts of completion times: those of the command line, as numbers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fairrate
from fairrate import Scenario


@pytest.fixture
def incast() -> Scenario:
    """Ten flows into one host, whose switch drops what does not fit, and a link that is down for a while."""
    return Scenario.from_dict(
        {
            "stop": "all-flows-done",
            "topology": {"kind": "star", "hosts": 14, "rate": "25Gbps"},
            "switch": {"pfc": False, "buffer": "60KB"},
            "transport": {"cc": "dctcp", "rto": "500us"},
            "traffic": [
                {"kind": "incast", "name": "burst", "receiver": "h0", "senders": 10, "bytes": "100KB"},
                {"kind": "incast", "name": "alone", "receiver": "h12", "senders": ["h13"], "bytes": "2KB", "start": "5ms"},
            ],
            "fault": [{"links": ["sw0->h12"], "down_at": "5001us", "up_at": "5101us"}],
        },
        name="incast",
    )


def sums(flow: dict[str, Any], account: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in flow[account]:
        found[part["reason"]] = found.get(part["reason"], 0) + part["ps"]
    return found


def test_accounts_are_those_of_the_command_line(incast: Scenario, cli: Path, tmp_path: Path) -> None:
    result = fairrate.run(incast, out=tmp_path / "out")
    words = [cli, "explain", "-q", str(result.dir), "--worst", "3", "--json"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert fairrate.explain(result, worst=3) == json.loads(printed) == fairrate.explain(result.dir, worst=3)


def test_an_account_adds_up_to_the_completion_time(incast: Scenario) -> None:
    result = fairrate.run(incast)
    flows = fairrate.explain(result, worst=100)["flows"]
    assert len(flows) == 11 == len(result.flows)
    for flow in flows:
        assert flow["finished"] and flow["fct_ps"] == flow["time_ps"]
        assert sum(sums(flow, "chain").values()) == sum(sums(flow, "sender").values()) == flow["time_ps"]
    alone = fairrate.explain(result, 10)["flows"][0]
    assert alone == fairrate.explain(result, block="alone")["flows"][0]
    # The packets arrive at the switch when the link is down already.
    (down,) = [part for part in alone["chain"] if part["reason"] == "down"]
    assert (down["port"], down["down_ps"]) == ("sw0->h12", [[5_001_000_000, 5_101_000_000]])
    assert 95e6 < down["ps"] <= 100e6


def test_an_unfinished_flow_is_explained_until_the_end(incast: Scenario) -> None:
    result = fairrate.run(incast.with_({"stop": "duration", "duration": "5050us"}))
    flow = fairrate.explain(result, 10)["flows"][0]
    assert (flow["finished"], flow["fct_ps"], flow["time_ps"]) == (False, None, 50_000_000)
    assert sum(sums(flow, "chain").values()) == sum(sums(flow, "sender").values()) == 50_000_000
    assert sums(flow, "chain")["down"] > 45e6 and flow["sentence"].startswith("unfinished: ")


def test_what_cannot_be_explained_is_an_error(incast: Scenario, tmp_path: Path) -> None:
    result = fairrate.run(incast)
    with pytest.raises(fairrate.ResultsError, match="has no flow 11") as caught:
        fairrate.explain(result, 11)
    assert "fairrate show" in caught.value.suggestion and caught.value.path == str(result.dir)
    with pytest.raises(fairrate.ResultsError, match="holds no results"):
        fairrate.explain(tmp_path)
    with pytest.raises(ValueError, match="excludes"):
        fairrate.explain(result, 1, worst=2)


def job(tmp_path: Path) -> Scenario:
    """Two ranks, of which rank 1 computes for 40 us and rank 0 for 20, and then sends a message over a link at a quarter of its rate."""
    (tmp_path / "operations.csv").write_text(
        "kind,rank,id,name,after,duration_ns,bytes,peer\n"
        "compute,0,1,forward,,20000,,\ncompute,1,1,forward,,40000,,\n"
        "send,1,2,result,1,,1000000,0\nreceive,0,2,result,1,,1000000,1\n"
    )
    (tmp_path / "job.toml").write_text(
        '[topology]\nkind = "star"\nhosts = 2\nrate = "100Gbps"\n[transport]\ncc = "line-rate"\n'
        '[[traffic]]\nkind = "trace"\nname = "job"\npath = "operations.csv"\n'
        '[[fault]]\nlinks = ["sw0->h0"]\nrate = 0.25\n'
    )
    return Scenario.load(tmp_path / "job.toml")


def test_the_path_of_an_iteration_is_that_of_the_command_line(cli: Path, tmp_path: Path) -> None:
    result = fairrate.run(job(tmp_path), out=tmp_path / "out")
    path = fairrate.explain(result, iteration=0)
    words = [cli, "explain", "-q", str(result.dir), "--iteration", "0", "--json"]
    assert path == json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert path == fairrate.explain(result.dir, iteration=0, block="job")
    computes, moves = path["stages"]
    assert (computes["doing"], computes["operation"], computes["rank"], computes["ps"]) == ("computes", "forward", 1, 40_000_000)
    # The megabyte alone takes 320 us at 25 Gb/s.
    assert (moves["doing"], moves["message"]["from"], moves["message"]["to"]) == ("moves", "h1", "h0")
    assert sum(reason["ps"] for reason in moves["reasons"]) == moves["ps"] and "reasons" not in computes
    assert 320e6 < moves["ps"] < 380e6 and computes["ps"] + moves["ps"] == path["time_ps"]


def test_the_path_of_a_collective_has_its_ring() -> None:
    scenario = Scenario.from_dict(
        {
            "topology": {"kind": "star", "hosts": 4, "rate": "100Gbps"},
            "transport": {"cc": "line-rate"},
            "traffic": [{"kind": "collective", "op": "all-gather", "bytes": "400KB", "repeat": 2, "compute": "30us"}],
        },
        name="ring",
    )
    path = fairrate.explain(fairrate.run(scenario), iteration=1)
    # A computation, and three steps of the ring.
    assert [stage["doing"] for stage in path["stages"]] == ["computes", "moves", "moves", "moves"]
    assert path["stages"][0]["ps"] == 30_000_000 and path["stages"][1]["kind"] == "all-gather"
    assert sum(stage["ps"] for stage in path["stages"]) == path["time_ps"]


def test_an_iteration_that_is_not_there_is_an_error(incast: Scenario, tmp_path: Path) -> None:
    with pytest.raises(fairrate.ResultsError, match="no complete iteration 1"):
        fairrate.explain(fairrate.run(job(tmp_path)), iteration=1)
    with pytest.raises(fairrate.ResultsError, match="no such training job or collective"):
        fairrate.explain(fairrate.run(incast), iteration=0)
    with pytest.raises(ValueError, match="excludes flow"):
        fairrate.explain(tmp_path, 3, iteration=0)
