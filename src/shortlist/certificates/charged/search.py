"""Explore, draft, look: many normal arms of unknown variances (docs/normal.md, Theorem 4).

Errors in what the pulls so far tell, or in a draft, cost pulls, never the guarantee."""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.charged.bound import caps_of, charged_bound, charges, inflation
from shortlist.certificates.frame import MOST_LOOKS, Retired, answered, continued, share_of
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search, advance, moments_of

ROUNDING = 2.0**-51  # of a reward, and of a mean of rewards
# These cost pulls; no bound rests on them.
FIRST_PULLS = 15  # of every arm; they fix the caps
CAP_SHARE = 0.1  # of delta, for caps that are too small
GRID = np.unique(np.rint(4 * 1.4 ** np.arange(30))).astype(np.int64)  # fresh pulls of an arm
SLOPES = (1.0, 0.7, 0.5, 0.35)  # slopes of an arm, as shares of the strength
STRENGTHS = (1.3, 1.5, 1.75, 2.1, 2.6, 3.3)  # strengths, in units of ln(1 / delta) / (K epsilon)
FIRST_GOAL = 0.7  # expected bound of the first look, as a share of K epsilon ...
LOWER_GOAL = 0.85  # ... by which factor it falls after a look that failed ...
LEAST_GOAL = 0.5  # ... and how far at most
READY = 1.2  # pulls of a look, in units of those so far, from which on it is made
APART = 1.25  # growth of the pulls between a look that failed and the next draft
GROWTH = 0.15  # pulls of a batch that explores, as a share of those so far
PRIOR_PULLS = 4.0  # pulls that the variance of all arms counts for in that of one
LEAST_VARIANCE = 1e-12  # of a reward, in units of epsilon squared
MOST_INFLATION = 3.0  # factor of a charged variance above which a candidate is left out


class Explored:
    """Pulls, means and squared deviations of every arm, around a pivot that keeps digits."""

    def __init__(self, n_arms: int) -> None:
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.means: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)  # from the mean of the arm, added up

    def add(self, arms: IntArray, times: IntArray, means: FloatArray, squares: FloatArray) -> None:
        """Add pulls with these means and squared deviations; every arm at most once."""
        before = self.pulls[arms]
        apart = means - self.means[arms]
        total = before + times
        self.squares[arms] += squares + apart**2 * before * times / total
        self.means[arms] += apart * times / total
        self.pulls[arms] = total

    def variances(self) -> FloatArray:
        """Variance of a reward of every arm, drawn a little to that of all: (n,)."""
        freedom = self.pulls - 1
        pooled = self.squares.sum() / max(1, freedom.sum())
        prior = PRIOR_PULLS
        drawn = (self.squares + prior * pooled) / (freedom + prior)
        return np.asarray(np.maximum(drawn, LEAST_VARIANCE), dtype=np.float64)


class Guess(NamedTuple):
    """Posterior means and variances under a normal prior, the choice and its boundary."""

    means: FloatArray  # (n,)
    spread: FloatArray  # (n,) posterior variances
    variances: FloatArray  # (n,) of a reward
    chosen: BoolArray
    boundary: float

    @property
    def distances(self) -> FloatArray:
        """Distance of every arm from the boundary."""
        return np.abs(self.means - self.boundary)


def guess_of(explored: Explored, k: int, ties: IntArray) -> Guess:
    """Means drawn to that of all arms, and the k best of them."""
    own, variances = explored.means, explored.variances()
    noise = variances / explored.pulls
    between = max(float(own.var() - noise.mean()), 1e-6 * float(own.var()), LEAST_VARIANCE)
    spread = 1 / (1 / noise + 1 / between)
    centre = own.mean()
    means = centre + spread * (own - centre) / noise
    ranked = np.lexsort((ties, -means))
    chosen = np.zeros(own.size, dtype=np.bool_)
    chosen[ranked[:k]] = True
    boundary = float(means[ranked[k - 1]] + means[ranked[k]]) / 2
    return Guess(means, spread, variances, chosen, boundary)


