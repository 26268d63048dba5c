"""Which arms to pull next, how often, and how to bet: no guarantee rests on it.

A stage may be fixed in any way from rewards of earlier stages. The constants were set on seeds
other than those of docs/pairs.md; most of them matter by a few percent.

Bets against "the arm outside is better by gap" are centred on the least favourable means. Where the
arms seem to have the means `inside` and `outside`, these are x and y = x + gap with

    r_in (inside - x) / v(x) = r_out (y - outside) / v(y),

r the pulls and v the variance of 0/1 rewards: there r_in kl(inside, x) + r_out kl(outside, y) is
least, and bets with that strength and these centres are the likelihood ratio against x and y."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import rel_entr

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.pairs.bound import BetStage
from shortlist.reward_models import UNIT_SIGMA, RewardModel

MARGIN = 0.002  # that the centre of a bet keeps from 0 and 1
SHARES = 0.1, 0.9  # least and largest share of the nominee in the pulls
LEAST_SHIFT = 1.4, 2.2  # least gap bet on, if the fallback is far away and if it is near ...
FALLBACK_NEAR, FALLBACK_FAR = (
    1.1,
    2.0,
)  # ... in what its samples prove of a tie, over what is needed
SETS_SHIFT = 1.4  # least gap bet on where swaps of several arms are to be excluded
STRONGEST = 1.2  # bet on arms in doubt: stronger ones hurt arms that change sides later
TIED_RATIO = 0.5  # pulls inside per pull outside, for bets that only a change of sides would need
RATIOS = np.geomspace(0.2, 5.0, 17)  # tried, of pulls inside the choice to pulls outside
RATIO_POWER = 0.55  # power of the best ratio that is used: the choice may still change
MEAN_WORTH = 4.0, 30.0  # fewest and most pulls that the common mean of the arms is worth
OWN_MEAN = 2.0  # pulls that it is worth where doubts are estimated
OWN_VARIANCE = 10.0  # pulls that the common variance is worth
LEAST_VARIANCE = 1e-4  # of an estimate
TIE_PROOFS = (
    3.0  # pulls that limited rounds plan for, in units of those that prove a tie on average
)
STEEPNESS = 1.8  # power of the round with which these pulls are spent
PART = 0.15  # of a large batch that is one stage, as a share of an arm's pulls before it ...
FIRST_STAGE_PULLS = 10.0  # ... or of this many, if there were fewer
LEAST_LOOK = 0.02  # least share of a usual batch, however near the end seems
# pulls beyond one per arm that few arms without a range have in the first batch: otherwise a sigma
# that was declared far too small would certify before its test can see that
TESTABLE = 12
WAITED = 4.0  # times an arm's pulls until its limit that others may have left to end with it
BATCHES_UNDER_WAY = 6  # by default, where batches are planned ahead
LAST_PART = (
    0.05  # share of the fallback's sample that is drawn in one stage if it is all that is left
)


def least_favourable(
    inside: FloatArray, outside: FloatArray, gap: float, ratio: FloatArray, steps: int = 3
) -> FloatArray:
    """The lower mean x, about; all arrays broadcast, `ratio` is pulls inside per pull outside."""
    total = np.maximum(inside - outside, 0.0) + gap
    most = max(MARGIN, 1 - MARGIN - gap)
    x = np.minimum(np.maximum((inside + outside - gap) / 2, MARGIN), most)
    for _ in range(steps):  # of the fixed point: bets need not be centred exactly
        y = np.minimum(x + gap, 1 - MARGIN)
        inner, outer = x * (1 - x), y * (1 - y) * ratio
        x = (x + inside - total * inner / (inner + outer)) / 2
        x = np.minimum(np.maximum(x, MARGIN), most)
    return x


def information(mean: FloatArray, other: FloatArray) -> FloatArray:
    """kl(mean, other) of 0/1 rewards."""
    return rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)


@dataclass(frozen=True, slots=True)
class LeaderSampling:
    """Evidence against each rival, in nats: (rival,).

    The nominee gets the share of the pulls that it has in the evidence against the rivals closest
    to it, and these get the rest: information-directed selection (You, Qin, Wang, Yang 2023)."""

    evidence: FloatArray  # against "the nominee should change places with it"
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
    ) -> "LeaderSampling":
        """The log likelihood ratio against the least favourable means; `best`: it is chosen."""
        inside = np.array([nominee]) if best else rivals
        outside = rivals if best else np.array([nominee])
        ratio = pulls[inside] / np.maximum(pulls[outside], 1)
        low = least_favourable(means[inside], means[outside], gap, ratio)
        high = np.minimum(low + gap, 1 - MARGIN)
        of_inside = (pulls[inside] + 1) * information(means[inside], low)
        of_outside = (pulls[outside] + 1) * information(means[outside], high)
        evidence = of_inside + of_outside + 1e-12
        return cls(evidence, (of_inside if best else of_outside) / evidence)

    def rivals_to_pull(self, own: int, times: IntArray, rng: np.random.Generator) -> IntArray:
        """The rivals to pull, `times` each, next to `own` pulls of the nominee."""
        order = np.lexsort((rng.random(self.evidence.size), self.evidence))
        share = float(np.clip(self.share[order[:4]].mean(), *SHARES))
        wanted = own * (1 - share) / share
        before = np.cumsum(times[order]) - rng.random() * times[order]  # rounded at random
        return order[before < wanted]


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """How the pulls are cut into batches."""

    batch: int = 4  # pulls in the first batches
    growth: float = 0.02  # of later ones, as a share of all pulls so far
    rounds: int | None = None  # largest number of batches; overrides the other two
    least: int = 0  # least pulls per batch; 0: no minimum
    window: int = 0  # most pulls under way where batches are planned ahead; 0: they wait
    most: float = math.inf  # most pulls of the next batch, unless `least` is more

    @classmethod
    def ahead(cls, window: int, least: int | None) -> "BatchSizes":
        """Batches that are planned ahead within a window."""
        usual = max(1, round(window / BATCHES_UNDER_WAY))
        return cls(least=usual if least is None else least, window=window)

    @property
    def together(self) -> bool:
        """Whether batches are few and large: each takes all arms in doubt equally far."""
        return self.rounds is not None or self.least > 0

    @property
    def waits(self) -> bool:
        """Whether every batch waits for the one before."""
        return self.window == 0


@dataclass(frozen=True)
class RaceState:
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
    unit: float  # the gap that is to be told apart from 0
    multiples: FloatArray  # (clock,) gaps bet on, in units of the least
    level: float  # ln of the wealth that is needed against one pair
    sample: int  # pulls of an arm in the fallback's sample
    planned: IntArray  # pulls of every arm in all stages so far
    left: IntArray  # pulls until its sample is complete, or its limit is reached
    costs: FloatArray | None = None  # (arm,) of a pull, where they differ
    limited: bool = False  # some arms have limits
    worth: float = math.inf  # pulls of an arm before it is worth while to look again
    # (arm,) the arm that each is nearest to changing places with; None: one of the edge
    rivals: IntArray | None = None

    def weight(self) -> float:
        """Pulls that the common mean is worth: variance within arms over variance between."""
        seen = self.open & (self.pulls > 0)
        pulls, sums = self.pulls[seen], self.sums[seen]
        total = pulls.sum()
        if total <= pulls.size or pulls.size < 2:
            return MEAN_WORTH[1]
        within = (self.squares[seen] - sums**2 / pulls).sum() / (total - pulls.size)
        of_means = (sums**2 / pulls).sum() - sums.sum() ** 2 / total
        between = of_means - (pulls.size - 1) * within
        between /= total - (pulls**2).sum() / total
        return float(np.clip(within / max(between, 1e-12), *MEAN_WORTH))

    def estimates(self) -> "ArmEstimates":
        """Estimated means and variances."""
        weight = self.weight()
        means = centres(self.pulls, self.sums, self.mean, weight)
        variances = np.maximum(means * (1 - means), LEAST_VARIANCE)
        noise = 1.0
        if not self.rewards.has_range:
            variances = np.full(means.size, UNIT_SIGMA**2)
        elif not (self.rewards.is_binary or (self.sums == self.squares).all()):
            own = self._own_variances()[self.edge]
            noise = min(1.0, float((own / variances[self.edge]).max()))
        return ArmEstimates(weight, means, noise, noise * variances)

    def _own_variances(self) -> FloatArray:
        """Variances of the rewards seen, drawn to that of all arms: (arm,)."""
        around = np.maximum(self.squares - self.sums**2 / np.maximum(self.pulls, 1), 0.0)
        pooled = (around.sum() + 0.25) / (np.maximum(self.pulls - 1, 0).sum() + 1)
        result: FloatArray = (around + OWN_VARIANCE * pooled) / (self.pulls + OWN_VARIANCE)
        return result

    def across(self) -> IntArray:
        """The arm on the other side that every arm is compared with: (arm,)."""
        if self.rivals is not None:
            return self.rivals
        outside, inside = self.edge
        edge: IntArray = np.where(self.top, outside, inside)
        return edge

    def doubts(self, estimates: "ArmEstimates") -> FloatArray:
        """How likely every arm is to change sides, roughly: (arm,) from 0 to 1."""
        means = centres(self.pulls, self.sums, self.mean, OWN_MEAN)  # (arm,)
        squares = estimates.variances / (self.pulls + OWN_MEAN)  # (arm,) of standard errors
        across = self.across()
        distances = (means - means[across]) ** 2 / (squares + squares[across])
        result: FloatArray = np.exp(-2.0 * distances)
        return result


@dataclass(frozen=True, slots=True)
class ArmEstimates:
    """Estimated means and variances of all arms."""

    weight: float  # pulls that the common mean is worth in them
    means: FloatArray  # (arm,)
    noise: float  # variance over that of 0/1 rewards
    variances: FloatArray  # (arm,)


def centres(pulls: IntArray, sums: FloatArray, mean: float, weight: float) -> FloatArray:
    """Means of some arms, drawn to the common mean."""
    return (sums + weight * mean) / (pulls + weight)


def next_stage(state: RaceState, pace: BatchSizes, request: int) -> BetStage:
    """Fix a stage that is all of batch number `request`."""
    return stage_with(next_times(state, pace, request), state)


def next_times(state: RaceState, pace: BatchSizes, request: int) -> IntArray:
    """Pulls of every arm in batch number `request`."""
    estimates = state.estimates()
    ratios = _ratios(state, estimates, state.doubts(estimates))
    return _times(state, ratios, pace, request)


def parts_of(times: IntArray, state: RaceState) -> list[IntArray]:
    """Cut a large batch into growing stages: (arm,) pulls of each.

    The bets of a stage are fixed when the one before is booked, though the pulls of all of them are
    made at once."""
    pulled = times[state.open & (times > 0)]
    before = max(FIRST_STAGE_PULLS, float(state.planned[state.open].min()))
    growth = math.log1p(float(pulled.max()) / before)
    cuts = math.ceil(growth / math.log1p(PART))
    ends = np.expm1(growth * np.arange(1, cuts + 1) / cuts)  # (cut,)
    if state.limited:
        pulled = pulled[WAITED * pulled >= pulled.max()]
    fewest = int(pulled.min())  # in every part at least one of them
    shares = np.unique(np.rint(np.append(0.0, ends / ends[-1]) * fewest)) / fewest
    done = np.rint(shares[:, None] * times).astype(np.int64)  # (cut, arm)
    if state.limited:  # an arm with few pulls left makes them in the first parts, and then stops
        for before, now in pairwise(done):
            np.clip(now, before + 1, times, out=now)
    return list(np.diff(done, axis=0))


def stage_with(times: IntArray, state: RaceState) -> BetStage:
    """Fix the bets of a stage of these pulls per arm."""
    estimates = state.estimates()
    doubts = state.doubts(estimates)
    edge_times = np.maximum(times[state.edge], 1)  # (outside, inside)
    low, high = _centres(state, estimates, edge_times)
    advance = _advance(state, estimates, times, low[state.edge[1]], high[state.edge[0]])
    if state.rewards.has_range:
        strongest = _strongest(estimates, doubts)
        advance = np.minimum(advance, (strongest * times)[times > 0].min())
    shifts = estimates.means - low, high - estimates.means
    return BetStage(times, advance, state.mean, estimates.weight, *shifts)


def _strongest(estimates: ArmEstimates, doubts: FloatArray) -> FloatArray:
    """The strongest bet on every arm: (arm,).

    Bets beyond STRONGEST pay only with centres that a small variance does not allow."""
    if estimates.noise < 1:
        return np.full(doubts.size, STRONGEST)
    return STRONGEST * np.maximum(doubts, 0.03) ** -(1 / 3)


def pilot_stage(n_arms: int, clocks: int, times: int) -> BetStage:
    """A stage without bets, for all arms alike."""
    every = np.full(n_arms, times, dtype=np.int64)
    nowhere = np.zeros(n_arms)
    return BetStage(every, np.zeros(clocks), 0.5, MEAN_WORTH[1], nowhere, nowhere)


def _centres(
    state: RaceState, estimates: ArmEstimates, edge_times: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Where an arm's bets up and down are centred: (arm,) each.

    On the least favourable means against the edge; for the bets that only a change of sides would
    need, on those of a tie. Where the variance is small, a centre off the mean costs more."""
    if not state.rewards.has_range or estimates.noise < 1:
        return estimates.means, estimates.means
    means, top = estimates.means, state.top
    rivals = means[state.across()]
    better = np.stack([means, np.where(top, means, np.maximum(means, rivals))])  # (bet, arm)
    worse = np.stack([np.where(top, np.minimum(means, rivals), means), means])
    needed = np.stack([top, ~top])  # (bet, arm)
    ratio = np.where(needed, edge_times[1] / edge_times[0], TIED_RATIO)
    low, high = least_favourable(better, worse, state.unit, ratio)
    return low, np.minimum(high + state.unit, 1.0)


