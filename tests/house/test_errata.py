"""Errata: every number that is cited is defined, and every definition leads to the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "shortlist"
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\bE([1-9][0-9]?)\b")
PLACES = re.compile(r"`([\w/]+\.py)`: ((?:`\w+`(?:, )?)+)")
NOT_IN_CODE = "not in code"


def sections(page: str) -> dict[int, str]:
    """The text of every erratum by its number."""
    parts = re.split(r"^## E(\d+): .*$", page, flags=re.MULTILINE)[1:]
    return {int(number): text for number, text in zip(parts[::2], parts[1::2], strict=True)}


def code_places(text: str) -> list[tuple[str, list[str]]]:
    """Every file that an erratum names, with the names in it."""
    line = text.partition("**Code.**")[2]
    return [(file, re.findall(r"\w+", names)) for file, names in PLACES.findall(line)]


def cited(folder: Path, *patterns: str) -> set[int]:
    """Every number that a file in this folder cites."""
    files = [path for pattern in patterns for path in folder.rglob(pattern)]
    return {int(found) for path in files for found in NUMBER.findall(path.read_text("utf-8"))}


def defined_in(file: Path) -> set[str]:
    """Functions, classes, fields and constants of a module."""
    nodes = [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


ERRATA = sections(PAGE)


def test_the_errata_are_numbered_without_a_gap() -> None:
    assert list(ERRATA) == list(range(1, 20))


def test_every_number_cited_is_defined() -> None:
    pages = {int(found) for found in NUMBER.findall((ROOT / "README.md").read_text("utf-8"))}
    everywhere = cited(ROOT / "src", "*.py") | cited(ROOT / "tests", "*.py")
    assert (everywhere | cited(ROOT / "docs", "*.md") | pages) - set(ERRATA) == set()


def test_every_number_defined_is_cited_in_the_code_or_says_that_it_is_not() -> None:
    silent = {number for number, text in ERRATA.items() if NOT_IN_CODE in text}
    assert set(ERRATA) - cited(SOURCE, "*.py") == silent


@pytest.mark.parametrize("number", ERRATA)
def test_an_erratum_says_what_is_printed_what_the_proof_needs_and_what_we_do(number: int) -> None:
    assert re.findall(r"^- \*\*(\w+)\.\*\*", ERRATA[number], re.MULTILINE) == [
        "Paper",
        "Proof",
        "Here",
        "Code",
    ]


@pytest.mark.parametrize("number", ERRATA)
def test_the_code_an_erratum_names_is_there_and_cites_it(number: int) -> None:
    places = code_places(ERRATA[number])
    assert places or NOT_IN_CODE in ERRATA[number]
    for file, names in places:
        assert set(names) <= defined_in(SOURCE / file), file
        assert str(number) in NUMBER.findall((SOURCE / file).read_text("utf-8")), file