def expected_excess(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """E max(0, Q) of a normal Q."""
    from scipy.special import ndtr

    ratio = mean / deviation
    density = np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
    result: FloatArray = deviation * density + mean * ndtr(ratio)
    return result


def next_pulls(explored: Explored, guess: Guess, total: int, rng: np.random.Generator) -> IntArray:
    """Pulls of every arm in a batch that explores: where the expected loss per pull is largest."""
    loss = expected_excess(-guess.distances, np.sqrt(guess.spread)) / np.sqrt(explored.pulls)
    shares = loss + 1e-12 * (loss.max() + 1)
    return rng.multinomial(total, shares / shares.sum()).astype(np.int64)


class LookPlan(NamedTuple):
    """A look: its cost, and strength, slopes and fresh pulls."""

    cost: int
    strength: float
    slopes: FloatArray  # (n,)
    times: IntArray  # (n,)


def draft(
    guess: Guess, caps: FloatArray, threshold: float, reach: float, goal: float
) -> LookPlan | None:
    """The cheapest look whose bound is expected to be `goal`; None if no look is.

    `threshold` is ln(1 / delta) of the look."""
    plans = [
        plan
        for factor in STRENGTHS
        if (plan := _with_strength(guess, caps, factor * threshold / reach, threshold, reach, goal))
    ]
    return min(plans, key=lambda plan: plan.cost, default=None)


def _with_strength(
    guess: Guess, caps: FloatArray, strength: float, threshold: float, reach: float, goal: float
) -> LookPlan | None:
    """The cheapest look of this strength: a Lagrange multiplier shares the charges out."""
    left = goal - threshold / strength
    times = np.tile(GRID, len(SLOPES))[None, :].astype(np.float64)
    slopes = strength * np.repeat(SLOPES, GRID.size)[None, :]
    expected = _expected_charges(guess, caps, times, slopes, strength, reach)
    if left <= 0 or expected.min(axis=1).sum() > left:
        return None
    low, high = -30.0, 30.0  # logarithm of the multiplier
    for _ in range(30):
        middle = (low + high) / 2
        pick = np.argmin(times + np.exp(middle) * expected, axis=1)
        fits = np.take_along_axis(expected, pick[:, None], 1).sum() <= left
        low, high = (low, middle) if fits else (middle, high)
    pick = np.argmin(times + np.exp(high) * expected, axis=1)
    fresh = times[0, pick].astype(np.int64)
    return LookPlan(int(fresh.sum()), strength, slopes[0, pick], fresh)


def _expected_charges(
    guess: Guess,
    caps: FloatArray,
    times: FloatArray,
    slopes: FloatArray,
    strength: float,
    reach: float,
) -> FloatArray:
    """Expected charge of every arm for every candidate of pulls and slope: (arms, candidates)."""
    noise = guess.variances[:, None] / times
    factor = inflation(slopes, times, caps[:, None])
    usable = factor < MOST_INFLATION
    charged = np.where(usable, factor, 1.0) * slopes**2 * noise / 2
    centre = charged - slopes * guess.distances[:, None] + (strength - slopes) * reach
    spread = slopes**2 * (noise + guess.spread[:, None]) + 2 * charged**2 / (times - 1)
    expected = expected_excess(centre, np.sqrt(spread)) / strength
    return np.where(usable, expected, 10 * reach)


class ChargedSearch:
    """What was pulled, the caps of all arms, and the looks that failed; in units of epsilon."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rng = rng
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.budget = Budget(problem)
        self.explored = Explored(problem.n_arms)
        self.caps: FloatArray = np.full(problem.n_arms, np.inf)
        self.looks_delta = problem.delta * (1 - CAP_SHARE)
        self.looks = 0
        self.batches = 0
        self.farthest = 0.0
        self.goal = FIRST_GOAL * problem.k
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
        delta = CAP_SHARE * self.problem.delta
        self.caps = caps_of(self.explored.squares, FIRST_PULLS, delta)

    def plan(self, guess: Guess) -> LookPlan | None:
        """The next look, if it is time for one."""
        if self.spent < self.drafted_from or self.looks >= MOST_LOOKS:
            return None
        share = share_of(self.looks_delta, self.looks)
        plan = draft(guess, self.caps, -np.log(share), float(self.problem.k), self.goal)
        return plan if plan is not None and plan.cost <= READY * self.spent else None

    def failed(self) -> None:
        """Take note of a look that proved nothing: the next one is planned with more room."""
        self.looks += 1
        self.goal = max(LEAST_GOAL * self.problem.k, LOWER_GOAL * self.goal)
        self.drafted_from = int(APART * self.spent)


def charged_search(
    problem: Problem,
    rng: np.random.Generator,
    least: int = 0,
    retired: Retired | None = None,
) -> Search:
    """Explore until a look is expected to prove the choice, and make it on fresh pulls.

    R_T <= epsilon with probability >= 1 - delta for independent normal arms of any variances.
    Batches that explore have at least `least` pulls. When an arm retires the search of the others
    begins again, with nothing of the past and all of delta (docs/retired.md)."""
    retired = Retired(problem.n_arms) if retired is None else retired
    state = ChargedSearch(problem, rng)
    search = _charged(state, least)
    turn = advance(search, None)
    while isinstance(turn, Pulls) and not retired.any():
        reply = yield turn
        turn = advance(search, reply)
    if retired.any():
        return (yield from _without(retired.staying, state, least))
    assert isinstance(turn, Answer)
    return turn


def _without(stay: IntArray, state: ChargedSearch, least: int) -> Search:
    """The search of the remaining arms, on fresh pulls."""
    problem, budget = state.problem, state.budget
    if budget.total is not None and budget.left < budget.price(stay, np.ones_like(stay)).sum():
        ranked = np.lexsort((state.ties[stay], -state.explored.means[stay]))
        return Answer(np.sort(stay[ranked[: problem.k]]), evidence={"certificate": "split"})
    fewer = problem.among(stay, None if budget.total is None else budget.left)
    return (yield from continued(stay, lambda own: charged_search(fewer, state.rng, least, own)))


def _charged(state: ChargedSearch, least: int) -> Search:
    """The search as long as no arm retires."""
    problem, rng = state.problem, state.rng
    first = np.full(problem.n_arms, FIRST_PULLS)
    if not _affords(state, first):
        first = np.full(problem.n_arms, _rows_left(state))
    yield from _explore(state, first)
    if first[0] < FIRST_PULLS:
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
        total = max(problem.n_arms, int(GROWTH * state.spent), least)
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
