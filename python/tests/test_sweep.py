"""Sweeps: where they run, what they keep, and what a killed worker costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars
import pytest

import fairrate
from fairrate import Scenario


@pytest.fixture
def small(examples: Path) -> Scenario:
    return Scenario.load(examples / "incast10.toml").with_(duration="1.1ms")


CC = ["powertcp", "powertcp:gamma=0.5", "hpcc"]
GRID = {"traffic.1.bytes": ["20KB", "40KB"]}


def prints(sweep: fairrate.Sweep) -> dict[tuple[str, int], str]:
    return {(run.label, run.seed): run.result.fingerprint for run in sweep}


def test_a_sweep_is_every_run(small: Scenario) -> None:
    sweep = fairrate.sweep(small, CC, grid=GRID, seeds=[1, 2])
    assert len(sweep) == 12 and len(sweep.labels) == 6
    assert sweep.labels[:2] == ["powertcp bytes=20KB", "powertcp:gamma=0.5 bytes=20KB"]
    run = sweep[1]
    assert (run.line, run.cc, run.seed, run.grid) == ("powertcp", "powertcp", 2, {"traffic.1.bytes": "20KB"})
    alone = fairrate.run(small.with_({"traffic.1.bytes": "20KB", "seed": 2}))
    assert run.result.fingerprint == alone.fingerprint
    frame = sweep.frame("slowdown-p99", "goodput_bps")
    assert frame.columns == ["label", "cc", "seed", "traffic.1.bytes", "fingerprint", "slowdown-p99", "goodput_bps"]
    # Flows of 40 KB are not done within 1.1 ms, those of 20 KB are.
    assert frame["slowdown-p99"].null_count() == 0
    assert {run.grid["traffic.1.bytes"] for run in sweep if "slowdown-p99:all" in run.result.lower_bounds} == {"40KB"}
    flows = sweep.flows()
    assert flows.height == 12 * 11 and set(flows["label"]) == set(sweep.labels)
    some = sweep.where(line="hpcc", **{"traffic.1.bytes": "40KB"})
    assert [r.seed for r in some] == [1, 2] and isinstance(sweep[:2], fairrate.Sweep)
    difference = sweep.difference("hpcc bytes=20KB", "powertcp bytes=20KB", "slowdown-mean")
    assert difference is not None and difference.n == 2 and not difference.is_clear


def test_variants_change_more_than_the_algorithm(small: Scenario) -> None:
    sweep = fairrate.sweep(small, ["hpcc"], variants=["hpcc: topology.host_rate=10Gbps", "dctcp: switch.buffer=1MB"])
    assert sweep.labels == ["hpcc", "hpcc host_rate=10Gbps", "dctcp buffer=1MB"]
    alone = fairrate.run(small.with_({"topology.host_rate": "10Gbps"}), cc="hpcc")
    assert sweep[1].result.fingerprint == alone.fingerprint
    with pytest.raises(fairrate.ScenarioError, match="changes no key"):
        fairrate.sweep(small, variants=["hpcc: switch"])


def test_wherever_runs_are_done_they_come_out_the_same(small: Scenario) -> None:
    here = prints(fairrate.sweep(small, CC, seeds=[1, 2], jobs=2))
    with ThreadPoolExecutor(2) as executor:
        assert prints(fairrate.sweep(small, CC, seeds=[1, 2], executor=executor)) == here


def test_everything_is_checked_before_anything_runs(small: Scenario, tmp_path: Path) -> None:
    with pytest.raises(fairrate.ScenarioError, match="powertpc") as caught:
        fairrate.sweep(small, ["hpcc", "powertpc"], cache=tmp_path)
    assert "powertcp" in caught.value.suggestion
    with pytest.raises(fairrate.ScenarioError) as caught:
        fairrate.sweep(small, ["hpcc"], grid={"traffic.1.bytes": ["1KB", "1KX"]}, cache=tmp_path / "a")
    assert caught.value.key == "traffic.1.bytes"
    with pytest.raises(fairrate.ScenarioError, match="is a list"):
        fairrate.sweep(small, "hpcc")
    for nothing in ({"seeds": []}, {"grid": {"traffic.1.bytes": []}}):
        with pytest.raises(fairrate.ScenarioError, match="is empty|has no value"):
            fairrate.sweep(small, ["hpcc"], cache=tmp_path, **nothing)
    assert not list(tmp_path.rglob("*.parquet"))


def compare(cli: Path, scenario: Path, cache: Path) -> dict[str, str]:
    """Runs the same comparison by the command line; what it says, and the fingerprints by directory."""
    command = [cli, "compare", scenario, "--cc", ",".join(CC), "--grid", "traffic.1.bytes=20KB,40KB", "--seeds", "1..2",
               "--set", "duration=1.1ms", "--out", cache]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    runs = json.loads((cache / "compare.json").read_text())["runs"]
    return {"stderr": done.stderr, **{run["dir"]: run["fingerprint"] for run in runs}}


def test_the_cache_is_shared_with_compare(small: Scenario, examples: Path, cli: Path, tmp_path: Path) -> None:
    comparison = tmp_path / "runs/incast10-compare"
    mine = fairrate.sweep(small, CC, grid=GRID, seeds=[1, 2], cache=tmp_path / "runs")
    assert not any(run.taken_over for run in mine)
    theirs = compare(cli, examples / "incast10.toml", comparison)
    assert "12 of 12 runs are complete already" in theirs["stderr"]
    assert {run.result.dir.name: run.result.fingerprint for run in mine} == {k: v for k, v in theirs.items() if k != "stderr"}
    again = fairrate.sweep(small, CC, grid=GRID, seeds=[1, 2], cache=tmp_path / "runs")
    assert all(run.taken_over for run in again) and prints(again) == prints(mine)


def test_runs_of_the_command_line_are_found_by_what_they_are(
    small: Scenario, examples: Path, cli: Path, tmp_path: Path
) -> None:
    out = tmp_path / "some-name"
    command = [cli, "run", examples / "incast10.toml", "--set=duration=1.1ms", "--cc=hpcc", "--seed=2", "--out", out]
    subprocess.run(command, check=True, capture_output=True)
    sweep = fairrate.sweep(small, ["hpcc"], seeds=[1, 2], cache=tmp_path)
    assert [run.taken_over for run in sweep] == [False, True]
    assert sweep[1].result.dir == out


def test_another_scenario_of_the_same_name_keeps_its_runs(small: Scenario, tmp_path: Path) -> None:
    first = fairrate.sweep(small, ["hpcc"], cache=tmp_path)
    other = fairrate.sweep(small.with_(duration="1.2ms"), ["hpcc"], cache=tmp_path)
    assert not other[0].taken_over and other[0].result.dir != first[0].result.dir
    for scenario in (small, small.with_(duration="1.2ms")):
        assert fairrate.sweep(scenario, ["hpcc"], cache=tmp_path)[0].taken_over


def test_an_interrupted_run_is_done_again(small: Scenario, tmp_path: Path) -> None:
    (run,) = fairrate.sweep(small, ["hpcc"], cache=tmp_path)
    summary = run.result.dir / "summary.json"
    summary.write_text(summary.read_text().replace('"complete"', '"interrupted"'))
    (again,) = fairrate.sweep(small, ["hpcc"], cache=tmp_path)
    assert not again.taken_over and again.result.fingerprint == run.result.fingerprint


def workers() -> set[int]:
    """Processes that loky started for this one."""
    mine = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "pid=,args="], capture_output=True, text=True).stdout
    return {int(line.split()[0]) for line in mine.splitlines() if "loky" in line and "resource" not in line}


def test_a_killed_worker_costs_its_run_only(small: Scenario, tmp_path: Path) -> None:
    scenario = small.with_(duration="20ms")
    want = prints(fairrate.sweep(scenario, ["hpcc"], seeds=range(1, 5), jobs=2))
    killed: list[int] = []

    def kill() -> None:
        # The first worker that has begun to write.
        while not list(tmp_path.rglob("*.parquet")):
            time.sleep(0.01)
        killed.append(min(workers()))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    got = fairrate.sweep(scenario, ["hpcc"], seeds=range(1, 5), jobs=2, cache=tmp_path)
    thread.join()
    assert killed and prints(got) == want


ENDLESS = """
import fairrate, sys
scenario = fairrate.Scenario.load(sys.argv[1]).with_(duration="10s")
try:
    fairrate.sweep(scenario, ["hpcc"], seeds=[1, 2, 3], jobs=2, cache=sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_sweep_and_its_workers(examples: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, examples / "incast10.toml", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while len(list(tmp_path.rglob("flows.parquet"))) < 2:
            time.sleep(0.01)
        # To the parent alone, as notebooks do it.
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert (output, process.returncode) == ("interrupted\n", 0)


def test_a_run_that_fails_leaves_the_others(small: Scenario, tmp_path: Path) -> None:
    class Broken(ThreadPoolExecutor):
        def submit(self, fn, /, scenario, *args, **kwargs):  # type: ignore[no-untyped-def]
            if scenario.seed == 2:
                return super().submit(lambda: 1 / 0)
            return super().submit(fn, scenario, *args, **kwargs)

    with Broken(1) as executor, pytest.raises(fairrate.SweepError, match="1 of 3 runs failed") as caught:
        fairrate.sweep(small, ["hpcc"], seeds=[1, 2, 3], executor=executor)
    assert [run.seed for run in caught.value.sweep] == [1, 3]
    ((label, seed, error),) = caught.value.failures
    assert (label, seed, type(error)) == ("hpcc", 2, ZeroDivisionError)


def test_a_sweep_runs_on_dask(small: Scenario, tmp_path: Path) -> None:
    """Two worker processes, one of which is killed in the middle."""
    distributed = pytest.importorskip("distributed")
    scenario = small.with_(duration="20ms")
    want = prints(fairrate.sweep(scenario, ["hpcc"], seeds=range(1, 5), jobs=2))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path / "dask")
    ) as cluster, distributed.Client(cluster) as client:
        pid = client.run(os.getpid)[min(client.scheduler_info()["workers"])]

        def kill() -> None:
            while not any(client.processing().values()):
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        got = fairrate.sweep(
            scenario, ["hpcc"], seeds=range(1, 5), executor=client.get_executor(), cache=tmp_path / "runs"
        )
        thread.join()
    assert prints(got) == want
    assert all(run.result.dir.is_relative_to(tmp_path / "runs") for run in got)
    taken = fairrate.sweep(scenario, ["hpcc"], seeds=range(1, 5), cache=tmp_path / "runs")
    assert all(run.taken_over for run in taken)


