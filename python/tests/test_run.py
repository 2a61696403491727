"""Runs and their results."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import fairrate
from fairrate import Scenario

SIX = {
    "incast10": {"duration": "1.5ms"},
    "websearch": {"duration": "400us", "transport.cc": "hpcc"},
    "faults": {},
    "homa-incast": {},
    "rocc-fabric": {"duration": "300us"},
    "ratemp-random": {"duration": "2ms"},
}
"""Scenarios of several transports and topologies, each a fraction of a second."""


def files(dir: Path) -> dict[str, bytes]:
    """The files of a results directory without what wall-clock time leaves in them."""
    found = {str(p.relative_to(dir)): p.read_bytes() for p in sorted(dir.rglob("*")) if p.is_file()}
    summary = json.loads(found["summary.json"])
    summary["wall_s"] = 0
    found["summary.json"] = json.dumps(summary).encode()
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", SIX)
def test_the_same_bits_as_the_command_line(
    name: str, threads: int, cli: Path, examples: Path, tmp_path: Path
) -> None:
    path = examples / f"{name}.toml"
    sets = [f"--set={key}={value}" for key, value in SIX[name].items()]
    command = [cli, "run", path, *sets, "--threads", str(threads), "--quiet", "--out", tmp_path / "cli"]
    subprocess.run(command, check=True, capture_output=True)
    result = fairrate.run(Scenario.load(path).with_(SIX[name]), threads=threads)
    result.save(tmp_path / "python")
    ours, theirs = files(tmp_path / "python"), files(tmp_path / "cli")
    assert ours.keys() == theirs.keys()
    # The report says how long the run took.
    differ = [name for name in ours if ours[name] != theirs[name] and name != "report.html"]
    assert differ == []
    assert result.summary["packet_hops"] > 0


def test_results_are_saved_and_loaded(incast: Scenario, tmp_path: Path) -> None:
    result = fairrate.run(incast)
    temporary = result.dir
    saved = result.save(tmp_path / "kept")
    assert (saved.dir / "report.html").exists() and list((saved.dir / "figures").glob("*.svg"))
    del result
    assert not temporary.exists()
    loaded = fairrate.load(tmp_path / "kept")
    assert loaded.summary == saved.summary
    assert loaded.scenario == incast and len(loaded.flows) == 11
    assert loaded.metrics["goodput"] == pytest.approx(loaded.summary["goodput_bps"] / 1e9)
    assert loaded.save(tmp_path / "kept").summary == loaded.summary


def test_a_run_writes_where_it_is_told(incast: Scenario, tmp_path: Path) -> None:
    result = fairrate.run(incast, cc="hpcc", out=tmp_path / "out")
    assert result.dir == tmp_path / "out"
    assert (result.label, result.summary["state"]) == ("hpcc", "complete")


def test_a_directory_of_something_else_stays(incast: Scenario, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(fairrate.ResultsError) as caught:
        fairrate.run(incast, out=tmp_path)
    assert caught.value.code == "results::occupied" and caught.value.path == str(tmp_path)
    with pytest.raises(fairrate.ResultsError):
        fairrate.load(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_damage_is_seen(incast: Scenario, tmp_path: Path) -> None:
    result = fairrate.run(incast, out=tmp_path)
    table = tmp_path / "flows.parquet"
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    with pytest.raises(fairrate.ResultsError) as caught:
        _ = result.flows
    assert caught.value.code == "results::damaged"


def test_a_result_travels(incast: Scenario, tmp_path: Path) -> None:
    result = fairrate.run(incast)
    text = pickle.dumps(result)
    want, dir = result.flows.to_polars(), result.dir
    del result
    got = pickle.loads(text)
    assert got.dir != dir and got.flows.to_polars().equals(want)
    kept = got.save(tmp_path / "kept")
    assert pickle.loads(pickle.dumps(kept)).dir == kept.dir


def test_other_threads_go_on(examples: Path, tmp_path: Path) -> None:
    scenario = Scenario.load(examples / "incast10.toml").with_(duration="100s")
    out = tmp_path / "out"

    def interrupt() -> None:
        while not (out / "summary.json").exists():
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    # A run that kept Python to itself would let nobody interrupt it, and go on to its end.
    with pytest.raises(KeyboardInterrupt):
        fairrate.run(scenario, out=out)
    thread.join()


def test_progress_reaches_its_end(incast: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    fairrate.run(incast, progress=True)
    assert "incast10" in capsys.readouterr().err


@pytest.mark.parametrize("threads", [0, 2000])
def test_threads_have_bounds(incast: Scenario, threads: int) -> None:
    with pytest.raises(ValueError, match="threads"):
        fairrate.run(incast, threads=threads)


ENDLESS = """
import fairrate, sys
scenario = fairrate.Scenario.load(sys.argv[1]).with_(duration="10s")
print("begins", flush=True)
try:
    fairrate.run(scenario, out=sys.argv[2])
