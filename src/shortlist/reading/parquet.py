"""Parquet files, by pyarrow or by polars, whichever is installed."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shortlist.errors import InvalidInput

ENDINGS = (".parquet", ".pq")
MOST_VALUES = 3 * 10**7  # as many as the most cells take, a line each with arm, item and score

Values = Mapping[str, Sequence[Any]]  # of every column


def is_parquet(path: str) -> bool:
    """Whether a file is to be read as Parquet, which its name says."""
    return Path(path).suffix.lower() in ENDINGS


def read_parquet(path: str) -> Values:
    """The columns of a file by name, None where a value is missing."""
    reader = next((each for name, each in READERS.items() if find_spec(name)), None)
    if reader is None:
        raise InvalidInput(
            f"{path} is a Parquet file, but neither pyarrow nor polars is installed:"
            " pip install 'shortlist[parquet]'"
        )
    try:
        return reader(path)
    except InvalidInput:
        raise
    except Exception as error:  # each library has errors of its own for what is no Parquet
        raise InvalidInput(f"{path} cannot be read as a Parquet file: {error}") from error


def _by_pyarrow(path: str) -> Values:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        _check_size(path, file.metadata.num_rows, file.metadata.num_columns)
        table = file.read()
    columns: dict[str, Sequence[Any]] = table.to_pydict()
    return columns


def _by_polars(path: str) -> Values:
    import polars

    frame = polars.scan_parquet(path)
    rows = frame.select(polars.len()).collect().item()
    _check_size(path, rows, len(frame.collect_schema()))
    return frame.collect().to_dict(as_series=False)


def _check_size(path: str, rows: int, columns: int) -> None:
    if rows * columns > MOST_VALUES:
        raise InvalidInput(
            f"{path} has {rows:,} rows of {columns:,} values, but must have at most"
            f" {MOST_VALUES:,} values"
        )


READERS = {"pyarrow": _by_pyarrow, "polars": _by_polars}
