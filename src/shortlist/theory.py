"""Hardness of an instance, and the lower bound of Section 4 as running code.

The gaps and parameters of Section 1.1, and c-spread arms (Section 1.2):

    Delta_i = theta_i - theta_(K+1) for the top K, theta_K - theta_i for the others
    t       = the most arms that may be swapped across the boundary:
              t * Delta_(K-t) and t * Delta_(K+t+1) are at most K epsilon
    Psi_t   = min(Delta_(K-t), Delta_(K+t+1)),  Psi_t^epsilon = max(epsilon, Psi_t)
    H       = sum of min(Delta_i^-2, (Psi_t^epsilon)^-2)

Here means come in any order; theta_1 >= theta_2 >= ... are the same means, sorted.

The lower bound: to tell a coin of value 0.5 + eta from one of 0.5 - eta takes of the order of
ln(1/epsilon) tosses (`least_tosses`). A search that finds the K = n/2 best of n such coins also
tells one coin hidden among them (`Reduction`). So a search must pay n ln(1/epsilon), though H^(t,
epsilon) does not grow with 1/epsilon; `demonstrate` measures it."""

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import ceil, floor, log

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from scipy.stats import binom, linregress

from shortlist.algorithms import Algorithm
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.formatting import Tabular, TextTable, figures
from shortlist.instances import ETA, lower_bound
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards, advance
from shortlist.simulation.simulate import simulate
from shortlist.validation import arm_means, check_choice, number, plain, shown, whole


