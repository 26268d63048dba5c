"""Working an experiment off with a function: in parallel, with failures, interrupted, and beside
others."""

import threading
import time
from typing import Any

import pytest

from shortlist.errors import EvaluationFailed, InvalidInput
from shortlist.experiment import Experiment, State, Ticket
from shortlist.experiment.worker import work
from shortlist.storage.memory import MemoryStore


def new(store: MemoryStore | None = None, **settings: Any) -> Experiment:
    return Experiment.create(
        4, 1, store=store or MemoryStore(), **{"budget": 60, "algorithm": "uniform", **settings}
    )


def reward(ticket: Ticket) -> float:
    return (ticket.seed % 100) / 100


@pytest.mark.parametrize("jobs", [1, 3, 100])
def test_the_result_does_not_depend_on_the_number_of_jobs(jobs: int) -> None:
    alone, together = new(), new()
    assert work(alone, reward, worker="w") is State.BUDGET
    assert work(together, reward, worker="w", jobs=jobs) is State.BUDGET
    assert together.result() == alone.result()


def test_that_many_jobs_run_at_once() -> None:
    meeting = threading.Barrier(3, timeout=10)  # nobody passes before three are there

    def meet(ticket: Ticket) -> float:
        meeting.wait()
        return 1.0

    assert work(new(), meet, worker="w", jobs=3) is State.BUDGET


def test_failures_are_noted_and_tried_again() -> None:
    notes: list[tuple[int, str]] = []
    seen: set[int] = set()

    def flaky(ticket: Ticket) -> float:
        if ticket.id % 7 == 0 and ticket.id not in seen:
            seen.add(ticket.id)
            raise EvaluationFailed("no network")
        return reward(ticket)

    experiment, calm = new(), new()
    assert (
        work(
            experiment,
            flaky,
            worker="w",
            jobs=2,
            note=lambda *each: notes.append((each[0].id, each[1])),
        )
        == "budget"
    )
    assert sorted(notes) == [(ticket, "no network") for ticket in range(0, 60, 7)]
    work(calm, reward, worker="w")
    assert experiment.result() == calm.result()


@pytest.mark.parametrize("bad", [float("nan"), 7.0])
def test_a_reward_that_is_none_stops_the_experiment_in_the_end(bad: float) -> None:
    experiment = new()
    assert (
        work(experiment, lambda ticket: bad if ticket.id == 5 else 1.0, worker="w", jobs=4)
        is State.STOPPED
    )
    assert "is nan" in experiment.status().trouble or "is 7.0" in experiment.status().trouble
    assert experiment.status().told >= 5


def test_an_interrupt_tells_what_is_done_and_gives_back_the_rest() -> None:
    store = MemoryStore()
    experiment = new(store)
    released = threading.Event()
    done: list[int] = []

    def slow(ticket: Ticket) -> float:
        if ticket.id >= 10:
            released.wait(10)
            raise EvaluationFailed("it was ended")
        done.append(ticket.id)
        return reward(ticket)

    def show() -> None:
        if len(done) == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(experiment, slow, worker="w", jobs=4, cancel=released.set, show=show)
    status = Experiment.open(store).status()
    assert (status.told, status.held, status.failures) == (10, 0, 0)
    work(Experiment.open(store), reward, worker="another")
    calm = new()
    work(calm, reward, worker="w")
    assert Experiment.open(store).result() == calm.result()


def test_leases_are_renewed_while_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.experiment.worker.LEASE", 0.03)
    now, steps, enough = [0.0], [0], threading.Event()
    experiment = new(budget=4, clock=lambda: now[0])
    others: list[Ticket] = []

    def slow(ticket: Ticket) -> float:
        enough.wait(10)
        others.extend(experiment.ask(4, "other"))
        return 1.0

    def show() -> None:
        now[0] += 0.02  # a lease would not survive two steps
        steps[0] += 1
        if steps[0] == 5:
            enough.set()

    assert work(experiment, slow, worker="w", jobs=4, show=show) is State.BUDGET
    assert steps[0] >= 5
    assert others == []


def test_it_waits_for_what_others_hold() -> None:
    experiment = new()
    theirs = experiment.ask(3, "other")

    def late() -> None:
        time.sleep(0.3)
        experiment.tell_many((ticket, reward(ticket)) for ticket in theirs)

    thread = threading.Thread(target=late)
    thread.start()
    assert work(experiment, reward, worker="w", jobs=2) is State.BUDGET
    thread.join()


def test_it_says_once_for_what_it_waits_if_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.experiment.worker.PAUSE", 0.001)
    monkeypatch.setattr("shortlist.experiment.worker.PATIENCE", 0.01)
    now, said = [100.0], []
    experiment = new(clock=lambda: now[0])
    experiment.ask(2, "dead", lease=30)
    experiment.ask(1, "dead too", lease=20)

    def wait() -> None:
        now[0] += 0.25

    assert (
        work(experiment, reward, worker="w", waiting=lambda *each: said.append(each), show=wait)
        is State.BUDGET
    )
    assert said == [(3, 130.0)]


def test_a_failure_is_kept_in_a_line_and_noted_with_all_that_was_said() -> None:
    notes: list[str] = []

    def broken(ticket: Ticket) -> float:
        error = EvaluationFailed("it said: end")
        error.add_note("begin\nend")
        raise error

    experiment = new(retries=0)
    assert (
        work(experiment, broken, worker="w", note=lambda _, text: notes.append(text))
        is State.STOPPED
    )
    assert notes == ["it said: end\nbegin\nend"]
    assert experiment.status().trouble.endswith("the last time: it said: end")


def test_a_reward_that_came_too_late_is_noted_and_the_first_stays() -> None:
    experiment = new()
    notes: list[str] = []

    def overtaken(ticket: Ticket) -> float:
        if ticket.id == 4:
            experiment.tell(ticket, 1.0)
            return 0.0
        return reward(ticket)

    assert (
        work(experiment, overtaken, worker="w", note=lambda _, text: notes.append(text))
        is State.BUDGET
    )
    assert notes == ["ticket 4 is told 0.0, but was told 1.0 before, which stays"]


def test_jobs_must_be_a_positive_whole_number() -> None:
    with pytest.raises(InvalidInput, match="`jobs` is 0, but must be"):
        work(new(), reward, worker="w", jobs=0)
