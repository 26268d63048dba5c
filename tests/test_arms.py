"""What belongs to an arm is said with it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist
from shortlist.arms import Arms, position_of
from shortlist.engine import Experiment, export_lines, import_lines
from shortlist.errors import InvalidInput, StoreExists
from shortlist.settings import Settings


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


ASKED: dict[str, Any] = {"k": 1, "budget": 100, "rewards": (0, 1)}


def question(arms: Arms) -> Settings:
    return Settings.of({"arms": arms, **ASKED}, stored=False)


def limits_of(arms: Arms) -> tuple[tuple[object, ...], object]:
    asked = question(arms)
    return asked.labels, asked.problem.limits


def test_arms_and_labels_may_stand_side_by_side() -> None:
    assert limits_of([shortlist.Arm("a", limit=3), "b"]) == (("a", "b"), (3, None))
    assert limits_of([shortlist.Arm("a"), shortlist.Arm(("b", 1))]) == (("a", ("b", 1)), None)
    with pytest.raises(InvalidInput, match="two arms are called 'a'"):
        limits_of([shortlist.Arm("a", limit=3), "a"])


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_data_frame_has_a_column_for_whatever_belongs_to_an_arm(name: str) -> None:
    library = pytest.importorskip(name)
    frame = library.DataFrame({"arm": ["a", "b"], "limit": [40, None], "colour": ["red", "blue"]})
    assert limits_of(frame) == (("a", "b"), (40, None))
    assert limits_of(library.DataFrame({"arm": [7, 9]})) == ((7, 9), None)
    with pytest.raises(InvalidInput, match="columns name, but must have one that is called `arm`"):
        limits_of(library.DataFrame({"name": ["a", "b"]}))
    with pytest.raises(InvalidInput, match=r"`limit of 'a'` is 1\.5"):
        limits_of(library.DataFrame({"arm": ["a", "b"], "limit": [1.5, 2.0]}))


def test_costs_reach_the_problem_and_are_none_where_every_pull_costs_1() -> None:
    asked = question([shortlist.Arm("a"), shortlist.Arm("b", cost=2)])
    assert asked.problem.costs == (1.0, 2.0)
    assert question([shortlist.Arm("a"), "b"]).problem.costs is None


def test_an_experiment_keeps_limits(tmp_path: Path) -> None:
    arms = [shortlist.Arm("a", limit=5), shortlist.Arm("b"), shortlist.Arm("c")]
    asked: dict[str, Any] = {"budget": 60, "rewards": "binary", "store": tmp_path / "s.db"}
    Experiment.create(arms, 1, **asked).close()
    with pytest.raises(StoreExists, match="other limits"):
        Experiment.create(["a", "b", "c"], 1, exist_ok=True, **asked)
    lines = list(export_lines(tmp_path / "s.db"))
    import_lines(lines, tmp_path / "copy.db")
    for name in ("s.db", "copy.db"):
        with Experiment.open(tmp_path / name) as experiment:
            while tickets := experiment.ask(7):
                experiment.tell_many((ticket, float(ticket.arm == "c")) for ticket in tickets)
            result = experiment.result()
        assert [arm.limit for arm in result.arms] == [5, None, None]
        assert result.arms[0].pulls <= 5
        assert result.pulls == 60


def test_what_can_be_no_label_is_nowhere_among_them() -> None:
    labels = ("a", 1, ("b", 2))
    assert [position_of(label, labels) for label in labels] == [0, 1, 2]
    assert position_of(np.int64(1), labels) == 1
    for other in ("c", True, np.zeros((2, 2)), ["a"], ("b", np.zeros(2)), None, 10**5000):
        assert position_of(other, labels) is None
