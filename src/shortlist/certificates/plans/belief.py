"""What all rewards so far say about the means, with one prior for all arms.

The prior is learned by EM, on a grid that resolves the boundary far better than the rewards so far
do, since plans will draw many more. The likeliest prior is made of spikes, and a boundary between
two of them is overconfident and wrong. Smooth priors separate ties, and put the boundary too far
from where most arms are. The effect of smoothing on rewards drawn from the prior itself shows by
how much: that is corrected. No guarantee rests on it."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from shortlist.arrays import FloatArray, IntArray, grouped_by, product
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.bound import RIGHT_ANGLE

LEAST_EXPECTED = 1e-6  # arms below which a number of successes is left out


@dataclass(frozen=True, slots=True)
class RewardCounts:
    """Distinct pairs of pulls and successes, and the number of arms with each; (rows,) each."""

    pulls: FloatArray
    successes: FloatArray
    sizes: FloatArray

    @property
    def deviation(self) -> float:
        """Average standard deviation of the angle of an arm, by its pulls so far."""
        return 0.5 / math.sqrt(float(np.average(self.pulls, weights=self.sizes)))

    def log_likelihood(self, grid: FloatArray) -> FloatArray:
        """Log-likelihood of every mean, relative to the likeliest: (rows, grid)."""
        log = log_likelihood(self.pulls, self.successes, grid)
        log -= log.max(axis=1, keepdims=True)
        return log

    def replayed(self, posterior: FloatArray, grid: FloatArray) -> "RewardCounts":
        """Expected counts if every arm is pulled as often again; sizes are no whole numbers."""
        rows = []
        for times in np.unique(self.pulls).tolist():
            same = self.pulls == times
            arms = product(self.sizes[None, same], posterior[same])  # (1, grid)
            successes = np.arange(times + 1)
            sizes = product(arms, chances(times, successes, grid).T)[0]
            likely = sizes > LEAST_EXPECTED
            rows.append([np.full(sizes.size, times)[likely], successes[likely], sizes[likely]])
        return RewardCounts(*(np.concatenate(each) for each in zip(*rows, strict=True)))


def smooth_priors(rows: RewardCounts, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Priors of decreasing bandwidth, (widths, grid), and the weight of each.

    Weights follow the likelihood of all rewards, with a penalty per halving of the bandwidth: the
    likeliest prior of all consists of spikes."""
    likelihood = np.exp(rows.log_likelihood(grid))
    priors = [_flat(grid)]
    scores: list[float] = []
    for halvings, width in enumerate(tuning.BANDWIDTHS):
        kernel = smoothing(grid, width * rows.deviation)
        priors.append(_by_em(likelihood, rows.sizes, priors[-1], kernel, priors[0]))
        of_arms = np.log(np.einsum("rg,g->r", likelihood, priors[-1]))
        evidence = float(np.einsum("r,r->", rows.sizes, of_arms))
        scores.append(evidence - tuning.LIKELIHOOD_GAIN * halvings)
        if scores[-1] < max(scores) - tuning.LIKELIHOOD_DEFICIT:
            break
    weights = np.exp(np.array(scores) - max(scores))
    return np.stack(priors[1:]), weights / weights.sum()


def sharpened(
    prior: FloatArray, rows: RewardCounts, posterior: FloatArray, grid: FloatArray, power: float
) -> FloatArray:
    """A prior with the effect of smoothing undone.

    Fitted to rewards drawn from the prior, the prior comes out wider; by about as much it was wider
    than the truth ("twicing", Tukey 1977). The power says how much of that is undone."""
    priors, weights = smooth_priors(rows.replayed(posterior, grid), grid)
    wider = np.einsum("w,wg->g", weights, priors)
    sharper = prior * (prior / wider) ** power
    result: FloatArray = sharper / sharper.sum()
    return result


def smoothing(grid: FloatArray, width: float) -> FloatArray:
    """Normal kernel in angles: the smoothed weight of every point, (to, from)."""
    angles = angle(grid)
    apart = (angles[:, None] - angles) / width
    kernel = np.exp(-(apart**2) / 2) * np.gradient(angles)[:, None]
    result: FloatArray = kernel / kernel.sum(axis=0)
    return result


def log_likelihood(pulls: FloatArray, successes: FloatArray, grid: FloatArray) -> FloatArray:
    """Log-probability of these rewards in one order, for every mean: (rows, grid)."""
    log: FloatArray = successes[:, None] * np.log(grid)
    log += (pulls - successes)[:, None] * np.log1p(-grid)
    return log


