"""What to expect of a live test before its rates are known: days, by simulation."""

from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.certificates.drift.tuning import USUAL_RATE
from shortlist.driver import counted, finish
from shortlist.formatting import RAW, Unit, given_text, mean_text
from shortlist.problem import Problem
from shortlist.reward_models import Binary
from shortlist.search import Pulls, Rewards

RUNS = 10  # simulated tests
LATE = 0.9  # share of the tests that end within the later figure
AHEAD = 2  # times epsilon that the best arms are ahead in the second forecast
MOST_SIMULATED = 50  # arms up to which this takes no more than a few seconds


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
