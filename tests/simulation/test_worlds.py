"""Batches of rewards have the law of as many rewards drawn one by one."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from shortlist.arrays import FloatArray
from shortlist.simulation import worlds as bandit_module
from shortlist.simulation.worlds import (
    Bandit,
    BernoulliBandit,
    BetaBandit,
    GaussianBandit,
    _portions,
)

MEAN, TIMES, DRAWS = 0.3, 6, 4000
ALIKE = 1e-3  # p-value below which two samples of one law would be a surprise

OneByOne = Callable[[np.random.Generator, tuple[int, int]], FloatArray]
KINDS: dict[str, tuple[Callable[[FloatArray], Bandit], OneByOne]] = {
    "bernoulli": (BernoulliBandit, lambda rng, shape: (rng.random(shape) < MEAN).astype(float)),
    "beta": (BetaBandit, lambda rng, shape: rng.beta(4 * MEAN, 4 * (1 - MEAN), shape)),
    "gaussian": (GaussianBandit, lambda rng, shape: rng.normal(MEAN, 0.5, shape)),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[Callable[[FloatArray], Bandit], OneByOne]:
    return KINDS[request.param]


def test_sums_and_squares_of_a_batch_have_the_distribution_of_single_rewards(
    kind: tuple[Callable[[FloatArray], Bandit], OneByOne], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandit_module, "CHUNK", 1001)  # cuts through entries
    make, one_by_one = kind
    rng = np.random.default_rng(1)
    given = make(np.array([0.9, MEAN])).pull(
        np.ones(DRAWS, dtype=np.int64), np.full(DRAWS, TIMES), rng
    )
    expected = one_by_one(rng, (DRAWS, TIMES))
    assert ks_2samp(given.sums, expected.sum(1)).pvalue > ALIKE
    assert ks_2samp(given.squares, (expected**2).sum(1)).pvalue > ALIKE
    spread = given.squares - given.sums**2 / TIMES  # ties sums and squares together
    assert ks_2samp(spread, (expected**2).sum(1) - expected.sum(1) ** 2 / TIMES).pvalue > ALIKE


def test_every_entry_is_answered_on_its_own_and_zero_pulls_give_zero(
    kind: tuple[Callable[[FloatArray], Bandit], OneByOne],
) -> None:
    make, _ = kind
    arms, times = np.array([1, 0, 1, 1]), np.array([10_000, 0, 10_000, 40_000])
    given = make(np.array([0.1, 0.6])).pull(arms, times, np.random.default_rng(2))
    assert given.sums[1] == given.squares[1] == 0
    assert given.sums[[0, 2, 3]] / times[[0, 2, 3]] == pytest.approx([0.6, 0.6, 0.6], abs=0.03)
    assert given.sums[0] != given.sums[2]


def test_long_entries_of_beta_rewards_have_the_distribution_of_shorter_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arms, times = np.ones(DRAWS, dtype=np.int64), np.full(DRAWS, 400)
    bandit, rng = BetaBandit(np.array([0.9, MEAN])), np.random.default_rng(5)
    one_by_one = bandit.pull(arms, times, rng)
    monkeypatch.setattr(bandit_module, "NORMAL_FROM", 100)
    at_once = bandit.pull(arms, times, rng)
    assert ks_2samp(at_once.sums, one_by_one.sums).pvalue > ALIKE
    assert ks_2samp(at_once.squares, one_by_one.squares).pvalue > ALIKE
    spread, expected = (each.squares - each.sums**2 / 400 for each in (at_once, one_by_one))
    assert ks_2samp(spread, expected).pvalue > ALIKE
    constant = BetaBandit(np.array([0.0, 1.0])).pull(np.array([0, 1]), times[:2], rng)
    assert constant.sums.tolist() == constant.squares.tolist() == [0, 400]


def test_beta_rewards_with_mean_0_or_1_are_constant() -> None:
    given = BetaBandit(np.array([0.0, 1.0])).pull(
        np.array([0, 1]), np.array([7, 7]), np.random.default_rng(0)
    )
    assert given.sums.tolist() == given.squares.tolist() == [0, 7]


def test_rewards_keep_to_the_declared_model(
    kind: tuple[Callable[[FloatArray], Bandit], OneByOne],
) -> None:
    bandit = kind[0](np.array([0.2, 0.8]))
    single = bandit.pull(
        np.repeat([0, 1], 500), np.ones(1000, dtype=np.int64), np.random.default_rng(3)
    )
    assert all(bandit.model.admits(reward) for reward in single.sums)


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 25))
def test_portions_are_small_and_add_up(times: list[int], chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bandit_module, "CHUNK", chunk)
        portions = list(_portions(np.array(times, dtype=np.int64)))
    assert all(portion.sum() <= chunk and (portion >= 0).all() for portion in portions)
    assert np.sum(portions, axis=0).tolist() == times if portions else sum(times) == 0
