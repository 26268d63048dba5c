"""What limits leave of a search: how often every arm may be pulled at most."""

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certification.design import fixed_design
from shortlist.problem import Problem

# pulls of an arm that no run can make: they are refused before
UNREACHABLE = 2**61
FAR_BEYOND = 4  # times the fixed design that an arm is pulled where others are at their limits


def limited_pulls(problem: Problem) -> IntArray:
    """The most pulls of every arm where some have limits: (n,).

    Once some arms are at their limits, the bound may not fall any further however often the others
    are pulled: they end at FAR_BEYOND times the fixed design."""
    most = np.minimum(problem.most_pulls, UNREACHABLE)
    n_arms, k, epsilon = problem.n_arms, problem.k, problem.sharp_epsilon
    try:
        design = fixed_design(n_arms, k, epsilon, problem.delta, problem.rewards)
    except OverflowError:  # an epsilon so small that no run could reach it
        return most
    return np.minimum(most, FAR_BEYOND * design)
