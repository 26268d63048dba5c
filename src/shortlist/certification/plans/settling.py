"""Arms are settled block by block: what one is charged may depend on the arms before it.

All arms have stopped. The blocks are declared in advance. The first is charged by what the pilot
says; the rewards of all blocks before say what the means of the next one are like, where the
boundary is, and how many arms it has to take. No arm has a say in what it is charged itself, so (*)
of docs/plans.md holds for each of them given those before. (Lemma 5) What several tracks say about
the same set is put together, as with boundaries: each of them has its own share of delta."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit

from shortlist.arrays import BoolArray, FloatArray, IntArray, product
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.counts import Counts, Threshold, Track
from shortlist.certification.plans.parts import Part, Settled
from shortlist.certification.plans.plan import Plan
from shortlist.certification.plans.stop_states import NOT_THERE

GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it, less whole numbers, are spread evenly


def settled(
    plans: Sequence[Plan], pilot: Belief, pulls: IntArray, successes: IntArray
) -> Iterator[Settled]:
    """Arms that have stopped like this, on every track, the one first that takes most nearly k.

    On none if one of them stopped where states were left out, which is charged infinitely."""
    ended = _ended(plans, pulls, successes)
    if (ended == NOT_THERE).any():
        return
    block = blocks(plans, pulls.size)
    belief, tracks = pilot, list[Track]()
    for number in range(len(tuning.BLOCKS)):
        before = block < number
        if number:
            belief = pilot.with_rewards(pulls * before, successes * before)
        counts = Counts.of(_ahead(plans, belief, ~before), belief)
        tracks = tracks or counts.tracks()
        moving = None if number else pilot.boundary
        for track in tracks:
            threshold = counts.threshold(track.aim - track.taken)
            for part in counts.ahead:
                arms = part.arms[block[part.arms] == number]
                track.steps.append((replace(part, arms=arms, moving=moving), threshold))
                track.taken += int((part.scores[ended[arms]] > threshold.score).sum())
    for track in sorted(tracks, key=lambda each: abs(each.taken - pilot.k)):
        steps = [(part, threshold) for part, threshold in track.steps if part.arms.size]
        parts = [replace(part, places=_places(part, threshold)) for part, threshold in steps]
        yield Settled(parts, ended, belief.boundary, track.share)


def _ended(plans: Sequence[Plan], pulls: IntArray, successes: IntArray) -> IntArray:
    """The number of the state in which every arm stopped: (arms,)."""
    ended = np.zeros(pulls.size, dtype=np.int64)
    for plan in plans:
        arms = plan.policy.group.arms
        ended[arms] = plan.states.find(pulls[arms], successes[arms])
    return ended


def blocks(plans: Sequence[Plan], n_arms: int) -> IntArray:
    """The block of every arm, by the arms alone; few arms of a plan are all in the last one."""
    ends = np.cumsum(tuning.BLOCKS)[:-1]
    block = np.full(n_arms, ends.size, dtype=np.int64)
    for plan in plans:
        arms = plan.policy.group.arms
        if arms.size >= tuning.FEW_ARMS:
            places = (GOLDEN * np.arange(1, arms.size + 1)) % 1.0
            block[arms] = np.searchsorted(ends, places, side="right")
    return block


def _ahead(plans: Sequence[Plan], belief: Belief, unseen: BoolArray) -> list[Part]:
    """The arms that are not settled yet, and what is believed about them."""
    parts = []
    for plan in plans:
        arms = plan.policy.group.arms
        arms = arms[unseen[arms]]
        if arms.size:
            outlook = belief.outlook(belief.group(arms))
            posterior = outlook.posterior(plan.states.pulls, plan.states.successes)
            scores = product(posterior, outlook.grid[:, None])[:, 0]
            parts.append(Part(plan, arms, outlook, None, plan.laws(outlook), scores, scores))
    return parts


def _places(part: Part, threshold: Threshold) -> FloatArray:
    """The quantile of the mean at how likely an arm is to be taken, in every state.

    That less the boundary is the lead with which the least is expected to be charged
    (docs/plans.md, "The best charges")."""
    away = (part.scores - threshold.score) / threshold.doubt
    taken = np.clip(expit(away), tuning.HARDLY, 1 - tuning.HARDLY)
    states, outlook = part.plan.states, part.outlook
    posterior = outlook.posterior(states.pulls, states.successes)
    below = np.cumsum(posterior, axis=1) - posterior / 2  # (states, grid)
    after = np.clip((below < taken[:, None]).sum(axis=1), 1, outlook.grid.size - 1)
    every = np.arange(after.size)
    low, high = below[every, after - 1], below[every, after]
    share = np.clip((taken - low) / np.maximum(high - low, np.finfo(float).tiny), 0.0, 1.0)
    places = outlook.grid[after - 1] + share * (outlook.grid[after] - outlook.grid[after - 1])
    result: FloatArray = np.where(np.abs(away) > tuning.NEVER, np.copysign(math.inf, away), places)
    return result
