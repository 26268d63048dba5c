"""What belongs to an arm is said with it."""

import numpy as np
import pytest

import shortlist
from shortlist.errors import InvalidInput


def test_an_arm_costs_1_and_has_no_limit() -> None:
    arm = shortlist.Arm("red")
    assert (arm.label, arm.cost, arm.limit) == ("red", 1.0, None)


def test_numbers_become_plain_ones() -> None:
    arm = shortlist.Arm(np.int64(3), cost=np.float64(0.5), limit=int(np.int32(40)))
    assert [type(each) for each in (arm.label, arm.cost, arm.limit)] == [int, float, int]


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ({"label": 1.5}, "an arm is called 1.5"),
        ({"label": "a", "cost": 0}, "`cost of 'a'` is 0"),
        ({"label": "a", "cost": "dear"}, "`cost of 'a'` is 'dear'"),
        ({"label": "a", "limit": 0}, "`limit of 'a'` is 0"),
        ({"label": "a", "limit": 2.5}, "`limit of 'a'` is 2.5"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arm: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        shortlist.Arm(**arm)  # type: ignore[arg-type]
