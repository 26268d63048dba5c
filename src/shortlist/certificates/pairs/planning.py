"""Whom to pull where likelihoods are to tell one arm, the nominee, from all its rivals.

The nominee gets the share of the pulls that it has in what is known of the rivals least told from
it, and these get the rest: information-directed selection (You, Qin, Wang, Yang 2023). Nothing here
bears on the guarantee.

What a race knows of its arms, and how it fixes its next stage from that.

Nothing here bears on the guarantee: a stage may be fixed in any way from rewards of earlier stages.
The constants were set on seeds other than those of docs/pairs.md; most of them matter by a few
percent."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.pairs.bound import Stage
from shortlist.certificates.pairs.likelihood import information, least_favourable
from shortlist.reward_models import UNIT_SIGMA, RewardModel

FEW = 4  # rivals whose evidence settles the nominee's share,
SHARES = 0.1, 0.9  # which lies between these
MARGIN = 0.002  # that means keep from 1
NOTHING = 1e-12  # instead of no evidence


@dataclass(frozen=True, slots=True)
class Chase:
    """What is known of each rival, in nats: (rival,)."""

    told: FloatArray  # against "the nominee should change places with it"
    share: FloatArray  # that the nominee's rewards have in it

    @classmethod
    def of(
        cls,
        pulls: IntArray,
        means: FloatArray,
        nominee: int,
        rivals: IntArray,
        gap: float,
        *,
        best: bool,
    ) -> "Chase":
        """The log likelihood ratio against the least favourable means; `best`: it is chosen."""
        inside = np.array([nominee]) if best else rivals
        outside = rivals if best else np.array([nominee])
        ratio = pulls[inside] / np.maximum(pulls[outside], 1)
        low = least_favourable(means[inside], means[outside], gap, ratio)
        high = np.minimum(low + gap, 1 - MARGIN)
        of_inside = (pulls[inside] + 1) * information(means[inside], low)
        of_outside = (pulls[outside] + 1) * information(means[outside], high)
        told = of_inside + of_outside + NOTHING
        return cls(told, (of_inside if best else of_outside) / told)

    def beside(self, own: int, times: IntArray, rng: np.random.Generator) -> IntArray:
        """Which rivals are pulled, so many `times` each, beside `own` pulls of the nominee."""
        order = np.lexsort((rng.random(self.told.size), self.told))
        share = float(np.clip(self.share[order[:FEW]].mean(), *SHARES))
        wanted = own * (1 - share) / share
        before = np.cumsum(times[order]) - rng.random() * times[order]  # rounded by lot
        return order[before < wanted]


LEAST_SHIFT = 1.4, 2.2  # the least gap betted on, if the safety net is far away and if it is near
SETS_SHIFT = 1.4  # the same where swaps of several arms are to be excluded
NEAR, FAR = 1.1, 2.0  # how far it is: what its samples prove of a tie, over what is to be proved
STRONGEST = 1.2  # of all bets on arms in doubt: stronger ones hurt those that change sides later
RELIEF = 1 / 3  # power of the doubt by which bets on other arms may be stronger
LEAST_DOUBT = 0.03
DOUBTED = 2.0  # times the squared distance in standard errors is the negative logarithm of a doubt
TIED = 0.5  # pulls inside per pull outside, for the bets that only a change of sides would need
RATIOS = np.geomspace(0.2, 5.0, 17)  # tried, of pulls inside the choice to pulls outside
CAUTION = 0.55  # power of the best ratio that is used: the choice may still change
PRIOR = 4.0, 30.0  # least and most pulls that the common mean of the arms is worth
OWN_MEAN = 2.0  # pulls that it is worth where doubts are told
OWN_VARIANCE = 10.0  # pulls that the common variance is worth
LEAST_VARIANCE = 1e-4  # of a guess
ENOUGH = 3.0  # times what proves a tie on average: for so many pulls limited rounds are planned,
STEEPNESS = 1.8  # which are spent as this power of the rounds
PART = 0.15  # of a large request, as a share of all pulls of an arm before it ...
FIRST_PART = 10.0  # ... or of so many, if there were fewer
LEAST_LOOK = 0.02  # share of a usual request that one has at least, however near the end seems
# pulls beyond one of every arm that few arms without a range have in the first request: otherwise a
# sigma that was declared far too small would certify before its test can see that
TESTABLE = 12
WAITED = 4.0  # times an arm's pulls until its limit that others may have left to end with it
LAST_PART = 0.05  # share of the net's sample that is drawn in one stage if it is all that is left


@dataclass(frozen=True, slots=True)
class Pace:
    """How the pulls are cut into requests."""

    batch: int = 4  # pulls in the first requests
    growth: float = 0.02  # of later ones, as a share of what was spent
    rounds: int | None = None  # requests at most; overrides the other two
    least: int = 0  # pulls in every request; 0 if that is not asked for

    @property
    def together(self) -> bool:
        """Whether requests are few and large: each takes all arms in doubt equally far."""
        return self.rounds is not None or self.least > 0


@dataclass(frozen=True)
class Standing:
    """Counts and sums of all arms, and which of them are chosen and in doubt."""

    pulls: IntArray
    sums: FloatArray
    squares: FloatArray
    rewards: RewardModel
    top: BoolArray
    open: BoolArray
    swapped: int  # arms in a swap, at most
    edge: IntArray  # the best arm outside, the worst inside
    mean: float  # of the open arms
    unit: float  # the gap that is to be told from 0
    multiples: FloatArray  # (clock,) gaps betted on, in units of the least
    level: float  # ln of the capital that is needed against one pair
    sample: int  # pulls of an arm in the net's sample
    planned: IntArray  # pulls of every arm in all stages so far
    left: IntArray  # pulls until its sample is complete, or its limit is reached
    costs: FloatArray | None = None  # (arm,) of a pull, where they differ
    limited: bool = False  # some arms have limits
    worth: float = math.inf  # pulls of an arm before it is worth while to look again

    def weight(self) -> float:
        """Pulls that the common mean is worth: variance within arms over variance between."""
        seen = self.open & (self.pulls > 0)
        pulls, sums = self.pulls[seen], self.sums[seen]
        total = pulls.sum()
        if total <= pulls.size or pulls.size < 2:
            return PRIOR[1]
        within = (self.squares[seen] - sums**2 / pulls).sum() / (total - pulls.size)
        scatter = (sums**2 / pulls).sum() - sums.sum() ** 2 / total
        between = scatter - (pulls.size - 1) * within
        between /= total - (pulls**2).sum() / total
        return float(np.clip(within / max(between, 1e-12), *PRIOR))

    def guess(self) -> "Guess":
        """Means and noise as they seem to be."""
        weight = self.weight()
        means = centres(self.pulls, self.sums, self.mean, weight)
        variances = np.maximum(means * (1 - means), LEAST_VARIANCE)
        noise = 1.0
        if not self.rewards.has_range:
            variances = np.full(means.size, UNIT_SIGMA**2)
        elif not (self.rewards.is_binary or (self.sums == self.squares).all()):
            own = self._own_variances()[self.edge]
            noise = min(1.0, float((own / variances[self.edge]).max()))
        return Guess(weight, means, noise, noise * variances)

    def _own_variances(self) -> FloatArray:
        """Variances of the rewards seen, drawn to that of all arms: (arm,)."""
        scatter = np.maximum(self.squares - self.sums**2 / np.maximum(self.pulls, 1), 0.0)
        pooled = (scatter.sum() + 0.25) / (np.maximum(self.pulls - 1, 0).sum() + 1)
        result: FloatArray = (scatter + OWN_VARIANCE * pooled) / (self.pulls + OWN_VARIANCE)
        return result

    def doubts(self, guess: "Guess") -> FloatArray:
        """How likely every arm is to change sides, roughly: (arm,) from 0 to 1."""
        outside, inside = self.edge
        means = centres(self.pulls, self.sums, self.mean, OWN_MEAN)  # (arm,)
        squares = guess.variances / (self.pulls + OWN_MEAN)  # (arm,) of standard errors
        across = np.where(self.top, outside, inside)  # (arm,)
        distances = (means - means[across]) ** 2 / (squares + squares[across])
        result: FloatArray = np.exp(-DOUBTED * distances)
        return result


@dataclass(frozen=True, slots=True)
class Guess:
    """What the means and variances of all arms seem to be."""

    weight: float  # pulls that the common mean is worth in them
    means: FloatArray  # (arm,)
    noise: float  # variance over that of 0/1 rewards
    variances: FloatArray  # (arm,)


def centres(pulls: IntArray, sums: FloatArray, mean: float, weight: float) -> FloatArray:
    """Means of some arms, drawn to the common mean."""
    result: FloatArray = (sums + weight * mean) / (pulls + weight)
    return result


def next_stage(standing: Standing, pace: Pace, request: int) -> Stage:
    """Fix a stage that is all of request number `request`."""
    return stage_with(next_times(standing, pace, request), standing)


def next_times(standing: Standing, pace: Pace, request: int) -> IntArray:
    """Pulls of every arm in request number `request`."""
    guess = standing.guess()
    ratios = _ratios(standing, guess, standing.doubts(guess))
    return _times(standing, ratios, pace, request)


def parts_of(times: IntArray, standing: Standing) -> list[IntArray]:
    """A large request, cut into stages that grow: the bets of each are fixed when the one before
    is booked, though the pulls of all of them are made at once."""
    pulled = times[standing.open & (times > 0)]
    before = max(FIRST_PART, float(standing.planned[standing.open].min()))
    growth = math.log1p(float(pulled.max()) / before)
    cuts = math.ceil(growth / math.log1p(PART))
    ends = np.expm1(growth * np.arange(1, cuts + 1) / cuts)  # (cut,)
    if standing.limited:
        pulled = pulled[WAITED * pulled >= pulled.max()]
    fewest = int(pulled.min())  # in every part at least one of them
    shares = np.unique(np.rint(np.append(0.0, ends / ends[-1]) * fewest)) / fewest
    done = np.rint(shares[:, None] * times).astype(np.int64)  # (cut, arm)
    if standing.limited:  # an arm with few pulls left makes them in the first parts, and then stops
        for before, now in pairwise(done):
            np.clip(now, before + 1, times, out=now)
    return list(np.diff(done, axis=0))


def stage_with(times: IntArray, standing: Standing) -> Stage:
    """Fix the bets of a stage of so many pulls an arm."""
    guess = standing.guess()
    doubts = standing.doubts(guess)
    edge_times = np.maximum(times[standing.edge], 1)  # (outside, inside)
    low, high = _centres(standing, guess, edge_times)
    advance = _advance(standing, guess, times, low[standing.edge[1]], high[standing.edge[0]])
    if standing.rewards.has_range:
        strongest = _strongest(guess, doubts)
        advance = np.minimum(advance, (strongest * times)[times > 0].min())
    shifts = guess.means - low, high - guess.means
    return Stage(times, advance, standing.mean, guess.weight, *shifts)


def _strongest(guess: Guess, doubts: FloatArray) -> FloatArray:
    """The strongest bet on every arm: (arm,).

    What is gained beyond `STRONGEST` needs centres that a small variance does not allow."""
    if guess.noise < 1:
        return np.full(doubts.size, STRONGEST)
    result: FloatArray = STRONGEST * np.maximum(doubts, LEAST_DOUBT) ** -RELIEF
    return result


def pilot_stage(n_arms: int, clocks: int, times: int) -> Stage:
    """A stage without bets, for all arms alike."""
    every = np.full(n_arms, times, dtype=np.int64)
    nowhere = np.zeros(n_arms)
    return Stage(every, np.zeros(clocks), 0.5, PRIOR[1], nowhere, nowhere)


def _centres(
    standing: Standing, guess: Guess, edge_times: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Where an arm's bets up and down are centred: (arm,) each.

    On the least favourable means against the edge; for the bets that only a change of sides would
    need, on those of a tie. Where the variance is small, a centre off the mean costs more."""
    if not standing.rewards.has_range or guess.noise < 1:
        return guess.means, guess.means
    means, top = guess.means, standing.top
    outside, inside = means[standing.edge]
    better = np.stack([means, np.where(top, means, np.maximum(means, inside))])  # (bet, arm)
    worse = np.stack([np.where(top, np.minimum(means, outside), means), means])
    needed = np.stack([top, ~top])  # (bet, arm)
    ratio = np.where(needed, edge_times[1] / edge_times[0], TIED)
    low, high = least_favourable(better, worse, standing.unit, ratio)
    return low, np.minimum(high + standing.unit, 1.0)


