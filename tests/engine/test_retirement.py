"""Arms that leave, arms with limits, and the present answer, one by one."""

from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist.driver import Outcome
from shortlist.engine import Experiment, Receipt, State, Ticket, export_lines, import_lines
from shortlist.engine.log_entries import Report as Result
from shortlist.engine.replay import staying
from shortlist.errors import ConflictingReward, InvalidInput, StoreDamaged, Unfinished
from shortlist.problem import FixedBudget, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.search import Answer
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

ASKED: dict[str, Any] = {"budget": 120, "rewards": "binary"}


def finish(experiment: Experiment, rewards: dict[Any, float]) -> list[Ticket]:
    """Tell every ticket the reward of its arm; return all tickets."""
    made: list[Ticket] = []
    while tickets := experiment.ask(7):
        made += tickets
        experiment.tell_many((ticket, rewards[ticket.arm]) for ticket in tickets)
    return made


def test_an_arm_that_left_is_not_handed_out_and_not_chosen() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, **ASKED)
    for ticket in experiment.ask(9):
        experiment.tell(ticket, float(ticket.arm == "c"))
    experiment.retire("c", "she moved away")
    assert all(ticket.arm != "c" for ticket in finish(experiment, {"a": 0.0, "b": 1.0}))
    result = experiment.result()
    assert result.top == ("b",)
    assert experiment.status().arms.places == ("out", "in", "retired")
    assert [arm.retired for arm in result.arms] == [False, False, True]
    assert "Retired, shown with its pulls until then: c." in str(result)
    assert (result.arms[2].pulls, result.arms[2].mean, result.pulls) == (2, 1.0, result.spent)


@pytest.mark.parametrize("algorithm", ["lucb", "clucb-pac"])
def test_a_bound_about_all_arms_is_not_shown_once_one_has_retired(algorithm: str) -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, algorithm=algorithm, **ASKED)
    for _ in range(5):
        experiment.tell_many((each, float(each.arm == "c")) for each in experiment.ask(30))
    vitals = experiment.vitals()
    assert vitals is not None
    assert vitals.bound is not None
    experiment.retire("c", "she moved away")
    vitals = experiment.vitals()
    assert vitals is not None
    assert vitals.bound is None


def test_several_arms_retire_together_or_none_does() -> None:
    experiment = Experiment.create(["a", "b", "c", "d"], 1, **ASKED)
    experiment.ask(4)
    with pytest.raises(InvalidInput, match="cannot retire 'c'"):
        experiment.retire(["a", "b", "c"], "quit")
    assert "retired" not in experiment.status().arms.places
    experiment.retire(["a", "b"], "quit")
    assert experiment.status().arms.places.count("retired") == 2


def test_what_is_under_way_of_it_is_not_waited_for_and_may_still_come() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, **ASKED)
    tickets = experiment.ask(60, "ann")
    left = [ticket for ticket in tickets if ticket.arm == "c"]
    experiment.tell_many((ticket, 0.0) for ticket in tickets if ticket.arm != "c")
    experiment.retire("c")
    experiment.tell(left[0], 1.0)
    finish(experiment, {"a": 0.0, "b": 1.0})
    experiment.tell(left[1], 1.0)  # too late, and no mistake
    assert experiment.result().top == ("b",)


@pytest.mark.parametrize("asked_between", [False, True])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_reward_told_after_its_arm_left_is_not_used_and_its_cost_counts(
    asked_between: bool, reward: float
) -> None:
    store = MemoryStore()
    asked: dict[str, Any] = {**ASKED, "algorithm": "uniform"}
    experiment = Experiment.create(["a", "b", "c"], 1, store=store, **asked)
    tickets = [each for each in experiment.ask(30, "ann") if each.arm == "c"]
    experiment.tell(tickets[0], 1.0)
    experiment.retire("c")
    if asked_between:
        experiment.ask(1, "ann")
    expected = Receipt(unused=(tickets[1].id, tickets[2].id))
    told: list[Result] = [(tickets[1], reward), (tickets[2], reward, 2.5)]
    before = experiment.status()
    assert experiment.tell_many(told) == expected
    assert experiment.tell_many(told) == expected  # again
    with pytest.raises(ConflictingReward, match="cost"):
        experiment.tell(tickets[2], reward, 3.0)
    with pytest.raises(ConflictingReward, match="before, which stays"):
        experiment.tell(tickets[0], 0.0)  # it was told in time
    copied = MemoryStore()
    import_lines(export_lines(store, "experiment"), copied)
    for each in (experiment, Experiment.open(store), Experiment.open(copied)):
        status = each.status()
        assert (status.told, status.unused, status.spent) == (1, 2, 4.5)
        assert status.undrawn == before.undrawn - 2
        assert status.arms.pulls[2] == 1
    experiment.release("ann")
    finish(experiment, {"a": 0.0, "b": 1.0})
    assert experiment.result().arms[2].spent == 4.5
    assert Experiment.open(store).result() == experiment.result()


