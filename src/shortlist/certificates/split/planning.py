"""Draft a certificate: how many fresh pulls of every arm, and how to charge them.

Exploration gives a posterior of every arm, and so the expected charge of every candidate
(expected_charges.py). The draft takes one candidate for every group of arms such that the bound is
expected to reach its target with the fewest pulls: a multiple-choice knapsack. Pulls are traded
against expected charges by a Lagrange multiplier, the worth of a unit of charge in pulls; each
group takes the candidate of least pulls + multiplier * charge, and bisection finds the multiplier.

A larger strength pays less for ln(1/delta), a smaller one less for noise, and the cost has one
minimum in between. It moves slowly as exploration continues, so the search for it starts from the
last strength. No guarantee rests on any of this."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, grouped, grouped_by
from shortlist.certificates.split.bound import Certificate, declare
from shortlist.certificates.split.expected_charges import (
    ExpectedCharges,
    ScoreCharges,
)
from shortlist.certificates.under_constraints import reference_prices, surplus
from shortlist.exploration.posterior import Posterior
from shortlist.exploration.prices import PricedPosterior
from shortlist.reward_models import RewardModel

# These cost pulls or time; no bound rests on them.
OFFERED = 40  # largest number of fresh pulls of an arm, in units of the average explored
MULTIPLIER_HALVINGS = 12  # of the interval in which the Lagrange multiplier is sought
LEAST_STRENGTH = 1.5  # smallest strength tried, in units of ln(1/delta) / (k epsilon), ...
STRENGTH_RATIO = 1.3  # ... ratio of a strength to the one before, ...
STRENGTHS_ON_LADDER = 8  # ... number of strengths, ...
USUAL = 3  # ... and number of those smaller than the one tried first
SCORE_LADDER = (1.15, 1.2, 12, 4)  # the same four where rewards are not 0 or 1

LEAST_MULTIPLIER = -3.0  # common logarithm: so small that hardly any pull is worth it


@dataclass(frozen=True)
class Knapsack:
    """The pulls and the expected charge of every candidate for an arm of every group."""

    size: FloatArray  # (groups,): arms
    pulls: FloatArray  # (groups, candidates): still to be made; inf where more were made already
    charge: FloatArray  # (groups, candidates)
    largest: float  # common logarithm of the largest multiplier

    def choose(self, multiplier: float) -> IntArray:
        """The best candidate of every group at this multiplier: (groups,)."""
        choice: IntArray = np.argmin(self.pulls + multiplier * self.charge, axis=1)
        return choice

    def cost(self, choice: IntArray) -> float:
        """Pulls to be made in all."""
        return float(self.size @ self.pulls[np.arange(choice.size), choice])

    def total(self, choice: IntArray) -> float:
        """Charge to expect in all."""
        return float(self.size @ self.charge[np.arange(choice.size), choice])

    def cheapest(self, spare: float) -> IntArray | None:
        """The choice of least cost whose total charge is at most `spare`."""
        _, choice = self._bisect(lambda choice: self.total(choice) <= spare)
        return choice if self.total(choice) <= spare else None

    def within(self, budget: int) -> IntArray | None:
        """The choice of least charge whose cost is at most `budget`."""
        fewer, more = self._bisect(lambda choice: self.cost(choice) > budget)
        if self.cost(more) <= budget:  # it pays for every pull that is worth anything
            return more
        return fewer if self.cost(fewer) <= budget else None

    def _bisect(self, far_enough: Callable[[IntArray], bool]) -> tuple[IntArray, IntArray]:
        """The choices on both sides of the multiplier at which `far_enough` becomes true."""
        low = LEAST_MULTIPLIER
        high = self.largest
        for _ in range(MULTIPLIER_HALVINGS):
            middle = (low + high) / 2
            if far_enough(self.choose(10**middle)):
                high = middle
            else:
                low = middle
        return self.choose(10**low), self.choose(10**high)


MOST_DRAFTED = 2**60  # pulls of an arm in a draft: counted without overflow
FEWEST = 64  # pulls of an arm that are offered in any case, however little was explored


@dataclass(frozen=True)
class Draft:
    """A certificate to be declared, with its expected cost and bound."""

    chosen: BoolArray  # (arms,), as all arrays here
    boundary: FloatArray | float
    strength: float
    pulls: IntArray
    start: FloatArray
    slope: FloatArray
    cost: int  # pulls still to be made
    expected: float  # the bound on k * regret to expect
    surplus: float = 0.0
    reference: FloatArray | None = None  # of a perfect matching: prices before they were cut

    def declare(
        self, delta: float, reach: float, rewards: RewardModel, blur: float = 0.0
    ) -> Certificate:
        """Fix the certificate; `blur` bounds the rounding errors of the means."""
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
            surplus=self.surplus,
        )


def at_stage(draft: Draft, part: float, made: IntArray) -> Draft:
    """The same bets for another part of the pulls, but no fewer than were `made`."""
    pulls = np.maximum(np.ceil(part * draft.pulls).astype(np.int64), made)
    return replace(draft, pulls=pulls, slope=draft.slope / draft.pulls * pulls)


class Drafter:
    """Drafts certificates for one set at one boundary, or at its prices, of any strength.

    `made` are certification pulls made before, which a draft can only add to; `most` are those that
    limits leave to it in all, if there are limits. Arms that are alike, in what is known of them,
    their price, their side, their `made` and their `most`, form a group."""

    def __init__(
        self,
        posterior: Posterior,
        chosen: BoolArray,
        boundary: FloatArray | float,
        made: IntArray,
        reach: float,
        most: IntArray | None = None,
        *,
        surplus: float = 0.0,
        reference: FloatArray | None = None,
    ) -> None:
        self.chosen = chosen
        self.reference = reference
        self.boundary = boundary
        self.surplus = surplus
        self.made = made
        kind_of_charges = ScoreCharges if posterior.graded else ExpectedCharges
        prices, price = grouped(np.broadcast_to(boundary, made.shape))
        offered = _most_pulls(posterior, made)
        self.charges = [
            kind_of_charges(posterior, each, reach, offered) for each in prices.tolist()
        ]
        most = np.full(made.size, MOST_DRAFTED) if most is None else most
        # (groups,) price, kind, `made` and `most` of a group; (arms,) the group of an arm
        (self.price, kind, before, limit), self.group = grouped_by(
            price, posterior.kinds(chosen), made, most
        )
        self.size: FloatArray = np.bincount(self.group).astype(np.float64)  # (groups,)
        pulls = self.charges[0].candidates.pulls[0]
        more = pulls - before[:, None]  # (groups, candidates)
        self.pulls: FloatArray = np.where((more >= 0) & (pulls <= limit[:, None]), more, np.inf)
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

        With a `budget`, the draft of the least bound for that many more pulls instead. `threshold`
        is ln(1/delta), which costs threshold / strength of the bound."""
        knapsack = self._knapsack(strength)
        paid = threshold / strength + self.surplus
        choice = knapsack.cheapest(target - paid) if budget is None else knapsack.within(budget)
        if choice is None:
            return None
        return self._drafted(choice, strength, knapsack.total(choice) + paid)

    def _drafted(self, choice: IntArray, strength: float, expected: float) -> Draft:
        # (arms,) each: price, side and candidate
        mine = self.price[self.group], self.side[self.group], choice[self.group]
        pulls = self.charges[0].candidates.pulls[mine[1:]].astype(np.int64)
        return Draft(
            chosen=self.chosen,
            boundary=self.boundary,
            strength=strength,
            pulls=pulls,
            start=np.stack([each.candidates.start for each in self.charges])[mine],
            slope=np.stack([each.slopes(strength) for each in self.charges])[mine],
            cost=int((pulls - self.made).sum()),
            expected=expected,
            surplus=self.surplus,
            reference=self.reference,
        )

    def _knapsack(self, strength: float) -> Knapsack:
        parts = []
        for number, each in enumerate(self.charges):  # groups come by their price
            here = self.price == number
            parts.append(each.expected(strength, self.side[here], self.row[here]))
        charge = np.concatenate(parts)  # (groups, candidates)
        # One pull more of an arm with N saves a charge of about strength / 8N^2, if noise is all
        # that is charged.
        flattest = min(float(each.slopes(strength).min()) for each in self.charges)
        most = float(self.charges[0].candidates.pulls.max())
        least_saved = flattest / (8 * most**2)
        return Knapsack(self.size, self.pulls, charge, largest=2 - math.log10(least_saved))


