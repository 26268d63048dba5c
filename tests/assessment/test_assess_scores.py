"""`assess` of scores on a test set: files, tiers and words."""

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import shortlist
from shortlist import instances
from shortlist.arrays import FloatArray
from shortlist.cli import main
from shortlist.errors import InvalidInput, InvalidReward

ZERO = Fraction(0)
SCORES = instances.item_response(8, 300, np.random.default_rng(6))


def test_a_complete_matrix_is_judged_exactly() -> None:
    found = shortlist.assess(scores=SCORES, k=3)
    best = np.argsort(-SCORES.mean(1), kind="stable")[:3]
    assert set(found.top) == set(best.tolist())
    assert found.regret_bound == pytest.approx(0)
    assert "All cells are known" in str(found)
    assert found.items == 300
    assert found.to_dict()["separates_at"] == list(found.separates_at)


def test_missing_cells_make_intervals_of_confidence_not_of_arithmetic() -> None:
    partly = SCORES.copy()
    partly[:, 165:] = np.nan
    found = shortlist.assess(scores=partly, k=3)
    for arm in found.arms:
        assert arm.low is not None
        assert arm.high is not None
        assert arm.low <= SCORES[arm.label].mean() <= arm.high
        assert arm.high - arm.low < 0.25  # what is missing is 45 % of the items
    assert "random sample" in str(found)
    assert "intervals hold together" in str(found)
    mirrored = shortlist.assess(scores=1 - partly, k=3, minimize=True)
    assert mirrored.top == found.top
    assert mirrored.regret_bound == pytest.approx(found.regret_bound)
    wide = shortlist.assess(scores=10 * partly - 2, k=3, rewards=(-2, 8))
    assert wide.regret_bound == pytest.approx(10 * found.regret_bound)
    assert wide.tiers == found.tiers


@pytest.mark.parametrize("kind", ["wide", "long"])
def test_files_of_scores_are_assessed_at_the_command_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "results.csv"
    arms, items = [f"m{each}" for each in range(8)], [f"q{each}" for each in range(300)]
    if kind == "wide":
        lines = [",".join(["arm", *items])]
        lines += [",".join([arm, *map(str, SCORES[row])]) for row, arm in enumerate(arms)]
    else:
        lines = ["arm,item,score"]
        lines += [
            f"{a},{q},{SCORES[i, j]}" for i, a in enumerate(arms) for j, q in enumerate(items)
        ]
    path.write_text("\n".join(lines), encoding="utf-8")
    given = ["assess", "--scores", str(path), "-k", "3", "--format", "json"]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    exact = shortlist.assess(scores=SCORES, k=3)
    assert data["top"] == [f"m{arm}" for arm in exact.top]
    assert data["items"] == 300


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 1}, "neither of `counts` and `scores` given"),
        ({"k": 1, "scores": SCORES, "counts": {"a": (3, 1)}}, "both of `counts` and `scores`"),
        ({"scores": SCORES}, "`k` is not given"),
        ({"k": 1, "scores": SCORES, "fixed": True}, "`fixed` is True, but is about counts"),
        ({"k": 1, "scores": SCORES, "quotas": {"a": (1, 1)}}, "`quotas` is given, but goes with"),
        ({"k": 8, "scores": SCORES}, "`k` is 8"),
        ({"k": 1, "scores": SCORES[:1]}, "`scores` has 1 arm, but must have at least 2"),
        ({"k": 1, "scores": "missing.csv"}, "there is no such file"),
        (
            {"k": 1, "scores": SCORES, "rewards": shortlist.SubGaussian(1.0)},
            "scores on items need a range",
        ),
    ],
)
def test_what_cannot_be_assessed_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        shortlist.assess(**given)


def test_scores_outside_their_range_are_refused() -> None:
    with pytest.raises(InvalidReward, match="arm 0 on item 0"):
        shortlist.assess(scores=SCORES + 2, k=1)


def worst_case(scores: FloatArray, top: Sequence[Any]) -> Fraction:
    """What a choice loses at most, in exact arithmetic, if cells without a score may be 0 or 1."""
    n, size = scores.shape
    least = [sum((Fraction(x) for x in row if x == x), ZERO) for row in scores.tolist()]
    most = [each + int(np.isnan(row).sum()) for each, row in zip(least, scores, strict=True)]
    others = [arm for arm in range(n) if arm not in top]
    lost = (
        sum((max(most[j] - least[i], ZERO) for i, j in zip(top, turn, strict=True)), ZERO)
        for turn in permutations(others, len(top))
    )
    most_lost = max(lost)
    return most_lost / int(size) / len(top)


@given(
    scores=arrays(
        np.float64,
        st.tuples(st.integers(2, 5), st.integers(1, 7)),
        elements=st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.3, 0.7, 1 / 3, math.nan]),
    ),
    data=st.data(),
)
def test_a_bound_is_never_below_its_exact_value(scores: FloatArray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(scores) - 1))
    found = shortlist.assess(scores=scores, k=k, delta=1e-100)  # bets win nothing
    exact = worst_case(scores, found.top) if len(scores) >= 2 * k else None
    assert exact is None or exact <= Fraction(found.regret_bound) <= exact + Fraction(1, 10**12)
    for arm, row in zip(found.arms, scores.tolist(), strict=True):
        left = sum(x != x for x in row)
        sure = sum((Fraction(x) for x in row if x == x), ZERO)
        assert arm.low is not None
        assert arm.high is not None
        if left:
            assert Fraction(arm.low) <= sure / len(row)
            assert Fraction(arm.high) >= (sure + left) / len(row)
        else:
            assert arm.low == arm.mean == arm.high


def test_a_bound_of_a_third_is_at_least_a_third() -> None:
    scores = np.array([[1.0, 1, 0], [0, 1, math.nan], [math.nan, 0, 1]])
    found = shortlist.assess(scores=scores, k=1, delta=1e-100)
    assert Fraction(found.regret_bound) >= worst_case(scores, found.top)
    assert shortlist.assess(scores=[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], k=1).regret_bound < 1e-12