def test_the_search_is_sent_the_same_whether_pulls_of_an_arm_that_left_are_told_or_not() -> None:
    answers = []
    for told in (False, True):
        experiment = Experiment.create(4, 1, epsilon=0.2, rewards="binary", seed=5)
        tickets = experiment.ask(200)
        experiment.retire(3)
        if told:
            experiment.tell_many((each, 1.0) for each in tickets if each.arm == 3)
        experiment.tell_many((each, each.arm == 0) for each in tickets if each.arm != 3)
        made = [each.id for each in finish(experiment, {0: 1.0, 1: 0.0, 2: 0.0})]
        answers.append((made, experiment.result().regret_bound))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("algorithm", ["uniform", "lucb", "certified"])
def test_status_is_true_right_after_an_arm_left_and_after_every_reward(algorithm: str) -> None:
    """It waits for pulls of arms that stay only, and is ready only if `ask` has a ticket."""
    store = MemoryStore()
    asked: dict[str, Any] = {"epsilon": 0.4, "rewards": "binary", "algorithm": algorithm}
    experiment = Experiment.create(["a", "b", "c", "d"], 1, store=store, **asked)
    tickets: list[Ticket] = [*experiment.ask(5)]
    experiment.retire("d")
    while experiment.status().state in (State.READY, State.PENDING):
        status = Experiment.open(store).status()
        assert status.held + status.wanted == status.arms.to_go.sum()
        open_ = [each for each in tickets if each.arm != "d"]
        if not open_:
            assert status.state is State.READY
            handout = experiment.ask(3)
            assert handout
            tickets = [*handout]
            continue
        experiment.tell(open_[0], float(open_[0].arm == "a"))
        tickets = open_[1:]
    assert experiment.result().top == ("a",)


def test_what_can_never_be_counted_is_not_said_to_wait() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, **ASKED)
    tickets = experiment.ask(60)
    experiment.tell_many((each, 1.0) for each in tickets if each.draw and each.arm != "a")
    waiting = experiment.status().waiting
    assert f"({waiting} not counted yet)" in " ".join(str(experiment.status()).split())
    experiment.retire("c")
    status = experiment.status()
    assert 0 < status.never_counted < status.waiting
    yet = status.waiting - status.never_counted
    said = f"({yet} not counted yet, {status.never_counted} not counted)"
    assert said in " ".join(str(status).split())
    experiment.tell_many((each, 0.0) for each in tickets if each.arm == "a" or not each.draw)
    finish(experiment, {"a": 0.0, "b": 1.0})
    status = experiment.status()
    assert status.never_counted == status.waiting > 0
    assert "yet" not in str(status)
    assert "Retired without a counted pull: c." in str(experiment.result())


def test_small_is_good_so_the_worst_is_large() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, minimize=True, **ASKED)
    experiment.ask(3)
    experiment.retire("c")
    experiment.release(tickets=[0, 1])
    finish(experiment, {"a": 0.0, "b": 1.0})
    result = experiment.result()
    assert result.top == ("a",)
    assert result.arms[2].mean is None  # what nobody drew is not shown


@pytest.mark.parametrize(
    ("asked", "arm", "said"),
    [
        ({}, "d", "`arm` is 'd', but must be one of the arms"),
        ({"rewards": shortlist.SubGaussian(1)}, "a", "no worst reward"),
        ({"k": 2}, "a", "cannot retire 'a': at least k \\+ 1 = 3 arms must remain"),
    ],
)
def test_who_cannot_leave_is_told_why(asked: dict[str, Any], arm: str, said: str) -> None:
    experiment = Experiment.create(["a", "b", "c"], **{"k": 1, **ASKED, **asked})
    with pytest.raises(InvalidInput, match=said):
        experiment.retire(arm)


