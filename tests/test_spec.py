"""Every door has every setting of the spec, by the same name and with the same default."""

import inspect
from collections.abc import Callable
from typing import Any

import click
import msgspec
import pytest

import shortlist
from shortlist.cli.live import create
from shortlist.errors import InvalidInput
from shortlist.spec import FIELDS, FIELDS_OF, Door, Spec, json_schema

DOORS: dict[str, tuple[Door, Callable[..., Any]]] = {
    "select": ("select", shortlist.select),
    "select_async": ("select", shortlist.select_async),
    "Experiment.create": ("create", shortlist.Experiment.create),
    "Client.create": ("create", shortlist.Client.create),
    "simulate": ("simulate", shortlist.simulate),
    "forecast": ("forecast", shortlist.forecast),
}
BAD: dict[str, Any] = {"delta": 1, "epsilon": -1, "seed": -1, "order": "none", "minimize": 2}


def forgotten(door: Door, function: Callable[..., Any]) -> list[str]:
    """Settings of the spec that a signature lacks, or has with another default."""
    parameters = inspect.signature(function).parameters
    return [
        name
        for name in FIELDS_OF[door]
        if name not in parameters
        or not (FIELDS[name].required or parameters[name].default == FIELDS[name].default)
    ]


@pytest.mark.parametrize("name", DOORS)
def test_a_door_has_every_setting_with_its_default(name: str) -> None:
    assert forgotten(*DOORS[name]) == []


def test_a_door_that_forgets_a_setting_is_noticed() -> None:
    def door(*, arms: int, k: int, delta: float = 0.1) -> None: ...

    assert {"delta", "epsilon", "seed"} <= set(forgotten("select", door))


def test_a_setting_that_a_door_lacks_has_a_reason() -> None:
    reasons = [reason for field in FIELDS.values() for reason in field.absent.values()]
    assert reasons
    assert all(reasons)


def test_the_command_line_has_an_option_for_every_plain_setting() -> None:
    options = {each.name for each in create.params if isinstance(each, click.Option)}
    plain = {name for name, field in FIELDS_OF["create"].items() if field.plain}
    assert plain - options == set()


def test_the_schema_of_the_body_has_every_setting() -> None:
    assert set(json_schema()["properties"]) == set(FIELDS)
    assert all(each.text.endswith(".") for each in FIELDS.values())


def test_a_spec_comes_back_from_json_as_it_was() -> None:
    spec = Spec(arms=("a", "b", "c"), k=1, epsilon=0.1, max_rounds=3, control="a")
    assert msgspec.json.decode(msgspec.json.encode(spec), type=Spec) == spec
    assert spec.difference(spec) is None


@pytest.mark.parametrize("setting", BAD)
def test_every_door_refuses_a_bad_value_with_the_same_words(setting: str) -> None:
    given = {"k": 1, "budget": 20, setting: BAD[setting]}
    calls: list[Callable[[], object]] = [
        lambda: shortlist.select(lambda arm: 1.0, arms=3, progress=False, **given),
        lambda: shortlist.Experiment.create(3, **given),
        lambda: shortlist.simulate("uniform", [0.5, 0.4, 0.3], runs=1, **given),
    ]
    messages = set()
    for call in calls:
        with pytest.raises(InvalidInput, match=f"`{setting}` is") as caught:
            call()
        messages.add(str(caught.value))
    assert len(messages) == 1
