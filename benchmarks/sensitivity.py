"""How much hangs on every tuning constant: `python benchmarks/sensitivity.py --workers 2`.

One constant at a time is halved and doubled. Of a constant that is a factor above or below 1 (see
FROM_ONE) it is the distance from 1. Shown are ratios to the constants as they are, over a few small
instances: pulls of `certified` (for a constant of the race: of `lucb` and `clucb-pac`) and time of
the processor, geometric means, and regret of `expected-loss`, added up in units of epsilon. The
last row changes nothing but the seed: so much is noise."""

import inspect
import math
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from types import ModuleType
from typing import NamedTuple

import click
import numpy as np

from shortlist import instances
from shortlist.algorithms import lucb as of_races
from shortlist.arrays import FloatArray
from shortlist.certificates.split import expected_charges, offsets, planning, search
from shortlist.exploration import tuning as of_exploration
from shortlist.simulation.simulate import simulate

Value = float | tuple[float, ...]

MODULES: dict[str, ModuleType] = {
    "exploration": of_exploration,
    **{module.__name__: module for module in (offsets, expected_charges, planning, search)},
    "algorithms": of_races,
}
# LEAST_AIM among them: at 1 every look may fail, and a search without a budget need not end
FROM_ONE = {"PULLS_RATIO", "STRENGTH_RATIO", "LONGEST_WAIT", "AIM_FACTOR", "LEAST_AIM"}
OF_RACES = {"OWN_GROWTH"}
SEED = 70_000  # far from those of other benchmarks
BUDGETED = 4  # runs of expected-loss, which are short, for one of certified


class Instance(NamedTuple):
    """Arms, and what is asked of the searches."""

    means: FloatArray
    k: int
    epsilon: float
    rewards: str
    budget: int


INSTANCES = (
    Instance(instances.uniform(100), 25, 0.03, "bernoulli", 2000),
    Instance(instances.two_group(100, 20), 20, 0.03, "bernoulli", 1200),
    Instance(np.linspace(0.9, 0.1, 12), 4, 0.05, "bernoulli", 400),
    Instance(np.linspace(0.8, 0.2, 40), 10, 0.05, "beta", 800),
)


class Task(NamedTuple):
    """A constant with another value; the one named "" changes nothing but the seed."""

    module: str
    name: str
    factor: float


class Figures(NamedTuple):
    """What is compared, an entry for each instance."""

    pulls: FloatArray
    regret: FloatArray  # in units of epsilon
    seconds: FloatArray

    def ratios(self, usual: "Figures") -> tuple[float, float, float]:
        """Ratios to what is usual; regrets are added up first, as some may be 0."""
        return (
            geometric_mean(self.pulls / usual.pulls),
            float(self.regret.sum() / usual.regret.sum()),
            geometric_mean(self.seconds / usual.seconds),
        )


def geometric_mean(values: FloatArray) -> float:
    return math.exp(float(np.log(values).mean()))


def constants(only: str | None) -> Iterator[tuple[str, str]]:
    """Every constant with the module it belongs to."""
    for package, module in MODULES.items():
        for name in own_constants(module):
            if only in (None, name):
                yield package, name


def own_constants(module: ModuleType) -> list[str]:
    """The tuned constants of a module: of one with bounds, those below the line that says so."""
    source = inspect.getsource(module)
    _, marked, rest = source.partition("# These cost")
    block = rest.partition("\n\n")[0] if marked else source
    return [name for name in vars(module) if name.isupper() and f"\n{name} = " in block]


def scaled(name: str, value: Value, factor: float) -> Value:
    """Another value of a constant: whole numbers stay whole, and none becomes 0."""
    if isinstance(value, tuple):
        return tuple(each * factor for each in value)
    if name in FROM_ONE:
        return 1 + (value - 1) * factor
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def measured(instance: Instance, pullers: tuple[str, ...], runs: int, seed: int) -> list[float]:
    """Mean pulls, mean regret and seconds on one instance."""
    means, k, epsilon, rewards, budget = instance
    started = time.process_time()
    to_epsilon = [
        simulate(
            name,
            means,
            k=k,
            epsilon=epsilon,
            runs=runs,
            seed=seed,
            rewards=rewards,
            options={"certificate": "split"} if name == "certified" else None,
        )
        for name in pullers
    ]
    within = simulate(
        "expected-loss",
        means,
        k=k,
        budget=budget,
        runs=BUDGETED * runs,
        seed=seed,
        rewards=rewards,
    )
    seconds = time.process_time() - started
    pulls = sum(float(each.pulls.mean()) for each in to_epsilon)
    return [pulls, float(within.regret.mean()) / epsilon, seconds]


@cache
def usual(pullers: tuple[str, ...], runs: int) -> Figures:
    """The figures with all constants as they are; the first run only fills caches."""
    measured(INSTANCES[0], pullers, 1, SEED)
    return figures(pullers, runs, SEED)


def figures(pullers: tuple[str, ...], runs: int, seed: int) -> Figures:
    rows = [measured(instance, pullers, runs, seed) for instance in INSTANCES]
    return Figures(*np.array(rows).T)


def ratios(task: Task, runs: int) -> tuple[float, float, float]:
    """The ratios for one task, in a process of its own kind: constants are put back after it."""
    pullers = ("lucb", "clucb-pac") if task.name in OF_RACES else ("certified",)
    before = usual(pullers, runs)
    if not task.name:
        return figures(pullers, runs, SEED + 1).ratios(before)
    module = MODULES[task.module]
    value = getattr(module, task.name)
    setattr(module, task.name, scaled(task.name, value, task.factor))
    try:
        return figures(pullers, runs, SEED).ratios(before)
    finally:
        setattr(module, task.name, value)


@click.command()
@click.option("--only", default=None, help="The constant of this name.")
@click.option("--runs", default=20, show_default=True)
@click.option("--workers", default=2, show_default=True)
def main(only: str | None, runs: int, workers: int) -> None:
    """Print ratios at half the value and at twice the value of every constant."""
    found = list(constants(only))
    tasks = [Task(*each, factor) for each in found for factor in (0.5, 2.0)] + [Task("", "", 1.0)]
    click.echo(f"{runs} runs on each of {len(INSTANCES)} instances, ratios at half and at twice")
    click.echo(f"{'constant':16}{'pulls':>14}{'regret':>14}{'time':>14}")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(ratios, task, runs) for task in tasks]
        for (_, name), half, double in zip(found, futures[:-1:2], futures[1:-1:2], strict=True):
            pairs = zip(half.result(), double.result(), strict=True)
            cells = "".join(f"{one:>8.2f}{other:>6.2f}" for one, other in pairs)
            click.echo(f"{name:16}{cells}")
        noise = "".join(f"{each:>14.2f}" for each in futures[-1].result())
        click.echo(f"{'another seed':16}{noise}")


if __name__ == "__main__":
    main()
