"""Imports point one way: between the packages by the table below, inside a package without a cycle.

A new package, or a module next to the packages, needs a place in the table."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import shortlist

LAYERS = (  # low to high; neighbours in a layer do not import each other
    (
        "arrays",
        "formatting",
        "telemetry",
    ),
    (
        "errors",
        "search",
    ),
    ("spec",),
    ("validation",),
    (
        "arms",
        "features",
        "constraints",
        "instances",
        "reading",
        "regret",
        "reward_models",
        "stores",
    ),
    (
        "problem",
        "quotas",
    ),
    (
        "budget",
        "cells",
        "confidence",
    ),
    ("exploration",),
    (
        "certificates",
        "interim",
    ),
    ("algorithms",),
    ("driver",),
    ("result",),
    ("settings",),
    ("simulation",),
    (
        "assessment",
        "forecasting",
        "theory",
    ),
    ("engine",),
    (
        "reproduction",
        "selection",
        "sklearn",
        "wire",
    ),
    (
        "client",
        "harnesses",
        "service",
    ),
    ("cli",),
    ("__main__",),
)
ROOT = Path(shortlist.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def module_of(path: Path) -> str:
    """The dotted name below shortlist; that of a package for its __init__.py."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str) -> Iterator[str]:
    """Every module of ours that a file imports anywhere, also inside functions, below shortlist."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be read and checked"
            names = [named_module(str(node.module), alias.name) for alias in node.names]
        yield from (
            name.partition(".")[2] for name in names if name.partition(".")[0] == "shortlist"
        )


def named_module(module: str, name: str) -> str:
    """The module that `from module import name` reads."""
    inner = ROOT.parent / module.replace(".", "/") / name
    return f"{module}.{name}" if inner.is_dir() or inner.with_suffix(".py").exists() else module


def layer_of(module: str) -> int:
    """The place of a module's package in the table; -1 if it has none."""
    top = module.partition(".")[0]
    return next((level for level, layer in enumerate(LAYERS) if top in layer), -1)


def misdirected(source: str, own: str) -> list[str]:
    """The imports in the text of module `own` that point up or sideways between packages."""
    top = own.partition(".")[0]
    return [
        target
        for target in imported(source)
        if (not target and top != "cli")  # the public names are for users
        or (target.partition(".")[0] != top and layer_of(target) >= layer_of(own))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_between_packages_point_down(path: Path) -> None:
    own = module_of(path)
    assert layer_of(own) >= 0, f"{own} has no layer yet: give it one"
    assert misdirected(path.read_text(encoding="utf-8"), own) == []


def cycle(sources: dict[str, str]) -> list[str]:
    """Modules that import each other in a circle; none if there is no circle."""
    graph = {own: set(imported(source)) - {own} for own, source in sources.items()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycle({module_of(path): path.read_text(encoding="utf-8") for path in FILES}) == []


def test_the_check_sees_a_circle() -> None:
    sources = {"a": "from shortlist.b import x", "b": "def f():\n    import shortlist.a"}
    assert cycle(sources)
    assert not cycle({**sources, "b": "import math"})


def test_every_package_in_the_table_exists() -> None:
    tops = {module_of(path).partition(".")[0] for path in FILES}
    assert {name for layer in LAYERS for name in layer} - tops == set()


@pytest.mark.parametrize(
    ("source", "own", "wrong"),
    [
        ("from shortlist.problem import Problem", "algorithms.lucb", []),
        ("from shortlist.algorithms.uniform import uniform", "algorithms.sar", []),
        ("import shortlist", "cli.run", []),
        ("from shortlist.simulation import parallel", "algorithms.sar", ["simulation.parallel"]),
        ("from shortlist import simulation", "problem", ["simulation"]),
        ("import shortlist", "algorithms.sar", [""]),
        ("def f():\n    import shortlist.cli.output", "driver", ["cli.output"]),
    ],
)
def test_the_check_sees_imports_that_point_up_or_sideways(
    source: str, own: str, wrong: list[str]
) -> None:
    assert misdirected(source, own) == wrong


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "core", "common", "helpers", "misc"}
    assert not drawers & {path.stem for path in FILES}


def test_no_class_name_occurs_twice() -> None:
    named: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                named.setdefault(node.name, []).append(module_of(path))
    assert {name: where for name, where in named.items() if len(where) > 1} == {}
