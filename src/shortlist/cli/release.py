"""`shortlist release`: take back the tickets of those who are gone."""

import click

from shortlist.cli.options import store_options
from shortlist.cli.output import note
from shortlist.cli.stores import open_experiment


@click.command()
@click.argument("tickets", type=int, nargs=-1, metavar="[TICKET]...")
@click.option("--worker", help="Those of this worker.")
@click.option(
    "--overdue",
    type=float,
    metavar="SECONDS",
    help="Those that were due at least so long ago; see `status`.",
)
@store_options
def release(
    *,
    tickets: tuple[int, ...],
    worker: str | None,
    overdue: float | None,
    store: str,
    name: str | None,
) -> None:
    """Hand tickets out again of which no result will come.

    Those by number, by worker, or overdue; of several, those that fit all. A ticket that is not
    told is waited for, since to give up what takes long leaves results out because of their value.
    So take back only what is known to be lost: the worker is gone, the machine was switched off.

    \b
    Examples:
      shortlist release --worker ann --store tests.db
      shortlist release 17 18 --store tests.db
      shortlist release --worker ben --overdue 3600 --store tests.db
    """
    from shortlist.display import plural

    with open_experiment(store, name) as experiment:
        count = experiment.release(worker, tickets=tickets or None, overdue=overdue)
    are = "is" if count == 1 else "are"
    note(f"{plural(count, 'ticket')} {are} handed out again")
