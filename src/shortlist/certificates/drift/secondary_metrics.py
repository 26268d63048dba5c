"""Secondary metrics of a live test, such as a bounce: every arm against a control, and guardrails.

Theorem 1 of docs/drift.md needs of a reward only that it lies in [0, 1] and that visitors are
assigned at random. So a metric has bets of its own, on the pairs with the control alone, and its
intervals hold at all times with a probability of error of its own. The search uses none of it."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.drift.bound import BlockTerms, BlockWealth, log_level, most_step
from shortlist.certificates.drift.planning import METRIC_VISITORS, PRIOR_VISITORS, Leads, Rate
from shortlist.certificates.pairs.bound import StageRewards

ROUNDED = 4  # digits of the terms, which are in the log of every block


@dataclass(frozen=True, slots=True)
class Compared:
    """The average lead of every arm over the control: estimate and interval, (n,) each.

    All intervals hold together at all times. An estimate is NaN without a common block."""

    lead: FloatArray
    low: FloatArray
    high: FloatArray


class MetricTest:
    """One metric of all arms against the arm number `control`, block by block in one order."""

    def __init__(self, n_arms: int, control: int, delta: float, visitors: float | None) -> None:
        """`visitors` come before the first result; None if that is not known."""
        self.control = control
        self._delta = delta
        self._coming = METRIC_VISITORS if visitors is None else visitors
        self._wealth = BlockWealth(n_arms)
        self._leads = Leads(n_arms)
        self._rate = Rate(0.5 * PRIOR_VISITORS)
        self._visitors = 0.0  # told so far
        self._passed = 0  # blocks told, those that count nothing included
        self._staying: BoolArray = np.ones(n_arms, dtype=np.bool_)

    def terms(self, shares: FloatArray) -> BlockTerms:
        """The terms of a block that is opened now: bets on the smallest lead that can be seen at
        about twice the visitors so far."""
        centre = _rounded(self._rate.value)
        variance = centre * (1 - centre)
        each = float(shares[shares > 0].min()) * (2 * self._visitors + self._coming)
        lead = np.sqrt(4 * variance * self._level / each)
        step = _rounded(min(float(lead) / (2 * variance), most_step(shares, centre)))
        return BlockTerms(shares, step, centre)

    def first_terms(self, shares: FloatArray) -> BlockTerms:
        """The terms of a block that was opened before the metric was known: fixed beforehand."""
        fresh = MetricTest(self._staying.size, self.control, self._delta, self._coming)
        return fresh.terms(shares)

    def take(self, terms: BlockTerms, told: StageRewards) -> None:
        """Count the next block in order."""
        self._passed += 1
        self._visitors += float(told.times.sum())
        self._rate.take(told)
        i, j = self._pairs(terms)
        self._wealth.book(terms, told, binary=False, pairs=(i, j))
        self._leads.take(terms, told, pairs=(i, j))

    def leave_out(self) -> None:
        """The next block in order is skipped or refused: nothing of it counts."""
        self._passed += 1

    def retire(self, arm: int) -> None:
        """The comparison of this arm, or of all with the control, ends here: its visitors see
        something else from now on. Bounds hold at all times, so also at this one."""
        self._staying[arm] = False

    def compared(self) -> Compared:
        """What is known of every arm by now."""
        bounds, control = np.minimum(self._wealth.bounds(self._level), 1.0), self.control
        return Compared(self._leads.over(control), -bounds[:, control], bounds[control])

    def _pairs(self, terms: BlockTerms) -> tuple[IntArray, IntArray]:
        """The pairs with the control that a block tells something of."""
        i, j = terms.pairs(self._staying)
        kept = (i == self.control) | (j == self.control)
        return i[kept], j[kept]

    @property
    def _level(self) -> float:
        """What the log of the wealth has to reach: both sides of every comparison."""
        return log_level(2 * (self._staying.size - 1), self._delta, self._passed)


def _rounded(value: float) -> float:
    """Rounded down, so that no bet becomes too large."""
    scale = 10.0 ** (ROUNDED - 1 - np.floor(np.log10(value)))
    return float(np.floor(value * scale) / scale)
