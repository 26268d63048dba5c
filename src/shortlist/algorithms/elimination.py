"""Drop or accept the clearest arms in rounds: Median Elimination or Halving, SAR and OptMAI."""

from math import ceil, exp, log

import numpy as np

from shortlist.algorithms.steps import Sorting, best, even_shares, sample
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import mirrored
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Search

# the budget shrinks more slowly than the set of arms, so pulls per arm grow by e^0.2
BETA = 3 / 4 * exp(0.2)


def median_elimination(problem: Problem, rng: np.random.Generator) -> Search:
    """Pull every arm that is left equally often and keep the better half, but never fewer than k.

    Round r works to accuracy epsilon_r = (epsilon / 4) (3/4)^(r-1) with risk delta_r = delta / 2^r;
    they sum to at most epsilon and delta. Write t_j for the j-th best mean of the s arms a round
    begins with; it keeps m of them. Its N pulls each make q = exp(-N epsilon_r^2 / 2) the chance
    that a given mean errs by epsilon_r / 2 to a given side.

    - None of the k best arms is rated epsilon_r / 2 too low, except with probability k q.
    - Let j <= k and suppose fewer than j of the kept arms have means >= t_j - epsilon_r. Then m - j
      + 1 kept ones are worse, one of the j best was dropped, and all those worse ones were rated
      above it, so epsilon_r / 2 too high. At most s - j arms are worse and each is overrated with
      probability q: by Markov (s - j) q / (m - j + 1).

    N makes the sum of these, over all j <= k, at most delta_r. So with probability >= 1 - delta
    every round lowers no t_j by more than epsilon_r, and in the end the j-th best chosen mean is >=
    theta_j - epsilon for every j <= k (Elementwise). Hence every chosen mean is >= theta_k -
    epsilon (Explore-K), and R_T <= epsilon.

    Even-Dar, Mannor, Mansour (2006), Median Elimination (k = 1); Kalyanakrishnan, Stone (2010),
    Halving. The latter counts only j = k, which proves Explore-K with ln(3 k / delta_r) and says
    nothing of R_T; counting every j costs about ln(k (2 + ln k) / delta_r) instead."""
    arms = np.arange(problem.n_arms)
    accuracy, risk, r = problem.epsilon / 4, problem.delta / 2, 0
    while arms.size > problem.k:
        r += 1
        kept = max(problem.k, ceil(arms.size / 2))
        times = round_length(arms.size, kept, problem.k, accuracy, risk)
        rejected = problem.n_arms - arms.size
        means = yield from sample(arms, times, Progress(r, rejected=rejected, undecided=arms.size))
        arms = arms[best(means, kept, rng)]
        accuracy, risk = 0.75 * accuracy, risk / 2
    return Answer(arms, problem.epsilon, 1 - problem.delta, {"rounds": r})


def round_length(size: int, kept: int, k: int, accuracy: float, risk: float) -> int:
    """Pulls per arm after which to keep the `kept` best lowers no j-th best mean by `accuracy`.

    For every j <= k, but for a probability of `risk`."""
    j = np.arange(1, k + 1)
    chances = k + float(np.sum((size - j) / (kept - j + 1)))  # in units of q
    return ceil(2 / accuracy**2 * log(chances / risk))


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
