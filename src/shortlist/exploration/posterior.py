"""The posterior of every arm, and how a batch of pulls is shared out by priority.

Empirical Bayes, one prior shared by all arms. The prior is a set of weights on a grid of means,
fitted by nonparametric maximum likelihood (EM). The grid is even at first, later finest at the
boundary. It has to resolve the posterior of the arms that are known best; it is rebuilt only when
they are known twice as well as when it was built, because a new grid needs a new prior. Where
nothing was declared about rewards, their location and scale are learned. No guarantee rests on
it."""

import math
from copy import copy, deepcopy

import numpy as np
from scipy.special import polygamma, xlogy

from shortlist.arrays import ROUNDED, BoolArray, FloatArray, IntArray, grouped, product
from shortlist.exploration import tuning
from shortlist.exploration.guide import ArmMoments, FeatureGuide
from shortlist.features import Features
from shortlist.reward_models import UNIT_SIGMA, Bounded, RewardModel, SubGaussian, Undeclared
from shortlist.search import Pulls, Rewards, rewards_of

BEST_KNOWN = 0.9  # quantile of the pulls: the grid resolves all but the arms pulled most
# share of the span at both ends without a point: a mean of 0 or 1 would rule out all but one kind
# of rewards
EDGE = 1e-9

Span = tuple[float, float]


class Grid:
    """The means at which posteriors are held, and the flat prior on them."""

    def __init__(self, *, has_range: bool, even: bool = False, least: int = tuning.EVEN) -> None:
        """An `even` grid is as fine everywhere as others are at the boundary, of `least` points."""
        self.has_range = has_range
        self.even = even
        self.least = least
        self.points: FloatArray
        self.flat: FloatArray
        self.log_points: FloatArray  # log-likelihood of a success, and
        self.log_rest: FloatArray  # of a failure, where rewards have a range
        self.set((np.arange(least) + 0.5) / least)
        self._resolved = 2 * tuning.BLURRED / tuning.EVEN  # the standard error it was made for
        self._covered: Span = (0.0, 1.0)

    def set(self, points: FloatArray) -> None:
        """Hold posteriors at these points, rising."""
        self.points = points
        widths = np.gradient(points)
        self.flat = widths / widths.sum()
        if self.has_range:
            self.log_points = np.log(points)
            self.log_rest = np.log1p(-points)

    def fit(self, pulls: IntArray, sums: FloatArray, k: int, noise: float, span: Span) -> bool:
        """Rebuild the grid if arms are known twice as well by now, or means lie beyond it.

        `noise` is the variance of a reward, `span` the range of means. True if it was rebuilt."""
        error = standard_error(pulls, noise)
        low, high = span
        covered = self._covered[0] <= low and high <= self._covered[1]
        if covered and error > self._resolved / 2:
            return False
        self._resolved = error
        self._covered = span
        if self.even:
            self.set(even_points(error, span, self.least))
            return True
        # arms that were never pulled are taken to be like all others
        means = np.where(pulls > 0, sums / np.maximum(pulls, 1), sums.sum() / pulls.sum())
        self.set(points_around(empirical_boundary(means, k), error, span))
        return True


def standard_error(pulls: IntArray, noise: float) -> float:
    """The standard error of the mean of an arm that is pulled as often as the best known ones."""
    rank = int(BEST_KNOWN * pulls.size)
    often = max(1, int(np.partition(pulls, rank)[rank]))
    return math.sqrt(noise / often)


def empirical_boundary(means: FloatArray, k: int) -> float:
    """Halfway between the k-th and the next empirical mean."""
    ordered = np.partition(means, -k)
    return float(ordered[-k] + ordered[:-k].max()) / 2


