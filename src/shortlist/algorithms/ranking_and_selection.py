"""Ranking and selection, for normal rewards of unknown variances: KN, Rinott, OCBA-m."""

from collections.abc import Generator

import numpy as np

from shortlist.algorithms.algorithm import Count, CountFrom2, Growth
from shortlist.algorithms.steps import best, even_shares, rounded_shares
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.charged.search import Explored
from shortlist.certificates.differences.fallback import rinott_constant
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search, moments_of

MOST_ARMS = 2000  # all pairs of them are compared
LEAST_GAP = 1e-6  # distance from the boundary, as a share of the largest one


def kn(
    problem: Problem, rng: np.random.Generator, *, first: CountFrom2 = 20, growth: Growth = 0.0
) -> Search:
    """Find the best of normal arms of unknown variances, for k = 1; others are refused.

    Every arm is pulled `first` times; S_ij^2 is the variance of the differences x_i - x_j of these
    pulls. After r pulls of every arm that is left, arm i stays if for all others j

        mean_i >= mean_j - max(0, (h^2 S_ij^2 / epsilon^2 - r) epsilon / (2 r)),

    h^2 = (first - 1) ((2 delta / (n - 1))^(-2 / (first - 1)) - 1). The search ends when one arm is
    left, or when r exceeds all h^2 S_ij^2 / epsilon^2; then the highest mean is chosen.

    With probability >= 1 - delta the best arm is chosen *if it is ahead of every other by epsilon
    or more*. Nothing is promised of the regret otherwise, so the answer has no bound. It holds for
    normal rewards, on own and on shared seeds: only differences are used, with any correlation.

    Kim, Nelson (2001), the fully sequential procedure with c = 1. There a step is one pull of every
    arm that is left (`growth` = 0); with `growth` it is a share of the pulls so far. Fewer looks,
    at numbers of pulls that are known beforehand, do not make a wrong exit more likely (Jennison,
    Johnstone, Turnbull 1982, on which their proof rests)."""
    check_one_arm(problem, "kn")
    if problem.n_arms > MOST_ARMS:
        raise InvalidInput(f"there are {problem.n_arms} arms, but kn supports at most {MOST_ARMS}")
    return _screening(problem, rng, first, growth)


def check_one_arm(problem: Problem, name: str) -> None:
    """Refuse more than one arm to choose."""
    if problem.k != 1:
        raise InvalidInput(
            f"`k` is {problem.k}, but must be 1: {name} finds one best arm, certified any number"
        )


def _screening(problem: Problem, rng: np.random.Generator, first: int, growth: float) -> Search:
    left: IntArray = np.arange(problem.n_arms)
    rows = yield from _rows(left, first, 0)
    longest = _longest(rows, problem.delta) / problem.epsilon**2  # (arms, arms)
    sums, pulls, round_ = rows.sum(axis=0), first, 0
    while True:
        stays = _stays(sums / pulls, longest, pulls, problem.epsilon)
        left, sums, longest = left[stays], sums[stays], longest[np.ix_(stays, stays)]
        if left.size == 1 or pulls > longest.max():
            break
        round_ += 1
        more = max(1, int(growth * pulls))
        sums = sums + (yield from _rows(left, more, round_)).sum(axis=0)
        pulls += more
    top = left[best(sums, 1, rng)]
    return Answer(top, evidence={"pulls of the chosen arm": pulls, "arms left": left.size})


def _longest(rows: FloatArray, delta: float) -> FloatArray:
    """h^2 S^2 of every pair; divided by epsilon^2, the pulls after which its triangle ends."""
    first, n_arms = rows.shape
    around = rows - rows.mean(axis=0)
    gram = np.einsum("ri,rj->ij", around, around)
    own = np.diag(gram)
    variances = np.maximum(own[:, None] + own[None, :] - 2 * gram, 0.0) / (first - 1)
    ratio = (2 * delta / (n_arms - 1)) ** (-2 / (first - 1))
    longest: FloatArray = (first - 1) * max(0.0, ratio - 1) * variances
    return longest


def _stays(means: FloatArray, longest: FloatArray, pulls: int, epsilon: float) -> IntArray:
    """Places of the arms that no other has left behind."""
    width = np.maximum(0.0, (longest - pulls) * epsilon / (2 * pulls))
    return np.flatnonzero((means[:, None] >= means[None, :] - width).all(axis=1))


def _rows(arms: IntArray, rows: int, round_: int) -> Generator[Pulls, Rewards, FloatArray]:
    """Pull each arm equally often: (rows, arms), less the mean of a row, which saves digits.

    It cancels out of differences, and arms that are left have had all rows."""
    progress = Progress(round_, undecided=arms.size)
    drawn: FloatArray = np.empty((0, arms.size))
    while len(drawn) < rows:  # rows on void seeds are drawn again, on others
        reply = yield Pulls(arms, np.full(arms.size, rows - len(drawn)), progress)
        drawn = np.concatenate([drawn, reply.rows(arms.size)])
    centred: FloatArray = drawn - drawn.mean(axis=1, keepdims=True)
    return centred