def chances(pulls: float, successes: FloatArray, grid: FloatArray) -> FloatArray:
    """Probability of these successes after this many pulls, for every mean: (rows, grid)."""
    log_orders = gammaln(pulls + 1) - gammaln(successes + 1) - gammaln(pulls - successes + 1)
    log = log_likelihood(np.full(successes.size, pulls), successes, grid)
    return np.exp(log + log_orders[:, None])


def angle(mean: FloatArray | float) -> FloatArray:
    """The angle of a mean, in which estimates have about the same variance for all means."""
    return np.arcsin(np.sqrt(mean))


def _by_em(
    likelihood: FloatArray,
    sizes: FloatArray,
    prior: FloatArray,
    kernel: FloatArray,
    flat: FloatArray,
) -> FloatArray:
    """Steps of EM: the mean posterior, smoothed (Silverman 1990), and a flat floor."""
    shares = sizes / sizes.sum()
    for _ in range(tuning.EM_STEPS):
        before = prior
        evidence = np.einsum("rg,g->r", likelihood, prior)
        mean_posterior = np.einsum("r,rg->g", shares / evidence, likelihood) * prior
        smooth = np.einsum("gh,h->g", kernel, mean_posterior)
        prior = (1 - tuning.FLAT_FLOOR) * smooth + tuning.FLAT_FLOOR * flat
        if float(np.abs(prior - before).sum()) < tuning.EM_CHANGE:
            break
    return prior


def _flat(grid: FloatArray) -> FloatArray:
    widths = np.gradient(grid)
    flat: FloatArray = widths / widths.sum()
    return flat


LEAST_ANGLE = 0.02  # least angle of a mean, and least distance from the largest angle
LEAST_SPREAD = 1e-5  # of a belief
OUTERMOST_BOUNDARY = 2e-3  # no boundary is nearer to 0 or 1


@dataclass(frozen=True, slots=True)
class ArmGroup:
    """Arms with a similar posterior, and the average of their posteriors."""

    arms: IntArray
    pulls: float  # of an arm so far, on average
    sharp: FloatArray  # (grid,): the belief
    blunt: FloatArray  # (grid,): if no arm had been pulled more than BLUNT times


@dataclass(frozen=True, slots=True)
class GroupBelief:
    """The belief about an arm of a group before its fresh rewards, on a grid of means."""

    grid: FloatArray  # (grid,)
    prior: FloatArray  # (grid,): blunt, to stop and to choose by
    believed: FloatArray  # (grid,): to charge by
    sharp: FloatArray  # (grid,): to forecast by

    def posterior(self, pulls: FloatArray, successes: FloatArray) -> FloatArray:
        """The posterior after these fresh rewards: (states, grid)."""
        log = log_likelihood(pulls, successes, self.grid)
        return _normalised(np.exp(log - log.max(axis=1, keepdims=True)) * self.prior)

    def smoothed(self, width: float) -> "GroupBelief":
        """The same with a prior that is smoothed normally in angles."""
        return replace(self, prior=product(smoothing(self.grid, width), self.prior[:, None])[:, 0])

    def moved(self, old: float, new: float) -> "GroupBelief":
        """The same with all means moved by the angle between two boundaries."""
        angles = np.clip(
            angle(self.grid) + angle(new) - angle(old), LEAST_ANGLE, RIGHT_ANGLE - LEAST_ANGLE
        )
        return replace(self, grid=np.sin(angles) ** 2)


