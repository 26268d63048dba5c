"""Plan a certificate: how often to pull every arm afresh, and how to charge it, before any of it is drawn.

For an arm the exploration gives a posterior; every way of certifying it (pulls N, first charged success, slope) has a
price in pulls and an expected charge. The plan minimises the pulls in all such that the expected bound, with a
margin for its spread, reaches its target. Predictions may be rough: no guarantee rests on them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr

from shortlist.certificate import Certificate, binary_moments, bounded_offset, declare, least_offset, subgaussian_offset
from shortlist.posterior import Posterior, product
from shortlist.problem import Binary, RewardModel, SubGaussian
from shortlist.search import BoolArray, FloatArray, IntArray

RATIO = 1.25  # between neighbouring numbers of pulls
STARTS = (0.3, 0.9, 1.5)  # first charged success, in standard deviations beyond the boundary
EXACT = 64  # up to so many pulls charges are predicted with binomial, above with normal probabilities
COARSE = 24  # points at which an offset is predicted
TINY = 1e-20  # charges below this are taken as zero: denormal numbers are slow
NEVER = 1e9  # charge of a way that cannot be declared; finite, so that zero weights stay zero


@dataclass(frozen=True)
class Ways:
    """The ways to certify an arm outside the set, seen from one boundary (inside: mirrored)."""

    pulls: FloatArray  # (ways,)
    start: FloatArray
    slope: FloatArray
    charge: FloatArray  # (grid, ways): expected charge of an arm of that mean
    square: FloatArray  # (grid, ways): expected squared charge


@dataclass(frozen=True)
class Plan:
    """A certificate to be declared and what it is expected to cost and to show."""

    top: BoolArray
    boundary: float
    strength: float
    pulls: IntArray
    start: FloatArray
    slope: FloatArray
    cost: int  # pulls still to be made
    expected: float  # the bound on k * regret to expect, margin included

    def declare(self, delta: float, reach: float, rewards: RewardModel) -> Certificate:
        """Fix the certificate."""
        return declare(
            self.top,
            self.boundary,
            self.pulls,
            strength=self.strength,
            delta=delta,
            reach=reach,
            rewards=rewards,
            slope=self.slope,
            start=self.start,
        )


def pull_counts(most: int) -> IntArray:
    """1, 2, 3, ... then growing by RATIO: the numbers of pulls a plan chooses from."""
    counts = [1]
    while counts[-1] < most:
        counts.append(max(counts[-1] + 1, int(counts[-1] * RATIO)))
    return np.array(counts)


def ways(posterior: Posterior, boundary: float, strength: float, reach: float, counts: IntArray, inside: bool) -> Ways:
    """Price every way of certifying an arm of unknown mean."""
    rewards = posterior.rewards
    edge, grid = (1 - boundary, 1 - posterior.grid) if inside else (boundary, posterior.grid)
    if isinstance(rewards, SubGaussian):
        spread, at_edge = np.full(grid.size, posterior.variance()), 0.25
    else:
        spread = np.maximum(grid * (1 - grid), 1e-3) * posterior.dispersion()
        at_edge = max(edge * (1 - edge), 0.01)
    pulls, start, slope = _combinations(counts, edge, at_edge, strength, reach, rewards)
    reach = reach if isinstance(rewards, SubGaussian) else min(reach, 1 - edge)
    offset = _predicted_offset(pulls, start, slope, edge, at_edge, strength, reach, rewards)
    begin = np.maximum(start + 0.5, pulls * (edge - offset / slope))  # successes where the charge begins
    charge, square = _normal_charge(grid - edge, spread, pulls, begin / pulls - edge, slope, offset, strength)
    if isinstance(rewards, Binary):
        few = pulls <= EXACT
        charge[:, few] = _binomial_charge(grid, edge, pulls[few], start[few], slope[few], offset[few], strength)
    charge[:, ~np.isfinite(offset)] = NEVER
    square[:, ~np.isfinite(offset)] = 0.0
    charge[charge < TINY], square[square < TINY] = 0.0, 0.0
    return Ways(pulls, start, slope, charge, square)


def _combinations(
    counts: IntArray, edge: float, variance: float, strength: float, reach: float, rewards: RewardModel
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """All combinations of pulls, start and slope. A start of -inf charges every success."""
    starts = [-np.inf, *STARTS] if isinstance(rewards, Binary) else [-np.inf]
    slopes = [1.0] if reach >= 0.3 else [1.0, 0.3]
    axes = np.meshgrid(counts.astype(float), starts, slopes, indexing="ij")
    pulls, z, part = (axis.ravel() for axis in axes)
    start = np.floor(pulls * edge + z * np.sqrt(variance * pulls))
    return pulls, start, strength * part


def _predicted_offset(
    pulls: FloatArray,
    start: FloatArray,
    slope: FloatArray,
    edge: float,
    variance: float,
    strength: float,
    reach: float,
    rewards: RewardModel,
) -> FloatArray:
    if isinstance(rewards, SubGaussian):
        return subgaussian_offset(pulls, strength, reach, slope)
    offset = bounded_offset(pulls, edge, edge, strength, reach, slope)
    shaped = np.isfinite(start)
    possible = (start >= 0) & (start < pulls)
    few, many = possible & (pulls <= EXACT), possible & (pulls > EXACT)
    offset[shaped & ~possible] = np.inf
    offset[few] = _binomial_offset(pulls[few], start[few], slope[few], edge, strength, reach)
    offset[many] = _normal_offset(pulls[many], start[many], slope[many], edge, variance, strength, reach)
    return offset


def _binomial_offset(
    pulls: FloatArray, start: FloatArray, slope: FloatArray, edge: float, strength: float, reach: float
) -> FloatArray:
    """`binary_offset` at a few points only."""
    gap = reach * np.linspace(0, 1, COARSE) ** 1.5
    mean = np.broadcast_to(edge + gap, (pulls.size, COARSE))
    free, log_charged = binary_moments(pulls[:, None], slope[:, None], start[:, None], mean, edge)
    offset: FloatArray = least_offset(np.exp(-strength * gap) - free, log_charged).max(axis=1)
    return offset


def _normal_offset(
    pulls: FloatArray,
    start: FloatArray,
    slope: FloatArray,
    edge: float,
    variance: float,
    strength: float,
    reach: float,
) -> FloatArray:
    """`binary_offset` with normal probabilities."""
    sigma = np.sqrt(variance / pulls)[:, None]
    free_up_to = (start / pulls - edge)[:, None]
    gap = np.clip(free_up_to + sigma * np.linspace(-3, 6, COARSE), 0, reach)  # (ways, COARSE)
    steep = slope[:, None]
    free = np.exp(np.minimum(log_ndtr((free_up_to - gap) / sigma) + strength * gap, 0))  # of what is allowed
    log_charged = (strength - steep) * gap + steep**2 * sigma**2 / 2
    above = ndtr((gap - steep * sigma**2 - free_up_to) / sigma)
    with np.errstate(divide="ignore", invalid="ignore"):
        local = np.where(free >= 1, np.inf, log_charged + np.log(above) - np.log1p(-np.minimum(free, 1)))
    tail = bounded_offset(pulls, edge, edge + gap[:, -1], strength, reach, slope)
    offset: FloatArray = np.maximum(local.max(axis=1), np.where(gap[:, -1] < reach, tail, -np.inf))
    return offset


def _normal_charge(
    gap: FloatArray,
    spread: FloatArray,
    pulls: FloatArray,
    begin: FloatArray,
    slope: FloatArray,
    offset: FloatArray,
    strength: float,
) -> tuple[FloatArray, FloatArray]:
    """Mean and mean square of (slope * y + offset) / strength over y > begin, for normal y around `gap`."""
    sigma = np.sqrt(spread[:, None] / pulls)  # (grid, ways)
    z = (begin - gap[:, None]) / sigma
    above, density = ndtr(-z), np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    level = np.where(np.isfinite(offset), slope * gap[:, None] + offset, 0.0) / strength
    step = slope / strength * sigma
    charge = level * above + step * density
    square = (level**2 + step**2) * above + (2 * level + step * z) * step * density
    return np.maximum(charge, 0), np.maximum(square, 0)


def _binomial_charge(
    grid: FloatArray,
    edge: float,
    pulls: FloatArray,
    start: FloatArray,
    slope: FloatArray,
    offset: FloatArray,
    strength: float,
) -> FloatArray:
    """Mean charge for binomial successes: E[S; S > s] = N m P(S' >= s), S' of one pull less."""
    with np.errstate(invalid="ignore"):
        begin = np.clip(np.floor(np.maximum(start, pulls * (edge - offset / slope))), -1, pulls - 1)
    mean = grid[:, None]
    above = np.where(begin < 0, 1.0, betainc(np.maximum(begin + 1, 1), pulls - np.maximum(begin, 0), mean))
    less = np.where(begin < 1, 1.0, betainc(np.maximum(begin, 1), pulls - np.maximum(begin, 0), mean))
    charge: FloatArray = (slope * (mean * less - edge * above) + offset * above) / strength
    return charge


class Menu:
    """What every way of certifying costs and is expected to charge, for arms grouped where they are alike."""

    def __init__(
        self, posterior: Posterior, top: BoolArray, made: IntArray, out: Ways, into: Ways, margin: float
    ) -> None:
        self.margin = margin
        keys = (posterior.row * 2 + top) * (int(made.max()) + 1) + made
        _, first, self.group, self.size = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        self.inside: BoolArray = top[first]
        self.weights: FloatArray = posterior.weights[posterior.row[first]]  # (groups, grid)
        more = out.pulls - made[first][:, None]
        self.price: FloatArray = np.where(more >= 0, more, np.inf)  # (groups, ways)
        self.charge = self._expect(out.charge, into.charge)
        self.square = self._expect(out.square, into.square)

    def _expect(self, outside: FloatArray, inside: FloatArray) -> FloatArray:
        table = np.empty(self.price.shape)
        table[~self.inside] = product(self.weights[~self.inside], outside)
        table[self.inside] = product(self.weights[self.inside], inside)
        return table

    def choose(self, value: float) -> IntArray:
        """The best way for every group if a unit of charge is worth `value` pulls."""
        choice: IntArray = np.argmin(self.price + value * self.charge, axis=1)
        return choice

    def cost(self, choice: IntArray) -> float:
        """Pulls to be made."""
        return float(self.size @ self.price[np.arange(choice.size), choice])

    def total(self, choice: IntArray) -> float:
        """Total charge to expect, with a margin for its spread."""
        groups = np.arange(choice.size)
        charge = self.charge[groups, choice]
        variance = self.size @ np.maximum(self.square[groups, choice] - charge**2, 0)
        return float(self.size @ charge + self.margin * np.sqrt(variance))

    def cheapest(self, spare: float) -> IntArray | None:
        """The choice of least cost whose total charge is at most `spare`."""
        _, high = self._search(lambda choice: self.total(choice) <= spare)
        return None if self.total(high) > spare else high

    def within(self, budget: int) -> IntArray | None:
        """The choice of least charge whose cost is at most `budget`."""
        low, high = self._search(lambda choice: self.cost(choice) > budget)
        best = high if self.cost(high) <= budget else low
        return best if self.cost(best) <= budget else None

    def _search(self, far_enough: Callable[[IntArray], bool]) -> tuple[IntArray, IntArray]:
        """The choices just before and just after `far_enough` becomes true as charge gets dearer."""
        low, high = -3.0, 10.0
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if far_enough(self.choose(10**middle)) else (middle, high)
        return self.choose(10**low), self.choose(10**high)


def plan(
    posterior: Posterior,
    top: BoolArray,
    boundary: float,
    made: IntArray,
    *,
    level: float,
    strength: float,
    reach: float,
    margin: float,
    target: float = math.inf,
    budget: int | None = None,
) -> Plan | None:
    """The cheapest plan whose bound on k * regret is expected at `target`, or the best one for `budget` more pulls.

    `level` is ln(1/delta); `made` are certification pulls made before, which a plan can only add to. None: no plan."""
    counts = pull_counts(max(int(made.max()), 64, 40 * int(posterior.pulls.mean())))
    out = ways(posterior, boundary, strength, reach, counts, inside=False)
    into = ways(posterior, boundary, strength, reach, counts, inside=True)
    menu = Menu(posterior, top, made, out, into, margin)
    choice = menu.cheapest(target - level / strength) if budget is None else menu.within(budget)
    if choice is None:
        return None
    way = choice[menu.group]
    pulls = out.pulls[way].astype(np.int64)
    return Plan(
        top=top,
        boundary=boundary,
        strength=strength,
        pulls=pulls,
        start=np.where(top, into.start[way], out.start[way]),
        slope=out.slope[way],
        cost=int((pulls - made).sum()),
        expected=menu.total(choice) + level / strength,
    )
