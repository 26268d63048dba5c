"""`shortlist rename`, `archive` and `delete`."""

import click

from shortlist.cli.options import experiment_names, store_option
from shortlist.cli.output import note
from shortlist.cli.stores import client, is_service, shown

name_argument = click.argument("name", shell_complete=experiment_names)


@click.command()
@name_argument
@click.argument("new_name")
@store_option
def rename(*, name: str, new_name: str, store: str) -> None:
    """Rename an experiment.

    Its tickets stay valid. The old name stays taken, so that it never means another experiment.

    \b
    Example:
      shortlist rename colours 'colours, first try' --store colours.db
    """
    if is_service(store):
        client(store, name).rename(new_name)
    else:
        from shortlist.engine import rename as renamed

        renamed(store, name, new_name)
    note(f"{name!r} is now {new_name!r}")


@click.command()
@name_argument
@click.option("--undo", is_flag=True, help="Make an archived experiment active again.")
@store_option
def archive(*, name: str, undo: bool, store: str) -> None:
    """Archive an experiment: read-only, and left out of lists and metrics.

    `status`, `result` and `export` still work.

    \b
    Examples:
      shortlist archive colours --store colours.db
      shortlist archive colours --undo --store colours.db
    """
    if is_service(store):
        client(store, name).archive(restore=undo)
    else:
        from shortlist.engine import archive as archived

        archived(store, name, restore=undo)
    note(f"{name!r} is {'active again' if undo else 'archived'}")


@click.command()
@name_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def delete(*, name: str, yes: bool, store: str) -> None:
    """Delete an experiment for good: settings, labels, rewards and events.

    The store keeps its name, and when and by whom it was created and deleted. `shortlist export`
    first if you may need it again.

    \b
    Example:
      shortlist delete colours --yes --store colours.db
    """
    if not yes:
        question = f"Delete experiment {name!r} in {shown(store)} for good?"
        click.confirm(question, abort=True, err=True)
    if is_service(store):
        client(store, name).delete()
    else:
        from shortlist.engine import delete as deleted

        deleted(store, name)
    note(f"{name!r} is deleted")
