"""Files of text that the user gives, refused in words if they are none, or have no end."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from shortlist.errors import InvalidInput

LONGEST = 64 * 2**20  # characters in a line: the settings of an experiment with so many arms


@contextmanager
def open_text(path: str) -> Iterator[Iterator[str]]:
    """The lines of a file in UTF-8, or of stdin for -; errors while reading name the file."""
    try:
        with click.open_file(path, encoding="utf-8-sig") as file:
            yield _lines(file, path)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} holds the byte 0x{error.object[error.start]:02x}, but must be a UTF-8 file"
        ) from error
    except csv.Error as error:
        raise InvalidInput(f"{path} cannot be read as a CSV: {error}") from error


def _lines(file: IO[Any], path: str) -> Iterator[str]:
    """Every line, of each no more than it takes to refuse it: a device may have no line's end."""
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise InvalidInput(
                f"{path} has a line of more than {LONGEST:,} characters, but must be lines of text"
            )
        yield line
