"""`assess` and `certify` of normal rewards: exact intervals, failure rates, rounding, refusals."""

import math
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom, norm, t

from shortlist import Assessment, Matching, assess, certify
from shortlist.arrays import FloatArray
from shortlist.certificates.past.bound import bound_past
from shortlist.certificates.past.charges import Evidence, Totals, settled
from shortlist.errors import InvalidInput
from shortlist.reward_models import Normal

DELTA = 0.3
RUNS = number_of_runs(60, 2000)
STUDENT = Evidence(fixed=True, binary=False, ranged=False, shift=1.0, student=True)


def drawn(
    means: FloatArray, sd: FloatArray, pulls: list[int], rng: np.random.Generator
) -> dict[str, tuple[int, float, float]]:
    """Pulls, sum and squares of every arm."""
    rows = [rng.normal(*each) for each in zip(means, sd, pulls, strict=True)]
    return {
        f"arm {place}": (row.size, float(row.sum()), float((row**2).sum()))
        for place, row in enumerate(rows)
    }


def assessed(counts: dict[str, tuple[int, float, float]], k: int, **more: Any) -> Assessment:
    return assess(counts, k, **{"fixed": True, "rewards": "normal", **more})


def test_intervals_are_those_of_student() -> None:
    rng = np.random.default_rng(1)
    counts = drawn(np.array([3.0, 0.0, -1.0]), np.array([1.0, 5.0, 0.1]), [2, 10, 300], rng)
    for arm, (pulls, total, squares) in zip(assessed(counts, 1).arms, counts.values(), strict=True):
        deviation = math.sqrt((squares - total**2 / pulls) / (pulls - 1))
        width = float(t.isf(0.05 / 6, pulls - 1)) * deviation / math.sqrt(pulls)
        assert (arm.low, arm.high) == pytest.approx((total / pulls - width, total / pulls + width))
        assert arm.low <= total / pulls - width
        assert arm.high >= total / pulls + width


@pytest.mark.parametrize("pulls", [2, 3, 20])
def test_a_reach_is_at_least_the_mean_less_its_price_everywhere(pulls: int) -> None:
    """Against the charge ((z + s)+)^2 with z = the normal score of Student's tail, on a grid."""
    totals = Totals(np.array([pulls]), np.array([0.1 * pulls]), np.array([0.2 * pulls]))
    largest, prices = 30.0, 4 * 2.0 ** (-np.arange(60) / 6)
    reach, _ = STUDENT.reaches(totals, prices, largest, 9.0)
    error = math.sqrt((0.2 - 0.01) / (pulls - 1))
    theta = 0.1 + error * np.concatenate(
        [np.linspace(-20, 20, 4001), np.geomspace(20, 1e9, 20_000)]
    )
    scores = -norm.ppf(t.sf((theta - 0.1) / error, pulls - 1))
    charges = np.maximum(scores + 1, 0) ** 2
    allowed = charges <= largest
    exact = (theta[allowed, None] - charges[allowed, None] * prices).max(axis=0)
    assert (reach[0] >= exact).all()
    assert reach[0] == pytest.approx(np.maximum(exact, 0.1), rel=0.1)


def test_squares_that_were_rounded_up_never_make_a_bound_smaller() -> None:
    """A mean below the estimate has a larger charge if the variance is overrated."""
    pulls, sums = np.full(5, 40), 40 * np.array([0.4, 0.3, 0.3, 0.0, -0.2])
    variances = np.array([0.1, 0.2, 0.001, 0.05, 0.1])
    bounds = []
    for factor in (1.0, 1.001, 1.1, 2.0):
        totals = Totals(pulls, sums, pulls * factor * variances + sums**2 / pulls)
        evidences = settled(Normal(), pulls, fixed=True, squared=True)
        bounds.append(bound_past(totals, 2, 0.05, evidences).regret_bound)
    assert bounds == sorted(bounds)


