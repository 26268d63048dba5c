"""How few requests are planned: never beyond the net's sample, and always further than before."""

from itertools import pairwise

import pytest

from shortlist.certification.pairs.pace import ENOUGH, MOSTLY, planned_end


def test_large_variances_are_planned_for_by_the_square_of_the_rounds() -> None:
    ends = [planned_end(5, request, float(request - 1), 1000, 900.0) for request in range(1, 6)]
    assert ends == pytest.approx([40, 160, 360, 640, 1000])


def test_small_variances_are_planned_for_geometrically_and_end_before_the_net() -> None:
    sample, tie = 100_000, 10_000.0
    before = planned_end(5, 1, 0.0, sample, 25_000.0)  # before anything is known of variances
    assert before == pytest.approx(sample / 25)
    ends = [before]
    for request in range(2, 5):
        ends.append(planned_end(5, request, ends[-1], sample, tie))
    growth = [late / early for early, late in pairwise(ends)]
    assert growth == pytest.approx([growth[0]] * 3)
    assert ends[-1] == pytest.approx(MOSTLY * tie)


def test_who_is_past_what_was_planned_goes_on_growing() -> None:
    assert planned_end(5, 4, 9000.0, 100_000, 500.0) == pytest.approx(13_500)
    assert planned_end(3, 3, 9000.0, 100_000, 500.0) == pytest.approx(13_500)
    assert ENOUGH * 500 < 9000
