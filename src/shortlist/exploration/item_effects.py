"""What scores say of arms that did not see the same items: effects of arms and of items.

    x_is = a_i + b_s + noise,   a_i ~ N(0, arms),   b_s ~ N(mu, items)

An arm's mean over all items is then what it scored and, on items it has not seen, a_i + b_s. The
three variances are fitted along the way by steps of EM. That of arms is the one that few items say
little of, and that all depends on: it is shrunk to a small share of the noise. Where arms have
orders of their own, places in the order have nothing in common, and the variance of items goes to 0
by itself.

Searle, Casella, McCulloch (1992), two-way crossed classification, chapter 7."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.exploration import item_tuning

STEPS = 3  # of alternating between arms and items, each time more was seen
START = 0.004, 0.08, 0.15  # variances of arms, items and noise: about those of 0/1 scores
LEAST = 1e-9  # of a variance


class ItemEffects:
    """The posterior of arms and items, given all that was seen."""

    def __init__(self, n_arms: int) -> None:
        self.arm: FloatArray = np.zeros(n_arms)  # a
        self.of_arms, self.of_items, self.noise = START

    def refresh(self, scores: FloatArray, seen: BoolArray) -> None:
        """Take in scores, 0 where nothing was seen: both (arms, items)."""
        there = seen.any(0)
        mask = seen[:, there].astype(np.float64)
        x = scores[:, there]
        self.size = seen.shape[1]
        self.counts: FloatArray = mask.sum(1)
        for _ in range(STEPS):
            item = self._alternate(x, mask)
        self._gained: FloatArray = x.sum(1) - mask @ item  # beyond what items explain
        self._learn(x, mask, item)

    def _alternate(self, x: FloatArray, mask: FloatArray) -> FloatArray:
        """Effects of items given those of arms, then of arms given those of items."""
        seers = mask.sum(0)
        raw = (x.sum(0) - self.arm @ mask) / seers
        trust = seers / (seers + self.noise / self.of_items)
        item: FloatArray = raw.mean() + trust * (raw - raw.mean())
        arm = (x.sum(1) - mask @ item) / (self.counts + self.noise / self.of_arms)
        self.arm = arm - arm.mean()
        return item

    def _learn(self, x: FloatArray, mask: FloatArray, item: FloatArray) -> None:
        """The three variances."""
        rest = (x - self.arm[:, None] - item) * mask
        freedom = max(1.0, mask.sum() - mask.shape[0] - mask.shape[1])
        self.noise = max(float((rest**2).sum()) / freedom, LEAST)
        self.of_arms = self._believed(self._variance(self.arm, self.of_arms, self.counts))
        self.of_items = self._variance(item - item.mean(), self.of_items, mask.sum(0))

    def _believed(self, found: float) -> float:
        """The variance of arms, shrunk to what is believed of it."""
        weight = item_tuning.BELIEF
        return (found + weight * item_tuning.SCATTER * self.noise) / (1 + weight)

    def _variance(self, effects: FloatArray, before: float, counts: FloatArray) -> float:
        """The mean square of effects, what is not known of each included."""
        unknown = self.noise * before / (self.noise + counts * before)
        return max(float((effects**2 + unknown).mean()), LEAST)

    @property
    def means(self) -> FloatArray:
        """Means over all items, less what all arms have in common: (arms,)."""
        means: FloatArray = (self._gained + (self.size - self.counts) * self.arm) / self.size
        return means

    @property
    def variances(self) -> FloatArray:
        """Variances of these means, all that seeing more could reduce: (arms,)."""
        of_arm = self.noise * self.of_arms / (self.noise + self.counts * self.of_arms)
        unseen = 1 - self.counts / self.size
        variances: FloatArray = unseen**2 * of_arm + unseen * self.noise / self.size
        return variances