def _ratios(standing: Standing, guess: Guess, doubts: FloatArray) -> FloatArray:
    """Pulls of the arms relative to each other: (arm,).

    Those that may well change sides get as many as the side that gets more. First pulls are as
    many for all arms, and so are those of two arms: the net counts on both."""
    if not standing.pulls.any() or standing.pulls.size == 2:
        return np.ones(standing.pulls.size)
    ratio = _best_ratio(standing, guess) ** CAUTION
    larger = max(ratio, 1 / ratio)
    by_side = np.where(standing.top == (ratio > 1), larger, 1.0)  # (arm,)
    result: FloatArray = np.maximum(by_side, larger**doubts) / _dearness(standing)
    return result


def _dearness(standing: Standing) -> FloatArray:
    """The square roots of the prices, relative to the mean root of the open arms: (arm,).

    Var/N summed over two arms is least for what they cost where N is as 1 over this."""
    if standing.costs is None:
        return np.ones(standing.open.size)
    roots = np.sqrt(standing.costs)
    result: FloatArray = roots / roots[standing.open].mean()
    return result


def _best_ratio(standing: Standing, guess: Guess) -> float:
    """Pulls inside per pull outside that settle the edge with the fewest pulls of open arms."""
    n_inside = (standing.open & standing.top).sum()
    n_outside = (standing.open & ~standing.top).sum()
    rates = _rates(standing, guess)  # (ratio,)
    return float(RATIOS[(rates / (n_inside * RATIOS + n_outside)).argmax()])


