"""What users gave is shown in one way, and used as it was checked: a number may have more digits
than Python is ready to write, and be of a kind that does not compute as a float does."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shortlist

ROOT = Path(shortlist.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if "cli" not in path.parts)
PLAIN = {"str", "int", "float", "Path", "Scope"}  # types of what was checked before
CHECKS = {"number", "whole", "seeded", "manners"}  # return what is to be used
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> Iterator[Function]:
    """Every function of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            yield node


def unshown(source: str) -> list[str]:
    """What a message formats as it came: a parameter that may be anything."""
    return [
        f"{function.name}: {value.value.id}"
        for function in functions(source)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Raise)
        for value in ast.walk(statement)
        if isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.Name)
        if _annotations(function).get(value.value.id, "int") not in PLAIN
    ]


def _annotations(function: Function) -> dict[str, str]:
    given = function.args
    each = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    return {name.arg: ast.unparse(name.annotation) for name in each if name.annotation}


def unused(source: str) -> list[str]:
    """What is checked, and then used as it was before."""
    return [
        f"{function.name}: {ast.unparse(argument)}"
        for function in functions(source)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if isinstance(statement.value.func, ast.Name) and statement.value.func.id in CHECKS
        for argument in statement.value.args
        if not isinstance(argument, ast.Constant)
        if isinstance(argument, ast.Attribute) or _loaded_after(function, argument)
    ]


def _loaded_after(function: Function, argument: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Name) and node.lineno > argument.lineno
        for node in ast.walk(function)
        if ast.unparse(node) == ast.unparse(argument)
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_messages_show_and_checks_are_heeded(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert unshown(source) == []
    assert unused(source) == []


def test_the_checks_see_what_is_wrong() -> None:
    assert unshown('def f(x: object):\n    raise E(f"{x!r} is wrong")') == ["f: x"]
    assert unshown('def f(x: object):\n    raise E(f"{shown(x)} is wrong")') == []
    assert unused('def f(x):\n    number("x", x)\n    return x') == ["f: x"]
    assert unused('def f(self):\n    whole("x", self.x)') == ["f: self.x"]
    assert unused('def f(x):\n    x = number("x", x)\n    return x') == []
    assert unused('def f(x):\n    number("x", x)\n    return 1') == []
