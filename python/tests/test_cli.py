"""The program ``fairrate`` that comes with the package."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import fairrate
from fairrate import _native

EXAMPLES = Path(__file__).parents[2] / "examples"


def program() -> Path:
    return Path(sysconfig.get_path("scripts")) / "fairrate"


def called(*args: str | Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ if path is None else {**os.environ, "PATH": path}
    return subprocess.run([program(), *args], capture_output=True, text=True, env=environment)


def test_the_package_brings_the_command_line(tmp_path: Path) -> None:
    assert called("--version").stdout == f"fairrate {_native.VERSION}\n"
    done = called("run", EXAMPLES / "incast10.toml", "--out", tmp_path / "run")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    ours = fairrate.run(EXAMPLES / "incast10.toml")
    assert fairrate.load(tmp_path / "run").fingerprint == ours.fingerprint


def test_exit_codes_and_errors_are_those_of_the_program(tmp_path: Path) -> None:
    missing = called("run", tmp_path / "missing.toml")
    assert missing.returncode == 2
    assert "missing.toml" in missing.stderr
    unknown = called("run", EXAMPLES / "incast10.toml", "--nonsense", "--json")
    assert unknown.returncode == 2
    assert '"error"' in unknown.stderr


def test_programs_beside_it_are_found_without_path() -> None:
    done = called("tune", "--help", path="")
    assert done.returncode == 0, done.stderr
    assert "usage: fairrate tune" in done.stdout


def test_it_is_the_same_program_as_the_binary() -> None:
    if binary := os.environ.get("FAIRRATE_BIN"):
        theirs = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True)
        # Lines are as long as the terminal is wide, which only one of them may see.
        assert called("--help").stdout.split() == theirs.stdout.split()
