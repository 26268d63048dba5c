"""The API reference: no public name, and no field of what users are handed, goes undocumented."""

import ast
import dataclasses
import inspect
import pydoc
import re
import textwrap
from pathlib import Path

import pytest

import shortlist
from shortlist.engine import Status, Ticket
from shortlist.engine.status import ArmsTold
from shortlist.forecasting.prospects import Prospect
from shortlist.result import ArmLift, ArmResult, Lift

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
RECORDS = (
    shortlist.Result,
    shortlist.Assessment,
    ArmResult,
    ArmLift,
    Lift,
    shortlist.Runs,
    shortlist.ComparedAlgorithms,
    shortlist.ComparedRuns,
    shortlist.Forecast,
    Prospect,
    shortlist.Hardness,
    Status,
    ArmsTold,
    Ticket,
)
LISTED = set(re.findall(r"^\.\. (?:auto|py:)\w+:: shortlist\.([\w.]+)", PAGE, re.MULTILINE))
# have no docstring of their own: the page has a text
DATA = {"ALGORITHMS", "Search", "__version__"}
FIELDS = [(record, field.name) for record in RECORDS for field in dataclasses.fields(record)]


def documented(record: type) -> set[str]:
    """Fields of which their class, a docstring below or a comment `#:` beside or above speaks."""
    source = textwrap.dedent(inspect.getsource(record))
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    lines = [line.strip() for line in source.splitlines()]
    named = set(re.findall(r"`(\w+)`", ast.get_docstring(body) or ""))
    for statement, below in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            own = lines[statement.lineno - 1 : statement.end_lineno]
            above = lines[statement.lineno - 2].startswith("#: ")
            if above or _says(below) or any("#: " in line for line in own):
                named.add(statement.target.id)
    return named


def _says(statement: ast.stmt | None) -> bool:
    """Whether a statement is a text."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@pytest.mark.parametrize("name", shortlist.__all__)
def test_a_public_name_is_in_the_reference(name: str) -> None:
    assert name in LISTED, f"{name} is public: give it a line in docs/api.md"


@pytest.mark.parametrize("name", sorted(set(shortlist.__all__) - DATA))
def test_a_public_name_has_a_docstring(name: str) -> None:
    text = getattr(shortlist, name).__doc__ or ""
    assert text
    assert not text.startswith(f"{name}("), "a dataclass writes that of itself"


@pytest.mark.parametrize("name", sorted(LISTED - DATA))
def test_what_the_reference_lists_is_there(name: str) -> None:
    assert pydoc.locate(f"shortlist.{name}") is not None


@pytest.mark.parametrize(("record", "field"), FIELDS)
def test_a_field_is_documented(record: type, field: str) -> None:
    assert field in documented(record), f"say below {record.__name__}.{field} what it is"


def test_a_field_without_a_word_is_found() -> None:
    assert documented(Undocumented) == {"named", "below", "beside", "above"}


@dataclasses.dataclass
class Undocumented:
    """Has `named`."""

    named: int
    silent: int
    below: int
    """Of which something is said."""
    beside: int  #: of which something is said
    hushed: int  # by a comment that nobody collects
    #: of which something is said
    above: int
