"""Run a method on a panel: within budgets, to the panel's confidence, or to its first decision."""

import hashlib
from collections.abc import Sequence
from math import nan

import numpy as np

from shortlist.problem import FixedBudget, Problem
from shortlist.reproduction.design.methods import Method
from shortlist.reproduction.design.panels import Panel
from shortlist.reproduction.runs.courses import course
from shortlist.reproduction.runs.rows import ResultRow, row_of
from shortlist.search import Pulls, advance
from shortlist.simulation.bandit import BernoulliBandit
from shortlist.simulation.simulate import simulate

ENDLESS = 10**12  # a budget that no run of interest uses up


def measure(
    part: str, panel: Panel, method: Method, budgets: Sequence[int], runs: int, seed: int
) -> list[ResultRow]:
    """A row for every budget, or one row to the panel's confidence if there is none.

    An anytime method gives all its rows from the same runs, any other has runs of its own for
    each."""
    if method.anytime and budgets:
        return _courses(part, panel, method, budgets, runs, seed)
    return [_stand_alone(part, panel, method, budget, runs, seed) for budget in budgets or [0]]


def seed_of(seed: int, part: str, panel: Panel, method: Method, budget: int = 0) -> int:
    """The seed of a row: a function of what it is about, never of when or where it is computed."""
    question = f"{panel.name} {panel.n} {panel.epsilon!r} {panel.delta!r}"
    words = f"{seed} {part} {question} {method.name} {budget}"
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:16], "big")


def _stand_alone(
    part: str, panel: Panel, method: Method, budget: int, runs: int, seed: int
) -> ResultRow:
    outcome = simulate(
        method.algorithm,
        panel.means(),
        k=panel.k,
        epsilon=panel.epsilon,
        delta=panel.delta,
        budget=budget or None,
        runs=runs,
        seed=seed_of(seed, part, panel, method, budget),
        options=method.options,
    )
    return row_of(part, panel, method.name, budget, outcome.pulls, outcome.regret)


def _courses(
    part: str, panel: Panel, method: Method, budgets: Sequence[int], runs: int, seed: int
) -> list[ResultRow]:
    bandit = BernoulliBandit(panel.means())
    problem = Problem(panel.n, panel.k, FixedBudget(budgets[-1]), bandit.model)
    seeds = np.random.SeedSequence(seed_of(seed, part, panel, method)).spawn(runs)
    # (runs, budgets, 2)
    courses = np.array([course(method.found, problem, bandit, budgets, each) for each in seeds])
    return [
        row_of(part, panel, method.name, budget, pulls.astype(np.int64), regret)
        for budget, (pulls, regret) in zip(budgets, courses.transpose(1, 2, 0), strict=True)
    ]


def decision(panel: Panel, method: Method, seed: int) -> ResultRow:
    """Pulls until a form of AdaptiveTopK first accepts or rejects an arm, in one run.

    Until then it has pulled all arms equally often: it is uniform sampling."""
    rng = np.random.default_rng(seed_of(seed, "first decision", panel, method))
    bandit = BernoulliBandit(rng.permutation(panel.means()))
    problem = Problem(panel.n, panel.k, FixedBudget(ENDLESS), bandit.model)
    search = method.found.start(problem, rng, **method.options)
    spent = 0
    turn = advance(search, None)
    while isinstance(turn, Pulls) and turn.progress.undecided == panel.n:
        spent += turn.total
        turn = advance(search, bandit.pull(turn.arms, turn.times, rng))
    return row_of("decision", panel, method.name, 0, [spent], [nan])