@dataclass(frozen=True, slots=True)
class Hardness(Tabular):
    """The hardness of choosing the `k` best arms up to an aggregate regret of `epsilon`.

    Example:
        >>> import shortlist
        >>> round(shortlist.hardness([0.9, 0.8, 0.2], k=1, epsilon=0.05).h)
        202"""

    k: int  #: how many arms are to be chosen
    epsilon: float  #: the regret allowed
    gaps: FloatArray = field(repr=False)  #: (n,) Delta_i(K), in the order the means were given
    t: int  #: t(epsilon, K), the most arms that may be swapped across the boundary
    psi: float  #: Psi_t, the lesser gap of the two arms that t leaves next to the boundary
    psi_epsilon: float  #: Psi_t^epsilon, the larger of epsilon and Psi_t
    h: float  #: H^(t, epsilon), what AdaptiveTopK and ImprovedTopK pay for
    h0: float  #: H^(0, epsilon), what CLUCB-PAC pays for
    h_tilde: float  #: the classical sum of Delta_i^-2, infinite where the boundary is a tie

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON: all but the gaps."""
        names = [each.name for each in fields(self) if each.name != "gaps"]
        return {"n": self.gaps.size, **{name: getattr(self, name) for name in names}}

    def tables(self) -> tuple[TextTable]:
        """The figures of `summary`."""
        return (figures(self.summary()),)


def hardness(means: npt.ArrayLike, k: int, epsilon: float) -> Hardness:
    """Compute the gaps and hardness parameters of an instance.

    H <= H0 <= n / epsilon^2 always. t is at most min(K, n - K) - 1, for arm K + t + 1 must exist
    (E15).

    Args:
        means: Mean reward of every arm, in any order.
        k: Number of arms to choose, from 1 to one less than there are.
        epsilon: Allowed regret, above 0, in units of the rewards.

    Returns:
        The gaps, t, Psi, H, H0 and the classical sum of inverse squared gaps. It prints as a table.

    Raises:
        InvalidInput: If a mean is not finite, or `k` or `epsilon` breaks its rule.

    Example:
        >>> import shortlist
        >>> found = shortlist.hardness([0.7, 0.7, 0.3, 0.3], k=2, epsilon=0.1)
        >>> found.t, round(found.h, 6)
        (0, 25.0)
    """
    theta = arm_means(means)
    check_choice(theta.size, k)
    k, epsilon = int(k), number("epsilon", epsilon, above=0)
    ordered = np.sort(theta)[::-1]
    own_gaps = gaps(theta, k)
    t, psi = _exchangeable(ordered, k, epsilon)
    psi_epsilon = max(epsilon, psi)
    return Hardness(
        k=k,
        epsilon=epsilon,
        gaps=own_gaps,
        t=t,
        psi=psi,
        psi_epsilon=psi_epsilon,
        h=_sum_of_inverse_squares(np.maximum(own_gaps, psi_epsilon)),
        # Psi_0 is the least gap, so cutting gaps off at Psi_0^epsilon is the same as at epsilon
        h0=_sum_of_inverse_squares(np.maximum(own_gaps, epsilon)),
        h_tilde=_sum_of_inverse_squares(own_gaps),
    )


def gaps(means: FloatArray, k: int) -> FloatArray:
    """Delta_i(K): how far each arm is from the nearest arm across the boundary."""
    ordered = np.partition(means, (means.size - k - 1, means.size - k))
    outside, inside = ordered[means.size - k - 1], ordered[means.size - k]  # theta_(K+1), theta_K
    delta: FloatArray = np.where(means >= inside, means - outside, inside - means)
    return delta


def _exchangeable(ordered: FloatArray, k: int, epsilon: float) -> tuple[int, float]:
    """t(epsilon, K) and Psi_t."""
    swaps = np.arange(min(k, ordered.size - k))  # E15
    above = ordered[k - 1 - swaps] - ordered[k]  # Delta_(K-t)
    below = ordered[k - 1] - ordered[k + swaps]  # Delta_(K+t+1)
    t = int(np.flatnonzero(swaps * np.maximum(above, below) <= k * epsilon)[-1])
    return t, float(min(above[t], below[t]))


def _sum_of_inverse_squares(values: FloatArray) -> float:
    # a gap of 0, or all but 0, is infinitely hard
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.sum(values**-2.0))


def spread(means: npt.ArrayLike) -> float | None:
    """The least c for which the arms are c-spread, or None if there is none, as with ties.

    c-spread: |i - j| / (c n) <= |theta_i - theta_j| <= c |i - j| / n for all i, j, and c >= 1.
    Neighbours decide: a difference over d places is a sum of d steps between neighbours, so it lies
    between d times the least and d times the largest step, and both bounds hold for all pairs if
    they hold for d = 1."""
    theta = arm_means(means)
    if theta.size < 2:
        raise InvalidInput(f"`means` has {theta.size} arms, but a spread needs at least 2")
    steps = np.diff(np.sort(theta)) * theta.size
    least, largest = float(steps.min()), float(steps.max())
    c = max(1.0, largest, 1 / least) if least > 0 else math.inf
    return c if math.isfinite(c) else None


def spread_upper_bound(n_arms: int, k: int, epsilon: float, c: float) -> float:
    """What H^(t, epsilon) is at most on c-spread arms: O(c^2.5 gamma^-1/2 n / sqrt(epsilon)), gamma
    = k / n <= 1/2.

    Lemma "c-spread", with constants: H <= 4 c^2 n^2 / m, where m = min(k, n - k, sqrt(k n epsilon /
    (2c))) <= t + 1.
    - t(t + 1) <= k n epsilon / c satisfies both conditions on t, as Delta_(K-t) and Delta_(K+t+1)
      <= c (t + 1) / n. So unless t is at its cap, (t + 1)(t + 2) > k n epsilon / c, hence 2 (t +
      1)^2 > k n epsilon / c.
    - The j-th arm from the boundary on either side has Delta >= j / (cn), and Psi_t >= (t + 1) /
      (cn). So H <= 2 (cn)^2 * (sum over j of max(j, t + 1)^-2) <= 2 (cn)^2 * 2 / (t + 1)."""
    _check_spread(n_arms, epsilon, c)
    check_choice(n_arms, k)
    return 4 * (c * n_arms) ** 2 / min(k, n_arms - k, math.sqrt(k * n_arms * epsilon / (2 * c)))


def spread_lower_bound(n_arms: int, epsilon: float, c: float) -> float:
    """What H^(0, epsilon) is at least on c-spread arms, for every k: Omega(n / (c epsilon)) once
    epsilon n >= c.

    Lemma "c-spread": one side of the boundary holds n/2 arms, and the j-th of them has Delta <= c j
    / n."""
    _check_spread(n_arms, epsilon, c)
    j = np.arange(1, (n_arms + 1) // 2 + 1)
    return _sum_of_inverse_squares(np.maximum(c * j / n_arms, epsilon))


def _check_spread(n_arms: int, epsilon: float, c: float) -> None:
    check_choice(n_arms, 1)
    number("epsilon", epsilon, above=0)
    if number("c", c) < 1:
        raise InvalidInput(f"`c` is {shown(c)}, but must be at least 1")


UNKNOWN = 0.9  # how often a tosser may give up


@dataclass
class Coin:
    """A coin that shows heads with probability `value` and counts its tosses."""

    value: float
    rng: np.random.Generator
    tosses: int = 0

    def toss(self, times: IntArray) -> IntArray:
        """Toss it that many times for each entry; return the heads of each."""
        self.tosses += int(times.sum())
        return self.rng.binomial(times, self.value)


def optimal_error(tosses: int, eta: float) -> float:
    """The least share of wrong answers of any tosser that leaves at most UNKNOWN of them open.

    Theorem "two-point": only the number of heads matters, and the best rule answers where it is
    farthest from half. Where the farthest outcomes do not add up to the share exactly, the last one
    is answered in part."""
    tosses = whole("tosses", tosses, at_least=0)
    eta = number("eta", eta, above=0, below=0.5)
    # heads or tails, whichever are fewer; from the clearest outcome on; (tosses // 2 + 1,)
    rarer = np.arange(tosses // 2 + 1)
    mass = binom.pmf(rarer, tosses, 0.5 - eta) + binom.pmf(tosses - rarer, tosses, 0.5 - eta)
    if tosses % 2 == 0:
        mass[-1] /= 2  # half heads is one outcome, not two
    answered = np.clip((1 - UNKNOWN) - (np.cumsum(mass) - mass), 0, mass)
    # the posterior probability of the less likely value, from the likelihood ratio
    wrong = expit((2 * rarer - tosses) * log((0.5 + eta) / (0.5 - eta)))
    return float(answered @ wrong / (1 - UNKNOWN))


def least_tosses(error: float, eta: float) -> int:
    """The least number of tosses with which a tosser errs in at most this share of its answers.

    Doubling, then bisection."""
    error = number("error", error, above=0)
    low = -1
    high = 0
    while optimal_error(high, eta) > error:
        low = high
        high = max(1, 2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        if optimal_error(middle, eta) > error:
            low = middle
        else:
            high = middle
    return high


def least_pulls(n_arms: int, epsilon: float, eta: float) -> float:
    """The least mean cost, on n/2 good and n/2 bad coins, of a search that is right 9 in 10 times.

    Theorem "lb-eps" with its constants, for n epsilon >= 4 eta: a search of cost C makes a
    `Reduction` that errs in at most 4 epsilon / eta of its answers after 20 C / n tosses, which
    cannot be fewer than `least_tosses`."""
    return n_arms / 20 * least_tosses(4 * epsilon / eta, eta)


FAILURE = 0.1  # how often the search may fail


class CoinVerdict(StrEnum):
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

    def tell(self, coin: Coin, rng: np.random.Generator) -> CoinVerdict:
        """Say which of the two values `coin` has, or that it is unknown."""
        place_rng, search_rng, reward_rng = rng.spawn(3)
        others = place_rng.permutation(lower_bound(self.n_arms, self.eta))
        place = int(place_rng.integers(self.n_arms))
        top = self._search(coin, place, others, search_rng, reward_rng)
        if top is None:
            return CoinVerdict.GAVE_UP
        if not self._verified(others[top[top != place]]):
            return CoinVerdict.UNVERIFIED
        return CoinVerdict.HIGH if place in top else CoinVerdict.LOW

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
class TosserTally:
    """What a tosser said of many coins, each as likely good as bad."""

    right: int
    wrong: int
    gave_up: int
    unverified: int
    most_tosses: int  # of any coin


def tally(reduction: Reduction, runs: int, seed: int = 0) -> TosserTally:
    """Let it tell `runs` fresh coins."""
    right = 0
    verdicts = []
    tosses = []
    for rng in np.random.default_rng(seed).spawn(runs):
        good = bool(rng.integers(2))
        coin = Coin(0.5 + reduction.eta if good else 0.5 - reduction.eta, rng.spawn(1)[0])
        verdict = reduction.tell(coin, rng)
        right += verdict is (CoinVerdict.HIGH if good else CoinVerdict.LOW)
        verdicts.append(verdict)
        tosses.append(coin.tosses)
    gave_up = verdicts.count(CoinVerdict.GAVE_UP)
    unverified = verdicts.count(CoinVerdict.UNVERIFIED)
    return TosserTally(right, runs - right - gave_up - unverified, gave_up, unverified, max(tosses))


@dataclass(frozen=True, slots=True)
class NeededBudget:
    """The least budget that was enough for epsilon on n coins, and H, which does not see it."""

    n_arms: int
    epsilon: float
    budget: int
    h: float

    @property
    def tosses_per_arm(self) -> float:
        """Budget / n."""
        return self.budget / self.n_arms


@dataclass(frozen=True, slots=True)
class Growth:
    """Tosses per arm fitted by intercept + slope * ln(1/epsilon)."""

    needed: tuple[NeededBudget, ...]
    slope: float
    intercept: float
    r_squared: float


def demonstrate(
    epsilons: npt.ArrayLike,
    n_arms: int = 1000,
    *,
    eta: float = 0.1,
    algorithm: str = "uniform",
    runs: int = 100,
    seed: int = 0,
) -> Growth:
    """Measure how the budget that a search needs on the hard instance grows with ln(1/epsilon).

    For uniform sampling an arm lands on the wrong side with probability of about exp(-2 eta^2 N)
    after N tosses, and epsilon / (2 eta) of them may: N grows by about 1 / (2 eta^2) per unit of
    ln(1/epsilon)."""
    grid = np.asarray(epsilons, dtype=np.float64)
    needed = []
    for epsilon in grid.tolist():
        budget = least_budget(algorithm, n_arms, epsilon, eta=eta, runs=runs, seed=seed)
        h = hardness(lower_bound(n_arms, eta), n_arms // 2, epsilon).h
        needed.append(NeededBudget(n_arms, epsilon, budget, h))
    fit = linregress(-np.log(grid), [each.tosses_per_arm for each in needed])
    return Growth(tuple(needed), float(fit.slope), float(fit.intercept), float(fit.rvalue**2))


def least_budget(
    algorithm: str,
    n_arms: int,
    epsilon: float,
    *,
    eta: float,
    runs: int,
    seed: int,
    precision: float = 0.02,
) -> int:
    """The least budget at which at most a tenth of the runs lose more than epsilon.

    Doubling, then bisection up to `precision`; every budget is tried on the same seeds."""
    means = lower_bound(n_arms, eta)

    def fails(budget: int) -> bool:
        found = simulate(
            algorithm, means, k=n_arms // 2, epsilon=epsilon, budget=budget, runs=runs, seed=seed
        )
        return bool(found.failed.mean() > FAILURE)

    high = n_arms
    while fails(high):
        high *= 2
    low = high // 2
    while high - low > precision * high:
        middle = (low + high) // 2
        if fails(middle):
            low = middle
        else:
            high = middle
    return high
