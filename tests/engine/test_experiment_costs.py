"""What pulls cost is in the log, the budget is kept, and whoever reads it agrees."""

from pathlib import Path
from typing import Any

import pytest

from shortlist import Arm
from shortlist.engine import Experiment, State, export_lines, import_lines, verify
from shortlist.errors import ConflictingReward, InvalidInput, StoreDamaged, StoreExists
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

ARMS = [Arm("a", cost=1), Arm("b", cost=4), Arm("c", cost=2), Arm("d", cost=1)]
GIVEN: dict[str, Any] = {"k": 1, "rewards": "binary", "budget": 60}


def made(**given: Any) -> Experiment:
    return Experiment.create(ARMS, **{**GIVEN, **given})


def work_off(experiment: Experiment, cost: float | None = None) -> None:
    while tickets := experiment.ask(3):
        for ticket in tickets:
            experiment.tell(ticket, float(ticket.draw % 5 < 1 + 2 * (ticket.arm == "c")), cost)


def test_the_status_and_the_result_say_what_was_spent() -> None:
    experiment = made()
    for ticket in experiment.ask(3):
        experiment.tell(ticket, 1)
    status = experiment.status()
    assert (status.spent, status.budget, status.told) == (4, 60, 3)
    for ticket in experiment.ask(1):
        experiment.tell(ticket, 0, cost=2.25)
    assert experiment.status().spent == 6.25
    assert "that cost 6.25 of 60" in str(experiment.status())
    assert experiment.result(partial=True).spent == 6.25
    work_off(experiment)
    assert 56 < experiment.result().spent <= 60
    assert experiment.status().state is State.BUDGET


@pytest.mark.parametrize("cost", [0.3, 5.0, 100.0])
def test_no_ticket_is_handed_out_that_the_budget_does_not_pay_for(cost: float) -> None:
    experiment = made()
    prices = {"a": 1, "b": 4, "c": 2, "d": 1}
    spent = 0.0
    while tickets := experiment.ask(2):
        assert spent + sum(prices[str(ticket.arm)] for ticket in tickets) <= 60
        for ticket in tickets:
            experiment.tell(ticket, 1, cost)
            spent += cost
    assert experiment.status().state is State.BUDGET
    assert experiment.result().spent == pytest.approx(spent)
    assert not experiment.result().partial


def test_what_is_under_way_counts_as_declared_until_it_is_told() -> None:
    experiment = made(budget=30)
    first, second = experiment.ask(2)  # that are to cost 1 and 2
    experiment.tell(first, 1, cost=27.5)
    handout = experiment.ask(5)
    assert (list(handout), handout.state) == ([], State.PENDING)  # one more would cost 1
    experiment.tell(second, 0, cost=0.25)
    assert len(experiment.ask(5)) == 2  # for 1 each; one more, for 2, would be too much


def test_the_end_of_the_budget_is_for_good() -> None:
    clock = [0.0]
    experiment = made(budget=30, on_late="again", lease=10, clock=lambda: clock[0])
    first, second = experiment.ask(2)
    experiment.tell(first, 1, cost=29.5)
    clock[0] = 20.0  # the second one is given up
    assert experiment.ask().state is State.BUDGET
    result = experiment.result()
    experiment.tell(second, 1, cost=0.0)  # too late: it counts nowhere
    assert experiment.result() == result
    assert (result.pulls, result.spent) == (1, 29.5)
    assert experiment.status().wanted == 0
    reopened = Experiment.open(experiment.store)
    assert reopened.result() == result


def test_a_cost_is_told_once_as_a_reward_is() -> None:
    experiment = made()
    ticket, other, third = experiment.ask(3)
    experiment.tell(ticket, 1, cost=3)
    experiment.tell(ticket, 1, cost=3)
    experiment.tell(ticket, 1)
    with pytest.raises(ConflictingReward, match=r"ticket 0 is told to cost 5\.0, but was told 3"):
        experiment.tell(ticket, 1, cost=5)
    experiment.tell(other, 1)
    experiment.tell(other, 1, cost=2)  # what was declared
    with pytest.raises(ConflictingReward, match=r"told to cost 1\.0, but was told 2\.0"):
        experiment.tell(other, 1, cost=1)
    with pytest.raises(ConflictingReward, match=r"told to cost 3\.0, but was told 2"):
        experiment.tell_many([(third, 1, 2), (third, 1, 3)])
    assert experiment.status().spent == 5


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), "1", True, 1e13])
def test_a_cost_that_cannot_be_is_refused_and_nothing_is_told(cost: Any) -> None:
    experiment = made()
    tickets = experiment.ask(2)
    with pytest.raises(InvalidInput, match=r"the cost of ticket 1 \(arm 'c'\) is "):
        experiment.tell_many([(tickets[0], 1), (tickets[1], 1, cost)])
    assert experiment.status().told == 0


def test_an_export_carries_what_was_spent(tmp_path: Path) -> None:
    experiment = made(store=tmp_path / "one.db")
    work_off(experiment, 1.7)
    lines = list(export_lines(experiment.store))
    import_lines(lines, tmp_path / "two.db")
    copy = Experiment.open(tmp_path / "two.db")
    assert copy.result() == experiment.result()
    assert copy.settings.problem.costs == (1, 4, 2, 1)
    assert [verdict.damage for verdict in verify(tmp_path / "two.db")] == [""]
    assert lines == list(export_lines(copy.store))


@pytest.mark.parametrize(
    ("ticket", "text"), [(0, "-1"), (0, "dear"), (0, "nan"), (99, "1.0"), (2, "1.0")]
)
def test_costs_that_nobody_can_have_told_are_damage(ticket: int, text: str) -> None:
    store = MemoryStore()
    experiment = made(store=store)
    experiment.tell(experiment.ask(3)[0], 1)
    with store.exclusive():
        store.append("experiment", events=[Event(Kind.COST, ticket, 1, text, 0.0)])
    with pytest.raises(StoreDamaged):
        Experiment.open(store)


def test_other_costs_are_another_experiment(tmp_path: Path) -> None:
    made(store=tmp_path / "one.db")
    made(store=tmp_path / "one.db", exist_ok=True)
    with pytest.raises(StoreExists, match="other costs"):
        Experiment.create(["a", "b", "c", "d"], store=tmp_path / "one.db", exist_ok=True, **GIVEN)


def test_pulls_of_an_arm_that_left_cost_nothing() -> None:
    experiment = made()
    experiment.retire("c")
    work_off(experiment)
    by_arm = {arm.label: arm for arm in experiment.result().arms}
    assert by_arm["c"].spent == 0
    assert experiment.result().spent == sum(
        by_arm[str(arm.label)].pulls * arm.cost for arm in ARMS if arm.label != "c"
    )


def test_a_guarantee_ends_with_the_money_and_with_the_bound_earned() -> None:
    experiment = made(epsilon=0.01, budget=150)
    work_off(experiment, 3.0)
    result = experiment.result()
    assert result.reached is False
    assert result.regret_bound is not None
    assert result.regret_bound < 1
    assert 140 < result.spent <= 152
