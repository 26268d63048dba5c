"""Hardness against the definitions of Section 1.1 read letter by letter, and Lemma "c-spread" with
its constants."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shortlist.errors import InvalidInput
from shortlist.instances import synthetic, two_group, uniform
from shortlist.theory import hardness, spread, spread_lower_bound, spread_upper_bound

MEANS = st.lists(
    st.sampled_from([i / 16 for i in range(17)]) | st.floats(0, 1), min_size=2, max_size=12
)
EPSILONS = st.floats(1e-3, 2)


def literal(means: list[float], k: int, epsilon: float) -> dict[str, float]:
    """Section 1.1 with the paper's own indices: theta[1] >= theta[2] >= ... ."""
    n = len(means)
    theta = [math.nan, *sorted(means, reverse=True)]
    delta = [math.nan] + [
        theta[i] - theta[k + 1] if i <= k else theta[k] - theta[i] for i in range(1, n + 1)
    ]
    allowed = [
        t
        for t in range(k)
        if k + t + 1 <= n
        and delta[k - t] * t <= k * epsilon
        and delta[k + t + 1] * t <= k * epsilon
    ]
    t = max(allowed)

    def h(swaps: int) -> float:
        psi = max(epsilon, min(delta[k - swaps], delta[k + swaps + 1]))
        return sum(psi**-2 if gap == 0 else min(gap**-2, psi**-2) for gap in delta[1:])

    h_tilde = math.inf if 0 in delta[1:] else sum(gap**-2 for gap in delta[1:])
    return {
        "t": t,
        "psi": min(delta[k - t], delta[k + t + 1]),
        "h": h(t),
        "h0": h(0),
        "h_tilde": h_tilde,
    }


@given(MEANS, st.data(), EPSILONS)
def test_hardness_is_what_the_definitions_say(
    means: list[float], data: st.DataObject, epsilon: float
) -> None:
    assume(all(gap == 0 or gap > 1e-100 for gap in np.diff(sorted(means))))
    k = data.draw(st.integers(1, len(means) - 1))
    ours = hardness(means, k, epsilon)
    for name, value in literal(means, k, epsilon).items():
        assert getattr(ours, name) == pytest.approx(value), name
    assert ours.psi_epsilon == max(epsilon, ours.psi)


@given(MEANS, st.data(), EPSILONS)
def test_hardness_is_ordered_and_bounded(
    means: list[float], data: st.DataObject, epsilon: float
) -> None:
    k = data.draw(st.integers(1, len(means) - 1))
    ours = hardness(means, k, epsilon)
    assert 0 <= ours.t <= min(k, len(means) - k) - 1
    assert ours.h <= ours.h0 * (1 + 1e-12) <= len(means) / epsilon**2 * (1 + 1e-9)
    assert ours.h0 <= ours.h_tilde * (1 + 1e-12)


@given(MEANS, st.data(), EPSILONS)
def test_gaps_follow_the_order_of_the_means(
    means: list[float], data: st.DataObject, epsilon: float
) -> None:
    order = data.draw(st.permutations(range(len(means))))
    before, after = hardness(means, 1, epsilon), hardness(np.array(means)[order], 1, epsilon)
    np.testing.assert_array_equal(after.gaps, before.gaps[order])
    assert after.h == pytest.approx(before.h)


def test_known_values_on_uniform_and_two_groups() -> None:
    flat = hardness(uniform(1000), 500, 0.01)
    assert flat.t == 70  # the largest t with t (t + 1) / 1000 <= 5
    assert flat.psi == pytest.approx(0.071)
    groups = hardness(two_group(1000, 500), 500, 0.01)
    assert groups.t == 12  # the largest t with 0.4 t <= 5
    assert groups.h == pytest.approx(1000 / 0.4**2) == groups.h0 == groups.h_tilde


def test_tie_at_the_boundary_is_infinitely_hard_to_tell_but_not_to_choose_from() -> None:
    tie = hardness([0.9, 0.5, 0.5, 0.1], 2, 0.1)
    assert math.isinf(tie.h_tilde)
    np.testing.assert_allclose(tie.gaps, [0.4, 0, 0, 0.4])
    assert tie.h0 == pytest.approx(2 / 0.4**2 + 2 / 0.1**2)


