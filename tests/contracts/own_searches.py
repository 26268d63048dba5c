"""Searches as a user writes them, in a module that other processes can import."""

import numpy as np

import shortlist
from shortlist import Answer, Problem, Pulls, Search


def even(problem: Problem, rng: np.random.Generator, *, share: float = 1.0) -> Search:
    """Pull all arms alike, with a share of the budget."""
    times = int(share * problem.budget) // problem.n_arms
    arms = np.arange(problem.n_arms)
    rewards = yield Pulls(arms, np.full(problem.n_arms, times))
    return Answer(np.argsort(-rewards.sums, kind="stable")[: problem.k])


BUDGETED = shortlist.Algorithm("even", even, goals=(shortlist.FixedBudget,), version=3)
NUMBER = 7
