"""An algorithm: a search with the facts a user chooses it by."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.algorithms.guard import guarded_search
from shortlist.algorithms.limits import within_limits
from shortlist.algorithms.options import check_options, options_of
from shortlist.digits import bound_text
from shortlist.errors import InvalidInput, ShortlistError, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.purse import ROUNDED
from shortlist.search import RunUpTo, Search
from shortlist.validation import named, shown, text

SearchFunction = Callable[..., Search]  # (problem, rng, *, option=...)
BOTH: tuple[type[Goal], ...] = (FixedConfidence, FixedBudget)
# why an algorithm cannot be told what others can
CANNOT_CUT = "cannot be told how to cut its pulls into requests; certified and expected-loss can"
CANNOT = {
    "rounds": CANNOT_CUT,
    "least": CANNOT_CUT,
    "certificate": "has no certificates to choose from; certified has",
}


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A search with the facts a user chooses it by."""

    name: str
    search: SearchFunction
    goals: tuple[type[Goal], ...] = BOTH
    guarantee: str = "none"
    source: str = ""
    capped: bool = False  # takes epsilon, delta and a budget at once
    # raise it with any change of what it asks for, so that no stored experiment goes on differently
    version: int = 1
    # look at every request and at the answer: no contract test has seen this search
    guarded: bool = False
    items: bool = False  # knows what to do with a test set
    keeps_money: bool = False  # knows costs; others count every pull as one of the dearest arm
    # where there is an answer at any time: one run gives the answers at many budgets
    anytime: Callable[[Problem, np.random.Generator], RunUpTo] | None = None

    def told(
        self,
        options: Mapping[str, object] | None,
        rounds: int | None,
        least: int | None,
        certificate: str = "auto",
    ) -> dict[str, object]:
        """The options, and with them how pulls are to be cut into requests and which certificate is
        wanted, if that is said: "auto" leaves it to the algorithm."""
        given = named("options", options)
        wanted = text("certificate", certificate)
        proof = None if wanted == "auto" else wanted
        for name, value in (("rounds", rounds), ("least", least), ("certificate", proof)):
            if value is None:
                continue
            if name in given:
                raise InvalidInput(f"`{name}` is {shown(value)}, but is among the options, too")
            if name not in options_of(self.search):
                raise InvalidInput(f"`{name}` is {shown(value)}, but {self.name} {CANNOT[name]}")
            given[name] = value
        return given

    def start(self, problem: Problem, rng: np.random.Generator, **options: Any) -> Search:
        """Begin the search on the unit scale, or say why it cannot be begun."""
        self.check(problem, options)
        unit = problem.unit()
        search = self._begun(unit, rng, options)
        if not isinstance(search, Generator):
            raise InvalidInput(
                f"{self.name} returned {shown(search)}, but a search must be a generator: it yields"
                " Pulls, is sent Rewards, and returns an Answer"
            )
        search = guarded_search(self.name, search, unit) if self.guarded else search
        return search if unit.limits is None else within_limits(search, unit, rng)

    def _begun(
        self, problem: Problem, rng: np.random.Generator, options: Mapping[str, object]
    ) -> object:
        try:
            return self.search(problem, rng, **options)
        except Exception as error:
            if isinstance(error, ShortlistError) or not self.guarded:
                raise
            raise InvalidInput(
                f"{self.name} cannot be begun, but fails with {type(error).__name__}: {error}"
            ) from error

    def check(self, problem: Problem, options: Mapping[str, object] | None = None) -> None:
        """Refuse a goal this algorithm does not serve, a budget too small, and unknown options."""
        check_options(self.name, self.search, {} if options is None else options)
        self._check_goal(problem.goal)
        if problem.items is not None and not (self.items or self.guarded):
            raise UnsupportedGoal(
                f"{self.name} cannot be told of items, but certified and expected-loss can"
            )
        self._check_budget(problem)

    def _check_budget(self, problem: Problem) -> None:
        """Refuse a budget that does not pay for a pull of every arm, as this algorithm counts."""
        budget = problem.goal.budget
        if budget is None:
            return
        needed: float = problem.n_arms
        if problem.costs is not None:
            dearest = max(problem.costs) * problem.n_arms
            counts_cells = problem.items is not None and isinstance(problem.goal, FixedBudget)
            in_money = self.guarded or (self.keeps_money and not counts_cells)
            needed = sum(problem.costs) if in_money else dearest
        if budget * (1 + ROUNDED) < needed:
            costs = "" if problem.costs is None else f", which takes {bound_text(needed, 6)}"
            raise InvalidInput(
                f"`budget` is {budget}, but {self.name} must pull each of the {problem.n_arms}"
                f" arms once{costs}"
            )

    def _check_goal(self, goal: Goal) -> None:
        fixed_confidence = isinstance(goal, FixedConfidence)
        if not isinstance(goal, self.goals):
            stopping = "a budget; it has no stopping rule"
            raise UnsupportedGoal(
                f"{self.name} needs {stopping if fixed_confidence else 'epsilon and delta'}"
            )
        if fixed_confidence and goal.budget is not None and not self.capped:
            raise UnsupportedGoal(
                f"{self.name} takes either epsilon and delta or a budget, not both"
            )


AlgorithmLike = str | SearchFunction | Algorithm  # whatever `find` resolves
