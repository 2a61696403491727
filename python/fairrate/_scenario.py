"""Scenarios."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from fairrate import _native
from fairrate._errors import ScenarioError


class Scenario:
    """A runnable scenario: everything a run is made from, every default filled in.

    Make one with :meth:`load`, :meth:`from_dict` or :meth:`from_toml`. It does not change; :meth:`with_` gives another one.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Scenario) -> None:
        self._native = native

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file.

        Raises:
            ScenarioError: If the file or one it names cannot be read, or anything in them is wrong.
        """
        return cls(_native.Scenario.load(path))

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], *, name: str = "scenario", base_dir: str | os.PathLike[str] = "."
    ) -> Scenario:
        """Reads a scenario from what its file would say, as nested dicts and lists.

        Args:
            values: Keys and values as in a file; quantities are texts with units, such as ``"5ms"``.
            name: What the scenario is called unless ``values`` say so.
            base_dir: Paths in ``values`` are relative to it.

        Raises:
            ScenarioError: If anything is wrong. Its line is that of the scenario as TOML.
            TypeError: If a value is of a kind that no scenario has.
        """
        return cls.from_toml(_native.toml_document(_json(dict(values))), name=name, base_dir=base_dir)

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario", base_dir: str | os.PathLike[str] = ".") -> Scenario:
        """Reads a scenario from the text of a file; see :meth:`from_dict` for the arguments."""
        return cls(_native.Scenario.from_toml(text, name, base_dir))

    def with_(self, changes: Mapping[str, Any] | None = None, **more: Any) -> Scenario:
        """The same scenario with other values of some keys.

        Args:
            changes: Values by dotted key, lists counted from 0, as ``{"traffic.0.load": 0.4}``.
            more: The same as keyword arguments, as ``**{"transport.cc": "hpcc"}`` or ``seed=3``.

        Raises:
            ScenarioError: If the scenario cannot be run so.
            TypeError: If a value is of a kind that no scenario has.
        """
        sets = {**(changes or {}), **more}
        return Scenario(self._native.with_sets([(key, toml(value, key)) for key, value in sets.items()]))

    @property
    def name(self) -> str:
        """What runs are called."""
        return self._native.name

    @property
    def description(self) -> str:
        """What it is about; may be empty."""
        return self._native.description

    @property
    def cc(self) -> str:
        """Name of its algorithm."""
        return self._native.cc

    @property
    def seed(self) -> int:
        """Seed of all its random streams."""
        return self._native.seed

    @property
    def hash(self) -> str:
        """Hash of the resolved scenario and its files, as in ``summary.json``."""
        return self._native.hash

    @property
    def resolved(self) -> str:
        """The scenario as TOML, every default filled in, runnable as it is."""
        return self._native.resolved

    @property
    def warnings(self) -> list[str]:
        """What is allowed and likely not meant, as a default that was published for other rates; runs warn of it."""
        return self._native.warnings

    def __repr__(self) -> str:
        return f"<fairrate.Scenario {self.name}: {self.cc}, seed {self.seed}, {self._native.n_flows:,} flows>"

    def _repr_html_(self) -> str:
        from html import escape

        about = f"<p>{escape(self.description)}</p>" if self.description else ""
        text = f"<details><summary>{escape(repr(self)[1:-1])}</summary><pre>{escape(self.resolved)}</pre></details>"
        return about + text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.resolved == other.resolved and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __reduce__(self) -> tuple[Any, ...]:
        # The resolved text and its files: they are all a worker on another machine needs.
        return _with_files, (self.resolved, self.name, self._native.files)


ScenarioLike = Scenario | str | os.PathLike[str]
"""A scenario, or the path of its file."""


def scenario_of(given: ScenarioLike) -> Scenario:
    """The scenario itself, or that of a file."""
    if isinstance(given, Scenario):
        return given
    if isinstance(given, str | os.PathLike):
        return Scenario.load(given)
    raise TypeError(f"{type(given).__name__} is no scenario; give a fairrate.Scenario or the path of a file")


def json_schema() -> dict[str, Any]:
    """The JSON schema of scenarios, as ``fairrate schema`` prints it: what editors complete and check them by."""
    schema: dict[str, Any] = json.loads(_native.json_schema())
    return schema


def _with_files(text: str, name: str, files: list[tuple[str, bytes]]) -> Scenario:
    return Scenario(_native.Scenario.with_files(text, name, files, None))


def toml(value: Any, key: str | None = None) -> str:
    """A value as TOML; ``key`` is the dotted key that it is for.

    Raises:
        ScenarioError: If it is a number that no scenario has.
        TypeError: If it is of a kind that no scenario has.
    """
    return _native.toml_value(_json(value, key))


def _json(value: Any, key: str | None = None) -> str:
    return json.dumps(_plain(value, key), allow_nan=False)


LEAST, LARGEST = -(2**63), 2**63 - 1
"""Ends of the whole numbers of TOML."""


def _plain(value: Any, key: str | None) -> Any:
    """A value as JSON has it; numpy's numbers and arrays, and paths, become what they stand for."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each, f"{key}.{name}" if key else str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, f"{key}.{i}" if key else None) for i, each in enumerate(value)]
    if value is None:
        raise ScenarioError("`None` is no value", key=key, suggestion="leave the key out for its default")
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"`{value}` is no number of a scenario", key=key, suggestion="give a finite number")
    if isinstance(value, int) and not LEAST <= value <= LARGEST:
        help = f"give a whole number from {LEAST} to {LARGEST}"
        raise ScenarioError(f"`{value}` is no number of a scenario", key=key, suggestion=help)
    if isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} is no value of a scenario")
