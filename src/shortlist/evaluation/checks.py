"""What rewards say about the declaration: tests that run along with a search, and warn once each.

A certificate rests on three claims that no search can prove: the rewards of an arm are independent
draws from one distribution, arms are independent of each other, and rewards keep to the declared
sigma. Each claim is tested at the level ALPHA, valid at any time, on the rewards of complete
batches in the order of draws; so the outcome does not depend on which worker was quicker. At the
end a claim that is refuted at the level NOTED is noted in the result, without a warning. A test
changes nothing about the search."""

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from shortlist.arms import OwnLabel
from shortlist.arrays import FloatArray, IntArray
from shortlist.evaluation.declared_sigma import DeclaredSigma
from shortlist.evaluation.exchangeability import Bits, Exchangeability
from shortlist.evaluation.independence import Independence
from shortlist.problem import Problem
from shortlist.reward_models import SubGaussian
from shortlist.validation import shown

ALPHA = 1e-6  # of each test: the probability of a warning if the declaration is true
NOTED = 1e-3  # the same of a note in the result
TOGETHER = 64  # rewards that are looked at together at least ...
GROWTH = 4  # ... and this part of all that were seen
# rewards beyond the first of each arm from which it is noted that none differed from the one
# before, or only one
LEAST_NEVER, LEAST_HARDLY = 4, 20
LISTED = 3  # arms that are listed in a message
MOST_ARMS = 10_000  # arms that are tested, the first in their order
MORE = "See docs/must-not.md."
Find = Callable[[float], str | None]


class Checks:
    """Tests of one run, and what they found so far."""

    def __init__(
        self, problem: Problem, labels: Sequence[OwnLabel], *, alpha: float = ALPHA
    ) -> None:
        n_arms, on_items = min(problem.n_arms, MOST_ARMS), problem.items is not None
        self.warnings: tuple[str, ...] = ()  #: one for each claim that was refuted, in that order
        self.notes: tuple[str, ...] = ()  #: less certain ones, once the run is over
        self._n_arms = n_arms
        self._labels = labels
        self._alpha = alpha
        self._bits = Bits(n_arms, problem.rewards)
        self._order = Exchangeability(n_arms, items=on_items)
        # arms that share items may give the same rewards together
        self._across = None if on_items or n_arms < 2 else Independence(n_arms)
        model = problem.rewards
        self._sigma = DeclaredSigma(n_arms, model.sigma) if isinstance(model, SubGaussian) else None
        self._variation = None if on_items else Variation(n_arms)
        self._waiting: list[tuple[IntArray, FloatArray]] = []
        self._waits = self._seen = 0  # rewards
        self._refuted: set[Find] = set()

    @property
    def messages(self) -> tuple[str, ...]:
        """The warnings, and then the notes."""
        return self.warnings + self.notes

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

    def finish(self) -> None:
        """Look at the rewards that are left, and note what is doubtful, but not refuted."""
        self._look()
        doubts = [find(NOTED) for find in self._claims() if find not in self._refuted]
        doubts.append(None if self._variation is None else self._variation.note(self._labels))
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
        arms, bits = self._bits.of(arms, rewards)
        self._order.take(arms, bits)
        if self._across is not None:
            self._across.take(arms, bits)

    def _claims(self) -> tuple[Find, ...]:
        """What says why a claim is refuted at a level, or None if it is not."""
        return self._find_sigma, self._find_order, self._find_dependence

    def _find_sigma(self, alpha: float) -> str | None:
        if self._sigma is None:
            return None
        together, single = self._sigma.log_capital()
        arm = _refuting(together, single, alpha)
        if arm is None:
            return None
        whose, sd = "rewards within arms", self._sigma.deviation()
        if together < single[arm]:
            whose = f"rewards of arm {shown(self._labels[arm])}"
            sd = self._sigma.deviation(arm)
        return (
            f"sigma = {self._sigma.sigma:.15g} was declared, but {whose} have a standard deviation"
            f" of about {sd:.3g} (p < {alpha:g}), and with a sigma that is too small nothing is"
            f" guaranteed. Declare a larger one, and begin again. {MORE}"
        )

    def _find_order(self, alpha: float) -> str | None:
        arm = _refuting(*self._order.log_capital(), alpha)
        if arm is None:
            return None
        runs, expected = self._order.runs(arm)
        shares, parts = "", self._order.shares(arm)
        if parts is not None:
            shares = "; {1:.2g} of the first {0:,} were large, and {3:.2g} of the next {2:,}"
            shares = shares.format(*parts)
        return (
            "rewards do not come in random order: large and small ones of arm"
            f" {shown(self._labels[arm])} make {runs:,} runs in {self._order.total[arm]:,} pulls,"
            f" where about {expected:,.0f} are expected{shares} (p < {alpha:g}). Rewards must be"
            " independent draws from one distribution: does one visitor answer several pulls, does"
            f" a cache answer, or did the arm change meanwhile? {MORE}"
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


class Variation:
    """How often an arm gave another reward than the time before."""

    def __init__(self, n_arms: int) -> None:
        self._pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._last: FloatArray = np.full(n_arms, np.nan)
        self._changes = 0  # counted up to 2

    def take(self, arms: IntArray, rewards: FloatArray) -> None:
        """See rewards, by arm and in the order of draws."""
        if self._changes > 1 or arms.size == 0:
            return
        begins = np.flatnonzero(np.diff(arms, prepend=-1))
        before = np.concatenate([rewards[:1], rewards[:-1]])
        before[begins] = self._last[arms[begins]]
        self._changes += int(((rewards != before) & ~np.isnan(before)).sum())
        ends = np.append(begins[1:], arms.size) - 1
        self._last[arms[ends]] = rewards[ends]
        np.add.at(self._pulls, arms, 1)

    def note(self, labels: Sequence[OwnLabel]) -> str | None:
        """That arms never varied, or hardly, if they were pulled often enough to show it."""
        repeated = int(np.maximum(self._pulls - 1, 0).sum())
        if self._changes > 1 or repeated < (LEAST_HARDLY if self._changes else LEAST_NEVER):
            return None
        seen = f"never varied: {self._listed(labels)} pulls"
        if self._changes:
            seen = (
                f"hardly varied: of {repeated:,} pulls after the first of each arm, only one gave"
                " another reward than the one before"
            )
        return (
            f"the answer rests on arms that {seen}. If a cache, a fixed seed or one visitor gave"
            f" these rewards, nothing is guaranteed. {MORE}"
        )

    def _listed(self, labels: Sequence[OwnLabel]) -> str:
        often = np.argsort(-self._pulls, kind="stable")[:LISTED]
        return ", ".join(
            f"{shown(labels[arm])} gave {self._last[arm]:.15g} in all of {self._pulls[arm]:,}"
            for arm in often[self._pulls[often] > 0].tolist()
        )


def _refuting(together: float, single: FloatArray, alpha: float) -> int | None:
    """The arm that says most against a claim, if that is refuted; half of alpha for each way."""
    arm = int(single.argmax())
    level = math.log(2 / alpha)
    refuted = together >= level or single[arm] >= level + math.log(single.size)
    return arm if refuted else None
