"""AdaptiveTopK: accept and reject arms in rounds of halving width (Algorithm 1)."""

from math import ceil, log, log2

import numpy as np

from shortlist.algorithms.algorithm import Delta, Scale
from shortlist.algorithms.steps import Sorting, even_shares
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Answer, Search


def adaptive_top_k(
    problem: Problem,
    rng: np.random.Generator,
    *,
    tight: bool = False,
    delta: Delta = 0.01,
    scale: Scale = 1.0,
) -> Search:
    """Accept and reject arms in rounds of halving width until the rest cannot cost epsilon.

    Round r pulls every undecided arm 4^r ln(2 n r^2 / delta) fresh times. R_T <= epsilon with
    probability >= 1 - delta. Chen, Chen, Zhang, Zhou (2017), Algorithm 1; width read as the proof
    needs it (E1).

    The `tight` form pools an arm's samples (E4) and uses one-sided Hoeffding over the R =
    log2(2/epsilon) rounds known in advance: (4^r / 2) ln(n R / delta) pulls in all by round r (E5);
    the guarantee is the same.

    With a budget there is no stopping rule and no guarantee (Section 5); `delta` then only sets the
    length of the rounds, and `scale` multiplies it."""
    if isinstance(problem.goal, FixedBudget):
        return _within_budget(problem, problem.budget, rng, delta, scale)
    return _to_confidence(problem, rng, tight)


def adaptive_top_k_tight(problem: Problem, rng: np.random.Generator) -> Search:
    """AdaptiveTopK with pooled samples and the constants its proof allows (E4, E5)."""
    return adaptive_top_k(problem, rng, tight=True)


def _to_confidence(problem: Problem, rng: np.random.Generator, tight: bool) -> Search:
    state = Sorting.start(problem)
    allowed = problem.epsilon * problem.k
    means = np.zeros(problem.n_arms)
    r, width = 0, problem.rewards.widest_gap
    while not state.settled and 2 * width * _at_risk(state, tight) > allowed:
        r, width = r + 1, 2.0 ** -(r + 1)  # E1: the width belongs to the round that uses it
        if tight:
            total = _tight_total(problem, r)
            yield from state.pull(total - state.pulls[state.undecided], r)
            means = state.pooled_means()
        else:
            means = yield from state.pull(
                ceil(4.0**r * log(2 * problem.n_arms * r**2 / problem.delta)), r
            )
        means = state.sort(means, width)
    top = state.fill_up(means, rng)
    return Answer(top, problem.epsilon, 1 - problem.delta, {"rounds": r, "width": width})


def _at_risk(state: Sorting, tight: bool) -> int:
    """How many arms can be chosen wrongly: K', or min(K', s - K') if swaps count once (E5)."""
    return min(state.wanted, state.undecided.size - state.wanted) if tight else state.wanted


def _tight_total(problem: Problem, r: int) -> int:
    rounds = max(1, ceil(log2(2 / problem.epsilon)))
    return ceil(4.0**r / 2 * log(problem.n_arms * rounds / problem.delta))


def _within_budget(
    problem: Problem, budget: int, rng: np.random.Generator, delta: float, scale: float
) -> Search:
    state = Sorting.start(problem)
    left, r = budget, 0
    while not state.settled and left > 0:
        r += 1
        size = state.undecided.size
        times = max(1, ceil(scale * 4.0**r * log(2 * problem.n_arms * r**2 / delta)))
        if times * size > left:  # E16: the last, partial round
            yield from state.pull(even_shares(left, size, rng), r)
            break
        left -= times * size
        means = yield from state.pull(times, r)
        state.sort(means, 2.0**-r)
    return Answer(state.fill_up(state.pooled_means(), rng))
