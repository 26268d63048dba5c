"""How strong a look should be, and what it is expected to take: forecasts without detail.

The strength trades what delta costs, ln(1/delta) / strength, against charges, which grow with it:
slowly where many arms are close to the boundary, fast where all are far away."""

from dataclasses import dataclass

from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.boundaries import Boundaries
from shortlist.certification.plans.drafts import Drafts
from shortlist.certification.plans.losses import Stakes


@dataclass(frozen=True, slots=True)
class Sketch:
    """Stakes, and about the fresh pulls that plans with them are expected to take."""

    stakes: Stakes
    pulls: float


def sketched(belief: Belief, reach: float, delta: float, *, usual: bool = False) -> Sketch:
    """The best of some strengths, from the weakest on as long as it gets better, or that one."""
    first = Boundaries.around(belief.boundary, belief.error, delta * tuning.STAGES[0][1])

    def sketch(strength: float) -> Sketch:
        stakes = Stakes(belief.boundary, strength * first.least_threshold / reach, reach)
        charges = first.left_for_charges(stakes) - (1 - tuning.SAFE) * reach
        drafts = Drafts(belief, stakes, charges, sketchy=True)
        return Sketch(stakes, drafts.expected_pulls(charges))

    weakest, *stronger = tuning.STRENGTHS
    best = sketch(weakest)
    for strength in () if usual else stronger:
        other = sketch(strength)
        if other.pulls >= best.pulls:
            break
        best = other
    return best
