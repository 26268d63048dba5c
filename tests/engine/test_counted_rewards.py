"""What is counted while results are late and after arms left, and that all displays agree on it."""

import json
from typing import Any

import numpy as np
import pytest
from waiting import until

import shortlist
from shortlist import wire
from shortlist.confidence import counted_pulls, places
from shortlist.engine import Experiment, outlook
from shortlist.engine.export import export_lines, import_lines
from shortlist.errors import InvalidInput
from shortlist.service.experiments import OpenExperiments
from shortlist.service.pages.view import bound_history, view_experiment
from shortlist.stores.base import MemoryStore

ASKED: dict[str, Any] = {"budget": 60, "rewards": "binary", "algorithm": "uniform"}


def half_told(store: MemoryStore | None = None, **asked: Any) -> Experiment:
    """An experiment of which successes are told, and of 'b' no failure: 'a' always fails first."""
    experiment = Experiment.create(["a", "b", "c"], 1, store=store, **{**ASKED, **asked})
    for ticket in experiment.ask(60):
        reward = float(ticket.draw % 4 == 3 or ticket.arm == "c")
        if reward or ticket.arm == "b":
            experiment.tell(ticket, reward)
    return experiment


def test_pulls_of_an_arm_are_counted_up_to_the_first_that_is_missing() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        arms = rng.integers(0, 4, rng.integers(0, 30))
        told = rng.random(arms.size) < 0.8
        gone: set[int] = set()
        expected = []
        for arm, is_told in zip(arms.tolist(), told.tolist(), strict=True):
            gone |= set() if is_told else {arm}
            expected.append(arm not in gone)
        assert counted_pulls(arms, told, 4).tolist() == expected


def test_a_page_whose_successes_are_told_at_once_is_not_shown_as_a_success() -> None:
    status = half_told().status()
    assert status.told == 5 + 20 + 20
    assert (status.arms.pulls.tolist(), status.arms.waiting.tolist()) == ([0, 20, 20], [5, 0, 0])
    assert np.isnan(status.arms.means[0])
    assert status.arms.means[1:].tolist() == [0.25, 1.0]
    assert (status.arms.low[0], status.arms.high[0]) == (0, 1)
    assert status.arms.to_go.tolist() == [15, 0, 0]
    assert "45 pulls told (5 not counted yet)" in " ".join(str(status).split())


def test_every_display_shows_the_same_numbers() -> None:
    store = MemoryStore()
    experiment = half_told(store)
    arms, partial = experiment.status().arms, experiment.result(partial=True)
    assert [arm.pulls for arm in partial.arms] == arms.pulls.tolist()
    assert [arm.waiting for arm in partial.arms] == arms.waiting.tolist()
    assert [(arm.low, arm.high) for arm in partial.arms] == list(
        zip(arms.low.tolist(), arms.high.tolist(), strict=True)
    )
    assert "5 rewards are not counted: an earlier pull of the same arm is missing." in str(partial)
    assert (partial.pulls, partial.complete) == (45, False)
    said = json.loads(json.dumps(wire.status_to_json(experiment.status())))
    assert list(wire.status_of(said).arms.rows()) == list(arms.rows())
    again = wire.result_of(json.loads(partial.to_json()), partial.rewards)
    assert again.lift("a") == partial.lift("a")
    view = view_experiment(
        OpenExperiments(store),
        "experiment",
        bound_history(OpenExperiments(store), "experiment"),
    )
    bars = {bar.label: bar for group in view.groups for bar in group}
    assert [bars[label].pulls for label in "abc"] == arms.pulls.tolist()
    assert ("Not counted yet", "5") in view.facts


def test_what_is_served_meanwhile_is_not_the_arm_whose_good_rewards_are_quick() -> None:
    experiment = Experiment.create(["a", "b"], 1, **ASKED)
    for ticket in experiment.ask(60):
        if ticket.arm == "b" or ticket.draw % 10 == 9:
            experiment.tell(ticket, float(ticket.arm == "a" or ticket.draw % 3 > 0))
    assert experiment.ask(1).meanwhile == "b"


