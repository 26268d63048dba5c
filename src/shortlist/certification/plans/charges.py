"""Log-optimal charges: the least that can be expected to be charged under (*) of docs/plans.md.

    maximise  sum over s of p(s) ln q(s)   subject to   A q <= 1,      q = exp(-strength * charge),

where p is how likely every state is believed to be and A(m, s) = p_m(s) exp(strength L(s, m)). The
dual finds weights w of the means that maximise sum p ln(w A) - sum w; then q = p / (w A). Newton's
method finds both, the weights and what the constraints leave, x = 1 - A q: on the central path all
w(m) x(m) are equal, and their sum is the gap to the best. Few means have weight in the end: it
begins with some, and adds those at which the constraint is broken most (cutting planes)."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.certification.plans import tuning

INSIDE = 0.99  # of the way to where a weight, or what a constraint leaves, would be 0
LEFT = 0.3  # that constraints leave, to begin with


def log_optimal_among(
    matrix: FloatArray, believed: FloatArray, gap: float, every: int
) -> FloatArray:
    """The best q as in `log_optimal`, found with one in so many of the means at first."""
    taken = np.zeros(matrix.shape[0], dtype=np.bool_)
    taken[::every] = True
    taken[-1] = True
    for _ in range(tuning.CUTS):
        q = log_optimal(np.ascontiguousarray(matrix[taken]), believed, gap)
        broken = _peaks(matrix @ q, 1 + gap) & ~taken
        if not broken.any():
            break
        taken |= broken
    return q


def log_optimal(matrix: FloatArray, believed: FloatArray, gap: float) -> FloatArray:
    """The best q for A = `matrix` (means, states), p = `believed`, but for `gap` in sum p ln q."""
    from scipy.linalg.lapack import dposv  # late: few who import us need it, and it is large

    means = matrix.shape[0]
    weights = np.full(means, 1 / means)
    left = np.full(means, LEFT)
    root = np.sqrt(believed)
    for _ in range(tuning.NEWTON_STEPS):
        mixture = weights @ matrix
        moments = matrix @ (believed / mixture)
        distance = float(weights @ left)
        if distance <= gap and float((moments - 1 + left).max()) <= gap / 4:
            break
        centre = tuning.SHRINK * distance / (means * weights)  # what constraints are to leave
        scaled = matrix * (root / mixture)  # (means, states)
        curvature = scaled @ scaled.T
        ratio = left / weights
        curvature.ravel()[:: means + 1] += ratio  # its diagonal
        _, step, failed = dposv(curvature, moments - 1 + centre, overwrite_a=True)
        if failed:  # by rounding: what there is has to do, and is checked
            break
        change = centre - left - ratio * step
        weights = weights + step * _length(step / weights)
        left = left + change * _length(change / left)
    result: FloatArray = believed / (weights @ matrix)
    return result


def _length(relative: FloatArray) -> float:
    """Of a step that leaves everything positive: a whole one, if it does."""
    return min(1.0, INSIDE / max(INSIDE, -float(relative.min())))


def _peaks(moments: FloatArray, above: float) -> BoolArray:
    """Where neighbouring means have no larger moment, and it is too large."""
    padded = np.pad(moments, 1)
    highest = (moments >= padded[:-2]) & (moments >= padded[2:])
    return highest & (moments > above)
