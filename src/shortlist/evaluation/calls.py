"""One evaluation of an arm: how the user's function is called, with which seed, and which rewards
are taken from it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, iscoroutinefunction, signature
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shortlist.arms import Label
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.evaluation.rewards import sums_by_entry
from shortlist.reward_models import RewardModel
from shortlist.search import Pulls, Rewards
from shortlist.validation import real, shown


class Call(NamedTuple):
    """One call of the user's function: pull arm `label` `times` times.

    `draw` counts the pulls of an arm from 0 and is that of the first one here; no two calls of a
    run share it, so a call that is made twice, because a worker was lost, is known to be the
    same."""

    position: int  # among the calls of its request, ordered by entry
    label: Label
    draw: int
    times: int
    seed: int | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The user's function, to be called with a `Call` here or on any worker."""

    function: Callable[..., Any]
    many: bool
    seeded: bool

    @classmethod
    def of(
        cls, pull: Callable[..., Any] | None, pull_many: Callable[..., Any] | None
    ) -> "Evaluation":
        """Take the one function that is given."""
        for name, function in (("pull", pull), ("pull_many", pull_many)):
            if function is not None and not callable(function):
                raise InvalidInput(f"`{name}` is {function!r}, but must be a function")
        if pull is not None and pull_many is None:
            return cls(pull, False, takes_seed(pull))
        if pull_many is not None and pull is None:
            return cls(pull_many, True, takes_seed(pull_many))
        given = (
            "neither of `pull` and `pull_many` is"
            if pull is None
            else "both `pull` and `pull_many` are"
        )
        raise InvalidInput(f"{given} given, but it must be one of them")

    @property
    def asynchronous(self) -> bool:
        """Whether what it returns is to be awaited."""
        function = self.function
        return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)

    def __call__(self, call: Call) -> Any:
        """Evaluate an arm; whatever the user's function returns or raises."""
        arguments = (call.label, call.times) if self.many else (call.label,)
        return (
            self.function(*arguments, seed=call.seed) if self.seeded else self.function(*arguments)
        )


def takes_seed(function: Callable[..., Any]) -> bool:
    """Whether a parameter called `seed` can be given by name."""
    try:
        parameter = signature(function).parameters.get("seed")
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    return parameter is not None and parameter.kind in (
        Parameter.KEYWORD_ONLY,
        Parameter.POSITIONAL_OR_KEYWORD,
    )


def draw_seed(seed: int, arm: int, draw: int) -> int:
    """The seed of one pull: 63 bits that depend on nothing but the run's seed, the arm's position
    and the draw."""
    state = np.random.SeedSequence(seed, spawn_key=(arm, draw)).generate_state(1, np.uint64)
    return int(state[0]) >> 1  # many generators and services take a signed 64-bit number


class Evaluator:
    """What all requests of a run share: the function, the labels, and how often each arm was
    pulled."""

    def __init__(
        self,
        evaluation: Evaluation,
        labels: Sequence[Label],
        model: RewardModel,
        seed: int,
        batch: int | None = None,
    ) -> None:
        self.evaluation, self.labels, self.model, self.seed = evaluation, labels, model, seed
        self.most = batch if evaluation.many else 1  # pulls in a call
        self.drawn = [0] * len(labels)
        self.pulls = 0

    def begin(self, request: Pulls) -> "Batch":
        """Number the pulls of a request: every entry goes on where the last one of its arm
        ended."""
        first = []
        for arm, times in zip(request.arms.tolist(), request.times.tolist(), strict=True):
            first.append(self.drawn[arm])
            self.drawn[arm] += times
        return Batch(self, request, first)


class Batch:
    """One request, as calls whose results may come in any order.

    They are added up only at the end and in the order of the request: sums of floats depend on
    their order, and the answer of a run must not depend on which worker was quicker."""

    def __init__(self, run: Evaluator, request: Pulls, first: list[int]) -> None:
        self.run, self.request, self.first = run, request, first
        n_calls = (
            np.minimum(request.times, 1) if run.most is None else -(-request.times // run.most)
        )
        self.positions = (np.cumsum(n_calls) - n_calls).tolist()
        self.entries = np.repeat(np.arange(request.arms.size), n_calls)
        # opening: the first reward of a call
        self.sums, self.squares, self.opening = np.zeros((3, self.entries.size))
        self.times = np.zeros(self.entries.size, dtype=np.int64)

    def calls(self) -> Iterator[Call]:
        """Every arm gets its first call, then every arm its second: a world that changes meanwhile
        meets all alike."""
        times = self.request.times.tolist()
        longest = max(times, default=0)
        step, under_way = self.run.most or max(longest, 1), list(range(len(times)))
        for nth, begin in enumerate(range(0, longest, step)):
            under_way = [entry for entry in under_way if times[entry] > begin]
            for entry in under_way:
                yield self._call(entry, nth, begin, min(step, times[entry] - begin))

    def take(self, call: Call, result: object) -> None:
        """Count the result of a call, or refuse it as a whole."""
        if self.run.evaluation.many:
            rewards = checked_rewards(call, result, self.run.model)
        else:
            rewards = np.array([checked_reward(call, result, self.run.model)])
        self.opening[call.position], self.times[call.position] = rewards[0], call.times
        self.sums[call.position] = (rewards - rewards[0]).sum() + call.times * rewards[0]
        self.squares[call.position] = rewards @ rewards
        self.run.pulls += call.times

    def rewards(self) -> Rewards:
        """What the search is sent when all calls are done."""
        size = self.request.arms.size
        sums = sums_by_entry(self.sums, self.times, self.opening, self.entries, size)
        return Rewards(
            sums, np.asarray(np.bincount(self.entries, self.squares, size), dtype=np.float64)
        )

    def _call(self, entry: int, nth: int, begin: int, times: int) -> Call:
        arm, draw = int(self.request.arms[entry]), self.first[entry] + begin
        seed = draw_seed(self.run.seed, arm, draw) if self.run.evaluation.seeded else None
        return Call(self.positions[entry] + nth, self.run.labels[arm], draw, times, seed)


def checked_reward(call: Call, reward: object, model: RewardModel) -> float:
    """Return `reward` as a float if it is a number that keeps to the declaration."""
    number = real(reward)
    if not model.admits(number):
        raise InvalidReward(
            f"a reward of arm {call.label!r} is {shown(reward)}, but must be {model.rule}"
        )
    return number


def checked_rewards(call: Call, rewards: Any, model: RewardModel) -> FloatArray:
    """Return `rewards` as an array if they are as many numbers as pulls, and all keep to the
    declaration."""
    if isinstance(rewards, str) or not (
        isinstance(rewards, Sequence) or hasattr(rewards, "__array__")
    ):
        raise InvalidReward(
            f"the rewards of arm {call.label!r} are {rewards!r}, but must be a list or an array"
        )
    array = _array(rewards)
    if array.shape[:1] != (call.times,):
        size = f"{array.shape[0]} numbers" if array.ndim else "a single number"
        raise InvalidReward(
            f"the rewards of arm {call.label!r} are {size}, but it was pulled {call.times} times"
        )
    # None and "1" must not slip through as numbers
    if array.ndim > 1 or array.dtype.kind not in "buif":
        return np.array([checked_reward(call, reward, model) for reward in rewards])
    numbers = array.astype(np.float64)
    wrong = array[~np.asarray(model.admits(numbers))]
    if wrong.size:
        checked_reward(call, wrong[0], model)
    return numbers


def _array(values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths inside
        return np.asarray(values, dtype=object)
