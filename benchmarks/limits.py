"""The cost of a limit of 40 pulls per arm: 200 workers, 20 to choose, 3,000 pulls.

For comparison the regret of 40 pulls of every worker, 8,000 in all: the most information in limits.

With --proved: what `certified` proves and loses where limits of 40 are all that ends it.

python benchmarks/limits.py --runs 300 --seed 0
python benchmarks/limits.py --runs 20 --seed 0 --proved"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit

N, K, LIMIT, BUDGET = 200, 20, 40, 3000
Family = Callable[[np.random.Generator], FloatArray]
FAMILIES: dict[str, Family] = {
    "Beta(8, 2)": lambda rng: rng.beta(8, 2, N),
    "20 × .9, 180 × .6": lambda rng: rng.permutation(np.repeat([0.9, 0.6], [K, N - K])),
    "uniform": lambda rng: rng.random(N),
}
WAYS = (
    ("expected-loss", BUDGET, None),
    ("expected-loss", BUDGET, LIMIT),
    ("uniform", N * LIMIT, LIMIT),
)


def lost(
    family: Family, way: tuple[str, int, int | None], seeds: list[list[int]]
) -> tuple[float, float]:
    """Mean regret and its standard error."""
    name, budget, limit = way
    problem = Problem(N, K, FixedBudget(budget), Binary(), limits=(limit,) * N)
    regrets = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        means = family(rng)
        outcome = drive(find(name), problem, BernoulliBandit(means), rng)
        regrets.append(aggregate_regret(means, outcome.answer.top))
    return float(np.mean(regrets)), float(np.std(regrets) / np.sqrt(len(regrets)))


PROOFS: dict[str, dict[str, Any]] = {
    "default": {},
    "`min_batch=1000`": {"min_batch": 1000},
    '`certificate="split"`': {"certificate": "split"},
}


def proved(family: Family, how: dict[str, Any], seeds: list[list[int]]) -> FloatArray:
    """Mean bound and mean regret at epsilon = delta = .05."""
    problem = Problem(N, K, FixedConfidence(0.05, 0.05), Binary(), limits=(LIMIT,) * N)
    rows = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        means = family(rng)
        answer = drive(find("certified"), problem, BernoulliBandit(means), rng, **how).answer
        bound = np.inf if answer.regret_bound is None else answer.regret_bound
        rows.append((bound, aggregate_regret(means, answer.top)))
    means_of_both: FloatArray = np.array(rows).mean(0)
    return means_of_both


def print_proofs(seeds: list[list[int]]) -> None:
    print("| means | certified | bound | regret |\n|---|---|---|---|")
    for name, family in FAMILIES.items():
        for way, how in PROOFS.items():
            bound, regret = proved(family, how, seeds)
            print(f"| {name} | {way} | {bound:.3f} | {regret:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--proved", action="store_true")
    options = parser.parse_args()
    seeds = [[options.seed, run] for run in range(options.runs)]
    if options.proved:
        print_proofs(seeds)
        return
    print(
        "| means | no limit | limit 40 | ratio | 40 pulls of every worker |\n|---|---|---|---|---|"
    )
    for name, family in FAMILIES.items():
        (free, _), (within, error), (most, _) = (lost(family, way, seeds) for way in WAYS)
        ratio = within / free
        print(f"| {name} | {free:.5f} | {within:.5f} ± {error:.5f} | {ratio:.2f} | {most:.5f} |")


if __name__ == "__main__":
    main()
