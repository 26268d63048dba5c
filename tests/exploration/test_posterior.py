"""The posterior that guides exploration, against a slow reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from shortlist.arrays import FloatArray, IntArray, product
from shortlist.exploration import tuning
from shortlist.exploration.posterior import Posterior
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian
from shortlist.search import Pulls, Rewards


def told(
    times: IntArray,
    sums: FloatArray,
    k: int,
    rewards: RewardModel,
    squares: FloatArray | None = None,
) -> Posterior:
    """A posterior that has seen these sums."""
    posterior = Posterior(times.size, k, rewards)
    posterior.add(
        Pulls(np.arange(times.size), times), Rewards(sums, sums if squares is None else squares)
    )
    posterior.refresh()
    return posterior


def crowd(n: int, seed: int = 0, most: int = 40, k: int | None = None) -> Posterior:
    """Many 0/1 arms, two groups of means, unequal pulls."""
    rng = np.random.default_rng(seed)
    times = rng.integers(2, most, n)
    return told(
        times, rng.binomial(times, rng.choice([0.3, 0.7], n)).astype(float), k or n // 3, Binary()
    )


def bayes(posterior: Posterior, log_likelihood: FloatArray) -> FloatArray:
    """Weights on the grid of every arm, one by one."""
    rows = [np.exp(row - row.max()) * posterior.prior for row in log_likelihood]
    return np.array([row / row.sum() for row in rows])


@pytest.mark.parametrize("n", [5, 80])
def test_the_posterior_of_0_1_rewards_is_bayes_rule_per_arm(n: int) -> None:
    posterior = crowd(n)
    log = np.array(
        [
            binom.logpmf(s, p, posterior.grid)
            for s, p in zip(posterior.sums, posterior.pulls, strict=True)
        ]
    )
    assert posterior.weights[posterior.row] == pytest.approx(bayes(posterior, log), abs=1e-12)
    assert posterior.means() == pytest.approx(bayes(posterior, log) @ posterior.grid)


def test_the_posterior_of_normal_rewards_is_bayes_rule_with_the_pooled_variance() -> None:
    rng = np.random.default_rng(1)
    draws = rng.normal(np.array([[3.0], [3.2], [4.1], [2.5]]), 0.2, (4, 25))
    times = np.full(4, 25)
    posterior = told(times, draws.sum(axis=1), 2, SubGaussian(0.5), (draws**2).sum(axis=1))
    assert posterior.variance() == pytest.approx(draws.var(axis=1, ddof=1).mean())
    log = norm.logpdf(
        posterior.grid, draws.mean(axis=1)[:, None], np.sqrt(posterior.variance() / 25)
    )
    assert posterior.weights[posterior.row] == pytest.approx(bayes(posterior, log), abs=1e-12)
    assert posterior.means() == pytest.approx(draws.mean(axis=1), abs=0.02)


def test_bounded_rewards_that_vary_less_are_known_better() -> None:
    rng = np.random.default_rng(2)
    mild, wild = rng.beta(40, 40, (6, 30)), rng.integers(0, 2, (6, 30)).astype(float)
    times = np.full(6, 30)
    one, other = (
        told(times, each.sum(axis=1), 2, Bounded(), (each**2).sum(axis=1)) for each in (mild, wild)
    )
    assert one.dispersion() == pytest.approx(mild.var() / 0.25, rel=0.1)
    assert other.dispersion() == pytest.approx(1, abs=0.15)
    spreads = [
        each.weights @ each.grid**2 - (each.weights @ each.grid) ** 2 for each in (one, other)
    ]
    assert np.all(spreads[0] < spreads[1])


def test_arms_with_equal_data_share_a_row() -> None:
    posterior = crowd(500, most=6)
    pairs = set(zip(posterior.pulls.tolist(), posterior.sums.tolist(), strict=True))
    assert posterior.weights.shape[0] == len(pairs) < 30
    for arm in range(0, 500, 37):
        same = (posterior.pulls == posterior.pulls[arm]) & (posterior.sums == posterior.sums[arm])
        assert np.array_equal(same, posterior.row == posterior.row[arm])


def test_every_step_of_the_fit_makes_the_data_likelier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FLOOR", 0.0)  # with a floor the prior is not free
    posterior = crowd(200)
    chance = binom.pmf(posterior.sums[:, None], posterior.pulls[:, None], posterior.grid)
    before = -np.inf
    for _ in range(5):
        likelihood = float(np.log(chance @ posterior.prior).sum())
        assert likelihood > before
        before = likelihood
        posterior.refresh()


def test_the_prior_is_learned_from_many_arms_and_flat_for_few() -> None:
    many, few = crowd(600), crowd(tuning.FEW - 1)
    for _ in range(3):
        many.refresh()
    near = np.minimum(np.abs(many.grid - 0.3), np.abs(many.grid - 0.7)) < 0.08
    assert many.prior[near].sum() > 1.8 * many.flat[near].sum()
    assert many.prior.sum() == pytest.approx(1)
    assert np.array_equal(few.prior, few.flat)


def test_the_grid_becomes_finer_where_it_matters() -> None:
    times = np.full(40, 20_000)
    sums = times * np.linspace(0.1, 0.9, 40)
    posterior = told(times, sums, 10, Binary())
    _, boundary = posterior.split(np.random.default_rng(0))
    error = np.sqrt(0.25 / 20_000)
    assert np.diff(posterior.grid)[np.abs(posterior.grid[1:] - boundary) < error].max() < error / 2
    assert posterior.grid.size < 150
    assert (
        np.abs(posterior.means() - sums / times)[np.abs(sums / times - boundary) < 0.05].max()
        < 2 * error
    )


def test_the_split_takes_the_largest_means_and_a_boundary_halfway() -> None:
    posterior = crowd(50, k=20)
    top, boundary = posterior.split(np.random.default_rng(3))
    means = posterior.means()
    assert top.sum() == 20
    assert means[top].min() >= means[~top].max() - 1e-6
    assert boundary == pytest.approx((means[top].min() + means[~top].max()) / 2)


def test_the_split_stays_until_there_are_more_rewards() -> None:
    posterior = told(np.full(40, 5), np.full(40, 2.0), 10, Binary())
    rng = np.random.default_rng(0)
    before, _ = posterior.split(rng)
    assert np.array_equal(posterior.split(rng)[0], before)
    posterior.refresh()
    assert not np.array_equal(posterior.split(rng)[0], before)  # all arms are tied


@pytest.mark.parametrize("seed", range(5))
def test_no_boundary_is_expected_to_lose_less_than_the_balanced_one(seed: int) -> None:
    posterior = crowd(60, seed, k=(5, 20, 30, 45, 55)[seed])
    # between two points of the grid it is interpolated
    for points, excess in ((50, 1.01), (100, 1.003)):
        posterior._grid.set((np.arange(points) + 0.5) / points)
        posterior.prior = posterior.flat
        posterior.refresh()
        top, _ = posterior.split(np.random.default_rng(seed))
        best = posterior.expected_loss(top, posterior.balance(top))
        others = [posterior.expected_loss(top, boundary) for boundary in np.linspace(0, 1, 501)]
        assert best <= min(others) * excess


def test_losses_are_expected_distances_on_the_wrong_side() -> None:
    posterior = crowd(40)
    top, boundary = posterior.split(np.random.default_rng(0))
    wrong = np.where(top[:, None], boundary - posterior.grid, posterior.grid - boundary).clip(0)
    plain = (posterior.weights[posterior.row] * wrong).sum(axis=1)
    assert posterior.expected_loss(top, boundary) == pytest.approx(plain.sum())
    log = np.array(
        [
            binom.logpmf(s, p, posterior.grid)
            for s, p in zip(posterior.sums, posterior.pulls, strict=True)
        ]
    )
    tempered = (bayes(posterior, tuning.TEMPER * log) * wrong).sum(axis=1)
    loss = posterior.loss(boundary).ravel()[posterior.kinds(top)]
    assert loss == pytest.approx(tempered)
    assert loss.sum() > plain.sum()


def test_rewards_of_an_arm_that_is_asked_for_twice_are_added_up() -> None:
    posterior = Posterior(2, 1, Binary())
    posterior.add(
        Pulls(np.array([0, 1, 0]), np.array([1, 2, 3])),
        Rewards(np.array([1.0, 1, 2]), np.array([1.0, 1, 2])),
    )
    assert posterior.pulls.tolist() == [4, 2]
    assert posterior.sums.tolist() == posterior.squares.tolist() == [3, 1]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_product_is_the_matrix_product(rows: int, inner: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.random((rows, inner)), rng.random((inner, columns))
    assert product(left, right) == pytest.approx(left @ right)


def test_means_far_from_zero_are_separated_where_there_is_no_range() -> None:
    means, times = 1e8 + np.array([0.9, 0.1, 0.7, 0.3, 0.5]), np.full(5, 200)
    posterior = told(times, means * times, 2, SubGaussian(0.5), (means**2 + 0.25) * times)
    top, _ = posterior.split(np.random.default_rng(0))
    assert np.flatnonzero(top).tolist() == [0, 2]


@pytest.mark.parametrize("mean", [0.0, 1.0, -3e17, 1e50])
def test_equal_constants_of_any_size_have_a_grid(mean: float) -> None:
    times = np.full(4, 9)
    posterior = told(times, np.full(4, 9 * mean), 1, SubGaussian(0.5), np.full(4, 9 * mean**2))
    assert np.all(np.diff(posterior.grid) > 0)
    assert posterior.weights.sum(axis=1) == pytest.approx(np.ones(4))


def test_the_grid_keeps_away_from_the_ends_of_the_range() -> None:
    posterior = told(np.append(308, np.full(39, 5929)), np.append(1.0, np.zeros(39)), 1, Binary())
    assert posterior.grid.min() > 1e-10
    assert posterior.grid.max() < 1 - 1e-10


def test_more_pulls_than_fit_into_a_key_are_counted_rightly() -> None:
    times = np.full(3, 3_100_000_000)
    posterior = told(times, np.round(times * np.array([0.6, 0.5, 0.4])), 1, Binary())
    assert posterior.means() == pytest.approx([0.6, 0.5, 0.4], abs=0.02)


def test_between_arms_that_are_far_apart_the_boundary_is_in_the_middle() -> None:
    times = np.full(2, 10_000)
    posterior = told(times, np.array([6000.0, 4000.0]), 1, Binary())
    assert posterior.balance(np.array([True, False])) == pytest.approx(0.5, abs=0.03)


def test_a_wide_spread_of_means_does_not_start_the_fit_over_with_every_batch() -> None:
    times = np.full(40, 100)
    means = np.linspace(-5, 5, 40)
    posterior = told(times, times * means, 20, SubGaussian(0.5), times * (means**2 + 0.25))
    grid = posterior.grid
    posterior.add(
        Pulls(np.arange(40), np.full(40, 3)),
        Rewards(3 * np.linspace(-5, 5, 40), 3 * (np.linspace(-5, 5, 40) ** 2)),
    )
    posterior.refresh()
    assert posterior.grid is grid
