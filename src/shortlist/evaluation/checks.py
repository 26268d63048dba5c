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
from shortlist.evaluation.variation import Variation
from shortlist.problem import Problem
from shortlist.reward_models import SubGaussian
from shortlist.validation import shown

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

    def finish(self, top: IntArray) -> None:
        """Look at the rewards that are left, and note what is doubtful about an answer, these arms,
        but not refuted."""
        self._look()
        doubts = [find(NOTED) for find in self._claims() if find not in self._refuted]
        if self._variation is not None and not any(doubts) and not self._refuted:
            doubts.append(self._variation.note(self._labels, top))
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
