"""Find the strength of the cheapest draft: descent along a ladder of strengths.

A larger strength pays less for ln(1/delta), a smaller one less for noise, and the cost has one
valley in between. It moves slowly as exploration goes on, so the rung is kept (warm start)."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.split import tuning
from shortlist.certification.split.drafting import Draft

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
