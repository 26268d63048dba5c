"""`shortlist serve`: experiments over HTTP, and a live page."""

import logging

import click

from shortlist.cli.options import made_store_option
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
        from shortlist.service.limits import Limits
        from shortlist.service.server import check_host, server
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{NEEDED} ({error})") from error
    from shortlist.experiment.place import opened

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