def _ratios(state: RaceState, estimates: ArmEstimates, doubts: FloatArray) -> FloatArray:
    """Pulls of the arms relative to each other: (arm,).

    Those that may well change sides get as many as the side that gets more. First pulls are as
    many for all arms, and so are those of two arms: the fallback counts on both."""
    if not state.pulls.any() or state.pulls.size == 2:
        return np.ones(state.pulls.size)
    ratio = _best_ratio(state, estimates) ** RATIO_POWER
    larger = max(ratio, 1 / ratio)
    by_side = np.where(state.top == (ratio > 1), larger, 1.0)  # (arm,)
    result: FloatArray = np.maximum(by_side, larger**doubts) / _relative_costs(state)
    return result


def _relative_costs(state: RaceState) -> FloatArray:
    """The square roots of the costs, relative to the mean root of the open arms: (arm,).

    At a given cost, Var/N summed over two arms is least where N is proportional to 1 over this."""
    if state.costs is None:
        return np.ones(state.open.size)
    roots = np.sqrt(state.costs)
    result: FloatArray = roots / roots[state.open].mean()
    return result


def _best_ratio(state: RaceState, estimates: ArmEstimates) -> float:
    """Pulls inside per pull outside that settle the edge with the fewest pulls of open arms."""
    n_inside = (state.open & state.top).sum()
    n_outside = (state.open & ~state.top).sum()
    rates = _rates(state, estimates)  # (ratio,)
    return float(RATIOS[(rates / (n_inside * RATIOS + n_outside)).argmax()])


