"""What a user asks in plain arguments: labels, goal, rewards and the algorithm, or why they make no
sense."""

from typing import Any

import numpy as np
import pytest

from shortlist.algorithms import ALGORITHMS, Algorithm
from shortlist.arms import labels_of
from shortlist.errors import InvalidInput, UnknownName, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem, goal_of
from shortlist.question import Question, question
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian, model_of
from shortlist.search import Answer, Search


def nothing(problem: Problem, rng: np.random.Generator) -> Search:
    yield from ()
    return Answer(np.arange(problem.k))


@pytest.fixture(autouse=True)
def _the_two_defaults_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, goal, capped in (
        ("certified", FixedConfidence, True),
        ("expected-loss", FixedBudget, False),
    ):
        monkeypatch.setitem(
            ALGORITHMS, name, Algorithm(name, nothing, (goal,), "", "", capped=capped)
        )


def ask(**changes: Any) -> Question:
    plain: dict[str, Any] = {
        "arms": 9,
        "k": 2,
        "epsilon": None,
        "delta": 0.05,
        "budget": None,
        "rewards": (0, 1),
    }
    return question(**{**plain, "algorithm": "auto", "options": None, **changes})


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ({"epsilon": 0.1}, "certified"),
        ({"epsilon": 0.1, "budget": 900}, "certified"),
        ({"budget": 900}, "expected-loss"),
    ],
)
def test_the_goal_decides_the_algorithm(goal: dict[str, Any], name: str) -> None:
    asked = ask(**goal)
    assert asked.algorithm.name == name
    assert asked.problem.goal.budget == goal.get("budget")


def test_an_algorithm_that_takes_no_cap_refuses_epsilon_with_a_budget() -> None:
    with pytest.raises(UnsupportedGoal, match="either epsilon and delta or a budget, not both"):
        ask(epsilon=0.1, budget=900, algorithm="adaptive-top-k")


def test_a_goal_is_needed_and_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match="neither `epsilon` nor `budget` is given"):
        goal_of(None, 0.05, None)
    with pytest.raises(InvalidInput, match="`delta` is 2"):
        goal_of(None, 2, 10)
    with pytest.raises(UnknownName, match="'certifed' is unknown"):
        ask(epsilon=0.1, algorithm="certifed")
    with pytest.raises(UnknownName, match="option 'depth' is unknown"):
        ask(budget=90, options={"depth": 3})


@pytest.mark.parametrize(
    ("arms", "labels"),
    [
        (3, (0, 1, 2)),
        (np.int64(2), (0, 1)),
        (["a", "b b", ""], ("a", "b b", "")),
        (("x", 3), ("x", 3)),
        (np.array(["x", "y"]), ("x", "y")),
        (range(5, 8), (5, 6, 7)),
        ((name for name in "ab"), ("a", "b")),
    ],
)
def test_arms_are_counted_or_named(arms: object, labels: tuple[object, ...]) -> None:
    taken = labels_of(arms)
    assert taken == labels
    assert {type(label) for label in taken} <= {int, str}


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (1, "`arms` is 1, but must be a whole number of at least 2"),
        (True, "`arms` is True"),
        (2.0, r"`arms` is 2\.0, but must be a number of arms or a list of labels"),
        ("abc", "`arms` is 'abc', but must be a number of arms or a list of labels"),
        ({"a": 1, "b": 2}, "but must be a number of arms or a list of labels"),
        (["a"], r"`arms` is \['a'\], but must be at least 2 labels"),
        (["a", "b", "b"], "two arms are called 'b', but labels must differ"),
        (["a", True], "an arm is called True, but a label must be a text or a whole number"),
        (["a", None], "an arm is called None"),
        (["a", 0.5], r"an arm is called 0\.5"),
    ],
)
def test_arms_that_cannot_be_told_apart_or_written_down_are_refused(
    arms: object, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        labels_of(arms)


@pytest.mark.parametrize(
    ("declared", "model"),
    [
        ((0, 1), Bounded(0, 1)),
        ([-2.5, 4], Bounded(-2.5, 4)),
        ("binary", Binary()),
        (SubGaussian(2), SubGaussian(2)),
        (Bounded(1, 5), Bounded(1, 5)),
    ],
)
def test_rewards_are_declared_by_a_range_a_word_or_a_model(
    declared: object, model: RewardModel
) -> None:
    assert model_of(declared) == model


@pytest.mark.parametrize("declared", ["bernoulli", None, 1, (0, 1, 2), (1, 0), ("a", "b"), Bounded])
def test_rewards_that_declare_nothing_are_refused(declared: object) -> None:
    with pytest.raises(InvalidInput, match=r"`(rewards|high|low)` is "):
        model_of(declared)
