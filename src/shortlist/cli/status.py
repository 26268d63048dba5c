"""`shortlist status` and `shortlist result`."""

import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.files import labelled
from shortlist.cli.options import open_experiment, setting_option, store_options
from shortlist.cli.output import (
    format_option,
    note,
    print_data,
    print_json,
    print_rows,
    print_tables,
)
from shortlist.errors import InvalidInput, Unfinished

if TYPE_CHECKING:
    from rich.console import Group

    from shortlist import Client, Experiment
    from shortlist.arms import OwnLabel
    from shortlist.engine import Outlook, Status
    from shortlist.result import Lift, Result

RUNNING = ("ready", "pending")


class NotYet(click.ClickException):
    """There is no result yet: one line on stderr, exit status 3."""

    exit_code = 3


@click.command()
@store_options
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Maximum number of arms in the table.",
)
@click.option("--watch", is_flag=True, help="Update the table until the experiment ends.")
@click.option("--outlook", is_flag=True, help="Simulate the remaining pulls and time.")
@format_option
def status(
    *, store: str, name: str | None, rows: int, watch: bool, outlook: bool, style: str
) -> None:
    """Show the status of an experiment and of every arm.

    All intervals hold at all times with probability 1 - delta. An arm is `in` (or `out`) if the
    intervals prove that it is (or is not) one of the k best. `chance` ranks the arms and is no
    guarantee. `to go` is the number of pulls that the search waits for.

    \b
    Examples:
      shortlist status --store tests.db
      shortlist status --store tests.db --format json
    """
    with open_experiment(store, name, readonly=True) as experiment:
        ahead = _outlook(experiment, store) if outlook else None
        if style == "json":
            more = {} if ahead is None else {"outlook": ahead.summary()}
            print_json({**experiment.status().summary(), **more})
        elif style == "csv":
            print_rows(list(experiment.status().arms.rows()), style)
        else:
            _show(experiment, rows, watch)
            if ahead is not None:
                note(str(ahead))


def _outlook(experiment: "Experiment | Client", store: str) -> "Outlook":
    """Simulate the rest of an experiment from the rewards in the file."""
    import shortlist
    from shortlist.engine import outlook

    if isinstance(experiment, shortlist.Client):
        raise InvalidInput(
            f"`store` is {store!r}, but --outlook needs the store itself, a file or postgresql://…"
        )
    return outlook(experiment)


@click.command()
@store_options
@click.option("--partial", is_flag=True, help="Also before the end: the current best arms.")
@setting_option("control")
@format_option
def result(*, store: str, name: str | None, partial: bool, control: str | None, style: str) -> None:
    """Print the result of an experiment and its guarantee.

    Exit status: 3 no result yet; 1 none, the experiment stopped after failed pulls. --partial
    always prints a result: the current k best, with the current bound if the search has one.

    \b
    Examples:
      shortlist result --store runs.db
      shortlist result --store runs.db --partial
    """
    with open_experiment(store, name, readonly=True) as experiment:
        settings = experiment.settings
        against = settings.control
        if control is not None:
            against = labelled("control", control, settings.labels)
        try:
            print_result(replace(experiment.result(partial=partial), control=against), style)
        except Unfinished as error:
            if experiment.status().trouble:
                raise stopped(str(error)) from error
            raise NotYet(f"{error}; --partial prints the present choice") from error


def stopped(trouble: str) -> click.ClickException:
    """The error of a stopped experiment; exit status 1."""
    return click.ClickException(f"{trouble}. Fix the cause, then run `shortlist resume`")


def print_result(result: "Result", style: str) -> None:
    """Print a result as tables, as JSON, or as CSV with a row per arm."""
    if style == "json":
        print_data(result.to_json() + "\n")
    elif style == "csv":
        lifts = {} if result.control is None else _lifts(result.lift())
        rows = [asdict(arm) | lifts.get(arm.label, {}) for arm in result.arms]
        print_rows([{"arm": row.pop("label"), **row} for row in rows], style)
    else:
        print_tables(result)


def _lifts(lift: "Lift") -> "dict[OwnLabel, dict[str, Any]]":
    """The further columns of every arm; empty for the control."""
    rows = {arm.label: asdict(arm) for arm in lift.arms}
    names = asdict(lift.arms[0])
    return {lift.control: {**dict.fromkeys(names), "label": lift.control}, **rows}


def _show(experiment: "Experiment | Client", rows: int, watch: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    if not watch:
        Console().print(_table(experiment.status(), rows))
        return
    # Ctrl-C ends watching
    with suppress(KeyboardInterrupt), Live(auto_refresh=False) as live:
        while True:
            status = experiment.status()
            live.update(_table(status, rows), refresh=True)
            if status.state.value not in RUNNING:
                return
            time.sleep(1)


def _table(status: "Status", rows: int) -> "Group":
    """The table of the status, and how to see the other arms."""
    from rich.console import Group

    more = status.arms.pulls.size > rows
    return Group(status.table(rows), "Use --rows, or --format csv." if more else "")
