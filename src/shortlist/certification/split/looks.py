"""When to look, with which share of delta, and what to declare then."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certification.split.drafting import Case, Plan
from shortlist.certification.split.holdout import Holdout
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Search

FIRST_LOOK = 0.75  # share of delta for the first look; every later one gets this share of the rest
STRENGTHS = 1.5 * 1.3 ** np.arange(8)  # tried, in units of ln(1/delta) / (k * epsilon)
USUAL = 3  # the one tried first
# a better strength is sought once a plan costs no more than so many times what was explored
NEAR = 1.5
# what is x times too much is looked at again when x to this power times as much is explored,
PATIENCE = 0.3
LONGEST = 1.3  # or so many times as much
HOPE = 0.35  # plan only when the loss to expect is below this share of what is allowed
# what is aimed at after a look that failed, of what was aimed at before, and of epsilon at least
CAUTION = 0.85, 0.5
GUESSES = 10  # regrets for which a last certificate may be tuned


class Planner:
    """Finds the plan for the present look.

    It sees how often the holdout was pulled, never what that gave."""

    def __init__(self, problem: Problem, posterior: Posterior) -> None:
        self.problem, self.posterior = problem, posterior
        self.reach = problem.k * problem.epsilon
        self.look = 0
        self._step = USUAL  # the best strength so far
        self._way = 1  # in which a better one is sought: up or down
        self._at: Callable[[int], Plan | None]  # the plan at present with any strength
        self._next = 0.0  # pulls to be explored before it is worth to plan again

    @property
    def delta(self) -> float:
        """The share of delta for the present look; all shares add up to delta."""
        return self.problem.delta * FIRST_LOOK * (1 - FIRST_LOOK) ** self.look

    def promising(self, made: IntArray, rng: np.random.Generator, *, last: bool) -> Plan | None:
        """A plan to certify the present choice, with about the best strength; `made` are pulls made
        before.

        None if there is none, or if it is too early to try and this is not the `last` chance."""
        spent = int(self.posterior.pulls.sum())
        if spent < self._next and not last:
            return None
        top, _ = self.posterior.split(rng)
        boundary = self.posterior.balance(top)
        loss, hoped = self.posterior.expected_loss(top, boundary), HOPE * self.reach
        if loss > hoped:
            self._wait(spent, loss / hoped)
            return None
        case = Case(self.posterior, top, boundary, made, self.reach)
        self._at = cache(lambda step: self._plan(case, step))
        step = self._step if self._at(self._step) is not None else STRENGTHS.size - 1
        found = self._at(step)
        if found is None:
            return None
        if found.cost > NEAR * spent:
            self._wait(spent, found.cost / (NEAR * spent))
            return found
        self._step = step
        if not self._moved(self._way):
            self._way = -self._way
        return self._at(self._step)

    def refined(self, found: Plan) -> Plan:
        """The same plan with the best strength, downhill from that of `found`, which `promising`
        gave."""
        if self._at(self._step) is None:
            self._step = STRENGTHS.size - 1
        for way in (1, -1):
            while self._moved(way):
                pass
        return self._at(self._step) or found

    def _moved(self, way: int) -> bool:
        """Go to the next strength in that direction if it is cheaper there."""
        step = self._step + way
        if not 0 <= step < STRENGTHS.size or _cost(self._at(step)) >= _cost(self._at(self._step)):
            return False
        self._step = step
        return True

    def _wait(self, spent: int, excess: float) -> None:
        """Nothing can come of it soon: what is `excess` times too much takes a while to become
        little enough."""
        self._next = spent * min(excess**PATIENCE, LONGEST)

    def _plan(self, case: Case, step: int) -> Plan | None:
        level = -math.log(self.delta)
        target = self.reach * max(CAUTION[0] ** self.look, CAUTION[1])
        return case.plan(float(STRENGTHS[step]) * level / self.reach, level, target=target)


def _cost(found: Plan | None) -> float:
    return math.inf if found is None else found.cost


def prove_what_can_be_proved(
    posterior: Posterior,
    holdout: Holdout,
    budget: int,
    delta: float,
    rng: np.random.Generator,
    looks: int = 1,
) -> Search:
    """Spend `budget` fresh pulls on the least bound for the present choice, whatever it comes to.

    Without a target the exponential moment must be right for every mean, so the reach is the whole
    range."""
    top, _ = posterior.split(rng)
    reach = posterior.rewards.widest_gap
    case = Case(posterior, top, posterior.balance(top), holdout.pulls, reach)
    level = -math.log(delta)
    guesses = np.geomspace(min(0.001, 1 / math.sqrt(budget + 1)), 0.5, GUESSES)
    plans = [
        case.plan(float(strength), level, budget=budget)
        for strength in 2 * level / (posterior.k * guesses)
    ]
    possible = [found for found in plans if found is not None]
    if not possible:  # too few pulls left to draw every arm once
        return Answer(np.flatnonzero(top))
    best = min(possible, key=lambda found: found.expected)
    explored = int(posterior.pulls.sum())
    yield from holdout.fill_up(best.pulls, Progress(undecided=posterior.n_arms))
    bound = min(best.declare(delta, reach, posterior.rewards).bound(holdout.sums), reach)
    return _answer(best, bound, delta, explored, holdout, looks)


def _answer(
    found: Plan, bound: float, delta: float, explored: int, holdout: Holdout, looks: int
) -> Answer:
    evidence = {
        "boundary": found.boundary,
        "strength": found.strength,
        "pulls explored": explored,
        "pulls certified": holdout.spent,
        "looks": looks,
    }
    return Answer(np.flatnonzero(found.top), bound, 1 - delta, evidence)
