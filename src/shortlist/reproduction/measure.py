"""Run a method on a panel: within budgets, or to the panel's confidence."""

import hashlib
from collections.abc import Sequence

import numpy as np

from shortlist.algorithms import find
from shortlist.problem import FixedBudget, Problem
from shortlist.reproduction.anytime import ANYTIME, course
from shortlist.reproduction.methods import METHODS
from shortlist.reproduction.panels import Panel
from shortlist.reproduction.rows import Row, row_of
from shortlist.search import Pulls, advance
from shortlist.simulation.bandit import BernoulliBandit
from shortlist.simulation.simulate import simulate

ENDLESS = 10**12  # a budget that no run of interest uses up


def measure(
    part: str, panel: Panel, method: str, budgets: Sequence[int], runs: int, seed: int
) -> list[Row]:
    """A row for every budget, or one row to the panel's confidence if there is none.

    An anytime method gives all its rows from the same runs, any other has runs of its own for
    each."""
    if method in ANYTIME and budgets:
        return _courses(part, panel, method, budgets, runs, seed)
    return [_stand_alone(part, panel, method, budget, runs, seed) for budget in budgets or [0]]


def seed_of(seed: int, part: str, panel: Panel, method: str, budget: int = 0) -> int:
    """The seed of a row: a function of what it is about, never of when or where it is computed."""
    words = (
        f"{seed} {part} {panel.name} {panel.n} {panel.epsilon!r} {panel.delta!r} {method} {budget}"
    )
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:16], "big")


def _stand_alone(part: str, panel: Panel, method: str, budget: int, runs: int, seed: int) -> Row:
    outcome = simulate(
        METHODS[method].algorithm,
        panel.means(),
        k=panel.k,
        epsilon=panel.epsilon,
        delta=panel.delta,
        budget=budget or None,
        runs=runs,
        seed=seed_of(seed, part, panel, method, budget),
        options=METHODS[method].options,
    )
    return row_of(part, panel, method, budget, outcome.pulls, outcome.regret)


def _courses(
    part: str, panel: Panel, method: str, budgets: Sequence[int], runs: int, seed: int
) -> list[Row]:
    bandit = BernoulliBandit(panel.means())
    problem = Problem(panel.n, panel.k, FixedBudget(budgets[-1]), bandit.model)
    seeds = np.random.SeedSequence(seed_of(seed, part, panel, method)).spawn(runs)
    # (runs, budgets, 2)
    courses = np.array([course(method, problem, bandit, budgets, each) for each in seeds])
    return [
        row_of(part, panel, method, budget, pulls.astype(np.int64), regret)
        for budget, (pulls, regret) in zip(budgets, courses.transpose(1, 2, 0), strict=True)
    ]


def first_decision(panel: Panel, method: str, seed: int) -> int:
    """Pulls spent when AdaptiveTopK, with the options of `method`, first accepts or rejects an arm,
    in one run.

    Until then it has pulled all arms equally often: it is uniform sampling."""
    rng = np.random.default_rng(seed_of(seed, "first decision", panel, method))
    bandit = BernoulliBandit(rng.permutation(panel.means()))
    problem = Problem(panel.n, panel.k, FixedBudget(ENDLESS), bandit.model)
    search = find(METHODS[method].algorithm).start(problem, rng, **METHODS[method].options)
    spent, turn = 0, advance(search, None)
    while isinstance(turn, Pulls) and turn.progress.undecided == panel.n:
        spent += turn.total
        turn = advance(search, bandit.pull(turn.arms, turn.times, rng))
    return spent
