"""Leads that change over a live test: notes for the result; no guarantee rests on them.

A novelty that fades, or a page that slowly breaks, is a lead that changes. The bound is then about
the average over the test (docs/drift.md). For every arm, the lead over the arms that were in play
in all of its blocks is fitted by a straight line; a steep slope is noted. This is a hint and no
test: a search that ends when leads are clear ends when they look large, and leads that looked too
large at first seem to fall."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from shortlist.arms import Label, shown_label
from shortlist.arrays import BoolArray, FloatArray
from shortlist.engine.blocks import TestBlock
from shortlist.formatting import plural, readable
from shortlist.problem import Problem

FEWEST = 3  # blocks that a line is fitted to
WEEK = 7  # blocks that show a week
UNLIKELY = 0.05  # probability below which the slope of an arm is noted, for all arms together


class TrendLine(NamedTuple):
    """The lead of an arm over the others, fitted by a line."""

    first: float  # at the first block
    last: float  # at the last block
    chance: float  # of a slope as steep in a fixed number of blocks with a constant lead


def trend_notes(
    blocks: Sequence[TestBlock], labels: Sequence[Label], problem: Problem
) -> tuple[str, ...]:
    """A note for every arm whose lead seems to change, and one if there are too few blocks to see
    that."""
    lines = {arm: line_of(blocks, arm, problem) for arm in range(len(labels))}
    fitted = {arm: line for arm, line in lines.items() if line is not None}
    allowed = UNLIKELY / max(1, len(fitted))
    scale = problem.rewards.scale
    short = (
        f"{plural(len(blocks), 'block')} count, which is too few to see whether leads change over"
    )
    short += (
        " time, as novelties do: `min_blocks` asks for whole weeks, `skip_blocks` for a later start"
    )
    changes = tuple(
        f"the lead of {shown_label(labels[arm])} over the other arms seems to have changed, from"
        f" {readable(line.first * scale)} to {readable(line.last * scale)} by a line fitted to the"
        " blocks: look at the days"
        for arm, line in fitted.items()
        if line.chance < allowed
    )
    return changes if len(blocks) >= WEEK else (*changes, short)


def line_of(blocks: Sequence[TestBlock], arm: int, problem: Problem) -> TrendLine | None:
    """The fitted line of an arm, on the scale of rewards from 0 to 1; None with too few blocks."""
    told = [block.told(problem).times for block in blocks if _shown(block, arm, problem)]
    always = np.all([times > 0 for times in told], axis=0) if told else np.array([], dtype=np.bool_)
    leads = [_lead(block, arm, always, problem) for block in blocks]
    known = [(place, *lead) for place, lead in enumerate(leads) if lead is not None]
    if len(known) < FEWEST:
        return None
    times, values, variances = np.array(known).T
    return _fitted(times, values, 1 / variances)


def _shown(block: TestBlock, arm: int, problem: Problem) -> bool:
    """Whether an arm has visitors of its own in a block."""
    return arm not in block.retired and bool(block.told(problem).times[arm])


def _lead(
    block: TestBlock, arm: int, always: BoolArray, problem: Problem
) -> tuple[float, float] | None:
    """The lead of an arm in a block over those that `always` had visitors where it had, and its
    variance; None if nothing can be compared."""
    if not _shown(block, arm, problem):
        return None
    told = block.told(problem)
    rest = always.copy()
    rest[arm] = False
    own, others = told.times[arm], told.times[rest].sum()
    if not others:
        return None
    won, theirs = told.sums[arm], told.sums[rest].sum()
    rate = (won + theirs + 0.5) / (own + others + 1)
    return float(won / own - theirs / others), float(rate * (1 - rate) * (1 / own + 1 / others))


def _fitted(times: FloatArray, values: FloatArray, weights: FloatArray) -> TrendLine:
    """Weighted least squares."""
    centre = np.average(times, weights=weights)
    level = np.average(values, weights=weights)
    spread = weights @ (times - centre) ** 2
    slope = weights @ ((times - centre) * values) / spread
    steep = abs(slope) * np.sqrt(spread)
    ends = level + slope * (np.array([times[0], times[-1]]) - centre)
    return TrendLine(float(ends[0]), float(ends[1]), float(2 * ndtr(-steep)))
