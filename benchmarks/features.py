"""Arms with features: what a declaration of linear means saves, and what features save as a guide.

python benchmarks/features.py --runs 20 --seed 0                # linear means, declared
python benchmarks/features.py --runs 20 --seed 0 --misfit       # nearly linear means, declared
python benchmarks/features.py --runs 20 --seed 0 --undeclared   # residuals, not declared
python benchmarks/features.py --runs 10 --seed 0 --need         # features guide, no proof
python benchmarks/features.py --runs 10 --seed 0 --guided       # features guide split"""

import argparse
from collections.abc import Iterator

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.driver import Outcome
from shortlist.exploration.expected_loss import explore_once
from shortlist.exploration.prices import exploring
from shortlist.features import Features
from shortlist.instances import linear
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.search import Pulls, advance
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


def pulls_needed(known: Features | None, means: FloatArray, seed: list[int], budget: int) -> int:
    """Pulls from which on the best tenth by posterior means loses at most epsilon."""
    problem = Problem(means.size, means.size // 10, FixedBudget(budget), Binary(), features=known)
    posterior, bandit = exploring(problem), BernoulliBandit(means)
    rng, rewards = np.random.default_rng(seed).spawn(2)
    last = 0
    while posterior.spent < budget:
        batch = explore_once(posterior, budget - posterior.spent, rng)
        turn = advance(batch, None)
        while isinstance(turn, Pulls):
            turn = advance(batch, bandit.pull(turn.arms, turn.times, rewards))
        top = np.argsort(-posterior.means())[: problem.k]
        if aggregate_regret(means, top) > EPSILON:
            last = posterior.spent
    return last


def need(runs: int, seed: int) -> Iterator[str]:
    """Features as a guide, without a proof."""
    yield "| means | residual | without features | with features | ratio |"
    for sigmoid, residual in ((0, 0.0), (0, 0.05), (0, 0.1), (0, 0.2), (1, 0.0), (1, 0.05)):
        plain, guided = [], []
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            x, means = linear(1000, 10, rng, residual=residual, sigmoid=bool(sigmoid))
            plain.append(pulls_needed(None, means, [seed, run, 1], 80_000))
            guided.append(pulls_needed(Features(x), means, [seed, run, 1], 60_000))
        kind = "sigmoid" if sigmoid else "linear"
        ratio = np.mean(plain) / max(1.0, float(np.mean(guided)))
        yield (
            f"| {kind} | {residual} | {np.mean(plain):,.0f} | {np.mean(guided):,.0f} |"
            f" {ratio:.1f} |"
        )


def guided(runs: int, seed: int) -> Iterator[str]:
    """Features as a guide of the split certificate; residual None: features are pure noise."""
    yield "| residual | without features | with features | ratio |"
    for residual in (0.0, 0.05, 0.1, 0.2, None):
        pulls: dict[bool, list[int]] = {False: [], True: []}
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            x, means = linear(1000, 10, rng, residual=residual or 0.0)
            x = rng.normal(size=x.shape) if residual is None else x
            for known, spent in pulls.items():
                problem = Problem(
                    1000,
                    100,
                    FixedConfidence(EPSILON, DELTA),
                    Binary(),
                    features=Features(x) if known else None,
                )
                own = np.random.default_rng([seed, run, 1])
                bandit = BernoulliBandit(means)
                outcome = drive(find("certified"), problem, bandit, own, certificate="split")
                spent.append(int(outcome.pulls.sum()))
        plain, helped = (float(np.mean(pulls[known])) for known in (False, True))
        yield f"| {residual} | {plain:,.0f} | {helped:,.0f} | {plain / helped:.2f} |"


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
    parser.add_argument("--need", action="store_true")
    parser.add_argument("--guided", action="store_true")
    given = parser.parse_args()
    table = declared
    for name, chosen in (("misfit", nearly), ("undeclared", undeclared), ("need", need)):
        table = chosen if getattr(given, name) else table
    table = guided if given.guided else table
    for line in table(given.runs, given.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
