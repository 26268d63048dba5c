"""What is asked: how many arms, how many to choose, with which goal, from which kind of rewards."""

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal

import numpy as np
import numpy.typing as npt

from shortlist.errors import InvalidInput, UnsupportedGoal

Reals = float | npt.NDArray[np.float64]
Flags = bool | npt.NDArray[np.bool_]
# of what has a unit: the square of a ratio of two of them must not overflow
LARGEST, SMALLEST = 1e60, 1e-60
# of a range from 0, in its widths: beyond, floats do not tell its rewards apart well enough
FARTHEST = 1e9


def whole(name: str, value: object, *, at_least: int) -> int:
    """Return `value` as an int if it is a whole number of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise InvalidInput(
            f"`{name}` is {shown(value)}, but must be a whole number of at least {at_least}"
        )
    return int(value)


def real(value: object) -> float:
    """A number as a float: NaN if it is none, infinite if it is too large for a float."""
    if not isinstance(value, Real | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def shown(value: object) -> str:
    """A value for a message, however long it is; 1.5 reads better than np.float64(1.5)."""
    if math.isinf(real(value)):  # a whole number may have too many digits to be shown
        return str(real(value))
    return repr(value.item() if isinstance(value, np.generic) else value)


def plain(record: object, **values: object) -> None:
    """Put plain Python numbers into a frozen record, whatever kinds of numbers it was given."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def number(name: str, value: object, *, above: float = -math.inf, below: float = math.inf) -> float:
    """Return `value` as a float if it lies strictly between `above` and `below`."""
    result = math.nan if isinstance(value, bool) else real(value)
    if not above < result < below:
        limits = [f"greater than {above:g}"] * math.isfinite(above) + [
            f"less than {below:g}"
        ] * math.isfinite(below)
        rule = " ".join(
            ["a number" if len(limits) == 2 else "a finite number", " and ".join(limits)]
        ).strip()
        raise InvalidInput(f"`{name}` is {shown(value)}, but must be {rule}")
    return result


def arm_means(
    means: npt.ArrayLike, low: float = -math.inf, high: float = math.inf
) -> npt.NDArray[np.float64]:
    """Return `means` as an array, one per arm, if each is a finite number between `low` and
    `high`."""
    try:
        theta = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`means` is {means!r}, but must be a list of numbers") from error
    if theta.ndim != 1:
        raise InvalidInput(f"`means` has shape {theta.shape}, but must be a list of numbers")
    wrong = np.flatnonzero(~(np.isfinite(theta) & (theta >= low) & (theta <= high)))
    if wrong.size:
        rule = "a finite number" if math.isinf(high) else f"a number between {low:g} and {high:g}"
        raise InvalidInput(f"the mean of arm {wrong[0]} is {theta[wrong[0]]}, but must be {rule}")
    return theta


def check_choice(n_arms: object, k: object) -> None:
    """Refuse to choose `k` of `n_arms` arms unless something is left to choose: 1 <= k < n_arms."""
    n = whole("n_arms", n_arms, at_least=2)
    if whole("k", k, at_least=1) >= n:
        raise InvalidInput(f"`k` is {shown(k)}, but must be between 1 and n_arms - 1 = {n - 1}")


@dataclass(frozen=True, slots=True)
class FixedConfidence:
    """Lose at most `epsilon` with probability at least 1 - `delta`, with as few pulls as possible.

    With a `budget` the search stops there at the latest and says what it could prove by then."""

    epsilon: float
    delta: float
    budget: int | None = None

    def __post_init__(self) -> None:
        plain(self, epsilon=number("epsilon", self.epsilon, above=0))
        plain(self, delta=number("delta", self.delta, above=0, below=1))
        if self.delta < SMALLEST:
            raise InvalidInput(f"`delta` is {self.delta!r}, but must be at least {SMALLEST:g}")
        if self.budget is not None:
            plain(self, budget=whole("budget", self.budget, at_least=1))


@dataclass(frozen=True, slots=True)
class FixedBudget:
    """Lose as little as possible within `budget` pulls."""

    budget: int

    def __post_init__(self) -> None:
        plain(self, budget=whole("budget", self.budget, at_least=1))


