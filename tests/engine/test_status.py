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
from shortlist.engine import Experiment
from shortlist.engine import experiment as view
from shortlist.engine.status import arms_told
from shortlist.errors import InvalidInput
from shortlist.formatting import bound_text
from shortlist.stores.base import MemoryStore

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


def told(n_arms: int, k: int, wins: list[int], pulls: int = 20, **asked: Any) -> Experiment:
    """An experiment whose arms won so often of their first pulls, and is not over."""
    asked = {"budget": n_arms * pulls + 1, "algorithm": "uniform", **asked}
    experiment = Experiment.create(n_arms, k, **asked)
    tickets = experiment.ask(n_arms * pulls)
    experiment.tell_many((each, float(each.draw < wins[int(each.arm)])) for each in tickets)
    return experiment


def test_chances_rank_the_arms_and_add_up_to_k() -> None:
    wins = [3, 5, 9, 11, 12, 18]
    chances = told(6, 2, wins, pulls=20, budget=150).status().arms.chances
    assert chances.sum() == pytest.approx(2)
    assert (np.diff(chances) > 0).all()
    assert chances[5] > 0.95 > 0.5 > chances[3]
    turned = told(6, 2, wins, pulls=20, budget=150, minimize=True).status()
    assert turned.arms.chances[0] > turned.arms.chances[1] > turned.arms.chances[5]
    assert [row[0] for row in turned.table().rows][:2] == ["0", "1"]


def test_equal_arms_have_equal_chances_and_those_that_left_have_none() -> None:
    experiment = told(4, 1, [7] * 4, budget=200)
    assert experiment.status().arms.chances == pytest.approx(0.25)
    experiment.retire(2)
    assert experiment.status().arms.chances[2] == 0


def test_chances_are_what_independent_posteriors_say() -> None:
    """Two arms of flat priors: the chance that a mean exceeds the common boundary."""
    from scipy.stats import beta

    won = [9, 13]
    chances = told(2, 1, won, budget=99).status().arms.chances
    laws = [beta(1 + each, 21 - each) for each in won]
    edges = np.linspace(0, 1, 20_001)
    boundary = edges[np.argmin(np.abs(sum(law.sf(edges) for law in laws) - 1))]
    assert chances == pytest.approx([law.sf(boundary) for law in laws], abs=0.02)


def test_what_is_decided_is_certain_and_what_is_not_begun_is_not_known() -> None:
    experiment = Experiment.create(3, 1, budget=30, algorithm="uniform")
    assert np.isnan(experiment.status().arms.chances).all()
    assert experiment.status().summary()["arms"][0]["chance"] is None  # type: ignore[index]
    experiment.run(lambda arm: arm == 1, progress=False)
    assert experiment.status().arms.chances.tolist() == [0, 1, 0]


def test_the_bound_earned_so_far_is_told_where_the_search_knows_one() -> None:
    experiment = Experiment.create(3, 1, epsilon=0.02, rewards=(0, 10))
    assert experiment.status().bound == 10  # no choice loses more
    while experiment.status().bound == 10:
        tickets = experiment.ask(50)
        experiment.tell_many((each, 10.0 * (each.arm == 1)) for each in tickets)
    status = experiment.status()
    assert status.bound == experiment.result(partial=True).regret_bound
    assert status.bound is not None
    assert status.bound < 10
    assert f"at most {bound_text(status.bound, 3)} is lost so far" in " ".join(str(status).split())
    assert Experiment.create(3, 1, budget=30).status().bound is None
    experiment.run(lambda arm: 10.0 * (arm == 1), progress=False)
    assert experiment.status().bound == experiment.result().regret_bound


def test_what_was_told_of_arms_is_worked_out_once_a_change_and_while_nobody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, budget=30, algorithm="uniform")
    free: list[bool] = []

    def seen(*given: Any) -> Any:
        thread = threading.Thread(target=lambda: free.append(experiment.position() >= 0))
        thread.start()
        thread.join(120)
        return arms_told(*given)

    monkeypatch.setattr(view, "arms_told", seen)
    for told in range(3):
        for _ in range(4):
            assert experiment.status().arms.pulls.sum() == told
        assert free == [True] * (told + 1)
        experiment.tell(experiment.ask()[0], 0.5)
    with pytest.raises(ValueError, match="read-only"):
        experiment.status().arms.means[0] = 1


def test_a_status_names_workers_who_may_have_quit() -> None:
    now = [1000.0]
    made = Experiment.create(4, 1, budget=30, lease=60, store=MemoryStore(), clock=lambda: now[0])
    made.ask(2, "ann")
    now[0] += 50
    made.ask(1, "ben")
    now[0] += 30
    status = made.status()
    assert (status.overdue, dict(status.overdue_by)) == (2, {"ann": 2})
    assert "held by ann (2), ben (1); late: ann (2); release the tickets" in " ".join(
        str(status).split()
    )
    made.ask(1)
    assert "held by ann (2), ben (1) and without a name (1); late" in " ".join(
        str(made.status()).split()
    )
    assert made.release("ann") == 2
    assert not made.status().overdue_by


def test_a_worker_who_asks_twice_gets_the_same_tickets_and_no_more_than_its_share() -> None:
    made = Experiment.create(4, 1, budget=60, algorithm="uniform", store=MemoryStore())
    first = made.ask(3, "ann")
    assert [each.id for each in made.ask(3, "ann")] == [each.id for each in first]
    more = made.ask(50, "ann", per_worker=5)
    assert [each.id for each in more][:3] == [each.id for each in first]
    assert len(more) == 5
    assert len(made.ask(50, "ben", per_worker=5)) == 5
    made.tell_many((each, 1.0) for each in more[:2])
    assert len(made.ask(50, "ann", per_worker=5)) == 5
    with pytest.raises(InvalidInput, match="`per_worker` is 5, but needs a `worker`"):
        made.ask(50, per_worker=5)
