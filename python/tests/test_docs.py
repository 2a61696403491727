"""What the documentation shows can be run."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from mypy import api

import fairrate

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text()
    return [part.split("```")[0] for part in text.split("```python\n")[1:]]


PAGES = ["README.md", "docs/python.md", "docs/tutorial.md", "docs/cookbook.md", "docs/tune.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_have_sound_types(page: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page)))
    printed, errors, failed = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(script)])
    assert not failed, printed + errors


@pytest.mark.parametrize(("page", "n"), [("README.md", 1), ("docs/python.md", 8), ("docs/tune.md", 1)])
def test_every_block_runs(
    page: str, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert len(found) == n
    names: dict[str, object] = {}
    for block in found:
        exec(compile(block, page, "exec"), names)
    printed = capsys.readouterr().out
    assert "shape: (" in printed
    if page == "README.md":
        assert (tmp_path / "queue.svg").read_text().startswith("<?xml")
    elif page == "docs/tune.md":
        assert (tmp_path / "tuned/study.db").exists()
    else:
        assert "transport.cc did you mean `powertcp`" in printed
        assert (tmp_path / "queue.png").exists()


def spans(text: str) -> list[str]:
    """The code within sentences and tables, in order."""
    return re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@pytest.mark.parametrize(("page", "n"), [("docs/python.md", 45), ("docs/tune.md", 12)])
def test_the_package_has_every_name_of_a_page(page: str, n: int, examples: Path) -> None:
    """``fairrate.NAME``, ``result.NAME`` and others like it; ``.NAME`` is of the same thing as the name before it."""
    scenario = fairrate.Scenario.load(examples / "incast10.toml").with_(duration="1.1ms")
    result = fairrate.run(scenario)
    owners = {
        "fairrate": fairrate, "Scenario": fairrate.Scenario, "scenario": scenario, "result": result, "table": result.flows,
        "sweep": fairrate.Sweep([]), "study": fairrate.tune.Study,
    }
    owner: object = None
    found, missing = 0, []
    for span in spans((ROOT / page).read_text()):
        names = re.match(r"(?:help\()?(\w*)((?:\.[a-zA-Z_]\w*)+)(?!\.)", span)
        if names is None or (names[1] and names[1] not in owners) or names[2] in (".db", ".toml"):
            continue
        owner = owners[names[1]] if names[1] else owner
        at: object = owner
        for name in names[2].split(".")[1:]:
            if not hasattr(at, name):
                missing.append(span)
                break
            at = getattr(at, name)
        found += 1
    assert missing == [] and found >= n


def test_the_page_has_the_methods_and_functions_of_the_package() -> None:
    text = (ROOT / "docs/python.md").read_text()
    table = text[text.index("| method | when |") : text.index("In `Allowance(")]
    calls = [re.fullmatch(r"(\w+)\((.*)\)", span) for span in spans(table) if not span.startswith("Needs")]
    methods = {call[1]: call[2] for call in calls if call is not None}
    own = {name: each for name, each in vars(fairrate.Controller).items() if inspect.isfunction(each) and name[0] != "_"}
    assert methods == {name: ", ".join(list(inspect.signature(thing).parameters)[1:]) for name, thing in own.items()}
    for module in (fairrate.stats, fairrate.plot):
        (paragraph,) = [part for part in text.split("\n\n") if part.startswith(f"`{module.__name__}`")]
        named = {span for span in spans(paragraph) if re.fullmatch(r"[a-z_]+", span)} - {"unfinished"}
        assert len(named) > 5 and [name for name in sorted(named) if not hasattr(module, name)] == []


def save_files(text: str) -> None:
    """Saves every block of a page that is followed by "Save it as `NAME`"."""
    for block, name in re.findall(r"```\w+\n((?:(?!```).)*)```\n\nSave it as `([^`]+)`", text, re.DOTALL):
        Path(name).write_text(block)


def test_the_tutorial_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs/tutorial.md").read_text()
    monkeypatch.chdir(tmp_path)
    save_files(text)
    fairrate.run("fabric.toml", out="runs/fabric")
    shown = re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(shown) == len(blocks("docs/tutorial.md")) == 2
    for block, printed in shown:
        exec(compile(block, "docs/tutorial.md", "exec"), {})
        assert capsys.readouterr().out == printed


def test_the_recipes_of_the_cookbook_run(
    cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs/cookbook.md").read_text()
    monkeypatch.chdir(tmp_path)
    save_files(text)
    printed, before, n = "", "", 0
    for language, block in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
        if language == "sh":
            for command in map(shlex.split, block.splitlines()):
                assert command[0] == "fairrate"
                subprocess.run([cli, *command[1:]], check=True, capture_output=True)
                n += 1
        elif language == "python":
            exec(compile(block, "docs/cookbook.md", "exec"), {})
            printed = capsys.readouterr().out
            n += 1
        elif (before, language) == ("python", "text"):
            assert block == printed
            n += 1
        before = language
    assert n == 14