def test_nobody_leaves_when_the_answer_is_there() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, **ASKED)
    finish(experiment, {"a": 0.0, "b": 1.0, "c": 0.0})
    with pytest.raises(InvalidInput, match="the answer is there"):
        experiment.retire("a")


def test_a_pull_that_fails_too_often_retires_its_arm_where_that_was_agreed() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, on_failure="retire", retries=1, **ASKED)

    def pull(arm: str) -> float:
        if arm == "c":
            raise ConnectionError("no answer")
        return float(arm == "b")

    result = experiment.run(pull, progress=False)
    assert result.top == ("b",)
    assert experiment.status().arms.places[2] == "retired"


def test_the_last_that_may_not_leave_stop_it() -> None:
    experiment = Experiment.create(["a", "b"], 1, on_failure="retire", retries=0, **ASKED)
    experiment.fail(experiment.ask()[0], "no answer")
    assert experiment.status().state is State.STOPPED
    assert experiment.ask() == []


def test_to_retire_the_arm_in_trouble_lets_an_experiment_go_on() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, retries=0, **ASKED)
    experiment.fail(experiment.ask()[0], "no answer")
    experiment.retire("b")
    assert experiment.status().state is State.STOPPED
    experiment.close()
    another = Experiment.create(["a", "b", "c"], 1, retries=0, **ASKED)
    another.fail(another.ask()[0], "no answer")
    another.retire("a")
    assert another.status().state is State.READY


@pytest.mark.parametrize("on_failure", ["give up", None])
def test_what_else_could_happen_after_failures_is_refused(on_failure: Any) -> None:
    with pytest.raises(InvalidInput, match="must be one of stop, retire"):
        Experiment.create(3, 1, on_failure=on_failure, **ASKED)
    with pytest.raises(InvalidInput, match="no worst reward"):
        Experiment.create(3, 1, on_failure="retire", budget=100, rewards=shortlist.SubGaussian(1))


def test_a_log_in_which_nobody_leaves_is_damaged() -> None:
    store = MemoryStore()
    experiment = Experiment.create(3, 1, store=store, **ASKED)
    with store.exclusive():
        store.append("experiment", events=[Event(Kind.RETIRE, 0, 3, "", 1.0)])
    with pytest.raises(StoreDamaged, match="retire"):
        experiment.status()


def test_a_log_in_which_too_many_leave_is_damaged() -> None:
    store = MemoryStore()
    experiment = Experiment.create(3, 1, store=store, **ASKED)
    with store.exclusive():
        events = [Event(Kind.RETIRE, 0, arm, "", 1.0) for arm in (0, 2)]
        store.append("experiment", events=events)
    with pytest.raises(StoreDamaged, match="2 of 3 arms retire"):
        experiment.status()


CERTIFIED: dict[str, dict[str, Any]] = {
    "pairs": {"k": 1, "epsilon": 0.2},
    "split": {"k": 2, "epsilon": 0.15, "certificate": "split"},
    "items": {"k": 2, "epsilon": 0.05, "items": 40, "rewards": (0, 1)},
}


@pytest.mark.parametrize("certificate", CERTIFIED)
def test_the_search_is_told_in_the_batch_in_which_an_arm_leaves(certificate: str) -> None:
    """So all who read the log agree, whether they read it as it grew or at its end."""
    store, rng = MemoryStore(), np.random.default_rng(3)
    asked = {"rewards": "binary", "delta": 0.3, **CERTIFIED[certificate]}
    experiment = Experiment.create(5, store=store, **asked)
    means, told, left = [0.9, 0.8, 0.5, 0.2, 0.1], 0, False
    while tickets := experiment.ask(7):
        rewards = [(each, float(rng.random() < means[int(each.arm)])) for each in tickets]
        experiment.tell_many(rewards)
        told += len(tickets)
        assert not left or all(each.arm != 0 for each in tickets)
        if told > 30 and not left:
            experiment.retire(0)  # in the middle of a batch
            left = True
    result = experiment.result()
    assert 0 not in result.top
    assert result.regret_bound is not None

    assert Experiment.open(store).result() == result
    copied = MemoryStore()
    import_lines(export_lines(store, "experiment"), copied)
    assert Experiment.open(copied).result() == result


