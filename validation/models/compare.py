"""Compares fairrate with the models of this directory.

    python compare.py [path of fairrate] [model ...]

Without a path it is that of FAIRRATE_BIN, or `fairrate` on PATH. Every case is run once, in a temporary directory. The exit code is 1 if a number
is outside its tolerance and not in `findings.toml`, or in `findings.toml` and inside.
"""

import csv
import os
import subprocess
import sys
import tempfile
from importlib import import_module as module
from pathlib import Path

import pyarrow.parquet as parquet

try:
    import tomllib
except ModuleNotFoundError:  # Before Python 3.11.
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
BINARY = os.environ.get("FAIRRATE_BIN", "fairrate")
MODELS = ["perc", "charny", "rcp", "xcp", "rdcn", "pfabric"]


class Results:
    """The results of one run: the scenario with its settings, and the tables."""

    def __init__(self, directory, scenario):
        self.directory = directory
        self.scenario = scenario

    def table(self, name):
        """Returns the columns of table `name` as numpy arrays; absent numbers are NaN."""
        table = parquet.read_table(self.directory / f"{name}.parquet")
        return {column: table[column].to_numpy() for column in table.column_names}

    def series(self, name, column):
        """Returns times in s and values of `column`, by port of table `ports` or by flow of table `rates`."""
        table = self.table(name)
        key = table["port" if name == "ports" else "flow"]
        return {k: (table["t_ns"][key == k] / 1e9, table[column][key == k]) for k in set(key)}

    def flows(self):
        """Returns the lines of the flow list: start in ns, numbers of sender and receiver, bytes."""
        with (HERE / "cases" / self.scenario["traffic"][0]["path"]).open() as file:
            lines = list(csv.DictReader(file))
        return [(int(x["start_ns"]), int(x["src"][1:]), int(x["dst"][1:]), int(x["bytes"])) for x in lines]


def values_of(scenario, settings):
    """Returns the keys of a scenario of `cases/` with `settings`, which are dotted keys."""
    values = tomllib.loads((HERE / "cases" / f"{scenario}.toml").read_text())
    for key, value in settings.items():
        *outer, last = key.split(".")
        table = values
        for part in outer:
            table = table[int(part)] if part.isdigit() else table.setdefault(part, {})
        table[last] = value
    return values


def run(binary, scenario, settings):
    """Runs a scenario with `settings` by `binary` and returns its results, and the directory that holds them."""
    directory = tempfile.TemporaryDirectory()
    out = Path(directory.name) / "run"
    command = [binary, "run", HERE / "cases" / f"{scenario}.toml", "--out", out, "--quiet"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Results(out, values_of(scenario, settings)), directory


def rows_of(binary, names=MODELS):
    """Yields a row (case, number, model, fairrate, tolerance, inside) for every number of the models `names`."""
    for name in names:
        for case, (scenario, settings, check) in module(name).CASES.items():
            results, directory = run(binary, scenario, settings)
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
    binary = arguments.pop(0) if arguments and os.sep in arguments[0] else BINARY
    known, total, inside, unexpected = findings(), 0, 0, 0
    print(f"{'case':<16} {'number':<34} {'model':>12} {'fairrate':>12} {'difference':>11} {'tolerance':>10}")
    for case, number, model, measured, tolerance, good in rows_of(binary, arguments or MODELS):
        expected = good != ((case, number) in known)
        verdict = ("inside" if good else "outside") + ("" if expected else "  UNEXPECTED")
        values = f"{model:>12.6g} {measured:>12.6g} {measured - model:>11.3g} {tolerance:>10.3g}"
        print(f"{case:<16} {number:<34} {values}  {verdict}")
        total, inside, unexpected = total + 1, inside + good, unexpected + (not expected)
    print(f"{inside} of {total} rows are inside, {unexpected} unexpected")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
