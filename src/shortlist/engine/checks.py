"""A function that gives the same number every time is no draw of a reward: say so, once.

Whether rewards vary as little as the declared sigma says: a test that is valid at any time.

If X is sub-Gaussian with sigma around its mean mu, then for 0 < l < 1

    E exp(l (X - mu)^2 / (2 sigma^2)) <= (1 - l)^(-1/2):

the left side is E exp(g sqrt(l) (X - mu) / sigma) for a standard normal g of its own, and given g
that is at most exp(l g^2 / 2). So the product of exp(l (X - mu)^2 / (2 sigma^2)) (1 - l)^(1/2) over
all rewards of all arms is a supermartingale from 1, however the search samples. The squares around
the means of the rewards are at most those around mu: so

    W(l) = exp(l S / (2 sigma^2)) (1 - l)^(N/2),    S = squares around the arms' means, N rewards,

is at most that, and so is its mean over several l. By Ville's inequality it stays below 1 / alpha
with probability 1 - alpha at all times.

Whether two arms give independent rewards: a test that is valid at any time.

A function with a seed of its own for the number of the pull, but the same for all arms, gives arms
rewards that go up and down together. Arms are compared in pairs, neighbours in their order, by the
bits of exchangeability.py at the same number of the draw. Under the declaration these are
independent Bernoulli bits, with some theta each; let P be their largest likelihood, and Q the
Dirichlet(1/2) mixture over the four cells (0, 0) ... (1, 1). Taken draw by draw, Q / P is at most
a martingale from 1, so for one pair it stays below 1 / alpha at all draws with probability
1 - alpha, and so for whichever number of draws the search makes of both arms.

What rewards say about the declaration: tests that run along with a search, and warn once each.

A certificate rests on three claims that no search can prove: the rewards of an arm are independent
draws from one distribution, arms are independent of each other, and rewards keep to the declared
sigma. Each claim is tested at the level ALPHA, valid at any time, on the rewards of complete
batches in the order of draws; so the outcome does not depend on which worker was quicker. At the
end a claim that is refuted at the level NOTED is noted in the result, without a warning. A test
changes nothing about the search."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
from scipy.special import gammaln, xlogy

from shortlist.arms import OwnLabel
from shortlist.arrays import FloatArray, IntArray
from shortlist.engine.exchangeability import (
    ALIKE,
    LEVEL_INSIDE,
    OWN,
    Bits,
    Exchangeability,
    Variation,
    rank_within,
    repeat_share,
)
from shortlist.errors import caution
from shortlist.problem import Problem
from shortlist.reward_models import RewardModel, SubGaussian
from shortlist.validation import shown


class Sameness:
    """Watches rewards until one differs from the first of its arm.

    Arms may well give nothing but the least or the largest reward, as 0 and 1: these alone are not
    reported. Honest arms may give one number often: `Variation` has the share of repeats that is
    taken to be honest, and the number of repeats from which on this is doubted."""

    def __init__(self, rewards: RewardModel) -> None:
        self._ends = rewards.support
        self._first: dict[object, float] = {}
        self._repeated = 0
        self._inside: tuple[object, float] | None = None  # an arm, and its reward between the ends
        self.settled = False  # whether there is nothing more to say

    def see(self, label: object, rewards: Iterable[float]) -> None:
        """Take note of rewards of an arm."""
        for reward in rewards:
            if self.settled:
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
        self.settled = self._first.setdefault(label, reward) != reward
        self._repeated += known
        if reward not in self._ends:
            self._inside = label, reward
        if self.settled or self._inside is None or self._likely:
            return
        self.settled = True
        label, reward = self._inside
        caution(
            f"every arm gave one number again and again, as {label!r} {reward:.15g}, but rewards"
            " must be independent draws: is there a cache, or a fixed seed in the function?"
        )


STRENGTHS = np.array([0.1, 0.4, 0.8])[:, None]  # values of l


class DeclaredSigma:
    """Capital against the claim that rewards are sub-Gaussian with `sigma`."""

    def __init__(self, n_arms: int, sigma: float) -> None:
        self.sigma = sigma
        self._pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._means: FloatArray = np.zeros(n_arms)  # in units of sigma
        self._squares: FloatArray = np.zeros(n_arms)  # around the means

    def take(self, arms: IntArray, rewards: FloatArray) -> None:
        """Book rewards; those of one arm stand together."""
        rewards = rewards / self.sigma
        begins = np.flatnonzero(np.diff(arms, prepend=-1))
        owners = arms[begins]
        sizes = np.diff(np.append(begins, arms.size))
        opening = rewards[begins]  # rewards far from 0 keep their digits around it
        means = opening + np.add.reduceat(rewards - np.repeat(opening, sizes), begins) / sizes
        squares = np.add.reduceat((rewards - np.repeat(means, sizes)) ** 2, begins)
        before, total = self._pulls[owners], self._pulls[owners] + sizes
        apart = means - self._means[owners]
        self._squares[owners] += squares + apart**2 * before * sizes / total
        self._means[owners] += apart * sizes / total
        self._pulls[owners] = total

    def log_capital(self) -> tuple[float, FloatArray]:
        """Logarithm of the capital of all arms together, and of every single arm: (arm,)."""
        together = _log_capital(self._squares.sum(), self._pulls.sum())
        return float(together[0]), _log_capital(self._squares, self._pulls)

    def deviation(self, arm: int | None = None) -> float:
        """The standard deviation within arms, or within one."""
        several = self._pulls > 1
        which = several if arm is None else several & (np.arange(several.size) == arm)
        degrees = (self._pulls[which] - 1).sum()
        return self.sigma * math.sqrt(self._squares[which].sum() / max(1, degrees))


def _log_capital(squares: FloatArray | float, pulls: IntArray | int) -> FloatArray:
    logs = (STRENGTHS * np.atleast_1d(squares) + np.atleast_1d(pulls) * np.log1p(-STRENGTHS)) / 2
    mean: FloatArray = np.logaddexp.reduce(logs, axis=0) - math.log(STRENGTHS.size)
    return mean


LOW_CORRELATION = 0.1  # of arms on shared seeds: below, sharing them gains nothing
KEPT = 512  # draws of an arm that are compared
MOST_COMPARED = 1000  # arms that are
NONE_YET = -1


class Independence:
    """Capital against the claim that neighbouring arms are independent."""

    def __init__(self, n_arms: int) -> None:
        rows = min(n_arms, MOST_COMPARED)
        self._bits = np.full((rows, 8), NONE_YET, dtype=np.int8)  # by draw; grows
        self._seen: IntArray = np.zeros(n_arms, dtype=np.int64)

    def take(self, arms: IntArray, bits: IntArray) -> None:
        """Book bits; those of one arm stand together, in the order of its draws."""
        draws = self._seen[arms] + rank_within(arms)
        np.add.at(self._seen, arms, 1)
        kept = (arms < self._bits.shape[0]) & (draws < KEPT)
        arms, draws = arms[kept], draws[kept]
        longest = int(draws.max(initial=-1)) + 1
        if longest > self._bits.shape[1]:
            more = max(longest, 2 * self._bits.shape[1]) - self._bits.shape[1]
            self._bits = np.pad(self._bits, ((0, 0), (0, more)), constant_values=NONE_YET)
        self._bits[arms, draws] = bits[kept]

    def log_capital(self) -> FloatArray:
        """Logarithm of the capital of every pair of arms j and j + 1: (pairs,)."""
        cells = self._cells()
        total = cells.sum(axis=1)
        mixture = gammaln(cells + 0.5).sum(axis=1) - gammaln(total + 2.0)
        mixture += gammaln(2.0) - 4 * gammaln(0.5)
        first = cells[:, 2] + cells[:, 3]
        second = cells[:, 1] + cells[:, 3]
        null = _log_likelihood(first, total) + _log_likelihood(second, total)
        return np.asarray(mixture - null, dtype=np.float64)

    def alike(self, pair: int) -> tuple[int, int]:
        """How often both arms of a pair gave the same bit, and of how many draws."""
        cells = self._cells()[pair]
        return int(cells[0] + cells[3]), int(cells.sum())

    def _cells(self) -> IntArray:
        """How often each pair gave (0, 0), (0, 1), (1, 0) and (1, 1): (pairs, 4)."""
        one, other = self._bits[:-1], self._bits[1:]
        both = (one != NONE_YET) & (other != NONE_YET)
        cell = 2 * one + other
        counts: IntArray = np.stack([(both & (cell == each)).sum(axis=1) for each in range(4)], 1)
        return counts


def _log_likelihood(ones: IntArray, total: IntArray) -> FloatArray:
    share = np.maximum(1, total)
    zeros = total - ones
    logs = xlogy(ones, ones / share) + xlogy(zeros, zeros / share)
    return np.asarray(logs, dtype=np.float64)


ALPHA = 1e-6  # of each test: the probability of a warning if the declaration is true
NOTED = 1e-3  # the same of a note in the result
TOGETHER = 64  # rewards that are looked at together at least ...
GROWTH = 4  # ... and this part of all that were seen
MOST_ARMS = 10_000  # arms that are tested, the first in their order
MORE = "See docs/must-not.md."
Find = Callable[[float], str | None]


class Checks:
    """Tests of one run, and what they found so far."""

    def __init__(
        self, problem: Problem, labels: Sequence[OwnLabel], *, alpha: float = ALPHA
    ) -> None:
        n_arms, on_items = min(problem.n_arms, MOST_ARMS), problem.items is not None
        # cells of a group resemble each other: their order is not one of single cells
        self._grouped = problem.items is not None and problem.items.widths is not None
        self.warnings: tuple[str, ...] = ()  #: one for each claim that was refuted, in that order
        self.notes: tuple[str, ...] = ()  #: less certain ones, once the run is over
        self._n_arms = n_arms
        self._labels = labels
        self._alpha = alpha
        self._bits = Bits(n_arms, problem.rewards)
        self._order = Exchangeability(n_arms, items=on_items)
        # arms that share items or seeds may give the same rewards together
        together = on_items or problem.shared_seeds
        self._across = None if together or n_arms < 2 else Independence(n_arms)
        model = problem.rewards
        self._sigma = DeclaredSigma(n_arms, model.sigma) if isinstance(model, SubGaussian) else None
        # whether all rewards were 0 or 1, which normal ones never are; None where they may be
        self._only_bits = None if model.knows_spread else True
        self._variation = None if on_items else Variation(problem, n_arms)
        self._waiting: list[tuple[IntArray, FloatArray]] = []
        self._waits = self._seen = 0  # rewards
        self._refuted: set[Find] = set()

    def take(self, arms: IntArray, rewards: FloatArray, without: Collection[int] = ()) -> None:
        """See the rewards of a complete batch, by arm and in the order of draws.

        Arms in `without` are ignored: they retired, and their rewards may not have been drawn."""
        if without or (arms.size and arms[-1] >= self._n_arms):
            tested = (arms < self._n_arms) & ~np.isin(arms, list(without))
            arms, rewards = arms[tested], rewards[tested]
        if not self._seen and not self._waits:
            self._bits.begin(arms, rewards)
        self._waiting.append((arms, rewards))
        self._waits += arms.size
        if self._waits >= max(TOGETHER, self._seen // GROWTH):
            self._look()

    def finish(self, top: IntArray, correlation: object = None) -> None:
        """Look at the rewards that are left, and note what is doubtful about an answer, these arms,
        but not refuted. `correlation` is that of arms on shared seeds, if it is known."""
        self._look()
        doubts = [find(NOTED) for find in self._claims() if find not in self._refuted]
        if self._variation is not None and not any(doubts) and not self._refuted:
            doubts.append(self._variation.note(self._labels, top))
        if isinstance(correlation, float) and correlation < LOW_CORRELATION:
            doubts.append(
                f"seeds are shared, but outputs of different arms on one seed have a correlation of"
                f" {correlation:.2f}: does every arm take its random numbers from the seed, in the"
                " same order?"
            )
        self.notes = tuple(message for message in doubts if message is not None)

    def _look(self) -> None:
        if not self._waits:
            return
        arms, rewards = (np.concatenate(each) for each in zip(*self._waiting, strict=True))
        by_arm = np.argsort(arms, kind="stable")
        arms, rewards = arms[by_arm], rewards[by_arm]
        self._seen += self._waits
        self._waiting, self._waits = [], 0
        self._book(arms, rewards)
        for find in self._claims():
            message = None if find in self._refuted else find(self._alpha)
            if message is not None:
                self._refuted.add(find)
                self.warnings += (message,)

    def _book(self, arms: IntArray, rewards: FloatArray) -> None:
        if self._variation is not None:
            self._variation.take(arms, rewards)
        if self._sigma is not None:
            self._sigma.take(arms, rewards)
        if self._only_bits:
            self._only_bits = bool(np.isin(rewards, (0, 1)).all())
        arms, bits = self._bits.of(arms, rewards)
        if not self._grouped:
            self._order.take(arms, bits)
        if self._across is not None:
            self._across.take(arms, bits)

    def _claims(self) -> tuple[Find, ...]:
        """What says why a claim is refuted at a level, or None if it is not."""
        return self._find_bits, self._find_sigma, self._find_order, self._find_dependence

    def _find_bits(self, _: float) -> str | None:
        if not self._only_bits:
            return None
        return (
            f"normal rewards were declared, but all {self._seen:,} rewards so far are 0 or 1:"
            f" declare 'binary', and begin again. {MORE}"
        )

    def _find_sigma(self, alpha: float) -> str | None:
        if self._sigma is None:
            return None
        together, single = self._sigma.log_capital()
        arm = _refuting(together, single, alpha)
        if arm is None:
            return None
        whose, sd = "rewards within arms", self._sigma.deviation()
        if _alone(single, alpha) and together < single[arm]:
            whose = f"rewards of arm {shown(self._labels[arm])}"
            sd = self._sigma.deviation(arm)
        return (
            f"sigma = {self._sigma.sigma:.15g} was declared, but {whose} have a standard deviation"
            f" of about {sd:.3g} (p < {alpha:g}), and with a sigma that is too small nothing is"
            f" guaranteed. Declare a larger one, and begin again. {MORE}"
        )

    def _find_order(self, alpha: float) -> str | None:
        together, single = self._order.log_capital()
        arm = _refuting(together, single, alpha)
        if arm is None:
            return None
        runs, expected = self._order.runs(arm)
        shares, parts = "", self._order.shares(arm)
        if parts is not None:
            shares = "; {1:.2g} of the first {0:,} were large, and {3:.2g} of the next {2:,}"
            shares = shares.format(*parts)
        label, p = shown(self._labels[arm]), f"p < {alpha:g}"
        found = (
            f"make {runs:,} runs in {self._order.total[arm]:,} pulls, where about"
            f" {expected:,.0f} are expected{shares}"
        )
        found = (
            f": large and small ones of arm {label} {found} ({p})"
            if _alone(single, alpha)
            else f" ({p}, all arms together); most in arm {label}: large and small ones {found}"
        )
        return (
            f"rewards do not come in random order{found}. Rewards must be independent draws from"
            " one distribution: does one visitor answer several pulls, does a cache answer, or did"
            f" the arm change meanwhile? {MORE}"
        )

    def _find_dependence(self, alpha: float) -> str | None:
        # blocks and drift make arms alike, too
        if self._across is None or self._find_order in self._refuted:
            return None
        capital = self._across.log_capital()
        pair = int(capital.argmax())
        if capital[pair] < math.log(capital.size / alpha):
            return None
        alike, draws = self._across.alike(pair)
        one, other = (shown(self._labels[pair + each]) for each in range(2))
        return (
            f"the rewards of arms {one} and {other} go up and down together: both were large, or"
            f" both small, in {alike:,} of {draws:,} pulls with the same number (p < {alpha:g})."
            " The guarantee is for arms that are independent of each other: is a random generator"
            f" in the function seeded alike for all arms? {MORE}"
        )


def _refuting(together: float, single: FloatArray, alpha: float) -> int | None:
    """The arm that says most against a claim, if that is refuted; half of alpha for each way."""
    refuted = together >= math.log(2 / alpha) or _alone(single, alpha)
    return int(single.argmax()) if refuted else None


def _alone(single: FloatArray, alpha: float) -> bool:
    """Whether one arm refutes a claim without the others."""
    return bool(single.max() >= math.log(2 / alpha) + math.log(single.size))