def _rates(standing: Standing, guess: Guess) -> FloatArray:
    """What is learnt of the edge by one pull outside and so many inside: (ratio,), up to a factor.

    Rewards without a range have the same variance in all arms."""
    outside, inside = guess.means[standing.edge]
    if not standing.rewards.has_range:
        return RATIOS / (1 + RATIOS)
    low = least_favourable(inside, outside, standing.unit, RATIOS)
    high = np.minimum(low + standing.unit, 1.0)
    result: FloatArray = RATIOS * information(inside, low) + information(outside, high)
    return result


def _times(standing: Standing, ratios: FloatArray, pace: Pace, request: int) -> IntArray:
    """Pulls of every arm: those past half of their sample are slowed, so that all end together."""
    size = max(_size(standing, ratios, pace, request), _testable(standing))
    left = np.maximum(standing.left, 0)
    if standing.limited:
        times = _limited_times(standing, ratios, size)
        return times if times[standing.open].sum() >= pace.least else left
    most = left[standing.open].max()
    if most <= max(LAST_PART * standing.sample, size):
        return left
    wanted = size * ratios  # (arm,)
    slowed = np.minimum(wanted, size * left / most)
    wanted = np.where(2 * left < standing.sample, slowed, wanted)
    times = _rounded(wanted, left)
    return times if times[standing.open].sum() >= pace.least else left


