"""A result as a data frame, of whichever library is there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from shortlist.arms import plain_label
from shortlist.errors import InvalidInput, UnknownName
from shortlist.result.arm_result import ArmResult
from shortlist.validation import shown

LIBRARIES = ("pandas", "polars")


def frame_of(arms: Iterable[ArmResult], library: str | None) -> Any:
    """A line for every arm, a column for every figure."""
    return frame_of_rows([asdict(arm) for arm in arms], library)


def frame_of_rows(rows: Sequence[Mapping[str, Any]], library: str | None) -> Any:
    """A line for every row; its `label` comes first, and is called `arm` as in every table."""
    labels = _column([plain_label(row["label"]) for row in rows])
    figures = [{name: row[name] for name in row if name != "label"} for row in rows]
    lines = [{"arm": label, **own} for label, own in zip(labels, figures, strict=True)]
    return import_module(_available(library)).DataFrame(lines)


def _column(labels: list[str | int]) -> list[str] | list[int]:
    """Labels of one kind, as a column must have: numbers if all are, and fit into 64 bits."""
    numbers = [label for label in labels if isinstance(label, int) and abs(label) < 2**63]
    return numbers if len(numbers) == len(labels) else list(map(str, labels))


def _available(library: str | None) -> str:
    """The library asked for, or else the first that is installed."""
    if library is not None and library not in LIBRARIES:
        raise UnknownName(
            f"`library` is {shown(library)}, but must be one of {', '.join(LIBRARIES)}"
        )
    for name in LIBRARIES if library is None else (library,):
        if find_spec(name) is not None:
            return name
    missing = f"neither {' nor '.join(LIBRARIES)}" if library is None else f"no {library}"
    raise InvalidInput(f"a data frame is asked for, but {missing} is installed")
