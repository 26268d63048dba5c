"""What `drift=True` costs where the level does not move: visitors against pulls (docs/drift.md).

    python benchmarks/drift_cost.py --runs 100 --seed 777

1,500 visitors per day, told once per day, delta = 0.1, 0/1 rewards declared as such. The other test
is `certified` with batches of at least 1,500 pulls."""

import argparse
from typing import Any, NamedTuple

import numpy as np

from shortlist import simulate
from shortlist.arrays import FloatArray
from shortlist.certificates.drift.block_test import drift_search
from shortlist.problem import FixedConfidence, Problem, Traffic
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.simulation.worlds import BernoulliBandit

DELTA, PER_DAY = 0.1, 1500
TRAFFIC = Traffic(per_day=PER_DAY, delay=0, skip_blocks=0, min_blocks=0)


class Row(NamedTuple):
    """An instance of the table."""

    name: str
    means: list[float]
    k: int
    epsilon: float


ROWS = (
    Row("2.4 %, 2 %", [0.024, 0.02], 1, 0.002),
    Row("5 %, 4.5 %, 4 %", [0.05, 0.045, 0.04], 1, 0.005),
    Row("4.8 %, 4 × 4 %", [0.048, *[0.04] * 4], 1, 0.005),
    Row("5 × 4 %", [0.04] * 5, 1, 0.005),
    Row("3 × 5 %, 7 × 4 %", [*[0.05] * 3, *[0.04] * 7], 3, 0.004),
    Row("4.8 %, 19 × 4 %", [0.048, *[0.04] * 19], 1, 0.005),
)


def randomised(row: Row, seed: int, index: int) -> tuple[int, bool]:
    """The visitors of a live test, and whether it lost more than epsilon."""
    rng = np.random.default_rng([seed, index])
    bandit = BernoulliBandit(rng.permutation(np.array(row.means)))
    goal = FixedConfidence(row.epsilon, DELTA)
    problem = Problem(len(row.means), row.k, goal, Binary(), traffic=TRAFFIC)
    search = drift_search(problem.unit(), rng)
    visitors, asked = 0, next(search)
    while True:
        visitors += asked.total
        try:
            asked = search.send(bandit.pull(asked.arms, asked.times, rng))
        except StopIteration as stop:
            lost = aggregate_regret(bandit.means, stop.value.top)
            return visitors, lost > row.epsilon + 1e-9


def with_error(values: FloatArray) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def line(row: Row, runs: int, seed: int) -> str:
    """A row of the table."""
    options: Any = {"min_batch": PER_DAY, "rewards": "bernoulli", "certificate": "pairs"}
    goal: Any = {"k": row.k, "epsilon": row.epsilon, "delta": DELTA}
    pulls = simulate("certified", row.means, runs=runs, seed=seed, **goal, **options).pulls
    tests = [randomised(row, seed, index) for index in range(runs)]
    plain, plain_error = with_error(np.array(pulls, dtype=np.float64))
    live, live_error = with_error(np.array([visitors for visitors, _ in tests], dtype=np.float64))
    ratio = live / plain
    error = ratio * np.hypot(plain_error / plain, live_error / live)
    wrong = sum(failed for _, failed in tests)
    return (
        f"| {len(row.means)} | {row.k} | {row.name} | {row.epsilon} | {plain:,.0f} |"
        f" {live:,.0f} | {ratio:.2f} | {error:.2f} | {wrong} of {runs} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, nargs="*", default=range(len(ROWS)))
    asked = parser.parse_args()
    print("| n | K | rates | ε | pulls without | visitors | ratio | s.e. | more than ε lost |")
    print("|---|---|---|---|---|---|---|---|---|")
    for place in asked.rows:
        print(line(ROWS[place], asked.runs, asked.seed), flush=True)


if __name__ == "__main__":
    main()
