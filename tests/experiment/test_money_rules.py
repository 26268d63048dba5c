"""A state machine over an experiment whose arms cost, have limits, and leave; on every store.

Whatever happens: nothing is handed out that the budget does not pay for, no arm is pulled beyond
its limit, what was spent is what was said, there is always a present choice, an answer stays."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shortlist import Arm
from shortlist.errors import ConflictingReward, InvalidInput
from shortlist.experiment import Experiment, State, Ticket, export_lines, import_lines
from shortlist.result import Result
from shortlist.storage import Store
from shortlist.storage.memory import MemoryStore
from shortlist.storage.sqlite import SQLiteStore

LEASE, BUDGET = 10.0, 70.0
PRICES = {"a": 1.0, "b": 5.0, "c": 2.0, "d": 1.5}
LIMITS = {"a": None, "b": 4, "c": 9, "d": None}
ARMS = [Arm(label, cost=PRICES[label], limit=LIMITS[label]) for label in PRICES]
OVER = (State.FINISHED, State.BUDGET)
GOALS: list[dict[str, Any]] = [{}, {"epsilon": 0.3, "delta": 0.2}, {"epsilon": 0.05}]
costs = st.sampled_from([None, 0.0, 0.5, 3.0, 40.0])
one = st.integers(0, 10**6)  # which ticket of those there are


class MoneyRules(RuleBasedStateMachine):
    """The model: what every ticket that was told did cost, who holds which of the others."""

    def make_store(self) -> Store:
        raise NotImplementedError

    def another(self, store: Store) -> Store:
        """The store as another program sees it."""
        raise NotImplementedError

    @initialize(goal=st.sampled_from(GOALS), late=st.sampled_from(["wait", "again"]))
    def begin(self, goal: dict[str, Any], late: Any) -> None:
        self.now = 0.0
        self.late = late
        self.store = self.make_store()
        how = {"lease": LEASE, "late": late, "clock": self.clock, "rewards": "binary"}
        made: dict[str, Any] = {"k": 1, "budget": BUDGET, **how, **goal}
        self.experiment = Experiment.create(ARMS, store=self.store, **made)
        self.reader = Experiment.open(self.another(self.store), clock=self.clock)
        self.paid: dict[int, float] = {}
        self.held: dict[int, float] = {}  # by ticket, when it is let go of
        self.tickets: dict[int, Ticket] = {}
        self.retired: set[str] = set()
        self.final: Result | None = None

    def clock(self) -> float:
        return self.now

    def spent(self) -> float:
        return math.fsum(self.paid.values())

    def under_way(self) -> float:
        open_ = [each for each, end in self.held.items() if end > self.now]
        return math.fsum(PRICES[str(self.tickets[each].arm)] for each in open_)

    @rule(limit=st.sampled_from([1, 2, 7, 50]))
    def ask(self, limit: int) -> None:
        handout = self.experiment.ask(limit)
        for ticket in handout:
            assert str(ticket.arm) not in self.retired
            self.tickets[ticket.id] = ticket
            self.held[ticket.id] = math.inf if self.late == "wait" else self.now + LEASE
        if handout:
            assert self.spent() + self.under_way() <= BUDGET * (1 + 1e-9)
        self.take_in_unpaid()

    def take_in_unpaid(self) -> None:
        """What was told of arms that left, which nobody pulled: it cost nothing."""
        told = self.store.read("experiment").told.tickets.tolist()
        self.paid = {each: self.paid.get(each, 0.0) for each in told}

    @precondition(lambda self: self.held and self.final is None)
    @rule(choice=one, reward=st.sampled_from([0, 1]), cost=costs)
    def tell(self, choice: int, reward: int, cost: float | None) -> None:
        number = sorted(self.held)[choice % len(self.held)]
        ticket = self.tickets[number]
        known = self.paid.get(number)
        self.experiment.tell(number, reward, cost)
        if known is None:
            self.paid[number] = PRICES[str(ticket.arm)] if cost is None else cost
        del self.held[number]

    @precondition(lambda self: self.paid)
    @rule(choice=one, cost=st.sampled_from([7.0, -1.0, math.nan, math.inf]))
    def tell_another_cost(self, choice: int, cost: float) -> None:
        number = sorted(self.paid)[choice % len(self.paid)]
        if number not in self.tickets or str(self.tickets[number].arm) in self.retired:
            return
        reward = self.store.read("experiment").told
        value = reward.rewards[reward.tickets.tolist().index(number)]
        error = ConflictingReward if cost == 7.0 else InvalidInput
        with pytest.raises(error, match="cost"):
            self.experiment.tell(number, value, cost)

    @precondition(lambda self: self.final is None and len(self.retired) < 2)
    @rule(arm=st.sampled_from(list(PRICES)))
    def retire(self, arm: str) -> None:
        self.experiment.retire(arm, "it is sold out")
        self.retired.add(arm)
        for number in [each for each in self.held if self.tickets[each].arm == arm]:
            del self.held[number]

    @rule(seconds=st.sampled_from([1.0, LEASE]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def crash_and_reopen(self) -> None:
        self.store = self.another(self.store)
        self.experiment = Experiment.open(self.store, clock=self.clock)

    @invariant()
    def what_was_spent_is_what_was_said(self) -> None:
        for each in (self.experiment, self.reader):
            assert each.status().spent == pytest.approx(self.spent())

    @invariant()
    def there_is_a_present_choice_and_an_answer_stays(self) -> None:
        present = self.experiment.result(partial=True)
        assert present.spent == pytest.approx(self.spent())
        assert len(present.top) == 1
        assert not self.retired.intersection(map(str, present.top))
        for arm in present.arms:
            assert arm.limit is None or arm.pulls <= arm.limit
        if self.final is None and self.experiment.status().state in OVER:
            self.final = self.experiment.result()
        if self.final is not None:
            assert self.reader.result() == self.final
            assert not self.final.partial

    def teardown(self) -> None:
        """However it went, it comes to an end, and a copy agrees."""
        if not hasattr(self, "experiment"):
            return
        self.experiment.release(tickets=list(self.tickets))
        self.now += 2 * LEASE
        while tickets := self.experiment.ask(10):
            self.experiment.tell_many([(ticket, 1, 2.5) for ticket in tickets])
        assert self.experiment.status().state in OVER
        copy = MemoryStore()
        import_lines(export_lines(self.store), copy)
        assert Experiment.open(copy).result() == self.experiment.result()


class MemoryMoneyRules(MoneyRules):
    """The rules on the store in memory."""

    def make_store(self) -> Store:
        return MemoryStore()

    def another(self, store: Store) -> Store:
        return store


class SQLiteMoneyRules(MoneyRules):
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


TestMemoryMoneyRules = pytest.mark.filterwarnings("default")(MemoryMoneyRules.TestCase)
TestMemoryMoneyRules.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestSQLiteMoneyRules = pytest.mark.filterwarnings("default")(SQLiteMoneyRules.TestCase)
TestSQLiteMoneyRules.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
