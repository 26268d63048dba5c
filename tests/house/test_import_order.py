"""Imports point one way, between packages and inside them.

Every module stands in a layer and imports from lower layers only. The tables below are the plan of
the house: a new module needs a line here before it may import anything."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shortlist

Layers = tuple[tuple[str, ...], ...]

TOP: Layers = (  # low to high; neighbours in a layer do not know each other
    ("printable", "traces", "digits"),
    ("errors", "arrays", "tables", "rounding"),
    ("validation", "grouping", "caution", "counting"),
    ("items", "reading"),
    ("reward_models", "arms"),
    ("problem", "search"),
    ("metrics", "instances", "confidence", "purse"),
    ("exploration",),
    ("certification", "present"),
    ("algorithms",),
    ("driver",),
    ("simulation", "evaluation", "ahead"),
    ("foresight",),
    ("theory", "forecasting", "harnesses", "question", "display", "storage"),
    ("result",),
    ("reproduction", "experiment", "assessment"),
    ("keeping", "pulling"),
    ("selection",),
    ("wire",),
    ("client", "service"),
    ("cli",),
    ("__main__",),
)
INSIDE: dict[str, Layers] = {
    "exploration": (
        ("tuning", "item_tuning", "item_sums"),
        ("sharing", "grid"),
        ("posterior", "item_effects"),
        ("item_loss", "paid"),
        ("explore", "undeclared"),
    ),
    "certification": (
        ("design", "retired"),
        ("reachable",),
        ("split", "pairs", "items"),
        ("plans", "certify", "by_spread", "past"),
    ),
    "certification.past": (
        ("cells", "tails", "wealth", "thresholds"),
        ("evidence",),
        ("tilts",),
        ("verdict",),
    ),
    "certification.items": (
        ("tuning", "matching", "cells"),
        ("capital", "band"),
        ("verdicts", "history"),
        ("paired", "single"),
        ("standing",),
        ("item_race",),
    ),
    "certification.plans": (
        ("tuning", "losses", "stop_states"),
        ("priors", "boundaries", "charges", "moments"),
        ("beliefs",),
        ("policies",),
        ("plan",),
        ("drafts", "parts"),
        ("counts", "claims", "sketches"),
        ("settling",),
        ("stage",),
        ("look",),
        ("plan_search",),
    ),
    "certification.pairs": (
        ("bets", "swaps", "boundary", "place", "mixture", "least_favourable"),
        ("stages", "lead", "likelihood", "chase"),
        ("net",),
        ("standing",),
        ("bounds",),
        ("race",),
        ("swap_race",),
    ),
    "certification.split": (
        ("tuning",),
        ("closed_offsets", "alpha_spending", "holdout", "candidates", "knapsack"),
        ("exact_offsets", "predicted_offsets", "normal_charges", "binomial_charges", "discount"),
        ("offsets", "expected_charges", "score_charges"),
        ("certificate",),
        ("drafting",),
        ("answers", "strengths"),
        ("looks", "final_look", "fixed_samples"),
        ("split_search",),
    ),
    "algorithms": (
        ("tuning", "options", "guard", "references", "limits"),
        ("subroutines",),
        ("uniform",),
        (
            "adaptive_top_k",
            "certified",
            "clucb_pac",
            "expected_loss",
            "improved_top_k",
            "lucb",
            "median_elimination",
            "opt_mai",
            "sar",
            "track_and_stop",
        ),
        ("kl_lucb",),
        ("algorithm",),
        ("registry",),
    ),
    "algorithms.subroutines": (
        ("sampling", "mirrored", "shares", "divergence", "glr_thresholds"),
        ("sorting", "race", "est_kth_arm", "proportions"),
        ("elim", "eps_split"),
    ),
    "assessment": (("assessment",), ("assess",)),
    "reading": (
        ("files", "parquet"),
        ("columns", "labels"),
        ("scores", "totals"),
        ("given", "counts"),
    ),
    "evaluation": (
        ("numbering", "loop", "program", "cells", "attempts"),
        ("rewards", "calls", "command", "reach", "exchangeability", "declared_sigma"),
        ("variation",),
        ("sameness",),
        ("flight", "account", "independence"),
        ("checks",),
        ("executors",),
    ),
    "evaluation.executors": (("processes", "ray"),),
    "simulation": (("bandit", "parallel", "matrix"), ("drive",), ("simulate",)),
    "theory": (("hardness",), ("lower_bound",)),
    "theory.lower_bound": (("coins",), ("reduction",), ("demonstration",)),
    "forecasting": (("beliefs", "prospects"), ("scenes", "picture"), ("trials",)),
    "result": (
        ("plain", "ending"),
        ("arm_result", "lift"),
        ("frame", "picture"),
        ("result",),
        ("carrying",),
    ),
    "harnesses": (("with_dspy", "with_inspect_ai", "with_lm_eval"),),
    "storage": (
        ("store", "files", "tokens", "in_words", "address", "insist", "clock"),
        ("memory", "chain", "database", "words"),
        ("sql", "schema"),
        ("connection",),
        ("sqlite", "postgres"),
    ),
    "storage.postgres": (("schema", "texts", "words"), ("connections",), ("store",)),
    "experiment": (
        ("ticket", "place", "lease"),
        ("settings", "ledger"),
        ("replay", "durations"),
        ("staying", "news"),
        ("status",),
        ("replica",),
        ("telling", "view"),
        ("worker", "handing", "affording"),
        ("runnable", "leaving", "writer"),
        ("dealer",),
        ("lines", "experiment"),
        ("export", "verification", "copying", "outlook"),
    ),
    "client": (("bodies", "connection"), ("client",)),
    "service": (
        ("limits", "metrics", "schemas", "tokens", "writes"),
        ("replies", "opened"),
        ("bodies", "gate"),
        ("endpoints",),
        ("routes",),
        ("openapi", "service"),
        ("pages",),
        ("app",),
        ("server",),
    ),
    "service.pages": (
        ("words", "picture", "bounds"),
        ("view",),
        ("render",),
        ("stream",),
        ("answers",),
    ),
    "reproduction": (("design",), ("runs",), ("findings",), ("report",), ("study",)),
    "reproduction.design": (("panels", "methods", "budgets"), ("sweeps",), ("design",)),
    "reproduction.runs": (
        ("rows", "courses", "remaining"),
        ("measure",),
        ("pilot",),
        ("tasks",),
        ("results_file",),
        ("results",),
    ),
    "reproduction.findings": (("finding", "curves", "decisions"), ("lead", "claims", "theorems")),
    "reproduction.report": (("looks", "tables"), ("figures",), ("page",)),
    "cli": (
        ("completion", "numbers", "output"),
        ("options", "stores"),
        ("items",),
        ("arms", "instance", "rewards", "algorithms", "demo", "reproduce"),
        ("status", "fresh", "pilot"),
        (
            "assess",
            "certify",
            "copying",
            "experiments",
            "forecast",
            "hardness",
            "release",
            "retire",
            "serve",
        ),
        ("simulate", "tokens"),
        ("run",),
    ),
}
ROOT = Path(shortlist.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def module_of(path: Path) -> str:
    """The dotted name below shortlist; that of a package for its __init__.py."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module of ours that is imported anywhere in a file, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be read and checked"
            for alias in node.names:
                inner = ROOT.parent / str(node.module).replace(".", "/") / f"{alias.name}"
                is_module = inner.is_dir() or inner.with_suffix(".py").exists()
                yield f"{node.module}.{alias.name}" if is_module else str(node.module)


