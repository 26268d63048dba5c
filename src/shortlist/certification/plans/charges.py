"""Log-optimal charges: the least that can be expected to be charged under (*) of docs/plans.md.

    maximise  sum over s of p(s) ln q(s)   subject to   A q <= 1,      q = exp(-strength * charge),

where p is how likely every state is believed to be and A(m, s) = p_m(s) exp(strength L(s, m)). The
dual finds weights w of the means that maximise sum p ln(w A) - sum w; then q = p / (w A). Newton's
method on the dual with the barrier t sum ln w: on its central path (A q)(m) = 1 - t / w(m), so what
is found is feasible at the means of A, and the gap to the best is t times their number."""

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.plans import tuning

MOST_STEPS = 30  # of Newton for one barrier
LEAST_STEP = 1e-8  # of a line search
INSIDE = 0.95  # of the way to where a weight would be 0


def log_optimal(matrix: FloatArray, believed: FloatArray, gap: float) -> FloatArray:
    """The best q for A = `matrix` (means, states), p = `believed`, but for `gap` in sum p ln q."""
    means = matrix.shape[0]
    weights = np.full(means, 1 / means)
    last = gap / means
    barrier = max(tuning.BARRIER, last)
    while True:
        weights = _centred(matrix, believed, weights, barrier)
        if barrier <= last:
            result: FloatArray = believed / np.einsum("m,ms->s", weights, matrix)
            return result
        barrier = max(last, barrier * tuning.SHRINK)


def _centred(
    matrix: FloatArray, believed: FloatArray, weights: FloatArray, barrier: float
) -> FloatArray:
    """The weights that maximise the dual with this barrier, by Newton's method."""
    diagonal = np.diag_indices(weights.size)
    for _ in range(MOST_STEPS):
        scaled = matrix / np.einsum("m,ms->s", weights, matrix)  # (means, states)
        gradient = np.einsum("ms,s->m", scaled, believed) - 1 + barrier / weights
        curvature = np.einsum("ms,ks->mk", scaled * believed, scaled)
        curvature[diagonal] += barrier / weights**2
        step = np.linalg.solve(curvature, gradient)
        decrement = float(np.einsum("m,m->", gradient, step))
        weights = weights + step * _step_size(scaled, believed, step, step / weights, barrier)
        if decrement < tuning.CENTRED * barrier * weights.size:
            break
    return weights


def _step_size(
    scaled: FloatArray, believed: FloatArray, step: FloatArray, relative: FloatArray, barrier: float
) -> float:
    """Backtracking line search, from a full step or from just before a weight would be 0."""
    size = min(1.0, INSIDE / max(INSIDE, -float(relative.min())))
    change = np.einsum("m,ms->s", step, scaled)  # of the mixture, relative
    slope = float(np.einsum("s,s->", believed, change) - step.sum() + barrier * relative.sum())
    while size > LEAST_STEP:
        gained = np.einsum("s,s->", believed, np.log1p(size * change)) - size * step.sum()
        gained += barrier * np.log1p(size * relative).sum()
        if gained >= 1e-4 * size * slope:
            break
        size /= 2
    return size
