"""The five notions of optimality, and which of them imply which."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.errors import InvalidInput
from shortlist.regret import (
    ROUNDING,
    aggregate_regret,
    elementwise,
    expected_aggregate_regret,
    explore_k,
    misidentification_probability,
    misidentified,
)

MEANS = np.array([0.5, 0.9, 0.1, 0.7, 0.3])


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[float], list[int], float]:
    """Means, some of them equal, a set of arms, and a loss."""
    means = draw(
        st.lists(
            st.integers(0, 10).map(lambda level: level / 10) | st.floats(0, 1),
            min_size=2,
            max_size=8,
        )
    )
    top = draw(st.lists(st.integers(0, len(means) - 1), min_size=1, unique=True))
    return means, top, draw(st.floats(0, 1))


def test_each_notion_on_one_set() -> None:
    top = [3, 0]  # means 0.7 and 0.5, where 0.9 and 0.7 are best
    assert aggregate_regret(MEANS, top) == pytest.approx(0.2)
    assert misidentified(MEANS, top)
    assert explore_k(MEANS, top, 0.2)
    assert not explore_k(MEANS, top, 0.19)
    assert elementwise(MEANS, top, 0.2)
    assert not elementwise(MEANS, top, 0.19)


def test_notions_over_runs_are_averages() -> None:
    tops = [[1, 3], [1, 0], [3, 1], [2, 4]]
    assert expected_aggregate_regret(MEANS, tops) == pytest.approx((0 + 0.1 + 0 + 0.6) / 4)
    assert misidentification_probability(MEANS, tops) == 0.5


def test_every_best_set_is_right_when_there_are_ties() -> None:
    tied = [0.8, 0.5, 0.5, 0.2]
    assert not misidentified(tied, [0, 1])
    assert not misidentified(tied, [2, 0])
    assert misidentified(tied, [1, 2])  # above theta_K everywhere, and yet the best arm is missing


def test_small_regret_does_not_imply_explore_k() -> None:
    means = [0.5] * 11 + [0.4]
    top = [*range(9), 11]  # one of ten arms is 0.1 too low
    assert aggregate_regret(means, top) == pytest.approx(0.01)
    assert not explore_k(means, top, 0.05)


def test_explore_k_does_not_imply_small_regret() -> None:
    means = [1.0, 0.5, 0.5]
    assert explore_k(means, [1, 2], 0.0)
    assert aggregate_regret(means, [1, 2]) == pytest.approx(0.25)


@given(choices())
def test_elementwise_implies_regret_and_explore_k(
    choice: tuple[list[float], list[int], float],
) -> None:
    means, top, epsilon = choice
    if elementwise(means, top, epsilon):
        assert aggregate_regret(means, top) <= epsilon + 2 * ROUNDING
        assert explore_k(means, top, epsilon)


@given(choices())
def test_regret_is_the_difference_of_two_sums_over_k(
    choice: tuple[list[float], list[int], float],
) -> None:
    means, top, _ = choice
    by_hand = sum(sorted(means)[-len(top) :]) - sum(means[arm] for arm in top)
    assert aggregate_regret(means, top) == pytest.approx(by_hand / len(top), abs=1e-12)


@given(choices())
def test_a_set_is_judged_by_its_arms_not_by_their_order(
    choice: tuple[list[float], list[int], float],
) -> None:
    means, top, epsilon = choice
    for other in (top[::-1], sorted(top)):
        assert aggregate_regret(means, other) == aggregate_regret(means, top)
        assert elementwise(means, other, epsilon) == elementwise(means, top, epsilon)


@given(choices())
def test_right_sets_have_no_regret_and_lose_nothing_arm_by_arm(
    choice: tuple[list[float], list[int], float],
) -> None:
    means, top, _ = choice
    if not misidentified(means, top):
        assert aggregate_regret(means, top) == 0
        assert elementwise(means, top, 0)


def test_loss_of_exactly_epsilon_is_allowed_in_spite_of_rounding() -> None:
    assert elementwise([0.3, 0.1 + 0.1], [1], 0.1)
    assert explore_k([0.3, 0.1 + 0.1], [1], 0.1)


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ([], "at least one arm number"),
        ([0.5], "at least one arm number"),
        ([[1, 2]], "at least one arm number"),
        ([1, 5], "holds arm 5, but arms are numbered from 0 to 4"),
        ([-1], "holds arm -1"),
        ([2, 1, 2], "holds arm 2 more than once"),
    ],
)
def test_bad_sets_are_refused_by_name(top: list[int], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        aggregate_regret(MEANS, top)


def test_runs_of_different_sizes_and_negative_losses_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"sets of sizes \[1, 2\]"):
        expected_aggregate_regret(MEANS, [[1], [1, 2]])
    with pytest.raises(InvalidInput, match=r"sets of sizes \[\]"):
        misidentification_probability(MEANS, [])
    with pytest.raises(InvalidInput, match=r"`epsilon` is -0\.1, but must be at least 0"):
        explore_k(MEANS, [1], -0.1)
