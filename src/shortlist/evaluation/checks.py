"""What rewards say about the declaration: tests that run along with a search, and warn once each.

A certificate rests on three claims that no search can prove: the rewards of an arm are independent
draws from one distribution, arms are independent of each other, and rewards keep to the declared
sigma. Each claim is tested at the level ALPHA, valid at any time, on the rewards of complete
batches in the order of draws; so the outcome does not depend on which worker was quicker. A test
changes nothing about the search."""

import math
from collections.abc import Collection, Sequence

import numpy as np

from shortlist.arms import OwnLabel
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.evaluation.declared_sigma import DeclaredSigma
from shortlist.evaluation.exchangeability import Bits, Exchangeability
from shortlist.evaluation.independence import Independence
from shortlist.problem import Problem
from shortlist.reward_models import SubGaussian
from shortlist.validation import shown

ALPHA = 1e-6  # of each test: the probability of a warning if the declaration is true
TOGETHER = 64  # rewards that are looked at together at least ...
GROWTH = 4  # ... and this part of all that were seen
LEAST_REPEATED = 4  # rewards beyond the first of each arm from which it is said that none varied
LISTED = 3  # arms that are listed in a message
MOST_ARMS = 10_000  # arms that are tested, the first in their order
MORE = "See docs/must-not.md."


