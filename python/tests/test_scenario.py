"""Scenarios and their errors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import fairrate
from fairrate import Scenario, ScenarioError

SMALL = {
    "duration": "100us",
    "topology": {"kind": "star", "hosts": 3},
    "traffic": [{"kind": "incast", "receiver": 0, "senders": 2, "bytes": "10KB"}],
}


def test_a_dict_says_what_a_file_says() -> None:
    text = 'duration = "100us"\n[topology]\nkind = "star"\nhosts = 3\n[[traffic]]\nkind = "incast"\n'
    text += 'receiver = 0\nsenders = 2\nbytes = "10KB"\n'
    assert Scenario.from_dict(SMALL) == Scenario.from_toml(text)
    assert Scenario.from_dict(SMALL, name="x").name == "x"


def test_keys_are_changed_in_a_copy(incast: Scenario) -> None:
    changed = incast.with_(**{"transport.cc": "hpcc", "seed": 3})
    assert (changed.cc, changed.seed) == ("hpcc", 3)
    assert (incast.cc, incast.seed) == ("powertcp", 1)
    later = changed.with_(seed=4)
    assert (later.cc, later.seed) == ("hpcc", 4)
    assert "flows = [0, 1]" in incast.with_({"probe.1.flows": [0, 1]}).resolved


def test_an_error_has_path_key_place_and_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('duration = "5ms"\n[topology]\nkind = "star"\n[[traffic]]\nkind = "incast"\nreceiver = 0\n'
                    'senders = 2\nbytes = "10KX"\nweigth = 3\n')
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(path)
    error = caught.value
    assert (error.code, error.path, error.key) == ("scenario::bad_quantity", str(path), "traffic.0.bytes")
    assert (error.line, error.column) == (8, 9)
    assert "10KB" in error.suggestion
    other = error.others[0]
    assert (other.code, other.key, other.line) == ("scenario::unknown_key", "traffic.0.weigth", 9)
    assert isinstance(error, ValueError) and isinstance(error, fairrate.Error)
    assert str(path) in str(error) and "help: " in str(error)


def test_an_error_of_a_change_names_its_key(incast: Scenario) -> None:
    with pytest.raises(ScenarioError) as caught:
        incast.with_(**{"transport.cc": "powertpc"})
    assert (caught.value.key, caught.value.path, caught.value.line) == ("transport.cc", None, None)
    assert "did you mean `powertcp`?" in caught.value.suggestion
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.key, str(again)) == (caught.value.key, str(caught.value))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot read") as caught:
        Scenario.load(tmp_path / "none.toml")
    assert caught.value.code == "scenario::unreadable_file"


def test_what_toml_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError):
        Scenario.from_dict({**SMALL, "seed": None})
    with pytest.raises(ValueError):
        Scenario.from_dict({**SMALL, "seed": float("nan")})
    with pytest.raises(TypeError):
        Scenario.from_dict({**SMALL, "seed": object()})


def test_every_example_travels(examples: Path) -> None:
    """A worker gets the resolved scenario: it has the same hash, so the same place in a cache."""
    paths = sorted(examples.glob("*.toml"))
    assert 20 < len(paths)
    for path in paths:
        scenario = Scenario.load(path)
        got = pickle.loads(pickle.dumps(scenario))
        assert got.hash == scenario.hash and got == scenario and got.name == scenario.name, path
    assert copy.copy(scenario) == scenario


def test_what_notebooks_show(incast: Scenario) -> None:
    assert repr(incast) == "<fairrate.Scenario incast10: powertcp, seed 1, 11 flows>"
    assert "<pre>" in incast._repr_html_() and "tor0-&gt;h16" in incast._repr_html_()
