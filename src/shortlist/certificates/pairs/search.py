"""The race of the certificate "pairs": which arms are chosen, which are pulled next, when it ends.

All arms go through common stages and bet on their rewards with common clocks. The wealth against a
swap of arms then depends on the means only through the gap of that swap. Ville's inequality bounds
the gap of every swap at every stage at once, so a race may pull, stop and answer at any time.
docs/pairs.md has the theorem and its proof."""

import math
from collections import deque
from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.frame import Retired, answered
from shortlist.certificates.pairs.bound import StageRewards
from shortlist.certificates.pairs.planning import (
    BatchSizes,
    LeaderSampling,
    RaceState,
    centres,
    next_stage,
    next_times,
    parts_of,
    stage_with,
)
from shortlist.certificates.pairs.swap_bounds import SwapBounds
from shortlist.certificates.under_constraints import ExchangeGraph
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search, total_before

NO_ARMS: IntArray = np.empty(0, dtype=np.int64)
CATCH_UP = 0.34  # share of its lag that an arm makes up at once


class PairsRace(SwapBounds):
    """The chosen arms and those to pull next; no guarantee rests on these decisions.

    With `pilot_apart` no bound rests on the rewards of the first batch, so that they may decide
    whether there is a race at all."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator,
        pace: BatchSizes,
        retired: Retired | None = None,
        *,
        pilot_apart: bool = False,
    ) -> None:
        pilot = 0 if pace.together else max(1, pace.batch // problem.n_arms)
        super().__init__(problem, rng, pilot, retired, apart=pilot_apart)
        self.rng, self.pace = rng, pace
        self.open: BoolArray = np.ones(problem.n_arms, dtype=np.bool_)
        self.budget = Budget(problem)
        self.most_pulls = problem.most_pulls if problem.limits is None else self.fallback.caps
        # has too few pulls left for a stage
        self.exhausted: BoolArray = np.zeros(problem.n_arms, dtype=np.bool_)
        self.requests = 0  # large batches
        self.stand()

    def stand(self) -> None:
        """Choose the arms that look best now, and find the open pairs."""
        n, k = self.problem.n_arms, self.problem.k
        seen = self.open if self.open.any() else np.ones(n, dtype=np.bool_)
        self.mean = float((self.sums[seen].sum() + 0.5) / (self.pulls[seen].sum() + 1))
        smoothed = (self.sums + self.mean) / (self.pulls + 1)
        smoothed[self.retired.arms] = -np.inf  # more than k arms stay
        order = np.lexsort((self.rng.random(n), -smoothed))
        if self.graph is not None:
            self._stand_among(self.graph, order)
            return
        self.edge: IntArray = order[[k, k - 1]]  # best outside, worst inside
        self.rivals: IntArray | None = None
        self.choose(order[:k] if self.leader is None else np.array([self.leader]))

    def _stand_among(self, graph: ExchangeGraph, order: IntArray) -> None:
        """The same where not every set is feasible: arms from best to worst are `order`."""
        chosen = graph.first(order)
        place = np.empty(order.size)  # of an arm in the order
        place[order] = np.arange(order.size)
        outside = ~chosen & ~self.retired.arms
        apart = place[:, None] - place  # [j, i]: how far j is behind i
        apart[~(graph.swaps(chosen) & outside[:, None])] = np.inf
        self.edge = np.array(np.unravel_index(apart.argmin(), apart.shape))
        rivals = np.where(chosen, apart.argmin(axis=0), apart.argmin(axis=1))
        least = np.where(chosen, apart.min(axis=0), apart.min(axis=1))
        self.rivals = np.where(np.isfinite(least), rivals, np.where(chosen, *self.edge))
        self.choose(np.flatnonzero(chosen))

    def choose(self, top: IntArray) -> None:
        """Choose `top`, bound its pairs, and find the open ones."""
        self.top: BoolArray = np.zeros(self.problem.n_arms, dtype=np.bool_)
        self.top[top] = True
        self.tighten()
        pairs = self.pairs_above(self.closed_at)
        self.doubtful = in_pair(pairs)
        self.open_pairs = pairs & self._movable() if self.exhausted.any() else pairs
        self.open = in_pair(self.open_pairs) & ~self.exhausted

    def _movable(self) -> BoolArray:
        """Pairs that more pulls can tell apart: (arm, arm).

        A pair with an arm at its limit is one only if the other arm lags behind."""
        at, stuck = self.stages.at, self.exhausted
        waits = stuck[:, None] & (at[:, None] <= at)  # [j, b]: j cannot follow b, or continue
        return ~(waits | waits.T)

    def exhaust(self, arms: IntArray) -> None:
        """Leave arms where they are: their limits allow for no further stage."""
        self.exhausted[arms] = True
        self.stand()

    def left(self, arms: IntArray, times: IntArray) -> IntArray:
        """Pulls that the arm of every entry of a batch has left before that entry."""
        return (self.most_pulls - self.pulls)[arms] - total_before(arms, times)

    def dry(self, times: IntArray) -> BoolArray:
        """Entries of arms at their limits: clocks would advance without any gain."""
        limited = self.problem.limits is not None
        return np.asarray((times == 0) & limited, dtype=np.bool_)

    def movers(self) -> tuple[IntArray, IntArray]:
        """Stages and arms to be pulled next: of every open pair the arm that lags, or both."""
        if self._samples_leader():
            return self._leader_batch()
        at = self.stages.at
        arms = self._late()
        last = at[self.open].max()
        if self.pace.together:  # all open arms end in a new stage
            arms, last = np.flatnonzero(self.open), self._plan_ahead()
        share = 1.0 if self.pace.together else CATCH_UP
        steps = np.maximum(1, share * (last - at[arms])).astype(np.int64)
        before = np.cumsum(steps) - steps
        stages = np.repeat(at[arms] - before, steps) + np.arange(1, steps.sum() + 1)
        order = np.argsort(stages, kind="stable")
        return stages[order], np.repeat(arms, steps)[order]

    def _samples_leader(self) -> bool:
        """Whether likelihood ratios are likely to end the race: near 0 or 1, before bets do.

        Where the nominee's sample is complete, its rivals catch up."""
        if self.likelihood is None or not self.pulls.any():
            return False
        nominee, _ = self.alone()
        complete = self.pulls[nominee] == self.fallback.caps[nominee]
        return self.fallback.near_end(self.mean) and not complete

    def _leader_batch(self) -> tuple[IntArray, IntArray]:
        """Stages of the nominee ahead of its rivals, and the next stage of the closest rivals."""
        at, last = self.stages.at, self.stages.last
        nominee, rivals = self.alone()
        rivals = rivals[self.open[rivals]]
        steps = max(1, int(CATCH_UP * (last - at[nominee])))
        ahead = at[nominee] + np.arange(1, steps + 1)
        # a stage that is not planned yet will be like the last
        own = self.stages.times(np.minimum(ahead, last), np.full(steps, nominee)).sum()
        times = self.stages.times(np.minimum(at[rivals] + 1, last), rivals)
        means = (self.sums + self.mean) / (self.pulls + 1)
        best = self.problem.k == 1
        sampling = LeaderSampling.of(self.pulls, means, nominee, rivals, self.unit, best=best)
        moved = rivals[sampling.rivals_to_pull(int(own), times, self.rng)]
        stages = np.concatenate([ahead, at[moved] + 1])
        order = np.argsort(stages, kind="stable")
        return stages[order], np.concatenate([np.full(steps, nominee), moved])[order]

    def _plan_ahead(self) -> int:
        """Plan a large batch as stages; return the last of them, or one that can never be."""
        if self.stages.at[self.open].max() < self.stages.last:  # planned, but not affordable
            return self.stages.last
        left = self.left_to_plan()
        if left[self.open].max() <= 0:
            return self.stages.last + 1
        state = self.state(left)
        self.requests += 1
        for times in parts_of(next_times(state, self.pace, self.requests), state):
            self.stages.plan(times)
        return self.stages.last

    def _late(self) -> IntArray:
        """Arms that lag behind the other one in an open pair; if there are none, all open arms."""
        at = self.stages.at
        every = np.flatnonzero(self.open)
        if at[every].min() == at[every].max():
            return every
        ahead = np.where(self.open_pairs, at, -1).max(axis=1) > at  # of j, some b
        ahead |= np.where(self.open_pairs, at[:, None], -1).max(axis=0) > at  # of b, some j
        return np.flatnonzero(ahead) if ahead.any() else every

    def ready(self, stages: IntArray) -> bool:
        """Fix a new stage if `stages` need one; False if all samples are planned in full."""
        if stages[-1] <= self.stages.last:
            return True
        left = self.left_to_plan()
        if left[self.open].max() <= 0:
            return False
        stage = next_stage(self.state(left), self.pace, self.stages.last + 1)
        self.stages.add(stage)
        return True

    def left_to_plan(self) -> IntArray:
        """Pulls that are not planned until samples are complete: (arm,)."""
        return self.fallback.caps - self.stages.planned

    def _level(self) -> float:
        """Logarithm of the wealth needed against one pair, or of the odds if a lead decides."""
        if self.fallback.lead is not None:
            return -math.log(self.problem.delta)
        return float(self.levels[0])

    def state(self, left: IntArray) -> RaceState:
        """All that plans rest on."""
        return RaceState(
            pulls=self.pulls,
            sums=self.sums,
            squares=self.squares,
            rewards=self.problem.rewards,
            top=self.top,
            open=self.open,
            swapped=self.swapped,
            edge=self.edge,
            rivals=self.rivals,
            mean=self.mean,
            unit=self.unit,
            multiples=self.mixture.multiples,
            level=self._level(),
            sample=self.fallback.size,
            planned=self.stages.planned,
            left=left,
            costs=self.budget.costs,
            limited=self.problem.limits is not None,
            worth=self.fallback.worth(self.sums),
        )

    def book(self, stages: IntArray, arms: IntArray, given: Rewards) -> bool:
        """Take in a reply, stage by stage; True if a part of it was enough to end the race."""
        first = not self.pulls.any()
        for q in np.unique(stages):
            if q > len(self.stages.fixed) and self._fix(q, first=first):
                return True
            now = stages == q
            here = arms[now]
            stage = self.stages.fixed[q - 1]
            draws = StageRewards(stage.times[here], given.sums[now], given.squares[now])
            around = centres(self.pulls[here], self.sums[here], stage.mean, stage.weight)
            self.stages.book(q, here, draws, around, self.problem.rewards)
            self.count(here, draws)
        self.look(first=first)
        return False

    def _fix(self, q: int, *, first: bool) -> bool:
        """Fix the bets of stage q from all that is booked; True if that ends the race."""
        if self.pulls.any():
            self.look(first=first)
            self.stand()
            if self.bound() <= self.allowed or not self.open.any():
                return True
        times = self.stages.times(np.full(self.pulls.size, q), np.arange(self.pulls.size))
        self.stages.fix(stage_with(times, self.state(self.left_to_plan())))
        return False

    def answer(self, bound: float, *, by_fallback: bool = False) -> Answer:
        """The present choice with what is proved about it."""
        evidence = {
            "certificate": "pairs",
            "stages": self.stages.last,
            "fallback design": by_fallback,
            "pulls per arm at most": int(self.fallback.caps.max()),
        }
        before = self.gaps.T < 0  # [b, j]
        return answered(self.problem, np.flatnonzero(self.top), bound, evidence, before)

    def progress(self, round_: int, bound: float) -> Progress:
        """For display."""
        known = bound / self.problem.k if math.isfinite(bound) else None
        undecided = int(self.doubtful.sum())
        accepted = int((self.top & ~self.doubtful).sum())
        rejected = self.problem.n_arms - undecided - accepted
        top = tuple(np.flatnonzero(self.top).tolist())
        return Progress(round_, accepted, rejected, undecided, known, top)


