"""Imports point one way. Every module stands in a layer and imports from lower layers only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shortlist

LAYERS = (  # low to high; a package counts as one, and inside it anything goes
    ("errors",),
    ("problem",),
    ("search",),
    ("metrics", "instances", "ranking"),
    ("certificate", "posterior", "hardness"),
    ("prediction", "certify"),
    ("pricing",),
    ("planning",),
    ("algorithms",),
    ("outcome", "evaluation"),
    ("simulation",),
    ("lower_bound", "forecast"),
    ("reproduction", "storage", "executors", "question", "result", "display"),
    ("select", "experiment"),
    ("cli",),
    ("__main__",),
)
LEVELS = {module: level for level, layer in enumerate(LAYERS) for module in layer}
ROOT = Path(shortlist.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def home(path: Path) -> str:
    """The module or package directly under shortlist that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere in a file, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be read and checked"
            names = [f"shortlist.{alias.name}" for alias in node.names]
            yield from names if node.module == "shortlist" else [str(node.module)]


def misdirected(source: str, own: str) -> list[str]:
    """The imports in `source`, a file of `own`, that do not point down."""
    wrong = []
    for name in imported(ast.parse(source)):
        top, _, inner = name.partition(".")
        target = inner.partition(".")[0]
        if top != "shortlist" or target == own:
            continue
        # the package itself: the public names
        level = LEVELS.get(target, -1) if target else LEVELS["cli"] - 1
        if not level < LEVELS[own]:
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    assert home(path) in LEVELS, f"{home(path)} has no layer yet: give it one"
    assert misdirected(path.read_text(encoding="utf-8"), home(path)) == []


@pytest.mark.parametrize(
    ("source", "own", "wrong"),
    [
        ("from shortlist.problem import Problem", "algorithms", []),
        ("from shortlist.algorithms.uniform import uniform", "algorithms", []),
        ("import shortlist", "cli", []),
        (
            "from shortlist.simulation.drive import drive",
            "algorithms",
            ["shortlist.simulation.drive"],
        ),
        ("from shortlist import simulation", "problem", ["shortlist.simulation"]),
        ("import shortlist", "algorithms", ["shortlist"]),
        ("def f():\n    import shortlist.cli.output", "simulation", ["shortlist.cli.output"]),
        ("from shortlist.posterior import Posterior", "certificate", ["shortlist.posterior"]),
    ],
)
def test_the_check_sees_imports_that_point_up_or_sideways(
    source: str, own: str, wrong: list[str]
) -> None:
    assert misdirected(source, own) == wrong


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    assert not {"utils", "util", "core", "common", "helpers", "misc"} & {
        path.stem for path in FILES
    }
