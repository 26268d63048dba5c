"""The candidates: all ways to certify an arm that a draft chooses from.

A candidate is a number of pulls N, a start (successes that are not charged) and a slope.

Choose one candidate for every group of arms: a multiple-choice knapsack.

Pulls are traded against expected charges by a Lagrange multiplier, the worth of a unit of charge in
pulls: each group takes the candidate of least pulls + multiplier * charge. The multiplier is found
by bisection of its logarithm.

Draft a certificate: how often to pull every arm afresh, and how to charge it.

Exploration gives a posterior of every arm, and so the expected charge of every candidate
(expected_charges.py). The draft takes one candidate for every arm such that the bound is expected
to reach its target with the fewest pulls (knapsack.py).

Find the strength of the cheapest draft: descent along a ladder of strengths.

A larger strength pays less for ln(1/delta), a smaller one less for noise, and the cost has one
valley in between. It moves slowly as exploration goes on, so the rung is kept (warm start)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, grouped_by
from shortlist.certificates.split import tuning
from shortlist.certificates.split.bound import Certificate, declare
from shortlist.certificates.split.expected_charges import (
    ExpectedCharges,
    ScoreCharges,
)
from shortlist.exploration.posterior import Posterior
from shortlist.reward_models import RewardModel

CHEAPEST = -3.0  # common logarithm of a multiplier so small that hardly any pull is worth it


@dataclass(frozen=True)
class Knapsack:
    """The pulls and the expected charge of every candidate for an arm of every group."""

    size: FloatArray  # (groups,): arms
    price: FloatArray  # (groups, candidates): pulls to be made; inf where some would be taken back
    charge: FloatArray  # (groups, candidates)
    dearest: float  # common logarithm of the largest multiplier that makes sense

    def choose(self, multiplier: float) -> IntArray:
        """The best candidate of every group at this multiplier: (groups,)."""
        choice: IntArray = np.argmin(self.price + multiplier * self.charge, axis=1)
        return choice

    def cost(self, choice: IntArray) -> float:
        """Pulls to be made in all."""
        return float(self.size @ self.price[np.arange(choice.size), choice])

    def total(self, choice: IntArray) -> float:
        """Charge to expect in all."""
        return float(self.size @ self.charge[np.arange(choice.size), choice])

    def cheapest(self, spare: float) -> IntArray | None:
        """The choice of least cost whose total charge is at most `spare`."""
        _, dear = self._bisect(lambda choice: self.total(choice) <= spare)
        return dear if self.total(dear) <= spare else None

    def within(self, budget: int) -> IntArray | None:
        """The choice of least charge whose cost is at most `budget`."""
        cheap, dear = self._bisect(lambda choice: self.cost(choice) > budget)
        if self.cost(dear) <= budget:  # every pull that is worth anything can be paid
            return dear
        return cheap if self.cost(cheap) <= budget else None

    def _bisect(self, far_enough: Callable[[IntArray], bool]) -> tuple[IntArray, IntArray]:
        """The choices on both sides of where `far_enough` becomes true as charge gets dearer."""
        low = CHEAPEST
        high = self.dearest
        for _ in range(tuning.HALVINGS):
            middle = (low + high) / 2
            if far_enough(self.choose(10**middle)):
                high = middle
            else:
                low = middle
        return self.choose(10**low), self.choose(10**high)


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


Drafting = Callable[[float], Draft | None]  # of a strength in units of ln(1/delta) / (k epsilon)


class StrengthSearch:
    """Where the descent stands: the rung of the ladder, and the direction it last went."""

    def __init__(self, least: float, ratio: float, rungs: int, usual: int) -> None:
        self.ladder: FloatArray = least * ratio ** np.arange(rungs, dtype=np.float64)
        self.rung = usual
        self.direction = 1
        self._draft: Callable[[int], Draft | None]

    def begin(self, drafting: Drafting) -> Draft | None:
        """Take up other drafts: the one at the present rung, or at the highest if that has none.

        The highest leaves most of the bound to charges, so if it has none there is none."""
        self._draft = cache(lambda rung: drafting(float(self.ladder[rung])))
        return self._draft(self.rung) or self._draft(self.ladder.size - 1)

    def step(self) -> Draft | None:
        """Go to a neighbour if it is cheaper there; if not, try the other direction next time."""
        self._leave_empty_rung()
        if not self._moved(self.direction):
            self.direction = -self.direction
        return self._draft(self.rung)

    def descend(self) -> Draft | None:
        """Go to the bottom of the valley."""
        self._leave_empty_rung()
        for direction in (1, -1):
            while self._moved(direction):
                pass
        return self._draft(self.rung)

    def _leave_empty_rung(self) -> None:
        if self._draft(self.rung) is None:
            self.rung = self.ladder.size - 1

    def _moved(self, direction: int) -> bool:
        rung = self.rung + direction
        if not 0 <= rung < self.ladder.size:
            return False
        if cost_of(self._draft(rung)) >= cost_of(self._draft(self.rung)):
            return False
        self.rung = rung
        return True


def usual_strengths() -> StrengthSearch:
    """The ladder for 0/1 rewards, and for those that have shown nothing else."""
    return StrengthSearch(
        tuning.LEAST_STRENGTH, tuning.STRENGTH_RATIO, tuning.STRENGTHS, tuning.USUAL
    )


def score_strengths() -> StrengthSearch:
    """The ladder for rewards that are not 0 or 1."""
    return StrengthSearch(*tuning.SCORE_LADDER)


def cost_of(draft: Draft | None) -> float:
    """The pulls of a draft; infinitely many if there is none."""
    return math.inf if draft is None else draft.cost