def in_pair(pairs: BoolArray) -> BoolArray:
    """Which arms are in one of these pairs, on either side."""
    return np.asarray(pairs.any(axis=0) | pairs.any(axis=1), dtype=np.bool_)


def pairs_search(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired | None = None,
    *,
    batch: int = 4,
    growth: float = 0.02,
    least: int | None = None,
    rounds: int | None = None,
    window: int = 0,
) -> Search:
    """Race all swaps of arms against each other until none can cost more than K epsilon.

    R_T <= its bound with probability >= 1 - delta, whenever it ends: at epsilon, at the budget, or
    by the fallback, which holds a run to 1.5 times the fixed design (docs/pairs.md says when).
    Where costs differ, arms are pulled in proportion to their cost to the power of -1/2. Where arms
    have limits there is no fallback: an arm that may not be pulled through the next stage stays
    where it is, the others continue, and the bound is that of all pairs by then.
    A batch has about `batch` pulls plus `growth` times all pulls so far, at least `least` unless
    fewer complete all samples or limits leave fewer. With `rounds` there are at most that many
    batches, and one more if rewards in [0, 1] that were all 0 or 1 turn out not to be, or if an arm
    retires in the last one. Retired arms are in no pair: the bound is about the others.
    With a `window` batches are planned ahead while at most this many pulls are under way."""
    if window:
        return run_ahead(PairsRace(problem, rng, BatchSizes.ahead(window, least), retired))
    return run(PairsRace(problem, rng, BatchSizes(batch, growth, rounds, least or 0), retired))


