"""The rules of ask and tell, one by one."""

import math
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import PLACES, create, place, reopen

import shortlist
from shortlist import algorithms, search
from shortlist.algorithms import ALGORITHMS
from shortlist.engine import Experiment, State, Ticket
from shortlist.engine.tickets import draw_seed
from shortlist.errors import (
    CannotReplay,
    ConflictingReward,
    InvalidInput,
    InvalidReward,
    StoreDamaged,
    StoreExists,
    StoreMissing,
    StoreReadOnly,
    Unfinished,
    UnknownTicket,
)
from shortlist.search import advance
from shortlist.stores import Event, RewardRow, Store
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore

LABELS = ["plain", "two words", "-dash", "épicé", "'quoted'"]
MEANS = dict(zip(LABELS, [0.9, 0.1, 0.7, 0.3, 0.5], strict=True))
LEASE = 100.0


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=PLACES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with place(request.param, tmp_path) as store:
        yield store


@pytest.fixture
def experiment(store: Store, clock: Clock) -> Experiment:
    return new(store, clock)


@pytest.fixture
def hasty(store: Store, clock: Clock) -> Experiment:
    """Hands out again what is late."""
    return new(store, clock, on_late="again")


def new(store: Any, clock: Callable[[], float] = Clock(), **settings: Any) -> Experiment:  # noqa: B008
    chosen = {
        "epsilon": 0.4,
        "delta": 0.2,
        "algorithm": "adaptive-top-k-tight",
        "lease": LEASE,
        **settings,
    }
    made: Experiment = create(LABELS, 2, store=store, clock=clock, **chosen)
    return made


def reward_of(ticket: Ticket) -> float:
    """What a pull gives: a function of its arm and its seed, as it should be."""
    return float(np.random.default_rng(ticket.seed).random() < MEANS[str(ticket.arm)])


def work_off(experiment: Experiment, limit: int = 7) -> State:
    while tickets := experiment.ask(limit):
        experiment.tell_many((ticket, reward_of(ticket)) for ticket in tickets)
    return tickets.state


# Asking


def test_a_run_ends_with_an_answer_and_its_guarantee(experiment: Experiment) -> None:
    assert work_off(experiment) is State.FINISHED
    result = experiment.result()
    assert (len(result.top), result.regret_bound, result.reached) == (2, 0.4, True)
    assert result.confidence == pytest.approx(0.8)
    assert result.pulls == experiment.status().told


def test_a_ticket_names_its_arm_its_draw_its_seed_and_the_end_of_its_lease(
    experiment: Experiment,
) -> None:
    tickets = experiment.ask(7)
    assert [ticket.id for ticket in tickets] == list(range(7))
    assert [ticket.arm for ticket in tickets] == [*LABELS, *LABELS[:2]]
    assert [ticket.draw for ticket in tickets] == [0] * 5 + [1] * 2
    assert len({ticket.seed for ticket in tickets}) == 7
    assert {ticket.expires for ticket in tickets} == {1000 + LEASE}


def test_arms_given_by_number_are_numbers() -> None:
    experiment = Experiment.create(3, 1, epsilon=0.5, algorithm="uniform", store=MemoryStore())
    assert [ticket.arm for ticket in experiment.ask(3)] == [0, 1, 2]


def test_no_two_workers_are_handed_the_same_ticket(store: Store, clock: Clock) -> None:
    first = new(store, clock)
    second = reopen(store, clock=clock)
    handed = [ticket.id for each in (first, second, first, second) for ticket in each.ask(3)]
    assert handed == list(range(12))


def test_fewer_tickets_than_asked_for_come_with_the_reason(experiment: Experiment) -> None:
    assert experiment.ask(3).state is State.READY
    rest = experiment.ask(10_000)
    assert (len(rest) > 10, rest.state) == (True, State.PENDING)
    assert (experiment.ask(1), experiment.ask(1).state) == ([], State.PENDING)
    assert experiment.status().state is State.PENDING


