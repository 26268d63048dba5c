"""A state machine over all that can happen to an experiment; the rules hold after every step, on
every store."""

import math
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shortlist.errors import ConflictingReward, InvalidReward, UnknownTicket
from shortlist.experiment import Experiment, State, Ticket
from shortlist.experiment.ledger import FREE
from shortlist.storage import Store
from shortlist.storage.memory import MemoryStore
from shortlist.storage.sqlite import SQLiteStore

LEASE, RETRIES, WORKERS = 10.0, 1, ("ann", "bob", "")
CHOSEN: dict[str, Any] = {"epsilon": 0.9, "delta": 0.9, "rewards": "binary"}
# many small requests: 3, 3, 6, 12, ...
CHOSEN |= {"algorithm": "clucb-pac", "options": {"growth": 1.0}}
rewards = st.sampled_from([0.0, 1.0])
workers = st.sampled_from(WORKERS)
one = st.integers(0, 10**6)  # which ticket of those there are


class Cut(Exception):
    """The power goes off."""


class Rules(RuleBasedStateMachine):
    """The model: rewards by ticket, leases by ticket, failures by ticket. All of it must be what
    the experiment has."""

    def make_store(self) -> Store:
        raise NotImplementedError

    def another(self, store: Store) -> Store:
        """The store as another program sees it."""
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.store = self.make_store()
        self.experiment = Experiment.create(
            3, 1, store=self.store, lease=LEASE, retries=RETRIES, clock=self.clock, **CHOSEN
        )
        self.reader = Experiment.open(self.another(self.store), clock=self.clock)
        self.told: dict[int, float] = {}
        self.leases: dict[int, tuple[str, float]] = {}
        self.handed: dict[int, list[Ticket]] = {}
        self.failures: dict[int, int] = {}
        self.stopped = False

    def clock(self) -> float:
        return self.now

    def pick(self, choice: int, tickets: Any) -> int:
        known = sorted(tickets)
        return cast(int, known[choice % len(known)])

    # What may happen

    @rule(limit=st.sampled_from([1, 2, 5, 50]), worker=workers)
    def ask(self, limit: int, worker: str) -> None:
        before = self.experiment.status()
        own = [ticket for ticket, lease in self.leases.items() if worker and lease[0] == worker]
        lapsed = [
            ticket
            for ticket, lease in self.leases.items()
            if lease[1] <= self.now and ticket not in own
        ]
        expected = [
            *sorted(own),
            *sorted(lapsed),
            *range(len(self.handed), len(self.handed) + limit),
        ][:limit]
        handout = self.experiment.ask(limit, worker or None)
        if before.state in (State.STOPPED, State.FINISHED):
            assert (handout, handout.state) == ([], before.state)
            return
        assert [ticket.id for ticket in handout] == expected[: len(handout)]
        if len(handout) < limit:
            assert handout.state is State.PENDING
            assert len(handout) == len(own) + before.wanted - len(set(own) & set(self.free()))
        for ticket in handout:
            self.leases[ticket.id] = (worker, self.now + LEASE)
            self.handed.setdefault(ticket.id, []).append(ticket)

    def free(self) -> list[int]:
        return [ticket for ticket, lease in self.leases.items() if lease[1] <= self.now]

    @precondition(lambda self: self.leases)
    @rule(choice=one, reward=rewards, by_number=st.booleans(), late=st.booleans())
    def tell(self, choice: int, reward: float, by_number: bool, late: bool) -> None:
        number = self.pick(choice, self.leases)
        ticket = self.handed[number][0 if late else -1]
        self.experiment.tell(number if by_number else ticket, reward)
        self.told[number] = reward
        del self.leases[number]

    @precondition(lambda self: self.leases)
    @rule(pulls=st.data())
    def tell_many(self, pulls: st.DataObject) -> None:
        numbers = pulls.draw(
            st.lists(st.sampled_from(sorted(self.leases)), min_size=1, max_size=30, unique=True)
        )
        results = [(number, pulls.draw(rewards)) for number in numbers]
        self.experiment.tell_many([*results, results[0]])
        self.told.update(results)
        for number in numbers:
            del self.leases[number]

    @precondition(lambda self: self.told)
    @rule(choice=one)
    def tell_again(self, choice: int) -> None:
        number = self.pick(choice, self.told)
        self.experiment.tell(self.handed[number][0], self.told[number])

    @precondition(lambda self: self.told)
    @rule(choice=one)
    def tell_otherwise(self, choice: int) -> None:
        number = self.pick(choice, self.told)
        with pytest.raises(ConflictingReward):
            self.experiment.tell(self.handed[number][0], 1 - self.told[number])

    @precondition(lambda self: self.leases)
    @rule(choice=one, reward=st.sampled_from([math.nan, math.inf, -1.0, 0.5]))
    def tell_nonsense(self, choice: int, reward: float) -> None:
        numbers = sorted(self.leases)
        with pytest.raises(InvalidReward):
            self.experiment.tell_many(
                [*((number, 1.0) for number in numbers), (numbers[choice % len(numbers)], reward)]
            )

    @rule(beyond=st.integers(0, 5))
    def tell_what_was_never_asked(self, beyond: int) -> None:
        with pytest.raises(UnknownTicket):
            self.experiment.tell(len(self.handed) + beyond, 1.0)

    @precondition(lambda self: self.handed)
    @rule(choice=one, attempt=one)
    def fail(self, choice: int, attempt: int) -> None:
        number = self.pick(choice, self.handed)
        ticket = self.handed[number][attempt % len(self.handed[number])]
        self.experiment.fail(ticket, "it rained")
        if self.leases.get(number, ("", FREE))[1] == ticket.expires:
            self.failures[number] = self.failures.get(number, 0) + 1
            self.leases[number] = (self.leases[number][0], FREE)
            self.stopped |= self.failures[number] > RETRIES

    @rule(worker=st.sampled_from(WORKERS[:2]))
    def release(self, worker: str) -> None:
        self.experiment.release(worker)
        for ticket, (holder, _) in self.leases.items():
            if holder == worker:
                self.leases[ticket] = (worker, FREE)

    @precondition(lambda self: self.failures)
    @rule()
    def resume(self) -> None:
        self.experiment.resume()
        self.failures, self.stopped = {}, False

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def crash_and_reopen(self) -> None:
        self.store = self.another(self.store)
        self.experiment = Experiment.open(self.store, clock=self.clock)

    @precondition(lambda self: self.leases)
    @rule(choice=one, asking=st.booleans())
    def crash_while_writing(self, choice: int, asking: bool) -> None:
        """The power goes off after everything was written but before it is made to last."""
        append = self.store.append

        def append_and_die(*arguments: Any, **named: Any) -> None:
            append(*arguments, **named)
            raise Cut

        self.store.append = append_and_die  # type: ignore[method-assign]
        act = (
            partial(self.experiment.ask, 3)
            if asking
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
            assert status.told == len(self.told)
            assert status.held == sum(lease[1] > self.now for lease in self.leases.values())
            assert status.failures == sum(self.failures.values())
            if status.state is not State.FINISHED:
                assert (status.state is State.STOPPED) == self.stopped

    @invariant()
    def what_was_told_is_in_the_log_once(self) -> None:
        told = self.store.read("experiment").told
        assert dict(zip(told.tickets.tolist(), told.rewards.tolist(), strict=True)) == self.told
        assert told.tickets.size == len(self.told)

    @invariant()
    def a_ticket_never_changes(self) -> None:
        for tickets in self.handed.values():
            assert (
                len({(ticket.id, ticket.arm, ticket.draw, ticket.seed) for ticket in tickets}) == 1
            )

    def teardown(self) -> None:
        """However it went, the same rewards by ticket give the same answer as without any
        disturbance."""
        if not hasattr(self, "experiment"):
            return
        self.experiment.resume()
        self.now += 2 * LEASE
        finish(self.experiment, self.told)
        calm = Experiment.create(3, 1, store=MemoryStore(), clock=self.clock, **CHOSEN)
        finish(calm, self.told)
        assert self.experiment.result() == calm.result() == self.reader.result()


def finish(experiment: Experiment, told: dict[int, float]) -> None:
    """Tell what was told, and 0 of all others."""
    while tickets := experiment.ask(100):
        experiment.tell_many((ticket, told.get(ticket.id, 0.0)) for ticket in tickets)


class MemoryRules(Rules):
    """The rules on the store in memory."""

    def make_store(self) -> Store:
        return MemoryStore()

    def another(self, store: Store) -> Store:
        return store


class SQLiteRules(Rules):
    """The rules on a file, which every experiment opens for itself."""

    def make_store(self) -> Store:
        self.folder = TemporaryDirectory()
        self.opened: list[Store] = []
        return self.keep(SQLiteStore(Path(self.folder.name, "store.db"), "rwc"))

    def another(self, store: Store) -> Store:
        return self.keep(SQLiteStore(Path(self.folder.name, "store.db")))

    def keep(self, store: Store) -> Store:
        self.opened.append(store)
        return store

    def teardown(self) -> None:
        super().teardown()
        for store in self.opened:
            store.close()
        self.folder.cleanup()


TestMemoryRules = pytest.mark.filterwarnings("default")(MemoryRules.TestCase)
TestMemoryRules.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestSQLiteRules = pytest.mark.filterwarnings("default")(SQLiteRules.TestCase)
TestSQLiteRules.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
