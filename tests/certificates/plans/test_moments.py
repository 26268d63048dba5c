"""(*) of docs/plans.md holds at every mean: in exact arithmetic, at, between and beyond cells."""

import mpmath
import numpy as np
import pytest
from attack_scale import number_of_runs

from shortlist.arrays import FloatArray
from shortlist.certificates.plans.bound import (
    Level,
    Stakes,
    StopStates,
    stop_states,
    worst_moment,
)
from shortlist.certificates.plans.planning import log_optimal

PLANS = number_of_runs(200, 10_000)
DIGITS = 40


def random_plan(rng: np.random.Generator) -> tuple[StopStates, FloatArray, Stakes]:
    """A plan that makes little sense: (*) does not ask for sense."""
    pulls = np.sort(rng.choice(np.arange(1, 9), size=rng.integers(1, 4), replace=False))
    levels = [Level(int(each), rng.random(each + 1) < 0.5) for each in pulls[:-1]]
    levels.append(Level(int(pulls[-1]), np.ones(pulls[-1] + 1, dtype=np.bool_)))
    boundary = float(rng.uniform(0.02, 0.98))
    states = stop_states(levels, boundary)
    leads = rng.choice([-np.inf, np.inf, 0.0, np.nan], size=states.pulls.size)
    leads = np.where(np.isnan(leads), rng.normal(0, 0.2, leads.size), leads)
    return states, leads, Stakes(boundary, float(rng.uniform(1, 60)), float(rng.uniform(0.01, 2)))


def random_q(
    rng: np.random.Generator, states: StopStates, leads: FloatArray, stakes: Stakes
) -> FloatArray:
    """Log-optimal at a few means, or at random."""
    if rng.random() < 0.3:
        return np.asarray(rng.uniform(0, 3, states.pulls.size), dtype=np.float64)
    means = np.sort(rng.uniform(0.01, 0.99, 6))
    log = states.log_probability(means) + stakes.strength * stakes.losses(means, leads)
    believed = np.exp(states.log_probability(means)).mean(axis=0)
    return log_optimal(np.exp(log), believed / believed.sum(), 1e-3)


def exact_moment(
    states: StopStates, leads: FloatArray, q: FloatArray, stakes: Stakes, mean: mpmath.mpf
) -> mpmath.mpf:
    """M(mean), with so many digits that roundings do not matter."""
    distance = min(abs(mean - mpmath.mpf(stakes.boundary)), mpmath.mpf(stakes.reach))
    strength = mpmath.mpf(stakes.strength)
    total = mpmath.mpf(0)
    for pulls, successes, log_paths, lead, each in zip(
        states.pulls, states.successes, states.log_paths, leads, q, strict=True
    ):
        paths = round(float(np.exp(log_paths)))
        likely = paths * mean ** int(successes) * (1 - mean) ** int(pulls - successes)
        taking = 0 if mean > stakes.boundary else distance
        leaving = distance if mean > stakes.boundary else 0
        taking -= mpmath.mpf(max(-float(lead), 0.0))  # what is charged more for taking it,
        leaving -= mpmath.mpf(max(float(lead), 0.0))  # and for leaving it out
        total += likely * mpmath.mpf(float(each)) * mpmath.exp(strength * max(taking, leaving))
    return total


@pytest.mark.rates
@pytest.mark.parametrize("part", range(10))
def test_no_mean_exceeds_the_bound_of_random_plans(part: int) -> None:
    rng = np.random.default_rng([2026, part])
    with mpmath.workdps(DIGITS):
        for _ in range(PLANS // 10):
            states, leads, stakes = random_plan(rng)
            q = random_q(rng, states, leads, stakes)

            worst = worst_moment(states, leads, q, stakes, 1e-3)

            corners = np.clip(stakes.boundary + stakes.reach * np.array([-1, 0, 1]), 0, 1)
            near = corners[1] + 1e-9 * np.array([-1, 1])
            kinks = np.clip(corners[1] + leads[np.isfinite(leads)], 0, 1)
            means = np.concatenate([[0, 1], corners, near, kinks, rng.uniform(0, 1, 12)])
            moments = [
                exact_moment(states, leads, q, stakes, mpmath.mpf(float(each))) for each in means
            ]
            assert max(moments) <= worst


def test_the_bound_is_tight() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        states, leads, stakes = random_plan(rng)
        q = random_q(rng, states, leads, stakes)
        means = np.linspace(1e-6, 1 - 1e-6, 3001)
        log = states.log_probability(means) + stakes.strength * stakes.losses(means, leads)
        largest = float((np.exp(log) @ q).max())

        worst = worst_moment(states, leads, q, stakes, 1e-4)

        assert largest <= worst <= largest * 1.02


def test_the_bound_is_tight_after_many_pulls() -> None:
    stops = np.ones(20_001, dtype=np.bool_)
    states = stop_states([Level(20_000, stops)], 0.9)
    leads = np.where(states.successes > 18_000, np.inf, -np.inf)
    stakes = Stakes(0.9, 40.0, 1.0)

    worst = worst_moment(states, stakes.capped(leads), np.ones(leads.size), stakes, 1e-4)

    means = np.linspace(0.88, 0.92, 2001)
    lost = stakes.strength * stakes.losses(means, stakes.capped(leads))
    largest = np.exp(states.log_probability(means) + lost).sum(axis=1).max()
    assert largest <= worst <= 1.001 * largest


def test_states_charged_infinitely_add_nothing() -> None:
    states, leads, stakes = random_plan(np.random.default_rng(5))
    q = np.ones(states.pulls.size)
    q[0] = 0.0

    less = worst_moment(states, leads, q, stakes, 1e-3)

    assert less <= worst_moment(states, leads, np.ones(q.size), stakes, 1e-3)
    mirrored = Stakes(stakes.boundary, stakes.strength, 5.0)  # reach beyond both ends
    assert worst_moment(states, leads, q, mirrored, 1e-3) >= less


def test_what_is_not_a_number_bounds_nothing() -> None:
    states, leads, stakes = random_plan(np.random.default_rng(5))

    leads[0] = np.nan

    assert worst_moment(states, leads, np.ones(states.pulls.size), stakes, 1e-3) == np.inf
