"""What a race knows of its arms, and how it fixes its next stage from that.

Nothing here bears on the guarantee: a stage may be fixed in any way from rewards of earlier stages.
The constants were set on seeds other than those of docs/pairs.md; most of them matter by a few
percent."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.pairs.bets import cost_of_bet
from shortlist.certification.pairs.stages import Stage
from shortlist.reward_models import UNIT_SIGMA, RewardModel

LEAST_SHIFT = 1.6, 2.2  # the least gap betted on, if the safety net is far away and if it is near
SETS_SHIFT = 1.7  # the same where swaps of several arms are to be excluded
NEAR, FAR = 1.1, 2.0  # how far it is: what its samples prove of a tie, over what is to be proved
STRENGTHS = np.geomspace(1e-6, 8.0, 150)  # tried for a clock
STRONGEST = 1.2  # of all bets: stronger ones hurt arms that take the other part later
RATIOS = np.geomspace(0.2, 5.0, 17)  # tried, of pulls inside the choice to pulls outside
STEPS = np.geomspace(0.25, 4.0, 13)  # strengths tried for each ratio
CAUTION = 0.4  # power of the best ratio that is used: the choice may still change
PRIOR = 4.0, 100.0  # least and most pulls that the common mean of the arms is worth
MOST_FOR_STRENGTH = 30.0  # pulls that it is worth where the strength of bets is set
OWN_VARIANCE = 10.0  # pulls that the common variance is worth
LAST_PART = 0.05  # share of the net's sample that is drawn in one stage if it is all that is left


@dataclass(frozen=True, slots=True)
class Pace:
    """How the pulls are cut into requests."""

    batch: int = 4  # pulls in the first requests
    growth: float = 0.02  # of later ones, as a share of what was spent
    rounds: int | None = None  # requests at most; overrides the other two


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
    left: IntArray  # pulls until its sample is complete

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

    def edge_means(self, weight: float) -> FloatArray:
        """Guesses at the means of the edge: (outside, inside)."""
        return centres(self.pulls[self.edge], self.sums[self.edge], self.mean, weight)

    def edge_variances(self, weight: float) -> FloatArray:
        """Guesses at the variances of the edge: (outside, inside)."""
        if not self.rewards.has_range:
            return np.full(2, UNIT_SIGMA**2)
        means = self.edge_means(weight)
        binary: FloatArray = np.maximum(means * (1 - means), 1e-4)
        if self.rewards.is_binary or (self.sums == self.squares).all():
            return binary
        scatter = np.maximum(self.squares - self.sums**2 / np.maximum(self.pulls, 1), 0.0)
        pooled = (scatter.sum() + 0.25) / (np.maximum(self.pulls - 1, 0).sum() + 1)
        own = (scatter + OWN_VARIANCE * pooled) / (self.pulls + OWN_VARIANCE)
        smaller: FloatArray = np.minimum(binary, own[self.edge])
        return smaller


def centres(pulls: IntArray, sums: FloatArray, mean: float, weight: float) -> FloatArray:
    """Means of some arms, drawn to the common mean."""
    result: FloatArray = (sums + weight * mean) / (pulls + weight)
    return result


def next_stage(standing: Standing, pace: Pace, stage: int) -> Stage:
    """Fix stage number `stage`."""
    weight = standing.weight()
    times = _times(standing, _ratios(standing, weight), pace, stage)
    advance = _advance(standing, times, min(weight, MOST_FOR_STRENGTH))
    return Stage(times, advance, standing.mean, weight)


def pilot_stage(n_arms: int, clocks: int, times: int) -> Stage:
    """A stage without bets, for all arms alike."""
    every = np.full(n_arms, times, dtype=np.int64)
    return Stage(every, np.zeros(clocks), 0.5, PRIOR[1])


def _ratios(standing: Standing, weight: float) -> FloatArray:
    """Pulls of the arms relative to each other, the same on each side of the choice: (arm,)."""
    if not standing.pulls.any():  # the net counts on it
        return np.ones(standing.pulls.size)
    ratio = _best_ratio(standing, weight) ** CAUTION
    ratios: FloatArray = np.where(standing.top, max(1.0, ratio), max(1.0, 1 / ratio))
    return ratios


def _best_ratio(standing: Standing, weight: float) -> float:
    """Pulls inside per pull outside that settle the edge with the fewest pulls of open arms."""
    means = standing.edge_means(weight)
    variances = standing.edge_variances(weight)
    gap = standing.unit + max(0.0, float(means[1] - means[0]))
    outside = gap * STEPS / max(float(variances.sum()), 1e-3)  # (l,) strengths
    inside = outside / RATIOS[:, None]  # (ratio, l)
    rewards = standing.rewards
    down = cost_of_bet(outside, 1 - float(means[0]), float(variances[0]), rewards)
    up = cost_of_bet(inside, float(means[1]), float(variances[1]), rewards)
    rates = (gap * outside - down - RATIOS[:, None] * up).max(1)  # (ratio,)
    n_inside = (standing.open & standing.top).sum()
    n_outside = (standing.open & ~standing.top).sum()
    return float(RATIOS[(rates / (n_inside * RATIOS + n_outside)).argmax()])


def _times(standing: Standing, ratios: FloatArray, pace: Pace, stage: int) -> IntArray:
    """Pulls of every arm: those past half of their sample are slowed, so that all end together."""
    size = _size(standing, ratios, pace, stage)
    left = np.maximum(standing.left, 0)
    most = left[standing.open].max()
    if most <= max(LAST_PART * standing.sample, size):
        return left
    wanted = size * ratios  # (arm,)
    slowed = np.minimum(wanted, size * left / most)
    wanted = np.where(2 * left < standing.sample, slowed, wanted)
    return np.minimum(np.maximum(1, np.rint(wanted)).astype(np.int64), left)


def _size(standing: Standing, ratios: FloatArray, pace: Pace, stage: int) -> float:
    """Pulls of an arm with ratio 1."""
    usual = float((standing.planned / ratios)[standing.open].min())
    if pace.rounds is not None:  # the samples grow with the square of the rounds
        return max(1.0, (stage / pace.rounds) ** 2 * standing.sample - usual)
    request = max(pace.batch, pace.growth * standing.pulls.sum())
    share = request // ratios[standing.open].sum()
    return max(1.0, float(share), pace.growth * usual)


def _advance(standing: Standing, times: IntArray, weight: float) -> FloatArray:
    """How far clocks advance: a bet on equal arms costs shift / 2 of what it gains, on the edge."""
    size = times[standing.open].mean()
    ratios = np.maximum(times[standing.edge], 1) / size  # (outside, inside)
    variances = standing.edge_variances(weight)
    targets = _shifts(standing, ratios, variances) * standing.unit / 2  # (clock,)
    if not standing.rewards.has_range:
        optimal: FloatArray = 2 * size * targets / (variances / ratios).sum()
        return optimal
    means = standing.edge_means(weight)
    strengths = STRENGTHS * ratios.min()
    rewards = standing.rewards
    down = cost_of_bet(strengths / ratios[0], 1 - float(means[0]), float(variances[0]), rewards)
    up = cost_of_bet(strengths / ratios[1], float(means[1]), float(variances[1]), rewards)
    cost = ratios[0] * down + ratios[1] * up
    found = np.interp(targets, cost / strengths, strengths)
    advance: FloatArray = np.minimum(size * found, STRONGEST * times[times > 0].min())
    return advance


def _shifts(standing: Standing, ratios: FloatArray, variances: FloatArray) -> FloatArray:
    """Gaps betted on, in units of the gap allowed: if the net is near, it takes care of ties."""
    if standing.swapped > 1:
        return SETS_SHIFT * standing.multiples
    proof = standing.sample * standing.unit**2 / float((variances / ratios).sum())
    far = (proof / standing.level - NEAR) / (FAR - NEAR)
    least = LEAST_SHIFT[1] - (LEAST_SHIFT[1] - LEAST_SHIFT[0]) * min(max(far, 0.0), 1.0)
    return least * standing.multiples
