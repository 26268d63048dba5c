"""Batches asked for ahead: the result depends on seed and settings, never on timing."""

import asyncio
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.stats import binom

import shortlist
from shortlist import instances
from shortlist.engine import export_lines, import_lines
from shortlist.engine.experiment import Experiment
from shortlist.engine.tickets import State, Ticket
from shortlist.errors import InvalidInput, StoreExists
from shortlist.stores.base import MemoryStore

SCORES = instances.item_response(8, 60, np.random.default_rng(5))
ASKED: dict[str, Any] = {"k": 2, "epsilon": 0.1, "items": 60, "seed": 3}
WIDE: dict[str, Any] = {**ASKED, "min_batch": 6, "window": 30}


def score(ticket: Ticket) -> float:
    assert isinstance(ticket.arm, int)
    assert isinstance(ticket.item, int)
    return float(SCORES[ticket.arm, ticket.item])


@cache
def undisturbed() -> Experiment:
    """An experiment whose results come in at once, in order."""
    experiment = Experiment.create(8, store=MemoryStore(), **WIDE)
    while tickets := experiment.ask(1):
        experiment.tell(tickets[0], score(tickets[0]))
    return experiment


@pytest.mark.parametrize("seed", range(number_of_runs(2, 300)))
@pytest.mark.parametrize("workers", [3, 12, 40])
def test_any_order_of_results_gives_the_same_batches_and_answer(seed: int, workers: int) -> None:
    rng, reopened = random.Random(seed), bool(seed % 2)
    store = MemoryStore()
    experiment = Experiment.create(8, store=store, **WIDE)
    out: list[Ticket] = []
    while True:
        out += experiment.ask(rng.randint(1, workers))
        if not out:
            break
        rng.shuffle(out)
        for _ in range(rng.randint(1, len(out))):
            ticket = out.pop()
            experiment.tell(ticket, score(ticket))
        if reopened and rng.random() < 0.1:
            experiment = Experiment.open(store, "experiment")
    assert experiment.state() is State.FINISHED
    assert log_of(experiment) == log_of(undisturbed())
    result = experiment.result()
    assert Experiment.open(store, "experiment").result().to_json() == result.to_json()


PAIRS: list[dict[str, Any]] = [
    {"arms": 2, "k": 1, "epsilon": 0.1, "rewards": "binary", "window": 60},
    {"arms": 5, "k": 2, "epsilon": 0.15, "rewards": "binary", "window": 90, "min_batch": 10},
    {"arms": 4, "k": 1, "epsilon": 0.1, "rewards": (0, 1), "window": 50},
]


def reward_of(ticket: Ticket) -> float:
    """A function of arm and draw, so that runs can be compared."""
    assert isinstance(ticket.arm, int)
    rng = np.random.default_rng([ticket.arm, ticket.draw])
    return float(rng.random() < 0.62 - 0.08 * ticket.arm)


def log_of(experiment: Experiment) -> tuple[Any, ...]:
    replay, result = experiment._known.replay, experiment.result()
    return replay.digests, result.top, result.regret_bound, result.table


@pytest.mark.parametrize("seed", range(number_of_runs(3, 100)))
@pytest.mark.parametrize("settings", PAIRS)
def test_pairs_are_asked_ahead_and_no_order_of_results_matters(
    settings: dict[str, Any], seed: int
) -> None:
    """Also one that depends on the rewards: ones at once, zeros as late as can be."""
    reference = Experiment.create(store=MemoryStore(), **settings)
    while tickets := reference.ask(1):
        reference.tell(tickets[0], reward_of(tickets[0]))
    rng, store = random.Random(seed), MemoryStore()
    experiment = Experiment.create(store=store, **settings)
    out: list[Ticket] = []
    while more := [*out, *experiment.ask(rng.randint(1, 90))]:
        out = more
        rng.shuffle(out)
        if seed % 3:
            out.sort(key=reward_of, reverse=seed % 3 == 1)
        for _ in range(rng.randint(1, len(out))):
            ticket = out.pop()
            experiment.tell(ticket, reward_of(ticket))
        if rng.random() < 0.02:
            experiment = Experiment.open(store, "experiment")
    assert log_of(experiment) == log_of(reference)
    assert log_of(Experiment.open(store, "experiment")) == log_of(reference)


