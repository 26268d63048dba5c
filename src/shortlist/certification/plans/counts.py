"""From which score on arms are taken, so that there are k of them in the end.

The score of an arm is the mean that is expected of it. What is expected of arms that are not
settled yet says how many of them will have scores above any threshold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.parts import Part
from shortlist.certification.plans.plan import above

SPAN = np.linspace(-12, 12, 97)  # errors of the boundary within which arms begin to be taken
LEAST_DOUBT = 1e-9  # about a score


@dataclass(frozen=True, slots=True)
class Threshold:
    """The score from which on arms are to be taken, and the doubt about it."""

    score: float
    doubt: float


@dataclass(slots=True)
class Track:
    """One way to settle all arms: how many it aims to take, and has taken; its share of delta."""

    aim: float
    share: float
    taken: int = 0
    steps: list[tuple[Part, Threshold]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of the arms ahead are expected to have scores above some thresholds."""

    ahead: list[Part]
    belief: Belief
    thresholds: FloatArray  # rising
    above: FloatArray  # (thresholds,)

    @classmethod
    def of(cls, ahead: list[Part], belief: Belief) -> "Counts":
        """The counts that a belief expects of parts which it knows no rewards of."""
        thresholds = np.clip(belief.boundary + SPAN * belief.error, 0.0, 1.0)
        expected = np.zeros(thresholds.size)
        for part in ahead:
            expected += part.arms.size * above(thresholds, part.scores, part.laws[1])
        return cls(ahead, belief, thresholds, expected)

    @property
    def best(self) -> float:
        """How many of them are expected to have means above the boundary."""
        beyond = self.belief.grid > self.belief.boundary
        return sum(part.arms.size * float(part.outlook.sharp[beyond].sum()) for part in self.ahead)

    def tracks(self) -> list[Track]:
        """Some that aim to take k arms, or as many more or fewer as the last block may be off."""
        score = np.array([self.threshold(self.belief.k).score])
        chances = [(part, above(score, part.scores, part.laws[1])[0]) for part in self.ahead]
        variance = sum(part.arms.size * chance * (1 - chance) for part, chance in chances)
        off = math.sqrt(tuning.BLOCKS[-1] * max(float(variance), 0.0))
        return [Track(self.belief.k + times * off, share) for times, share in tuning.TRACKS]

    def threshold(self, wanted: float) -> Threshold:
        """Such that so many arms are expected above.

        If that were farther than moving an arm costs from where as many are expected above as have
        means above the boundary, arms are rather moved."""
        usual, filling = np.interp([-self.best, -wanted], -self.above, self.thresholds)
        error = self.belief.error
        deviation = _deviation(self.ahead, float(usual), error)
        price = tuning.MOVING * deviation
        score = float(np.clip(filling, usual - price, usual + price))
        low, high = np.interp(score + error * np.array([-1.0, 1.0]), self.thresholds, self.above)
        share = sum(part.arms.size for part in self.ahead) / self.belief.row.size
        density = max(low - high, 1.0) / (2 * error * share)  # of all arms, by their scores
        doubt = min(tuning.MISCOUNT / density, tuning.BLUR * deviation)
        return Threshold(score, max(doubt, LEAST_DOUBT))


def _deviation(ahead: Sequence[Part], score: float, within: float) -> float:
    """Of a mean about which fresh rewards make this score expected, by how often it is pulled."""
    likely, pulls = 1e-12, 1e-12
    for part in ahead:
        near = np.abs(part.scores - score) < within
        weights = part.arms.size * part.laws[1][near]
        likely += float(weights.sum())
        pulls += float((weights * part.plan.states.pulls[near]).sum())
    return math.sqrt(score * (1 - score) * likely / pulls)