def run(race: PairsRace) -> Search:
    """Pull, book and choose until the bound is small, or pulls run out."""
    rounds = race.pace.rounds
    requests = 0
    while (bound := race.bound()) > race.allowed:
        if not race.open.any() or requests == rounds:
            break
        if not race.racing or (requests + 1 == rounds and race.fallback.holds):
            return (yield from complete_samples(race, requests, at_once=True))
        stages, arms = race.movers()
        if not race.ready(stages):
            return (yield from complete_samples(race, requests, at_once=race.pace.together))
        times = race.stages.times(stages, arms)
        left = race.left(arms, times)
        dry = race.dry(times)
        stuck = (dry | (times > left)) & (stages == race.stages.at[arms] + 1)
        if stuck.any():
            race.exhaust(arms[stuck])
            continue
        fits = race.budget.affords(arms, times) & (times <= left) & ~dry
        if not fits.any():
            break
        requests += 1
        progress = race.progress(requests, bound)
        given = yield from _draw(race, arms[fits], times[fits], progress)
        if race.book(stages[fits], arms[fits], given):
            return race.answer(race.bound())
        race.stand()
    return race.answer(bound)


class StagesUnderWay(NamedTuple):
    """A batch that was asked for and is not taken in: pulls of arms in stages, in their order."""

    stages: IntArray  # (entry,)
    arms: IntArray
    times: IntArray

    @property
    def pulls(self) -> Pulls:
        """The entries that have pulls."""
        some = self.times > 0
        return Pulls(self.arms[some], self.times[some])

    @property
    def total(self) -> int:
        """Number of pulls."""
        return int(self.times.sum())