def test_the_end_of_the_budget_is_no_certificate(store: Store) -> None:
    experiment = new(store, epsilon=None, algorithm="uniform", budget=23)
    assert work_off(experiment) is State.BUDGET
    assert experiment.status().state is State.BUDGET
    result = experiment.result()
    assert (result.pulls, result.regret_bound, result.reached) == (23, None, None)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_a_limit_must_be_a_whole_number_of_at_least_one(experiment: Experiment, limit: Any) -> None:
    with pytest.raises(
        InvalidInput, match=r"`limit` is .*, but must be a whole number of at least 1"
    ):
        experiment.ask(limit)


# Telling


def test_telling_the_same_again_changes_nothing(experiment: Experiment) -> None:
    (ticket,) = experiment.ask()
    for _ in range(3):
        experiment.tell(ticket, 1)
    experiment.tell(ticket.id, 1.0)
    assert experiment.status().arms.pulls.tolist() == [1, 0, 0, 0, 0]
    assert experiment.status().arms.means[0] == 1


def test_another_reward_for_the_same_ticket_is_an_error_and_the_first_stays(
    experiment: Experiment,
) -> None:
    (ticket,) = experiment.ask()
    experiment.tell(ticket, 0.25)
    with pytest.raises(
        ConflictingReward, match=r"ticket 0 is told 0\.5, but was told 0\.25 before, which stays"
    ):
        experiment.tell(ticket, 0.5)
    assert experiment.status().arms.means[0] == 0.25


def test_two_programs_that_tell_one_ticket_are_told_apart(store: Store, clock: Clock) -> None:
    one = new(store, clock)
    other = reopen(store, clock=clock)
    (ticket,) = one.ask()
    other.tell(ticket, 1)
    one.tell(ticket, 1)
    with pytest.raises(ConflictingReward):
        one.tell(ticket, 0)
    for each in (one, other, reopen(store, clock=clock)):
        assert each.status().told == 1


@pytest.mark.parametrize(
    "reward", [math.nan, math.inf, -math.inf, 1.0001, -0.1, "1", None, [1.0], 1j]
)
def test_a_reward_that_is_no_number_in_range_is_refused_and_named(
    experiment: Experiment, reward: Any
) -> None:
    (ticket,) = experiment.ask()
    with pytest.raises(
        InvalidReward,
        match=r"the reward of ticket 0 \(arm 'plain'\) is .*, but must be a number betw",
    ):
        experiment.tell(ticket, reward)
    assert experiment.status().told == 0
    experiment.tell(ticket, 0.5)


@pytest.mark.parametrize("reward", [True, np.True_, np.float32(1), np.int8(1), 1])
def test_whatever_is_a_number_is_a_reward(experiment: Experiment, reward: Any) -> None:
    (ticket,) = experiment.ask()
    experiment.tell(ticket, reward)
    assert experiment.status().arms.means[0] == 1


def test_rewards_keep_to_what_was_declared(store: Store) -> None:
    experiment = new(store, rewards="binary")
    with pytest.raises(InvalidReward, match=r"is 0\.5, but must be 0 or 1"):
        experiment.tell(experiment.ask()[0], 0.5)


@pytest.mark.parametrize("ticket", [5, 10**12])
def test_a_ticket_that_was_never_handed_out_is_refused(experiment: Experiment, ticket: int) -> None:
    experiment.ask(5)
    message = f"ticket {ticket} was never handed out; the last one is 4"
    with pytest.raises(UnknownTicket, match=message):
        experiment.tell(ticket, 1)
    with pytest.raises(UnknownTicket, match=message):
        experiment.fail(ticket, "no network")


