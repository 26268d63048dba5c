"""A tosser made of any top-K search: whoever finds the best half of n coins tells one of them."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.instances import ETA, lower_bound
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards, advance
from shortlist.simulation.simulate import simulate
from shortlist.theory.lower_bound.coins import Coin
from shortlist.validation import number, plain

FAILURE = 0.1  # how often the search may fail


class Verdict(StrEnum):
    """What a tosser says about the coin."""

    HIGH = "0.5 + eta"
    LOW = "0.5 - eta"
    GAVE_UP = "unknown: the search asked for too many tosses"
    UNVERIFIED = "unknown: the search chose too many bad coins"


@dataclass(frozen=True, slots=True)
class Reduction:
    """A tosser made of any top-K search: hide the coin among n others and see whether it is chosen.

    `cost` is C, the pulls the search needs on average on n/2 good and n/2 bad coins. The coin is
    tossed at most 20 C / n times. If n epsilon >= 16 (the paper's c_K is 8) and the search is right
    with probability 0.9:
    - unknown with probability at most 0.6. Where the hidden coin does not change the number of good
      ones, which has probability 1/2, the search asks for too many tosses with probability 0.1
      (Claim "give-up") and fails with 0.1 (Claim "verification"). Where it does, the boundary is a
      tie, H is of the order n / epsilon^2 against what the paper says (E19), and the search may
      well cost more than C; an unknown of up to 0.9 leaves room for that.
    - wrong with probability at most 3/8 epsilon, thus in at most epsilon of the answers. A verified
      choice has at most epsilon K / 8 + 2 coins on the wrong side, and the hidden one is any of at
      least K alike (Claim "embed")."""

    algorithm: Algorithm
    n_arms: int
    epsilon: float
    cost: float
    eta: float = ETA

    def __post_init__(self) -> None:
        lower_bound(self.n_arms, self.eta)
        plain(self, epsilon=number("epsilon", self.epsilon, above=0, below=1))
        plain(self, cost=number("cost", self.cost, above=0))
        if self.n_arms * self.epsilon < 16:
            raise InvalidInput(
                f"`n_arms` is {self.n_arms}, but must be at least 16 / epsilon ="
                f" {ceil(16 / self.epsilon):,}"
            )

    @property
    def problem(self) -> Problem:
        """What the search is asked: epsilon' = epsilon * eta / 4, or its best for its cost."""
        goal: Goal = FixedConfidence(self.epsilon * self.eta / 4, FAILURE)
        if FixedConfidence not in self.algorithm.goals:
            goal = FixedBudget(ceil(self.cost))
        return Problem(self.n_arms, self.n_arms // 2, goal, Binary())

    @property
    def most_tosses(self) -> int:
        """20 C / n."""
        return floor(20 * self.cost / self.n_arms)

    def tell(self, coin: Coin, rng: np.random.Generator) -> Verdict:
        """Say which of the two values `coin` has, or that it is unknown."""
        place_rng, search_rng, reward_rng = rng.spawn(3)
        others = place_rng.permutation(lower_bound(self.n_arms, self.eta))
        place = int(place_rng.integers(self.n_arms))
        top = self._search(coin, place, others, search_rng, reward_rng)
        if top is None:
            return Verdict.GAVE_UP
        if not self._verified(others[top[top != place]]):
            return Verdict.UNVERIFIED
        return Verdict.HIGH if place in top else Verdict.LOW

    def _search(
        self,
        coin: Coin,
        place: int,
        others: FloatArray,
        search_rng: np.random.Generator,
        reward_rng: np.random.Generator,
    ) -> IntArray | None:
        """The arms chosen, with `coin` in its place; None if it would be tossed too often."""
        search = self.algorithm.start(self.problem, search_rng)
        turn = advance(search, None)
        while isinstance(turn, Pulls):
            hidden = turn.arms == place
            if coin.tosses + turn.times[hidden].sum() > self.most_tosses:  # Claim "give-up"
                return None
            heads = reward_rng.binomial(turn.times, others[turn.arms]).astype(np.float64)
            heads[hidden] = coin.toss(turn.times[hidden])
            turn = advance(search, Rewards(heads, heads))
        return turn.top

    def _verified(self, chosen: FloatArray) -> bool:
        """Whether the chosen coins but the hidden one are good enough: their values are known."""
        slack = self.epsilon * self.eta / 4 + 2 * self.eta / (self.n_arms // 2)
        return bool(chosen.mean() >= 0.5 + self.eta - slack)


def measured_cost(
    algorithm: str, n_arms: int, epsilon: float, eta: float, *, runs: int = 10, seed: int = 0
) -> float:
    """The C of a search that takes epsilon: its mean pulls at epsilon' = epsilon * eta / 4."""
    means = lower_bound(n_arms, eta)
    measured = simulate(
        algorithm,
        means,
        k=n_arms // 2,
        epsilon=epsilon * eta / 4,
        delta=FAILURE,
        runs=runs,
        seed=seed,
    )
    return float(measured.pulls.mean())


@dataclass(frozen=True, slots=True)
class Tally:
    """What a tosser said of many coins, each as likely good as bad."""

    right: int
    wrong: int
    gave_up: int
    unverified: int
    most_tosses: int  # of any coin


def tally(reduction: Reduction, runs: int, seed: int = 0) -> Tally:
    """Let it tell `runs` fresh coins."""
    right = 0
    verdicts = []
    tosses = []
    for rng in np.random.default_rng(seed).spawn(runs):
        good = bool(rng.integers(2))
        coin = Coin(0.5 + reduction.eta if good else 0.5 - reduction.eta, rng.spawn(1)[0])
        verdict = reduction.tell(coin, rng)
        right += verdict is (Verdict.HIGH if good else Verdict.LOW)
        verdicts.append(verdict)
        tosses.append(coin.tosses)
    gave_up = verdicts.count(Verdict.GAVE_UP)
    unverified = verdicts.count(Verdict.UNVERIFIED)
    return Tally(right, runs - right - gave_up - unverified, gave_up, unverified, max(tosses))
