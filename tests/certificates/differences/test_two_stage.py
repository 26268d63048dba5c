"""The two-stage sample behind the race on differences."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

import shortlist
from shortlist.certificates.differences.fallback import (
    FIRST_PULLS,
    MOST_SHARE,
    SAMPLE_LEAD,
    WORSE,
    TwoStageSample,
    _cells,
    fallback_share,
    two_stage_constant,
)


@pytest.mark.parametrize(("first", "alpha"), [(20, 0.05), (40, 0.002)])
def test_two_arms_change_places_with_the_allowed_probability(first: int, alpha: float) -> None:
    h, nu = two_stage_constant(alpha, first), first - 1

    scores = np.linspace(-8, 8, 801)
    variables = chi2.ppf(norm.cdf(scores), nu) / nu
    spread = 1 / variables[:, None] + 1 / variables[None, :]
    density = norm.pdf(scores)
    wrong = density @ norm.cdf(-h / np.sqrt(spread)) @ density * (scores[1] - scores[0]) ** 2
    assert 0.93 * alpha < wrong <= alpha


def test_the_constant_of_two_arms_is_that_of_the_tables() -> None:
    """Rinott's constant for two arms, 20 first pulls, probability .95: 2.453."""
    assert two_stage_constant(0.05, 20) == pytest.approx(2.453, rel=0.01)


@pytest.mark.parametrize("alpha", [1e-12, 1e-20, 1e-60])
def test_a_constant_is_found_however_small_the_probability(alpha: float) -> None:
    h, edges = two_stage_constant(alpha, 30), np.geomspace(alpha * 1e-4, 0.999, 2000)
    ends = chi2.ppf(edges, 29) / 29
    assert np.allclose(chi2.cdf(ends * 29, 29), edges, rtol=1e-6)
    middle, chances = np.sqrt(ends[1:] * ends[:-1]), np.diff(edges)
    wrong = chances @ norm.cdf(-h / np.sqrt(1 / middle[:, None] + 1 / middle)) @ chances
    assert 0.7 * alpha < wrong <= alpha


@pytest.mark.parametrize("algorithm", ["certified", "rinott"])
def test_the_smallest_delta_is_no_error(algorithm: str) -> None:
    rng = np.random.default_rng(0)
    result = shortlist.select(
        lambda arm: rng.normal(arm, 1e-3), arms=2, k=1, epsilon=50, delta=1e-60,
        rewards="normal", algorithm=algorithm, progress=False,
    )  # fmt: skip
    assert result.reached


@pytest.mark.parametrize("pairs", [1, 4, 9, 24, 300])
def test_samples_are_little_larger_than_those_of_the_procedure_alone(pairs: int) -> None:
    share = fallback_share(pairs, 0.05)
    assert 0 < share <= MOST_SHARE
    alone = two_stage_constant(0.05 / pairs, 20) ** 2
    assert two_stage_constant(share * 0.05 / pairs) ** 2 <= 1.06 * WORSE * alone


def test_the_size_of_a_sample_rests_on_the_first_pulls_only() -> None:
    rng = np.random.default_rng(1)
    rewards = rng.normal(5e8, 3.0, 400)
    sample, other = TwoStageSample(3, 1, 0.05), TwoStageSample(3, 1, 0.05)
    sample.take(0, rewards)
    for part in np.split(rewards, [1, 7, FIRST_PULLS - 1, 200]):
        other.take(0, part)
    assert sample.sizes[0] == other.sizes[0] > FIRST_PULLS
    assert sample.means()[0] == pytest.approx(other.means()[0], abs=1e-6)
    size = min(400, int(sample.sizes[0]))
    assert sample.known.tolist() == [True, False, False]
    assert sample.missing.tolist() == [max(0, int(sample.sizes[0]) - 400), FIRST_PULLS, FIRST_PULLS]
    if size < 400:
        assert sample.means()[0] == pytest.approx(rewards[:size].mean(), abs=1e-6)


def test_pulls_beyond_the_sample_are_not_counted() -> None:
    sample = TwoStageSample(2, 1, 0.05)
    first = np.tile([0.9, 1.1], FIRST_PULLS // 2)  # a tiny variance: no more pulls are needed
    sample.take(0, first)
    sample.take(0, np.full(100, 7.0))
    assert sample.sizes[0] == FIRST_PULLS
    assert not sample.missing[0]
    assert sample.means()[0] == pytest.approx(1.0)


def drawn(n_arms: int, sizes: list[int], sd: float = 5.0) -> TwoStageSample:
    """Samples of which the arms have had this many pulls."""
    sample, rng = TwoStageSample(n_arms, 1, 0.05), np.random.default_rng(2)
    for arm, size in enumerate(sizes):
        if size:
            sample.take(arm, rng.normal(0, sd, size))
    return sample


def test_samples_are_completed_when_that_takes_few_pulls_or_the_race_took_too_many() -> None:
    both, usual = np.array([0, 1]), int(drawn(2, [FIRST_PULLS] * 2).sizes.max())
    assert not drawn(2, [FIRST_PULLS - 1, FIRST_PULLS]).due(both)
    assert not drawn(2, [FIRST_PULLS] * 2).due(both)
    assert drawn(2, [2 * usual] * 2).due(both)
    # the first arm has had far more than its sample, and the other two little
    assert not drawn(3, [usual, FIRST_PULLS, FIRST_PULLS]).due(np.arange(3))
    assert drawn(3, [4 * usual, FIRST_PULLS, FIRST_PULLS]).due(np.arange(3))


def test_complete_samples_bound_pairs_in_the_order_of_their_means() -> None:
    sample = drawn(3, [], sd=0.01)
    for arm, mean in enumerate([1.0, 3.0, 2.0]):
        sample.take(arm, mean + np.tile([-0.01, 0.01], (FIRST_PULLS - 2 * (arm == 2)) // 2))
    assert sample.complete.tolist() == [True, True, False]
    bounds = sample.bounds(np.array([0, 1]), np.array([0, 1, 2]))
    assert bounds[1, 0] == SAMPLE_LEAD
    assert np.isinf(bounds[0, 1])
    assert np.isinf(bounds[:, 2]).all()


def test_cells_cover_all_of_the_probability_from_their_lower_ends() -> None:
    chances, low = _cells.__wrapped__(19, 1e-15)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert low[0] == 0
    assert (np.diff(low) > 0).all()
    assert np.allclose(chi2.cdf(low * 19, 19), np.cumsum(chances) - chances, atol=1e-12)
