"""Savings from knowing the costs of pulls.

Uniform means, and every arm costs 1 or 10 at random. A search that does not know the costs makes a
given number of pulls per arm. Which share of its money does a search need that knows them, to lose
no more? Printed is the smallest share of 0.2, 0.25, ... 1 for which the mean regret of all runs is
not larger.

    python benchmarks/costs.py --runs 20 --seed 1"""

import argparse
from collections.abc import Iterator

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.driver import Outcome
from shortlist.instances import uniform
from shortlist.problem import FixedBudget, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit

PRICES = np.array([1.0, 10.0])
SHARES = np.arange(4, 21) / 20  # of the money that the search without costs takes
SEARCH = find("expected-loss")


class World:
    """Means and prices of one run, in random order."""

    def __init__(self, n_arms: int, k: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.means = self.rng.permutation(uniform(n_arms))
        self.costs = self.rng.choice(PRICES, n_arms)
        self.k = k

    def blind(self, an_arm: float) -> tuple[float, float]:
        """Regret and cost of a search with a number of pulls per arm that knows no costs."""
        goal = FixedBudget(int(an_arm * self.means.size))
        outcome = self._outcome(Problem(self.means.size, self.k, goal, Binary()))
        return self._lost(outcome), float(outcome.pulls @ self.costs)

    @property
    def least(self) -> float:
        """What a pull of every arm costs, which a budget must pay for."""
        return float(self.costs.sum())

    def aware(self, money: float) -> float:
        """What a search loses that has so much money."""
        costs = tuple(self.costs.tolist())
        goal = FixedBudget(money)
        return self._lost(
            self._outcome(Problem(self.means.size, self.k, goal, Binary(), costs=costs))
        )

    def _outcome(self, problem: Problem) -> Outcome:
        return drive(SEARCH, problem, BernoulliBandit(self.means), self.rng)

    def _lost(self, outcome: Outcome) -> float:
        return aggregate_regret(self.means, outcome.answer.top)


def rows(arguments: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for every number of pulls per arm."""
    first = arguments.seed * 1000
    for an_arm in arguments.an_arm:
        worlds = [World(arguments.n, arguments.k, first + run) for run in range(arguments.runs)]
        lost, taken = np.array([world.blind(an_arm) for world in worlds]).T  # (runs,) each
        share, regret = least_share(worlds, taken, float(lost.mean()))
        error = lost.std(ddof=1) / np.sqrt(lost.size)
        figures = (f"{taken.mean():,.0f}", f"{lost.mean():.4f}", f"{error:.4f}")
        yield (f"{an_arm:g}", *figures, f"{share:.2f}", f"{regret:.4f}")


def least_share(worlds: list[World], taken: FloatArray, lost: float) -> tuple[float, float]:
    """The least share of the money for which no more is lost, and what is lost then."""
    least = np.array([world.least for world in worlds])
    for share in SHARES:
        money = np.maximum(share * taken, least)  # (runs,)
        regret = np.mean([world.aware(each) for world, each in zip(worlds, money, strict=True)])
        if regret <= lost:
            break
    return float(money.sum() / taken.sum()), float(regret)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--an-arm", type=float, nargs="+", default=[2, 3, 4, 6, 10, 20])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    names = ("pulls per arm", "money", "regret", "s.e.", "share", "regret there")
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for row in rows(arguments):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
