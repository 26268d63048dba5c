"""A state machine over an experiment whose arms cost, have limits and leave, and that is looked at
before its end; wherever it is kept.

Whatever happens: nothing is handed out that the budget does not pay for, no arm is pulled beyond
its limit, none that left is handed out or chosen, what was spent is what was said, there is always
a present choice, and an answer stays."""

import math
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from machines import Machine, hold
from places import PLACES

from shortlist import Arm
from shortlist.engine import Experiment, State, Ticket, export_lines, import_lines
from shortlist.errors import ConflictingReward, InvalidInput
from shortlist.result import Result
from shortlist.stores.base import MemoryStore

LABELS, K, RETRIES = ("a", "b", "c", "d", "e"), 2, 1
LIMITS = dict(zip(LABELS, (4, math.inf, 9, 30, math.inf), strict=True))
PRICES = dict(zip(LABELS, (5.0, 1.0, 2.0, 1.5, 1.0), strict=True))
FREE = dict.fromkeys(LABELS, 1.0)
GOALS: list[tuple[dict[str, float], dict[str, Any]]] = [
    (FREE, {"budget": 60, "rewards": "binary"}),
    (FREE, {"budget": 60}),
    (FREE, {"epsilon": 0.4, "delta": 0.4, "rewards": "binary"}),
    (FREE, {"epsilon": 0.4, "delta": 0.4, "budget": 60, "rewards": (-1, 1)}),
    (PRICES, {"budget": 70.0, "rewards": "binary"}),
    (PRICES, {"budget": 70.0, "epsilon": 0.3, "delta": 0.2, "rewards": "binary"}),
]
OVER = (State.FINISHED, State.BUDGET)
costs = st.sampled_from([None, None, 0.0, 0.5, 3.0, 40.0])
one = st.integers(0, 10**6)  # which of those there are


