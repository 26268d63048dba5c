"""The course of one run of an anytime algorithm: its pulls and its regret at many budgets.

It is run up to a mark, asked for its set, and run on to the next. A batch ends at a mark, as it
would end at a budget."""

from collections.abc import Sequence

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.metrics import aggregate_regret
from shortlist.problem import Problem
from shortlist.search import Answer, Pulls, Search, advance
from shortlist.simulation.bandit import Bandit

Marks = Sequence[int]  # numbers of pulls, rising


def course(
    algorithm: Algorithm,
    problem: Problem,
    bandit: Bandit,
    marks: Marks,
    seed: np.random.SeedSequence,
) -> list[tuple[int, float]]:
    """Pulls and regret at every mark of one run.

    Arms come in random order, since a sorted instance leaks the truth (E18)."""
    assert algorithm.anytime is not None
    rng = np.random.default_rng(seed)
    shuffled = bandit.with_means(rng.permutation(bandit.means))
    search_rng, reward_rng = rng.spawn(2)
    run_up_to = algorithm.anytime(problem.unit(), search_rng)
    spent = 0
    stops = []
    for mark in marks:
        more, answer = _finish(run_up_to(mark), shuffled, reward_rng)
        spent += more
        stops.append((spent, aggregate_regret(shuffled.means, answer.top)))
    return stops


def _finish(search: Search, bandit: Bandit, rng: np.random.Generator) -> tuple[int, Answer]:
    """The pulls that a search spends until its answer, and the answer."""
    spent = 0
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        spent += turn.total
        turn = advance(search, bandit.pull(turn.arms, turn.times, rng))
    return spent, turn