def place(package: str, name: str) -> int:
    """The layer of a module in its package; -1 if it has none yet."""
    layers = INSIDE.get(package, ()) if package else TOP
    return next((level for level, layer in enumerate(layers) if name in layer), -1)


def points_down(own: str, target: str) -> bool:
    """Whether `own` may import `target`, both dotted and below shortlist."""
    if not target:  # the package itself: the public names
        return own.startswith("cli")
    mine, theirs = own.split("."), target.split(".")
    while mine and theirs and mine[0] == theirs[0]:
        mine, theirs = mine[1:], theirs[1:]
    package = ".".join(own.split(".")[: len(own.split(".")) - len(mine)])
    if not mine or not theirs:
        return not mine  # a package speaks for what is in it, and nothing in it for the package
    return place(package, theirs[0]) < place(package, mine[0])


def misdirected(source: str, own: str) -> list[str]:
    """The imports in `source`, the text of module `own`, that do not point down."""
    ours = [name for name in imported(ast.parse(source)) if name.partition(".")[0] == "shortlist"]
    return [name for name in ours if not points_down(own, name.partition(".")[2])]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    own = module_of(path)
    package, _, name = own.rpartition(".")
    assert place(package, name) >= 0, f"{own} has no layer yet: give it one"
    assert misdirected(path.read_text(encoding="utf-8"), own) == []


def test_every_module_in_the_plan_is_there() -> None:
    planned = {name for layer in TOP for name in layer}
    for package, layers in INSIDE.items():
        planned |= {f"{package}.{name}" for layer in layers for name in layer}

    assert planned - {module_of(path) for path in FILES} == set()


@pytest.mark.parametrize(
    ("source", "own", "wrong"),
    [
        ("from shortlist.problem import Problem", "algorithms.lucb", []),
        ("from shortlist.algorithms.uniform import uniform", "algorithms.sar", []),
        ("import shortlist", "cli.run", []),
        (
            "from shortlist.simulation import drive",
            "algorithms.sar",
            ["shortlist.simulation.drive"],
        ),
        ("from shortlist import simulation", "problem", ["shortlist.simulation"]),
        ("import shortlist", "algorithms.sar", ["shortlist"]),
        ("def f():\n    import shortlist.cli.output", "driver", ["shortlist.cli.output"]),
        (
            "from shortlist.algorithms.sar import sar",
            "algorithms.lucb",
            ["shortlist.algorithms.sar"],
        ),
        ("from shortlist.algorithms import find", "algorithms.sar", ["shortlist.algorithms"]),
        (
            "from shortlist.exploration.explore import explore",
            "exploration.posterior",
            ["shortlist.exploration.explore"],
        ),
    ],
)
def test_the_check_sees_imports_that_point_up_or_sideways(
    source: str, own: str, wrong: list[str]
) -> None:
    assert misdirected(source, own) == wrong


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "core", "common", "helpers", "misc"}
    assert not drawers & {path.stem for path in FILES}