def test_the_batch_in_which_an_arm_leaves_is_in_the_log() -> None:
    store = MemoryStore()
    experiment = Experiment.create(3, 1, epsilon=0.2, rewards="binary", store=store)
    for each in experiment.ask(3):
        experiment.tell(each, 1.0)  # this batch is over, and nobody has asked for the next one
    experiment.retire(2)
    kinds = [event.kind for event in store.read("experiment").events]
    steps = kinds[: kinds.index(Kind.RETIRE)].count(Kind.STEP)
    assert steps == 2
    assert all(ticket.arm != 2 for ticket in experiment.ask(50))


@pytest.mark.rates
def test_the_promise_is_about_those_that_stay() -> None:
    """Arms leave at random moments, and the bounds among the others are wrong as seldom."""
    wrong = reached = 0
    runs = number_of_runs(20, 1000)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        means = rng.choice([0.2, 0.5, 0.8], 6)
        experiment = Experiment.create(6, 2, epsilon=0.2, delta=0.2, rewards="binary", seed=seed)
        leaving, moment = int(rng.integers(6)), int(rng.integers(1, 12))
        for step in range(10**6):
            tickets = experiment.ask(50)
            if not tickets:
                break
            results = [(each, float(rng.random() < means[int(each.arm)])) for each in tickets]
            experiment.tell_many(results)
            if step == moment and experiment.status().state is State.READY:
                experiment.retire(leaving)
        result = experiment.result()
        stay = np.array([arm for arm in range(6) if arm != leaving])
        left = "retired" in experiment.status().arms.places
        if result.regret_bound is not None and left:
            top = [stay.tolist().index(arm) for arm in result.top]
            wrong += aggregate_regret(means[stay], top) > result.regret_bound
            reached += 1
    assert reached > runs / 6
    assert wrong <= binom.isf(0.01, runs, 0.2)


def test_an_algorithm_of_which_it_is_not_proved_promises_nothing_then() -> None:
    asked: dict[str, Any] = {"epsilon": 0.3, "rewards": "binary", "algorithm": "lucb"}
    for leaving in (False, True):
        experiment = Experiment.create(["a", "b", "c"], 1, **asked)
        experiment.ask(1)
        if leaving:
            experiment.retire("c")
        experiment.release(tickets=[0])
        finish(experiment, {"a": 0.0, "b": 1.0, "c": 0.0})
        assert experiment.result().top == ("b",)
        assert (experiment.result().regret_bound is None) == leaving


def test_who_takes_the_place_of_an_arm_that_left_is_drawn_by_lot_where_arms_are_alike() -> None:
    problem = Problem(4, 1, FixedBudget(4), Binary())
    ended = Outcome(Answer(np.array([0])), np.ones(4, dtype=np.int64), np.array([1.0, 0, 0, 0]))
    joined = {int(staying(ended, [0], problem, "lucb", seed).answer.top[0]) for seed in range(30)}
    assert joined == {1, 2, 3}


def test_an_unfinished_experiment_has_a_partial_result_only() -> None:
    experiment = Experiment.create(4, 1, budget=40)
    with pytest.raises(Unfinished):
        experiment.result()
    assert experiment.result(partial=True).partial


def test_a_retired_pair_of_a_matching_is_not_in_the_answer() -> None:
    """Its set outweighs all others, so that it must not be weighed against them."""
    means = [0.95, 0.5, 0.45, 0.5, 0.9, 0.1, 0.45, 0.12, 0.92]
    pairs = shortlist.Matching([arm // 3 for arm in range(9)], [arm % 3 for arm in range(9)])
    rng = np.random.default_rng(0)
    asked: dict[str, Any] = {"budget": 900, "rewards": "binary", "constraint": pairs}
    experiment = shortlist.Experiment.create(9, 3, algorithm="uniform", **asked)
    told = 0
    while tickets := experiment.ask(10):
        experiment.tell_many(
            [(each, float(rng.random() < means[int(each.arm)])) for each in tickets]
        )
        told += len(tickets)
        if told == 880:
            experiment.retire(8, "gone")
    assert 8 not in experiment.result().top
