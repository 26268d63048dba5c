"""The table of notation: every name stands in the file that it is said to stand in."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "shortlist"
CODE = re.compile(r"`([^`]+)`")
Row = tuple[tuple[str, ...], tuple[str, ...]]


def rows(page: str) -> list[Row]:
    """Names and files of every row: the last two cells."""
    tables = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    cells = [re.split(r"(?<!\\)\|", line)[-3:-1] for line in tables]
    return [(_identifiers(names), tuple(CODE.findall(files))) for names, files in cells]


def _identifiers(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[A-Za-z_]\w*", " ".join(CODE.findall(cell))))


def used_in(file: Path) -> set[str]:
    """Every name that a module defines, assigns, takes as an argument or reads as an attribute."""
    if file.suffix != ".py":
        return set()
    nodes = [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    return {
        *(node.id for node in nodes if isinstance(node, ast.Name)),
        *(node.arg for node in nodes if isinstance(node, ast.arg)),
        *(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        *(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)),
    }


ROWS = rows((ROOT / "docs" / "notation.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[0]))
def test_the_names_of_a_symbol_stand_in_its_file(row: Row) -> None:
    names, files = row
    assert names
    assert files
    there = set().union(*(used_in(SOURCE / file) for file in files))
    assert all((SOURCE / file).is_file() for file in files)
    assert set(names) - there == set()


def test_a_name_that_is_not_there_is_found() -> None:
    ((names, files),) = rows("| K | `k` and `kk` of `Problem` | `problem.py` |")
    assert files == ("problem.py",)
    assert set(names) - used_in(SOURCE / files[0]) == {"kk"}