def test_traffic_does_not_pause_while_results_are_awaited() -> None:
    experiment = Experiment.create(3, 1, epsilon=0.02, rewards="binary", window=1200)
    assert [len(experiment.ask(400)) for _ in range(3)] == [400, 400, 400]
    waiting = experiment.ask(400)
    assert len(waiting) < 3 * 6  # whole pulls per arm in every batch
    assert waiting.state is State.PENDING
    assert len(Experiment.create(3, 1, epsilon=0.02, rewards="binary").ask(400)) < 20


def test_traffic_per_day_is_planned_ahead_where_it_can_be() -> None:
    late: dict[str, Any] = {"epsilon": 0.01, "drift": False, "per_day": 400, "delay": 3}
    ahead = {"min_batch": 400, "window": 1600}
    assert Experiment.create(5, 1, **late).settings.options == ahead
    assert Experiment.create(200, 40, **late).settings.options == {"min_batch": 1200}
    assert Experiment.create(5, 1, min_batch=50, **late).settings.options == {"min_batch": 50}
    assert Experiment.create(5, 1, **late | {"delay": 0}).settings.options == {"min_batch": 400}


@pytest.mark.rates
@pytest.mark.parametrize("slow", [0.0, 1.0])
def test_results_that_are_late_because_of_their_values_change_no_error_rate(slow: float) -> None:
    """The best arm is ahead by just more than epsilon; one kind of reward is told last."""
    runs, failed = number_of_runs(12, 2000), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        best = int(rng.integers(3))
        asked: dict[str, Any] = {"epsilon": 0.18, "delta": 0.3, "rewards": "binary", "seed": seed}
        experiment = Experiment.create(3, 1, window=60, store=MemoryStore(), **asked)
        out: list[tuple[Ticket, float]] = []
        while out or experiment.state() in (State.READY, State.PENDING):
            new = [
                (each, float(rng.random() < 0.4 + 0.19 * (each.arm == best)))
                for each in experiment.ask(60)
            ]
            out = sorted([*out, *new], key=lambda pair: pair[1] == slow)
            quick = max(1, sum(reward != slow for _, reward in out))
            experiment.tell_many(out[:quick])
            out = out[quick:]
        result = experiment.result()
        assert result.regret_bound is not None
        failed += result.top != (best,) and result.regret_bound < 0.19
    assert failed <= binom.isf(1e-4, runs, 0.3)


def test_tickets_of_later_batches_are_out_before_the_first_is_complete() -> None:
    experiment = Experiment.create(8, **WIDE)
    first = experiment.ask(1000)
    assert len(first) == 80  # ten items of all arms, on their own
    assert first.state is State.PENDING
    for ticket in first:
        experiment.tell(ticket, score(ticket))
    ahead = experiment.ask(1000)
    assert 6 < len(ahead) <= 30
    batches = experiment._known.replay.numbering.batches
    assert len(batches) > 1
    last = [ticket for ticket in ahead if ticket.id >= batches[1].first]
    for ticket in last:
        experiment.tell(ticket, score(ticket))
    assert not experiment.ask(1000)  # the oldest batch is missing
    assert experiment.status().wanted == 0
    for ticket in ahead:
        if ticket not in last:
            experiment.tell(ticket, score(ticket))
    assert experiment.ask(1)


def test_the_pull_function_takes_its_time_and_nothing_changes(tmp_path: Path) -> None:
    rng = random.Random(1)

    async def slow(arm: int, item: int) -> float:
        await asyncio.sleep(0.002 * rng.random())
        return float(SCORES[arm, item])

    found = [
        shortlist.select(slow, arms=8, workers=workers, progress=False, store=store, **WIDE)
        for workers, store in ((3, None), (12, None), (12, tmp_path / "a.db"))
    ]
    answer = undisturbed().result()
    assert {result.top for result in found} == {answer.top}
    assert {result.regret_bound for result in found} == {answer.regret_bound}
    assert {result.pulls for result in found} == {answer.pulls}


