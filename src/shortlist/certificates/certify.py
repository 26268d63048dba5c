"""Check a set that was chosen elsewhere: how much can it lose, by fresh rewards of every arm?"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from shortlist.arrays import ROUNDED, WRITTEN, BoolArray, FloatArray, IntArray
from shortlist.certificates.linear.bound import fixed_set_bound
from shortlist.certificates.past.bound import bound_past
from shortlist.certificates.past.charges import Totals, settled
from shortlist.certificates.split.bound import declare
from shortlist.constraints import AnyArms, Constraint, best_set, check_feasible
from shortlist.errors import InvalidInput
from shortlist.features import Features, checked_linear
from shortlist.formatting import given_text
from shortlist.problem import unit_epsilon
from shortlist.regret import ROUNDING, chosen_arms
from shortlist.reward_models import (
    UNIT_SIGMA,
    Bounded,
    Normal,
    RewardModel,
    RewardsDeclared,
    model_of,
)
from shortlist.validation import LARGEST, SMALLEST, check_choice, flag, listed, number, shown

STEP = 2**0.25  # of strengths, until the bound grows
STEPS = 16  # between the last ones: within 1% of the least bound


def oracle_bound(
    chosen: BoolArray, pulls: IntArray, means: FloatArray, delta: float, constraint: Constraint
) -> float:
    """The bound on k times the regret of `chosen`; means are on the unit scale.

    Every strength gives a valid bound, also one that is chosen after the rewards were seen. As a
    function of the strength the bound is convex, and it falls up to the strength that would be
    best if all arms could be exchanged: from there on strengths grow until the bound does."""
    counts = pulls.astype(np.float64)
    noise: FloatArray = UNIT_SIGMA**2 / (2 * counts)  # (n,): what a unit of strength charges an arm
    threshold = -math.log(delta)

    def bound(strength: float) -> float:
        return _gain(chosen, means, strength * noise, constraint) + threshold / strength

    strength = math.sqrt(threshold / float(noise.sum()))
    least = math.inf
    # it ends: charges grow with the strength, and so does what rounding adds
    while (found := bound(strength)) < least:
        least = found
        strength *= STEP
    between = strength / STEP**2, strength
    finest = minimize_scalar(bound, bounds=between, method="bounded", options={"maxiter": STEPS})
    return min(least, float(finest.fun))


def _gain(
    chosen: BoolArray, means: FloatArray, charges: FloatArray, constraint: Constraint
) -> float:
    """How much more than `chosen` the best set has if all charges count for it, rounded up."""
    weights = np.where(chosen, means - charges, means + charges)
    k = int(chosen.sum())
    best = best_set(constraint, weights, k)
    moved = math.fsum(weights[best & ~chosen]) - math.fsum(weights[chosen & ~best])
    return moved + ROUNDED * k * float(np.abs(weights).max())


UNIT = Bounded()
MOST_PULLS = 2**62  # of an arm, as everywhere: counts are 64-bit


def certify(
    top: npt.ArrayLike,
    pulls: npt.ArrayLike,
    sums: npt.ArrayLike,
    *,
    boundary: float | None = None,
    fresh: bool | None = None,
    delta: float = 0.05,
    epsilon: float | None = None,
    rewards: RewardsDeclared = UNIT,
    strength: float | None = None,
    squares: npt.ArrayLike | None = None,
    constraint: Constraint | None = None,
    features: npt.ArrayLike | None = None,
    linear: bool | float = True,
) -> float:
    """Upper confidence bound on the regret of a set chosen before these rewards were drawn.

    With probability at least 1 - `delta` the regret is at most the number returned. Fix everything
    but `sums` and `squares` before you see the rewards, or the probability does not hold. If the
    same rewards chose the set, use `assess`.

    Args:
        top: The chosen arms, as positions from 0.
        pulls: Fresh pulls of every arm, at least one each; with `features` there may be none of
            some arms.
        sums: Sum of the rewards of these pulls, per arm.
        boundary: A value between the worst chosen and the best other mean, as believed beforehand.
            Default: none is needed. The bound is then larger where rewards are 0 or 1 and means
            are near 0 or 1, and neither `epsilon`, `strength` nor `squares` can be given.
        fresh: Must be True. You state that all these rewards were drawn after the set was chosen,
            and that none of them was used to choose it.
        delta: Probability of losing more than the bound. Default 0.05.
        epsilon: Makes the bound tight near this value, and infinite where it would exceed it.
            Default: no such value.
        rewards: What rewards can be: a range (low, high), "binary", a reward model, or "normal":
            then `squares` are needed, two pulls of every arm or more, and nothing but `delta` can
            be given besides. Default (0, 1).
        strength: Trades ln(1/delta) against the noise. Default: computed from the pulls, or from
            epsilon.
        squares: Sums of the squared rewards, per arm. They make the bound smaller where rewards
            have a range and vary less in it than 0/1 rewards would.
        constraint: Which sets can be chosen: `Quotas`, `Laminar`, `Matching`, `Matroid`, or any
            object whose `best(weights)` returns the arms of the best set exactly. The regret is
            then against the best feasible set. Not together with `boundary`. Default: all sets
            of k arms.
        features: A row of known numbers per arm. You declare that means are linear in them. Not
            together with `boundary` or `constraint`. Default: nothing is declared.
        linear: With `features`, True if means are linear, or their largest distance from linear
            ones. Default True.

    Returns:
        The bound, rounded outward, in units of the rewards.

    Raises:
        InvalidInput: If `fresh` is not True, or a value breaks its rule. An `epsilon` less than
            rounding can make up is refused, a `strength` below 1e-60 or above 1e60 on the unit
            scale, and sub-Gaussian means or a boundary farther from 0 than 1e9 sigma.

    Example:
        >>> import shortlist
        >>> sums = [330, 310, 120, 90, 100]
        >>> bound = shortlist.certify([0, 1], [400] * 5, sums, boundary=0.5, fresh=True)
        >>> bound < 0.05
        True
    """
    _check_fresh(fresh)
    model = model_of(rewards)
    least = 0 if features is not None else 1 if model.knows_spread else 2
    counts, totals, chosen = _fresh(top, pulls, sums, model, least)  # (arms,) each
    k = int(chosen.sum())
    delta = number("delta", delta, above=0, below=1)
    if not model.knows_spread:
        _refuse_for_normal(boundary=boundary, constraint=constraint, features=features)
        _refuse_for_normal(epsilon=epsilon, strength=strength)
        return _of_normal(chosen, counts, totals, delta, squares)
    if features is None and linear is not True:
        raise InvalidInput(f"`linear` is {shown(linear)}, but only goes with `features`")
    if features is not None:
        _refuse_with_features(boundary=boundary, constraint=constraint, epsilon=epsilon)
        _refuse_given(strength=strength, squares=squares)
        return _by_features(chosen, counts, totals, delta, model, features, linear)
    if boundary is None:
        _refuse_given(epsilon=epsilon, strength=strength, squares=squares)
        return _without_boundary(chosen, counts, totals, delta, model, constraint)
    if constraint is not None:
        raise InvalidInput(f"`boundary` is {shown(boundary)}, but does not go with `constraint`")
    threshold = -math.log(delta)
    if epsilon is None:
        reach = model.widest_gap
        unit_strength = _strength_for_noise(counts, threshold)
    else:
        epsilon = number("epsilon", epsilon, above=0)
        reach = k * unit_epsilon(epsilon, counts.size, k, model)
        unit_strength = 2 * threshold / reach
    if strength is not None:
        unit_strength = _unit_strength(strength, model)
    certificate = declare(
        chosen,
        _unit_boundary(boundary, model),
        counts,
        strength=unit_strength,
        delta=delta,
        reach=reach,
        rewards=model.unit(),
        blur=ROUNDED * model.distance,
    )
    seen = on_unit_scale(counts, totals, _checked_squares(squares, counts, totals), model)
    bound = certificate.bound(*seen)
    # no more arms than these can be exchanged, each for one as far off as can be
    most = model.widest_gap * min(k, chosen.size - k) / k
    bound = min(most, bound) * model.scale
    return math.inf if epsilon is not None and bound > epsilon else bound


def _refuse_given(**values: object) -> None:
    """Refuse what only a certificate with a boundary can use."""
    for name, value in values.items():
        if value is not None:
            raise InvalidInput(f"`{name}` is given, but needs a `boundary`")


def _refuse_with_features(**values: object) -> None:
    """Refuse what the linear bound does not support."""
    for name, value in values.items():
        if value is not None:
            raise InvalidInput(f"`{name}` is given, but does not go with `features`")


def _refuse_for_normal(**values: object) -> None:
    """Refuse what does not go with unknown variances."""
    for name, value in values.items():
        if value is not None:
            raise InvalidInput(f"`{name}` is given, but does not go with normal rewards")


def _of_normal(
    chosen: BoolArray,
    pulls: IntArray,
    sums: FloatArray,
    delta: float,
    squares: npt.ArrayLike | None,
) -> float:
    """The bound by Student's t, over all swaps with the set (docs/assess.md)."""
    checked = _checked_squares(squares, pulls, sums)
    if checked is None:
        raise InvalidInput("`squares` is not given, but is needed where rewards are normal")
    unit_sums, unit_squares, shift, scale = student_unit(pulls, sums, checked)
    totals = Totals(pulls, unit_sums, unit_squares, ROUNDED * (1 + abs(shift) / scale))
    evidences = settled(Normal(), pulls, fixed=True, squared=True)
    found = bound_past(totals, int(chosen.sum()), delta, evidences, chosen=chosen)
    return found.regret_bound * scale


