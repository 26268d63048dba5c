"""Reward models: what is declared about rewards. A range, 0 and 1, sub-Gaussian tails, a normal
distribution of any variance, or nothing.

All models have these attributes, so that callers need not know which model it is:

    kind         its name in a stored experiment
    has_range    whether rewards and means have one: [0, 1] on the unit scale
    is_binary    whether every reward is 0 or 1, so that its mean determines its distribution
    support      the least and the largest reward, in the user's units
    knows_spread whether the declaration bounds how much rewards vary
    distance     distance of the range from 0, in its widths; 0 where rewards are only scaled
    widest_gap   largest difference of two means, on the unit scale"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from shortlist.errors import InvalidInput
from shortlist.formatting import given_text
from shortlist.spec import RewardKind
from shortlist.validation import LARGEST, SMALLEST, number, plain, shown

Reals = float | npt.NDArray[np.float64]
Flags = bool | npt.NDArray[np.bool_]
# from 0, in widths of a range or in sigmas: beyond, floats are too coarse for rewards
FARTHEST = 1e9
UNIT_SIGMA = 0.5  # of sub-Gaussian rewards on the unit scale, as of rewards in [0, 1] at most


@dataclass(frozen=True, slots=True)
class Bounded:
    """Rewards lie in [low, high].

    Args:
        low: The least reward. Default 0.
        high: The largest reward, above `low`. Default 1.

    Raises:
        InvalidInput: If the range is empty, or far from 0 compared with its width.

    Example:
        >>> import shortlist
        >>> shortlist.Bounded(-1, 1).scale
        2.0
    """

    low: float = 0.0
    high: float = 1.0
    kind: ClassVar[RewardKind] = "bounded"
    has_range = True
    is_binary = False
    knows_spread = True
    widest_gap = 1.0

    def __post_init__(self) -> None:
        plain(self, low=number("low", self.low, above=-LARGEST, below=LARGEST))
        plain(self, high=number("high", self.high, above=-LARGEST, below=LARGEST))
        if self.high <= self.low:
            raise InvalidInput(
                f"`high` is {given_text(self.high)}, but must be greater than low ="
                f" {given_text(self.low)}"
            )
        if self.scale < max(SMALLEST, max(abs(self.low), abs(self.high)) / FARTHEST):
            raise InvalidInput(
                f"the range is {given_text(self.low)} to {given_text(self.high)}, but must be"
                f" at least {SMALLEST:g} wide and at most {FARTHEST:g} times its width from 0:"
                " subtract a constant from the rewards"
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
    def support(self) -> tuple[float, float]:
        """The least and the largest reward."""
        return self.low, self.high

    @property
    def rule(self) -> str:
        """What a reward must be, for error messages."""
        return f"a number between {given_text(self.low)} and {given_text(self.high)}"

    @property
    def distance(self) -> float:
        """Distance of the range from 0, in its widths: digits lost by the shift."""
        return max(abs(self.low), abs(self.high)) / self.scale if self.shift else 0.0

    def unit(self) -> "Bounded":
        """The same kind of rewards on the unit scale."""
        return Bounded()

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, keeps to the declaration.

        Args:
            rewards: A reward, or an array of them.

        Returns:
            True or False; for an array one of each."""
        return (self.low <= rewards) & (rewards <= self.high)


@dataclass(frozen=True, slots=True)
class Binary:
    """Rewards are 0 or 1: a click, a correct answer, a passed test.

    Example:
        >>> import shortlist
        >>> shortlist.Binary().is_binary
        True
    """

    kind: ClassVar[RewardKind] = "binary"
    has_range = True
    is_binary = True
    knows_spread = True
    widest_gap = 1.0
    support = (0.0, 1.0)
    shift = 0.0
    scale = 1.0
    distance = 0.0
    rule = "0 or 1"

    def unit(self) -> "Binary":
        """The same kind of rewards on the unit scale."""
        return self

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, keeps to the declaration.

        Args:
            rewards: A reward, or an array of them.

        Returns:
            True or False; for an array one of each."""
        return (rewards == 0) | (rewards == 1)


@dataclass(frozen=True, slots=True)
class SubGaussian:
    """Rewards have tails no heavier than a normal distribution of standard deviation `sigma`.

    Args:
        sigma: In units of the rewards, above 0.

    Raises:
        InvalidInput: If `sigma` is not above 0.

    Example:
        >>> import shortlist
        >>> shortlist.SubGaussian(2.0).has_range
        False
    """

    sigma: float
    kind: ClassVar[RewardKind] = "sub-gaussian"
    has_range = False
    is_binary = False
    knows_spread = True
    widest_gap = inf
    support = (-inf, inf)
    shift = 0.0
    distance = 0.0

    def __post_init__(self) -> None:
        plain(self, sigma=number("sigma", self.sigma, above=SMALLEST, below=LARGEST))

    @property
    def scale(self) -> float:
        """The length that becomes 1 on the unit scale: there sigma is 1/2, as for rewards in
        [0, 1]."""
        return 2 * self.sigma

    @property
    def farthest(self) -> float:
        """The largest absolute reward that floats resolve well enough."""
        return FARTHEST * self.sigma

    @property
    def rule(self) -> str:
        """What a reward must be, for error messages."""
        return (
            f"a number at most {FARTHEST:g} sigma = {self.farthest:.15g} from 0 (subtract a"
            " constant from the rewards)"
        )

    def unit(self) -> "SubGaussian":
        """The same kind of rewards on the unit scale."""
        return SubGaussian(UNIT_SIGMA)

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, keeps to the declaration.

        Args:
            rewards: A reward, or an array of them.

        Returns:
            True or False; for an array one of each."""
        return (rewards >= -self.farthest) & (rewards <= self.farthest)


