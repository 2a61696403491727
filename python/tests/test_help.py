"""What `help` says: everything public is documented, and the types of the native half say the same."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fairrate

STUB = Path(fairrate.__file__).with_name("_native.pyi")


def public(owner: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every public name of fairrate, with what it is."""
    # A class has what those of fairrate that it is derived from have, as results have their tables.
    owners = [cls for cls in inspect.getmro(owner) if cls.__module__.startswith("fairrate")] if inspect.isclass(owner) else [owner]
    own = dict.fromkeys(name for part in owners for name in vars(part) if not name.startswith("_"))
    names = owner.__all__ if hasattr(owner, "__all__") else list(own)
    for name in names:
        if name.startswith("__"):
            continue
        thing = inspect.getattr_static(owner, name)
        if isinstance(thing, ModuleType):
            if thing.__name__.startswith("fairrate"):
                yield f"{path}.{name}", thing
                yield from public(thing, f"{path}.{name}")
            continue
        if isinstance(owner, ModuleType) and not getattr(thing, "__module__", "fairrate").startswith("fairrate"):
            continue
        yield f"{path}.{name}", thing
        if inspect.isclass(thing):
            yield from public(thing, f"{path}.{name}")


def is_documentable(thing: Any) -> bool:
    plain = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
    is_descriptor = inspect.isgetsetdescriptor(plain) or inspect.ismethoddescriptor(plain)
    return inspect.isclass(plain) or callable(plain) or isinstance(plain, property) or is_descriptor or hasattr(plain, "func")


def test_everything_public_is_documented() -> None:
    found = dict(public(fairrate, "fairrate"))
    assert {"fairrate.Ack.rtt_ns", "fairrate.plot.queue", "fairrate.tune.Study.run", "fairrate.Result.flows"} <= set(found)
    bare = [path for path, thing in found.items() if is_documentable(thing) and not inspect.getdoc(thing)]
    # Attributes of errors and of data classes are described with their class.
    undescribed = []
    for path, thing in found.items():
        if inspect.isclass(thing):
            for name in getattr(thing, "__annotations__", {}):
                if not name.startswith("_") and f"{name}:" not in (inspect.getdoc(thing) or "") and not is_described(thing, name):
                    undescribed.append(f"{path}.{name}")
    assert (bare, undescribed) == ([], [])


def is_described(cls: type, name: str) -> bool:
    """Whether a string follows the attribute in the class's source."""
    (tree,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(tree, ast.ClassDef)
    for at, following in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(at, ast.AnnAssign) and isinstance(at.target, ast.Name) and at.target.id == name:
            return isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
    return False


@pytest.mark.parametrize("name", ["Ack", "Allowance", "Flow", "IntHop", "Packet", "Port"])
def test_editors_say_what_help_says(name: str) -> None:
    """Editors read the stub, and `help` the extension."""
    (stub,) = [node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef) and node.name == name]
    native = getattr(fairrate, name)
    assert words(ast.get_docstring(stub)) == words(native.__doc__)
    said = {}
    for at, following in zip(stub.body, [*stub.body[1:], ast.Pass()], strict=True):
        if isinstance(at, ast.FunctionDef) and not at.name.startswith("_"):
            said[at.name] = ast.get_docstring(at)
        elif isinstance(at, ast.AnnAssign) and isinstance(at.target, ast.Name) and isinstance(following, ast.Expr):
            said[at.target.id] = ast.literal_eval(following.value)
    own = {key: value.__doc__ for key, value in vars(native).items() if inspect.isgetsetdescriptor(value)}
    assert {key: words(text) for key, text in said.items()} == {key: words(text) for key, text in own.items()}
    # A number has its unit in its name or in its text.
    units = ("nanoseconds", "seconds", "bits per second", "bits on the wire per second", "bytes", "without a unit")
    for key, text in own.items():
        if key.endswith(("_ns", "_s", "_bps", "_bytes")):
            assert any(unit in words(text).lower() for unit in units), key


def words(text: str | None) -> str:
    return " ".join((text or "").split())


def test_numbers_of_frames_have_units(examples: Path) -> None:
    scenario = fairrate.Scenario.load(examples / "incast10.toml").with_(duration="1.1ms")
    sweep = fairrate.sweep(scenario, ["hpcc"])
    units = sweep.units
    frame = sweep.frame("goodput", "queue-p99", "slowdown-p99", "unfinished-share:short", "goodput_bps", "bytes_sent", "drops")
    shown = {name: units[name] for name in frame.columns if name in units}
    assert shown == {
        "goodput": "Gb/s", "queue-p99": "KB", "slowdown-p99": "1", "unfinished-share:short": "%", "goodput_bps": "bit/s",
        "bytes_sent": "B", "drops": "packets",
    }
    result = sweep[0].result
    assert set(result.metrics) <= set(result.units) and set(result.metrics) <= set(units)
    assert result.units["jain"] == "1" and result.units["convergence-p99"] == "base RTTs"
    assert result.metrics["goodput"] == pytest.approx(result.summary["goodput_bps"] / 1e9)
    assert (units["fct_ns"], units["qlen_bytes"], units["rate_bps"]) == ("ns", "B", "bit/s")
    numbers = {name for name, dtype in sweep.flows().schema.items() if dtype.is_numeric()}
    assert numbers - {"seed"} <= set(units)


def test_errors_name_files_that_exist(tmp_path: Path) -> None:
    (tmp_path / "incast10.toml").write_text("")
    with pytest.raises(fairrate.ScenarioError, match="cannot read") as caught:
        fairrate.Scenario.load(tmp_path / "incast01.toml")
    assert caught.value.suggestion == f"did you mean `{tmp_path / 'incast10.toml'}`?"
    with pytest.raises(fairrate.ScenarioError) as caught:
        fairrate.Scenario.load(tmp_path / "fabric.toml")
    assert caught.value.suggestion == "give the path of a scenario file; `fairrate new FILE` writes one"
