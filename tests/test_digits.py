"""What is printed of a number that carries a promise never claims more than the number does."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.formatting import (
    PERCENT,
    ROUNDING,
    amount_text,
    below_text,
    bound_text,
    chance_text,
    confidence_text,
    failures_text,
    given_text,
    interval_text,
    mean_text,
    percent_text,
    range_of,
)

RANGES = [(0.0, 1.0), (1000.0, 1001.0), (1e-9, 2e-9), (-1e6, 1e6), (-1001.0, -1000.0), (0.0, 1e60)]
POSITIVE = st.floats(0, 1e60)


def read(text: str) -> float:
    """The number that a text is."""
    return float(text.replace(",", ""))


def read_interval(text: str) -> tuple[float, float]:
    low, high = text.split(" … ")
    return read(low), read(high)


@st.composite
def triples(draw: st.DrawFn) -> tuple[float, float, float]:
    """A lower end, a mean and an upper end of rewards in one of the ranges."""
    least, most = draw(st.sampled_from(RANGES))
    within = st.floats(least, most)
    near = draw(within)
    narrow = st.floats(0, 1e-6 * (most - least)).map(lambda step: min(most, near + step))
    low, mean, high = sorted([near, draw(within | narrow), draw(within | narrow)])
    return low, mean, high


def test_an_interval_that_only_rounding_makes_wider_than_a_point_has_few_digits() -> None:
    low, high = 0.38888888888888884, 0.3888888888888889
    assert interval_text(low, high) == "0.388888 … 0.388889"
    assert mean_text(high, low, high) == "0.388889"


@given(triples(), st.booleans())
def test_a_printed_interval_contains_the_computed_one_and_tells_its_ends_apart(
    ends: tuple[float, float, float], sign: bool
) -> None:
    low, _, high = ends
    text = interval_text(low, high, sign=sign)
    below, above = read_interval(text)

    assert below <= low <= high <= above
    if low < high:
        assert below < above
        # outward by at most 2 % of the width, as far as floats can be told apart
        assert above - below <= 1.021 * (high - low) + 8 * math.ulp(max(abs(low), abs(high)))


@given(triples())
def test_a_printed_mean_lies_in_the_printed_interval(ends: tuple[float, float, float]) -> None:
    low, mean, high = ends
    printed = read(mean_text(mean, low, high))
    below, above = read_interval(interval_text(low, high))

    assert below <= printed <= above
    point = high - low <= float(ROUNDING) * max(abs(low), abs(high))
    room = 1e-5 * abs(mean) if point else 0.0051 * (high - low)
    assert abs(printed - mean) <= room + 8 * math.ulp(mean)


@given(POSITIVE, st.integers(1, 8))
def test_a_printed_bound_is_at_least_the_computed_one(bound: float, digits: int) -> None:
    printed = read(bound_text(bound, digits))
    assert bound <= printed <= bound * (1 + 1.001 * 10.0 ** (1 - digits)) + 5e-324


@given(st.floats(1e-60, 1, exclude_max=True))
def test_a_printed_confidence_is_below_1_and_at_most_the_computed_one(delta: float) -> None:
    confidence = 1 - delta
    printed = read(confidence_text(confidence))

    assert printed <= confidence
    assert printed < 1
    assert confidence - printed <= 0.00101 * delta + 1.2e-16
    exact = Decimal(repr(confidence))
    assert Decimal(percent_text(confidence)) <= 100 * exact
    assert Decimal(percent_text(confidence)) < 100
    assert Decimal(failures_text(confidence)) >= 100 * (1 - exact)
    assert Decimal(failures_text(confidence)) > 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_was_given_is_printed_with_all_its_digits(value: float) -> None:
    assert float(given_text(value)) == value


@given(st.floats(0, 1e18), st.floats(0, 1e18))
def test_amounts_keep_their_order(one: float, other: float) -> None:
    less, more = sorted([one, other])
    assert read(amount_text(less)) <= read(amount_text(more))
    assert math.isclose(read(amount_text(more)), more, rel_tol=1e-5)


@pytest.mark.parametrize(
    ("low", "high", "mean", "interval", "middle"),
    [
        (0.123456, 0.456789, 0.29, "0.123 … 0.457", "0.290"),
        (1000.1234, 1000.5678, 1000.3, "1000.123 … 1000.568", "1000.300"),
        (1.2e-9, 1.34561e-9, 1.3e-9, "1.200e-09 … 1.346e-09", "1.300e-09"),
        (-123456.0, 654321.0, 1234.5, "-124,000 … 655,000", "1,000"),
        (0.0, 1.0, 0.5, "0.00 … 1.00", "0.50"),
        (-0.0004, 0.9, 0.3, "-0.001 … 0.900", "0.300"),
        (-0.9, -0.0004, -0.3, "-0.900 … 0.000", "-0.300"),
        (0.62, 0.62, 0.62, "0.62 … 0.62", "0.62"),
        (2 / 3, 2 / 3, 2 / 3, "0.666666 … 0.666667", "0.666667"),
        (0.0, 0.0, 0.0, "0 … 0", "0"),
        (-math.inf, math.inf, 0.123456, "-", "0.1235"),
        (0.8765, math.inf, 1.5, "0.876 … inf", "1.5"),
    ],
)
def test_digits_follow_the_width_of_the_interval(
    low: float, high: float, mean: float, interval: str, middle: str
) -> None:
    assert interval_text(low, high) == interval
    assert mean_text(mean, low, high) == middle


def test_signs_are_printed_where_differences_are() -> None:
    assert interval_text(-0.25, 0.5, sign=True) == "-0.250 … +0.500"
    assert mean_text(0.1, -0.25, 0.5, sign=True) == "+0.100"


def test_what_is_not_known_is_a_dash() -> None:
    assert mean_text(None, 0, 1) == mean_text(math.nan, 0, 1) == chance_text(math.nan) == "-"


@pytest.mark.parametrize(
    ("bound", "digits", "text"),
    [
        (0.05, 4, "0.05"),
        (0.049661, 4, "0.04967"),
        (0.2991, 2, "0.3"),
        (0.0, 3, "0"),
        (1234567.0, 4, "1,235,000"),
        (1e-320, 4, "1e-320"),
        (math.inf, 4, "inf"),
    ],
)
def test_a_bound_is_rounded_up(bound: float, digits: int, text: str) -> None:
    assert bound_text(bound, digits) == text


@pytest.mark.parametrize(
    ("delta", "confidence", "percent", "wrong"),
    [
        (0.05, "0.95", "95", "5"),
        (1e-5, "0.99999", "99.999", "0.001"),
        (0.0123456, "0.98765", "98.765", "1.235"),
        (1e-9, "0.999999999", "99.9999999", "1e-07"),
        (1e-30, "0.9999999999999999", "99.99999999999999", "1e-14"),
    ],
)
def test_confidence_is_rounded_down_and_failures_up(
    delta: float, confidence: str, percent: str, wrong: str
) -> None:
    assert confidence_text(1 - delta) == confidence
    assert percent_text(1 - delta) == percent
    assert failures_text(1 - delta) == wrong


@pytest.mark.parametrize(
    ("chance", "text"),
    [(0.0, "0%"), (0.001, "<1%"), (0.5, "50%"), (0.987, "99%"), (0.9999, ">99%"), (1.0, "100%")],
)
def test_what_is_not_certain_is_not_called_so(chance: float, text: str) -> None:
    assert chance_text(chance) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.1 + 0.2, "0.3"), (1234.5678, "1234.57"), (999999.7, "1,000,000"), (7654321.2, "7,654,321")],
)
def test_an_amount_has_all_digits_before_its_point(amount: float, text: str) -> None:
    assert amount_text(amount) == text


def test_means_without_intervals_have_the_digits_in_which_they_differ() -> None:
    ends = -math.inf, math.inf
    among = range_of([1e9, 1e9 + 0.25, None, math.nan])
    assert mean_text(1e9 + 0.125, *ends, among=among) == "1,000,000,000.125"
    assert mean_text(1e9 + 0.125, *ends) == "1,000,000,000"
    assert mean_text(0.5, *ends, among=range_of([])) == "0.5"
    assert mean_text(0.5, 0.4, 0.6, among=(0.0, 1e6)) == "0.500"


@given(triples(), st.booleans())
def test_an_interval_in_percent_contains_the_computed_one(
    ends: tuple[float, float, float], sign: bool
) -> None:
    low, _, high = ends
    text = interval_text(low, high, sign=sign, unit=PERCENT)
    below, above = text.removesuffix(" points" if sign else "%").split(" … ")
    assert Decimal(below.replace(",", "")) <= Decimal(repr(low)) * 100
    assert Decimal(above.replace(",", "")) >= Decimal(repr(high)) * 100


@given(POSITIVE)
def test_a_bound_in_percentage_points_is_rounded_away_from_what_it_bounds(bound: float) -> None:
    above = bound_text(bound, unit=PERCENT).split(" ")[0]
    below = below_text(bound, unit=PERCENT).split(" ")[0]
    assert Decimal(below.replace(",", "")) <= Decimal(repr(bound)) * 100
    assert Decimal(above.replace(",", "")) >= Decimal(repr(bound)) * 100


def test_percent_and_percentage_points_are_named() -> None:
    assert bound_text(0.0031234, unit=PERCENT) == "0.3124 percentage points"
    assert bound_text(0.01, unit=PERCENT) == "1 percentage point"
    assert given_text(0.002, PERCENT) == "0.2 percentage points"
    assert mean_text(0.024, 0.02, 0.03, unit=PERCENT) == "2.40%"
    assert mean_text(0.003, -0.001, 0.007, sign=True, unit=PERCENT) == "+0.300 points"
    assert mean_text(0.0241234, -math.inf, math.inf, unit=PERCENT) == "2.412%"
