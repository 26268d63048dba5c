"""What every driver does with a search: convert units, count pulls, hand over the outcome.

A driver only has to find rewards for one request after another; where they come from is its own
affair."""

from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Answer, Pulls, Rewards, advance

MOST_PULLS = 2.0**62  # counts are 64-bit
COUNTABLE = (
    f"at most {MOST_PULLS:.1e} can be counted; a larger `epsilon` or a smaller `budget` asks for"
    " fewer"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search answered, and per arm what it spent and what that gave."""

    answer: Answer
    pulls: IntArray
    sums: FloatArray
    rounds: int = 0  # requests, each of which waited for the rewards of the one before

    @property
    def means(self) -> FloatArray:
        """The mean reward of every arm; NaN for one never pulled."""
        means = np.full(self.sums.size, np.nan)
        np.divide(self.sums, self.pulls, out=means, where=self.pulls > 0)
        return means


Run = Generator[Pulls, Rewards, Outcome]


def counted(
    algorithm: Algorithm, problem: Problem, rng: np.random.Generator, **options: object
) -> Run:
    """The search of `algorithm` in the user's units: rewards come as they are, the bound returns as
    it is meant."""
    with _countable(algorithm.name):
        search = algorithm.start(problem, rng, **options)
    pulls = np.zeros(problem.n_arms, dtype=np.int64)
    sums = np.zeros(problem.n_arms)
    asked = 0.0
    rounds = 0
    reply: Rewards | None = None
    while True:
        with _countable(algorithm.name):
            turn = advance(search, reply)
            if isinstance(turn, Answer):
                return Outcome(to_user_scale(turn, problem), pulls, sums, rounds)
            asked += float(turn.times.sum(dtype=np.float64))
            _check_countable(asked)
        rounds += 1
        rewards = yield turn
        np.add.at(pulls, turn.arms, turn.times)
        np.add.at(sums, turn.arms, rewards.sums)
        reply = to_unit_scale(rewards, turn, problem)


def finish(run: Run, pull: Callable[[Pulls], Rewards]) -> Outcome:
    """Answer every request by `pull` until the run is over."""
    turn = advance(run, None)
    while isinstance(turn, Pulls):
        turn = advance(run, pull(turn))
    return turn


async def finish_async(run: Run, pull: Callable[[Pulls], Awaitable[Rewards]]) -> Outcome:
    """Answer every request by awaiting `pull` until the run is over."""
    turn = advance(run, None)
    while isinstance(turn, Pulls):
        turn = advance(run, await pull(turn))
    return turn


def to_unit_scale(rewards: Rewards, request: Pulls, problem: Problem) -> Rewards:
    """The same rewards as (x - shift) / scale; turned round where small ones are the good ones."""
    shift, scale = problem.rewards.shift, problem.rewards.scale
    unit = rewards
    if shift != 0 or scale != 1:
        unit = _moved(rewards, request.times, shift, scale)
    if not problem.minimize:
        return unit
    # 1 - x where rewards have a range, so that they stay in it, and -x otherwise
    return _moved(unit, request.times, 1.0 if problem.rewards.has_range else 0.0, -1.0)


def _moved(rewards: Rewards, times: IntArray, shift: float, scale: float) -> Rewards:
    """The same rewards as (x - shift) / scale."""
    sums = (rewards.sums - times * shift) / scale
    squares = (rewards.squares - 2 * shift * rewards.sums + times * shift**2) / scale**2
    return Rewards(sums, squares)


def to_user_scale(answer: Answer, problem: Problem) -> Answer:
    """The same answer with its bound in the user's units."""
    bound = answer.regret_bound
    bound = None if bound is None else bound * problem.rewards.scale
    return Answer(answer.top, bound, answer.confidence, answer.evidence)


@contextmanager
def _countable(name: str) -> Iterator[None]:
    """Say in words that a search asks for more pulls than there are numbers."""
    try:
        yield
    except OverflowError as error:
        raise InvalidInput(f"{name} asks for too many pulls: {COUNTABLE}") from error


def _check_countable(pulls: float) -> None:
    if pulls > MOST_PULLS:
        raise OverflowError(f"{pulls:.1e} pulls")