@dataclass(frozen=True)
class Choice:
    """The set that exploration would choose now, and the boundary to certify it at."""

    chosen: BoolArray  # (arms,)
    boundary: FloatArray | float  # a price per arm, where not every set of k arms is allowed
    surplus: float  # of the prices
    loss: float  # expected total distance on the wrong side of the boundary
    reference: FloatArray | None = None  # of a perfect matching: prices before they were cut

    @classmethod
    def of(cls, posterior: Posterior, rng: np.random.Generator) -> "Choice":
        """The present choice of a posterior."""
        if isinstance(posterior, PricedPosterior):
            chosen, prices = posterior.priced(rng)
            exceeded = surplus(posterior.constraint, chosen, prices)
            reference = reference_prices(posterior.constraint, chosen, prices)
            loss = posterior.total_loss(chosen, prices)
            return cls(chosen, prices.of_arms, exceeded, loss, reference)
        chosen, _ = posterior.split(rng)
        boundary = posterior.balance(chosen)
        return cls(chosen, boundary, 0.0, posterior.expected_loss(chosen, boundary))

    def drafter(
        self, posterior: Posterior, made: IntArray, reach: float, most: IntArray | None
    ) -> Drafter:
        """Drafts certificates for it."""
        given = self.chosen, self.boundary, made, reach, most
        return Drafter(posterior, *given, surplus=self.surplus, reference=self.reference)


