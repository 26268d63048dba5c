"""Choosing on a test set, measured: `python benchmarks/items.py`, about ten minutes on one core.

Item-response matrices of 80 arms (`instances.item_response`), ten of each size. First the share of
the cells that `certified` needs for epsilon 0.02 and delta 0.05; then the mean regret of
`expected-loss` and of successive rejects for 5 and 15 % of the cells, with the number of matrices
on which it loses no more than both. Rejects are Audibert, Bubeck, Munos (2010) with orders of
their own for arms, and on shared items, synchronized (Lyu, Nejma, Wegel, Yang, Dorner 2026, SySRs);
both reject the worst arm a phase until k are left, and spend what full arms leave over."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import product

import click
import numpy as np
from sensitivity import own_constants

from shortlist import Arm, instances, select
from shortlist.algorithms import find
from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.items import race as of_race
from shortlist.driver import counted
from shortlist.exploration import items as of_budget
from shortlist.exploration.items import explore_items
from shortlist.problem import FixedBudget, FixedConfidence, Items, Problem
from shortlist.regret import aggregate_regret
from shortlist.search import Dialogue, Pulls, advance, rewards_of
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import ScoreTable

ARMS = 80
SIZES = (500, 1000, 2000)
SHARES = (0.05, 0.15)
PARTS = ["certified", "budget", "prompts", "evidence", "tuning", "width", "costs"]
SIGMA = 0.5  # of the logarithm of latencies of mean 1
# items, k, workers
WIDE = ((500, 1, 100), (500, 5, 100), (500, 10, 100), (1000, 1, 100), (1000, 5, 100))
NARROW = ((500, 1, 16), (500, 5, 16))


@click.command()
@click.option("--matrices", default=10, show_default=True)
@click.option("--runs", default=20, show_default=True, help="Orders of the items a matrix.")
@click.option("--seed", default=0, show_default=True, help="Of the first matrix.")
@click.option("-k", "ks", multiple=True, default=(1, 5), show_default=True, help="For a budget.")
@click.option("--share", "shares", multiple=True, default=SHARES, show_default=True)
@click.option("--only", type=click.Choice(PARTS))
def main(
    matrices: int,
    runs: int,
    seed: int,
    ks: tuple[int, ...],
    shares: tuple[float, ...],
    only: str | None,
) -> None:
    if only in (None, "certified"):
        for size, k in product(SIZES, (1, 5)):
            print_certified(size, k, matrices, seed)
    if only == "evidence":
        for n, k in ((6, 1), (12, 1), (24, 3), (12, 4), (24, 8), (60, 12)):
            print_evidence(n, k, matrices, seed)
    if only == "width":
        for size, k, workers in (*WIDE, *NARROW):
            print_width(size, k, workers, matrices, seed)
    if only == "costs":
        for size, k in ((500, 1), (500, 5), (1000, 5)):
            print_costs(size, k, matrices, seed)
    if only == "tuning":
        print_tuning(matrices, runs, seed)
    if only in (None, "prompts"):
        print_prompts(matrices, seed)
    if only in (None, "budget"):
        for k, share in product(ks, shares):
            print_budget(SIZES[1], k, share, matrices, runs, seed)


def made(size: int, seed: int) -> FloatArray:
    """The matrix of a seed."""
    return instances.item_response(ARMS, size, np.random.default_rng(seed))


def print_certified(size: int, k: int, matrices: int, seed: int) -> None:
    shares, seconds, failures = [], [], 0
    for each in range(seed, seed + matrices):
        runs = simulate("certified", scores=made(size, each), k=k, epsilon=0.02, seed=each)
        shares.append(float(runs.pulls.mean()) / (ARMS * size))
        seconds.append(runs.seconds)
        failures += int(runs.failed.sum())
    click.echo(
        f"{ARMS} x {size}, k={k}: share {np.mean(shares):.3f}, most {max(shares):.3f},"
        f" {failures} failed, {np.mean(seconds):.2f} s a run"
    )


def print_costs(size: int, k: int, matrices: int, seed: int) -> None:
    """Cost as a share of that of all cells, with costs used in plans and ignored there."""
    thrift, shares = of_race.THRIFT, np.zeros((2, matrices))
    for row, power in enumerate((thrift, 0.0)):
        of_race.THRIFT = power
        for column in range(matrices):
            shares[row, column] = cost_share(size, k, seed + column)
    of_race.THRIFT = thrift
    used, ignored = shares.mean(axis=1)
    click.echo(f"{ARMS} x {size}, k={k}: cost {used:.3f}, {ignored:.3f} if costs are ignored")


def cost_share(size: int, k: int, seed: int) -> float:
    """Costs are lognormal with sigma 1."""
    scores = made(size, seed)
    costs = np.random.default_rng([seed, 1]).lognormal(0, 1, ARMS)
    arms = [Arm(str(arm), cost=float(cost)) for arm, cost in enumerate(costs)]
    result = select(
        lambda arm, item: scores[int(arm), item],
        arms=arms,
        k=k,
        epsilon=0.02,
        items=size,
        seed=seed,
        progress=False,
    )
    return float(result.spent / (costs.sum() * size))


class Pool:
    """Workers that take cells in order; a simulated clock."""

    def __init__(self, workers: int, latency: Callable[[int], FloatArray]) -> None:
        self.free = [0.0] * workers
        self.latency = latency
        self.clock = 0.0

    def work(self, cells: int) -> float:
        """When the last of these cells is evaluated, which are handed out now."""
        end = self.clock
        for seconds in self.latency(cells):
            done = max(heappop(self.free), self.clock) + float(seconds)
            heappush(self.free, done)
            end = max(end, done)
        return end


def timed(scores: FloatArray, k: int, seed: int, pool: Pool, **options: int) -> tuple[int, float]:
    """Cells asked for, and the time until the answer."""
    n, size = scores.shape
    problem = Problem(n, k, FixedConfidence(0.02, 0.05), items=Items(size))
    table = ScoreTable(scores, np.random.default_rng([seed, 1]), "shared")
    rng = np.random.default_rng([seed, 2])
    dialogue = Dialogue(counted(find("certified"), problem, rng, **options))
    ends = deque(pool.work(each.total) for each in dialogue.new)
    cells = sum(each.total for each in dialogue.new)
    while dialogue.result is None:
        pool.clock = max(pool.clock, ends.popleft())
        dialogue.reply(table.pull(dialogue.unanswered[0]))
        ends.extend(pool.work(each.total) for each in dialogue.new)
        cells += sum(each.total for each in dialogue.new)
    return cells, pool.clock


def print_width(size: int, k: int, workers: int, matrices: int, seed: int) -> None:
    """Cells relative to one by one, time relative to evaluating all cells, and busy workers.

    Calls take equal time, with `min_batch` as many cells as workers and no window; or they take
    lognormal times, with the defaults for this number of workers."""
    rng = np.random.default_rng(seed)
    kinds: dict[str, tuple[Callable[[int], FloatArray], dict[str, int]]] = {
        "constant": (np.ones, {"min_batch": workers, "window": 0}),
        "lognormal": (
            lambda cells: rng.lognormal(-(SIGMA**2) / 2, SIGMA, cells),
            {"min_batch": workers // 2, "window": 3 * workers},
        ),
    }
    found: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in kinds}
    for each in range(seed, seed + matrices):
        scores = np.random.default_rng([each, 0]).permutation(made(size, each))
        alone, _ = timed(scores, k, each, Pool(1, np.ones))
        for kind, (latency, options) in kinds.items():
            cells, time = timed(scores, k, each, Pool(workers, latency), **options)
            everything = scores.size / workers
            found[kind].append((cells / alone, time / everything, cells / workers / time))
    for kind, rows in found.items():
        more, time, busy = np.mean(rows, axis=0)
        click.echo(
            f"{ARMS} x {size}, k={k}, {workers} workers, {kind}: cells {more:.2f}, time {time:.3f},"
            f" busy {busy:.2f}"
        )


def print_evidence(n: int, k: int, matrices: int, seed: int) -> None:
    """Share of cells where arms are judged in pairs and one by one, n x 500, epsilon 0.03."""
    usual = of_race.LOPSIDED, of_race.MANY_ARMS
    shares = []
    for from_here in (n, 0):
        of_race.LOPSIDED = of_race.MANY_ARMS = from_here + 1 if from_here else 0
        cells = [
            simulate(
                *("certified",),
                scores=instances.item_response(n, 500, np.random.default_rng(each)),
                k=k,
                epsilon=0.03,
                seed=each,
            ).pulls[0]
            for each in range(seed, seed + matrices)
        ]
        shares.append(float(np.mean(cells)) / (n * 500))
    of_race.LOPSIDED, of_race.MANY_ARMS = usual
    click.echo(f"{n} x 500, k={k}: pairs {shares[0]:.3f}, one by one {shares[1]:.3f}")


def print_prompts(matrices: int, seed: int) -> None:
    """24 prompts on 300 items, scores with a deviation of 0.08."""
    kinds: dict[str, Callable[[np.random.Generator], FloatArray]] = {
        "evenly spread means": lambda _: np.linspace(0.4, 0.8, 24),
        "uniform means": lambda rng: rng.uniform(0.1, 0.9, 24),
        "clustered means": lambda rng: rng.normal(0.5, 0.057, 24),
    }
    for kind, means in kinds.items():
        cells = []
        for each in range(seed, seed + matrices):
            rng = np.random.default_rng(each)
            noise = 0.08 * rng.normal(size=(24, 300))
            scores = np.clip(means(rng)[:, None] + noise, 0, 1)
            cells.append(int(simulate("certified", scores=scores, k=3, epsilon=0.01).pulls[0]))
        click.echo(
            f"24 x 300, sd 0.08, k=3, epsilon 0.01, {kind}: {np.mean(cells):,.0f} of 7,200 cells"
        )


def print_tuning(matrices: int, runs: int, seed: int) -> None:
    """ScoredCells of `certified` and regret of `expected-loss`, every constant halved and doubled.

    Ratios to what they are with the constants as they are; the last line changes the seed alone."""
    for module, figure in ((of_race, cells_needed), (of_budget, regret_left)):
        usual = figure(matrices, runs, seed)
        for name in own_constants(module):
            value = getattr(module, name)
            ratios = []
            for factor in (0.5, 2.0):
                setattr(module, name, changed(value, factor))
                ratios.append(figure(matrices, runs, seed) / usual)
            setattr(module, name, value)
            click.echo(f"{name}: x 1/2 {ratios[0]:.2f}, x 2 {ratios[1]:.2f}")
        click.echo(f"another seed: {figure(matrices, runs, seed + 1000) / usual:.2f}")


def changed(value: float | tuple[float, ...], factor: float) -> float | tuple[float, ...]:
    """Weights go to a power, so that they still add up to 1; a share of less than 1 stays one."""
    if isinstance(value, tuple):
        if abs(sum(value) - 1) < 1e-9:
            powers = np.array(value) ** factor
            return tuple((powers / powers.sum()).tolist())
        return tuple(each * factor for each in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    return value * factor if value * factor < 1 or value >= 1 else (1 + value) / 2


def cells_needed(matrices: int, runs: int, seed: int) -> float:
    """Mean cells of `certified`, K = 1 and 5."""
    found = [
        simulate(
            *("certified",),
            scores=made(300, each),
            k=k,
            epsilon=0.03,
            runs=max(1, runs // 10),  # a run of it takes ten times as long
            seed=each,
        ).pulls.mean()
        for each, k in product(range(seed, seed + matrices), (1, 5))
    ]
    return float(np.mean(found))


def regret_left(matrices: int, runs: int, seed: int) -> float:
    """Mean regret of `expected-loss`, K = 1 and 5, with 5 and 15 % of the cells."""
    settings = product(range(seed, seed + matrices), (1, 5), SHARES)
    found = [
        simulate(
            *("expected-loss",),
            scores=made(500, each),
            k=k,
            budget=int(share * ARMS * 500),
            runs=runs,
            seed=each,
        ).regret.mean()
        for each, k, share in settings
    ]
    return float(np.mean(found))


def print_budget(size: int, k: int, share: float, matrices: int, runs: int, seed: int) -> None:
    """Mean regret of all methods, and on how many matrices ours is no larger than the others'."""
    regret = np.array(
        [regrets(size, k, share, runs, each) for each in range(seed, seed + matrices)]
    )  # (matrices, runs, methods)
    means = regret.mean(1)
    ours, synchronized, plain = means.mean(0)
    rival = means[:, 1:].argmin(1)[:, None, None] + 1  # the better of the others on every matrix
    excess = (regret[..., :1] - np.take_along_axis(regret, rival, axis=2))[..., 0]
    error = excess.std(1) / np.sqrt(runs)  # of paired differences: (matrices,)
    worse = excess.mean(1) > 1e-12
    difference = (regret[..., 0] - regret[..., 1]).std(1).mean() / np.sqrt(matrices * runs)
    click.echo(
        f"{ARMS} x {size}, k={k}, {share:.0%}: expected-loss {ours:.5f},"
        f" synchronized {synchronized:.5f} (difference +- {difference:.5f}), rejects {plain:.5f};"
        f" no worse on {matrices - int(worse.sum())} of {matrices}, better by two standard errors"
        f" on {int((excess.mean(1) < -2 * error).sum())}, worse on"
        f" {int((worse & (excess.mean(1) > 2 * error)).sum())}"
    )


