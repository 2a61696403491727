"""Tables in the libraries that people use."""

from __future__ import annotations

import duckdb
import pandas
import polars
import pyarrow
import pytest

import fairrate
from fairrate import Scenario, Table


@pytest.fixture
def rates(incast: Scenario) -> Table:
    return fairrate.run(incast).rates


def test_polars_takes_columns_as_they_are(rates: Table) -> None:
    frame = rates.to_polars()
    assert frame.height == len(rates) > 100 and frame.columns == rates.columns
    for column in ("t_ns", "rate_bps", "cwnd_bytes"):
        # What polars hands on is where it has it.
        buffers = frame[column].to_arrow().buffers()
        assert buffers[1].address in rates._native.addresses(column), column


def test_pyarrow_takes_columns_as_they_are(rates: Table) -> None:
    table = rates.to_pyarrow()
    for column in table.column_names:
        (chunk,) = table[column].chunks
        ours = rates._native.addresses(column)
        assert [b.address for b in chunk.buffers()[1:] if b is not None] == ours, column


def test_pandas_takes_columns_as_they_are(rates: Table) -> None:
    frame = rates.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == len(rates)
    array = pyarrow.array(frame["rate_bps"].array)
    assert array.buffers()[1].address in rates._native.addresses("rate_bps")


def test_duckdb_queries_it(rates: Table) -> None:
    row = duckdb.sql("select count(*), max(rate_bps), min(cc) from rates").fetchall()
    frame = rates.to_polars()
    assert row == [(len(rates), frame["rate_bps"].max(), "powertcp")]


def test_values_are_those_of_the_file(incast: Scenario) -> None:
    result = fairrate.run(incast)
    names = [path.stem for path in result.dir.glob("*.parquet")]
    assert len(names) == 10
    for name in names:
        ours = polars.DataFrame(getattr(result, name))
        assert ours.equals(polars.read_parquet(result.dir / f"{name}.parquet")), name
    assert result.ports.units["qlen_bytes"] == "B"
    assert len(result.pfc) == 0 and result.pfc.to_polars().height == 0


def test_what_notebooks_show(rates: Table) -> None:
    assert repr(rates).startswith("<fairrate.Table of ") and "<table" in rates._repr_html_()
