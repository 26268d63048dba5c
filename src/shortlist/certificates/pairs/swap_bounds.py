"""What a race has proved: bounds on the gaps of all swaps, from all rewards so far.

They hold at every stage at once, however arms are chosen and pulled: docs/pairs.md.

`Likelihood` has likelihood ratios: one arm, the nominee, against each of its rivals. For rewards x
in [0, 1] with mean theta and any q known beforehand, as a power lies below its chord,

    E[(q / theta)^x ((1 - q) / (1 - theta))^(1 - x)] <= 1.

So the likelihood of an arm's rewards as they were predicted, one after the other, over their
likelihood at theta is a supermartingale from 1. So is the product over two arms, however they are
pulled. The largest likelihood of two arms whose means differ by `gap` or more is no smaller than
that at theta."""

import math
from functools import partial
from math import log

import numpy as np
from scipy.special import betaln, xlogy

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.certificates.frame import Retired, log_swaps, log_swaps_of
from shortlist.certificates.pairs.bound import (
    GapMixture,
    StageRewards,
    Stages,
    feasible_set_gap,
    pair_gaps,
    set_gap,
)
from shortlist.certificates.pairs.fallback import Fallback, log_wealth
from shortlist.certificates.pairs.planning import pilot_stage
from shortlist.certificates.under_constraints import ExchangeGraph
from shortlist.problem import Problem

FIRST_NOMINEE = 0.6  # share of delta for the first nominee; later ones get this part of the rest
PREDICTION_PRIOR = 4.0  # pulls that the common mean of the arms is worth in a prediction
LARGEST_MULTIPLIER = 100.0  # times all pulls: a multiplier beyond which rounding would count
NEAR_ZERO = 1e-12  # instead of 0, in a denominator


Sums = tuple[FloatArray, FloatArray]  # of rewards x, and of 1 - x


class Likelihood:
    """Predicted likelihoods of all arms, and the arms that were nominated so far.

    Only rewards after its nomination count for a nominee. The share of delta of the r-th nominee is
    fixed beforehand, so it does not matter how many others there are."""

    def __init__(self, n_arms: int) -> None:
        self._good: FloatArray = np.zeros(n_arms)  # sums of x ...
        self._bad: FloatArray = np.zeros(n_arms)  # ... and of 1 - x
        self._predicted: FloatArray = np.zeros(n_arms)  # log likelihood, as it was predicted
        self._before: dict[int, tuple[float, float, float]] = {}  # the same at the nomination
        self._log_shares: dict[int, float] = {}

    def count(self, arms: IntArray, draws: StageRewards, known: StageRewards, mean: float) -> None:
        """Add rewards of these arms, predicted from their rewards so far and the mean of all arms.

        The prediction is a mixture over q by the Beta distribution of these, so the order of
        rewards within `draws` does not matter."""
        seen = np.clip(known.sums[arms], 0.0, known.times[arms])  # sums may be rounded
        good = seen + PREDICTION_PRIOR * mean
        bad = known.times[arms] - seen + PREDICTION_PRIOR * (1 - mean)
        gained = np.clip(draws.sums, 0.0, draws.times)
        lost = draws.times - gained
        self._predicted[arms] += betaln(good + gained, bad + lost) - betaln(good, bad)
        self._good[arms] += gained
        self._bad[arms] += lost

    def nominate(self, arm: int) -> None:
        """Compare this arm with all others by its rewards from now on."""
        if arm not in self._before:
            self._log_shares[arm] = log(FIRST_NOMINEE) + len(self._before) * log(1 - FIRST_NOMINEE)
            self._before[arm] = self._of(arm)

    def evidence(self, nominee: int, rivals: IntArray, gap: float, *, best: bool) -> FloatArray:
        """Log-likelihood ratio against "a rival is better than the nominee by `gap`": (rival,).

        If not `best`: against "the nominee is better than a rival". The nominee's share of delta is
        included."""
        now, before = self._of(nominee), self._before[nominee]
        good, bad, predicted = (float(x - y) for x, y in zip(now, before, strict=True))
        own = np.array(good), np.array(bad)
        others = self._good[rivals], self._bad[rivals]
        better, worse = (others, own) if best else (own, others)
        ratios = self._predicted[rivals] + predicted - largest_likelihood(better, worse, gap)
        return ratios + self._log_shares[nominee]

    def _of(self, arm: int) -> tuple[float, float, float]:
        return self._good[arm], self._bad[arm], self._predicted[arm]


