"""The files that name the items of a test set, and the scores that are known already."""

from collections.abc import Callable
from typing import Any

import click

from shortlist.errors import InvalidInput
from shortlist.reading.columns import read_columns
from shortlist.reading.scores import read_scores

Command = Callable[..., Any]
FILE = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)

order_option = click.option(
    "--order",
    type=click.Choice(["shared", "independent"]),
    default="shared",
    show_default=True,
    help="One order of the items for all arms, or one an arm.",
)


def item_options(command: Command) -> Command:
    """Add --items, --scores and --order."""
    for option in reversed(
        (
            click.option(
                "--items",
                type=FILE,
                metavar="FILE",
                help="A test set: one item a line, or a CSV with a column `item`.",
            ),
            click.option(
                "--scores",
                type=FILE,
                metavar="FILE",
                help="Scores that are known already, in a CSV or Parquet file: not asked for.",
            ),
            order_option,
        )
    ):
        command = option(command)
    return command


def read_items(path: str) -> list[str]:
    """One item a line, or a CSV with a column `item`."""
    table = read_columns(path, only="item")
    labels = [line["item"] for line in table.lines()]
    if not labels:
        raise InvalidInput(f"{path} is empty, but must hold one item a line")
    return labels


def with_test_set(settings: dict[str, Any], arms: list[str]) -> dict[str, Any]:
    """The same settings, with items and scores read from their files."""
    items, scores = settings["items"], settings["scores"]
    if items is None:
        if scores is not None:
            raise InvalidInput("`scores` is given without --items, but only goes with them")
        return settings
    labels = read_items(items)
    known = None if scores is None else read_scores(scores).placed(arms, labels)
    return {**settings, "items": labels, "scores": known}
