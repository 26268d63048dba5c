"""What a user asks in plain arguments, as a problem and the algorithm that shall solve it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.algorithms import AUTOMATIC, Algorithm, AlgorithmLike, find
from shortlist.arms import Arms, OwnLabel, arms_of, labels_of, position_of
from shortlist.cells import Cells, ItemsGiven, check_cells, item_labels
from shortlist.errors import InvalidInput, UnknownName
from shortlist.feasibility import caution_about
from shortlist.problem import FixedConfidence, Problem, ScoresGiven, goal_of
from shortlist.reading.scores import named_scores
from shortlist.reward_models import RewardModel, RewardsDeclared, Undeclared, declared
from shortlist.validation import number, shown, text, whole


@dataclass(frozen=True, slots=True)
class CellsGiven:
    """A test set in plain arguments."""

    items: ItemsGiven
    seed: int
    scores: ScoresGiven | None = None
    order: str = "shared"

    def of(self, labels: Sequence[OwnLabel], rewards: RewardModel) -> Cells:
        """Its cells, if they make sense for these arms."""
        items = item_labels(self.items)
        check_cells(len(labels), len(items))
        known: Any = self.scores
        named = named_scores(known)
        if named is not None:
            known = named.placed(labels, items)
        listed = len(items) if isinstance(items, range) else items
        return Cells(listed, len(labels), rewards, self.seed, known, self.order)


def cells_given(
    items: ItemsGiven | None, seed: int, scores: ScoresGiven | None, order: str
) -> CellsGiven | None:
    """The test set that these arguments name, if they name one."""
    text("order", order)
    if items is not None:
        return CellsGiven(items, whole("seed", seed, at_least=0), scores, order)
    if scores is not None or order != "shared":
        name = "scores" if scores is not None else "order"
        raise InvalidInput(f"`{name}` is given without `items`, but only goes with them")
    return None


@dataclass(frozen=True, slots=True)
class Question:
    """Which arms, what is wanted of them, and how it is to be found."""

    labels: tuple[OwnLabel, ...]
    problem: Problem
    algorithm: Algorithm
    options: Mapping[str, object]
    cells: Cells | None = None  # of a test set
    control: OwnLabel | None = None  # the arm that all others are compared with


def question(
    arms: Arms,
    k: int,
    epsilon: float | None,
    delta: float,
    budget: float | None,
    rewards: RewardsDeclared | None,
    minimize: bool,
    algorithm: AlgorithmLike,
    options: Mapping[str, object] | None,
    cells: CellsGiven | None = None,
    max_rounds: int | None = None,
    min_batch: int | None = None,
    certificate: str = "auto",
    control: OwnLabel | None = None,
) -> Question:
    """The question that these arguments ask, if it makes sense and the algorithm can answer it.

    "auto" is `certified` where an epsilon is asked for, and `expected-loss` where a budget is all
    there is. Rewards of which nothing is declared lie in [0, 1] where something is to be promised,
    and may be any numbers elsewhere. Of an epsilon that can hardly be meant it warns."""
    described = arms_of(arms)
    labels = labels_of(arms if described is None else [arm.label for arm in described])
    limits = None if described is None else tuple(arm.limit for arm in described)
    costs = None if described is None else tuple(arm.cost for arm in described)
    goal = goal_of(epsilon, delta, budget)
    usual = "certified" if isinstance(goal, FixedConfidence) else "expected-loss"
    automatic = isinstance(algorithm, str) and algorithm == AUTOMATIC
    chosen = find(usual if automatic else algorithm)
    given = chosen.told(options, max_rounds, min_batch, certificate)
    promised = isinstance(goal, FixedConfidence) or cells is not None or given.get("holdout")
    model = Undeclared() if rewards is None and not promised else declared(rewards)
    found = None if cells is None else cells.of(labels, model)
    items = None if found is None else found.problem_items
    of_arms: dict[str, Any] = {"items": items, "limits": limits, "costs": costs}
    problem = Problem(len(labels), k, goal, model, minimize, **of_arms)
    chosen.check(problem, given)
    # the part of a budget that is to prove something, with this confidence
    if given.get("holdout"):
        given.setdefault("delta", number("delta", delta))
    caution_about(problem, chosen, given)
    against = None if control is None else checked_control(control, labels, problem)
    return Question(labels, problem, chosen, given, found, against)


def checked_control(control: object, labels: Sequence[OwnLabel], problem: Problem) -> OwnLabel:
    """The arm that is called so, if others can be compared with it."""
    place = position_of(control, labels)
    if place is None:
        raise UnknownName(f"`control` is {shown(control)}, but must be one of the arms")
    if problem.items is not None:
        rule = "intervals are for independent rewards and not for scores on items"
        raise InvalidInput(f"`control` is {shown(control)}, but {rule}")
    if isinstance(problem.rewards, Undeclared):
        rule = "intervals need rewards that are declared: say `rewards`"
        raise InvalidInput(f"`control` is {shown(control)}, but {rule}")
    return labels[place]
