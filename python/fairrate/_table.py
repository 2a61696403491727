"""Tables of results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fairrate import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Table:
    """A table of results, as Arrow.

    Whatever takes Arrow's PyCapsules takes it as it is, without a copy: ``polars.DataFrame(table)``, ``pyarrow.table(table)``,
    ``duckdb.from_arrow(pyarrow.table(table))``, ``pandas.DataFrame.from_arrow(table)``. Times are integer nanoseconds and nulls
    mean that there is no such value, as the completion time of a flow that has not finished.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Table:
        """Reads a Parquet file, in one piece."""
        return cls(_native.Table.read(path))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._native.columns

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns that have one."""
        return dict(self._native.units)

    def __len__(self) -> int:
        return len(self._native)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def to_polars(self) -> polars.DataFrame:
        """As a polars data frame, without a copy."""
        import polars

        return polars.DataFrame(self)

    def to_pyarrow(self) -> pyarrow.Table:
        """As a pyarrow table, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas data frame of Arrow's types, without a copy."""
        import pandas

        frame: pandas.DataFrame = self.to_pyarrow().to_pandas(types_mapper=pandas.ArrowDtype)
        return frame

    def __repr__(self) -> str:
        return f"<fairrate.Table of {len(self):,} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> Any:
        return self.to_polars()._repr_html_()
