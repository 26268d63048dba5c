"""`shortlist retire`: let an arm leave that cannot be pulled any more."""

import click

from shortlist.cli.arms import labelled
from shortlist.cli.options import store_options
from shortlist.cli.output import note
from shortlist.cli.stores import open_experiment


@click.command()
@click.argument("arm")
@click.option("--reason", default="", help="Why, for the log.")
@store_options
def retire(*, arm: str, reason: str, store: str, name: str | None) -> None:
    """Let an arm leave that cannot be pulled any more.

    It is handed out no more and is not chosen; what the search still asks of it counts as the worst
    reward. The guarantee is then about the arms that stay. Let an arm leave because it is gone,
    never because of its rewards: that would void the guarantee.

    \b
    Example:
      shortlist retire 'variant 7' --reason 'sold out' --store tests.db
    """
    with open_experiment(store, name) as experiment:
        label = labelled("arm", arm, experiment.settings.labels)
        experiment.retire(label, reason)
        note(f"{label!r} is handed out no more")
