"""`shortlist mcp`: experiments as tools of an assistant."""

import click

from shortlist.cli.options import made_store_option

NEEDED = "mcp needs the SDK of the Model Context Protocol: pip install 'shortlist[mcp]'"


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
        raise click.ClickException(f"{NEEDED} ({error})") from error
    tool_server(store).run("stdio")