@pytest.mark.rates
@pytest.mark.parametrize(
    ("means", "sd", "pulls", "k"),
    [
        ((0.0, 0.0), (1.0, 1.0), (2, 2), 1),
        ((0.0, 0.0), (5.0, 0.1), (3, 30), 1),
        ((0.5, 0.0, 0.0), (1.0, 3.0, 0.2), (10, 5, 20), 1),
        ((0.1,) * 3 + (0.0,) * 7, (1.0,) * 10, (8,) * 10, 3),
    ],
)
def test_failures_are_within_delta(
    means: tuple[float, ...], sd: tuple[float, ...], pulls: tuple[int, ...], k: int
) -> None:
    """Of the bound and the tiers together, of the intervals, and of the bound on a fixed set."""
    wrong = missed = fixed = 0
    rng = np.random.default_rng(3)
    for _ in range(RUNS):
        order = rng.permutation(len(means))
        theta, spread = np.array(means)[order], np.array(sd)[order]
        counts = drawn(theta, spread, np.array(pulls)[order].tolist(), rng)
        found = assessed(counts, k, delta=DELTA)
        chosen = np.array([arm.chosen for arm in found.arms])
        best = np.sort(theta)[::-1]
        lost = best[:k].mean() - theta[chosen].mean()
        inside = np.array([arm.label in found.tiers["in"] for arm in found.arms])
        outside = np.array([arm.label in found.tiers["out"] for arm in found.arms])
        tiers = (theta[inside] < best[k - 1]).any() or (theta[outside] > best[k]).any()
        wrong += lost > found.regret_bound + 1e-12 or tiers
        missed += any(
            not arm.low <= own <= arm.high for arm, own in zip(found.arms, theta, strict=True)
        )
        columns = [np.array(each) for each in zip(*counts.values(), strict=True)]
        worst = np.argsort(theta, kind="stable")[:k]
        bound = certify(
            worst, *columns[:2], squares=columns[2], rewards="normal", fresh=True, delta=DELTA
        )
        fixed += best[:k].mean() - theta[worst].mean() > bound + 1e-12
    for failed in (wrong, missed, fixed):
        assert binom.sf(failed - 1, RUNS, DELTA) > 1e-3


@pytest.mark.parametrize(("scale", "shift"), [(1e9, 0.0), (1e-9, 0.0), (1.0, 100.0), (-1.0, 0.0)])
def test_units_do_not_matter(scale: float, shift: float) -> None:
    plain = {"a": (9, 18.0, 60.0), "b": (9, 9.0, 12.0), "c": (5, 1.0, 3.0)}
    moved = {
        arm: (n, scale * s + n * shift, scale**2 * q + 2 * scale * shift * s + n * shift**2)
        for arm, (n, s, q) in plain.items()
    }
    found = assessed(plain, 1, delta=0.5)
    again = assessed(moved, 1, delta=0.5, minimize=scale < 0)
    assert again.top == found.top == ("a",)
    assert again.tiers == found.tiers
    assert again.regret_bound == pytest.approx(abs(scale) * found.regret_bound, rel=1e-3)


def test_more_rewards_make_the_bound_of_a_set_smaller_than_that_of_the_wrong_set() -> None:
    def bound(top: list[int], times: int) -> float:
        pulls = np.full(3, times)
        sums, squares = pulls * np.array([1.0, 0.7, 0.0]), pulls * np.array([2.0, 1.49, 1.0])
        return certify(top, pulls, sums, squares=squares, rewards="normal", fresh=True)

    assert bound([0], 20) > bound([0], 80) > bound([0], 2000) == 0
    assert 1 <= bound([2], 2000) < 1.2


def test_an_arm_without_two_rewards_leaves_nothing_guaranteed() -> None:
    found = assessed({"a": (5, 5.0, 9.0), "b": (1, 1.0, 1.0), "c": (0, 0.0, 0.0)}, 1)
    assert found.regret_bound == math.inf
    assert "fewer than two rewards" in found.verdict


def test_what_proves_nothing_is_refused() -> None:
    counts = {"a": (5, 5.0, 9.0), "b": (5, 1.0, 1.0)}
    with pytest.raises(InvalidInput, match="must have been fixed"):
        assessed(counts, 1, fixed=False)
    with pytest.raises(InvalidInput, match="squared rewards of every arm"):
        assessed({"a": (5, 5.0), "b": (5, 1.0)}, 1)  # type: ignore[dict-item]
    four = dict.fromkeys("abcd", (5, 1.0, 2.0))
    with pytest.raises(InvalidInput, match="must be a matroid"):
        assessed(four, 2, constraint=Matching([0, 0, 1, 1], [0, 1, 0, 1]))
    given: dict[str, Any] = {"rewards": "normal", "fresh": True}
    with pytest.raises(InvalidInput, match="`squares` is not given"):
        certify([0], [5, 5], [1.0, 2.0], **given)
    with pytest.raises(InvalidInput, match="`boundary` is given"):
        certify([0], [5, 5], [1.0, 2.0], squares=[1.0, 2.0], boundary=0.5, **given)
