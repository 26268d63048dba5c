"""`shortlist demo`: choose the best 30 of 164 crowd workers, with a guarantee."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

import shortlist
from shortlist.cli.output import print_tables
from shortlist.formatting import TextTable, bound_text, percent_text

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray
    from shortlist.driver import Outcome

K, EPSILON, DELTA = 30, 0.05, 0.05
HEADER = ("worker", "questions", "accuracy, estimated", "true")
PREFERRED = ("certified", "adaptive-top-k-tight")  # the first one that is registered


@click.command()
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Random seed. Runs with the same seed are identical.",
)
def demo(seed: int) -> None:
    """Choose the best 30 of 164 crowd workers.

    They answer simulated gold questions, each as often rightly as in the RTE data of Snow et al.
    (2008). The choice may cost at most 0.05 of average accuracy, with 95 % confidence.

    \b
    Example:
      shortlist demo --seed 1
    """
    workers = shortlist.instances.rte_workers()
    algorithm = next(name for name in PREFERRED if name in shortlist.ALGORITHMS)
    outcome, yardstick = (_choose(name, workers, seed) for name in (algorithm, "uniform"))
    _print(
        f"The best {K} of {workers.size} crowd workers, chosen by {algorithm}:",
        outcome,
        yardstick,
        workers,
    )


def _choose(algorithm: str, workers: "FloatArray", seed: int) -> "Outcome":
    import numpy as np

    from shortlist.simulation.simulate import drive
    from shortlist.simulation.worlds import BernoulliBandit

    goal = shortlist.FixedConfidence(EPSILON, DELTA)
    problem = shortlist.Problem(workers.size, K, goal, shortlist.Binary())
    return drive(
        shortlist.find(algorithm), problem, BernoulliBandit(workers), np.random.default_rng(seed)
    )


def _print(title: str, outcome: "Outcome", yardstick: "Outcome", workers: "FloatArray") -> None:
    means = outcome.sums / outcome.pulls
    best_first = sorted(outcome.answer.top.tolist(), key=lambda arm: -means[arm])
    rows = [
        (f"{arm}", f"{outcome.pulls[arm]:,}", f"{means[arm]:.3f}", f"{workers[arm]:.3f}")
        for arm in best_first
    ]
    facts = "\n".join(_facts(outcome, yardstick, workers))
    print_tables(TextTable(HEADER, rows, title=title, verdict=facts, align="rrrr"))


def _facts(outcome: "Outcome", yardstick: "Outcome", workers: "FloatArray") -> Iterator[str]:
    answer, spent, even = outcome.answer, outcome.pulls.sum(), yardstick.pulls.sum()
    assert answer.regret_bound is not None
    assert answer.confidence is not None
    yield f"Spent:      {spent:,} questions"
    yield (
        f"Yardstick:  {even:,} if every worker is asked equally often, {even / spent:.2g} times as"
        " many"
    )
    yield (
        f"Guaranteed: at most {bound_text(answer.regret_bound, 2)} of mean accuracy lost at"
        f" {percent_text(answer.confidence)}% confidence"
    )
    lost = shortlist.regret.aggregate_regret(workers, answer.top)
    yield f"True loss:  {bound_text(lost)}"
