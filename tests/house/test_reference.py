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
from shortlist.experiment import Status, Ticket
from shortlist.experiment.status import ArmsTold
from shortlist.forecasting.prospects import Prospect
from shortlist.result import Arm

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
RECORDS = (
    shortlist.Result,
    Arm,
    shortlist.Runs,
    shortlist.Forecast,
    Prospect,
    shortlist.Hardness,
    Status,
    ArmsTold,
    Ticket,
)
LISTED = set(re.findall(r"^\.\. (?:auto|py:)\w+:: shortlist\.([\w.]+)", PAGE, re.MULTILINE))
DATA = {"ALGORITHMS", "__version__"}  # which have no docstring of their own: the page has a text
FIELDS = [(record, field.name) for record in RECORDS for field in dataclasses.fields(record)]


def documented(record: type) -> set[str]:
    """Fields with a docstring below them, and those that the docstring of the class names."""
    body = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(body, ast.ClassDef)
    below = {
        field.target.id
        for field, text in zip(body.body, body.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _says(text)
    }
    return below | set(re.findall(r"`(\w+)`", ast.get_docstring(body) or ""))


def _says(statement: ast.stmt) -> bool:
    """Whether a statement is a text that says something."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and len(str(value.value)) > len("None.")


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
    assert documented(Undocumented) == {"named", "told"}


@dataclasses.dataclass
class Undocumented:
    """Has `named`."""

    named: int
    told: int
    """Of which something is said."""
    silent: int
