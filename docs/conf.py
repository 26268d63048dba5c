"""How `make docs` builds the site: the Markdown pages as they stand, and the docstrings."""

import re
from importlib.metadata import version as version_of
from itertools import groupby
from pathlib import Path
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
html_static_path = ["site"]
html_css_files = ["site.css"]
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
LISTED = re.compile(r"^\| \[.*?\]\(([\w/-]+)\.md\)", re.MULTILINE)
ROW = re.compile(r"^\| \[(.*?)\]\(([\w/-]+\.md)\) \| (.*) \|$", re.MULTILINE)
ELSEWHERE = re.compile(r"\[([^\]]+)\]\((?:\.\./[^)]+|[^)]+/)\)")
LITERAL = re.compile(r"`+[^`]+`+")
DRAWN = re.compile("[│├└]")
SPECIAL = re.compile(r"[*_|\\]")


def add_contents(_app: Sphinx, page: str, source: list[str]) -> None:
    """Make the pages that the index lists the contents of the site, grouped by its headings."""
    source[0] = ELSEWHERE.sub(r"\1", source[0])  # no page for a folder, nor for what is above
    if page == "index":
        for heading, part in sections(source[0]):
            contents = "\n".join(dict.fromkeys(LISTED.findall(part)))
            options = f":hidden:\n:caption: {heading}\n"
            source[0] += f"\n```{{toctree}}\n{options}\n{contents}\n```\n" if contents else ""


def sections(text: str) -> list[tuple[str, str]]:
    """The headings of a page, and the text below each."""
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    divided = (part.partition("\n") for part in parts)
    return [(heading.strip(), below) for heading, _, below in divided]


def write_for_machines(app: Sphinx, failed: Exception | None) -> None:
    """Put the Markdown of every page next to its HTML, and a list of the pages, `llms.txt`."""
    if failed is not None or app.builder.name != "html":
        return
    pages, site = Path(app.srcdir), Path(app.outdir)
    for page in pages.rglob("*.md"):
        copy = site / page.relative_to(pages)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    index = (pages / "index.md").read_text(encoding="utf-8")
    lines = ["# shortlist", "", *(f"> {line}" for line in index.split("\n\n")[1].splitlines())]
    for heading, part in sections(index):
        rows = ROW.findall(part)
        lines += ["", f"## {heading}", ""] if rows else []
        lines += [f"- [{name}]({file}): {question}" for name, file, question in rows]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    app.connect("build-finished", write_for_machines)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-process-docstring", mark_up)
