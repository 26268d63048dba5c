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

docs/must-not.md says what is tested, and why not simply the order given the counts.

Whether the answer rests on arms that never varied, or hardly: as a cache, a fixed seed or one
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
from scipy.special import betaln, gammaln, logsumexp, xlogy

from shortlist.arms import OwnLabel
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.problem import Problem
from shortlist.reward_models import RewardModel
from shortlist.search import total_before
from shortlist.validation import shown

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
        self._seen += np.bincount(arms, minlength=self._seen.size)
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
        moves = np.bincount(4 * arms + 2 * before + bits, minlength=self._moves.size)
        self._moves += moves.reshape(self._moves.shape)
        self.total += np.bincount(arms, minlength=self.total.size)
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
        continued = places[begins] % size > 0  # the group that was open
        ones = np.add.reduceat(bits, begins)  # (groups,)
        earlier = self.ones[owner] + total_before(owner, ones)
        earlier = np.where(continued, self._earlier[level, owner], earlier)
        ones += np.where(continued, self._open[level, owner], 0)
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
