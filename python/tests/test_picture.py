"""Pictures of figures, and their points."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import polars
import pytest

import fairrate
from fairrate import Scenario, _picture

SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40" viewBox="0 0 80 40">
<rect width="40" height="40" fill="#102030"/><text x="45" y="25" font-size="12">W</text></svg>"""
COLUMNS = ["figure", "panel", "line", "x", "y", "low", "high", "word", "x_label", "y_label"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = Scenario.load(Path(__file__).parents[2] / "examples/incast10.toml").with_(duration="1.1ms")
    sweep = fairrate.sweep(scenario, ["powertcp", "hpcc"], grid={"switch.dt_alpha": [0.5, 1.0]}, seeds=[1, 2])
    out = tmp_path_factory.mktemp("report")
    fairrate.report(sweep, out)
    return out


def test_a_picture_has_the_size_the_colours_and_the_text_of_the_svg(tmp_path: Path) -> None:
    svg = tmp_path / "figure.svg"
    svg.write_text(SVG)
    assert fairrate.picture(svg) == tmp_path / "figure.png"
    pixels = plt.imread(tmp_path / "figure.png")
    assert pixels.shape[:2] == (80, 160)
    assert [round(255 * x) for x in pixels[10, 10, :3]] == [0x10, 0x20, 0x30] and pixels[2, 150, :3].tolist() == [1, 1, 1]
    # The letter is drawn, whatever fonts the machine has.
    assert pixels[:, 85:, :3].min() < 0.5
    # A directory of `fairrate figure`, another scale, and vectors.
    assert plt.imread(fairrate.picture(tmp_path, tmp_path / "large.png", scale=4)).shape[:2] == (160, 320)
    assert fairrate.picture(svg, tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF-")


def test_figures_of_reports_become_pictures(report: Path) -> None:
    for svg in (report / "figures").glob("over-*.svg"):
        assert plt.imread(fairrate.picture(svg)).shape[1] > 500


def test_what_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(fairrate.ResultsError, match="cannot read") as caught:
        fairrate.picture(tmp_path)
    assert caught.value.path == str(tmp_path / "figure.svg")
    wrong = tmp_path / "wrong.svg"
    wrong.write_text("<svg")
    with pytest.raises(fairrate.ResultsError, match="the SVG cannot be read") as caught:
        fairrate.picture(wrong)
    assert caught.value.path == str(wrong)
    with pytest.raises(ValueError, match="ends neither in .png nor in .pdf"):
        fairrate.picture(wrong, tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="a scale of 100 is out of range"):
        fairrate.picture(wrong, scale=100)


def test_it_is_the_program_that_figure_looks_for(cli: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("fairrate-picture")
    assert program.exists(), "the package installs it"
    # Alone, so that no other is found beside it.
    alone = tmp_path / "bin/fairrate"
    alone.parent.mkdir()
    shutil.copy(cli, alone)
    command = [alone, "figure", "perc/fig4", "--quick", "--line=perc", f"--out={tmp_path}/figures", "--format=png", "--quiet"]
    refused = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/nowhere"})
    assert refused.returncode == 2 and "pip install" in refused.stderr
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(program.parent)})
    assert done.returncode == 0, done.stderr
    assert plt.imread(tmp_path / "figures/perc/fig4/figure.png").shape[1] > 500
    points = fairrate.points(tmp_path / "figures/perc/fig4/points.csv")
    assert points.columns == COLUMNS and set(points["figure"]) == {"perc/fig4"} and points["panel"].n_unique() > 1
    assert points.equals(fairrate.points(tmp_path / "figures"))


def test_points_are_one_frame(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(
        '# left, with a "name"\nseries,load,queue (KB),low: queue (KB),high: queue (KB)\n'
        'HPCC,0.2,1.5,1,2\n"a, b",0.4,,,\n\n# words\nseries,,FCT (ms)\nHPCC,short,3\n# no heading,long,4\n'
    )
    (tmp_path / "claims.json").write_text('{"figure": "hpcc/fig1"}')
    got = fairrate.points(file)
    left, labels = 'left, with a "name"', ("load", "queue (KB)")
    want = [
        ("hpcc/fig1", left, "HPCC", 0.2, 1.5, 1.0, 2.0, None, *labels),
        ("hpcc/fig1", left, "a, b", 0.4, None, None, None, None, *labels),
        ("hpcc/fig1", "words", "HPCC", None, 3.0, None, None, "short", "", "FCT (ms)"),
        ("hpcc/fig1", "words", "# no heading", None, 4.0, None, None, "long", "", "FCT (ms)"),
    ]
    assert got.rows() == want
    assert got.schema["x"] == got.schema["high"] == polars.Float64


def test_points_of_a_report(report: Path) -> None:
    frame = fairrate.points(report / "figures")
    assert set(frame["figure"]) == {file.stem for file in (report / "figures").glob("*.svg")}
    one = fairrate.points(next((report / "figures").glob("over-*.csv")))
    assert set(one["line"]) == {"PowerTCP", "HPCC"} and set(one["x"]) == {0.5, 1.0} and set(one["x_label"]) == {"dt_alpha"}
    assert one["low"].null_count() == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# a\nseries,x\n", "line 2: a head of 2 columns"),
        ("# a\nseries,x,y\nHPCC,1\n", "line 3: 2 columns, and its head has 3"),
        ("# a\nseries,x,y\nHPCC,1,two\n", "line 3: `two` is no number"),
    ],
)
def test_what_is_no_file_of_points(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(fairrate.ResultsError, match=message):
        fairrate.points(file)


def test_no_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(fairrate.ResultsError, match="has no points"):
        fairrate.points(tmp_path)
    with pytest.raises(fairrate.ResultsError, match="cannot read"):
        fairrate.points(tmp_path / "points.csv")
    assert _picture._main([str(tmp_path), str(tmp_path / "a.png")]) == 2
    assert "error: cannot read" in capsys.readouterr().err
