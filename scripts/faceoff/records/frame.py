"""A study's table of records as a DataFrame for tables and figures."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pandas import DataFrame, Series

from faceoff.errors import RecordError


def read_records(path: Path) -> DataFrame:
    """Return the columns of `rows.SCHEMA`; a missing real number is NaN, any other missing value None.

    Raises RecordError when the file is missing or no Parquet.
    """
    try:
        table = pq.read_table(path)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: no readable table of records: {error}") from error
    return frame_of(table)


def frame_of(table: pa.Table) -> DataFrame:
    """Return a table as a DataFrame whose missing texts and whole numbers are None: pandas would make them NaN."""
    return DataFrame({field.name: _series(table[field.name], field.type) for field in table.schema})


def _series(column: pa.ChunkedArray, kind: pa.DataType) -> Series:
    whole = pa.types.is_integer(kind) and column.null_count == 0
    dtype = "float64" if pa.types.is_floating(kind) else "int64" if whole else "object"
    return Series(column.to_pylist(), dtype=dtype)
