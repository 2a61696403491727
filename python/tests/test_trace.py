"""Traces of packets: those of the command line, as tables."""

from __future__ import annotations

import subprocess
from pathlib import Path

import polars
import pytest

import fairrate
from fairrate import Scenario


@pytest.fixture
def burst() -> Scenario:
    """Four flows into one host, whose switch drops what does not fit."""
    return Scenario.from_dict(
        {
            "stop": "all-flows-done",
            "topology": {"kind": "star", "hosts": 5, "rate": "25Gbps"},
            "switch": {"pfc": False, "buffer": "60KB"},
            "transport": {"kind": "tcp", "cc": "cubic"},
            "traffic": [{"kind": "incast", "receiver": "h0", "senders": 4, "bytes": "100KB"}],
        },
        name="burst",
    )


def test_a_trace_is_that_of_the_command_line(burst: Scenario, cli: Path, tmp_path: Path) -> None:
    result = fairrate.run(burst, out=tmp_path / "out")
    choices = ["--flow", "2", "--port", "h0", "--from", "10us", "--until", "100us"]
    file = tmp_path / "some.parquet"
    subprocess.run([cli, "trace", "-q", str(result.dir), "--out", str(file), *choices], check=True, capture_output=True)
    ours = result.trace(2, "h0", start="10us", until="100us").to_polars()
    assert ours.height > 0 and ours.equals(polars.read_parquet(file))


def test_packets_of_a_run_are_counted(burst: Scenario) -> None:
    result = fairrate.run(burst)
    steps = result.trace().to_polars()
    n = {event: steps.filter(polars.col("event") == event).height for event in ("sent", "dropped")}
    assert n == {"sent": result.summary["packet_hops"], "dropped": result.summary["drops"]} and n["dropped"] > 0
    assert set(result.trace(flows=[0, 3]).to_polars()["flow"]) == {0, 3}
    assert len(result.trace(limit="10KB")) < steps.height
    lost = result.links.to_polars().filter(polars.col("drops") > 0)
    assert lost["drops"].sum() == n["dropped"] == lost["drops_ingress_threshold"].sum()


def test_what_cannot_be_traced_is_an_error(burst: Scenario) -> None:
    result = fairrate.run(burst)
    with pytest.raises(fairrate.ResultsError, match="9") as caught:
        result.trace(flows=9)
    assert "from 0 to 3" in caught.value.suggestion
    with pytest.raises(fairrate.ResultsError, match="sw0->h9"):
        result.trace(ports="sw0->h9")
    with pytest.raises(ValueError, match="20"):
        result.trace(start="20")
    with pytest.raises(fairrate.ResultsError, match="before it begins"):
        result.trace(start="20us", until="10us")


def test_round_trip_times_are_counted(burst: Scenario) -> None:
    assert len(fairrate.run(burst).rtts) == 0
    probed = fairrate.run(burst.with_({"probe": [{"rtts": True}]}))
    rtts = probed.rtts.to_polars()
    assert rtts["acks"].sum() > 100 and (rtts["from_ns"] < rtts["to_ns"]).all()
