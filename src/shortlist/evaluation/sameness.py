"""A function that gives the same number every time is no draw of a reward: say so, once."""

import math
from collections.abc import Iterable

import numpy as np

from shortlist.caution import caution
from shortlist.evaluation.variation import ALIKE, LEVEL_INSIDE, OWN, repeat_share
from shortlist.reward_models import RewardModel


class Sameness:
    """Watches rewards until one differs from the first of its arm.

    Arms may well give nothing but the least or the largest reward, as 0 and 1: of these alone
    nothing is said. Honest arms may give one number often: `variation.py` says how often they are
    taken to, and from how many repeats on this is doubted."""

    def __init__(self, rewards: RewardModel) -> None:
        self._ends = rewards.support
        self._first: dict[object, float] = {}
        self._repeated = 0
        self._inside: tuple[object, float] | None = None  # an arm, and its reward between the ends
        self._settled = False

    def see(self, label: object, rewards: Iterable[float]) -> None:
        """Take note of rewards of an arm."""
        for reward in rewards:
            if self._settled:
                return
            self._see(label, float(reward))

    @property
    def _likely(self) -> bool:
        """Whether honest arms may well have repeated their rewards this often."""
        if (
            self._repeated * math.log(ALIKE)
            > math.log(LEVEL_INSIDE)
            > self._repeated * math.log(OWN)
        ):
            share = repeat_share(np.array(list(self._first.values())))
            return self._repeated * math.log(share) > math.log(LEVEL_INSIDE)
        return self._repeated * math.log(OWN) > math.log(LEVEL_INSIDE)

    def _see(self, label: object, reward: float) -> None:
        known = label in self._first
        self._settled = self._first.setdefault(label, reward) != reward
        self._repeated += known
        if reward not in self._ends:
            self._inside = label, reward
        if self._settled or self._inside is None or self._likely:
            return
        self._settled = True
        label, reward = self._inside
        caution(
            f"every arm gave one number again and again, as {label!r} {reward:.15g}, but rewards"
            " must be independent draws: is there a cache, or a fixed seed in the function?"
        )
