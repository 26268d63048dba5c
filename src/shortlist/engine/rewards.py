"""The rewards of a request: every one is checked when it comes in, all are added up in one order.

Sums of floats depend on their order, and the answer of a search must not depend on which worker
was quicker: so calls are added up by their numbers, whenever they came in."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.confidence import counted_pulls
from shortlist.engine.numbering import Numbering, Places
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.problem import MOST_COST
from shortlist.reward_models import RewardModel
from shortlist.search import Rewards
from shortlist.validation import real, shown

ROOM = 1024  # calls for which there is memory from the beginning


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


class SoFar(NamedTuple):
    """What is counted of a request, call by call, and what came in beside it."""

    arms: IntArray
    times: IntArray  # pulls in the call
    rewards: Rewards
    waiting: IntArray  # (n,) pulls of every arm that came in before an earlier one


class Received:
    """What came in of a request so far, call by call."""

    def __init__(self, numbering: Numbering, n_arms: int) -> None:
        self._numbering = numbering
        self._n_arms = n_arms
        # (calls,) each, so far: a request may be longer than any memory
        self._sums = np.zeros(0)
        self._squares = np.zeros(0)
        self._opening = np.zeros(0)  # the first reward of every call
        self._in = np.zeros(0, dtype=np.bool_)
        self._lists: dict[int, FloatArray] = {}  # by call, of those of several pulls
        self._costs: dict[int, float] = {}  # by call, of those of which that was said

    def pay(self, ticket: int, cost: float | None) -> None:
        """Note what a call did cost, if anybody said so.

        What cost nothing counts as declared for the search: pulls that are free would not end."""
        if cost:
            self._costs[ticket - self._numbering.first] = cost

    def take(self, ticket: int, reward: float) -> None:
        """Note the reward of a call that is one pull."""
        call = self._call(ticket)
        self._in[call] = True
        self._opening[call] = self._sums[call] = reward
        self._squares[call] = reward * reward

    def take_many(self, ticket: int, rewards: FloatArray) -> None:
        """Note the rewards of a call of several pulls."""
        call = self._call(ticket)
        self._lists[call] = rewards
        self._in[call] = True
        self._opening[call] = rewards[0]
        self._sums[call] = (rewards - rewards[0]).sum() + rewards.size * rewards[0]
        self._squares[call] = rewards @ rewards

    def take_all(self, rewards: FloatArray) -> None:
        """Note all rewards at once, where every call is one pull: in the order of tickets."""
        self._opening = self._sums = rewards
        self._squares = rewards**2
        self._in = np.ones(rewards.size, dtype=np.bool_)

    def so_far(self) -> SoFar:
        """The arms, the pulls and the rewards of the calls that are counted, one after the other.

        Those of an arm are, up to the first that is missing: `shortlist.confidence`."""
        places, counted = self._counted()
        early = self._in[: counted.size] & ~counted
        waiting = np.bincount(places.arms[early], places.times[early], self._n_arms)
        rewards = Rewards(
            self._sums[: counted.size][counted], self._squares[: counted.size][counted]
        )
        arms, times = places.arms[counted], places.times[counted]
        return SoFar(arms, times, rewards, waiting.astype(np.int64))

    def by_entry(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Pulls that are counted, their sums and their sums of squares, entry by entry."""
        calls = np.flatnonzero(self._counted()[1])
        tickets = self._numbering.first + calls
        return by_entry(self._numbering, tickets, self._sums[calls], self._squares[calls])

    def _counted(self) -> tuple[Places, BoolArray]:
        """Where the calls up to the last that may be in belong, and which of them are counted."""
        calls = min(self._in.size, self._numbering.total)
        places = self._numbering.places(self._numbering.first + np.arange(calls))
        return places, counted_pulls(places.arms, self._in[:calls], self._n_arms)

    def rewards(self, prices: FloatArray, *, single: bool = False) -> Rewards:
        """What the search is sent when all calls are in; with items, single rewards too.

        `prices` are those of the arms, for calls of which nobody said what they cost."""
        entries, arms, draws, times = self._numbering.places(self._numbering.tickets)
        size, calls = self._numbering.pulls.arms.size, self._numbering.total
        self._make_room(calls)
        sums = sums_by_entry(self._sums[:calls], times, self._opening[:calls], entries, size)
        squares = np.bincount(entries, self._squares[:calls], size)
        each = self._each(np.lexsort((draws, entries))) if single else None
        costs = None
        if self._costs:
            paid = times * prices[arms]  # (calls,)
            paid[list(self._costs)] = list(self._costs.values())
            costs = np.bincount(entries, paid, size).astype(np.float64)
        return Rewards(sums, np.asarray(squares, dtype=np.float64), each, costs)

    def by_draw(self) -> tuple[IntArray, FloatArray]:
        """The arm and the reward of every pull when all calls are in, by arm and draw."""
        _, arms, draws, times = self._numbering.places(self._numbering.tickets)
        order = np.lexsort((draws, arms))
        return np.repeat(arms[order], times[order]), self._each(order)

    def _call(self, ticket: int) -> int:
        """The number of a call in its request, for which there is room."""
        call = ticket - self._numbering.first
        self._make_room(call + 1)
        return call

    def _make_room(self, calls: int) -> None:
        """Let the arrays hold that many calls; doubled, so that growing costs little."""
        if calls > self._in.size:
            more = (0, max(calls, 2 * self._in.size, ROOM) - self._in.size)
            self._sums = np.pad(self._sums, more)
            self._squares = np.pad(self._squares, more)
            self._opening = np.pad(self._opening, more)
            self._in = np.pad(self._in, more)

    def _each(self, order: IntArray) -> FloatArray:
        """Every reward, call by call in this order."""
        if not self._lists:
            return self._sums[order]
        return np.concatenate([self._lists[call] for call in order.tolist()])


def by_entry(
    numbering: Numbering, tickets: IntArray, sums: FloatArray, squares: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Pulls in these calls, their sums and their sums of squares, by the entry of the request."""
    entries, _, _, times = numbering.places(tickets)
    size = numbering.pulls.arms.size
    pulls, *both = (np.bincount(entries, each, size) for each in (times, sums, squares))
    return pulls.astype(np.int64), both[0].astype(np.float64), both[1].astype(np.float64)


def sums_by_entry(
    sums: FloatArray, times: IntArray, opening: FloatArray, entries: IntArray, size: int
) -> FloatArray:
    """Add up the sums of calls by the entry that each belongs to.

    They are taken around the first reward of the entry: rewards far from 0 would lose their digits
    in a long sum, and always in the same direction."""
    pivots = np.zeros(size)
    pivots[entries[::-1]] = opening[::-1]
    around = np.bincount(entries, sums - times * pivots[entries], size)
    total: FloatArray = around + np.bincount(entries, times, size) * pivots
    return total
