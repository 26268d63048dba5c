"""Bets on pairs of arms within blocks of randomised visitors, and the bounds that follow.

Before a block, from what was told earlier, its terms are fixed: the shares p of the arms in play,
the step l_ij of every pair, and a centre m. Every visitor is then assigned at random with these
shares, and multiple k of the wealth against "j leads i" changes by the factor

    1 + b_i (x - m) if i was shown, 1 - b_j (x - m) if j was, 1 otherwise,  b = multiple_k l_ij / p.

Let g be the lead of j over i for this visitor. As p_i b_i = p_j b_j, the centre cancels: the factor
is 1 - multiple_k l_ij g <= exp(-multiple_k l_ij g) on average, whatever the level does. So

    sum over k of weight_k exp(L_k + multiple_k * clock * average lead)

is a supermartingale from 1, where the clock gains l_ij from *every* visitor of a block in which
both are in play, and the average lead weights visitors by l_ij. The same terms hold through a
block, so counts, sums and sums of squares determine the gains, or a lower bound on them
(`least_growth`). docs/drift.md has the proofs."""

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import betainc

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.items.bound import largest_matching
from shortlist.certificates.pairs.bound import (
    StageRewards,
    least_growth,
    mirrored_draws,
    pair_gaps,
)
from shortlist.errors import InvalidInput

# The mixture is part of the theorem: leads that are bet on, in units of the step, and the shares of
# the wealth on each.
MULTIPLES = np.array([1.0, 2.0, 4.0])
LOG_WEIGHTS = np.log(np.array([0.6, 0.28, 0.12]))
MOST_STAKED = 0.8  # largest share of the wealth that a bet stakes: no reward ruins
ROUNDED_STAKE = 1e-9  # tolerance of that limit, for terms that were computed to keep to it
Pairs = tuple[IntArray, IntArray]  # first and second arm of ordered pairs
REFUSAL = 1e-6  # probability at most that the sample-ratio test refuses a block of a sound test


@dataclass(frozen=True, slots=True)
class BlockTerms:
    """What is fixed before the first visitor of a block."""

    shares: FloatArray  # (n,) probabilities of the arms, 0 for those not in play
    step: float  # of the clock per visitor, for arms with a share of 1
    centre: float  # of the bets, in [0, 1]

    def __post_init__(self) -> None:
        in_play = self.in_play
        if (
            in_play.sum() < 2
            or (self.shares < 0).any()
            or abs(self.shares.sum() - 1) > 1e-9
            or not 0 <= self.centre <= 1
            or not 0 < self.step <= most_step(self.shares, self.centre) * (1 + ROUNDED_STAKE)
        ):
            raise InvalidInput(
                f"the terms of a block are {self}, but shares must add up to 1 for two arms or more"
                " and no bet may stake everything"
            )

    @property
    def in_play(self) -> BoolArray:
        """The arms that visitors may be assigned to: (n,)."""
        return self.shares > 0

    def pairs(self, staying: BoolArray | None = None) -> Pairs:
        """All ordered pairs of arms in play, without arms that do not stay."""
        arms = np.flatnonzero(self.in_play if staying is None else self.in_play & staying)
        first, second = np.nonzero(~np.eye(arms.size, dtype=np.bool_))
        return arms[first], arms[second]

    def steps(self, first: IntArray, second: IntArray) -> FloatArray:
        """The step of each of these pairs: the harmonic mean of their shares, times `step`."""
        one, other = self.shares[first], self.shares[second]
        return np.asarray(self.step * 2 * one * other / (one + other))


def most_step(shares: FloatArray, centre: float) -> float:
    """The largest step at which no reward ruins a bet of any multiple."""
    in_play = shares[shares > 0]
    # the strength of a bet is at most multiple * step * 2 p_j / (p_i + p_j)
    strength = 2 * in_play.max() / (in_play.max() + in_play.min()) * MULTIPLES.max()
    return float(MOST_STAKED / (max(centre, 1 - centre) * strength))


