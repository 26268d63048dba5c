"""How often is the swap race wrong on arms built to break it? `python benchmarks/failures.py`

One arm stands out by just more than the loss allowed, and all others tie: to miss it is to fail.
Each run has another level of the means, from rare events to nearly sure ones. delta is large, so
that failures can be seen; their count is compared with the exact binomial law at that delta."""

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import binom

from shortlist.arrays import FloatArray
from shortlist.certificates.pairs.search import pairs_search
from shortlist.problem import FixedConfidence, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Bounded
from shortlist.search import Pulls, advance
from shortlist.simulation.worlds import BernoulliBandit

LEVELS = (0.0, 0.05, 0.3, 0.425, 0.6, 0.8, 0.849)  # of the arms that tie
EXCESS = 1e-6  # by which the gap is larger
GROWTH = 0.2  # of batches: the guarantee does not depend on it, and a run takes milliseconds
UNBELIEVABLE = 1e-4  # chance of so many failures below which the guarantee is taken for broken


def arms(n: int, k: int, level: float, loss: float, rng: np.random.Generator) -> FloatArray:
    """One arm above all others, or, if it is one of those to be left out, below them."""
    gap = loss * (1 + EXCESS)
    means = np.full(n, level)
    if 2 * k > n:
        means += gap
        means[0] = level
    else:
        means[0] = level + gap
    return rng.permutation(means)


def fails(
    n: int, k: int, level: float, loss: float, delta: float, rng: np.random.Generator
) -> bool:
    """Whether one race loses more than epsilon, if `loss` is k * epsilon."""
    bandit = BernoulliBandit(arms(n, k, level, loss, rng))
    problem = Problem(n, k, FixedConfidence(loss / k, delta), Bounded())
    search = pairs_search(problem, rng, batch=8, growth=GROWTH)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        turn = advance(search, bandit.pull(turn.arms, turn.times, rng))
    return aggregate_regret(bandit.means, turn.top) > problem.epsilon


@click.command()
@click.option("--runs", default=2000, show_default=True)
@click.option("--delta", default=0.3, show_default=True)
@click.option("--loss", default=0.15, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--arms", "sizes", multiple=True, type=int, default=(2, 3, 5, 10), show_default=True)
def main(runs: int, delta: float, loss: float, seed: int, sizes: tuple[int, ...]) -> None:
    """Print failures for every k, and whether so many are believable."""
    table = Table("arms", "k", "failures", "rate", "chance of so many", box=SIMPLE_HEAD)
    broken = 0
    pairs = [(n, k) for n in sizes for k in range(1, n)]
    for n, k in track(pairs, transient=True):
        streams = np.random.default_rng([seed, n, k]).spawn(runs)
        levels = [LEVELS[run % len(LEVELS)] for run in range(runs)]
        wrong = sum(
            fails(n, k, level, loss, delta, rng) for level, rng in zip(levels, streams, strict=True)
        )
        chance = float(binom.sf(wrong - 1, runs, delta))
        broken += chance < UNBELIEVABLE
        table.add_row(str(n), str(k), f"{wrong:,}", f"{wrong / runs:.3f}", f"{chance:.2g}")
    Console().print(table, f"{len(pairs)} pairs of n and k, {runs:,} runs each: {broken} broken")


if __name__ == "__main__":
    main()
