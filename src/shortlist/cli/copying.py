"""`shortlist copy`: experiments from one store to another."""

import click

from shortlist.cli.options import name_option
from shortlist.cli.output import note
from shortlist.cli.stores import shown

PLACE = click.Path(dir_okay=False)


@click.command()
@click.argument("source", type=PLACE)
@click.argument("target", type=PLACE)
@name_option
def copy(*, source: str, target: str, name: str | None) -> None:
    """Copy experiments from one store to another, all or the one of that name.

    Both are files or postgresql://…; the target is made if there is none. Every log is checked on
    the way. If the target has an experiment of that name already, nothing is copied. Tokens stay
    where they are. Let nobody write to the source any more: what is told there later is not in the
    copy.

    \b
    Examples:
      shortlist copy tests.db copied.db
      shortlist copy tests.db postgresql://ann@db.example.org/tests --name colours
    """
    from shortlist.display import plural
    from shortlist.experiment import copy as copied

    for each in copied(source, target, name):
        note(f"{shown(target)}: experiment {each.name!r} with {plural(each.rows, 'row')}")
