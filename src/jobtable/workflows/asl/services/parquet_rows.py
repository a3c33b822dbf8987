"""Rows of Parquet files, and what Zstandard compressed; both need the extra `parquet`."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import IO, Any, BinaryIO

from jobtable.errors import MissingExtraError
from jobtable.workflows.asl.run import Json

_ROWS_TOGETHER = 1_000
_MOST_GROUP_BYTES = 256 * 1024 * 1024
"""Of a row group, as in Step Functions."""


def read_rows(file: IO[bytes]) -> Iterator[Json]:
    """Yield the rows of a Parquet file that can be read at any position; ValueError if it is not one."""
    parquet = _library("parquet", "a Parquet file")
    rows = parquet.ParquetFile(file)
    for number in range(rows.metadata.num_row_groups):
        size = rows.metadata.row_group(number).total_byte_size
        if size > _MOST_GROUP_BYTES:
            raise ValueError(f"row group {number} has {size:,} bytes; at most {_MOST_GROUP_BYTES:,} are allowed")
    for batch in rows.iter_batches(_ROWS_TOGETHER):
        for row in batch.to_pylist():
            yield {name: _as_json(value) for name, value in row.items()}


def decompressed(file: BinaryIO) -> Any:
    """Return what is in a file that Zstandard compressed."""
    return _library("lib", "a .zst object").CompressedInputStream(file, "zstd")


def _library(module: str, what: str) -> Any:
    try:
        import pyarrow.lib  # noqa: PLC0415 - of the extra, and slow to import
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as missing:
        hint = "install the extra 'parquet': pip install 'jobtable[parquet]'"
        raise MissingExtraError(f"{what} cannot be read without pyarrow", hint=hint) from missing
    return getattr(pyarrow, module)


def _as_json(value: Any) -> Json:
    """Return a value as JSON: instants as in ISO 8601, bytes in base64, and null for what is not a number."""
    if isinstance(value, dict):
        return {str(name): _as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):  # an instant is a date, too
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