def test_a_ticket_of_another_experiment_is_refused_even_if_labels_and_seeds_agree(
    store: Store,
) -> None:
    mine, other, elsewhere = new(store), new(store, name="other"), new(MemoryStore())
    (ticket,) = mine.ask()
    for foreign in (other.ask()[0], elsewhere.ask()[0]):
        assert (foreign.id, foreign.arm, foreign.seed) == (ticket.id, ticket.arm, ticket.seed)
        for use in (mine.tell, mine.fail):
            with pytest.raises(
                UnknownTicket, match="ticket 0 is not from here, but from another experiment"
            ):
                use(foreign, 1)  # type: ignore[arg-type]
        with pytest.raises(UnknownTicket, match="from another experiment"):
            mine.release(tickets=[foreign])
    assert (mine.status().told, mine.status().failures, mine.status().held) == (0, 0, 1)
    reopen(store, "experiment").tell(ticket, 1)


def test_a_ticket_with_the_number_of_another_is_refused(experiment: Experiment) -> None:
    ticket = experiment.ask(5)[0]
    with pytest.raises(
        UnknownTicket, match="ticket 1 is for arm 'plain', but here it is for 'two words'"
    ):
        experiment.tell(replace(ticket, id=1), 1)


def test_many_are_told_all_or_none(experiment: Experiment) -> None:
    tickets = experiment.ask(3)
    with pytest.raises(InvalidReward):
        experiment.tell_many([(tickets[0], 1), (tickets[1], 0.5), (tickets[2], math.nan)])
    with pytest.raises(ConflictingReward):
        experiment.tell_many([(tickets[0], 1), (tickets[0], 0)])
    assert experiment.status().told == 0
    experiment.tell_many([(tickets[0], 1), (tickets[0], 1)])
    assert experiment.status().told == 1
    experiment.tell_many([])
    assert experiment.status().told == 1


# Leases


def test_a_late_ticket_is_handed_out_again_as_it_was_if_that_is_wanted(
    hasty: Experiment, clock: Clock
) -> None:
    first = hasty.ask(3, "a")
    clock.now += LEASE - 0.5
    assert [ticket.id for ticket in hasty.ask(2, "b")] == [3, 4]
    clock.now += 0.5
    again = hasty.ask(3, "b")  # its own two come first
    assert [ticket.id for ticket in again] == [3, 4, 0]
    assert replace(again[2], expires=0.0) == replace(first[0], expires=0.0)


def test_a_late_result_counts_if_it_is_the_first(hasty: Experiment, clock: Clock) -> None:
    (late,) = hasty.ask(1, "slow")
    clock.now += 2 * LEASE
    (again,) = hasty.ask(1, "quick")
    assert again.id == late.id
    hasty.tell(late, 1)
    with pytest.raises(ConflictingReward):
        hasty.tell(again, 0)
    assert hasty.ask(1, "quick")[0].id != late.id


def test_a_worker_that_asks_again_gets_its_own_open_tickets_first(
    store: Store, clock: Clock
) -> None:
    experiment = new(store, clock)
    mine, others = experiment.ask(3, "me"), experiment.ask(2, "other")
    experiment.tell(mine[1], 1)
    after_a_crash = reopen(store, clock=clock)
    assert [ticket.id for ticket in after_a_crash.ask(4, "me")] == [0, 2, 5, 6]
    assert [ticket.id for ticket in after_a_crash.ask(2, "other")] == [
        ticket.id for ticket in others
    ]
    assert [ticket.id for ticket in after_a_crash.ask(1)] == [7]


def test_a_lease_may_be_as_long_as_the_one_who_asks_says(hasty: Experiment, clock: Clock) -> None:
    assert hasty.ask(1, lease=5)[0].expires == clock.now + 5
    clock.now += 5
    assert hasty.ask()[0].id == 0
    with pytest.raises(
        InvalidInput, match="`lease` is 0, but must be a finite number greater than 0"
    ):
        hasty.ask(lease=0)


def test_asking_again_renews_the_lease(hasty: Experiment, clock: Clock) -> None:
    hasty.ask(1, "me")
    clock.now += LEASE - 1
    assert hasty.ask(1, "me")[0].expires == clock.now + LEASE
    clock.now += LEASE - 1
    assert hasty.ask(1, "other")[0].id == 1


