"""The options that name the arms: an instance of the paper, or a file of means."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import shortlist
from shortlist.cli.numbers import whole_number
from shortlist.digits import given_text
from shortlist.errors import InvalidInput
from shortlist.reading.columns import Line, read_columns

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray

    Means = tuple[FloatArray, FloatArray | None]

INSTANCES = ("two-group", "uniform", "synthetic", "rte", "lower-bound")
Command = Callable[..., Any]


def instance_options(command: Command) -> Command:
    """Add --instance, -n, -p, -k and --means to a command."""
    for option in reversed(
        (
            click.option(
                "--instance",
                type=click.Choice(INSTANCES),
                help="An instance of the paper's experiments.",
            ),
            click.option("-n", type=int, help="Number of arms; rte and --means bring their own."),
            click.option(
                "-k", type=int, required=True, help="Number of arms to choose, less than n."
            ),
            click.option(
                "-p", type=float, help="Shape of synthetic: above 1 pushes means to the boundary."
            ),
            click.option(
                "--means",
                "path",
                type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
                metavar="FILE",
                help="Means: one a line, or a CSV with `mean` and perhaps `cost`; - is stdin.",
            ),
        )
    ):
        command = option(command)
    return command


def means_of(
    instance: str | None, n: int | None, k: int, p: float | None, path: str | None
) -> "Means":
    """The means that these options name, and what pulls cost if a file says so."""
    if (instance is None) == (path is None):
        given = "neither" if instance is None else "both"
        raise InvalidInput(
            f"{given} of --instance and --means given, but exactly one of them names the arms"
        )
    if p is not None and instance != "synthetic":
        raise InvalidInput(f"`p` is {given_text(p)}, but only --instance synthetic takes it")
    if path is not None:
        return _with_n(read_means(path), n, path)
    if instance == "rte":
        return _with_n((shortlist.instances.rte(), None), n, instance)
    return _made(str(instance), n, k, p), None


def _made(instance: str, n: int | None, k: int, p: float | None) -> "FloatArray":
    if n is None:
        raise InvalidInput(f"`n` is not given, but --instance {instance} needs it")
    if instance == "synthetic":
        if p is None:
            raise InvalidInput("`p` is not given, but --instance synthetic needs it")
        return shortlist.instances.synthetic(p, n, k)
    if instance == "uniform":
        return shortlist.instances.uniform(n)
    if instance == "lower-bound":
        return shortlist.instances.lower_bound(n)
    return shortlist.instances.two_group(n, k)


def _with_n(means: "Means", n: int | None, source: str) -> "Means":
    if n is not None and n != means[0].size:
        raise InvalidInput(f"`n` is {n}, but {source} has {means[0].size} arms")
    return means


def read_means(path: str) -> "Means":
    """One mean a line, or a CSV with a column `mean`, and what pulls cost if it has a column
    `cost`."""
    import numpy as np

    table = read_columns(path, only="mean")
    if not table.rows:
        raise InvalidInput(f"{path} is empty, but must hold one mean a line")
    lines = list(table.lines())
    means = np.array([_finite(line, "mean") for line in lines])
    if "cost" not in table.names:
        return means, None
    return means, np.array([_finite(line, "cost") for line in lines])


def read_limits(path: str) -> list[int | None] | None:
    """The most pulls of every arm, if the file of means has a column `limit`; an empty cell is no
    limit."""
    table = read_columns(path, only="mean")
    if "limit" not in table.names:
        return None
    return [_limit(line) for line in table.lines()]


def _limit(line: Line) -> int | None:
    cell = line["limit"].strip()
    most = whole_number(cell)
    if cell and (most is None or most < 1):
        raise InvalidInput(
            f"{line.where} says {cell!r}, but a limit must be a whole number of at least 1"
        )
    return most


def _finite(line: Line, column: str) -> float:
    cell = line[column].strip()
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{line.where} says {cell!r}, but a {column} must be a finite number")
    return value