class Belief:
    """The posterior of every arm on a grid, and where the boundary is believed to be."""

    def __init__(
        self, pulls: IntArray, sums: FloatArray, k: int, guess: float, *, sharpen: bool = False
    ) -> None:
        (row_pulls, row_sums), self.row = grouped_by(pulls.astype(np.float64), sums)
        self.rows = RewardCounts(row_pulls, row_sums, np.bincount(self.row).astype(np.float64))
        self.k = k
        self._fit(guess)
        if abs(angle(self._cheapest()) - angle(guess)) > tuning.NEAR_ANGLE / 2:
            self._fit(self._cheapest())
        self._place_boundary()
        self.moved = 0.0  # move of the boundary by sharpening the prior
        if sharpen and self._well_known > 0:
            before = self.boundary
            power = self.edge * self._well_known
            self._believe(sharpened(self.prior, self.rows, self.sharp, self.grid, power))
            self._place_boundary()
            self.moved = self.boundary - before

    @property
    def nodes(self) -> list[tuple[float, float]]:
        """Boundaries that plans are made for, and the weight of each."""
        away = tuning.NODE_DISTANCE * self.error
        values = np.clip(
            self.boundary + np.array([-away, 0.0, away]), OUTERMOST_BOUNDARY, 1 - OUTERMOST_BOUNDARY
        )
        weights = (tuning.NODE_WEIGHT, 1 - 2 * tuning.NODE_WEIGHT, tuning.NODE_WEIGHT)
        return list(zip(values.tolist(), weights, strict=True))

    @property
    def middle(self) -> float:
        """Where proofs are expected: a sharper prior has moved the boundary not far enough yet."""
        most = tuning.MOST_AHEAD * self.error
        ahead = float(np.clip(tuning.MOVED_AHEAD * self.moved, -most, most))
        return float(np.clip(self.boundary + ahead, OUTERMOST_BOUNDARY, 1 - OUTERMOST_BOUNDARY))

    @property
    def deviation(self) -> float:
        """Average standard deviation of the angle of an arm, by its pulls so far."""
        return self.rows.deviation

    @property
    def all_arms(self) -> FloatArray:
        """The mean belief about all arms: (grid,)."""
        result: FloatArray = self.expected / self.row.size
        return result

    @property
    def edge(self) -> float:
        """A factor that grows as fewer arms are above the boundary, or below it."""
        n_arms = self.row.size
        result: float = (n_arms / min(self.k, n_arms - self.k)) ** tuning.EDGE_POWER
        return result

    def groups(self, alike_pulls: float) -> list[ArmGroup]:
        """Arms that are similarly far from the boundary, with similar pulls.

        These differ by the factor `alike_pulls` at most."""
        means = np.einsum("rg,g->r", self.sharp, self.grid)
        variances = np.einsum("rg,g->r", self.sharp, self.grid**2) - means**2
        deviations = (means - self.boundary) / np.sqrt(np.maximum(variances, LEAST_SPREAD**2))
        place = np.digitize(deviations, tuning.ALIKE).astype(np.int64)  # (rows,)
        often = np.log(self.rows.pulls / self.rows.pulls.min()) / math.log(alike_pulls)
        kinds, group = grouped_by(place[self.row], often.astype(np.int64)[self.row])
        return [self.group(np.flatnonzero(group == each)) for each in range(kinds[0].size)]

    def group_belief(self, group: ArmGroup) -> GroupBelief:
        """The belief about a group, with a share of that about all arms for errors."""
        prior = (1 - tuning.SOFT) * group.blunt + tuning.SOFT * self.all_arms
        believed = (1 - tuning.DOUBT) * group.sharp + tuning.DOUBT * self.all_arms
        return GroupBelief(self.grid, prior, believed, group.sharp)

    def with_rewards(self, pulls: IntArray, successes: IntArray) -> "Belief":
        """The belief if arms had these rewards too."""
        all_pulls = self.rows.pulls[self.row].astype(np.int64) + pulls
        return Belief(all_pulls, self.rows.successes[self.row] + successes, self.k, self.boundary)

    def group(self, arms: IntArray) -> ArmGroup:
        """These arms as one group, whether they are alike or not."""
        shares = np.bincount(self.row[arms], minlength=self.rows.sizes.size)[None] / arms.size
        pulls = product(shares, self.rows.pulls[:, None])
        sharp = product(shares, self.sharp)[0]
        blunt = product(shares, self.blunt)[0]
        return ArmGroup(arms, float(pulls[0, 0]), sharp, blunt)

    def _fit(self, boundary: float) -> None:
        """Fit the prior on a grid around this boundary."""
        self.grid = grid_around(boundary)  # (grid,)
        priors, weights = smooth_priors(self.rows, self.grid)
        self._believe(np.einsum("w,wg->g", weights, priors))
        self.disagreement = self._disagreement(priors, weights)

    def _believe(self, prior: FloatArray) -> None:
        """Take a prior, and find every posterior."""
        self.prior = prior  # (grid,)
        log = self.rows.log_likelihood(self.grid)
        self.sharp = _normalised(np.exp(log) * prior)  # (rows, grid)
        power = np.minimum(1.0, tuning.BLUNT / self.rows.pulls)[:, None]
        self.blunt = _normalised(np.exp(power * log) * prior)  # (rows, grid)
        self.expected = product(self.rows.sizes[None], self.sharp)[0]  # (grid,): arms

    def _place_boundary(self) -> None:
        self.boundary = float(np.clip(self._cheapest(), OUTERMOST_BOUNDARY, 1 - OUTERMOST_BOUNDARY))
        self.error = self._error()

    @property
    def _well_known(self) -> float:
        """1 if the boundary is far better known than any arm, 0 if hardly, or if put aside."""
        if abs(self.boundary - self._balance(self.expected)) > tuning.PUT_ASIDE * self.error:
            return 0.0
        deviation = 2 * self.deviation * math.sqrt(self.boundary * (1 - self.boundary))
        return max(0.0, 1 - (self.error / (tuning.UNSURE * deviation)) ** 2)

    def _disagreement(self, priors: FloatArray, weights: FloatArray) -> float:
        """Standard deviation of where priors put the boundary."""
        likelihood = np.exp(self.rows.log_likelihood(self.grid))
        found = []
        for prior in priors:
            expected = product(self.rows.sizes[None], _normalised(likelihood * prior))[0]
            found.append(self._balance(expected))
        mean = float(np.average(found, weights=weights))
        return math.sqrt(float(np.average((np.array(found) - mean) ** 2, weights=weights)))

    def _balance(self, expected: FloatArray) -> float:
        """The value with k of the expected arms above it."""
        return float(np.interp(-self.k, -_above(expected), self.grid))

    def _cheapest(self) -> float:
        """A boundary with about k arms above and few next to it.

        In a gap between arms it may be anywhere, and far from most of them is best."""
        balance = self._balance(self.expected)
        candidates = np.append(balance, self.grid)
        above = np.interp(candidates, self.grid, _above(self.expected))
        z = (above - self.k) / max(self._miscount(balance)[0], 1e-12)
        likely = np.abs(z) < tuning.LIKELY
        likely[0] = True  # where more than k arms are at the end of the grid, none is
        gaps = self.grid - candidates[likely, None]  # (candidates, grid)
        hard = np.einsum("cg,g->c", 1 / (gaps**2 + tuning.AS_HARD**2), self.expected)
        return float(candidates[likely][np.argmin(np.log(hard) + z[likely] ** 2 / 2)])

    def _miscount(self, boundary: float) -> tuple[float, float]:
        """Standard deviation of the number of arms above, and average pulls of an arm in doubt."""
        above = self.sharp[:, self.grid > boundary].sum(axis=1)
        variances = self.rows.sizes * above * (1 - above)  # (rows,)
        variance = max(float(variances.sum()), 0.0)  # rounding may have made it less
        pulls = float(np.einsum("r,r->", variances, self.rows.pulls)) / max(variance, 1e-12)
        return tuning.INFLATE * math.sqrt(variance), max(pulls, 1.0)

    def _error(self) -> float:
        """Error of the boundary: that in the number of arms above, by their density.

        A prior is no finer than the rewards of an arm."""
        miscount, pulls = self._miscount(self.boundary)
        error = math.hypot(miscount / self._density(pulls), self.disagreement)
        return max(error, LEAST_SPREAD)

    def _density(self, pulls: float) -> float:
        """Arms per unit of the mean next to the boundary, at the resolution of this many pulls."""
        deviation = math.sqrt(self.boundary * (1 - self.boundary) / pulls)
        ends = self.boundary + tuning.RESOLUTION * deviation * np.array([-1.0, 1.0])
        ends = np.clip(ends, 0.0, 1.0)
        low, high = np.interp(ends, self.grid, _above(self.expected))
        least = tuning.LEAST_DENSITY * self.row.size
        return max(float((low - high) / (ends[1] - ends[0])), least)


def _above(expected: FloatArray) -> FloatArray:
    """Arms expected above every point of the grid, half of those that are on it: (grid,)."""
    return np.cumsum(expected[::-1])[::-1] - expected / 2


def grid_around(boundary: float) -> FloatArray:
    """Means that are evenly spaced in angles, and many more next to the boundary."""
    even = np.linspace(LEAST_ANGLE, RIGHT_ANGLE - LEAST_ANGLE, tuning.EVEN_POINTS)
    steps = np.linspace(-1, 1, tuning.NEAR_POINTS)
    centre = math.asin(math.sqrt(boundary))
    near = centre + tuning.NEAR_ANGLE * np.sign(steps) * steps**2
    angles = np.concatenate([even, near[(near > LEAST_ANGLE) & (near < RIGHT_ANGLE - LEAST_ANGLE)]])
    return np.unique(np.round(np.sin(angles) ** 2, 9))


def _normalised(joint: FloatArray) -> FloatArray:
    result: FloatArray = joint / joint.sum(axis=1, keepdims=True)
    return result
