"""What calls cost: those that are under way as declared, those that are done as they say.

A search keeps to its budget by declared costs. What keeps to it where calls turn out dearer is
this: no call is begun that would exceed the budget, given what was spent and what is under way."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from shortlist.arms import OwnLabel
from shortlist.arrays import FloatArray, IntArray
from shortlist.budget import ROUNDED, spending
from shortlist.engine.calls import Call
from shortlist.problem import Problem


class Account:
    """The money of one run."""

    def __init__(self, problem: Problem, labels: Sequence[OwnLabel]) -> None:
        self._budget = problem.goal.budget
        self._prices = problem.prices
        self._arms = {label: arm for arm, label in enumerate(labels)}
        self._declared: IntArray = np.zeros(problem.n_arms, dtype=np.int64)  # pulls per arm
        self._said: defaultdict[int, list[float]] = defaultdict(list)  # by arm, of other calls
        self.spent = 0.0
        self._reserved = 0.0  # for calls under way

    def reserve(self, call: Call) -> bool:
        """Whether a call may begin; then what it is to cost is set aside."""
        price = self._price(call)
        if self._budget is not None:
            after = self.spent + self._reserved + price
            if after > self._budget * (1 + ROUNDED):
                return False
        self._reserved += price
        return True

    def settle(self, call: Call, cost: float | None) -> None:
        """Pay for a call that is done: what it did cost, or what was declared."""
        price = self._price(call)
        paid = price if cost is None else cost
        self._reserved -= price
        self.spent += paid
        arm = self._arms[call.label]
        if cost is None:
            self._declared[arm] += call.times
        else:
            self._said[arm].append(cost)

    def spending(self) -> FloatArray:
        """What the calls of every arm cost: (n,)."""
        return spending(self._declared, self._prices, self._said)

    def _price(self, call: Call) -> float:
        return call.times * float(self._prices[self._arms[call.label]])