def test_workers_set_the_defaults_when_an_experiment_is_made_and_never_again(
    tmp_path: Path,
) -> None:
    place = tmp_path / "w.db"
    made = Experiment.create(8, store=place, workers=10, **ASKED)
    assert made.settings.options == {"min_batch": 5, "window": 30}
    again = Experiment.create(8, store=place, workers=70, exist_ok=True, **ASKED)
    assert again.settings.options == made.settings.options
    with pytest.raises(StoreExists, match="made with window = 30 and not 9"):
        Experiment.create(8, store=place, exist_ok=True, window=9, **ASKED)
    assert Experiment.open(place).settings.options == made.settings.options


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"workers": 1}, {}),
        ({}, {}),
        ({"workers": 4, "max_rounds": 5}, {"max_rounds": 5}),
        ({"workers": 4, "window": 0}, {"min_batch": 2, "window": 0}),
        ({"workers": 4, "min_batch": 90}, {"min_batch": 90, "window": 90}),
    ],
)
def test_what_is_given_stays_and_one_worker_changes_nothing(
    given: dict[str, Any], options: dict[str, int]
) -> None:
    assert Experiment.create(8, **ASKED, **given).settings.options == options


def test_workers_matter_on_a_test_set_only() -> None:
    experiment = Experiment.create(8, 2, epsilon=0.1, workers=9)
    assert experiment.settings.options == {}
    with pytest.raises(InvalidInput, match="`workers` is 0"):
        Experiment.create(8, workers=0, **ASKED)


def test_calls_take_as_many_items_as_they_may(tmp_path: Path) -> None:
    sizes: list[int] = []

    def score_many(arm: int, items: list[int]) -> list[float]:
        sizes.append(len(items))
        return [float(SCORES[arm, item]) for item in items]

    asked: dict[str, Any] = {"arms": 8, "batch": 8, "progress": False, **ASKED}
    first = shortlist.select(pull_many=score_many, **asked)
    assert np.mean(sizes) > 4.8
    place = tmp_path / "m.db"
    stored = shortlist.select(pull_many=score_many, store=place, **asked)
    assert stored.top == first.top
    with Experiment.open(place) as experiment:
        assert experiment.settings.options == {"min_items": 8}
    again = shortlist.select(pull_many=score_many, store=place, **asked | {"batch": 3})
    assert again.pulls == stored.pulls
    wide = shortlist.select(pull_many=score_many, workers=3, executor="threads", **asked)
    assert max(sizes) == 8
    assert wide.regret_bound is not None


def finished_early() -> tuple[Experiment, list[Ticket]]:
    """An experiment that finished while tickets of later batches were out."""
    experiment = Experiment.create(8, store=MemoryStore(), **WIDE)
    out: list[Ticket] = []
    while experiment.state() is not State.FINISHED:
        out += experiment.ask(1000)
        ticket = min(out, key=lambda each: each.id)
        out.remove(ticket)
        experiment.tell(ticket, score(ticket))
    return experiment, out


def test_cells_that_were_under_way_at_the_end_are_kept_and_change_nothing() -> None:
    experiment, out = finished_early()
    assert out
    before = experiment.result()
    status = experiment.status()
    assert status.wanted == 0
    receipt = experiment.tell_many([(ticket, score(ticket)) for ticket in out])
    assert set(receipt.unused) == {ticket.id for ticket in out}
    after = experiment.result()
    assert (after.top, after.regret_bound, after.table) == (
        before.top,
        before.regret_bound,
        before.table,
    )
    assert experiment.status().told == status.told + len(out)
    assert not experiment.tell(out[0], score(out[0])).unused
    assert not experiment.ask(5)
    again = Experiment.open(experiment.store, "experiment").result()
    assert again.table == before.table


