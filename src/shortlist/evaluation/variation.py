"""Whether the answer rests on arms that never varied, or hardly: as a cache, a fixed seed or one
visitor who answers many pulls would make them.

Honest arms may be constant, too, so this is a note and no warning, and it is made only where honest
rewards seldom look so. `docs/must-not.md` states both levels:

Rewards at the ends of the range, as 0 and 1. Under the null hypothesis the mean of every arm is
drawn from one Beta(1, b) or Beta(a, 1) distribution, a and b at least 1 and unknown: means are
spread over the range, or rare events, or rare failures. Under the alternative a share of the arms
repeats its first reward, always or mostly. The smallest ratio of their likelihoods over a and b
stays below 1 / LEVEL with probability 1 - LEVEL at all times (Ville's inequality).

Other rewards. An honest arm may give one number often. Arms that all give the same number are taken
to give it in the share ALIKE of their pulls, arms with numbers of their own in the share OWN. If
other arms varied, these say how often honest rewards repeat: the first change of each is not
counted, since it made the arm one that varied."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betaln, logsumexp

from shortlist.arms import OwnLabel
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.evaluation.exchangeability import STAY, SWITCH
from shortlist.problem import Problem
from shortlist.validation import shown

LEVEL = 0.05  # of rewards at the ends of the range
LEVEL_INSIDE = 1e-3  # of other rewards
ALIKE, OWN = 0.95, 0.8
MANY = 3  # different numbers: arms with this many, or all different, are taken to have their own
SHARES = np.array([0.25, 0.5, 0.75, 1.0])[:, None]  # of arms that repeat their first reward
STEEP = np.append(1.0, np.geomspace(1.25, 1e7, 80))  # values of a and b
LISTED = 3  # arms that are listed in a note


class Variation:
    """Counts per arm how often a reward differed from the one before."""

    def __init__(self, problem: Problem, n_arms: int) -> None:
        low, high = problem.rewards.support
        self._best, self._worst = (low, high) if problem.minimize else (high, low)
        self._pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._good: IntArray = np.zeros(n_arms, dtype=np.int64)  # rewards at the best end
        self._changes: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._last: FloatArray = np.full(n_arms, np.nan)
        self._inside = False  # whether any reward is not at an end

    def take(self, arms: IntArray, rewards: FloatArray) -> None:
        """See rewards, by arm and in the order of draws."""
        if arms.size == 0:
            return
        begins = np.flatnonzero(np.diff(arms, prepend=-1))
        before = np.concatenate([rewards[:1], rewards[:-1]])
        before[begins] = self._last[arms[begins]]
        changed = (rewards != before) & ~np.isnan(before)
        n_arms = self._pulls.size
        self._changes += np.bincount(arms[changed], minlength=n_arms)
        good = rewards == self._best
        self._good += np.bincount(arms[good], minlength=n_arms)
        self._pulls += np.bincount(arms, minlength=n_arms)
        self._inside |= bool((~good & (rewards != self._worst)).any())
        ends = np.append(begins[1:], arms.size) - 1
        self._last[arms[ends]] = rewards[ends]

    def note(self, labels: Sequence[OwnLabel], top: IntArray) -> str | None:
        """That the answer rests on arms that never varied, or hardly; None if honest rewards may
        well look so."""
        chosen = np.isin(np.arange(self._pulls.size), top)
        arms = self._repeating_inside(chosen) if self._inside else self._repeating(chosen)
        if not arms.any():
            return None
        changes = int(self._changes[arms].sum())
        seen = f"never varied: {self._listed(arms, labels)} pulls"
        if changes:
            times = "once" if changes == 1 else f"{changes:,} times"
            repeats = int((self._pulls[arms] - 1).sum())
            seen = f"hardly varied: in {repeats:,} pulls after their first, rewards changed {times}"
        return (
            f"the answer rests on arms that {seen}. This is usual for arms that always or never"
            " succeed. If a cache, a fixed seed or one visitor gave these rewards, nothing is"
            " guaranteed. See docs/must-not.md."
        )

    def _repeating(self, chosen: BoolArray) -> BoolArray:
        """The arms that repeat rewards at the ends of the range, a chosen one among them that is
        not at the worst end; none if the null hypothesis is not refuted."""
        pulled = self._pulls > 1
        ratios = self._log_ratios(pulled)
        odds = np.log(np.maximum(1 - SHARES, 1e-300))[..., None]  # (shares, 1, 1)
        mixed = np.logaddexp(odds, np.log(SHARES)[..., None] + ratios).sum(axis=-1)
        evidence = logsumexp(mixed, axis=0) - math.log(SHARES.size)  # (nulls,)
        null = int(evidence.argmin())
        arms = np.zeros_like(pulled)
        if evidence[null] >= -math.log(LEVEL):
            arms[pulled] = ratios[null] > 0
        rests = arms & chosen & (2 * self._good > self._pulls)
        return arms if rests.any() else np.zeros_like(arms)

    def _log_ratios(self, pulled: BoolArray) -> FloatArray:
        """The log-likelihood ratio of every arm that was pulled twice: (nulls, arms)."""
        total, good, changes = (each[pulled] for each in (self._pulls, self._good, self._changes))
        mostly = betaln(SWITCH + changes, STAY + total - 1 - changes) - betaln(SWITCH, STAY)
        mostly = np.where(2 * changes < total, mostly, -np.inf)  # alternation is no repeating
        always = np.where(changes == 0, 0.0, -np.inf)
        repeats = np.logaddexp(always, mostly) - math.log(4)  # half each, and the first reward
        ones = np.ones_like(STEEP)
        a, b = (np.append(*pair)[:, None] for pair in ((STEEP, ones), (ones, STEEP)))
        null = betaln(a + good, b + total - good) - betaln(a, b)
        return np.asarray(repeats - null)

    def _repeating_inside(self, chosen: BoolArray) -> BoolArray:
        """The arms that gave one number, if that is not an end of the range."""
        constant = (self._pulls > 1) & (self._changes == 0)
        varied = self._changes > 0
        if not varied.any():
            repeats = int((self._pulls[constant] - 1).sum())
            log_p = repeats * math.log(repeat_share(self._last[constant]))
            return np.asarray(constant & (log_p <= math.log(LEVEL_INSIDE)))
        arms = constant & chosen & (self._last != self._best) & (self._last != self._worst)
        repeats = int((self._pulls[arms] - 1).sum())
        changes = int((self._changes[varied] - 1).sum()) + 1
        again = int((self._pulls - 1 - self._changes)[varied].sum()) + 1
        log_p = float(betaln(again + repeats, changes) - betaln(again, changes))
        return np.asarray(arms & (log_p <= math.log(LEVEL_INSIDE)))

    def _listed(self, arms: BoolArray, labels: Sequence[OwnLabel]) -> str:
        often = np.argsort(-self._pulls * arms, kind="stable")[:LISTED]
        return ", ".join(
            f"{shown(labels[arm])} gave {self._last[arm]:.15g} in all of {self._pulls[arm]:,}"
            for arm in often[arms[often]].tolist()
        )


def repeat_share(numbers: FloatArray) -> float:
    """How often honest rewards are taken to repeat where every arm gave one number, these."""
    different = np.unique(numbers).size
    return OWN if different >= MANY or different == numbers.size > 1 else ALIKE
