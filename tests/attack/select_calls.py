"""Calls of `select` and `select_async`: with pulls, with a test set, with a store."""

import asyncio
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from call_targets import ENOUGH, Arguments, Target, UsersOwn, show
from hostile_values import hostile

import shortlist
from shortlist.algorithms.algorithm import options_of

KEPT = "kept.db"
BUDGET = 60
LIMITED = [shortlist.Arm("a", limit=9), shortlist.Arm("b"), "c"]


def _pull(enough: int = ENOUGH) -> Callable[..., float]:
    made = iter(range(enough))

    def pull(arm: object, seed: int) -> float:
        if next(made, None) is None:
            raise UsersOwn("enough")
        return float(seed % 2)

    return pull


def goal(rng: random.Random) -> Arguments:
    confidence = {"epsilon": rng.choice((0.3, 0.5)), "delta": rng.choice((0.1, 0.3))}
    return rng.choice((confidence, {"budget": BUDGET}, {**confidence, "budget": BUDGET}))


def options(rng: random.Random, algorithm: str) -> Arguments:
    """Options that the algorithm takes, some of them replaced."""
    name = "certified" if algorithm == "auto" else algorithm
    there = options_of(shortlist.ALGORITHMS[name].search)
    kept = rng.sample(list(there), rng.randint(0, len(there)))
    return {each: rng.choice((there[each].default, hostile(rng))) for each in kept}


def algorithm_name(rng: random.Random) -> str:
    return rng.choice(("auto", *shortlist.ALGORITHMS))


def question(rng: random.Random) -> Arguments:
    return {
        "arms": rng.choice((4, ["a", "b", "c"], {"x": 1, "y": 2}, LIMITED)),
        "k": 1,
        "rewards": rng.choice(((0, 1), "binary", shortlist.SubGaussian(0.5))),
        "minimize": rng.random() < 0.2,
        "algorithm": (name := algorithm_name(rng)),
        "options": options(rng, name),
        "seed": rng.randrange(5),
        **goal(rng),
    }


def _select(rng: random.Random) -> Arguments:
    control = rng.choice((None, None, 0, "a"))
    return {
        "pull": _pull(),
        "progress": False,
        "workers": None,
        "control": control,
        **question(rng),
    }


def _select_many(rng: random.Random) -> Arguments:
    pull = _pull()

    def pull_many(arm: object, asked: Any, seed: int) -> list[float]:
        times = asked if isinstance(asked, int) else len(asked)  # on a test set they are items
        return [pull(arm, seed + draw) for draw in range(times)]

    return {"pull_many": pull_many, "batch": 20, "progress": False, **question(rng)}


def _select_items(rng: random.Random) -> Arguments:
    pull = _pull()
    scores = rng.choice((None, [[0, 1, None, None], [None] * 4, [1, 1, 1, 1]]))
    return {
        "pull": lambda arm, item: pull(arm, len(str(item))),
        "arms": ["a", "b", "c"],
        "k": 1,
        "items": 4 if scores else rng.choice((9, ["x", "y", ("z", 1)])),
        "scores": scores,
        "order": "shared" if scores else rng.choice(("shared", "independent")),
        "minimize": rng.random() < 0.2,
        "progress": False,
        **goal(rng),
    }


def _select_kept(rng: random.Random) -> Arguments:
    """With what only matters beside a store, or to evaluations that fail."""
    return {
        **_select(rng),
        "pull": _pull(BUDGET),  # each of them waits for the disk
        "store": KEPT,
        "name": "n",
        "retries": rng.randrange(2),
        "timeout": rng.choice((None, 5.0)),
        "max_rounds": None,
        "min_batch": None,
    }


def _select_async(rng: random.Random) -> Arguments:
    pull = _pull()

    async def pull_later(arm: object, seed: int) -> float:
        return pull(arm, seed)

    more = {"retries": 0, "timeout": None, "max_rounds": None, "min_batch": None}
    return {"pull": pull_later, "workers": 3, "progress": False, **question(rng), **more}


def _looked_at(result: shortlist.Result, library: Any) -> None:
    show(result)
    result.to_json()
    for look in (lambda: result.lift(), lambda: result.to_frame(library)):
        try:
            look()
        except shortlist.errors.ShortlistError:
            continue


def _selected_and_shown(library: Any = "pandas", **arguments: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if arguments.get("store") is KEPT:
            arguments["store"] = Path(folder) / KEPT
        try:
            result = shortlist.select(**arguments)
        except UsersOwn as error:
            result = error.partial  # type: ignore[attr-defined]
        _looked_at(result, library)


def _selected_later(library: Any = "polars", **arguments: Any) -> None:
    async def selected() -> shortlist.Result:
        return await shortlist.select_async(**arguments)

    _looked_at(asyncio.run(selected()), library)


def _target(usual: Callable[[random.Random], Arguments]) -> Target:
    return Target("select", _selected_and_shown, usual, shortlist.select)


TARGETS = (
    *(_target(usual) for usual in (_select, _select_many, _select_items, _select_kept)),
    Target("select_async", _selected_later, _select_async, shortlist.select_async),
)
