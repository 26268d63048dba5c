"""What all certificates share: the answer with its bound."""

import math

import numpy as np
import pytest

from shortlist.certificates.frame import answered
from shortlist.problem import FixedConfidence, Problem

TOP = np.array([1, 3, 4])
EPSILON = 0.1
PROBLEM = Problem(6, 3, FixedConfidence(EPSILON, 0.25))


@pytest.mark.parametrize("bound", [0.6, 0.15, 0.0])
def test_an_answer_has_the_bound_per_chosen_arm_and_its_confidence(bound: float) -> None:
    answer = answered(PROBLEM, TOP, bound, {"certificate": "pairs"})
    assert answer.top.tolist() == TOP.tolist()
    assert answer.regret_bound == pytest.approx(bound / 3)
    assert answer.confidence == 0.75
    assert answer.evidence == {"certificate": "pairs"}


def test_a_bound_that_reaches_epsilon_is_not_rounded_above_it() -> None:
    assert 3 * EPSILON / 3 > EPSILON  # in floats
    assert answered(PROBLEM, TOP, 3 * EPSILON, {}).regret_bound == EPSILON


@pytest.mark.parametrize("bound", [math.inf, math.nan])
def test_a_bound_that_is_not_finite_is_none(bound: float) -> None:
    answer = answered(PROBLEM, TOP, bound, {})
    assert answer.regret_bound is None
    assert answer.confidence is None
