"""What a user asks in plain arguments, as a problem and the algorithm that shall solve it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral

from shortlist.algorithms import Algorithm, find
from shortlist.errors import InvalidInput
from shortlist.evaluation import Label
from shortlist.problem import (
    FixedBudget,
    FixedConfidence,
    Goal,
    Problem,
    RewardsDeclared,
    model_of,
    number,
    whole,
)

Arms = int | Iterable[Label]


@dataclass(frozen=True, slots=True)
class Question:
    """Which arms, what is wanted of them, and how it is to be found."""

    labels: tuple[Label, ...]
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
    algorithm: str,
    options: Mapping[str, object] | None,
) -> Question:
    """The question that these arguments ask, if it makes sense and the algorithm can answer it.

    "auto" is `certified` where an epsilon is asked for, and `expected-loss` where a budget is all
    there is."""
    labels = labels_of(arms)
    goal = goal_of(epsilon, delta, budget)
    automatic = "certified" if isinstance(goal, FixedConfidence) else "expected-loss"
    chosen = find(automatic if algorithm == "auto" else algorithm)
    problem = Problem(len(labels), k, goal, model_of(rewards))
    given = dict(options or {})
    chosen.check(problem, given)
    # the part of a budget that is to prove something, with this confidence
    if given.get("holdout"):
        given.setdefault("delta", number("delta", delta))
    return Question(labels, problem, chosen, given)


def labels_of(arms: object) -> tuple[Label, ...]:
    """The names of the arms: those given, or numbers from 0 if only their number is."""
    if isinstance(arms, Integral):
        return tuple(range(whole("arms", arms, at_least=2)))
    if isinstance(arms, str | bytes | Mapping) or not isinstance(arms, Iterable):
        raise InvalidInput(f"`arms` is {arms!r}, but must be a number of arms or a list of labels")
    labels = tuple(_label(arm) for arm in arms)
    if len(set(labels)) < len(labels):
        double, _ = Counter(labels).most_common(1)[0]
        raise InvalidInput(f"two arms are called {double!r}, but labels must differ")
    if len(labels) < 2:
        raise InvalidInput(f"`arms` is {list(labels)!r}, but must be at least 2 labels")
    return labels


def goal_of(epsilon: float | None, delta: float, budget: int | None) -> Goal:
    """The goal that these arguments name; with an epsilon, a budget is a cap."""
    if epsilon is not None:
        return FixedConfidence(epsilon, delta, budget)
    number("delta", delta, above=0, below=1)
    if budget is None:
        raise InvalidInput("neither `epsilon` nor `budget` is given, but a goal needs one of them")
    return FixedBudget(budget)


def _label(arm: object) -> Label:
    """A label as plain text or a plain int, whatever it was in an array."""
    if isinstance(arm, str):
        return str(arm)
    if isinstance(arm, Integral) and not isinstance(arm, bool):
        return int(arm)
    raise InvalidInput(f"an arm is called {arm!r}, but a label must be a text or a whole number")
