"""The split certificate: how much can a set lose that was chosen before these rewards were drawn?

Aggregate regret is a sum over arms, and the errors of independent arms average out. So instead of a
confidence interval per arm (and a union bound over arms) every arm is *charged* for evidence
against its place in the set:

    y_i      = x_i - b outside the set, b - x_i inside          (x_i the fresh mean, b the boundary)
    charge_i = max(0, slope_i * y_i + offset_i) / strength      (0 up to `start_i` successes)
    K * R_T <= sum_i charge_i + ln(1/delta) / strength          with probability 1 - delta.

All but the rewards must be fixed before they are drawn. An offset is right when the arm's
exponential moment is: for every mean g beyond the boundary, E[exp(-strength * charge)] <=
exp(-strength * min(g, reach)). With `reach` = K * epsilon the bound holds whenever it is at most K
* epsilon; with the largest possible reach it always holds. The proof is in docs/certificate.md."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.split.offsets import offsets
from shortlist.errors import InvalidInput
from shortlist.grouping import grouped_by
from shortlist.reward_models import RewardModel
from shortlist.validation import number


@dataclass(frozen=True)
class Certificate:
    """A certificate as declared before its rewards are drawn; `bound` fills them in."""

    top: BoolArray
    boundary: float
    strength: float
    delta: float
    pulls: IntArray
    slope: FloatArray
    start: FloatArray  # successes (against the arm's place) that are not charged; -inf: all are
    offset: FloatArray

    def charges(self, sums: FloatArray) -> FloatArray:
        """What every arm is charged for these rewards."""
        against = np.where(
            self.top, self.pulls * self.boundary - sums, sums - self.pulls * self.boundary
        )
        successes = np.where(self.top, self.pulls - sums, sums)
        charge = np.maximum(0, self.slope * against / self.pulls + self.offset) / self.strength
        # so that NaN is never taken for no charge
        return np.where(successes <= self.start, 0.0, charge)

    def bound(self, sums: FloatArray) -> float:
        """Upper confidence bound on the aggregate regret of the set."""
        total = float(self.charges(sums).sum()) - math.log(self.delta) / self.strength
        return total / int(self.top.sum())


def declare(
    top: BoolArray,
    boundary: float,
    pulls: IntArray,
    *,
    strength: float,
    delta: float,
    reach: float,
    rewards: RewardModel,
    slope: FloatArray | None = None,
    start: FloatArray | None = None,
) -> Certificate:
    """Fix a certificate with the least offsets that are right for this kind of rewards (unit
    scale).

    `slope` (at most `strength`) and `start` shape the charge of every arm; `start` needs 0/1
    rewards, and is lowered for an arm where it is too high for any offset."""
    number("boundary", boundary)
    slope = np.full(top.size, strength) if slope is None else slope
    start = np.full(top.size, -np.inf) if start is None else start
    if np.isfinite(start).any() and not rewards.is_binary:
        raise InvalidInput(
            f"`start` is given for rewards that are {rewards.rule}, but needs rewards that are 0"
            " or 1"
        )
    begin, offset = start.copy(), np.empty(top.size)
    for side in (True, False):
        arms = np.flatnonzero(top == side)
        # One offset per distinct way of charging: many arms share one.
        (counts, slopes, starts), way = grouped_by(
            pulls[arms].astype(np.float64), slope[arms], start[arms]
        )
        edge = 1 - boundary if side else boundary
        found = offsets(counts, edge, strength, reach, rewards, slope=slopes, start=starts)
        begin[arms], offset[arms] = (each[way] for each in found)
    return Certificate(top, boundary, strength, delta, pulls, slope, begin, offset)
