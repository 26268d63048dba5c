"""The error tree: one root, each child also the built-in it is, and the drawing at the top tells
the truth."""

import inspect
import pickle
import re
from pathlib import Path

import pytest

from shortlist import errors
from shortlist.errors import (
    InvalidInput,
    InvalidReward,
    ShortlistError,
    UnknownName,
    UnsupportedGoal,
)
from shortlist.service.replies import STATUSES

CLASSES: dict[str, type[ShortlistError]] = {
    name: each
    for name, each in inspect.getmembers(errors, inspect.isclass)
    if each.__module__ == errors.__name__ and issubclass(each, ShortlistError)
}


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (InvalidInput, ValueError),
        (UnknownName, LookupError),
        (UnknownName, ValueError),
        (UnsupportedGoal, ValueError),
        (InvalidReward, ValueError),
    ],
)
def test_an_error_is_also_the_builtin_it_is(error: type[Exception], also: type[Exception]) -> None:
    assert issubclass(error, also)


@pytest.mark.parametrize("error", CLASSES.values(), ids=CLASSES)
def test_every_error_has_the_one_root_and_keeps_its_message_between_processes(
    error: type[ShortlistError],
) -> None:
    assert issubclass(error, ShortlistError)
    copy = pickle.loads(pickle.dumps(error("`k` is 7, but must be less")))
    assert type(copy) is error
    assert str(copy) == "`k` is 7, but must be less"


def test_the_drawing_at_the_top_names_every_error() -> None:
    drawn = re.findall(
        r"^[│ ]*(?:[├└]── )?(\w+)(?: \(\w+\))?(?: {2,}|$)", errors.__doc__ or "", re.MULTILINE
    )
    assert set(drawn) == set(CLASSES)


def test_the_page_of_errors_has_a_row_for_each_with_the_status_of_a_service() -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `\w+` \| ([\d, ]*)\|", page, re.MULTILINE))
    assert set(rows) == set(CLASSES) - {"ShortlistError"}
    for name, shown in rows.items():
        error = CLASSES[name]("")
        status = [code for kind, code in STATUSES if isinstance(error, kind)][:1]
        assert [int(code) for code in shown.split(",") if code.strip()][-1:] == status, name