def test_the_tickets_of_a_worker_who_is_gone_can_be_taken_back(experiment: Experiment) -> None:
    gone, here = experiment.ask(3, "gone"), experiment.ask(2, "here")
    experiment.tell(gone[1], 1)
    assert experiment.status().workers == {"gone": 2, "here": 2}
    experiment.release("gone")
    assert experiment.status().workers == {"here": 2}
    assert [ticket.id for ticket in experiment.ask(5, "here")] == [here[0].id, here[1].id, 0, 2, 5]
    experiment.tell(gone[0], 1)  # not gone after all


# Failures


def test_a_failed_ticket_is_handed_out_again_at_once(experiment: Experiment) -> None:
    (ticket,) = experiment.ask()
    experiment.fail(ticket, "no network")
    assert experiment.ask()[0].id == ticket.id
    assert experiment.status().failures == 1


def fail_too_often(experiment: Experiment, times: int = 3) -> Ticket:
    for attempt in range(times):
        (ticket,) = experiment.ask()
        experiment.fail(ticket, f"attempt {attempt}")
    return ticket


def test_too_many_failures_of_a_ticket_stop_the_experiment_in_words(
    store: Store, clock: Clock
) -> None:
    experiment = new(store, clock)
    others = experiment.ask(2)
    ticket = fail_too_often(experiment)
    for each in (experiment, reopen(store, clock=clock)):
        assert (each.ask(5), each.ask(5).state) == ([], State.STOPPED)
        assert each.status().state is State.STOPPED
        assert (
            each.status().trouble == f"ticket {ticket.id} failed 3 times, the last time: attempt 2"
        )
    experiment.tell(others[0], 1)  # what is under way is not lost
    assert experiment.status().told == 1


def test_a_stopped_experiment_stays_so_until_it_is_resumed(store: Store, clock: Clock) -> None:
    experiment = new(store, clock)
    ticket = fail_too_often(experiment)
    experiment.tell(ticket, 1)
    assert reopen(store, clock=clock).status().state is experiment.status().state is State.STOPPED
    experiment.resume()
    assert (experiment.status().state, experiment.status().trouble) == (State.READY, "")
    assert work_off(reopen(store, clock=clock)) is State.FINISHED


def test_after_resuming_the_failed_ticket_may_fail_as_often_again(experiment: Experiment) -> None:
    ticket = fail_too_often(experiment)
    experiment.resume()
    assert fail_too_often(experiment, 2).id == ticket.id
    assert experiment.status().state is State.READY
    fail_too_often(experiment, 1)
    assert experiment.status().state is State.STOPPED


def test_without_retries_the_first_failure_stops(store: Store) -> None:
    experiment = new(store, retries=0)
    fail_too_often(experiment, 1)
    assert experiment.status().state is State.STOPPED


def test_failures_that_do_not_matter_any_more_change_nothing(
    hasty: Experiment, clock: Clock
) -> None:
    told, lost = hasty.ask(2, "a")
    hasty.tell(told, 1)
    hasty.fail(told, "too late: it is told")
    clock.now += 2 * LEASE
    (again,) = hasty.ask(1, "b")
    assert again.id == lost.id
    hasty.fail(lost, "too late: another one has it")
    assert hasty.status().failures == 0
    hasty.fail(again, "counts")
    hasty.fail(again, "counts only once")
    hasty.fail(again.id, "not even by number")
    assert hasty.status().failures == 1


# Going on


