"""Intervals and places that a status shows, against what they claim."""

import threading
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist
from shortlist.confidence import places
from shortlist.experiment import Experiment, view
from shortlist.experiment.status import arms_told
from shortlist.storage.memory import MemoryStore

ends = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=2, max_size=6)


@given(ends, st.data())
def test_an_arm_is_in_or_out_only_if_no_means_within_the_intervals_say_otherwise(
    boxes: list[tuple[int, int]], data: st.DataObject
) -> None:
    low = np.array([start for start, _ in boxes], dtype=np.float64)
    high = low + np.array([length for _, length in boxes])
    k = data.draw(st.integers(1, low.size - 1))
    means = np.array([data.draw(st.floats(a, b)) for a, b in zip(low, high, strict=True)])
    best = max(sum(means[list(each)]) for each in combinations(range(low.size), k))
    for arm, place in enumerate(places(low, high, k)):
        rivals = np.sort(np.delete(means, arm))[::-1]
        if place == "in":
            assert means[arm] + rivals[: k - 1].sum() == pytest.approx(best)
        elif place == "out":
            assert rivals[:k].sum() == pytest.approx(best)


def test_clear_arms_are_placed_and_close_ones_are_not() -> None:
    low, high = np.array([0.0, 0.1, 0.5, 0.55, 0.8]), np.array([0.3, 0.4, 0.7, 0.75, 0.9])
    assert places(low, high, 1) == ("out", "out", "out", "out", "in")
    assert places(low, high, 2) == ("out", "out", "undecided", "undecided", "in")
    assert places(low, high, 3) == ("out", "out", "in", "in", "in")
    assert places(low, high, 4) == ("undecided", "undecided", "in", "in", "in")


def test_a_status_prints_the_best_arms_first_and_no_arrays() -> None:
    made = Experiment.create(
        ["plain", "[red]", "<b>"], 1, budget=30, algorithm="uniform", store=MemoryStore()
    )
    rewards = {"plain": 0.2, "[red]": 0.9, "<b>": 0.5}
    made.tell_many([(ticket, rewards[str(ticket.arm)]) for ticket in made.ask(2)])
    status = made.status()
    lines = str(status).splitlines()
    assert lines[0].startswith("experiment: ready, 2 pulls told, waits for 28 more, 0 of them")
    order = [line.split()[0] for line in lines if "…" in line]
    assert order == ["[red]", "plain", "<b>"]
    assert max(map(len, lines)) <= 100
    assert "&lt;b&gt;" in status._repr_html_()
    assert "array" not in repr(status) + repr(status.arms)
    assert "1 more arm" in str(status.table(rows=2))
    assert [arm["mean"] for arm in status.arms.rows()] == [0.2, 0.9, None]
    assert status.summary()["told"] == 2


def test_the_table_says_which_arms_were_chosen_once_that_is_decided() -> None:
    experiment = shortlist.Experiment.create(["a", "b"], 1, budget=8, algorithm="uniform")
    assert "chosen" not in str(experiment.status())
    experiment.tell_many((ticket, ticket.arm == "b") for ticket in experiment.ask(8))
    rows = experiment.status().table().rows
    assert [(row[0], row[4]) for row in rows] == [("b", "chosen"), ("a", "not chosen")]


def test_what_was_told_of_arms_is_worked_out_once_a_change_and_while_nobody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, budget=30, algorithm="uniform")
    free: list[bool] = []

    def seen(*given: Any) -> Any:
        thread = threading.Thread(target=lambda: free.append(experiment.position() >= 0))
        thread.start()
        thread.join(10)
        return arms_told(*given)

    monkeypatch.setattr(view, "arms_told", seen)
    for told in range(3):
        for _ in range(4):
            assert experiment.status().arms.pulls.sum() == told
        assert free == [True] * (told + 1)
        experiment.tell(experiment.ask()[0], 0.5)
    with pytest.raises(ValueError, match="read-only"):
        experiment.status().arms.means[0] = 1
