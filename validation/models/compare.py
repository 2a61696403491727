"""Compares fairrate with the models of this directory.

    python compare.py [path of fairrate]

Without an argument the path is that of FAIRRATE_BIN. Every case of `cases/` is run once, in a temporary directory. The exit
code is 1 if a number is outside its tolerance and not in `findings.toml`, or if `findings.toml` has a number that is inside.
"""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pyarrow.parquet as parquet

HERE = Path(__file__).resolve().parent
MODELS = ["perc", "charny", "rcp", "xcp", "rdcn", "pfabric"]


class Results:
    """The results of one run of fairrate: `scenario`, `summary`, and tables as arrays by column."""

    def __init__(self, directory, scenario):
        self.directory = directory
        self.scenario = scenario
        self.summary = json.loads((directory / "summary.json").read_text())

    def table(self, name):
        """Returns the columns of table `name` as numpy arrays; absent numbers are NaN."""
        table = parquet.read_table(self.directory / f"{name}.parquet")
        return {column: table[column].to_numpy() for column in table.column_names}


def run(binary, case):
    """Runs the scenario `case` with `binary` and returns its results with the directory that holds them."""
    path = HERE / "cases" / f"{case}.toml"
    directory = tempfile.TemporaryDirectory()
    out = Path(directory.name) / "run"
    subprocess.run([binary, "run", path, "--out", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return Results(out, tomllib.loads(path.read_text())), directory


def rows_of(binary, names=MODELS):
    """Yields a row (case, number, model, fairrate, tolerance, inside) for every number of the models `names`."""
    for name in names:
        for case, check in __import__(name).CASES.items():
            results, directory = run(binary, case)
            with directory:
                for number, model, measured, tolerance in check(results):
                    model, measured = float(model), float(measured)
                    yield case, number, model, measured, tolerance, abs(measured - model) <= tolerance


def findings():
    """Returns the known rows outside, by case and number, with their causes."""
    known = tomllib.loads((HERE / "findings.toml").read_text()).get("finding", [])
    return {(row["case"], row["number"]): row["cause"] for row in known}


def main():
    arguments = sys.argv[1:]
    binary = arguments.pop(0) if arguments and os.sep in arguments[0] else os.environ["FAIRRATE_BIN"]
    known, unexpected, inside = findings(), 0, 0
    print(f"{'case':<16} {'number':<34} {'model':>12} {'fairrate':>12} {'difference':>11} {'tolerance':>10}")
    total = 0
    for case, number, model, measured, tolerance, good in rows_of(binary, arguments or MODELS):
        expected = good != ((case, number) in known)
        verdict = ("inside" if good else "outside") + ("" if expected else "  UNEXPECTED")
        print(
            f"{case:<16} {number:<34} {model:>12.6g} {measured:>12.6g} {measured - model:>11.3g} {tolerance:>10.3g}  {verdict}"
        )
        total, inside, unexpected = total + 1, inside + good, unexpected + (not expected)
    print(f"{inside} of {total} rows are inside, {unexpected} unexpected")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
