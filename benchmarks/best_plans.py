"""What the best plan would take: `python benchmarks/best_plans.py --panel synthetic-6-500`.

As if the means were known but for which arm has which, and the boundary with them: one plan for all
arms, without a pilot. Stopping rule, labels and charges are chosen together, a convex program that
is solved by its dual (docs/plans.md, "The best plans"). No lower bound: levels double, and plans
that differ from arm to arm may be better. Nor is it a proof: the bound is K epsilon on average, and
(*) is kept at the means that may have weight, not checked between them. A minute a row at most."""

import math
from dataclasses import dataclass
from itertools import product

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.optimize import minimize
from scipy.special import expit

from shortlist.arrays import FloatArray
from shortlist.certificates.plans.bound import binomial
from shortlist.certificates.plans.planning import log_optimal
from shortlist.reproduction import PANELS

BAND = 14.0  # standard deviations from the boundary to which states go
FORCED = 9.0  # and beyond which every arm stops
NEAREST = 0.3  # least distance of weights from the boundary, in standard deviations at the end
APART = 0.2  # and of one from the next, relative
FAR = 1.0  # first-level deviations from which on they are evenly spaced
SOFT = 0.02  # difference of costs within which rules stop at random, as a share of the pulls
CHEAP = 10.0  # price of charges that is tried first,
DEAR = 1e8  # and last
STEP = 1.5  # from one to the next
STEPS = 400  # of the solver
NEGLIGIBLE = 1e-13  # probability of a state
GAP = 1e-5  # of the charges of a rule to the best


@dataclass(frozen=True, slots=True)
class Solution:
    """The best plan for a price: expected pulls and strength * charge of an arm."""

    weights: FloatArray  # (means,): least favourable, about
    pulls: float
    charge: float


class Program:
    """One plan for arms of these means, whose boundary is known."""

    def __init__(self, means: FloatArray, boundary: float, levels: list[int]) -> None:
        self.b = boundary
        self.levels = levels
        self.successes = [self._successes(pulls) for pulls in levels]
        self.means = self._support()
        self.ratios = [self._ratios(self.means, level) for level in range(len(levels))]
        self.likely = [self._ratios(means, level).mean(axis=1) for level in range(len(levels))]
        gained = np.diff([0, *levels])
        self.steps = [binomial(int(each), boundary) for each in gained]

    def _successes(self, pulls: int) -> FloatArray:
        reach = BAND * math.sqrt(pulls * self.b * (1 - self.b))
        low = max(0, math.floor(pulls * self.b - reach))
        high = min(pulls, math.ceil(pulls * self.b + reach))
        return np.arange(low, high + 1, dtype=np.float64)

    def _support(self) -> FloatArray:
        """Means away from the boundary, geometrically in angles and then evenly."""
        distances = [NEAREST / (2 * math.sqrt(self.levels[-1]))]
        even = FAR / (2 * math.sqrt(self.levels[0]))
        while distances[-1] < math.pi / 2:
            distances.append(distances[-1] + APART * min(distances[-1], even))
        centre = math.asin(math.sqrt(self.b))
        angles = centre + np.concatenate([-np.array(distances), distances])
        inside = angles[(angles > 0.01) & (angles < math.pi / 2 - 0.01)]
        return np.asarray(np.sort(np.sin(inside) ** 2), dtype=np.float64)

    def _ratios(self, means: FloatArray, level: int) -> FloatArray:
        """Likelihoods relative to that of the boundary: (states, means)."""
        successes = self.successes[level][:, None]
        log = successes * np.log(means / self.b)
        log = log + (self.levels[level] - successes) * np.log((1 - means) / (1 - self.b))
        return np.asarray(np.exp(log), dtype=np.float64)

    def played(
        self, weights: FloatArray, price: float, losses: FloatArray
    ) -> tuple[float, float, FloatArray, FloatArray]:
        """Value and pulls of the best rule against weights of means.

        And A(m, s) = p_m(s) exp(strength L(s, m)), (means, states), and p(s), (states,)."""
        above = self.means > self.b
        factors = np.stack([np.where(above, losses, 1.0), np.where(above, 1.0, losses)])
        paid = [each @ (weights * factors).T for each in self.ratios]  # (states, OUT and IN)
        of_levels = zip(paid, self.likely, strict=True)
        charges = [np.log(each.min(axis=1) / likely) for each, likely in of_levels]
        stops, value = self._stops(charges, price)
        ended = self._ended(stops)
        labels = np.concatenate([each.argmin(axis=1) for each in paid])
        ratios = np.concatenate(self.ratios) * np.concatenate(ended)[:, None]
        believed = np.concatenate(ended) * np.concatenate(self.likely)
        pulls = [
            each * likely * times
            for each, likely, times in zip(ended, self.likely, self.levels, strict=True)
        ]
        matrix = np.ascontiguousarray((ratios * factors[labels]).T)
        return value, float(np.concatenate(pulls).sum()), matrix, believed

    def _stops(self, charges: list[FloatArray], price: float) -> tuple[list[FloatArray], float]:
        """How likely arms are to stop in every state, by backward induction; the value at first."""
        stops = [np.ones_like(each) for each in charges]
        value = self.levels[-1] + price * charges[-1]
        for level in range(len(self.levels) - 2, -1, -1):
            cost = self.levels[level] + price * charges[level]
            on = self._expected(self.likely[level + 1] * value, level + 1)
            on = on / self._expected(self.likely[level + 1], level + 1)
            scale = SOFT * self.levels[level]
            deviation = math.sqrt(self.levels[level] * self.b * (1 - self.b))
            away = np.abs(self.successes[level] - self.levels[level] * self.b)
            better = np.where(away > FORCED * deviation, np.inf, (on - cost) / scale)
            stops[level] = expit(better)
            soft = np.minimum(on, cost) - scale * np.log1p(np.exp(-np.abs(better)))
            value = np.where(np.isinf(better), cost, soft)
        first = self.likely[0] * self.steps[0][self.successes[0].astype(int)]
        return stops, float(first @ value / first.sum())

    def _expected(self, values: FloatArray, level: int) -> FloatArray:
        """Of values at a level, for every state of the one before."""
        step = self.steps[level]
        padded = np.pad(values, step.size)
        shift = int(self.successes[level - 1][0] - self.successes[level][0]) + step.size
        summed = np.correlate(padded, step, "valid")
        return np.asarray(summed[shift : shift + self.successes[level - 1].size] + 1e-300)

    def _ended(self, stops: list[FloatArray]) -> list[FloatArray]:
        """Probability at the boundary of stopping in every state."""
        reached = self.steps[0][self.successes[0].astype(int)]
        ended = []
        for level, stop in enumerate(stops):
            ended.append(reached * stop)
            if level + 1 == len(stops):
                break
            spread = np.convolve(reached * (1 - stop), self.steps[level + 1])
            first = int(self.successes[level][0])
            wanted = self.successes[level + 1].astype(int) - first
            within = (wanted >= 0) & (wanted < spread.size)
            reached = np.where(within, spread[np.clip(wanted, 0, spread.size - 1)], 0.0)
        return ended


