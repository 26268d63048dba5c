"""The present best k of a search that has not ended, with its bound if it has one; unit scale.

Where the search bounds the regret of its choice at any time, that choice and that bound are it.
Elsewhere the k best posterior means of the rewards counted so far are, and nothing is promised.
What is shown of a search under way takes the latter, too, where its bound is true of any choice."""

from dataclasses import replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import best_by
from shortlist.exploration.posterior import Posterior, posterior_of
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Answer, Progress, Pulls, Rewards

MOST_RANKED = 10_000  # arms whose chances are told: more would take seconds


class Tally:
    """Pulls of every arm that are counted, and what they gave.

    `waiting` are told, but not counted: an earlier pull of the same arm is missing."""

    def __init__(self, n_arms: int) -> None:
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)
        self.waiting: IntArray = np.zeros(n_arms, dtype=np.int64)

    def add(self, arms: IntArray, times: IntArray, rewards: Rewards) -> None:
        """Count pulls, entry by entry; an arm may be in several."""
        np.add.at(self.pulls, arms, times)
        np.add.at(self.sums, arms, rewards.sums)
        np.add.at(self.squares, arms, rewards.squares)

    def copy(self) -> "Tally":
        """The same, to be added to on its own."""
        other = Tally(self.pulls.size)
        other.pulls, other.sums, other.squares = self.pulls + 0, self.sums + 0, self.squares + 0
        other.waiting = self.waiting + 0
        return other


def scored(problem: Problem, tally: Tally) -> Tally:
    """The tally with the scores that were known before, in the units of `problem`.

    Every arm has the mean that is shown of it, and as many pulls as independent rewards would tell
    as much."""
    items = problem.items
    if items is None or items.known is None:
        return tally
    both = Tally(problem.n_arms)
    both.pulls, both.waiting = items.worth(tally.pulls), tally.waiting
    counted = both.pulls > 0
    both.sums = np.where(counted, both.pulls * items.means(tally.pulls, tally.sums), 0.0)
    squares = items.squared().means(tally.pulls, tally.squares)
    both.squares = np.where(counted, both.pulls * squares, 0.0)
    return both


def present_answer(
    problem: Problem, tally: Tally, progress: Progress, rng: np.random.Generator
) -> Answer:
    """What a search would answer if it ended now."""
    proved = _proved(problem, progress)
    return Answer(_best(problem, tally, rng)) if proved is None else proved


def shown_answer(
    problem: Problem, tally: Tally, progress: Progress, rng: np.random.Generator
) -> Answer:
    """The present answer as it is shown while a search is under way.

    A search keeps its choice from one batch to the next. Where its bound is the whole range, every
    choice keeps that bound: then the best of the rewards counted so far are shown."""
    answer = present_answer(problem, tally, progress, rng)
    bound = answer.regret_bound
    if bound is None or bound < 1 or not problem.rewards.has_range:
        return answer
    return replace(answer, top=_best(problem, tally, rng))


def chances(problem: Problem, tally: Tally, stay: BoolArray) -> FloatArray:
    """How likely every arm is to belong to the best k of those that `stay`: (n,).

    The posterior chance that its mean lies above the value that k of them are expected to exceed,
    so that all of them add up to k. It ranks arms, and is no guarantee: the prior is an
    estimate."""
    unranked = problem.n_arms > MOST_RANKED or problem.constraint is not None
    if unranked or not tally.pulls.any():  # under constraints the best k are not a feasible set
        return np.full(problem.n_arms, np.nan)
    posterior = posterior_after(problem, tally)
    missing = np.ones((posterior.row_pulls.size, 1))
    above = np.hstack([missing, 1 - np.cumsum(posterior.weights, axis=1)])  # (rows, grid + 1)
    rows = np.bincount(posterior.row[stay], minlength=posterior.row_pulls.size)
    expected = rows @ above  # (grid + 1,) arms above every edge, falling
    last = int(np.searchsorted(-expected, -problem.k, side="right")) - 1
    last = min(last, expected.size - 2)
    share = (expected[last] - problem.k) / (expected[last] - expected[last + 1])
    between = above[:, last] + share * (above[:, last + 1] - above[:, last])
    likely: FloatArray = np.clip(between[posterior.row], 0.0, 1.0) * stay
    return likely


def posterior_after(problem: Problem, tally: Tally) -> Posterior:
    """The posterior after all rewards, of which there must be one; arms never pulled are as the
    others are on average."""
    return _posterior(problem, tally, float(tally.sums.sum() / tally.pulls.sum()))


def _posterior(problem: Problem, tally: Tally, stand_in: float) -> Posterior:
    """The posterior after all rewards; it needs a pull of every arm, and of those never pulled
    takes one that gave `stand_in`."""
    missing = tally.pulls == 0
    posterior = posterior_of(problem.n_arms, problem.k, problem.rewards)
    everything = Pulls(np.arange(problem.n_arms), tally.pulls + missing)
    sums, squares = tally.sums + stand_in * missing, tally.squares + stand_in**2 * missing
    posterior.add(everything, Rewards(sums, squares))
    posterior.refresh()
    return posterior


def _proved(problem: Problem, progress: Progress) -> Answer | None:
    """The choice of a search that bounds it at any time, with the bound of its last request."""
    goal = problem.goal
    if progress.top is None or progress.bound is None or not isinstance(goal, FixedConfidence):
        return None
    return Answer(np.array(progress.top), progress.bound, 1 - goal.delta)


def _best(problem: Problem, tally: Tally, rng: np.random.Generator) -> IntArray:
    """The k best posterior means, or the best feasible set by them, ties at random; arms never
    pulled come last."""
    missing = tally.pulls == 0
    means = _posterior(problem, tally, 0.0).means()
    if problem.constraint is not None:
        low = means.min() - (np.ptp(means) + 1) * problem.n_arms  # only if no other set is feasible
        ties = rng.random(problem.n_arms)
        values = np.where(missing, low, means)
        return np.flatnonzero(best_by(problem.constraint, values, ties, problem.k))
    best_first = np.lexsort((rng.random(problem.n_arms), -means, missing))
    return np.sort(best_first[: problem.k])
