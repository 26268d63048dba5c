"""Files of text that the user gives, refused in words if they are none."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from shortlist.errors import InvalidInput


@contextmanager
def open_text(path: str) -> Iterator[IO[Any]]:
    """A file in UTF-8 to be read, or stdin for -; errors while reading name the file."""
    try:
        with click.open_file(path, encoding="utf-8-sig") as file:
            yield file
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} holds the byte 0x{error.object[error.start]:02x}, but must be a UTF-8 file"
        ) from error
    except csv.Error as error:
        raise InvalidInput(f"{path} cannot be read as a CSV: {error}") from error