def _rates(state: RaceState, estimates: ArmEstimates) -> FloatArray:
    """Information about the edge per pull outside, for every ratio: (ratio,), up to a factor.

    Rewards without a range have the same variance in all arms."""
    outside, inside = estimates.means[state.edge]
    if not state.rewards.has_range:
        return RATIOS / (1 + RATIOS)
    low = least_favourable(inside, outside, state.unit, RATIOS)
    high = np.minimum(low + state.unit, 1.0)
    return RATIOS * information(inside, low) + information(outside, high)


def _times(state: RaceState, ratios: FloatArray, pace: BatchSizes, request: int) -> IntArray:
    """Pulls of every arm: those past half of their sample are slowed, so that all end together."""
    size = max(_size(state, ratios, pace, request), _testable(state))
    left = np.maximum(state.left, 0)
    if state.limited:
        times = _limited_times(state, ratios, size)
        return times if times[state.open].sum() >= pace.least else left
    most = left[state.open].max()
    if most <= max(LAST_PART * state.sample * pace.waits, size):
        return left
    wanted = size * ratios  # (arm,)
    slowed = np.minimum(wanted, size * left / most)
    wanted = np.where(2 * left < state.sample, slowed, wanted)
    times = _rounded(wanted, left)
    enough = not pace.waits or times[state.open].sum() >= pace.least
    return times if enough else left