class BlockWealth:
    """The wealth of every ordered pair (i, j) against "j leads i", block by block in one order.

    Blocks must be booked in the order in which they were opened: a supermartingale has one order
    only. A block that is left out leaves wealth and clocks as they are."""

    def __init__(self, n_arms: int) -> None:
        self.log_gains: FloatArray = np.zeros((n_arms, n_arms, MULTIPLES.size))  # (i, j, multiple)
        self.clock: FloatArray = np.zeros((n_arms, n_arms))

    def book(
        self, terms: BlockTerms, told: StageRewards, *, binary: bool, pairs: Pairs | None = None
    ) -> None:
        """Add a block that is complete: one entry per arm, on the unit scale.

        `squares` may be the sums where they are not known: for rewards in [0, 1] they are not
        larger. Only 0/1 rewards may be `binary`, which saves the work for the others. `pairs` are
        those to book, all in play by default; a pair that is left out once must be from then on."""
        i, j = terms.pairs() if pairs is None else pairs
        steps = terms.steps(i, j)  # (pair,)
        bets = (steps / terms.shares[i])[:, None] * MULTIPLES  # on i: (pair, multiple)
        against = (steps / terms.shares[j])[:, None] * MULTIPLES  # on j
        centre = np.full((i.size, 1), terms.centre)
        gains = least_growth(_of(told, i), bets, centre, binary=binary)
        gains += least_growth(mirrored_draws(_of(told, j)), against, 1 - centre, binary=binary)
        self.log_gains[i, j] += gains
        # every visitor moves the clock, whichever arm was shown
        self.clock[i, j] += steps * told.times.sum()

    def bounds(self, level: float) -> FloatArray:
        """Bound on the average lead of j over i: (i, j), infinite for pairs without a common block.

        With level = ln(K (n - K) / delta) they hold for all pairs of one set of K arms, fixed
        before the test; with ln(n (n - 1) / delta) for all pairs at once. See `log_level`."""
        known = self.clock > 0
        bounds = np.where(known, 0.0, np.inf)
        np.fill_diagonal(bounds, 0.0)
        clock = self.clock[known][:, None] * MULTIPLES
        logs = self.log_gains[known]
        none = np.zeros_like(logs)
        bounds[known] = pair_gaps(logs, none, clock, LOG_WEIGHTS, np.full(len(logs), level))
        return bounds


def log_level(pairs: int, delta: float, blocks: int) -> float:
    """What the log of the wealth stays below, with probability 1 - delta, for this many pairs.

    Blocks that the sample-ratio test may have refused: each makes the wealth larger by the factor
    1 + REFUSAL on average, at most."""
    return log(pairs) - log(delta) + REFUSAL * blocks


def regret_bound(bounds: FloatArray, top: IntArray, others: IntArray) -> float:
    """Bound on K R_T from bounds on leads: the largest matching between T and the others."""
    between = bounds[np.ix_(top, others)]
    if np.isinf(between).any():
        return float(np.inf)
    return largest_matching(between)


def is_plausible(visitors: IntArray, shares: FloatArray) -> bool:
    """Sample-ratio test: whether the numbers of visitors agree with the shares of the block.

    Exact: each arm's number is binomial, given that of all; two tails and a union over arms. A
    sound test fails it with probability REFUSAL at most."""
    in_play = shares > 0
    seen, share = visitors[in_play].astype(np.float64), shares[in_play]
    rest = float(visitors.sum()) - seen
    at_most = np.where(rest > 0, betainc(np.maximum(rest, 1), seen + 1, 1 - share), 1.0)
    at_least = np.where(seen > 0, betainc(np.maximum(seen, 1), rest + 1, share), 1.0)
    return bool((2 * np.minimum(at_most, at_least) * seen.size >= REFUSAL).all())


def _of(told: StageRewards, arms: IntArray) -> StageRewards:
    return StageRewards(told.times[arms], told.sums[arms], told.squares[arms])