def points_around(boundary: float, error: float, span: Span) -> FloatArray:
    """Half of the points evenly over the span, the others geometrically away from the boundary.

    The nearest are a quarter of the standard error apart: there it matters on which side a mean
    lies, and elsewhere only that it is far."""
    low, high = span
    even = np.linspace(low, high, tuning.FINE // 2 + 2)[1:-1]
    distances = np.geomspace(error / 4, high - low, tuning.FINE // 4)
    distances = np.append(0.0, distances)
    points = np.concatenate([even, boundary - distances, boundary + distances])
    edge = EDGE * (high - low)
    inside = (points > low + edge) & (points < high - edge)
    return np.unique(points[inside])


def even_points(error: float, span: Span, least: int) -> FloatArray:
    """Points evenly over the span, half the standard error apart, but not too many."""
    low, high = span
    number = int(np.clip(2 * (high - low) / error, least, tuning.MOST_EVEN))
    points: FloatArray = low + (high - low) * (np.arange(number) + 0.5) / number
    return points


LARGEST_VARIANCE = 0.25  # of a reward on the unit scale, whatever its distribution
LEAST_VARIANCE = 1e-4  # below, grids of means without a range would be finer than floats need
LEAST_DISPERSION = 1e-2  # below, a few equal rewards would pass for certainty
LEAST_LEARNED = 1e-4  # the same where the dispersion of an arm is drawn to that of all
# least and most rewards that the dispersion of all arms counts in that of one: few equal rewards of
# one arm may be many ones of a rare other reward
SHARED = 20.0, 1e3
TINY = 1e-9  # stands in for a variance of 0 in a ratio
MOST_IN_KEY = 2**31  # two numbers below this fit into one key
UNCERTAIN = 1e-3  # expected number of arms on the wrong side that counts as none
NEGLIGIBLE = -60.0  # log-likelihoods below this are taken as zero: denormal numbers are slow


class Posterior:
    """Posterior over the mean of every arm, on a grid shared by all arms.

    Arms with equal (pulls, sum) share a row, which keeps many arms fast."""

    def __init__(self, n_arms: int, k: int, rewards: RewardModel) -> None:
        self.n_arms = n_arms
        self.k = k
        self.rewards = rewards
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)
        self.row: IntArray = np.zeros(n_arms, dtype=np.int64)  # (arms,): the row of every arm
        self.row_pulls: IntArray = np.empty(0, dtype=np.int64)  # (rows,)
        self.weights: FloatArray = np.empty((0, 0))  # (rows, grid): the posterior
        # (rows, grid): log-likelihood, largest in a row is 0
        self._log: FloatArray = np.empty((0, 0))
        self._split: tuple[BoolArray, float] | None = None
        self._grid = Grid(has_range=rewards.has_range)
        self.prior: FloatArray = self.flat  # (grid,)
        self._guide: FeatureGuide | None = None
        self._row_prior: FloatArray | None = None  # (rows, grid): where features guide

    def follow(self, features: Features) -> None:
        """Let features of the arms guide: every arm gets a prior of its own."""
        self._guide = FeatureGuide.of(features.basis)
        self._grid = self._even_grid()
        self.prior = self.flat

    def _even_grid(self) -> Grid:
        affordable = max(tuning.EVEN, tuning.GUIDED_CELLS // self.n_arms)
        least = min(tuning.GUIDED_POINTS, affordable)
        return Grid(has_range=self.rewards.has_range, even=True, least=least)

    @property
    def guided(self) -> bool:
        """Whether features guide."""
        return self._guide is not None

    def first_pulls(self, least: int, rng: np.random.Generator) -> IntArray:
        """Pulls of every arm in the first batch: of all arms, or of some where features guide and
        no more are asked for."""
        if self._guide is not None and least == 0 and self._guide.first_arms < self.n_arms:
            times = np.zeros(self.n_arms, dtype=np.int64)
            times[rng.permutation(self.n_arms)[: self._guide.first_arms]] = 1
            return times
        return np.full(self.n_arms, max(tuning.FIRST, -(-least // self.n_arms)))

    @property
    def grid(self) -> FloatArray:
        """The means at which posteriors are held: (grid,)."""
        return self._grid.points

    @property
    def flat(self) -> FloatArray:
        """The weights of a flat prior: (grid,)."""
        return self._grid.flat

    @property
    def _counts(self) -> IntArray:
        """Pulls to divide by: (arms,)."""
        return np.maximum(self.pulls, 1)

    @property
    def spent(self) -> int:
        """Pulls made in all."""
        return int(self.pulls.sum())

    def among(self, arms: IntArray) -> "Posterior":
        """The posterior of these arms only."""
        some = copy(self)
        some.n_arms, some.row = arms.size, self.row[arms]
        some.pulls, some.sums, some.squares = self.pulls[arms], self.sums[arms], self.squares[arms]
        some._split = None
        some._grid = deepcopy(self._grid)
        some._guide = None if self._guide is None else self._guide.among(arms)
        if some.spent:
            some.refresh()
        return some

    def add(self, pulls: Pulls, rewards: Rewards) -> None:
        """Add the rewards of a batch."""
        np.add.at(self.pulls, pulls.arms, pulls.times)
        np.add.at(self.sums, pulls.arms, rewards.sums)
        np.add.at(self.squares, pulls.arms, rewards.squares)

    def refresh(self) -> None:
        """Fit the prior to all arms and update every posterior."""
        rebuilt = self._fit_grid()
        self.row_pulls, sums = self._group()
        self._log = self._log_likelihood(self.row_pulls, sums)
        likelihood = np.exp(self._log)
        if self.n_arms >= tuning.FEW:
            self._fit_prior(likelihood, tuning.STEPS * (tuning.NEW_GRID_STEPS if rebuilt else 1))
        self._row_prior = self._guided_prior(likelihood)
        joint = likelihood * (self.prior if self._row_prior is None else self._row_prior)
        self.weights = joint / joint.sum(axis=1, keepdims=True)
        self._split = None

    def _guided_prior(self, likelihood: FloatArray) -> FloatArray | None:
        """The prior of every arm where features guide: (arms, grid)."""
        if self._guide is None:
            return None
        binary = self.rewards.has_range
        seen = ArmMoments(
            self.pulls,
            self.sums / self._counts,
            None if binary else self.variance(),
            self.dispersion() if binary else 1.0,
        )
        return self._guide.prior(seen, likelihood, self.prior, self.grid, self.flat)

    def means(self) -> FloatArray:
        """Posterior mean of every arm."""
        return self._row_means()[self.row]

    def split(self, rng: np.random.Generator) -> tuple[BoolArray, float]:
        """The k arms of largest posterior mean as a mask, and the boundary halfway to the next one.

        Here the choice changes first, so this boundary guides exploration; `balance` has the one to
        certify at. Until there are more rewards the answer stays the same, ties included."""
        if self._split is None:
            means = self._row_means()  # (rows,)
            once = np.ones(means.size, dtype=np.int64)
            chosen = share_out(self.k, self.row, self._comparable(means), once, rng) > 0
            outside, inside = self._sizes(chosen) > 0  # (rows,) each: rows with arms there
            boundary = float(means[inside].min() + means[outside].max()) / 2
            self._split = chosen, boundary
        return self._split

    def balance(self, chosen: BoolArray) -> float:
        """The boundary with as many arms expected on the wrong side inside the choice as outside.

        There the derivative of the expected total distance on the wrong side is 0, so this boundary
        minimises the charges of a certificate. It depends on the tails of all arms, where that
        of `split` depends on the means of two; with few pulls the two differ much."""
        # (grid,) each: expected number of arms at every mean
        outside, inside = product(self._sizes(chosen), self.weights)
        # (grid,): arms inside below the upper edge of every point, less arms outside above it
        excess = np.cumsum(inside) - (outside.sum() - np.cumsum(outside))
        edges = np.append((self.grid[1:] + self.grid[:-1]) / 2, self.grid[-1])
        # Between arms that are known to be far apart nothing is lost on a whole interval: take its
        # middle.
        return float(np.interp([-UNCERTAIN, UNCERTAIN], excess, edges).mean())

    def kinds(self, chosen: BoolArray) -> IntArray:
        """The kind of every arm, its row and its side: rows outside first, then rows inside."""
        return self.row + self.row_pulls.size * chosen

    def priorities(self, rng: np.random.Generator) -> tuple[IntArray, FloatArray, IntArray]:
        """The kind of every arm; expected loss per pull, and pulls, of an arm of every kind."""
        chosen, boundary = self.split(rng)
        priority = self.loss(boundary) / np.maximum(self.row_pulls, 0.5)  # (sides, rows)
        pulls = np.concatenate([self.row_pulls, self.row_pulls])
        return self.kinds(chosen), priority.ravel(), pulls

    def arm_losses(self, rng: np.random.Generator) -> FloatArray:
        """Expected distance on the wrong side under the tempered posterior: (arms,)."""
        chosen, boundary = self.split(rng)
        losses: FloatArray = self.loss(boundary).ravel()[self.kinds(chosen)]
        return losses

    def expected_loss(self, chosen: BoolArray, boundary: float) -> float:
        """Expected total distance on the wrong side of the boundary."""
        each = _expected(self._wrong(boundary)[:2], self.weights)  # (sides, rows)
        return float((self._sizes(chosen) * each).sum())

    def loss(self, boundary: float) -> FloatArray:
        """Expected distance on the wrong side under the tempered posterior, per kind: (2, rows)."""
        tempered = np.exp(tuning.TEMPER * self._log)  # (rows, grid)
        if self._row_prior is None:
            expected = _expected(self._wrong(boundary) * self.prior, tempered)  # (3, rows)
        else:
            expected = _expected(self._wrong(boundary), tempered * self._row_prior)
        loss: FloatArray = expected[:2] / expected[2]
        return loss

    def variance(self) -> float:
        """Variance of a reward around its arm's mean, pooled over arms; at most the largest."""
        if self.spent <= 2 * self.n_arms:
            return LARGEST_VARIANCE
        within = float((self.squares - self.sums**2 / self._counts).sum())
        freedom = float(np.maximum(self.pulls - 1, 0).sum())
        return float(np.clip(within / freedom, LEAST_VARIANCE, LARGEST_VARIANCE))

    @property
    def graded(self) -> bool:
        """Whether rewards have a range and are known to be more than 0 and 1."""
        if not self.rewards.has_range or self.rewards.is_binary:
            return False
        return bool((self.sums != self.squares).any())

    def dispersion(self) -> float:
        """Variance of the rewards relative to 0/1 rewards of the same means, 1 at most."""
        if self.rewards.is_binary or self.spent <= 2 * self.n_arms:
            return 1.0
        means = self.sums / self._counts
        of_binary = float((self.pulls * means * (1 - means)).sum())
        within = float((self.squares - self.sums * means).sum())
        return float(np.clip(within / max(of_binary, TINY), LEAST_DISPERSION, 1.0))

    def dispersions(self) -> FloatArray:
        """The same for every arm, drawn to that of all arms as far as they are alike: (arms,)."""
        own, of_binary = self._own_dispersions()
        freedom = np.maximum(self.pulls - 1, 0)
        shared = self._shared_freedom()
        # variances may rather be alike than dispersions: the larger of the two is the safer guess
        of_one = np.maximum(of_binary, TINY) / self._counts
        alike = np.clip(self.variance() / of_one, self._common_dispersion(), 1.0)
        drawn = (shared * alike + freedom * own) / (shared + freedom)
        return np.clip(drawn, LEAST_LEARNED, 1.0)

    def _common_dispersion(self) -> float:
        """The mean dispersion of the arms, those with the most to show first."""
        if self.spent <= 2 * self.n_arms:
            return 1.0
        own, weight = self._own_dispersions()
        return float(np.clip(own @ weight / max(weight.sum(), TINY), LEAST_LEARNED, 1.0))

    def _own_dispersions(self) -> tuple[FloatArray, FloatArray]:
        """The dispersion of every arm on its own, and its weight among all: (arms,) each."""
        of_binary = np.maximum(self.sums * (1 - self.sums / self._counts), 0)  # variance, N times
        within = self.squares - self.sums**2 / self._counts
        ratio = np.clip(within / np.maximum(of_binary, TINY), 0, 1)
        # of N rewards, (N - 1 + ratio) / N of the variance of 0/1 rewards shows within them
        return self.pulls * ratio / np.maximum(self.pulls - 1 + ratio, TINY), of_binary

    def _shared_freedom(self) -> float:
        """Rewards that the dispersion of all arms counts in that of one (Smyth 2004).

        The less logarithms of dispersions vary beyond chance, the more."""
        own, weight = self._own_dispersions()
        known = (weight > TINY) & (self.pulls > 1)
        if known.sum() < 3:
            return SHARED[1]
        logs = np.log(np.maximum(own[known], LEAST_LEARNED))
        by_chance = polygamma(1, (self.pulls[known] - 1) / 2).mean()
        excess = float(logs.var(ddof=1) - by_chance)
        if excess <= 0:
            return SHARED[1]
        return float(np.clip((1 + math.sqrt(1 + 2 * excess)) / excess, *SHARED))

    def _fit_grid(self) -> bool:
        """Rebuild the grid where that is due, with a flat prior on it. True if it was."""
        noise = self.variance()
        if self.rewards.has_range:
            noise = LARGEST_VARIANCE * (self._common_dispersion() if self.graded else 1.0)
        rebuilt = self._grid.fit(self.pulls, self.sums, self.k, noise, self._span(noise))
        if rebuilt:
            self.prior = self.flat
        return rebuilt

    def _fit_prior(self, likelihood: FloatArray, steps: int) -> None:
        """Steps of EM: the new prior is the mean posterior, mixed with a flat floor."""
        arms = np.bincount(self.row) / self.n_arms  # (rows,): share of the arms
        for _ in range(steps):
            evidence = np.einsum("rg,g->r", likelihood, self.prior)
            mean_posterior = np.einsum("r,rg->g", arms / evidence, likelihood) * self.prior
            self.prior = (1 - tuning.FLOOR) * mean_posterior + tuning.FLOOR * self.flat

    def _span(self, noise: float) -> Span:
        """The range of means: [0, 1], or around the empirical means if there is no range."""
        if self.rewards.has_range:
            return 0.0, 1.0
        seen = self.pulls > 0
        means = self.sums[seen] / self.pulls[seen]
        least = float(means.min())
        most = float(means.max())
        resolution = float(np.spacing(max(abs(least), abs(most), 1.0)))  # of floats there
        deviations = 3 * float(np.sqrt(noise / self.pulls[seen].min()))
        margin = max(deviations, 1000 * resolution)
        return least - margin, most + margin

    def _group(self) -> tuple[IntArray, FloatArray]:
        """Put arms with equal data into one row; return the pulls and the sum of every row."""
        base = int(self.pulls.max()) + 1
        if self.guided or not self.rewards.is_binary or base > MOST_IN_KEY:
            self.row = np.arange(self.n_arms)
            return self.pulls.copy(), self.sums.copy()
        distinct, self.row = grouped(self.pulls * base + self.sums.astype(np.int64))
        pulls, sums = np.divmod(distinct, base)
        return pulls, sums.astype(np.float64)

    def _log_likelihood(self, pulls: IntArray, sums: FloatArray) -> FloatArray:
        """Log-likelihood of every mean of the grid, largest in a row 0: (rows, grid)."""
        pulls = pulls[:, None]
        sums = sums[:, None]
        seen = np.maximum(pulls, 1)  # of an arm that was never pulled every mean is as likely
        if not self.rewards.has_range:
            log = -((self.grid - sums / seen) ** 2) * pulls / (2 * self.variance())
        elif self.graded:  # a row is an arm
            log = self._log_graded(pulls, sums / seen)
        else:
            dispersion = self.dispersion()
            successes = sums / dispersion * self._grid.log_points
            failures = (pulls - sums) / dispersion * self._grid.log_rest
            log = successes + failures
        return self._trimmed(log)

    @staticmethod
    def _trimmed(log: FloatArray) -> FloatArray:
        """Log-likelihoods whose largest in a row is 0."""
        log -= log.max(axis=1, keepdims=True)
        log[log < NEGLIGIBLE] = -np.inf
        return log

    def _log_graded(self, pulls: IntArray, means: FloatArray) -> FloatArray:
        """Log-likelihood where the variance is learned, too: that of Student's t, (arms, grid).

        Squared deviations are divergences, which fit means near 0 and 1 better."""
        means = np.clip(means, 0, 1)
        entropy = xlogy(means, means) + xlogy(1 - means, 1 - means)
        cross = means * self._grid.log_points + (1 - means) * self._grid.log_rest
        squared = 2 * pulls * np.maximum(entropy - cross, 0) / self.dispersions()[:, None]
        freedom = self._shared_freedom() + np.maximum(pulls - 1, 0)
        return -(freedom + 1) / 2 * np.log1p(squared / freedom)

    def _row_means(self) -> FloatArray:
        means: FloatArray = np.einsum("rg,g->r", self.weights, self.grid)
        return means

    def _comparable(self, means: FloatArray) -> FloatArray:
        """The means, shifted so that single precision tells those near the k-th apart.

        Means without a range may all be far from 0, where floats are coarse."""
        if self.rewards.has_range:
            return means
        shifted: FloatArray = means - np.partition(means, -self.k)[-self.k]
        return shifted

    def _sizes(self, chosen: BoolArray) -> FloatArray:
        """Number of arms of every kind: (sides, rows), outside first."""
        rows = self.row_pulls.size
        counts = np.bincount(self.kinds(chosen), minlength=2 * rows)
        return counts.reshape(2, rows).astype(np.float64)

    def _wrong(self, boundary: float) -> FloatArray:
        """Distance of every mean on the wrong side, outside and inside, and ones: (3, grid)."""
        functions = np.ones((3, self.grid.size))
        functions[0] = self.grid - boundary
        functions[1] = -functions[0]
        return np.maximum(functions, 0)


def _expected(functions: FloatArray, weights: FloatArray) -> FloatArray:
    """Every function of the mean, expected for every row: (functions, rows)."""
    result: FloatArray = np.einsum("fg,rg->fr", functions, weights)
    return result


TOLERANCE = 1e-9  # of a sum of squares beyond the sum that rounding may make up


def posterior_of(n_arms: int, k: int, rewards: RewardModel) -> Posterior:
    """The posterior for these rewards."""
    if isinstance(rewards, Undeclared) or not rewards.knows_spread:
        return UndeclaredPosterior(n_arms, k, ranged=rewards.knows_spread)
    return Posterior(n_arms, k, rewards)


class UndeclaredPosterior(Posterior):
    """As for rewards in [0, 1] as long as they can be such; from then on a normal model.

    In [0, 1] no sum of squares exceeds the sum. Where one does, rewards are moved and scaled by
    their mean and spread so far, and the variance of every arm is drawn to that of all (Smyth
    2004). So the choice does not depend on the units of rewards."""

    def __init__(self, n_arms: int, k: int, *, ranged: bool = True) -> None:
        """Without `ranged` the normal model is used from the beginning."""
        super().__init__(n_arms, k, Bounded())
        self._centre, self._scale = 0.0, 1.0
        self._may_be_ranged = ranged
        self._pivot: float | None = None  # the first reward, where single ones are known

    def add(self, pulls: Pulls, rewards: Rewards) -> None:
        """Add the rewards of a batch."""
        if rewards.each is not None and not self._may_be_ranged:
            rewards = self._around_pivot(pulls.times, rewards.each)
        super().add(pulls, self._scaled(pulls.times, rewards.sums, rewards.squares))

    def _around_pivot(self, times: IntArray, each: FloatArray) -> Rewards:
        """The rewards less the first of all, so that squares far from 0 keep their digits."""
        if self._pivot is None:
            self._pivot = float(each[0])
        entries = np.repeat(np.arange(times.size), times)
        return rewards_of(each - self._pivot, entries, times.size)

    def refresh(self) -> None:
        """Fit the prior to all arms and update every posterior."""
        outside = (self.squares > self.sums * (1 + TOLERANCE)).any()
        if self.rewards.has_range and (outside or not self._may_be_ranged):
            self._leave_range()
        super().refresh()

    def _leave_range(self) -> None:
        """Change to the normal model, with the rewards so far."""
        centre = float(self.sums.sum() / self.spent)
        spread = math.sqrt(max(0.0, float(self.squares.sum() / self.spent) - centre**2))
        self._centre, self._scale = centre, 2 * spread or 1.0
        rewards = self._scaled(self.pulls, self.sums, self.squares)
        self.sums, self.squares = rewards.sums, rewards.squares
        self.rewards = SubGaussian(UNIT_SIGMA)
        self._grid = self._even_grid() if self.guided else Grid(has_range=False)
        self.prior = self.flat

    def _scaled(self, times: IntArray, sums: FloatArray, squares: FloatArray) -> Rewards:
        """The same rewards as (x - centre) / scale; no variance is rounded down."""
        if self.rewards.has_range and self._scale == 1.0:
            return Rewards(sums, squares)
        centre, scale = self._centre, self._scale
        around = squares - 2 * centre * sums + times * centre**2
        rounded = 4 * ROUNDED * (centre / scale) ** 2 * times
        return Rewards((sums - times * centre) / scale, around / scale**2 + rounded)

    def variance(self) -> float:
        """Variance of a reward around its arm's mean, pooled over arms; the total is worth one."""
        if self.rewards.has_range:
            return super().variance()
        within = float(self._within().sum())
        freedom = float(np.maximum(self.pulls - 1, 0).sum())
        return max(LEAST_VARIANCE, (within + LARGEST_VARIANCE) / (freedom + 1))

    def _within(self) -> FloatArray:
        """Squared deviations from every arm's mean: (arms,)."""
        return np.maximum(0.0, self.squares - self.sums**2 / self._counts)

    def _log_likelihood(self, pulls: IntArray, sums: FloatArray) -> FloatArray:
        """That of Student's t, where the variance of an arm is learned, too: (arms, grid)."""
        if self.rewards.has_range:
            return super()._log_likelihood(pulls, sums)
        freedom = SHARED[0] + np.maximum(pulls - 1, 0)  # (arms,)
        variances = (SHARED[0] * self.variance() + self._within()) / freedom
        means = sums / np.maximum(pulls, 1)  # (arms,)
        squared = (self.grid - means[:, None]) ** 2 * (pulls / variances)[:, None]
        log: FloatArray = -(freedom[:, None] + 1) / 2 * np.log1p(squared / freedom[:, None])
        return self._trimmed(log)


def batch_size(n_arms: int, spent: int, early: float, growth: float) -> int:
    """A share of all pulls so far, but enough for many arms and for parallel workers."""
    at_first = min(n_arms, early * spent)
    return int(max(tuning.LEAST_BATCH, tuning.PER_ARM * n_arms, at_first, growth * spent))


def descending(values: FloatArray, rng: np.random.Generator) -> IntArray:
    """Positions of the values from largest to smallest, ties at random.

    Values are compared in single precision: the last bits differ between machines and must not
    decide."""
    order = rng.permutation(values.size)
    with np.errstate(over="ignore", under="ignore"):
        falling = -values[order].astype(np.float32)
    return order[falling.argsort(kind="stable")]


def share_out(
    batch: int, kind: IntArray, priority: FloatArray, at_most: IntArray, rng: np.random.Generator
) -> IntArray:
    """Share `batch` pulls: highest priority first, each arm as many as it may get, ties at random.

    `kind` is the kind of every arm; `priority` and `at_most` are those of an arm of a kind."""
    order = descending(priority, rng)
    demand = np.bincount(kind, minlength=priority.size) * at_most  # (kinds,)
    filled = demand[order].cumsum()
    last = int(filled.searchsorted(batch))  # the place in `order` where the batch ends, if it does
    full = at_most.copy()
    full[order[last:]] = 0
    times: IntArray = full[kind]  # (arms,)
    if last < order.size:
        left = batch - int(filled[last - 1] if last else 0)
        arms = (kind == order[last]).nonzero()[0]
        _share_among(times, arms, left, int(at_most[order[last]]), rng)
    return times


def _share_among(
    times: IntArray, arms: IntArray, left: int, each: int, rng: np.random.Generator
) -> None:
    """Give the rest to arms of one kind, drawn at random: `each`, and the last one less."""
    served = rng.permutation(arms)[: -(-left // each)]
    times[served] = each
    times[served[-1:]] -= each * served.size - left
