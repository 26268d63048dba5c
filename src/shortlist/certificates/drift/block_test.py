"""A live test, block by block: terms before a block, counts after it, and the bound so far."""

from collections import deque

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.drift import planning
from shortlist.certificates.drift.bound import (
    BlockTerms,
    BlockWealth,
    log_level,
    regret_bound,
)
from shortlist.certificates.frame import answered
from shortlist.certificates.pairs.bound import StageRewards
from shortlist.problem import Problem, Traffic
from shortlist.search import Answer, Progress, Pulls, Search


class BlockTest:
    """The certificate of a test, on the unit scale. Blocks come in the order of their opening.

    The arm number `control`, if any, is in play until the test ends or it retires."""

    def __init__(
        self, problem: Problem, rng: np.random.Generator, control: int | None = None
    ) -> None:
        self.problem = problem
        self._control = control
        self._rng = rng
        self._traffic = problem.traffic or Traffic()
        self._wealth = BlockWealth(problem.n_arms)
        self._rate = planning.Rate.guessed(problem.epsilon)
        self._leads = planning.Leads(problem.n_arms)
        self.staying: BoolArray = np.ones(problem.n_arms, dtype=np.bool_)
        self.passed = 0  # blocks that were told, refused or skipped, in order
        self.counted = 0  # blocks of these that count
        self.bounds: FloatArray = self._wealth.bounds(0.0)
        self._choose()

    @property
    def skipping(self) -> bool:
        """Whether the next block in order does not count."""
        return self.passed < self._traffic.skip_blocks

    def terms(self) -> BlockTerms:
        """The terms of a block that is opened now."""
        problem, top = self.problem, self._favourites
        others = self._without(top)
        allowed = problem.k * problem.sharp_epsilon
        doubts = planning.doubtful(self.bounds[np.ix_(top, others)], allowed)
        if not doubts.any():  # done, but for the least number of blocks
            doubts[:] = True
        weights = planning.weights_in_play(
            problem.n_arms, top, others, doubts, problem.declared_costs
        )
        if self._control is not None and self.staying[self._control]:
            weights = planning.with_control(weights, self._control)
        lead = problem.epsilon * min(problem.k, problem.n_arms - problem.k)
        clock = float(self._wealth.clock[np.ix_(top, others)].max())
        lead *= planning.caution_of(clock * lead, self._level)
        shares = planning.whole_shares(weights)
        return planning.terms_for(shares, self._rate, lead, self._blind_visitors)

    @property
    def _blind_visitors(self) -> float | None:
        """Visitors who come before any result is known."""
        per_day = self._traffic.per_day
        return None if per_day is None else float(per_day * (self._traffic.delay + 1))

    def take(self, terms: BlockTerms, told: StageRewards) -> None:
        """Count the next block in order, unless the first blocks are skipped."""
        self._rate.take(told)
        if self.skipping:
            self.passed += 1
            return
        self.passed += 1
        self.counted += 1
        pairs = terms.pairs(self.staying)
        self._wealth.book(terms, told, binary=self.problem.rewards.is_binary, pairs=pairs)
        self._leads.take(terms, told, pairs=pairs)
        self._look()

    def refuse(self) -> None:
        """The next block in order counts nothing, nor does its clock."""
        self.passed += 1

    def retire(self, arm: int) -> None:
        """An arm leaves: it is not chosen, and is in no block that is opened from now on.

        Its comparisons end here: visitors of open blocks whom it was given see another arm."""
        self.staying[arm] = False
        self._choose()

    def _look(self) -> None:
        self.bounds = self._wealth.bounds(self._level)
        self._choose()

    @property
    def _level(self) -> float:
        """What the log of the wealth has to reach."""
        pairs = self.problem.k * (self.problem.n_arms - self.problem.k)
        return log_level(pairs, self.problem.delta, self.passed)

    def _choose(self) -> None:
        """The present choice, and the bound on K times its regret among the remaining arms.

        For k = 1, this is the arm with the smallest bound. Blocks are planned around the best
        estimates instead: a bound that cannot fall any more must not keep arms out of play."""
        k, staying = self.problem.k, self.staying
        self._favourites = planning.best_by_effects(self._leads.effects(), k, staying, self._rng)
        self.top: IntArray = self._favourites
        self.bound: float = regret_bound(self.bounds, self.top, self.others)
        if k == 1:
            safest = planning.best_by_bound(self.bounds, staying, self._rng)
            bound = regret_bound(self.bounds, safest, self._without(safest))
            if bound < self.bound:
                self.top, self.bound = safest, bound

    @property
    def others(self) -> IntArray:
        """The remaining arms that are not chosen."""
        return self._without(self.top)

    def _without(self, arms: IntArray) -> IntArray:
        return np.setdiff1d(np.flatnonzero(self.staying), arms)

    def leads(self) -> tuple[FloatArray, FloatArray]:
        """Estimates of arm effects, and bounds on all leads that hold for all pairs at once."""
        problem = self.problem
        pairs = problem.n_arms * (problem.n_arms - 1)
        level = log_level(pairs, problem.delta, self.passed)
        return self._leads.effects(), np.minimum(self._wealth.bounds(level), 1.0)

    def bound_of(self, arm: int) -> float | None:
        """Bound on how much the best remaining arm leads `arm`; None unless one arm is chosen.

        It holds on the event of the regret bound: that of the pairs with the best arm."""
        others = self._without(np.array([arm]))
        bound = float(np.maximum(self.bounds[arm, others], 0.0).max(initial=0.0))
        return bound if self.problem.k == 1 and bound <= 1.0 else None

    @property
    def done(self) -> bool:
        """Whether the test may end."""
        enough = self.counted >= self._traffic.min_blocks
        return enough and self.bound <= self.problem.k * self.problem.sharp_epsilon

    def progress(self) -> Progress:
        """How far the test is, for display."""
        regret = min(1.0, self.bound / self.problem.k)
        undecided = int(self.staying.sum())
        known = None if not np.isfinite(self.bound) else regret
        return Progress(self.passed, undecided=undecided, bound=known, top=self.top.tolist())

    def answer(self) -> Answer:
        """The present choice with its bound."""
        evidence = {
            "certificate": "drift",
            "blocks": self.counted,
            "left out": self.passed - self.counted,
        }
        bound = self.bound if self.bound <= self.problem.k else np.inf
        return answered(self.problem, self.top, bound, evidence)


def drift_search(problem: Problem, rng: np.random.Generator) -> Search:
    """A test whose visitors are pulls: every block is a batch, and counts `delay` blocks later.

    The numbers of visitors per arm are drawn here, as if each were assigned at random."""
    traffic = problem.traffic
    assert traffic is not None
    assert traffic.per_day is not None, "a search asks for a number of visitors"
    test = BlockTest(problem, rng)
    waiting: deque[tuple[BlockTerms, StageRewards]] = deque()
    while not test.done:
        terms = test.terms()
        times = rng.multinomial(traffic.per_day, terms.shares)
        arms = np.flatnonzero(times)
        given = yield Pulls(arms, times[arms], test.progress())
        sums, squares = np.zeros((2, problem.n_arms))
        sums[arms], squares[arms] = given.sums, given.squares
        waiting.append((terms, StageRewards(times, sums, squares)))
        if len(waiting) > traffic.delay:
            test.take(*waiting.popleft())
    return test.answer()
