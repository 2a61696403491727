"""What tests share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import matplotlib
import pytest

import fairrate

matplotlib.use("Agg")
# Shells leave Ctrl-C ignored in what they run in the background, and processes pass that on.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def examples() -> Path:
    return ROOT / "examples"


@pytest.fixture
def incast(examples: Path) -> fairrate.Scenario:
    """A run of some tens of milliseconds."""
    return fairrate.Scenario.load(examples / "incast10.toml").with_(duration="1.2ms")


@pytest.fixture(scope="session")
def cli() -> Path:
    """The command line of the same sources."""
    given = os.environ.get("FAIRRATE_BIN") or shutil.which("fairrate") or ROOT / "target/release/fairrate"
    path = Path(given)
    if not path.exists():
        pytest.skip("there is no `fairrate` to compare with; give FAIRRATE_BIN or run `cargo build --release`")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    assert fairrate.__version__ in version
    return path
