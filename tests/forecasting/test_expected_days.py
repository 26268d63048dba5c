"""What to expect of a live test: days, by simulation, before its rates are known."""

import re
from dataclasses import replace

from shortlist.forecasting.days import expected_days, outlook_of
from shortlist.problem import FixedConfidence, Problem, Traffic

TEST = Problem(3, 1, FixedConfidence(0.02, 0.05), traffic=Traffic(3000, 2))


def test_arms_that_are_alike_take_longer_and_the_delay_is_part_of_it() -> None:
    alike, apart = expected_days(TEST, 0.2, 0.0), expected_days(TEST, 0.2, 0.06)
    assert 2 < apart.median < alike.median <= alike.late
    prompt = replace(TEST, traffic=Traffic(3000, 0))
    assert expected_days(prompt, 0.2, 0.06).median < apart.median


def test_the_outlook_names_its_assumptions() -> None:
    said = outlook_of(TEST)
    assert re.fullmatch(
        r"if rates are near 0\.2: \d+ days \(90 %: \d+\) where all arms are alike, \d+ days"
        r" \(90 %: \d+\) where the best lead by 0\.04, with 3,000 visitors per day",
        said,
    )


def test_there_is_no_outlook_without_visitors_or_for_many_arms() -> None:
    assert outlook_of(replace(TEST, traffic=None)) == ""
    assert outlook_of(replace(TEST, traffic=Traffic())) == ""
    assert outlook_of(replace(TEST, n_arms=51)) == ""
