"""Draft a certificate: how often to pull every arm afresh, and how to charge it.

Exploration gives a posterior of every arm, and so the expected charge of every candidate
(expected_charges.py). The draft takes one candidate for every arm such that the bound is expected
to reach its target with the fewest pulls (knapsack.py)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.split import tuning
from shortlist.certification.split.certificate import Certificate, declare
from shortlist.certification.split.expected_charges import ExpectedCharges
from shortlist.certification.split.knapsack import Knapsack
from shortlist.certification.split.score_charges import ScoreCharges
from shortlist.exploration.posterior import Posterior
from shortlist.grouping import grouped_by
from shortlist.reward_models import RewardModel

MOST = 2**60  # pulls of an arm in a draft: what can be counted without overflow
FEWEST = 64  # pulls of an arm that are offered in any case, however little was explored


@dataclass(frozen=True)
class Draft:
    """A certificate to be declared, and what it is expected to cost and to show."""

    chosen: BoolArray  # (arms,), as all arrays here
    boundary: float
    strength: float
    pulls: IntArray
    start: FloatArray
    slope: FloatArray
    cost: int  # pulls still to be made
    expected: float  # the bound on k * regret to expect

    def declare(
        self, delta: float, reach: float, rewards: RewardModel, blur: float = 0.0
    ) -> Certificate:
        """Fix the certificate; `blur` is what rounding did to the means of its rewards."""
        return declare(
            self.chosen,
            self.boundary,
            self.pulls,
            strength=self.strength,
            delta=delta,
            reach=reach,
            rewards=rewards,
            slope=self.slope,
            start=self.start,
            blur=blur,
        )


def at_stage(draft: Draft, part: float, made: IntArray) -> Draft:
    """The same bets for another part of the pulls, but no fewer than were `made`."""
    pulls = np.maximum(np.ceil(part * draft.pulls).astype(np.int64), made)
    return replace(draft, pulls=pulls, slope=draft.slope / draft.pulls * pulls)


class Drafter:
    """Drafts certificates for one set at one boundary, of any strength.

    `made` are certification pulls made before, which a draft can only add to; `most` are those that
    limits leave to it in all, if there are limits. Arms that are alike, in what is known of them,
    their side, their `made` and their `most`, form a group."""

    def __init__(
        self,
        posterior: Posterior,
        chosen: BoolArray,
        boundary: float,
        made: IntArray,
        reach: float,
        most: IntArray | None = None,
    ) -> None:
        self.chosen = chosen
        self.boundary = boundary
        self.made = made
        kind_of_charges = ScoreCharges if posterior.scattered else ExpectedCharges
        self.charges = kind_of_charges(posterior, boundary, reach, _most_pulls(posterior, made))
        most = np.full(made.size, MOST) if most is None else most
        # (groups,) the kind, `made` and `most` of a group; (arms,) the group of an arm
        (kind, before, limit), self.group = grouped_by(posterior.kinds(chosen), made, most)
        self.size: FloatArray = np.bincount(self.group).astype(np.float64)  # (groups,)
        pulls = self.charges.candidates.pulls[0]
        more = pulls - before[:, None]  # (groups, candidates)
        self.price: FloatArray = np.where((more >= 0) & (pulls <= limit[:, None]), more, np.inf)
        # (groups,) each; those outside come first
        self.side, self.row = np.divmod(kind, posterior.row_pulls.size)

    def draft(
        self,
        strength: float,
        threshold: float,
        *,
        target: float = math.inf,
        budget: int | None = None,
    ) -> Draft | None:
        """The cheapest draft whose bound on k * regret is expected at `target`, if any.

        With a `budget`, the draft of the least bound for so many more pulls instead. `threshold` is
        ln(1/delta), which costs threshold / strength of the bound."""
        knapsack = self._knapsack(strength)
        paid = threshold / strength
        choice = knapsack.cheapest(target - paid) if budget is None else knapsack.within(budget)
        if choice is None:
            return None
        return self._drafted(choice, strength, knapsack.total(choice) + paid)

    def _drafted(self, choice: IntArray, strength: float, expected: float) -> Draft:
        candidates = self.charges.candidates
        mine = self.side[self.group], choice[self.group]  # (arms,) each: side and candidate
        pulls = candidates.pulls[mine].astype(np.int64)
        return Draft(
            chosen=self.chosen,
            boundary=self.boundary,
            strength=strength,
            pulls=pulls,
            start=candidates.start[mine],
            slope=self.charges.slopes(strength)[mine],
            cost=int((pulls - self.made).sum()),
            expected=expected,
        )

    def _knapsack(self, strength: float) -> Knapsack:
        charge = self.charges.expected(strength, self.side, self.row)  # (groups, candidates)
        # One pull more of an arm with N saves a charge of about strength / 8N^2, if noise is all
        # that is charged.
        flattest = float(self.charges.slopes(strength).min())
        most = float(self.charges.candidates.pulls.max())
        least_saved = flattest / (8 * most**2)
        return Knapsack(self.size, self.price, charge, dearest=2 - math.log10(least_saved))


def _most_pulls(posterior: Posterior, made: IntArray) -> int:
    """Pulls of an arm that are offered: many times those explored, and all that were made."""
    explored = int(posterior.pulls.mean())
    offered = min(max(FEWEST, tuning.OFFERED * explored), MOST)
    return max(int(made.max()), offered)
