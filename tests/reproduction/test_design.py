"""A design holds the standard methods and what is compared beside them, each where it belongs."""

import numpy as np
import pytest

from shortlist.algorithms import ALGORITHMS
from shortlist.errors import InvalidInput, UnknownName
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.reproduction.design import (
    METHODS,
    ON_BUDGET,
    TO_CONFIDENCE,
    Design,
    Method,
    choose,
    methods_of,
)
from shortlist.search import Answer, Pulls, Search

PANELS = choose(["rte-30"])


def names(methods: tuple[Method, ...]) -> list[str]:
    return [method.name for method in methods]


def guess(problem: Problem, rng: np.random.Generator) -> Search:
    yield Pulls(np.arange(problem.n_arms), np.ones(problem.n_arms, dtype=np.int64))
    return Answer(rng.permutation(problem.n_arms)[: problem.k])


def test_every_algorithm_with_a_guarantee_is_measured_to_a_confidence() -> None:
    guaranteed = {name for name, each in ALGORITHMS.items() if FixedConfidence in each.goals}
    # for few arms: benchmarks/peers and benchmarks/normal.py measure them
    beside_peers = {"kl-lucb", "track-and-stop", "kn", "rinott"}
    assert set(names(TO_CONFIDENCE)) == guaranteed - beside_peers


def test_standard_methods_on_a_budget_take_one() -> None:
    assert all(FixedBudget in method.found.goals for method in ON_BUDGET)


@pytest.mark.parametrize(
    ("algorithm", "on_budget", "to_confidence"),
    [
        ("lucb", ["lucb"], []),  # which is measured to a confidence anyway
        ("median-elimination", [], []),
        ("sar", [], []),
    ],
)
def test_an_algorithm_is_added_where_its_goals_allow_and_it_is_missing(
    algorithm: str, on_budget: list[str], to_confidence: list[str]
) -> None:
    design = Design(PANELS, algorithms=(algorithm, algorithm))
    assert names(design.on_budget) == names(ON_BUDGET) + on_budget
    assert names(design.to_confidence) == names(TO_CONFIDENCE) + to_confidence


def test_what_is_compared_is_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ALGORITHMS["uniform"].__class__("own", guess, (FixedBudget,), "none", "here", version=7)
    monkeypatch.setitem(ALGORITHMS, "own", own)
    plain = Design(PANELS).record()
    versions = plain["algorithms"]
    assert isinstance(versions, dict)
    assert Design(PANELS, algorithms=("own",)).record() == plain | {
        "algorithms": dict(sorted((versions | {"own": 7}).items())),
        "compared": ["own"],
    }


def test_an_unknown_algorithm_is_named() -> None:
    with pytest.raises(UnknownName, match="algorithm 'luck' is unknown"):
        Design(PANELS, algorithms=("luck",))


def test_two_methods_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they would share a line in the results."""
    impostor = ALGORITHMS["uniform"].__class__("sar", guess, (FixedBudget,), "none", "here")
    monkeypatch.setitem(ALGORITHMS, "own", impostor)
    with pytest.raises(InvalidInput, match="two methods are named 'sar'"):
        methods_of(["own"])
    assert methods_of(["sar"]) == (METHODS["sar"],)
