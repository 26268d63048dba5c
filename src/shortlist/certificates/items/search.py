"""The race on items: score arms on a shared random order of items until the choice is proved.

docs/items.md has the theorem and its proof. It holds for any sampling, so which cells to score next
is a matter of cost: in the open pairs, the arms that have fewer items."""

from collections import deque
from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import Retired
from shortlist.certificates.items.bound import EXACT, largest_matching
from shortlist.certificates.items.planning import ONE_BY_ONE, Width, planned
from shortlist.certificates.items.race import ItemsRace
from shortlist.problem import Problem
from shortlist.search import NO_PROGRESS, Answer, Progress, Pulls, Rewards, Search

NO_ARMS: IntArray = np.empty(0, dtype=np.int64)
NO_SCORES: FloatArray = np.empty(0)


def items_search(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired | None = None,
    width: Width = ONE_BY_ONE,
) -> Search:
    """Score arms on shared items until no matching of bounds exceeds K epsilon.

    R_T <= its bound with probability >= 1 - delta over the order of the items, whenever it ends;
    R_T is about means over these items. When all cells that matter are seen it is exact. When an
    arm retires, all bets are made again among the remaining arms."""
    race = ItemsRace(problem, rng, retired, wide=width.least > 1 or width.window > 0)
    window = Window(race, width)
    yield from window.first()
    while True:
        race.choose()
        bound = largest_matching(race.bounds)
        if bound <= race.allowed + EXACT or (race.finished and not race.cells.sampled):
            return _answer(race, bound)
        if not (yield from window.step(race.regret(bound))):
            return _answer(race, min(bound, largest_matching(race.refined())))


class UnderWay(NamedTuple):
    """A batch that was asked for and is not taken in, about all arms, retired ones included."""

    pulls: Pulls
    targets: IntArray  # items of every arm once it is taken in


class Window:
    """The batches under way, oldest first.

    Batches are taken in by their number. So each is a function of the seed, of `width` and of the
    scores of batches before, whatever the order in which scores arrive."""

    def __init__(self, race: ItemsRace, width: Width) -> None:
        self.race = race
        self.width = width
        self.batches = 0  # so far
        self._asked: IntArray = np.zeros(race.asked.n_arms, dtype=np.int64)  # items of every arm
        self._under_way: deque[UnderWay] = deque()

    def first(self) -> Generator[Pulls, Rewards, None]:
        """Score all arms on the first items, before any other: stakes rest on their variance."""
        race, width = self.race, self.width
        items = width.first_items(race.evidence.first, race.cells.size)
        self._ask(np.full(race.arms.size, items), Progress(round=1))
        yield from self._answered([*self._under_way])

    def step(self, bound: float) -> Generator[Pulls, Rewards, bool]:
        """Ask for batches as long as there is room, and take in the oldest one.

        `bound` is that of the present choice, for display. False if nothing is under way: the
        budget pays for no further cell."""
        top = tuple(self.race.chosen.tolist())
        new: list[UnderWay] = []
        while (targets := self._planned()) is not None:
            undecided = int((targets > self.race.cells.reached).sum())
            progress = Progress(self.batches, undecided=undecided, bound=bound, top=top)
            if not self._ask(targets, progress):
                break
            new.append(self._under_way[-1])
        if not self._under_way:
            return False
        idle = Progress(self.batches, undecided=self._waiting, bound=bound, top=top)
        yield from self._answered(new, idle)
        return True

    @property
    def _waiting(self) -> int:
        """Arms that a score is under way of."""
        return int((self._asked[self.race.arms] > self.race.cells.reached).sum())

    def _planned(self) -> IntArray | None:
        """Items of every arm after the next batch; None if there is no room, or no doubt left."""
        width = self.width
        room = width.window - sum(each.pulls.total for each in self._under_way)
        if (self._under_way and room < width.least) or self.batches == width.rounds:
            return None
        left = None if width.rounds is None else width.rounds - self.batches
        asked = self._asked[self.race.arms]
        return planned(self.race, asked, width, room, left)

    def _ask(self, targets: IntArray, progress: Progress) -> bool:
        """Ask for scores up to these places, within the budget; False if it pays for none."""
        race = self.race
        asked = self._asked[race.arms]
        targets = _affordable(race, targets, asked)
        if not (targets > asked).any():
            return False
        times = race.cells.missing(targets, asked)
        arms = np.flatnonzero(times)
        pulls = Pulls(race.arms[arms], times[arms], progress)
        race.budget.commit(pulls)
        self._asked[race.arms] = targets
        self._under_way.append(UnderWay(pulls, self._asked.copy()))
        self.batches += 1
        return True

    def _answered(
        self, new: list[UnderWay], idle: Progress = NO_PROGRESS
    ) -> Generator[Pulls, Rewards, None]:
        """Hand out new batches, and take in the oldest of all."""
        pulls = [each.pulls for each in new if each.pulls.total]
        oldest = self._under_way.popleft()
        if not oldest.pulls.total:  # all its cells were known before
            for each in pulls:
                yield replace(each, more=True)
            self._take(oldest, NO_SCORES)
            return
        for each in pulls[:-1]:
            yield replace(each, more=True)
        reply = yield pulls[-1] if pulls else Pulls(NO_ARMS, NO_ARMS, idle)
        self.race.budget.settle(oldest.pulls, reply)
        assert reply.each is not None
        self._take(oldest, reply.each)

    def _take(self, batch: UnderWay, scores: FloatArray) -> None:
        """Take in the scores of a batch, but for arms that retired before."""
        race = self.race
        stay = np.isin(batch.pulls.arms, race.arms)
        race.take(batch.targets[race.arms], scores[np.repeat(stay, batch.pulls.times)])


def _affordable(race: ItemsRace, targets: IntArray, asked: IntArray) -> IntArray:
    """The same targets, or lower ones within the budget."""
    budget = race.budget
    if budget.total is None:
        return targets
    if not asked.any():  # all arms alike
        every, first = np.arange(targets.size), int(targets[0])
        while first > 1 and not budget.affords(every, race.cells.missing(every * 0 + first)).all():
            first -= 1
        return every * 0 + first
    order = np.lexsort((race.ties, asked))
    times = race.cells.missing(targets, asked)[order]
    beyond = order[~budget.affords(race.arms[order], times)]
    allowed = targets.copy()
    allowed[beyond] = asked[beyond]
    return allowed


def _answer(race: ItemsRace, bound: float) -> Answer:
    asked = race.asked
    reached = np.zeros(asked.n_arms, dtype=np.int64)
    reached[race.arms] = race.cells.reached
    evidence = {
        "certificate": "items",
        "exact": race.finished and not race.cells.sampled,
        "items": reached.tolist(),
        "out": int(race.evidence.out.sum()),
    }
    return Answer(race.chosen, race.regret(bound), 1 - asked.delta, evidence, race.tiers())
