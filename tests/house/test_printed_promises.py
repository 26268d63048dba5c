"""Numbers that carry a promise are rounded by `digits.py` and nowhere else."""

import ast
import re
from pathlib import Path

import pytest

import shortlist

ROOT = Path(shortlist.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path.name != "digits.py")
TEMPLATES = sorted(ROOT.rglob("*.html"))
PROMISED = re.compile(r"bound|confidence|delta|epsilon|\blow\b|\bhigh\b|\bmean\b")
ROUNDED = re.compile(r"\.\d+[gfe%]|[gfe%]$")
# figures that were measured, and constants of the design
MEASURED = {"reproduction"}


def rounded(source: str) -> list[str]:
    """Expressions with a promise that a format rounds."""
    return [
        ast.unparse(node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FormattedValue)
        and node.format_spec is not None
        and ROUNDED.search(ast.unparse(node.format_spec).strip("f'\""))
        and PROMISED.search(ast.unparse(node.value))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_promise_is_rounded_elsewhere(path: Path) -> None:
    if path.relative_to(ROOT).parts[0] not in MEASURED:
        assert rounded(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_page_rounds_numbers_on_its_own(path: Path) -> None:
    assert not re.search(r"%\.?\d*[gfe]|\{:[^}]*[gfe%]\}|\| *round", path.read_text("utf-8"))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('f"at most {self.regret_bound:.4g}"', ["self.regret_bound"]),
        ('f"{1 - self.delta:g}"', ["1 - self.delta"]),
        ('f"{answer.confidence:.0%}"', ["answer.confidence"]),
        ('f"{arm.low:.3g} … {arm.high:.3g}"', ["arm.low", "arm.high"]),
        ('f"{bound_text(bound)} after {pulls:,}"', []),
        ('f"{seconds:.0f} s"', []),
    ],
)
def test_the_check_sees_what_is_rounded(source: str, found: list[str]) -> None:
    assert rounded(source) == found
