"""Check a set that was chosen elsewhere: how much can it lose, by fresh rewards of every arm?"""

import math

import numpy as np
import numpy.typing as npt

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.split.certificate import declare
from shortlist.errors import InvalidInput
from shortlist.metrics import ROUNDING, chosen_arms
from shortlist.reward_models import Bounded, RewardModel, RewardsDeclared, model_of
from shortlist.validation import check_choice, listed, number

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
    """Upper confidence bound on the regret of a set chosen before these rewards were drawn.

    `top` are the chosen arms, `pulls` and `sums` the fresh pulls of every arm and the sums of their
    rewards, `boundary` a value between the worst chosen and the best other mean, as believed
    beforehand. With probability at least 1 - `delta` the regret is at most the number returned.
    With `epsilon`, the bound is made to be tight near `epsilon` and is infinite where it would
    exceed it. Everything but `sums` must be fixed before the rewards are seen, or the probability
    does not hold; so must `strength`, which trades ln(1/delta) against the noise."""
    model = model_of(rewards)
    counts, totals, chosen = _fresh(top, pulls, sums, model)  # (arms,) each
    k = int(chosen.sum())
    threshold = -math.log(number("delta", delta, above=0, below=1))
    if epsilon is None:
        reach = model.widest_gap
        unit_strength = _strength_for_noise(counts, threshold)
    else:
        reach = k * number("epsilon", epsilon, above=0) / model.scale
        unit_strength = 2 * threshold / reach
    if strength is not None:
        unit_strength = number("strength", strength, above=0) * model.scale
    certificate = declare(
        chosen,
        _unit_boundary(boundary, model),
        counts,
        strength=unit_strength,
        delta=delta,
        reach=reach,
        rewards=model.unit(),
    )
    bound = certificate.bound((totals - counts * model.shift) / model.scale)
    # no more arms than these can be exchanged, each for one as far off as can be
    most = model.widest_gap * min(k, chosen.size - k) / k
    bound = min(most, bound) * model.scale
    return math.inf if epsilon is not None and bound > epsilon else bound


def _strength_for_noise(pulls: IntArray, threshold: float) -> float:
    """Twice the strength at which ln(1/delta) costs as much as the noise, if all arms are charged.

    The noise costs sum_i strength / 8N_i at most, and ln(1/delta) threshold / strength. But arms
    clearly on their own side are not charged, so the noise costs less."""
    return 2 * math.sqrt(8 * threshold / float((1 / pulls).sum()))


def _unit_boundary(boundary: float, rewards: RewardModel) -> float:
    """The boundary on the unit scale, if it can be one."""
    edge = (number("boundary", boundary) - rewards.shift) / rewards.scale
    if rewards.has_range and not 0 <= edge <= 1:
        low, high = rewards.support
        raise InvalidInput(
            f"`boundary` is {boundary}, but must be between {low:g} and {high:g} like the rewards"
        )
    return edge


def _fresh(
    top: npt.ArrayLike, pulls: npt.ArrayLike, sums: npt.ArrayLike, rewards: RewardModel
) -> tuple[IntArray, FloatArray, BoolArray]:
    """Pulls and sums per arm and the mask of the chosen ones, if they fit together."""
    counts, totals = listed("pulls", pulls), listed("sums", sums)
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
