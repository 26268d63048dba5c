"""Drafts: what they may cost, what they aim at, and whether what they predict comes true."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.split import expected_charges
from shortlist.certificates.split.expected_charges import ExpectedCharges, pull_counts
from shortlist.certificates.split.planning import Draft, Drafter
from shortlist.exploration.posterior import Posterior
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Pulls, Rewards

THRESHOLD = math.log(1 / 0.05)
NONE_MADE = np.zeros(40, dtype=np.int64)


def explored(
    rewards: RewardModel, pulls: int = 60, seed: int = 0
) -> tuple[Posterior, BoolArray, float]:
    """40 arms after some exploration, the 15 best of them and the boundary."""
    rng = np.random.default_rng(seed)
    times = rng.integers(pulls // 2, 2 * pulls, 40)
    sums = rng.binomial(times, rng.permutation(np.linspace(0.05, 0.95, 40))).astype(float)
    posterior = Posterior(40, 15, rewards)
    posterior.add(Pulls(np.arange(40), times), Rewards(sums, sums))
    posterior.refresh()
    chosen, _ = posterior.split(rng)
    return posterior, chosen, posterior.balance(chosen)


def drafted(
    rewards: RewardModel,
    made: IntArray = NONE_MADE,
    pulls: int = 60,
    reach: float = 0.6,
    **goal: Any,
) -> Draft | None:
    posterior, chosen, boundary = explored(rewards, pulls)
    return Drafter(posterior, chosen, boundary, made, reach).draft(
        3 * THRESHOLD / 0.6, THRESHOLD, **goal
    )


@given(st.integers(1, 10**7))
def test_numbers_of_pulls_begin_alike_grow_by_the_ratio_and_reach_the_most(most: int) -> None:
    counts = pull_counts(most)
    assert counts[-1] >= most
    assert counts.size == 1 or counts[-2] < most
    assert np.array_equal(counts, pull_counts(10**8)[: counts.size])
    assert np.all(np.diff(counts) >= 1)
    assert np.all(
        counts[1:] <= np.maximum(counts[:-1] + 1, counts[:-1] * expected_charges.PULLS_RATIO)
    )


@pytest.mark.parametrize("rewards", [Binary(), Bounded(), SubGaussian(0.5)])
def test_a_draft_keeps_to_its_target_and_says_what_it_costs(rewards: RewardModel) -> None:
    made = np.where(np.arange(40) % 3 == 0, 10, 0)
    for target in (0.6, 0.9):
        found = drafted(rewards, made, target=target)
        assert found is not None
        assert found.expected <= target
        assert np.all(found.pulls >= np.maximum(made, 1))
        assert found.cost == (found.pulls - made).sum()
        assert np.all(found.slope <= found.strength)
        assert isinstance(rewards, Binary) or np.all(found.start == -np.inf)


@pytest.mark.parametrize("rewards", [Binary(), Bounded(), SubGaussian(0.5)])
def test_a_draft_keeps_to_its_budget_and_more_budget_promises_more(rewards: RewardModel) -> None:
    before = math.inf
    for budget in (40, 100, 1000, 5000):
        found = drafted(
            rewards, budget=budget, reach=math.inf if isinstance(rewards, SubGaussian) else 1.0
        )
        assert found is not None
        assert found.cost <= budget
        assert found.expected <= before + 1e-9
        before = found.expected


def test_there_is_no_draft_for_too_small_a_budget_or_target() -> None:
    assert drafted(Binary(), budget=39) is None
    assert drafted(Binary(), target=THRESHOLD / (3 * THRESHOLD / 0.6)) is None


def test_with_nothing_left_to_spend_the_pulls_that_were_made_are_the_draft() -> None:
    made = np.repeat(pull_counts(40)[[5, -1]], 20)
    found = drafted(Binary(), made, budget=0)
    assert found is not None
    assert found.pulls.tolist() == made.tolist()
    assert found.cost == 0


def test_a_looser_target_and_pulls_made_before_cost_less() -> None:
    costs = [
        drafted(Binary(), target=0.6),
        drafted(Binary(), target=0.8),
        drafted(Binary(), np.full(40, 10), target=0.6),
    ]
    strict, *easier = [found.cost if found else math.inf for found in costs]
    assert all(cost < strict for cost in easier)


def test_arms_near_the_boundary_are_pulled_most() -> None:
    found = drafted(Binary(), pulls=300, target=0.6)
    assert found is not None
    posterior, _, boundary = explored(Binary(), 300)
    order = np.argsort(np.abs(posterior.means() - boundary))
    assert found.pulls[order[:10]].mean() > 4 * found.pulls[order[-10:]].mean()


@pytest.mark.parametrize("rewards", [Binary(), Bounded(), SubGaussian(0.5)])
def test_the_bound_to_expect_is_the_mean_over_means_from_the_posterior_and_fresh_rewards(
    rewards: RewardModel,
) -> None:
    posterior, _, _ = explored(rewards)
    found = drafted(rewards, target=0.6)
    assert found is not None
    certificate = found.declare(0.05, 0.6, rewards)
    rng = np.random.default_rng(1)
    bounds = [
        15 * certificate.bound(fresh_sums(posterior, found.pulls, rewards, rng)) for _ in range(300)
    ]
    charge = np.mean(bounds) - THRESHOLD / found.strength
    error = float(4 * np.std(bounds)) / math.sqrt(300)
    assert charge == pytest.approx(found.expected - THRESHOLD / found.strength, rel=0.15, abs=error)


def fresh_sums(
    posterior: Posterior, pulls: IntArray, rewards: RewardModel, rng: np.random.Generator
) -> FloatArray:
    """Rewards of means drawn from the posterior, with the variance that it believes in."""
    cumulated = posterior.weights[posterior.row].cumsum(axis=1)
    means = posterior.grid[
        np.minimum((cumulated < rng.random((40, 1))).sum(axis=1), posterior.grid.size - 1)
    ]
    if isinstance(rewards, Binary):
        return rng.binomial(pulls, means).astype(np.float64)
    variance = (
        posterior.variance()
        if isinstance(rewards, SubGaussian)
        else means * (1 - means) * posterior.dispersion()
    )
    sums: FloatArray = pulls * means + np.sqrt(pulls * variance) * rng.standard_normal(40)
    return sums


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("strength", [5.0, 25.0])
def test_the_charge_predicted_for_a_mean_is_that_of_its_certificate(
    inside: bool, strength: float
) -> None:
    """Candidates whose start turns out to be too high for any offset are left out."""
    posterior, _, _ = explored(Binary())
    reach, boundary = 0.6, 0.6
    expected = ExpectedCharges(posterior, boundary, reach, 400)
    side, arm = int(inside), 0 if inside else 1
    charges = expected.at(strength)[side]
    candidates = expected.candidates
    rng = np.random.default_rng(2)
    agree: dict[int, list[bool]] = {count: [] for count in pull_counts(400).tolist()}
    with_start = []  # numbers of pulls
    for each in np.flatnonzero(charges[0] < 1e6):
        count, start, part = (
            int(candidates.pulls[side, each]),
            candidates.start[side, each],
            candidates.part[side, each],
        )
        certificate = Draft(
            np.array([True, False]),
            boundary,
            strength,
            np.full(2, count),
            np.full(2, start),
            np.full(2, part * strength),
            0,
            0,
        ).declare(0.05, reach, Binary())
        if certificate.start[arm] != start:
            continue
        if np.isfinite(start):
            with_start.append(count)
        for point in np.searchsorted(posterior.grid, [0.1, 0.3, 0.5, 0.7, 0.9]):
            sums = np.tile(
                rng.binomial(count, posterior.grid[point], 20_000).astype(float), (2, 1)
            ).T
            charge = certificate.charges(sums)[:, arm]
            error = 5 * charge.std() / math.sqrt(20_000)
            agree[count].append(
                charges[point, each] == pytest.approx(charge.mean(), rel=0.1, abs=error + 2e-3)
            )
    assert all(all(agree[count]) for count in (1, 8, 40, 414))
    everywhere = [agreed for some in agree.values() for agreed in some]
    assert len(everywhere) >= 100
    # where a start is almost too high, offsets are larger than the points show
    assert np.mean(everywhere) > 0.95
    if strength == 5:  # binomial charges, binomial offsets, and normal ones
        for least, most in ((1, 16), (17, 64), (65, 414)):
            assert any(least <= count <= most for count in with_start)


def test_pulls_made_are_never_taken_back_however_many_there_are() -> None:
    posterior, chosen, boundary = explored(SubGaussian(0.5))
    made = np.ones(40, dtype=np.int64)
    made[::7] = pull_counts(2**58)[-1]
    for budget in (0, 10**6, 2**60):
        found = Drafter(posterior, chosen, boundary, made, math.inf).draft(
            3 * THRESHOLD / 0.6, THRESHOLD, budget=budget
        )
        assert found is not None
        assert np.all(found.pulls >= made)
        assert found.cost <= budget
