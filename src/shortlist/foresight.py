"""How many pulls a search will take in all, simulated in spare moments while it is under way."""

import time
from collections import deque
from collections.abc import Callable, Generator
from typing import NamedTuple

import numpy as np

from shortlist.ahead import Rest, Underway
from shortlist.errors import ShortlistError
from shortlist.present import MOST_RANKED

RUNS = 20  # simulations that are looked at, the last ones
ENOUGH = 5  # of them, before anything is said
SHARE = 0.03  # of the time that goes by may go into them,
LONGEST = 0.05  # seconds at once,
PAUSE = 0.1  # seconds between; what is over within
PATIENCE = 1.0  # seconds is not simulated at all
HIGH = 0.9  # quantile

Look = Callable[[], Underway | None]  # the search as it is now; None where that is not known


class Expected(NamedTuple):
    """Pulls still to be made."""

    median: int
    high: int  # in 90 % of the simulations at most


class Foresight:
    """Simulates the rest of a search again and again, never for more than a share of the time.

    A simulation may begin in one moment and end in another; it says how many pulls the search takes
    in all, and what it says is dropped once more were made."""

    def __init__(self, look: Look, *, possible: bool = True, seed: int = 0) -> None:
        self._look = look
        self._rng = np.random.default_rng(seed)
        self._started = time.monotonic()
        self._next = self._started + PATIENCE
        self._taken = 0.0  # seconds
        self._run: Generator[None, None, Rest] | None = None
        self._before = 0  # pulls, when this run began
        self._retired: frozenset[int] = frozenset()  # arms that had left by then
        self._totals: deque[int] = deque(maxlen=RUNS)
        self._possible = possible

    def work(self) -> None:
        """Simulate, if there is time to spare; it returns at once if there is not."""
        now = time.monotonic()
        if now < self._next or not self._possible:
            return
        spare = SHARE * (now - self._started) - self._taken
        begun = time.thread_time()  # of this thread: others may keep the processor busy
        while self._possible and time.thread_time() < begun + min(spare, LONGEST):
            self._step()
        self._taken += time.thread_time() - begun
        self._next = time.monotonic() + PAUSE

    def expected(self, pulls: int) -> Expected | None:
        """What is still expected after so many pulls; None if not enough is known yet."""
        while self._totals and min(self._totals) <= pulls:
            self._totals.remove(min(self._totals))
        if len(self._totals) < ENOUGH:
            return None
        low, high = np.quantile(list(self._totals), [0.5, HIGH], method="higher")
        return Expected(int(low) - pulls, int(high) - pulls)

    def _step(self) -> None:
        """Take a simulation one request further, or begin one."""
        try:
            if self._run is None:
                self._begin()
            else:
                next(self._run)
        except StopIteration as stop:
            self._totals.append(self._before + stop.value.pulls)
            self._run = None
        except ShortlistError:  # what cannot be simulated is not foreseen
            self._possible = False

    def _begin(self) -> None:
        underway = self._look()
        self._possible = (
            underway is not None
            and underway.can_be_simulated
            and underway.problem.n_arms <= MOST_RANKED
        )
        if underway is not None and self._possible:
            if underway.retired != self._retired:  # what was simulated before pulls them, too
                self._totals.clear()
                self._retired = underway.retired
            self._before = int((underway.tally.pulls + underway.tally.waiting).sum())
            self._run = underway.rest(self._rng.spawn(1)[0])