def _rounded(wanted: FloatArray, left: IntArray) -> IntArray:
    """Whole pulls of every arm: at least one, where any are left."""
    return np.minimum(np.maximum(1, np.rint(wanted)).astype(np.int64), left)


def _shares_of_limits(standing: Standing) -> FloatArray:
    """Pulls of the arms relative to each other if all are to end together: (arm,).

    A limit beyond what proves a tie of the worst variance is no limit."""
    variance = 0.25 if standing.rewards.has_range else UNIT_SIGMA**2
    enough = 2 * variance * standing.level / standing.unit**2
    limits = np.minimum(standing.planned + standing.left, enough)  # (arm,)
    highest = limits[standing.open].max()
    result: FloatArray = np.clip(limits / highest, 1 / WAITED, 1.0)
    return result


def _limited_times(standing: Standing, ratios: FloatArray, size: float) -> IntArray:
    """Pulls of every arm where arms have limits: from half of a limit on, arms end together.

    Clocks are common, so an arm at its limit cannot follow the others, and a swap is bounded by the
    last stage that all its arms completed. An arm with far fewer pulls left than others is not
    waited for."""
    left = np.maximum(standing.left, 0)
    some = standing.open & (left > 0)
    most = int(left[some].max())
    waited = some & (WAITED * left >= most)
    wanted = size * ratios * _shares_of_limits(standing)  # (arm,)
    if (2 * left < standing.planned + left)[waited].any():
        size = max(size, most / left[waited].min())
        wanted = size * left / most
    return left if most <= size else _rounded(wanted, left)