@dataclass(frozen=True, slots=True)
class Bounded:
    """Rewards lie in [low, high]."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        plain(self, low=number("low", self.low, above=-LARGEST, below=LARGEST))
        plain(self, high=number("high", self.high, above=-LARGEST, below=LARGEST))
        if self.high <= self.low:
            raise InvalidInput(
                f"`high` is {self.high:.15g}, but must be greater than low = {self.low:.15g}"
            )
        if self.scale < max(SMALLEST, max(abs(self.low), abs(self.high)) / FARTHEST):
            raise InvalidInput(
                f"the range is {self.low:.15g} to {self.high:.15g}, but must be at least"
                f" {SMALLEST:g} wide and at most {FARTHEST:g} times its width from 0: subtract a"
                " constant from the rewards"
            )

    @property
    def shift(self) -> float:
        """The reward that becomes 0 on the unit scale."""
        return self.low

    @property
    def scale(self) -> float:
        """The length that becomes 1 on the unit scale."""
        return self.high - self.low

    @property
    def rule(self) -> str:
        """What a reward must be, in words."""
        return f"a number between {self.low:.15g} and {self.high:.15g}"

    def unit(self) -> "Bounded":
        """The same kind of rewards on the unit scale."""
        return Bounded()

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, keeps to the declaration."""
        return (self.low <= rewards) & (rewards <= self.high)


@dataclass(frozen=True, slots=True)
class Binary:
    """Rewards are 0 or 1: a click, a correct answer, a passed test."""

    shift = 0.0
    scale = 1.0
    rule = "0 or 1"

    def unit(self) -> "Binary":
        """The same kind of rewards on the unit scale."""
        return self

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, keeps to the declaration."""
        return (rewards == 0) | (rewards == 1)


@dataclass(frozen=True, slots=True)
class SubGaussian:
    """Rewards have tails no heavier than a normal law of standard deviation `sigma`."""

    sigma: float = 0.5
    shift = 0.0
    rule = f"a number between {-LARGEST:g} and {LARGEST:g}"

    def __post_init__(self) -> None:
        plain(self, sigma=number("sigma", self.sigma, above=SMALLEST, below=LARGEST))

    @property
    def scale(self) -> float:
        """The length that becomes 1 on the unit scale, where sigma is 1/2 as for rewards in [0,
        1]."""
        return 2 * self.sigma

    def unit(self) -> "SubGaussian":
        """The same kind of rewards on the unit scale."""
        return SubGaussian(0.5)

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, keeps to the declaration."""
        return (rewards > -LARGEST) & (rewards < LARGEST)


Goal = FixedConfidence | FixedBudget
RewardModel = Bounded | Binary | SubGaussian
RewardsDeclared = tuple[float, float] | Literal["binary"] | RewardModel


def model_of(rewards: object) -> RewardModel:
    """The rewards that were declared: a range, "binary", or a model."""
    if isinstance(rewards, Bounded | Binary | SubGaussian):
        return rewards
    if rewards == "binary":
        return Binary()
    if isinstance(rewards, tuple | list) and len(rewards) == 2:
        return Bounded(*rewards)
    raise InvalidInput(
        f"`rewards` is {rewards!r}, but must be a range (low, high), 'binary', or a reward model"
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """Choose the `k` best of `n_arms` arms.

    Searches work on the unit scale: rewards in [0, 1], or sub-Gaussian with sigma = 1/2, which is
    all that Hoeffding's inequality uses of rewards in [0, 1]. Whoever drives a search converts with
    `unit()`."""

    n_arms: int
    k: int
    goal: Goal
    rewards: RewardModel = Bounded()

    def __post_init__(self) -> None:
        check_choice(self.n_arms, self.k)
        plain(self, n_arms=int(self.n_arms), k=int(self.k))

    def unit(self) -> "Problem":
        """The same problem on the unit scale."""
        goal = self.goal
        if isinstance(goal, FixedConfidence):
            epsilon = goal.epsilon / self.rewards.scale
            if epsilon < SMALLEST:
                raise InvalidInput(
                    f"`epsilon` is {goal.epsilon!r}, but must be at least {SMALLEST:g} times the"
                    " scale"
                )
            goal = replace(goal, epsilon=min(epsilon, LARGEST))
        return replace(self, goal=goal, rewards=self.rewards.unit())

    def complement(self) -> "Problem":
        """The problem of finding the n - k worst arms instead, with the same total loss allowed."""
        rest = self.n_arms - self.k
        goal = self.goal
        if isinstance(goal, FixedConfidence):
            goal = replace(goal, epsilon=goal.epsilon * self.k / rest)
        return replace(self, k=rest, goal=goal)

    @property
    def epsilon(self) -> float:
        """The regret allowed, at most 1: a bound that is never wrong, since more than 1 is never
        needed."""
        return min(1.0, self._confidence_goal().epsilon)

    @property
    def delta(self) -> float:
        """The probability with which the bound may fail."""
        return self._confidence_goal().delta

    @property
    def budget(self) -> int:
        """The number of pulls allowed."""
        if self.goal.budget is None:
            raise UnsupportedGoal("the goal has no budget, but this search needs one")
        return self.goal.budget

    def _confidence_goal(self) -> FixedConfidence:
        if isinstance(self.goal, FixedBudget):
            raise UnsupportedGoal("the goal is a budget, but this search needs epsilon and delta")
        return self.goal