def _by_features(
    chosen: BoolArray,
    counts: IntArray,
    totals: FloatArray,
    delta: float,
    model: RewardModel,
    features: npt.ArrayLike,
    linear: bool | float,
) -> float:
    """The bound where means are linear in features."""
    declared = checked_linear(linear)
    if declared is False:
        raise InvalidInput("`linear` is False, but a bound by `features` rests on linear means")
    known = Features(np.asarray(features), 0.0 if declared is True else float(declared))
    known.check(chosen.size)
    sums, _ = on_unit_scale(counts, totals, None, model)
    unit = known.unit(model.scale)
    blur = ROUNDED * model.distance  # of means far from 0, as a misfit
    unit = unit.within((unit.misfit or 0.0) + blur)
    bound = fixed_set_bound(unit, chosen, counts, sums / np.maximum(counts, 1), delta)
    k = int(chosen.sum())
    most = model.widest_gap * min(k, chosen.size - k)
    return max(0.0, min(bound, most)) / k * model.scale


def _without_boundary(
    chosen: BoolArray,
    counts: IntArray,
    totals: FloatArray,
    delta: float,
    model: RewardModel,
    constraint: Constraint | None,
) -> float:
    """The bound that needs no boundary, of any family of sets."""
    k = int(chosen.sum())
    family = AnyArms(k) if constraint is None else constraint
    check_feasible(family, chosen)
    sums, _ = on_unit_scale(counts, totals, None, model)
    blur = ROUNDED * model.distance * k  # of means far from 0
    bound = oracle_bound(chosen, counts, sums / counts, delta, family) + 2 * blur
    most = model.widest_gap * min(k, chosen.size - k)
    return max(0.0, min(bound, most)) / k * model.scale


