"""What the documentation shows can be run."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text()
    return [part.split("```")[0] for part in text.split("```python\n")[1:]]


def test_the_readme_has_the_types_it_should(tmp_path: Path) -> None:
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks("README.md")))
    config = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    printed, errors, code = api.run([*config, str(script)])
    assert code == 0, printed + errors


@pytest.mark.parametrize(("page", "n"), [("README.md", 1), ("docs/python.md", 4)])
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
    else:
        assert "transport.cc did you mean `powertcp`" in printed
        assert (tmp_path / "queue.png").exists()
