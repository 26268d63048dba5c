"""What a user asks in plain arguments, as a problem and the algorithm that shall solve it."""

from collections.abc import Mapping
from dataclasses import dataclass

from shortlist.algorithms import AUTOMATIC, Algorithm, AlgorithmLike, find
from shortlist.arms import Arms, OwnLabel, labels_of
from shortlist.problem import FixedConfidence, Problem, goal_of
from shortlist.reward_models import RewardsDeclared, model_of
from shortlist.validation import number


@dataclass(frozen=True, slots=True)
class Question:
    """Which arms, what is wanted of them, and how it is to be found."""

    labels: tuple[OwnLabel, ...]
    problem: Problem
    algorithm: Algorithm
    options: Mapping[str, object]


def question(
    arms: Arms,
    k: int,
    epsilon: float | None,
    delta: float,
    budget: int | None,
    rewards: RewardsDeclared,
    minimize: bool,
    algorithm: AlgorithmLike,
    options: Mapping[str, object] | None,
    rounds: int | None = None,
    least: int | None = None,
) -> Question:
    """The question that these arguments ask, if it makes sense and the algorithm can answer it.

    "auto" is `certified` where an epsilon is asked for, and `expected-loss` where a budget is all
    there is."""
    labels = labels_of(arms)
    goal = goal_of(epsilon, delta, budget)
    usual = "certified" if isinstance(goal, FixedConfidence) else "expected-loss"
    automatic = isinstance(algorithm, str) and algorithm == AUTOMATIC
    chosen = find(usual if automatic else algorithm)
    problem = Problem(len(labels), k, goal, model_of(rewards), minimize)
    given = chosen.paced(options, rounds, least)
    chosen.check(problem, given)
    # the part of a budget that is to prove something, with this confidence
    if given.get("holdout"):
        given.setdefault("delta", number("delta", delta))
    return Question(labels, problem, chosen, given)
