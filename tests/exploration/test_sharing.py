"""Ranking and sharing out, against what they say of themselves."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist.arrays import grouped, grouped_by
from shortlist.exploration.posterior import descending, share_out

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=30), SEEDS)
def test_descending_is_a_permutation_from_large_to_small(values: list[int], seed: int) -> None:
    order = descending(np.array(values, dtype=float), np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(len(values)))
    assert [values[i] for i in order] == sorted(values, reverse=True)


def test_ties_are_broken_at_random_and_so_are_differences_in_the_last_bits() -> None:
    rng = np.random.default_rng(4)
    values = np.array([0.5, 0.5 + 1e-15, 0.1, 0.5 - 1e-15])
    firsts = np.bincount([descending(values, rng)[0] for _ in range(3000)], minlength=4)
    assert firsts[2] == 0
    assert binom.cdf(firsts[[0, 1, 3]].min(), 3000, 1 / 3) > 1e-4


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_groups_are_those_of_numpy(keys: list[int]) -> None:
    distinct, group = grouped(np.array(keys))
    expected, positions = np.unique(keys, return_inverse=True)
    assert np.array_equal(distinct, expected)
    assert np.array_equal(group, positions)


@given(
    st.lists(st.tuples(*[st.sampled_from([-np.inf, 0.0, 0.25, 7.0])] * 3), min_size=1, max_size=40)
)
def test_rows_of_a_table_are_grouped_like_by_numpy(rows: list[tuple[float, float, float]]) -> None:
    table = np.array(rows)
    distinct, group = grouped_by(*table.T)
    assert np.array_equal(np.array(distinct).T[group], table)
    assert distinct[0].size == len(set(rows))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 200),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 30)), min_size=1, max_size=8),
    st.lists(st.integers(0, 7), min_size=1, max_size=30),
    SEEDS,
)
def test_a_batch_goes_to_the_highest_priorities_and_no_arm_gets_too_much(
    batch: int, kinds: list[tuple[int, int]], arms: list[int], seed: int
) -> None:
    priority, at_most = (np.array(column) for column in zip(*kinds, strict=True))
    kind = np.array(arms) % priority.size
    times = share_out(batch, kind, priority.astype(float), at_most, np.random.default_rng(seed))
    most, rank = at_most[kind], priority[kind]
    assert times.sum() == min(batch, most.sum())
    assert np.all((times >= 0) & (times <= most))
    for arm in np.flatnonzero(times):
        assert np.all(times[rank > rank[arm]] == most[rank > rank[arm]])


def test_arms_of_one_kind_share_a_batch_at_random() -> None:
    rng = np.random.default_rng(5)
    kind, priority = np.array([0, 1, 1, 1, 1]), np.array([2.0, 1.0])
    drawn = np.array([share_out(5, kind, priority, np.array([3, 2]), rng) for _ in range(3000)])
    assert np.all(drawn[:, 0] == 3)
    assert np.all(np.sort(drawn[:, 1:], axis=1) == [0, 0, 0, 2])
    assert binom.cdf((drawn[:, 1:] > 0).sum(axis=0).min(), 3000, 1 / 4) > 1e-4