def test_an_error_has_only_rewards_before_the_first_that_is_missing() -> None:
    later: list[int] = []  # draws of the arm that began after the one that fails

    def pull(arm: str, draw: int) -> float:
        if (arm, draw) == ("a", 3):
            until(lambda: len(later) > 6)  # more than are under way, so one of them has ended
            raise ConnectionError("no answer")
        if arm == "a" and draw > 3:
            later.append(draw)
        return 1.0

    with pytest.raises(ConnectionError) as raised:
        shortlist.select(
            pull, arms=["a", "b"], k=1, executor="threads", workers=4, progress=False, **ASKED
        )
    first, _ = raised.value.partial.arms  # type: ignore[attr-defined]
    assert (first.pulls, first.waiting > 0) == (3, True)


def left_behind(store: MemoryStore | None = None) -> Experiment:
    """An experiment whose best arm left after ten of its pulls."""
    experiment = Experiment.create(["a", "b", "c"], 1, store=store, clock=lambda: 5.0, **ASKED)
    tickets = experiment.ask(60)
    experiment.tell_many((each, 1.0) for each in tickets if each.arm == "a" and each.draw < 10)
    experiment.retire("a", "sold out")
    experiment.tell_many((each, each.draw % 2) for each in tickets if each.arm != "a")
    assert experiment.ask(1) == []
    return experiment


def test_of_an_arm_that_left_only_what_was_drawn_is_shown() -> None:
    store = MemoryStore()
    experiment = left_behind(store)
    lines = list(export_lines(store))
    copied = MemoryStore()
    import_lines(lines, copied)
    for each in (experiment, Experiment.open(store), Experiment.open(copied)):
        status, result = each.status(), each.result()
        assert (status.arms.pulls[0], status.arms.means[0], status.arms.high[0]) == (10, 1, 1)
        assert (result.arms[0].pulls, result.arms[0].mean) == (10, 1.0)
        assert (status.told, status.undrawn, result.pulls, result.spent) == (50, 10, 50, 50)
        assert result.lift("a").arms[0].difference == -0.5
        assert "looks better" not in str(result)


def test_the_page_of_an_experiment_shows_an_arm_that_left_after_all_others() -> None:
    from shortlist.service.pages.render import parts

    store = MemoryStore()
    left_behind(store)
    view = view_experiment(
        OpenExperiments(store),
        "experiment",
        bound_history(OpenExperiments(store), "experiment"),
    )
    assert [bar.label for group in view.groups for bar in group][-1] == "a"
    assert "retired" in parts(view)["arms"]


def test_places_and_chances_are_among_those_that_stay() -> None:
    experiment = Experiment.create(3, 1, **{**ASKED, "budget": 600})
    tickets = experiment.ask(450)
    wins = {0: 1.0, 1: 0.6, 2: 0.1}
    experiment.tell_many(
        (each, float(each.draw % 10 < 10 * wins[int(each.arm)])) for each in tickets
    )
    assert experiment.status().arms.places == ("in", "out", "out")
    experiment.retire(0)
    status = experiment.status()
    assert status.arms.places == ("retired", "in", "out")
    assert status.arms.chances.sum() == pytest.approx(1)


def test_an_outlook_counts_what_is_still_to_be_told() -> None:
    experiment = half_told()
    assert set(outlook(experiment, runs=3).pulls.tolist()) == {15}


def test_arms_of_known_means_are_in_only_if_they_are() -> None:
    """On a test set an interval may be a point."""
    known = np.array([0.5, 0.9])
    assert places(known, known, 1) == ("out", "in")


def test_there_is_no_lift_on_a_test_set_before_the_end_either() -> None:
    experiment = Experiment.create(3, 1, epsilon=0.1, rewards="binary", items=40)
    experiment.tell_many((ticket, 1) for ticket in experiment.ask(9))
    with pytest.raises(InvalidInput, match="these are scores on items"):
        experiment.result(partial=True).lift(0)


def test_bounds_on_a_test_set_hold_whatever_is_told() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = (rng.random((3, 12)) < rng.random((3, 1))).astype(float)
        experiment = Experiment.create(
            3, 1, epsilon=0.1, delta=0.3, rewards="binary", items=12, seed=seed
        )
        for ticket in experiment.ask(30):
            assert ticket.item is not None
            reward = float(scores[int(ticket.arm)][int(ticket.item)])
            if reward or rng.random() < 0.3:
                experiment.tell(ticket, reward)
        arms = experiment.status().arms
        truth = scores.mean(axis=1)
        assert ((arms.low <= truth + 1e-12) & (truth <= arms.high + 1e-12)).all()
