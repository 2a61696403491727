"""Where runs are kept: found by what they are runs of, and put where ``fairrate compare`` puts them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from fairrate import _native
from fairrate._scenario import Scenario


class Cache:
    """A directory such as ``runs``, with the directories of runs and of comparisons in it."""

    def __init__(self, root: str | os.PathLike[str], scenario: Scenario) -> None:
        self._root = Path(root)
        self._comparison = self._root / _native.file_name(f"{scenario.name}-compare")
        _native.check_directory(self._comparison)
        self._by_hash = _by_hash(self._root)
        self._taken: set[Path] = set()

    def place(self, name: str, scenario: Scenario) -> tuple[Path, Path | None]:
        """Where a run belongs, and where it is if it is there already: complete, whole, and made by this very fairrate."""
        dir = self._comparison / name
        if (dir / "summary.json").exists() and dir not in self._by_hash.get(scenario.hash, []):
            # A run of another scenario has the name, and stays.
            dir = self._comparison / f"{name}-{scenario.hash[:8]}"
        for found in self._by_hash.get(scenario.hash, []):
            if _native.is_complete_run_of(found, scenario._native):
                return dir, found
        if not self._taken:
            _native.make_directory(self._comparison)
        if dir in self._taken:
            dir = self._comparison / f"{name}-{len(self._taken)}"
        self._taken.add(dir)
        _native.check_directory(dir)
        return dir, None


def _by_hash(root: Path) -> dict[str, list[Path]]:
    """The results directories below ``root``, by the hash of their scenario."""
    found: dict[str, list[Path]] = {}
    for pattern in ("*/summary.json", "*/*/summary.json"):
        for path in sorted(root.glob(pattern)):
            try:
                key = json.loads(path.read_text())["scenario_hash"]
            except (OSError, ValueError, KeyError, TypeError):
                continue
            found.setdefault(key, []).append(path.parent)
    return found
