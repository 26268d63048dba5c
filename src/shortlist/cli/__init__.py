"""The command line: parses arguments, calls the public names, prints results.

Heavy imports happen when a command runs, so that help is fast."""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

import shortlist
from shortlist.cli.forecast import forecast
from shortlist.cli.live import (
    archive,
    ask,
    copy,
    create,
    delete,
    export,
    import_,
    list_,
    release,
    rename,
    resume,
    retire,
    shares,
    tell,
    verify,
)
from shortlist.cli.past import assess, certify
from shortlist.cli.run import run
from shortlist.cli.serve import mcp, serve, tokens
from shortlist.cli.simulate import algorithms, compare, demo, hardness, reproduce, simulate
from shortlist.cli.status import result, status
from shortlist.errors import Doubtful, InvalidInput, ShortlistError, StoreExists, StoreMissing
from shortlist.formatting import printable

SHOWN = 200  # characters of an argument in a message


class BadInput(click.ClickException):
    """Invalid input: one line on stderr, exit status 2."""

    exit_code = 2


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        raise BadInput(_line(error.format_message())) from error
    except (InvalidInput, StoreMissing, StoreExists) as error:
        raise BadInput(_line(str(error))) from error
    except ShortlistError as error:
        raise click.ClickException(_line(str(error))) from error
    except OSError as error:
        # the reader of the output closed the pipe; click handles that
        if error.errno == errno.EPIPE:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        raise click.ClickException(_line(f"{where}{error.strerror or error}")) from error


def _line(message: str) -> str:
    """A message as one printable line."""
    return printable(" ".join(line.strip() for line in message.split("\n")))


def _check_arguments(arguments: list[str]) -> None:
    """Refuse arguments that no shell can pass, but a calling program can."""
    for word in arguments:
        try:
            possible = b"\0" not in os.fsencode(word)
        except UnicodeEncodeError:
            possible = False
        if not possible:
            raise InvalidInput(
                f"an argument is {word[:SHOWN]!r}, but must be valid text without NUL"
            )


@contextmanager
def _importable_from_here() -> Iterator[None]:
    """Allow imports from the current folder, after all others: --algorithm may name a module."""
    if "" in sys.path:
        yield
        return
    sys.path.append("")
    try:
        yield
    finally:
        sys.path.remove("")


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print every warning of the package once, as one line on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", Doubtful)
        warnings.showwarning = _one_line_warning
        yield


def _one_line_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    words = str(message)
    if not issubclass(category, Doubtful):
        words = warnings.formatwarning(message, category, filename, lineno, line)
    print(f"Warning: {_line(words)}", file=file or sys.stderr)


class OneLineErrors(click.Group):
    """A group whose errors, of click or of the library, are one line each."""

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **extra: Any
    ) -> click.Context:
        """Parse the group's own options."""
        with _one_line_errors():
            _check_arguments(args)
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse and run the command."""
        with _one_line_errors():
            return super().invoke(ctx)


@click.group(
    cls=OneLineErrors,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(shortlist.__version__, "-V", "--version")
@click.pass_context
def main(context: click.Context) -> None:
    """Find the K best of n noisy alternatives with few evaluations and a proved regret bound.

    \b
    Start here:
      shortlist demo                 choose the best 30 of 164 crowd workers
      shortlist run --help           choose with any program that prints a number
      shortlist forecast --help      how many evaluations it will take
      shortlist assess --help        which arms to keep, by results that exist
      shortlist algorithms           list the algorithms
      shortlist compare --help       compare algorithms on instances whose means are known

    \b
    Tab completion, in ~/.bashrc (or zsh_source, fish_source):
      eval "$(_SHORTLIST_COMPLETE=bash_source shortlist)"

    Data goes to stdout, notes and progress to stderr. Exit status: 0 done, 2 bad input, 1 anything
    else; some commands have more, which their help lists."""
    context.with_resource(_importable_from_here())
    context.with_resource(_warnings_as_notes())
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


KNOWN_MEANS = (forecast, simulate, compare, hardness, algorithms, demo, reproduce)
LIVE = (run, create, shares, ask, tell, release, retire, resume, status, result, list_)
FILES = (export, import_, copy, verify, rename, archive, delete)
SERVED = (serve, tokens, mcp)
CHOSEN_ELSEWHERE = (assess, certify)
for _command in (*LIVE, *FILES, *SERVED, *CHOSEN_ELSEWHERE, *KNOWN_MEANS):
    main.add_command(_command)
