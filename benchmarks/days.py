"""Days of a live A/B test whose results are late, told as counts per day (docs/drift.md).

    python benchmarks/days.py --runs 200 --seed 0

Six pages, 20,000 visitors per day, results complete after three days, epsilon = 0.002 and
delta = 0.05, through `Experiment` with a clock of its own; nothing is tuned. Next to it a pipelined
test with confidence sequences of differences on days of the same kind: visitors are shared equally
by the pages that may still be best, and it ends when no page can be better than the leader by more
than epsilon. Levels: "weekdays" are 0.7 times as high at weekends, "evening" rises from 0.7 to 1.3
within every day. With `--http` counts go through a service. With `--costs` one page costs four
times as much. With `--control` the worst page is the control, which keeps its visitors to the end,
and the table has mean days with and without. With `--novelty` it is how many tests of a week note
that a lead changed: of a page whose excess fades, of steady leads, and of three equal pages."""

import argparse
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from shortlist import Client, Experiment
from shortlist.arms import Arm
from shortlist.arrays import FloatArray, IntArray

FAMILIES = {
    "spread": np.array([0.02, 0.022, 0.024, 0.026, 0.028, 0.03]),
    "close": np.array([0.0264] + [0.024] * 5),
    "tied": np.full(6, 0.024),
}
EPSILON, DELTA, PER_DAY, DELAY = 0.002, 0.05, 20_000, 3
SLOTS = 4  # of a day: the level may move within it
DAY = 86_400.0
LONGEST = 200  # days
MIXTURE = 2 * EPSILON  # standard deviation of the mixture of the pipelined test
PAGES = [f"page {number}" for number in range(6)]
Level = Callable[[float], float]
LEVELS: dict[str, Level] = {
    "steady": lambda _time: 1.0,
    "weekdays": lambda time: 0.7 if int(time) % 7 > 4 else 1.0,
    "evening": lambda time: 0.7 + 0.6 * (time % 1),
}
Day = tuple[IntArray, IntArray]  # visitors and conversions per page
Outcome = tuple[int, int]  # the chosen page, and the days that it took


def day_of(
    rates: FloatArray, shares: FloatArray, day: int, level: Level, rng: np.random.Generator
) -> Day:
    """Visitors and conversions of a day."""
    times, sums = np.zeros((2, rates.size), dtype=np.int64)
    for slot in range(SLOTS):
        came = rng.multinomial(PER_DAY // SLOTS, shares)
        times += came
        sums += rng.binomial(came, rates * level(day + (slot + 0.5) / SLOTS))
    return times, sums


def live(
    rates: FloatArray,
    level: Level,
    rng: np.random.Generator,
    create: Callable[..., Any],
    arms: Any,
    **more: Any,
) -> Outcome:
    """A live test: shares every morning, counts of a day three days later."""
    settings: Any = {"epsilon": EPSILON, "delta": DELTA, "per_day": PER_DAY, "delay": DELAY} | more
    test = create(arms, 1, rewards="binary", seed=int(rng.integers(2**31)), **settings)
    waiting: deque[tuple[str, Day]] = deque()
    for day in range(LONGEST):
        opened = test.shares(f"day {day}")
        shares = np.array([opened.percent[page] for page in PAGES]) / 100
        waiting.append((opened.block, day_of(rates, shares, day, level, rng)))
        if len(waiting) > DELAY:
            block, (times, sums) = waiting.popleft()
            rows = zip(PAGES, times.tolist(), sums.tolist(), strict=True)
            test.tell_counts(block, {page: (came, won) for page, came, won in rows})
            if test.state() == "finished":
                return PAGES.index(test.result().top[0]), day + 1
    return -1, LONGEST


def widths(pulls: IntArray, rate: float, leader: int) -> FloatArray:
    """Half the widths of a normal mixture confidence sequence (mSPRT) of every page's difference to
    the leader: asymptotic, and for levels that do not move. Two-sided at 2 delta / (n - 1): that is
    one-sided at delta / (n - 1) for every pair with the best page."""
    alpha = 2 * DELTA / (pulls.size - 1)
    variance = rate * (1 - rate) * (1 / pulls + 1 / pulls[leader])
    ratio = (MIXTURE**2 + variance) / variance
    return np.asarray(np.sqrt(variance / (1 - 1 / ratio) * np.log(ratio / alpha**2)))


def pipelined(rates: FloatArray, level: Level, rng: np.random.Generator) -> Outcome:
    """Confidence sequences of differences; pages that cannot be best leave."""
    pulls, won = np.zeros((2, rates.size), dtype=np.int64)
    possible = np.ones(rates.size, dtype=np.bool_)
    waiting: deque[Day] = deque()
    best = 0
    for day in range(LONGEST):
        waiting.append(day_of(rates, possible / possible.sum(), day, level, rng))
        if len(waiting) > DELAY:
            times, sums = waiting.popleft()
            pulls, won = pulls + times, won + sums
            means = won / pulls
            best = int(np.argmax(np.where(possible, means, 0)))
            reach = means - means[best] + widths(pulls, float(won.sum() / pulls.sum()), best)
            reach[best] = 0
            if reach.max() <= EPSILON:
                return best, day + 1
            possible = (reach > 0) | (np.arange(rates.size) == best)
    return best, LONGEST


@contextmanager
def places(*, http: bool) -> Iterator[Callable[..., Any]]:
    """How experiments are made: in memory, or at a service."""
    if not http:
        now = [0.0]

        def create(*given: Any, **more: Any) -> Experiment:
            now[0] += DAY
            return Experiment.create(*given, clock=lambda: now[0], **more)

        yield create
        return
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "contracts"))
    from services import serving

    from shortlist.stores.base import MemoryStore

    with serving(MemoryStore()) as url:
        names = iter(range(10**9))
        yield lambda *given, **more: Client(url).create(*given, name=f"{next(names)}", **more)


