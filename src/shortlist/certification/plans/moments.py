"""The exponential moment of a plan at *every* mean: the check of (*) in docs/plans.md.

With q = exp(-strength * charge) it is M(m) = sum over s of p_m(s) exp(strength L(s, m)) q(s). Cut
[0, 1] into cells that straddle neither the boundary nor the ends of the reach. In a cell of centre
c each ln p_m(s) is concave in m, hence below its tangent at c, and L is linear in m, so

    M(c + t) <= sum over s of p_c(s) q(s) exp(strength L(s, c) + slope(s) t),

slope(s) being the derivative at c of ln p_m(s) + strength L(s, m). That is convex in t: the larger
of its values at the ends of the cell bounds M in all of it. (Lemma 2)"""

import math
from itertools import pairwise

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.losses import Stakes, wrong
from shortlist.certification.plans.stop_states import StopStates

ROUNDING = 1e-7  # more than all roundings in a moment, relative
QUARTER = math.pi / 2  # the largest angle: a mean is sin(angle)^2
WIDEST = 0.1  # cell, in standard deviations


def worst_moment(
    states: StopStates, labels: IntArray, q: FloatArray, stakes: Stakes, excess: float
) -> float:
    """A bound on M at all means in [0, 1], rounded up.

    Cells are so small that it exceeds the largest moment by about `excess` at most, relative."""
    charged = q > 0  # the others add nothing
    kept = states.only(charged)
    step = min(WIDEST, math.sqrt(2 * excess))
    bounds = [
        _in_cells(kept, labels[charged], q[charged], stakes, edges).max()
        for edges in _pieces(stakes, float(states.pulls.max()), step)
    ]
    return float(max(bounds)) * (1 + ROUNDING)


def _in_cells(
    states: StopStates, labels: IntArray, q: FloatArray, stakes: Stakes, edges: FloatArray
) -> FloatArray:
    """Bounds on M in the cells between these edges, which L is linear on: (cells,)."""
    above = bool(edges[-1] > stakes.boundary)
    lost = wrong(labels, above=above)  # (states,)
    centres = (edges[1:] + edges[:-1]) / 2  # (cells,)
    half = (edges[1:] - edges[:-1])[:, None] / 2  # (cells, 1)
    log = states.log_probability(centres) + stakes.exponents(centres)[:, None] * lost
    change = _slopes(states, lost, stakes, centres, above=above) * half  # (cells, states)
    right = np.einsum("cs,s->c", np.exp(log + change), q)
    left = np.einsum("cs,s->c", np.exp(log - change), q)
    result: FloatArray = np.maximum(left, right)
    return result


def _slopes(
    states: StopStates, lost: BoolArray, stakes: Stakes, centres: FloatArray, *, above: bool
) -> FloatArray:
    """Derivative at the centres of ln p_m(s) + strength L(s, m): (cells, states)."""
    means = centres[:, None]
    score = states.successes / means - (states.pulls - states.successes) / (1 - means)
    if np.abs(centres - stakes.boundary).min() >= stakes.reach:  # there L is constant
        return score
    outward = stakes.strength if above else -stakes.strength
    result: FloatArray = score + outward * lost
    return result


def _pieces(stakes: Stakes, pulls: float, step: float) -> list[FloatArray]:
    """Edges of cells from 0 to b - reach, from there to b, to b + reach, to 1."""
    b = stakes.boundary
    corners = np.clip([0.0, b - stakes.reach, b, b + stakes.reach, 1.0], 0.0, 1.0)
    inner = _fine_edges(b, pulls, step)
    pieces = []
    for low, high in pairwise(corners):
        between = inner[(inner > low) & (inner < high)]
        if low < high:
            pieces.append(np.unique(np.concatenate([[low], between, [high]])))
    return pieces


def _fine_edges(boundary: float, pulls: float, step: float) -> FloatArray:
    """Means between 0 and 1, `step` standard deviations apart.

    One is 1 / (2 sqrt(N)) in angles, N the pulls after which plans stop there: all of them next to
    the boundary, and further out what tells the distance from 0."""
    near = tuning.FAR / (2 * math.sqrt(pulls))
    relative = step / tuning.FAR
    even = np.arange(0.0, 1.0, relative)
    further = np.exp(np.arange(0.0, max(0.0, math.log(QUARTER / near)) + relative, relative))
    distances = near * np.concatenate([even, further])
    centre = math.asin(math.sqrt(boundary))
    angles = np.concatenate([centre - distances, centre + distances])
    result: FloatArray = np.sin(angles[(angles > 0) & (angles < QUARTER)]) ** 2
    return result
