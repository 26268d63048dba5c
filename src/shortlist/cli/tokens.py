"""`shortlist tokens`: who may call a service, and what for."""

import time
from typing import TYPE_CHECKING

import click

from shortlist.cli.options import made_store_option, store_option
from shortlist.cli.output import format_option, print_rows
from shortlist.errors import InvalidInput

if TYPE_CHECKING:
    from shortlist.storage.tokens import TokenStore

SCOPES = ("read", "work", "admin")


@click.group()
def tokens() -> None:
    """Make, list and revoke the tokens of a service.

    \b
    Scopes:
      read    look at experiments and take their results
      work    read, be handed tickets and tell them
      admin   work, make experiments and let stopped ones go on

    A running service knows of changes within a second.
    """


@tokens.command("create")
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), required=True, help="What it allows.")
@made_store_option
def create_token(*, name: str, scope: str, store: str) -> None:
    """Make a token and print it, once: only its digest is kept.

    NAME says whose it is. From the first token on, nothing is served to those without one.

    \b
    Example:
      shortlist tokens create ann --scope work --store tests.db
    """
    from shortlist.experiment.place import opened
    from shortlist.service.tokens import make_token
    from shortlist.storage.tokens import Scope

    with opened(store, "rwc") as place:
        text = make_token(_keeper(place), name, Scope(scope), time.time())
    click.echo(text)


@tokens.command("list")
@store_option
@format_option
def list_tokens(*, store: str, style: str) -> None:
    """List the tokens there are, revoked ones too; what they are themselves is kept nowhere.

    \b
    Example:
      shortlist tokens list --store tests.db
    """
    from shortlist.experiment.place import opened

    with opened(store, "ro") as place:
        rows = [
            {
                "name": token.name,
                "scope": token.scope.value,
                "created": time.ctime(token.created),
                "revoked": None if token.revoked is None else time.ctime(token.revoked),
            }
            for token in _keeper(place).tokens()
        ]
    if rows or style == "json":
        print_rows(rows, style)


@tokens.command("revoke")
@click.argument("name")
@store_option
def revoke_token(*, name: str, store: str) -> None:
    """Let a token allow nothing any more, for good.

    \b
    Example:
      shortlist tokens revoke ann --store tests.db
    """
    from shortlist.experiment.place import opened

    with opened(store, "rw") as place:
        _keeper(place).revoke_token(name, time.time())


def _keeper(place: object) -> "TokenStore":
    """The store, if it keeps tokens."""
    from shortlist.storage.tokens import TokenStore

    if not isinstance(place, TokenStore):
        raise InvalidInput(f"the store is {place!r}, but must be one that keeps tokens")
    return place
