"""Templates of the page: Jinja2 with autoescape, so the name of an arm is never markup."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shortlist.formatting import given_text, percent_text, unit_of
from shortlist.service.auth import MISSING
from shortlist.service.pages.view import DECIDED, LONG, MARKS, PLACES, View, headline

PARTS = (
    "figures",
    "answer",
    "lift",
    "arms",
    "bound",
    "work",
    "log",
)  # that change while the page is open


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("shortlist.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"short": _short, "given": given_text, "percent": percent_text}
    templates.filters["unit"] = unit_of
    templates.globals |= {"marks": MARKS, "places": PLACES, "decided": DECIDED}
    return templates


def _short(name: object) -> str:
    """A name, shortened if it is very long."""
    text = str(name)
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def page(name: str, **facts: Any) -> str:
    """Render a template."""
    return _templates().get_template(f"{name}.html").render(**facts)


def parts(view: View) -> dict[str, str]:
    """Render the parts of an experiment's page that change."""
    return {part: page(f"part_{part}", view=view) for part in PARTS}


def experiment_page(view: View, rendered: dict[str, str]) -> str:
    """Render the page of an experiment from its rendered parts."""
    marked = {part: Markup(text) for part, text in rendered.items()}
    return page("experiment", view=view, parts=marked)


def list_page(rows: Sequence[Any], following: int | None, total: int) -> str:
    """Render the list of experiments."""
    return page("list", rows=rows, following=following, total=total)


def error_page(prefix: str, status: int, message: str) -> str:
    """Render an error, with a form to sign in if a token is missing; `prefix` of all addresses."""
    root = f"{prefix}/"
    facts = {"root": root, "status": status, "message": message, "missing": MISSING}
    return page("error", headline=headline(status), **facts)