class Ahead:
    """The batches of a race that are planned ahead, oldest first.

    Replies are taken in by the number of their batch. So a plan is a function of the seed, of the
    sizes of batches and of the rewards of batches before, whatever the order in which rewards
    arrive. The pulls of a stage are planned by rewards of earlier stages, and its bets are fixed
    when the stage before is booked: docs/pairs.md, "Batches planned ahead"."""

    def __init__(self, race: PairsRace) -> None:
        self.race = race
        self.batches = 0  # so far
        self._asked: IntArray = race.stages.at.copy()  # last stage asked for of every arm
        self._under_way: deque[StagesUnderWay] = deque()

    def step(self, bound: float) -> Generator[Pulls, Rewards, bool | None]:
        """Ask for batches as long as there is room, and take in the oldest one.

        True if a part of it was enough to end the race; None if nothing is under way: all samples
        are planned in full, or the budget pays for no more."""
        new: list[Pulls] = []
        while (batch := self._planned()) is not None:
            self.batches += 1
            self._under_way.append(batch)
            self.race.budget.commit(batch.pulls)
            new += [replace(batch.pulls, progress=self._progress(bound))] * (batch.total > 0)
        if not self._under_way:
            return None
        oldest = self._under_way.popleft()
        given = yield from self._answered(oldest, new, self._progress(bound))
        return self.race.book(oldest.stages, oldest.arms, given)

    def _progress(self, bound: float) -> Progress:
        return self.race.progress(self.batches, bound)

    def _answered(
        self, oldest: StagesUnderWay, new: list[Pulls], idle: Progress
    ) -> Generator[Pulls, Rewards, Rewards]:
        """Hand out new batches, and return the rewards of the oldest of all."""
        waits = oldest.total > 0  # else its arms were at the ends of their samples
        for each in new[: len(new) - waits]:
            yield replace(each, more=True)
        sums, squares = np.zeros(oldest.times.size), np.zeros(oldest.times.size)
        if waits:
            given = yield new[-1] if new else Pulls(NO_ARMS, NO_ARMS, idle)
            self.race.budget.settle(oldest.pulls, given)
            sums[oldest.times > 0], squares[oldest.times > 0] = given.sums, given.squares
        return Rewards(sums, squares)

    def _planned(self) -> StagesUnderWay | None:
        """The next batch; None if there is no room, or nothing left to ask for.

        Arms that lag behind catch up first. Beyond that all open arms go through new stages."""
        race, pace = self.race, self.race.pace
        room = pace.window - sum(map(self._counted, self._under_way))
        if self._under_way and room < pace.least:
            return None
        stages, arms = self._lags()
        missing = int(race.stages.times(stages, arms).sum())
        if missing < pace.least:
            parts = self._new_stages(max(room, pace.least) - missing)
            if self._under_way and missing + self._sum(parts) > room + race.open.sum():
                return None
            for times in parts:
                race.stages.plan(times)
            stages, arms = self._lags()
        return self._affordable(stages, arms, room + int(race.open.sum()))

    def _counted(self, batch: StagesUnderWay) -> int:
        """Pulls of a batch before they were rounded up, by less than one per arm."""
        rounded = batch.total - self.race.open.size
        return min(batch.total, max(self.race.pace.least, rounded))

    def _lags(self) -> tuple[IntArray, IntArray]:
        """Stages that are planned and that open arms were not asked for, in order."""
        arms = np.flatnonzero(self.race.open)
        steps = self.race.stages.last - self._asked[arms]
        before = np.cumsum(steps) - steps
        stages = np.repeat(self._asked[arms] - before, steps) + np.arange(1, steps.sum() + 1)
        order = np.argsort(stages, kind="stable")
        return stages[order], np.repeat(arms, steps)[order]

    def _new_stages(self, most: int) -> list[IntArray]:
        """The pulls of every arm in new stages that have about this many pulls, if any are left."""
        race = self.race
        left = race.left_to_plan()
        if left[race.open].max() <= 0:
            return []
        state = race.state(left)
        return parts_of(next_times(state, replace(race.pace, most=most), self.batches + 1), state)

    def _sum(self, parts: list[IntArray]) -> int:
        """Pulls of the open arms in these stages."""
        return int(sum(times[self.race.open].sum() for times in parts))

    def _affordable(self, stages: IntArray, arms: IntArray, room: int) -> StagesUnderWay | None:
        """The first of these entries, as many as the budget pays for.

        Whole stages, as many as there is room for: two arms must stay in step. At least one stage,
        if nothing else is under way."""
        race = self.race
        times = race.stages.times(stages, arms)
        ends = stages.searchsorted(stages, side="right") - 1  # the last entry of the same stage
        kept = race.budget.affords(arms, times)
        fits = np.cumsum(times)[ends] <= room
        if not self._under_way and stages.size:
            fits |= stages == stages[0]
        kept &= fits
        if not kept.any():
            return None
        self._asked[arms[kept]] = stages[kept]  # the last one counts
        return StagesUnderWay(stages[kept], arms[kept], times[kept])