@pytest.mark.parametrize("algorithm", ["certified", "adaptive-top-k-tight", "clucb-pac", "uniform"])
def test_the_answer_does_not_depend_on_order_size_or_reopening(
    store: Store, algorithm: str
) -> None:
    settings: dict[str, Any] = {"algorithm": algorithm, "seed": 3, "epsilon": 0.8, "delta": 0.5}
    undisturbed = new(MemoryStore(), **settings)
    work_off(undisturbed, 1000)
    experiment = new(store, **settings)
    shuffle = random.Random(5)
    held: list[Ticket] = []
    while held := [*held, *experiment.ask(shuffle.randint(1, 40))]:
        shuffle.shuffle(held)
        told, held = held[: len(held) // 2 + 1], held[len(held) // 2 + 1 :]
        experiment.tell_many((ticket, reward_of(ticket)) for ticket in told)
        if shuffle.random() < 0.2:
            experiment = reopen(store)
    assert experiment.result() == undisturbed.result()


def test_threads_may_share_an_experiment(store: Store) -> None:
    experiment, calm = new(store), new(MemoryStore())
    work_off(calm)
    with ThreadPoolExecutor(6) as pool:
        states = [
            future.result() for future in [pool.submit(work_off, experiment, 3) for _ in range(6)]
        ]
    assert set(states) <= {State.FINISHED, State.PENDING}
    work_off(experiment)
    assert experiment.result() == calm.result()


def test_sums_do_not_depend_on_the_order_of_telling() -> None:
    rewards = [0.1, 1e-17, 0.3, 0.7, 1 / 3] * 60  # floats whose sum depends on their order
    results = []
    for backwards in (False, True):
        experiment = new(MemoryStore(), algorithm="uniform")
        tickets = experiment.ask(10_000)
        for ticket in reversed(tickets) if backwards else tickets:
            experiment.tell(ticket, rewards[ticket.id])
        results.append(experiment.result())
    assert results[0] == results[1]


def test_an_experiment_gives_the_result_of_select_with_the_same_seed(store: Store) -> None:
    experiment = new(store, seed=11)
    work_off(experiment)

    def pull(arm: str, seed: int) -> float:
        return reward_of(Ticket(0, arm, 0, seed, 0.0))

    chosen = shortlist.select(
        pull,
        arms=LABELS,
        k=2,
        epsilon=0.4,
        delta=0.2,
        algorithm="adaptive-top-k-tight",
        seed=11,
        progress=False,
    )
    assert experiment.result() == chosen


def test_an_interrupt_inside_the_search_costs_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(store, Store):
        pytest.skip("nobody interrupts a search at a service from afar")
    undisturbed = new(MemoryStore())
    work_off(undisturbed)
    experiment = new(store)
    interrupts = iter([False, True, False, True])

    def interrupted(*arguments: Any) -> Any:
        if next(interrupts, False):
            raise KeyboardInterrupt
        return advance(*arguments)

    monkeypatch.setattr(search, "advance", interrupted)
    caught = 0
    while True:
        try:
            work_off(experiment)
            break
        except KeyboardInterrupt:
            caught += 1
    assert caught == 2
    assert experiment.result() == undisturbed.result()


def test_an_unfinished_experiment_has_no_result(experiment: Experiment) -> None:
    tickets = experiment.ask(10)
    experiment.tell_many((ticket, 1) for ticket in tickets)
    with pytest.raises(Unfinished, match=r"10 pulls were told, but the search waits for \d+ more"):
        experiment.result()


def test_a_finished_experiment_stays_finished(store: Store) -> None:
    experiment = new(store)
    work_off(experiment)
    result = experiment.result()
    experiment.tell(0, reward_of(Ticket(0, LABELS[0], 0, draw_seed(0, 0, 0), 0.0)))
    assert reopen(store).result() == experiment.result() == result


def test_status_counts_what_is_held_and_what_is_wanted(hasty: Experiment, clock: Clock) -> None:
    total = hasty.status().wanted
    assert hasty.status().progress.undecided == 5
    tickets = hasty.ask(6)
    hasty.tell_many((ticket, 0.5) for ticket in tickets[:2])
    status = hasty.status()
    assert (status.held, status.wanted, status.told) == (4, total - 6, 2)
    assert status.arms.to_go.sum() == total - 2
    assert status.arms.to_go[0] == status.arms.to_go[4] - 1
    assert status.arms.means[:2].tolist() == [0.5, 0.5]
    assert np.isnan(status.arms.means[2:]).all()
    clock.now += LEASE
    assert (hasty.status().held, hasty.status().wanted) == (0, total - 2)


@pytest.mark.parametrize("other", [0.7, 0.0])
def test_two_rewards_for_one_ticket_in_one_call_are_refused_and_neither_is_told(
    experiment: Experiment, other: float
) -> None:
    ticket, *_ = experiment.ask(3)
    with pytest.raises(
        ConflictingReward,
        match=rf"ticket 0 is told 0\.5 and {other} in the same call.*; none was told",
    ):
        experiment.tell_many([(ticket, 0.5), (ticket, other)])
    assert experiment.status().told == 0
    experiment.tell_many([(ticket, 0.5), (ticket, 0.5)])
    assert experiment.status().told == 1


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_too_large_for_a_float_is_no_reward(experiment: Experiment, digits: int) -> None:
    ticket, *_ = experiment.ask()
    for sign, shown in ((1, "inf"), (-1, "-inf")):
        with pytest.raises(
            InvalidReward, match=f"is {shown}, but must be a number between 0 and 1"
        ):
            experiment.tell(ticket, sign * 10**digits)


@pytest.mark.parametrize("results", [[1, 2], 5, [(1, 2, 3, {}, {}, 6)], [(1,)], ["abcdef"]])
def test_what_are_no_pairs_of_ticket_and_reward_is_refused(
    experiment: Experiment, results: Any
) -> None:
    with pytest.raises(InvalidInput, match="is told, but must be"):
        experiment.tell_many(results)


def test_an_experiment_and_a_handout_show_where_they_stand() -> None:
    experiment = new(MemoryStore())
    assert repr(experiment) == "<Experiment 'experiment': ready, 0 pulls told, 5 arms>"
    tickets = experiment.ask(1)
    assert repr(tickets) == f"Handout([{tickets[0]!r}], <State.READY: 'ready'>)"
    experiment.tell(tickets[0], 1)
    assert repr(experiment) == "<Experiment 'experiment': ready, 1 pull told, 5 arms>"
    experiment.close()
    assert "1 pull told" in repr(experiment)


def test_trouble_is_one_line_that_leaves_a_terminal_alone(store: Store) -> None:
    experiment = new(store, retries=0)
    experiment.fail(experiment.ask()[0], "first\nlast \x1b[31mred\x07")
    trouble = r"ticket 0 failed 1 time, the last time: first\nlast \x1b[31mred\x07"
    assert experiment.status().trouble == trouble
    with pytest.raises(Unfinished, match=re.escape(trouble)):
        experiment.result()


# Making and opening


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -1}, "`epsilon` is -1, but must be a finite number greater than 0"),
        ({"epsilon": None}, "neither `epsilon` nor `budget` is given"),
        ({"algorithm": "unifrom"}, "algorithm 'unifrom' is unknown"),
        ({"algorithm": "sar"}, "sar needs a budget"),
        ({"algorithm": "sar", "epsilon": None, "budget": 5}, "`budget` is 5, but sar needs more"),
        ({"lease": 0}, "`lease` is 0, but must be a finite number greater than 0"),
        ({"retries": -1}, "`retries` is -1, but must be a whole number of at least 0"),
        ({"seed": -1}, "`seed` is -1, but must be a whole number of at least 0"),
        ({"options": {"x": 1}}, "option 'x' is unknown"),
        ({"name": ""}, "`name` is '', but must be a text that is not empty"),
        ({"rewards": (1, 0)}, "`high` is 0, but must be greater than low"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        new(tmp_path / "store.db", **settings)
    assert list(tmp_path.iterdir()) == []


def test_a_file_holds_several_experiments_by_name(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with new(path, name="first") as first, new(path, name="second", seed=1) as second:
        first.ask(3)
        second.ask(5)
    with pytest.raises(
        InvalidInput, match="the store holds several experiments: 'first', 'second'"
    ):
        Experiment.open(path)
    with Experiment.open(path, "second", clock=Clock()) as second:
        assert second.status().held == 5
    with pytest.raises(StoreExists):
        new(path, name="first")
    with pytest.raises(StoreMissing, match="there is no experiment 'third'"):
        Experiment.open(path, "third")


def test_a_store_without_an_experiment_is_said_to_be_so(store: Store) -> None:
    with pytest.raises(
        InvalidInput, match=r"`name` is not given, but the store holds no experiment$"
    ):
        reopen(store)


@pytest.mark.parametrize("place", [5, b"x.db", ["x.db"]])
def test_a_store_must_be_one_or_the_name_of_a_file(place: Any) -> None:
    for use in (Experiment.open, partial(Experiment.create, LABELS, 2, budget=50)):
        with pytest.raises(
            InvalidInput, match=r"`store` is .*, but must be the name of a file, or a store"
        ):
            use(store=place)


def test_the_same_program_may_make_and_then_go_on_with_an_experiment(tmp_path: Path) -> None:
    path, clock = tmp_path / "store.db", Clock()
    for round_ in range(3):
        with new(path, clock, exist_ok=True) as experiment:
            assert experiment.status().told == round_
            experiment.tell(experiment.ask()[0], 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.3}, r"epsilon = 0.4 and not 0.3$"),
        ({"epsilon": None, "budget": 60}, r"epsilon = 0.4 and not none$"),
        ({"algorithm": "certified", "budget": 60}, r"no budget and not 60$"),
        ({"seed": 9}, "seed = 0 and not 9"),
        ({"retries": 7}, "retries = 2 and not 7"),
        ({"arms": ["a", "b", "c"]}, "other arms"),
        ({"rewards": "binary"}, r"rewards = bounded \(low = 0, high = 1\) and not binary$"),
        (
            {"rewards": (0, 1.0000001)},
            r"rewards = bounded \(.*\) and not bounded \(low = 0, high = 1.0000001\)$",
        ),
        ({"algorithm": "lucb"}, "algorithm = uniform and not lucb$"),
    ],
)
def test_an_experiment_made_with_other_settings_is_not_taken_for_the_same(
    store: Store, change: dict[str, Any], message: str
) -> None:
    chosen: dict[str, Any] = {
        "arms": LABELS,
        "epsilon": 0.4,
        "algorithm": "uniform",
        "k": 2,
        "store": store,
        "exist_ok": True,
    }
    create(**chosen)
    with pytest.raises(
        StoreExists,
        match=f"there is an experiment 'experiment' already, but it was made with {message}",
    ):
        create(**{**chosen, **change})


