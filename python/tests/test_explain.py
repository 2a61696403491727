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
