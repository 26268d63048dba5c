"""The search of an experiment, run again from its beginning with the rewards that were told."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.driver import Outcome, Run, counted
from shortlist.engine.checks import Checks
from shortlist.engine.eta import MOST_REPLIES
from shortlist.engine.numbering import Numbering
from shortlist.engine.rewards import Received
from shortlist.errors import CannotReplay
from shortlist.search import Progress, Pulls, Rewards, advance
from shortlist.settings import Settings

NOBODY = np.empty(0, dtype=np.int64)
NOTHING = Pulls(NOBODY, NOBODY)


class Replay:
    """Where the search stands: at a request whose calls have numbers, or at its outcome.

    It is a function of the settings, of the rewards by ticket, whatever the order in which they
    arrived, and of the batch in which each arm left: the rewards of a batch are added up in the
    order of its tickets."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._run = self.begin()
        self._drawn = np.zeros(settings.problem.n_arms, dtype=np.int64)
        self._on_items = settings.cells is not None
        self._prices = settings.problem.prices
        self.outcome: Outcome | None = None
        self.digests: list[str] = []  # of every request, and of the outcome
        self.spans: list[tuple[int, int]] = []  # first ticket and number of tickets, of the same
        self.course: list[
            tuple[int, Progress]
        ] = []  # pulls before every request, and how far it is
        self.replies: list[Rewards] = []  # to the requests before
        self.checks = Checks(settings.problem, settings.labels)
        self.numbering = Numbering(NOTHING, 0, self._drawn)
        self._next(None)

    def begin(self) -> Run:
        """The search, from its beginning."""
        settings, rng = self._settings, np.random.default_rng(self._settings.seed)
        return counted(settings.searched_by(), settings.problem, rng, **settings.options)

    @property
    def end(self) -> int:
        """The first ticket that the search has not asked for."""
        return self.numbering.end

    @property
    def asked(self) -> IntArray:
        """How many pulls of every arm the search has asked for, the present request included."""
        asked = self._drawn.copy()
        np.add.at(asked, self.numbering.pulls.arms, self.numbering.pulls.times)
        return asked

    def reply(
        self,
        rewards: FloatArray,
        arms: IntArray,
        costs: Mapping[int, float],
        retired: IntArray | None = None,
    ) -> None:
        """Answer the request with the rewards of its tickets, in their order.

        `arms` are those that the log says they are of, `costs` what those tickets did cost that
        did not cost what was declared, `retired` all arms that have left by now."""
        numbering = self.numbering
        requested = numbering.arms(numbering.tickets)
        if np.isnan(rewards).any() or not np.array_equal(requested, arms):
            raise CannotReplay(
                f"rewards of tickets {numbering.first} to {numbering.end - 1} are not those asked"
                " for"
            )
        received = Received(numbering, self._drawn.size)
        received.take_all(rewards)
        for ticket, cost in costs.items():
            received.pay(ticket, cost)
        self._drawn = self.asked
        self.checks.take(*received.by_draw(), without=() if retired is None else retired.tolist())
        reply = received.rewards(self._prices, single=self._on_items)
        reply = replace(reply, retired=retired)
        if len(self.replies) < MOST_REPLIES:
            self.replies.append(reply)
        self._next(reply)

    def cut(self, outcome: Outcome) -> None:
        """End within a request, with the outcome of what was told."""
        self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.checks.finish(outcome.answer.top)

    def _next(self, rewards: Rewards | None) -> None:
        turn = advance(self._run, rewards)
        if isinstance(turn, Pulls):
            self.course.append((self.end, turn.progress))
            self.numbering = Numbering(turn, self.end, self._drawn)
            self._record(turn.arms, turn.times)
        else:
            self._end(turn)
            self.numbering = Numbering(NOTHING, self.end, self._drawn)
            self._record(np.sort(turn.answer.top))

    def _record(self, *arrays: IntArray) -> None:
        content = b"".join(array.astype("<i8").tobytes() for array in arrays)
        self.digests.append(blake2b(content, digest_size=8).hexdigest())
        self.spans.append((self.numbering.first, self.numbering.total))