def test_opening_a_missing_file_does_not_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        Experiment.open(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_that_is_only_looked_at_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with new(path) as experiment:
        experiment.ask(4)
    with Experiment.open(path, readonly=True, clock=Clock()) as looked_at:
        assert looked_at.status().held == 4
        with pytest.raises(StoreReadOnly):
            looked_at.ask()


def test_settings_come_back_as_they_were(store: Store) -> None:
    experiment = new(
        store,
        rewards=(-2, 6),
        options={"tight": True},
        algorithm="adaptive-top-k",
        seed=2**62,
        retries=5,
    )
    assert reopen(store).settings == experiment.settings
    model = shortlist.SubGaussian(2.5)
    new(store, name="other", rewards=model, epsilon=None, budget=100, algorithm="sar")
    assert reopen(store, "other").settings.problem.rewards == model


# What was made by something else


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with new(path) as experiment:
        tickets = experiment.ask(1000)
        experiment.tell_many((ticket, reward_of(ticket)) for ticket in tickets)
        experiment.ask(3)
    return path


def test_another_version_of_the_algorithm_is_refused_in_words(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "adaptive-top-k-tight"
    monkeypatch.setitem(ALGORITHMS, name, replace(ALGORITHMS[name], version=7))
    with pytest.raises(
        CannotReplay, match=f"was made with version 1 of {name}, but this shortlist has version 7"
    ):
        Experiment.open(begun)


def test_an_algorithm_that_is_gone_is_refused_in_words(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(ALGORITHMS, "adaptive-top-k-tight")
    with pytest.raises(CannotReplay, match="an algorithm that this shortlist does not have"):
        Experiment.open(begun)


def rewrite(
    path: Path,
    change: Callable[[str], str] = lambda settings: settings,
    told: Callable[[RewardRow], RewardRow] = lambda row: row,
    events: Callable[[Event], Event] = lambda event: event,
) -> None:
    """Write the store anew with other content: nothing is damaged, it is only not as it was."""
    with closing(SQLiteStore(path)) as old:
        settings, news = old.settings("experiment"), old.read("experiment")
    path.unlink()
    with closing(SQLiteStore(path, "rwc")) as new, new.exclusive():
        new.create("experiment", change(settings))
        new.append("experiment", map(told, news.told.rows()), map(events, news.events))


def test_another_format_of_tickets_is_refused_in_words(begun: Path) -> None:
    rewrite(begun, lambda text: text.replace('"format": 1', '"format": 2'))
    with pytest.raises(
        CannotReplay, match="was made with format 2 of tickets, but this shortlist has format 1"
    ):
        Experiment.open(begun)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}', "no JSON"])
def test_settings_that_cannot_be_read_are_said_to_be_so(begun: Path, text: str) -> None:
    rewrite(begun, lambda _: text)
    with pytest.raises(
        StoreDamaged, match="the settings of experiment 'experiment' cannot be read"
    ):
        Experiment.open(begun)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"seed": 0', '"seed": -4', "`seed` is -4, but must be a whole number of at least 0"),
        (f'"lease": {float(LEASE)}', '"lease": 0', "`lease` is 0, but must be"),
        ('"retries": 2', '"retries": 0.5', "`retries` is 0.5, but must be"),
        ('"k": 2', '"k": 9', "`k` is 9, but must be between"),
        ('"options": {}', '"options": {"x": 1}', "option 'x' is unknown"),
    ],
)
def test_settings_that_make_no_sense_are_said_to_be_so(
    begun: Path, old: str, new: str, message: str
) -> None:
    rewrite(begun, lambda text: text.replace(old, new))
    with pytest.raises(
        StoreDamaged, match=f"the settings of experiment 'experiment' make no sense: {message}"
    ):
        Experiment.open(begun)


