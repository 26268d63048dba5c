"""The pages of the command line and of the HTTP service list every option and every route.

    python tests/house/test_reference_pages.py

writes docs/cli.md and docs/http.md again."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from shortlist.cli import main
from shortlist.service.routes import API, openapi

DOCS = Path(__file__).parents[2] / "docs"
CLI_INTRODUCTION = """# The command line

Every command with all its options. `shortlist COMMAND --help` prints the same text. Data goes to
stdout, notes and progress to stderr. Exit status: 0 done, 2 bad input, 1 anything else; some
commands have more, which their text lists.

This page is made from the commands themselves: `python tests/house/test_reference_pages.py`.
"""
HTTP_INTRODUCTION = """# The HTTP service

Every route of a service that `shortlist serve` starts, with the fields of its body and of its
reply. A field in *italics* is optional. How to start a service, and who may do what:
[serve.md](serve.md). The same as OpenAPI: `GET /openapi.json`. In Python,
[`shortlist.Client`](api.md) calls these routes.

All bodies and replies are JSON, except where lines of JSON are named. A token goes into the header
`Authorization: Bearer TOKEN`. An error has the status of its kind and the body `{"error": {"kind":
…, "message": …}}`.

This page is made from the routes themselves: `python tests/house/test_reference_pages.py`.
"""


def cli_page() -> str:
    """docs/cli.md."""
    context = click.Context(main, info_name="shortlist")
    commands = ((name, main.get_command(context, name)) for name in main.list_commands(context))
    parts = [_command(name, command) for name, command in commands if command is not None]
    return "\n".join([CLI_INTRODUCTION, *parts])


def _command(name: str, command: click.Command, path: str = "shortlist") -> str:
    """A section: what the command does, its arguments and its options."""
    context = click.Context(command, info_name=name)
    usage = " ".join([path, name, *command.collect_usage_pieces(context)])
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    lines = [f"## {path.removeprefix('shortlist')} {name}".replace("  ", " "), ""]
    lines += [f"    {usage}", "", *_prose(text), ""]
    rows = [row for parameter in command.params for row in _option(parameter, context)]
    lines += ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            one = command.get_command(context, below)
            assert one is not None
            lines.append(_command(below, one, f"{path} {name}"))
    return "\n".join(lines)


def _prose(text: str) -> Iterator[str]:
    """The help; indented examples are code, and words between stars or brackets are not markup."""
    before = ""
    for line in text.splitlines():
        code = line.startswith("  ")
        if code and before and not before.startswith("  "):
            yield ""
        yield f"  {line}" if code else line.replace("<", "&lt;").replace("*", "\\*")
        before = line


def _option(parameter: click.Parameter, context: click.Context) -> Iterator[str]:
    if isinstance(parameter, click.Option) and not parameter.hidden:
        record = parameter.get_help_record(context)
        if record is not None:
            names, text = (part.replace("|", "\\|").replace("\n", " ") for part in record)
            yield f"| `{names}` | {' '.join(text.split())} |"


def http_page() -> str:
    """docs/http.md."""
    described = openapi("")
    parts = [
        _route(method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if "responses" in operation
    ]
    return "\n".join([HTTP_INTRODUCTION, *parts])


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    lines = [f"## `{method} {path}`", "", f"{operation['summary']}."]
    for parameter in operation.get("parameters", []):
        if parameter.get("in") == "query":
            lines += ["", f"- `?{parameter['name']}=`: {parameter.get('description', '')}"]
    body = operation.get("requestBody")
    if body:
        lines += ["", f"Body: {_fields(_schema(body))}"]
    for status, reply in operation["responses"].items():
        if status.startswith("2"):
            lines += ["", f"Reply {status}: {_fields(_schema(reply))}"]
    return "\n".join([*lines, ""])


def _schema(part: dict[str, Any]) -> dict[str, Any]:
    content = part.get("content", {})
    return next((kind.get("schema", {}) for kind in content.values()), {})


def _fields(schema: dict[str, Any]) -> str:
    """The names of the fields of an object."""
    fields, needed = schema.get("properties"), schema.get("required", ())
    if not fields:
        return "lines of JSON." if schema.get("type") == "string" else "an empty object."
    named = (f"`{name}`" if name in needed else f"*{name}*" for name in fields)
    return ", ".join(named) + "."


@pytest.mark.parametrize(("name", "made"), [("cli.md", cli_page), ("http.md", http_page)])
def test_the_page_is_made_from_what_it_describes(name: str, made: Any) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert page == made(), "run python tests/house/test_reference_pages.py"


def test_every_command_and_option_is_on_the_page() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name, command in main.commands.items():
        assert re.search(rf"^## {name}$", page, re.MULTILINE), name
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert any(f"{spelled}" in page for spelled in option.opts), (name, option.opts)


def test_every_route_is_on_the_page() -> None:
    page = (DOCS / "http.md").read_text(encoding="utf-8")
    assert [one.path for one in API if f"## `{one.method} {one.path}`\n" not in page] == []


if __name__ == "__main__":
    (DOCS / "cli.md").write_text(cli_page(), encoding="utf-8")
    (DOCS / "http.md").write_text(http_page(), encoding="utf-8")
    print(json.dumps({"cli.md": len(cli_page()), "http.md": len(http_page())}))