def _most_pulls(posterior: Posterior, made: IntArray) -> int:
    """Pulls of an arm that are offered: many times those explored, and all that were made."""
    explored = int(posterior.pulls.mean())
    offered = min(max(FEWEST, OFFERED * explored), MOST_DRAFTED)
    return max(int(made.max()), offered)


Drafting = Callable[[float], Draft | None]  # of a strength in units of ln(1/delta) / (k epsilon)


class StrengthSearch:
    """Descent along a ladder of strengths: the present rung and the last direction."""

    def __init__(self, least: float, ratio: float, rungs: int, usual: int) -> None:
        self.ladder: FloatArray = least * ratio ** np.arange(rungs, dtype=np.float64)
        self.rung = usual
        self.direction = 1
        self._draft: Callable[[int], Draft | None]

    def begin(self, drafting: Drafting) -> Draft | None:
        """Use another draft function; return its draft at the present rung, or at the highest.

        The highest leaves most of the bound to charges, so if it has no draft, no rung has."""
        self._draft = cache(lambda rung: drafting(float(self.ladder[rung])))
        return self._draft(self.rung) or self._draft(self.ladder.size - 1)

    def step(self) -> Draft | None:
        """Move to a neighbour if it is cheaper; if not, try the other direction next time."""
        self._leave_empty_rung()
        if not self._moved(self.direction):
            self.direction = -self.direction
        return self._draft(self.rung)

    def descend(self) -> Draft | None:
        """Move to the minimum of the cost."""
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
    return StrengthSearch(LEAST_STRENGTH, STRENGTH_RATIO, STRENGTHS_ON_LADDER, USUAL)


def score_strengths() -> StrengthSearch:
    """The ladder for rewards that are not 0 or 1."""
    return StrengthSearch(*SCORE_LADDER)


def cost_of(draft: Draft | None) -> float:
    """The pulls of a draft; infinitely many if there is none."""
    return math.inf if draft is None else draft.cost
