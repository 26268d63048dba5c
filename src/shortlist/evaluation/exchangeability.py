"""Whether the rewards of an arm come in random order: a test that is valid at any time.

Under the declaration the rewards of an arm are independent draws from one distribution, whatever
the search asks for. Each reward is reduced to a bit, whether it exceeds a threshold that the first
few rewards of its arm fixed. The bits of an arm are then Bernoulli(theta) for some unknown theta.

Let P be the largest likelihood of t bits with s ones under any theta, (s/t)^s (1 - s/t)^(t-s), and
Q their probability under another model, which is fixed beforehand. Q / (true likelihood) is a
martingale from 1, so Q / P is at most a martingale, and it stays below 1 / alpha with probability
1 - alpha at all times, however the search samples (Ville's inequality). The other models:

    Markov    each bit depends on the one before: repeated answers, alternation
    groups    every 16, 128, 1,024, ... bits have a mean of their own: blocks, drift

docs/must-not.md says what is tested, and why not simply the order given the counts."""

import math

import numpy as np
from scipy.special import betaln, gammaln, xlogy

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.grouping import total_before
from shortlist.reward_models import RewardModel

FIRST = 7  # rewards of an arm that fix its threshold, and are not tested
GROUPS = tuple(16 * 8**level for level in range(6))  # bits that share a mean, per model
SWITCH, STAY = 0.25, 1.0  # Beta prior of the Markov model: bits are likely to repeat
# of the capital on each model: (models, 1)
WEIGHTS = np.array([0.5] + [0.5 / len(GROUPS)] * len(GROUPS))[:, None]
MEMORY = 8  # bits that the mean of an arm before a group is worth in predicting the group
SHARE = 0.1  # of the capital on each arm where few of many arms may be wrong


class Bits:
    """Reduces the rewards of every arm to bits: does a reward exceed the threshold of its arm?

    The threshold lies as near the median of the first FIRST rewards as it can while they lie on
    both sides. If these are all equal, the bit is whether a reward differs from them. Rewards that
    are declared to be 0 or 1 are bits already. Where the first rewards of all arms are the least or
    the largest possible, these are left out, and the threshold lies half-way between."""

    def __init__(self, n_arms: int, model: RewardModel) -> None:
        self._ends = model.support
        self._skipped = 0 if model.is_binary else FIRST  # rewards of an arm that are not tested
        self._first: FloatArray = np.full((n_arms, FIRST), np.nan)
        self._seen: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._threshold: FloatArray = np.full(n_arms, np.nan)
        self._equal: BoolArray = np.zeros(n_arms, dtype=np.bool_)

    def begin(self, arms: IntArray, rewards: FloatArray) -> None:
        """See the first batch, by arm and in the order of draws, before anything is tested."""
        opening = rewards[np.flatnonzero(np.diff(arms, prepend=-1))]
        if self._skipped and np.isin(opening, self._ends).all():
            self._skipped = 1
            self._threshold[:] = sum(self._ends) / 2

    def of(self, arms: IntArray, rewards: FloatArray) -> tuple[IntArray, IntArray]:
        """The arms and the bits of the rewards that are tested, in the same order.

        Rewards of one arm stand together, in the order of its draws."""
        if not self._skipped:
            return arms, rewards.astype(np.int64)
        draws = self._seen[arms] + rank_within(arms)  # (rewards,)
        early = draws < self._skipped
        np.add.at(self._seen, arms, 1)
        if self._skipped == FIRST:
            self._first[arms[early], draws[early]] = rewards[early]
            self._fix(np.unique(arms[draws == FIRST - 1]))
        arms, rewards = arms[~early], rewards[~early]
        threshold = self._threshold[arms]
        bits = np.where(self._equal[arms], rewards != threshold, rewards > threshold)
        return arms, bits.astype(np.int64)

    def _fix(self, arms: IntArray) -> None:
        ordered = np.sort(self._first[arms], axis=1)  # (arms, FIRST)
        jumps = np.diff(ordered) > 0  # (arms, FIRST - 1): places where a threshold may lie
        outward = np.argsort(np.abs(np.arange(FIRST - 1) - (FIRST - 2) / 2), kind="stable")
        place = outward[jumps[:, outward].argmax(axis=1)]
        self._equal[arms] = ~jumps.any(axis=1)
        below, above = (ordered[np.arange(arms.size), each] for each in (place, place + 1))
        self._threshold[arms] = below + np.where(jumps.any(axis=1), (above - below) / 2, 0)


