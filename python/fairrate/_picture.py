"""Pictures of figures, and their points."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairrate import _native
from fairrate._errors import ResultsError

if TYPE_CHECKING:
    import polars

_Path = str | os.PathLike[str]


def picture(svg: _Path, out: _Path | None = None, *, scale: float = 2.0) -> Path:
    """Turns a figure that is SVG into PNG or PDF, for slides and papers.

    Text is drawn with the fonts of the machine, or with those that come with matplotlib. PNG has a white ground.

    Args:
        svg: The SVG, as a report's ``figures/`` has it, or the directory of ``fairrate figure``, whose ``figure.svg`` is meant.
        out: The picture; its ending, ``.png`` or ``.pdf``, is the format. By default a PNG beside the SVG.
        scale: Pixels of a PNG to a unit of the SVG, 0.1 to 20: at 2 a figure of 640 units is 1,280 pixels wide.

    Returns:
        The path of the picture.

    Raises:
        ResultsError: If there is no such file, or it is no SVG.
        ValueError: If the ending or the scale is another one.
        OSError: If the picture cannot be written.
    """
    source = Path(svg)
    if source.is_dir():
        source = source / "figure.svg"
    target = Path(out) if out is not None else source.with_suffix(".png")
    ending = target.suffix.lower()
    if ending not in (".png", ".pdf"):
        raise ValueError(f"`{target}` ends neither in .png nor in .pdf")
    if not 0.1 <= scale <= 20:
        raise ValueError(f"a scale of {scale} is out of range; give a number from 0.1 to 20")
    text = _text_of(source, "give an SVG of a report's `figures`, or the directory of a figure of `fairrate figure`")
    try:
        made = _native.picture(text, scale if ending == ".png" else None, _fonts())
    except ResultsError as error:
        error.path = str(source)
        raise
    target.write_bytes(made)
    return target


def _fonts() -> list[Path]:
    """The fonts of matplotlib."""
    import matplotlib

    return [Path(matplotlib.get_data_path()) / "fonts/ttf"]


def _text_of(path: Path, suggestion: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ResultsError(f"cannot read `{path}`: {why}", path=str(path), suggestion=suggestion) from error


SCHEMA = ("figure", "panel", "line", "x", "y", "low", "high", "word", "x_label", "y_label")


def points(path: _Path) -> polars.DataFrame:
    """Reads the points of figures: a row a point.

    Args:
        path: ``points.csv`` of ``fairrate figure``; a CSV of a report's ``figures/``; or a directory, for all such files below it.

    Returns:
        A data frame with the columns ``figure`` (name of the figure, as ``powertcp/fig8``, or of the file), ``panel`` (heading of the
        panel), ``line`` (name of the line), ``x`` and ``y`` (in the units of the labels), ``low`` and ``high`` (ends of the 95 %
        interval over seeds), ``word`` (where the axis has words, ``x`` is null and this is the word), and ``x_label`` and ``y_label``
        (quantities with their units, as ``queue (KB)``). A value that is missing is null. Of bars over time, as pauses of ports, ``x``
        is where a bar begins and ``y`` where it ends.

    Raises:
        ResultsError: If there is no such file, or it is not in this form.
    """
    import polars

    root = Path(path)
    files = _files_of_points(root) if root.is_dir() else [root]
    if not files:
        suggestion = "give a directory of `fairrate figure`, or `figures` of a report"
        raise ResultsError(f"`{root}` has no points of figures", path=str(root), suggestion=suggestion)
    rows = [row for file in files for row in _rows_of(file)]
    numbers = {name: polars.Float64 for name in ("x", "y", "low", "high")}
    return polars.DataFrame(rows, schema={name: numbers.get(name, polars.String) for name in SCHEMA}, orient="row")


def _files_of_points(root: Path) -> list[Path]:
    """The files of points below a directory: those of papers' figures, or of reports'."""
    found = sorted(root.rglob("points.csv"))
    listed = {csv_file for list_file in sorted(root.rglob("figures.csv")) for csv_file in list_file.parent.glob("*.csv")}
    return found + sorted(file for file in listed if file.name != "figures.csv")


def _rows_of(file: Path) -> Iterator[tuple[Any, ...]]:
    text = _text_of(file, "give `points.csv` of `fairrate figure`, or a CSV of a report's `figures`")
    figure = _figure_of(file)
    for number, panel, lines in _panels(text):
        head, *points = csv.reader(lines)
        if len(head) not in (3, 5):
            message = f"`{file}`, line {number}: a head of {len(head)} columns, and points have 3 or 5"
            raise ResultsError(message, path=str(file), suggestion="give `points.csv` as `fairrate figure` wrote it")
        for at, cells in enumerate(points, number + 1):
            try:
                yield figure, panel, *_point(head, cells)
            except ValueError as error:
                raise ResultsError(f"`{file}`, line {at}: {error}", path=str(file)) from error


def _panels(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """The panels of a file: the number of the line with the head, the heading, and the lines from the head on."""
    lines: list[str] = []
    heading, first, after_gap = "", 1, True
    for number, line in enumerate(text.split("\n"), 1):
        if after_gap and line.startswith("# "):
            heading, first, lines = line[2:], number + 1, []
        elif line:
            lines.append(line)
        after_gap = not line
        if after_gap and lines:
            yield first, heading, lines
            lines = []
    if lines:
        yield first, heading, lines


def _point(head: Sequence[str], cells: Sequence[str]) -> tuple[Any, ...]:
    if len(cells) != len(head):
        raise ValueError(f"{len(cells)} columns, and its head has {len(head)}")
    line, x, *others = cells
    y, low, high = [_number(text) for text in (*others, "", "")[:3]]
    try:
        return line, _number(x), y, low, high, None, head[1], head[2]
    except ValueError:
        return line, None, y, low, high, x, head[1], head[2]


def _number(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise ValueError(f"`{text}` is no number") from None


def _figure_of(file: Path) -> str:
    """The name of a figure: `fairrate figure` writes it into claims.json beside its points."""
    if file.name != "points.csv":
        return file.stem
    try:
        return str(json.loads((file.parent / "claims.json").read_text(encoding="utf-8"))["figure"])
    except (OSError, ValueError, KeyError, TypeError):
        return file.resolve().parent.name


def entry() -> None:
    """The program ``fairrate-picture``, which ``fairrate figure --format`` calls."""
    sys.exit(_main(sys.argv[1:]))


def _main(arguments: Sequence[str]) -> int:
    import argparse

    from fairrate._native import VERSION

    parser = argparse.ArgumentParser("fairrate-picture", description="Turns an SVG into a PDF or a PNG, by the ending of the output's name")
    parser.add_argument("--version", action="version", version=f"fairrate-picture {VERSION}")
    parser.add_argument("svg", help="the SVG")
    parser.add_argument("out", help="the picture to write, as figure.pdf or figure.png")
    parser.add_argument("--scale", type=float, default=2.0, help="pixels of a PNG to a unit of the SVG (2)")
    given = parser.parse_args(arguments)
    try:
        picture(given.svg, given.out, scale=given.scale)
    except (ResultsError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
