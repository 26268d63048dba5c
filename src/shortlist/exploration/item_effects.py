"""What scores say of arms that did not see the same items: effects of arms and of items.

    x_is = a_i + b_s + noise,   a_i ~ N(0, arms),   b_s ~ N(mu, items)

An arm's mean over all items is then what it scored and, on items it has not seen, a_i + b_s. The
three variances are fitted along the way by steps of EM. That of arms is the one that few items say
little of, and that all depends on: it is shrunk to a small share of the noise. Where arms have
orders of their own, places in the order have nothing in common, and the variance of items goes to 0
by itself.

Searle, Casella, McCulloch (1992), two-way crossed classification, chapter 7."""

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.exploration import item_tuning
from shortlist.exploration.item_sums import ItemSums

STEPS = 3  # of alternating between arms and items, each time more was seen
START = 0.004, 0.08, 0.15  # variances of arms, items and noise: about those of 0/1 scores
LEAST = 1e-9  # of a variance


class ItemEffects:
    """The posterior of arms and items, given all that was seen."""

    def __init__(self, sums: ItemSums) -> None:
        self.sums = sums
        self.arm: FloatArray = np.zeros(sums.counts.size)  # a
        self.of_arms, self.of_items, self.noise = START

    def refresh(self) -> None:
        """Take in what was seen since; some cell was."""
        sums = self.sums
        self._reach = int(np.flatnonzero(sums.seers)[-1]) + 1  # no arm was scored beyond
        self._seen = sums.seen[:, : self._reach]
        for _ in range(STEPS):
            item = self._alternate()
        explained = self._seen @ item
        self._gained: FloatArray = sums.by_arm - explained  # beyond what items explain
        self._learn(item, explained)

    def _alternate(self) -> FloatArray:
        """Effects of items given those of arms, then of arms given those of items."""
        sums, seers = self.sums, self.sums.seers[: self._reach]
        raw = (sums.by_item[: self._reach] - self.arm @ self._seen) / np.maximum(seers, 1)
        level = float(raw[seers > 0].mean())
        item: FloatArray = level + self._trust(seers) * (raw - level)
        gained = sums.by_arm - self._seen @ item
        arm = gained / (sums.counts + self.noise / self.of_arms)
        self.arm = arm - arm.mean()
        return item

    def _trust(self, seers: FloatArray) -> FloatArray:
        """Of what an item's scores say, the share that is taken for its own effect."""
        trust: FloatArray = seers / (seers + self.noise / self.of_items)
        return trust

    def _learn(self, item: FloatArray, explained: FloatArray) -> None:
        """The three variances."""
        sums, seers = self.sums, self.sums.seers[: self._reach]
        there = seers > 0
        squares = sums.squares - 2 * self.arm @ sums.by_arm - 2 * item @ sums.by_item[: item.size]
        squares += self.arm**2 @ sums.counts + item**2 @ seers + 2 * self.arm @ explained
        freedom = sums.counts.sum() - self.arm.size - self._trust(seers).sum()
        self.noise = max(float(squares) / max(1.0, float(freedom)), LEAST)
        self.of_arms = self._believed(self._variance(self.arm, self.of_arms, sums.counts))
        around = item[there] - item[there].mean()
        self.of_items = self._variance(around, self.of_items, seers[there])

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
        size = self.sums.seers.size
        means: FloatArray = (self._gained + (size - self.sums.counts) * self.arm) / size
        return means

    def apart(self, opponent: int) -> FloatArray:
        """Variances of the differences of all arms to one, all that seeing more could reduce.

        On an item that both have seen its effect cancels out; on one that only one of them has, its
        effect is known as well as the other arms that saw it tell: (arms,)."""
        seers = self.sums.seers[: self._reach]
        others = self.noise / self.of_items + np.maximum(seers - 1, 0)
        alone = others / (others + 1)  # what an item is worth that the other arm has not seen
        met = self._seen[opponent]
        together = self._seen @ (met * (1 - alone))
        theirs = self._unknown(self._seen @ alone + together, self.sums.counts)
        return theirs + self._unknown(met @ alone + together, self.sums.counts[opponent])

    def _unknown(self, worth: FloatArray, counts: FloatArray) -> FloatArray:
        """Variances of means that rest on items of this worth, in full ones: (arms,)."""
        size = self.sums.seers.size
        unseen = 1 - counts / size
        variances: FloatArray = unseen**2 * self.noise / (worth + self.noise / self.of_arms)
        return variances + unseen * self.noise / size
