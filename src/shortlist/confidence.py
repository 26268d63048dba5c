"""Confidence sequences: intervals for means that hold at all times at once, however one samples.

Every arm has an *evidence* against each value theta of its mean, the logarithm of a mixture of
likelihood ratios. It is that of a nonnegative supermartingale from 1, so by Ville's inequality it
ever exceeds ln(1/alpha) at the true mean with probability at most alpha. The interval is the set of
values where it does not. It depends on the number of pulls of the arm and on the mean reward only.

    rewards in [0, 1]   a Beta(1/2, 1/2) mixture of Bernoulli ratios, Krichevsky and Trofimov 1981
    scores of a test    the same against draws without replacement: docs/items.md, "Intervals"
    sub-Gaussian        a normal mixture, Robbins 1970

The factor (p/theta)^x ((1-p)/(1-theta))^(1-x) of a Bernoulli ratio is convex in x, so on [0, 1] it
is at most its chord, and the chord has expectation 1 where x has mean theta: the first holds for
all rewards in [0, 1], not for 0 and 1 alone.

While rewards are missing, those of every arm before its first gap are counted. Where slow means
bad, the rewards that have arrived are the good ones, and their mean is too large however many there
are. So rewards of an arm are counted in the order of its pulls, up to the first that is missing. A
confidence sequence holds at every length of that order at once, thus also at a length that depends
on the rewards: docs/late.md, "Interim results"."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import betaln, gammaln, lambertw, xlog1py, xlogy

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray
from shortlist.constraints import MatroidConstraint, best_set
from shortlist.problem import FixedConfidence, Goal, Items, Problem
from shortlist.reward_models import UNIT_SIGMA, Unranged


def counted_pulls(arms: IntArray, told: BoolArray, n_arms: int) -> BoolArray:
    """Which pulls are counted: (pulls,), given in the order in which they were asked for.

    `told` says which have a reward that was drawn; an arm is counted up to the first without."""
    missing = np.flatnonzero(~told)
    gaps = np.full(n_arms, arms.size)  # (n,) the first pull of every arm that is missing
    gaps[arms[missing[::-1]]] = missing[::-1]  # the last to be written is the first
    return np.arange(arms.size) < gaps[arms]


DELTA = 0.05  # of intervals, where the goal names none
JEFFREYS = 0.5  # both parameters of the beta mixture
TYPICAL = 30.0  # pulls at which the normal mixture is narrowest, about
HALVINGS = 62  # of [0, 1]: finer than floats next to 1
SPLITS = 64  # of the evidence between two arms, see `differences`
ROUNDINGS = 8  # of a mean besides those of its sum
SHIFTED = 2.0**-50  # rounding of an end in the user's units, as a share of the largest reward
OUT_OF_STEP = 0.1  # of delta: for differences of arms that are not counted equally far


class Mixture(Protocol):
    """The evidence about the means of some arms."""

    @property
    def least(self) -> FloatArray:
        """(n,) The evidence against the value that fits best."""

    def edges(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The ends of where the evidence is at most `level`, of shape (n, ...), rounded outward."""


