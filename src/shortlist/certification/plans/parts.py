"""All arms where they stopped, in parts that are believed and charged alike, and what they pay."""

from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Outlook
from shortlist.certification.plans.losses import Stakes
from shortlist.certification.plans.plan import Plan


@dataclass(frozen=True, slots=True)
class Part:
    """Arms of one plan and one block, and what is believed about them before they are seen."""

    plan: Plan
    arms: IntArray
    outlook: Outlook
    moving: float | None  # the boundary with which what is believed moves, if it does
    laws: tuple[FloatArray, FloatArray]  # as in `Plan.laws`, if it does not
    scores: FloatArray  # (states,): the expected mean
    places: FloatArray  # (states,): the boundary at which taking and leaving are charged the same

    def charged(
        self, ended: IntArray, stakes: Stakes, gap: float, *, roughly: bool
    ) -> tuple[float, FloatArray]:
        """What its arms are charged at least, in all, and their leads.

        Roughly, charges are not checked: no claim may rest on them."""
        leads = stakes.capped(self.places - stakes.boundary)
        charge = self.plan.rough_charges if roughly else self.plan.charges
        charges = charge(leads, stakes, gap, self._likely(stakes.boundary))
        return float(charges[ended].sum()), leads[ended]

    def _likely(self, boundary: float) -> FloatArray:
        """How likely every state is believed to be, if the boundary is here."""
        laws = self.laws
        if self.moving is not None:
            laws = self.plan.laws(self.outlook.moved(self.moving, boundary))
        return laws[0]


@dataclass(frozen=True, slots=True)
class Charged:
    """What all arms are charged: at least, in all, and more for leaving each than for taking it."""

    least: float
    leads: FloatArray  # (arms,)

    def by(self, chosen: IntArray) -> float:
        """If these arms are taken and no others."""
        more = self.leads.copy()  # to be paid where they are left out
        more[chosen] = -self.leads[chosen]
        return self.least + float(np.maximum(more, 0.0).sum())


@dataclass(frozen=True, slots=True)
class Settled:
    """All arms where they stopped, in parts."""

    parts: list[Part]
    ended: IntArray  # (arms,): numbers of states
    boundary: float  # where it is believed to be after all blocks but the last
    share: float  # of delta, that the track has on which they were settled

    def charged(self, stakes: Stakes, *, roughly: bool = False) -> Charged:
        """What all arms are charged at the boundary of these stakes."""
        inexact = tuning.ROUGH if roughly else tuning.EXACT
        gap = inexact * stakes.strength * stakes.reach / self.ended.size
        leads = np.zeros(self.ended.size)
        total = 0.0
        for part in self.parts:
            ended = self.ended[part.arms]
            least, leads[part.arms] = part.charged(ended, stakes, gap, roughly=roughly)
            total += least
        return Charged(total, leads)

    @property
    def scores(self) -> FloatArray:
        """The mean that is expected of every arm: (arms,)."""
        scores = np.zeros(self.ended.size)
        for part in self.parts:
            scores[part.arms] = part.scores[self.ended[part.arms]]
        return scores

    def outline(self) -> "Settled":
        """As if all arms of a plan had been in its last block: no claim may rest on that."""
        last = {id(part.plan): part for part in self.parts}
        parts = [replace(part, arms=part.plan.policy.group.arms) for part in last.values()]
        return replace(self, parts=parts)