def test_exchange_stops_where_there_is_no_arm_left_outside() -> None:
    assert hardness([0.5] * 10, 8, 0.1).t == 1  # E15: K + t + 1 <= n


@given(st.lists(st.integers(0, 40), min_size=2, max_size=9))
def test_spread_is_the_least_c_over_all_pairs(levels: list[int]) -> None:
    means = [level / 40 for level in levels]
    theta, n = sorted(means, reverse=True), len(means)
    least = 1.0
    for i in range(n):
        for j in range(i + 1, n):
            apart = theta[i] - theta[j]
            least = max(
                least, n * apart / (j - i), math.inf if apart == 0 else (j - i) / (n * apart)
            )
    ours = spread(means)
    assert ours is None if math.isinf(least) else ours == pytest.approx(least)


def test_uniform_is_1_spread_and_groups_are_not_spread_at_all() -> None:
    assert spread(uniform(1000)) == pytest.approx(1)
    assert spread(two_group(10, 5)) is None


@given(st.lists(st.floats(0.2, 3), min_size=3, max_size=60), st.data(), st.floats(0.001, 0.5))
def test_lemma_c_spread_holds_with_its_constants(
    steps: list[float], data: st.DataObject, epsilon: float
) -> None:
    means = np.cumsum(steps) / len(steps)
    k = data.draw(st.integers(1, means.size - 1))
    c = spread(means)
    assert c is not None
    ours = hardness(means, k, epsilon)
    assert ours.h <= spread_upper_bound(means.size, k, epsilon, c) * (1 + 1e-9)
    assert ours.h0 >= spread_lower_bound(means.size, epsilon, c) * (1 - 1e-9)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_on_uniform_h_grows_like_root_of_1_over_epsilon_and_h0_like_1_over_epsilon(
    share: float,
) -> None:
    n = 20_000
    epsilons = np.geomspace(0.0005, 0.02, 8)
    all_ = [hardness(uniform(n), int(share * n), epsilon) for epsilon in epsilons]
    slope_h, slope_h0 = (
        np.polyfit(np.log(epsilons), np.log(values), 1)[0]
        for values in ([one.h for one in all_], [one.h0 for one in all_])
    )
    assert slope_h == pytest.approx(-0.5, abs=0.05)
    assert slope_h0 == pytest.approx(-1, abs=0.05)


def test_arms_crowded_at_the_boundary_are_harder() -> None:
    easy, middle, hard = (hardness(synthetic(p, 1000, 500), 500, 0.01).h for p in (0.5, 1, 6))
    assert easy < middle < hard


@pytest.mark.parametrize(
    ("means", "k", "epsilon", "words"),
    [
        ([0.1, math.nan], 1, 0.1, "the mean of arm 1 is nan, but must be a finite number"),
        ([0.1, "x"], 1, 0.1, "must be a list of numbers"),
        ([[0.1, 0.2]], 1, 0.1, r"has shape \(1, 2\)"),
        ([0.1, 0.2], 2, 0.1, "`k` is 2, but must be between 1 and n_arms - 1 = 1"),
        ([0.1, 0.2], 1, 0, "`epsilon` is 0, but must be a finite number greater than 0"),
        ([0.1], 1, 0.1, "`n_arms` is 1"),
    ],
)
def test_bad_input_is_refused_by_name(
    means: list[float], k: int, epsilon: float, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        hardness(means, k, epsilon)


def test_spread_refuses_too_few_arms_and_too_small_c() -> None:
    with pytest.raises(InvalidInput, match="has 1 arms, but a spread needs at least 2"):
        spread([0.5])
    with pytest.raises(InvalidInput, match=r"`c` is 0.5, but must be at least 1"):
        spread_upper_bound(10, 5, 0.1, 0.5)


def test_hardness_prints_as_a_table_of_figures_and_no_gaps() -> None:
    found = hardness([0.9, 0.5, 0.5, 0.1], k=2, epsilon=0.01)
    lines = [line.split() for line in str(found).splitlines()]
    assert ["n", "4"] in lines
    assert ["psi", "0"] in lines
    assert ["h_tilde", "inf"] in lines
    assert "<td>h_tilde</td><td>inf</td>" in found._repr_html_()
    assert "gaps" not in repr(found) + str(found)
    assert found.summary()["n"] == 4