class Exchangeability:
    """Capital against the claim that the bits of every arm are independent draws.

    The first bit of an arm is given, and the others are tested.
    With `items` they are drawn without replacement from a test set. Then P is the probability
    of the order given the counts, 1 / C(t, s), which holds for all exchangeable bits; and since
    arms share items, only the capital of single arms counts."""

    def __init__(self, n_arms: int, *, items: bool = False) -> None:
        self._items = items
        self.total: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.ones: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._last: IntArray = np.full(n_arms, -1)
        self._moves: IntArray = np.zeros((n_arms, 2, 2), dtype=np.int64)  # from, to
        self._closed: FloatArray = np.zeros((len(GROUPS), n_arms))  # log Q of complete groups
        self._open: IntArray = np.zeros((len(GROUPS), n_arms), dtype=np.int64)  # ones in the last
        self._earlier: IntArray = np.zeros((len(GROUPS), n_arms), dtype=np.int64)  # ones before it
        # total and ones at two moments, at least half of the bits after the first: for messages
        self._marks: IntArray = np.zeros((2, 2, n_arms), dtype=np.int64)

    def take(self, arms: IntArray, bits: IntArray) -> None:
        """Book bits; those of one arm stand together, in the order of its draws."""
        if arms.size == 0:
            return
        begins = np.flatnonzero(np.diff(arms, prepend=-1))
        before = np.concatenate([bits[:1], bits[:-1]])
        before[begins] = self._last[arms[begins]]
        ends = np.append(begins[1:], arms.size) - 1
        self._last[arms[ends]] = bits[ends]
        known = before >= 0  # all but the first bit of an arm
        arms, bits, before = arms[known], bits[known], before[known]
        if arms.size == 0:
            return
        places = self.total[arms] + rank_within(arms)  # (bits,) in the sequence of their arm
        np.add.at(self._moves, (arms, before, bits), 1)
        np.add.at(self.total, arms, 1)
        begun = int(np.searchsorted(GROUPS, self.total.max(), side="right"))
        for level, size in enumerate(GROUPS[:begun]):
            self._group(level, size, arms, bits, places)
        np.add.at(self.ones, arms, bits)
        self._open[begun:] = self.ones  # the first group of all arms is open
        grown = self.total >= np.maximum(1, 2 * self._marks[1, 0])
        self._marks[0][:, grown] = self._marks[1][:, grown]
        self._marks[1][:, grown] = self.total[grown], self.ones[grown]

    def _group(
        self, level: int, size: int, arms: IntArray, bits: IntArray, places: IntArray
    ) -> None:
        """Book bits in groups of `size`; the last group of an arm may stay open."""
        group = places // size
        changes = (np.diff(arms, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0)
        begins = np.flatnonzero(changes)
        ends = np.append(begins[1:], arms.size) - 1
        owner = arms[begins]
        goes_on = places[begins] % size > 0  # the group that was open
        ones = np.add.reduceat(bits, begins)  # (groups,)
        earlier = self.ones[owner] + total_before(owner, ones)
        earlier = np.where(goes_on, self._earlier[level, owner], earlier)
        ones += np.where(goes_on, self._open[level, owner], 0)
        complete = places[ends] % size == size - 1
        gained = _log_group(ones, size, earlier, group[begins] * size)
        np.add.at(self._closed[level], owner[complete], gained[complete])
        # of the groups of an arm the last one stays
        self._open[level, owner] = np.where(complete, 0, ones)
        self._earlier[level, owner] = earlier + np.where(complete, ones, 0)

    def log_capital(self) -> tuple[float, FloatArray]:
        """Logarithm of the capital of all arms together, and of every single arm: (arm,).

        Under the declaration each of them reaches 1 / alpha with probability alpha at most."""
        logs = self._by_model() - self._log_null()  # (models, arms)
        single = _log_mean(logs)  # (arms,)
        if self._items:
            return -math.inf, single
        together = float(_log_mean(logs.sum(axis=1, keepdims=True))[0])
        few = float(np.log1p(SHARE * np.expm1(np.minimum(single, 500.0))).sum())
        return float(np.logaddexp(together, few)) - math.log(2), single

    def runs(self, arm: int) -> tuple[int, float]:
        """The runs of equal bits of an arm, and how many are expected."""
        total, ones = int(self.total[arm]), int(self.ones[arm])
        changes = int(self._moves[arm, 0, 1] + self._moves[arm, 1, 0])
        return 1 + changes, 1 + 2 * ones * (total - ones) / max(1, total)

    def shares(self, arm: int) -> tuple[int, float, int, float] | None:
        """Of early bits and of later ones, how many there are and how many are 1; None if few."""
        total, ones = self._marks[0, :, arm].tolist()
        later = int(self.total[arm]) - total
        if not total or not later:
            return None
        return total, ones / total, later, (int(self.ones[arm]) - ones) / later

    def _by_model(self) -> FloatArray:
        """Logarithm of Q: (models, arms)."""
        changed = np.stack([self._moves[:, 0, 1], self._moves[:, 1, 0]])  # (2, arms) by first bit
        stayed = np.stack([self._moves[:, 0, 0], self._moves[:, 1, 1]])
        markov = _log_mixture(changed, stayed, SWITCH, STAY).sum(axis=0)
        still = self.total % np.array(GROUPS)[:, None]  # (groups, arms) bits of the open one
        opened = _log_group(self._open, still, self._earlier, self.total - still)
        return np.vstack([markov, self._closed + opened])

    def _log_null(self) -> FloatArray:
        """Logarithm of P, an upper bound on the likelihood under the declaration: (arm,)."""
        zeros = self.total - self.ones
        if self._items:
            orders = gammaln(self.total + 1) - gammaln(self.ones + 1) - gammaln(zeros + 1)
            return np.asarray(-orders, dtype=np.float64)
        share = np.maximum(1, self.total)
        logs = xlogy(self.ones, self.ones / share) + xlogy(zeros, zeros / share)
        return np.asarray(logs, dtype=np.float64)


def rank_within(arms: IntArray) -> IntArray:
    """How many entries of the same arm stand before each; equal ones stand together."""
    begins = np.flatnonzero(np.diff(arms, prepend=-1))
    sizes = np.diff(np.append(begins, arms.size))
    ranks: IntArray = np.arange(arms.size) - np.repeat(begins, sizes)
    return ranks


def _log_mixture(
    ones: IntArray, zeros: IntArray, one: FloatArray | float, zero: FloatArray | float
) -> FloatArray:
    """Logarithm of the probability of bits in a given order, their mean from Beta(one, zero)."""
    logs = betaln(one + ones, zero + zeros) - betaln(one, zero)
    return np.asarray(logs, dtype=np.float64)


def _log_group(
    ones: IntArray, total: IntArray | int, earlier: IntArray, seen: IntArray
) -> FloatArray:
    """The same of a group whose mean is likely to be near that of the bits `seen` before it."""
    weight = np.minimum(seen, MEMORY)
    mean = (earlier + 0.5) / (seen + 1)
    one, zero = 0.5 + weight * mean, 0.5 + weight * (1 - mean)
    return _log_mixture(ones, total - ones, one, zero)


def _log_mean(logs: FloatArray) -> FloatArray:
    """Logarithm of the mean over models: (models, arms) to (arms,)."""
    mean: FloatArray = np.logaddexp.reduce(logs + np.log(WEIGHTS), axis=0)
    return mean
