"""Builds the site of the documentation below `target/site/html`: `python docs/site/build.py`.

It needs the packages of the group `site` in `pyproject.toml`. Pages link to each other and to files as these lie in the
repository. This program lays out all pages, and all files that they link to, below `target/site/pages`, with links that
hold there. It then runs the generator, adds what `cargo doc` has written, and holds every link of the result.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import check
import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target/site"
PAGES, HTML = SITE / "pages", SITE / "html"
LANGUAGES = {".rs": "rust", ".toml": "toml", ".py": "python", ".c": "c", ".h": "c"}


def place(path: Path) -> Path:
    """Returns where a file or directory of the repository lies among the pages."""
    inner = path.relative_to("docs") if path.parts[0] == "docs" else path
    if path.suffix in {".svg", ".md"}:
        return inner.with_name("index.md") if path.name == "README.md" else inner
    if (ROOT / path).is_dir():
        return (inner if inner != path else "files" / path) / "index.md"
    return Path("files", f"{path}.md")


def slug(heading: str) -> str:
    """Returns the anchor of a heading in the repository's pages."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def adapted(path: Path, text: str, linked: set[Path]) -> str:
    """Returns a page for the site. Adds the files that it links to to `linked`."""

    def link(match: re.Match[str]) -> str:
        file, mark, anchor = match[2].partition("#")
        if not file or re.match(r"[a-z]+:", file):
            return match[0]
        target = Path(os.path.normpath(path.parent / file))
        if not (ROOT / target).exists():
            sys.exit(f"{path} links to {file}, which does not exist")
        linked.add(target)
        return match[1] + os.path.relpath(place(target), place(path).parent) + mark + anchor + match[3]

    lines: list[str] = []
    fenced, anchors = False, set()
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            line = re.sub(r"(\]\()([^)\s]+)(\))", link, line)
            before = lines[-1] if lines else ""
            # Python's Markdown begins a list only after an empty line.
            in_list = re.match(r"- |\d+\. | ", before) and before.strip() != "```"
            if re.match(r"- |\d+\. ", line) and before and not in_list:
                lines.append("")
            heading = re.match(r"#+ (.*)", line)
            if heading and slug(heading[1]) not in anchors:
                anchors.add(slug(heading[1]))
                line += f" {{ #{slug(heading[1])} }}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def listing(path: Path, linked: set[Path]) -> str:
    """Returns a page with the entries of a directory. Adds these to `linked`."""
    entries = sorted(p.relative_to(ROOT) for p in (ROOT / path).iterdir() if not p.name.startswith("."))
    entries = [e for e in entries if e.name not in {"Cargo.lock", "target", "runs"} and e.suffix != ".so"]
    linked.update(entries)
    titles = {
        e: (ROOT / e).read_text().splitlines()[0].lstrip("# ") if e.suffix == ".md" else f"`{e.name}`" for e in entries
    }
    links = (f"- [{titles[e]}]({os.path.relpath(place(e), place(path).parent)})\n" for e in entries)
    return f"# {path.name.capitalize()}\n\nWhat is in `{path}` of the repository:\n\n" + "".join(links)


def notebook(path: Path) -> str:
    """Returns a page with the text and the code of a notebook."""
    cells = json.loads((ROOT / path).read_text())["cells"]
    parts = [
        "".join(c["source"]) if c["cell_type"] == "markdown" else f"```python\n{''.join(c['source'])}\n```"
        for c in cells
    ]
    return "\n\n".join([*parts, f"This is `{path}` in the repository.\n"])


def lay_out() -> None:
    """Writes all pages, and the files that they link to, below `PAGES`."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "validation").rglob("*.md")]
    todo, done = {p.relative_to(ROOT) for p in found}, set[Path]()
    while todo:
        path = todo.pop()
        done.add(path)
        linked: set[Path] = set()
        target = PAGES / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            target.write_text(listing(path, linked))
        elif path.suffix == ".md":
            target.write_text(adapted(path, (ROOT / path).read_text(), linked))
        elif path.suffix == ".svg":
            shutil.copyfile(ROOT / path, target)
        elif path.suffix == ".ipynb":
            target.write_text(notebook(path))
        else:
            language = LANGUAGES.get(path.suffix, "text")
            head = f"---\nsearch:\n  exclude: true\n---\n# {path.name}\n\n`{path}` in the repository.\n\n"
            target.write_text(f"{head}````{language}\n{(ROOT / path).read_text()}\n````\n")
        todo |= linked - done


def rust_page() -> bool:
    """Writes a page that leads to what `cargo doc` has written, if it has. Returns `True` if so."""
    crates = sorted(p.parent.name for p in (ROOT / "target/doc").glob("fairrate*/index.html"))
    links = "".join(f'<li><a href="rust/{crate}/index.html">{crate}</a></li>\n' for crate in crates)
    if crates:
        (PAGES / "rust-api.md").write_text(f"# Rust API\n\nThe crates of the workspace.\n\n<ul>\n{links}</ul>\n")
    return bool(crates)


def python_page() -> None:
    """Writes the page that the generator fills with the docs of the Python package, without importing it."""
    shutil.copytree(
        ROOT / "python/fairrate", SITE / "python/fairrate", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    for source in (SITE / "python").rglob("*.py*"):
        source.write_text(re.sub(r":(class|meth|func|attr|mod):(?=`)", "", source.read_text()))
    (PAGES / "python-api.md").write_text("# Python API\n\n::: fairrate\n")


def expanded(nav: list[object], rust: bool) -> list[object]:
    """Returns the navigation with patterns replaced by the pages that they match."""
    out: list[object] = []
    for entry in nav:
        if isinstance(entry, str) and "*" in entry:
            pages = sorted(
                PAGES.glob(entry), key=lambda p: [int(s) if s.isdigit() else s for s in re.split(r"(\d+)", str(p))]
            )
            found = [str(page.relative_to(PAGES)) for page in pages]
            out += [page for page in found if page not in set(check.leaves(nav))]
        elif isinstance(entry, dict):
            out += [
                {k: expanded(v, rust) if isinstance(v, list) else v}
                for k, v in entry.items()
                if rust or v != "rust-api.md"
            ]
        else:
            out.append(entry)
    return out


def use_own_shim() -> None:
    """Makes pages load `worker.js` where the generator's would load a script from the network."""
    shutil.copyfile(Path(__file__).with_name("worker.js"), HTML / "assets/javascripts/worker.js")
    for page in HTML.rglob("*.html"):
        up = "../" * (len(page.relative_to(HTML).parts) - 1)
        script = f'src="{up}assets/javascripts/worker.js"'
        page.write_text(re.sub(r'src="?https://unpkg.com/iframe-worker/shim"?', script, page.read_text()))


def main() -> None:
    shutil.rmtree(SITE, ignore_errors=True)
    lay_out()
    python_page()
    shutil.copyfile(Path(__file__).with_name("extra.css"), PAGES / "extra.css")
    rust = "--without-rust" not in sys.argv and rust_page()
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    config["nav"] = expanded(config["nav"], rust)
    check.nothing_forgotten(config["nav"], PAGES)
    (SITE / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False))
    if subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "-f", SITE / "mkdocs.yml"], check=False
    ).returncode:
        sys.exit("the generator has found problems, above")
    use_own_shim()
    if rust:
        shutil.copytree(ROOT / "target/doc", HTML / "rust")
    else:
        print("without the Rust API")
    check.links_hold(HTML)


if __name__ == "__main__":
    main()
