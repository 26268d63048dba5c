"""Drive one search against simulated arms."""

from dataclasses import dataclass

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.problem import Problem
from shortlist.search import Answer, IntArray, Pulls, Rewards
from shortlist.simulation.bandit import Bandit


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search answered and what it spent, per arm."""

    answer: Answer
    pulls: IntArray


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
    spent = np.zeros(problem.n_arms, dtype=np.int64)
    reply: Rewards | None = None
    while True:
        try:
            request = next(search) if reply is None else search.send(reply)
        except StopIteration as stop:
            return Outcome(to_user_scale(stop.value, problem), spent)
        np.add.at(spent, request.arms, request.times)
        rewards = bandit.pull(request.arms, request.times, reward_rng)
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
