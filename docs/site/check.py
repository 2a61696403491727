"""Checks of the site: every page is in the navigation, every link leads somewhere, nothing comes from the network."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


def leaves(nav: object) -> Iterator[str]:
    """Yields the pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from leaves(entry)
    elif isinstance(nav, list):
        for entry in nav:
            yield from leaves(entry)


def nothing_forgotten(nav: object, pages: Path) -> None:
    """Ends the program if a page is not in the navigation. Listings and sources, below `files`, need not be."""
    there = {str(p.relative_to(pages)) for p in pages.rglob("*.md")}
    forgotten = sorted(p for p in there - set(leaves(nav)) if not p.startswith("files/"))
    if forgotten:
        sys.exit("not in the navigation of mkdocs.yml: " + ", ".join(forgotten))


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := values.get(key))}
        self.links += [(tag, value) for key in ("href", "src") if (value := values.get(key))]


def problems(html: Path) -> Iterator[str]:
    """Yields what is wrong with the pages below `html`. Those of rustdoc are only led to."""
    pages = {p: Page(p.read_text()) for p in html.rglob("*.html") if "rust" not in p.relative_to(html).parts[:1]}
    for path, page in pages.items():
        here = path.relative_to(html)
        for tag, link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                if tag not in {"a"}:
                    yield f"{here}: <{tag}> loads {link}"
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            if here.name == "404.html" or url.path.startswith("/"):
                continue
            if not target.exists():
                yield f"{here}: {link} does not exist"
            elif url.fragment and target in pages and unquote(url.fragment) not in pages[target].anchors:
                yield f"{here}: {link} has no such anchor"
    for style in html.glob("assets/**/*.css"):
        if re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text()):
            yield f"{style.relative_to(html)} loads from the network"


def links_hold(html: Path) -> None:
    """Ends the program with the problems of the site, if there are any."""
    found = sorted(set(problems(html)))
    n = sum(1 for _ in html.rglob("*.html"))
    if found:
        sys.exit("\n".join([*found, f"{len(found)} problems in {n} pages"]))
    print(f"{n} pages, every link leads somewhere, nothing comes from the network: {html / 'index.html'}")
