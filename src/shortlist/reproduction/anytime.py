"""Methods that can be asked for their answer at any time: one run gives the whole curve.

Such a search is run up to a mark, asked for its set, and run on to the next. A batch ends at a
mark, as it would end at a budget."""

from collections.abc import Callable, Generator, Sequence

import numpy as np

from shortlist.algorithms.clucb_pac import RULE
from shortlist.algorithms.subroutines.race import Race
from shortlist.arrays import IntArray
from shortlist.exploration.explore import explore
from shortlist.exploration.posterior import Posterior
from shortlist.metrics import aggregate_regret
from shortlist.problem import Problem
from shortlist.search import Pulls, Rewards, advance
from shortlist.simulation.bandit import Bandit

Marks = Sequence[int]  # numbers of pulls, rising
# at every mark the pulls spent and the set
Stops = Generator[Pulls, Rewards, list[tuple[int, IntArray]]]

GROWTH = 0.02  # a batch of CLUCB-PAC, as a share of what is spent, and
DELTA = 0.01  # the delta of its radii: both as by default


def expected_loss(problem: Problem, rng: np.random.Generator, marks: Marks) -> Stops:
    """What expected-loss answers at these budgets."""
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)
    stops = []
    for mark in marks:
        yield from explore(posterior, mark, rng)
        stops.append((int(posterior.pulls.sum()), np.flatnonzero(posterior.split(rng)[0])))
    return stops


def clucb_pac(problem: Problem, rng: np.random.Generator, marks: Marks) -> Stops:
    """What CLUCB-PAC answers at these budgets."""
    race = Race(problem, rng, RULE, GROWTH, DELTA)
    stops = []
    for mark in marks:
        answer = yield from race.run(mark)
        stops.append((int(race.pulls.sum()), answer.top))
    return stops


ANYTIME: dict[str, Callable[[Problem, np.random.Generator, Marks], Stops]] = {
    "clucb-pac": clucb_pac,
    "expected-loss": expected_loss,
}


def course(
    method: str, problem: Problem, bandit: Bandit, marks: Marks, seed: np.random.SeedSequence
) -> list[tuple[int, float]]:
    """Pulls and regret at every mark of one run, on arms in random order: a sorted instance leaks
    the truth (E18)."""
    rng = np.random.default_rng(seed)
    shuffled = bandit.with_means(rng.permutation(bandit.means))
    search_rng, reward_rng = rng.spawn(2)
    search = ANYTIME[method](problem, search_rng, marks)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        turn = advance(search, shuffled.pull(turn.arms, turn.times, reward_rng))
    return [(pulls, aggregate_regret(shuffled.means, top)) for pulls, top in turn]