def row(family: str, level: str, method: str, outcomes: list[tuple[FloatArray, Outcome]]) -> str:
    """A row of the table."""
    days = [took for _, (_, took) in outcomes]
    lost = [rates.max() - rates[page] for rates, (page, _) in outcomes]
    wrong = sum(each > EPSILON * (1 + 1e-9) for each in lost)
    median, late = np.quantile(days, [0.5, 0.9], method="inverted_cdf")
    return (
        f"| {family} | {level} | {method} | {median:.0f} | {late:.0f} | {max(days)} |"
        f" {wrong} of {len(days)} |"
    )


def controlled(family: str, runs: int, seed: int) -> None:
    """Mean days without a control and with the worst page as control."""
    days: list[tuple[int, int]] = []
    with places(http=False) as create:
        for run in range(runs):
            rates = np.random.default_rng([seed, run]).permutation(FAMILIES[family])
            worst = {"control": PAGES[int(rates.argmin())]}
            took = [
                live(
                    rates,
                    LEVELS["steady"],
                    np.random.default_rng([seed, run]),
                    create,
                    PAGES,
                    **each,
                )
                for each in ({}, worst)
            ]
            days.append((took[0][1], took[1][1]))
    alone, with_one = np.mean(days, axis=0)
    print(f"| {family} | {alone:.1f} | {with_one:.1f} |", flush=True)


NOVEL = ["a", "b", "c"]
STEADY = np.array([0.048, 0.04, 0.04])
FADES = np.array([0, 0, 0.4])  # excess at the start, of which half is gone every two days
WEEKS: dict[str, Callable[[int], FloatArray]] = {
    "novelty": lambda day: STEADY * (1 + FADES * 0.5 ** ((day + 0.5) / 2)),
    "steady leads": lambda _: STEADY,
    "three equal pages": lambda _: np.full(3, 0.04),
}


def noted(name: str, runs: int, seed: int) -> None:
    """How many tests of a week note a change of a lead."""
    rates = WEEKS[name]
    changed, misled, told = 0, 0, 0
    for run in range(seed, seed + runs):
        rng = np.random.default_rng([9, run])
        test = Experiment.create(NOVEL, 1, epsilon=0.005, delta=0.1, per_day=8640, rewards="binary")
        for day in range(7):
            opened = test.shares(f"day {day}")
            shares = np.array(list(opened.percent.values())) / 100
            times = rng.multinomial(8640, shares)
            sums = rng.binomial(times, rates(day))
            rows = zip(NOVEL, times.tolist(), sums.tolist(), strict=True)
            test.tell_counts(opened.block, {page: (came, won) for page, came, won in rows})
        result = test.result(partial=True)
        found = any("seems to have changed" in note for note in result.notes)
        changed += found
        misled += result.top == ("c",)
        told += found and result.top == ("c",)
    print(f"| {name} | {changed} of {runs} | {told} of {misled} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--level", choices=LEVELS, action="append")
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--novelty", action="store_true")
    asked = parser.parse_args()
    if asked.control:
        print("| family | days, mean | with a control |\n|---|---|---|")
        for family in asked.family or FAMILIES:
            controlled(family, asked.runs, asked.seed)
        return
    if asked.novelty:
        print("| pages | change noted | of tests that choose page c |\n|---|---|---|")
        for name in WEEKS:
            noted(name, asked.runs, asked.seed)
        return
    arms: Any = [Arm(page, cost=4.0 if page == PAGES[0] else 1.0) for page in PAGES]
    print("| family | level | method | days, median | 90 % | most | more than epsilon lost |")
    print("|---|---|---|---|---|---|---|")
    with places(http=asked.http) as create:
        for family in asked.family or FAMILIES:
            for level in asked.level or LEVELS:
                tests, simple = [], []
                for run in range(asked.runs):
                    rng = np.random.default_rng([asked.seed, run])
                    rates = rng.permutation(FAMILIES[family])
                    given = arms if asked.costs else PAGES
                    tests.append((rates, live(rates, LEVELS[level], rng, create, given)))
                    simple.append((rates, pipelined(rates, LEVELS[level], rng)))
                print(row(family, level, "live test", tests), flush=True)
                print(row(family, level, "confidence sequences", simple), flush=True)


if __name__ == "__main__":
    main()