def regrets(size: int, k: int, share: float, runs: int, seed: int) -> FloatArray:
    """What ours, synchronized and plain rejects lose on a matrix: (runs, methods).

    In a run arms and items are shuffled, and all methods meet them in the same order; plain rejects
    shuffle items anew for every arm."""
    budget = int(share * ARMS * size)
    counts = phases(ARMS, size, k, budget)
    matrix = made(size, seed)
    lost = np.empty((runs, 3))
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        arms = rng.permutation(matrix)[:, rng.permutation(size)]
        chosen = (
            explored(arms, k, budget, rng),
            rejects(arms, counts),
            rejects(rng.permuted(arms, axis=1), counts),
        )
        lost[run] = [aggregate_regret(arms.mean(1), each) for each in chosen]
    return lost


def explored(arms: FloatArray, k: int, budget: int, rng: np.random.Generator) -> IntArray:
    """What `expected-loss` chooses where arms meet items in this order."""
    n, size = arms.shape
    search = explore_items(Problem(n, k, FixedBudget(budget), items=Items(size)), rng)
    seen = np.zeros(n, dtype=np.int64)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        asked = zip(turn.arms, turn.times, strict=True)
        each = np.concatenate([arms[arm, seen[arm] : seen[arm] + times] for arm, times in asked])
        seen[turn.arms] += turn.times
        entries = np.repeat(np.arange(turn.arms.size), turn.times)
        turn = advance(search, rewards_of(each, entries, turn.arms.size))
    return turn.top


def rejects(arms: FloatArray, counts: IntArray) -> IntArray:
    """What successive rejects choose, without replacement."""
    totals = np.cumsum(arms, axis=1)
    left = list(range(len(arms)))
    for count in counts:
        left.remove(min(left, key=lambda arm: totals[arm, count - 1]))
    return np.array(left)


def phases(n: int, size: int, k: int, budget: int) -> IntArray:
    """Items that every arm left has by the end of each phase, all cells within the budget."""
    low, high = 0.0, 2.0 * budget
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _spent(_counts(n, size, k, middle), n) <= budget else (low, middle)
        )
    return _counts(n, size, k, low)


def _counts(n: int, size: int, k: int, scale: float) -> IntArray:
    lengths = np.ceil(scale / np.arange(n, k, -1)).astype(np.int64)
    return np.clip(lengths, 1, size)


def _spent(counts: IntArray, n: int) -> int:
    """An arm rejected in a phase has the items of that phase; those left have the last ones."""
    return int(counts.sum() + (n - counts.size) * counts[-1])


if __name__ == "__main__":
    main()
