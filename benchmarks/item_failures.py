"""How often is the race on items wrong on test sets built to break it?

    python benchmarks/item_failures.py --runs 2000 --delta 0.3

Sets of few items, ties, one item that decides, one arm that is better by just more than is allowed;
few arms, which are judged in pairs, and many, which are judged one by one. It looks after every
item, and every other run has a budget that ends somewhere. A run fails if it loses more than its
bound. The count is compared with the exact binomial law at delta, which is large, so that failures
can be seen."""

from collections.abc import Iterator

import click
import numpy as np
from scipy.stats import binom

from shortlist import instances
from shortlist.arrays import FloatArray
from shortlist.certificates.items import race
from shortlist.simulation.simulate import simulate

EPSILON = 0.06
SIZE = 12  # items, where their number does not matter
CHOICES = ((2, 1), (3, 2), (4, 1), (9, 1), (9, 8), (16, 2), (40, 20))  # arms, and how many of them
MANY_ARMS = 9  # arms, from which on a run takes long
BATCH = 25  # runs of one budget
UNBELIEVABLE = 1e-4  # chance of so many failures below which the guarantee is taken for broken


def few_items(n: int, size: int) -> FloatArray:
    """Every arm is right on its own pattern of so few items."""
    return (np.arange(n)[:, None] >> np.arange(size) & 1).astype(np.float64)


def ties(n: int) -> FloatArray:
    """Arms of equal means that share no item."""
    return np.repeat(np.eye(n), max(1, SIZE // n), axis=1)


def decisive(n: int, k: int) -> FloatArray:
    """One item outweighs a small lead on all others, by just more than is allowed."""
    scores = np.full((n, SIZE), 0.5)
    scores[k:] -= (1 - SIZE * 1.001 * EPSILON) / (SIZE - 1)
    scores[:k, 0] = 0.0
    scores[k:, 0] = 1.0
    return scores


def alike(n: int) -> FloatArray:
    """An arm scores the same on all items."""
    return np.tile(np.linspace(0.2, 0.8, n)[:, None], (1, SIZE))


def outstanding(n: int, k: int, right: int) -> FloatArray:
    """All arms tie but one that is better, or worse if most are chosen, by just too much."""
    gap = int(np.floor(k * EPSILON * SIZE)) + 1
    counts = np.full(n, right)
    counts[0] += gap if 2 * k <= n else -gap
    rows = [np.roll(np.arange(SIZE) < count, 7 * arm) for arm, count in enumerate(counts)]
    return np.array(rows, dtype=np.float64)


def sets(n: int, k: int) -> Iterator[tuple[str, FloatArray]]:
    """The test sets for so many arms: of many arms only some, as these take long."""
    few = n < MANY_ARMS
    for size in (1, 2, 3) if few else (2,):
        yield f"items: {size}", few_items(n, size)
    if few:
        yield "ties", ties(n)
        yield "all items alike", alike(n)
    yield "one item decides", decisive(n, k)
    if k * EPSILON < 0.5:  # or no arm can be better by so much
        for right in (3, 6, 9) if few else (6,):
            yield f"one stands out from {right} of {SIZE}", outstanding(n, k, right)
    yield "item response", instances.item_response(n, SIZE, np.random.default_rng([n, k]))


def failures(scores: FloatArray, k: int, delta: float, runs: int, seed: int) -> int:
    """Runs that lose more than their bound; every other batch has a budget that ends somewhere."""
    rng, wrong = np.random.default_rng(seed), 0
    for batch in range(0, runs, BATCH):
        turn = batch // BATCH
        budget = int(rng.integers(len(scores), scores.size + 1)) if turn % 2 else None
        found = simulate(
            *("certified",),
            scores=scores,
            k=k,
            epsilon=EPSILON,
            delta=delta,
            budget=budget,
            runs=min(BATCH, runs - batch),
            seed=seed + batch,
            order="independent" if turn % 4 == 3 else "shared",
        )
        wrong += int((found.regret > found.bound + 1e-9).sum())
    return wrong


@click.command()
@click.option("--runs", default=2000, show_default=True, help="Of every set.")
@click.option("--delta", default=0.3, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--arms", multiple=True, default=[n for n, _ in CHOICES], help="As many as these.")
def main(runs: int, delta: float, seed: int, arms: tuple[int, ...]) -> None:
    """Print failures of every set, and whether so many are believable."""
    race.FIRST_ITEMS = race.SINGLE_FIRST = 1
    race.ITEM_GROWTH = race.SINGLE_GROWTH = 1e-9  # an item at a time
    cases = [(n, k, *each) for n, k in CHOICES if n in arms for each in sets(n, k)]
    broken = 0
    for n, k, name, scores in cases:
        wrong = failures(scores, k, delta, runs, seed)
        chance = float(binom.sf(wrong - 1, runs, delta))
        broken += chance < UNBELIEVABLE
        click.echo(f"{n} arms, k={k}, {name}: {wrong:,} failed, chance of so many {chance:.2g}")
    click.echo(f"{len(cases)} sets, {runs:,} runs each at delta {delta}: {broken} broken")


if __name__ == "__main__":
    main()