def _check_fresh(fresh: object) -> None:
    """Refuse rewards that may have chosen the set: the best of many noisy means flatter it."""
    if fresh is not None and flag("fresh", fresh):
        return
    given = "not given" if fresh is None else "False"
    raise InvalidInput(
        f"`fresh` is {given}, but must be True: the bound holds only for rewards drawn after the"
        " set was chosen, none of which was used to choose it; for rewards that also chose the set"
        " use `assess`"
    )


def _strength_for_noise(pulls: IntArray, threshold: float) -> float:
    """Twice the strength at which ln(1/delta) costs as much as the noise, if all arms are charged.

    The noise costs sum_i strength / 8N_i at most, and ln(1/delta) threshold / strength. But arms
    clearly on their own side are not charged, so the noise costs less."""
    return 2 * math.sqrt(8 * threshold / float((1 / pulls).sum()))


def _unit_strength(strength: float, rewards: RewardModel) -> float:
    """The strength on the unit scale, if floats can compute with it there."""
    unit = number("strength", strength, above=0) * rewards.scale
    if not SMALLEST < unit < LARGEST:
        raise InvalidInput(
            f"`strength` is {shown(strength)}, but must be between"
            f" {given_text(SMALLEST / rewards.scale)} and {given_text(LARGEST / rewards.scale)}"
            " for such rewards"
        )
    return unit


