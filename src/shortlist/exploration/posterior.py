"""What the rewards so far say about every arm: one prior shared by all arms, learned from them
(empirical Bayes).

The prior is a set of weights on a grid of means, fitted by nonparametric maximum likelihood (EM).
It guides where to pull; no guarantee rests on it."""

import math

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray, product
from shortlist.exploration.sharing import share_out
from shortlist.grouping import grouped
from shortlist.reward_models import RewardModel
from shortlist.search import Pulls, Rewards

EVEN = 50  # points of the grid at first
BLURRED = 3.0  # steps of it: once arms are known better than that it is made finer
GRID = 100  # points of a grid that is finer towards the boundary
FEW = 30  # below so many arms a prior cannot be learned: a flat one is kept
STEPS = 1  # EM steps per refresh, starting from the weights before: more of them fit noise
FLOOR = 0.08  # share of the prior that stays flat, so that no mean is ever ruled out
MOST_IN_KEY = 2**31  # two numbers below this fit into one key
UNCERTAIN = 1e-3  # so many arms on the wrong side are as good as none
NEGLIGIBLE = -60.0  # log-likelihoods below this are taken as zero: denormal numbers are slow
TEMPER = 0.7  # power of the likelihood in `loss`: boundary and prior are estimates too


class Posterior:
    """Posterior over the mean of every arm, on a grid shared by all arms.

    Arms with equal (pulls, sum) share a row, which keeps many arms fast."""

    def __init__(self, n_arms: int, k: int, rewards: RewardModel) -> None:
        self.n_arms, self.k, self.rewards = n_arms, k, rewards
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)
        self.row: IntArray = np.zeros(n_arms, dtype=np.int64)  # arm -> row
        self.row_pulls: IntArray = np.empty(0, dtype=np.int64)
        self.weights: FloatArray = np.empty((0, 0))  # (rows, grid): the posterior
        # (rows, grid): log-likelihood, largest in a row is 0
        self._log: FloatArray = np.empty((0, 0))
        self._split: tuple[BoolArray, float] | None = None
        self.grid: FloatArray = np.empty(0)
        self.flat: FloatArray = np.empty(0)  # weights of a flat prior
        self.prior: FloatArray = np.empty(0)
        self._resolved = 2 * BLURRED / EVEN  # the standard error for which the grid was made
        self._covered = (0.0, 1.0)  # the interval that the grid covers
        self._set_grid((np.arange(EVEN) + 0.5) / EVEN)

    def add(self, pulls: Pulls, rewards: Rewards) -> None:
        """Take in the reply to a request."""
        np.add.at(self.pulls, pulls.arms, pulls.times)
        np.add.at(self.sums, pulls.arms, rewards.sums)
        np.add.at(self.squares, pulls.arms, rewards.squares)

    def refresh(self) -> None:
        """Fit the prior to all arms and update every posterior."""
        steps = 4 * STEPS if self._fit_grid() else STEPS
        self.row_pulls, sums = self._group()
        self._log = self._rows(self.row_pulls, sums)
        likelihood = np.exp(self._log)
        if self.n_arms >= FEW:
            sizes = np.bincount(self.row) / self.n_arms
            for _ in range(steps):
                evidence = np.einsum("rg,g->r", likelihood, self.prior)
                share = np.einsum("r,rg->g", sizes / evidence, likelihood) * self.prior
                self.prior = (1 - FLOOR) * share + FLOOR * self.flat
        joint = likelihood * self.prior
        self.weights = joint / joint.sum(axis=1, keepdims=True)
        self._split = None

    def means(self) -> FloatArray:
        """Posterior mean of every arm."""
        means: FloatArray = self._row_means()[self.row]
        return means

    def _row_means(self) -> FloatArray:
        means: FloatArray = np.einsum("rg,g->r", self.weights, self.grid)
        return means

    def split(self, rng: np.random.Generator) -> tuple[BoolArray, float]:
        """The k arms of largest posterior mean as a mask, and the boundary halfway to the next one.

        Until there are more rewards the answer stays the same, ties included."""
        if self._split is None:
            means = self._row_means()
            once = np.ones(means.size, dtype=np.int64)
            top = share_out(self.k, self.row, self._from_boundary(means), once, rng) > 0
            outside, inside = self._sizes(top) > 0
            self._split = top, float(means[inside].min() + means[outside].max()) / 2
        return self._split

    def _from_boundary(self, means: FloatArray) -> FloatArray:
        """The means as they are compared. Those without a range may all be far from 0, where floats
        are coarse."""
        if self.rewards.has_range:
            return means
        shifted: FloatArray = means - np.partition(means, -self.k)[-self.k]
        return shifted

    def kinds(self, top: BoolArray) -> IntArray:
        """Arms of one row on one side of the choice are of one kind: rows outside first, then rows
        inside."""
        kinds: IntArray = self.row + self.row_pulls.size * top
        return kinds

    def balance(self, top: BoolArray) -> float:
        """The boundary beyond which as many arms are expected to lie on the wrong side inside the
        choice as outside.

        It minimises the expected total distance on the wrong side."""
        # expected number of arms per grid point
        outside, inside = product(self._sizes(top), self.weights)
        # at the upper edge of every grid point
        excess = np.cumsum(inside) - (outside.sum() - np.cumsum(outside))
        edges = np.append((self.grid[1:] + self.grid[:-1]) / 2, self.grid[-1])
        # Between arms that are known to be far apart nothing is lost on a whole interval: take its
        # middle.
        return float(np.interp([-UNCERTAIN, UNCERTAIN], excess, edges).mean())

    def expected_loss(self, top: BoolArray, boundary: float) -> float:
        """Expected total distance on the wrong side of the boundary."""
        return float(
            (self._sizes(top) * self._expected(self._wrong(boundary)[:2], self.weights)).sum()
        )

    def loss(self, boundary: float) -> FloatArray:
        """Expected distance on the wrong side of an arm of every kind under the tempered posterior:
        (2, rows)."""
        expected = self._expected(self._wrong(boundary) * self.prior, np.exp(TEMPER * self._log))
        loss: FloatArray = expected[:2] / expected[2]
        return loss

    @staticmethod
    def _expected(functions: FloatArray, weights: FloatArray) -> FloatArray:
        """Every function of the mean, expected for every row: (functions, rows)."""
        expected: FloatArray = np.einsum("fg,rg->fr", functions, weights)
        return expected

    def _sizes(self, top: BoolArray) -> FloatArray:
        """Number of arms of every kind: (outside and inside, rows)."""
        rows = self.row_pulls.size
        return np.bincount(self.kinds(top), minlength=2 * rows).reshape(2, rows).astype(np.float64)

    def _wrong(self, boundary: float) -> FloatArray:
        """How far every grid point lies on the wrong side for an arm outside, for one inside, and a
        row of ones."""
        functions = np.ones((3, self.grid.size))
        functions[0] = self.grid - boundary
        functions[1] = -functions[0]
        return np.maximum(functions, 0)

    def _group(self) -> tuple[IntArray, FloatArray]:
        """Put arms with equal data into one row; return the pulls and the sum of every row."""
        base = int(self.pulls.max()) + 1
        if not self.rewards.is_binary or base > MOST_IN_KEY:
            self.row = np.arange(self.n_arms)
            return self.pulls.copy(), self.sums.copy()
        distinct, self.row = grouped(self.pulls * base + self.sums.astype(np.int64))
        pulls, sums = np.divmod(distinct, base)
        return pulls, sums.astype(np.float64)

    def _rows(self, pulls: IntArray, sums: FloatArray) -> FloatArray:
        """Log-likelihood of every grid point for arms with such data, largest in a row 0."""
        pulls, sums = pulls[:, None], sums[:, None]
        if not self.rewards.has_range:
            log = -((self.grid - sums / pulls) ** 2) * pulls / (2 * self.variance())
        else:
            dispersion = self.dispersion()
            log = sums / dispersion * self._log_grid + (pulls - sums) / dispersion * self._log_rest
        log -= log.max(axis=1, keepdims=True)
        log[log < NEGLIGIBLE] = -np.inf
        return log

    def variance(self) -> float:
        """Variance of a reward around its arm's mean, pooled over arms; at most that of the
        declared model."""
        if self.pulls.sum() <= 2 * self.n_arms:
            return 0.25
        within = float((self.squares - self.sums**2 / self.pulls).sum()) / float(
            (self.pulls - 1).sum()
        )
        return float(np.clip(within, 1e-4, 0.25))

    def dispersion(self) -> float:
        """Variance of the rewards relative to 0/1 rewards of the same means: 1 for those, less for
        milder ones."""
        if self.rewards.is_binary or self.pulls.sum() <= 2 * self.n_arms:
            return 1.0
        means = self.sums / self.pulls
        spread = float((self.pulls * means * (1 - means)).sum())
        within = float((self.squares - self.sums * means).sum())
        return float(np.clip(within / max(spread, 1e-9), 1e-2, 1.0))

    def _fit_grid(self) -> bool:
        """Make the grid finer towards the boundary once the arms are known twice as well as when it
        was made."""
        noise = 0.25 if self.rewards.has_range else self.variance()
        often = int(0.9 * self.n_arms)
        error = math.sqrt(noise / int(np.partition(self.pulls, often)[often]))
        low, high = self._span(noise)
        if error > self._resolved / 2 and self._covered[0] <= low and high <= self._covered[1]:
            return False
        self._resolved, self._covered = error, (low, high)
        means = np.partition(self.sums / self.pulls, -self.k)
        boundary = float(means[-self.k] + means[: -self.k].max()) / 2
        distances = np.append(0.0, np.geomspace(error / 4, high - low, GRID // 4))
        even = np.linspace(low, high, GRID // 2 + 2)[1:-1]
        points = np.concatenate([even, boundary - distances, boundary + distances])
        edge = 1e-9 * (high - low)  # a mean of 0 or 1 would rule out all but one kind of rewards
        self._set_grid(np.unique(points[(points > low + edge) & (points < high - edge)]))
        return True

    def _span(self, noise: float) -> tuple[float, float]:
        """Where the means can be: [0, 1], or around what was seen if the scale is not known."""
        if self.rewards.has_range:
            return 0.0, 1.0
        means = self.sums / self.pulls
        least, most = float(means.min()), float(means.max())
        resolution = float(np.spacing(max(abs(least), abs(most), 1.0)))
        margin = max(3 * float(np.sqrt(noise / self.pulls.min())), 1000 * resolution)
        return least - margin, most + margin

    def _set_grid(self, points: FloatArray) -> None:
        """Start over from a flat prior on these points."""
        self.grid = points
        if self.rewards.has_range:
            self._log_grid, self._log_rest = np.log(points), np.log1p(-points)
        self.flat = np.gradient(points) / np.gradient(points).sum()
        self.prior = self.flat