@dataclass(frozen=True, slots=True)
class Normal:
    """Rewards are normal; every arm has a variance of its own, and none is known.

    Outputs of simulations, mostly: docs/normal.md says what holds if they are not normal.

    Example:
        >>> import shortlist
        >>> shortlist.Normal().knows_spread
        False
    """

    kind: ClassVar[RewardKind] = "normal"
    has_range = False
    is_binary = False
    knows_spread = False
    widest_gap = inf
    support = (-inf, inf)
    shift = 0.0
    scale = 1.0
    distance = 0.0
    rule = f"a number at most {LARGEST:g} from 0"

    def unit(self) -> "Normal":
        """The same kind of rewards on the unit scale."""
        return self

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, is a number to compute with.

        Args:
            rewards: A reward, or an array of them.

        Returns:
            True or False; for an array one of each."""
        return (rewards >= -LARGEST) & (rewards <= LARGEST)


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Nothing was declared, and nothing is guaranteed; rewards may be any numbers.

    They are treated as rewards in [0, 1] as long as they lie there."""

    kind: ClassVar[RewardKind] = "undeclared"
    has_range = True
    is_binary = False
    knows_spread = True
    widest_gap = 1.0
    support = (0.0, 1.0)
    shift = 0.0
    scale = 1.0
    distance = 0.0
    rule = f"a number at most {LARGEST:g} from 0"

    def unit(self) -> "Undeclared":
        """The same kind of rewards on the unit scale."""
        return self

    def admits(self, rewards: Reals) -> Flags:
        """Whether a reward, or each of an array of them, is a number to compute with."""
        return (rewards >= -LARGEST) & (rewards <= LARGEST)

    def seen(self, least: float, most: float) -> "Undeclared":
        """The model by the least and the largest reward; NaN before the first one."""
        return Unranged() if least < 0 or most > 1 else self


@dataclass(frozen=True, slots=True)
class Unranged(Undeclared):
    """Undeclared rewards that turned out not to lie in [0, 1]."""

    has_range = False
    widest_gap = inf
    support = (-inf, inf)


RewardModel = Bounded | Binary | SubGaussian | Normal | Undeclared
RewardsDeclared = tuple[float, float] | Literal["binary", "normal"] | RewardModel
BY_NAME: dict[str, RewardModel] = {"binary": Binary(), "normal": Normal()}
MODELS: dict[str, type[RewardModel]] = {
    model.kind: model for model in (Bounded, Binary, SubGaussian, Normal, Undeclared)
}


def as_seen(model: RewardModel, least: float, most: float) -> RewardModel:
    """The model by the least and the largest reward so far."""
    return model.seen(least, most) if isinstance(model, Undeclared) else model


def model_of(rewards: object) -> RewardModel:
    """The rewards that were declared: a range, "binary", "normal", or a model."""
    if isinstance(rewards, RewardModel):
        return rewards
    if isinstance(rewards, str) and rewards in BY_NAME:
        return BY_NAME[rewards]
    if isinstance(rewards, tuple | list) and len(rewards) == 2:
        return Bounded(*rewards)
    raise InvalidInput(
        f"`rewards` is {shown(rewards)}, but must be a range (low, high), 'binary', 'normal', or"
        " a reward model"
    )


def check_spread(model: RewardModel, who: str) -> None:
    """Refuse rewards of unknown variance where a bound needs to know how much they can vary."""
    if not model.knows_spread:
        raise InvalidInput(
            f"`rewards` is 'normal', but {who} must know how much rewards can vary: a range"
            " (low, high), 'binary' or SubGaussian(sigma)"
        )


def declared(rewards: object) -> RewardModel:
    """The same, or [0, 1] where nothing was declared and a guarantee is wanted."""
    return Bounded() if rewards is None else model_of(rewards)
