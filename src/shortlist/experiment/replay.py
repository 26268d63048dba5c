"""The search of an experiment, run again from its beginning with the rewards that were told."""

from hashlib import blake2b

import numpy as np

from shortlist.algorithms import find
from shortlist.arrays import FloatArray, IntArray
from shortlist.driver import Outcome, counted
from shortlist.errors import CannotReplay
from shortlist.evaluation.numbering import Deal
from shortlist.evaluation.rewards import sums_by_entry
from shortlist.experiment.settings import Settings
from shortlist.search import Pulls, Rewards, advance


class Course:
    """Where the search stands: at a request that is dealt out as tickets, or at its outcome.

    It is a function of the settings and of the rewards by ticket, whatever the order in which they
    arrived: those of a request are added up in the order of its tickets."""

    def __init__(self, settings: Settings) -> None:
        algorithm, rng = find(settings.algorithm), np.random.default_rng(settings.seed)
        self._run = counted(algorithm, settings.problem, rng, **settings.options)
        self._drawn = np.zeros(settings.problem.n_arms, dtype=np.int64)
        self.outcome: Outcome | None = None
        self.digests: list[str] = []  # of every request, and of the outcome
        self.starts: list[tuple[int, int]] = []  # first ticket and number of tickets, of the same
        self.deal = Deal(NOTHING, 0, self._drawn)
        self._next(None)

    @property
    def end(self) -> int:
        """The first ticket that the search has not asked for."""
        return self.deal.end

    @property
    def asked(self) -> IntArray:
        """How many pulls of every arm the search has asked for, those of the present request
        included."""
        asked = self._drawn.copy()
        np.add.at(asked, self.deal.pulls.arms, self.deal.pulls.times)
        return asked

    def reply(self, rewards: FloatArray, arms: IntArray) -> None:
        """Answer the request with the rewards of its tickets, in their order, and the arms they are
        said to be of."""
        tickets = np.arange(self.deal.first, self.deal.end)
        entries = self.deal.entries(tickets)
        requested = self.deal.pulls.arms
        if np.isnan(rewards).any() or not np.array_equal(requested[entries], arms):
            raise CannotReplay(
                f"rewards of tickets {self.deal.first} to {self.deal.end - 1} are not those"
                " asked for"
            )
        sums = sums_by_entry(
            rewards, np.ones(rewards.size, dtype=np.int64), rewards, entries, requested.size
        )
        squares = np.asarray(np.bincount(entries, rewards**2, requested.size), dtype=np.float64)
        self._drawn = self.asked
        self._next(Rewards(sums, squares))

    def _next(self, rewards: Rewards | None) -> None:
        turn = advance(self._run, rewards)
        if isinstance(turn, Pulls):
            self.deal = Deal(turn, self.end, self._drawn)
            self._record(turn.arms, turn.times)
        else:
            self.outcome = turn
            self.deal = Deal(NOTHING, self.end, self._drawn)
            self._record(np.sort(turn.answer.top))

    def _record(self, *arrays: IntArray) -> None:
        content = b"".join(array.astype("<i8").tobytes() for array in arrays)
        self.digests.append(blake2b(content, digest_size=8).hexdigest())
        self.starts.append((self.deal.first, self.deal.total))


NOTHING = Pulls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