def test_a_search_that_asks_for_something_else_is_not_continued(begun: Path) -> None:
    rewrite(
        begun,
        lambda text: text.replace('"k": 2', '"k": 1').replace('"epsilon": 0.4', '"epsilon": 0.1'),
    )
    with pytest.raises(CannotReplay, match=r"export its rewards|not those asked for"):
        Experiment.open(begun)


def test_rewards_of_other_arms_than_asked_for_are_not_taken(begun: Path) -> None:
    rewrite(begun, told=lambda row: (row[0], (row[1] + 1) % 5, *row[2:]))
    with pytest.raises(CannotReplay, match="are not those asked for"):
        Experiment.open(begun)


def test_every_algorithm_has_a_version() -> None:
    assert all(
        isinstance(each.version, int) and each.version >= 1
        for each in algorithms.ALGORITHMS.values()
    )


def test_numbers_of_numpy_make_an_experiment_too(store: Store) -> None:
    numbers: dict[str, Any] = {"arms": np.int64(5), "k": np.int64(2), "budget": np.int64(50)}
    made = create(store=store, rewards=(np.float64(0), 2), **numbers)
    assert made.settings.problem.k == 2


def test_without_a_store_an_experiment_is_kept_in_memory() -> None:
    experiment = Experiment.create(3, 1, budget=9)
    assert experiment.ask(2)
    assert experiment.status().held == 2
