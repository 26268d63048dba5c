"""Whatever is given to the calls about arms that leave, limits and results before the end, errors
are those of the package."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf, nan
from typing import Any

import shortlist
from shortlist.engine import outlook
from shortlist.errors import ShortlistError

CALLS = int(os.environ.get("SHORTLIST_FUZZED_CALLS", "600"))
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 3, 7, 10**30, 0.5, -0.0, nan, inf, 1e308),
    *("", "a", "stop", "retire", "binary", "\udcff", b"a", (), (0, 1), [1], {}, {"a": 1}),
    *(object(), shortlist.SubGaussian(1.0), shortlist.Arm("a", limit=3), complex(1, 2)),
)
USUAL: dict[str, Any] = {"arms": 4, "k": 1, "budget": 30, "epsilon": None, "rewards": None}
USUAL |= {
    "max_rounds": None,
    "min_batch": None,
    "on_failure": "stop",
    "retries": 1,
    "minimize": False,
}
USUAL |= {"certificate": "auto"}


def made(rng: random.Random) -> shortlist.Experiment:
    """An experiment of which one setting is odd, if that is allowed, and some pulls are told."""
    asked = dict(USUAL)
    limits = [shortlist.Arm(label, limit=rng.choice([1, 9, None])) for label in "abcd"]
    asked["arms"] = rng.choice([4, limits])
    experiment = shortlist.Experiment.create(**asked)
    with suppress(ShortlistError):
        asked[rng.choice(sorted(asked))] = rng.choice(ODD)
        experiment = shortlist.Experiment.create(**asked)
    for ticket in experiment.ask(rng.choice([1, 5, 20])):
        with suppress(ShortlistError):
            experiment.tell(ticket, rng.choice([0, 1, 0.5, -3, 1e50]))
    return experiment


def acts(experiment: shortlist.Experiment, rng: random.Random) -> Iterator[Callable[[], object]]:
    """Calls with odd arguments."""
    labels = experiment.settings.labels
    yield lambda: experiment.retire(rng.choice([*labels, *ODD]))
    yield lambda: experiment.retire(labels[0], rng.choice(ODD))
    yield lambda: experiment.result(partial=rng.choice([True, *ODD]))
    yield lambda: experiment.status().table(rng.choice(ODD))
    yield lambda: outlook(experiment, runs=rng.choice([1, *ODD[:10]]), seed=rng.choice(ODD))
    yield lambda: experiment.fail(rng.choice([0, 1, *ODD]), rng.choice(ODD))


def test_odd_arguments_are_refused_in_words() -> None:
    rng = random.Random(15)
    for _ in range(CALLS // 6):
        for act in acts(made(rng), rng):
            with suppress(ShortlistError):
                act()