class LiveRules(Machine):
    """The model: who left, which tickets are out, and what those that were told did cost."""

    @initialize(goal=st.sampled_from(GOALS), on_failure=st.sampled_from(["stop", "retire"]))
    def begin(self, goal: tuple[dict[str, float], dict[str, Any]], on_failure: str) -> None:
        self.prices, asked = goal
        self.budget = asked.get("budget", math.inf)
        most = {each: int(limit) if limit < math.inf else None for each, limit in LIMITS.items()}
        arms = [Arm(each, cost=self.prices[each], limit=most[each]) for each in LABELS]
        self.make(arms, K, retries=RETRIES, on_failure=on_failure, **asked)
        self.retires = on_failure == "retire"
        self.left: set[str] = set()
        self.out: dict[int, Ticket] = {}
        self.drawn: dict[str, set[int]] = {label: set() for label in LABELS}
        self.paid: dict[int, float] = {}
        self.failures: dict[int, int] = {}
        self.final: Result | None = None

    def pick(self, choice: int) -> Ticket:
        return self.out[sorted(self.out)[choice % len(self.out)]]

    def spent(self) -> float:
        """What pulls cost, also those told after their arm left; what nobody made costs nothing."""
        return math.fsum(self.paid.values())

    def under_way(self) -> float:
        staying = [str(each.arm) for each in self.out.values() if each.arm not in self.left]
        return math.fsum(self.prices[arm] for arm in staying)

    @rule(limit=st.sampled_from([1, 3, 40]))
    def ask(self, limit: int) -> None:
        handout = self.experiment.ask(limit)
        for ticket in handout:
            assert ticket.arm not in self.left
            self.out[ticket.id] = ticket
            self.drawn[str(ticket.arm)].add(ticket.draw)
        if handout:
            assert self.spent() + self.under_way() <= self.budget * (1 + 1e-9)
        if handout.state is not State.PENDING:
            assert handout.meanwhile is None
        elif handout.meanwhile is not None:
            best = str(handout.meanwhile)
            assert best not in self.left
            assert len(self.drawn[best]) < LIMITS[best]

    @precondition(lambda self: self.out)
    @rule(choice=one, good=st.booleans(), cost=costs, count=st.sampled_from([1, 40]))
    def tell(self, choice: int, good: bool, cost: float | None, count: int) -> None:
        for _ in range(min(count, len(self.out))):
            ticket = self.pick(choice)
            before = self.told()
            receipt = self.experiment.tell(ticket, float(good), cost)
            del self.out[ticket.id]
            left = ticket.arm in self.left and self.final is None
            assert ticket.arm not in self.left or receipt.unused == (ticket.id,)
            if left or ticket.id in self.told().keys() - before.keys():
                price = self.prices[str(ticket.arm)]
                self.paid[ticket.id] = price if cost is None else cost

    @precondition(lambda self: self.paid)
    @rule(choice=one, cost=st.sampled_from([7.0, -1.0, math.nan, math.inf]))
    def tell_another_cost(self, choice: int, cost: float) -> None:
        number = sorted(self.paid)[choice % len(self.paid)]
        error = ConflictingReward if cost == 7.0 else InvalidInput
        arms = self.log().told
        arm = LABELS[arms.arms[arms.tickets.tolist().index(number)]]
        if arm not in self.left:  # of those nothing is taken any more, and nothing refused
            with pytest.raises(error, match="cost"):
                self.experiment.tell(number, self.told()[number], cost)

    @precondition(lambda self: self.out)
    @rule(choice=one)
    def fail(self, choice: int) -> None:
        if self.experiment.status().state is State.STOPPED:
            return
        ticket = self.pick(choice)
        self.experiment.fail(ticket, "no answer")
        del self.out[ticket.id]
        if ticket.arm in self.left:
            return
        self.failures[ticket.id] = self.failures.get(ticket.id, 0) + 1
        enough = len(LABELS) - len(self.left) > K + 1
        if self.failures[ticket.id] > RETRIES and self.retires and enough:
            self.leave(str(ticket.arm))

    @rule(arm=st.sampled_from(LABELS))
    def retire(self, arm: str) -> None:
        stay = len(LABELS) - len(self.left | {arm})
        if self.final is not None or stay <= K:
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
        self.experiment = self.open()

    @invariant()
    def everybody_sees_the_same_within_limits_and_what_was_spent(self) -> None:
        status, seen = self.experiment.status(), self.reader.status()
        assert status.summary() == seen.summary()
        assert status.spent == pytest.approx(self.spent())
        assert status.told + status.unused + status.undrawn == len(self.told())
        assert status.told + status.unused == len(self.paid)
        if status.state in (State.READY, State.PENDING):
            assert status.held + status.wanted == status.arms.to_go.sum()
        places = dict(zip(LABELS, status.arms.places, strict=True))
        assert {each for each, at in places.items() if at == "retired"} == self.left
        for label, pulls in zip(LABELS, status.arms.pulls.tolist(), strict=True):
            assert max(pulls, len(self.drawn[label])) <= LIMITS[label]

    @invariant()
    def there_is_a_present_choice_of_those_that_stay_and_an_answer_stays(self) -> None:
        present = self.reader.result(partial=True)
        over = self.reader.status().state in OVER
        assert len(set(present.top)) == K
        assert not self.left & set(present.top)
        assert present.partial == (not over)
        assert present.spent == pytest.approx(self.spent())
        if present.regret_bound is not None:
            assert present.algorithm == "certified"
            assert 0 <= present.regret_bound < math.inf
        if over and self.final is None:
            self.final = present
        if self.final is not None:
            assert present == self.final == self.experiment.result()

    def end(self) -> None:
        """It can always be brought to its end; all agree on the answer, and so does a copy."""
        self.experiment.resume()
        self.experiment.release(tickets=list(self.out))
        while tickets := self.experiment.ask(100):
            assert not self.left & {ticket.arm for ticket in tickets}
            self.experiment.tell_many([(each, float(each.arm == "b"), 2.5) for each in tickets])
        result = self.experiment.result()
        assert result == self.reader.result()
        assert not result.partial
        with pytest.raises(InvalidInput, match="the answer is there"):
            self.experiment.retire("b")
        copy = MemoryStore()
        import_lines(export_lines(self.store), copy)
        assert Experiment.open(copy).result() == result


@pytest.mark.parametrize("kind", PLACES)
def test_money_limits_and_leaving_arms_keep_their_rules(kind: str) -> None:
    hold(LiveRules, kind, steps=20)
