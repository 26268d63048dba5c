"""SAR: accept or reject one arm a phase, the one whose place is clearest."""

import numpy as np

from shortlist.algorithms.steps import Sorting, best
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Answer, Search


def sar(problem: Problem, rng: np.random.Generator) -> Search:
    """Decide in each of n - 1 phases on the arm of largest empirical gap, pulling the rest evenly.

    By phase p every undecided arm has been pulled n_p = ceil((Q - n) / (l(n) (n + 1 - p))) times,
    where Q is the budget and l(n) = 1/2 + sum_{i=2}^n 1/i; that is less than Q in all. The gap of
    an arm is the distance of its mean from the K'-th best mean if it is below, from the (K'+1)-th
    if it is above, K' of the arms still wanted. No guarantee for a given budget; the probability of
    missing the top set falls like exp(-Q / (8 l(n) H_2)), where H_2 = max_i i / gap_(i)^2 over the
    true gaps in rising order.

    Bubeck, Wang, Viswanathan (2013), SAR. Phases of equal n_p are one round here: nothing is pulled
    between them. Ends once no choice is left (E3), so some of Q may remain."""
    if problem.budget <= problem.n_arms:
        raise InvalidInput(
            f"`budget` is {problem.budget}, but sar needs more than one pull per arm: at least"
            f" {problem.n_arms + 1}"
        )
    return _phases(problem, phase_counts(problem.n_arms, problem.budget), rng)


def phase_counts(n_arms: int, budget: int) -> IntArray:
    """n_1, ..., n_{n-1}: pulls of an arm still undecided by the end of each phase."""
    harmonic = 0.5 + np.sum(1 / np.arange(2, n_arms + 1))
    sizes = np.arange(n_arms, 1, -1)  # n + 1 - p
    return np.ceil((budget - n_arms) / (harmonic * sizes)).astype(np.int64)


def _phases(problem: Problem, counts: IntArray, rng: np.random.Generator) -> Search:
    state = Sorting.start(problem)
    levels, phases = np.unique(counts, return_counts=True)
    for r, (more, together) in enumerate(
        zip(np.diff(levels, prepend=0), phases, strict=True), start=1
    ):
        if state.settled:
            break
        yield from state.pull(int(more), r)
        accept, reject = clearest(state.pooled_means(), state.wanted, int(together), rng)
        state.accepted = np.concatenate([state.accepted, state.undecided[accept]])
        state.undecided = np.delete(state.undecided, np.concatenate([accept, reject]))
    return Answer(state.fill_up(state.pooled_means(), rng))


def clearest(
    means: FloatArray, wanted: int, phases: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Positions of the arms to accept and to reject in that many phases without a pull in between.

    Each takes the arm of largest gap, ties broken by `rng`, and accepts it if it is above the
    (K'+1)-th mean. Neither threshold moves meanwhile (E2), so they are the largest gaps, up to
    where no choice is left (E3)."""
    size = means.size
    ordered = np.partition(means, (size - wanted - 1, size - wanted))
    a, b = ordered[size - wanted - 1], ordered[size - wanted]  # (K'+1)-th and K'-th largest
    arms = best(np.maximum(means - a, b - means), phases, rng)
    above = means[arms] > a
    open_before = (np.cumsum(above) - above < wanted) & (np.cumsum(~above) - ~above < size - wanted)
    return arms[open_before & above], arms[open_before & ~above]
