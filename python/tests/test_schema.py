"""The JSON schema of scenarios."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import fairrate

jsonschema = pytest.importorskip("jsonschema")
tomllib = pytest.importorskip("tomllib")


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = fairrate.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_example_fits(validator: Any, examples: Path) -> None:
    for path in sorted(examples.glob("*.toml")):
        for text in (path.read_text(), fairrate.Scenario.load(path).resolved):
            errors = [f"{list(e.path)}: {e.message}" for e in validator.iter_errors(tomllib.loads(text))]
            assert errors == [], path.name


def test_every_algorithm_fits(validator: Any, incast: fairrate.Scenario) -> None:
    for name in validator.schema["properties"]["transport"]["properties"]["cc"]["anyOf"][0]["enum"]:
        changes = {"transport.cc": name}
        try:
            scenario = incast.with_(changes)
        except fairrate.ScenarioError:
            scenario = incast.with_(changes | {"transport.kind": "tcp"})
        errors = [f"{list(e.path)}: {e.message}" for e in validator.iter_errors(tomllib.loads(scenario.resolved))]
        assert errors == [], name


def test_forms_of_a_value_fit(validator: Any, examples: Path) -> None:
    good = tomllib.loads((examples / "websearch.toml").read_text())
    for more in [
        {"host": [{"hosts": "h3", "processing": "1us"}]},
        {"host": [{"hosts": ["h0", 1], "processing": "1us"}]},
        {"transport": {"cc": "./libmine.so"}},
        {"duration": "1µs"},
    ]:
        assert list(validator.iter_errors(good | more)) == [], more


def test_what_does_not_fit(validator: Any, examples: Path) -> None:
    good = tomllib.loads((examples / "websearch.toml").read_text())
    for path, value in [
        (["topology", "kind"], "fat-tee"),
        (["topology", "spines"], 3),
        (["traffic", 0, "load"], "0.6"),
        (["traffic", 0, "lod"], 0.6),
        (["traffic", 0, "stop"], "42"),
        (["transport"], {"cc": "powertpc"}),
        (["transport"], {"powertcp": {"gama": 0.5}}),
        (["seed"], -1),
    ]:
        wrong: Any = copy.deepcopy(good)
        at = wrong
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        assert list(validator.iter_errors(wrong)), path


def test_keys_say_what_they_mean(validator: Any) -> None:
    schema = validator.schema["properties"]
    assert "load" in schema["traffic"]["items"]["properties"]["load"]["description"]
    without = [
        f"{section}.{key}"
        for section in ("topology", "switch", "transport", "links")
        for key, value in schema[section]["properties"].items()
        if "description" not in value and "properties" not in value
    ]
    assert without == ["topology.kind"]
