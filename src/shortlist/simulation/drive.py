"""Drive one search against simulated arms."""

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.driver import Outcome, counted, finish
from shortlist.problem import Problem
from shortlist.simulation.bandit import Bandit


def drive(
    algorithm: Algorithm,
    problem: Problem,
    bandit: Bandit,
    rng: np.random.Generator,
    **options: object,
) -> Outcome:
    """Run `algorithm` to its end on `bandit`.

    Search and rewards get independent streams of `rng`."""
    search_rng, reward_rng = rng.spawn(2)
    run = counted(algorithm, problem, search_rng, **options)
    return finish(run, lambda request: bandit.pull(request.arms, request.times, reward_rng))
