"""Where a race stands: what was drawn, the bounds that follow, and who is to be pulled next."""

import math

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.design import fixed_design, log_swaps
from shortlist.certification.pairs.bets import Draws
from shortlist.certification.pairs.mixture import Mixture
from shortlist.certification.pairs.net import EDGE, Net
from shortlist.certification.pairs.stages import Stages
from shortlist.certification.pairs.standing import (
    Pace,
    Standing,
    centres,
    next_stage,
    next_times,
    parts_of,
    pilot_stage,
    stage_with,
)
from shortlist.certification.pairs.swaps import pair_gaps, set_gap
from shortlist.grouping import total_before
from shortlist.problem import Problem
from shortlist.rounding import ROUNDED
from shortlist.search import Answer, Progress, Rewards

FAR_BEYOND = 4  # times the fixed design that an arm is pulled beside others at their limits
CATCH_UP = 0.34  # share of its lag that an arm makes up at once
NO_BETS = 1e-200  # instead of a clock of 0 ...
NOT_BOUNDED = 1e100  # ... and the gap that this gives at least
LARGEST_EXPONENT = 500.0  # of a capital that is only compared


class Race:
    """What is known so far, and the bounds that follow from it.

    With `pilot_apart` nothing rests on the rewards of the first request, so that they may decide
    whether there is a race at all."""

    def __init__(
        self, problem: Problem, rng: np.random.Generator, pace: Pace, *, pilot_apart: bool = False
    ) -> None:
        n, k = problem.n_arms, problem.k
        self.problem, self.rng, self.pace = problem, rng, pace
        self.allowed = k * problem.epsilon
        self.swapped = min(k, n - k)  # arms in a swap, at most
        # A pair that is the only one in doubt may lose all that is allowed.
        self.closed_at = self.allowed if self.swapped == 1 else 0.0
        self.pulls: IntArray = np.zeros(n, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n)
        self.squares: FloatArray = np.zeros(n)
        self.gaps: FloatArray = np.full((n, n), np.inf)  # [j, b]: theta_j - theta_b, j in S, b not
        self.near: BoolArray = np.zeros((2, n), dtype=np.bool_)  # known to lie near 0; near 1
        pilot = 0 if pace.together else max(1, pace.batch // n)
        self.net = Net(problem, pilot, rng, apart=pilot_apart)
        self.levels = self._levels(self.net.delta_left)
        self.edge_level = float(self._levels(self.net.delta_left_at_edge)[0])
        self.unit = self._unit()
        self.mixture = Mixture.of(self.unit)
        self.stages = Stages(n, self.mixture.weights.size)
        if self.net.pilot_apart:
            self.stages.add(pilot_stage(n, self.mixture.weights.size, pilot))
        self.open: BoolArray = np.ones(n, dtype=np.bool_)
        self.most_pulls = _most_pulls(problem)
        # has too few pulls left for a stage
        self.exhausted: BoolArray = np.zeros(n, dtype=np.bool_)
        self.requests = 0  # large ones
        self.stand()

    def _levels(self, delta: float) -> FloatArray:
        """ln(1 / delta_m) of one swap of m arms: sizes weigh 1/m, swaps of one size the same."""
        if delta <= 0:
            return np.full(self.swapped, np.inf)
        sizes = np.arange(1, self.swapped + 1)
        log_share = -np.log(sizes * (1 / sizes).sum())
        swaps = log_swaps(self.problem.n_arms, self.problem.k)
        result: FloatArray = swaps - log_share - math.log(delta)
        return result

    def _unit(self) -> float:
        """The gap that is to be told from 0; with a small budget no less than can be told."""
        unit = self.allowed / self.swapped
        budget = self.problem.goal.budget
        if budget is None or not self.racing:
            return unit
        return max(unit, 0.5 * math.sqrt(self.levels[0] * self.problem.n_arms / budget))

    @property
    def racing(self) -> bool:
        """Whether the net has left anything of delta."""
        return math.isfinite(self.levels[0])

    @property
    def spent(self) -> int:
        """Pulls made in all."""
        return int(self.pulls.sum())

    def stand(self) -> None:
        """Who is chosen now, and which pairs are open."""
        n, k = self.problem.n_arms, self.problem.k
        seen = self.open if self.open.any() else np.ones(n, dtype=np.bool_)
        self.mean = float((self.sums[seen].sum() + 0.5) / (self.pulls[seen].sum() + 1))
        smoothed = (self.sums + self.mean) / (self.pulls + 1)
        order = np.lexsort((self.rng.random(n), -smoothed))
        self.edge: IntArray = order[[k, k - 1]]  # best outside, worst inside
        self.choose(order[:k])

    def choose(self, top: IntArray) -> None:
        """Take `top`, bound its pairs, and see which are open."""
        self.top: BoolArray = np.zeros(self.problem.n_arms, dtype=np.bool_)
        self.top[top] = True
        if self.racing:
            self._tighten()
        pairs = self.pairs_above(self.closed_at)
        self.doubtful = in_pair(pairs)
        # to pull one arm of a pair does not help if the other one cannot be pulled any more
        self.open_pairs = pairs & ~self.exhausted[:, None] & ~self.exhausted
        self.open = in_pair(self.open_pairs)

    def exhaust(self, arms: IntArray) -> None:
        """Leave arms where they are: their limits allow for no further stage."""
        self.exhausted[arms] = True
        self.stand()

    def left(self, arms: IntArray, times: IntArray) -> IntArray:
        """Of every entry of a request, how many pulls its arm has left before it."""
        result: IntArray = (self.most_pulls - self.pulls)[arms] - total_before(arms, times)
        return result

    def pairs_above(self, gap: float) -> BoolArray:
        """[j, b]: j outside may be better than b inside by more than `gap`."""
        result: BoolArray = (self.gaps > gap) & ~self.top[:, None] & self.top
        return result

    def _tighten(self) -> None:
        """Bound the pairs of the present choice by the last stage that both arms completed."""
        outside, inside = np.flatnonzero(~self.top), np.flatnonzero(self.top)
        at = self.stages.at
        q: int | IntArray = int(at[0])
        if (at != q).any():
            q = np.minimum(at[outside][:, None], at[inside])  # (j, b)
        near = self.near[:, outside, None] & self.near[:, None, inside]  # (side, j, b)
        level = np.where(near.any(0), self.edge_level, self.levels[0])
        down = self.stages.down(q, outside[:, None])  # (j, b, clock), or (j, 1, clock)
        up = self.stages.up(q, inside)  # (j, b, clock), or (b, clock)
        clock = np.maximum(self.stages.clock(q), NO_BETS)
        found = pair_gaps(down, up, clock, np.log(self.mixture.weights), level)
        found += self._rounded(clock)
        found[~(found <= NOT_BOUNDED)] = np.inf  # so that NaN can never close a pair
        here = np.ix_(outside, inside)
        self.gaps[here] = np.minimum(self.gaps[here], found)

    def _rounded(self, clock: FloatArray) -> FloatArray:
        """What rounding can take off the gap of a pair: docs/pairs.md, "Rounding"."""
        farthest = float(np.abs(self.sums / np.maximum(self.pulls, 1)).max())
        largest = 1 + farthest + self.levels.max() / clock[..., 0]  # the first clock is the slowest
        rounded: FloatArray = ROUNDED * (2 + self.stages.last) * largest + 2 * self.problem.blur
        return rounded

    def _place(self) -> None:
        """See which arms lie near 0 or near 1: the capital against the contrary is large."""
        if not self.net.placed or self.net.edge_share == self.net.share:
            return
        n = self.problem.n_arms
        arms, q = np.arange(n), self.stages.at
        clock = self.stages.clock(q)  # (arm, clock)
        enough = 2 * n / (self.net.placing * self.problem.delta)
        low = self.stages.down(q, arms) + clock * EDGE  # against theta >= EDGE
        high = self.stages.up(q, arms) - clock * (1 - EDGE)  # against theta <= 1 - EDGE
        exponents = np.minimum(np.stack([low, high]), LARGEST_EXPONENT)  # (side, arm, clock)
        self.near |= np.exp(exponents) @ self.mixture.weights >= enough

    def bound(self) -> float:
        """Bound on K R_T of the present choice, at any time."""
        worst = max(0.0, float(self.gaps[np.ix_(~self.top, self.top)].max()))
        if self.swapped > 1 and math.isfinite(worst):
            worst = max(worst, self._set_bound())
        if not self.problem.rewards.has_range:
            return worst
        return min(worst, float(self.swapped))

    def _set_bound(self) -> float:
        """Bound on the gap of swaps of two or more arms; arms in no open pair are in none."""
        outside = np.flatnonzero(self.doubtful & ~self.top)
        inside = np.flatnonzero(self.doubtful & self.top)
        if min(outside.size, inside.size) < 2:
            return 0.0
        q = int(self.stages.at[self.doubtful].min())
        down, up = self.stages.down(q, outside), self.stages.up(q, inside)
        clock = np.maximum(self.stages.clock(q), NO_BETS)
        found = set_gap(down, up, clock, np.log(self.mixture.weights), self.levels)
        found += self.swapped * float(self._rounded(clock))
        return found if found <= NOT_BOUNDED else math.inf

    def movers(self) -> tuple[IntArray, IntArray]:
        """Stages and arms to be pulled next: of every open pair the arm that lags, or both."""
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

    def _plan_ahead(self) -> int:
        """Plan a large request as stages; the last of them, or one that can never be."""
        if self.stages.at[self.open].max() < self.stages.last:  # planned, but not affordable
            return self.stages.last
        left = self._left()
        if left[self.open].max() <= 0:
            return self.stages.last + 1
        standing = self._standing(left)
        self.requests += 1
        for times in parts_of(next_times(standing, self.pace, self.requests), standing):
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
        left = self._left()
        if left[self.open].max() <= 0:
            return False
        stage = next_stage(self._standing(left), self.pace, self.stages.last + 1)
        self.stages.add(stage)
        return True

    def _left(self) -> IntArray:
        """Pulls that are not planned until samples are complete: (arm,)."""
        left: IntArray = self.net.caps - self.stages.planned
        return left

    def _standing(self, left: IntArray) -> Standing:
        return Standing(
            pulls=self.pulls,
            sums=self.sums,
            squares=self.squares,
            rewards=self.problem.rewards,
            top=self.top,
            open=self.open,
            swapped=self.swapped,
            edge=self.edge,
            mean=self.mean,
            unit=self.unit,
            multiples=self.mixture.multiples,
            level=float(self.levels[0]),
            sample=self.net.size,
            planned=self.stages.planned,
            left=left,
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
            draws = Draws(stage.times[here], given.sums[now], given.squares[now])
            around = centres(self.pulls[here], self.sums[here], stage.mean, stage.weight)
            self.stages.book(q, here, draws, around, self.problem.rewards)
            self.count(here, draws)
        self._look(first=first)
        return False

    def _fix(self, q: int, *, first: bool) -> bool:
        """Fix the bets of stage q from all that is booked; True if that ends the race."""
        if self.pulls.any():
            self._look(first=first)
            self.stand()
            if self.bound() <= self.allowed or not self.open.any():
                return True
        times = self.stages.times(np.full(self.pulls.size, q), np.arange(self.pulls.size))
        self.stages.fix(stage_with(times, self._standing(self._left())))
        return False

    def _look(self, *, first: bool) -> None:
        """See what kind of rewards came, and where arms lie."""
        self.net.look(self.pulls, self.sums, self.squares, first=first)
        self._place()

    def count(self, arms: IntArray, draws: Draws) -> None:
        """Add rewards to what is known of these arms."""
        self.pulls[arms] += draws.times
        self.sums[arms] += draws.sums
        self.squares[arms] += draws.squares

    def answer(self, bound: float, *, by_net: bool = False) -> Answer:
        """The present choice with what is proved about it."""
        top = np.flatnonzero(self.top)
        evidence = {
            "certificate": "pairs",
            "stages": self.stages.last,
            "safety net": by_net,
            "pulls per arm at most": int(self.net.caps.max()),
        }
        if not math.isfinite(bound):
            return Answer(top, evidence=evidence)
        regret = bound / self.problem.k
        if bound <= self.allowed:  # dividing may have rounded up
            regret = min(regret, self.problem.epsilon)
        return Answer(top, regret, 1 - self.problem.delta, evidence)

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


def _most_pulls(problem: Problem) -> IntArray:
    """How often every arm may be pulled: (n,).

    Beside arms at their limits others could race for ever, as the bound may not come down any more:
    they end at FAR_BEYOND times what a fixed design takes."""
    if problem.limits is None:
        return problem.most_pulls
    n_arms, k, epsilon = problem.n_arms, problem.k, problem.sharp_epsilon
    design = fixed_design(n_arms, k, epsilon, problem.delta, problem.rewards)
    return np.minimum(problem.most_pulls, FAR_BEYOND * design)
