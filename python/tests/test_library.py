"""Algorithms from shared libraries."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from pathlib import Path

import pytest

import fairrate
from fairrate import Scenario

ROOT = Path(__file__).parents[2]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """theta-PowerTCP in C."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    out = tmp_path / "libtheta.so"
    source = ROOT / "examples/library-c/theta_powertcp.c"
    flags = ["-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I", str(ROOT / "include")]
    subprocess.run([compiler, *flags, "-o", str(out), str(source), "-lm"], check=True)
    return out


def test_a_library_runs_as_the_built_in_one(incast: Scenario, library: Path) -> None:
    theirs = fairrate.run(incast, cc="theta-powertcp")
    ours = fairrate.run(incast, cc=str(library))
    assert ours.fingerprint == theirs.fingerprint and ours.summary["cc"] == "c-theta-powertcp"


def test_a_scenario_takes_its_library_along(incast: Scenario, library: Path) -> None:
    scenario = incast.with_(**{"transport.cc": str(library)})
    again = pickle.loads(pickle.dumps(scenario))
    library.unlink()
    assert again.hash == scenario.hash
    assert fairrate.run(again).fingerprint == fairrate.run(incast, cc="theta-powertcp").fingerprint


def test_a_sweep_has_libraries_beside_others(incast: Scenario, library: Path, tmp_path: Path) -> None:
    sweep = fairrate.sweep(incast, ["theta-powertcp", f"{library}:gamma=0.9"], seeds=[1, 2], cache=tmp_path / "runs")
    prints = sweep.frame()["fingerprint"]
    assert sweep.labels == ["theta-powertcp", "c-theta-powertcp:gamma=0.9"]
    assert prints[0] == prints[2] and prints[1] == prints[3]
