"""The rewards of a request: every one is checked when it comes in, all are added up in one order.

Sums of floats depend on their order, and the answer of a search must not depend on which worker
was quicker: so calls are added up by their numbers, whenever they came in."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray, IntArray
from shortlist.engine.tickets import Numbering
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.problem import MOST_COST
from shortlist.reward_models import RewardModel
from shortlist.search import Rewards
from shortlist.validation import real, shown


def checked_reward(reward: object, name: str, model: RewardModel) -> float:
    """The reward as a float, if it is a number that keeps to the declaration; if not, `name` it."""
    number = real(reward)
    if not model.admits(number):
        raise InvalidReward(f"{name} is {shown(reward)}, but must be {model.rule}")
    return number


def with_cost(value: Any, *, many: bool = False) -> tuple[Any, Any]:
    """What a call returned, and what it says that it cost: None if it does not say.

    A cost is the second of a tuple of two; of rewards that are `many`, the first is their list."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return value, None
    if many and isinstance(value[0], Real):
        return value, None
    return value


def checked_cost(cost: object, name: str) -> float | None:
    """What a pull is said to have cost, if that is possible; None if nothing is said."""
    if cost is None:
        return None
    number = math.nan if isinstance(cost, bool) else real(cost)
    if not 0 <= number <= MOST_COST:
        raise InvalidInput(f"{name} is {shown(cost)}, but must be a number from 0 to {MOST_COST:g}")
    return number


def checked_rewards(rewards: Any, times: int, label: object, model: RewardModel) -> FloatArray:
    """The rewards of one call, if they are as many as its pulls and all keep to the declaration."""
    if isinstance(rewards, str) or not (
        isinstance(rewards, Sequence) or hasattr(rewards, "__array__")
    ):
        raise InvalidReward(
            f"the rewards of arm {shown(label)} are {shown(rewards)}, but must be a list or an"
            " array"
        )
    array = _array(rewards)
    if array.shape[:1] != (times,):
        size = f"{array.shape[0]} numbers" if array.ndim else "a single number"
        raise InvalidReward(
            f"the rewards of arm {shown(label)} are {size}, but it was pulled {times} times"
        )
    name = f"a reward of arm {shown(label)}"
    if array.ndim > 1 or array.dtype.kind not in "buif":  # None and "1" must not pass for numbers
        return np.array([checked_reward(reward, name, model) for reward in rewards])
    numbers = array.astype(np.float64)
    wrong = array[~np.asarray(model.admits(numbers))]
    if wrong.size:
        checked_reward(wrong[0], name, model)
    return numbers


def _array(values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths inside
        return np.asarray(values, dtype=object)


class Received:
    """The rewards of a batch, in the order of its tickets, whenever they came in.

    `costs` are the actual costs by ticket, of those pulls that reported one. A cost of 0 counts as
    declared for the search: pulls that are free would not end."""

    def __init__(
        self, numbering: Numbering, rewards: FloatArray, costs: Mapping[int, float] | None = None
    ) -> None:
        self._numbering = numbering
        self._rewards = rewards
        paid = {} if costs is None else costs
        self._costs = {ticket - numbering.first: cost for ticket, cost in paid.items() if cost}

    def rewards(self, prices: FloatArray, *, single: bool = False) -> Rewards:
        """What the search is sent; on a test set with `single` rewards, too.

        `prices` are the declared costs of the arms, for pulls that reported none."""
        entries, arms, draws = self._numbering.places(self._numbering.tickets)
        size = self._numbering.pulls.arms.size
        sums = sums_by_entry(self._rewards, entries, size)
        squares = np.bincount(entries, self._rewards**2, size)
        each = self._rewards[np.lexsort((draws, entries))] if single else None
        costs = None
        if self._costs:
            paid = prices[arms]  # (tickets,)
            paid[list(self._costs)] = list(self._costs.values())
            costs = np.bincount(entries, paid, size).astype(np.float64)
        return Rewards(sums, np.asarray(squares, dtype=np.float64), each, costs)

    def by_draw(self) -> tuple[IntArray, FloatArray]:
        """The arm and the reward of every pull, by arm and draw."""
        _, arms, draws = self._numbering.places(self._numbering.tickets)
        order = np.lexsort((draws, arms))
        return arms[order], self._rewards[order]


def by_entry(
    numbering: Numbering, tickets: IntArray, rewards: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Pulls, sums and sums of squares of these tickets, by their entry of the batch."""
    entries, _, _ = numbering.places(tickets)
    size = numbering.pulls.arms.size
    sums, squares = (np.bincount(entries, each, size) for each in (rewards, rewards**2))
    pulls = np.bincount(entries, minlength=size).astype(np.int64)
    return pulls, sums.astype(np.float64), squares.astype(np.float64)


def sums_by_entry(rewards: FloatArray, entries: IntArray, size: int) -> FloatArray:
    """Add up rewards by the entry that each belongs to.

    They are taken around the first reward of the entry: rewards far from 0 would lose their digits
    in a long sum, and always in the same direction."""
    pivots = np.zeros(size)
    pivots[entries[::-1]] = rewards[::-1]
    around = np.bincount(entries, rewards - pivots[entries], size)
    total: FloatArray = around + np.bincount(entries, minlength=size) * pivots
    return total
