"""What tracks and boundaries prove for one set together.

A claim is what one track at one boundary says about a set. Each has its share of delta, and their
shares are weights of a mean (docs/plans.md, Lemma 4): claims that are charged about the same cost
hardly more than one that has all their shares. To check (*) takes long, so charges are estimates
at first; only claims that were checked count."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from shortlist.arrays import FloatArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.boundaries import Boundaries
from shortlist.certification.plans.parts import Settled


@dataclass(slots=True)
class Claim:
    """What a track at boundary j charges a set; an estimate until it is checked."""

    track: Settled
    j: int
    charges: float
    checked: bool = False


class Claims:
    """Claims about one set, of strength lambda at some boundaries.

    `check` has the charges of the set on a track at a boundary, for which (*) holds."""

    def __init__(
        self, boundaries: Boundaries, strength: float, check: Callable[[Settled, int], float]
    ) -> None:
        self.boundaries = boundaries
        self.strength = strength
        self.check = check
        self.all: list[Claim] = []

    def add(self, track: Settled, at: Sequence[int], about: FloatArray) -> None:
        """Those of a track at some boundaries, and about what is charged there."""
        self.all += [Claim(track, j, each) for j, each in zip(at, about.tolist(), strict=True)]

    def bound(self, reach: float) -> float:
        """One that holds and is within the reach, or else about the least that there is.

        Claims are checked, those that matter most first, until that suffices or cannot any more.
        What one estimate was off by, the others are taken to be, too."""
        self.all.sort(key=self._exponent, reverse=True)
        checked = [each for each in self.all if each.checked]
        unchecked = [each for each in self.all if not each.checked]
        while not 0 <= (proved := self.together(checked)) <= reach:
            about = self.together(self.all)
            inexact = tuning.EXACT if checked else tuning.ROUGH
            if not unchecked or not about <= (1 + inexact) * reach:
                return _beyond(reach, about)
            claim = unchecked.pop(0)
            charges = self.check(claim.track, claim.j)
            off = charges - claim.charges
            for each in unchecked:
                each.charges = each.charges + off if math.isfinite(off) else math.inf
            claim.charges, claim.checked = charges, True
            checked.append(claim)
        return proved

    def together(self, claims: Sequence[Claim]) -> float:
        """The bound that claims prove if they are all right. (Lemma 4)"""
        if not claims:
            return math.inf
        exponents = np.array([self._exponent(each) for each in claims])
        return -float(logsumexp(exponents)) / self.strength

    def _exponent(self, claim: Claim) -> float:
        """The logarithm of what it adds to the sum of Lemma 4."""
        share = math.log(claim.track.share) - float(self.boundaries.thresholds[claim.j])
        return share - self.strength * claim.charges


def _beyond(reach: float, about: float) -> float:
    """A bound that is no proof, whatever `about` is: if it is not a number, the largest."""
    return math.inf if math.isnan(about) else max(about, math.nextafter(reach, math.inf))
