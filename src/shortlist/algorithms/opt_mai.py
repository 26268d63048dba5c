"""OptMAI: drop a quarter of the arms at a time, within a budget (Zhou, Chen, Li 2014)."""

from math import ceil, exp

import numpy as np

from shortlist.algorithms.steps import Sorting, best, even_shares
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import mirrored
from shortlist.problem import Problem
from shortlist.search import Answer, Search

# the budget shrinks more slowly than the set of arms, so pulls per arm grow by e^0.2
BETA = 3 / 4 * exp(0.2)


def opt_mai(problem: Problem, rng: np.random.Generator, *, pooled: bool = False) -> Search:
    """Spend a shrinking share of the budget on S in every round, and remove a quarter of S.

    Round r gets (1 - beta) beta^r of the budget, evenly over S; the quarter is chosen by its means.

    While S has 4K arms or more the worst quarter goes (QE); then the quarter of largest empirical
    gap is accepted or rejected (AR). O(n / epsilon^2 ln 1/delta) pulls are known to do, with no
    usable constant, so nothing is claimed. Zhou, Chen, Li (2014), Algorithms 1-3. Means are those
    of the round, or with `pooled` of all an arm's pulls.

    Where we depart: equal means are ranked at random, so no more arms are rejected than there are
    too many; a budget below one pull each in a round is spent evenly at once, and the K' best
    pooled means are taken. More than half of the arms are chosen by finding the others, on rewards
    1 - x."""
    if 2 * problem.k > problem.n_arms:
        return mirrored(_opt_mai(problem.complement(), rng, pooled), problem.n_arms)
    return _opt_mai(problem, rng, pooled)


def _opt_mai(problem: Problem, rng: np.random.Generator, pooled: bool) -> Search:
    state = Sorting.start(problem)
    left, r = problem.budget, 0
    while not state.settled:
        size = state.undecided.size
        times = int((1 - BETA) * BETA**r * problem.budget) // size
        r += 1
        if times == 0:
            yield from state.pull(even_shares(left, size, rng), r)
            break
        left -= times * size
        fresh = yield from state.pull(times, r)
        means = state.pooled_means() if pooled else fresh
        if size >= 4 * problem.k:
            state.undecided = state.undecided[best(means, size - size // 4, rng)]  # QE
        else:
            _accept_reject(state, means, rng)
    return Answer(state.fill_up(state.pooled_means(), rng))


def _accept_reject(state: Sorting, means: FloatArray, rng: np.random.Generator) -> None:
    """AR: move the quarter of S, rounded up, whose means are farthest from the boundary."""
    wanted, size = state.wanted, state.undecided.size
    order = best(means, size, rng)
    arms, ranked = state.undecided[order], means[order]
    gaps = np.maximum(ranked - ranked[wanted], ranked[wanted - 1] - ranked)
    removed = np.zeros(size, dtype=np.bool_)
    removed[best(gaps, ceil(size / 4), rng)] = True
    state.accepted = np.concatenate([state.accepted, arms[:wanted][removed[:wanted]]])
    state.undecided = arms[~removed]
