"""Drive one search against simulated arms."""

from dataclasses import dataclass

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Answer, FloatArray, IntArray, Pulls, Rewards
from shortlist.simulation.bandit import Bandit

MOST_PULLS = 2.0**62  # counts are 64-bit
COUNTABLE = f"at most {MOST_PULLS:.1e} can be counted; a larger `epsilon` or a smaller `budget` asks for fewer"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search answered, and per arm what it spent and what that gave."""

    answer: Answer
    pulls: IntArray
    sums: FloatArray

    @property
    def means(self) -> FloatArray:
        """The mean reward of every arm; NaN for one never pulled."""
        means = np.full(self.sums.size, np.nan)
        np.divide(self.sums, self.pulls, out=means, where=self.pulls > 0)
        return means


def drive(
    algorithm: Algorithm,
    problem: Problem,
    bandit: Bandit,
    rng: np.random.Generator,
    **options: object,
) -> Outcome:
    """Run `algorithm` to its end on `bandit`; search and rewards get independent streams of `rng`."""
    search_rng, reward_rng = rng.spawn(2)
    search = algorithm.start(problem, search_rng, **options)
    pulls, sums = np.zeros(problem.n_arms, dtype=np.int64), np.zeros(problem.n_arms)
    reply: Rewards | None = None
    while True:
        try:
            request = next(search) if reply is None else search.send(reply)
            _check_countable(pulls, request)
        except StopIteration as stop:
            return Outcome(to_user_scale(stop.value, problem), pulls, sums)
        except OverflowError as error:
            raise InvalidInput(f"{algorithm.name} asks for too many pulls: {COUNTABLE}") from error
        rewards = bandit.pull(request.arms, request.times, reward_rng)
        np.add.at(pulls, request.arms, request.times)
        np.add.at(sums, request.arms, rewards.sums)
        reply = to_unit_scale(rewards, request, problem)


def to_unit_scale(rewards: Rewards, request: Pulls, problem: Problem) -> Rewards:
    """The same rewards as (x - shift) / scale."""
    shift, scale = problem.rewards.shift, problem.rewards.scale
    if shift == 0 and scale == 1:
        return rewards
    sums = (rewards.sums - request.times * shift) / scale
    squares = (rewards.squares - 2 * shift * rewards.sums + request.times * shift**2) / scale**2
    return Rewards(sums, squares)


def to_user_scale(answer: Answer, problem: Problem) -> Answer:
    """The same answer with its bound in the user's units."""
    bound = answer.regret_bound
    bound = None if bound is None else bound * problem.rewards.scale
    return Answer(answer.top, bound, answer.confidence, answer.evidence)


def _check_countable(pulls: IntArray, request: Pulls) -> None:
    total = pulls.sum(dtype=np.float64) + request.times.sum(dtype=np.float64)
    if total > MOST_PULLS:
        raise OverflowError(f"{total:.1e} pulls")
