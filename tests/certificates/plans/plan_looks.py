"""Looks of few arms, and rewards for them, that several tests of plans use."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.planning import predict_cost
from shortlist.certificates.plans.search import PlanLook
from shortlist.search import Pulls, Rewards, advance

Stream = Callable[[Pulls], Rewards]


def tape(means: FloatArray, seed: int, flipped: int | None = None) -> Stream:
    """Rewards that depend on the arm and on which of its pulls it is, on nothing else."""
    rng = np.random.default_rng(seed)
    rewards = (rng.random((means.size, 4000)) < means[:, None]).astype(np.float64)
    if flipped is not None:
        rewards[flipped] = 1 - rewards[flipped]
    drawn = np.zeros(means.size, dtype=np.int64)

    def pull(request: Pulls) -> Rewards:
        sums = np.zeros(request.arms.size)
        for place, (arm, times) in enumerate(zip(request.arms, request.times, strict=True)):
            sums[place] = rewards[arm, drawn[arm] : drawn[arm] + times].sum()
            drawn[arm] += times
        return Rewards(sums, sums)

    return pull


def small_look(k: int = 10, means: FloatArray | None = None) -> PlanLook:
    rng = np.random.default_rng(7)
    means = np.linspace(0.9, 0.1, 30) if means is None else means
    pulls = np.full(means.size, 10)
    belief = Belief(pulls, rng.binomial(pulls, means).astype(np.float64), k, 0.6)
    return PlanLook(belief, predict_cost(belief, 0.1 * k, 0.2).stakes, 0.2)


def asked(
    look: PlanLook, stream: Stream, stages: Sequence[int] | None = None
) -> dict[int, list[int]]:
    """What every arm was asked for in these stages, or all, request by request."""
    times: dict[int, list[int]] = defaultdict(list)
    for number in range(len(look.drafts)) if stages is None else stages:
        drawing = look.draw(look.stage(number), 0)
        turn = advance(drawing, None)
        while isinstance(turn, Pulls):
            for arm, each in zip(turn.arms.tolist(), turn.times.tolist(), strict=True):
                times[arm].append(each)
            turn = advance(drawing, stream(turn))
    return times