def test_calls_that_have_not_begun_when_the_search_ends_are_given_back(tmp_path: Path) -> None:
    made: list[int] = []

    def score_many(arm: int, items: list[int]) -> list[float]:
        made.extend(items)
        return [float(SCORES[arm, item]) for item in items]

    asked: dict[str, Any] = {"arms": 8, "batch": 2, "progress": False, **WIDE}
    result = shortlist.select(pull_many=score_many, store=tmp_path / "q.db", **asked)
    assert result.pulls <= len(made) < result.pulls + 30
    with Experiment.open(tmp_path / "q.db") as experiment:
        assert experiment.status().held == 0
        assert experiment.status().told == len(made)


def test_an_arm_that_retires_is_named_where_its_rewards_are_made_up() -> None:
    """Otherwise the search would take the worst reward, told in an open batch, for a score."""
    experiment = Experiment.create(8, store=MemoryStore(), **WIDE)
    for ticket in experiment.ask(1000):
        experiment.tell(ticket, score(ticket))
    ahead = experiment.ask(1000)
    batches = experiment._known.replay.numbering.batches
    assert len(batches) > 2
    arm = next(ticket.arm for ticket in ahead if ticket.id < batches[0].end)
    experiment.retire(arm)
    replies = experiment._known.replay.replies
    for ticket in ahead:
        if ticket.arm != arm:
            experiment.tell(ticket, score(ticket))
    experiment.status()
    assert len(replies) > 2
    assert replies[0].retired is None
    assert all(reply.retired is not None and arm in reply.retired for reply in replies[1:])
    while tickets := experiment.ask(7):
        for ticket in tickets:
            assert ticket.arm != arm
            experiment.tell(ticket, score(ticket))
    result = experiment.result()
    assert arm not in result.top
    assert result.regret_bound is not None
    again = Experiment.open(experiment.store, "experiment").result()
    assert again.to_json() == result.to_json()


@pytest.mark.parametrize("seed", range(number_of_runs(6, 200)))
def test_an_arm_that_retires_between_batches_asked_for_ahead_keeps_the_bound(seed: int) -> None:
    """The choice, which would be final within the batches under way, is about the other arms."""
    rng = random.Random(seed)
    store = MemoryStore()
    experiment = Experiment.create(8, store=store, **WIDE)
    out: list[Ticket] = []
    last = rng.randint(90, 300)
    for _ in range(last):
        out += experiment.ask(30)
        if not out:
            break
        ticket = out.pop(rng.randrange(len(out)))
        experiment.tell(ticket, score(ticket))
    if experiment.state() is not State.FINISHED:
        arm = rng.choice(experiment.result(partial=True).top)
        for each in [each for each in out if each.arm == arm]:  # no reward of it is made up
            out.remove(each)
            experiment.tell(each, score(each))
    if experiment.state() is not State.FINISHED:
        oldest = experiment._known.replay.number
        experiment.retire(arm)
        experiment.tell_many([(each, score(each)) for each in out])
        while tickets := experiment.ask(30):
            experiment.tell_many([(each, score(each)) for each in tickets])
        named = [reply.retired is not None for reply in experiment._known.replay.replies]
        assert named == [number >= oldest for number in range(1, len(named) + 1)]
    result = experiment.result()
    assert result.regret_bound is not None
    copied = MemoryStore()
    import_lines(export_lines(store, "experiment"), copied)
    assert Experiment.open(copied).result().to_json() == result.to_json()


def test_a_partial_result_carries_the_bound_that_is_proved_so_far() -> None:
    experiment = Experiment.create(8, store=MemoryStore(), **{**WIDE, "epsilon": 0.01})
    bounds = []
    for _ in range(60):
        for ticket in experiment.ask(3):
            experiment.tell(ticket, score(ticket))
        bounds.append(experiment.result(partial=True).regret_bound)
    assert bounds[0] is None
    proved = [bound for bound in bounds if bound is not None]
    assert proved
    assert min(proved) < 1
    means = SCORES.mean(1)
    partial = experiment.result(partial=True)
    best = np.sort(means)[-2:].mean()
    assert best - means[list(partial.top)].mean() <= proved[-1] + 1e-9
