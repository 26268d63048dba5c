"""Simulated time: calls that take a while, some of them under way at a time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shortlist.driver import Outcome, Run
from shortlist.search import Dialogue, Pulls, Rewards


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How calls are made: how many are under way at a time, and the seconds that each takes."""

    calls: int
    seconds: float


class Pool:
    """Workers that make calls in order; each takes equally long."""

    def __init__(self, width: Concurrency) -> None:
        self.width = width
        self.free = np.zeros(width.calls)  # when each worker is free, in increasing order
        self.clock = 0.0

    def work(self, calls: int) -> float:
        """When the last of these calls ends, which are handed out now.

        The worker that is free first is so again first, as all calls take equally long."""
        every, more = divmod(calls, self.width.calls)
        self.free = np.maximum(self.free, self.clock) + every * self.width.seconds
        self.free[:more] += self.width.seconds
        last = self.free[more - 1] if more else self.free[-1]
        self.free = np.roll(self.free, -more)
        return float(last) if calls else self.clock


def timed(run: Run, pull: Callable[[Pulls], Rewards], pool: Pool) -> Outcome:
    """Answer every batch by `pull` when all its calls have ended; `pool.clock` is then the time."""
    dialogue = Dialogue(run)
    ends = deque(pool.work(each.total) for each in dialogue.new)
    while dialogue.result is None:
        pool.clock = max(pool.clock, ends.popleft())
        dialogue.reply(pull(dialogue.unanswered[0]))
        ends.extend(pool.work(each.total) for each in dialogue.new)
    return dialogue.result
