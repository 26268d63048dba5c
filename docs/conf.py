"""How `make docs` builds the site: the Markdown pages as they stand, and the docstrings."""

import re
from importlib.metadata import version as version_of
from itertools import groupby
from typing import Any

import numpy.typing as npt
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

from shortlist.arrays import BoolArray, FloatArray, IntArray

project = "shortlist"
author = "The shortlist authors"
copyright = author  # noqa: A001
version = release = version_of("shortlist")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"shortlist {release}"
html_copy_source = False
html_show_copyright = False
exclude_patterns = ["_build"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 88
# a signature shows these by name
ALIASES = {
    stringify_annotation(alias, mode): name
    for mode in ("smart", "fully-qualified-except-typing")
    for name, alias in {
        "ArrayLike": npt.ArrayLike,
        "FloatArray": FloatArray,
        "IntArray": IntArray,
        "BoolArray": BoolArray,
    }.items()
}
ELSEWHERE = re.compile(r"\[([^\]]+)\]\((?:\.\./[^)]+|[^)]+/)\)")
LITERAL = re.compile(r"`+[^`]+`+")
DRAWN = re.compile("[│├└]")
SPECIAL = re.compile(r"[*_|\\]")


def add_contents(_app: Sphinx, page: str, source: list[str]) -> None:
    """Make the pages that the index lists the contents of the site, in that order."""
    source[0] = ELSEWHERE.sub(r"\1", source[0])  # no page for a folder, nor for what is above
    if page == "index":
        listed = re.findall(r"^\| \[.*?\]\(([\w/-]+)\.md\)", source[0], re.MULTILINE)
        contents = "\n".join(dict.fromkeys(listed))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n"


def shorten(*event: Any) -> tuple[str, str | None] | None:
    """The signature and what it returns, with aliases by their names."""
    *_, signature, returned = event
    if signature is None:
        return None
    return _short(signature), returned and _short(returned)


def _short(text: str) -> str:
    for long, name in ALIASES.items():
        text = text.replace(long, name)
    return text


def mark_up(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Docstrings are plain text with `names`, formulas and drawings: make that reStructuredText."""
    marked: list[str] = []
    for filled, paragraph in groupby(lines, key=bool):
        marked += _marked([*paragraph]) if filled else [""]
    lines[:] = marked


def _marked(paragraph: list[str]) -> list[str]:
    """A paragraph whose lines are to stay as they are, or prose with its list set apart."""
    if all(line.startswith("    ") for line in paragraph) or DRAWN.search("".join(paragraph)):
        return ["::", "", *(f"    {line}" for line in paragraph)]
    prose = [_escaped(line) for line in paragraph]
    first = next((place for place, line in enumerate(prose) if line.startswith("- ")), 0)
    return [*prose[:first], "", *prose[first:]]


def _escaped(line: str) -> str:
    """The line with every `name` as a literal, and no other markup in it."""
    names = [f"``{name.strip('`')}``" for name in LITERAL.findall(line)]
    prose = [SPECIAL.sub(r"\\\g<0>", part) for part in LITERAL.split(line)]
    return "".join(part + name for part, name in zip(prose, [*names, ""], strict=True))


def setup(app: Sphinx) -> None:
    """Hook these in."""
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-process-docstring", mark_up)
