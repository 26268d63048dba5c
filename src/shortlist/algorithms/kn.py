"""KN: pull all arms that are left once more, and drop those that have fallen too far behind."""

from collections.abc import Generator

import numpy as np

from shortlist.algorithms.algorithm import CountFrom2, Growth
from shortlist.algorithms.steps import best
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

MOST_ARMS = 2000  # all pairs of them are compared


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
    reply = yield Pulls(arms, np.full(arms.size, rows), progress)
    assert reply.each is not None, "drivers send single rewards where rewards are normal"
    drawn = reply.each.reshape(arms.size, rows).T
    centred: FloatArray = drawn - drawn.mean(axis=1, keepdims=True)
    return centred
