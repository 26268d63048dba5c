"""A state machine over all that can happen to tickets; the rules hold after every step, wherever
the experiment is kept."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from machines import Machine, hold
from places import PLACES

from shortlist.engine import Experiment, State, Ticket
from shortlist.engine.tickets import FREE
from shortlist.errors import ConflictingReward, InvalidReward, UnknownTicket
from shortlist.stores.base import MemoryStore

LEASE, RETRIES, WORKERS = 10.0, 1, ("ann", "bob", "")
CHOSEN: dict[str, Any] = {"epsilon": 0.9, "delta": 0.9, "rewards": "binary"}
# many small requests: 3, 3, 6, 12, ...
CHOSEN |= {"algorithm": "clucb-pac", "options": {"growth": 1.0}}
rewards = st.sampled_from([0.0, 1.0])
workers = st.sampled_from(WORKERS)
one = st.integers(0, 10**6)  # which ticket of those there are


class Cut(Exception):
    """The power goes off."""


class Terms(NamedTuple):
    """A lease of the model."""

    worker: str
    due: float
    end: float


class Rules(Machine):
    """The model: rewards by ticket, leases by ticket, failures by ticket. All of it must be what
    the experiment has."""

    @initialize(late=st.sampled_from(["wait", "again", 0.0]))
    def begin(self, late: Any) -> None:
        self.late = late
        self.make(3, 1, lease=LEASE, on_late=late, retries=RETRIES, **CHOSEN)
        self.rewards: dict[int, float] = {}
        self.missed: set[int] = set()  # tickets that count as late
        self.leases: dict[int, Terms] = {}
        self.handed: dict[int, list[Ticket]] = {}
        self.failures: dict[int, int] = {}
        self.stopped = False

    def pick(self, choice: int, tickets: Any) -> int:
        known = sorted(tickets)
        return cast(int, known[choice % len(known)])

    def count_missed(self) -> None:
        """Whoever writes counts first what is late, where that is a reward."""
        self.experiment.tell_many([])
        missed = [each for each, terms in self.leases.items() if FREE < terms.end <= self.now]
        for number in missed if self.late == 0.0 else []:
            self.rewards[number] = 0.0
            self.missed.add(number)
            del self.leases[number]

    def terms(self, worker: str, alive: float | None) -> Terms:
        due = self.now + LEASE
        if self.late != 0.0 and alive is not None:
            return Terms(worker, self.now + alive, self.now + alive)
        return Terms(worker, due, math.inf if self.late == "wait" else due)

    # What may happen

    @rule(limit=st.sampled_from([1, 2, 5, 50]), worker=workers, promised=st.booleans())
    def ask(self, limit: int, worker: str, promised: bool) -> None:
        self.count_missed()
        before = self.experiment.status()
        own = [ticket for ticket, terms in self.leases.items() if worker and terms.worker == worker]
        lapsed = [ticket for ticket in self.free() if ticket not in own]
        expected = [
            *sorted(own),
            *sorted(lapsed),
            *range(len(self.handed), len(self.handed) + limit),
        ][:limit]
        alive = LEASE / 2 if worker and promised else None
        handout = self.experiment.ask(limit, worker or None, alive=alive)
        if before.state in (State.STOPPED, State.FINISHED):
            assert (handout, handout.state) == ([], before.state)
            return
        assert [ticket.id for ticket in handout] == expected[: len(handout)]
        if len(handout) < limit:
            assert handout.state is State.PENDING
            assert len(handout) == len(own) + before.wanted - len(set(own) & set(self.free()))
        for ticket in handout:
            kept = self.late == 0.0 and ticket.id in own and ticket.id not in self.free()
            if not kept:
                self.leases[ticket.id] = self.terms(worker, alive)
            assert ticket.expires == self.leases[ticket.id].due
            self.handed.setdefault(ticket.id, []).append(ticket)

    def free(self) -> list[int]:
        return [ticket for ticket, terms in self.leases.items() if terms.end <= self.now]

    @precondition(lambda self: self.leases)
    @rule(choice=one, reward=rewards, by_number=st.booleans(), late=st.booleans())
    def tell(self, choice: int, reward: float, by_number: bool, late: bool) -> None:
        number = self.pick(choice, self.leases)
        self.count_missed()
        ticket = self.handed[number][0 if late else -1]
        self.experiment.tell(number if by_number else ticket, reward)
        if self.leases.pop(number, None) is not None:
            self.rewards[number] = reward

    @precondition(lambda self: self.leases)
    @rule(pulls=st.data())
    def tell_many(self, pulls: st.DataObject) -> None:
        numbers = pulls.draw(
            st.lists(st.sampled_from(sorted(self.leases)), min_size=1, max_size=30, unique=True)
        )
        results = [(number, pulls.draw(rewards)) for number in numbers]
        self.count_missed()
        self.experiment.tell_many([*results, results[0]])
        for number, reward in results:
            if self.leases.pop(number, None) is not None:
                self.rewards[number] = reward

    @precondition(lambda self: self.rewards)
    @rule(choice=one)
    def tell_again(self, choice: int) -> None:
        number = self.pick(choice, self.rewards)
        self.count_missed()
        self.experiment.tell(self.handed[number][0], self.rewards[number])

    @precondition(lambda self: self.rewards)
    @rule(choice=one)
    def tell_otherwise(self, choice: int) -> None:
        number = self.pick(choice, self.rewards)
        self.count_missed()
        if number in self.missed:  # it came too late, which is no mistake
            assert self.experiment.tell(self.handed[number][0], 1.0).late == (number,)
            return
        with pytest.raises(ConflictingReward):
            self.experiment.tell(self.handed[number][0], 1 - self.rewards[number])

    @precondition(lambda self: self.leases)
    @rule(choice=one, reward=st.sampled_from([math.nan, math.inf, -1.0, 0.5]))
    def tell_nonsense(self, choice: int, reward: float) -> None:
        numbers = sorted(self.leases)
        self.count_missed()
        with pytest.raises(InvalidReward):
            self.experiment.tell_many(
                [*((number, 1.0) for number in numbers), (numbers[choice % len(numbers)], reward)]
            )

    @rule(beyond=st.integers(0, 5))
    def tell_what_was_never_asked(self, beyond: int) -> None:
        self.count_missed()
        with pytest.raises(UnknownTicket):
            self.experiment.tell(len(self.handed) + beyond, 1.0)

    @precondition(lambda self: self.handed)
    @rule(choice=one)
    def tell_another_experiment(self, choice: int) -> None:
        """A ticket that agrees in everything but where it is from."""
        number = self.pick(choice, self.handed)
        other = Experiment.create(3, 1, **CHOSEN)
        ticket = replace(self.handed[number][0], experiment=other.ask()[0].experiment)
        self.count_missed()
        for use in (self.experiment.tell, self.experiment.fail):
            with pytest.raises(UnknownTicket):
                use(ticket, 1)

    @precondition(lambda self: self.handed)
    @rule(choice=one, attempt=one)
    def fail(self, choice: int, attempt: int) -> None:
        number = self.pick(choice, self.handed)
        ticket = self.handed[number][attempt % len(self.handed[number])]
        self.count_missed()
        self.experiment.fail(ticket, "it rained")
        if self.is_current(ticket):
            self.failures[number] = self.failures.get(number, 0) + 1
            self.give_back(number)
            self.stopped |= self.failures[number] > RETRIES

    def is_current(self, ticket: Ticket) -> bool:
        terms = self.leases.get(ticket.id)
        return terms is not None and terms.end != FREE and terms.due == ticket.expires

    def give_back(self, number: int) -> None:
        self.leases[number] = Terms(self.leases[number].worker, FREE, FREE)

    @rule(worker=workers, overdue=st.sampled_from([None, 0.0, LEASE / 2]))
    def release(self, worker: str, overdue: float | None) -> None:
        self.count_missed()
        count = self.experiment.release(worker, overdue=overdue)
        for number, terms in list(self.leases.items()):
            long = overdue is None or terms.due <= self.now - overdue
            if terms.worker == worker and terms.end != FREE and long:
                self.give_back(number)
                count -= 1
        assert count == 0

    @precondition(lambda self: self.handed)
    @rule(choice=one, attempt=one)
    def release_a_ticket(self, choice: int, attempt: int) -> None:
        number = self.pick(choice, self.handed)
        ticket = self.handed[number][attempt % len(self.handed[number])]
        self.count_missed()
        assert self.experiment.release(tickets=[ticket]) == self.is_current(ticket)
        if self.is_current(ticket):
            self.give_back(number)

    @precondition(lambda self: self.failures)
    @rule()
    def resume(self) -> None:
        self.count_missed()
        self.experiment.resume()
        self.failures, self.stopped = {}, False

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def crash_and_reopen(self) -> None:
        self.experiment = self.open()

    @precondition(lambda self: self.leases and self.kind != "http")
    @rule(choice=one, asking=st.booleans())
    def crash_while_writing(self, choice: int, asking: bool) -> None:
        """The power goes off after everything was written but before it is made to last."""
        self.count_missed()
        append = self.store.append

        def append_and_die(*arguments: Any, **named: Any) -> None:
            append(*arguments, **named)
            raise Cut

        self.store.append = append_and_die  # type: ignore[method-assign]
        act = (
            partial(self.experiment.ask, 3)
            if asking or not self.leases
            else partial(self.experiment.tell, self.pick(choice, self.leases), 1)
        )
        with pytest.raises(Cut):
            act()
        self.store.append = append  # type: ignore[method-assign]

    # What must hold

    @invariant()
    def the_experiment_has_what_the_model_has(self) -> None:
        for each in (self.experiment, self.reader):
            status = each.status()
            assert status.told + status.late == len(self.rewards)
            assert status.late == len(self.missed)
            held = [terms for terms in self.leases.values() if terms.end > self.now]
            assert status.held == len(held)
            assert status.overdue == sum(terms.due <= self.now for terms in held)
            assert status.failures == sum(self.failures.values())
            if status.state is not State.FINISHED:
                assert (status.state is State.STOPPED) == self.stopped

    @invariant()
    def what_was_told_is_in_the_log_once(self) -> None:
        assert self.told() == self.rewards
        assert self.log().told.tickets.size == len(self.rewards)

    @invariant()
    def a_ticket_never_changes(self) -> None:
        for tickets in self.handed.values():
            assert (
                len({(ticket.id, ticket.arm, ticket.draw, ticket.seed) for ticket in tickets}) == 1
            )

    def end(self) -> None:
        """However it went, the same rewards by ticket give the same answer as without any
        disturbance."""
        self.experiment.resume()
        self.count_missed()
        self.experiment.release(tickets=list(self.leases))
        self.now += 2 * LEASE
        finish(self.experiment, self.rewards)
        calm = Experiment.create(3, 1, store=MemoryStore(), clock=self.clock, **CHOSEN)
        finish(calm, self.rewards)
        assert self.experiment.result() == calm.result() == self.reader.result()


def finish(experiment: Experiment, told: dict[int, float]) -> None:
    """Tell what was told, and 0 of all others."""
    while tickets := experiment.ask(100):
        experiment.tell_many((ticket, told.get(ticket.id, 0.0)) for ticket in tickets)


@pytest.mark.parametrize("kind", PLACES)
def test_tickets_leases_and_failures_keep_their_rules(kind: str) -> None:
    hold(Rules, kind, steps=30)
