"""What the documentation shows can be run."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text()
    return [part.split("```")[0] for part in text.split("```python\n")[1:]]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/tune.md"])
def test_the_blocks_of_a_page_have_sound_types(page: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page)))
    printed, errors, failed = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(script)])
    assert not failed, printed + errors


@pytest.mark.parametrize(("page", "n"), [("README.md", 1), ("docs/python.md", 5), ("docs/tune.md", 1)])
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
