"""Arms with features: what a declaration of linear means saves, and what features save as a guide.

python benchmarks/features.py --runs 20 --seed 0                # linear means, declared
python benchmarks/features.py --runs 20 --seed 0 --misfit       # nearly linear means, declared
python benchmarks/features.py --runs 20 --seed 0 --undeclared   # residuals, not declared"""

import argparse
from collections.abc import Iterator

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.driver import Outcome
from shortlist.features import Features
from shortlist.instances import linear
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit

EPSILON = DELTA = 0.01
SIZES = ((1000, 5), (1000, 10), (1000, 20), (10_000, 10))  # arms and coefficients


def certified(
    features: FloatArray, means: FloatArray, seed: list[int], misfit: float | None
) -> Outcome:
    """One run for the best tenth of the arms."""
    goal = FixedConfidence(EPSILON, DELTA)
    known = Features(features, misfit)
    problem = Problem(means.size, means.size // 10, goal, Binary(), features=known)
    return drive(find("certified"), problem, BernoulliBandit(means), np.random.default_rng(seed))


def row(pulls: list[int], regrets: list[float]) -> str:
    """Pulls with their standard error, mean regret and failures."""
    error = np.std(pulls, ddof=1) / np.sqrt(len(pulls))
    failed = int((np.array(regrets) > EPSILON).sum())
    return (
        f"{np.mean(pulls):,.0f} ± {error:,.0f} | {np.mean(regrets):.5f} | {failed} of {len(pulls)}"
    )


def declared(runs: int, seed: int) -> Iterator[str]:
    """Linear means, declared: pulls and regret."""
    yield "| arms | coefficients | pulls | mean regret | failures |"
    for n, d in SIZES:
        pulls, regrets = [], []
        for run in range(runs):
            x, means = linear(n, d, np.random.default_rng([seed, run]))
            outcome = certified(x, means, [seed, run, 1], 0.0)
            pulls.append(int(outcome.pulls.sum()))
            regrets.append(aggregate_regret(means, outcome.answer.top))
        yield f"| {n:,} | {d} | {row(pulls, regrets)} |"


def nearly(runs: int, seed: int) -> Iterator[str]:
    """Means that are off by the declared distance, as an opponent would have it."""
    yield "| misfit | pulls | mean regret | failures |"
    for misfit in (0.0, 0.001, 0.002, 0.003):
        pulls, regrets = [], []
        for run in range(runs):
            x, means = linear(1000, 10, np.random.default_rng([seed, run]))
            best = means >= np.sort(means)[-100]
            means = means + misfit * np.where(best, -1, 1)
            outcome = certified(x, means, [seed, run, 1], misfit)
            pulls.append(int(outcome.pulls.sum()))
            regrets.append(aggregate_regret(means, outcome.answer.top))
        yield f"| {misfit} | {row(pulls, regrets)} |"


def undeclared(runs: int, seed: int) -> Iterator[str]:
    """Residuals that were not declared: how often the test sees them, and failures after it."""
    yield "| coefficients | residual | rejected | failures, let pass | failures, way back |"
    for d in (5, 10, 20):
        for residual in (0.0, 0.02, 0.05):
            passed: list[bool] = []
            back: list[bool] = []
            for run in range(runs):
                rng = np.random.default_rng([seed, run])
                x, means = linear(1000, d, rng, residual=residual)
                outcome = certified(x, means, [seed, run, 1], 0.0)
                lost = aggregate_regret(means, outcome.answer.top) > EPSILON
                (back if "way back" in outcome.answer.evidence else passed).append(lost)
            yield (
                f"| {d} | {residual} | {len(back)} of {runs} | {sum(passed)} of {len(passed)} |"
                f" {sum(back)} of {len(back)} |"
            )


def main() -> None:
    """Print the table that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--misfit", action="store_true")
    parser.add_argument("--undeclared", action="store_true")
    given = parser.parse_args()
    table = nearly if given.misfit else undeclared if given.undeclared else declared
    for line in table(given.runs, given.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