def run_ahead(race: PairsRace) -> Search:
    """`run` with batches that are planned ahead, within the window of the race."""
    ahead = Ahead(race)
    while (bound := race.bound()) > race.allowed and race.open.any():
        ended = (yield from ahead.step(bound)) if race.racing else None
        if ended:
            return race.answer(race.bound())
        if ended is None:
            return (yield from complete_samples(race, ahead.batches, at_once=True))
        race.stand()
    return race.answer(bound)


def complete_samples(race: PairsRace, requests: int, *, at_once: bool) -> Search:
    """Complete the samples of the arms in doubt and choose among them by these.

    An arm is in doubt if it is in an open pair, also of the new choice. With `at_once`, if it is in
    a pair that is not known to be in the right order: then no new choice can add another."""
    if not race.fallback.holds:  # every arm is at its limit
        return race.answer(race.bound())
    complete = _in_doubt(race, at_once=at_once)
    while True:
        missing = np.where(complete, race.fallback.caps - race.pulls, 0)
        if not race.budget.affords(np.arange(missing.size), missing).all():
            return race.answer(race.bound())
        if missing.any():
            requests += 1
            before = race.retired.count
            yield from _complete(race, missing, race.progress(requests, race.bound()))
            if race.retired.count > before:  # arms that it beat were not compared with the others
                race.stand()
                complete = (complete | _in_doubt(race, at_once=at_once)) & ~race.retired.arms
            continue  # the samples may have become larger
        _choose_by_samples(race, complete)
        joining = race.open & ~complete
        if at_once or not joining.any():
            return race.answer(min(race.bound(), race.allowed), by_fallback=True)
        complete |= joining


