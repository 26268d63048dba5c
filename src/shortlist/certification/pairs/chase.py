"""Whom to pull where likelihoods are to tell one arm, the nominee, from all its rivals.

The nominee gets the share of the pulls that it has in what is known of the rivals least told from
it, and these get the rest: information-directed selection (You, Qin, Wang, Yang 2023). Nothing here
bears on the guarantee."""

from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.pairs.least_favourable import information, least_favourable

FEW = 4  # rivals whose evidence settles the nominee's share,
SHARES = 0.1, 0.9  # which lies between these
MARGIN = 0.002  # that means keep from 1
NOTHING = 1e-12  # instead of no evidence


@dataclass(frozen=True, slots=True)
class Chase:
    """What is known of each rival, in nats: (rival,)."""

    told: FloatArray  # against "the nominee should change places with it"
    share: FloatArray  # that the nominee's rewards have in it

    @classmethod
    def of(
        cls,
        pulls: IntArray,
        means: FloatArray,
        nominee: int,
        rivals: IntArray,
        gap: float,
        *,
        best: bool,
    ) -> "Chase":
        """The log likelihood ratio against the least favourable means; `best`: it is chosen."""
        inside = np.array([nominee]) if best else rivals
        outside = rivals if best else np.array([nominee])
        ratio = pulls[inside] / np.maximum(pulls[outside], 1)
        low = least_favourable(means[inside], means[outside], gap, ratio)
        high = np.minimum(low + gap, 1 - MARGIN)
        of_inside = (pulls[inside] + 1) * information(means[inside], low)
        of_outside = (pulls[outside] + 1) * information(means[outside], high)
        told = of_inside + of_outside + NOTHING
        return cls(told, (of_inside if best else of_outside) / told)

    def beside(self, own: int, times: IntArray, rng: np.random.Generator) -> IntArray:
        """Which rivals are pulled, so many `times` each, beside `own` pulls of the nominee."""
        order = np.lexsort((rng.random(self.told.size), self.told))
        share = float(np.clip(self.share[order[:FEW]].mean(), *SHARES))
        wanted = own * (1 - share) / share
        before = np.cumsum(times[order]) - rng.random() * times[order]  # rounded by lot
        return order[before < wanted]