def solved(program: Program, price: float, losses: FloatArray, start: FloatArray) -> Solution:
    """Maximise the dual, concave in the weights, over their logarithms."""

    def negative(log: FloatArray) -> tuple[float, FloatArray]:
        weights = np.exp(log)
        value, _, matrix, believed = program.played(weights, price, losses)
        reached = believed > 0
        q = believed[reached] / (weights @ matrix[:, reached])
        moments = matrix[:, reached] @ q
        return float(weights.sum()) - 1 - value / price, weights * (1 - moments)

    found = minimize(
        negative,
        np.log(start),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-60, 10)] * start.size,
        options={"maxiter": STEPS, "maxfun": 2 * STEPS},
    )
    weights = np.exp(found.x)
    _, pulls, matrix, believed = program.played(weights, price, losses)
    reached = believed > NEGLIGIBLE
    believed = believed[reached] / believed[reached].sum()
    q = log_optimal(np.ascontiguousarray(matrix[:, reached]), believed, GAP)
    return Solution(weights, pulls, -float(believed @ np.log(q)))


def least(name: str, strength: float, delta: float, top: int) -> float:
    """Pulls of all arms for a bound of K epsilon, between those of two prices."""
    panel = PANELS[name]
    means = np.sort(panel.means())[::-1]
    boundary = float(means[panel.k - 1] + means[panel.k]) / 2
    program = Program(np.clip(means, 1e-4, 1 - 1e-4), boundary, [2**each for each in range(1, top)])
    reach = panel.k * panel.epsilon
    rate = strength * math.log(1 / delta) / reach
    losses = np.exp(rate * np.minimum(np.abs(program.means - boundary), reach))
    weights = np.full(program.means.size, 1 / program.means.size)
    price = CHEAP
    path: list[tuple[float, float]] = []  # bound / (k epsilon), pulls
    while len(path) < 2 or path[-1][0] > 1:
        if price > DEAR:
            raise click.ClickException(
                f"2^{top - 1} pulls of an arm are not enough: --top {top + 1}"
            )
        found = solved(program, price, losses, 0.99 * weights + 0.01 / weights.size)
        bound = (means.size * found.charge + math.log(1 / delta)) / rate / reach
        path.append((bound, means.size * found.pulls))
        if path[0][0] <= 1:
            raise click.ClickException(
                f"{name} has a bound of {bound:.2f} at price {CHEAP:g} already"
            )
        weights = found.weights
        price *= STEP
    bounds, pulls = np.array(path[:-3:-1]).T  # the last two, rising
    return float(np.interp(1.0, bounds, pulls))


@click.command()
@click.option("--panel", "names", type=click.Choice(list(PANELS)), multiple=True, required=True)
@click.option("--strength", "strengths", type=float, multiple=True, default=(3.0, 6.0))
@click.option("--delta", default=2e-5, show_default=True, help="share of one track")
@click.option("--top", default=13, show_default=True, help="levels go up to 2^(top - 1) pulls")
def main(names: tuple[str, ...], strengths: tuple[float, ...], delta: float, top: int) -> None:
    table = Table(box=SIMPLE_HEAD, title=f"the best plans if the means were known, delta {delta}")
    for column in ("panel", "strength", "pulls"):
        table.add_column(column, justify="right")
    rows = list(product(names, strengths))
    for name, strength in track(rows, console=Console(stderr=True), transient=True):
        pulls = least(name, strength, delta, top)
        table.add_row(name, f"{strength:g}", f"{pulls:,.0f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
