"""The present best k of a search that has not ended, with what can be said of them; unit scale.

Where the search bounds the regret of its choice at any time, that choice and that bound are it.
Elsewhere the k best posterior means of all rewards so far are, and nothing is promised."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.exploration.undeclared import posterior_of
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Answer, Progress, Pulls, Rewards


class Tally:
    """Pulls of every arm and what they gave."""

    def __init__(self, n_arms: int) -> None:
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)

    def add(self, arms: IntArray, times: IntArray, rewards: Rewards) -> None:
        """Count pulls, entry by entry; an arm may be in several."""
        np.add.at(self.pulls, arms, times)
        np.add.at(self.sums, arms, rewards.sums)
        np.add.at(self.squares, arms, rewards.squares)


def present_answer(
    problem: Problem, tally: Tally, progress: Progress, rng: np.random.Generator
) -> Answer:
    """What a search would answer if it ended now."""
    proved = _proved(problem, progress)
    return Answer(_best(problem, tally, rng)) if proved is None else proved


def _proved(problem: Problem, progress: Progress) -> Answer | None:
    """The choice of a search that bounds it at any time, with the bound of its last request."""
    goal = problem.goal
    if progress.top is None or progress.bound is None or not isinstance(goal, FixedConfidence):
        return None
    return Answer(np.array(progress.top), progress.bound, 1 - goal.delta)


def _best(problem: Problem, tally: Tally, rng: np.random.Generator) -> IntArray:
    """The k best posterior means, ties at random; arms never pulled come last."""
    missing = tally.pulls == 0
    posterior = posterior_of(problem.n_arms, problem.k, problem.rewards)
    # a posterior needs a pull of every arm: of those never pulled, one that gave 0
    everything = Pulls(np.arange(problem.n_arms), tally.pulls + missing)
    posterior.add(everything, Rewards(tally.sums, tally.squares))
    posterior.refresh()
    best_first = np.lexsort((rng.random(problem.n_arms), -posterior.means(), missing))
    return np.sort(best_first[: problem.k])