@dataclass(frozen=True)
class BetaMixture:
    """ln B(S + 1/2, N - S + 1/2) / B(1/2, 1/2) - S ln theta - (N - S) ln(1 - theta)."""

    pulls: FloatArray  # (n,) N
    sums: FloatArray  # (n,) S, from 0 to N

    @property
    def least(self) -> FloatArray:
        """(n,) The evidence against the mean reward."""
        return self._against(self._centres)

    def edges(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By bisection to both sides of the mean reward, where the evidence is least."""
        mixture = self._like(level)
        inside = np.broadcast_to(mixture._centres, level.shape)
        low = mixture._outermost(np.zeros(level.shape), inside, level)
        high = mixture._outermost(np.ones(level.shape), inside, level)
        return low, high

    @property
    def _centres(self) -> FloatArray:
        return _means_of(self.sums, self.pulls)

    def _like(self, level: FloatArray) -> "BetaMixture":
        """The same with an axis for every one that `level` has more."""
        shape = (-1,) + (1,) * (level.ndim - 1)
        return BetaMixture(self.pulls.reshape(shape), self.sums.reshape(shape))

    def _outermost(self, outside: FloatArray, inside: FloatArray, level: FloatArray) -> FloatArray:
        return _outermost(self._against, outside, inside, level)

    def _against(self, theta: FloatArray) -> FloatArray:
        failures = self.pulls - self.sums
        mixture = _log_mixture(self.sums, failures)
        return mixture - xlogy(self.sums, theta) - xlog1py(failures, -theta)


def _means_of(sums: FloatArray, pulls: FloatArray) -> FloatArray:
    """The mean rewards, 1/2 where nothing was pulled."""
    means = np.full(sums.shape, 0.5)
    np.divide(sums, pulls, out=means, where=pulls > 0)
    return means


def _log_mixture(successes: FloatArray, failures: FloatArray) -> FloatArray:
    """Ln B(S + 1/2, N - S + 1/2) / B(1/2, 1/2)."""
    mixed: FloatArray = betaln(successes + JEFFREYS, failures + JEFFREYS)
    return mixed - betaln(JEFFREYS, JEFFREYS)


def _outermost(
    against: Callable[[FloatArray], FloatArray],
    outside: FloatArray,
    inside: FloatArray,
    level: FloatArray,
) -> FloatArray:
    """Where the evidence comes down to `level` on the way, on the side that exceeds it."""
    whole = against(outside) <= level
    outer, inner = outside, inside
    for _ in range(HALVINGS):
        middle = (outer + inner) / 2
        within = against(middle) <= level
        outer, inner = np.where(within, outer, middle), np.where(within, middle, inner)
    return np.where(whole, outside, outer)


@dataclass(frozen=True)
class PopulationMixture:
    """The evidence about the mean of a population that is drawn from without replacement.

    The same mixture as above, against the product of the chances that the draws had: with A the sum
    over all M scores, the next score has mean (A - S) / (M - N). Scores between 0 and 1 have a
    product that is a little larger, as `_log_product` says. docs/items.md has the proof."""

    pulls: FloatArray  # (n,) N
    sums: FloatArray  # (n,) S, from 0 to N
    sizes: FloatArray  # (n,) M, at least N
    binary: bool  # whether all scores are 0 or 1

    def edges(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The ends of where the evidence is at most `level`, (n,) each, rounded outward."""
        sizes = np.maximum(self.sizes, 1)
        least, most = self.sums / sizes, (sizes - self._failures) / sizes
        inside = np.clip(_means_of(self.sums, self.pulls), least, most)
        ends = (_outermost(self._against, end, inside, level) for end in (least, most))
        low, high = ends
        return low, high

    @property
    def _failures(self) -> FloatArray:
        return self.pulls - self.sums

    def _against(self, theta: FloatArray) -> FloatArray:
        sizes = np.maximum(self.sizes, 1)
        chances = self._log_product(sizes * theta, self.sums)
        chances = chances + self._log_product(sizes * (1 - theta), self._failures)
        draws = gammaln(sizes + 1) - gammaln(sizes - self.pulls + 1)
        return _log_mixture(self.sums, self._failures) - chances + draws

    def _log_product(self, total: FloatArray, taken: FloatArray) -> FloatArray:
        """At least the sum of x ln(A - S), over the scores x taken one by one from the total A.

        Exactly ln A (A - 1) ... if every x is 1. Else S is more than its value after the score
        less 1, so an integral that begins at -1 is larger."""
        left = np.maximum(total - taken, 0.0) + 1
        if self.binary:
            return np.asarray(gammaln(left + taken) - gammaln(left), dtype=np.float64)
        return np.asarray(_integral(left + taken) - _integral(left), dtype=np.float64)


def _integral(end: FloatArray) -> FloatArray:
    """Of ln."""
    result: FloatArray = xlogy(end, end) - end
    return result


@dataclass(frozen=True)
class NormalMixture:
    """N^2 (mean - theta)^2 / (2 sigma^2 (N + rho)) - ln((N + rho) / rho) / 2, with rho = 30."""

    pulls: FloatArray  # (n,) N
    means: FloatArray  # (n,) whatever where N = 0

    @property
    def least(self) -> FloatArray:
        """(n,) The evidence against the mean reward."""
        return -np.log1p(self.pulls / TYPICAL) / 2

    def edges(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solved for theta; all numbers where nothing was pulled."""
        shape = (-1,) + (1,) * (level.ndim - 1)
        pulls, means = self.pulls.reshape(shape), self.means.reshape(shape)
        spare = np.maximum(0.0, level - self.least.reshape(shape))
        with np.errstate(divide="ignore"):
            radii = UNIT_SIGMA * np.sqrt(2 * (pulls + TYPICAL) * spare) / pulls
        return means - radii, means + radii


def intervals(
    problem: Problem, pulls: IntArray, means: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval for every mean in the user's units; `means` are those of the pulls, NaN
    where there is none.

    With probability at least 1 - delta all of them hold at all times: each with 1 - delta / n.
    Undeclared rewards are treated as rewards in [0, 1]; if one is not, intervals are infinite, as
    they are where the variance is unknown. On a test set the mean is that over all items, which are
    drawn without replacement. Scores known before count as scored, so an arm known on all items has
    its exact mean."""
    if problem.items is not None:
        return _over_items(problem, problem.items, pulls, means)
    if isinstance(problem.rewards, Unranged) or not problem.rewards.knows_spread:
        return np.full(problem.n_arms, -np.inf), np.full(problem.n_arms, np.inf)
    level = np.full(problem.n_arms, log(problem.n_arms / delta_of(problem.goal)))
    ends = mixture_of(problem, pulls, means).edges(level)
    low, high = (_user_scale(problem, end) for end in ends)
    if problem.rewards.shift == 0:
        return low, high
    least, most = problem.rewards.support
    margin = SHIFTED * max(abs(least), abs(most))
    return np.maximum(low - margin, least), np.minimum(high + margin, most)


def _over_items(
    problem: Problem, items: Items, pulls: IntArray, means: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Intervals for means over all items: those of the items not known before, and what is known.

    The pulls of an arm are draws without replacement from the items not known before."""
    if items.widths is not None or items.sampled:
        return _of_whole_draws(problem, items, pulls, means)
    rewards = problem.rewards
    known = items.known_scores(problem.n_arms)
    rest = (items.size - known.counts).astype(np.float64)
    unit = (np.nan_to_num(means, nan=rewards.shift) - rewards.shift) / rewards.scale
    counts = pulls.astype(np.float64)
    sums = counts * np.clip(unit, 0.0, 1.0)
    level = np.full(problem.n_arms, log(problem.n_arms / delta_of(problem.goal)))
    ends = PopulationMixture(counts, sums, rest, rewards.is_binary).edges(level)
    low, high = ((known.sums + rest * _user_scale(problem, end)) / items.size for end in ends)
    certain_low, certain_high = _left_open(problem, items, pulls, means)
    complete = counts == rest
    low, high = _outward(problem, np.maximum(low, certain_low), np.minimum(high, certain_high))
    return np.where(complete, certain_low, low), np.where(complete, certain_high, high)


def _of_whole_draws(
    problem: Problem, items: Items, pulls: IntArray, means: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same where groups of cells are drawn whole, or items are a sample of a distribution.

    Scores are counted by position, known ones included, up to the first that is missing: the first
    positions are a random sample of all, and those that are not known need not be. Scores of an
    incomplete group are not counted; each of them may have been 0 or 1."""
    rewards = problem.rewards
    unit = items.unit(rewards.shift, rewards.scale)
    widths = np.ones(items.size, dtype=np.int64) if items.widths is None else items.widths
    ends_at = np.cumsum(widths)
    reached = items.reached(pulls)
    complete: IntArray = np.searchsorted(ends_at, reached, side="right")
    covered = np.append(0, ends_at)[complete]  # positions of complete groups: (arms,)
    drawn = np.where(pulls > 0, pulls * (np.nan_to_num(means) - rewards.shift), 0.0)
    gained = drawn / rewards.scale
    known = unit.by_position(problem.n_arms)
    inside = np.arange(items.size) < covered[:, None]
    beyond = pulls - (inside & np.isnan(known)).sum(1)  # pulls in an incomplete group
    gained = gained + np.where(inside, np.nan_to_num(known), 0.0).sum(1)
    largest = float(widths.max())
    counts = complete.astype(np.float64)
    sums = [np.clip(each / largest, 0.0, counts) for each in (gained - beyond, gained)]
    level = np.full(problem.n_arms, log(problem.n_arms / delta_of(problem.goal)))
    if items.sampled:
        low, high = BetaMixture(counts, sums[0]), BetaMixture(counts, sums[1])
        ends = low.edges(level)[0], high.edges(level)[1]
    else:
        sizes = np.full(problem.n_arms, float(widths.size))
        few, many = (PopulationMixture(counts, each, sizes, binary=False) for each in sums)
        ends = few.edges(level)[0], many.edges(level)[1]
    found = [_user_scale(problem, np.clip(end / items.fullness, 0.0, 1.0)) for end in ends]
    if items.sampled:
        return found[0], found[1]
    certain_low, certain_high = _left_open(problem, items, pulls, means)
    both = np.maximum(found[0], certain_low), np.minimum(found[1], certain_high)
    exact = both[0] == both[1]
    outer = _outward(problem, *both)
    return np.where(exact, both[0], outer[0]), np.where(exact, both[1], outer[1])


def _outward(problem: Problem, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends with the largest rounding error of a mean over all items, within the range."""
    assert problem.items is not None
    least, most = problem.rewards.support
    share = 2.0**-52 if problem.rewards.is_binary else max(ROUNDED, problem.items.size * 2.0**-53)
    margin = share * max(abs(least), abs(most))
    return np.maximum(low - margin, least), np.minimum(high + margin, most)


def _left_open(
    problem: Problem, items: Items, pulls: IntArray, means: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means over all items if those not scored are as bad, or as good, as scores can be."""
    least, most = problem.rewards.support
    known = items.known_scores(problem.n_arms)
    seen = known.sums + np.where(pulls > 0, pulls * means, 0.0)
    left = items.size - known.counts - pulls
    low: FloatArray = (seen + left * least) / items.size
    high: FloatArray = (seen + left * most) / items.size
    return low, high


class Estimates(NamedTuple):
    """The mean of every arm as it is shown, and the interval of each: (n,) in the user's units."""

    means: FloatArray  # NaN where nothing is known
    low: FloatArray
    high: FloatArray


def estimates(problem: Problem, pulls: IntArray, sums: FloatArray) -> Estimates:
    """All that is shown of the means, by the pulls and, on a test set, the scores known before."""
    means = problem.means(pulls, sums)
    drawn = np.divide(sums, pulls, out=np.full(sums.size, np.nan), where=pulls > 0)
    low, high = intervals(problem, pulls, drawn)
    if problem.traffic is not None:  # the level moves: nothing is proved about single arms
        low, high = np.full(sums.size, -np.inf), np.full(sums.size, np.inf)
    if problem.items is not None and not problem.items.sampled:
        exact = high == low  # every cell has its score: as it is, not rounded twice
        low, high = np.where(exact, means, low), np.where(exact, means, high)
    return Estimates(means, low, high)


def places(low: FloatArray, high: FloatArray, k: int) -> tuple[str, ...]:
    """Which arms the intervals put among the k best, or not.

    In: fewer than k others can be above. Out: k others must be above."""
    # without the arm itself, which is above its own lower end unless its mean is known
    may_be_above = low.size - np.searchsorted(np.sort(high), low, side="right") - (high > low)
    must_be_above = low.size - np.searchsorted(np.sort(low), high, side="right")
    inside, outside = may_be_above < k, must_be_above >= k
    return tuple(np.where(inside, "in", np.where(outside, "out", "undecided")).tolist())


def separations(low: FloatArray, high: FloatArray, terms: int = 0) -> tuple[int, ...]:
    """Every k at which the k best means are above all others, wherever they lie in the intervals.

    These hold together, so all k do. Means of up to `terms` numbers that are equal need not be
    equal floats."""
    ends = np.concatenate([low, high])
    rounded = 2.0**-52 * (ROUNDINGS + terms) * np.abs(ends[np.isfinite(ends)]).max(initial=0.0)
    inward = np.sort(low)[::-1][:-1]  # the k-th largest lower end, for k = 1 ... n - 1
    outward = np.sort(high)[::-1][1:] + rounded  # the (k + 1)-th largest upper end
    # k arms have lower ends above the upper ends of the n - k others
    return tuple((np.flatnonzero(inward > outward) + 1).tolist())


MOST_PLACED = 300  # arms under a constraint whose places are found one by one


def feasible_places(
    problem: Problem, low: FloatArray, high: FloatArray, stay: BoolArray
) -> tuple[str, ...]:
    """The same under a constraint, of the arms that `stay`; large means are the good ones.

    The best basis of a matroid has an arm at all means within the intervals if it has it where the
    arm is at its lower end and all others at their upper ends. Other families, and many arms:
    nothing is known."""
    family, several = problem.constraint, int(stay.sum())
    if not isinstance(family, MatroidConstraint) or several > MOST_PLACED:
        return ("undecided",) * several
    where = []
    for arm in np.flatnonzero(stay).tolist():
        inside = _in_best(problem, family, _but_one(high, arm, low[arm]), arm, stay, last=True)
        outside = not _in_best(problem, family, _but_one(low, arm, high[arm]), arm, stay)
        where.append("in" if inside else "out" if outside else "undecided")
    return tuple(where)


def _in_best(
    problem: Problem,
    family: MatroidConstraint,
    values: FloatArray,
    arm: int,
    stay: BoolArray,
    *,
    last: bool = False,
) -> bool:
    """Whether the best feasible set has an arm, which comes first or `last` among equal ones."""
    turn = np.zeros(values.size)
    turn[arm] = 1 if last else -1
    order = np.lexsort((turn, -values, ~stay))
    weights = np.empty(values.size)
    weights[order] = np.arange(values.size, 0, -1)
    return bool(best_set(family, weights, problem.k)[arm])


def _but_one(values: FloatArray, arm: int, value: float) -> FloatArray:
    return np.where(np.arange(values.size) == arm, value, values)


def differences(
    problem: Problem, pulls: IntArray, means: FloatArray, control: int, in_step: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval for how much every arm is above `control`, in the user's units.

    With probability at least 1 - delta all n - 1 hold at all times: each with 1 - delta / (n - 1).
    The product of the evidence about two arms is evidence about the pair of them, so that the
    interval is mostly narrower than one made of the intervals of two means.

    Where an arm is `in_step` with the control, both are counted up to the end of the same batch.
    Then the product is a supermartingale, batch by batch. Where they are not, because results are
    late or one of them left, each may be counted up to any pull, whatever came out. Then the
    largest product at any two times counts: of independent U and V with P(U >= u) <= 1/u, as
    Ville's inequality has it,

        P(UV >= x) <= E min(1, V / x) <= (1 + ln x) / x.

    The former are allowed to fail with nine tenths of delta, the latter with the last tenth."""
    ends = _pairs(problem, pulls, means, control, in_step)
    scale = problem.rewards.scale
    low = (ends.arm_low - ends.control_high).min(axis=1)
    high = (ends.arm_high - ends.control_low).max(axis=1)
    return _but(control, low * scale), _but(control, high * scale)


def ratios(
    problem: Problem, pulls: IntArray, means: FloatArray, control: int, in_step: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval for every mean divided by that of `control`; of rewards from 0 on.

    They hold together with `differences`, which rest on the same pairs of values."""
    ends = _pairs(problem, pulls, means, control, in_step)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.nan_to_num(ends.arm_low / ends.control_high, nan=0.0).min(axis=1)
        high = np.nan_to_num(ends.arm_high / ends.control_low, nan=np.inf, posinf=np.inf).max(
            axis=1
        )
    return _but(control, low, at=1.0), _but(control, high, at=1.0)


@dataclass(frozen=True)
class _Pairs:
    """Rectangles that together cover all pairs of means with too little evidence against them.

    The evidence of a pair is a sum. Where the arm has at most s_(j+1) of it and at least s_j, the
    control has at most the rest above s_j."""

    arm_low: FloatArray  # (n, SPLITS) on the unit scale, as all
    arm_high: FloatArray
    control_low: FloatArray
    control_high: FloatArray


def _pairs(
    problem: Problem, pulls: IntArray, means: FloatArray, control: int, in_step: BoolArray
) -> _Pairs:
    level = _pair_levels(problem, in_step)
    arms = mixture_of(problem, pulls, means)
    most = level - arms.least[control]
    splits = np.linspace(arms.least, np.maximum(arms.least, most), SPLITS + 1, axis=1)
    arm_low, arm_high = arms.edges(splits[:, 1:])
    chosen = np.full(problem.n_arms, control)
    controls = mixture_of(problem, pulls[chosen], means[chosen])
    control_low, control_high = controls.edges(level[:, None] - splits[:, :-1])
    return _Pairs(arm_low, arm_high, control_low, control_high)


def _pair_levels(problem: Problem, in_step: BoolArray) -> FloatArray:
    """(n,) The evidence about a pair of arms that is too much, see `differences`."""
    risk = delta_of(problem.goal) / max(1, problem.n_arms - 1)
    together = log(1 / ((1 - OUT_OF_STEP) * risk))
    # (1 + l) exp(-l) = risk solved for l = ln x, the larger solution, and rounded up
    apart = -1 - float(lambertw(-OUT_OF_STEP * risk / exp(1), k=-1).real)
    return np.where(in_step, together, apart * (1 + ROUNDED))


def mixture_of(problem: Problem, pulls: IntArray, means: FloatArray) -> Mixture:
    """The evidence about all arms on the unit scale."""
    rewards = problem.rewards
    unit = (np.nan_to_num(means, nan=rewards.shift) - rewards.shift) / rewards.scale
    counts = pulls.astype(np.float64)
    if rewards.has_range:
        return BetaMixture(counts, counts * np.clip(unit, 0.0, 1.0))
    return NormalMixture(counts, unit)


def delta_of(goal: Goal) -> float:
    """The probability with which intervals may fail."""
    return goal.delta if isinstance(goal, FixedConfidence) else DELTA


def _user_scale(problem: Problem, values: FloatArray) -> FloatArray:
    return values * problem.rewards.scale + problem.rewards.shift


def _but(control: int, values: FloatArray, at: float = 0.0) -> FloatArray:
    """The same, with what the control is against itself."""
    values = values.copy()
    values[control] = at
    return values
