"""`shortlist serve`: experiments over HTTP, and a live page.

`shortlist tokens`: who may call a service, and what for."""

import logging
import time
from typing import TYPE_CHECKING

import click

from shortlist.cli.options import made_store_option, store_option
from shortlist.cli.output import format_option, print_rows
from shortlist.cli.stores import shown
from shortlist.errors import InvalidInput

NEEDED = "serve needs Starlette, uvicorn and Jinja2: pip install 'shortlist[serve]'"


@click.command()
@made_store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0 takes any that is free.",
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="A site whose pages may call this from a browser; none unless given.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=1),
    default=1000.0,
    show_default=True,
    help="Requests a second of one token at most.",
)
@click.option(
    "--body",
    type=click.IntRange(min=1000),
    default=8 * 2**20,
    show_default=True,
    help="Bytes of a request at most.",
)
def serve(
    *, store: str, host: str, port: int, origins: tuple[str, ...], rate: float, body: int
) -> None:
    """Serve the experiments in a store over HTTP, with a live page.

    The store is a file, which is made if there is none, or postgresql://…. `shortlist.Client` and
    the other commands take the address as a store. As long as no token was made (`shortlist
    tokens`), only this machine is listened to; afterwards nothing but /health, the page that
    asks for a token and its style answers without one. Ctrl-C ends it when what is under way is
    written.

    Needs: pip install 'shortlist[serve]'.

    \b
    Examples:
      shortlist serve --store tests.db
      shortlist status --store http://127.0.0.1:8765
    """
    try:
        from shortlist.service.app import application
        from shortlist.service.protocol import Limits
        from shortlist.service.server import check_host, server
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{NEEDED} ({error})") from error
    from shortlist.engine.locate import opened

    if any(not origin.startswith(("http://", "https://")) for origin in origins):
        raise InvalidInput(f"`origin` is {origins!r}, but must be like https://example.org")
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    limits = Limits(rate=rate, body=body)
    with opened(store, "rwc") as place:
        check_host(host, place)
        app = application(place, limits=limits, origins=origins, place=shown(store))
        listening = server(app, host, port, limits)
        listening.announce = lambda address: click.echo(f"{shown(store)} is at {address}", err=True)
        listening.run()


if TYPE_CHECKING:
    from shortlist.stores.base import TokenStore

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

    \b
    Example:
      shortlist tokens list --store tests.db
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
    try:
        from shortlist.service.auth import make_token
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{NEEDED} ({error})") from error
    from shortlist.engine.locate import opened
    from shortlist.stores.base import Scope

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
    from shortlist.engine.locate import opened

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
    from shortlist.engine.locate import opened

    with opened(store, "rw") as place:
        _keeper(place).revoke_token(name, time.time())


def _keeper(place: object) -> "TokenStore":
    """The store, if it keeps tokens."""
    from shortlist.stores.base import TokenStore

    if not isinstance(place, TokenStore):
        raise InvalidInput(f"the store is {place!r}, but must be one that keeps tokens")
    return place
