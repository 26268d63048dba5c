"""Explore, draft, look: many normal arms of unknown variances (docs/normal.md, Theorem 4)."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.charged import planning
from shortlist.certificates.charged.bound import caps_of, charged_bound, charges
from shortlist.certificates.charged.planning import (
    Explored,
    Guess,
    LookPlan,
    draft,
    guess_of,
    next_pulls,
)
from shortlist.certificates.frame import MOST_LOOKS, answered, share_of
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search, moments_of

ROUNDING = 2.0**-51  # of a reward, and of a mean of rewards


class ChargedSearch:
    """What was pulled, the caps of all arms, and the looks that failed; in units of epsilon."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rng = rng
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.budget = Budget(problem)
        self.explored = Explored(problem.n_arms)
        self.caps: FloatArray = np.full(problem.n_arms, np.inf)
        self.looks_delta = problem.delta * (1 - planning.CAP_SHARE)
        self.looks = 0
        self.batches = 0
        self.farthest = 0.0
        self.goal = planning.FIRST_GOAL * problem.k
        self.drafted_from = 0  # pulls from which on a look is drafted

    @property
    def spent(self) -> int:
        """Pulls so far."""
        return int(self.explored.pulls.sum())

    def guess(self) -> Guess:
        """What the pulls so far tell of the arms."""
        return guess_of(self.explored, self.problem.k, self.ties)

    def fix_caps(self) -> None:
        """Bound all deviations by the first pulls."""
        delta = planning.CAP_SHARE * self.problem.delta
        self.caps = caps_of(self.explored.squares, planning.FIRST_PULLS, delta)

    def plan(self, guess: Guess) -> LookPlan | None:
        """The next look, if it is time for one."""
        if self.spent < self.drafted_from or self.looks >= MOST_LOOKS:
            return None
        share = share_of(self.looks_delta, self.looks)
        plan = draft(guess, self.caps, -np.log(share), float(self.problem.k), self.goal)
        return plan if plan is not None and plan.cost <= planning.READY * self.spent else None

    def failed(self) -> None:
        """Take note of a look that proved nothing: the next one is planned with more room."""
        self.looks += 1
        self.goal = max(planning.LEAST_GOAL * self.problem.k, planning.LOWER_GOAL * self.goal)
        self.drafted_from = int(planning.APART * self.spent)


def charged_search(problem: Problem, rng: np.random.Generator, least: int = 0) -> Search:
    """Explore until a look is expected to prove the choice, and make it on fresh pulls.

    R_T <= epsilon with probability >= 1 - delta for independent normal arms of any variances.
    Batches that explore have at least `least` pulls."""
    state = ChargedSearch(problem, rng)
    first = np.full(problem.n_arms, planning.FIRST_PULLS)
    if not _affords(state, first):
        first = np.full(problem.n_arms, _rows_left(state))
    yield from _explore(state, first)
    if first[0] < planning.FIRST_PULLS:
        return _unproved(state)
    state.fix_caps()
    while True:
        guess = state.guess()
        plan = state.plan(guess)
        if plan is not None and _affords(state, plan.times):
            bound = yield from _look(state, guess, plan)
            if bound <= problem.k:
                return _proved(state, guess, bound)
            state.failed()
            continue
        total = max(problem.n_arms, int(planning.GROWTH * state.spent), least)
        times = next_pulls(state.explored, guess, total, rng)
        if not _affords(state, times):
            return _unproved(state)
        yield from _explore(state, times)


def _affords(state: ChargedSearch, times: IntArray) -> bool:
    return bool(state.budget.affords(np.arange(times.size), times).all())


def _rows_left(state: ChargedSearch) -> int:
    """Pulls of every arm that the budget pays for."""
    arms = np.arange(state.problem.n_arms)
    return int(state.budget.left // state.budget.price(arms, np.ones_like(arms)).sum())


def _explore(state: ChargedSearch, times: IntArray) -> Generator[Pulls, Rewards, None]:
    arms = np.flatnonzero(times)
    means, squares = yield from _drawn(state, arms, times[arms])
    state.explored.add(arms, times[arms], means, squares)


def _look(state: ChargedSearch, guess: Guess, plan: LookPlan) -> Generator[Pulls, Rewards, float]:
    """Make the fresh pulls of a look and return the bound on K R_T; they explore from then on."""
    arms = np.arange(state.problem.n_arms)
    means, squares = yield from _drawn(state, arms, plan.times)
    reach = float(state.problem.k)
    evidence = np.where(guess.chosen, guess.boundary - means, means - guess.boundary)
    variances = squares / (plan.times - 1)
    how = (plan.times, plan.slopes, plan.strength, state.caps, reach)
    each = charges(evidence, variances, *how)
    share = share_of(state.looks_delta, state.looks)
    blur = 2 * ROUNDING * state.farthest * state.problem.n_arms
    state.explored.add(arms, plan.times, means, squares)
    return charged_bound(each, plan.strength, share) + blur


def _drawn(
    state: ChargedSearch, arms: IntArray, times: IntArray
) -> Generator[Pulls, Rewards, tuple[FloatArray, FloatArray]]:
    """Means and squared deviations of every entry of a batch."""
    state.batches += 1
    pulls = Pulls(arms, times, Progress(state.batches, undecided=state.problem.n_arms))
    reply = yield pulls
    assert reply.each is not None, "drivers send single rewards where rewards are normal"
    state.budget.pay(pulls, reply)
    rewards = reply.each / state.problem.epsilon
    state.farthest = max(state.farthest, float(np.abs(rewards).max()))
    return moments_of(rewards, times)


def _proved(state: ChargedSearch, guess: Guess, bound: float) -> Answer:
    epsilon = state.problem.epsilon
    evidence = {"certificate": "split", "boundary": guess.boundary * epsilon}
    evidence["looks"] = state.looks + 1
    top = np.flatnonzero(guess.chosen)
    return answered(state.problem, top, bound * state.problem.epsilon, evidence)


def _unproved(state: ChargedSearch) -> Answer:
    """The best arms so far where the budget ended; nothing is proved."""
    return Answer(np.flatnonzero(state.guess().chosen), evidence={"certificate": "split"})