def _unit_boundary(boundary: float, rewards: RewardModel) -> float:
    """The boundary on the unit scale, if it can be one."""
    edge = number("boundary", boundary)
    unit = (edge - rewards.shift) / rewards.scale
    low, high = rewards.support
    if rewards.has_range and not low <= edge <= high:
        raise InvalidInput(
            f"`boundary` is {shown(boundary)}, but must be between {given_text(low)} and"
            f" {given_text(high)} like the rewards"
        )
    if not rewards.has_range and not rewards.admits(edge):
        raise InvalidInput(
            f"`boundary` is {shown(boundary)}, but must be {rewards.rule}, as rewards are"
        )
    return min(max(0.0, unit), 1.0) if rewards.has_range else unit


def _fresh(
    top: npt.ArrayLike,
    pulls: npt.ArrayLike,
    sums: npt.ArrayLike,
    rewards: RewardModel,
    least: int,
) -> tuple[IntArray, FloatArray, BoolArray]:
    """Pulls and sums per arm and the mask of the chosen ones, if they fit together."""
    counts, totals = listed("pulls", pulls), listed("sums", sums)
    if counts.ndim != 1 or counts.shape != totals.shape:
        raise InvalidInput(
            f"`pulls` has shape {counts.shape} and `sums` {totals.shape}, but both need one number"
            " per arm"
        )
    whole = np.issubdtype(counts.dtype, np.integer)
    if not whole or np.any(counts < least) or np.any(counts > MOST_PULLS):
        raise InvalidInput(
            f"`pulls` is {shown(pulls)}, but every arm needs a whole number of at least {least} and"
            " at most 2^62"
        )
    if not np.issubdtype(totals.dtype, np.number) or np.iscomplexobj(totals):
        raise InvalidInput(f"`sums` is {shown(sums)}, but must be numbers")
    wrong = np.flatnonzero(~possible_sums(totals, counts, rewards))
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


def _checked_squares(
    squares: npt.ArrayLike | None, pulls: IntArray, sums: FloatArray
) -> FloatArray | None:
    """The sums of squares, if they can be those of this many rewards with these sums."""
    if squares is None:
        return None
    given = listed("squares", squares)
    if given.shape != sums.shape or given.dtype.kind not in "iuf":
        raise InvalidInput(f"`squares` is {shown(squares)}, but must be a number for each arm")
    wrong = np.flatnonzero(~possible_squares(given, pulls, sums))
    if wrong.size:
        arm = wrong[0]
        raise InvalidInput(
            f"the sum of squares of arm {arm} is {given[arm]}, but {pulls[arm]} rewards with the"
            f" sum {sums[arm]:.15g} have at least {sums[arm] ** 2 / pulls[arm]:.15g}"
        )
    return given.astype(np.float64)


def on_unit_scale(
    pulls: IntArray, sums: FloatArray, squares: FloatArray | None, rewards: RewardModel
) -> tuple[FloatArray, FloatArray | None]:
    """The sums, and the squares where they are of use, of rewards as (x - shift) / scale.

    Far from 0 the variance is a small difference of large sums: squares are rounded up by all that
    was lost if sums and squares were written with ten digits."""
    shift, scale = rewards.shift, rewards.scale
    unit = (sums - pulls * shift) / scale
    if squares is None:
        return unit, None
    around = squares - 2 * shift * sums + pulls * shift**2
    return unit, around / scale**2 + WRITTEN * rewards.distance**2 * pulls