def largest_likelihood(better: Sums, worse: Sums, gap: float) -> FloatArray:
    """Bound on the log likelihood of two arms with means y >= x + gap.

    Its Lagrangian at any multiplier >= 0 is a bound. That of the x at which the likelihood along
    y = x + gap is largest, found by bisection, makes it the maximum but for little."""
    y = better[0] / np.maximum(better[0] + better[1], 1)
    x = worse[0] / np.maximum(worse[0] + worse[1], 1)
    low = np.clip(y - gap, 0.0, 1 - gap)
    high = np.clip(x, low, 1 - gap)
    for _ in range(10):
        middle = (low + high) / 2
        rises = _slope(better, middle + gap) + _slope(worse, middle) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    middle = (low + high) / 2
    # the two slopes are opposite there, unless one of the means is 0 or 1
    steepest = np.maximum(_slope(worse, middle), -_slope(better, middle + gap))
    most = LARGEST_MULTIPLIER * (sum(better) + sum(worse))
    multiplier = np.where(y >= x + gap, 0.0, np.clip(steepest, 0.0, most))
    y, of_better = _at_best(better, multiplier)
    x, of_worse = _at_best(worse, -multiplier)
    return of_better + of_worse + multiplier * (y - x - gap)


def _slope(sums: Sums, mean: FloatArray) -> FloatArray:
    """Of the log likelihood of one arm."""
    good, bad = sums
    return good / np.maximum(mean, NEAR_ZERO) - bad / np.maximum(1 - mean, NEAR_ZERO)