def _in_doubt(race: PairsRace, *, at_once: bool) -> BoolArray:
    """The arms whose samples are to be completed: those in open pairs of the present choice.

    With `at_once`, those in a pair that is not known to be in the right order: any other arm is on
    its side of the choice, whatever the samples say of these."""
    return in_pair(race.pairs_above(0.0)) if at_once else race.open.copy()


def _choose_by_samples(race: PairsRace, complete: BoolArray) -> None:
    """Replace the chosen arms whose samples are complete by the best of all such arms."""
    kept = np.flatnonzero(race.top & ~complete)
    ranked = race.fallback.order(race.sums)
    if race.graph is not None:
        others = np.flatnonzero(~race.top & ~complete)
        order = np.concatenate([kept, ranked[complete[ranked]], others])
        race.choose(np.flatnonzero(race.graph.first(order)))
        return
    ranked = ranked[complete[ranked]]
    race.choose(np.concatenate([kept, ranked[: race.problem.k - kept.size]]))


def _complete(
    race: PairsRace, missing: IntArray, progress: Progress
) -> Generator[Pulls, Rewards, None]:
    """Make the missing pulls, outside of all stages."""
    arms = np.flatnonzero(missing)
    pulls = Pulls(arms, missing[arms], progress)
    given = yield pulls
    race.budget.pay(pulls, given)
    race.count(arms, StageRewards(missing[arms], given.sums, given.squares))
    race.fallback.look(race.pulls, race.sums, race.squares, first=False)


def _draw(
    race: PairsRace, arms: IntArray, times: IntArray, progress: Progress
) -> Generator[Pulls, Rewards, Rewards]:
    """Ask for the entries that have pulls; the others have no rewards."""
    pulled = times > 0
    sums, squares = np.zeros(times.size), np.zeros(times.size)
    if pulled.any():
        pulls = Pulls(arms[pulled], times[pulled], progress)
        given = yield pulls
        race.budget.pay(pulls, given)
        sums[pulled], squares[pulled] = given.sums, given.squares
    return Rewards(sums, squares)