def rinott(problem: Problem, rng: np.random.Generator, *, first: CountFrom2 = 20) -> Search:
    """Find the best of independent normal arms of unknown variances, for k = 1.

    Every arm is pulled `first` times, S_i^2 the variance of these pulls, and then until it has
    N_i = max(first, ceil(h^2 S_i^2 / epsilon^2)) pulls. The highest mean is chosen. h solves

        E[ E[Phi(h / sqrt(nu (1 / Y + 1 / Y'))) | Y]^(n - 1) ] = 1 - delta,   nu = first - 1,

    Y, Y' independent and chi-square with nu degrees of freedom. R_T <= epsilon with probability >=
    1 - delta, whatever the means are. Let b be the best arm and Z_i = mean_i - mean_b - (theta_i -
    theta_b):

    - Given all S^2, the Z_i are normal, each pair with covariance var(mean_b) >= 0. So all Z_i are
      below epsilon with at least the product of their probabilities (Slepian), which are at least
      Phi(h / sqrt(nu (1 / Y_b + 1 / Y_i))). These are independent given Y_b, hence the formula.
    - Then a chosen arm i, mean_i >= mean_b, has theta_i > theta_b - epsilon.

    Rinott (1978), procedure R; there for the best arm that is ahead by epsilon. `rinott_constant`
    is rounded up. Takes about three to five times the pulls of kn unless arms tie."""
    check_one_arm(problem, "rinott")
    return _two_stages(problem, rng, first)


def _two_stages(problem: Problem, rng: np.random.Generator, first: int) -> Search:
    n_arms = problem.n_arms
    arms = np.arange(n_arms)
    times = np.full(n_arms, first)
    reply = yield Pulls(arms, times, Progress(1, undecided=n_arms))
    assert reply.each is not None, "drivers send single rewards where rewards are normal"
    means, squares = moments_of(reply.each, times)
    h = rinott_constant(n_arms, problem.delta, first)
    sizes = np.ceil(squares / (first - 1) * (1 + 1e-9) * (h / problem.epsilon) ** 2)
    more = np.maximum(sizes - first, 0).astype(np.int64)
    some = np.flatnonzero(more)
    if some.size:
        reply = yield Pulls(some, more[some], Progress(2, undecided=n_arms))
        assert reply.each is not None
        later, _ = moments_of(reply.each, more[some])
        means[some] += (later - means[some]) * more[some] / (first + more[some])
    evidence = {"h": h, "largest sample": int(first + more.max())}
    return Answer(best(means, 1, rng), problem.epsilon, 1 - problem.delta, evidence)


def ocba_m(
    problem: Problem, rng: np.random.Generator, *, first: Count = 10, growth: Growth = 0.05
) -> Search:
    """Pull arms in proportion to (s_i / (mean_i - c))^2 and return the k best means.

    c is the boundary (d_(k+1) mean_(k) + d_(k) mean_(k+1)) / (d_(k) + d_(k+1)) between the k-th
    and the next mean, d_i = s_i / sqrt(N_i) the deviation of a mean. These proportions make a lower
    bound on the probability of a correct choice fall slowest, for normal arms as the budget grows.
    No guarantee for a given budget. Every arm is pulled `first` times, or an equal share of the
    budget if that is less.

    Chen, He, Fu, Lee (2008), OCBA-m. There a step has a fixed number of pulls; here it is a share
    `growth` of those so far. There an arm whose first rewards are all equal is never pulled again;
    here the variances of arms are drawn a little to that of all, which 0/1 rewards need."""
    return _shared_out(problem, rng, first, growth)


def _shared_out(problem: Problem, rng: np.random.Generator, first: int, growth: float) -> Search:
    n_arms, budget = problem.n_arms, problem.budget
    explored = Explored(n_arms)
    times = np.minimum(first, even_shares(budget, n_arms, rng))
    round_ = 0
    while times.any():
        arms = np.flatnonzero(times)
        round_ += 1
        reply = yield Pulls(arms, times[arms], Progress(round_, undecided=n_arms))
        explored.add(arms, times[arms], *_moments(reply, times[arms]))
        spent = int(explored.pulls.sum())
        batch = min(max(1, int(growth * spent)), budget - spent)
        times = _times(explored, problem.k, batch, rng)
    return Answer(best(explored.means, problem.k, rng))


def _moments(reply: Rewards, times: IntArray) -> tuple[FloatArray, FloatArray]:
    """Means and squared deviations of every entry."""
    if reply.each is not None:
        return moments_of(reply.each, times)
    means = reply.sums / times
    return means, np.maximum(reply.squares - times * means**2, 0.0)


def _times(explored: Explored, k: int, batch: int, rng: np.random.Generator) -> IntArray:
    """A batch, to the arms in proportion to the pulls missing to their share."""
    if not batch:
        return np.zeros_like(explored.pulls)
    weights = proportions(explored, k)
    wanted = (explored.pulls.sum() + batch) * weights / weights.sum()
    lacking = np.maximum(wanted - explored.pulls, 0.0)
    return rounded_shares(batch * lacking / lacking.sum(), batch, rng)


def proportions(explored: Explored, k: int) -> FloatArray:
    """(s_i / (mean_i - c))^2 of every arm: (n,)."""
    variances = _variances(explored)
    deviations = np.sqrt(variances / explored.pulls)
    order = np.argsort(-explored.means, kind="stable")
    inner, outer = order[k - 1], order[k]
    high, low = explored.means[inner], explored.means[outer]
    share = deviations[inner] / (deviations[inner] + deviations[outer])
    gaps = np.abs(explored.means - (high - (high - low) * share))
    least = LEAST_GAP * gaps.max()
    weights: FloatArray = variances / np.maximum(gaps, least) ** 2 if least else variances
    return weights


def _variances(explored: Explored) -> FloatArray:
    """Variance of a reward of every arm; that of all arms counts as one pull: (n,)."""
    pooled = explored.squares.sum() / max(1, (explored.pulls - 1).sum())
    variances: FloatArray = (explored.squares + pooled) / explored.pulls
    return variances if pooled else np.ones_like(variances)
