"""The terms of the next block: which arms are in play, their shares, the step and the centre.

Everything here is decided before the block from what was told earlier, so that it costs visitors
only."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.drift.bound import BlockTerms, Pairs, most_step
from shortlist.certificates.items.bound import largest_matching
from shortlist.certificates.pairs.bound import StageRewards

# cost visitors only; measured by `python benchmarks/days.py`
MEMORY = 0.9  # weight of the visitors before, relative to those of the newest block told
PRIOR_VISITORS = 4.0  # weight of the guessed rate, as a number of visitors
USUAL_RATE = 10.0  # the guess at the rate before anything is told, in units of epsilon
LEAST_RATE = 1e-3  # a centre is at least so far from 0 and from 1
KNOWN = 400.0  # visitors from which on the rate is taken to be known
# step of a block that is opened before the rate is known, relative to the usual one ...
BLIND = 0.5
BLIND_LOSS = 2.0  # ... reduced, if it may cost more than this log wealth at any rate
UNPACED = 0.25  # BLIND where the number of visitors is not known
DOUBT_PRECISION = 1e-2  # of the level at which bounds are cut, relative to what is allowed
FEW_IN_PLAY = 50  # arms in play up to which shares are whole percent
PARTS = 100  # of which shares are whole numbers ...
MANY_PARTS = 10_000  # ... and with more arms in play
CONTROL_SHARE = 0.1  # least share of a control, whose comparisons are wanted though it may be worse
METRIC_VISITORS = 1000.0  # before the first result of a metric, where it is not known how many come


@dataclass(slots=True)
class Rate:
    """The rate of all arms together, of late; a guess before anything is told."""

    sums: float
    visitors: float = PRIOR_VISITORS

    @classmethod
    def guessed(cls, epsilon: float) -> "Rate":
        """A guess: the rate that is usual in tests with this epsilon."""
        return cls(PRIOR_VISITORS * min(0.5, USUAL_RATE * epsilon))

    def take(self, told: StageRewards) -> None:
        """Add a block; blocks before count less and less."""
        self.visitors = MEMORY * self.visitors + float(told.times.sum())
        self.sums = MEMORY * self.sums + float(told.sums.sum())

    @property
    def value(self) -> float:
        """The rate, away from 0 and 1."""
        return float(np.clip(self.sums / self.visitors, LEAST_RATE, 1 - LEAST_RATE))

    @property
    def known(self) -> bool:
        """Whether enough visitors were told."""
        return self.visitors >= KNOWN


class Leads:
    """Estimates of arm effects from differences within blocks: the level of a block cancels."""

    def __init__(self, n_arms: int) -> None:
        self._weight: FloatArray = np.zeros((n_arms, n_arms))
        self._lead: FloatArray = np.zeros((n_arms, n_arms))

    def take(self, terms: BlockTerms, told: StageRewards, pairs: Pairs | None = None) -> None:
        """Add a block; a pair weighs as much as its difference is precise."""
        i, j = terms.pairs() if pairs is None else pairs
        means = told.sums / np.maximum(told.times, 1)
        weight = told.times[i] * told.times[j] / np.maximum(told.times[i] + told.times[j], 1)
        self._weight[i, j] += weight
        self._lead[i, j] += weight * (means[i] - means[j])

    def effects(self) -> FloatArray:
        """The arm effects that fit all leads best: (n,), 0 on average."""
        laplacian = np.diag(self._weight.sum(1)) - self._weight
        effects: FloatArray = np.linalg.lstsq(laplacian, self._lead.sum(1), rcond=None)[0]
        return effects

    def over(self, arm: int) -> FloatArray:
        """The mean difference of every arm to this one within the blocks of both: (n,), NaN without
        such a block."""
        weight = np.where(self._weight[:, arm] > 0, self._weight[:, arm], np.nan)
        leads = np.asarray(self._lead[:, arm] / weight)
        leads[arm] = 0.0
        return leads


def best_by_effects(
    effects: FloatArray, k: int, staying: BoolArray, rng: np.random.Generator
) -> IntArray:
    """The k arms with the largest effects. Ties are broken at random."""
    arms = np.flatnonzero(staying)
    return np.sort(arms[np.lexsort((rng.random(arms.size), -effects[arms]))[:k]])


def best_by_bound(bounds: FloatArray, staying: BoolArray, rng: np.random.Generator) -> IntArray:
    """The one arm with the smallest bound. Ties are broken at random."""
    arms = np.flatnonzero(staying)
    worst = np.maximum(bounds[np.ix_(arms, arms)], 0.0).max(1)
    return arms[np.lexsort((rng.random(arms.size), worst))[:1]]


def doubtful(between: FloatArray, allowed: float) -> BoolArray:
    """Pairs whose bound has to fall: above the level at which bounds cut there are allowed."""
    finite = np.where(np.isinf(between), 1.0, np.minimum(between, 1.0))
    low, high = allowed / min(between.shape), allowed
    while high - low > DOUBT_PRECISION * allowed:
        middle = (low + high) / 2
        enough = largest_matching(np.minimum(finite, middle)) <= allowed
        low, high = (middle, high) if enough else (low, middle)
    return np.asarray(between > low)


def weights_in_play(
    n_arms: int, top: IntArray, others: IntArray, doubts: BoolArray, prices: FloatArray
) -> FloatArray:
    """What the shares of the arms of doubtful pairs are proportional to: (n,), 0 for the others.

    The variance of a lead is that of 1/p_i + 1/p_j, so p goes with 1 / sqrt(cost)."""
    in_play = np.zeros(n_arms, dtype=np.bool_)
    in_play[top[doubts.any(1)]] = True
    in_play[others[doubts.any(0)]] = True
    return np.asarray(np.where(in_play, 1 / np.sqrt(prices), 0.0))


def with_control(weights: FloatArray, control: int) -> FloatArray:
    """The same with a share of `CONTROL_SHARE` or an equal one for a control not in play: (n,)."""
    if weights[control] > 0:
        return weights
    share = min(CONTROL_SHARE, 1 / (np.count_nonzero(weights) + 1))
    kept = weights.copy()
    kept[control] = weights.sum() * share / (1 - share)
    return kept


def whole_shares(weights: FloatArray) -> FloatArray:
    """Shares in whole percent that are nearly proportional to the weights: (n,).

    Largest remainders. Every arm in play has one percent at least."""
    in_play = np.flatnonzero(weights)
    parts = PARTS if in_play.size <= FEW_IN_PLAY else MANY_PARTS
    wanted = weights[in_play] / weights[in_play].sum() * (parts - in_play.size)
    whole = np.floor(wanted)
    rest = parts - in_play.size - int(whole.sum())
    whole[np.argsort(whole - wanted, kind="stable")[:rest]] += 1
    shares = np.zeros(weights.size)
    shares[in_play] = (whole + 1) / parts
    return shares


def caution_of(exponent: float, level: float) -> float:
    """The factor of the lead that is bet on, for arms that turn out to be alike.

    `exponent` is the clock times the lead. Half of it is the log wealth of arms that are alike, on
    average; beyond the level smaller bets make the bound smaller."""
    return min(1.0, math.sqrt(2 * level / exponent)) if exponent > 0 else 1.0


def terms_for(
    shares: FloatArray, rate: Rate, lead: float, blind_visitors: float | None
) -> BlockTerms:
    """Terms with these shares: bets on a lead of `lead`, at the variance of the present rate."""
    centre = rate.value
    step = lead / (2 * centre * (1 - centre))
    if not rate.known:
        step = _blind_step(step, float(shares.max()), blind_visitors)
    return BlockTerms(shares, min(step, most_step(shares, centre)), centre)


def _blind_step(step: float, share: float, visitors: float | None) -> float:
    """A step for a rate that is not known: at a rate of 1/2, bets that are too large cost an arm
    visitors * share * strength^2 / 8, and strengths are about the step."""
    if visitors is None:
        return UNPACED * step
    per_pair = 2 * share * visitors / 8
    return min(BLIND * step, math.sqrt(BLIND_LOSS / per_pair))
