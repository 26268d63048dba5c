"""The test of lack of fit: do mean rewards differ from linear ones by more than noise?

It warns and proves nothing. It sees arms that were pulled often enough, and no others."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from shortlist.arrays import FloatArray
from shortlist.certificates.linear.planning import ArmSums

LEAST_PULLS = 5  # of an arm that is tested
MOST_ARMS = 300  # that are tested: those with the most pulls
DOUBT = 0.1  # below this p-value more pulls are made, and all are tested together
LEVEL = 0.005  # below this p-value the declaration is rejected
NEAREST = 0.02  # of a fitted mean of 0/1 rewards to 0 and 1, for its variance
LEAST_VARIANCE = 1e-12  # of rewards on the unit scale
SHARED = 4.0  # rewards that the variance of all arms counts in that of one
BISECTIONS = 100
NEAR_MEAN = 1e-3  # standard deviations around the mean in which the saddlepoint formula is 0/0


@dataclass(frozen=True, slots=True)
class LackOfFit:
    """The p-value of the test; None if there were too few arms to test."""

    p_value: float | None
    arms: int  # that were tested

    @property
    def doubtful(self) -> bool:
        """Whether more pulls should show if means are linear."""
        return self.p_value is not None and self.p_value < DOUBT

    @property
    def rejected(self) -> bool:
        """Whether means differ from linear ones by more than was declared."""
        return self.p_value is not None and self.p_value < LEVEL


def lack_of_fit(basis: FloatArray, seen: ArmSums, misfit: float, *, binary: bool) -> LackOfFit:
    """Compare mean rewards with fitted ones over arms with five pulls or more.

    With z_i the standardised residuals of weighted least squares, the statistic is the sum of
    w_i z_i^2, w_i one over the standard error of arm i: arms with many pulls show more. If means
    are linear, it is a weighted sum of chi-squares. Means that are `misfit` from linear ones add at
    most a known length to the vector of residuals, which is subtracted first."""
    arms = _tested(seen)
    if arms.size <= basis.shape[1] + 1:
        return LackOfFit(None, int(arms.size))
    counts = seen.pulls[arms].astype(np.float64)
    means = seen.sums[arms] / counts
    rows = np.column_stack([np.ones(arms.size), basis[arms]])
    variances = _variances(rows, counts, means, seen.squares[arms], binary=binary)
    precision = np.sqrt(counts / variances)  # (m,)
    orthogonal, _ = np.linalg.qr(precision[:, None] * rows)
    observed = precision * means
    residuals = observed - orthogonal @ (orthogonal.T @ observed)
    residuals[np.abs(residuals) < 1e-9 * np.abs(observed).max()] = 0.0  # by rounding
    scale = np.sqrt(precision)
    projected = scale[:, None] * (np.eye(arms.size) - orthogonal @ orthogonal.T)
    weights = np.maximum(np.linalg.eigvalsh(projected @ projected.T), 0.0)
    length = float(np.linalg.norm(scale * residuals))
    by_misfit = misfit * float(np.linalg.norm(precision)) * float(np.sqrt(weights[-1]))
    return LackOfFit(_tail(weights, max(0.0, length - by_misfit) ** 2), int(arms.size))


def _tested(seen: ArmSums) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The arms with the most pulls."""
    order = np.argsort(-seen.pulls, kind="stable")[:MOST_ARMS]
    return order[seen.pulls[order] >= LEAST_PULLS]


def _variances(
    rows: FloatArray, counts: FloatArray, means: FloatArray, squares: FloatArray, *, binary: bool
) -> FloatArray:
    """Variance of a reward of every arm: that of 0/1 rewards with the fitted mean, or the one
    within the arm, drawn to that of all arms."""
    if binary:
        root = np.sqrt(counts)
        fitted = rows @ np.linalg.lstsq(rows * root[:, None], means * root, rcond=None)[0]
        fitted = np.clip(fitted, NEAREST, 1 - NEAREST)
        return np.asarray(fitted * (1 - fitted), dtype=np.float64)
    within = np.maximum(squares - counts * means**2, 0.0)
    pooled = float(within.sum() / (counts - 1).sum())
    drawn = (within + SHARED * pooled) / (counts - 1 + SHARED)
    return np.maximum(drawn, LEAST_VARIANCE)


def _tail(weights: FloatArray, statistic: float) -> float:
    """P(sum of w_j X_j >= statistic) for independent chi-squares of one degree, by the saddlepoint
    formula of Lugannani and Rice."""
    w = weights / weights.max()
    q = statistic / float(weights.max())
    mean, sd = float(w.sum()), float(np.sqrt(2 * (w**2).sum()))
    if abs(q - mean) < NEAR_MEAN * sd:
        step = 2 * NEAR_MEAN * sd
        return (_tail(w, mean - step) + _tail(w, mean + step)) / 2
    if q <= 0:
        return 1.0
    low, high = -mean / q, 0.5  # the derivative is at most q at the lower end
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = float((w / (1 - 2 * middle * w)).sum()) < q
        low, high = (middle, high) if below else (low, middle)
    slope = low
    cumulant = -0.5 * float(np.log1p(-2 * slope * w).sum())
    r = float(np.sign(slope) * np.sqrt(max(2 * (slope * q - cumulant), 1e-300)))
    v = slope * float(np.sqrt((2 * w**2 / (1 - 2 * slope * w) ** 2).sum()))
    return float(np.clip(np.exp(log_ndtr(-(r + np.log(v / r) / r))), 0.0, 1.0))
