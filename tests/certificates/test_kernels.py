"""The kernels of the certificate against values by hand and slow references, one step each."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from shortlist import Bounded, SubGaussian, certify
from shortlist.arrays import FloatArray
from shortlist.certificates.split import offsets as exact
from shortlist.certificates.split.bound import Certificate, declare
from shortlist.certificates.split.offsets import (
    bounded_offset,
    log_shrink,
    offsets,
    subgaussian_offset,
)
from shortlist.reward_models import Binary

ARM_BY_ARM = ((30, 0.4), (30, 0.7), (1, 0.02), (200, 0.5))  # pulls and mean


def column(*values: float) -> FloatArray:
    return np.array(values, dtype=np.float64)[:, None]


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("tilt", [1e-9, 0.5, 0.999999, 1.0, 1.000001, 30.0, 690.0])
def test_log_shrink_is_the_log_moment_of_one_reward_on_both_sides_of_a_tilt_of_1(
    mean: float, tilt: float
) -> None:
    exactly = math.log1p(mean * math.expm1(-tilt)) if mean < 1 else -tilt
    found = log_shrink(np.array([mean]), np.array([tilt]))[0]
    assert found == pytest.approx(exactly, rel=1e-9, abs=0 if tilt < 1 else 1e-15)


def test_log_shrink_of_sure_rewards_is_minus_the_tilt_where_a_float_holds_no_more() -> None:
    assert log_shrink(np.array([1.0]), np.array([1e4]))[0] == -1e4


def test_the_closed_form_is_largest_at_the_ends_of_the_interval_and_inside_it() -> None:
    pulls, strength, boundary = 20.0, 6.0, 0.3
    u = 1 - math.exp(-strength / pulls)

    def at(mean: float) -> float:
        return pulls * math.log(1 - mean * u) + strength * boundary + strength * (mean - boundary)

    inside = 1 / u - pulls / strength
    assert 0.5 < inside < 0.53
    for low, reach, worst in ((0.3, 0.1, 0.4), (0.3, 0.5, inside), (0.6, 0.6, 0.6)):
        found = bounded_offset(
            np.array([pulls]), boundary, low, strength, reach, np.array([strength])
        )[0]
        assert found == pytest.approx(at(worst), rel=1e-12)


@pytest.mark.parametrize(("pulls", "mean"), ARM_BY_ARM)
def test_the_curvature_bounds_that_of_every_expectation_and_is_no_worse_than_cauchy_schwarz(
    pulls: int, mean: float
) -> None:
    step = 1e-4
    points = np.array([[mean - step, mean, mean + step]])
    successes = np.arange(pulls + 1)
    below, here, above = (binom.pmf(successes, pulls, point) for point in points[0])
    # the largest |second derivative| of E f(S) over all f in [0, 1]
    largest = np.abs(below - 2 * here + above).sum() / step**2 / 2
    found = exact._curvature(column(pulls), points)[0, 1]
    assert largest * 0.999 <= found <= 2 * largest + 2


def test_the_curvature_is_as_computed_by_hand() -> None:
    # m = 1/2, N = 100: variance 1/4, information 25, (sqrt(1275) + 5) / (2 / 16)
    found = exact._curvature(column(100), np.array([[0.5, 0.5]]))
    assert found == pytest.approx((math.sqrt(1275) + 5) * 8, rel=1e-12)
    assert exact._curvature(column(7), np.array([[0.0, 1.0]])) == pytest.approx(2 * 49)
    assert exact._curvature(column(3), np.array([[0.5]])) == pytest.approx(
        (math.sqrt(2 * 0.5625 + 0.75) + math.sqrt(0.75)) * 8
    )


def test_the_variance_nearby_is_that_of_the_worse_neighbour() -> None:
    means = np.random.default_rng(6).random((9, 7))
    variance = means * (1 - means)
    nearby = [variance[:, max(0, i - 1) : i + 2].min(axis=1) for i in range(7)]
    assert np.array_equal(exact._least_variance_nearby(means), np.array(nearby).T)


@pytest.mark.parametrize(("pulls", "mean"), ARM_BY_ARM)
@pytest.mark.parametrize("start", [-1.0, 0.0, 0.4])
@pytest.mark.parametrize("slope", [0.01, 3.0, 80.0])
def test_moments_are_sums_over_the_binomial_law(
    pulls: int, mean: float, start: float, slope: float
) -> None:
    first = math.floor(start * pulls) if start > 0 else start
    boundary = 0.35
    free, log_charged = exact._binary_moments(
        column(pulls), column(slope), column(first), column(mean), boundary
    )
    successes = np.arange(pulls + 1)
    chance = binom.pmf(successes, pulls, mean)
    charged = chance * np.exp(-slope * (successes / pulls - boundary))
    assert free[0, 0] == pytest.approx(chance[successes <= first].sum(), abs=1e-12)
    assert math.exp(log_charged[0, 0]) == pytest.approx(
        charged[successes > first].sum(), rel=1e-9, abs=1e-250
    )


def inner(free: list[float], log_charged: list[float], curvature: list[float]) -> float:
    gap = np.array([[0.0, 0.1, 0.2]])
    rows = [np.array([each]) for each in (free, log_charged, curvature)]
    return float(exact._inner_offset(gap, rows[0], rows[1], 1.0, rows[2])[0])


def test_between_two_points_monotony_takes_the_left_moment_and_what_is_allowed_at_the_right() -> (
    None
):
    huge = [1e9] * 3  # curvature, so that only monotony can help
    found = inner([0.3, 0.2, 0.1], [-0.5, -0.2, 7.0], huge)
    left = -0.5 - math.log(math.exp(-0.1) - 0.3)
    right = -0.2 - math.log(math.exp(-0.2) - 0.2)
    assert found == pytest.approx(max(left, right), rel=1e-12)
    assert inner([0.3, 0.2, 0.1], [0.5, -0.2, 7.0], huge) == pytest.approx(left + 1, rel=1e-12)


def test_between_two_points_curvature_keeps_a_margin_of_an_eighth_of_the_step_squared() -> None:
    free = [0.95, 0.85, 0.6]  # too much for monotony: e^-0.1 = 0.905, e^-0.2 = 0.819
    margins = [0.1**2 / 8 * (curvature + 1) for curvature in (2.0, 4.0, 6.0)]
    rooms = [
        math.exp(-gap) - a - each for gap, a, each in zip((0, 0.1, 0.2), free, margins, strict=True)
    ]
    offsets_ = [-math.log(room) for room in rooms]
    assert inner(free, [0.0, 0.0, 0.0], [2.0, 4.0, 6.0]) == pytest.approx(max(offsets_), rel=1e-12)
    for point in range(3):
        raised = [4.0 if each == point else 0.0 for each in range(3)]
        expected = max(least + more for least, more in zip(offsets_, raised, strict=True))
        assert inner(free, raised, [2.0, 4.0, 6.0]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_offset_between_points_is_what_a_loop_over_all_pairs_of_neighbours_says(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    strength, points = 3.0, 5
    gap = rng.uniform(0.1, 0.4) * np.linspace(0, 1, points)
    allowed = [math.exp(-strength * each) for each in gap]
    free = rng.uniform(0, 0.9, points) * allowed
    log_charged, curvature = rng.normal(0, 1, points), rng.uniform(0, 30, points)

    def needed(room: float, charged: float) -> float:
        return charged - math.log(room) if room > 0 else math.inf

    worst = -math.inf
    for i in range(points - 1):
        monotony = needed(allowed[i + 1] - free[i], log_charged[i])
        margins = [(gap[1] - gap[0]) ** 2 / 8 * (each + strength**2) for each in curvature]
        ends = [needed(allowed[j] - free[j] - margins[j], log_charged[j]) for j in (i, i + 1)]
        worst = max(worst, min(monotony, max(ends)))
    rows = [each[None, :] for each in (gap, free, log_charged)]
    found = exact._inner_offset(rows[0], rows[1], rows[2], strength, curvature[None, :])
    assert found == pytest.approx([worst], rel=1e-9)


def test_a_tilted_mean_that_rounding_puts_above_1_is_1() -> None:
    slope = 1.3652235564735813
    if math.exp(-slope - log_shrink(np.ones(1), np.array([slope]))[0]) <= 1:
        pytest.skip("rounding is different here")
    _, log_charged = exact._binary_moments(
        column(1), column(slope), column(0), column(1.0), boundary=0.5
    )
    assert log_charged[0, 0] == pytest.approx(-slope / 2)


def test_where_there_is_no_room_no_offset_is_right() -> None:
    assert inner([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]) == math.inf


def test_beyond_the_grid_the_closed_form_gets_what_the_free_successes_leave_at_the_reach() -> None:
    pulls, boundary, strength, reach = column(40), 0.3, 10.0, 0.3
    slope, last = column(10.0), column(0.5)
    closed = bounded_offset(pulls, boundary, last, strength, reach, slope)[0, 0]
    for free in (1e-6, 1e-3):
        room = 1 - free * math.exp(strength * reach)
        found = exact._tail_offset(pulls, boundary, last, column(free), strength, reach, slope)
        assert found == pytest.approx([closed - math.log(room)], rel=1e-12)
    for free, end, offset in ((0.5, 0.5, math.inf), (0.5, 0.6, -math.inf), (0.0, 0.5, closed)):
        found = exact._tail_offset(
            pulls, boundary, column(end), column(free), strength, reach, slope
        )
        assert found == pytest.approx([offset])


@pytest.mark.parametrize("boundary", [0.1, 0.4, 0.5, 0.8])
def test_the_grid_ends_where_free_successes_are_negligible_or_at_the_reach(boundary: float) -> None:
    pulls, strength, reach = column(50, 50, 50), 8.0, 0.15
    start = column(math.floor(50 * boundary) + 3, 2.0, -1.0)
    gaps = exact._checked_gaps(pulls, boundary, strength, reach, start, 4)
    variance = max(0.25 if boundary < 0.5 else 0.0, boundary * (1 - boundary))
    beyond = math.sqrt(2 * (strength * reach + exact.NEGLIGIBLE_EXPONENT)) * math.sqrt(
        variance / 50
    )
    starts = np.maximum(0, start[:, 0] / 50 - boundary)
    assert gaps[:, -1] == pytest.approx(np.minimum(reach, starts + beyond), rel=1e-12)
    wide = exact._checked_gaps(pulls, boundary, strength, 9.0, start, 4)
    assert np.all(wide[:, -1] < 9)
    assert np.diff(gaps, axis=1) == pytest.approx(np.tile(gaps[:, -1:] / 4, 4))
    far = math.sqrt(2 * (strength * 9.0 + exact.NEGLIGIBLE_EXPONENT)) * math.sqrt(variance / 50)
    assert wide[:, -1] == pytest.approx(starts + far, rel=1e-12)


def test_more_is_checked_where_what_is_allowed_falls_further() -> None:
    assert exact.usual_checks(0.0) == exact.CHECKS
    assert exact.usual_checks(3.0) == exact.CHECKS + 3 * exact.MORE_CHECKS
    assert exact.usual_checks(1e6) == exact.MOST_CHECKS


def test_offsets_hold_on_the_usual_grid_and_from_its_last_point_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tails = []

    def spied(*arguments: FloatArray) -> FloatArray:
        tails.append(arguments[2:4])
        return np.array([7.0, -7.0])

    pulls, start = np.array([900.0, 400.0]), np.array([360.0, 170.0])
    settings: dict[str, Any] = {"slope": np.array([30.0, 9.0]), "start": start}
    usual = exact.binary_offset(
        pulls, 0.4, 30.0, 0.3, **settings, checks=exact.usual_checks(30.0 * 0.3)
    )
    assert exact.binary_offset(pulls, 0.4, 30.0, 0.3, **settings).tolist() == usual.tolist()
    monkeypatch.setattr(exact, "_tail_offset", spied)
    found = exact.binary_offset(pulls, 0.4, 30.0, 0.3, **settings)
    gap = exact._checked_gaps(pulls[:, None], 0.4, 30.0, 0.3, start[:, None], 9)[:, -1:]
    (last, free), *_ = tails
    assert last == pytest.approx(0.4 + gap, rel=1e-12)
    assert free[:, 0] == pytest.approx(binom.cdf(start, pulls, last[:, 0]), rel=1e-6)
    assert 7 < found[0] < 7 + 1e-6  # the larger of what the grid asks for and what the tail does
    assert found[1] == pytest.approx(usual[1], rel=0.1)


def test_the_offset_without_a_range_is_the_moment_and_what_a_flat_slope_falls_short_of() -> None:
    found = subgaussian_offset(np.array([20.0, 5.0]), 9.0, 0.3, np.array([9.0, 4.0]))
    assert found == pytest.approx([81 / 160, 16 / 40 + 5 * 0.3])


def test_a_start_between_two_numbers_of_successes_is_the_lower_and_none_is_below_none() -> None:
    def found(start: float) -> float:
        return float(
            exact.binary_offset(
                np.array([30.0]), 0.4, 6.0, 0.3, slope=np.array([6.0]), start=np.array([start])
            )[0]
        )

    assert found(13.9) == found(13.0) != found(14.0)
    assert found(-7.0) == found(-1.0) != found(0.0)
    assert found(99.0) == found(30.0) == math.inf


@pytest.mark.parametrize(("start", "begin"), [(177.0, 169.0), (179.0, -math.inf), (170.0, 170.0)])
def test_starts_are_backed_off_by_a_tenth_of_the_root_of_the_pulls_four_times_at_most(
    start: float, begin: float
) -> None:
    pulls, slope = np.array([400.0]), np.array([23.0])
    assert (exact.RETREAT, exact.RETREATS) == (0.1, 4)

    def least(at: float) -> float:
        where = np.array([at])
        return float(exact.binary_offset(pulls, 0.4, 23.0, 0.1, slope=slope, start=where)[0])

    assert [math.isfinite(least(at)) for at in (171.0, 170.0)] == [False, True]
    found = offsets(pulls, 0.4, 23.0, 0.1, Binary(), slope=slope, start=np.array([start]))
    assert found[0].tolist() == [begin]
    closed = bounded_offset(pulls, 0.4, 0.4, 23.0, 0.1, slope)[0]
    assert found[1].tolist() == [least(begin) if math.isfinite(begin) else closed]


def test_a_start_without_any_offset_is_given_up_for_the_closed_form() -> None:
    pulls, slope = np.array([50.0, 50.0]), np.array([23.0, 23.0])
    begin, offset = offsets(
        pulls, 0.4, 23.0, 0.1, Binary(), slope=slope, start=np.array([49.0, -np.inf])
    )
    assert np.all(begin == -np.inf)
    assert offset[0] == offset[1]
    assert offset[1] == bounded_offset(pulls[:1], 0.4, 0.4, 23.0, 0.1, slope[:1])[0]


def test_no_mean_lies_beyond_1() -> None:
    wide, narrow = (
        offsets(
            np.array([9.0]),
            0.7,
            5.0,
            reach,
            Bounded(),
            slope=np.array([2.0]),
            start=np.array([-np.inf]),
        )[1][0]
        for reach in (5.0, 0.3)
    )
    assert wide == pytest.approx(narrow, rel=1e-12)


def test_charges_and_the_bound_are_as_computed_by_hand() -> None:
    certificate = Certificate(
        chosen=np.array([True, False, False]),
        boundary=0.5,
        strength=10.0,
        delta=0.05,
        pulls=np.array([10, 20, 40]),
        slope=np.array([10.0, 5.0, 10.0]),
        start=np.array([-np.inf, 12.0, 30.0]),
        offset=np.array([0.5, 0.25, 1.0]),
    )
    # b - x = 0.1 inside; x - b = 0.15 outside; 31 successes, one more than cost nothing
    found = certificate.charges(np.array([4.0, 13.0, 31.0]))
    assert found == pytest.approx([0.15, (5 * 0.15 + 0.25) / 10, (10 * 0.275 + 1) / 10])
    assert certificate.charges(np.array([9.0, 12.0, 30.0])) == pytest.approx([0.0, 0.0, 0.0])
    threshold = math.log(20)
    assert certificate.bound(np.array([4.0, 12.0, 30.0])) == pytest.approx(0.15 + threshold / 10)
    nothing = np.full(2, -math.inf)
    two = Certificate(
        np.array([True, True]),
        0.5,
        4.0,
        0.1,
        np.array([9, 9]),
        np.ones(2),
        nothing,
        np.full(2, -9.0),
    )
    assert two.bound(np.zeros(2)) == pytest.approx(math.log(10) / 8)


def test_inside_the_set_failures_are_the_successes_that_cost_nothing() -> None:
    certificate = Certificate(
        chosen=np.array([True]),
        boundary=0.5,
        strength=2.0,
        delta=0.1,
        pulls=np.array([10]),
        slope=np.array([2.0]),
        start=np.array([6.0]),
        offset=np.array([1.0]),
    )
    assert certificate.charges(np.array([4.0])).tolist() == [0.0]
    assert certificate.charges(np.array([3.0])) == pytest.approx([(2 * 0.2 + 1) / 2])


def test_arms_inside_are_mirrored_and_equal_arms_share_an_offset() -> None:
    chosen, pulls = np.array([True, True, False, False]), np.array([30, 60, 30, 60])
    start = np.array([24.0, -np.inf, 9.0, 15.0])
    certificate = declare(
        chosen,
        0.2,
        pulls,
        strength=8.0,
        delta=0.1,
        reach=0.5,
        rewards=Binary(),
        start=start,
    )
    assert np.all(certificate.slope == 8.0)
    assert certificate.boundary == 1 - (1 - 0.2)  # the nearest that has an exact mirror image
    for arm, edge in enumerate((0.8, 0.8, certificate.boundary, certificate.boundary)):
        begin, offset = offsets(
            pulls[arm : arm + 1].astype(float),
            edge,
            8.0,
            0.5,
            Binary(),
            slope=np.array([8.0]),
            start=start[arm : arm + 1],
        )
        assert certificate.start[arm] == begin[0]
        assert certificate.offset[arm] == offset[0]
    assert (
        declare(
            chosen, 0.2, pulls, strength=8.0, delta=0.1, reach=0.5, rewards=Binary()
        ).start.tolist()
        == [-math.inf] * 4
    )


def certified_by_hand(
    pulls: list[int], sums: list[float], k: int, strength: float, reach: float, delta: float
) -> float:
    """The bound for the first k arms at a boundary of 1/2, by the formulas of the theorem."""
    total = -math.log(delta) / strength
    for arm, (count, gave) in enumerate(zip(pulls, sums, strict=True)):
        gap = np.linspace(0, min(reach, 0.5), 200_001)
        u = 1 - math.exp(-strength / count)
        moment = count * np.log1p(-(0.5 + gap) * u) + strength * 0.5
        offset = float((moment + strength * gap).max())
        against = (0.5 - gave / count) * (1 if arm < k else -1)
        total += max(0.0, strength * against + offset) / strength
    return total / k


@pytest.mark.parametrize("k", [1, 2, 3])
def test_certify_takes_the_strength_for_noise_or_for_epsilon_unless_it_is_given(k: int) -> None:
    pulls, sums = [400, 300, 250, 500], [290.0, 160, 130, 245]
    noise = 2 * math.sqrt(8 * math.log(20) / sum(1 / each for each in pulls))
    default = certify(list(range(k)), pulls, sums, boundary=0.5, fresh=True)
    assert default == pytest.approx(certified_by_hand(pulls, sums, k, noise, 1.0, 0.05), rel=1e-6)
    assert default < min(k, 4 - k) / k  # so that it is not what can be lost at most
    for epsilon in (0.3, 0.5):
        found = certify(
            list(range(k)), pulls, sums, boundary=0.5, fresh=True, epsilon=epsilon, delta=0.1
        )
        strength = 2 * math.log(10) / (k * epsilon)
        expected = certified_by_hand(pulls, sums, k, strength, k * epsilon, 0.1)
        assert found == (pytest.approx(expected, rel=1e-6) if expected <= epsilon else math.inf)
        assert expected <= epsilon or epsilon == 0.3
    given = certify(list(range(k)), pulls, sums, boundary=0.5, fresh=True, strength=30.0)
    assert given == pytest.approx(certified_by_hand(pulls, sums, k, 30.0, 1.0, 0.05), rel=1e-6)


def test_no_more_can_be_lost_than_by_exchanging_all_arms_that_can_be() -> None:
    lost = certify(
        [0, 1, 2], [1, 1, 1, 1], [0, 0, 0, 1], boundary=0.5, fresh=True, rewards=Bounded(0, 1)
    )
    assert lost == pytest.approx(1 / 3)
    tenfold = certify(
        [0, 1], [1] * 5, [0, 0, 10, 10, 10], boundary=5, fresh=True, rewards=Bounded(0, 10)
    )
    assert tenfold == pytest.approx(10)


def test_what_is_exactly_epsilon_is_certified() -> None:
    pulls, sums = [400, 400], [400.0, 0.0]
    found = certify([0], pulls, sums, boundary=0.5, fresh=True, epsilon=0.4)
    assert found < 0.4
    strength = 2 * math.log(20) / 0.4
    again = certify([0], pulls, sums, boundary=0.5, fresh=True, epsilon=found, strength=strength)
    assert again == found


def test_sums_of_rewards_without_a_range_are_of_any_size() -> None:
    low, high = (
        certify([0], [50, 50], [-1e6, 1e6], boundary=0, fresh=True, rewards=SubGaussian(0.5)),
        certify([0], [50, 50], [1e6, -1e6], boundary=0, fresh=True, rewards=SubGaussian(0.5)),
    )
    assert low > 1e4 > 1 > high