def _at_best(sums: Sums, tilt: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean y at which the log likelihood + tilt y is largest, and the log likelihood there.

    1 - y is found as y is, for the mirrored rewards: so no digits of it are lost near y = 1."""
    good, bad = sums
    y = _tilted(good, bad, tilt)
    likelihood = xlogy(good, y) + xlogy(bad, _tilted(bad, good, -tilt))
    return y, np.asarray(likelihood, dtype=np.float64)


def _tilted(good: FloatArray, bad: FloatArray, tilt: FloatArray) -> FloatArray:
    """The root in [0, 1] of tilt y^2 + (good + bad - tilt) y - good, without cancellation."""
    linear = good + bad - tilt
    root = np.sqrt(np.maximum(linear**2 + 4 * tilt * good, 0.0))
    direct = 2 * good / np.maximum(linear + root, NEAR_ZERO)
    other = (root - linear) / np.where(linear < 0, 2 * tilt, 1.0)
    return np.minimum(np.where(linear < 0, other, direct), 1.0)


NO_BETS = 1e-200  # instead of a clock of 0 ...
NOT_BOUNDED = 1e100  # ... and the gap that this gives at least
MOST_CUTS = 8  # stages tried in the bound on sets where arms are left behind by their limits
NOMINATED = 20  # pulls of an arm from which on it may be nominated
LARGEST_ODDS = 100.0  # logarithm of a ratio of odds: no mean is nearer to 0 and 1 than a float is


class SwapBounds:
    """All rewards so far, the shares of delta, and the bounds that follow for a choice `top`."""

    top: BoolArray  # the arms chosen
    doubtful: BoolArray  # arms in open pairs
    mean: float  # of the arms in doubt

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator,
        pilot: int,
        retired: Retired | None,
        *,
        apart: bool,
    ) -> None:
        n, k = problem.n_arms, problem.k
        self.problem = problem
        self.retired = Retired(n) if retired is None else retired
        self.allowed = k * problem.epsilon
        self.graph = None if problem.constraint is None else ExchangeGraph(problem)
        swaps = log_swaps_of(problem)
        self.log_swaps = log_swaps(n, k) if swaps is None else np.array(swaps)
        self.swapped = self.log_swaps.size  # arms in a swap, at most
        # A pair that is the only one in doubt may lose all that is allowed.
        self.closed_at = self.allowed if self.swapped == 1 else 0.0
        self.pulls: IntArray = np.zeros(n, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n)
        self.squares: FloatArray = np.zeros(n)
        self.gaps: FloatArray = np.full((n, n), np.inf)  # [j, b]: theta_j - theta_b, j in S, b not
        self.near: BoolArray = np.zeros((2, n), dtype=np.bool_)  # known to lie near 0; near 1
        self.fallback = Fallback(problem, pilot, rng, apart=apart)
        self.leader: int | None = None  # the one of two arms that is far enough ahead to be chosen
        self.likelihood = Likelihood(n) if self.fallback.compares else None
        self._split_delta()
        self.unit = self._unit()
        self._fix_bets(apart=self.fallback.pilot_apart)

    def _fix_bets(self, *, apart: bool) -> None:
        """Fix the gaps that are bet on: only large ones where a lead decides."""
        mixture = GapMixture.of_large if self.fallback.leads else GapMixture.of
        self.mixture = mixture(self.unit)
        clocks = self.mixture.weights.size
        self.stages = Stages(self.problem.n_arms, clocks)
        if apart:  # no bets in the pilot
            self.stages.add(pilot_stage(self.problem.n_arms, clocks, self.fallback.pilot))

    def _split_delta(self) -> None:
        """Give every swap its share of what the fallback leaves of delta."""
        self.levels = self._levels(self.fallback.delta_left)
        self.edge_level = float(self._levels(self.fallback.delta_left_at_edge)[0])

    def _levels(self, delta: float) -> FloatArray:
        """ln(1 / delta_m) of one swap of m arms: sizes weigh 1/m, swaps of one size the same."""
        if delta <= 0:
            return np.full(self.swapped, np.inf)
        sizes = np.arange(1, self.swapped + 1)
        log_share = -np.log(sizes * (1 / sizes).sum())
        result: FloatArray = self.log_swaps - log_share - math.log(delta)
        return result

    def _unit(self) -> float:
        """The gap that is to be told apart from 0.

        A larger one with a small budget, or with small limits and swaps of several arms."""
        unit = self.allowed / self.swapped
        if not self.racing:
            return unit
        budget = self.problem.goal.budget
        if budget is not None:
            every = float(self.problem.declared_costs.sum())  # the cost of a pull of every arm
            unit = max(unit, 0.5 * math.sqrt(self.levels[0] * every / budget))
        if self.problem.limits is not None and self.swapped > 1:
            each = self.levels[-1] / self.swapped  # of a swap of all, for every arm of it
            unit = max(unit, 0.5 * math.sqrt(each / float(np.median(self.fallback.caps))))
        return unit

    @property
    def racing(self) -> bool:
        """Whether the fallback has left anything of delta."""
        return math.isfinite(self.levels[0])

    def pairs_above(self, gap: float) -> BoolArray:
        """[j, b]: j outside may be better than b inside by more than `gap`, and come in for it."""
        above = (self.gaps > gap) & self.outside[:, None] & self.top
        return above if self.graph is None else above & self.graph.swaps(self.top)

    @property
    def outside(self) -> BoolArray:
        """The remaining arms that are not chosen: no bound is about an arm that has retired."""
        return ~self.top & ~self.retired.arms

    def look(self, *, first: bool) -> None:
        """Check the kind of the rewards, and which arms lie near an end of the range."""
        led = self.fallback.leads
        self.fallback.look(self.pulls, self.sums, self.squares, first=first)
        if first:  # the pilot may have changed the shares of delta
            self._split_delta()
            self.likelihood = self.likelihood if self.fallback.compares else None
        if led and not self.fallback.leads:  # no bet was made in the pilot
            self._fix_bets(apart=True)
            self.stages.at[:] = self.stages.last
        self.leader = self.fallback.leader(self.sums)
        self._place()

    def count(self, arms: IntArray, draws: StageRewards) -> None:
        """Add rewards of these arms."""
        if self.likelihood is not None and self.pulls.any():  # not in the pilot
            known = StageRewards(self.pulls, self.sums, self.squares)
            self.likelihood.count(arms, draws, known, self.mean)
        self.pulls[arms] += draws.times
        self.sums[arms] += draws.sums
        self.squares[arms] += draws.squares

    def tighten(self) -> None:
        """Bound the pairs of the present choice by all rewards so far."""
        if self.racing:
            self._tighten()
        if self.likelihood is not None:
            self._compare(self.likelihood)
        if self.leader is not None:  # of two arms: the other one is not better by more than allowed
            gap = self.gaps[1 - self.leader, self.leader]
            self.gaps[1 - self.leader, self.leader] = min(gap, self.allowed)

    def _tighten(self) -> None:
        """Bound the pairs of the present choice by the last stage that both arms completed."""
        outside, inside = np.flatnonzero(self.outside), np.flatnonzero(self.top)
        at = self.stages.at
        q: int | IntArray = int(at[0])
        if (at != q).any():
            q = np.minimum(at[outside][:, None], at[inside])  # (j, b)
        near = self.near[:, outside, None] & self.near[:, None, inside]  # (side, j, b)
        level = np.where(near.any(0), self.edge_level, self.levels[0])
        down = self.stages.down(q, outside[:, None])  # (j, b, clock), or (j, 1, clock)
        up = self.stages.up(q, inside)  # (j, b, clock), or (b, clock)
        clock = np.maximum(self.stages.clock(q), NO_BETS)
        found = pair_gaps(down, up, clock, np.log(self.mixture.weights), level)
        found += self._rounded(clock)
        found[~(found <= NOT_BOUNDED)] = np.inf  # so that NaN can never close a pair
        here = np.ix_(outside, inside)
        self.gaps[here] = np.minimum(self.gaps[here], found)

    def alone(self) -> tuple[int, IntArray]:
        """The only arm that is chosen, or rejected, and all others that stay."""
        single = self.top if self.problem.k == 1 else ~self.top
        return int(np.flatnonzero(single)[0]), np.flatnonzero(~single & ~self.retired.arms)

    def _compare(self, likelihood: Likelihood) -> None:
        """Close the pairs of that arm whose likelihood ratio is large enough."""
        nominee, rivals = self.alone()
        if self.pulls[nominee] < NOMINATED:
            return
        likelihood.nominate(nominee)
        best, gap = self.problem.k == 1, self.allowed - 2 * self.problem.blur
        evidence = likelihood.evidence(nominee, rivals, gap, best=best)
        off = ROUNDED * (2 + self.stages.last) + LARGEST_ODDS * self.problem.blur  # a pull
        evidence -= off * (self.pulls[nominee] + self.pulls[rivals])
        closed = rivals[evidence >= -math.log(self.fallback.delta_compared)]
        pairs = (closed, nominee) if best else (nominee, closed)
        self.gaps[pairs] = np.minimum(self.gaps[pairs], self.allowed)

    def _rounded(self, clock: FloatArray) -> FloatArray:
        """The largest effect of rounding on the gap of a pair: docs/pairs.md, "Rounding"."""
        farthest = float(np.abs(self.sums / np.maximum(self.pulls, 1)).max())
        largest = 1 + farthest + self.levels.max() / clock[..., 0]  # the first clock is the slowest
        rounded: FloatArray = ROUNDED * (2 + self.stages.last) * largest + 2 * self.problem.blur
        return rounded

    def _place(self) -> None:
        """Find the arms near 0 or near 1: those with a large wealth against the contrary."""
        if not self.fallback.placed or self.fallback.edge_share == self.fallback.share:
            return
        enough = 2 * self.problem.n_arms / (self.fallback.placing * self.problem.delta)
        pulls, sums = self.pulls - self.fallback.skipped, self.sums - self.fallback.skipped_sums
        against = np.stack([log_wealth(pulls, sums), log_wealth(pulls, pulls - sums)])
        self.near |= against >= math.log(enough)

    def bound(self) -> float:
        """Bound on K R_T of the present choice among the remaining arms, at any time."""
        worst = max(0.0, self._worst_pair())
        if self.swapped > 1 and math.isfinite(worst):
            worst = min(worst, 1.0) if self.problem.rewards.has_range else worst
            worst = max(worst, self._set_bound())
        if not self.problem.rewards.has_range:
            return worst
        return min(worst, float(self.swapped))

    def _worst_pair(self) -> float:
        """The largest bound on the gap of a feasible swap of two arms."""
        if self.graph is None:
            return float(self.gaps[np.ix_(self.outside, self.top)].max())
        pairs = self.graph.swaps(self.top) & self.outside[:, None]
        return float(self.gaps[pairs].max(initial=0.0))

    def _set_bound(self) -> float:
        """Bound on the gap of swaps of two or more arms; arms in no open pair are in none."""
        if min((self.doubtful & self.outside).sum(), (self.doubtful & self.top).sum()) < 2:
            return 0.0
        at = self.stages.at[self.doubtful]
        found = self._set_bound_at(int(at.min()), self.doubtful)
        # without limits those that lag will catch up; what is left of a swap need not be feasible
        if self.problem.limits is None or self.graph is not None:
            return found
        return min([found, *map(self._set_bound_from, _some_of(np.unique(at)[1:]))])

    def _set_bound_from(self, q: int) -> float:
        """The same, by stage q of the arms that completed it.

        Any other arm of a swap adds at most its worst pair."""
        there = self.doubtful & (self.stages.at >= q)
        gaps = np.where(self.pairs_above(0.0), self.gaps, 0.0)  # (j, b)
        if self.problem.rewards.has_range:
            gaps = np.minimum(gaps, 1.0)
        worst = np.maximum(gaps.max(0), gaps.max(1))  # (arm,)
        behind = np.sort(worst[self.doubtful & ~there])[-self.swapped :].sum()
        pair = gaps[np.ix_(there, there)].max(initial=0.0)
        return float(behind + max(pair, self._set_bound_at(q, there)))

    def _set_bound_at(self, q: int, arms: BoolArray) -> float:
        """Bound on the gap of swaps of two or more of these arms by stage q."""
        outside, inside = np.flatnonzero(arms & self.outside), np.flatnonzero(arms & self.top)
        if min(outside.size, inside.size) < 2:
            return 0.0
        down, up = self.stages.down(q, outside), self.stages.up(q, inside)
        clock = np.maximum(self.stages.clock(q), NO_BETS)
        log_weights = np.log(self.mixture.weights)
        if self.graph is None:
            found = set_gap(down, up, clock, log_weights, self.levels)
        else:
            wealth = np.zeros((arms.size, clock.size))
            wealth[outside], wealth[inside] = down, up
            found = self._feasible_set_gap(wealth, arms, clock, log_weights)
        found += self.swapped * float(self._rounded(clock))
        return found if found <= NOT_BOUNDED else math.inf

    def _feasible_set_gap(
        self, wealth: FloatArray, arms: BoolArray, clock: FloatArray, log_weights: FloatArray
    ) -> float:
        """The same for feasible swaps of these arms."""
        assert self.graph is not None
        largest = partial(self.graph.largest, self.top, arms)
        return feasible_set_gap(wealth, ~self.top, clock, log_weights, self.levels, largest)


def _some_of(stages: IntArray) -> list[int]:
    """At most MOST_CUTS of these stages, spread evenly; the last one is among them."""
    places = np.linspace(0, stages.size - 1, min(stages.size, MOST_CUTS))
    return [int(stages[round(place)]) for place in places]
