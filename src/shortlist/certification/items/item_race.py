"""The race on items: score arms on a shared random order of items until the choice is proved.

docs/items.md has the theorem and its proof. It holds for any sampling, so where to go next is a
matter of cells only: of the pairs that keep the bound up, the arms that are behind."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certification.items.matching import EXACT, largest_matching
from shortlist.certification.items.standing import Standing
from shortlist.certification.retired import Retired
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search


def item_race(problem: Problem, rng: np.random.Generator, retired: Retired | None = None) -> Search:
    """Score arms on shared items until no matching of doubts exceeds K epsilon.

    R_T <= its bound with probability >= 1 - delta over the order of the items, whenever it ends;
    R_T is about means over these items. When all cells that matter are seen it is exact. When an
    arm retires, all bets are made again among the arms that stay."""
    standing = Standing(problem, rng, retired)
    requests = 1
    first = min(standing.evidence.first, standing.cells.size)
    everybody = np.full(problem.n_arms, first)
    yield from _score(standing, everybody, Progress(round=requests))
    while True:
        standing.choose()
        bound = largest_matching(standing.bounds)
        if bound <= standing.allowed + EXACT or standing.finished:
            return _answer(standing, bound)
        targets = standing.targets()
        progress = Progress(requests, undecided=int((targets > standing.cells.reached).sum()))
        if not (yield from _score(standing, targets, progress)):
            return _answer(standing, min(bound, largest_matching(standing.refined())))
        requests += 1


def _score(
    standing: Standing, targets: IntArray, progress: Progress
) -> Generator[Pulls, Rewards, bool]:
    """Score arms on further items, as far as the budget goes; whether it went anywhere."""
    targets = _affordable(standing, targets)
    times = standing.cells.missing(targets)
    if not (targets > standing.cells.reached).any():
        return False
    arms = np.flatnonzero(times)
    scores = np.empty(0)
    if arms.size:
        pulls = Pulls(standing.arms[arms], times[arms], progress)
        reply = yield pulls
        assert reply.each is not None
        scores = reply.each
        standing.purse.pay(pulls, reply)
    standing.take(targets, scores)
    return True


def _affordable(standing: Standing, targets: IntArray) -> IntArray:
    """The same targets, or lower ones for which the budget is enough."""
    purse = standing.purse
    if purse.budget is None:
        return targets
    if not standing.cells.reached.any():  # all arms alike
        every, first = np.arange(targets.size), int(targets[0])
        while (
            first > 1 and not purse.affords(every, standing.cells.missing(every * 0 + first)).all()
        ):
            first -= 1
        return every * 0 + first
    order = np.lexsort((standing.ties, standing.cells.reached))
    times = standing.cells.missing(targets)[order]
    beyond = order[~purse.affords(standing.arms[order], times)]
    allowed = targets.copy()
    allowed[beyond] = standing.cells.reached[beyond]
    return allowed


def _answer(standing: Standing, bound: float) -> Answer:
    asked, k = standing.asked, standing.problem.k
    reached = np.zeros(asked.n_arms, dtype=np.int64)
    reached[standing.arms] = standing.cells.reached
    evidence = {
        "certificate": "items",
        "exact": standing.finished,
        "items": reached.tolist(),
        "out": int(standing.evidence.out.sum()),
    }
    regret = bound / k
    if standing.mirrored:  # the same loss, shared by another number of arms
        regret = regret * k / asked.k
    return Answer(standing.chosen, regret, 1 - asked.delta, evidence)
