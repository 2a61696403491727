"""The directory of a study: one problem, one process at a time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairrate import _native
from fairrate._errors import TuneError
from fairrate._scenario import Scenario
from fairrate.tune._goals import Goals
from fairrate.tune._space import Axis

WORDS = {
    "scenario": "the scenario",
    "fairrate": "the version of fairrate",
    "params": "the parameters",
    "objectives": "the objectives",
    "constraints": "the constraints",
    "seeds": "the seeds",
    "search": "the way to search",
}


def problem_of(
    axes: Sequence[Axis], goals: Goals, scenario: Scenario, seeds: Sequence[int], search: dict[str, Any]
) -> dict[str, Any]:
    """Returns everything that the trials of a study have in common."""
    return {
        "scenario": {"name": scenario.name, "hash": scenario.hash},
        "fairrate": _native.SOURCES,
        "params": {axis.key: axis.about() for axis in axes},
        "objectives": [str(one) for one in goals.objectives],
        "constraints": sorted(str(one) for one in goals.constraints),
        "seeds": list(seeds),
        "search": search,
    }


SCHEMA = "fairrate.tune/1"
"""The schema of ``tune.json``."""


def claimed(dir: Path) -> None:
    """Makes a directory for a study, unless it is there and empty or has one.

    Raises:
        TuneError: If it contains other files, or is a file. Nothing is written then.
    """
    if (dir.exists() or dir.is_symlink()) and not _is_free(dir):
        message = f"`{dir}` holds something else than a study"
        help = "give a new or empty directory, or that of this study"
        raise TuneError(message, code="tune::occupied", path=str(dir), suggestion=help)
    dir.mkdir(parents=True, exist_ok=True)


def _is_free(dir: Path) -> bool:
    """Returns ``True`` if a directory is empty or has ``study.db``, or a ``tune.json`` that reads."""
    if not dir.is_dir():
        return False
    if (dir / "study.db").is_file() or not any(dir.iterdir()):
        return True
    try:
        known = json.loads((dir / "tune.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(known, dict) and str(known.get("schema")).startswith(SCHEMA.partition("/")[0] + "/")


def checked(storage: str, problem: dict[str, Any], dir: Path | None) -> None:
    """Holds a problem to the one of the study that is there already, if there is one.

    Raises:
        TuneError: If they differ.
    """
    import optuna

    try:
        there = optuna.load_study(study_name="fairrate", storage=storage).user_attrs.get("problem")
    except KeyError:
        if optuna.get_all_study_names(storage):
            message, help = f"`{dir}/study.db` has studies of another program", "give another directory"
            raise TuneError(message, code="tune::no_study", path=str(dir), suggestion=help) from None
        return
    except Exception as error:
        # SQLAlchemy and Alembic have exceptions of their own for a file that is none of theirs.
        message = f"`{dir}/study.db` cannot be read: {str(error).splitlines()[0]}"
        raise TuneError(message, code="tune::no_study", path=str(dir), suggestion="give another directory") from error
    if there is None:
        return
    differing = [words for name, words in WORDS.items() if there.get(name) != problem[name]]
    if differing:
        *first, last = differing
        which = f"{', '.join(first)} and {last}" if first else last
        message = f"another study is in `{dir}`: {which} {'differ' if first or last.endswith('s') else 'differs'}"
        raise TuneError(message, code="tune::other_study", path=str(dir), suggestion="give another directory")


@contextlib.contextmanager
def lock(dir: Path | None) -> Iterator[None]:
    """Keeps other processes out of a directory, as far as the system has locks that end with a process.

    Raises:
        TuneError: If another process is in it.
    """
    try:
        import fcntl
    except ImportError:
        fcntl = None  # type: ignore[assignment]
    if dir is None or fcntl is None:
        yield
        return
    with (dir / "study.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"another process works on the study in `{dir}`"
            help = "wait for it, or give another directory"
            raise TuneError(message, code="tune::busy", path=str(dir), suggestion=help) from None
        yield
