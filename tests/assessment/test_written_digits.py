"""Sums and squares that were written with few digits, of rewards far from 0."""

import json

import numpy as np
import pytest

from shortlist import assess

PULLS, SD = 10**6, 0.02


@pytest.mark.parametrize("base", [1000.0, 10_000.0])
def test_intervals_hold_for_sums_and_squares_of_ten_digits(base: float) -> None:
    rng = np.random.default_rng(29)
    wrong = 0
    for _ in range(20):
        counts = {}
        for arm in range(4):
            mean = base + 0.5 + SD * rng.standard_normal() / np.sqrt(PULLS)
            squares = SD**2 * rng.chisquare(PULLS - 1) + PULLS * mean**2
            counts[arm] = (PULLS, float(f"{PULLS * mean:.10g}"), float(f"{squares:.10g}"))
        found = assess(counts, k=1, fixed=True, rewards=(base, base + 1))
        wrong += any(not arm.low <= base + 0.5 <= arm.high for arm in found.arms)
    assert wrong <= 4  # of 20 at delta = .05: more has a probability of 1e-4


def test_a_confidence_is_never_1() -> None:
    found = assess({"a": (50, 30), "b": (50, 20)}, k=1, fixed=True, delta=1e-17)
    assert found.confidence < 1
    assert json.loads(found.to_json())["confidence"] < 1