except KeyboardInterrupt:
    print(fairrate.load(sys.argv[2]).summary["state"])
"""


def test_ctrl_c_ends_a_run_and_leaves_valid_results(examples: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, examples / "incast10.toml", tmp_path / "out"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        while not (tmp_path / "out/summary.json").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
    assert process.returncode == 0


def test_what_notebooks_show(incast: Scenario) -> None:
    result = fairrate.run(incast)
    assert repr(result) == "<fairrate.Result of incast10: powertcp, seed 1, complete>"
    assert result.fingerprint in result._repr_html_()


def test_defaults_for_other_hosts_are_warned_about(incast: Scenario) -> None:
    fast = incast.with_({"topology.host_rate": "100Gbps", "transport.cc": "dcqcn"})
    with pytest.warns(UserWarning, match=r"`ai = .40Mbps.` of `dcqcn`.*100Gbps"):
        fairrate.run(fast)
    with pytest.warns(UserWarning) as found:
        fairrate.sweep(fast, cc=["dcqcn", "powertcp"], seeds=[1, 2])
    assert [str(w.message).split(" ")[0] for w in found] == ["`ai", "`hai"]
    assert incast.warnings == []


def test_a_path_will_do_for_a_scenario(examples: Path) -> None:
    path = examples / "incast10.toml"
    scenario = fairrate.Scenario.load(path)
    expected = fairrate.run(scenario, cc="dctcp").fingerprint
    assert fairrate.run(path, cc="dctcp").fingerprint == expected
    assert fairrate.run(str(path), cc="dctcp").fingerprint == expected
    assert fairrate.sweep(str(path), ["dctcp"])[0].result.fingerprint == expected
    with pytest.raises(fairrate.ScenarioError, match="nowhere"):
        fairrate.run("nowhere.toml")
    with pytest.raises(TypeError, match="path of a file"):
        fairrate.run({"seed": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("cc", ["hpcc:eta=0.9:max_stage=4", "hpcc:eta=0.9,max_stage=4"])
def test_an_algorithm_may_have_other_parameters(incast: fairrate.Scenario, cc: str) -> None:
    result = fairrate.run(incast, cc=cc)
    sets = {"transport.cc": "hpcc", "transport.hpcc.eta": 0.9, "transport.hpcc.max_stage": 4}
    assert result.fingerprint == fairrate.run(incast.with_(sets)).fingerprint
    assert result.fingerprint != fairrate.run(incast, cc="hpcc").fingerprint
    # It is called as a sweep calls it, and without parameters by its name.
    assert result.label == fairrate.sweep(incast, [cc])[0].label == "hpcc:eta=0.9:max_stage=4"
    assert fairrate.run(incast, cc="hpcc").label == "hpcc"
    with pytest.raises(fairrate.ScenarioError) as error:
        fairrate.run(incast, cc="hpcc:etta=0.9")
    assert error.value.suggestion == "did you mean `eta`?"


def test_blocks_have_metrics_of_their_own(tmp_path: Path) -> None:
    text = """
[topology]
kind = "star"
hosts = 6
[transport]
cc = "dctcp"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = ["h1", "h2"]
bytes = "50KB"
[[traffic]]
name = "small"
kind = "incast"
receiver = "h3"
senders = ["h4"]
bytes = "1KB"
"""
    file = tmp_path / "blocks.toml"
    file.write_text(text)
    result = fairrate.run(file)
    assert result.metrics["slowdown-mean:block0"] == pytest.approx(result.metrics["slowdown-mean:10-100KB"])
    assert result.metrics["slowdown-mean:block1"] == pytest.approx(result.metrics["slowdown-mean:short"])
    assert result.units["slowdown-mean:block1"] == "1"
    assert result.units["unfinished-share:block1"] == "%"
    assert result.metrics["slowdown-mean:small"] == result.metrics["slowdown-mean:block1"]
    assert result.units["unfinished-share:small"] == "%"
    sweep = fairrate.sweep(file, jobs=1)
    assert sweep.frame("slowdown-p99:small")["slowdown-p99:small"].to_list() == [result.metrics["slowdown-p99:block1"]]
    with pytest.raises(KeyError, match="did you mean 'slowdown-p99:small'.*slowdown-mean:small"):
        sweep.frame("slowdown-p99:smal")
    report = fairrate.report(sweep, tmp_path / "report", metrics=["slowdown-p99:small"])
    assert report.exists()
    with pytest.raises(fairrate.ScenarioError) as caught:
        fairrate.report(sweep, tmp_path / "report2", metrics=["slowdown-p99:smal"])
    assert "`slowdown-p99:small`" in caught.value.suggestion and "blocks of the scenario: block0, small" in caught.value.suggestion
    assert not (tmp_path / "report2").exists()
