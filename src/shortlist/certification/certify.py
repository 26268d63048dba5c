"""Check a set that was chosen by any other means: how much can it lose, by fresh rewards of every
arm?"""

import math

import numpy as np
import numpy.typing as npt

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.split.certificate import declare
from shortlist.errors import InvalidInput
from shortlist.metrics import ROUNDING, chosen_arms
from shortlist.reward_models import (
    Bounded,
    RewardModel,
    RewardsDeclared,
    model_of,
)
from shortlist.validation import check_choice, number

UNIT = Bounded()


def certify(
    top: npt.ArrayLike,
    pulls: npt.ArrayLike,
    sums: npt.ArrayLike,
    *,
    boundary: float,
    delta: float = 0.05,
    epsilon: float | None = None,
    rewards: RewardsDeclared = UNIT,
    strength: float | None = None,
) -> float:
    """Upper confidence bound on the aggregate regret of a set that was chosen before these rewards
    were drawn.

    `top` are the chosen arms, `pulls` and `sums` the fresh pulls of every arm and the sums of their
    rewards, `boundary` a value between the worst chosen and the best other mean, as believed
    beforehand. With probability at least 1 - `delta` the regret is at most the number returned.
    With `epsilon`, the bound is made to be tight near `epsilon` and is infinite where it would
    exceed it. Everything but `sums` must be fixed before the rewards are seen, or the probability
    does not hold; so must `strength`, which trades ln(1/delta) against the noise."""
    model = model_of(rewards)
    counts, totals, chosen = _fresh(top, pulls, sums, model)
    k = int(chosen.sum())
    number("delta", delta, above=0, below=1)
    edge = (number("boundary", boundary) - model.shift) / model.scale
    if model.has_range and not 0 <= edge <= 1:
        low, high = model.support
        raise InvalidInput(
            f"`boundary` is {boundary}, but must be between {low:g} and {high:g} like the rewards"
        )
    reach, level = model.widest_gap, -math.log(delta)
    largest = reach * min(k, chosen.size - k) / k  # so many arms can be exchanged at most
    unit_strength = 2 * math.sqrt(8 * level / float((1 / counts).sum()))
    if epsilon is not None:
        reach = k * number("epsilon", epsilon, above=0) / model.scale
        unit_strength = 2 * level / reach
    if strength is not None:
        unit_strength = number("strength", strength, above=0) * model.scale
    certificate = declare(
        chosen, edge, counts, strength=unit_strength, delta=delta, reach=reach, rewards=model.unit()
    )
    bound = (
        min(largest, certificate.bound((totals - counts * model.shift) / model.scale)) * model.scale
    )
    return math.inf if epsilon is not None and bound > epsilon else bound


def _fresh(
    top: npt.ArrayLike, pulls: npt.ArrayLike, sums: npt.ArrayLike, rewards: RewardModel
) -> tuple[IntArray, FloatArray, BoolArray]:
    """Pulls and sums per arm and the mask of the chosen ones, if they fit together."""
    counts, totals = np.asarray(pulls), np.asarray(sums)
    if counts.ndim != 1 or counts.shape != totals.shape:
        raise InvalidInput(
            f"`pulls` has shape {counts.shape} and `sums` {totals.shape}, but both need one number"
            " per arm"
        )
    if not np.issubdtype(counts.dtype, np.integer) or np.any(counts < 1):
        raise InvalidInput(
            f"`pulls` is {pulls!r}, but every arm needs a whole number of at least 1"
        )
    if not np.issubdtype(totals.dtype, np.number) or np.iscomplexobj(totals):
        raise InvalidInput(f"`sums` is {sums!r}, but must be numbers")
    wrong = np.flatnonzero(~_possible(totals, counts, rewards))
    if wrong.size:
        raise InvalidInput(
            f"the sum of arm {wrong[0]} is {totals[wrong[0]]}, but must be that of"
            f" {counts[wrong[0]]} rewards, each {rewards.rule}"
        )
    arms = chosen_arms(top, counts.size)
    check_choice(counts.size, arms.size)
    chosen = np.zeros(counts.size, dtype=np.bool_)
    chosen[arms] = True
    return counts.astype(np.int64), totals.astype(np.float64), chosen


def _possible(sums: FloatArray, pulls: IntArray, rewards: RewardModel) -> BoolArray:
    """Which sums can be sums of so many rewards; one outside of the range only by rounding can."""
    if not rewards.has_range:
        return np.isfinite(sums)
    unit = (sums - pulls * rewards.shift) / rewards.scale
    whole = unit == np.round(unit) if rewards.is_binary else True
    return (unit >= -ROUNDING * pulls) & (unit <= (1 + ROUNDING) * pulls) & whole
