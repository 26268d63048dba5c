"""Mutation testing of the code that the guarantee rests on: `make mutants`, a few minutes.

A mutant is the code with one operator, constant, or min/max changed. Every mutant must fail a test
of tests/certificates, or stand in equivalent.txt with the reason why it is no worse than the code:
because no value changes, or because a bound can only become larger. An entry there that names no
mutant any more is an error too."""

import ast
import compileall
import contextlib
import copy
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import hypothesis.strategies  # noqa: F401 (imported here once, not by every mutant's tests)
import pytest
import scipy.stats  # noqa: F401
from rich.console import Console
from rich.progress import track

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path("src/shortlist/certificates")
# quick ones first, as a mutant that fails one need not see the others
SPLIT = ("test_kernels", "test_holdout", "test_certify", "test_certificate")
PAIRS_TESTS = ("pairs/test_swaps", "pairs/test_mixture", "pairs/test_bets", "pairs/test_wealth")
TESTS = {  # of every file that is changed
    "certify.py": SPLIT,
    "frame.py": ("test_frame", "test_fixed_design", "test_holdout", "test_split_retired"),
    "split/bound.py": SPLIT,
    "split/offsets.py": SPLIT,
    "pairs/bound.py": PAIRS_TESTS,
    "pairs/fallback.py": ("pairs/test_two_arm_boundary",),
}
# top-level names that only decide how soon a proof is found, or that other tests cover
SKIPPED = {
    "pairs/bound.py": {"Stages", "_doubled"},
    "pairs/fallback.py": {
        *("NEAR_END", "END_MEANS", "MOST_FALLBACK", "LATE", "PLACING", "RACE", "RACE_IN_DOUBT"),
        *("WORTH_PLACING", "LIKELIHOOD", "MANY_RIVALS", "HIGH_MEAN"),
        *("Fallback", "may_compare", "log_wealth"),
        *("LOWER", "LOWER_MEANS", "BEYOND", "AT", "NO_BET", "TIE_WEIGHT", "SLIGHT_STAKE", "RESTS"),
        *("LeadEvidence", "_exp"),
    },
    "split/offsets.py": {"CHECKS", "MORE_CHECKS", "MOST_CHECKS", "RETREATS", "RETREAT"},
    "split/bound.py": {"VARIANCE_BLUR", "STEEPEST_TILT", "discount", "discount_error"},
    "frame.py": {"limited_pulls", "mirrored", "_complement", "UNREACHABLE", "FAR_BEYOND"},
}
LONGEST = 300  # seconds: what takes longer has failed
PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.And, ast.Or),
    (ast.BitAnd, ast.BitOr),
)
SWAPPED = dict(PAIRS) | {other: one for one, other in PAIRS} | {ast.Pow: ast.Mult}
RENAMED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "fmin": "fmax"}


class Mutant(NamedTuple):
    """A file with one change, under a name that does not change with line numbers."""

    file: str
    name: str
    source: str


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        yield altered(node, op=SWAPPED[type(node.op)]())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield altered(node, ops=[SWAPPED[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.Constant):
        yield from (altered(node, value=value) for value in other_constants(node.value))
    if isinstance(node, ast.Name) and node.id in RENAMED:
        yield altered(node, id=RENAMED[node.id])
    if isinstance(node, ast.Attribute) and node.attr in RENAMED:
        yield altered(node, attr=RENAMED[node.attr])


def other_constants(value: object) -> tuple[float, ...]:
    """A number a little larger and smaller, or the other truth; nothing for text."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return value + 1, value - 1
    if isinstance(value, float):
        return (2 * value, value / 2) if value else (1.0,)
    return ()


def altered(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def places(node: ast.AST, within: str = "") -> Iterator[tuple[ast.AST, str, int | None, str]]:
    """Every place where a node stands, but annotations: parent, field, index, statement."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                is_statement = isinstance(child, ast.stmt)
                statement = ast.unparse(child).splitlines()[0] if is_statement else within
                yield node, field, index, statement
                yield from places(child, statement)


def within(top: ast.stmt) -> Iterator[tuple[ast.AST, str, int | None, str]]:
    """Every place within a top-level statement."""
    return places(top, ast.unparse(top).splitlines()[0])


def names_of(top: ast.stmt) -> set[str]:
    """The names that a top-level statement defines."""
    if isinstance(top, ast.FunctionDef | ast.ClassDef):
        return {top.name}
    return {each.id for each in ast.walk(top) if isinstance(each, ast.Name)}


def mutants(file: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    tree = ast.parse((ROOT / PACKAGE / file).read_text(encoding="utf-8"))
    seen: Counter[str] = Counter()
    changed_ones = [each for each in tree.body if not names_of(each) & SKIPPED.get(file, set())]
    for parent, field, index, statement in [at for each in changed_ones for at in within(each)]:
        holder = getattr(parent, field)
        original = holder if index is None else holder[index]
        for changed in changes(original):
            put(parent, field, index, changed)
            text = f"{file}: {ast.unparse(original)} -> {ast.unparse(changed)} in {statement[:60]}"
            seen[text] += 1
            yield Mutant(file, f"{text} #{seen[text]}", ast.unparse(tree))
        put(parent, field, index, original)


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    """Put a node into its place."""
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def killed(mutant: Mutant) -> bool:
    """Whether a test notices the mutant; to be called in a process that ends after it."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # ends the tests, as Ctrl-C does
    signal.alarm(LONGEST)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        (Path(folder) / PACKAGE / mutant.file).write_text(mutant.source, encoding="utf-8")
        sys.path.insert(0, f"{folder}/src")
        folder_of_tests = ROOT / "tests/certificates"
        tests = [str(folder_of_tests / f"{name}.py") for name in TESTS[mutant.file]]
        options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is imported above
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            code = pytest.main([f"--rootdir={ROOT}", *options, *tests])
        assert str(sys.modules["shortlist"].__file__).startswith(folder), "not the mutant's tests"
    return code != pytest.ExitCode.OK


def listed() -> set[str]:
    """The mutants that are known to be no worse: lines that are indented give the reason."""
    lines = (HERE / "equivalent.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line.strip() and line[0] not in " #"}


def alive(due: list[Mutant], workers: int) -> Iterator[str]:
    """The names of the mutants that no test notices.

    Every mutant gets a process forked from this one, which has all but the package imported."""
    compileall.compile_dir(ROOT / "src", quiet=1)
    with multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=1) as pool:
        results = pool.imap(killed, due, chunksize=1)
        console = Console(stderr=True)
        for mutant, dead in zip(due, track(results, total=len(due), console=console), strict=True):
            if not dead:
                yield mutant.name


@click.command()
@click.option("--only", default="", help="Mutants whose name contains this.")
@click.option("--workers", default=2, show_default=True)
@click.option("--equivalent/--others", default=False, help="Run those in equivalent.txt instead.")
def main(only: str, workers: int, equivalent: bool) -> None:
    """Run the tests on every mutant, and name those that no test notices."""
    every = [mutant for file in TESTS for mutant in mutants(file)]
    known = listed()
    stale = sorted(known - {mutant.name for mutant in every})
    due = [each for each in every if only in each.name and (each.name in known) == equivalent]
    survivors = 0
    for name in alive(due, workers):
        survivors += 1
        print(name, flush=True)
    for name in stale:
        print(f"no such mutant: {name}")
    print(f"{len(every)} mutants, {len(known)} of them listed as equivalent")
    print(f"{len(due)} run, {len(due) - survivors} killed, {survivors} not")
    sys.exit(bool(stale) or survivors != (len(due) if equivalent else 0))


if __name__ == "__main__":
    main()
