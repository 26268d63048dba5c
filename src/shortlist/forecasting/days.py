"""Simulated time: days of a live test, and calls that take a while, some of them under way at a
time. Also the sample sizes that textbooks give for tests of fixed size."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.certificates.drift.planning import USUAL_RATE
from shortlist.driver import Outcome, Run, counted, finish
from shortlist.formatting import RAW, Unit, confidence_text, given_text, mean_text
from shortlist.problem import Problem
from shortlist.reward_models import Binary
from shortlist.search import Dialogue, Pulls, Rewards

RUNS = 10  # simulated tests
LATE = 0.9  # share of the tests that end within the later figure
AHEAD = 2  # times epsilon that the best arms are ahead in the second forecast
MOST_SIMULATED = 50  # arms up to which this takes no more than a few seconds


POWER = 0.8  # of the z-test
GRID = np.linspace(-9, 9, 3601)  # standard deviations over which probabilities are added up


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The size of a test of fixed size for 0/1 rewards, by the normal approximation."""

    name: str  #: of the rule
    per_arm: int  #: pulls of every arm
    pulls: int  #: of all arms
    days: float | None  #: until the last result is there; None without `per_day`
    promise: str  #: what it promises


def sample_sizes(
    n_arms: int, k: int, rate: float, epsilon: float, delta: float, pace: tuple[float, float] | None
) -> tuple[SampleSize, ...]:
    """Sizes for arms that all have about this rate: the two that are commonly taught.

    Fixed before the test: a test that stops at an earlier look keeps neither promise."""
    variance = rate * (1 - rate)
    comparisons = n_arms - 1
    z_test = (ndtri(1 - delta / (2 * comparisons)) + ndtri(POWER)) ** 2 * 2 * variance / epsilon**2
    zone = indifference(n_arms, k, delta) ** 2 * variance / epsilon**2
    found = (
        (
            "z-test",
            z_test,
            f"each of {comparisons:,} two-sided tests against a control sees a difference of"
            f" epsilon with probability {POWER:g}; Bonferroni",
        ),
        (
            "indifference zone",
            zone,
            f"the best {k:,} are chosen with probability {confidence_text(1 - delta)} if they lead"
            " by epsilon; Bechhofer 1954",
        ),
    )
    sizes = []
    for name, size, promise in found:
        per_arm = ceil(size)
        days = None if pace is None else ceil(per_arm * n_arms / pace[0]) + pace[1]
        sizes.append(SampleSize(name, per_arm, per_arm * n_arms, days, promise))
    return tuple(sizes)


def indifference(n_arms: int, k: int, delta: float) -> float:
    """By how many standard errors of a mean the k best must lead, all others being alike, so that
    the k largest means are theirs with probability 1 - delta (Bechhofer 1954).

    P = k integral of ndtr(x + d)^(n - k) (1 - ndtr(x))^(k - 1) density(x) dx, x the least of the
    best means."""
    density = np.exp(-(GRID**2) / 2) / np.sqrt(2 * np.pi) * (GRID[1] - GRID[0])
    least = k * (1 - ndtr(GRID)) ** (k - 1) * density
    low, high = 0.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        right = float(least @ ndtr(GRID + middle) ** (n_arms - k))
        low, high = (middle, high) if right < 1 - delta else (low, middle)
    return high


class ExpectedDays(NamedTuple):
    """Days that half of the tests, and nine of ten, take at most."""

    median: int
    late: int


def expected_days(problem: Problem, rate: float, ahead: float, seed: int = 0) -> ExpectedDays:
    """The days of a live test whose arms have this rate, k of them more by `ahead`."""
    assert problem.traffic is not None
    assert problem.traffic.per_day is not None
    means = np.full(problem.n_arms, rate)
    means[: problem.k] += ahead
    unit = replace(problem.unit(), rewards=Binary())
    days = [_days(unit, means, np.random.default_rng([seed, run])) for run in range(RUNS)]
    return ExpectedDays(*(int(np.quantile(days, at, method="inverted_cdf")) for at in (0.5, LATE)))


def _days(problem: Problem, means: FloatArray, rng: np.random.Generator) -> int:
    def pulled(pulls: Pulls) -> Rewards:
        sums = rng.binomial(pulls.times, means[pulls.arms]).astype(np.float64)
        return Rewards(sums, sums)

    return finish(counted(find("certified"), problem, rng), pulled).rounds


def outlook_of(problem: Problem, unit: Unit = RAW) -> str:
    """What to expect, in a sentence; empty if nothing is known about the visitors."""
    traffic = problem.traffic
    if traffic is None or traffic.per_day is None or problem.n_arms > MOST_SIMULATED:
        return ""
    epsilon = problem.unit().epsilon
    rate = min(0.5, USUAL_RATE * epsilon)
    ahead = min(AHEAD * epsilon, 1 - rate)
    alike, apart = (expected_days(problem, rate, each) for each in (0.0, ahead))
    scale = problem.rewards.scale
    near = mean_text(rate * scale, -inf, inf, unit=unit)
    lead = given_text(ahead * scale, unit)
    return (
        f"if rates are near {near}: {alike.median} days (90 %: {alike.late}) where all"
        f" arms are alike, {apart.median} days (90 %: {apart.late}) where the best lead by"
        f" {lead}, with {traffic.per_day:,} visitors per day"
    )


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How calls are made: how many are under way at a time, and the seconds that each takes."""

    calls: int
    seconds: float


class Pool:
    """Workers that make calls in order; each takes equally long."""

    def __init__(self, width: Concurrency) -> None:
        self.width = width
        self.free = np.zeros(width.calls)  # when each worker is free, in increasing order
        self.clock = 0.0

    def work(self, calls: int) -> float:
        """When the last of these calls ends, which are handed out now.

        The worker that is free first is so again first, as all calls take equally long."""
        every, more = divmod(calls, self.width.calls)
        self.free = np.maximum(self.free, self.clock) + every * self.width.seconds
        self.free[:more] += self.width.seconds
        last = self.free[more - 1] if more else self.free[-1]
        self.free = np.roll(self.free, -more)
        return float(last) if calls else self.clock


def timed(run: Run, pull: Callable[[Pulls], Rewards], pool: Pool) -> Outcome:
    """Answer every batch by `pull` when all its calls have ended; `pool.clock` is then the time."""
    dialogue = Dialogue(run)
    ends = deque(pool.work(each.total) for each in dialogue.new)
    while dialogue.result is None:
        pool.clock = max(pool.clock, ends.popleft())
        dialogue.reply(pull(dialogue.unanswered[0]))
        ends.extend(pool.work(each.total) for each in dialogue.new)
    return dialogue.result
