"""Judge a choice by the results that made it."""

from typing import Any

import numpy as np

from shortlist.arms import OwnLabel, labels_of
from shortlist.arrays import FloatArray, IntArray
from shortlist.assessment.assessment import TIERS, Assessment
from shortlist.certification.certify import check_possible, on_unit_scale
from shortlist.certification.past.evidence import Evidence, Totals, settled
from shortlist.certification.past.verdict import Verdict, judge
from shortlist.display import plural
from shortlist.errors import InvalidInput
from shortlist.reading.counts import Counts, counts_of
from shortlist.result import ArmResult
from shortlist.reward_models import (
    Binary,
    Bounded,
    RewardModel,
    RewardsDeclared,
    Undeclared,
    model_of,
)
from shortlist.rounding import ROUNDED, confidence_of
from shortlist.validation import check_choice, flag, number, shown, whole

MOST_ASSESSED = 2000  # arms: all pairs of them are compared
LEAST_DELTA = 1e-200  # shares of less are no numbers any more
MOST_PULLS = 10**9  # of an arm: tails of more are not computed to enough digits
NOT_GIVEN = (
    "`fixed` is not given, but must be True, if the pulls of every arm were fixed before any reward"
    " was seen, or False, if they were not or you are not sure"
)


def assess(
    counts: Any,
    k: int,
    *,
    fixed: bool | None = None,
    delta: float = 0.05,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
) -> Assessment:
    """Find the K best arms of past results, and bound what this choice can lose.

    The bound is right although the same rewards chose the arms: it holds for all sets of K arms at
    once. Rewards must be independent of each other, and the results complete: no arm and no reward
    left out because of its value.

    Args:
        counts: Past results: a mapping {arm: (pulls, successes)}, or {arm: (pulls, sum, squares)}
            with the sum of the rewards and of their squares; a data frame or the name of a CSV file
            with columns arm, pulls, and successes or sum, and perhaps squares. Squares make the
            bound smaller where rewards vary little.
        k: Number of arms to keep, from 1 to one less than there are.
        fixed: True if the pulls of every arm were fixed before any reward was seen. False if they
            were not: you stopped when it looked good, or pulled good arms more often. If you are
            not sure, False. Has no default.
        delta: Probability that the bound or a tier is wrong. The intervals are a separate
            statement: the probability that any of them is wrong is at most delta, too. Default
            0.05.
        rewards: What rewards can be: "binary", a range (low, high) or `SubGaussian(sigma)`.
            Default: binary where successes are counted, that is in a column `successes` or in
            pairs of a mapping; else (0, 1).
        minimize: Whether the best arms are those of the smallest mean rewards. Default False.

    Returns:
        The arms to keep, the bound, the tiers "in", "out" and "tied", and an interval for every
        mean. It prints as a table.

    Raises:
        InvalidInput: If `fixed` is not given, or a value breaks its rule; of a file, with the line.

    Example:
        >>> import shortlist
        >>> ads = {"blue": (400, 48), "red": (400, 30), "green": (400, 9)}
        >>> found = shortlist.assess(ads, k=1, fixed=True)
        >>> found.top, found.tiers["out"]
        (('blue',), ('green',))
        >>> found.regret_bound < 0.02
        True
    """
    if fixed is None:
        raise InvalidInput(NOT_GIVEN)
    fixed, minimize = flag("fixed", fixed), flag("minimize", minimize)
    delta = number("delta", delta, above=LEAST_DELTA, below=1)
    given = counts_of(counts)
    labels = _labels(given)
    k = whole("k", k, at_least=1)
    check_choice(len(labels), k)
    model = _model(rewards, given)
    _check(given, model)
    squared = given.squares is not None
    evidences = settled(model, given.pulls, fixed=fixed, squared=squared)
    totals = _unit(given, model)
    totals = evidences[0].mirrored(totals) if minimize else totals
    found = judge(totals, k, delta, evidences)
    return _assessment(given, labels, model, found, evidences[0], delta, minimize)


def _labels(counts: Counts) -> tuple[OwnLabel, ...]:
    size = len(counts.where)
    if size > MOST_ASSESSED:
        raise InvalidInput(
            f"{counts.source} has {size:,} arms, but must have at most {MOST_ASSESSED:,}"
        )
    if size < 2:
        raise InvalidInput(f"{counts.source} has {plural(size, 'arm')}, but must have at least 2")
    return labels_of(size if counts.labels is None else counts.labels)


def _model(rewards: RewardsDeclared | None, counts: Counts) -> RewardModel:
    if rewards is None:
        return Binary() if counts.counted else Bounded()
    model = model_of(rewards)
    if isinstance(model, Undeclared):
        raise InvalidInput(f"`rewards` is {shown(rewards)}, but must be declared to prove anything")
    return model


def _check(counts: Counts, model: RewardModel) -> None:
    """Refuse what no such rewards can give."""
    if counts.pulls.max() > MOST_PULLS:
        arm = int(counts.pulls.argmax())
        raise InvalidInput(
            f"{counts.where[arm]} says {counts.pulls[arm]:,} pulls, but must say at most"
            f" {MOST_PULLS:,}"
        )
    check_possible(counts.where, counts.pulls, counts.sums, counts.squares, model)


def _unit(counts: Counts, model: RewardModel) -> Totals:
    """The results on the unit scale, with what rounding may have done to them."""
    sums, squares = on_unit_scale(counts.pulls, counts.sums, counts.squares, model)
    blur = 0.0
    if not model.is_binary:
        farthest = float(np.abs(sums / np.maximum(counts.pulls, 1)).max())
        blur = ROUNDED * (1 + model.distance + farthest)
    return Totals(counts.pulls, sums, squares, blur)


def _assessment(
    counts: Counts,
    labels: tuple[OwnLabel, ...],
    model: RewardModel,
    found: Verdict,
    evidence: Evidence,
    delta: float,
    minimize: bool,
) -> Assessment:
    """What was found, in labels and in units of the rewards."""
    low, high = found.low, found.high
    if minimize:
        low, high = evidence.mirror - high, evidence.mirror - low
    low, high = (end * model.scale + model.shift for end in (low, high))
    arms = tuple(_arms(labels, counts.pulls, counts.sums, low, high, found.chosen.tolist()))
    sign = 1 if minimize else -1
    top = sorted((arm for arm in arms if arm.chosen), key=lambda arm: sign * (arm.mean or 0.0))
    tier = np.where(found.inside, "in", np.where(found.outside, "out", "tied")).tolist()
    return Assessment(
        top=tuple(arm.label for arm in top),
        regret_bound=found.regret_bound * model.scale,
        confidence=confidence_of(delta),
        tiers={
            name: tuple(label for label, own in zip(labels, tier, strict=True) if own == name)
            for name in TIERS
        },
        fixed=evidence.fixed,
        pulls=int(counts.pulls.sum()),
        arms=arms,
        rewards=model,
        minimize=minimize,
    )


def _arms(
    labels: tuple[OwnLabel, ...],
    pulls: IntArray,
    sums: FloatArray,
    low: FloatArray,
    high: FloatArray,
    chosen: list[bool],
) -> list[ArmResult]:
    columns = (pulls.tolist(), sums.tolist(), low.tolist(), high.tolist(), chosen)
    return [
        ArmResult(label, times, total / times if times else None, below, above, own)
        for label, times, total, below, above, own in zip(labels, *columns, strict=True)
    ]
