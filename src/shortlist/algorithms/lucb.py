"""LUCB, KL-LUCB and CLUCB-PAC: pull where the intervals around the means leave the answer open.

LUCB pulls the weakest arm inside and the strongest outside until no swap can gain epsilon. KL-LUCB
does so with the intervals of Chernoff's bound, which are narrow near 0 and 1. CLUCB-PAC pulls where
the best set under pessimism differs from the best set on average. They differ in how wide the
intervals are, what they must show, and which arms are pulled: a `Rule`."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from math import inf, log

import numpy as np

from shortlist.algorithms.algorithm import Delta, Growth
from shortlist.algorithms.likelihood_ratio import bernoulli_ends
from shortlist.algorithms.steps import best
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, best_by, best_set
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, RunUpTo, Search
from shortlist.validation import text

OWN_GROWTH = 5  # times `growth` by which an arm's pulls grow before its next look
# of means, pulls and a log term: the lower and the upper end of every interval
Ends = Callable[[FloatArray, IntArray, float], tuple[FloatArray, FloatArray]]
GROWTH = 0.02  # a batch, as a share of all pulls so far
DELTA = 0.01  # of the radii, where a budget leaves it open


def hoeffding_ends(
    means: FloatArray, pulls: IntArray, log_term: float
) -> tuple[FloatArray, FloatArray]:
    """The mean +- sqrt(log_term / (2 pulls))."""
    radii = np.sqrt(log_term / (2 * pulls))
    return means - radii, means + radii


@dataclass(frozen=True)
class Intervals:
    """Mean and interval of every arm, and whether it is among the k best."""

    pulls: IntArray
    means: FloatArray
    inside: BoolArray
    log_term: float  # an end misses its mean with probability exp(-log_term) at most
    allowed: float  # the bound to reach
    growth: float
    ends: Ends = hoeffding_ends
    constraint: Constraint | None = None  # the feasible sets; None: all sets of k arms

    @cached_property
    def pessimistic(self) -> FloatArray:
        """The end of every interval that speaks against the choice: lower inside, upper outside."""
        lower, upper = self.ends(self.means, self.pulls, self.log_term)
        return np.where(self.inside, lower, upper)

    @property
    def steps(self) -> IntArray:
        """Pulls of each arm before its next look."""
        most: IntArray = np.maximum(1, OWN_GROWTH * self.growth * self.pulls).astype(np.int64)
        return most

    def reaches_across(self, slack: float) -> BoolArray:
        """Which intervals reach over the midpoint of the boundary, by more than `slack`.

        If the means did not change, these arms would have to be pulled until none does."""
        midpoint = (self.means[self.inside].min() + self.means[~self.inside].max()) / 2
        over: FloatArray = np.where(
            self.inside, midpoint - self.pessimistic, self.pessimistic - midpoint
        )
        return over > slack


@dataclass(frozen=True, slots=True)
class Rule:
    """What makes a race a certain algorithm."""

    log_term: Callable[[int, int, float], float]  # of n_arms, pulls so far, delta
    bound: Callable[[Intervals], float]  # on R_T, if no interval misses its mean
    shares: Callable[[Intervals, int, np.random.Generator], IntArray]  # of a batch, per arm
    least: int  # pulls in the smallest batch
    ends: Ends = hoeffding_ends
    proven: bool = True  # whether the log term is large enough for the bound to hold


def race(
    problem: Problem, rng: np.random.Generator, rule: Rule, growth: float, delta: float
) -> Search:
    """Race by `rule` until its bound is at most epsilon, or until the budget ends.

    A step pulls at most max(rule.least, floor(growth * pulls so far)) times. With a budget the
    radii are those of `delta`, and a race ends early only when the bound is 0."""
    if isinstance(problem.goal, FixedBudget):
        return Race(problem, rng, rule, growth, delta).run(problem.budget)
    return Race(problem, rng, rule, growth, problem.delta, problem.epsilon).run(inf)


class Race:
    """A race that can be run further, from where it stopped."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator,
        rule: Rule,
        growth: float,
        delta: float,
        allowed: float = 0.0,
    ) -> None:
        self.n_arms, self.k = problem.n_arms, problem.k
        self.constraint = problem.constraint
        self.rng, self.rule, self.growth, self.delta, self.allowed = (
            rng,
            rule,
            growth,
            delta,
            allowed,
        )
        self.pulls: IntArray = np.zeros(self.n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(self.n_arms)

    def run(self, until: float) -> Search:
        """Continue until the bound is at most `allowed`, or until `until` pulls in all."""
        if not self.pulls.any():
            yield from self._pull(
                np.ones(self.n_arms, dtype=np.int64), Progress(undecided=self.n_arms)
            )
        for round_ in count(1):
            total = int(self.pulls.sum())
            intervals = self._intervals(total)
            bound = self.rule.bound(intervals)
            if bound <= self.allowed or total >= until:
                break
            batch = int(min(until - total, max(self.rule.least, int(self.growth * total))))
            shares = self.rule.shares(intervals, batch, self.rng)
            shown = bound if self.rule.proven else None
            yield from self._pull(shares, Progress(round_, undecided=self.n_arms, bound=shown))
        top, evidence = np.flatnonzero(intervals.inside), {"log term": intervals.log_term}
        if not self.rule.proven:
            return Answer(top, evidence=evidence)
        return Answer(top, bound, 1 - self.delta, evidence)

    def _pull(self, shares: IntArray, progress: Progress) -> Generator[Pulls, Rewards, None]:
        arms = np.flatnonzero(shares)
        rewards = yield Pulls(arms, shares[arms], progress)
        self.pulls[arms] += shares[arms]
        self.sums[arms] += rewards.sums

    def _intervals(self, total: int) -> Intervals:
        means = self.sums / self.pulls
        log_term = self.rule.log_term(self.n_arms, total, self.delta)
        if self.constraint is None:
            inside = top_mask(means, self.k, self.rng)
        else:
            inside = best_by(self.constraint, means, self.rng.random(means.size), self.k)
        return Intervals(
            self.pulls,
            means,
            inside,
            log_term,
            self.allowed,
            self.growth,
            self.rule.ends,
            self.constraint,
        )


def top_mask(values: FloatArray, k: int, rng: np.random.Generator) -> BoolArray:
    """Which values are the `k` largest; ties are broken by `rng`."""
    mask = np.zeros(values.size, dtype=np.bool_)
    mask[best(values, k, rng)] = True
    return mask


def lucb(
    problem: Problem, rng: np.random.Generator, *, growth: Growth = 0.02, delta: Delta = 0.01
) -> Search:
    """Pull the lowest lower end inside the k best and the highest upper end outside till they meet.

    Stop when max upper end outside - min lower end inside <= epsilon. radius_i = sqrt(ln(5 n t^4 /
    (4 delta)) / (2 pulls_i)) after t pulls. With probability >= 1 - delta:

    - No upper end of a top-k arm is ever below its mean, no lower end of another arm ever above its
      mean: each fails after t pulls, N <= t of them of that arm, with probability at most exp(-2 N
      radius^2) = 4 delta / (5 n t^4). Over arms, N and t that sums to 0.8 zeta(3) delta < delta.
      One side per arm is enough.
    - Then theta_i <= upper_i <= lower_j + epsilon <= theta_j + epsilon for every top-k arm i left
      out and every arm j chosen in place of one. Match them in any way: the j-th best chosen mean
      is >= theta_j - epsilon for every j <= k (Elementwise). So every chosen mean is >= theta_k -
      epsilon (Explore-K), and R_T <= epsilon.

    Explore-K, which is all that the source claims, would not bound R_T: it lets the very best arms
    be missed. Kalyanakrishnan, Tewari, Auer, Stone (2012), LUCB1. There t counts rounds of two
    pulls, and a step is one round (`growth` = 0). Here t counts pulls, and a step is a share
    `growth` of all so far, half on each side: the arms whose ends reach furthest first, as long as
    they stand in the way, a share 5 `growth` of its own pulls each. The radii hold for all t at
    once, so whatever a batch pulls the guarantee stays. In all, 0 to 15 % more pulls than one by
    one where we compared.

    With a budget the answer is the k best means when it ends, or earlier if the intervals do not
    overlap. The bound it comes with is the stopping rule's difference, right with probability >= 1
    - delta."""
    return race(problem, rng, LUCB_RULE, growth, delta)


def _log_term(n_arms: int, pulls: int, delta: float) -> float:
    return log(5 * n_arms / (4 * delta)) + 4 * log(pulls)


def _largest_swap(intervals: Intervals) -> float:
    ends, inside = intervals.pessimistic, intervals.inside
    return max(0.0, float(ends[~inside].max() - ends[inside].min()))


def _shares(intervals: Intervals, batch: int, rng: np.random.Generator) -> IntArray:
    inside, ends = intervals.inside, intervals.pessimistic
    most = np.where(intervals.reaches_across(intervals.allowed / 2), intervals.steps, 0)
    within = (batch + int(rng.integers(2))) // 2  # an odd pull goes to either side
    shares = np.zeros(inside.size, dtype=np.int64)
    shares[inside] = highest_first(-ends[inside], most[inside], within, rng)
    shares[~inside] = highest_first(ends[~inside], most[~inside], batch - within, rng)
    return shares


def highest_first(
    values: FloatArray, most: IntArray, batch: int, rng: np.random.Generator
) -> IntArray:
    """Give each its `most`, highest value first, until the batch is used; the highest gets one."""
    order = best(values, values.size, rng)
    wanted = most[order]
    wanted[0] = max(1, wanted[0])
    shares = np.zeros(values.size, dtype=np.int64)
    shares[order] = np.clip(batch - (np.cumsum(wanted) - wanted), 0, wanted)
    return shares


LUCB_RULE = Rule(_log_term, _largest_swap, _shares, least=2)


# of the exploration rate ln(K1 n t^ALPHA / delta): K1 must be at least zeta(ALPHA) = 10.58, for
# which Theorem 1 has 1 + 1 / (ALPHA - 1)
ALPHA = 1.1
K1 = 11.0


def kl_lucb(
    problem: Problem,
    rng: np.random.Generator,
    *,
    growth: Growth = 0.02,
    threshold: str = "proven",
) -> Search:
    """Pull as `lucb` does, with intervals {q : pulls_i d(mean_i, q) <= beta(t)} around the means.

    d is the divergence of Bernoulli distributions, for any rewards in [0, 1]; for sub-Gaussian ones
    2 (p - q)^2, which makes the intervals `lucb`'s with another radius. Stop when max upper end
    outside - min lower end inside <= epsilon. With threshold "proven", beta(t) = ln(11 n t^1.1 /
    delta) after t pulls, and with probability >= 1 - delta:

    - No upper end of a top-k arm is ever below its mean, no lower end of another arm ever above its
      mean. beta grows and N <= t, so an end of an arm pulled N times that misses at any t misses
      with beta(N) too. That has probability exp(-beta(N)) at most (Chernoff), and the sum over arms
      and N is delta / 11 * sum N^-1.1 <= delta / 11 * (1 + 1 / 0.1) = delta.
    - Then R_T <= epsilon, and more (Elementwise), as in `lucb`.

    With "customary", beta(t) = ln((ln t + 1) / delta), which experiments in the literature use and
    no paper has proved enough: the answer comes without a bound.

    Kaufmann, Kalyanakrishnan (2013), Algorithm KL-LUCB and Theorem 1, which asks for alpha > 1 and
    k1 > 1 + 1 / (alpha - 1) in ln(k1 n t^alpha / delta); a larger k1, 405.5 for alpha = 1.1, is for
    their bound on the number of pulls. There t counts rounds of two pulls, and a step is one round
    (`growth` = 0); here batches are as in `lucb`."""
    threshold = text("threshold", threshold)
    if threshold not in RATES:
        raise InvalidInput(f"`threshold` is {threshold!r}, but must be {' or '.join(RATES)}")
    return race(problem, rng, _rule(problem, threshold), growth, problem.delta)


def _rule(problem: Problem, threshold: str) -> Rule:
    ends = bernoulli_ends if problem.rewards.has_range else hoeffding_ends
    return replace(LUCB_RULE, log_term=RATES[threshold], ends=ends, proven=threshold == "proven")


def _proven(n_arms: int, pulls: int, delta: float) -> float:
    return log(K1 * n_arms / delta) + ALPHA * log(pulls)  # Theorem 1


def _customary(_n_arms: int, pulls: int, delta: float) -> float:
    return log((log(pulls) + 1) / delta)


RATES = {"proven": _proven, "customary": _customary}


def clucb_pac(
    problem: Problem, rng: np.random.Generator, *, growth: Growth = GROWTH, delta: Delta = DELTA
) -> Search:
    """Pull where the best set and the best pessimistic set disagree, until they nearly agree.

    With M the k best means, w~ = mean - radius inside M and mean + radius outside, and M~ the k
    largest w~: stop when w~(M~) - w~(M) <= k epsilon, else pull in M symmetric-difference M~ where
    the radius is largest. Under a constraint M and M~ are the best feasible sets by these. radius_i
    = sqrt(ln(4 n t^3 / delta) / (2 pulls_i)) after t pulls. R_T <= epsilon with probability >= 1 -
    delta:

    - An interval misses its mean after t pulls, of which N <= t were of that arm, with probability
      at most 2 exp(-2 N radius^2) = delta / (2 n t^3). Over arms, N and t that sums to pi^2 / 12 *
      delta < delta.
    - Otherwise k R_M = (means of the best set) - (means of M) <= w~(best set) - w~(M) <= w~(M~) -
      w~(M).

    Chen, Lin, King, Lyu, Chen (2014), Appendix B.2. There a step is one pull (`growth` = 0). Here
    it is a share `growth` of all pulls so far, fewest pulls first, among the arms that are in
    dispute or would come into it if the means stood still; it ends early when the lowest have grown
    by 5 `growth`. The radii hold for all t at once, so whatever a batch pulls the guarantee stays,
    and the last one overshoots by at most that share. In all, 0 to 10 % more pulls than one by one
    where we compared.

    With a budget the answer is M when the budget ends, or earlier if M~ = M. The bound it comes
    with is (w~(M~) - w~(M)) / k, right with probability >= 1 - delta."""
    return race(problem, rng, CLUCB_RULE, growth, delta)


def clucb_pac_anytime(problem: Problem, rng: np.random.Generator) -> RunUpTo:
    """The same race, to be run up to one number of pulls after another."""
    return Race(problem, rng, CLUCB_RULE, GROWTH, DELTA).run


def _clucb_term(n_arms: int, pulls: int, delta: float) -> float:
    return log(4 * n_arms / delta) + 3 * log(pulls)


def largest_loss(intervals: Intervals) -> float:
    """(w~(M~) - w~(M)) / k: the gain if the highest ends outside replace the lowest inside."""
    ends, inside = intervals.pessimistic, intervals.inside
    k = int(inside.sum())
    if intervals.constraint is not None:
        moved = best_set(intervals.constraint, ends, k) ^ inside
        return max(0.0, float(ends[moved & ~inside].sum() - ends[moved & inside].sum()) / k)
    swaps = min(k, inside.size - k)
    gains = np.sort(ends[~inside])[::-1][:swaps] - np.sort(ends[inside])[:swaps]
    return float(np.maximum(gains, 0).sum() / k)


def _disputed_shares(intervals: Intervals, batch: int, rng: np.random.Generator) -> IntArray:
    due = _due(intervals, batch, rng)
    pulls = intervals.pulls[due]
    room = np.maximum(pulls.min() + intervals.steps[due].min() - pulls, 0).sum()
    shares = np.zeros(due.size, dtype=np.int64)
    shares[due] = fewest_first(pulls, min(batch, int(room)), rng)
    return shares


def _due(intervals: Intervals, batch: int, rng: np.random.Generator) -> BoolArray:
    """The arms on which M and M~ differ, and in a batch those that come to differ meanwhile."""
    inside = intervals.inside
    k = int(inside.sum())
    if intervals.constraint is not None:
        return inside ^ best_by(
            intervals.constraint, intervals.pessimistic, rng.random(inside.size), k
        )
    disputed = inside ^ top_mask(intervals.pessimistic, k, rng)
    if batch == 1:
        return disputed
    # if no arm reaches further than this slack, they cost k * allowed at most
    swaps = min(k, inside.size - k)
    return disputed | intervals.reaches_across(k * intervals.allowed / (2 * swaps))


def fewest_first(pulls: IntArray, batch: int, rng: np.random.Generator) -> IntArray:
    """Share a batch so that each pull goes to an arm with the fewest; ties are broken by `rng`."""
    ordered = np.sort(pulls)
    # the j lowest to the j-th
    to_raise = np.arange(1, pulls.size + 1) * ordered - np.cumsum(ordered)
    served = int(np.searchsorted(to_raise, batch, side="right"))
    level, extra = divmod(batch + int(ordered[:served].sum()), served)
    shares = np.maximum(level - pulls, 0)
    shares[rng.permutation(np.flatnonzero(pulls <= level))[:extra]] += 1
    return shares


CLUCB_RULE = Rule(_clucb_term, largest_loss, _disputed_shares, least=1)
