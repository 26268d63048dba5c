"""`certify`, the bound for a set that somebody else chose."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shortlist import Binary, Bounded, Quotas, SubGaussian, certify
from shortlist.errors import InvalidInput
from shortlist.regret import ROUNDING, aggregate_regret

ARMS = {"top": [0, 1], "pulls": [40, 40, 30, 60], "sums": [30, 28, 12, 20]}


def bound(**changed: Any) -> float:
    settings: dict[str, Any] = {**ARMS, "boundary": 0.55, "fresh": True, **changed}
    return certify(settings.pop("top"), settings.pop("pulls"), settings.pop("sums"), **settings)


@pytest.mark.parametrize("epsilon", [None, 0.15])
@pytest.mark.parametrize("seed", range(4))
def test_the_regret_seldom_exceeds_the_bound(epsilon: float | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k, tries = 8, (1, 3, 5, 7)[seed], 100
    means, top = rng.uniform(0.35, 0.65, n), np.arange(k)
    regret = aggregate_regret(means, top)
    pulls = rng.integers(1, 400, n)
    wrong = 0
    for sums in rng.binomial(pulls, means, (tries, n)):
        wrong += regret > certify(
            top, pulls, sums, boundary=0.5, fresh=True, delta=0.2, epsilon=epsilon
        )
    assert binom.sf(wrong - 1, tries, 0.2) > 1e-6


def test_a_good_choice_is_certified_and_a_bad_one_is_not() -> None:
    pulls, sums = np.full(6, 300), np.array([240, 250, 60, 50, 45, 70])
    good = certify([0, 1], pulls, sums, boundary=0.5, fresh=True, epsilon=0.1)
    bad = certify([2, 3], pulls, sums, boundary=0.5, fresh=True, epsilon=0.1)
    assert good <= 0.1
    assert bad == math.inf
    assert certify([2, 3], pulls, sums, boundary=0.5, fresh=True) > (240 + 250 - 60 - 50) / 600


def test_the_bound_is_infinite_where_it_would_exceed_epsilon_and_only_there() -> None:
    found = {epsilon: bound(epsilon=epsilon) for epsilon in (0.01, 0.1, 0.3, 0.6, 0.9)}
    assert found[0.01] == math.inf
    assert found[0.9] < math.inf
    assert all(each == math.inf or each <= epsilon for epsilon, each in found.items())


@pytest.mark.parametrize("epsilon", [None, 0.9])
def test_units_do_not_matter(epsilon: float | None) -> None:
    low, high = -3.0, 7.0
    scaled = certify(
        ARMS["top"],
        ARMS["pulls"],
        np.array(ARMS["pulls"]) * low + (high - low) * np.array(ARMS["sums"]),
        boundary=low + 0.55 * (high - low),
        fresh=True,
        epsilon=None if epsilon is None else epsilon * (high - low),
        rewards=Bounded(low, high),
    )
    assert scaled == pytest.approx((high - low) * bound(epsilon=epsilon))


def test_strength_is_in_units_of_one_over_reward() -> None:
    tenfold = bound(sums=[300, 280, 120, 200], boundary=5.5, rewards=Bounded(0, 10), strength=2.0)
    assert tenfold == pytest.approx(10 * bound(strength=20.0))


def test_sub_gaussian_rewards_have_no_zero_and_scale_with_sigma() -> None:
    plain = bound(rewards=SubGaussian(0.5))
    pulls, sums = np.array(ARMS["pulls"]), np.array(ARMS["sums"])
    moved = bound(rewards=SubGaussian(0.5), sums=sums + 100 * pulls, boundary=100.55)
    wider = bound(rewards=SubGaussian(5), sums=10 * sums, boundary=5.5)
    assert moved == pytest.approx(plain)
    assert wider == pytest.approx(10 * plain)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_rest_seen_from_below_is_bounded_alike(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 7))
    k = data.draw(st.integers(1, n - 1))
    pulls = np.array(data.draw(st.lists(st.integers(1, 200), min_size=n, max_size=n)))
    sums = np.array([data.draw(st.floats(0, float(each))) for each in pulls])
    boundary = data.draw(st.floats(0, 1))
    above = k * certify(np.arange(k), pulls, sums, boundary=boundary, fresh=True)
    below = (n - k) * certify(
        np.arange(k, n), pulls, pulls - sums, boundary=1 - boundary, fresh=True
    )
    assert above == pytest.approx(below, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_more_evidence_against_the_choice_never_lowers_the_bound(data: st.DataObject) -> None:
    pulls, sums = np.array(ARMS["pulls"]), np.array(ARMS["sums"], dtype=float)
    arm = data.draw(st.integers(0, 3))
    worse = sums.copy()
    worse[arm] = data.draw(
        st.floats(0, sums[arm]) if arm < 2 else st.floats(sums[arm], float(pulls[arm]))
    )
    assert bound(sums=worse) >= bound()


def test_more_confidence_costs_a_larger_bound() -> None:
    assert bound(delta=0.001) > bound(delta=0.05) > bound(delta=0.5)


@pytest.mark.parametrize("boundary", [0.0, 1.0])
@pytest.mark.parametrize("pulls", [1, 10**9])
def test_a_boundary_at_the_end_of_the_range_is_fine(boundary: float, pulls: int) -> None:
    found = certify([0], [pulls, pulls], [pulls, 0], boundary=boundary, fresh=True, delta=0.05)
    assert 0 < found < math.inf


def test_sums_may_leave_the_range_by_rounding() -> None:
    total = float(np.cumsum(np.full(10, 0.7))[-1])  # one after the other, which `sum` need not be
    assert total > 10 * 0.7
    how = {"boundary": 0.5, "fresh": True, "rewards": Bounded(0, 0.7)}
    assert certify([0], [10, 10], [total, 0.0], **how) < math.inf  # type: ignore[arg-type]


@pytest.mark.parametrize("whole", [0, 1])
def test_rounding_of_a_sum_grows_with_the_pulls_and_more_than_that_is_refused(whole: int) -> None:
    outside = ROUNDING * 1000 * (1 if whole else -1)
    for times, pulls in ((0.5, 1000), (2.0, 10_000)):
        found = certify(
            [0], [pulls] * 2, [pulls * whole + times * outside, 1.0], boundary=0.5, fresh=True
        )
        assert found <= 1
    with pytest.raises(InvalidInput, match="the sum of arm 0 is "):
        certify([0], [1000, 1000], [1000 * whole + 2 * outside, 1.0], boundary=0.5, fresh=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"top": []}, "`top` is .* at least one arm"),
        ({"top": [0, 4]}, "`top` holds arm 4, but arms are numbered from 0 to 3"),
        ({"top": [-1]}, "`top` holds arm -1"),
        ({"top": [1, 1]}, "`top` holds arm 1 more than once"),
        ({"top": [0.5]}, "`top` is "),
        ({"top": [[0, 1]]}, "`top` has shape"),
        ({"top": [0, 1, 2, 3]}, "`k` is 4, but must be between 1 and n_arms - 1 = 3"),
        ({"pulls": [40, 40, 30]}, r"`pulls` has shape \(3,\) and `sums` \(4,\)"),
        ({"pulls": [40, 40, 30, 0]}, "`pulls` is .* at least 1"),
        ({"pulls": [40.5, 40, 30, 10]}, "`pulls` is .* whole number"),
        ({"pulls": [], "sums": []}, "`pulls` is "),
        (
            {"sums": [30, 28, 12, 61]},
            "the sum of arm 3 is 61, but must be that of 60 rewards, each a number between 0",
        ),
        ({"sums": [30, 28, 12, -1]}, "the sum of arm 3 is -1"),
        ({"sums": [30, 28, -1, 61]}, "the sum of arm 2 is -1, but must be that of 30 rewards"),
        ({"sums": [30, 28, math.nan, 1]}, "the sum of arm 2 is nan"),
        ({"sums": [30, 28, math.inf, 1], "rewards": SubGaussian(0.5)}, "the sum of arm 2 is inf"),
        (
            {"sums": [30, 28, 12.5, 1], "rewards": Binary()},
            "the sum of arm 2 is 12.5.* each 0 or 1",
        ),
        ({"sums": ["a", "b", "c", "d"]}, "`sums` is .* must be numbers"),
        ({"boundary": 1.5}, "`boundary` is 1.5, but must be between 0 and 1"),
        ({"boundary": -0.5}, "`boundary` is -0.5, but must be between 0 and 1"),
        ({"boundary": math.nan}, "`boundary` is nan"),
        ({"delta": 0.0}, "`delta` is 0.0"),
        ({"delta": 1.0}, "`delta` is 1.0"),
        ({"epsilon": 0.0}, "`epsilon` is 0.0"),
        ({"epsilon": math.inf}, "`epsilon` is inf"),
        ({"strength": -1.0}, "`strength` is -1.0"),
        ({"strength": 0.0}, "`strength` is 0.0"),
        ({"strength": 1e306}, "`strength` is 1e[+]306, but must be between 1e-60 and 1e[+]60"),
        ({"strength": 1e-61}, "`strength` is 1e-61, but must be between"),
        ({"epsilon": 1e-17}, "`epsilon` is 1e-17, but must be at least 2.9e-11: less is lost in"),
        ({"pulls": [40, 40, 30, 2**63]}, r"`pulls` is .* at most 2\^62"),
        (
            {"sums": [30, 28, 1e15, 1], "rewards": SubGaussian(0.5)},
            "the sum of arm 2 is 1000000000000000.0.* at most 1e[+]09 sigma = 500000000 from 0",
        ),
        (
            {"boundary": 1e15, "rewards": SubGaussian(0.5)},
            "`boundary` is 1000000000000000.0, but must be a number at most 1e[+]09 sigma",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        bound(**changed)


def test_any_strength_above_0_will_do() -> None:
    assert 0 < bound(strength=0.5) <= 1


@pytest.mark.parametrize(
    ("sums", "settings"),
    [
        ([1, 0], {"boundary": 0.5, "strength": 1e17}),
        ([1e18, 0], {"boundary": 5e17, "rewards": (0, 1e18), "strength": 1.0, "delta": 0.01}),
        ([1, 0], {"boundary": 0.5, "strength": 1e59}),
    ],
)
def test_one_pull_of_every_arm_proves_nothing_however_strong(
    sums: list[float], settings: dict[str, Any]
) -> None:
    low, high = settings.get("rewards", (0, 1))
    assert certify([0], [1, 1], sums, fresh=True, **settings) == high - low


def test_a_tiny_epsilon_is_not_certified_by_rounding() -> None:
    """True regret .1, one pull an arm, the least epsilon that is admitted."""
    rng = np.random.default_rng(8)
    sums = rng.binomial(1, [0.45, 0.55], (400, 2))
    found = [certify([0], [1, 1], each, boundary=0.5, fresh=True, epsilon=3e-11) for each in sums]
    assert found == [math.inf] * 400


def test_the_bound_allows_for_what_a_range_far_from_0_does_to_sums() -> None:
    far = 2.0**29
    sums = np.array([30, 28, 20, 20])  # of which arm 2 is charged for
    found = bound(
        sums=sums + far * np.array(ARMS["pulls"]),
        boundary=far + 0.55,
        fresh=True,
        rewards=(far, far + 1),
    )
    assert found > bound(sums=sums) + 2 * far * 2.0**-53


def test_rewards_are_declared_as_everywhere() -> None:
    assert bound(rewards="binary") == bound(rewards=Binary())
    assert bound(rewards=(0, 1)) == bound(rewards=Bounded())
    with pytest.raises(InvalidInput, match="`rewards` is 'clicks', but must be a range"):
        bound(rewards="clicks")


@pytest.mark.parametrize("changed", [{"strength": 1e59}, {"epsilon": 100.0}, {"delta": 1e-320}])
def test_no_bound_is_larger_than_what_can_be_lost(changed: dict[str, float]) -> None:
    assert bound(top=[0, 1, 2], **changed) <= 1 / 3


@pytest.mark.parametrize(
    ("given", "value"),
    [({}, "not given"), ({"fresh": False}, "False"), ({"fresh": None}, "not given")],
)
def test_a_bound_is_refused_unless_the_rewards_are_said_to_be_fresh(
    given: dict[str, Any], value: str
) -> None:
    rule = "but must be True: the bound holds only for rewards drawn after the set was chosen"
    with pytest.raises(InvalidInput, match=f"`fresh` is {value}, {rule}.*use `assess`"):
        certify([0], [40, 40], [30, 20], boundary=0.6, **given)
    with pytest.raises(InvalidInput, match="`fresh` is 'yes', but must be True or False"):
        bound(fresh="yes")


SETS = list(combinations(range(5), 2))
PER_GROUP = Quotas("aabbb", {"a": (1, 1)}, k=2)
MEETING_IT = [each for each in SETS if (each[0] < 2) != (each[1] < 2)]


@pytest.mark.parametrize(
    ("constraint", "sets"), [(None, SETS), (PER_GROUP, MEETING_IT)], ids=["any arms", "quotas"]
)
@pytest.mark.parametrize("delta", [0.3, 0.001])
def test_without_a_boundary_the_bound_is_that_of_its_definition(
    constraint: Quotas | None, sets: list[tuple[int, ...]], delta: float
) -> None:
    """The smallest, over strengths s, of the gain of the best set where every arm that is moved
    counts for it by s / 8N, and of ln(1/delta) / s: by comparing all sets."""
    pulls, top = np.array([400, 90, 250, 700, 160]), (0, 2)
    means = np.array([0.81, 0.62, 0.7, 0.35, 0.44])
    each = np.geomspace(0.1, 1e4, 40_000)[:, None]  # strengths
    charges = each / (8 * pulls)
    gains = [
        (means + charges)[:, sorted(set(other) - set(top))].sum(axis=1)
        - (means - charges)[:, sorted(set(top) - set(other))].sum(axis=1)
        for other in sets
    ]
    least = float((np.max(gains, axis=0) - math.log(delta) / each[:, 0]).min()) / 2
    found = certify(
        top, pulls, means * pulls, fresh=True, delta=delta, constraint=constraint, epsilon=None
    )
    assert 0.999 * least <= found <= 1.01 * least


def test_the_largest_number_of_pulls_is_no_error() -> None:
    bound = certify([0], [2**62] * 2, [2.0**61] * 2, fresh=True)
    assert 0 < bound < 1e-8