def student_unit(
    pulls: IntArray, sums: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray, float, float]:
    """Sums and squares of normal rewards as (x - shift) / scale, shift and scale.

    All means and deviations are at most 1/2 then. Squares are rounded up as in `on_unit_scale`."""
    times = np.maximum(pulls, 1)
    around = np.maximum(squares - sums * (sums / times), 0.0) + WRITTEN * squares
    shift = float(sums.sum() / times.sum())
    apart = np.where(pulls > 0, sums / times - shift, 0.0)
    scale = 2 * math.sqrt(float((apart**2 + around / times).max())) or 1.0
    unit = apart / scale
    return unit * pulls, around / scale**2 + pulls * unit**2, shift, scale


def check_possible(
    where: Sequence[str],
    pulls: IntArray,
    sums: FloatArray,
    squares: FloatArray | None,
    rewards: RewardModel,
) -> None:
    """Refuse the first arm whose sums cannot be those of this many rewards.

    `where` names the place of every arm in the input."""
    if rewards.is_binary and np.any(sums > pulls):
        arm = int(np.argmax(sums > pulls))
        raise InvalidInput(f"{where[arm]}: {sums[arm]:,.15g} successes exceed {pulls[arm]:,} pulls")
    rule = f"the sum of rewards, each {rewards.rule}"
    _check_each(where, pulls, possible_sums(sums, pulls, rewards), sums, rule)
    if squares is not None:
        _check_squares(where, pulls, sums, squares, rewards)


def _check_squares(
    where: Sequence[str],
    pulls: IntArray,
    sums: FloatArray,
    squares: FloatArray,
    rewards: RewardModel,
) -> None:
    """Refuse squares that are too small for their sum, or too large for the range of rewards."""
    if rewards.is_binary and np.any(squares != sums):
        arm = int(np.argmax(squares != sums))
        raise InvalidInput(
            f"{where[arm]} says squares of {squares[arm]:.15g} for {sums[arm]:.15g} successes, but"
            " they must be equal: 0 and 1 are their own squares"
        )
    rule = "what squares of rewards with its sum add up to"
    possible = possible_squares(squares, pulls, sums) & _in_range(squares, pulls, sums, rewards)
    _check_each(where, pulls, possible, squares, rule)


def _in_range(
    squares: FloatArray, pulls: IntArray, sums: FloatArray, rewards: RewardModel
) -> BoolArray:
    """Which squares fit rewards in [low, high]: (x - low)(high - x) is never negative."""
    if not rewards.has_range:
        return np.ones(squares.size, dtype=np.bool_)
    low, high = rewards.support
    blur = ROUNDING * pulls * max(abs(low), abs(high)) ** 2
    result: BoolArray = squares <= (low + high) * sums - low * high * pulls + blur
    return result


def _check_each(
    where: Sequence[str], pulls: IntArray, possible: BoolArray, given: FloatArray, rule: str
) -> None:
    if not possible.all():
        arm = int(possible.argmin())
        raise InvalidInput(
            f"{where[arm]} says {given[arm]:.15g} for {pulls[arm]:,} pulls, but must say {rule}"
        )


def possible_sums(sums: FloatArray, pulls: IntArray, rewards: RewardModel) -> BoolArray:
    """Which sums can be sums of this many rewards, up to rounding."""
    if not rewards.has_range:
        means = sums / np.maximum(pulls, 1)
        admitted = rewards.admits(means) & ((pulls > 0) | (sums == 0))
        return np.asarray(admitted, dtype=np.bool_)
    unit = (sums - pulls * rewards.shift) / rewards.scale
    whole = unit == np.round(unit) if rewards.is_binary else True
    return (unit >= -ROUNDING * pulls) & (unit <= (1 + ROUNDING) * pulls) & whole


def possible_squares(squares: FloatArray, pulls: IntArray, sums: FloatArray) -> BoolArray:
    """Which sums of squares can be those of this many rewards with these sums."""
    least = sums**2 / np.maximum(pulls, 1)  # Cauchy and Schwarz
    return (squares >= least * (1 - WRITTEN)) & np.isfinite(squares)