def _size(standing: Standing, ratios: FloatArray, pace: Pace, request: int) -> float:
    """Pulls of an arm with ratio 1."""
    usual = float((standing.planned / ratios)[standing.open].min())
    shares = ratios[standing.open].sum()
    least = float((pace.least + standing.open.sum() / 2) / shares)  # before rounding
    if pace.rounds is not None:
        share: float = (request / pace.rounds) ** STEEPNESS
        aim = share * _enough(standing)
        return max(1.0, least * (pace.least > 0), aim - usual)
    size = max(pace.batch, pace.growth * standing.pulls.sum()) // shares
    size = max(size, pace.growth * usual)
    size = min(size, max(standing.worth, LEAST_LOOK * size))
    if pace.least > 0:
        size = max(size, least)
    return max(1.0, float(size))


def _testable(standing: Standing) -> float:
    """Pulls of an arm that are needed to test a declared sigma, in the first request."""
    n_arms = standing.planned.size
    if standing.rewards.has_range or standing.planned.any() or n_arms > TESTABLE:
        return 1.0
    return 1 + TESTABLE / n_arms


def _enough(standing: Standing) -> float:
    """Pulls of an arm by which most races are over, ties included, if arms are like their mean."""
    variance = standing.mean * (1 - standing.mean) if standing.rewards.has_range else UNIT_SIGMA**2
    tie = 2 * variance * standing.level / standing.unit**2
    return min(standing.sample, ENOUGH * max(tie, 1.0))


def _advance(
    standing: Standing, guess: Guess, times: IntArray, low: float, high: float
) -> FloatArray:
    """How far clocks advance: the tilt of the gaps betted on, at the least favourable means."""
    size = max(1.0, times[standing.open].mean())
    ratios = np.maximum(times[standing.edge], 1) / size  # (outside, inside)
    gaps = _shifts(standing, ratios, guess) * standing.unit  # (clock,)
    variances = guess.variances[standing.edge]
    if standing.rewards.has_range:
        variances = guess.noise * np.array([high * (1 - high), low * (1 - low)])
    result: FloatArray = size * gaps / max((variances / ratios).sum(), LEAST_VARIANCE)
    return result


def _shifts(standing: Standing, ratios: FloatArray, guess: Guess) -> FloatArray:
    """Gaps betted on, in units of the gap allowed: if the net is near, it takes care of ties."""
    if standing.swapped > 1:
        return SETS_SHIFT * standing.multiples
    spread = float((guess.variances[standing.edge] / ratios).sum())
    proof = standing.sample * standing.unit**2 / spread
    far = (proof / standing.level - NEAR) / (FAR - NEAR)
    least = LEAST_SHIFT[1] - (LEAST_SHIFT[1] - LEAST_SHIFT[0]) * min(max(far, 0.0), 1.0)
    return least * standing.multiples
