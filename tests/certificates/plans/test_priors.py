"""Priors: smooth where rewards do not tell, and sharpened where they tell of ties."""

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief, RewardCounts, smooth_priors
from shortlist.certificates.plans.bound import Stakes
from shortlist.certificates.plans.search import PlanLook

TIED = np.repeat([0.97, 0.9, 0.4], [30, 570, 400])  # of which 100 are to be chosen


def belief(means: FloatArray, k: int, seed: int, *, pulls: int = 30, sharpen: bool) -> Belief:
    rng = np.random.default_rng(seed)
    times = np.full(means.size, pulls)
    sums = rng.binomial(times, means).astype(np.float64)
    return Belief(times, sums, k, float(np.sort(means)[-k]), sharpen=sharpen)


def test_a_prior_is_as_smooth_as_the_rewards_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    pulls = np.full(400, 30)
    groups = rng.binomial(pulls, np.repeat([0.7, 0.3], [100, 300])).astype(np.float64)
    even = rng.binomial(pulls, np.linspace(0.1, 0.9, 400)).astype(np.float64)

    smooth = Belief(pulls, even, 100, 0.7)
    apart = between(Belief(pulls, groups, 100, 0.5))

    assert smooth.boundary == pytest.approx(0.7, abs=0.03)
    density = (smooth.expected / np.gradient(smooth.grid))[
        (smooth.grid > 0.3) & (smooth.grid < 0.7)
    ]
    assert density.max() < 2 * density.min()  # the likeliest prior would be made of spikes
    monkeypatch.setattr(tuning, "LIKELIHOOD_GAIN", -100.0)
    sharpest = between(Belief(pulls, groups, 100, 0.5))
    monkeypatch.setattr(tuning, "BANDWIDTHS", tuning.BANDWIDTHS[:1])
    assert sharpest <= apart < 0.8 * between(Belief(pulls, groups, 100, 0.5))


def between(belief: Belief) -> float:
    """Arms that are expected where there are none."""
    return float(belief.expected[(belief.grid > 0.4) & (belief.grid < 0.6)].sum())


@pytest.mark.parametrize("seed", range(4))
def test_a_sharpened_prior_puts_the_boundary_nearer_to_ties(seed: int) -> None:
    smooth = belief(TIED, 100, seed, sharpen=False)
    sharp = belief(TIED, 100, seed, sharpen=True)

    assert abs(sharp.boundary - 0.9) < abs(smooth.boundary - 0.9)
    assert sharp.prior.sum() == pytest.approx(1)
    near = np.abs(smooth.grid - 0.9) < 0.01
    assert sharp.expected[near].sum() > smooth.expected[near].sum()


def test_boundaries_are_declared_ahead_of_where_a_sharper_prior_puts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    smooth, sharp = (belief(TIED, 100, 3, sharpen=each) for each in (False, True))

    assert sharp.moved == sharp.boundary - smooth.boundary
    assert sharp.moved < 0
    most = tuning.MOST_AHEAD * sharp.error
    ahead = max(tuning.MOVED_AHEAD * sharp.moved, -most)
    assert sharp.middle == pytest.approx(sharp.boundary + ahead)
    assert smooth.middle == smooth.boundary
    declared = PlanLook(sharp, Stakes(sharp.boundary, 30.0, 1.0), 0.01).boundaries[0]
    assert declared.values[declared.thresholds.argmin()] == pytest.approx(sharp.middle)
    monkeypatch.setattr(tuning, "MOVED_AHEAD", 100.0)
    assert sharp.middle == pytest.approx(sharp.boundary - most)


def test_a_prior_that_stands_still_is_as_good_as_one_of_many_more_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = belief(TIED, 100, 3, sharpen=False)

    def priors(still: float) -> FloatArray:
        monkeypatch.setattr(tuning, "EM_CHANGE", still)
        return smooth_priors(known.rows, known.grid)[0]

    usual, longest, shortest = priors(tuning.EM_CHANGE), priors(0.0), priors(2.0)

    assert np.abs(usual - longest).sum(axis=1).max() < 0.01
    assert np.abs(shortest - longest)[0].sum() > 0.1


def test_a_prior_is_not_sharpened_where_the_boundary_is_hardly_known() -> None:
    means = np.linspace(0.9, 0.1, 60)

    smooth, sharp = (belief(means, 20, 1, sharpen=each) for each in (False, True))

    assert sharp.boundary == smooth.boundary
    assert (sharp.prior == smooth.prior).all()


def test_a_prior_is_not_sharpened_where_the_boundary_is_between_groups() -> None:
    means = np.repeat([0.7, 0.3], [400, 1600])

    smooth, sharp = (belief(means, 400, 2, pulls=60, sharpen=each) for each in (False, True))

    assert abs(smooth.boundary - 0.5) < 0.1  # nowhere near the 400th arm
    assert sharp.boundary == smooth.boundary


def test_rewards_that_are_expected_anew_are_as_many_and_as_good() -> None:
    rows = RewardCounts(
        np.array([5.0, 5.0, 12.0]), np.array([1.0, 4.0, 6.0]), np.array([3.0, 2.0, 7.0])
    )
    grid = np.array([0.2, 0.5, 0.8])
    posterior = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0]])

    anew = rows.replayed(posterior, grid)

    assert anew.sizes.sum() == pytest.approx(12, abs=1e-4)
    few = anew.pulls == 5
    assert anew.sizes[few].sum() == pytest.approx(5)
    assert anew.sizes[few] @ anew.successes[few] == pytest.approx(5 * (3 * 0.2 + 2 * 0.65))
    assert anew.sizes[~few] @ anew.successes[~few] == pytest.approx(7 * 6, abs=1e-3)
    assert anew.deviation == pytest.approx(rows.deviation)