def _rounded(wanted: FloatArray, left: IntArray) -> IntArray:
    """Whole pulls of every arm: at least one, where any are left."""
    return np.minimum(np.maximum(1, np.rint(wanted)).astype(np.int64), left)


def _shares_of_limits(state: RaceState) -> FloatArray:
    """Pulls of the arms relative to each other if all are to end together: (arm,).

    A limit beyond what proves a tie of the worst variance is no limit."""
    variance = 0.25 if state.rewards.has_range else UNIT_SIGMA**2
    enough = 2 * variance * state.level / state.unit**2
    limits = np.minimum(state.planned + state.left, enough)  # (arm,)
    highest = limits[state.open].max()
    result: FloatArray = np.clip(limits / highest, 1 / WAITED, 1.0)
    return result


def _limited_times(state: RaceState, ratios: FloatArray, size: float) -> IntArray:
    """Pulls of every arm where arms have limits: from half of a limit on, arms end together.

    Clocks are common, so an arm at its limit cannot follow the others, and a swap is bounded by the
    last stage that all its arms completed. An arm with far fewer pulls left than others is not
    waited for."""
    left = np.maximum(state.left, 0)
    some = state.open & (left > 0)
    most = int(left[some].max())
    waited = some & (WAITED * left >= most)
    wanted = size * ratios * _shares_of_limits(state)  # (arm,)
    if (2 * left < state.planned + left)[waited].any():
        size = max(size, most / left[waited].min())
        wanted = size * left / most
    return left if most <= size else _rounded(wanted, left)


