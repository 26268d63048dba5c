"""The panels are those of Section 5, and are found by name."""

import pytest

from shortlist.errors import UnknownName
from shortlist.reproduction.design import PANELS, choose


def test_there_are_fifteen_panels_at_epsilon_and_delta_one_percent() -> None:
    assert len(PANELS) == 15
    assert {(panel.epsilon, panel.delta) for panel in PANELS.values()} == {(0.01, 0.01)}
    assert {panel.means().size for panel in PANELS.values() if panel.dataset != "rte"} == {1000}
    assert PANELS["rte-80"].means().size == 164


def test_a_dataset_stands_for_its_panels_and_no_name_for_all() -> None:
    assert [panel.name for panel in choose(["uniform-500", "rte"])] == [
        "uniform-500",
        "rte-30",
        "rte-50",
        "rte-80",
    ]
    assert choose([]) == tuple(PANELS.values())


def test_an_unknown_panel_is_named() -> None:
    with pytest.raises(UnknownName, match="panel 'uniform-7' is unknown; there are two-group, "):
        choose(["uniform-7"])
