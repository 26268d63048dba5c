"""What all certificates share: shares of delta, retired arms, limits, mirroring, the answer, and
the fixed design that they fall back on.

A reply names all arms that have retired so far. `informed` keeps them in one place for all parts of
a search; `continued` lets a search continue with the remaining arms, numbered from 0 in it.
docs/retired.md says what is proved then. Where more than half of the arms are to be chosen,
`mirrored` finds the bottom arms on mirrored rewards.

The fixed design is not adaptive: pull every arm N times, take the K best means. A set T that loses
more than K*epsilon differs from a best set S by a swap: A = S - T, B = T - S, both of m arms, gap =
sum of means over A - sum over B > K*epsilon. T is taken only if every arm of B ranks before every
arm of A. `swap_failure` bounds the probability of that for one swap of m arms, whatever the means
are; `failure` adds up over all swaps; `fixed_design` is the least N for which that is at most
delta. docs/pairs.md has the proofs. The best set is not known, but it is one
fixed set: so a union bound over swaps out of it pays for as many as any feasible set has, at most,
`log_swaps_of`.

Where not every set of K arms is feasible, the best feasible set by the means is taken, and `swaps`
are the logarithms of the numbers of feasible swaps of m arms. Then x(B) >= x(A) is all that is
known, and ties are counted in full: docs/constraints.md."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.special import betainc, gammaln, logsumexp, xlog1py, xlogy

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.constraints import Constraint, Quotas
from shortlist.problem import Problem
from shortlist.reward_models import UNIT_SIGMA, Binary, RewardModel
from shortlist.search import Answer, Pulls, Rewards, Search, Tiers, advance

UNREACHABLE = 2**61  # pulls of an arm that no run can make: they are refused before
FAR_BEYOND = 4  # times the fixed design that an arm is pulled where others are at their limits
FIRST_LOOK = 0.75  # share of delta of the first look; later ones get this share of the rest
MOST_LOOKS = 100  # so that the share of the last one is still a number
MOST_COUNTED = 1000  # numbers of chosen arms per group that are tried; more are not counted
MANY_ARMS = 200  # from which on they are not either
LogSwaps = tuple[float, ...] | None  # of swaps of 1, 2, ... arms; None: all sets are feasible
GroupRule = tuple[int, int, int]  # size of a group, least and most of it that may be chosen


def share_of(delta: float, look: int) -> float:
    """Alpha spending: the share of delta for look number `look`, from 0.

    By the union bound the probability that any look certifies wrongly is at most the sum of all
    shares, which is delta, however the looks are timed."""
    return delta * FIRST_LOOK * (1 - FIRST_LOOK) ** look


def share_after(delta: float, looks: int) -> float:
    """The rest of delta after this many looks."""
    return delta * (1 - FIRST_LOOK) ** looks


def answered(
    problem: Problem,
    top: IntArray,
    bound: float,
    evidence: Mapping[str, object],
    before: BoolArray | None = None,
) -> Answer:
    """The answer with a bound on K R_T; without any bound if it is infinite.

    `before` [i, j] says, on the same event as the bound, that j is not in B without i."""
    if not math.isfinite(bound):
        return Answer(top, evidence=evidence)
    regret = bound / problem.k
    if bound <= problem.k * problem.epsilon:  # dividing may have rounded up
        regret = min(regret, problem.epsilon)
    tiers = None
    if before is not None and problem.constraint is None:
        tiers = agreeing(tiers_of(before, problem.k), top)
    return Answer(top, regret, 1 - problem.delta, evidence, tiers)


def tiers_of(before: BoolArray, k: int) -> Tiers:
    """Which arms are surely in B, a set of the k best means, and which are surely not.

    Where `before` [i, j], j is not in B without i. So an arm with k arms of this kind above it is
    not in B, and one with n - k below it is."""
    apart = before & ~np.eye(len(before), dtype=np.bool_)
    inside: BoolArray = apart.sum(axis=1) >= len(before) - k
    outside: BoolArray = apart.sum(axis=0) >= k
    return Tiers(inside, outside)


def agreeing(tiers: Tiers, top: IntArray) -> Tiers:
    """The same without what contradicts the choice, which can be if delta is near 1."""
    chosen = np.isin(np.arange(tiers.inside.size), top)
    return Tiers(tiers.inside & chosen, tiers.outside & ~chosen)


def boundary_evidence(boundary: FloatArray | float, surplus: float) -> dict[str, object]:
    """The boundary, or the range of the prices and their surplus, for an answer."""
    if isinstance(boundary, float):
        return {"boundary": boundary}
    low, high = float(boundary.min()), float(boundary.max())
    return {"lowest price": low, "highest price": high, "surplus": surplus}


class Retired:
    """The arms that have retired so far."""

    def __init__(self, n_arms: int) -> None:
        self.arms: BoolArray = np.zeros(n_arms, dtype=np.bool_)

    def any(self) -> bool:
        """Whether any arm has retired."""
        return bool(self.arms.any())

    @property
    def count(self) -> int:
        """The number of arms that have retired."""
        return int(self.arms.sum())

    @property
    def staying(self) -> IntArray:
        """The arms that have not retired."""
        return np.flatnonzero(~self.arms)

    def see(self, reply: Rewards) -> None:
        """Read from a reply which arms have retired."""
        if reply.retired is not None:
            self.arms[reply.retired] = True


def informed(search: Search, retired: Retired) -> Search:
    """The same search; `retired` is up to date whenever the search is sent a reply."""
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        reply = yield turn
        if turn.more:
            turn = advance(search, None)
        else:
            retired.see(reply)
            turn = advance(search, reply)
    return turn


def continued(stay: IntArray, search_of: Callable[[Retired], Search]) -> Search:
    """Continue with the remaining arms: a search of these, informed of later retirements."""
    retired = Retired(stay.size)
    return among(stay, informed(search_of(retired), retired))


def among(arms: IntArray, search: Search) -> Search:
    """A search of these arms, which it knows as 0, 1, ..., as a search of all arms."""
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        reply = yield replace(turn, arms=arms[turn.arms])
        turn = advance(search, _renumbered(reply, arms))
    return replace(turn, top=arms[turn.top], tiers=None)


def _renumbered(reply: Rewards, arms: IntArray) -> Rewards:
    """The same reply, where the arms that retired have the numbers of `arms`."""
    assert reply.retired is not None, "once an arm has retired, every reply names it"
    return replace(reply, retired=np.flatnonzero(np.isin(arms, reply.retired)))


def limited_pulls(problem: Problem) -> IntArray:
    """The most pulls of every arm where some have limits: (n,).

    Once some arms are at their limits, the bound may not fall any further however often the others
    are pulled: they end at FAR_BEYOND times the fixed design."""
    most = np.minimum(problem.most_pulls, UNREACHABLE)
    n_arms, k, epsilon = problem.n_arms, problem.k, problem.sharp_epsilon
    try:
        design = fixed_design(
            n_arms, k, epsilon, problem.delta, problem.rewards, log_swaps_of(problem)
        )
    except OverflowError:  # an epsilon so small that no run could reach it
        return most
    return np.minimum(most, FAR_BEYOND * design)


def mirrored(search: Search, n_arms: int) -> Search:
    """Run `search` for the bottom arms on rewards 1 - x and return all other arms.

    A loss summed over the bottom n - k is the same loss summed over the top k, so the bound is
    rescaled."""
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        given = yield turn
        # the sums of 1 - x and of (1 - x)^2
        sums = turn.times - given.sums
        squares = turn.times - 2 * given.sums + given.squares
        turn = advance(search, Rewards(sums, squares))
    return _complement(turn, n_arms)


def _complement(answer: Answer, n_arms: int) -> Answer:
    rest = np.setdiff1d(np.arange(n_arms), answer.top)
    bound = answer.regret_bound
    bound = None if bound is None else bound * answer.top.size / rest.size
    return Answer(rest, bound, answer.confidence, answer.evidence)


def log_swaps(n_arms: int, k: int) -> FloatArray:
    """Logarithm of the number of swaps of m arms, m = 1 ... min(k, n - k), if all are feasible."""
    sizes = np.arange(1, min(k, n_arms - k) + 1)  # (M,)
    return _log_choose(k, sizes) + _log_choose(n_arms - k, sizes)


def _log_choose(n: int, m: IntArray) -> FloatArray:
    """Logarithm of the number of subsets, no less: digits are lost where factorials cancel."""
    whole = gammaln(n + 1)
    return whole - gammaln(m + 1) - gammaln(n - m + 1) + ROUNDED * whole


def log_swaps_of(problem: Problem) -> LogSwaps:
    """Logarithm of the number of swaps of m arms, m = 1, 2, ..., out of any feasible set, at most.

    None without a constraint."""
    return family_swaps(problem.constraint, problem.n_arms, problem.k)


def family_swaps(family: Constraint | None, n_arms: int, k: int) -> LogSwaps:
    """The same of a family of sets of k arms.

    Quotas are counted; of another family all swaps of m arms count."""
    if family is None:
        return None
    if isinstance(family, Quotas):
        sizes = [len(arms) for arms in family.groups.values()]
        rules = zip(sizes, family.least.tolist(), family.most.tolist(), strict=True)
        return _quota_swaps(tuple(sorted(rules)), k)
    return tuple(log_swaps(n_arms, k).tolist())


@cache
def _quota_swaps(rules: tuple[GroupRule, ...], k: int) -> tuple[float, ...]:
    """The largest number over all feasible numbers of chosen arms per group."""
    n_arms = sum(size for size, _, _ in rules)
    most = log_swaps(n_arms, k)  # (M,)
    profiles = _profiles(rules, k) if n_arms < MANY_ARMS else None
    if profiles is None:
        return tuple(most.tolist())
    counts = np.max([_swaps_from(profile, rules, most.size) for profile in profiles], axis=0)
    logs = np.log(counts[counts > 0])
    return tuple(np.minimum(most[: logs.size], logs + ROUNDED * (1 + logs)).tolist())


def _profiles(rules: tuple[GroupRule, ...], k: int) -> list[tuple[int, ...]] | None:
    """Feasible numbers of chosen arms per group; None if there are too many.

    Groups with equal rules are alike, so only the sorted numbers of these are listed."""
    kinds = sorted(set(rules))
    alike = [rules.count(kind) for kind in kinds]
    ways = [
        math.comb(high - low + times, times)
        for (_, low, high), times in zip(kinds, alike, strict=True)
    ]
    if math.prod(ways) > MOST_COUNTED:
        return None
    parts = [
        list(combinations_with_replacement(range(low, high + 1), times))
        for (_, low, high), times in zip(kinds, alike, strict=True)
    ]
    every = (tuple(count for part in chosen for count in part) for chosen in product(*parts))
    return [profile for profile in every if sum(profile) == k]


def _swaps_from(profile: tuple[int, ...], rules: tuple[GroupRule, ...], most: int) -> FloatArray:
    """Number of swaps of m = 1 ... `most` arms out of a set with these numbers per group."""
    ways = np.zeros((most + 1, most + 1))  # [arms removed, arms brought in]
    ways[0, 0] = 1.0
    for count, rule in zip(profile, rules, strict=True):
        before, ways = ways, np.zeros_like(ways)
        for removed, added, number in _swaps_within(count, rule, most):
            end = most + 1
            ways[removed:, added:] += number * before[: end - removed, : end - added]
    return np.diagonal(ways)[1:]


def _swaps_within(count: int, rule: GroupRule, most: int) -> list[tuple[int, int, int]]:
    """Arms removed from a group and brought in, and in how many ways."""
    size, least, highest = rule
    return [
        (removed, added, math.comb(count, removed) * math.comb(size - count, added))
        for removed in range(min(count, most) + 1)
        for added in range(min(size - count, most) + 1)
        if least <= count - removed + added <= highest
    ]


ROUNDING = 1e-7  # relative, of the incomplete beta function and of differences of it
# pulls of one side of a swap up to which tails are exact to ROUNDING: beyond, Hoeffding counts
EXACT_BINARY, EXACT_BOUNDED = 1e9, 1e6
UNDERFLOW = 1e-250  # below, tails are not computed but bounded in logarithms
LONGEST_SUM = 1_000_000  # pulls for which a failure is summed over all successes
LARGEST_EXACT = 64  # arms in a swap of rewards in [0, 1] up to which more than Hoeffding is tried
LARGEST = 2**61  # pulls of an arm: more are not counted
SLACK = 1.5  # largest number of pulls of an adaptive search, in units of the design
LEAST_SHARE = 0.1  # of delta for samples of a fallback: it shortens long runs
OFFSETS = 60  # points of support tried in the bound for rewards in [0, 1]


@cache
def fixed_design(
    n_arms: int,
    k: int,
    epsilon: float,
    delta: float,
    rewards: RewardModel,
    swaps: LogSwaps = None,
) -> int:
    """Least N such that the k best means of N pulls each lose at most `epsilon` at confidence.

    Exact for two arms with 0/1 rewards: no smaller N is right for all means."""
    most = min(k, n_arms - k) if swaps is None else len(swaps)  # arms in a swap
    if rewards.has_range and k * epsilon >= most:  # no set loses more
        return 1
    high = 1
    while failure(n_arms, k, epsilon, high, rewards, swaps) > delta:
        high *= 2
        if high > LARGEST:
            raise OverflowError(f"more than {LARGEST:.1e} pulls of every arm are needed")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        too_few = failure(n_arms, k, epsilon, middle, rewards, swaps) > delta
        low, high = (middle, high) if too_few else (low, middle)
    return high


def share_for(
    n_arms: int,
    k: int,
    epsilon: float,
    delta: float,
    pulls: int,
    rewards: RewardModel,
    swaps: LogSwaps = None,
) -> float:
    """The share of `delta` that samples of this many pulls each need, as a fallback of a search."""
    if pulls < 1:
        return 1.0
    fails = failure(n_arms, k, epsilon, pulls, rewards, swaps)
    return min(1.0, max(LEAST_SHARE, fails / delta * (1 + ROUNDING)))


def failure(
    n_arms: int, k: int, epsilon: float, pulls: int, rewards: RewardModel, swaps: LogSwaps = None
) -> float:
    """Bound on P(R_T > epsilon) of the k best of `pulls` pulls each, for every vector of means."""
    if swaps is not None:
        sizes = np.arange(1, len(swaps) + 1)  # (M,)
        tails = log_swap_failure(sizes, k * epsilon, pulls, rewards, full_ties=True)  # (M,)
        return _total(np.array(swaps), tails)
    sizes = np.arange(1, min(k, n_arms - k) + 1)  # (M,)
    tails = log_swap_failure(sizes, k * epsilon, pulls, rewards)  # (M,)
    if sizes.size == 1:  # all n - 1 swaps share one arm, so they are positively associated
        one = math.exp(tails[0])
        return 1.0 if one >= 1 else -math.expm1((n_arms - 1) * math.log1p(-one))
    return _total(log_swaps(n_arms, k), tails)


def _total(swaps: FloatArray, tails: FloatArray) -> float:
    """The sum over all swaps, at most 1."""
    return min(1.0, math.exp(min(0.0, float(logsumexp(swaps + tails)))))


def log_swap_failure(
    sizes: IntArray, gap: float, pulls: int, rewards: RewardModel, *, full_ties: bool = False
) -> FloatArray:
    """Logarithm of a bound on P(all of B before all of A): m arms each, `gap` apart, `pulls` each.

    0/1 rewards: P(Bin(2mN - 1, (1 - gap/m) / 2) >= mN), the failure at the least favourable means;
    with `full_ties`, P(x(B) >= x(A)), P(Bin(2mN, (1 - gap/m) / 2) >= mN).
    [0, 1]: min over t of E(Z - t)+ / (mN - t), Z binomial of 2mN trials with that mean.
    Sub-Gaussian: exp(-N gap^2 / (4 sigma^2 m))."""
    if not rewards.has_range:
        return np.asarray(-pulls * gap**2 / (4 * UNIT_SIGMA**2 * sizes), dtype=np.float64)
    nearness = np.minimum(gap / sizes, 1.0)  # (M,) mean difference within a swap
    with np.errstate(divide="ignore"):
        hoeffding = sizes * pulls * np.log1p(-(nearness**2))  # (M,) Hoeffding (1963), theorem 1
        if rewards.is_binary:
            tails = _binary_tail(sizes, gap, pulls, full_ties=full_ties)  # (M,)
        else:
            tails = _bounded_tail(sizes, gap, pulls)  # (M,)
        exact = np.log(tails) + ROUNDING
    most = EXACT_BINARY if rewards.is_binary else EXACT_BOUNDED
    trusted = (tails > UNDERFLOW) & (sizes * pulls <= most)
    least: FloatArray = np.where(trusted, np.minimum(hoeffding, exact), hoeffding)
    return least


def swap_failure(gap: float, pulls: int) -> float:
    """P(b before a) for two arms with 0/1 rewards at the least favourable means."""
    return float(np.exp(log_swap_failure(np.array([1]), gap, pulls, Binary())[0]))


def edge_failure(gap: float, pulls: int, edge: float) -> float:
    """P(b before a) at the least favourable means in [0, edge], or in [1 - edge, 1].

    These are edge - gap and edge: below 1/2 the failure grows with both means."""
    if gap >= edge:  # no two means there are this far apart
        return 0.0
    # Chernoff's bound, in closed form: the affinity of the two distributions
    better, worse = edge, edge - gap
    affinity = math.sqrt(better * worse) + math.sqrt((1 - better) * (1 - worse))
    bound = math.exp(2 * pulls * math.log(affinity))
    if pulls > LONGEST_SUM:
        return bound
    behind = _tails(pulls, worse)  # (N + 2,)
    exact = float(_masses(pulls, better) @ (behind[:-1] + behind[1:]) / 2)
    return min(bound, exact * (1 + ROUNDING) ** 2)  # once for the tails, once for the masses


def _masses(pulls: int, mean: float) -> FloatArray:
    """P(Bin(N, mean) = s) for s = 0, ..., N.

    Their common factor is left out, and its error with it. Each of six steps to a logarithm
    errs by an ulp of 2^25 at most, hence a mass, divided by their sum, by ROUNDING / 2."""
    successes = np.arange(pulls + 1)
    failures = pulls - successes
    logs = xlogy(successes, mean) + xlog1py(failures, -mean)
    logs -= gammaln(successes + 1) + gammaln(failures + 1)
    masses = np.exp(logs - logs.max())
    return np.asarray(masses / masses.sum(), dtype=np.float64)


def _tails(pulls: int, mean: float) -> FloatArray:
    """P(Bin(N, mean) >= s) for s = 0, ..., N + 1."""
    successes = np.arange(1, pulls + 1)
    return np.concatenate([[1.0], betainc(successes, successes[::-1], mean), [0.0]])


def _binary_tail(sizes: IntArray, gap: float, pulls: int, *, full_ties: bool) -> FloatArray:
    """P(Bin(2mN, p) > mN) + P(... = mN) / 2 = P(Bin(2mN - 1, p) >= mN), p = (1 - gap/m) / 2.

    With `full_ties`, P(Bin(2mN, p) >= mN)."""
    means = np.maximum(0.0, (1 - gap / sizes) / 2)  # (M,)
    half = sizes * pulls
    tails = np.asarray(betainc(half, half + full_ties, means), dtype=np.float64)
    # Hoeffding (1956), theorem 5, asks for it; m = 1 with ties halved does without
    proved = (gap * pulls >= 1) | ((sizes == 1) & (not full_ties))
    return np.where(proved, tails, 1.0)


def _bounded_tail(sizes: IntArray, gap: float, pulls: int) -> FloatArray:
    """Least E(Z - t)+ / (mN - t) over some t: Hoeffding's convex order, then Markov."""
    few = [_excess(int(m), gap, pulls) for m in sizes[:LARGEST_EXACT]]
    return np.concatenate([few, np.ones(sizes.size - len(few))])


def _excess(size: int, gap: float, pulls: int) -> float:
    half, trials = size * pulls, 2 * size * pulls
    mean = max(0.0, (1 - gap / size) / 2)
    farthest = max(1.0, half - trials * mean)
    offsets = np.unique(np.ceil(np.geomspace(1, farthest, OFFSETS)).astype(np.int64))
    start = half - offsets[offsets < half]  # (t,) all positive
    if start.size == 0:
        return 1.0
    # E(Z - t)+ = E[Z; Z > t] - t P(Z > t), and E[Z; Z > t] = trials * mean * P(Z' >= t)
    above = betainc(start, trials - start, mean)  # (t,) P(Z' >= t), Z' of one trial less
    beyond = betainc(start + 1, trials - start, mean)  # (t,) P(Z > t)
    bounds = (trials * mean * above - start * beyond) / (half - start)
    return float(min(1.0, np.maximum(bounds, 0.0).min()))
