"""Which cells to score next. Errors here cost cells, never the guarantee: docs/items.md.

A batch is one usual step, or several, one after the other, until it has `least` cells. Later steps
are planned as if the earlier ones were answered: pairs that will probably be settled by cells under
way are left alone, as long as others are not. Guesses enter plans only."""

import math
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certificates.items.bound import EXACT, largest_matching
from shortlist.certificates.items.race import ItemsRace


@dataclass(frozen=True, slots=True)
class Width:
    """How many cells are asked for at a time.

    `least` cells per batch, up to `window` cells under way where batches are planned ahead (0: the
    next batch waits for the last), at most `rounds` batches (None: any number), and `items` of an
    arm at a time, or all that it has left."""

    least: int = 1
    window: int = 0
    rounds: int | None = None
    items: int = 1

    def first_items(self, usual: int, size: int) -> int:
        """Items of every arm in the first batch: more if there are few rounds."""
        usual = min(usual, size)
        if self.rounds is None:
            return usual
        return max(usual, round(usual * math.pow(size / usual, 1 / self.rounds)))


ONE_BY_ONE = Width()


def planned(
    race: ItemsRace, asked: IntArray, width: Width, room: int, rounds: int | None = None
) -> IntArray | None:
    """Items of every arm after the next batch; None if no doubt is left.

    It has at least as many cells as `width` says, and where it has a window no more than there is
    `room` for, if that is more. With `rounds` that remain, cells asked for grow by the same factor
    in each, and the last has all that matter."""
    if rounds == 1:
        following = np.where(race.evidence.out, asked, race.cells.size)
    else:
        least = max(width.least, _growing(race, asked, rounds))
        most = max(room, least) if width.window else math.inf
        following = Steps(race, asked, least, width.items).taken(most)
    return following if (following > asked).any() else None


def _growing(race: ItemsRace, asked: IntArray, rounds: int | None) -> int:
    """Cells of a batch after which the same growth reaches all cells that matter in time."""
    if rounds is None:
        return 1
    matter = np.where(race.evidence.out, asked, race.cells.size)
    now, then = int(asked.sum()), int(matter.sum())
    return max(1, math.ceil(now * math.pow(then / now, 1 / rounds) - now))


class Steps:
    """Usual steps, one after the other, from the items `asked` of every arm on."""

    def __init__(self, race: ItemsRace, asked: IntArray, least: int, items: int = 1) -> None:
        self.race = race
        self.asked = asked
        self.start = asked
        self.least = least
        self.items = items
        self.foresees = least > 1 or bool((asked > race.cells.reached).any())
        self.pairs = self._doubts()

    def taken(self, most: float) -> IntArray:
        """The items of every arm after as many steps as a batch has."""
        goal: float | None = None
        while goal is None or self._cells(self.asked) < goal:
            following = self._following()
            if (following == self.asked).all():
                if not self.foresees:
                    break
                self.foresees = False
                self.pairs = self._doubts()
                continue
            if goal is None:
                goal = self._goal(self._cells(following), most)
            self.asked = self._cut(following, goal)
            if self.foresees and self._cells(self.asked) < goal:
                self.pairs = self._doubts(before=self.pairs)
        return self.asked

    def _following(self) -> IntArray:
        """The items of every arm after one more usual step."""
        asked, size = self.asked, self.race.cells.size
        following = self.race.evidence.targets(self.pairs, asked, size)
        more = np.minimum(np.maximum(following, asked + self.items), size)
        return np.where(following > asked, more, following)

    def _goal(self, usual: int, most: float) -> float:
        """Cells of the batch: a larger usual step is rounded down to a multiple."""
        return min(max(usual // self.least * self.least, self.least), most)

    def _cells(self, targets: IntArray) -> int:
        """Cells that are missing for arms to get there."""
        return int(self.race.cells.missing(targets, self.start).sum())

    def _cut(self, following: IntArray, goal: float) -> IntArray:
        """No more than the goal: the same share of every arm's step."""
        cells = self.race.cells
        more = cells.missing(following, self.asked)
        allowed = goal - self._cells(self.asked)
        if more.sum() <= allowed:
            return following
        if self.items > 1:  # whole steps of those that are farthest behind, the first one at least
            order = np.lexsort((self.race.ties, self.asked, more == 0))
            kept = order[np.cumsum(more[order]) <= max(allowed, more[order[0]])]
            cut = self.asked.copy()
            cut[kept] = following[kept]
            return cut
        order = np.argsort(self.race.ties)
        upto = np.cumsum(more[order]) * int(allowed) // more.sum()
        shares = np.empty_like(more)
        shares[order] = np.diff(upto, prepend=0)
        cut = cells.within(following, self.asked, shares)
        if (cut == self.asked).all():  # a whole group is more than its share
            first = order[more[order] > 0][:1]
            cut[first] = np.minimum(following, self.asked + 1)[first]
        return cut

    def _doubts(self, before: BoolArray | None = None) -> BoolArray:
        """The pairs to be settled: those that will be in doubt, or those that are if none will."""
        race = self.race
        if self.foresees:
            ahead = race.evidence.foreseen(race.cells, race.top, race.outside, self.asked)
            ahead = race.feasible(ahead, race.outside)
            if largest_matching(ahead) > race.allowed + EXACT:
                return self._pairs(ahead)
            self.foresees = False
        return self._pairs(race.bounds) if before is None else before

    def _pairs(self, bounds: FloatArray) -> BoolArray:
        race = self.race
        pairs = np.zeros((race.arms.size,) * 2, dtype=np.bool_)
        pairs[np.ix_(race.top, race.outside)] = open_pairs(bounds, race.allowed)
        return pairs | pairs.T


def open_pairs(bounds: FloatArray, allowed: float) -> BoolArray:
    """The pairs to be settled: those whose bounds exceed a level.

    It is the largest level at which, if all bounds were cut to it, no matching would exceed
    `allowed`, found by bisection."""
    low = allowed / min(bounds.shape)  # at this level no matching exceeds it
    high = allowed
    for _ in range(12):
        level = (low + high) / 2
        if largest_matching(np.minimum(bounds, level)) <= allowed:
            low = level
        else:
            high = level
    result: BoolArray = bounds > low + EXACT
    return result