def test_tables_of_runs_say_which_run_they_are_of(small: Scenario, tmp_path: Path) -> None:
    (run,) = fairrate.sweep(small, ["hpcc"], grid={"traffic.1.bytes": ["20KB"]}, cache=tmp_path)
    flows = polars.DataFrame(run.result.flows)
    assert set(flows["label"]) == {"hpcc bytes=20KB"} and set(flows["traffic.1.bytes"]) == {"20KB"}


def test_refused_columns_are_named_all_at_once_and_can_be_left_out(tmp_path: Path) -> None:
    topology = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    traffic = [{"kind": "permutation", "bytes": "20KB"}]
    document = {"topology": topology, "traffic": traffic, "routing": {"balance": "spray"}, "transport": {"cc": "dctcp"}}
    sprayed = fairrate.Scenario.from_dict({"duration": "5ms", **document}, name="sprayed")
    with pytest.raises(fairrate.ScenarioError, match="2 of 3 columns are refused: hpcc: .*; flowtune: ") as caught:
        fairrate.sweep(sprayed, cc=["hpcc", "dctcp", "flowtune"])
    assert "skip_refused=True" in (caught.value.suggestion or "") and len(caught.value.others) == 2
    with pytest.raises(fairrate.ScenarioError, match="2 of 2 columns are refused"):
        fairrate.sweep(sprayed, cc=["hpcc", "flowtune"], skip_refused=True)
    with pytest.warns(UserWarning, match="left out: hpcc: `hpcc` compares telemetry"):
        sweep = fairrate.sweep(sprayed, cc=["hpcc", "dctcp", "flowtune"], skip_refused=True)
    assert sweep.labels == ["dctcp"] and list(sweep.refused) == ["hpcc", "flowtune"]
    assert "hpcc refused (`hpcc` compares telemetry" in fairrate.report(sweep, tmp_path / "report").read_text()
    with pytest.raises(fairrate.ScenarioError, match="compares telemetry"):
        fairrate.sweep(sprayed, cc=["hpcc"])


def test_every_number_of_a_frame_has_a_unit(small: Scenario) -> None:
    incast = {"kind": "incast", "receiver": "h0", "senders": ["h1", "h2"], "bytes": "9KB"}
    grid = {"traffic": [[incast | {"name": "one"}], [incast | {"name": "two"}]]}
    sweep = fairrate.sweep(small, ["dctcp"], grid=grid)
    frame = sweep[:1].frame("goodput", "completion:one", "slowdown-p99", "wall_s", "drops")
    assert [sweep.units[name] for name in frame.columns[-5:]] == ["Gb/s", "µs", "1", "s", "packets"]
    assert sweep.units["query-p50:two"] == "µs" and "label" not in sweep.units
    for table in (sweep.flows(), sweep.ports()):
        assert {name for name in table.columns if name not in sweep.units} <= {"label", "cc", "seed", "traffic"}
