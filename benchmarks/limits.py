"""What a limit of 40 pulls an arm costs: 200 workers, 20 to choose, 3,000 pulls.

Beside it the regret of 40 pulls of every worker, 8,000 in all: nobody can know more within limits.

python benchmarks/limits.py --runs 300 --seed 0"""

import argparse
from collections.abc import Callable

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.metrics import aggregate_regret
from shortlist.problem import FixedBudget, Problem
from shortlist.reward_models import Binary
from shortlist.simulation.bandit import BernoulliBandit
from shortlist.simulation.drive import drive

N, K, LIMIT, BUDGET = 200, 20, 40, 3000
Law = Callable[[np.random.Generator], FloatArray]
LAWS: dict[str, Law] = {
    "Beta(8, 2)": lambda rng: rng.beta(8, 2, N),
    "20 × .9, 180 × .6": lambda rng: rng.permutation(np.repeat([0.9, 0.6], [K, N - K])),
    "uniform": lambda rng: rng.random(N),
}
WAYS = (
    ("expected-loss", BUDGET, None),
    ("expected-loss", BUDGET, LIMIT),
    ("uniform", N * LIMIT, LIMIT),
)


def lost(law: Law, way: tuple[str, int, int | None], seeds: list[list[int]]) -> tuple[float, float]:
    """Mean regret and its standard error."""
    name, budget, limit = way
    problem = Problem(N, K, FixedBudget(budget), Binary(), limits=(limit,) * N)
    regrets = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        means = law(rng)
        outcome = drive(find(name), problem, BernoulliBandit(means), rng)
        regrets.append(aggregate_regret(means, outcome.answer.top))
    return float(np.mean(regrets)), float(np.std(regrets) / np.sqrt(len(regrets)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    seeds = [[options.seed, run] for run in range(options.runs)]
    print("| means | no limit | limit 40 | ratio | 40 pulls of everybody |\n|---|---|---|---|---|")
    for name, law in LAWS.items():
        (free, _), (within, error), (most, _) = (lost(law, way, seeds) for way in WAYS)
        ratio = within / free
        print(f"| {name} | {free:.5f} | {within:.5f} ± {error:.5f} | {ratio:.2f} | {most:.5f} |")


if __name__ == "__main__":
    main()
