"""`shortlist serve`, `shortlist tokens` and `shortlist mcp`."""

import time
from ipaddress import ip_network
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from shortlist.cli.options import made_store_option, shown, store_option
from shortlist.cli.output import format_option, print_rows
from shortlist.errors import InvalidInput

NEEDS_SERVE = "serve needs Starlette, uvicorn and Jinja2: pip install 'shortlist[serve]'"


@click.command()
@made_store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Site whose pages may call the service from a browser (CORS); repeatable.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=1),
    default=1000.0,
    show_default=True,
    help="Maximum requests per second of one token.",
)
@click.option(
    "--body",
    type=click.IntRange(min=1000),
    default=8 * 2**20,
    show_default=True,
    help="Maximum size of a request body, in bytes.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="NETWORK",
    help="Address or network of a proxy whose X-Forwarded headers are believed; repeatable.",
)
@click.option(
    "--prefix",
    default="",
    metavar="PATH",
    help="Path that all addresses begin with behind a proxy, such as /shortlist.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="What is logged on stderr; from info on, every request.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log.",
)
def serve(
    *,
    store: str,
    host: str,
    port: int,
    origins: tuple[str, ...],
    rate: float,
    body: int,
    proxies: tuple[str, ...],
    prefix: str,
    log_level: str,
    log_format: str,
) -> None:
    """Serve the experiments in a store over HTTP, with a live page.

    The store is a file, which is created if missing, or postgresql://…. `shortlist.Client` and the
    other commands take the address of the service as a store. Without tokens (`shortlist tokens`)
    only this machine can connect. With tokens, only /live, /ready, the sign-in page and its style
    answer without one. Ctrl-C ends the service after all writes under way.

    Needs: pip install 'shortlist[serve]'.

    \b
    Examples:
      shortlist serve --store tests.db
      shortlist status --store http://127.0.0.1:8765
    """
    try:
        from shortlist.service.app import application
        from shortlist.service.replies import Limits
        from shortlist.service.server import check_host, server, start_logs
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{NEEDS_SERVE} ({error})") from error
    from shortlist.engine.locate import opened

    if any(not origin.startswith(("http://", "https://")) for origin in origins):
        raise InvalidInput(f"`origin` is {origins!r}, but must be like https://example.org")
    if prefix and not (prefix.startswith("/") and quote(prefix) == prefix):
        raise InvalidInput(f"`prefix` is {prefix!r}, but must be a path such as /shortlist")
    start_logs(log_level, log_format)
    limits = Limits(rate=rate, body=body)
    with opened(store, "rwc") as place:
        check_host(host, place)
        app = application(
            place,
            limits=limits,
            origins=origins,
            place=shown(store),
            proxies=[_network(each) for each in proxies],
            prefix=prefix.rstrip("/"),
        )
        listening = server(app, host, port, limits)
        listening.announce = lambda address: click.echo(f"{shown(store)} is at {address}", err=True)
        listening.run()


def _network(text: str) -> "Network":
    try:
        return ip_network(text)
    except ValueError as error:
        raise InvalidInput(
            f"`proxy` is {text!r}, but must be an address or a network such as 10.0.0.0/8 ({error})"
        ) from None


if TYPE_CHECKING:
    from shortlist.service.auth import Network
    from shortlist.stores.base import TokenStore

SCOPES = ("read", "work", "admin")
DAY = 86400  # seconds


@click.group()
def tokens() -> None:
    """Make, list and revoke the tokens of a service.

    \b
    Scopes:
      read    read experiments and results
      work    read; ask for tickets and tell rewards
      admin   work; create experiments, retire arms, resume

    A running service notices changes within a second.

    \b
    Example:
      shortlist tokens list --store tests.db
    """


@tokens.command("create")
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), required=True, help="What the token allows.")
@click.option("--experiment", help="The only experiment that the token is for. Default: all.")
@click.option(
    "--days",
    type=click.FloatRange(min=0, max=36500, min_open=True),
    default=365.0,
    show_default=True,
    help="Days until the token expires.",
)
@made_store_option
def create_token(*, name: str, scope: str, store: str, experiment: str | None, days: float) -> None:
    """Create a token and print it once; only its digest is stored.

    NAME is its holder, and the author of what is written with it. From the first token on, the
    service refuses requests without one.

    \b
    Example:
      shortlist tokens create ann --scope work --store tests.db
    """
    try:
        from shortlist.service.auth import make_token
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{NEEDS_SERVE} ({error})") from error
    from shortlist.engine.locate import opened
    from shortlist.stores.base import Scope

    with opened(store, "rwc") as place:
        if experiment is not None:
            place.settings(experiment)  # raises if it does not exist
        now = time.time()
        expires = now + days * DAY
        keeper = _keeper(place)
        text = make_token(keeper, name, Scope(scope), now, expires=expires, experiment=experiment)
    click.echo(text)


@tokens.command("list")
@store_option
@format_option
def list_tokens(*, store: str, style: str) -> None:
    """List the tokens, including revoked ones, without their secrets.

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
                "experiment": token.experiment,
                "created": time.ctime(token.created),
                "expires": None if token.expires is None else time.ctime(token.expires),
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
    """Revoke a token. This cannot be undone.

    \b
    Example:
      shortlist tokens revoke ann --store tests.db
    """
    from shortlist.engine.locate import opened

    with opened(store, "rw") as place:
        _keeper(place).revoke_token(name, time.time())


def _keeper(place: object) -> "TokenStore":
    """The store, if it can hold tokens."""
    from shortlist.stores.base import TokenStore

    if not isinstance(place, TokenStore):
        raise InvalidInput(f"the store is {place!r}, but must be one that can hold tokens")
    return place


NEEDS_MCP = "mcp needs the SDK of the Model Context Protocol: pip install 'shortlist[mcp]'"


@click.command()
@made_store_option
def mcp(*, store: str) -> None:
    """Serve the experiments in a store to an assistant, by the Model Context Protocol on stdio.

    The tools are create, ask, tell, retire, status, result, experiments, forecast and assess. The
    store is a file, which is created if missing, postgresql://…, or the address of a service, whose
    token is in the environment variable SHORTLIST_TOKEN. The end of the input ends it.

    Needs: pip install 'shortlist[mcp]'.

    \b
    Example, and an entry in the configuration of an assistant:
      shortlist mcp --store tests.db
      "shortlist": {"command": "shortlist", "args": ["mcp", "--store", "tests.db"]}
    """
    try:
        from shortlist.cli.mcp_tools import tool_server
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{NEEDS_MCP} ({error})") from error
    tool_server(store).run("stdio")