def _size(state: RaceState, ratios: FloatArray, pace: BatchSizes, request: int) -> float:
    """Pulls of an arm with ratio 1."""
    usual = float((state.planned / ratios)[state.open].min())
    shares = ratios[state.open].sum()
    least = float((pace.least + state.open.sum() / 2) / shares)  # before rounding
    if pace.rounds is not None:
        share: float = (request / pace.rounds) ** STEEPNESS
        aim = share * _enough(state)
        return max(1.0, least * (pace.least > 0), aim - usual)
    size = max(pace.batch, pace.growth * state.pulls.sum()) // shares
    size = max(size, pace.growth * usual)
    size = min(size, max(state.worth, LEAST_LOOK * size))
    size = min(size, (pace.most - state.open.sum() / 2) / shares)
    if pace.least > 0:
        size = max(size, least)
    return max(1.0, float(size))


def _testable(state: RaceState) -> float:
    """Pulls of an arm that are needed to test a declared sigma, in the first batch."""
    n_arms = state.planned.size
    if state.rewards.has_range or state.planned.any() or n_arms > TESTABLE:
        return 1.0
    return 1 + TESTABLE / n_arms


def _enough(state: RaceState) -> float:
    """Pulls of an arm by which most races are over, ties included, if arms are like their mean."""
    variance = state.mean * (1 - state.mean) if state.rewards.has_range else UNIT_SIGMA**2
    tie = 2 * variance * state.level / state.unit**2
    return min(state.sample, TIE_PROOFS * max(tie, 1.0))


def _advance(
    state: RaceState, estimates: ArmEstimates, times: IntArray, low: float, high: float
) -> FloatArray:
    """Advance of the clocks: the tilt of the gaps bet on, at the least favourable means."""
    size = max(1.0, times[state.open].mean())
    ratios = np.maximum(times[state.edge], 1) / size  # (outside, inside)
    gaps = _shifts(state, ratios, estimates) * state.unit  # (clock,)
    variances = estimates.variances[state.edge]
    if state.rewards.has_range:
        variances = estimates.noise * np.array([high * (1 - high), low * (1 - low)])
    result: FloatArray = size * gaps / max((variances / ratios).sum(), LEAST_VARIANCE)
    return result


def _shifts(state: RaceState, ratios: FloatArray, estimates: ArmEstimates) -> FloatArray:
    """Gaps bet on, in units of the gap allowed: if the fallback is near, it takes care of ties."""
    if state.swapped > 1:
        return SETS_SHIFT * state.multiples
    spread = float((estimates.variances[state.edge] / ratios).sum())
    proof = state.sample * state.unit**2 / spread
    far = (proof / state.level - FALLBACK_NEAR) / (FALLBACK_FAR - FALLBACK_NEAR)
    least = LEAST_SHIFT[1] - (LEAST_SHIFT[1] - LEAST_SHIFT[0]) * min(max(far, 0.0), 1.0)
    return least * state.multiples
