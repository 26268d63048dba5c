"""A state machine over arms that leave, arms with limits and results before the end: the rules hold
after every step, on every store."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shortlist import Arm
from shortlist.errors import InvalidInput, Unfinished
from shortlist.experiment import Experiment, State, Ticket
from shortlist.storage import Store
from shortlist.storage.memory import MemoryStore
from shortlist.storage.sqlite import SQLiteStore

LABELS, K, RETRIES = ("a", "b", "c", "d", "e"), 2, 1
LIMITS = (4, None, 9, 30, None)
GOALS: list[dict[str, Any]] = [
    {"budget": 90, "rewards": "binary"},
    {"budget": 90},
    {"epsilon": 0.4, "delta": 0.4, "rewards": "binary"},
    {"epsilon": 0.4, "delta": 0.4, "budget": 60, "rewards": (-1, 1)},
]
one = st.integers(0, 10**6)  # which of those there are
OVER = (State.FINISHED, State.BUDGET)


class Leaving(RuleBasedStateMachine):
    """The model: who left, what was told by whom, and which tickets are out."""

    def make_store(self) -> Store:
        raise NotImplementedError

    def another(self, store: Store) -> Store:
        """The store as another program sees it."""
        raise NotImplementedError

    @initialize(goal=st.sampled_from(GOALS), on_failure=st.sampled_from(["stop", "retire"]))
    def begin(self, goal: dict[str, Any], on_failure: Any) -> None:
        self.store = self.make_store()
        arms = [Arm(label, limit=most) for label, most in zip(LABELS, LIMITS, strict=True)]
        made = {"retries": RETRIES, "on_failure": on_failure, "clock": self.clock, **goal}
        self.experiment = Experiment.create(arms, K, store=self.store, **made)
        self.reader = Experiment.open(self.another(self.store), clock=self.clock)
        self.retires = on_failure == "retire"
        self.left: set[str] = set()
        self.out: dict[int, Ticket] = {}
        self.told: dict[int, tuple[str, float]] = {}
        self.failures: dict[int, int] = {}

    def clock(self) -> float:
        return 0.0

    def pick(self, choice: int) -> Ticket:
        return self.out[sorted(self.out)[choice % len(self.out)]]

    @rule(limit=st.sampled_from([1, 3, 40]))
    def ask(self, limit: int) -> None:
        handout = self.experiment.ask(limit)
        for ticket in handout:
            assert ticket.arm not in self.left
            self.out[ticket.id] = ticket
        if handout.state is not State.PENDING:
            assert handout.meanwhile is None
        elif handout.meanwhile is not None:
            most = LIMITS[LABELS.index(str(handout.meanwhile))]
            assert handout.meanwhile not in self.left
            assert most is None or self.made()[str(handout.meanwhile)] < most

    @rule(choice=one, good=st.booleans(), count=st.sampled_from([1, 40]))
    def tell(self, choice: int, good: bool, count: int) -> None:
        for _ in range(min(count, len(self.out))):
            ticket = self.pick(choice)
            self.experiment.tell(ticket, float(good))
            del self.out[ticket.id]
            if ticket.arm not in self.left:  # else it counts as the worst reward
                self.told[ticket.id] = str(ticket.arm), float(good)

    @rule(choice=one)
    def fail(self, choice: int) -> None:
        if not self.out or self.experiment.state() is State.STOPPED:
            return
        ticket = self.pick(choice)
        self.experiment.fail(ticket, "no answer")
        del self.out[ticket.id]
        if ticket.arm in self.left:
            return
        self.failures[ticket.id] = self.failures.get(ticket.id, 0) + 1
        if self.failures[ticket.id] > RETRIES and self.retires and len(LABELS) - len(self.left) > 3:
            self.leave(str(ticket.arm))

    @rule(arm=st.sampled_from(LABELS))
    def retire(self, arm: str) -> None:
        stay = len(LABELS) - len(self.left | {arm})
        if self.experiment.state() in OVER or stay <= K:
            with pytest.raises(InvalidInput):
                self.experiment.retire(arm, "gone")
            return
        self.experiment.retire(arm, "gone")
        self.leave(arm)

    def leave(self, arm: str) -> None:
        self.left.add(arm)
        # what was forgiven when the arm in trouble left is not known here: ask
        if self.experiment.status().failures == 0:
            self.failures.clear()

    @rule()
    def resume(self) -> None:
        self.experiment.resume()
        self.failures.clear()

    @rule()
    def crash_and_reopen(self) -> None:
        self.store = self.another(self.store)
        self.experiment = Experiment.open(self.store, clock=self.clock)

    def made(self) -> dict[str, int]:
        """Pulls of every arm that were handed out to somebody and not given up since."""
        counts = dict.fromkeys(LABELS, 0)
        for arm, _ in self.told.values():
            counts[arm] += 1
        for ticket in self.out.values():
            counts[str(ticket.arm)] += 1
        return counts

    @invariant()
    def no_arm_is_pulled_beyond_its_limit(self) -> None:
        for each in (self.experiment, self.reader):
            status = each.status()
            pulls = dict(zip(LABELS, status.arms.pulls.tolist(), strict=True))
            for label, most in zip(LABELS, LIMITS, strict=True):
                assert most is None or pulls[label] <= most
                assert pulls[label] >= sum(arm == label for arm, _ in self.told.values())

    @invariant()
    def those_who_left_are_known_to_everybody_and_chosen_by_nobody(self) -> None:
        for each in (self.experiment, self.reader):
            places = each.status().arms.places
            assert {LABELS[i] for i, at in enumerate(places) if at == "retired"} == self.left
            partial = each.result(partial=True)
            assert len(set(partial.top)) == K
            assert not self.left & set(partial.top)
            assert partial.partial == (each.state() not in OVER)
        assert self.experiment.result(partial=True) == self.reader.result(partial=True)

    @invariant()
    def a_bound_is_claimed_only_of_what_was_asked(self) -> None:
        partial = self.experiment.result(partial=True)
        if partial.goal.budget is not None and partial.regret_bound is None:
            assert partial.confidence is None
        if partial.regret_bound is not None:
            assert partial.algorithm == "certified"
            assert 0 <= partial.regret_bound < math.inf

    def teardown(self) -> None:
        """It can always be brought to its end, and all agree on the answer."""
        if not hasattr(self, "experiment"):
            return
        self.experiment.resume()
        self.experiment.release(tickets=[each.id for each in self.out.values()])
        while tickets := self.experiment.ask(100):
            assert not self.left & {ticket.arm for ticket in tickets}
            self.experiment.tell_many((ticket, float(ticket.arm == "b")) for ticket in tickets)
        assert self.experiment.result() == self.reader.result()
        assert not self.experiment.result().partial
        with pytest.raises(InvalidInput, match="the answer is there"):
            self.experiment.retire("b")


class MemoryLeaving(Leaving):
    """The rules on the store in memory."""

    def make_store(self) -> Store:
        return MemoryStore()

    def another(self, store: Store) -> Store:
        return store


class SQLiteLeaving(Leaving):
    """The rules on a file, which every experiment opens for itself."""

    def make_store(self) -> Store:
        self.folder = TemporaryDirectory()
        self.opened: list[Store] = []
        return self.keep(SQLiteStore(Path(self.folder.name, "rules.db"), "rwc"))

    def another(self, store: Store) -> Store:
        return self.keep(SQLiteStore(Path(self.folder.name, "rules.db")))

    def keep(self, store: Store) -> Store:
        self.opened.append(store)
        return store

    def teardown(self) -> None:
        super().teardown()
        for store in getattr(self, "opened", ()):
            store.close()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestLeavingInMemory = MemoryLeaving.TestCase
TestLeavingInAFile = SQLiteLeaving.TestCase
TestLeavingInMemory.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestLeavingInAFile.settings = TestLeavingInMemory.settings


def test_an_unfinished_experiment_has_a_partial_result_only() -> None:
    experiment = Experiment.create(4, 1, budget=40)
    with pytest.raises(Unfinished):
        experiment.result()
    assert experiment.result(partial=True).partial
