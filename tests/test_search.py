"""The pieces searches are made of: asking for rewards, choosing the best, looking from below."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from shortlist import Bounded, Experiment, FixedBudget, Problem
from shortlist.algorithms.steps import best, sample
from shortlist.certificates.frame import mirrored
from shortlist.driver import to_unit_scale
from shortlist.search import Answer, Progress, Pulls, Rewards, Search, moments_by_entry

values = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=12)


@given(values, st.data())
def test_best_are_the_k_largest_from_large_to_small(
    numbers: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, len(numbers)))
    chosen = best(np.array(numbers), k, np.random.default_rng(0))
    assert len(set(chosen.tolist())) == k
    assert [numbers[position] for position in chosen] == sorted(numbers, reverse=True)[:k]


def test_best_breaks_ties_by_the_rng_each_tied_set_equally_likely() -> None:
    rng = np.random.default_rng(4)
    tied = np.array([0.5, 0.9, 0.5, 0.5, 0.1])
    chosen = np.array([best(tied, 2, rng) for _ in range(3000)])
    assert (chosen[:, 0] == 1).all()
    counts = np.bincount(chosen[:, 1], minlength=5)
    assert counts[[1, 4]].tolist() == [0, 0]
    assert chisquare(counts[[0, 2, 3]]).pvalue > 1e-3


def test_best_gives_tied_winners_in_random_order() -> None:
    rng = np.random.default_rng(5)
    first = np.bincount([best(np.ones(4), 4, rng)[0] for _ in range(2000)])
    assert chisquare(first).pvalue > 1e-3


def test_sample_asks_once_and_returns_means() -> None:
    progress = Progress(round=3)
    sampling = sample(np.array([4, 7]), np.array([2, 5]), progress)
    request = next(sampling)
    assert (request.arms.tolist(), request.times.tolist(), request.total) == ([4, 7], [2, 5], 7)
    assert request.progress is progress
    with pytest.raises(StopIteration) as stop:
        sampling.send(Rewards(np.array([1.0, 2.0]), np.array([1.0, 2.0])))
    assert stop.value.value.tolist() == [0.5, 0.4]


def test_sample_leaves_out_arms_pulled_zero_times() -> None:
    sampling = sample(np.array([4, 7, 9]), np.array([0, 5, 0]))
    assert next(sampling).arms.tolist() == [7]
    with pytest.raises(StopIteration) as stop:
        sampling.send(Rewards(np.array([2.0]), np.array([2.0])))
    assert stop.value.value.tolist() == [0, 0.4, 0]


def test_sample_of_nothing_asks_nothing() -> None:
    with pytest.raises(StopIteration) as stop:
        next(sample(np.array([4, 7]), 0))
    assert stop.value.value.tolist() == [0, 0]


def bottom_three(seen: list[Rewards]) -> Search:
    """Pull arms 0..4 three times and choose the three with the largest (mirrored) sums."""
    reply = yield Pulls(np.arange(5), np.full(5, 3))
    seen.append(reply)
    return Answer(np.argsort(-reply.sums)[:3], 0.2, 0.9, {"key": 1})


def test_a_mirrored_search_sees_one_minus_x_and_returns_the_others_with_the_same_total_loss() -> (
    None
):
    rewards = np.array([[1, 0.5, 0], [0.9, 0.8, 1], [0, 0, 0.1], [1, 1, 1], [0.2, 0.1, 0]])
    seen: list[Rewards] = []
    search = mirrored(bottom_three(seen), 5)
    request = next(search)
    assert request.times.tolist() == [3] * 5
    with pytest.raises(StopIteration) as stop:
        search.send(Rewards(rewards.sum(1), (rewards**2).sum(1)))
    np.testing.assert_allclose(seen[0].sums, (1 - rewards).sum(1))
    np.testing.assert_allclose(seen[0].squares, ((1 - rewards) ** 2).sum(1))
    answer = stop.value.value
    assert sorted(answer.top) == [1, 3]
    assert answer.regret_bound == pytest.approx(0.2 * 3 / 2)
    assert (answer.confidence, answer.evidence) == (0.9, {"key": 1})


def test_a_mirrored_search_without_a_guarantee_stays_without() -> None:
    def silent() -> Search:
        yield Pulls(np.array([0]), np.array([1]))
        return Answer(np.array([1]))

    search = mirrored(silent(), 3)
    next(search)
    with pytest.raises(StopIteration) as stop:
        search.send(Rewards(np.zeros(1), np.zeros(1)))
    assert sorted(stop.value.value.top) == [0, 2]
    assert stop.value.value.regret_bound is None


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e13])
def test_long_sums_keep_their_digits_far_from_zero(offset: float) -> None:
    rng = np.random.default_rng(0)
    rewards, entries = offset + rng.choice([0.0, 0.26], 200_000), rng.integers(0, 3, 200_000)
    sums, _ = moments_by_entry(rewards, entries, 4)
    for entry in range(3):
        exact = math.fsum(rewards[entries == entry])
        assert abs(sums[entry] - exact) <= max(1e-7, 4 * np.spacing(abs(exact)))
    assert sums[3] == 0


@pytest.mark.parametrize("far", [1e4, 1e6, 1e8])
def test_no_variance_of_a_large_batch_far_from_zero_is_too_small(far: float) -> None:
    rng, pulls = np.random.default_rng(0), 50_000
    problem = Problem(2, 1, FixedBudget(1), Bounded(far, far + 1))
    for shares in ([0.3, 0.7], [0.1, 0.9], [0.45, 0.55]):
        rewards = far + rng.choice(shares, pulls)
        told = Rewards(*moments_by_entry(rewards, np.zeros(pulls, dtype=np.int64), 1))
        unit = to_unit_scale(told, Pulls(np.array([0]), np.array([pulls])), problem)
        assert unit.squares[0] >= math.fsum((rewards - far) ** 2)


def test_intervals_far_from_zero_have_the_means_of_all_rewards() -> None:
    far, pulls = 2.0**29, 6_000  # rewards that a long sum would round down, every one
    experiment = Experiment.create(2, 1, budget=pulls, rewards=(far, far + 1), algorithm="uniform")
    while tickets := experiment.ask(pulls):
        experiment.tell_many([(ticket, far + 0.2) for ticket in tickets])
    assert np.allclose(experiment.status().arms.means - far, 0.2, atol=1e-6, rtol=0)