class Checks:
    """Tests of one run, and their warnings so far."""

    def __init__(
        self, problem: Problem, labels: Sequence[OwnLabel], *, alpha: float = ALPHA
    ) -> None:
        n_arms, on_items = min(problem.n_arms, MOST_ARMS), problem.items is not None
        self.warnings: tuple[str, ...] = ()  #: one for each test that failed, in order of time
        self.note: str | None = None  #: that no arm varied, once the run is over: no test says so
        self._n_arms = n_arms
        self._labels = labels
        self._alpha = alpha
        self._bits = Bits(n_arms, binary=problem.rewards.is_binary)
        self._order = Exchangeability(n_arms, items=on_items)
        # arms that share items may give the same rewards together
        self._across = None if on_items or n_arms < 2 else Independence(n_arms)
        model = problem.rewards
        self._sigma = DeclaredSigma(n_arms, model.sigma) if isinstance(model, SubGaussian) else None
        self._variation = None if on_items else Variation(n_arms)
        self._waiting: list[tuple[IntArray, FloatArray]] = []
        self._waits = self._seen = 0  # rewards
        self._failed: set[str] = set()  # names of tests

    def take(self, arms: IntArray, rewards: FloatArray, without: Collection[int] = ()) -> None:
        """See the rewards of a complete batch, by arm and in the order of draws.

        Arms in `without` are ignored: they retired, and their rewards may not have been drawn."""
        if without or (arms.size and arms[-1] >= self._n_arms):
            tested = (arms < self._n_arms) & ~np.isin(arms, list(without))
            arms, rewards = arms[tested], rewards[tested]
        self._waiting.append((arms, rewards))
        self._waits += arms.size
        if self._waits >= max(TOGETHER, self._seen // GROWTH):
            self._look()

    def finish(self) -> None:
        """Look at the rewards that are left, and note it if no arm ever varied."""
        self._look()
        if self._variation is not None:
            self.note = self._variation.note(self._labels)

    @property
    def messages(self) -> tuple[str, ...]:
        """The warnings, and the note."""
        return self.warnings if self.note is None else (*self.warnings, self.note)

    def _look(self) -> None:
        if not self._waits:
            return
        arms, rewards = (np.concatenate(each) for each in zip(*self._waiting, strict=True))
        by_arm = np.argsort(arms, kind="stable")
        arms, rewards = arms[by_arm], rewards[by_arm]
        self._seen += self._waits
        self._waiting, self._waits = [], 0
        if self._variation is not None:
            self._variation.take(arms, rewards)
        if self._sigma is not None:
            self._sigma.take(arms, rewards)
            self._check_sigma(self._sigma)
        arms, bits = self._bits.of(arms, rewards)
        self._order.take(arms, bits)
        self._check_order()
        if self._across is not None:
            self._across.take(arms, bits)
            if "order" not in self._failed:  # blocks and drift make arms alike, too
                self._check_across(self._across)

    def _check_sigma(self, test: DeclaredSigma) -> None:
        together, single = test.log_capital()
        arm = _proved(together, single, self._alpha)
        if arm is None:
            return
        whose, sd = "rewards within arms", test.deviation()
        if together < single[arm]:
            whose, sd = f"rewards of arm {shown(self._labels[arm])}", test.deviation(arm)
        self._warn(
            "sigma",
            f"sigma = {test.sigma:.15g} was declared, but {whose} have a standard deviation of"
            f" about {sd:.3g} ({self._level}): nothing is guaranteed. Declare a sigma of {sd:.2g}"
            f" or more, and begin again. {MORE}",
        )

    def _check_order(self) -> None:
        together, single = self._order.log_capital()
        arm = _proved(together, single, self._alpha)
        if arm is None:
            return
        runs, expected = self._order.runs(arm)
        total = int(self._order.total[arm])
        parts = self._order.shares(arm)
        shares = ""
        if parts is not None:
            shares = "; {1:.2g} of the first {0:,} were large, and {3:.2g} of the next {2:,}"
            shares = shares.format(*parts)
        self._warn(
            "order",
            "rewards do not come in random order: large and small ones of arm"
            f" {shown(self._labels[arm])} make {runs:,} runs in {total:,} pulls, where about"
            f" {expected:,.0f} are expected{shares} ({self._level}). Rewards must be independent"
            " draws from one"
            " distribution: does one visitor answer several pulls, does a cache answer, or did the"
            f" arm change meanwhile? {MORE}",
        )

    def _check_across(self, test: Independence) -> None:
        capital = test.log_capital()
        pair = int(capital.argmax())
        if capital[pair] < math.log(capital.size / self._alpha):
            return
        alike, draws = test.alike(pair)
        one, other = (shown(self._labels[pair + each]) for each in range(2))
        self._warn(
            "arms",
            f"the rewards of arms {one} and {other} go up and down together: both were large, or"
            f" both small, in {alike:,} of {draws:,} pulls with the same number ({self._level})."
            " The guarantee is for arms that are independent of each other: is a random generator"
            f" in the function seeded alike for all arms? {MORE}",
        )

    @property
    def _level(self) -> str:
        return f"p < {self._alpha:g}"

    def _warn(self, test: str, message: str) -> None:
        if test not in self._failed:
            self._failed.add(test)
            self.warnings += (message,)


class Variation:
    """Whether any arm ever gave two different rewards."""

    def __init__(self, n_arms: int) -> None:
        self._pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._first: FloatArray = np.full(n_arms, np.nan)
        self._any = False

    def take(self, arms: IntArray, rewards: FloatArray) -> None:
        """See rewards; those of one arm stand together."""
        if self._any:
            return
        owners, begins = np.unique(arms, return_index=True)
        new = np.isnan(self._first[owners])
        self._first[owners[new]] = rewards[begins[new]]
        np.add.at(self._pulls, arms, 1)
        self._any = bool((rewards != self._first[arms]).any())

    def note(self, labels: Sequence[OwnLabel]) -> str | None:
        """That no arm varied, if that is so and any was pulled often enough to show it."""
        pulled: BoolArray = self._pulls > 0
        if self._any or int((self._pulls[pulled] - 1).sum()) < LEAST_REPEATED:
            return None
        most = np.argsort(-self._pulls, kind="stable")[: min(LISTED, int(pulled.sum()))]
        listed = ", ".join(
            f"{shown(labels[arm])} gave {self._first[arm]:.15g} in all of {self._pulls[arm]:,}"
            for arm in most.tolist()
        )
        return (
            f"the answer rests on arms that never varied: {listed} pulls. If a cache, a fixed seed"
            f" or one visitor gave these rewards, nothing is guaranteed. {MORE}"
        )


def _proved(together: float, single: FloatArray, alpha: float) -> int | None:
    """The arm that says most against a claim, if that is refuted; half of alpha for each way."""
    arm = int(single.argmax())
    level = math.log(2 / alpha)
    refuted = together >= level or single[arm] >= level + math.log(single.size)
    return arm if refuted else None
